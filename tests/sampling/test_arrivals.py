"""Arrival times: bounds enclose the truth (flint), and the earliest head is decided by the bits that matter."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from dpselect.errors import BitsExhausted
from dpselect.sampling.arrival import DEPTH, Arrival, draw_prefixes, earliest, float_bounds
from dpselect.sampling.bits import ScriptedBits, SystemEntropy

SIZES = [1, 2, 3, 1000, 2**40, 2**63]


def arrival(exponent, size, end, depth=DEPTH):
    """Ln T = g + ln(1 - (1 - V)**(1/m)) at V = end / 2**depth."""
    with ctx.workprec(600):
        left = 1 - arb(end) / arb(2) ** depth
        return arb(fmpq(exponent.numerator, exponent.denominator)) + (1 - (left.log() / size).exp()).log()


def as_ball(number):
    return arb(fmpq(number.numerator, number.denominator))


def test_known_zeros_are_put_in_front():
    words = draw_prefixes(np.array([0, 8, 53], np.uint8), ScriptedBits("1" * 192))
    assert words.tolist() == [2.0**53 - 1, 2.0**45 - 1, 0.0]


@pytest.mark.parametrize("exponent", [0.0, 0.5, 20.0, 700.0, 1e20])
@pytest.mark.parametrize("size", SIZES)
def test_float_bounds_enclose_the_truth(size, exponent):
    drawn = draw_prefixes(np.zeros(40, np.uint8), SystemEntropy())
    prefixes = np.concatenate([drawn, [1.0, 2.0, 2.0**52, 2.0**53 - 2]])
    low, high = float_bounds(prefixes, np.full(44, exponent), np.full(44, float(size)))
    for prefix, least, most in zip(prefixes.tolist(), low, high, strict=True):
        with ctx.workprec(600):
            assert arb(float(least)) < arrival(Fraction(exponent), size, int(prefix))
            assert arb(float(most)) > arrival(Fraction(exponent), size, int(prefix) + 1)
        assert most - least < 1 + 1e-9 * (1 + exponent), "and closely: by no more than a factor of two in V"


def test_the_ends_of_v():
    """Only zeros so far: no lower bound. Only ones: the upper bound is that of V = 1, the exponent itself."""
    low, high = float_bounds(np.array([0.0, 2.0**53 - 1]), np.array([3.0, 3.0]), np.array([5.0, 5.0]))
    assert np.isneginf(low[0])
    assert 3 < high[1] < 3 + 1e-9


def test_exponents_that_overflowed_have_no_upper_bound():
    largest = np.finfo(float).max
    for ends in (0.0, 1.0, 2.0**53 - 1):
        low, high = float_bounds(np.array([ends]), np.array([largest]), np.array([1.0]))
        assert np.isposinf(high[0])
        assert low[0] < largest
    _, high = float_bounds(np.array([5.0, 5.0]), np.array([2.0**100, 2.0**101]), np.ones(2))
    assert np.isfinite(high[0])
    assert np.isposinf(high[1])


@pytest.mark.parametrize("depth", [53, 117, 245])
@pytest.mark.parametrize("size", SIZES)
def test_brackets_enclose_the_truth(size, depth):
    exponent = Fraction(22, 7)
    for prefix in (1, 2, 2 ** (depth - 1), 2**depth - 2, 2**depth // 3):
        low, high = Arrival(exponent, size, prefix, depth).bracket()
        with ctx.workprec(600):
            assert as_ball(low) <= arrival(exponent, size, prefix, depth)
            assert as_ball(high) >= arrival(exponent, size, prefix + 1, depth)
            cell = arrival(exponent, size, prefix + 1, depth) - arrival(exponent, size, prefix, depth)
            assert as_ball(high - low) < cell + arb(10) ** -15


def test_brackets_at_the_ends_of_v():
    exponent = Fraction(1, 3)
    assert Arrival(exponent, 7, 0).bracket()[0] is None
    low, high = Arrival(exponent, 7, 2**DEPTH - 1).bracket()
    assert high == exponent
    assert low < exponent


def test_more_bits_are_put_behind():
    finer = Arrival(Fraction(1), 3, 5).refined(ScriptedBits("0" * 63 + "1"))
    assert finer == Arrival(Fraction(1), 3, 5 * 2**64 + 1, DEPTH + 64)


@pytest.mark.parametrize("shared", [0, 64, 192])
def test_equal_beginnings_are_decided_by_the_first_bit_that_differs(shared):
    """The smaller V arrives first."""
    arrivals = {key: Arrival(Fraction(2, 7), 12, 2**40) for key in (10, 20)}
    steps = ["01" * 32] * (2 * (shared // 64)) + ["1" * 64, "0" * 64] + ["01" * 32] * 2
    assert earliest(arrivals, ScriptedBits("".join(steps))) == 20


def test_a_tie_that_lasts_asks_for_bits_forever():
    arrivals = {key: Arrival(Fraction(0), 4, 99) for key in range(2)}
    with pytest.raises(BitsExhausted):
        earliest(arrivals, ScriptedBits("01" * 320))


def test_v_of_zeros_loses_no_contest_before_its_time():
    arrivals = {0: Arrival(Fraction(50), 1, 0), 1: Arrival(Fraction(0), 1, 2**52)}
    assert earliest(arrivals, ScriptedBits("0" * 63 + "1" + "0" * 64)) == 0
    assert earliest(arrivals, ScriptedBits("1" * 64 + "0" * 64)) == 1


def test_clear_contests_need_no_bits():
    assert earliest({0: Arrival(Fraction(9), 1, 2**52), 1: Arrival(Fraction(0), 1, 2**52)}, ScriptedBits("")) == 1
    assert earliest({0: Arrival(Fraction(0), 1, 2**52), 1: Arrival(Fraction(0), 2**30, 2**52)}, ScriptedBits("")) == 1
