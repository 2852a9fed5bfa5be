"""Selections from runs of candidates with equal scores, in time linear in the runs, and the first k in order.

A median over every cent has 10**12 candidates and few different scores.

**Permute-and-flip** (McKenna & Sheldon 2020). One arrival time for each run (see `selection.arrivals`) replaces the
coins of its members: the run with the earliest head wins, and by symmetry each of its members is equally likely. A run
of m candidates has a head with probability at most m p. If that is below 2**-8, its V must start with eight zeros, so
that cold runs are read only where a Bernoulli process succeeds.

**The exponential mechanism** (McSherry & Talwar 2007). A candidate with exponent g has a level j <= g / ln 2. Propose a
candidate with probability proportional to 2**-j, accept it with probability 2**j exp(-g) <= 1, repeat: the accepted one
has probability proportional to exp(-g). With 2**(J - j) tickets for each candidate, a proposal is one uniform integer,
of any length. Levels end at J, where 2**J is more than 2**8 times the number of candidates. There are at least 2**J
tickets (of the best candidate), and fewer than 2**(J - 8) of candidates at J. A proposal at any other level is accepted
with probability 1/2 or (because levels are rounded) hardly less. So there are 2.1 proposals on average, or fewer, for
any scores and lengths.

**In order**: the k candidates with the largest noisy scores, from one draw of noise (theorem 15 of docs/theory.md). In
the form of Ding et al. (2021) permute-and-flip is the candidate with the largest q_i + E_i. Here all of the first k are
returned (one shot). With e_i = c (q* - q_i) and E_i = -ln(U_i) / c, they are the k smallest T_i = U_i exp(e_i): the
first k arrivals of single candidates. With clocks in place of arrivals, the order is that of one exponential mechanism
after another (Plackett 1975), or of Gumbel noise (Durfee & Rogers 2019).

For arrivals, let e be the exponent of the k-th best candidate. At least k candidates have T <= exp(e), so another one
can be among the first k only if U_i <= exp(e - e_i). If that is below 2**-8, its U starts with eight zeros, and those
that do are found by geometric skips. 53 bits of each U that is left decide nearly always; exact arithmetic decides the
rest. Of a long run of equal scores, only members whose U starts with many zeros get bits of their own: how many, is
again found by geometric skips.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, islice, pairwise

import numpy as np

from dpselect._types import Array, Floats, Octets, Positions, Vector
from dpselect.errors import ScoresChanged
from dpselect.selection.arrivals import DEPTH, Arrival, draw_prefixes, float_bounds, in_order, log_sizes, settled
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import ALL, Gaps

_ZEROS = 8
_LOG_256 = 5.545177444479562 * (1 + 2.0**-50)
_ROOM = 64
# At most 1 / ln 2, and less by a relative 2**-49: the computed exponent is above the exact one by at most a relative
# 2**-50.9, and this number, with its three roundings, and the product add four times 2**-53; in all less than 2**-49.
_BITS_PER_UNIT = (1 - 2.0**-49) / math.log(2)

# A number of candidates whose U starts with these bits: their value, and how many.
Group = tuple[int, int, int]
# Candidates as (run, rank) pairs: the members of each run are numbered from zero.
Members = list[tuple[int, int]]


# Runs.


def choose_in_runs(gaps: Gaps, lengths: Array, draws: Draws, steady: bool = False) -> int:
    """The position of a uniform head in the vector in which each score is repeated `lengths` times."""
    # The lengths are 64-bit or Python's integers. If `steady`, no run is skipped, and runs may be empty; otherwise each
    # has a candidate.
    every = np.arange(gaps.size), np.zeros(gaps.size, np.uint8)
    runs, zeros = every if steady else _warm_runs(gaps, lengths, draws)
    if not runs.size:  # the best run was hot when it was first read, so the scores changed
        raise ScoresChanged
    prefixes = draw_prefixes(zeros, draws)
    exponents = gaps.exponents(runs)
    finite = np.minimum(exponents.approximate, gaps.largest_exponent)
    low, high = float_bounds(prefixes, finite, _logs(lengths[runs]))
    low, high = (np.where(lengths[runs] == 0, np.inf, bound) for bound in (low, high))  # an empty run has no head
    first = settled(low, high, lambda i: Arrival(exponents.exact(i), int(lengths[runs[i]]), int(prefixes[i])), draws)
    winner = int(runs[first])
    index = draws.index_at_once if steady and lengths.dtype != object else draws.index
    return _total(lengths[:winner]) + index(int(lengths[winner]))


def _warm_runs(gaps: Gaps, lengths: Array, draws: Draws) -> tuple[Positions, Octets]:
    # The runs that may have a head, and the number of leading zeros of V that are known. No run is longer than 2**k, so
    # a run whose members have p < 2**-(k + 8) is cold.
    return draws.contenders(gaps.is_hot(int(lengths.max()).bit_length() + _ZEROS), _ZEROS)


def _logs(lengths: Array) -> Floats:
    # The logarithms of the lengths; zero for an empty run.
    if lengths.dtype == object:
        return log_sizes(np.maximum(lengths, 1).tolist())
    logs: Floats = np.log(np.maximum(lengths, np.uint64(1)).astype(np.float64))
    return logs


def choose_by_tickets(gaps: Gaps, lengths: Array, draws: Draws) -> int:
    """A position in the vector in which each score is repeated, with probability proportional to exp(-exponent)."""
    # The lengths are positive, and 64-bit or Python's integers. Nobody may change the scores meanwhile.
    last = _total(lengths).bit_length() + _ZEROS
    tickets = Tickets(levels_of(gaps.approximate(gaps.at(ALL)), last), lengths, last)
    _, _, (run, rank) = next(tickets.accepted(lambda run, _: gaps.exact(run), draws))
    return int(lengths[:run].sum() if lengths.dtype == object else _total(lengths[:run])) + rank


class Tickets:
    """Proposals of candidates from runs, each with probability proportional to 2**-level of its run. Secret."""

    # An exponent is at least ln 2 times the level. So a proposal is accepted with probability 2**level exp(-exponent),
    # which needs the exact exponent of this candidate only: a run may hold candidates of different scores.

    def __init__(self, levels: Positions, lengths: Array, last: int) -> None:
        # Runs with a level from zero to `last`. The lengths are positive, and 64-bit or Python's integers.
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
        """Draw candidates with probability proportional to exp(-exponent), one after another."""
        # `exponent` returns the exact exponent of a candidate, given its run and rank. For each candidate that is
        # drawn, return the number of proposals since the last one, its exponent, and its run and rank.
        passed = 0
        while True:
            passed += 1
            level, run, rank = self._propose(draws)
            exact = exponent(run, rank)
            if draws.flip(exact, zeros=level):
                yield passed, exact, (run, rank)
                passed = 0

    def _propose(self, draws: Draws) -> tuple[int, int, int]:
        ticket = draws.index(self._tickets[-1])
        place = bisect_right(self._tickets, ticket) - 1
        rank = self._starts[place] + (ticket - self._tickets[place] >> self._shifts[place])
        within = bisect_right(self._ends, rank, key=int)
        run = int(self._order[within])
        return self._levels[place], run, rank - int(self._ends[within]) + int(self._lengths[run])


def levels_of(exponents: Floats, last: int) -> Positions:
    """A whole number j <= exponent / ln 2 for each exponent, at most `last`: the largest, or hardly ever one less."""
    # Exponents are floats, each within a relative 2**-50.9.
    with np.errstate(over="ignore", under="ignore"):  # at the ends of the floats: a warning would reveal it
        levels: Positions = np.minimum(np.floor(exponents * _BITS_PER_UNIT), last).astype(np.int64)
    return levels


def _total(lengths: Array) -> int:
    # The exact sum of up to 2**32 64-bit integers, or of Python's integers.
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


# The first k in order.


@dataclass(frozen=True, repr=False)
class Tier:
    """Members of runs whose upsets start with at least `zeros` zeros, numbered run by run. Secret."""

    zeros: int
    runs: Positions
    ends: Positions | None = None  # of the runs, in members; None if each has one

    @classmethod
    def of(cls, zeros: int, runs: Positions, lengths: Positions) -> "Tier":
        """Return the members of some runs of these lengths."""
        return cls(zeros, runs) if lengths.strides == (0,) else cls(zeros, runs, np.cumsum(lengths[runs]))

    @property
    def size(self) -> int:
        """The number of members."""
        if self.ends is None:
            return self.runs.size
        return int(self.ends[-1]) if self.ends.size else 0

    def members(self) -> tuple[Positions, Positions]:
        """Return the run of every member, and its rank there."""
        if self.ends is None:
            return self.runs, np.broadcast_to(np.int64(0), self.runs.shape)
        return self.located(np.arange(self.size))

    def located(self, members: Positions) -> tuple[Positions, Positions]:
        """Return the run of each member, and its rank there."""
        if self.ends is None:
            return self.runs[members], np.zeros(members.size, np.int64)
        place = np.searchsorted(self.ends, members, side="right")
        starts = np.concatenate([[0], self.ends[:-1]])
        return self.runs[place], members - starts[place]


def single(count: int) -> Positions:
    """Lengths of so many runs of one candidate each, in no memory. `Tier.of` knows them by their stride."""
    return np.broadcast_to(np.int64(1), (count,))


def best_members(gaps: Gaps, lengths: Positions, k: int) -> tuple[Positions, int]:
    """How many members of each run are among the k best, and the run of the last of these."""
    order = gaps.best_first(k)
    ends = np.cumsum(lengths[order])
    counts = np.zeros(lengths.size, np.int64)
    counts[order] = np.clip(k - (ends - lengths[order]), 0, lengths[order])
    return counts, int(order[np.searchsorted(ends, k)])


def choose_in_order(gaps: Gaps, sizes: Positions, k: int, kind: type[Arrival], draws: Draws) -> Members:
    """The first k candidates in order, at most all. The sizes of runs are positive."""
    exponents = np.minimum(gaps.approximate(gaps.at(ALL)), gaps.largest_exponent)
    excess = _excess(gaps, sizes, k) if kind.comes_by_one else np.zeros(sizes.size)
    runs, prefixes, depths = _members_in_play(excess, sizes, k, draws)
    steps = np.ldexp(1.0, (DEPTH - depths).astype(np.int32))
    low, high = float_bounds(prefixes * steps, exponents[runs], np.zeros(runs.size), kind, steps)
    first = _first(low, high, k, lambda i: kind(gaps.exact(int(runs[i])), 1, int(prefixes[i]), int(depths[i])), draws)
    chosen = runs[first].tolist()
    ranks: dict[int, Iterator[int]] = {}
    for run in chosen:
        ranks.setdefault(run, draws.order(int(sizes[run])))
    return [(run, next(ranks[run])) for run in chosen]


def _excess(gaps: Gaps, sizes: Positions, k: int) -> Floats:
    # How far each exponent is above that of the k-th best candidate, at least.
    excess: Floats = gaps.beyond(best_members(gaps, sizes, k)[1]) * (1 - 2.0**-50)
    return excess


def _members_in_play(excess: Floats, sizes: Positions, k: int, draws: Draws) -> tuple[Positions, Floats, Positions]:
    # The run of each candidate that may be among the first k, the first bits of its U, and how many these are. The bits
    # are those that are known, and as many more as a float holds exactly.
    is_hot = excess <= _LOG_256
    is_long = np.where(is_hot, sizes > 1, sizes >> _ZEROS > 4 * k + _ROOM)
    single = np.flatnonzero(is_hot & ~is_long)
    parts: list[tuple[Positions, Group]] = [(single, (single.size, 0, 0))]
    for run in np.flatnonzero(is_long).tolist():
        parts += [(np.full(group[0], run), group) for group in _thinned(int(sizes[run]), k, draws)]
    cold = np.flatnonzero(~is_hot & ~is_long)
    if cold.size:
        tier = Tier.of(_ZEROS, cold, sizes)
        survivors = tier.located(draws.survivors(tier.size, _ZEROS))[0]
        parts.append((survivors, (survivors.size, 0, _ZEROS)))
    many = [group[0] for _, group in parts]
    known, depths = (np.repeat(np.array([group[i] for _, group in parts], np.int64), many) for i in (1, 2))
    fresh: Positions = DEPTH - known  # a known one takes the place of one bit
    words = draws.words(known.size, 64) >> (64 - fresh).astype(np.uint64)
    prefixes: Floats = known.astype(np.float64) * 2.0 ** (DEPTH - 1) + words
    deeper: Positions = depths + fresh
    return np.concatenate([own for own, _ in parts]), prefixes, deeper


def _thinned(size: int, k: int, draws: Draws) -> Iterator[Group]:
    # Groups of members of a run that have its first k among them. Those whose U starts with so many zeros that more
    # than twice as many are expected are nearly always enough. Where they are not, those follow whose U has one zero
    # less, and then a one: 2**-z of all, and 1 / (2**z - 1) of the rest.
    zeros = max((size // (2 * k + _ROOM)).bit_length() - 1, 0)
    found = draws.survivors(size, zeros).size if zeros else size
    yield found, 0, zeros
    left = size - found
    while found < k and left:
        more = left
        if zeros > 1:
            survivors = draws.survivors(left, zeros - 1)
            more = sum(draws.index(2**zeros - 1) < 2 ** (zeros - 1) for _ in range(survivors.size))
        yield more, 1, zeros
        found, left, zeros = found + more, left - more, zeros - 1


def _first(low: Floats, high: Floats, k: int, exact: Callable[[int], Arrival], draws: Draws) -> list[int]:
    limit = np.partition(high, k - 1)[k - 1]
    left = np.flatnonzero(low <= limit)
    left = left[np.argsort(low[left], kind="stable")]
    chosen: list[int] = []
    for cluster in _clusters(low[left], high[left]):
        places = left[cluster].tolist()
        if len(places) > 1:
            ordered = in_order({place: exact(place) for place in places}, draws)
            places = [place for place, _ in islice(ordered, k - len(chosen))]
        chosen += places
        if len(chosen) >= k:
            break
    return chosen


def _clusters(low: Floats, high: Floats) -> Iterator[slice]:
    # Slices of intervals that overlap one another, directly or not. They are sorted by their lower ends.
    breaks = np.flatnonzero(low[1:] > np.maximum.accumulate(high)[:-1]) + 1
    return (slice(start, stop) for start, stop in pairwise([0, *breaks.tolist(), low.size]))
