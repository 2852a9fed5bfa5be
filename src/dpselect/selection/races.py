"""Every mechanism is the first arrival of a race: a run of equal candidates arrives at a time T, and the earliest wins.

Times are revealed bit by bit, as far as a comparison needs. Only the law of T depends on the mechanism.

**Permute-and-flip** (`Arrival`).

Give every candidate a time uniform on [0, 1] and a coin with probability p = exp(-g) of heads. The first head of a run
of m candidates arrives after t with probability (1 - p t)**m, so one uniform V gives its arrival:

    T = (1 - (1 - V)**(1/m)) / p,    ln T = g + ln(1 - exp(-x)),    x = -ln(1 - V) / m;

there is no head if T > 1. The run with the smallest T holds the first head of all.

**The exponential mechanism** (`Tick`). Each candidate has a clock that rings at rate p. The first ring of a run of m
comes after t with probability exp(-m p t), so ln T = g + ln x, and the first ring of all is a candidate with
probability proportional to p.

**Report noisy max** (`TwoSided`), for single candidates only. With Laplace noise of scale one on -g, -ln T is the noisy
score: ln T = g + ln(2 V) up to V = 1/2, and g - ln(2 (1 - V)) from there on.

In all of them, ln T grows with V, so after k bits of V, with value v, it lies between its values at v / 2**k and
(v + 1) / 2**k. Which of two runs comes first depends on the difference of their exponents only, so exponents may have
any common offset and may be negative. Sizes are integers of any length; floats know them by their logarithms.

**Runs** of candidates with equal scores take time linear in the runs: a median over every cent has 10**12 candidates
and few different scores. One arrival time for each run replaces the coins of its members: the run with the earliest
head wins, and by symmetry each of its members is equally likely. A run of m candidates has a head with probability at
most m p. If that is below 2**-8, its V must start with eight zeros, so that cold runs are read only where a Bernoulli
process succeeds.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from operator import itemgetter
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpselect._numbers import float_near
from dpselect._types import Array, Floats, Octets, Positions, Vector
from dpselect.errors import ScoresChanged
from dpselect.selection.draws import Draws
from dpselect.selection.enclosure import log_bracket, scaled_exp
from dpselect.selection.gaps import ALL, Gaps

# A lower and an upper bound of ln T; infinite where there is none.
Bound = Fraction | float
Bracket = tuple[Bound, Bound]

DEPTH = 53
_BITS_PER_STEP = 64
# log1p, expm1, exp and log are assumed accurate to 256 units in the last place (2**-44 relative). y = ln x is
# ln(-ln(1 - V)), at most 80 in size for V >= 2**-115, minus ln m: its error is below 2**-37.6 plus 2**-43 ln m.
# ln(1 - exp(-x)) moves no more than y, so the errors of exp(y), of 1 - exp(-x) and of its logarithm (at most 100 in
# size, where it is not y itself) add less than 2**-37. Below _SMALL, ln(1 - exp(-x)) is y within x = exp(y) < 2**-43.
MARGIN = 2.0**-36
_SMALL = -30.0
# Exponents of this size may represent larger ones that overflowed: they are only lower bounds.
HUGE = 2.0**100
_WIDEST = 2.0**101


def draw_prefixes(zeros: npt.NDArray[np.uint8], draws: Draws) -> Floats:
    """The first 53 bits of each V, given how many of them are leading zeros."""
    words = draws.words(zeros.size, 64) >> np.uint64(64 - DEPTH)
    prefixes: Floats = (words >> zeros.astype(np.uint64)).astype(np.float64)
    return prefixes


def log_sizes(sizes: Sequence[int]) -> Floats:
    """The logarithms of positive integers of any length."""
    return np.array([math.log(size) for size in sizes], dtype=np.float64)


def float_bounds(
    prefixes: Floats,
    exponents: Floats,
    logs: Floats | tuple[Floats, Floats],
    kind: "type[Arrival] | None" = None,
    steps: Floats | float = 1.0,
) -> tuple[Floats, Floats]:
    """Bounds of ln T in float64. Exponents are within a relative 2**-50; beyond 2**100 only lower bounds."""
    # `logs` has the logarithms of the sizes, or lower and upper bounds of them. V lies between the prefix and the
    # prefix plus the step, both in units of 2**-53, and both exact.
    head = (Arrival if kind is None else kind).log_time
    shortest, longest = logs if isinstance(logs, tuple) else (logs, logs)
    doubt = MARGIN * (1 + exponents + longest)
    earliest, latest = head(np.stack([prefixes, prefixes + steps]), np.stack([longest, shortest]))
    with np.errstate(over="ignore"):  # an exponent at the end of the floats: a warning would reveal it
        low, high = exponents + earliest - doubt, exponents + latest + doubt
    return low, np.where(exponents > HUGE, np.inf, high)


def _log_wait(ends: Floats, logs: Floats) -> Floats:
    # The logarithm y of x = -ln(1 - V) / m at V = ends / 2**53: from -inf at V = 0 to inf at V = 1.
    with np.errstate(divide="ignore"):
        return np.log(-np.log1p(ends * -(2.0**-DEPTH))) - logs


@dataclass(frozen=True, repr=False)
class Arrival:
    """What is known about the first head of a run: its exponent and size, and the bits of V so far."""

    comes_by_one: ClassVar[bool] = True  # the best candidate has a head, which arrives by then

    exponent: Fraction
    size: int
    prefix: int
    depth: int = DEPTH

    @staticmethod
    def log_time(ends: Floats, logs: Floats) -> Floats:
        # ln(1 - exp(-x)) at V = ends / 2**53 in floats: from -inf at V = 0 to 0 at V = 1.
        waits = _log_wait(ends, logs)
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(waits < _SMALL, waits, np.log(-np.expm1(-np.exp(np.maximum(waits, _SMALL)))))

    def bracket(self) -> Bracket:
        """Return bounds on ln T; infinite while all bits of V are zeros, or all are ones."""
        digits = 20 + int(0.302 * (self.depth + self.size.bit_length()))
        low, high = self._log_bound(self.prefix, digits, False), self._log_bound(self.prefix + 1, digits, True)
        return -math.inf if low is None else self.exponent + low, math.inf if high is None else self.exponent + high

    def _log_bound(self, end: int, digits: int, upper: bool) -> Fraction | None:
        # A bound on ln(1 - exp(-x)) at V = end / 2**depth; None for minus infinity.
        if end == 1 << self.depth:
            return Fraction(0)
        wait = self._wait(end, digits, upper)
        if wait is None:
            return None
        # 1 - exp(-x) is at least about x >= 2**-depth / m, of which 64 bits and more are kept.
        fine = self.depth + self.size.bit_length() + 80
        left = Fraction(scaled_exp(wait, fine) + (not upper), 1 << fine)
        return log_bracket(1 - left, digits)[upper] if left < 1 else None

    def _wait(self, end: int, digits: int, upper: bool) -> Fraction | None:
        # A bound on x = -ln(1 - V) / m at V = end / 2**depth < 1; None for zero.
        whole = 1 << self.depth
        bound = log_bracket(Fraction(whole, whole - end), digits)[upper] / self.size if end else Fraction(0)
        return bound if bound > 0 else None

    def refined(self, draws: Draws) -> Self:
        """Return the arrival with more bits of V revealed."""
        prefix = self.prefix << _BITS_PER_STEP | draws.bits(_BITS_PER_STEP)
        return type(self)(self.exponent, self.size, prefix, self.depth + _BITS_PER_STEP)


class Tick(Arrival):
    """What is known about the first ring of the clocks of a run."""

    comes_by_one: ClassVar[bool] = False

    @staticmethod
    def log_time(ends: Floats, logs: Floats) -> Floats:
        # ln x at V = ends / 2**53 in floats.
        return _log_wait(ends, logs)

    def _log_bound(self, end: int, digits: int, upper: bool) -> Fraction | None:
        # A bound on ln x at V = end / 2**depth; None where it is infinite.
        wait = None if end == 1 << self.depth else self._wait(end, digits, upper)
        return None if wait is None else log_bracket(wait, digits)[upper]


class TwoSided(Arrival):
    """What is known about the noisy score of a single candidate, with Laplace noise."""

    comes_by_one: ClassVar[bool] = False

    @staticmethod
    def log_time(ends: Floats, logs: Floats) -> Floats:  # noqa: ARG004 - the size is one
        # ln(2 V) or -ln(2 (1 - V)) at V = ends / 2**53 in floats. Both factors are exact.
        shares = ends * 2.0 ** (1 - DEPTH)
        with np.errstate(divide="ignore"):
            return np.where(shares <= 1, 1.0, -1.0) * np.log(np.minimum(shares, 2 - shares))

    def _log_bound(self, end: int, digits: int, upper: bool) -> Fraction | None:
        # A bound on the same at V = end / 2**depth; None where it is infinite.
        whole = 1 << self.depth
        if end in (0, whole):
            return None
        if 2 * end <= whole:
            return log_bracket(Fraction(2 * end, whole), digits)[upper]
        return -log_bracket(Fraction(2 * (whole - end), whole), digits)[not upper]


def draw_arrival(exponent: Fraction, size: int, draws: Draws) -> Arrival:
    """The arrival of a run with 53 bits revealed."""
    return Arrival(exponent, size, draws.bits(DEPTH))


def earlier(first: Arrival, second: Arrival, draws: Draws) -> tuple[int, Arrival]:
    """Which of two arrivals comes first (0 or 1), decided exactly, and that arrival with the bits revealed."""
    # Floats decide unless the bounds overlap. So the work depends on neither the exponents nor the sizes, except
    # in one comparison in about 2**30.
    gap = min(max(float_near(second.exponent - first.exponent), -_WIDEST), _WIDEST)
    (low, high), (others_low, others_high) = bounds(first, max(-gap, 0.0)), bounds(second, max(gap, 0.0))
    if high < others_low:
        return 0, first
    if others_high < low:
        return 1, second
    return next(in_order({0: first, 1: second}, draws))


def bounds(arrival: Arrival, exponent: float) -> tuple[float, float]:
    """What `float_bounds` finds for one arrival, in less time."""
    log_size, prefix = math.log(arrival.size), arrival.prefix >> (arrival.depth - DEPTH)
    doubt = MARGIN * (1 + exponent + log_size)
    low, high = (_log_time(end, log_size) for end in (prefix, prefix + 1))
    return exponent + low - doubt, math.inf if exponent > HUGE else exponent + high + doubt


def _log_time(end: int, log_size: float) -> float:
    # What `Arrival.log_time` finds for one end.
    if end in (0, 1 << DEPTH):
        return 0.0 if end else -math.inf
    wait = math.log(-math.log1p(end * -(2.0**-DEPTH))) - log_size
    return wait if wait < _SMALL else math.log(-math.expm1(-math.exp(wait)))


def earliest(arrivals: dict[int, Arrival], draws: Draws) -> int:
    """The key of the run that arrives first, decided exactly."""
    return next(in_order(arrivals, draws))[0]


def in_order(arrivals: dict[int, Arrival], draws: Draws) -> Iterator[tuple[int, Arrival]]:
    """The runs in the order of their arrivals, decided exactly, each with the bits that were revealed to find it."""
    # Each bracket is found once. More bits are revealed where brackets overlap one another, directly or not.
    for cluster in _clusters({key: arrival.bracket() for key, arrival in arrivals.items()}):
        if len(cluster) == 1:
            yield cluster[0], arrivals[cluster[0]]
        else:
            yield from in_order({key: arrivals[key].refined(draws) for key in sorted(cluster)}, draws)


def first_of(low: Floats, high: Floats, exact: Callable[[int], Arrival], draws: Draws, count: int = 1) -> list[int]:
    """The first arrivals in order: by these bounds of all of them where they decide, and exactly where they do not."""
    limit = high.min() if count == 1 else np.partition(high, count - 1)[count - 1]
    left = np.flatnonzero(low <= limit)
    brackets = dict(zip(left.tolist(), zip(low[left].tolist(), high[left].tolist(), strict=True), strict=True))

    def ordered() -> Iterator[int]:
        for cluster in _clusters(brackets):
            if len(cluster) == 1:
                yield cluster[0]
            else:
                yield from (i for i, _ in in_order({i: exact(i) for i in cluster}, draws))

    return list(islice(ordered(), count))


def _clusters(brackets: Mapping[int, Bracket]) -> Iterator[list[int]]:
    # The keys of brackets that overlap one another, directly or not, from the lowest on.
    cluster: list[int] = []
    reached: Bound = -math.inf
    for key, (low, high) in sorted(brackets.items(), key=itemgetter(1)):
        if cluster and low > reached:
            yield cluster
            cluster = []
        cluster.append(key)
        reached = max(reached, high)
    yield cluster


_ZEROS = 8
_LOG_256 = 5.545177444479562 * (1 + 2.0**-50)
_ROOM = 64
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
    [first] = first_of(low, high, lambda i: Arrival(exponents.exact(i), int(lengths[runs[i]]), int(prefixes[i])), draws)
    winner = int(runs[first])
    index = draws.index_at_once if steady and lengths.dtype != object else draws.index
    return total_of(lengths[:winner]) + index(int(lengths[winner]))


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


def total_of(lengths: Array) -> int:
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
    first = first_of(low, high, lambda i: kind(gaps.exact(int(runs[i])), 1, int(prefixes[i]), int(depths[i])), draws, k)
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
