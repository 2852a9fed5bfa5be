"""The k candidates with the largest noisy scores, in order, from one draw of noise (theorem 15 of docs/theory.md).

In the form of Ding et al. (2021) permute-and-flip is the candidate with the largest q_i + E_i. Here all of the first k
are returned (one shot). With e_i = c (q* - q_i) and E_i = -ln(U_i) / c, they are the k smallest T_i = U_i exp(e_i): the
first k arrivals of single candidates (`selection.arrival`). With clocks in place of arrivals, the order is that of one
exponential mechanism after another (Plackett 1975), or of Gumbel noise (Durfee & Rogers 2019).

For arrivals, let e be the exponent of the k-th best candidate. At least k candidates have T <= exp(e), so another one
can be among the first k only if U_i <= exp(e - e_i). If that is below 2**-8, its U starts with eight zeros, and those
that do are found by geometric skips. 53 bits of each U that is left decide nearly always; exact arithmetic decides the
rest. Of a long run of equal scores, only members whose U starts with many zeros get bits of their own: how many, is
again found by geometric skips.
"""

from collections.abc import Callable, Iterator
from itertools import islice, pairwise

import numpy as np

from dpselect._types import Floats, Positions
from dpselect.selection.arrival import DEPTH, Arrival, float_bounds, in_order
from dpselect.selection.bits import random_order
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import Gaps
from dpselect.selection.sets import Members, Tier, best_members

_ZEROS = 8
_LOG_256 = 5.545177444479562 * (1 + 2.0**-50)
_ROOM = 64

# A number of candidates whose U starts with these bits: their value, and how many.
Group = tuple[int, int, int]


def choose_in_order(gaps: Gaps, sizes: Positions, k: int, kind: type[Arrival], draws: Draws) -> Members:
    """The first k candidates in order, at most all. The sizes of runs are positive."""
    exponents = np.minimum(gaps.approximate(gaps.at(slice(None))), gaps.largest_exponent)
    excess = _excess(gaps, sizes, k) if kind.comes_by_one else np.zeros(sizes.size)
    runs, prefixes, depths = _contenders(excess, sizes, k, draws)
    steps = np.ldexp(1.0, (DEPTH - depths).astype(np.int32))
    low, high = float_bounds(prefixes * steps, exponents[runs], np.zeros(runs.size), kind, steps)
    first = _first(low, high, k, lambda i: kind(gaps.exact(int(runs[i])), 1, int(prefixes[i]), int(depths[i])), draws)
    chosen = runs[first].tolist()
    ranks: dict[int, Iterator[int]] = {}
    for run in chosen:
        ranks.setdefault(run, random_order(int(sizes[run]), draws.index))
    return [(run, next(ranks[run])) for run in chosen]


def _excess(gaps: Gaps, sizes: Positions, k: int) -> Floats:
    """How far each exponent is above that of the k-th best candidate, at least."""
    _, last = best_members(gaps, sizes, k)
    excess: Floats = gaps.beyond(last) * (1 - 2.0**-50)
    return excess


def _contenders(excess: Floats, sizes: Positions, k: int, draws: Draws) -> tuple[Positions, Floats, Positions]:
    """The run of each candidate that may be among the first k, the first bits of its U, and how many these are.

    The bits are those that are known, and as many more as a float holds exactly.
    """
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
    words = draws.source.words(known.size, 64) >> (64 - fresh).astype(np.uint64)
    prefixes: Floats = known.astype(np.float64) * 2.0 ** (DEPTH - 1) + words
    deeper: Positions = depths + fresh
    return np.concatenate([own for own, _ in parts]), prefixes, deeper


def _thinned(size: int, k: int, draws: Draws) -> Iterator[Group]:
    """Groups of members of a run that have its first k among them.

    Those whose U starts with so many zeros that more than twice as many are expected are nearly always enough. Where
    they are not, those follow whose U has one zero less, and then a one: 2**-z of all, and 1 / (2**z - 1) of the rest.
    """
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
    """The places of the first k contenders in order, given bounds of their times."""
    limit = np.partition(high, k - 1)[k - 1]
    left = np.flatnonzero(low <= limit)
    left = left[np.argsort(low[left], kind="stable")]
    chosen: list[int] = []
    for cluster in _clusters(low[left], high[left]):
        places = left[cluster].tolist()
        if len(places) > 1:
            places = list(islice(in_order({place: exact(place) for place in places}, draws.source), k - len(chosen)))
        chosen += places
        if len(chosen) >= k:
            break
    return chosen


def _clusters(low: Floats, high: Floats) -> Iterator[slice]:
    """Slices of intervals that overlap one another, directly or not. They are sorted by their lower ends."""
    breaks = np.flatnonzero(low[1:] > np.maximum.accumulate(high)[:-1]) + 1
    return (slice(start, stop) for start, stop in pairwise([0, *breaks.tolist(), low.size]))
