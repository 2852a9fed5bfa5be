"""Permute-and-flip (McKenna & Sheldon 2020) on runs of candidates with equal scores, in time linear in the runs.

A median over every cent has 10**12 candidates and few different scores. One arrival time for each run (see
`sampling.arrival`) replaces the coins of its members: the run with the earliest head wins, and by symmetry each of its
members is equally likely. A run of m candidates has a head with probability at most m p. If that is below
2**-8, its V must start with eight zeros, so that cold runs are read only where a Bernoulli process succeeds.
"""

import numpy as np
import numpy.typing as npt

from dpselect._types import Array, Lengths, Positions, Vector
from dpselect.errors import ScoresChanged
from dpselect.mechanisms.gaps import Gaps
from dpselect.sampling.arrival import Arrival, draw_prefixes, earliest, float_bounds
from dpselect.sampling.draws import Draws

_ZEROS = 8


def choose_in_runs(gaps: Gaps, lengths: Lengths, draws: Draws, steady: bool = False) -> int:
    """The position of a uniform head in the vector in which each score is repeated `lengths` times.

    If `steady`, no run is skipped, and runs may be empty; otherwise each has a candidate.
    """
    winner = _earliest_run(gaps, lengths, draws, steady)
    index = draws.index_at_once if steady else draws.index
    return _total(lengths[:winner]) + index(int(lengths[winner]))


def _earliest_run(gaps: Gaps, lengths: Lengths, draws: Draws, steady: bool) -> int:
    runs, zeros = _every_run(gaps) if steady else _warm_runs(gaps, lengths, draws)
    if not runs.size:  # the best run was hot when it was first read, so the scores changed
        raise ScoresChanged
    prefixes = draw_prefixes(zeros, draws.source)
    exponents = gaps.exponents(runs)
    finite = np.minimum(exponents.approximate, gaps.largest_exponent)
    sizes = lengths[runs].astype(np.float64)
    low, high = float_bounds(prefixes, finite, np.maximum(sizes, 1))
    low, high = (np.where(sizes == 0, np.inf, bound) for bound in (low, high))  # an empty run has no head
    left = np.flatnonzero(low <= high.min()).tolist()
    if len(left) == 1:
        return int(runs[left[0]])
    arrivals = {int(runs[i]): Arrival(exponents.exact(i), int(lengths[runs[i]]), int(prefixes[i])) for i in left}
    return earliest(arrivals, draws.source)


def _every_run(gaps: Gaps) -> tuple[Positions, npt.NDArray[np.uint8]]:
    """All runs, with no known bits of V."""
    return np.arange(gaps.size), np.zeros(gaps.size, np.uint8)


def _warm_runs(gaps: Gaps, lengths: Lengths, draws: Draws) -> tuple[Positions, npt.NDArray[np.uint8]]:
    """The runs that may have a head, and the number of leading zeros of V that are known.

    No run is longer than 2**k, so a run whose members have p < 2**-(k + 8) is cold.
    """
    coldest_hot = gaps.floor(int(lengths.max()).bit_length() + _ZEROS)
    hot = np.flatnonzero(gaps.values >= coldest_hot)
    survivors = draws.survivors(gaps.size, _ZEROS)
    cold = survivors[gaps.values[survivors] < coldest_hot]
    zeros = np.repeat(np.array([0, _ZEROS], np.uint8), [hot.size, cold.size])
    return np.concatenate([hot, cold]), zeros


def _total(lengths: Lengths) -> int:
    """The exact sum of up to 2**32 64-bit integers."""
    half = np.uint64(32)
    high, low = int((lengths >> half).sum()), int((lengths & np.uint64(2**32 - 1)).sum())
    return (high << 32) + low


def with_lowest_for_empty(scores: Array, lengths: Lengths) -> Array:
    """The scores, with the lowest one in place of the scores of empty runs, so that none of these is the best."""
    return np.where(lengths == 0, np.minimum.reduce(scores), scores)


def without_empty(scores: Vector, lengths: Lengths) -> tuple[Vector, Lengths]:
    """The runs that are not empty."""
    kept = np.flatnonzero(lengths)
    if kept.size == lengths.size:
        return scores, lengths
    present = scores[kept] if isinstance(scores, np.ndarray) else [scores[i] for i in kept.tolist()]
    return present, lengths[kept]
