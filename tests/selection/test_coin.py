"""Coins of two laws, U < exp(-g) and U < 1 / (1 + exp(g)), bit by bit: what is decided when, against flint's balls."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.errors import InvalidValue
from dpselect.selection.draws import MARGIN, Draws
from dpselect.selection.sets import WORD_BITS, odds_coin, odds_coins, word_bounds
from tests.seam import BitsExhausted, Refused, ScriptedBits, distribution, heads_probability
from tests.selection.test_enclosure import true_floor
from tests.statistical.goodness import assert_fits, assert_rejected

pytestmark = pytest.mark.usefixtures("each_kernel")

GAPS = [
    Fraction(1, 2**1074),
    Fraction(1, 2**70),
    Fraction(1e-9),
    Fraction(1, 3),
    Fraction(1),
    Fraction(11, 2),
    Fraction(30),
    Fraction(800),
    Fraction(10**6),
]
HUGE = Fraction(10**400)


class Batch:
    """Gaps of a batch of coins, in floats that are right within a doubt; writes down which are asked for exactly."""

    def __init__(self, exact, doubt=2.0**-50, off=0.0):
        self._exact, self.asked = exact, []
        self.approximate = np.array([float(min(gap, Fraction(10**300))) for gap in exact]) * (1 + off)
        self.doubt = np.broadcast_to(np.asarray(doubt, float), self.approximate.shape) * (1 + self.approximate)

    def exact(self, index):
        self.asked.append(index)
        return self._exact[index]


def probability(gap: Fraction) -> arb:
    """1 / (1 + exp(gap)) in a ball; beyond 10**9 no ball is needed, and zero is near enough for every comparison."""
    if gap > 10**9:
        return arb(0, 1e-300)
    return 1 / (1 + arb(fmpq(gap.numerator, gap.denominator)).exp())


@cache
def true_odds_floor(gap: Fraction, depth: int) -> int:
    """floor(2**depth / (1 + exp(gap))), by balls."""
    if gap > 10**9:
        return 0
    with ctx.workprec(depth + 1200):
        return int((probability(gap) * arb(2) ** depth).floor().unique_fmpz())


@dataclass(frozen=True)
class Law:
    """A coin and many coins at once, given the first `depth` bits of U; and floor(2**depth p) for a gap and a depth."""

    one: Callable[..., bool]  # of a gap, bits, a prefix and a depth
    many: Callable[..., Any]  # of a batch, bits, prefixes and a depth; `doubt` is relative to the boundary
    floor: Callable[[Fraction, int], int]
    gaps: list[Fraction]


def flipped(gap, bits, prefix=0, depth=0):
    return ScriptedBits(bits).flip(gap, depth, prefix)


def finished(batch, bits, prefixes, depth, doubt=MARGIN):
    return ScriptedBits(bits).finish(batch, prefixes, np.full(batch.approximate.size, depth), doubt)


def odd(gap, bits, prefix=0, depth=0):
    return odds_coin(gap, ScriptedBits(bits), prefix, depth)


def odds_finished(batch, bits, prefixes, depth, doubt=None):
    if doubt is not None:
        batch.doubt = np.full(batch.doubt.size, doubt)
    return odds_coins(batch, prefixes, depth, ScriptedBits(bits))


LAWS = {
    "exp": Law(flipped, finished, true_floor, GAPS),
    "odds": Law(odd, odds_finished, true_odds_floor, [*GAPS, HUGE]),
}
EACH = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
EVERY = pytest.mark.parametrize(("law", "gap"), [(law, gap) for law in LAWS.values() for gap in law.gaps])


def binary(number, width):
    return f"{number:0{width}b}" if width else ""


# One coin.


def test_without_a_gap_every_coin_is_heads():
    assert ScriptedBits("1" * 64).flip(Fraction(0), 40, 2**40 - 1) is True
    assert finished(Batch([Fraction(0)]), "1" * 32, 0, 0)[0]


@pytest.mark.parametrize("depth", [1, 2, 16, 48, 100])
def test_without_a_gap_the_first_bit_decides_even_odds(depth):
    half = 2 ** (depth - 1)
    for prefix, is_head in ((0, True), (half - 1, True), (half, False), (2**depth - 1, False)):
        assert odd(Fraction(0), "", prefix, depth) is is_head
    for bit, is_head in (("0", True), ("1", False)):
        source = ScriptedBits(bit + "01" * 16)
        assert odds_coin(Fraction(0), source) is is_head
        assert source.used == 32


@EACH
def test_a_negative_gap_is_refused_at_once(law):
    """Nobody gives one. The loop would not end."""
    with pytest.raises(InvalidValue, match="exponent must be >= 0"):
        law.one(Fraction(-1), "", 0, 16)


@EVERY
@pytest.mark.parametrize("depth", [0, 1, 8, 16, 32, 48, 64, 200])
def test_only_one_prefix_is_undecided(law, gap, depth):
    """Below the floor of 2**k times the probability is heads, above is tails; the floor itself asks for more bits."""
    boundary = law.floor(gap, depth)
    for prefix in {0, boundary - 1, boundary + 1, 2**depth - 1} - {boundary}:
        if 0 <= prefix < 2**depth:
            assert law.one(gap, "", prefix, depth) is (prefix < boundary)
    with pytest.raises(BitsExhausted):
        law.one(gap, "", boundary, depth)


@EVERY
@pytest.mark.parametrize("agreeing", [0, 1, 5, 31, 32, 33, 64, 150])
def test_the_other_bit_forces_the_decision(law, gap, agreeing):
    """Follow the binary expansion of the probability, then take the other bit: a one where it has a zero is tails."""
    expansion = law.floor(gap, agreeing + 1)
    other = expansion ^ 1
    for rest in ("0" * 64, "1" * 64):
        assert law.one(gap, binary(other, agreeing + 1) + rest) is (other < expansion)


@EACH
def test_a_dry_source_never_decides(law):
    with pytest.raises(BitsExhausted):
        law.one(Fraction(1, 3), binary(law.floor(Fraction(1, 3), 320), 320))


# Many coins at once.


@EACH
@pytest.mark.parametrize("depth", [0, 8, 12, 16, 20])
@pytest.mark.parametrize("gap", [Fraction(1, 3), Fraction(1), Fraction(5)], ids=str)
def test_floats_leave_the_boundary_word_to_further_bits_and_hand_over_all_they_know(law, gap, depth):
    """In the cell that holds the probability zeros are heads, ones are tails. Next to it no further bit is read."""

    def finish(word, bits, **doubting):
        prefix = np.array([word >> 32], np.uint64) if depth else 0
        return law.many(Batch([gap]), binary(word & 0xFFFFFFFF, 32) + bits, prefix, depth, **doubting)[0]

    boundary = law.floor(gap, depth + 32)
    assert finish(boundary, "0" * 32)
    assert not finish(boundary, "1" * 32)
    assert finish(boundary - 1, "", doubt=1e9)
    assert not finish(boundary + 1, "", doubt=1e9)
    with pytest.raises(BitsExhausted):
        finish(boundary, "")


DOUBTS = {"exp": [MARGIN, 2.0**-20, 2.0**-6, 1.0], "odds": [0.0, 2.0**-50, 2.0**-20, 0.1, math.inf]}


@pytest.mark.parametrize(("name", "doubt"), [(name, doubt) for name, own in DOUBTS.items() for doubt in own])
@pytest.mark.parametrize("depth", [0, 8, 12, 16, 20])
@settings(max_examples=25)
@given(data=st.data())
def test_floats_agree_with_the_exact_coin(name, doubt, depth, data):
    """What floats decide, and what they leave to the exact coin, is what the true boundary says of the same bits."""
    law = LAWS[name]
    gaps = data.draw(
        st.lists(st.fractions(0, 40, max_denominator=10**6) | st.sampled_from(law.gaps), min_size=1, max_size=6)
    )
    boundaries = [law.floor(gap, depth + 32) for gap in gaps]
    near = [data.draw(st.integers(-20, 20) | st.integers(-(2**60), 2**60)) for _ in gaps]
    words = [min(max(own + move, 0), 2 ** (depth + 32) - 1) for own, move in zip(boundaries, near, strict=True)]
    prefixes = np.array([word >> 32 for word in words], np.uint64) if depth else 0
    script = "".join(binary(word & 0xFFFFFFFF, 32) for word in words) + "0110" * 60 * len(gaps)
    if name == "exp":
        flags = finished(Batch(gaps), script, prefixes, depth, doubt)
    else:  # the gaps in floats may be as far off as the doubt says
        off = data.draw(st.sampled_from([0.0, min(doubt, 1.0), -min(doubt, 1.0)])) if doubt > 2.0**-53 else 0.0
        flags = odds_finished(Batch(gaps, doubt, off), script, prefixes, depth)
    for gap, word, boundary, flag in zip(gaps, words, boundaries, flags, strict=True):
        if word != boundary:  # then no further bit matters
            assert flag == (word < boundary)
        elif gap == 0:
            assert not flag


@EACH
def test_only_those_in_doubt_are_decided_exactly(law):
    """Four cells on either side, or all of them."""
    gaps = [Fraction(1), Fraction(2), Fraction(3)]
    near = "".join(binary(law.floor(gap, 32) + move, 32) for gap, move in zip(gaps, (9, 0, 1), strict=True))
    for words, doubt, asked in (("0" * 96, {}, []), (near, {}, [1, 2]), ("0" * 96, {"doubt": 1e9}, [0, 1, 2])):
        batch = Batch(gaps)
        law.many(batch, words + "01" * 32, 0, 0, **doubt)
        assert batch.asked == asked


@pytest.mark.parametrize("distance", [0.1, 0.05, -0.05, -0.1])
@pytest.mark.parametrize(("name", "chance", "doubt"), [("exp", math.exp(-1 / 3), 0.1), ("odds", 0.4174, 0.1)])
def test_doubt_is_relative_to_the_boundary(name, chance, doubt, distance):
    """A tenth of exp(-1/3) = 0.717 is 0.07; a gap of 1/3, give or take a tenth, has a chance within 0.417 * 0.21."""
    batch = Batch([Fraction(1, 3)])
    word = int((chance - distance) * 2**32)
    assert LAWS[name].many(batch, binary(word, 32), 0, 0, doubt=doubt)[0] == (distance > 0)
    assert bool(batch.asked) is (abs(distance) < 0.1)


@pytest.mark.parametrize("cells", [-1, 0, 1])
def test_no_word_is_between_the_filter_and_the_fallback(cells):
    """The largest U are at 1 - U = doubt, one cell nearer and one farther: the coin of exponent zero is heads."""
    word = 2**32 - 2**12 - 4 + cells  # four cells of slack, and a margin of 2**12 cells
    assert finished(Batch([Fraction(0)]), binary(word, 32), 0, 0, doubt=2.0**-20)[0]


def test_numpys_exp_is_far_inside_the_margin():
    """The filter trusts exp to 256 units in the last place; this machine's is measured against flint."""
    ctx.prec = 120
    points = np.concatenate([np.linspace(0, 100, 4001), np.geomspace(1e-300, 1, 500)])
    ours = np.exp(-points)
    truth = [(-arb(float(point))).exp() for point in points]
    worst = max(abs(float(1 - arb(float(value)) / exact)) for value, exact in zip(ours, truth, strict=True))
    assert worst < 2.0**-50


