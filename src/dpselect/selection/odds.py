"""Coins with odds exp(-gap): heads with probability 1 / (1 + exp(gap)), as in logistic regression (Berkson 1944).

Heads is U < 1 / (1 + exp(gap)) for a uniform U whose bits are revealed on demand, so the coin is exact for every
rational gap >= 0. Sixteen bits decide nearly every coin, by whole-number bounds that are computed once for many tries;
32 bits more, in float64 with an error bound, decide nearly all others; exact integers decide the rest.
"""

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpselect._types import Flags, Floats
from dpselect.selection.bits import BitSource
from dpselect.selection.enclosure import scaled_exp

Words = npt.NDArray[np.uint16]

WORD_BITS = 16
_HALF = 2.0 ** (WORD_BITS - 1)
_FRESH_BITS = 32
_BITS_PER_STEP = 32
# exp, the sum and the quotient are accurate to 256 units in the last place together (2**-44 relative), with much room.
_MARGIN = 2.0**-42
# The known bits leave a cell of width 2**-k for U. Four cells cover it and every rounding of numbers of its size.
_SLACK = 4.0
# Larger gaps are reduced to this: their boundary is inside the slack anyway, and floats near 2**-1074 are slow.
_VANISHED = 100.0


class Odds(Protocol):
    """Gaps of a batch of coins: floats, the largest error of each, and the exact rationals. None is negative."""

    approximate: Floats
    doubt: Floats

    def exact(self, index: int) -> Fraction:
        """Return the exact gap of one coin."""
        ...


def odds_coin(gap: Fraction, source: BitSource, prefix: int = 0, depth: int = 0) -> bool:
    """Whether U < 1 / (1 + exp(gap)), given that the first `depth` bits of U are `prefix`.

    At depth k the only undecided prefix is the whole part of 2**k / (1 + exp(gap)), which is irrational unless the gap
    is zero. Then the boundary is one half, and the first bit decides.
    """
    while True:
        boundary = _scaled_probability(gap, depth)
        if prefix != boundary or (not gap and depth):
            return prefix < boundary
        prefix = prefix << _BITS_PER_STEP | source.bits(_BITS_PER_STEP)
        depth += _BITS_PER_STEP


def _scaled_probability(gap: Fraction, depth: int) -> int:
    """floor(2**depth / (1 + exp(gap))), from bounds of e = exp(-gap), because this is 2**depth e / (1 + e)."""
    if not gap:
        return 1 << depth >> 1
    finer = depth + 64
    while True:
        least, whole = scaled_exp(gap, finer), 1 << finer
        low, high = ((e << depth) // (whole + e) for e in (least, least + 1))
        if low == high:
            return low
        finer *= 2


def word_bounds(gaps: Floats, doubts: Floats) -> tuple[Words, Words]:
    """Words below the first bound are heads, those from the second on are tails, and those between are undecided.

    A word w leaves U between w / 2**16 and (w + 1) / 2**16. The boundary is at most one half.
    """
    boundary, error = _boundary(gaps, doubts)
    with np.errstate(over="ignore"):
        low = np.floor(np.maximum(boundary - error, 0.0) * 2 * _HALF)
        high = np.minimum(np.ceil((boundary + error) * 2 * _HALF), _HALF)
    return low.astype(np.uint16), high.astype(np.uint16)


def odds_coins(odds: Odds, prefixes: npt.NDArray[Any] | int, depth: int, source: BitSource) -> Flags:
    """Whether U < 1 / (1 + exp(gap)) for each coin, given the first `depth` bits of each U: at most 20, or zeros."""
    fresh = source.words(odds.approximate.size, _FRESH_BITS)
    cell = 2.0 ** -(_FRESH_BITS + depth)
    lowest = (fresh + np.asarray(prefixes, np.float64) * 2.0**_FRESH_BITS) * cell  # below 2**53 cells, so exact
    boundary, error = _boundary(odds.approximate, odds.doubt)
    distance, doubt = boundary - lowest, error + _SLACK * cell
    heads: Flags = distance > doubt
    for index in (np.abs(distance) <= doubt).nonzero()[0].tolist():
        known = int(lowest[index] / cell)
        heads[index] = odds_coin(odds.exact(index), source, known, _FRESH_BITS + depth)
    return heads


def _boundary(gaps: Floats, doubts: Floats) -> tuple[Floats, Floats]:
    """1 / (1 + exp(gap)) and a bound of its error.

    The logarithm of the boundary moves no more than the gap, so an error d of the gap moves the boundary by a factor
    between exp(-d) and exp(d).
    """
    boundary: Floats = 1 / (1 + np.exp(np.minimum(gaps, _VANISHED)))
    with np.errstate(over="ignore"):
        return boundary, boundary * (_MARGIN + 2 * np.expm1(doubts))
