"""The exact roads agree with flint's balls, an independent arithmetic."""

from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from dpselect.selection.enclosure import log_bracket, scaled_exp

EXPONENTS = [
    Fraction(1, 2**1074),
    Fraction(5e-324) * 3,
    Fraction(1, 2**200),
    Fraction(1e-16),
    Fraction(1, 3),
    Fraction(1),
    Fraction(0.6931471805599453),
    Fraction(10**30 + 1, 10**30),
    Fraction(37, 2),
    Fraction(744.4400719213812),
    Fraction(10**4),
    Fraction(10**6),
    Fraction(10**4000),
]
DEPTHS = [0, 1, 2, 8, 31, 32, 64, 127, 1100, 1500]


def ball(number: Fraction, bits: int) -> arb:
    ctx.prec = bits
    return arb(fmpq(number.numerator, number.denominator))


def true_floor(exponent: Fraction, depth: int) -> int:
    """floor(2**depth exp(-exponent)) by balls; where the balls vanish it is zero."""
    if exponent >= depth + 1:
        return 0
    bits = 64
    while True:
        value = (-ball(exponent, bits)).exp() * arb(2) ** depth
        floor = value.floor()
        if floor.is_exact():
            return int(floor.fmpz() if hasattr(floor, "fmpz") else floor.unique_fmpz())
        bits *= 2


@pytest.mark.parametrize("exponent", EXPONENTS, ids=lambda e: f"{float(min(e, 10**300)):.3g}")
@pytest.mark.parametrize("depth", DEPTHS)
def test_scaled_exp_is_the_true_floor(exponent, depth):
    assert scaled_exp(exponent, depth) == true_floor(exponent, depth)


def test_scaled_exp_of_zero_is_the_whole():
    assert scaled_exp(Fraction(0), 10) == 1024


NUMBERS = [
    Fraction(1),
    Fraction(256, 255),
    Fraction(2),
    Fraction(1, 3),
    Fraction(10**40 + 1, 10**40),
    Fraction(2**5000),
]


@pytest.mark.parametrize("number", [*NUMBERS, *(1 / number for number in NUMBERS)])
@pytest.mark.parametrize("digits", [20, 60, 200])
def test_log_bracket_encloses_and_is_tight(number, digits):
    low, high = log_bracket(number, digits)
    truth = ball(number, 4 * digits + 400).log()
    assert ball(low, 4 * digits + 400) < truth < ball(high, 4 * digits + 400)
    assert high - low <= Fraction(10) ** (6 - digits)
