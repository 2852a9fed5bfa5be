"""The first eight bits of many coins at once: two table look-ups and two comparisons per candidate.

A coin with probability p = exp(-rate * gap) whose U starts with the octet b is heads if (b + 1)/256 <= p, tails if
b/256 >= p, and open otherwise. In terms of the gap, with

    t_k = ln(256/k) / rate,    k = 1, ..., 256,

it is heads if gap <= t_(b+1), and not tails if gap <= t_b (always for b = 0). All but about one coin in 256 are
decided. Tables are rounded outward, so a decision is never wrong.

**Lines**, for work that does not depend on the scores. As t_k falls with k, exactly one octet leaves a given gap open,
and so the coins of n candidates are left open with probability 1/256 each, independently, for any scores. Only a gap of
zero would be heads under every octet; with lines the octet 255 leaves it open. This is exact for integer gaps. A few
floats next to a line are open under two octets, because the line itself is rounded.
"""

import math
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpselect._numbers import float_above, float_below, float_near
from dpselect._types import Array, Flags, Floats, Octets, Positions
from dpselect.selection import kernel
from dpselect.selection.enclosure import log_bracket, refined

_LARGEST_UINT64 = 2**64 - 1
_DIGITS = 45
_LAST = 255
# The longest table of lines. It must stay in the first-level cache: otherwise its speed would depend on the gaps.
_LONGEST_TABLE = 2**14


class Lines(Protocol):
    """Decides coins by their first octets."""

    def decide(self, levels: Array, octets: Octets) -> tuple[Flags, Positions]:
        """Return which coins are surely heads, and which are open. Integer gaps may be overwritten."""
        ...


class Bounds:
    """Gaps of any type: the largest that is heads under each octet, and the largest that is not tails."""

    # With `is_score`, scores are compared in place of gaps: from `near` on a coin is surely heads, and below `far` it
    # is surely tails. Then the bounds are secret, because they depend on the best score. Octets from `last` on leave a
    # coin open that they would make heads.

    def __init__(self, near: Array, far: Array, last: int = _LAST + 1, is_score: bool = False) -> None:
        self.near, self.far, self.last, self.is_score = near, far, last, is_score

    def decide(self, levels: Array, octets: Octets) -> tuple[Flags, Positions]:
        found = kernel.octets(levels, self.near, self.far, octets, scores=self.is_score, last=self.last)
        if found is not None:
            return found[0], found[1].nonzero()[0]
        indices = octets.astype(np.intp)  # as `take` would, twice
        reaches = np.greater_equal if self.is_score else np.less_equal
        heads: Flags = reaches(levels, self.near.take(indices, mode="clip"))
        if self.last <= _LAST:
            heads &= octets < self.last
        return heads, (reaches(levels, self.far.take(indices, mode="clip")) ^ heads).nonzero()[0]

    def as_lines(self) -> "Bounds":
        """Return the lines of gaps rounded to floats: the same, but the octet 255 leaves a gap of zero open."""
        # Bounds of rounded gaps are apart by some units in the last place; what lies between is open under two octets.
        return Bounds(self.near, self.far, _LAST)


class GapTable:
    # Lines for integer gaps: one look-up finds the octet that leaves a gap open. Beyond the table it is zero.

    def __init__(self, whole: npt.NDArray[np.uint64]) -> None:
        # Build the table from floor(t_k): its entry is the number of k < 256 with gap <= t_k.
        rising = whole[-2::-1]
        gaps = np.arange(int(rising[-1]) + 2, dtype=np.uint64)
        self._lines: Octets = (rising.size - np.searchsorted(rising, gaps)).astype(np.uint8)
        self._last = gaps[-1]

    def decide(self, levels: Array, octets: Octets) -> tuple[Flags, Positions]:
        found = kernel.table(levels, self._lines, octets)
        if found is None:
            np.minimum(levels, self._last, out=levels)
            lines = self._lines.take(levels.view(np.int64), mode="clip")
            found = octets < lines, octets == lines
        return found[0], found[1].nonzero()[0]


@cache
def _negated_logs() -> tuple[Floats, Floats]:
    # Lower bounds of -ln((b + 1) / 256) and upper bounds of -ln(b / 256).
    brackets = [log_bracket(Fraction(256, b), 25) for b in range(1, 256)]
    lower = [*(float_below(low) for low, _ in brackets), 0.0]
    upper = [np.inf, *(float_above(high) for _, high in brackets)]
    return np.array(lower), np.array(upper)


