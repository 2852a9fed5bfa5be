"""Coins of two laws, U < exp(-g) and U < 1 / (1 + exp(g)), bit by bit: what is decided when, against flint's balls."""

from fractions import Fraction

import numpy as np
import pytest

from dpselect.selection.sets import odds_coin, odds_coins
from tests.seam import BitsExhausted, ScriptedBits
from tests.selection.test_coin import EXPONENTS, Batch, binary
from tests.selection.test_enclosure import true_floor
from tests.selection.test_odds import GAPS
from tests.selection.test_odds import Batch as Odds
from tests.selection.test_odds import true_floor as true_odds_floor

pytestmark = pytest.mark.usefixtures("each_kernel")


def flipped(gap, bits, prefix=0, depth=0):
    return ScriptedBits(bits).flip(gap, depth, prefix)


def odd(gap, bits, prefix=0, depth=0):
    return odds_coin(gap, ScriptedBits(bits), prefix, depth)


def finished(gap, bits, prefix, depth, doubting=False):
    return ScriptedBits(bits).finish(Batch([gap]), prefix, depth, **({"margin": 1e9} if doubting else {}))[0]


def odds_finished(gap, bits, prefix, depth, doubting=False):
    return odds_coins(Odds([gap], *([np.inf] if doubting else [])), prefix, depth, ScriptedBits(bits))[0]


ONE = [*((flipped, true_floor, gap) for gap in EXPONENTS), *((odd, true_odds_floor, gap) for gap in GAPS)]
ONES = pytest.mark.parametrize(("coin", "floor", "gap"), ONE, ids=lambda own: getattr(own, "__name__", "g"))
MANY = [(finished, true_floor), (odds_finished, true_odds_floor)]
BATCHES = pytest.mark.parametrize(("coin", "floor"), MANY, ids=["exp", "odds"])


@ONES
@pytest.mark.parametrize("depth", [0, 1, 8, 16, 32, 48, 64, 200])
def test_only_one_prefix_is_undecided(coin, floor, gap, depth):
    """Below the floor of 2**k times the probability is heads, above is tails; the floor itself asks for more bits."""
    boundary = floor(gap, depth)
    for prefix, is_head in ((0, True), (boundary - 1, True), (boundary + 1, False), (2**depth - 1, False)):
        if 0 <= prefix < 2**depth and (prefix < boundary) is is_head and prefix != boundary:
            assert coin(gap, "", prefix, depth) is is_head
    with pytest.raises(BitsExhausted):
        coin(gap, "", boundary, depth)


@ONES
@pytest.mark.parametrize("agreeing", [0, 1, 5, 31, 32, 33, 64, 150])
def test_the_other_bit_forces_the_decision(coin, floor, gap, agreeing):
    """Follow the binary expansion of the probability, then take the other bit: a one where it has a zero is tails."""
    expansion = floor(gap, agreeing + 1)
    other = expansion ^ 1
    for rest in ("0" * 64, "1" * 64):
        assert coin(gap, binary(other, agreeing + 1) + rest) is (other < expansion)


@pytest.mark.parametrize(("coin", "floor"), [(flipped, true_floor), (odd, true_odds_floor)], ids=["exp", "odds"])
def test_a_dry_source_never_decides(coin, floor):
    with pytest.raises(BitsExhausted):
        coin(Fraction(1, 3), binary(floor(Fraction(1, 3), 320), 320))


@BATCHES
@pytest.mark.parametrize("depth", [0, 8, 12, 16, 20])
@pytest.mark.parametrize("gap", [Fraction(1, 3), Fraction(1), Fraction(5)], ids=str)
def test_floats_leave_the_boundary_word_to_further_bits_and_hand_over_all_they_know(coin, floor, gap, depth):
    """In the cell that holds the probability zeros are heads, ones are tails. Next to it no further bit is read."""
    boundary = floor(gap, depth + 32)
    for move, bits, is_head in ((0, "0" * 32, True), (0, "1" * 32, False), (-1, "", True), (1, "", False)):
        high, low = divmod(boundary + move, 2**32)
        prefix = np.array([high], np.uint64) if depth else 0
        assert coin(gap, binary(low, 32) + bits, prefix, depth, doubting=bool(move)) == is_head
    prefix = np.array([boundary >> 32], np.uint64) if depth else 0
    with pytest.raises(BitsExhausted):
        coin(gap, binary(boundary & 0xFFFFFFFF, 32), prefix, depth)
