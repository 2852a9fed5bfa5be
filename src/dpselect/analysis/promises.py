"""What a mechanism promises for all scores of n candidates: bounds on its error, and the epsilon that a bound needs.

With the rate c = epsilon / score_range every error is that of rate one divided by c, so errors are computed once for
each mechanism and number of candidates.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial

from dpselect import _validate
from dpselect._numbers import rounded_up_text
from dpselect._types import Number
from dpselect.analysis.worst_case import checked_count, worst_exponent
from dpselect.errors import InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import stated

_BISECTIONS = 60


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
        """Return an error that is reached with at most this probability."""
        return 0.0 if self.tail(0.0) <= probability else smallest(lambda x: self.tail(x) <= probability)


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
    average: float  # the expected error is at most this ...
    attained: float  # ... and on some scores at least this
    within_95: float  # at least 95 of 100 selections have a smaller error
    within_99: float


def promise(mechanism: MechanismBase, n: int) -> Promise:
    """The bounds of a mechanism for n candidates.

    For permute-and-flip and the exponential mechanism, `average` is the exact worst case, so it is attained. For report
    noisy max, the exact worst case is not known.

    >>> from dpselect import PermuteAndFlip
    >>> promised = promise(PermuteAndFlip(epsilon=1), 1000)
    >>> round(promised.average, 2), round(promised.within_95, 2)
    (8.53, 19.81)
    """
    return promised_by(mechanism, among(n))


def promised_by(mechanism: MechanismBase, errors_of: ErrorsOf) -> Promise:
    """The bounds of a mechanism at its rate."""
    rate, errors = float(mechanism.rate), errors_of(type(mechanism))
    tails = (errors.rarely_exceeded(probability) for probability in (0.05, 0.01))
    return Promise(mechanism, *(error / rate for error in (errors.average, errors.attained, *tails)))


def rarely_exceeded(mechanism: MechanismBase, n: int, probability: float) -> float:
    """An error that one selection reaches with at most this probability, for all scores of n candidates.

    >>> from dpselect import PermuteAndFlip
    >>> rarely_exceeded(PermuteAndFlip(epsilon=1), 1000, 0.05) == promise(PermuteAndFlip(epsilon=1), 1000).within_95
    True
    """
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


def epsilon_promising(  # noqa: PLR0913 - the claim is stated by keyword
    kind: type[MechanismBase],
    n: int,
    *,
    error: Number,
    sensitivity: Number | None = None,
    monotonic: bool = False,
    score_range: Number | None = None,
) -> Fraction:
    """Find the epsilon that guarantees an expected error of at most `error`, rounded up to four digits.

    >>> from dpselect import PermuteAndFlip
    >>> epsilon_promising(PermuteAndFlip, 1000, error=5)
    Fraction(1707, 1000)
    """
    unit = kind(1, **stated(sensitivity, monotonic, score_range).arguments())
    return epsilon_for_average(promise(unit, n).average, error)


def epsilon_for_average(average: float, error: Number) -> Fraction:
    """The epsilon at which an average, given at epsilon one, is at most `error`; rounded up to four digits."""
    if not average:
        raise InvalidValue("every epsilon meets the target: there is no choice, so the error is zero")
    return Fraction(rounded_up_text(Fraction(average) / _validate.exact_positive(error=error), digits=4))


def smallest(holds: Callable[[float], bool]) -> float:
    """The smallest positive number from which the property holds, up to rounding, on the side where it holds."""
    high = 1.0
    while not holds(high):
        high *= 2
    while holds(high / 2):
        high /= 2
    low = high / 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
