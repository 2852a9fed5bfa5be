"""Selections from runs of candidates with equal scores, in time linear in the runs.

A median over every cent has 10**12 candidates and few different scores.

Permute-and-flip (McKenna & Sheldon 2020). One arrival time for each run (see `selection.arrival`) replaces the coins of
its members: the run with the earliest head wins, and by symmetry each of its members is equally likely. A run of m
candidates has a head with probability at most m p. If that is below 2**-8, its V must start with eight zeros, so that
cold runs are read only where a Bernoulli process succeeds.

The exponential mechanism (McSherry & Talwar 2007). A candidate with exponent g has a level j <= g / ln 2. Propose a
candidate with probability proportional to 2**-j, accept it with probability 2**j exp(-g) <= 1, repeat: the accepted one
has probability proportional to exp(-g). With 2**(J - j) tickets for each candidate, a proposal is one uniform integer,
of any length. Levels end at J, where 2**J is more than 2**8 times the number of candidates. There are at least 2**J
tickets (of the best candidate), and fewer than 2**(J - 8) of candidates at J. A proposal at any other level is accepted
with probability 1/2 or (because levels are rounded) hardly less. So there are 2.1 proposals on average, or fewer, for
any scores and lengths.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from dpselect._types import Array, Floats, Positions, Vector
from dpselect.errors import ScoresChanged
from dpselect.selection.arrival import Arrival, draw_prefixes, earliest, float_bounds, log_sizes
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import Gaps

_ZEROS = 8
# At most 1 / ln 2, and less by a relative 2**-49: the computed exponent is above the exact one by at most a relative
# 2**-50.9, and this number, with its three roundings, and the product add four times 2**-53; in all less than 2**-49.
_BITS_PER_UNIT = (1 - 2.0**-49) / math.log(2)


def choose_in_runs(gaps: Gaps, lengths: Array, draws: Draws, steady: bool = False) -> int:
    """The position of a uniform head in the vector in which each score is repeated `lengths` times.

    The lengths are 64-bit or Python's integers. If `steady`, no run is skipped, and runs may be empty; otherwise each
    has a candidate.
    """
    winner = _earliest_run(gaps, lengths, draws, steady)
    index = draws.index_at_once if steady and lengths.dtype != object else draws.index
    return _total(lengths[:winner]) + index(int(lengths[winner]))


def _earliest_run(gaps: Gaps, lengths: Array, draws: Draws, steady: bool) -> int:
    runs, zeros = _every_run(gaps) if steady else _warm_runs(gaps, lengths, draws)
    if not runs.size:  # the best run was hot when it was first read, so the scores changed
        raise ScoresChanged
    prefixes = draw_prefixes(zeros, draws.source)
    exponents = gaps.exponents(runs)
    finite = np.minimum(exponents.approximate, gaps.largest_exponent)
    low, high = float_bounds(prefixes, finite, _logs(lengths[runs]))
    low, high = (np.where(lengths[runs] == 0, np.inf, bound) for bound in (low, high))  # an empty run has no head
    place = settled(low, high, lambda i: Arrival(exponents.exact(i), int(lengths[runs[i]]), int(prefixes[i])), draws)
    return int(runs[place])


def settled(low: Floats, high: Floats, exact: Callable[[int], Arrival], draws: Draws) -> int:
    """Which of several arrivals is the first: by these bounds of them if one is below all others, else exactly."""
    left = np.flatnonzero(low <= high.min()).tolist()
    return int(left[0]) if len(left) == 1 else earliest({i: exact(i) for i in left}, draws.source)


def _logs(lengths: Array) -> Floats:
    """The logarithms of the lengths; zero for an empty run."""
    if lengths.dtype == object:
        return log_sizes(np.maximum(lengths, 1).tolist())
    logs: Floats = np.log(np.maximum(lengths, np.uint64(1)).astype(np.float64))
    return logs


def _every_run(gaps: Gaps) -> tuple[Positions, npt.NDArray[np.uint8]]:
    """All runs, with no known bits of V."""
    return np.arange(gaps.size), np.zeros(gaps.size, np.uint8)


def _warm_runs(gaps: Gaps, lengths: Array, draws: Draws) -> tuple[Positions, npt.NDArray[np.uint8]]:
    """The runs that may have a head, and the number of leading zeros of V that are known.

    No run is longer than 2**k, so a run whose members have p < 2**-(k + 8) is cold.
    """
    coldest_hot = gaps.floor(int(lengths.max()).bit_length() + _ZEROS)
    hot = np.flatnonzero(gaps.values >= coldest_hot)
    survivors = draws.survivors(gaps.size, _ZEROS)
    cold = survivors[gaps.values[survivors] < coldest_hot]
    zeros = np.repeat(np.array([0, _ZEROS], np.uint8), [hot.size, cold.size])
    return np.concatenate([hot, cold]), zeros


def choose_by_tickets(gaps: Gaps, lengths: Array, draws: Draws) -> int:
    """A position in the vector in which each score is repeated, with probability proportional to exp(-exponent).

    The lengths are positive, and 64-bit or Python's integers. Nobody may change the scores meanwhile.
    """
    last = _total(lengths).bit_length() + _ZEROS
    tickets = Tickets(_levels(gaps, last), lengths, last)
    _, _, (run, rank) = next(tickets.accepted(lambda run, _: gaps.exact(run), draws))
    return int(lengths[:run].sum() if lengths.dtype == object else _total(lengths[:run])) + rank


class Tickets:
    """Proposals of candidates from runs, each with probability proportional to 2**-level of its run. Secret.

    An exponent is at least ln 2 times the level. So a proposal is accepted with probability 2**level exp(-exponent),
    which needs the exact exponent of this candidate only: a run may hold candidates of different scores.
    """

    def __init__(self, levels: Positions, lengths: Array, last: int) -> None:
        """Runs with a level from zero to `last`. The lengths are positive, and 64-bit or Python's integers."""
        total = _total(lengths)
        if total >= 2**64:  # then 64 bits do not hold all sums below
            lengths = lengths.astype(object)
        self._order = np.argsort(levels, kind="stable")
        self._lengths = lengths
        self._ends = np.cumsum(lengths[self._order])  # of the runs, with the highest level last
        found, firsts = np.unique(levels[self._order], return_index=True)
        self._levels: list[int] = found.tolist()
        self._starts = [0, *(int(self._ends[first - 1]) for first in firsts[1:].tolist()), total]
        self._shifts = [last - level for level in self._levels]
        sizes = [stop - start for start, stop in pairwise(self._starts)]
        self._tickets = list(
            accumulate((size << shift for size, shift in zip(sizes, self._shifts, strict=True)), initial=0)
        )
        self.mass = Fraction(self._tickets[-1], 1 << last)  # the sum of 2**-level over all candidates

    def accepted(
        self, exponent: Callable[[int, int], Fraction], draws: Draws
    ) -> Iterator[tuple[int, Fraction, tuple[int, int]]]:
        """Draw candidates with probability proportional to exp(-exponent), one after another.

        `exponent` returns the exact exponent of a candidate, given its run and rank. For each candidate that is drawn,
        return the number of proposals since the last one, its exponent, and its run and rank.
        """
        passed = 0
        while True:
            passed += 1
            level, run, rank = self._propose(draws)
            exact = exponent(run, rank)
            if draws.flip(exact, zeros=level):
                yield passed, exact, (run, rank)
                passed = 0

    def _propose(self, draws: Draws) -> tuple[int, int, int]:
        """The level, the run and the rank of a candidate."""
        ticket = draws.index(self._tickets[-1])
        place = bisect_right(self._tickets, ticket) - 1
        rank = self._starts[place] + (ticket - self._tickets[place] >> self._shifts[place])
        within = bisect_right(self._ends, rank, key=int)
        run = int(self._order[within])
        return self._levels[place], run, rank - int(self._ends[within]) + int(self._lengths[run])