def test_the_margin_covers_the_errors_that_its_comment_adds_up():
    assert MARGIN >= 64 * 2.0**-50.9 + 256 * 2.0**-52


@pytest.mark.parametrize("zeros", [8, 16, 24, 32, 40])
@pytest.mark.parametrize("doubt", [2.0**-50, 1.0, math.inf])
def test_odds_behind_many_zeros_are_right(zeros, doubt):
    """Those far from theta, of which only the survivors are read."""
    for gap in (Fraction(zeros * 7, 10), Fraction(zeros * 9, 10), Fraction(99), Fraction(101), HUGE):
        boundary, deeper = true_odds_floor(gap, zeros + 32), true_odds_floor(gap, zeros + 64)
        words = {(word, 0) for word in (0, 1, 7, boundary - 1, boundary + 1, boundary + 5, 2**32 - 1)}
        words |= {divmod(deeper + move, 2**32) for move in (-1, 1)}  # of the boundary itself the next bits decide
        for word, more in words - {(boundary, 0)}:
            if 0 <= word < 2**32:
                [flag] = odds_finished(Batch([gap], doubt), binary(word, 32) + binary(more, 32), 0, zeros)
                assert flag == (word << 32 | more < deeper)


# Words of coins with odds: the first sixteen bits.


def inside(word_bound, chance, upper):
    """Whether a bound of words is on the right side of the chance."""
    ball = arb(fmpq(int(word_bound), 2**WORD_BITS))
    return not ball < chance if upper else not ball > chance


