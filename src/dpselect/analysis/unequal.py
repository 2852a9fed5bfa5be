"""Raskhodnikova & Smith (2016): what generalized scores gain or lose against the largest sensitivity for all."""

from dataclasses import dataclass
from typing import Any

from dpselect import _validate
from dpselect._exact import rational
from dpselect._scores import as_vector, losses
from dpselect.errors import InvalidType
from dpselect.mechanisms.generalized_scores import generalized_scores
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.record import Number, SelectionRecord


@dataclass(frozen=True)
class UnequalErrors:
    """Expected errors q* - q of one selection, in units of the scores. As private as the scores."""

    common: float  # with the largest sensitivity for all scores
    generalized: float

    @property
    def gain(self) -> float:
        """How many times smaller the error is with generalized scores; below one where they lose."""
        if not self.generalized:
            return float("inf") if self.common else 1.0
        return self.common / self.generalized


def unequal_errors(
    scores: Any,
    sensitivities: Any,
    epsilon: Number,
    *,
    failure: Number = 0.05,
    kind: type[SelectionRecord] = PermuteAndFlip,
) -> UnequalErrors:
    """The expected error of both ways to choose among scores of unequal sensitivities, on these scores.

    >>> unequal = unequal_errors([1000, 900, 500, 0], [1, 1, 1, 1000], epsilon=1)
    >>> round(unequal.common), round(unequal.generalized)
    (307, 4)
    """
    if not (isinstance(kind, type) and issubclass(kind, SelectionRecord)):
        raise InvalidType("kind must be a mechanism class: give PermuteAndFlip, not PermuteAndFlip(epsilon=1)")
    spent = _validate.exact_positive(epsilon=epsilon)
    equalized = generalized_scores(scores, sensitivities, spent, failure)
    errors = losses(as_vector(scores))
    largest = rational(max(as_vector(sensitivities)))
    common, generalized = kind(spent, largest).pmf(scores), kind(spent).pmf(equalized)
    return UnequalErrors(float(common @ errors), float(generalized @ errors))
