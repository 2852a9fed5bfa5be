"""McKenna & Sheldon (2020), Algorithms 1 and 2: how many scores `select_lazily` computes before it stops.

Permute-and-flip: give every candidate an arrival time, uniform on [0, 1]. Candidate r is visited if no head arrives
before it, so the expected number of visits is the sum over r of the integral over [0, 1] of prod over s != r of
(1 - p_s t) dt, with p_s = exp(-c (b - q_s)).

The exponential mechanism computes the score of r if r is proposed before another candidate is accepted. In each
proposal the former has probability 1/n and the latter (S - p_r)/n with S = sum p_s. So the expected number of scores is
the sum over r of 1 / (1 + S - p_r). Scores are remembered, so these are different candidates, out of n / S proposals on
average.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from dpselect import _validate
from dpselect._numbers import float_near, rational
from dpselect._scores import as_vector, losses
from dpselect._types import Floats, Number, Vector
from dpselect.mechanisms.base import MechanismBase, checked_mechanism
from dpselect.selection.gaps import gaps_of


def expected_evaluations(mechanism: MechanismBase, scores: Any, best: Number | None = None) -> float:
    """The expected number of scores that `select_lazily` computes, within a relative 1e-12; linear time.

    The result is as private as the scores.

    Args:
        mechanism: a mechanism with `select_lazily`: permute-and-flip or the exponential mechanism.
        scores: one score per candidate.
        best: the bound that is given to `select_lazily`; the best of the scores if omitted.

    Returns:
        The mean number of scores.

    Raises:
        InvalidType: the mechanism has no `select_lazily`, or an argument is not a number.
        InvalidValue: there are no scores, or a score or `best` is not finite.

    >>> from dpselect import ExponentialMechanism, PermuteAndFlip
    >>> scores = [100] * 5 + [90] * 95
    >>> round(expected_evaluations(PermuteAndFlip(epsilon=1), scores), 2)
    15.41
    >>> round(expected_evaluations(ExponentialMechanism(epsilon=1), scores, best=110), 2)
    96.37
    """
    return checked_mechanism(mechanism)._expected_evaluations(_exponents(mechanism, as_vector(scores), best))


def _exponents(mechanism: MechanismBase, vector: Vector, best: Number | None) -> Floats:
    """The exponents c (b - q), with scores above the bound lowered to it."""
    losses(vector)  # refuses scores that are not finite
    largest = rational(vector.max()) if isinstance(vector, np.ndarray) else max(vector)
    bound = largest if best is None else _validate.exact(best=best)
    if largest > bound:
        vector = [min(rational(score), bound) for score in vector]
    gaps = gaps_of(vector, mechanism._rate)
    # Both terms are positive: the sum is rounded once, and no digits cancel.
    beyond = max(bound - largest, Fraction(0))
    exponents: Floats = gaps.approximate(gaps.at(slice(None))) + float_near(mechanism.rate * beyond)
    return exponents
