"""Several quantiles at once by recursive splitting (Kaplan, Schnapp & Stemmer 2022), with ties that can be split.

The middle level is answered first, on all people. Its answer splits the people into a lower and an upper part, each of
which is asked for its half of the other levels, and so on. A person is in one part of each depth, so a depth costs as
much as one question, and m levels have ceil(log2(m + 1)) depths instead of m questions.

Many people may have the same value. So the public grid is refined: each person has, in addition to their value, a
sub-place, a uniform number of 32 bits, and a cut is a place between people who may share a value. Sub-places are
independent of everything else, and are drawn when they are needed: only near a cut. They stay the same through all
depths. The answer is the value of the cut. The last level of a part is not split again, and is chosen among values.

Let a part have n people at places p_1 <= ... <= p_n between lo and hi, and let the level be a/b within the part. A cut
x with j people below it has the score -|b j - a n|, and the cuts with j people below are those from p_j + 1 to p_(j+1):
n + 1 runs. Only those near the rank a n / b can be chosen, unless something very unlikely happens. So only their places
are drawn, and all cuts below and all cuts above them are two more runs, of which only bounds of the scores are known
(`select_bounded`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dpselect._types import Integers, Lengths
from dpselect.mechanisms.several import SelectsSeveral
from dpselect.questions.rows import Places, quantile_score_runs
from dpselect.selection.draws import Draws

_BITS = 32
SUB_PLACES = 1 << _BITS
# A value that more people share than this is resolved only where it must be.
_MANY = 1 << 20
# The runs that are not drawn are chosen with a probability of about exp(-_DOUBT).
_DOUBT = 30.0

Subs = npt.NDArray[np.uint32]


class SubPlaces:
    """The sub-places of people who share a value, in order, drawn as far as they are asked for. Secret."""

    # How many of `count` people have a sub-place that starts with a zero is a sum of fair coins, and so on for each
    # bit.

    def __init__(self, count: int, draws: Draws, many: int = _MANY, depth: int = 0, prefix: int = 0) -> None:
        self.count, self._draws, self._many = count, draws, many
        self._depth, self._prefix = depth, prefix
        self._sorted: Subs | None = None
        self._halves: tuple[SubPlaces, SubPlaces] | None = None

    def between(self, start: int, stop: int) -> Subs:
        """Return those with ranks from `start` to before `stop`."""
        if start >= stop:
            return np.empty(0, np.uint32)
        if self.count <= self._many or self._depth == _BITS:
            return self._all[start:stop]
        low, high = self._split
        return np.concatenate(
            [low.between(start, min(stop, low.count)), high.between(max(start - low.count, 0), stop - low.count)]
        )

    def below(self, sub: int) -> int:
        """Return how many are below a sub-place."""
        if self.count <= self._many or self._depth == _BITS:
            return int(np.searchsorted(self._all, sub))
        low, high = self._split
        return low.below(sub) if sub <= high.first else low.count + high.below(sub)

    @property
    def first(self) -> int:
        """The smallest sub-place that can be here."""
        return self._prefix << (_BITS - self._depth)

    @property
    def _split(self) -> tuple["SubPlaces", "SubPlaces"]:
        if self._halves is None:
            zeros = self._draws.fair_heads(self.count)
            depth, prefix = self._depth + 1, self._prefix << 1
            low = SubPlaces(zeros, self._draws, self._many, depth, prefix)
            self._halves = low, SubPlaces(self.count - zeros, self._draws, self._many, depth, prefix | 1)
        return self._halves

    @property
    def _all(self) -> Subs:
        if self._sorted is None:
            words: Subs = self._draws.words(self.count, _BITS)
            known = words >> np.uint32(self._depth) if self._depth < _BITS else np.zeros(self.count, np.uint32)
            self._sorted = np.sort(known | np.uint32(self.first))
        return self._sorted


class People:
    """The places of people on the refined grid, in order. Secret."""

    # A value between two candidates stands at the lower one.

    def __init__(self, data: Places, draws: Draws, many: int = _MANY) -> None:
        self.values: Lengths
        self.values, starts = np.unique(data.places, return_index=True)
        self.numbers: Integers = np.add.reduceat(data.individuals, starts) if starts.size else np.empty(0, np.int64)
        self.ends: Integers = np.cumsum(self.numbers)
        self._draws, self._many = draws, many
        self._drawn = np.zeros(self.values.size, np.bool_)
        self._subs: Subs | None = None
        self._crowds: dict[int, SubPlaces] = {}

    @property
    def total(self) -> int:
        return int(self.ends[-1]) if self.ends.size else 0

    def places(self, start: int, stop: int) -> list[int]:
        """Return the places of the people with ranks from `start` to before `stop`, in order."""
        if start >= stop:
            return []
        first, last = (int(np.searchsorted(self.ends, rank, side="right")) for rank in (start, stop - 1))
        parts: list[int] = []
        for low, high, is_crowd in self._pieces(first, last + 1):
            begin = int(self.ends[low] - self.numbers[low])
            wanted = max(start, begin), min(stop, int(self.ends[high - 1]))
            subs = (
                self._crowd(low).between(wanted[0] - begin, wanted[1] - begin)
                if is_crowd
                else self._drawn_between(low, high)[wanted[0] - begin : wanted[1] - begin]
            )
            values = np.repeat(self.values[low:high], self.numbers[low:high])[wanted[0] - begin : wanted[1] - begin]
            parts += [value << _BITS | sub for value, sub in zip(values.tolist(), subs.tolist(), strict=True)]
        return parts

    def below(self, place: int) -> int:
        """Return how many people are below a place."""
        value, sub = place >> _BITS, place & (SUB_PLACES - 1)
        index = int(np.searchsorted(self.values, np.uint64(value)))
        before = int(self.ends[index - 1]) if index else 0
        if index == self.values.size or int(self.values[index]) != value:
            return before
        if self._is_crowd(index):
            return before + self._crowd(index).below(sub)
        return before + int(np.searchsorted(self._drawn_between(index, index + 1), np.uint32(sub)))

    def _pieces(self, first: int, last: int) -> list[tuple[int, int, bool]]:
        crowds = (np.flatnonzero(self.numbers[first:last] > self._many) + first).tolist()
        ends = sorted({first, last, *crowds, *(crowd + 1 for crowd in crowds)})
        return [(low, high, self._is_crowd(low)) for low, high in pairwise(ends)]

    def _is_crowd(self, index: int) -> bool:
        return int(self.numbers[index]) > self._many

    def _crowd(self, index: int) -> SubPlaces:
        if index not in self._crowds:
            self._crowds[index] = SubPlaces(int(self.numbers[index]), self._draws, self._many)
        return self._crowds[index]

    def _drawn_between(self, first: int, last: int) -> Subs:
        if self._subs is None:
            self._subs = np.empty(self.total, np.uint32)
        begins = self.ends - self.numbers
        missing = np.flatnonzero(~self._drawn[first:last]) + first
        for own in np.split(missing, np.flatnonzero(np.diff(missing) != 1) + 1) if missing.size else []:
            start, stop = int(begins[own[0]]), int(self.ends[own[-1]])
            keys = np.repeat(np.arange(own.size, dtype=np.uint64) << np.uint64(_BITS), self.numbers[own])
            keys |= self._draws.words(stop - start, _BITS)
            keys.sort()
            self._subs[start:stop] = keys.astype(np.uint32)  # the lower half
            self._drawn[own] = True
        return self._subs[int(begins[first]) : int(self.ends[last - 1])]


@dataclass(frozen=True, repr=False)
class Part:
    """The people with ranks from `start` to before `stop`, at places from `low` to `high`. The ranks are secret."""

    start: int
    stop: int
    low: int
    high: int

    @property
    def size(self) -> int:
        return self.stop - self.start


def split_quantiles(
    data: Places, size: int, levels: Sequence[Fraction], mechanism: Callable[[Fraction], SelectsSeveral], draws: Draws
) -> list[int]:
    """The indices of answers for increasing levels on a grid of `size` candidates. They do not decrease."""
    # `mechanism` returns the mechanism that draws for a level within a part, at the price of one depth.
    denominator = math.lcm(*(level.denominator for level in levels))
    wanted = [int(level * denominator) for level in levels]
    people = People(data, draws)
    answers = [0] * len(levels)

    def solve(part: Part, first: int, last: int, below: int, above: int) -> None:
        if first == last:
            return
        middle = (first + last) // 2
        level = Fraction(wanted[middle] - below, above - below)
        if last - first == 1:
            answers[middle] = _leaf(people, part, level, mechanism(level))
            return
        cut, rank = _cut(people, part, level, mechanism(level))
        answers[middle] = cut >> _BITS
        solve(Part(part.start, rank, part.low, cut), first, middle, below, wanted[middle])
        solve(Part(rank, part.stop, cut, part.high), middle + 1, last, wanted[middle], above)

    solve(Part(0, people.total, 0, size * SUB_PLACES - 1), 0, len(levels), 0, denominator)
    return answers


def _cut(people: People, part: Part, level: Fraction, mechanism: SelectsSeveral) -> tuple[int, int]:
    runs = _CutRuns.near(people, part, level, _reach(part, mechanism, level.denominator))
    if runs.is_complete:
        cut = part.low + mechanism.select_runs([-distance for distance in runs.bounds], runs.lengths)
    else:
        run, rank = mechanism.select_bounded(runs.below_best, runs.lengths, runs.distance)
        cut = runs.firsts[run] + rank
    return cut, people.below(cut)


def _reach(part: Part, mechanism: SelectsSeveral, denominator: int) -> int:
    # A cut farther from the best rank is chosen only with a probability of about exp(-_DOUBT).
    nats = math.log(part.high - part.low + 1) + _DOUBT
    return math.ceil(Fraction(nats) / (mechanism.rate * denominator)) + 2  # a rate may be beyond all floats


@dataclass(frozen=True, repr=False)
class _CutRuns:
    """Runs of cuts: those within reach, with one number of people below each, and all before and all after them.

    Attributes:
        bounds: the distance |b j - a n| of each run; a lower bound of it where the number j of people varies.
        inside: the number of runs of which the distance is exact. They come first.
    """

    people: People
    part: Part
    level: Fraction
    firsts: list[int]
    lengths: list[int]
    bounds: list[int]
    inside: int

    @classmethod
    def near(cls, people: People, part: Part, level: Fraction, reach: int) -> "_CutRuns":
        a, b, n = level.numerator, level.denominator, part.size
        enough = b * reach
        while True:
            first, last = max(a * n // b - reach, 0), min(a * n // b + 1 + reach, n)
            known = people.places(part.start + max(first - 1, 0), part.start + min(last + 1, n))
            # The places of the people numbered from `first` to `last` + 1, from one; beyond them the ends of the part.
            ends = [*([part.low - 1] if first == 0 else []), *known, *([part.high] if last == n else [])]
            inside = [
                (before + 1, after - before, abs(b * j - a * n))
                for j, (before, after) in zip(range(first, last + 1), pairwise(ends), strict=True)
                if after > before
            ]
            outside = [
                (part.low, ends[0] + 1 - part.low, a * n - b * (first - 1)),
                (ends[-1] + 1, part.high - ends[-1], b * (last + 1) - a * n),
            ]
            outside = [run for run in outside if run[1] > 0]
            best = min((distance for _, _, distance in inside), default=None)
            if best is not None and all(best + enough <= bound for _, _, bound in outside):
                firsts, lengths, bounds = map(list, zip(*inside, *outside, strict=True))
                return cls(people, part, level, firsts, lengths, bounds, len(inside))
            reach *= 2  # many people share a place

    @property
    def is_complete(self) -> bool:
        return self.inside == len(self.lengths)

    @property
    def below_best(self) -> list[int]:
        best = min(self.bounds[: self.inside])
        return [bound - best for bound in self.bounds]

    def distance(self, run: int, rank: int) -> int:
        # The people below a cut are counted, if they are not known.
        best, exact = min(self.bounds[: self.inside]), self.bounds[run]
        if run >= self.inside:
            j = self.people.below(self.firsts[run] + rank) - self.part.start
            exact = abs(self.level.denominator * j - self.level.numerator * self.part.size)
        return exact - best


def _leaf(people: People, part: Part, level: Fraction, mechanism: SelectsSeveral) -> int:
    lowest, highest = part.low >> _BITS, part.high >> _BITS
    first, last = (int(np.searchsorted(people.ends, rank, side="right")) for rank in (part.start, part.stop - 1))
    own = slice(first, last + 1) if part.size else slice(0, 0)
    ends = np.minimum(people.ends[own], part.stop)
    begins = np.maximum(people.ends[own] - people.numbers[own], part.start)
    places = people.values[own] - np.uint64(lowest)
    data = Places(places, np.zeros(places.size, np.bool_), ends - begins)
    return lowest + mechanism.select_runs(*quantile_score_runs(data, highest - lowest + 1, level))
