"""What can be promised before any data are seen: accuracies and epsilons from the number of candidates alone.

With the rate c = epsilon / score_range every figure is that of rate one divided by c.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from dpselect import _validate
from dpselect._exact import rounded_up_text
from dpselect.analysis.bounds import error_bounds
from dpselect.analysis.worst_case import candidates, worst_case_error
from dpselect.errors import InvalidValue
from dpselect.mechanisms.claim import stated
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.record import Number, SelectionRecord

_BISECTIONS = 60
_ROUNDINGS = Fraction(1, 10**12)


@dataclass(frozen=True)
class Promise:
    """What holds for the error of one selection whatever the scores, in units of the scores."""

    mechanism: SelectionRecord
    average: float  # the expected error is at most this ...
    attained: float  # ... and on some scores at least this
    within_95: float  # at least 95 of 100 selections have a smaller error
    within_99: float


def promise(mechanism: SelectionRecord, n: int) -> Promise:
    """The promise of a mechanism for n candidates.

    For permute-and-flip and the exponential mechanism `average` is the exact worst case, so it is attained. For report
    noisy max no exact worst case is known.

    >>> promised = promise(PermuteAndFlip(epsilon=1), 1000)
    >>> round(promised.average, 2), round(promised.within_95, 2)
    (8.53, 19.81)
    """
    rate = float(mechanism.rate)
    return Promise(mechanism, *(figure / rate for figure in _at_rate_one(type(mechanism), candidates(n))))


@cache
def _at_rate_one(kind: type[SelectionRecord], n: int) -> tuple[float, float, float, float]:
    if n == 1:
        return 0.0, 0.0, 0.0, 0.0
    mechanism = kind(1, score_range=1)
    bounds = error_bounds(mechanism, n)
    is_noisy_max = issubclass(kind, ReportNoisyMax)
    attained = worst_case_error(mechanism, n).error
    average = bounds.upper if is_noisy_max else attained
    within_95 = _first(lambda error: bounds.tail(error) <= 0.05)
    return average, attained, within_95, _first(lambda error: bounds.tail(error) <= 0.01)


def epsilon_promising(  # noqa: PLR0913 - the claim is stated by keyword
    kind: type[SelectionRecord],
    n: int,
    *,
    error: Number,
    sensitivity: Number | None = None,
    monotonic: bool = False,
    score_range: Number | None = None,
) -> Fraction:
    """The epsilon that promises an expected error of at most `error`, rounded up to four digits.

    >>> epsilon_promising(PermuteAndFlip, 1000, error=5)
    Fraction(1707, 1000)
    """
    if candidates(n) == 1:
        raise InvalidValue("every epsilon meets the target: there is one candidate, so the error is zero")
    unit = Fraction(promise(kind(1, **stated(sensitivity, monotonic, score_range).arguments()), n).average)
    return Fraction(rounded_up_text(unit / _validate.exact_positive(error=error), digits=4))


@dataclass(frozen=True)
class EqualCost:
    """The two mechanisms at epsilons of the same rho of zCDP: equal costs, however many selections share a budget."""

    rho: float
    exponential: Promise
    permute_and_flip: Promise

    @property
    def better(self) -> Promise:
        """The one with the smaller expected error in the worst case."""
        return min(self.permute_and_flip, self.exponential, key=lambda promised: promised.average)


def equal_cost(exponential: ExponentialMechanism, n: int) -> EqualCost:
    """Permute-and-flip at the largest epsilon that costs no more zCDP than this exponential mechanism.

    >>> equal = equal_cost(ExponentialMechanism(epsilon=0.5), 1000)
    >>> round(float(equal.permute_and_flip.mechanism.epsilon), 3), type(equal.better.mechanism).__name__
    (0.261, 'ExponentialMechanism')
    """
    rho = exponential.guarantee.zcdp
    beyond = _first(lambda epsilon: PermuteAndFlip(epsilon).guarantee.zcdp > rho)
    affordable = Fraction(beyond) * (1 - _ROUNDINGS)
    other = PermuteAndFlip(affordable, **exponential.claim.arguments())
    return EqualCost(rho, promise(exponential, n), promise(other, n))


def _first(holds: Callable[[float], bool]) -> float:
    """The smallest positive number from which on the property holds, within rounding and on the side where it holds."""
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
