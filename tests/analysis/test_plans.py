"""Plans: accuracies against exact worst cases by brute force, and costs against real ledgers.

The rates are derived here by hand, and the probabilities are those of `tests.reference`.
"""

import datetime
import json
import math
import re
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import pytest

import dpselect
from dpselect import ExponentialMechanism, ReportNoisyMax
from dpselect.accounting.budget import Amount
from dpselect.accounting.charge import Charge
from dpselect.analysis import epsilon_for, error_bounds, error_quantile, expected_error, plan
from dpselect.analysis.measures import among, promise, rarely_exceeded
from dpselect.errors import BudgetExceeded
from dpselect.ledger import Ledger
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.base import MechanismBase
from dpselect.questions import Quantile, TopK
from dpselect.questions.plan import WHAT, equal_cost, times_allowed
from dpselect.tables.kinds import Column, Kind, public_span
from tests import reference

PMF = {"permute-and-flip": reference.permute_and_flip_pmf, "exponential": reference.exponential_pmf}
JUST = 1 + 1e-9


def expected(name, scores, rate):
    return sum(p * (max(scores) - score) for p, score in zip(PMF[name](scores, rate), scores, strict=True))


def reached(name, scores, rate, error):
    return sum(
        p for p, score in zip(PMF[name](scores, rate), scores, strict=True) if max(scores) - score >= error * (1 - 1e-9)
    )


# Counts.


@pytest.mark.parametrize("name", PMF)
@pytest.mark.parametrize(
    ("options", "rate"),
    [
        ({}, 0.5),
        ({"neighbours": "replace"}, 0.25),
        ({"groups": 9, "max_groups": 4}, 0.125),
        ({"groups": 9, "max_groups": 4, "neighbours": "replace"}, 0.0625),
        ({"groups": 2, "max_groups": 4}, 0.25),
    ],
    ids=str,
)
def test_no_counts_exceed_the_accuracy_of_a_mode_and_some_reach_it(name, options, rate):
    accuracy = plan(3, question="mode", epsilon="0.5", **options).accuracy[name]
    small = [expected(name, counts, rate) for counts in combinations_with_replacement(range(7), 3)]
    apart = [expected(name, (gap, 0, 0), rate) for gap in range(int(12 / rate))]
    assert max(*small, *apart) <= accuracy.average * JUST
    assert max(apart) >= 0.99 * accuracy.average, "up to whole people"
    for bound, rare in ((accuracy.within_95, 0.05), (accuracy.within_99, 0.01)):
        assert all(reached(name, (gap, 0, 0), rate, bound) <= rare for gap in range(int(30 / rate)))
    assert (accuracy.unit, accuracy.all_within_95) == ("people", accuracy.within_95)


def answers(name, counts, k, rate):
    """Every sequence of k choices, each among the rest, with its probability."""
    if k == 0:
        return [((), 1.0)]
    found = []
    left = sorted(counts)
    for place, p in enumerate(PMF[name](left, rate)):
        rest = left[:place] + left[place + 1 :]
        found += [((left[place], *later), p * q) for later, q in answers(name, rest, k - 1, rate)]
    return found


@pytest.mark.parametrize("name", PMF)
def test_each_choice_of_a_top_k_is_close_to_the_one_of_its_rank(name):
    """Each of the two selections has half of the epsilon."""
    accuracy, rate = plan(3, question="top_k", k=2, method="peel", epsilon="0.5").accuracy[name], 0.25
    tables = [*combinations_with_replacement(range(6), 3), *((gap, more, 0) for gap in range(0, 40) for more in (0, 3))]
    largest = 0.0
    for counts in tables:
        ranked = sorted(counts, reverse=True)
        sequences = answers(name, counts, 2, rate)
        assert sum(p for _, p in sequences) == pytest.approx(1)
        for i in range(2):
            short = sum(p * (ranked[i] - chosen[i]) for chosen, p in sequences)
            largest = max(largest, short)
        one = accuracy.within_95
        assert all(sum(p for c, p in sequences if ranked[i] - c[i] >= one) <= 0.05 for i in range(2))
        together = sum(p for c, p in sequences if any(ranked[i] - c[i] >= accuracy.all_within_95 for i in range(2)))
        assert together <= 0.05
    assert 0.98 * accuracy.average <= largest <= accuracy.average * JUST
    assert accuracy.within_95 < accuracy.all_within_95 < accuracy.within_99


