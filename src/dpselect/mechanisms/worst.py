"""McKenna & Sheldon (2020), Section 4: the largest errors of a mechanism over all scores of n candidates.

Everything is stated for the rate c = 1; at another rate, errors are divided by c. The worst scores of permute-and-flip
and of the exponential mechanism are (-x, ..., -x, 0) for some x (Proposition 4): one best candidate, and n - 1 rivals
that are all equally far below it. For other mechanisms, such scores give a lower bound on the worst case.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class WorstErrors:
    """What is known about the errors of one mechanism at rate one, before any scores are seen.

    Args:
        loss_probability: a function of x and n: the probability that the best one loses to n - 1 rivals, all x below.
        averages: a function of n: a lower and an upper bound on the largest expected error over all scores.
        tail: a function of x and n: an upper bound on Pr[error >= x] over all scores.
        is_exact: whether scores (-x, ..., -x, 0) are the worst ones, so that the largest x * loss_probability(x, n) is
            the largest expected error over all scores.
    """

    loss_probability: Callable[[float, int], float]
    averages: Callable[[int], tuple[float, float]]
    tail: Callable[[float, int], float]
    is_exact: bool


def logarithmic_averages(n: int) -> tuple[float, float]:
    """The largest expected error is between log(n) / 4 and log(n) (Propositions 1 and 5)."""
    return math.log(n) / 4, math.log(n)


def logarithmic_tail(x: float, n: int) -> float:
    """Pr[error >= x] <= n exp(-x), the paper's Corollary 1 with x = log n + s."""
    return min(1.0, math.exp(math.log(n) - x)) if n > 1 else 0.0
