"""What a mechanism promises for all scores of n candidates: bounds on its error, and the epsilon that a bound needs.

With the rate c = epsilon / score_range every error is that of rate one divided by c, so errors are computed once for
each mechanism and number of candidates.

The worst cases are those of McKenna & Sheldon (2020), Propositions 1, 4 and 5. Each mechanism knows its `worst` errors
at rate one (see `mechanisms.laws`); here they are converted to score units.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial

import numpy as np

from dpselect import _validate
from dpselect._numbers import first_true, float_near, rounded_up_text
from dpselect._types import Number
from dpselect.errors import InvalidValue
from dpselect.mechanisms.base import MechanismBase, checked_mechanism
from dpselect.mechanisms.laws import WorstErrors


@dataclass(frozen=True)
class UnitErrors:
    """Bounds on an error that hold for all data, at rate one.

    Attributes:
        average: the expected error is at most this.
        attained: on some data, the expected error is at least this.
        tail: a function of x that falls: the probability of an error of x or more is at most this.
    """

    average: float
    attained: float
    tail: Callable[[float], float]

    def rarely_exceeded(self, probability: float) -> float:
        return 0.0 if self.tail(0.0) <= probability else first_true(lambda x: self.tail(x) <= probability, 1.0)


ErrorsOf = Callable[[type[MechanismBase]], UnitErrors]  # of a mechanism, at rate one


@dataclass(frozen=True)
class Promise:
    """Bounds on the error of one selection that hold for all scores, in units of the scores.

    Attributes:
        mechanism: the mechanism with its epsilon.
        average: the expected error is at most this.
        attained: on some scores, the expected error is at least this.
        within_95: at least 95 of 100 selections have a smaller error.
        within_99: at least 99 of 100 selections have a smaller error.

    >>> from dpselect import PermuteAndFlip
    >>> round(promise(PermuteAndFlip(epsilon=1), 1000).average, 2)
    8.53
    """

    mechanism: MechanismBase
    average: float
    attained: float
    within_95: float
    within_99: float


def promise(mechanism: MechanismBase, n: int) -> Promise:
    """The bounds of a mechanism for n candidates."""
    # For permute-and-flip and the exponential mechanism, `average` is the exact worst case, so it is attained. For
    # report noisy max, the exact worst case is not known.
    return promised_by(mechanism, among(n))


def promised_by(mechanism: MechanismBase, errors_of: ErrorsOf) -> Promise:
    rate, errors = float(mechanism.rate), errors_of(type(mechanism))
    tails = (errors.rarely_exceeded(probability) for probability in (0.05, 0.01))
    return Promise(mechanism, *(error / rate for error in (errors.average, errors.attained, *tails)))


def rarely_exceeded(mechanism: MechanismBase, n: int, probability: float) -> float:
    """An error that one selection reaches with at most this probability, for all scores of n candidates."""
    return among(n)(type(mechanism)).rarely_exceeded(probability) / float(mechanism.rate)


def among(n: int) -> ErrorsOf:
    """The errors of one selection among n candidates."""
    return partial(selection_errors, log_n=math.log(checked_count(n)))


@cache
def selection_errors(kind: type[MechanismBase], log_n: float) -> UnitErrors:
    """The errors of one selection among candidates of whose number only the logarithm is known."""
    worst = kind.worst
    attained = worst_exponent(worst, log_n)[1]
    average = attained if worst.is_exact or not log_n else worst.averages(log_n)[1]
    return UnitErrors(average, attained, lambda x: worst.tail(x, log_n))


def epsilon_for_average(average: float, error: Number) -> Fraction:
    """The epsilon at which an average, given at epsilon one, is at most `error`; rounded up to four digits."""
    if not average:
        raise InvalidValue("every epsilon meets the target: there is no choice, so the error is zero")
    return Fraction(rounded_up_text(Fraction(average) / _validate.exact_positive(error=error), digits=4))


_GRID = 40
_GOLDEN, _NARROW = (math.sqrt(5) - 1) / 2, 1e-10


@dataclass(frozen=True)
class WorstCase:
    """The largest expected error over all scores.

    Attributes:
        error: the largest expected error, in units of the scores.
        gap: how far all others are below the best candidate on the scores where it occurs.

    >>> from dpselect import PermuteAndFlip
    >>> round(worst_case_error(PermuteAndFlip(epsilon=1), 2).gap, 6)
    2.0
    """

    error: float
    gap: float


def worst_case_error(mechanism: MechanismBase, n: int) -> WorstCase:
    """The largest expected error over all scores of n candidates.

    For permute-and-flip and the exponential mechanism it is exact (Proposition 4). For report noisy max only scores
    (c, ..., c, 0) are searched, which gives a lower bound on its worst case.

    Args:
        mechanism: a mechanism with its public parameters.
        n: the number of candidates.

    Raises:
        InvalidType: `mechanism` is not one of dpselect's, or `n` is not an integer.
        InvalidValue: `n` is not positive, or has more than 4,000 digits.

    >>> from dpselect import PermuteAndFlip
    >>> worst = worst_case_error(PermuteAndFlip(epsilon=1), 2)
    >>> round(worst.error, 6), round(worst.gap, 6)
    (0.367879, 2.0)
    """
    worst, size = checked_mechanism(mechanism).worst, checked_count(n)
    exponent, error = worst_exponent(worst, math.log(size))
    unit = float_near(1 / mechanism.rate)
    return WorstCase(error * unit, exponent * unit)


def worst_exponent(worst: WorstErrors, log_n: float) -> tuple[float, float]:
    # The x at which x Pr[lose] is largest on scores (-x, ..., -x, 0) at rate one, and that product.
    if not log_n:
        return 0.0, 0.0

    def error(log_exponent: float) -> float:
        exponent = math.exp(log_exponent)
        return exponent * worst.loss_probability(exponent, log_n)

    # The product x * Pr[lose] rises from zero, has one maximum near x = log n, and falls like x n exp(-x).
    grid = np.linspace(math.log(0.01), math.log(log_n + 50), _GRID)
    top = int(np.argmax([error(point) for point in grid]))
    found = _golden_section(error, float(grid[max(top - 1, 0)]), float(grid[min(top + 1, _GRID - 1)]))
    return math.exp(found), error(found)


def _golden_section(function: Callable[[float], float], low: float, high: float) -> float:
    # Where a function that rises and then falls is largest (Kiefer 1953), without SciPy, which is slow to import.
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    of_left, of_right = function(left), function(right)
    while high - low > _NARROW:
        if of_left < of_right:
            low, left, of_left = left, right, of_right
            right = low + _GOLDEN * (high - low)
            of_right = function(right)
        else:
            high, right, of_right = right, left, of_left
            left = high - _GOLDEN * (high - low)
            of_left = function(left)
    return (low + high) / 2


def checked_count(n: int) -> int:
    # The number of candidates, at least one. It may be beyond all floats.
    size = _validate.count(n=n)
    if size < 1:
        raise InvalidValue("n must be >= 1: give at least one candidate")
    return size


@dataclass(frozen=True)
class Bounds:
    """Bounds on the errors of a mechanism that hold for all scores, in units of the scores.

    Attributes:
        lower: the largest expected error over all scores is at least this.
        upper: the expected error is at most this, for any scores.
        n: the number of candidates.
        rate: the factor c of exp(-c (q* - q)).
        worst: what the mechanism knows about its errors at rate one.

    >>> from dpselect import PermuteAndFlip
    >>> round(error_bounds(PermuteAndFlip(epsilon=1), 1000).upper, 3)
    13.816
    """

    lower: float
    upper: float
    n: int
    rate: Fraction
    worst: WorstErrors = field(repr=False)

    def tail(self, error: float) -> float:
        """Return an upper bound on Pr[error >= t] that holds for all scores, from 0 to 1.

        For the exponential mechanism and permute-and-flip it is n exp(-c t), the paper's bound with
        t = (log n + s) / c. For report noisy max it is a union bound: a candidate that is t worse wins only if the
        difference of two Laplace noises is at least c t, which has probability (1/2 + c t / 4) exp(-c t).

        Args:
            error: t, in units of the scores.

        Raises:
            InvalidType: `error` is not a number.
            InvalidValue: `error` is not positive and finite.

        >>> from dpselect import PermuteAndFlip
        >>> round(error_bounds(PermuteAndFlip(epsilon=1), 1000).tail(20), 4)
        0.0454
        """
        return self.worst.tail(float_near(self.rate * _validate.exact_positive(error=error)), math.log(self.n))


def error_bounds(mechanism: MechanismBase, n: int) -> Bounds:
    """Bound the expected error and its tails, from n and the public parameters alone, in units of the scores.

    For permute-and-flip and the exponential mechanism the upper bound is log(n) / c with c = epsilon / score_range, and
    the lower one a quarter of it (Proposition 5). For report noisy max the error is at most the largest noise minus the
    noise of the best candidate, so the upper bound is the mean of the largest of n noises; the lower one is attained on
    (x, ..., x, 0) with x = -log(n) / c.

    See `worst_case_error` for the parameters.

    >>> from dpselect import PermuteAndFlip
    >>> error_bounds(PermuteAndFlip(epsilon=1), 1000).upper
    13.815510557964274
    """
    worst, size = checked_mechanism(mechanism).worst, checked_count(n)
    unit = float_near(1 / mechanism.rate)
    lower, upper = worst.averages(math.log(size))
    return Bounds(lower * unit, upper * unit, size, mechanism.rate, worst)
