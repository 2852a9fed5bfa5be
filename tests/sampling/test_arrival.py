"""Arrivals: the bounds enclose the truth (flint), and contests are decided by the bits that matter."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scipy import integrate

from dpselect.errors import BitsExhausted
from dpselect.sampling.arrival import (
    DEPTH,
    MARGIN,
    Arrival,
    draw_arrival,
    draw_prefixes,
    earlier,
    earliest,
    float_bounds,
    log_sizes,
)
from dpselect.sampling.bits import SystemEntropy
from tests.scripted import ScriptedBits
from tests.statistical.goodness import assert_fits, assert_rejected

SIZES = [1, 2, 3, 1000, 2**32 + 1, 2**53 + 1, 2**63, 2**64 - 1, 10**30 + 7, 10**500 + 1]
PREFIXES = [0, 1, 2, 12345, 2**45 - 1, 2**52, 2**53 - 2, 2**53 - 1]
EXPONENTS = [Fraction(0), Fraction(1, 3), Fraction(5, 2), Fraction(700), Fraction(10**6, 7), Fraction(2) ** 99]


@pytest.fixture(autouse=True)
def _many_bits():
    with ctx.workprec(4000):
        yield


def log_head(size: int, end: int, depth: int) -> arb:
    """The definition of ln T without its exponent at V = end / 2**depth > 0, with bits to spare for what cancels."""
    left = arb(fmpq((1 << depth) - end, 1 << depth))
    return (1 - left ** (1 / arb(size))).log() if end < 1 << depth else arb(0)


def ball(number: float | Fraction) -> arb:
    numerator, denominator = number.as_integer_ratio()
    return arb(fmpq(numerator, denominator))


@pytest.mark.parametrize("size", SIZES, ids=int.bit_length)
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("deeper", [0, 1, 3])
def test_brackets_enclose_the_truth(prefix, size, deeper):
    for exponent in EXPONENTS:
        arrival = Arrival(exponent, size, prefix)
        for _ in range(deeper):
            arrival = arrival.refined(ScriptedBits("1" * 64 if prefix == 2**53 - 1 else "01" * 32))
        low, high = arrival.bracket()
        assert ball(high - exponent) >= log_head(size, arrival.prefix + 1, arrival.depth)
        if arrival.prefix == 0:
            assert low is None
        else:
            assert ball(low - exponent) <= log_head(size, arrival.prefix, arrival.depth)


@pytest.mark.parametrize("size", SIZES, ids=int.bit_length)
def test_brackets_shrink_to_the_truth(size):
    """The bracket is hardly wider than the cell of V makes it, so that every contest ends."""
    for prefix in PREFIXES[1:-1]:
        arrival = Arrival(Fraction(1, 3), size, prefix).refined(SystemEntropy()).refined(SystemEntropy())
        low, high = arrival.bracket()
        ends = [log_head(size, arrival.prefix + i, arrival.depth) for i in (0, 1)]
        assert ball(high - low) <= 3 * (ends[1] - ends[0])


def test_float_bounds_enclose_the_truth():
    cells = [(p, s, e) for p in PREFIXES for s in SIZES for e in EXPONENTS]
    random = SystemEntropy().words(200, 64) >> np.uint64(11)
    cells += [(int(p), s, e) for p, s, e in zip(random, SIZES * 20, (EXPONENTS * 34)[:200], strict=True)]
    prefixes = np.array([float(p) for p, _, _ in cells])
    exponents = np.array([float(e) for _, _, e in cells])
    low, high = float_bounds(prefixes, exponents, log_sizes([s for _, s, _ in cells]))
    for (prefix, size, exponent), least, most in zip(cells, low.tolist(), high.tolist(), strict=True):
        last = log_head(size, prefix + 1, DEPTH)
        assert ball(Fraction(most) - exponent) >= last
        if prefix == 0:
            assert least == -math.inf
        else:
            first = log_head(size, prefix, DEPTH)
            assert ball(Fraction(least) - exponent) <= first
            assert ball(most - least) <= last - first + ball(4 * MARGIN * (1 + float(exponent) + math.log(size)))


def test_exponents_a_little_off_are_covered():
    """The exponents may be wrong by a relative 2**-50."""
    for exponent in (Fraction(1, 3), Fraction(10**6, 7)):
        for factor in (1 - Fraction(1, 2**50), 1 + Fraction(1, 2**50)):
            low, high = float_bounds(np.array([99.0]), np.array([float(exponent * factor)]), log_sizes([7]))
            assert ball(Fraction(low.item()) - exponent) <= log_head(7, 99, DEPTH)
            assert ball(Fraction(high.item()) - exponent) >= log_head(7, 100, DEPTH)


def test_overflowed_exponents_claim_no_upper_bound():
    """An exponent that left the floats is known from below only: it must never push another run out."""
    low, high = float_bounds(
        np.array([5.0, 5.0, 0.0]), np.array([1.7e308, 3.0, 1.7e308]), log_sizes([1, 1, 2**64])
    )
    assert high.tolist()[0] == high.tolist()[2] == math.inf
    assert low[0] == pytest.approx(1.7e308)
    assert low[2] == -math.inf
    assert math.isfinite(high[1])
    _, high = float_bounds(np.array([5.0, 5.0]), np.array([2.0**100, 2.0**101]), np.zeros(2))
    assert np.isfinite(high).tolist() == [True, False]


def test_prefixes_are_the_first_bits():
    zeros = np.array([0, 8, 0], np.uint8)
    script = ["1" * 64, "1" * 64, "0" * 52 + "1" + "1" * 11]
    assert draw_prefixes(zeros, ScriptedBits("".join(script))).tolist() == [2.0**53 - 1, 2.0**45 - 1, 1.0]
    assert draw_prefixes(np.array([53], np.uint8), ScriptedBits("1" * 64)).tolist() == [0.0]
    assert draw_prefixes(np.array([8, 0], np.uint8), ScriptedBits("0" * 128)).tolist() == [0.0, 0.0]
    assert draw_prefixes(np.array([], np.uint8), ScriptedBits("")).tolist() == []


@pytest.mark.parametrize("size", [1, 5, 2**64 - 1])
@pytest.mark.parametrize("shared", [0, 1, 3])
def test_equal_beginnings_are_decided_by_the_first_bit_that_differs(size, shared):
    """T grows with V: among equal runs the smaller V wins, at any depth."""
    arrivals = {key: Arrival(Fraction(2, 7), size, 99) for key in (10, 20)}
    steps = ["01" * 32] * (2 * shared) + ["1" * 64, "0" * 64] + ["01" * 32] * 2
    assert earliest(arrivals, ScriptedBits("".join(steps))) == 20


@pytest.mark.parametrize("deep", [60, 120, 180, 240])
@pytest.mark.parametrize("size", [2, 10**6, 2**64 - 1])
def test_deep_contests_are_decided_as_flint_decides_them(size, deep):
    """A run against a single best candidate, whose T is its V: set to the run's T up to a bit far down."""
    exponent, depth = Fraction(1, 2), DEPTH + 64 * 5
    many = (1 << depth) // 3
    log_many = ball(exponent) + log_head(size, many, depth)
    below = int((log_many.exp() * 2**deep).floor().unique_fmpz())
    assert _contest(exponent, size, many, below << (depth - deep), depth) == "one"
    assert _contest(exponent, size, many, (below + 1) << (depth - deep), depth) == "many"


