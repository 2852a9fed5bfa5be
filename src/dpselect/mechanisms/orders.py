"""The k candidates with the largest noisy scores, in order, from one draw of noise (theorem 15 of docs/theory.md).

In the form of Ding et al. (2021) permute-and-flip is the candidate with the largest q_i + E_i. Here all of the first k
are returned (one shot). With e_i = c (q* - q_i) and E_i = -ln(U_i) / c, they are the k smallest T_i = U_i exp(e_i): the
first k arrivals of single candidates (`sampling.arrival`). With clocks in place of arrivals, the order is that of one
exponential mechanism after another (Plackett 1975), or of Gumbel noise (Durfee & Rogers 2019).

For arrivals, let e be the exponent of the k-th best candidate. At least k candidates have T <= exp(e), so another one
can be among the first k only if U_i <= exp(e - e_i). If that is below 2**-8, its U starts with eight zeros, and those
that do are found by geometric skips. All others get 53 bits of U each, which decide nearly always; exact arithmetic
decides the rest. Of a long run of equal scores, only members whose U starts with many zeros get bits of their own: how
many, is a sum of fair coins.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dpselect._types import Floats, Positions
from dpselect.mechanisms.gaps import Gaps
from dpselect.mechanisms.sets import Members, Tier
from dpselect.sampling.arrival import DEPTH, Arrival, float_bounds, in_order
from dpselect.sampling.bits import random_order
from dpselect.sampling.draws import Draws

_ZEROS = 8
_LOG_256 = 5.545177444479562 * (1 + 2.0**-50)
_ROOM = 64

Words = npt.NDArray[np.uint64]


def choose_in_order(gaps: Gaps, sizes: Positions, k: int, kind: type[Arrival], draws: Draws) -> Members:
    """The first k candidates in order, at most all. The sizes of runs are positive."""
    exponents = np.minimum(gaps.approximate(gaps.at(slice(None))), gaps.largest_exponent)
    excess = _excess(gaps, exponents, sizes, k) if kind.comes_by_one else np.zeros(sizes.size)
    runs, prefixes = _contenders(excess, sizes, k, draws)
    low, high = float_bounds(prefixes.astype(np.float64), exponents[runs], np.zeros(runs.size), kind)
    first = _first(low, high, k, lambda i: kind(gaps.exact(int(runs[i])), 1, int(prefixes[i])), draws)
    chosen = runs[first].tolist()
    ranks: dict[int, Iterator[int]] = {}
    for run in chosen:
        ranks.setdefault(run, random_order(int(sizes[run]), draws.index))
    return [(run, next(ranks[run])) for run in chosen]


def _excess(gaps: Gaps, exponents: Floats, sizes: Positions, k: int) -> Floats:
    """How far each exponent is above that of the k-th best candidate, at least: both are within a relative 2**-50.9."""
    order = gaps.best_first(k)
    last = order[np.searchsorted(np.cumsum(sizes[order]), k)]
    excess: Floats = exponents * (1 - 2.0**-50) - exponents[last] * (1 + 2.0**-50)
    return excess


def _contenders(excess: Floats, sizes: Positions, k: int, draws: Draws) -> tuple[Positions, Words]:
    """The run of each candidate that may be among the first k, and 53 bits of its U."""
    is_hot = excess <= _LOG_256
    parts = [(np.flatnonzero(is_hot & (sizes == 1)), 0, 0)]
    for run in np.flatnonzero(is_hot & (sizes > 1)).tolist():
        for count, prefix, depth in _thinned(int(sizes[run]), k, draws):
            parts.append((np.full(count, run), prefix, depth))
    cold = np.flatnonzero(~is_hot)
    if cold.size:
        tier = Tier(_ZEROS, cold, np.cumsum(sizes[cold]))
        parts.append((tier.located(draws.survivors(tier.size, _ZEROS))[0], 0, _ZEROS))
    runs = np.concatenate([own for own, _, _ in parts])
    many = [own.size for own, _, _ in parts]
    known, depths = (np.repeat(np.array([part[i] for part in parts], np.uint64), many) for i in (1, 2))
    words: Words = draws.source.words(runs.size, 64) >> np.uint64(64 - DEPTH)
    return runs, known << (np.uint64(DEPTH) - depths) | words >> depths


def _thinned(size: int, k: int, draws: Draws) -> Iterator[tuple[int, int, int]]:
    """The members of a run that may be among its first k: numbers of them, with the first bits of their U.

    As long as they are many, those whose next bit is zero are enough, if there are k of them.
    """
    depth = 0
    while size > 4 * k + _ROOM:
        zeros = draws.fair_heads(size)
        if zeros < k:
            yield zeros, 0, depth + 1
            yield size - zeros, 1, depth + 1
            return
        size, depth = zeros, depth + 1
    yield size, 0, depth


def _first(low: Floats, high: Floats, k: int, exact: Callable[[int], Arrival], draws: Draws) -> list[int]:
    """The places of the first k contenders in order, given bounds of their times."""
    limit = np.partition(high, k - 1)[k - 1]
    left = np.flatnonzero(low <= limit)
    left = left[np.argsort(low[left], kind="stable")]
    chosen: list[int] = []
    for cluster in _clusters(low[left], high[left]):
        places = left[cluster].tolist()
        chosen += places if len(places) == 1 else in_order({place: exact(place) for place in places}, draws.source)
        if len(chosen) >= k:
            break
    return chosen[:k]


def _clusters(low: Floats, high: Floats) -> Iterator[slice]:
    """Slices of intervals that overlap one another, directly or not. They are sorted by their lower ends."""
    breaks = np.flatnonzero(low[1:] > np.maximum.accumulate(high)[:-1]) + 1
    return (slice(start, stop) for start, stop in pairwise([0, *breaks.tolist(), low.size]))
