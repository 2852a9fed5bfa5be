"""Coins with odds by their bits: what is decided when, against flint's balls, and with floats made to doubt."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.errors import InvalidValue
from dpselect.selection.draws import Draws
from dpselect.selection.sets import WORD_BITS, odds_coin, odds_coins, word_bounds
from tests.seam import ScriptedBits
from tests.statistical.goodness import assert_fits, assert_rejected

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
    Fraction(10**400),
]


def probability(gap: Fraction) -> arb:
    """1 / (1 + exp(gap)) in a ball; beyond 10**9 no ball is needed, and zero is near enough for every comparison."""
    if gap > 10**9:
        return arb(0, 1e-300)
    return 1 / (1 + arb(fmpq(gap.numerator, gap.denominator)).exp())


@cache
def true_floor(gap: Fraction, depth: int) -> int:
    """floor(2**depth / (1 + exp(gap))), by balls that are made finer until the floor is unique."""
    if gap > 10**9:
        return 0
    precision = depth + 1200
    with ctx.workprec(precision):
        return int((probability(gap) * arb(2) ** depth).floor().unique_fmpz())


def binary(number, width):
    return f"{number:0{width}b}" if width else ""


class Batch:
    """Gaps of a batch of coins, in floats that are right within a doubt."""

    def __init__(self, exact, doubt=2.0**-50, off=0.0):
        self._exact, self.asked = exact, []
        self.approximate = np.array([float(min(gap, Fraction(10**300))) for gap in exact]) * (1 + off)
        self.doubt = np.broadcast_to(np.asarray(doubt, float), self.approximate.shape) * (1 + self.approximate)

    def exact(self, index):
        self.asked.append(index)
        return self._exact[index]


@pytest.mark.parametrize("depth", [1, 2, 16, 48, 100])
def test_without_a_gap_the_first_bit_decides(depth):
    half = 2 ** (depth - 1)
    for prefix, is_head in ((0, True), (half - 1, True), (half, False), (2**depth - 1, False)):
        assert odds_coin(Fraction(0), ScriptedBits(""), prefix, depth) is is_head
    for bit, is_head in (("0", True), ("1", False)):
        source = ScriptedBits(bit + "01" * 16)
        assert odds_coin(Fraction(0), source) is is_head
        assert source.used == 32


def test_a_negative_gap_is_refused_at_once():
    """Nobody gives one: an upset is the less likely side. The loop would not end."""
    with pytest.raises(InvalidValue, match="exponent must be >= 0"):
        odds_coin(Fraction(-1), ScriptedBits(""), 0, 16)


# Words: the first sixteen bits.

DOUBTS = [0.0, 2.0**-52, 1e-9, 0.01, 1.0, 30.0, math.inf]


def inside(word_bound, chance, upper):
    """Whether a bound of words is on the right side of the chance."""
    ball = arb(fmpq(int(word_bound), 2**WORD_BITS))
    return not ball < chance if upper else not ball > chance


@pytest.mark.parametrize("doubt", DOUBTS)
def test_decided_words_are_right_wherever_the_gap_is_within_its_doubt(doubt):
    gaps = [*(g for g in GAPS if g < 10**9), Fraction(0), Fraction(99), Fraction(101), Fraction(1109, 100)]
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


# Many coins at once.


@pytest.mark.parametrize("doubt", [0.0, 2.0**-50, 2.0**-20, 0.1, math.inf])
@pytest.mark.parametrize("depth", [0, 8, 16, 20])
@settings(max_examples=15)
@given(data=st.data())
def test_floats_agree_with_the_exact_coin(doubt, depth, data):
    """What floats decide, and what they leave to the exact coin, is what the true boundary says of the same bits."""
    gaps = data.draw(
        st.lists(st.fractions(0, 40, max_denominator=10**6) | st.sampled_from(GAPS), min_size=1, max_size=6)
    )
    prefixes, words = [], []
    for gap in gaps:
        near = data.draw(st.integers(-20, 20) | st.integers(-(2**60), 2**60))
        word = min(max(true_floor(gap, depth + 32) + near, 0), 2 ** (depth + 32) - 1)
        prefixes.append(word >> 32)
        words.append(word & 0xFFFFFFFF)
    off = data.draw(st.sampled_from([0.0, min(doubt, 1.0), -min(doubt, 1.0)])) if doubt > 2.0**-53 else 0.0
    script = "".join(binary(word, 32) for word in words) + "0110" * 60 * len(gaps)
    flags = odds_coins(
        Batch(gaps, doubt, off), np.array(prefixes, np.uint64) if depth else 0, depth, ScriptedBits(script)
    )
    for gap, high, low, flag in zip(gaps, prefixes, words, flags, strict=True):
        word, boundary = high << 32 | low, true_floor(gap, depth + 32)
        if word != boundary:  # then no further bit matters
            assert flag == (word < boundary)
        elif gap == 0:
            assert not flag


@pytest.mark.parametrize("zeros", [8, 16, 24, 32, 40])
@pytest.mark.parametrize("doubt", [2.0**-50, 1.0, math.inf])
def test_coins_behind_many_zeros_are_right(zeros, doubt):
    """Those far from theta, of which only the survivors are read."""
    for gap in (Fraction(zeros * 7, 10), Fraction(zeros * 9, 10), Fraction(99), Fraction(101), Fraction(10**400)):
        boundary, deeper = true_floor(gap, zeros + 32), true_floor(gap, zeros + 64)
        words = {(word, 0) for word in (0, 1, 7, boundary - 1, boundary + 1, boundary + 5, 2**32 - 1)}
        words |= {divmod(deeper + move, 2**32) for move in (-1, 1)}  # of the boundary itself the next bits decide
        for word, more in words - {(boundary, 0)}:
            if 0 <= word < 2**32:
                [flag] = odds_coins(Batch([gap], doubt), 0, zeros, ScriptedBits(binary(word, 32) + binary(more, 32)))
                assert flag == (word << 32 | more < deeper)


def test_only_those_in_doubt_are_decided_exactly():
    gaps = [Fraction(1), Fraction(2), Fraction(3)]
    batch = Batch(gaps)
    odds_coins(batch, 0, 0, ScriptedBits("0" * 96))
    assert batch.asked == []
    near = "".join(binary(true_floor(gap, 32) + move, 32) for gap, move in zip(gaps, (9, 0, 1), strict=True))
    odds_coins(batch, 0, 0, ScriptedBits(near + "01" * 32))
    assert batch.asked == [1, 2], "four cells on either side"


@pytest.mark.parametrize(("distance", "is_doubted"), [(0.2, False), (0.05, True), (-0.05, True), (-0.2, False)])
def test_doubt_is_that_of_the_gap(distance, is_doubted):
    """A gap of 1/3, give or take a tenth, has a chance of 0.417 within 0.417 * 0.21."""
    batch = Batch([Fraction(1, 3)], 0.1 / (4 / 3))
    word = int((1 / (1 + math.exp(1 / 3)) - distance) * 2**32)
    assert odds_coins(batch, 0, 0, ScriptedBits(binary(word, 32)))[0] == (distance > 0)
    assert bool(batch.asked) is is_doubted


@pytest.mark.parametrize("gap", [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(4)], ids=str)
def test_heads_have_their_odds(gap):
    """Odds of twice as much, or the coin exp(-gap) in place of odds, are something else."""
    draws, right = 40_000, 1 / (1 + math.exp(gap))
    heads = int(odds_coins(Batch([gap] * draws), 0, 0, Draws()).sum())
    found, truth = [heads, draws - heads], [right, 1 - right]
    assert_fits(found, truth)
    wrong = 1 / (1 + math.exp(gap) / 2)
    assert_rejected(found, [wrong, 1 - wrong], truth=truth)
    if gap <= 1:  # far candidates have odds near their chance
        wrong = min(math.exp(-gap), 0.99)
        assert_rejected(found, [wrong, 1 - wrong], truth=truth)


def test_words_and_what_follows_them_have_the_odds():
    """As tries use them: sixteen bits, and the rest only where these do not decide."""
    gap, count, draws = Fraction(7, 3), 200_000, Draws()
    low, high = word_bounds(np.array([float(gap)]), np.array([2.0**-50]))
    words = draws.words(count, WORD_BITS)
    heads = words < low
    left = np.flatnonzero((words < high) & ~heads)
    heads[left] = odds_coins(Batch([gap] * left.size), words[left], WORD_BITS, draws)
    right = 1 / (1 + math.exp(gap))
    found = [int(heads.sum()), count - int(heads.sum())]
    assert_fits(found, [right, 1 - right])
    wrong = right * 1.1
    assert_rejected(found, [wrong, 1 - wrong], truth=[right, 1 - right])
