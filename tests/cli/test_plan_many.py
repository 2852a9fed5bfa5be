"""`dpselect plan select --questions`: what many selections cost together, and which mechanism is the better one."""

import sys

import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect._messages import install_command
from dpselect._numbers import shown
from dpselect.accounting.totals import total
from dpselect.analysis import worst_case_error
from dpselect.ledger import Charge
from tests.cli.conftest import Run
from tests.cli.plans import by_name, plan, words


def costs_the_same(epsilon: float, rho: float) -> bool:
    return PermuteAndFlip(epsilon).guarantee.zcdp <= rho < PermuteAndFlip(epsilon * (1 + 1e-6)).guarantee.zcdp


@pytest.mark.parametrize(
    ("epsilon", "n", "better"),
    [("0.5", 1000, "exponential"), ("0.001", 2, "exponential"), ("9", 10, "permute-and-flip")],
)
def test_many_selections_are_compared_at_the_same_zcdp(run: Run, epsilon: str, n: int, better: str) -> None:
    options = ("--candidates", n, "--epsilon", epsilon, "--questions", "20")
    many = plan(run, "select", *options)["better_for_many"]
    rho = ExponentialMechanism(epsilon).guarantee.zcdp
    assert (many["pure"], many["zcdp"]) == ("permute-and-flip", better)
    assert many["at_total_zcdp"] == pytest.approx(20 * rho, rel=1e-12)
    own, other = many["exponential"], many["permute-and-flip"]
    assert own["epsilon"] == float(epsilon)
    assert costs_the_same(other["epsilon"], rho)
    errors = [own["expected_error_at_most"], other["expected_error_at_most"]]
    mechanisms = (ExponentialMechanism(epsilon), PermuteAndFlip(other["epsilon"]))
    assert errors == pytest.approx([worst_case_error(m, n).error for m in mechanisms], rel=1e-9)
    assert (errors[0] < errors[1]) == (better == "exponential")


def test_selections_of_a_wanted_error_are_compared_from_the_epsilon_that_it_needs(run: Run) -> None:
    content = plan(run, "select", "--candidates", "1000", "--error", "20", "--questions", "20")
    own = content["better_for_many"]["exponential"]
    assert own["epsilon"] == by_name(content["mechanisms"])["exponential"]["epsilon"]
    assert own["expected_error_at_most"] <= 20


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
    rows = {
        "exponential": many["exponential"],
        "error": many["permute_and_flip_at_equal_error"],
        "budget": many["permute_and_flip_at_equal_budget"],
    }
    for name, row in rows.items():
        mechanism = (ExponentialMechanism if name == "exponential" else PermuteAndFlip)(row["epsilon"], monotonic=True)
        assert row["expected_error_at_most"] == pytest.approx(worst_case_error(mechanism, 1000).error, rel=1e-9)
        spent = total([Charge.of(mechanism, {}, count=times)], delta).approximate
        assert spent is not None
        assert row["total_epsilon"] == pytest.approx(spent.epsilon, rel=1e-9)
    assert rows["exponential"]["epsilon"] == float(epsilon)
    assert rows["error"]["expected_error_at_most"] == pytest.approx(rows["exponential"]["expected_error_at_most"])
    assert rows["budget"]["total_epsilon"] <= rows["exponential"]["total_epsilon"]
    more = total([Charge("a", rows["budget"]["epsilon"] * 1.001, "permute-and-flip", times)], delta).approximate
    assert more is not None
    assert more.epsilon > rows["exponential"]["total_epsilon"]
    is_exponential = rows["exponential"]["expected_error_at_most"] < rows["budget"]["expected_error_at_most"]
    assert is_exponential == (better == "exponential")
    assert is_exponential == (rows["exponential"]["total_epsilon"] < rows["error"]["total_epsilon"])


def test_delta_in_words(run: Run) -> None:
    options = ("--candidates", "1000", "--epsilon", "0.1", "--questions", "50", "--delta", "1e-6")
    text, many = words(run("plan", "select", *options).out), plan(run, "select", *options)["approximate"]
    error, budget = many["permute_and_flip_at_equal_error"], many["permute_and_flip_at_equal_budget"]
    assert "50 selections together as (epsilon, 1e-06)-DP" in text
    assert "For a budget of (epsilon, 1e-06), exponential is better" in text
    costs = (shown(error["total_epsilon"]), shown(many["exponential"]["total_epsilon"]))
    assert "permute-and-flip costs {} instead of {}".format(*costs) in text
    errors = (shown(budget["expected_error_at_most"]), shown(many["exponential"]["expected_error_at_most"]))
    assert "on average at most {} below the best instead of {}.".format(*errors) in text
    assert "One selection as (epsilon, 0.001)-DP" in words(run("plan", "select", *options[:4], "--delta", "0.001").out)


def test_delta_with_a_wanted_error_starts_from_the_epsilon_that_it_needs(run: Run) -> None:
    content = plan(run, "select", "--candidates", "100", "--error", "20", "--questions", "5", "--delta", "1e-6")
    own = content["approximate"]["exponential"]
    assert own["epsilon"] == by_name(content["mechanisms"])["exponential"]["epsilon"]
    assert own["expected_error_at_most"] <= 20
    assert plan(run, "select", "--candidates", "100", "--error", "20")["approximate"] is None


def test_without_dp_accounting_delta_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    result = run("plan", "select", "--candidates", "10", "--epsilon", "1", "--delta", "1e-6")
    assert (result.code, result.out) == (5, "")
    assert result.err == f"error: (epsilon, delta) needs dp-accounting: {install_command('dp-accounting')}\n"
