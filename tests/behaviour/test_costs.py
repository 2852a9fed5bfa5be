"""What releases cost, together and in every budget type: never less than the truth; and what an audit may claim."""

import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect
from dpselect import ExponentialMechanism, Ledger, PermuteAndFlip, ReportNoisyMax, approximate, zcdp
from dpselect.accounting import total
from dpselect.audit import audit
from dpselect.ledger import PURE, Charge

MECHANISMS = {"permute-and-flip": PermuteAndFlip, "exponential": ExponentialMechanism, "noisy-max": ReportNoisyMax}


def hockey_stick(here, there, epsilon):
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


def together(pairs):
    """The laws of independent selections."""
    return reduce(lambda one, other: [np.outer(a, b).ravel() for a, b in zip(one, other, strict=True)], pairs)


def neighbours(mechanism):
    """Laws on neighbouring scores of two and three candidates."""
    pairs = [([gap, 0], [gap - 2, 0]) for gap in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)]
    pairs += [([1, 1, 0], [0, 0, 1]), ([2, 0, 0], [1, 1, 1])]
    return [(mechanism.pmf(here), mechanism.pmf(there)) for here, there in pairs]


# zCDP: numbers are rounded to the safe side.


def test_a_sum_of_rhos_is_rounded_up():
    """The float nearest to 3/10 is below it."""
    found = total([Charge("a", rho="0.1")] * 3)
    assert Fraction(found.zcdp) >= Fraction(3, 10)
    assert found.zcdp == pytest.approx(0.3)


@given(st.lists(st.fractions(Fraction(1, 10**6), 5, max_denominator=10**6), min_size=1, max_size=5))
def test_no_sum_of_rhos_is_below_the_exact_one(rhos):
    found = total([Charge("a", rho=rho) for rho in rhos]).zcdp
    assert math.nextafter(found, 0) < sum(rhos) <= Fraction(found)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("epsilon", ["1/3", "0.1", "2", "7"])
def test_the_rho_of_a_mechanism_is_not_below_the_divergence_of_its_answers(name, epsilon):
    mechanism = MECHANISMS[name](epsilon)
    for here, there in neighbours(mechanism):
        for order in (1.001, 1.5, 2, 8, 64):
            renyi = math.log(float((here**order * there ** (1 - order)).sum())) / (order - 1)
            assert renyi <= order * mechanism.guarantee.zcdp * (1 + 1e-9)


ROWS = pa.table({"x": ["a", "b"], "n": [1, 2]})


@pytest.mark.parametrize("rho", ["0.1", "1/3", "0.005", "2", "1e-5", "0.7"])
@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
def test_a_stated_rho_pays_for_the_epsilon_that_is_drawn(rho, mechanism):
    """The largest epsilon whose rho is not above it: one unit in the last place more would be."""
    table = dpselect.open_table(ROWS)
    answer = table.mode("x", candidates=["a", "b"], rho=rho, mechanism=mechanism)
    assert Fraction(answer.guarantee.zcdp) <= Fraction(rho)
    assert answer.guarantee.zcdp > float(Fraction(rho)) * (1 - 1e-9)
    assert MECHANISMS[mechanism](answer.epsilon).guarantee.zcdp == answer.guarantee.zcdp


def test_a_ledger_in_zcdp_is_charged_no_less_than_the_guarantee(tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=zcdp(10, delta="1e-3"))
    table = dpselect.open_table(ROWS, ledger=ledger)
    answers = [
        table.mode("x", candidates=["a", "b"], epsilon="1/3"),
        table.median("n", lower=0, upper=3, epsilon="0.7", mechanism="permute-and-flip"),
        table.quantiles("n", [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)], lower=0, upper=3, epsilon="0.7"),
        table.values("x", epsilon="0.3", delta="1e-6"),
        table.mode("x", candidates=["a", "b"], rho="0.01"),
    ]
    for answer, entry in zip(answers, ledger.entries(), strict=True):
        assert entry.rho >= Fraction(answer.guarantee.zcdp) * (1 - Fraction(1, 10**12))
        assert entry.charge.delta == answer.guarantee.delta
    assert ledger.spent.rho == sum(entry.rho for entry in ledger.entries())


