"""McKenna & Sheldon (2020), Section 4: the largest errors of a mechanism over all scores of n candidates.

Everything is stated for the rate c = 1; at another rate, errors are divided by c. The number of candidates is given by
its logarithm, because it may be beyond all floats: all sets of k out of d are candidates, too. The worst scores of
permute-and-flip and of the exponential mechanism are (-x, ..., -x, 0) for some x (Proposition 4): one best candidate,
and n - 1 rivals that are all equally far below it. For other mechanisms, such scores give a lower bound on the worst
case.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

LARGEST_EXPONENT = 700.0  # exp of it is a float


@dataclass(frozen=True, repr=False)
class WorstErrors:
    """What is known about the errors of one mechanism at rate one, before any scores are seen.

    Args:
        loss_probability: a function of x and log n > 0: the probability that the best one loses to n - 1 rivals, all x
            below.
        averages: a function of log n: a lower and an upper bound on the largest expected error over all scores.
        tail: a function of x and log n: an upper bound on Pr[error >= x] over all scores.
        is_exact: whether scores (-x, ..., -x, 0) are the worst ones, so that the largest x * loss_probability is the
            largest expected error over all scores.
    """

    loss_probability: Callable[[float, float], float]
    averages: Callable[[float], tuple[float, float]]
    tail: Callable[[float, float], float]
    is_exact: bool


def logarithmic_averages(log_n: float) -> tuple[float, float]:
    """The largest expected error is between log(n) / 4 and log(n) (Propositions 1 and 5)."""
    return log_n / 4, log_n


def logarithmic_tail(x: float, log_n: float) -> float:
    """Pr[error >= x] <= n exp(-x), the paper's Corollary 1 with x = log n + s."""
    return math.exp(min(log_n - x, 0.0)) if log_n else 0.0


def log_rivals(log_n: float) -> float:
    """The logarithm of n - 1, for n of at least two.

    >>> log_rivals(math.log(2)), log_rivals(1000.0)
    (0.0, 1000.0)
    """
    return log_n + math.log1p(-math.exp(-log_n))


def harmonic(log_n: float) -> float:
    """An upper bound of 1 + 1/2 + ... + 1/n: the sum itself for small n, log n + gamma + 1/(2n) beyond.

    >>> harmonic(math.log(3))
    1.8333333333333333
    """
    if log_n <= math.log(1000):
        return math.fsum(1 / k for k in range(1, round(math.exp(log_n)) + 1))
    return log_n + 0.5772156649015329 + math.exp(-log_n) / 2