def _contest(exponent: Fraction, size: int, many: int, one: int, depth: int) -> str:
    """Who is earliest, from the bits of both V, revealed as the contest asks for them."""
    arrivals = {
        "many": Arrival(exponent, size, many >> (depth - DEPTH)),
        "one": Arrival(Fraction(0), 1, one >> (depth - DEPTH)),
    }
    words = []
    for step in range(1, (depth - DEPTH) // 64 + 1):
        shift = depth - DEPTH - 64 * step
        words += [format(v >> shift & (2**64 - 1), "064b") for v in (many, one)]
    return earliest(arrivals, ScriptedBits("".join(words)))


def test_a_tie_that_lasts_asks_for_bits_forever():
    arrivals = {key: Arrival(Fraction(0), 7, 99) for key in range(2)}
    with pytest.raises(BitsExhausted):
        earliest(arrivals, ScriptedBits("01" * 320))


def test_unbounded_arrivals_lose_no_contest_before_their_time():
    """V with only zeros so far may still arrive first of all, however cold its run; the next bits tell."""
    early, late = "0" * 63 + "1", "1" * 64
    for zeros_first in (True, False):
        cold = {0: Arrival(Fraction(60), 1, 0), 1: Arrival(Fraction(0), 1, 2**20)}
        keys = (0, 1) if zeros_first else (1, 0)
        arrivals = {key: cold[key] for key in keys}
        bits = {0: early, 1: late}
        # ln T of the cold run is near 60 - 117 ln 2 = -21.1, of the other near -33 ln 2 = -22.9.
        assert earliest(arrivals, ScriptedBits("".join(bits[key] for key in keys))) == 1
        hotter = {key: Arrival(Fraction(50), 1, 0) if key == 0 else cold[1] for key in keys}
        assert earliest(hotter, ScriptedBits("".join(bits[key] for key in keys))) == 0


def test_two_unbounded_arrivals_wait_for_their_first_ones():
    arrivals = {0: Arrival(Fraction(0), 3, 0), 1: Arrival(Fraction(0), 3, 0)}
    script = "0" * 128 + "0" * 63 + "1" + "1" + "0" * 63
    assert earliest(arrivals, ScriptedBits(script)) == 0


def test_clear_contests_need_no_bits():
    arrivals = {
        0: Arrival(Fraction(3), 1, 2**52),
        1: Arrival(Fraction(0), 1, 2**52),
        2: Arrival(Fraction(0), 1, 2**53 - 1),
    }
    assert earliest(arrivals, ScriptedBits("")) == 1
    assert earliest({7: Arrival(Fraction(1), 1, 0)}, ScriptedBits("")) == 7
    assert earliest({0: Arrival(Fraction(0), 1, 2**52), 1: Arrival(Fraction(0), 2**30, 2**52)}, ScriptedBits("")) == 1


def test_huge_exponents_are_decided_exactly():
    huge = Fraction(10) ** 400
    arrivals = {0: Arrival(huge + Fraction(1, 10**30), 5, 99), 1: Arrival(huge, 5, 99), 2: Arrival(2 * huge, 1, 1)}
    same = format(12345, "064b")
    assert earliest(arrivals, ScriptedBits(same * 40)) == 1


def truth(one, other):
    """Which comes first when both V are known to so many bits, or None if that does not tell."""
    with ctx.workprec(2_000):
        low, high = (
            [ball(a.exponent) + log_head(a.size, a.prefix + end, a.depth) for a in (one, other)] for end in (0, 1)
        )
        if high[0] < low[1]:
            return 0
        return 1 if high[1] < low[0] else None


@pytest.mark.parametrize("lift", [Fraction(0), Fraction(-(10**9)), Fraction(10**400, 7)], ids=["zero", "low", "far"])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 10**6), (2**60, 3)], ids=str)
@pytest.mark.parametrize("gap", [Fraction(0), Fraction(1, 3), Fraction(-20), Fraction(10**40)], ids=str)
def test_the_earlier_of_two_is_that_of_flint(gap, sizes, lift):
    """The order depends on the difference of the exponents only, wherever they are counted from."""
    generator = np.random.default_rng(11)
    for prefix in generator.integers(1, 2**53 - 1, (30, 2)).tolist():
        plain = Arrival(Fraction(0), sizes[0], prefix[0]), Arrival(gap, sizes[1], prefix[1])
        lifted = [replace(arrival, exponent=arrival.exponent + lift) for arrival in plain]
        winner, known = earlier(*lifted, ScriptedBits(""))
        assert winner == truth(*plain)
        assert known == lifted[winner], "no bit was needed"