# Epsilon and delta of many releases.


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(("epsilon", "count"), [("0.5", 8), ("2", 4)])
def test_no_total_is_below_the_truth(name, epsilon, count):
    charges = [Charge("a", epsilon, name, count=count)]
    for delta in (1e-1, 1e-3, 1e-6):
        claimed = total(charges, delta).approximate.epsilon
        for pair in neighbours(MECHANISMS[name](epsilon)):
            assert hockey_stick(*together([pair] * count), claimed) <= delta * (1 + 1e-9)


def moving(**more):
    """A question of which each share may stand for two halves: a person who is replaced may change groups."""
    return {"question": "mode", "neighbours": "replace", **more}


def test_halves_of_permute_and_flip_are_not_one_selection():
    """Two selections at half of epsilon have ratios that no single one has: the recursion for equal ones is out."""
    alone, halves = ([Charge(what, "0.5", "permute-and-flip", count=20)] for what in (moving(), moving(group_by="g")))
    whole, parts = (total(charges, 1e-6).approximate for charges in (alone, halves))
    assert whole.method == "recursion"
    assert parts.method != "recursion"
    assert parts.epsilon > whole.epsilon
    added = Charge({**moving(group_by="g"), "neighbours": "add-remove"}, "0.5", "permute-and-flip", count=20)
    assert total([added], 1e-6).approximate == whole
    for name in ("exponential", "noisy-max"):
        both = [total([Charge(what, "0.5", name, count=20)], 1e-6) for what in (moving(), moving(group_by="g"))]
        assert both[0] == both[1]


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_release_with_a_delta_composes_like_any_release_of_its_epsilon(name):
    """Given that its failure does not happen, nothing is known about it but its epsilon."""
    for delta in (None, 1e-3):
        found, pure = (total([Charge("a", "0.2", kind, count=30, delta="1e-6")], delta) for kind in (name, PURE))
        assert found == pure
    assert found.zcdp > total([Charge("a", "0.2", "exponential", count=30)]).zcdp
    assert found.epsilon is None
    assert found.delta == Fraction(1, 10**6)


def test_an_approximate_budget_holds_what_it_promises(tmp_path):
    """Randomized responses until the budget is used up: their exact delta is at most that of the budget."""
    ledger = Ledger(tmp_path / "ledger", budget=approximate(1, "1e-3"))
    count = 0
    try:
        while True:
            ledger.spend("0.1", "a question")
            count += 1
    except dpselect.BudgetExceeded:
        pass
    heads = 1 / (1 + math.exp(-0.1))
    here, there = (
        np.array([math.comb(count, j) * p**j * (1 - p) ** (count - j) for j in range(count + 1)])
        for p in (heads, 1 - heads)
    )
    assert count > 5
    assert hockey_stick(here, there, 1) <= 1e-3


# Audits.


@pytest.mark.parametrize("runs", [1000, 4000])
def test_an_audit_shares_its_doubt_between_both_probabilities(runs):
    """A function that always tells: the bound of Clopper and Pearson has a closed form if all of n runs agree."""
    found = audit(lambda scores: int(np.argmax(scores)), epsilon=1, runs=runs, false_alarm="1e-3")
    sure = [one for one in found.findings if (one.hits, one.neighbour_hits) == (one.trials, 0)]
    assert sure
    for one in sure:
        doubt = 1e-3 / len(found.findings) / 2  # for each pair, and for each of its two probabilities
        low = doubt ** (1 / one.trials)
        assert one.lower_bound == pytest.approx(math.log(low / (1 - low)), rel=1e-9)
    assert found.violates
    assert not audit(PermuteAndFlip(1), epsilon=1, runs=runs).violates