@pytest.mark.parametrize("doubt", [0.0, 2.0**-52, 1e-9, 0.01, 1.0, 30.0, math.inf])
def test_decided_words_are_right_wherever_the_gap_is_within_its_doubt(doubt):
    gaps = [*GAPS, Fraction(0), Fraction(99), Fraction(101), Fraction(1109, 100)]
    floats = np.array([float(gap) for gap in gaps])
    low, high = word_bounds(floats, np.full(floats.size, doubt))
    assert (low.dtype, high.dtype) == (np.uint16, np.uint16)
    with ctx.workprec(3000):
        for gap, least, most in zip(floats.tolist(), low, high, strict=True):
            off = Fraction(min(doubt, 10**6))
            for true in (Fraction(gap), Fraction(gap) + off, max(Fraction(gap) - off, Fraction(0))):
                chance = probability(true)
                # A word below `low` has U < low / 2**16, and one from `high` on has U >= high / 2**16.
                assert inside(least, chance, upper=False)
                assert inside(most, chance, upper=True)
    assert (low <= high).all()
    if doubt == math.inf:
        assert not low.any()
        assert (high == 2**15).all(), "an upset is never the likelier side"


@settings(max_examples=150)
@given(gap=st.floats(0, 120) | st.floats(0, 2.0**-20), doubt=st.floats(0, 5) | st.just(0.0), where=st.floats(-1, 1))
def test_words_are_right_for_any_gap(gap, doubt, where):
    true = max(Fraction(gap) + Fraction(doubt) * Fraction(where), Fraction(0))
    [low], [high] = word_bounds(np.array([gap]), np.array([doubt]))
    with ctx.workprec(400):
        assert inside(low, probability(true), upper=False)
        assert inside(high, probability(true), upper=True)
    if doubt == 0:
        assert high - low <= 2, "and without a doubt they decide all but one or two words"