# Quantiles.


def rank_errors(people, candidates, level):
    """How many people the rank of each candidate is away from the quantile."""
    errors = []
    for candidate in candidates:
        below, at = sum(value < candidate for value in people), sum(value == candidate for value in people)
        errors.append(max(Fraction(0), below - level * len(people), level * len(people) - (below + at)))
    return errors


QUANTILES = [
    ("1/2", {}, Fraction(2)),  # a score of 2 for each person, which changes by 1 in either direction
    ("1/2", {"neighbours": "replace"}, Fraction(4)),
    ("9/10", {}, Fraction(18)),
    ("1/4", {"neighbours": "replace"}, Fraction(8)),
    ("1/4", {"neighbours": "replace", "groups": 5}, Fraction(12)),
    ("1/4", {"groups": 5, "max_groups": 2}, Fraction(12)),
]


@pytest.mark.parametrize("name", PMF)
@pytest.mark.parametrize(("level", "options", "divisor"), QUANTILES, ids=str)
def test_no_people_exceed_the_rank_error_of_a_quantile(name, level, options, divisor):
    """`divisor` is the range of the scores, times the number of groups of a person."""
    exact, candidates = Fraction(level), range(3)
    accuracy = plan(question="quantile", level=level, lower=0, upper=2, epsilon="0.5", **options).accuracy[name]
    rate = float(Fraction(1, 2) / divisor * exact.denominator)  # for errors in people
    tables = [
        *combinations_with_replacement((-1, 0, 1, 2, 5), 4),
        *([1] * n for n in range(0, int(60 * divisor / exact.denominator), 3)),
    ]
    largest = 0.0
    for people in tables:
        scores = [-float(error) for error in rank_errors([min(max(p, 0), 2) for p in people], candidates, exact)]
        largest = max(largest, expected(name, scores, rate))
        assert reached(name, scores, rate, accuracy.within_95) <= 0.05
    assert largest <= accuracy.average * JUST
    if level == "1/2":
        assert largest >= 0.98 * accuracy.average, "all at one value, and the others equally far from the median"


def test_the_bounds_of_a_range_grow_with_its_logarithm():
    finer, coarser = (
        plan(question="median", lower=0, upper=10**6, step=step, epsilon=1).accuracy["exponential"]
        for step in ("0.001", 1)
    )
    assert finer.within_95 / coarser.within_95 == pytest.approx(math.log(20 * (10**9 + 1)) / math.log(20 * (10**6 + 1)))
    whole = plan(question="median", lower=-(2**63), upper=2**63 - 1, epsilon=1)
    assert whole.question.size == 2**64
    assert 30 < whole.accuracy["permute-and-flip"].average < 44.4, "at most ln 2**64"
    mechanism = whole.promises["exponential"].mechanism
    assert rarely_exceeded(mechanism, 2**64, 0.05) == pytest.approx(2 * 47.3572, rel=1e-4), "2 ln(2**64 / 0.05)"
    assert any("ten times as many add 2.303" in sentence for sentence in whole.sentences)


DAY, MOMENT = datetime.date(2024, 2, 27), datetime.datetime(2024, 2, 27, 12)
RANGES = [
    (Kind.INTEGER, (0, 1000, 7), ("0", "1000", "7")),
    (Kind.INTEGER, (5, 5, 1), (5, 5, 1)),
    (Kind.FLOAT, (0.1, 0.7, 0.1), (0.1, 0.7, 0.1)),
    (Kind.DECIMAL, (Decimal("-1.5"), 2, Decimal("0.25")), ("-1.5", 2, "1/4")),
    (Kind.DATE, (DAY, DAY + datetime.timedelta(40), 7), ("2024-02-27", "2024-04-07", 7)),
    (Kind.DATE, (DAY, DAY, datetime.timedelta(7)), (DAY, DAY, datetime.timedelta(7))),
    (Kind.TIMESTAMP, (MOMENT, MOMENT + datetime.timedelta(1), 60), (MOMENT, "2024-02-28T12:00:00", 60)),
    (Kind.TIMESTAMP, (MOMENT, MOMENT + datetime.timedelta(1), Decimal("0.5")), (MOMENT, "2024-02-28 12:00", "0.5")),
]


