"""McKenna & Sheldon (2020), Propositions 1 and 5 and Corollary 1: bounds on the error that hold for all scores."""

import math
from dataclasses import dataclass
from fractions import Fraction

from dpselect import _validate
from dpselect._exact import float_near
from dpselect.analysis.worst_case import candidates, losing, worst_case_error
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
    report noisy max the upper bound is the mean of the largest of n exponential noises, H_n / c >= E[max Laplace] / c,
    and the lower one is attained on scores (c, ..., c, 0).

    >>> from dpselect import PermuteAndFlip
    >>> error_bounds(PermuteAndFlip(epsilon=1), 1000).upper
    13.815510557964274
    """
    losing(mechanism)  # refuses what is no mechanism of ours
    size, rate, unit = candidates(n), mechanism.rate, float_near(1 / mechanism.rate)
    if isinstance(mechanism, ReportNoisyMax):
        upper = _harmonic(size) * unit if size > 1 else 0.0
        return Bounds(worst_case_error(mechanism, size).error, upper, size, rate, is_noisy_max=True)
    return Bounds(math.log(size) / 4 * unit, math.log(size) * unit, size, rate)


def _harmonic(n: int) -> float:
    """An upper bound of 1 + 1/2 + ... + 1/n: the sum itself for small n, log n + gamma + 1/(2n) beyond."""
    if n <= 1000:
        return math.fsum(1 / k for k in range(1, n + 1))
    return math.log(n) + 0.5772156649015329 + 1 / (2 * n)
