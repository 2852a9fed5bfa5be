"""The gap of each candidate to the best one, and the exponents rate * gap of the coins, in floats and exactly.

One pass over the scores finds the maximum of every block. A block whose best candidate is far below the overall
maximum has no likely winner and is not read again.

Scores are read more than once, and a long vector is not copied: another thread, or the file of a memory map,
may change them in between. Then a gap may be negative or NaN, or none may be zero. Every read here handles that: it
gives a non-negative exponent or raises `ScoresChanged`, and no loop waits for a candidate that is gone.
"""

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpselect._numbers import float_above, float_below, float_near, rational
from dpselect._scores import losses, not_finite, over_common_denominator
from dpselect._types import Array, Flags, Floats, Octets, Positions, Vector
from dpselect.errors import ScoresChanged
from dpselect.selection import kernel
from dpselect.selection.draws import Exponents
from dpselect.selection.enclosure import log_bracket
from dpselect.selection.lines import Bounds, Distances, Lines, octet_tables

Candidates = npt.NDArray[np.integer] | slice  # positions, or a run of them
ALL = slice(None)

# The maxima of smaller blocks take longer to find, and larger blocks are read again more often.
BLOCK = 256
# In a vector up to this length, flipping every coin is cheaper than finding out which ones matter.
SHORT = 4096
# In a vector up to this length, reading all candidates again is cheaper than finding the blocks that matter.
MIDDLE = 2**15
# A hot candidate can be heads without this many leading zeros.
ZEROS = 8
# If more than one in MANY is hot, an octet for each candidate is cheaper than a list of the hot ones.
MANY = 5
# What the compiled kernel needs beyond the positions that it lists; in a pass over a long vector it lists one candidate
# of _SELDOM at the most, and _FIRST more at its beginning if no large score is known before.
_ROOM, _SELDOM, _FIRST = 16, 128, 8192
# The zeros of cold candidates in such a pass: more if a large score is known before, so that few candidates are hot.
_LESS_DEEP, _DEEP = 10, 12
# The zeros of cold candidates if even the best one needs so many: the most that a coin may be known to start with.
ALL_COLD = 20
# A warm coin is heads with probability 2**-WARM or more.
WARM = 4
# Rates within these bounds neither overflow nor underflow when multiplied by a float that matters. Others use
# exact rationals.
_LARGEST_GAP = 2**64 - 1
_SIGNED, _UNSIGNED = np.dtype(np.int64), np.dtype(np.uint64)
_BITS: dict[int, np.dtype[Any]] = {2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
_LEAST_RATE, _LARGEST_RATE = Fraction(1, 2**900), Fraction(2**900)


@dataclass(frozen=True)
class Rate:
    """The factor c of exp(-c gap), and the tables that depend only on it. Public."""

    exact: Fraction

    @cached_property
    def approximate(self) -> float:
        """The nearest float."""
        return float_near(self.exact)

    @cached_property
    def octets(self) -> tuple[Bounds, Bounds]:
        """The tables of the first octet, for float and for integer gaps."""
        return octet_tables(self.exact)

    @cached_property
    def distances(self) -> Distances:
        """The distance of each octet's line below the best score."""
        return Distances(self.exact)

    @cached_property
    def _cold_gaps(self) -> dict[int, tuple[int, float]]:
        return {}

    def cold_gap(self, zeros: int) -> tuple[int, float]:
        # A gap, above zeros ln(2) / c, beyond which a coin is heads only if its first `zeros` bits are zero. It is
        # rounded down for whole gaps, which are beyond it if they are beyond the whole part, and up for floats.
        if zeros not in self._cold_gaps:
            cold = _log_of_power(zeros) / self.exact
            self._cold_gaps[zeros] = math.floor(cold), float_above(cold)
        return self._cold_gaps[zeros]

    @cached_property
    def warm_gap(self) -> tuple[int, float]:
        # A gap, below WARM ln(2) / c, up to which a coin is heads with probability 2**-WARM or more. It is rounded
        # down: to a whole gap, and to a float.
        warm = log_bracket(Fraction(1 << WARM), 25)[0] / self.exact
        return math.floor(warm), float_below(warm)

    @cached_property
    def is_moderate(self) -> bool:
        """Whether floats can be multiplied by the rate without overflow or underflow."""
        return _LEAST_RATE < self.exact < _LARGEST_RATE


@cache
def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return limits.min, limits.max


@cache
def _log_of_power(zeros: int) -> Fraction:
    # An upper bound on zeros * ln(2).
    return log_bracket(Fraction(1 << zeros), 25)[1]


UNIT_RATE = Rate(Fraction(1))


class Listed(NamedTuple):
    """The hot candidates, at or above the floors, and the number of zeros that the coins of the others need. Secret."""

    zeros: int
    floors: Any
    hot: kernel.Hot


class Gaps:
    """Gaps of a vector of integers or floats. Secret: its repr shows no scores."""

    def __init__(
        self, values: Array, rate: Rate, maximum: Any = None, at_least: Any = None, steady: bool = False
    ) -> None:
        # Gaps to the maximum of the values, to `at_least` if that is larger, or to a given maximum. If `steady`, the
        # maximum is found in time that does not depend on the values, and not for each block.
        self.values, self.rate, self.size = values, rate, values.size
        self._part = values.size  # the number of candidates that share a maximum
        self._at_least = at_least
        self._whole = values.dtype.kind in "iu"
        # The difference of two int64 may need 64 bits without a sign, so subtract modulo 2**64, as uint64.
        self._type = (np.uint64 if values.dtype.kind == "u" else np.int64) if self._whole else np.float64
        if maximum is None:
            if not steady and self.size > SHORT:
                maximum = self._scan.best
            else:
                maximum = steady_maxima(values[np.newaxis])[0] if steady else finite_maximum(values)
                maximum = maximum if at_least is None else max(maximum.item(), at_least)
        self.maximum = np.asarray(maximum, dtype=self._type)

    @property
    def block_maxima(self) -> Array:
        """The maximum of each block."""
        return self._scan.maxima

    @cached_property
    def _scan(self) -> kernel.Scan:
        return scanned(self.values, self._at_least, self.rate.cold_gap(self._zeros)[not self._whole])

    @property
    def _zeros(self) -> int:
        return _LESS_DEEP if self._at_least is None else _DEEP

    @property
    def octets(self) -> Bounds:
        """The table of the first octet, in the type of the gaps."""
        return self.rate.octets[self._whole]

    @property
    def lines(self) -> Lines:
        """The lines that decide coins by their first octets, from the `levels` of candidates."""
        distances = self.rate.distances
        return distances.of_whole_gaps if self._whole else distances.of_float_scores(self.maximum.item())

    def levels(self, run: slice, room: Array) -> Array:
        """Return what the lines compare: integer gaps, or the float scores themselves (float gaps are rounded)."""
        # Integer gaps are written to `room`, an array of uint64 of at least the same length.
        values = self.values[run]
        if not self._whole:
            return values
        gaps = room[: values.size]
        np.subtract(self.maximum, values, out=gaps.view(self._type), dtype=self._type)
        return gaps

    def of(self, values: Array, maximum: Array | None = None) -> Array:
        """Return maximum - values, as uint64 exactly or as float64 rounded once (infinite where that overflows)."""
        maximum = self.maximum if maximum is None else maximum
        if self._whole:
            return np.subtract(maximum, values, dtype=self._type).view(np.uint64)
        with np.errstate(over="ignore"):
            return np.subtract(maximum, values, dtype=np.float64)

    def at(self, candidates: Candidates) -> Array:
        """Return the gaps of some candidates."""
        return self.of(self.values[candidates])

    @property
    def is_to_hint(self) -> bool:
        """Whether the gaps are to a number that was given because no score is larger."""
        return self._at_least is not None and self._at_least == self.maximum.item()

    def best(self, rate: Fraction) -> Fraction:
        """Return the best score, converted back to the units of the caller's scores, which have this rate."""
        best = rational(self.maximum.item())
        return best if self.rate.exact == rate else best * self.rate.exact / rate

    def best_first(self, count: int) -> Positions:
        """Return the positions of the `count` best candidates in order."""
        few = min(count, self.size)
        last = np.partition(self.values, self.size - few)[self.size - few]  # faster than their positions
        better = np.flatnonzero(self.values > last)
        equal = np.flatnonzero(self.values == last)[: few - better.size]
        return np.concatenate([better[np.argsort(self.values[better], kind="stable")[::-1]], equal])

    def floor(self, zeros: int) -> Any:
        """Return a score below which a coin is heads only if its first `zeros` bits are zero."""
        best, (whole, above) = self.maximum.item(), self.rate.cold_gap(zeros)
        if self._whole:
            # If no score of this type reaches the floor, the largest one of the type replaces it: it is not colder.
            smallest, largest = _limits(self.values.dtype)
            return self.values.dtype.type(min(max(best - whole, smallest), largest))
        # The float before the rounded difference is not above the difference itself; minus infinity is below all.
        return np.float64(math.nextafter(best - above, -math.inf))

    def is_hot(self, zeros: int) -> Flags:
        """Return which coins may be heads though not all of their first `zeros` bits are zero."""
        flags: Flags = self.values >= self.floor(zeros)
        return flags

    def floors(self, zeros: int) -> Array:
        """Return the floor of each part of the candidates that has one; here there is one for all."""
        return np.asarray(self.floor(zeros))

    def listed(self) -> Listed | None:
        """Return the hot candidates if the compiled kernel lists them, and if they are few."""
        if self.size <= SHORT:
            return self._few_of(self.size)
        hot = self._scan.hot
        if hot is None or hot.positions.size * MANY > self.size:
            return None
        if not hot.positions.size:
            floor = self.floor(ALL_COLD)
            if np.maximum.reduce(self._scan.maxima) < floor:
                return Listed(ALL_COLD, floor, hot)
        return Listed(self._zeros, self._scan.floor, hot)

    def _few_of(self, width: int) -> Listed | None:
        if not kernel.takes(self.values):
            return None
        floors = self.floors(ZEROS)
        hot = kernel.at_least(self.values, width, floors, self.size // MANY + _ROOM)
        if hot is None or hot.size * MANY > self.size:
            return None
        return Listed(ZEROS, floors, kernel.Hot(hot, self.values[hot]))

    def of_hot(self, hot: kernel.Hot) -> Array:
        """Return the gaps of listed candidates. Their scores are not read again: scattered reads are slow."""
        return self.of(hot.scores)

    def joined(self, listed: Listed, survivors: Positions, zeros: Octets | int) -> kernel.Left:
        """Return the listed candidates, and the survivors that are not listed, whose coins start with these zeros."""
        return kernel.joined(self.values, listed.floors, self._part, listed.hot, survivors, zeros)

    def is_warm(self, run: slice) -> bool:
        """Return whether every coin of a run is heads with probability 2**-WARM or more."""
        # Rounding is monotone: a rounded gap that is smaller than a float comes from a gap that is smaller.
        widest = self.maximum.item() - np.minimum.reduce(self.values[run]).item()
        whole, below = self.rate.warm_gap
        return bool(widest <= whole if self._whole else widest < below)

    def approximate(self, gaps: Array) -> Floats:
        """Return rate * gap with three roundings: the gap's, the rate's and the product's."""
        # The rate is moderate, so an infinite gap or product stands for an exponent beyond 2**100, and a product that
        # underflows for one below 2**-1000: both are far inside the coin's absolute slack.
        if not (self._whole or np.minimum.reduce(gaps, initial=0.0) >= 0):
            raise ScoresChanged
        with np.errstate(over="ignore", under="ignore"):
            return np.multiply(gaps, self.rate.approximate, dtype=np.float64)

    @property
    def largest_exponent(self) -> float:
        """A lower bound on an exponent whose gap or product overflowed."""
        return min(sys.float_info.max, sys.float_info.max * self.rate.approximate)

    def beyond(self, position: int) -> Floats:
        """Return how far each exponent is above that of one candidate: negative for better candidates."""
        # These differences have three roundings, as in `approximate`, however large the exponents are. They are at most
        # `largest_exponent` in size.
        own = self.values[position]
        is_better = self.values > own
        gaps = np.where(is_better, self.of(own, self.values), self.of(self.values, own))
        sizes = np.minimum(self.approximate(gaps), self.largest_exponent)
        return np.where(is_better, -sizes, sizes)

    def exponents(self, positions: Positions) -> Exponents:
        """Return the exponents of the candidates at some positions, rounded as in `approximate`."""
        found = kernel.exponents(self.values, positions, self.maximum, self._part, self.rate.approximate)
        if found is None:
            approximate = self.approximate(self.at(positions))
        else:
            approximate, is_sound = found
            if not is_sound:
                raise ScoresChanged
        return Exponents(approximate, lambda index: self.exact(int(positions[index])))

    def exact(self, position: int) -> Fraction:
        """Return the exact exponent of one candidate."""
        return self._below(self.maximum, position)

    def total(self, counts: Mapping[int, int]) -> Fraction:
        """Return the exact sum of exponents of candidates, each as often as it counts."""
        if not self._whole:
            return sum((times * self.exact(position) for position, times in counts.items()), Fraction(0))
        gaps: list[int] = self.at(np.array(list(counts), np.int64)).tolist()
        return self.rate.exact * sum(times * gap for times, gap in zip(counts.values(), gaps, strict=True))

    def _below(self, maximum: Array, position: int) -> Fraction:
        best, score = maximum.item(), self.values[position].item()
        if not -math.inf < score <= best:
            raise ScoresChanged
        return self.rate.exact * (rational(best) - rational(score))

    def without(self, position: int) -> tuple[Fraction, list["Gaps"]]:
        """Return the exponent of the second best candidate, given the best, and the gaps of all others to it."""
        if self.size <= MIDDLE:
            rest = Gaps(np.delete(self.values, position), self.rate)
            return self._lead(rest.maximum.item()), [rest]
        block, maxima = position // BLOCK, self.block_maxima
        start, stop = block * BLOCK, (block + 1) * BLOCK
        beside = np.delete(self.values[start:stop], position - start)
        kept = [maxima[:block], beside, maxima[block + 1 :]]
        best = max(np.maximum.reduce(part).item() for part in kept if part.size)
        others = [self.values[:start], beside, self.values[stop:]]
        return self._lead(best), [
            Gaps._part_of(values, self.rate, best, highest)
            for values, highest in zip(others, kept, strict=True)
            if values.size
        ]

    @staticmethod
    def _part_of(values: Array, rate: Rate, best: Any, maxima: Array) -> "Gaps":
        # Gaps to a score that need not be one of them, where the maxima of the blocks are known.
        part = Gaps(values, rate, best)
        part.__dict__["_scan"] = kernel.Scan(maxima, True, best)
        return part

    def _lead(self, second: Any) -> Fraction:
        lead = rational(self.maximum.item()) - rational(second)
        if lead < 0:
            raise ScoresChanged
        return self.rate.exact * lead

    def copied(self) -> "Gaps":
        """Return gaps of a copy of the current scores, which nobody can change."""
        return Gaps(np.array(self.values), self.rate)


class RationalGaps(Gaps):
    # Gaps of scores that no array holds exactly, or at an extreme rate. They are the exponents, rounded once.

    def __init__(self, scores: list[Fraction], rate: Rate) -> None:
        self._best = max(scores)
        self._exact = [rate.exact * (self._best - score) for score in scores]
        values = np.array([-_positive_float(exponent) for exponent in self._exact])
        super().__init__(values, UNIT_RATE)

    def best(self, rate: Fraction) -> Fraction:  # noqa: ARG002 - stored in the caller's units
        return self._best

    @property
    def lines(self) -> Lines:
        return self.octets.as_lines()

    def levels(self, run: slice, room: Array) -> Array:  # noqa: ARG002 - not needed for floats
        return self.at(run)

    def exact(self, position: int) -> Fraction:
        return self._exact[position]

    def beyond(self, position: int) -> Floats:
        differences = [exponent - self._exact[position] for exponent in self._exact]
        return np.array([_positive_float(each) if each > 0 else -_positive_float(-each) for each in differences])

    def best_first(self, count: int) -> Positions:
        return np.array(sorted(range(self.size), key=self._exact.__getitem__)[:count], np.int64)

    def without(self, position: int) -> tuple[Fraction, list[Gaps]]:
        others = [-exponent for place, exponent in enumerate(self._exact) if place != position]
        return -max(others), [RationalGaps(others, UNIT_RATE)]

    def copied(self) -> "RationalGaps":
        return self


class RowGaps(Gaps):
    """Gaps of a copy of a matrix, each row relative to its own maximum. Candidates are numbered row by row."""

    def __init__(self, matrix: Array, rate: Rate, steady: bool = False, room: Floats | None = None) -> None:
        # Gaps of a copy of a matrix, in two rows of memory that may be used again: `room`, of eight bytes a score.
        room = np.empty((2, matrix.size)) if room is None else room
        self.shape = matrix.shape
        copy = room[0].view(matrix.dtype)[: matrix.size].reshape(matrix.shape)
        copy[...] = matrix
        super().__init__(
            copy.ravel(), rate, steady_maxima(copy) if steady else maxima_of_parts(copy.ravel(), copy.shape[1])
        )
        self._part, self._room = matrix.shape[1], room[1]

    @cached_property
    def _all(self) -> Array:
        gaps: Array = self._room.view(np.uint64 if self._whole else np.float64)[: self.size]
        rows = self.values.reshape(self.shape), gaps.view(self._type).reshape(self.shape)
        with np.errstate(over="ignore"):
            np.subtract(self.maximum[:, np.newaxis], rows[0], out=rows[1], dtype=self._type)
        return gaps

    def floors(self, zeros: int) -> Array:
        whole, above = self.rate.cold_gap(zeros)
        with np.errstate(over="ignore"):
            if self._whole:  # as in `floor`: the smallest number replaces a floor that no number of the type reaches
                lowest, largest = _limits(self.values.dtype)
                least = lowest + whole  # the smallest maximum whose floor the type holds
                above_least = np.maximum(self.maximum, least) - least if least <= largest else 0 * self.maximum
                floors = above_least + lowest  # both modulo 2**64
            else:
                floors = np.nextafter(self.maximum - above, -np.inf)
        return floors

    def listed(self) -> Listed | None:
        return self._few_of(self.shape[1])

    def of_hot(self, hot: kernel.Hot) -> Array:
        return self.at(hot.positions)

    def at(self, candidates: Candidates) -> Array:
        if isinstance(candidates, np.ndarray):
            found = kernel.gaps(self.values, candidates, self.maximum, self._part)
            if found is not None:
                return found
        return self._all[candidates]

    @property
    def lines(self) -> Lines:
        # Lines for gaps: each row has its own best score, so gaps are compared, not scores.
        return self.rate.distances.of_whole_gaps if self._whole else self.octets.as_lines()

    def is_hot(self, zeros: int) -> Flags:
        # Rounding is monotone: a rounded gap that is larger than a float comes from a gap that is larger.
        whole, above = self.rate.cold_gap(zeros)
        flags: Flags = self._all <= (min(whole, _LARGEST_GAP) if self._whole else above)
        return flags

    def levels(self, run: slice, room: Array) -> Array:
        gaps = self._all[run]
        if self._whole:
            room[: gaps.size] = gaps
        return room[: gaps.size] if self._whole else gaps

    def exact(self, position: int) -> Fraction:
        return self._below(self.maximum[position // self.shape[1]], position)


def _positive_float(exponent: Fraction) -> float:
    # The nearest float; finite, and zero only for zero.
    return min(max(float_near(exponent), math.ulp(0.0)), sys.float_info.max) if exponent else 0.0


def gaps_of(scores: Vector, rate: Rate, *, hint: Fraction | None = None, steady: bool = False) -> Gaps:
    """The gaps of exact scores at a rate to their maximum, or to a larger hint that the type can hold."""
    # A short vector is copied, and so is a long one that becomes Fractions. Other long vectors are read in place.
    if isinstance(scores, np.ndarray):
        if scores.size <= SHORT or not rate.is_moderate:
            scores = np.array(scores)
        if rate.is_moderate:
            return Gaps(scores, rate, at_least=_native(hint, scores.dtype), steady=steady)
        finite_maximum(scores)  # refuses scores that are not finite
        scores = [rational(score) for score in scores.tolist()]
    scaled = over_common_denominator(scores)
    if scaled is not None:
        values, denominator = scaled
        finer = Rate(rate.exact / denominator)
        if finer.is_moderate:
            return Gaps(values, finer, steady=steady)
    return RationalGaps(scores, rate)


def exponents_of(scores: Vector, rate: Rate) -> Floats:
    """The exponents of all candidates, rounded as in `Gaps.approximate`, of scores that nobody else can change."""
    if not (isinstance(scores, np.ndarray) and rate.is_moderate):
        gaps = gaps_of(scores, rate)
        return gaps.approximate(gaps.at(ALL))
    exponents = losses(scores)
    with np.errstate(over="ignore", under="ignore"):
        exponents *= rate.approximate
    return exponents


def _native(number: Fraction | None, dtype: np.dtype[Any]) -> float | int | None:
    # The number, if gaps of this type to it are exact: as 64-bit integers, or as floats.
    if number is None:
        return None
    numerator, denominator = number.numerator, number.denominator
    if dtype.kind == "f":
        near = float_near(number)
        return near if math.isfinite(near) and near.as_integer_ratio() == (numerator, denominator) else None
    smallest, largest = _limits(_UNSIGNED if dtype.kind == "u" else _SIGNED)
    return numerator if denominator == 1 and smallest <= numerator <= largest else None


def scanned(values: Array, best: float | None, gap: float) -> kernel.Scan:
    """The maxima of blocks, the best of them and the one given, and the candidates within the gap of it."""
    # Only the compiled kernel lists these. Values that are not finite are refused.
    is_whole = values.dtype.kind in "iu"
    most = values.size // _SELDOM + (_FIRST if best is None else _ROOM)
    if best is None:
        best = _limits(values.dtype)[0] if is_whole else -math.inf
    found = kernel.scan(values, BLOCK, best, min(gap, _LARGEST_GAP) if is_whole else gap, most)
    if found is None:
        maxima = maxima_of_parts(values, BLOCK)
        return kernel.Scan(maxima, True, max(np.maximum.reduce(maxima).item(), best))
    if not found.is_finite:
        raise not_finite()
    return found


def maxima_of_parts(values: Array, width: int) -> Array:
    """The maximum of each `width` values (the last part may be shorter); refuses values that are not finite."""
    found = kernel.maxima(values, width)
    if found is None:
        starts = np.arange(0, values.size, width)
        plain: Array = _finite_maxima(values, lambda numbers: np.maximum.reduceat(numbers, starts))
        return plain
    maxima, is_finite = found
    if not is_finite:
        raise not_finite()
    return maxima


def finite_maximum(values: Array) -> Any:
    # The maximum of some values; refuses values that are not finite.
    if kernel.takes(values):
        return maxima_of_parts(values, values.size)[0]
    return _finite_maxima(values, np.maximum.reduce, lambda highest: highest)


def _finite_maxima(
    values: Array, maxima: Callable[[Array], Any], highest_of: Callable[[Any], Any] = np.maximum.reduce
) -> Any:
    # What `maxima` finds; refuses values that are not finite. `highest_of` is the highest of what `maxima` finds.
    # Floats without a sign bit are ordered like the integers that have their bits, and infinities and NaN come last:
    # one reduction finds the maximum and proves all values finite. Floats with a sign bit come after all of these, and
    # again infinity and NaN are last among them. So where there is one, the reduction proves all values with a sign bit
    # finite, and a second one finds the maximum of all values.
    if values.dtype.kind != "f":
        return maxima(values)
    bits = maxima(values.view(_BITS[values.dtype.itemsize]))
    found, highest = bits.view(values.dtype), highest_of(bits).view(values.dtype).item()
    is_finite = math.isfinite(highest)
    if math.copysign(1.0, highest) < 0:
        with np.errstate(invalid="ignore"):
            found = maxima(values)
            is_finite &= math.isfinite(highest_of(found))
    if not is_finite:
        raise not_finite()
    return found


def steady_maxima(matrix: Array) -> Array:
    # The maximum of each row, like `maxima_of_parts`, but in time that does not depend on the signs.
    maxima: Array = np.maximum.reduce(matrix, axis=1)
    if matrix.dtype.kind == "f":
        ends = np.minimum.reduce(matrix, axis=None), np.maximum.reduce(maxima)
        if not np.isfinite(ends).all():
            raise not_finite()
    return maxima
