"""The tables of the first octet are safe (never a wrong decision) and sharp (nearly every coin is decided)."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from dpselect.selection.lines import _floor_to_uint64, octet_tables
from tests.selection.test_enclosure import true_floor

pytestmark = pytest.mark.usefixtures("each_kernel")

RATES = [
    Fraction(1, 2),
    Fraction(1),
    Fraction(0.0005),
    Fraction(1e-300),
    Fraction(1e300),
    Fraction(1, 10**400),
    Fraction(10**400),
]


@pytest.mark.parametrize("rate", RATES, ids=lambda r: f"{float(min(r, 10**300)):.3g}")
@pytest.mark.parametrize("octet", [0, 1, 2, 100, 254, 255])
def test_decisions_are_never_wrong(rate, octet):
    """At the largest gap called heads even the largest U is heads; just beyond `far` even the smallest is tails."""
    floats, integers = octet_tables(rate)
    for table in (floats, integers):
        near, far = table.near[octet].item(), table.far[octet].item()
        if near > 0:
            assert true_floor(rate * Fraction(near), 8) >= octet + 1
        else:
            assert near == 0  # a gap of zero is heads whatever U is
        if np.isfinite(far) and far < 2**64 - 1:
            beyond = Fraction(far) + (1 if table is integers else 0)
            assert true_floor(rate * beyond, 8) < max(octet, 1) or octet == 0


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(3), Fraction(0.0005), Fraction(1e300)], ids=float)
def test_float_bounds_allow_for_the_rounding_of_the_gap(rate):
    """A gap that is rounded to `near` may be as large as the next float: that one must be heads too."""
    table, _ = octet_tables(rate)
    with ctx.workprec(120):
        scale = arb(fmpq(rate.numerator, rate.denominator))
        for octet in range(255):
            near, truth = float(table.near[octet]), -(arb(octet + 1) / 256).log()
            assert arb(math.nextafter(near, math.inf)) * scale < truth < arb(near) * scale * (1 + arb(2) ** -49)
        for octet in range(1, 256):
            far, truth = float(table.far[octet]), -(arb(octet) / 256).log()
            assert arb(far) * scale * (1 - arb(2) ** -49) < truth < arb(far) * scale
    assert table.near[255] == 0
    assert table.far[0] == math.inf


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(0.0005)])
def test_nearly_all_octets_decide(rate):
    floats, _ = octet_tables(rate)
    for exponent in (0.0, 0.01, 0.5, 3.0, 5.0, 9.0):
        gaps = np.full(256, exponent / float(rate))
        heads, undecided = floats.decide(gaps, np.arange(256, dtype=np.uint8))
        assert undecided.size <= 1
        assert np.count_nonzero(heads) == (256 if exponent == 0 else true_floor(Fraction(exponent), 8))


def test_both_ways_to_find_the_undecided_agree():
    """Few left over are looked up one by one, many all at once."""
    floats, _ = octet_tables(Fraction(1))
    octets = np.arange(256, dtype=np.uint8)
    few, many = np.full(256, 0.01), np.full(256, 3.0)
    for gaps in (few, many):
        heads, undecided = floats.decide(gaps, octets)
        singly = [o for o in range(256) if floats.decide(gaps[:1], octets[o : o + 1])[1].size]
        assert undecided.tolist() == singly
        assert not heads[undecided].any()


def test_an_infinite_gap_is_tails_or_undecided():
    floats, _ = octet_tables(Fraction(1))
    heads, undecided = floats.decide(np.full(256, np.inf), np.arange(256, dtype=np.uint8))
    assert not heads.any()
    assert undecided.tolist() == [0]


@pytest.mark.parametrize("octet", [1, 2, 100, 255])
def test_an_integer_gap_at_the_bound_is_not_tails(octet):
    """Far is rounded down to an integer: that integer itself may still be heads, one more may not."""
    rate = Fraction(1, 1000)
    _, integers = octet_tables(rate)
    far = integers.far[octet]
    octets = np.full(100, octet, np.uint8)
    mostly_heads = np.zeros(100, np.uint64)
    for gaps in (np.full(100, far), np.concatenate([[far], mostly_heads[1:]])):
        assert 0 in integers.decide(gaps, octets)[1]
        assert 0 not in integers.decide(gaps + np.uint64(1), octets)[1]


def test_bounds_beyond_uint64_are_capped():
    largest = np.iinfo(np.uint64).max
    assert _floor_to_uint64(np.array([2.0**64, np.inf, 2.0**63, 5.9])).tolist() == [largest, largest, 2**63, 5]
