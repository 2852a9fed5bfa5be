"""McKenna & Sheldon (2020), Propositions 1 and 5 and Corollary 1: bounds on the error that hold for all scores."""

import math
from dataclasses import dataclass
from fractions import Fraction

from dpselect import _validate
from dpselect._exact import float_near
from dpselect.analysis.worst_case import candidates, losing
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.record import SelectionRecord


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


def error_bounds(mechanism: SelectionRecord, n: int) -> Bounds:
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
