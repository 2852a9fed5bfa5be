"""Permute-and-flip (McKenna & Sheldon 2020) on runs of candidates with equal scores, at the cost of the number of runs.

A median over every cent has 10**12 candidates and few different scores. One arrival time for each run (see
`sampling.arrival`) replaces the coins of its members: the run with the earliest head wins, and by symmetry each of its
members is as likely as any other. A run of m candidates has a head with probability at most m p; where that is below
2**-8, its V must start with eight zeros, so that cold runs are read only where a Bernoulli process succeeds.
"""

import numpy as np
import numpy.typing as npt

from dpselect._scores import Vector
from dpselect.errors import ScoresChanged
from dpselect.mechanisms.gaps import Gaps
from dpselect.sampling.arrival import Arrival, draw_prefixes, earliest, float_bounds
from dpselect.sampling.draws import Draws
from dpselect.sampling.geometric import Positions

Lengths = npt.NDArray[np.uint64]

_ZEROS = 8


def choose_in_runs(gaps: Gaps, lengths: Lengths, draws: Draws) -> int:
    """The position of a uniform head in the vector in which each score is repeated `lengths` times."""
    winner = _earliest_run(gaps, lengths, draws)
    return _total(lengths[:winner]) + draws.index(int(lengths[winner]))


def _earliest_run(gaps: Gaps, lengths: Lengths, draws: Draws) -> int:
    runs, zeros = _warm_runs(gaps, lengths, draws)
    if not runs.size:  # the best run was hot when it was first read
        raise ScoresChanged
    prefixes = draw_prefixes(zeros, draws.source)
    exponents = gaps.exponents(runs)
    finite = np.minimum(exponents.approximate, gaps.largest_exponent)
    low, high = float_bounds(prefixes, finite, lengths[runs].astype(np.float64))
    left = np.flatnonzero(low <= high.min()).tolist()
    if len(left) == 1:
        return int(runs[left[0]])
    arrivals = {int(runs[i]): Arrival(exponents.exact(i), int(lengths[runs[i]]), int(prefixes[i])) for i in left}
    return earliest(arrivals, draws.source)


def _warm_runs(gaps: Gaps, lengths: Lengths, draws: Draws) -> tuple[Positions, npt.NDArray[np.uint8]]:
    """The runs that may have a head, and with how many zeros their V is known to start.

    No run is longer than 2**k, so a run whose members have p < 2**-(k + 8) is cold.
    """
    coldest_hot = gaps.floor(int(lengths.max()).bit_length() + _ZEROS)
    hot = np.flatnonzero(gaps.values >= coldest_hot)
    survivors = draws.survivors(gaps.size, _ZEROS)
    cold = survivors[gaps.values[survivors] < coldest_hot]
    zeros = np.repeat(np.array([0, _ZEROS], np.uint8), [hot.size, cold.size])
    return np.concatenate([hot, cold]), zeros


def _total(lengths: Lengths) -> int:
    """The exact sum of up to 2**32 integers of 64 bits."""
    half = np.uint64(32)
    high, low = int((lengths >> half).sum()), int((lengths & np.uint64(2**32 - 1)).sum())
    return (high << 32) + low


def without_empty(scores: Vector, lengths: Lengths) -> tuple[Vector, Lengths]:
    """The runs that have a candidate."""
    kept = np.flatnonzero(lengths)
    if kept.size == lengths.size:
        return scores, lengths
    present = scores[kept] if isinstance(scores, np.ndarray) else [scores[i] for i in kept.tolist()]
    return present, lengths[kept]
