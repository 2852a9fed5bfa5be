"""People who are held out of training, and exact sums of their scores.

A score is that of one person: it is computed from a model and from this person's row. So a person changes one term of a
sum, by at most one. Terms are rounded to multiples of 1/grid, which makes the sum exact, and noise on the same grid
hides any change of one (`selection.discrete`).

Every row is scored alone. So its score is a function of the model and of this row: other rows, their number, their
order, and whether one of them fails, cannot change it, not even by floating-point rounding. A row on which the model
fails counts as zero.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._types import Flags, Integers, Positions
from dpselect._validate import attempted
from dpselect.selection.discrete import two_sided_geometric
from dpselect.selection.draws import Draws

# Multiples of 1/grid: right or wrong, and scores of any size.
WHOLE, FINE = 1, 2**16
_COIN_BITS = 32

# Scores for the rows at these positions; it is called with one. It may fail on any row.
Scorer = Callable[[Positions], Any]


def held_out(size: int, share: Fraction, draws: Draws) -> Flags:
    """Which of `size` rows are held out, by an independent coin for each that does not depend on the data.

    A coin is uniform on 32 bits, so the share is rounded down to a multiple of 2**-32. Privacy does not depend on it.
    """
    words = draws.words(size, _COIN_BITS)
    flags: Flags = words < np.uint64(int(share * 2**_COIN_BITS))
    return flags


def noisy_sum(score: Scorer, rows: Positions, grid: int, epsilon: Fraction, draws: Draws) -> int:
    """The sum of scores in units of 1/grid, with noise for which it is epsilon-DP for one of the rows.

    One row more, less or replaced changes the sum by at most `grid` units, so the rate of the noise is epsilon/grid.
    """
    return int(units(score, rows, grid).sum()) + two_sided_geometric(epsilon / grid, draws)


def units(score: Scorer, rows: Positions, grid: int) -> Integers:
    """The score of each row in units of 1/grid. Each row is scored alone, always.

    Scores of many rows together are faster, and depend on the others: linear algebra adds up in an order that depends
    on the number of rows, and one row that fails would fail for all.
    """
    alone = (_unit(score, rows[place : place + 1], grid) for place in range(rows.size))
    return np.fromiter(alone, np.int64, rows.size)


def _unit(score: Scorer, row: Positions, grid: int) -> int:
    """A score from 0 to 1, rounded; 0 if it is NaN, if it is not one number, or if it cannot be computed."""
    found = attempted(lambda: np.asarray(score(row), dtype=np.float64).reshape(-1))
    if found is None or found.size != 1 or np.isnan(found[0]):
        return 0
    return round(min(max(float(found[0]), 0.0), 1.0) * grid)  # the product with a power of two is exact
