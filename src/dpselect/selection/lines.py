"""The first octet of many coins, decided by work that does not depend on the scores.

A coin with probability p = exp(-rate * gap) whose U starts with the octet b is heads if (b + 1)/256 <= p, tails if
b/256 >= p, and open otherwise. In terms of the gap, with

    t_k = ln(256/k) / rate,    k = 1, ..., 256,

it is heads if gap <= t_(b+1), and not tails if gap <= t_b (always for b = 0). As t_k falls with k, exactly one octet
leaves a given gap open, and so the coins of n candidates are left open with probability 1/256 each, independently,
for any scores. Only a gap of zero would be heads under every octet; here the octet 255 leaves it open. This is
exact for integer gaps. A few floats next to a line are open under two octets, because the line itself is rounded.

`octets` decides the same, except that there a gap of zero is heads under every octet.
"""

import math
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpselect._numbers import float_near
from dpselect._types import Array, Flags, Floats, Octets
from dpselect.selection import kernel
from dpselect.selection.enclosure import log_bracket
from dpselect.selection.octets import OctetTable

_LARGEST_UINT64 = 2**64 - 1
_DIGITS = 45
_LAST = 255
# The longest table of lines. It must stay in the first-level cache: otherwise its speed would depend on the gaps.
_LONGEST_TABLE = 2**14


class Lines(Protocol):
    """Decides coins by their first octets."""

    def decide(self, levels: Array, octets: Octets) -> tuple[Flags, Flags]:
        """Return which coins are surely heads and which are open, from what these lines compare: gaps or scores.

        Integer gaps may be overwritten.
        """
        ...


class GapTable:
    """Lines for integer gaps: one look-up finds the octet that leaves a gap open. Beyond the table it is zero."""

    def __init__(self, whole: npt.NDArray[np.uint64]) -> None:
        """Build the table from floor(t_k): its entry is the number of k < 256 with gap <= t_k."""
        rising = whole[-2::-1]
        gaps = np.arange(int(rising[-1]) + 2, dtype=np.uint64)
        self._lines: Octets = (rising.size - np.searchsorted(rising, gaps)).astype(np.uint8)
        self._last = gaps[-1]

    def decide(self, levels: Array, octets: Octets) -> tuple[Flags, Flags]:
        """Return which coins are surely heads, and which are open."""
        found = kernel.table(levels, self._lines, octets)
        if found is not None:
            return found
        np.minimum(levels, self._last, out=levels)
        lines = self._lines.take(levels.view(np.int64), mode="clip")
        return octets < lines, octets == lines


class GapBounds:
    """Gaps of any type: the largest that is heads under each octet, and the largest that is not tails.

    Where `heads[b]` is `possible[b + 1]`, one octet leaves a gap open. Bounds of rounded gaps are apart by some units
    in the last place; what lies between them is open under two octets.
    """

    def __init__(self, heads: Array, possible: Array) -> None:
        self._heads, self._possible = heads, possible

    def decide(self, levels: Array, octets: Octets) -> tuple[Flags, Flags]:
        """Return which coins are surely heads, and which are open."""
        found = kernel.octets(levels, self._heads, self._possible, octets, last=_LAST)
        if found is not None:
            return found
        indices = octets.astype(np.intp)
        heads: Flags = levels <= self._heads.take(indices, mode="clip")
        heads &= octets != _LAST
        return heads, (levels <= self._possible.take(indices, mode="clip")) ^ heads