@pytest.mark.parametrize(("kind", "of_table", "of_plan"), RANGES, ids=str)
def test_a_range_has_as_many_candidates_as_for_a_table(kind, of_table, of_plan):
    grid = public_span(*of_table, Column("c", "any", kind, digits=2))
    planned = Quantile(level="1/2", lower=of_plan[0], upper=of_plan[1], step=of_plan[2])
    assert planned.size == grid.size


# Costs.

BUDGETS = ["1", "0.7", "3,cap:1/7", "zcdp:0.5", "zcdp:1/3,1e-9", "1,1e-6", "2,1e-9,0"]
ASKED = {
    "mode": {"candidates": 30},
    "top_k": {"candidates": 30, "k": 3, "method": "peel", "groups": 12, "max_groups": 2},
    "median": {"lower": 0, "upper": 1000, "neighbours": "replace"},
}


def recorded(ledger, charge, most):
    """How many times the ledger records a charge, up to a number."""
    for times in range(most):
        try:
            ledger.charge(charge)
        except BudgetExceeded:
            return times
    return most


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("question", "count"), [("mode", 1), ("top_k", 7), ("median", 3)])
def test_a_budget_alone_is_divided_so_that_a_ledger_pays_for_all_and_for_no_more(tmp_path, budget, question, count):
    planned = plan(question=question, budget=budget, questions=count, **ASKED[question])
    for name, cost in planned.costs.items():
        ledger = Ledger(tmp_path / f"{name}.ledger", budget=budget)
        if "cap" in budget:  # the cap is less than the share of one draw
            assert recorded(ledger, cost.charge, count) == count <= cost.allowed
            assert cost.charge.each == min(Fraction(1, 7), Fraction(3) / count / planned.question.draws)
            continue
        assert recorded(ledger, cost.charge, count + 1) == count == cost.allowed
        value, limit = planned.budget.amount(cost.charge).value * count, planned.budget.limit.value
        assert limit * (1 - Fraction(1, 10**40)) <= value <= limit
    assert planned.suffices


def admitted(budget, charge, most):
    """How many times the filter of a budget admits a charge, as `Ledger.charge` asks it."""
    spent = Amount(Fraction(0))
    for times in range(most):
        takes_all = spent.value + budget.amount(charge).value == budget.limit.value
        spent = spent.plus(budget.amount(charge if takes_all else budget.recorded(charge)))
        if not budget.admits(spent):
            return times
    return most


OFF_THE_GRID = [("1", Charge(WHAT, "1/419")), ("zcdp:0.5", Charge(WHAT, rho="1/838"))]


@pytest.mark.parametrize(("budget", "too_much"), OFF_THE_GRID, ids=["pure", "zcdp"])
def test_a_share_that_no_ledger_records_exactly_is_rounded_down(budget, too_much):
    """419 is a prime, and 1/419 is not on the grid of exact costs."""
    planned = plan(30, question="mode", budget=budget, questions=419)
    cost = planned.costs[planned.used]
    amount = planned.budget.amount(cost.charge).value
    assert 0 < planned.budget.limit.value / 419 - amount < Fraction(1, 10**50)
    assert admitted(planned.budget, cost.charge, 430) == 419 == cost.allowed
    assert admitted(planned.budget, too_much, 430) == 418 == times_allowed(planned.budget, too_much)


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "too_much"), OFF_THE_GRID, ids=["pure", "zcdp"])
def test_a_ledger_does_the_same_with_a_share_off_the_grid(tmp_path, budget, too_much):
    planned = plan(30, question="mode", budget=budget, questions=419)
    charge = planned.costs[planned.used].charge
    assert recorded(Ledger(tmp_path / "a.ledger", budget=budget), charge, 430) == 419
    assert recorded(Ledger(tmp_path / "b.ledger", budget=budget), too_much, 430) == 418


