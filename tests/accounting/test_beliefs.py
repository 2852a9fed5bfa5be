"""How much a belief about a person can grow: Bayes' rule by brute force, and the loss of a Gaussian."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import PermuteAndFlip, approximate, pure, zcdp
from dpselect.accounting.budget import largest_belief, largest_loss
from dpselect.errors import InvalidType, InvalidValue


@given(st.fractions(Fraction(1, 10**6), 1 - Fraction(1, 10**6)), st.fractions(Fraction(1, 10**6), 700))
def test_pure_beliefs_are_bayes_rule_rounded_up(prior, epsilon):
    with localcontext(prec=60):
        odds = Decimal(prior.numerator) / Decimal(prior.denominator - prior.numerator)
        grown = odds * (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        exact = Fraction(grown / (1 + grown))
    found = Fraction(largest_belief(prior, pure(epsilon)))
    assert exact <= found <= min(1, exact * Fraction(10**12 + 1, 10**12)) or found == 1


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_no_answer_of_a_mechanism_exceeds_it(epsilon):
    """Bayes' rule for every answer on neighbouring counts, with and without a person; the worst is close to it."""
    mechanism = PermuteAndFlip(epsilon, monotonic=True)
    most = 0.0
    for gap in range(30):
        with_person, without = mechanism.pmf([gap + 1, 0]), mechanism.pmf([gap, 0])
        for p, q in [*zip(with_person, without, strict=True), *zip(without, with_person, strict=True)]:
            most = max(most, 0.1 * p / (0.1 * p + 0.9 * q))
    bound = largest_belief("0.1", epsilon)
    assert bound * 0.99 < most <= bound * (1 + 1e-12)


@pytest.mark.parametrize("rho", ["1e-6", "0.01", "0.5", "10"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-12"])
def test_the_loss_of_a_gaussian_is_rarely_larger(rho, delta):
    """Gaussian noise has exactly rho: its loss is normal with mean rho and variance 2 rho."""
    bound = largest_loss(zcdp(rho), float(delta))
    larger = NormalDist(0, 1).cdf(-(bound - float(rho)) / math.sqrt(2 * float(rho)))
    assert float(delta) / 30 < larger <= float(delta)


def test_an_approximate_budget_is_that_of_its_rho():
    budget = approximate(1, "1e-6", share=0)
    assert largest_belief("0.5", budget, "1e-6") == largest_belief("0.5", zcdp(budget.rho), "1e-6")
    assert largest_belief("0.5", budget, "1e-9") > largest_belief("0.5", budget, "1e-6") > 0.5


@pytest.mark.parametrize("arguments", [("0", 1), ("1", 1), ("0.5", 0), ("0.5", "zcdp:1", "0"), ("0.5", "zcdp:1", "1")])
def test_numbers_out_of_range_are_refused(arguments):
    with pytest.raises(InvalidValue):
        largest_belief(*arguments)


def test_what_is_no_number_is_refused():
    with pytest.raises(InvalidType):
        largest_belief(None, 1)
