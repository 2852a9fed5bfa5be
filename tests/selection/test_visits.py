"""By default every candidate is visited, whatever the coins say; with early exit the walk stops at the first head."""

from fractions import Fraction

import numpy as np

from dpselect.mechanisms.permute_and_flip import choose_early, choose_head
from dpselect.selection.gaps import Rate, gaps_of
from tests.seam import ScriptedBits

UNIT = Rate(Fraction(1))


def bits_used(choose, scores, script):
    source = ScriptedBits(script)
    choose(gaps_of(scores, UNIT), source)
    return source.used


def test_the_default_reveals_as_many_bits_for_heads_as_for_tails():
    """An octet a candidate before the choice: with all coins heads, with only the best one heads."""
    scores = np.array([0.0, -1.0, -1.0, -1.0])
    all_heads = bits_used(choose_head, scores, "0" * 400)
    only_best = bits_used(choose_head, scores, "0" * 8 + "1" * 24 + "0" * 100)
    assert all_heads - 2 == only_best == 4 * 8  # two more bits choose one head of four


def test_few_hot_ones_among_many_reveal_as_many_bits_for_heads_as_for_tails():
    """An octet a candidate says which cold ones survive; then thirty-two bits for each hot one."""
    scores = np.array([0.0, -1.0, -1.0, -1.0, *[-50.0] * 60])
    no_survivor = "1" * 8 * 64
    all_heads = bits_used(choose_head, scores, no_survivor + "0" * 400)
    only_best = bits_used(choose_head, scores, no_survivor + "0" * 32 + "1" * 96 + "0" * 100)
    assert all_heads - 2 == only_best == 8 * 64 + 4 * 32


def test_early_exit_stops_at_the_first_head():
    scores = np.zeros(1000)
    assert bits_used(choose_early, scores, "0" * 100) == 10 + 8  # the first slot of the order, one octet of its coin
