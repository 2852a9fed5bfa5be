"""What a budget buys: never more than it, and nearly all of it."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect.accounting.budget import rho_within
from dpselect.accounting.totals import approximate
from dpselect.research.studies.procedures import COMPARED, DELTA, Currency, plan


@pytest.mark.parametrize("budget", [0.1, 1.0])
def test_pure_budgets_add_up(budget):
    for kind in COMPARED:
        assert plan(Currency.PURE, kind, budget, 10, measured=False).epsilon == pytest.approx(budget / 10)
        bought = plan(Currency.PURE, kind, budget, 10, measured=True)
        laplace = math.sqrt(2) / bought.deviation
        assert 10 * (bought.epsilon + laplace) == pytest.approx(budget)


@pytest.mark.parametrize("budget", [0.1, 1.0])
@pytest.mark.parametrize("measured", [False, True])
def test_approximate_budgets_are_spent_and_not_exceeded(budget, measured):
    deviations = set()
    for kind in COMPARED:
        bought = plan(Currency.APPROXIMATE, kind, budget, 20, measured)
        deviations.add(bought.deviation)

        def total(epsilon, bought=bought, kind=kind):
            releases = Counter({(kind.name, Fraction(epsilon)): 20})
            if measured:
                releases[ReportNoisyMax.name, Fraction(math.sqrt(2) / bought.deviation)] += 20
            return approximate(releases, DELTA).epsilon

        assert total(bought.epsilon) <= budget * (1 + 1e-9)
        assert total(bought.epsilon * 1.01) > budget or measured
        assert total(bought.epsilon * 1.05) > budget
    assert len(deviations) == 1  # only the selections differ


@pytest.mark.parametrize("budget", [0.1, 1.0])
def test_rho_is_spent_and_implies_the_budget(budget):
    rho = float(rho_within(Fraction(budget), Fraction(DELTA)))
    orders = 1 + np.geomspace(0.01, 10**4, 20_000)
    exponents = (orders - 1) * (orders * rho - budget) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    assert math.exp(exponents.min()) == pytest.approx(DELTA, rel=1e-4)  # Canonne, Kamath & Steinke 2020
    for kind in COMPARED:
        each = kind(plan(Currency.ZCDP, kind, budget, 10, measured=False).epsilon).guarantee.zcdp
        assert 0.99 * rho < 10 * each <= rho * (1 + 1e-9)
        bought = plan(Currency.ZCDP, kind, budget, 10, measured=True)
        assert bought.gaussian
        assert 10 / (2 * bought.deviation**2) == pytest.approx(rho / 2)


def test_under_zcdp_the_exponential_mechanism_gets_twice_the_epsilon():
    flip, soft = (plan(Currency.ZCDP, kind, 0.1, 10, measured=False).epsilon for kind in COMPARED)
    assert soft / flip == pytest.approx(2, rel=0.02)
    assert (PermuteAndFlip, ExponentialMechanism) == COMPARED
