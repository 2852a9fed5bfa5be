"""Plans of values that nobody listed: their numbers beside independent ones, and beside what tables do."""

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pyarrow as pa
import pytest

import dpselect
from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.analysis import plan, plan_found
from dpselect.errors import BudgetExceeded

BOTH = ("add-remove", "replace")


def first_counts(epsilon: Fraction, delta: Fraction) -> list[int]:
    """The first n with pi(n) >= 1/2, 0.95 and 1, by the recursion in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        step = (Decimal(epsilon.numerator) / epsilon.denominator).exp()
        chance, rest = Decimal(0), Decimal(delta.numerator) / delta.denominator
        found: list[int] = []
        for n in range(1, 100_000):
            chance = min(step * chance + rest, 1 - (1 - chance - rest) / step, Decimal(1))
            found += [n] * (sum(chance >= wanted for wanted in map(Decimal, ("0.5", "0.95", "1"))) - len(found))
            if len(found) == 3:
                return found
    raise AssertionError


@pytest.mark.parametrize(("epsilon", "delta", "m"), [("1", "1e-9", 1), ("0.1", "1e-6", 1), ("2", "1e-12", 3)])
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("groups", [None, 5])
def test_values_need_as_many_people_as_the_recursion_says(epsilon, delta, m, neighbours, groups):
    asked = {"epsilon": epsilon, "delta": delta, "max_values": m, "neighbours": neighbours}
    planned = plan_found("values", **asked, groups=groups, max_groups=None if groups is None else 2)
    share = m * (2 if neighbours == "replace" else 1) * (1 if groups is None else 2)
    assert planned.draws == share
    expected = first_counts(Fraction(epsilon) / share, Fraction(delta) / share)
    assert [planned.half, planned.usual, planned.surely] == expected


@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism])
@pytest.mark.parametrize("max_values", [None, 1, 7])
@pytest.mark.parametrize("neighbours", BOTH)
def test_so_many_people_win_against_nothing(kind, max_values, neighbours):
    """The probabilities of the mechanism on the counts, with the anonymous candidates, change sides where planned."""
    asked = {"max_values": max_values, "neighbours": neighbours, "mechanism": kind.name}
    planned = plan_found("mode", epsilon="0.5", delta="1e-6", **asked)
    mechanism = kind("0.5", sensitivity=1, monotonic=neighbours == "add-remove")
    others = [float(planned.nothing), *[0] * (10_000 if max_values is None else 0)]
    for people, wanted in ((planned.half, 0.5), (planned.usual, 0.95)):
        assert mechanism.pmf([people, *others])[0] >= wanted
        assert mechanism.pmf([people - 1, *others])[0] < wanted


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize("neighbours", BOTH)
def test_nothing_stands_where_delta_says(mechanism, neighbours):
    """With one value for each person, delta is F exp(-c T), by the table of theorem 18."""
    planned = plan_found("mode", epsilon=1, delta="1e-9", max_values=1, neighbours=neighbours, mechanism=mechanism)
    rate = 1 if neighbours == "add-remove" else 0.5
    factor = {"permute-and-flip": 0.5 if rate == 1 else (1 + math.exp(-rate)) / 2, "exponential": 1}[mechanism]
    distance = float(planned.nothing) - 1
    assert factor * math.exp(-rate * distance) <= 1e-9
    assert factor * math.exp(-rate * (distance - 1 / 1024)) > 1e-9


@pytest.mark.parametrize("budget", ["zcdp:0.5,3e-9", "zcdp:0.12,1e-6"])
@pytest.mark.parametrize("question", ["values", "mode"])
def test_a_budget_pays_for_as_many_questions_as_planned(question, budget, tmp_path):
    """Once the deltas are the limit, and once the rhos."""
    price = {"rho": "0.03", "delta": "1e-9"}
    planned = plan_found(question, **price, budget=budget, questions=9)
    expected = 3 if budget == "zcdp:0.5,3e-9" else 4
    assert planned.allowed == expected
    assert f"pays for {expected} of them, not for 9." in planned.sentences[-1]
    rows = pa.table({"city": ["Ulm"] * 9})
    table = dpselect.open_table(rows, ledger=tmp_path / "a.ledger", budget=budget)
    ask = getattr(table, question)
    for _ in range(expected):
        ask("city", **price)
    with pytest.raises(BudgetExceeded):
        ask("city", **price)


def test_what_no_limit_costs():
    """Any number of values for each person is as expensive as 10,000 of them."""
    planned = plan_found("mode", epsilon=1, delta="1e-9")
    assert planned.limited.question.max_values == 1
    assert planned.limited.limited is None
    assert float(planned.nothing - planned.limited.nothing) == pytest.approx(math.log(10_000), abs=1 / 1024)
    assert f"With max_values=1, {planned.limited.usual} people are enough" in " ".join(planned.sentences)
    same = plan_found("mode", epsilon=1, delta="1e-9", max_values=10_000)
    assert same.nothing == planned.nothing
    assert same.limited is None


def test_plans_are_plain():
    planned = plan_found("top_k", k=3, epsilon="0.1", delta="1e-9", groups=4, max_values=2)
    assert repr(planned) == "FoundPlan('top_k', k=3, max_values=2, groups=4, epsilon='0.1', delta='1e-9')"
    content = json.loads(json.dumps(planned.to_dict()))
    assert content["people_95"] == planned.usual
    assert content["epsilon"] == "0.1"
    assert "people of a group have it" in " ".join(planned.sentences)


# Rules.


@pytest.mark.parametrize("mechanism", [PermuteAndFlip, ExponentialMechanism])
@pytest.mark.parametrize("size", [10, 10**5])
def test_with_so_many_people_seen_values_win(mechanism, size):
    """On one value against all others of score 0, at most 5 of 100 answers are values that nobody has."""
    planned = plan(size, rule="every x", question="mode", epsilon="0.5", mechanism=mechanism.name)
    drawn, others = mechanism("0.5", monotonic=True), [0] * (size - 1)
    assert drawn.pmf([planned.people_needed, *others])[0] >= 0.95
    assert drawn.pmf([planned.people_needed - 1, *others])[0] < 0.95
    assert f"needs {planned.people_needed} people: with fewer" in " ".join(planned.sentences)


@pytest.mark.parametrize("size", [2**64, 10**500, 10**3000], ids=["2^64", "10^500", "10^3000"])
def test_rules_of_any_size(size):
    """The price of a domain is its logarithm over epsilon."""
    planned = plan(size, rule="every x", question="mode", epsilon="0.1")
    # The value loses with probability 1 - (1 - exp(-y)) / y for y = n exp(-x), with large n: 0.05 at y = 0.1034788.
    assert planned.people_needed == math.ceil(10 * (math.log(size) - math.log(0.10347883154622334)))
    exponential = plan(size, rule="every x", question="mode", epsilon="0.1", mechanism="exponential")
    assert exponential.people_needed == math.ceil(10 * (math.log(size - 1) + math.log(19)))
    assert planned.accuracy["permute-and-flip"].average < 10 * math.log(size)
    assert planned.accuracy["permute-and-flip"].average > 0.8 * 10 * math.log(size)
    assert json.loads(json.dumps(planned.to_dict()))["candidates"] == size
    for options in ({}, {"max_values": 1}, {"ordered": True}, {"max_values": 1, "ordered": True}, {"method": "peel"}):
        several = plan(size, rule="every x", question="top_k", k=10, epsilon="0.1", **options)
        bounds = several.accuracy["permute-and-flip" if several.method != "noisy-counts" else several.used]
        assert math.isfinite(bounds.average)
        assert bounds.within_95 > 10 * math.log(size) / 2
