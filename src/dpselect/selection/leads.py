"""Permute-and-flip with its gap: the winner, and how far it is above the second in the noise, in whole units.

Permute-and-flip is the largest c q_r + E_r with exponential noise E_r of mean one (Ding et al. 2021). Let r win, and G
be its noisy score minus the second largest, in units of the scores. What is drawn is r and floor(c G), exactly
(theorem 21 of docs/theory.md says what that proves, and what it costs).

The coins of permute-and-flip are heads for the candidates whose noisy score exceeds c q*, the best one without noise.
Each head exceeds it by an exponential variable of mean one, because the exponential distribution has no memory.

**Two or more heads.** The winner is the head with the largest excess, a uniform one. Of m independent exponential
variables of mean one, the largest exceeds the second largest by an exponential variable of mean one, for every m >= 2,
whichever is the largest (Renyi 1953). So floor(c G) is independent of the winner, and counts how often in a row a coin
exp(-1) is heads.

**One head.** It is the best candidate w, and the only best one. Its noisy score is an arrival without an exponent
(`races`): c G = ln T' - ln T, for T of w and T' of the first arrival of the others, given that none of them is heads,
T' > 1. Let q' be the best score of the others, and flip their coins against it: those that are heads, m of them, exceed
c q' by independent exponential variables, so T' is the first arrival of a run of m equal candidates with exponent
c (q* - q'). It is drawn again until it comes after 1. Given one head, that takes one over the probability of this case,
so the expected number of these draws is at most one for each selection.

Adding a floor of ln T' to one of -ln T would not be a function of G alone. So bits of both are revealed until the floor
of the difference is decided.
"""

import math
from fractions import Fraction

from dpselect._numbers import float_near
from dpselect.selection.draws import Draws
from dpselect.selection.enclosure import scaled_exp
from dpselect.selection.flips import choose_long_with_rivals, count_heads, flip_at_once, flip_listed
from dpselect.selection.gaps import MIDDLE, Gaps
from dpselect.selection.races import Arrival, Bracket, bounds, draw_arrival

_ONE = Fraction(1)
# Below this, a float is a whole number if it equals its floor, and sums of such floats are exact.
_LARGEST = 2.0**50


def choose_with_gap(gaps: Gaps, draws: Draws) -> tuple[int, int]:
    """The winner, and the floor of its gap in the noise, of two candidates or more."""
    winner, is_alone = _winner(gaps, draws)
    return winner, _gap_alone(gaps, winner, draws) if is_alone else _heads_in_a_row(draws)


def _winner(gaps: Gaps, draws: Draws) -> tuple[int, bool]:
    # A uniform head, and whether it is the only one.
    members = flip_listed(gaps, draws)
    if members is None:
        if gaps.size > MIDDLE:
            return choose_long_with_rivals(gaps, draws)
        members = flip_at_once(gaps, draws)
    return int(members[draws.index(members.size)]), members.size == 1


_WORD = 64
_BOUNDARY = scaled_exp(_ONE, _WORD)


def _heads_in_a_row(draws: Draws) -> int:
    # Coins exp(-1), each decided by its first word unless that is the one on the boundary.
    number = 0
    while (word := draws.bits(_WORD)) < _BOUNDARY or (word == _BOUNDARY and draws.flip(_ONE, _WORD, word)):
        number += 1
    return number


def _gap_alone(gaps: Gaps, winner: int, draws: Draws) -> int:
    lead, others = gaps.without(winner)
    while True:
        second = draw_arrival(lead, sum(count_heads(part, draws) for part in others), draws)
        comes_after_one, second = _comes_after_one(second, draws)
        if comes_after_one:
            return _whole_difference(draw_arrival(Fraction(0), 1, draws), second, draws)


def _comes_after_one(arrival: Arrival, draws: Draws) -> tuple[bool, Arrival]:
    # Whether ln T > 0, decided exactly, and the arrival with the bits that were revealed.
    bracket: Bracket = bounds(arrival, float_near(arrival.exponent))
    while bracket[0] <= 0 <= bracket[1]:
        bracket = arrival.bracket()
        if bracket[0] <= 0 <= bracket[1]:
            arrival = arrival.refined(draws)
    return bracket[0] > 0, arrival


def _whole_difference(first: Arrival, second: Arrival, draws: Draws) -> int:
    # The floor of ln T' - ln T, decided exactly.
    (low, high), (others_low, others_high) = bounds(first, 0.0), bounds(second, float_near(second.exponent))
    # Each difference is rounded once, by less than the doubt that the bounds include.
    least, most = others_low - high, others_high - low
    if -math.inf < least and most < _LARGEST and math.floor(least) == math.floor(most):
        return math.floor(least)
    while True:
        (start, end), (others_start, others_end) = first.bracket(), second.bracket()
        if math.inf not in (-start, -others_start, end, others_end):
            whole = math.floor(others_start - end)
            if whole == math.floor(others_end - start):
                return whole
        first, second = first.refined(draws), second.refined(draws)
