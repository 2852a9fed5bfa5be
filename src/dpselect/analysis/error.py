"""McKenna & Sheldon (2020), Section 2: the error q* - q_M of a mechanism M, its mean, tails and quantiles."""

from typing import Any, Protocol

import numpy as np

from dpselect import _validate
from dpselect._scores import as_vector, losses
from dpselect._types import Floats
from dpselect.errors import InvalidValue


class HasPmf(Protocol):
    """Anything that knows the probability of each candidate."""

    def pmf(self, scores: Any, /) -> Any:
        """Return the probability of selecting each candidate."""
        ...


def expected_error(mechanism: HasPmf, scores: Any) -> float:
    """The mean of q* - q_M: the average distance of the choice below the best candidate.

    The result is as private as the scores.

    Args:
        mechanism: a mechanism, or any object with a `pmf` method.
        scores: one score per candidate.

    Returns:
        The error, in units of the scores.

    Raises:
        InvalidType: the scores are not a one-dimensional sequence of numbers.
        InvalidValue: there are no scores, or a score is not finite.

    >>> from dpselect import PermuteAndFlip
    >>> round(expected_error(PermuteAndFlip(epsilon=1), [10, 8, 0]), 4)
    0.3966
    """
    probabilities, errors = mechanism.pmf(scores), losses(as_vector(scores))
    return float(probabilities @ np.where(probabilities > 0, errors, 0.0))


def error_tail(mechanism: HasPmf, scores: Any, t: Any) -> Any:
    """The probability that the choice is t or more below the best: Pr[q* - q_M >= t].

    The result is as private as the scores.

    Args:
        mechanism: a mechanism, or any object with a `pmf` method.
        scores: one score per candidate.
        t: one error or an array of errors, in units of the scores.

    Returns:
        A float for one t, an array for an array.

    Raises:
        InvalidType: the scores are not a one-dimensional sequence of numbers.
        InvalidValue: there are no scores, a score is not finite, or `t` is not a number or an array of numbers.

    >>> from dpselect import PermuteAndFlip
    >>> error_tail(PermuteAndFlip(epsilon=1), [10, 8, 0], [0, 1]).round(4)
    array([1.    , 0.1865])
    """
    thresholds = _thresholds(t)
    errors, upto = _distribution(mechanism, scores)
    # Summed from the largest error, so that small tails are sums of small numbers.
    tails = np.append(np.cumsum(upto[::-1])[::-1], 0.0)
    tails[0] = 1.0
    found: Floats = tails[np.searchsorted(errors, thresholds, side="left")]
    return float(found) if thresholds.ndim == 0 else found


def _thresholds(t: Any) -> Floats:
    """One number or an array of numbers."""
    try:
        thresholds = np.asarray(t)
    except ValueError:
        thresholds = np.empty(0, object)
    if thresholds.dtype.kind not in "iuf" or np.isnan(thresholds).any():
        raise InvalidValue("t must be a number or an array of numbers: give errors in units of the scores")
    return thresholds


def error_quantile(mechanism: HasPmf, scores: Any, level: float) -> float:
    """The error that the choice does not exceed with this probability: the smallest x with Pr[q* - q_M <= x] >= level.

    The result is as private as the scores.

    Args:
        mechanism: a mechanism, or any object with a `pmf` method.
        scores: one score per candidate.
        level: a probability between 0 and 1, such as 0.95.

    Returns:
        The error, in units of the scores.

    Raises:
        InvalidType: the scores are not a one-dimensional sequence of numbers, or `level` is not a number.
        InvalidValue: there are no scores, a score is not finite, or `level` is not between 0 and 1.

    >>> from dpselect import PermuteAndFlip
    >>> error_quantile(PermuteAndFlip(epsilon=1), [10, 8, 0], 0.95)
    2.0
    """
    level = _validate.fraction_of_one(level=level)
    errors, probabilities = _distribution(mechanism, scores)
    beyond = np.append(np.cumsum(probabilities[::-1])[::-1], 0.0)[1:]  # Pr[error > each]
    return float(errors[np.argmax(beyond <= 1 - level)])


def _distribution(mechanism: HasPmf, scores: Any) -> tuple[Floats, Floats]:
    """Distinct errors, ascending, and the probability of each."""
    errors, inverse = np.unique(losses(as_vector(scores)), return_inverse=True)
    probabilities: Floats = np.bincount(inverse, weights=mechanism.pmf(scores)).astype(np.float64)
    return errors, probabilities