@pytest.mark.parametrize("size", [1, 7, 2**40])
def test_bits_that_were_revealed_stay_with_the_winner(size):
    """The same first bits: the next 64 decide, and a later comparison starts from them."""
    first, second = (Arrival(Fraction(-5), size, 99) for _ in range(2))
    words = "01" * 32, "00" * 32
    winner, known = earlier(first, second, ScriptedBits("".join(words)))
    assert (winner, known) == (1, Arrival(Fraction(-5), size, 99 << 64, DEPTH + 64))
    third = Arrival(Fraction(-5), size, 90)
    assert earlier(known, third, ScriptedBits("")) == (1, third)
    assert earlier(known, Arrival(Fraction(-5), size, 110), ScriptedBits("")) == (0, known)


def test_an_arrival_has_53_bits_at_first():
    assert draw_arrival(Fraction(3), 5, ScriptedBits("0" * 50 + "101")) == Arrival(Fraction(3), 5, 5)


@pytest.mark.parametrize(("gap", "sizes"), [(1, (2, 3)), (3, (1, 40)), (0, (5, 1))], ids=str)
def test_each_comes_first_with_its_chance(gap, sizes):
    """P(T < T') is an integral of polynomials up to the time 1 of the higher run; a wrong gap is not it."""
    p, source, draws = math.exp(-gap), SystemEntropy(), 40_000

    def chance(p):
        density = [sizes[0] * (1 - t) ** (sizes[0] - 1) * (1 - p * t) ** sizes[1] for t in np.linspace(0, 1, 4_001)]
        return float(integrate.simpson(density, dx=1 / 4_000))

    def winner():
        arrivals = (
            draw_arrival(Fraction(-7 + lower), size, source) for lower, size in zip((0, gap), sizes, strict=True)
        )
        return earlier(*arrivals, source)[0]

    counts = np.bincount([winner() for _ in range(draws)], minlength=2)
    assert_fits(counts, [chance(p), 1 - chance(p)])
    wrong = chance(p * math.exp(-0.3) if gap else 0.8)
    assert_rejected(counts, [wrong, 1 - wrong], truth=[chance(p), 1 - chance(p)])


