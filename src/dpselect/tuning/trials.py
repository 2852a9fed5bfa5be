"""What one run of `PrivateSearchCV` uses: random parameters, people who are held out, and exact sums of their scores.

**Parameters** are random candidates from public lists and distributions, as in scikit-learn's random search.

**Scores.** A score is that of one person: it is computed from a model and from this person's row. So a person changes
one term of a sum, by at most one. Terms are rounded to multiples of 1/grid, which makes the sum exact, and noise on the
same grid hides any change of one (`selection.discrete`).

Every row is scored alone. So its score is a function of the model and of this row: other rows, their number, their
order, and whether one of them fails, cannot change it, not even by floating-point rounding. A row on which the model
fails counts as zero.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._types import Flags, Integers, Positions
from dpselect._validate import attempted
from dpselect.errors import InvalidType, InvalidValue
from dpselect.ledger import Ledger
from dpselect.selection.draws import Draws, two_sided_geometric

# Parameters by name. Values are lists, or distributions with a method `rvs`, such as those of scipy.stats.
Space = list[dict[str, Any]]


def checked_space(distributions: Any) -> Space:
    """One or several mappings of parameter names to lists or distributions, with every list as a list."""
    spaces = [distributions] if isinstance(distributions, Mapping) else distributions
    if isinstance(spaces, (str, bytes)) or not isinstance(spaces, Sequence) or not spaces:
        raise InvalidType("param_distributions must be a dict of parameters, or a list of such dicts")
    return [_checked(space) for space in spaces]


def _checked(space: Any) -> dict[str, Any]:
    if not isinstance(space, Mapping) or not all(isinstance(name, str) for name in space):
        raise InvalidType("param_distributions must be a dict with the names of parameters, or a list of such dicts")
    return {name: _values(name, values) for name, values in space.items()}


def _values(name: str, values: Any) -> Any:
    if callable(getattr(values, "rvs", None)):
        return values
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, np.ndarray)):
        raise InvalidType(f"{name} must have a list of values or a distribution with rvs, got {type(values).__name__}")
    if not len(values):
        raise InvalidValue(f"{name} must have at least one value")
    return list(values)


# The last part of a parameter's name, and what a value other than those allowed would do.
_SEEDS = ("random_state", "seed", "random_seed", "rng", "generator")
_SAME_NOISE = "must have no seed: every run needs fresh noise. Set {name} to None"
_CACHED = "must be None: a cache returns the noise of an earlier run, and keeps rows of the data"
_COUNTED = "must be None or 1: other processes show warnings, from which runs can be counted"
_PAID_TWICE = "must not be a ledger: its entries would show the number of runs"
_GENERATORS = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, random.Random)


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse parameters of an estimator with which runs would share noise, or their number would show."""
    for name, value in parameters.items():
        reason = _reason(name.rpartition("__")[2], value)
        if reason is not None:
            raise InvalidValue(f"{name} {reason.format(name=name)}")
    for name, value in parameters.items():
        for part in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(part, (list, tuple)):
                check_parameters({name: part})
            elif hasattr(part, "get_params") and not isinstance(part, type):
                check_parameters({f"{name}__{own}": each for own, each in part.get_params(deep=True).items()})


def _reason(name: str, value: Any) -> str | None:
    parts = value if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(part, _GENERATORS) for part in parts) or (name in _SEEDS and value is not None):
        return _SAME_NOISE
    if name == "memory" and value is not None:
        return _CACHED
    if name == "n_jobs" and value not in (None, 1):
        return _COUNTED
    return _PAID_TWICE if any(isinstance(part, Ledger) for part in parts) else None


def drawn_parameters(space: Space, draws: Draws) -> dict[str, Any]:
    """Draw a mapping, then a value for each of its parameters. Lists are drawn from uniformly."""
    names = space[draws.index(len(space))]
    return {name: _drawn(values, draws) for name, values in names.items()}


def _drawn(values: Any, draws: Draws) -> Any:
    if isinstance(values, list):
        return values[draws.index(len(values))]
    return values.rvs(random_state=np.random.RandomState(draws.bits(32)))


# Multiples of 1/grid: right or wrong, and scores of any size.
WHOLE, FINE = 1, 2**16
_COIN_BITS = 32

# Scores for the rows at these positions; it is called with one. It may fail on any row.
Scorer = Callable[[Positions], Any]


def held_out(size: int, share: Fraction, draws: Draws) -> Flags:
    """Which of `size` rows are held out, by an independent coin for each that does not depend on the data."""
    # A coin is uniform on 32 bits, so the share is rounded down to a multiple of 2**-32. Privacy does not depend on it.
    words = draws.words(size, _COIN_BITS)
    flags: Flags = words < np.uint64(int(share * 2**_COIN_BITS))
    return flags


def noisy_sum(score: Scorer, rows: Positions, grid: int, epsilon: Fraction, draws: Draws) -> int:
    """The sum of scores in units of 1/grid, with noise for which it is epsilon-DP for one of the rows."""
    # One row more, less or replaced changes the sum by at most `grid` units, so the rate of the noise is epsilon/grid.
    return int(units(score, rows, grid).sum()) + two_sided_geometric(epsilon / grid, draws)


def units(score: Scorer, rows: Positions, grid: int) -> Integers:
    """The score of each row in units of 1/grid. Each row is scored alone, always."""
    # Scores of many rows together are faster, and depend on the others: linear algebra adds up in an order that depends
    # on the number of rows, and one row that fails would fail for all.
    alone = (_unit(score, rows[place : place + 1], grid) for place in range(rows.size))
    return np.fromiter(alone, np.int64, rows.size)


def _unit(score: Scorer, row: Positions, grid: int) -> int:
    found = attempted(lambda: np.asarray(score(row), dtype=np.float64).reshape(-1))
    if found is None or found.size != 1 or np.isnan(found[0]):
        return 0
    return round(min(max(float(found[0]), 0.0), 1.0) * grid)  # the product with a power of two is exact
