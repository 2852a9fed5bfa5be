"""People who are held out of training, and exact sums of their scores.

A score is that of one person: it is computed from a model and from this person's row. So a person changes one term of a
sum, by at most one. Terms are rounded to multiples of 1/grid, which makes the sum exact, and noise on the same grid
hides any change of one (`sampling.two_sided`).

Whether a row can be scored must not show either: a row on which the model fails counts as zero, and all others as ever.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._types import Flags, Integers, Positions
from dpselect._validate import attempted
from dpselect.sampling.draws import Draws
from dpselect.sampling.two_sided import two_sided_geometric

# Multiples of 1/grid: right or wrong, and scores of any size.
WHOLE, FINE = 1, 2**16
_COIN_BITS = 32

# Scores for the rows at these positions. It may fail on any row.
Scorer = Callable[[Positions], Any]


def held_out(size: int, share: Fraction, draws: Draws) -> Flags:
    """Which of `size` rows are held out, by an independent coin for each that does not depend on the data.

    A coin is uniform on 32 bits, so the share is rounded down to a multiple of 2**-32. Privacy does not depend on it.
    """
    words = draws.source.words(size, _COIN_BITS)
    flags: Flags = words < np.uint64(int(share * 2**_COIN_BITS))
    return flags


def noisy_sum(score: Scorer, rows: Positions, grid: int, epsilon: Fraction, draws: Draws) -> int:
    """The sum of scores in units of 1/grid, with noise for which it is epsilon-DP for one of the rows.

    One row more, less or replaced changes the sum by at most `grid` units, so the rate of the noise is epsilon/grid.
    """
    return int(units(score, rows, grid).sum()) + two_sided_geometric(epsilon / grid, draws)


def units(score: Scorer, rows: Positions, grid: int) -> Integers:
    """The score of each row in units of 1/grid. If the score of all rows fails, each row is scored alone."""
    if not rows.size:
        return np.empty(0, np.int64)
    found = _units(score, rows, grid)
    if found is not None:
        return found
    alone = (_units(score, rows[place : place + 1], grid) for place in range(rows.size))
    return np.array([0 if one is None else int(one[0]) for one in alone], np.int64)


def _units(score: Scorer, rows: Positions, grid: int) -> Integers | None:
    """Scores from 0 to 1, rounded; NaN is 0. None if they cannot be computed."""
    found = attempted(lambda: np.asarray(score(rows), dtype=np.float64).reshape(-1))
    if found is None or found.size != rows.size:
        return None
    clipped = np.clip(np.nan_to_num(found, nan=0.0), 0.0, 1.0)
    return np.rint(clipped * grid).astype(np.int64)  # the product with a power of two is exact
