"""A whole set as one choice, scored by its margin: its smallest count minus the largest outside (theorem 13).

The best set of k scores its gap at rank k. That makes it better, at the same rate, than the canonical mechanism of
Shekelyan & Loukides (2022), in which the best set scores zero. Sizes may be one number, or all in a public interval.

Sort the candidates by their counts x_1 >= x_2 >= ... >= x_d, in any order among equals. A set that is not a prefix has
a first missing rank h + 1 and a last rank t > h + 1, and scores x_t - x_(h+1). There are C(t - h - 2, k - h - 1) of
them of size k: ranks 1 to h and t are in, h + 1 is out, and the others lie between. For all t <= b together these are
C(b - h - 1, k - h), so the sets of one h and of one count x_t are a run, whose length is a difference of two such
numbers. Together with one prefix for each size that makes few runs of astronomical lengths, and the earliest run wins
(`selection.arrivals`). Floats know only bounds of the logarithms of lengths. Integers decide among contenders.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, islice
from typing import NamedTuple

import numpy as np

from dpselect._types import Array, Floats, Positions
from dpselect.selection.arrivals import Arrival, draw_prefixes, float_bounds, settled
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import Rate

_ZEROS = 8
_COLD = -_ZEROS * 0.6931471805599453 * (1 + 2.0**-40)
# A rate beyond these is replaced by the nearer one: exponents stay far inside the slack of a comparison, or beyond all.
_LEAST_RATE, _LARGEST_RATE = 2.0**-900, 2.0**900
# SciPy's gammaln is assumed accurate to 256 units in the last place (2**-44 relative). The logarithm of a binomial
# coefficient has three such terms, none larger than that of the largest factorial, and two sums.
_MARGIN = 2.0**-42
_LARGEST_TABLE = 1 << 22


def choose_margin(  # noqa: PLR0913, PLR0917 - the data, the question, the mechanism and the randomness
    counts: Positions, sizes: Positions, interval: tuple[int, int], rate: Rate, kind: type[Arrival], draws: Draws
) -> list[int]:
    """The ranks, from zero, of a set whose size is in the interval, in ascending order."""
    # `counts` are different, descending and from zero to 2**61; `sizes` is how many candidates have each. The interval
    # is within 1 and the number of candidates less one.
    runs = MarginRuns(counts, sizes, interval, rate)
    return runs.member(runs.earliest(kind, draws), draws)


class LogFactorials:
    # Logarithms of the factorials of whole numbers up to a largest one, and of binomial coefficients.

    def __init__(self, largest: int) -> None:
        self._table = None if largest > _LARGEST_TABLE else _log_factorials(np.arange(largest + 1))
        self.error = _MARGIN * float(_log_factorials(np.array([largest]))[0])  # of a binomial coefficient

    def of(self, numbers: Positions) -> Floats:
        """Return the logarithms; numbers below zero count as zero."""
        known = np.maximum(numbers, 0)
        return _log_factorials(known) if self._table is None else self._table[known]

    def choose(self, n: Positions, r: int) -> Floats:
        """Return ln C(n, r); minus infinity where n < r."""
        return np.where(n < r, -np.inf, self.of(n) - float(self.of(np.array([r]))[0]) - self.of(n - r))


def _log_factorials(numbers: Positions) -> Floats:
    from scipy.special import gammaln  # noqa: PLC0415 - slow to import, and only margins need it

    found: Floats = gammaln(numbers + 1.0)
    return found


class MarginRun(NamedTuple):
    # A run of sets: the first missing rank less one, and the place of the smallest count inside. For the prefix of size
    # k these are k and None.

    h: int
    place: int | None


class MarginRuns:
    """The runs of sets with equal margins, of sizes from `lo` to `hi`. Secret."""

    def __init__(self, counts: Positions, sizes: Positions, interval: tuple[int, int], rate: Rate) -> None:
        self._counts, self._rate, (self._lo, self._hi) = counts, rate, interval
        self._ends: Positions = np.cumsum(sizes)  # the last rank of each count, from one
        self._starts: Positions = self._ends - sizes
        self._logs = LogFactorials(int(self._ends[-1]))
        self._margins = {k: self._at(k) - self._at(k + 1) for k in range(self._lo, self._hi + 1)}  # of prefixes
        self._best = max(self._margins.values())
        self._approximate = min(max(rate.approximate, _LEAST_RATE), _LARGEST_RATE)
        self._first = int(np.searchsorted(self._ends, self._lo + 1))  # the first place that a last rank can have

    def _at(self, rank: int) -> int:
        # The count at a rank, from one.
        return int(self._counts[np.searchsorted(self._ends, rank)])

    def earliest(self, kind: type[Arrival], draws: Draws) -> MarginRun:
        """Return the run that comes first. Of all others, only those are kept that floats do not exclude."""
        runs: list[MarginRun] = []
        kept = [np.empty((3, 0))]
        reached = math.inf
        for own, exponents, lengths, zeros in self._warm(kind, draws):
            prefixes = draw_prefixes(zeros, draws)
            low, high = float_bounds(prefixes, exponents, lengths, kind)
            reached = min(reached, float(high.min()))
            left = np.flatnonzero(low <= reached)
            runs += [own[place] for place in left.tolist()]
            kept.append(np.stack([low, high, prefixes])[:, left])
        low, high, prefixes = np.concatenate(kept, axis=1)
        return runs[settled(low, high, lambda i: kind(*self.exact(runs[i]), int(prefixes[i])), draws)]

    def _warm(self, kind: type[Arrival], draws: Draws) -> Iterator[tuple["_Own", Floats, tuple[Floats, Floats], Array]]:
        # Runs in parts: their exponents, bounds of the logarithms of their lengths, and zeros that V starts with. If
        # the first arrival comes by time one, a run of length m can be it only if V <= m p. Where that is below 2**-8,
        # V starts with eight zeros.
        sizes = list(self._margins)
        exponents = self._exponents(np.array([self._best - margin for margin in self._margins.values()]))
        nothing = np.zeros(len(sizes))
        yield _Own(None, np.array(sizes)), exponents, (nothing, nothing), np.zeros(len(sizes), np.uint8)
        places = np.arange(self._first, self._counts.size)
        for h in range(self._hi):
            exponents = self._exponents(self._best + self._at(h + 1) - self._counts[places])
            longest = self._log_lengths(h, places, upper=True)
            left, zeros = np.arange(places.size), np.zeros(places.size, np.uint8)
            if kind.comes_by_one:
                left, zeros = draws.contenders(longest - exponents > _COLD, _ZEROS)
            is_there = longest[left] > -np.inf
            left, zeros = left[is_there], zeros[is_there]
            if left.size:
                shortest = self._log_lengths(h, places[left], upper=False)
                yield _Own(h, places[left]), exponents[left], (shortest, longest[left]), zeros

    def _exponents(self, differences: Positions) -> Floats:
        # The exponents of margins so far below the best one, with three roundings, each of a relative 2**-53.
        floats: Floats = differences.astype(np.float64) * self._approximate
        return floats

    def _log_lengths(self, h: int, places: Positions, upper: bool) -> Floats:
        # A bound on the logarithm of the length of each run: the sum over all sizes.
        total = np.full(places.size, -np.inf)
        for k in range(max(self._lo, h + 1), self._hi + 1):
            total = np.logaddexp(total, self._log_length(h, places, k, upper))
        # Each sum adds a relative error of 2**-43 to the larger term, which is below its logarithm's own error.
        return total + (self._logs.error if upper else -self._logs.error) * 2

    def _log_length(self, h: int, places: Positions, k: int, upper: bool) -> Floats:
        # A bound on the logarithm of the number of sets of size k, up to the error of the factorials. The last rank t
        # is from a + 1 to b, so the number is between b - a times its smallest and its largest term; and it is the
        # difference C(b - h - 1, r) (1 - exp(-drop)), where the drop of the logarithm has an error, too.
        r, b = k - h, self._ends[places]
        a = np.maximum(self._starts[places], k)
        with np.errstate(divide="ignore", invalid="ignore"):
            many = np.log(np.maximum(b - a, 0).astype(np.float64))
            bound: Floats = many + self._logs.choose(b - h - 2 if upper else a - h - 1, r - 1)
            wide = np.flatnonzero(b > a + 1)
            if wide.size:
                total = self._logs.choose(b[wide] - h - 1, r)
                drop = total - self._logs.choose(a[wide] - h - 1, r)
                error = 2 * self._logs.error
                share = -np.expm1(-(drop + error)) if upper else -np.expm1(-np.maximum(drop - error, 0.0))
                narrower = np.minimum if upper else np.maximum
                bound[wide] = narrower(bound[wide], total + np.log(share))
        return np.where(b > a, bound, -np.inf)

    def exact(self, run: MarginRun) -> tuple[Fraction, int]:
        """Return the exact exponent of a run, and its length."""
        if run.place is None:
            return self._rate.exact * (self._best - self._margins[run.h]), 1
        difference = self._best + self._at(run.h + 1) - int(self._counts[run.place])
        return self._rate.exact * difference, sum(self._lengths(run.h, run.place))

    def _lengths(self, h: int, place: int) -> list[int]:
        return [self._number(h, k, self._last_rank_before(k, place), int(self._ends[place])) for k in self._sizes(h)]

    def _sizes(self, h: int) -> range:
        return range(max(self._lo, h + 1), self._hi + 1)

    def _last_rank_before(self, k: int, place: int) -> int:
        return max(int(self._starts[place]), k)

    @staticmethod
    def _number(h: int, k: int, a: int, b: int) -> int:
        # How many sets of size k have their last rank from a + 1 to b.
        return math.comb(b - h - 1, k - h) - math.comb(a - h - 1, k - h) if b > a else 0

    def member(self, run: MarginRun, draws: Draws) -> list[int]:
        """Return a uniform set of a run: its ranks from zero, in ascending order."""
        h = run.h
        if run.place is None:
            return list(range(h))
        ends = list(accumulate(self._lengths(h, run.place)))
        index = draws.index(ends[-1])
        which = bisect_right(ends, index)
        k = self._sizes(h)[which]
        index -= ends[which - 1] if which else 0
        a = self._last_rank_before(k, run.place)
        last = (
            a
            + 1
            + bisect_right(range(a + 1, int(self._ends[run.place]) + 1), index, key=lambda t: self._number(h, k, a, t))
        )
        between = islice(draws.order(last - h - 2), k - h - 1)
        return sorted([*range(h), *(h + 1 + rank for rank in between), last - 1])


class _Own:
    # The runs of one h, or the prefixes, by their place in a part.

    def __init__(self, h: int | None, places: Positions) -> None:
        self._h, self._places = h, places

    def __getitem__(self, index: int) -> MarginRun:
        place = int(self._places[index])
        return MarginRun(place, None) if self._h is None else MarginRun(self._h, place)
