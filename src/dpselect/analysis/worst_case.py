"""McKenna & Sheldon (2020), Proposition 4: the largest expected error, which is attained on scores (c, ..., c, 0).

The proposition covers permute-and-flip and the exponential mechanism. For report noisy max the same family of scores
is searched, which gives a lower bound of its worst case.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from dpselect import _validate
from dpselect._exact import float_near
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.record import SelectionRecord
from dpselect.probability.noise_integral import noisy_max_by_level

_GRID = 40
_MOST_CANDIDATES = 2**53


@dataclass(frozen=True)
class WorstCase:
    """The largest expected error over all scores, and how far the others are then below the best candidate."""

    error: float
    gap: float


def worst_case_error(mechanism: SelectionRecord, n: int) -> WorstCase:
    """The worst case over all scores of n candidates.

    >>> worst = worst_case_error(PermuteAndFlip(epsilon=1), 2)
    >>> round(worst.error, 6), round(worst.gap, 6)
    (0.367879, 2.0)
    """
    size = candidates(n)
    loses = losing(mechanism)
    unit = float_near(1 / mechanism.rate)
    if size == 1:
        return WorstCase(0.0, 0.0)

    def negated(log_exponent: float) -> float:
        exponent = math.exp(log_exponent)
        return -exponent * loses(exponent, size)

    # The product x * Pr[lose] rises from zero, has one top near x = log n, and falls like x n exp(-x).
    grid = np.linspace(math.log(0.01), math.log(math.log(size) + 50), _GRID)
    top = int(np.argmin([negated(point) for point in grid]))
    bounds = grid[max(top - 1, 0)], grid[min(top + 1, _GRID - 1)]
    found = minimize_scalar(negated, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return WorstCase(-float(found.fun) * unit, math.exp(float(found.x)) * unit)


def candidates(n: int) -> int:
    """The number of candidates, at least one."""
    size = _validate.count(n=n)
    if size < 1:
        raise InvalidValue("n must be >= 1: there is nothing to choose from")
    if size > _MOST_CANDIDATES:
        raise InvalidValue("n must be at most 2**53: floats count no further")
    return size


def losing(mechanism: SelectionRecord) -> Callable[[float, int], float]:
    """Pr[the best candidate loses] on (c, ..., c, 0), as a function of the exponent and n."""
    kinds = {
        PermuteAndFlip: _permute_and_flip_loses,
        ExponentialMechanism: _exponential_loses,
        ReportNoisyMax: _noisy_max_loses,
    }
    for kind, loses in kinds.items():
        if isinstance(mechanism, kind):
            return loses
    raise InvalidType("mechanism must be a PermuteAndFlip, ExponentialMechanism or ReportNoisyMax")


def _exponential_loses(exponent: float, n: int) -> float:
    others = (n - 1) * math.exp(-exponent)
    return others / (1 + others)


def _permute_and_flip_loses(exponent: float, n: int) -> float:
    """1 - (1 - (1 - p)**n) / (n p), which cancels where n p is small: there by its series in p."""
    heads = math.exp(-exponent)
    if n * heads < 1e-2:
        return math.fsum(-math.comb(n, k + 1) * (-heads) ** k / n for k in range(1, min(n, 8)))
    if heads == 1:
        return 1 - 1 / n
    return 1 + math.expm1(n * math.log1p(-heads)) / (n * heads)


def _noisy_max_loses(exponent: float, n: int) -> float:
    others = noisy_max_by_level(np.array([-exponent, 0.0]), np.array([n - 1.0, 1.0]))[0]
    return (n - 1) * float(others)
