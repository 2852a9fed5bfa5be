"""What a mechanism promises for all scores of n candidates: bounds on its error, and the epsilon that a bound needs.

With the rate c = epsilon / score_range every error is that of rate one divided by c, so errors are computed once for
each mechanism and number of candidates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from dpselect import _validate
from dpselect._numbers import rounded_up_text
from dpselect._types import Number
from dpselect.analysis.worst_case import worst_exponent
from dpselect.errors import InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import stated

_BISECTIONS = 60


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
    rate = float(mechanism.rate)
    return Promise(mechanism, *(error / rate for error in _at_rate_one(type(mechanism), _checked(n))))


def rarely_exceeded(mechanism: MechanismBase, n: int, probability: float) -> float:
    """An error that one selection reaches with at most this probability, for all scores of n candidates.

    >>> from dpselect import PermuteAndFlip
    >>> rarely_exceeded(PermuteAndFlip(epsilon=1), 1000, 0.05) == promise(PermuteAndFlip(epsilon=1), 1000).within_95
    True
    """
    return _tail_at_rate_one(type(mechanism), _checked(n), probability) / float(mechanism.rate)


def _checked(n: int) -> int:
    """The number of candidates. A range of a column may have 2**64 of them.

    Beyond 2**53, a float of n has a relative error of 2**-53, which moves log n, and so every bound, by less than that.
    """
    size = _validate.count(n=n)
    if size < 1:
        raise InvalidValue("n must be >= 1: give at least one candidate")
    return size


@cache
def _at_rate_one(kind: type[MechanismBase], n: int) -> tuple[float, float, float, float]:
    worst = kind.worst
    attained = worst_exponent(worst, n)[1]
    average = attained if worst.is_exact or n == 1 else worst.averages(n)[1]
    return average, attained, _tail_at_rate_one(kind, n, 0.05), _tail_at_rate_one(kind, n, 0.01)


@cache
def _tail_at_rate_one(kind: type[MechanismBase], n: int, probability: float) -> float:
    return 0.0 if n == 1 else smallest(lambda x: kind.worst.tail(x, n) <= probability)


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
    if _checked(n) == 1:
        raise InvalidValue("every epsilon meets the target: there is one candidate, so the error is zero")
    unit = Fraction(promise(kind(1, **stated(sensitivity, monotonic, score_range).arguments()), n).average)
    return Fraction(rounded_up_text(unit / _validate.exact_positive(error=error), digits=4))


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
