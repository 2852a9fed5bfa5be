"""`dpselect plan select --scores`: exact figures on public scores."""

from pathlib import Path

import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.analysis import epsilon_for, error_quantile, expected_error, worst_case_error
from tests.cli.conftest import Run
from tests.cli.plans import MECHANISMS, by_name, is_rounded_up, number, plan, tables, words

SCORES = [310, 250, 120.5, 120, 7]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "public.csv"
    path.write_text("name,visits\n" + "".join(f"label{i},{score}\n" for i, score in enumerate(SCORES)))
    return path


@pytest.mark.parametrize("options", [(), ("--monotonic", "--sensitivity", "3")])
def test_public_scores_give_exact_figures(run: Run, file: Path, options: tuple[str, ...]) -> None:
    parameters = {"sensitivity": 3, "monotonic": True} if options else {}
    result = run("plan", "select", "--scores", file, "--epsilon", "0.01", *options)
    guaranteed_table, exact = tables(result.out)
    assert f"Choosing one of {len(SCORES)} candidates" in words(result.out)
    assert f"Exact errors on the {len(SCORES)} scores of {file}" in result.out
    for name, (average, within) in exact.items():
        mechanism = MECHANISMS[name]("0.01", **parameters)  # type: ignore[arg-type]
        assert is_rounded_up(average, expected_error(mechanism, SCORES))
        assert number(within) == error_quantile(mechanism, SCORES, 0.95)
        assert number(average) <= number(guaranteed_table[name][1])
    rows = by_name(plan(run, "select", "--scores", file, "--epsilon", "0.01", *options)["proxy"]["mechanisms"])
    for name, row in rows.items():
        mechanism = MECHANISMS[name]("0.01", **parameters)  # type: ignore[arg-type]
        assert row["expected_error"] == pytest.approx(expected_error(mechanism, SCORES), rel=1e-12)
        assert row["error_95"] == error_quantile(mechanism, SCORES, 0.95)


@pytest.mark.parametrize("monotonic", [False, True])
def test_public_scores_give_the_epsilon_that_they_need(run: Run, file: Path, monotonic: bool) -> None:
    options = ("--scores", file, "--error", "20", "--sensitivity", "2", *["--monotonic"] * monotonic)
    rows = by_name(plan(run, "select", *options)["proxy"]["mechanisms"])
    table = tables(run("plan", "select", *options).out)[1]
    for name, kind in MECHANISMS.items():
        needed = epsilon_for(kind, SCORES, expected_error=20, sensitivity=2, monotonic=monotonic)
        assert rows[name] == {"mechanism": name, "epsilon": pytest.approx(needed, rel=1e-9)}
        assert is_rounded_up(table[name][0], needed)


def test_where_a_uniform_choice_is_good_enough_every_epsilon_is(run: Run, file: Path) -> None:
    mean = max(SCORES) - sum(SCORES) / len(SCORES)
    options = ("--scores", file, "--error", mean + 0.01)
    assert list(tables(run("plan", "select", *options).out)[1].values()) == [["any"]] * 3
    assert [row["epsilon"] for row in plan(run, "select", *options)["proxy"]["mechanisms"]] == [None] * 3
    lower = ("--scores", file, "--error", mean - 0.01)
    assert all(row["epsilon"] > 0 for row in plan(run, "select", *lower)["proxy"]["mechanisms"])


def test_the_number_of_candidates_may_differ_from_the_public_scores(run: Run, file: Path) -> None:
    content = plan(run, "select", "--scores", file, "--epsilon", "1", "--candidates", "700")
    assert content["candidates"] == 700
    row = by_name(content["mechanisms"])["exponential"]
    expected = worst_case_error(ExponentialMechanism(1), 700).error
    assert row["expected_error_at_most"] == pytest.approx(expected, rel=1e-9)
    exact = by_name(content["proxy"]["mechanisms"])["exponential"]["expected_error"]
    assert exact == pytest.approx(expected_error(ExponentialMechanism(1), SCORES), rel=1e-12)
    assert plan(run, "select", "--scores", file, "--epsilon", "1")["candidates"] == len(SCORES)


def test_columns_of_the_public_scores(run: Run, tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text("name,year,visits\na,1999,5\nb,2000,8\nc,2001,9\n")
    content = plan(run, "select", "--scores", wide, "--column", "visits", "--label", "name", "--epsilon", "1")
    exact = by_name(content["proxy"]["mechanisms"])["permute-and-flip"]["expected_error"]
    assert exact == pytest.approx(expected_error(PermuteAndFlip(1), [5, 8, 9]), rel=1e-12)


def test_public_scores_from_standard_input(run: Run) -> None:
    result = run("plan", "select", "--scores", "-", "--epsilon", "1", stdin=b"5\n8\n9\n")
    assert result.code == 0
    assert "on the 3 scores of standard input" in words(result.out)
    assert "results computed from private scores are private too" in words(result.out)
