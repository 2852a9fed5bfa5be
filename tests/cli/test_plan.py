"""`dpselect plan`: what it compares, where public scores come from, and the extremes of its options.

How the options reach it, and what is refused, is in `test_questions`; what plans look like in `transcripts/plans.txt`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.accounting import total
from dpselect.analysis import expected_error, worst_case_error
from dpselect.ledger import Charge
from tests.cli.conftest import Run


def words(text: str) -> str:
    return " ".join(text.split())


def plan(run: Run, *options: object) -> dict[str, Any]:
    result = run("plan", *options, "--json")
    assert (result.code, result.err) == (0, "")
    content: dict[str, Any] = json.loads(result.out)
    return content


@pytest.mark.parametrize(
    ("epsilon", "times", "delta", "better"),
    [("0.1", 50, "1e-6", "exponential"), ("1", 1, "1e-6", "permute-and-flip"), ("2", 3, "1e-9", "permute-and-flip")],
)
def test_delta_compares_at_equal_error_and_at_equal_budget(
    run: Run, epsilon: str, times: int, delta: str, better: str
) -> None:
    options = ("--candidates", "1000", "--epsilon", epsilon, "--questions", times, "--delta", delta, "--monotonic")
    many = plan(run, "select", *options)["approximate"]
    assert (many["delta"], many["better"]) == (float(delta), better)
    own, at_error, at_budget = (
        many[name] for name in ("exponential", "permute_and_flip_at_equal_error", "permute_and_flip_at_equal_budget")
    )
    for row, kind in ((own, ExponentialMechanism), (at_error, PermuteAndFlip), (at_budget, PermuteAndFlip)):
        mechanism = kind(row["epsilon"], monotonic=True)
        assert row["expected_error_at_most"] == pytest.approx(worst_case_error(mechanism, 1000).error, rel=1e-9)
        spent = total([Charge.of(mechanism, {}, count=times)], delta).approximate
        assert spent is not None
        assert row["total_epsilon"] == pytest.approx(spent.epsilon, rel=1e-9)
    assert own["epsilon"] == float(epsilon)
    assert at_error["expected_error_at_most"] == pytest.approx(own["expected_error_at_most"])
    more = total([Charge("a", at_budget["epsilon"] * 1.001, "permute-and-flip", times)], delta).approximate
    assert more is not None
    assert at_budget["total_epsilon"] <= own["total_epsilon"] < more.epsilon
    is_exponential = own["expected_error_at_most"] < at_budget["expected_error_at_most"]
    assert is_exponential == (own["total_epsilon"] < at_error["total_epsilon"]) == (better == "exponential")


def test_public_scores_come_from_columns_and_from_standard_input(run: Run, tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text("name,year,visits\na,1999,5\nb,2000,8\nc,2001,9\n")
    content = plan(run, "select", "--scores", wide, "--column", "visits", "--label", "name", "--epsilon", "1")
    exact = content["proxy"]["mechanisms"][0]["expected_error"]
    assert exact == pytest.approx(expected_error(PermuteAndFlip(1), [5, 8, 9]), rel=1e-12)
    result = run("plan", "select", "--scores", "-", "--epsilon", "1", stdin=b"5\n8\n9\n")
    assert result.code == 0
    assert "on the 3 scores of standard input" in words(result.out)
    assert "results computed from private scores are private too" in words(result.out)
    any_epsilon = run("plan", "select", "--scores", "-", "--error", "9", stdin=b"5\n8\n9\n").out
    assert words(any_epsilon).count(" any ") == 3 + words(any_epsilon).count("for any data")


def test_the_extremes_of_the_options_have_finite_figures(run: Run) -> None:
    options = ("--candidates", "1e15", "--sensitivity", "1e50", "--questions", "1e9")
    for target in (("--epsilon", "1e-50"), ("--epsilon", "1e50"), ("--error", "1e-50"), ("--error", "1e50")):
        for row in plan(run, "select", *options, *target)["mechanisms"]:
            assert all(0 < value < float("inf") for key, value in row.items() if key != "mechanism")


def test_without_dp_accounting_delta_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    result = run("plan", "select", "--candidates", "9", "--epsilon", "1", "--delta", "1e-6")
    assert (result.code, result.out, result.err.count("\n")) == (5, "", 1)
    assert "dp-accounting" in result.err
