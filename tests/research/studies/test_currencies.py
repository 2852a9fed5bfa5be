"""What a budget buys: never more than it, and nearly all of it."""

import math
from collections import Counter
from fractions import Fraction

import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.accounting.totals import approximate
from dpselect.mechanisms.registry import KINDS, MechanismName
from dpselect.research.studies.budgets import DELTA, Currency, implied_rho, plan
from dpselect.research.studies.procedures import MECHANISMS

FLIP, EXPONENTIAL = MECHANISMS


@pytest.mark.parametrize("budget", [0.1, 1.0])
def test_pure_budgets_add_up(budget):
    for name in MECHANISMS:
        assert plan(Currency.PURE, name, budget, 10, measured=False).epsilon == pytest.approx(budget / 10)
        bought = plan(Currency.PURE, name, budget, 10, measured=True)
        laplace = math.sqrt(2) / bought.deviation
        assert 10 * (bought.epsilon + laplace) == pytest.approx(budget)


@pytest.mark.parametrize("budget", [0.1, 1.0])
@pytest.mark.parametrize("measured", [False, True])
def test_approximate_budgets_are_spent_and_not_exceeded(budget, measured):
    deviations = set()
    for name in MECHANISMS:
        bought = plan(Currency.APPROXIMATE, name, budget, 20, measured)
        deviations.add(bought.deviation)

        def total(epsilon, bought=bought, name=name):
            releases = Counter({(name.value, Fraction(epsilon)): 20})
            if measured:
                releases[FLIP.value, Fraction(math.sqrt(2) / bought.deviation)] += 20
            return approximate(releases, DELTA).epsilon

        assert total(bought.epsilon) <= budget * (1 + 1e-9)
        assert total(bought.epsilon * 1.01) > budget or measured
        assert total(bought.epsilon * 1.05) > budget
    assert len(deviations) == 1  # only the selections differ


@pytest.mark.parametrize("budget", [0.1, 1.0])
def test_rho_is_spent_and_implies_the_budget(budget):
    rho = implied_rho(budget)
    assert rho + 2 * math.sqrt(rho * math.log(1 / DELTA)) == pytest.approx(budget)
    for name in MECHANISMS:
        each = KINDS[name](plan(Currency.ZCDP, name, budget, 10, measured=False).epsilon).guarantee.zcdp
        assert 0.99 * rho < 10 * each <= rho * (1 + 1e-9)
        bought = plan(Currency.ZCDP, name, budget, 10, measured=True)
        assert bought.gaussian
        assert 10 / (2 * bought.deviation**2) == pytest.approx(rho / 2)


def test_under_zcdp_the_exponential_mechanism_gets_twice_the_epsilon():
    flip, soft = (plan(Currency.ZCDP, name, 0.1, 10, measured=False).epsilon for name in MECHANISMS)
    assert soft / flip == pytest.approx(2, rel=0.02)
    assert MechanismName.PERMUTE_AND_FLIP == FLIP
    assert KINDS[FLIP] is PermuteAndFlip
    assert KINDS[EXPONENTIAL] is ExponentialMechanism
