"""Thresholds keep delta, and the next smaller multiple of 1/1024 does not: against balls of flint."""

from fractions import Fraction
from itertools import product

import pytest
from flint import arb, ctx, fmpq

from dpselect.mechanisms.thresholds import MOST, Factor, Threshold, threshold

STEP = Fraction(1, 1024)
RATES = [Fraction(1, 10**6), Fraction(1, 10), Fraction(1), Fraction(7, 2), Fraction(10**6)]
DELTAS = [Fraction(1, 2), Fraction("1e-9"), Fraction("1e-300")]


@pytest.fixture(autouse=True)
def precise():
    """Balls of 300 bits."""
    before, ctx.prec = ctx.prec, 300
    yield
    ctx.prec = before


def ball(number):
    return arb(fmpq(number.numerator, number.denominator))


def factor_of(rate, permuted, replaced, grouped, limited):
    """F as docs/theory.md has it."""
    c = ball(rate)
    if not replaced:
        return arb(1) / 2 if permuted else arb(1)
    if permuted:
        alone = (1 + (-c).exp()) / 2 if limited else (1 + c.exp()) / 2
        return max(alone, arb(1)) if grouped else alone
    alone = arb(1) if limited else c.exp()
    return max(alone, arb(2)) if grouped else alone


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("permuted", [True, False])
def test_the_smallest_threshold_that_keeps_delta(permuted, replaced, grouped, limited):
    kind = Factor(Fraction(1, 2) if permuted else Fraction(1), replaced, grouped)
    for rate, delta, values in product(RATES, DELTAS, [1, 3, 10**5] if limited else [None]):
        found = threshold(rate, delta, values, kind)
        assert found.most == (None if limited else MOST)
        assert (found.distance / STEP).denominator == 1
        # ln(m F / delta) - c T, by logarithms: the numbers themselves are beyond all exponents of balls.
        log = (arb(values or MOST) / ball(delta)).log() + factor_of(rate, permuted, replaced, grouped, limited).log()
        assert log - ball(rate * found.distance) <= 0
        if found.distance:  # a logarithm of exactly zero cannot be told from a little more
            assert log - ball(rate * (found.distance - STEP)) > -1e-30


def test_nothing_stands_above_one_person():
    assert Threshold(Fraction(5, 2), None).people == Fraction(7, 2)
    assert threshold(Fraction(1), Fraction(1, 2), 1, Factor(Fraction(1, 2), False, False)).people <= 1 + STEP