def _levels(gaps: Gaps, last: int) -> Positions:
    """A whole number j <= exponent / ln 2 for each run, at most `last`: the largest one, or hardly ever one less."""
    return levels_of(gaps.approximate(gaps.at(slice(None))), last)


def levels_of(exponents: Floats, last: int) -> Positions:
    """The same for exponents in floats, each within a relative 2**-50.9."""
    with np.errstate(over="ignore", under="ignore"):  # at the ends of the floats: a warning would reveal it
        levels: Positions = np.minimum(np.floor(exponents * _BITS_PER_UNIT), last).astype(np.int64)
    return levels


def _total(lengths: Array) -> int:
    """The exact sum of up to 2**32 64-bit integers, or of Python's integers."""
    if lengths.dtype == object:
        return int(lengths.sum())
    half = np.uint64(32)
    high, low = int((lengths >> half).sum()), int((lengths & np.uint64(2**32 - 1)).sum())
    return (high << 32) + low


def with_lowest_for_empty(scores: Array, lengths: Array) -> Array:
    """The scores, with the lowest one in place of the scores of empty runs, so that none of these is the best."""
    return np.where(lengths == 0, np.minimum.reduce(scores), scores)


def without_empty(scores: Vector, lengths: Array) -> tuple[Vector, Array]:
    """The runs that are not empty."""
    kept = np.flatnonzero(lengths)
    if kept.size == lengths.size:
        return scores, lengths
    present = scores[kept] if isinstance(scores, np.ndarray) else [scores[i] for i in kept.tolist()]
    return present, lengths[kept]