def test_the_ends_of_v():
    """Only zeros so far: no lower bound. Only ones: the upper bound is that of V = 1, the exponent itself."""
    low, high = float_bounds(np.array([0.0, 2.0**53 - 1]), np.array([3.0, 3.0]), np.array([5.0, 5.0]))
    assert np.isneginf(low[0])
    assert 3 < high[1] < 3 + 1e-9


def test_brackets_at_the_ends_of_v():
    exponent = Fraction(1, 3)
    assert Arrival(exponent, 7, 0).bracket()[0] is None
    low, high = Arrival(exponent, 7, 2**DEPTH - 1).bracket()
    assert high == exponent
    assert low < exponent


def test_more_bits_are_put_behind():
    finer = Arrival(Fraction(1), 3, 5).refined(ScriptedBits("0" * 63 + "1"))
    assert finer == Arrival(Fraction(1), 3, 5 * 2**64 + 1, DEPTH + 64)


def test_v_of_zeros_loses_no_contest_before_its_time():
    arrivals = {0: Arrival(Fraction(50), 1, 0), 1: Arrival(Fraction(0), 1, 2**52)}
    assert earliest(arrivals, ScriptedBits("0" * 63 + "1" + "0" * 64)) == 0
    assert earliest(arrivals, ScriptedBits("1" * 64 + "0" * 64)) == 1