# A coin given another one.


@pytest.mark.parametrize(("near", "further"), list(itertools.product([0, 1, 2, 5], [1, 2, 6])))
def test_a_race_has_the_conditional_probability(near, further, monkeypatch):
    """A round that starts over is left out, as `Refused` does: what it then does is what it did before."""

    def one_round(draws):
        flips = iter([near, further])

        def flip(exponent):
            wanted = next(flips, None)
            if wanted is None:
                raise Refused
            assert exponent == wanted
            return draws.coin(heads_probability(exponent))

        monkeypatch.setattr(draws, "flip", flip)
        return Draws.flip_between(draws, Fraction(near), Fraction(further))

    a, ab = heads_probability(near), heads_probability(near + further)
    found = distribution(one_round)
    assert found.get(True, 0) == (a - ab) / (1 - ab)
    assert (near == 0) == (found.get(True, 0) == 1), "the best is always a head"


def test_the_race_reads_bits():
    ones, zeros = "1" * 32, "0" * 32
    quarter = Fraction(14, 10)  # exp(-1.4) is about 0.2466: heads is a U below it
    assert ScriptedBits(ones).flip_between(quarter, quarter) is False
    assert ScriptedBits(zeros + ones).flip_between(quarter, quarter) is True
    assert ScriptedBits(zeros + zeros + zeros + ones).flip_between(quarter, quarter) is True, "after a second round"
    assert ScriptedBits(zeros + zeros + ones).flip_between(Fraction(0), quarter) is True


# Statistics.


def in_words(gap, count):
    """As tries use them: sixteen bits, and the rest only where these do not decide."""
    draws, (low, high) = Draws(), word_bounds(np.array([float(gap)]), np.array([2.0**-50]))
    words = draws.words(count, WORD_BITS)
    heads = words < low
    left = np.flatnonzero((words < high) & ~heads)
    heads[left] = odds_coins(Batch([gap] * left.size), words[left], WORD_BITS, draws)
    return heads


def odds(gap):
    return 1 / (1 + math.exp(gap))


ONE, HALF, THIRD = Fraction(1), Fraction(1, 2), Fraction(1, 3)
# The heads of some coins, the chance of each, how many are flipped, and other chances.
COINS = {
    "exp": (lambda count: [Draws().flip(HALF) for _ in range(count)], math.exp(-0.5), 4_000, [math.exp(-0.3)]),
    "given another": (
        lambda count: [Draws().flip_between(HALF, THIRD) for _ in range(count)],
        (math.exp(-1 / 2) - math.exp(-5 / 6)) / (1 - math.exp(-5 / 6)),
        4_000,
        [math.exp(-1 / 2)],
    ),
    **{
        f"odds of {gap}": (
            lambda count, gap=gap: odds_coins(Batch([gap] * count), 0, 0, Draws()),
            odds(gap),
            40_000,
            [1 / (1 + math.exp(gap) / 2), *([min(math.exp(-gap), 0.99)] if gap <= 1 else [])],
        )
        for gap in (Fraction(0), HALF, ONE, Fraction(4))
    },
    "odds in words": (lambda count: in_words(Fraction(7, 3), count), odds(7 / 3), 200_000, [1.1 * odds(7 / 3)]),
}


@pytest.mark.parametrize("name", COINS)
def test_heads_have_their_chance(name):
    """Odds of twice as much, or the coin exp(-gap) in place of odds, are something else."""
    flip, right, count, others = COINS[name]
    heads = int(np.sum(flip(count)))
    assert_fits([heads, count - heads], [right, 1 - right])
    for wrong in others:
        assert_rejected([heads, count - heads], [wrong, 1 - wrong], truth=[right, 1 - right])