PRICES = [{"epsilon": "0.3"}, {"epsilon": "19/419"}, {"rho": "0.03"}, {"rho": "1/419"}, {"error": 50}]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("count", [1, 3, 7, 419])
def test_the_price_in_words_can_be_copied(budget, count):
    """It is rounded to six digits, down, so that the budget still pays for all questions, and hardly for more."""
    planned = plan(30, question="mode", budget=budget, questions=count)
    [currency, text] = re.findall(r"Ask each question with (epsilon|rho) (\S+)\.$", planned.sentences[-1])[0]
    again = plan(30, question="mode", budget=budget, questions=count, **{currency: text})
    assert again.suffices
    assert again.accuracy[again.used].average == pytest.approx(planned.accuracy[planned.used].average, rel=1e-4)
    assert not any("Ask each question" in sentence for sentence in again.sentences)


@pytest.mark.parametrize("budget", ["1", "zcdp:0.1", "1,1e-6"])
@pytest.mark.parametrize("price", PRICES, ids=str)
def test_a_plan_says_how_many_questions_a_ledger_pays_for(tmp_path, budget, price):
    planned = plan(question="median", lower=0, upper=20, budget=budget, questions=5, **price)
    for name, cost in planned.costs.items():
        ledger = Ledger(tmp_path / f"{name}.ledger", budget=budget)
        assert admitted(planned.budget, cost.charge, 2000) == cost.allowed
        assert recorded(ledger, cost.charge, 5) == min(cost.allowed, 5)
        if cost.allowed:
            one = Ledger(tmp_path / f"{name}-one.ledger", budget=budget)
            assert one.charged(one.charge(cost.charge)) == cost.one
    assert planned.suffices == (planned.costs[planned.used].allowed >= 5)
    assert any("pays for" in sentence for sentence in planned.sentences)


def test_a_cap_refuses_larger_draws():
    planned = plan(30, question="mode", epsilon="0.5", budget="1,cap:0.1", questions=3)
    assert (planned.costs[planned.used].one, planned.costs[planned.used].total) == (Fraction(1, 2), Fraction(3, 2))
    assert (planned.costs[planned.used].allowed, planned.suffices) == (0, False)
    assert any("the cap of this ledger" in sentence for sentence in planned.sentences)
    shared = plan(30, question="top_k", k=5, method="peel", epsilon="0.5", budget="1,cap:0.1")
    assert shared.costs[shared.used].allowed == 2


# An error, and which mechanism is better.


WITH_ERROR = {
    **ASKED,
    "quantiles": {"levels": "quartiles", "lower": 0, "upper": 100},
    "select": {"candidates": 50, "monotonic": True},
    "top_k by sets": {"candidates": 12, "k": 3, "method": "set", "max_values": 2},
    "top_k by margins": {"candidates": 12, "k": (2, 5)},
    "top_k by noisy counts": {"candidates": 12, "k": 3, "max_values": 1, "ordered": True},
    "top_k that leaves out": {"candidates": 12, "k": 9},
}


@pytest.mark.parametrize("case", WITH_ERROR)
@pytest.mark.parametrize("budget", [None, "1", "zcdp:0.5"])
def test_an_error_gives_the_price_that_it_needs(case, budget):
    question, asked = case.split(" ")[0], WITH_ERROR[case]
    planned = plan(question=question, error="12.5", budget=budget, **asked)
    assert (planned.epsilon, planned.error) == (None, Fraction(25, 2))
    for name, promised in planned.promises.items():
        assert 12.5 / 1.002 < planned.accuracy[name].average <= 12.5
        cost = planned.costs[name]
        if planned.method in (None, "peel"):
            assert cost.charge.epsilon == promised.mechanism.epsilon * planned.question.draws
        if planned.method is None or name == planned.used:
            again = plan(question=question, epsilon=cost.charge.epsilon, mechanism=name, **asked)
            assert again.accuracy[name].average == pytest.approx(planned.accuracy[name].average, rel=1e-12)
        value = cost.one.epsilon if budget != "zcdp:0.5" else cost.one.rho
        assert value == (cost.charge.epsilon if budget != "zcdp:0.5" else cost.charge.rho)
    cheapest = min(planned.costs.values(), key=lambda cost: cost.one.epsilon or cost.one.rho)
    assert planned.method not in (None, "peel") or cheapest.charge.mechanism == planned.better, "as at equal cost"


