"""McKenna & Sheldon (2020), Proposition 4: the largest expected error, which is attained on scores (c, ..., c, 0).

The proposition covers permute-and-flip and the exponential mechanism. For report noisy max the same family of scores
is searched, which gives a lower bound of its worst case.

McKenna & Sheldon (2020), Propositions 1 and 5 and Corollary 1: bounds on the error that hold for all scores.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize_scalar

from dpselect import _validate
from dpselect._numbers import float_near
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.probability.noise_integral import noisy_max_by_level

_GRID = 40
_MOST_CANDIDATES = 2**53


@dataclass(frozen=True)
class WorstCase:
    """The largest expected error over all scores, and how far the others are then below the best candidate."""

    error: float
    gap: float


def worst_case_error(mechanism: MechanismBase, n: int) -> WorstCase:
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


def losing(mechanism: MechanismBase) -> Callable[[float, int], float]:
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


@dataclass(frozen=True)
class Bounds:
    """The worst expected error over all scores of n candidates lies between `lower` and `upper`."""

    lower: float
    upper: float
    n: int
    rate: Fraction
    is_noisy_max: bool = False

    def tail(self, error: float) -> float:
        """An upper bound of Pr[error >= t], whatever the scores.

        For the exponential mechanism and permute-and-flip n exp(-c t), the paper's bound with t = (log n + s) / c. For
        report noisy max a union bound: a candidate that is t worse wins only if the difference of two Laplace noises
        is at least c t, which has probability (1/2 + c t / 4) exp(-c t).
        """
        scaled = float_near(self.rate * _validate.exact_positive(error=error))
        if self.is_noisy_max:
            return min(1.0, (self.n - 1) * (0.5 + min(scaled, 1e6) / 4) * math.exp(-scaled))
        return min(1.0, math.exp(math.log(self.n) - scaled)) if self.n > 1 else 0.0


def error_bounds(mechanism: MechanismBase, n: int) -> Bounds:
    """Bounds from n and the mechanism's public parameters alone.

    The upper bound is log(n) / c with c = epsilon / (2 sensitivity), the lower one a quarter of it (Proposition 5). For
    report noisy max the error is at most the largest noise minus the best candidate's own, so the upper bound is the
    mean of the largest of n noises; the lower one is attained on (x, ..., x, 0) with x = -log(n) / c.

    >>> from dpselect import PermuteAndFlip
    >>> error_bounds(PermuteAndFlip(epsilon=1), 1000).upper
    13.815510557964274
    """
    loses = losing(mechanism)
    size, rate, unit = candidates(n), mechanism.rate, float_near(1 / mechanism.rate)
    if isinstance(mechanism, ReportNoisyMax):
        exponent = math.log(size)
        lower = exponent * loses(exponent, size) * unit if size > 1 else 0.0
        return Bounds(lower, _largest_laplace(size) * unit, size, rate, is_noisy_max=True)
    return Bounds(math.log(size) / 4 * unit, math.log(size) * unit, size, rate)


def _largest_laplace(n: int) -> float:
    """An upper bound of the mean of the largest of n Laplace variables of scale one, tight to 1e-15.

    It is the integral of 1 - F**n over x > 0 minus that of F**n over x < 0; with u = F(x) the first is the integral of
    (1 - u**n) / (1 - u) over [1/2, 1], which is the sum of (1 - 2**-k) / k for k = 1..n, and the second is 2**-n / n.
    """
    if n <= 60:
        return math.fsum((1 - 2.0**-k) / k for k in range(1, n + 1)) - 2.0**-n / n
    return _harmonic(n) - math.fsum(2.0**-k / k for k in range(1, 61))


def _harmonic(n: int) -> float:
    """An upper bound of 1 + 1/2 + ... + 1/n: the sum itself for small n, log n + gamma + 1/(2n) beyond."""
    if n <= 1000:
        return math.fsum(1 / k for k in range(1, n + 1))
    return math.log(n) + 0.5772156649015329 + 1 / (2 * n)
