"""Arrivals: the bounds enclose the truth (flint), and contests are decided by the bits that matter."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import cycle, islice, product

import numpy as np
import pytest
from flint import ctx
from scipy import integrate

from dpselect.selection.draws import Draws
from dpselect.selection.races import (
    DEPTH,
    MARGIN,
    Arrival,
    Tick,
    TwoSided,
    draw_arrival,
    draw_prefixes,
    earlier,
    earliest,
    float_bounds,
    in_order,
    log_sizes,
)
from tests.reference import ball
from tests.seam import BitsExhausted, ScriptedBits
from tests.selection.samplers import log_head, log_tick, log_two_sided
from tests.statistical.goodness import assert_fits, assert_rejected

SIZES = [1, 2, 3, 1000, 2**32 + 1, 2**53 + 1, 2**63, 2**64 - 1, 10**30 + 7, 10**500 + 1]
# For noise with two sides, also the cells on both sides of its middle, and those that end there.
PREFIXES = [0, 1, 2, 12345, 2**45 - 1, 2**52 - 1, 2**52, 2**52 + 1, 2**53 - 3, 2**53 - 2, 2**53 - 1]
EXPONENTS = [Fraction(0), Fraction(1, 3), Fraction(5, 2), Fraction(700), Fraction(10**6, 7), Fraction(2) ** 99]


@pytest.fixture(autouse=True)
def _many_bits():
    with ctx.workprec(4000):
        yield


def keys(ordered):
    return [key for key, _ in ordered]


LAWS = {
    "arrival": (Arrival, log_head, SIZES),
    "tick": (Tick, log_tick, SIZES),
    "two-sided": (TwoSided, log_two_sided, [1]),
}
KINDS = [Arrival, Tick, TwoSided]
EVERY_LAW = pytest.mark.parametrize("law", LAWS)


def assert_enclosed(low, high, first, last, width):
    """Bounds of ln T without its exponent, around the truth at both ends of a cell, and so much wider at the most."""
    assert low == -math.inf if first is None else ball(low) <= first
    assert high == math.inf if last is None else ball(high) >= last
    if None not in (first, last):
        assert ball(high) - ball(low) <= width(last - first)


@EVERY_LAW
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("deeper", [0, 1, 3])
def test_brackets_enclose_the_truth_and_shrink_to_it(law, prefix, deeper):
    """The bracket is hardly wider than the cell of V makes it, so that every contest ends."""
    kind, truth, sizes = LAWS[law]
    fill = {0: "0" * 64, 2**53 - 1: "1" * 64}.get(prefix, "01" * 32)
    for size, exponent in product(sizes, EXPONENTS):
        arrival = kind(exponent, size, prefix)
        for _ in range(deeper):
            arrival = arrival.refined(ScriptedBits(fill))
        assert (type(arrival), arrival.depth) == (kind, DEPTH + 64 * deeper)
        first, last = (truth(size, arrival.prefix + i, arrival.depth) for i in (0, 1))
        low, high = (bound - exponent for bound in arrival.bracket())
        assert_enclosed(low, high, first, last, lambda cell: 3 * cell)


@EVERY_LAW
def test_float_bounds_enclose_the_truth(law):
    kind, truth, sizes = LAWS[law]
    cells = list(product(PREFIXES, sizes, EXPONENTS))
    random = [int(p) for p in Draws().words(200, 64) >> np.uint64(11)]
    others = cycle(product(sizes, EXPONENTS))
    cells += [(p, *other) for p, other in zip(random, others, strict=False)]
    prefixes, exponents = (np.array([float(cell[i]) for cell in cells]) for i in (0, 2))
    low, high = float_bounds(prefixes, exponents, log_sizes([size for _, size, _ in cells]), kind)
    for (prefix, size, exponent), *bounds in zip(cells, low.tolist(), high.tolist(), strict=True):
        least, most = (bound if math.isinf(bound) else Fraction(bound) - exponent for bound in bounds)
        first, last = (truth(size, prefix + i, DEPTH) for i in (0, 1))
        room = ball(4 * MARGIN * (1 + float(exponent) + math.log(size)))
        assert_enclosed(least, most, first, last, lambda cell, room=room: cell + room)


@EVERY_LAW
@pytest.mark.parametrize("depth", [53, 54, 61, 80, 107, 115])
def test_float_bounds_of_finer_cells_enclose_the_truth(law, depth):
    """V that start with zeros have 53 bits behind them: in units of 2**-53 neither end is whole, and both are exact."""
    kind, truth, _ = LAWS[law]
    prefixes = [1, 2, 3, 12345, 2**52 + 1, 2**53 - 2, 2**53 - 1]
    step = 2.0 ** (DEPTH - depth)
    low, high = float_bounds(np.array(prefixes) * step, np.full(7, 1 / 3), np.zeros(7), kind, np.full(7, step))
    for prefix, *bounds in zip(prefixes, low.tolist(), high.tolist(), strict=True):
        least, most = (bound if math.isinf(bound) else Fraction(bound) - Fraction(1 / 3) for bound in bounds)
        first, last = (truth(1, prefix + i, depth) for i in (0, 1))
        assert_enclosed(least, most, first, last, lambda cell: cell + ball(8 * MARGIN))


def test_exponents_a_little_off_are_covered():
    """The exponents may be wrong by a relative 2**-50."""
    for exponent in (Fraction(1, 3), Fraction(10**6, 7)):
        for factor in (1 - Fraction(1, 2**50), 1 + Fraction(1, 2**50)):
            low, high = float_bounds(np.array([99.0]), np.array([float(exponent * factor)]), log_sizes([7]))
            assert ball(Fraction(low.item()) - exponent) <= log_head(7, 99, DEPTH)
            assert ball(Fraction(high.item()) - exponent) >= log_head(7, 100, DEPTH)


def test_overflowed_exponents_claim_no_upper_bound():
    """An exponent that left the floats is known from below only: it must never push another run out."""
    low, high = float_bounds(np.array([5.0, 5.0, 0.0]), np.array([1.7e308, 3.0, 1.7e308]), log_sizes([1, 1, 2**64]))
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


def test_bounds_of_lengths_are_enough():
    """Where only bounds of ln m are known, T is between its values for the longest and the shortest run."""
    for kind in (Arrival, Tick):
        logs = np.log([[3.0], [5.0]])
        low, high = float_bounds(np.array([99.0]), np.array([2.0]), (logs[0], logs[1]), kind)
        shortest, longest = (float_bounds(np.array([99.0]), np.array([2.0]), log, kind) for log in logs)
        assert (low.tolist(), high.tolist()) == (
            pytest.approx(longest[0].tolist(), abs=1e-9),
            pytest.approx(shortest[1].tolist(), abs=1e-9),
        )
        unknown = float_bounds(np.array([99.0]), np.array([2.0]), (np.array([-np.inf]), logs[1]), kind)
        assert unknown[0] == low
        assert unknown[1][0] == (math.inf if kind is Tick else pytest.approx(2, abs=1e-9))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 5, 2**64 - 1])
@pytest.mark.parametrize("shared", [0, 1, 3])
def test_equal_beginnings_are_decided_by_the_first_bit_that_differs(kind, size, shared):
    """T grows with V: among equal runs the smaller V wins, at any depth."""
    for prefix in (99, 2**52 - 1, 2**53 - 1, 0):
        arrivals = {key: kind(Fraction(2, 7), 1 if kind is TwoSided else size, prefix) for key in (10, 20)}
        steps = ["01" * 32] * (2 * shared) + ["1" * 64, "0" * 64] + ["01" * 32] * 2
        assert earliest(arrivals, ScriptedBits("".join(steps))) == 20
        assert keys(in_order(arrivals, ScriptedBits("".join(steps)))) == [20, 10]


def words_of(values, depth):
    """The bits behind the first ones of all V, 64 of each at a time, as a contest asks for them."""
    shifts = range(depth - DEPTH - 64, -1, -64)
    return "".join(format(v >> shift & (2**64 - 1), "064b") for shift in shifts for v in values)


# The V at which a single candidate without an exponent arrives at a time, of which the logarithm is given.
V_AT = {
    "arrival": lambda log: log.exp(),
    "tick": lambda log: 1 - (-log.exp()).exp(),
    "two-sided": lambda log: log.exp() / 2 if log < 0 else 1 - (-log).exp() / 2,
}


@pytest.mark.parametrize("deep", [60, 120, 180, 240])
@pytest.mark.parametrize(("law", "size"), [*product(["arrival", "tick"], [1, 2, 10**6, 2**64 - 1]), ("two-sided", 1)])
def test_deep_contests_are_decided_as_flint_decides_them(law, size, deep):
    """A run that is 1/2 lower against a single best candidate, which arrives at the same time up to a bit far down."""
    kind, truth, _ = LAWS[law]
    depth = DEPTH + 64 * 5
    many = (1 << depth) // 3
    below = int((V_AT[law](ball(Fraction(1, 2)) + truth(size, many, depth)) * 2**deep).floor().unique_fmpz())
    for best, winner in ((below, "one"), (below + 1, "many")):
        one = best << (depth - deep)
        arrivals = {
            "many": kind(Fraction(1, 2), size, many >> (depth - DEPTH)),
            "one": kind(Fraction(0), 1, one >> (depth - DEPTH)),
        }
        assert earliest(arrivals, ScriptedBits(words_of([many, one], depth))) == winner


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
        # ln T of the cold run is near 60 - 117 ln 2 = -21.1, of the other near -33 ln 2 = -22.9.
        assert earliest(arrivals, ScriptedBits(early + late)) == 1
        hotter = {key: Arrival(Fraction(50), 1, 0) if key == 0 else cold[1] for key in keys}
        assert earliest(hotter, ScriptedBits(early + late)) == 0


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


@pytest.mark.slow
@pytest.mark.parametrize(("gap", "sizes"), [(1, (2, 3)), (3, (1, 40)), (0, (5, 1))], ids=str)
def test_each_comes_first_with_its_chance(gap, sizes):
    """P(T < T') is an integral of polynomials up to the time 1 of the higher run; a wrong gap is not it."""
    p, source, draws = math.exp(-gap), Draws(), 40_000

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


# All of them in order.


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_is_that_of_the_bits(kind):
    """Of equals, whose bits are scripted: three words decide the rest, in clusters that are reached one by one."""
    arrivals = {key: kind(Fraction(1, 7), 1, prefix) for key, prefix in zip("abcdef", (5, 9, 5, 2, 9, 9), strict=True)}
    numbered = dict(enumerate(arrivals.values()))
    fives = ["1" * 64, "0" * 64]  # of a and c
    nines = ["01" * 32, "0" * 64, "01" * 32]  # of b, e and f: e is the first, and the others need one word more
    more = ["1" * 64, "0" * 64]  # of b and f
    source = ScriptedBits("".join(fives + nines + more))
    assert ["abcdef"[key] for key, _ in in_order(numbered, source)] == list("dcaefb")
    assert source.used == 64 * 7, "what was revealed is kept, and nothing is revealed twice"


def test_only_as_many_bits_as_are_asked_for():
    """The first of all needs no bits of those that come later."""
    numbered = {0: Arrival(Fraction(0), 1, 2), 1: Arrival(Fraction(0), 1, 9), 2: Arrival(Fraction(0), 1, 9)}
    assert next(in_order(numbered, ScriptedBits("")))[0] == 0
    assert keys(islice(in_order(numbered, ScriptedBits("1" * 64 + "0" * 64)), 2)) == [0, 2]


def test_those_without_a_bound_wait():
    """V of zeros only may be anywhere below, and V of ones, for a clock, anywhere above."""
    ticks = {0: Tick(Fraction(40), 1, 0), 1: Tick(Fraction(0), 1, 2**20), 2: Tick(Fraction(0), 1, 2**53 - 1)}
    early, late = "0" * 63 + "1", "1" * 64
    assert keys(in_order(ticks, ScriptedBits(early + "0" * 64))) == [0, 1, 2]
    assert keys(in_order(ticks, ScriptedBits(late + "0" * 64))) == [1, 0, 2]
    later = {**ticks, 3: Tick(Fraction(10), 1, 2**53 - 1), 0: Tick(Fraction(0), 1, 1)}
    # -ln of 2**-53 is e**3.6; ten later is beyond its next 64 bits, which end at e**4.4.
    assert keys(in_order(later, ScriptedBits("0" * 64 * 2))) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_orders_agree_with_one_after_another(kind):
    generator = np.random.default_rng(17)
    for _ in range(6):
        numbered = {
            key: kind(Fraction(int(generator.integers(4)), 3), 1, int(generator.integers(1, 2**53 - 1)))
            for key in range(12)
        }
        left, found = dict(numbered), []
        while left:
            found.append(earliest(left, ScriptedBits("")))
            del left[found[-1]]
        assert keys(in_order(numbered, ScriptedBits(""))) == found