class LeastScores:
    """Lines for float scores, which are compared directly, because gaps are rounded. Secret: depends on the best.

    `heads[b]` is a score from which on a coin is surely heads under the octet b, and `possible[b]` one below which it
    is surely tails. Nearly always `heads[b]` is `possible[b + 1]`, the least float with gap <= t_(b+1).
    """

    def __init__(self, heads: Floats, possible: Floats) -> None:
        self._heads, self._possible = heads, possible

    def decide(self, levels: Array, octets: Octets) -> tuple[Flags, Flags]:
        """Return which coins are surely heads, and which are open."""
        found = kernel.octets(levels, self._heads, self._possible, octets, scores=True, last=_LAST)
        if found is not None:
            return found
        indices = octets.astype(np.intp)
        heads: Flags = levels >= self._heads.take(indices, mode="clip")
        heads &= octets != _LAST
        return heads, (levels >= self._possible.take(indices, mode="clip")) ^ heads


class Distances:
    """The distances t_k of a rate, and the lines that follow from them. Public."""

    def __init__(self, rate: Fraction) -> None:
        self._rate = rate

    @cached_property
    def of_whole_gaps(self) -> Lines:
        """Return the lines of gaps in uint64: a whole gap is at most t_k if it is at most floor(t_k)."""
        whole = np.array([self._floor(k) for k in range(1, 257)], np.uint64)
        if whole[0] < _LONGEST_TABLE:
            return GapTable(whole)
        return GapBounds(whole, np.concatenate([[np.uint64(_LARGEST_UINT64)], whole[:-1]]))

    def _floor(self, k: int) -> int:
        """floor(t_k), exactly; the largest uint64 where it is beyond. ln(256/k) is irrational for 0 < k < 256."""
        digits = _DIGITS
        while k < 256:
            low, high = (math.floor(bound / self._rate) for bound in _log(k, digits))
            if low == high or low > _LARGEST_UINT64:
                return min(low, _LARGEST_UINT64)
            digits *= 2
        return 0

    def of_float_scores(self, best: float) -> Lines:
        """Return the lines of float scores below the best one: the least float that is not below best - t_k.

        With t = high + low + d, |d| <= 2**-105 t, two exact sums (Knuth's) and one rounded difference u give
        best - t = s + e + d' with |e| <= ulp(s)/2 and |d'| <= 2**-53 |u| + 2**-104 t. Where |e| is larger than that
        bound, its sign says whether s or the float after it is the least. Elsewhere the lines are drawn apart: s minus
        and plus the doubt, one float further. Scores between them are left open under two octets, and settled
        exactly like every open coin. That happens where best - t_k cancels, or its low bits vanish by chance; the
        work is the same.
        """
        high, low = self._doubles
        with np.errstate(all="ignore"):  # a warning on overflow or underflow would reveal the best score
            first, residue = _exact_sum(np.float64(best), -high)
            rest = residue - low
            nearest, error = _exact_sum(first, rest)
            doubt = np.abs(rest) * 2.0**-52 + high * 2.0**-103
            is_sure = np.abs(error) > doubt
            least = np.where(error > 0, np.nextafter(nearest, np.inf), nearest)
            apart = 2 * (np.abs(error) + doubt)
            above = np.where(is_sure, least, np.nextafter(nearest + apart, np.inf))
            below = np.where(is_sure, least, np.nextafter(nearest - apart, -np.inf))
        return LeastScores(above, np.concatenate([[-np.inf], below[:-1]]))

    @cached_property
    def _doubles(self) -> tuple[Floats, Floats]:
        """t_k as sums of two floats."""
        middles = [sum(_log(k, _DIGITS)) / (2 * self._rate) for k in range(1, 256)]
        high = [float_near(middle) for middle in middles]
        low = [float_near(middle - Fraction(top)) for middle, top in zip(middles, high, strict=True)]
        return np.array([*high, 0.0]), np.array([*low, 0.0])


def of_rounded_gaps(table: OctetTable) -> Lines:
    """The lines of gaps that are rounded to floats."""
    return GapBounds(table.near, table.far)


@cache
def _log(k: int, digits: int) -> tuple[Fraction, Fraction]:
    """Bounds of ln(256/k)."""
    return log_bracket(Fraction(256, k), digits)


def _exact_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum of two floats, and its exact error (Knuth 1969); nothing here is large enough to overflow."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