@pytest.mark.parametrize(
    ("asked", "used", "better"),
    [
        ({"epsilon": "0.1"}, "permute-and-flip", "permute-and-flip"),
        ({"epsilon": "0.1", "budget": "zcdp:0.5"}, "exponential", "exponential"),
        ({"budget": "zcdp:0.5", "questions": 20}, "exponential", "exponential"),
        ({"budget": "zcdp:20"}, "exponential", "permute-and-flip"),
        ({"rho": "0.01"}, "permute-and-flip", "exponential"),
        ({"rho": "0.01", "mechanism": "exponential"}, "exponential", "exponential"),
        ({"budget": "1", "mechanism": "exponential"}, "exponential", "permute-and-flip"),
    ],
    ids=str,
)
def test_the_better_mechanism_is_more_accurate_at_the_same_cost(asked, used, better):
    planned = plan(30, question="mode", **asked)
    assert (planned.used, planned.better) == (used, better)
    spent = planned.costs[used].charge
    for name, promised in planned._same_cost.items():
        charge = Charge("same", promised.mechanism.epsilon, name)
        if planned.budget is not None and planned.budget.rho is not None:
            assert spent.rho * (1 - Fraction(1, 10**6)) <= charge.rho <= spent.rho
        assert promised == promise(promised.mechanism, 30)
    least = planned._same_cost[better].average
    assert least == min(promised.average for promised in planned._same_cost.values())
    assert planned.advice[0].startswith(f"Take {better}: at the same cost")
    assert (f"give mechanism={better!r}" in " ".join(planned.advice)) == (used != better)


def test_for_few_questions_a_pure_budget_may_be_better_than_epsilon_and_delta():
    few, many = (plan(30, question="mode", budget="1,1e-6", questions=count) for count in (1, 100))
    assert few._pure == promise(dpselect.PermuteAndFlip(1, monotonic=True), 30)
    assert "A pure budget of the same epsilon is better" in few.advice[-1]
    assert many._pure.average > many._same_cost["exponential"].average
    assert "pure" not in " ".join(many.advice)
    assert plan(30, question="mode", budget="zcdp:0.5")._pure is None


def test_a_delta_compares_the_totals_of_all_draws():
    planned = plan(30, question="top_k", k=3, method="peel", epsilon="0.3", questions=4, delta="1e-6")
    alone = plan(30, question="select", epsilon="0.1", monotonic=True, questions=12, delta="1e-6")
    assert planned.equal_rounds == alone.equal_rounds
    assert planned.equal_cost == alone.equal_cost


# What a plan shows.


def test_a_plan_says_what_it_is_for():
    planned = plan(30, question="top_k", k=3, method="peel", groups=12, max_groups=2, budget=1)
    assert planned.question == TopK(candidates=30, k=3, method="peel", groups=12, max_groups=2)
    record = "TopK(groups=12, max_groups=2, neighbours='add-remove', candidates=30, rule=None"
    record += ", max_values=None, k=3, method='peel', ordered=False)"
    assert repr(planned) == f"Plan({record}, budget=pure('1'), questions=1)"


def test_one_candidate_has_no_error():
    planned = plan(question="median", lower=5, upper=5, epsilon=1)
    assert {bound for each in planned.accuracy.values() for bound in (each.average, each.all_within_95)} == {0.0}
    assert not any("ten times" in sentence for sentence in planned.sentences)


def test_levels_are_those_that_were_written():
    assert Quantile(level=0.9, lower=0, upper=1) == Quantile(level="9/10", lower="0", upper=Fraction(1))
    assert plan(question="quantile", level=0.5, lower=0, upper=9, epsilon=1) == plan(
        question="median", lower=0, upper=9, epsilon=1
    )


