"""Scores of the candidates of a quantile, as runs of equal scores (Smith 2011; McKenna & Sheldon 2020, Section 7).

The score falls with the distance from being a quantile of the level; `sensitivity` derives it. Between two values of
the data all candidates have the same score, so a table with d different values has at most 2 d + 1 runs.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.uint64]


@dataclass(frozen=True, repr=False)
class Places:
    """Where the values of the data are among the candidates, in ascending order, and how many individuals are there.

    A value is on the candidate `places[i]`, or, if `between[i]`, after it and before the next one. Secret.
    """

    places: Lengths
    between: npt.NDArray[np.bool_]
    individuals: Integers


def runs(data: Places, size: int, level: Fraction) -> tuple[Integers, Lengths]:
    """The score of each run of candidates, and how many of the `size` candidates are in it."""
    if not data.places.size:  # one run of 2**64 candidates would not fit its length
        return np.zeros(2, np.int64), np.array([size // 2, size - size // 2], np.uint64)
    # With n individuals, (b - a) L - a (E + G) = b L - a n, and a G - (b - a) (L + E) = a n - b (L + E). At a value of
    # the data L and L + E are the running totals before and after it; between two values both are the same.
    a, b = level.numerator, level.denominator
    totals = np.zeros(data.places.size + 1, np.int64)
    np.cumsum(data.individuals, out=totals[1:])
    excess = b * totals - a * int(totals[-1])
    scores = np.empty(2 * data.places.size + 1, np.int64)
    scores[0::2] = -np.abs(excess)
    scores[1::2] = np.minimum(np.minimum(-excess[:-1], excess[1:]), 0)
    return scores, _lengths(data, size)


def _lengths(data: Places, size: int) -> Lengths:
    """Candidates before the first value, at it, between it and the next, and so on to the end.

    From one value to the next, at places i and j, lie the candidates i + 1 to j - 1, and also j if the next value is
    behind it. The differences are taken modulo 2**64, and none is negative or larger than that.
    """
    lengths = np.zeros(2 * data.places.size + 1, np.uint64)
    behind = data.between.astype(np.uint64)
    lengths[1::2] = ~data.between
    lengths[0] = data.places[0] + behind[0]
    one = np.uint64(1)
    with np.errstate(over="ignore"):
        lengths[2:-1:2] = data.places[1:] - data.places[:-1] - one + behind[1:]
    lengths[-1] = size - 1 - int(data.places[-1])
    return lengths