def octet_tables(rate: Fraction) -> tuple[Bounds, Bounds]:
    """The bounds of float64 gaps and those of uint64 gaps."""
    # They are near[b] <= -ln((b + 1) / 256) / rate and far[b] >= -ln(b / 256) / rate, with far[0] = infinity. Every
    # float operation below is rounded to nearest, so one step to the neighbouring float encloses the exact result. A
    # float gap is itself rounded: `gap <= near` must imply that the *exact* gap is within the bound. Rounding is
    # monotone, so a rounded gap strictly below a float bound comes from an exact gap strictly below it; hence a second
    # step. A gap is zero exactly when its rounding is, so near = 0 needs no step.
    lower, upper = _negated_logs()
    with np.errstate(over="ignore", under="ignore"):
        near = np.nextafter(lower * float_below(1 / rate), 0.0)
        far = np.nextafter(upper * float_above(1 / rate), np.inf)
    floats = Bounds(np.nextafter(near, 0.0), np.nextafter(far, np.inf))
    integers = Bounds(_floor_to_uint64(near), _floor_to_uint64(far))
    return floats, integers


def _floor_to_uint64(bounds: Floats) -> npt.NDArray[np.uint64]:
    # floor, capped at the largest uint64: no gap exceeds that, so the cap says "heads" in near, "not tails" in far.
    capped = bounds >= 2.0**64
    whole = np.floor(np.where(capped, 0.0, bounds)).astype(np.uint64)
    return np.where(capped, np.iinfo(np.uint64).max, whole).astype(np.uint64)


class Distances:
    """The distances t_k of a rate, and the lines that follow from them. Public."""

    def __init__(self, rate: Fraction) -> None:
        self._rate = rate

    @cached_property
    def of_whole_gaps(self) -> Lines:
        """The lines of gaps in uint64: a whole gap is at most t_k if it is at most floor(t_k)."""
        whole = np.array([self._floor(k) for k in range(1, 257)], np.uint64)
        if whole[0] < _LONGEST_TABLE:
            return GapTable(whole)
        return Bounds(whole, np.concatenate([[np.uint64(_LARGEST_UINT64)], whole[:-1]]), _LAST)

    def _floor(self, k: int) -> int:
        # floor(t_k), exactly; the largest uint64 where it is beyond. ln(256/k) is irrational for 0 < k < 256.
        def floor(digits: int) -> int | None:
            low, high = (math.floor(bound / self._rate) for bound in _log(k, digits))
            return min(low, _LARGEST_UINT64) if low == high or low > _LARGEST_UINT64 else None

        return refined(floor, _DIGITS) if k < 256 else 0

    def of_float_scores(self, best: float) -> Lines:
        """Return the lines of float scores below the best one: the least float that is not below best - t_k."""
        # With t = high + low + d, |d| <= 2**-105 t, two exact sums (Knuth's) and one rounded difference u give
        # best - t = s + e + d' with |e| <= ulp(s)/2 and |d'| <= 2**-53 |u| + 2**-104 t. Where |e| is larger than that
        # bound, its sign says whether s or the float after it is the least. Elsewhere the lines are drawn apart: s
        # minus and plus the doubt, one float further. Scores between them are left open under two octets, and settled
        # exactly like every open coin. That happens where best - t_k cancels, or its low bits vanish by chance; the
        # work is the same.
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
        return Bounds(above, np.concatenate([[-np.inf], below[:-1]]), _LAST, is_score=True)

    @cached_property
    def _doubles(self) -> tuple[Floats, Floats]:
        middles = [sum(_log(k, _DIGITS)) / (2 * self._rate) for k in range(1, 256)]
        high = [float_near(middle) for middle in middles]
        low = [float_near(middle - Fraction(top)) for middle, top in zip(middles, high, strict=True)]
        return np.array([*high, 0.0]), np.array([*low, 0.0])


@cache
def _log(k: int, digits: int) -> tuple[Fraction, Fraction]:
    # Bounds of ln(256/k).
    return log_bracket(Fraction(256, k), digits)


def _exact_sum(a: Any, b: Any) -> tuple[Any, Any]:
    # The rounded sum of two floats, and its exact error (Knuth 1969); nothing here is large enough to overflow.
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