def test_all_combinations_have_a_plan():
    prices = [{"epsilon": 1}, {"rho": 1}, {"error": 1}, {}]
    for price, budget, name in product(prices, BUDGETS, ["auto", "permute-and-flip", "exponential"]):
        planned = plan(5, question="top_k", k=2, budget=budget, mechanism=name, **price)
        assert name in {"auto", planned.used}
        assert planned.sentences
        assert planned.advice
        json.dumps(planned.to_dict())


@pytest.mark.parametrize("kind", MECHANISMS.values())
@pytest.mark.parametrize("n", [2, 3, 30, 10**9])
def test_a_promise_is_consistent(kind: type[MechanismBase], n: int) -> None:
    promised = promise(kind("0.3", 2), n)
    assert 0 < promised.attained <= promised.average <= error_bounds(kind("0.3", 2), n).upper
    assert promised.average < promised.within_95 < promised.within_99
    assert (promised.attained == promised.average) == (kind is not ReportNoisyMax)


def test_at_small_epsilon_permute_and_flip_has_half_of_it() -> None:
    equal = equal_cost(ExponentialMechanism("1e-4", "2", monotonic=True), among(100))
    mechanism = equal["permute-and-flip"].mechanism
    assert float(mechanism.epsilon) == pytest.approx(0.5e-4, rel=1e-4)
    assert (mechanism.sensitivity, mechanism.monotonic) == (2, True)


def test_the_better_one_changes_once_with_epsilon() -> None:
    """Under zCDP the exponential mechanism is better for small epsilons and permute-and-flip for large ones."""

    def is_exponential(epsilon: float) -> bool:
        equal = equal_cost(ExponentialMechanism(epsilon), among(100))
        return equal["exponential"].average < equal["permute-and-flip"].average

    choices = [is_exponential(e / 2) for e in range(1, 61)]
    assert choices[0]
    assert not choices[-1]
    assert sum(a != b for a, b in pairwise(choices)) == 1


SCORES = [310, 250, 120.5, 120, 7]


@pytest.mark.parametrize("claim", [{}, {"sensitivity": 3, "monotonic": True}, {"score_range": "1/3"}], ids=str)
def test_a_plan_from_an_epsilon_has_the_promises_of_that_epsilon(claim: dict[str, Any]) -> None:
    planned = plan(1000, epsilon="0.3", **claim)
    assert (planned.epsilon, planned.error, planned.questions) == (Fraction(3, 10), None, 1)
    assert list(planned.promises) == list(MECHANISMS)
    for name, kind in MECHANISMS.items():
        assert planned.promises[name] == promise(kind("0.3", **claim), 1000)
    assert not planned.on_scores
    assert planned.equal_cost is None
    assert planned.equal_rounds is None


def test_a_plan_with_scores_has_the_results_of_the_analysis() -> None:
    planned = plan(epsilon="0.05", scores=SCORES)
    assert planned.question.size == 5
    for name, kind in MECHANISMS.items():
        found = planned.on_scores[name]
        assert found.expected_error == expected_error(kind("0.05"), SCORES)
        assert found.error_95 == error_quantile(kind("0.05"), SCORES, 0.95)
    backwards = plan(20, error=3, scores=SCORES)
    assert backwards.question.size == 20
    for name, kind in MECHANISMS.items():
        assert backwards.on_scores[name].epsilon == epsilon_for(kind, SCORES, expected_error=3)


def test_a_plan_shows_what_was_asked_and_no_score() -> None:
    planned = plan(epsilon="1/3", scores=[731001, 731002, 5], questions=2, delta=1e-6)
    assert repr(planned) == (
        "Plan(Select(candidates=3, sensitivity=None, monotonic=False, score_range=None), epsilon='1/3', questions=2)"
    )
    assert "7310" not in json.dumps(planned.to_dict())
    assert repr(plan(3, error=2, score_range=1)) == (
        "Plan(Select(candidates=3, sensitivity=None, monotonic=False, score_range=Fraction(1, 1)), error=2,"
        " questions=1)"
    )
