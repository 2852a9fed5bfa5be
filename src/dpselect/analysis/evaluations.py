"""McKenna & Sheldon (2020), Algorithms 1 and 2: how many scores `select_lazily` computes before it stops.

Permute-and-flip: give every candidate an arrival time, uniform on [0, 1]. Candidate r is visited if no head arrives
before it, so the expected number of visits is the sum over r of the integral over [0, 1] of prod over s != r of
(1 - p_s t) dt, with p_s = exp(-c (b - q_s)).

The exponential mechanism computes the score of r if r is proposed before another candidate is accepted. In each
proposal the former has probability 1/n, the latter (S - p_r)/n with S = sum p_s, so the expected number of scores is
the sum over r of 1 / (1 + S - p_r). Scores are remembered: these are different candidates, out of n / S proposals on
average.
"""

from typing import Any

import numpy as np

from dpselect import _validate
from dpselect._numbers import float_near, rational
from dpselect._scores import as_vector, losses
from dpselect._types import Floats, Number, Vector
from dpselect.errors import InvalidType
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.gaps import gaps_of
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.probability.flip_integral import expected_visits


def expected_evaluations(
    mechanism: PermuteAndFlip | ExponentialMechanism, scores: Any, best: Number | None = None
) -> float:
    """The expected number of scores that `select_lazily` computes, within a relative 1e-12; linear time.

    `best` is the bound that is given to `select_lazily`; without it, the best of the scores. The figure is as private
    as the scores.

    >>> from dpselect import ExponentialMechanism, PermuteAndFlip
    >>> scores = [100] * 5 + [90] * 95
    >>> round(expected_evaluations(PermuteAndFlip(epsilon=1), scores), 2)
    15.41
    >>> round(expected_evaluations(ExponentialMechanism(epsilon=1), scores, best=110), 2)
    96.37
    """
    if not isinstance(mechanism, (PermuteAndFlip, ExponentialMechanism)):
        raise InvalidType("mechanism must be a PermuteAndFlip or an ExponentialMechanism: the others see all scores")
    exponents = _exponents(mechanism, as_vector(scores), best)
    if isinstance(mechanism, PermuteAndFlip):
        return expected_visits(exponents)
    with np.errstate(under="ignore"):
        heads = np.exp(-exponents)
    # S - p_r is within S * 2**-51, and 1 + S - p_r is at least S: no term loses digits.
    return float((1 / (1 + (heads.sum() - heads))).sum())


def _exponents(mechanism: Any, vector: Vector, best: Number | None) -> Floats:
    """The exponents c (b - q), of min(q, b) where scores exceed the bound."""
    losses(vector)  # refuses scores that are not finite
    largest = rational(vector.max()) if isinstance(vector, np.ndarray) else max(vector)
    bound = largest if best is None else _validate.exact(best=best)
    if largest > bound:
        vector = [min(rational(score), bound) for score in vector]
    gaps = gaps_of(vector, mechanism._rate)
    # Both terms are positive: the sum is rounded once more, and no digit is lost.
    exponents: Floats = gaps.approximate(gaps.at(slice(None))) + float_near(mechanism.rate * max(bound - largest, 0))
    return exponents
