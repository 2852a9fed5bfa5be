"""Search for the largest epsilon that still has a property, such as to cost no more than a budget.

What can be promised before any data are seen: accuracies and epsilons from the number of candidates alone.

With the rate c = epsilon / score_range every figure is that of rate one divided by c.

What many selections cost under (epsilon, delta), by permute-and-flip and by the exponential mechanism.

At the same epsilon permute-and-flip is more accurate, and over many selections the exponential mechanism composes
better. So they are compared at equal error and at equal budget, from public numbers alone.

The figures of `dpselect plan`, as the analysis computes them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from dpselect import _validate
from dpselect._numbers import rounded_up_text
from dpselect._scores import losses
from dpselect._types import Number, Vector
from dpselect.accounting.totals import Approximate, approximate
from dpselect.analysis import epsilon_for, error_quantile, expected_error
from dpselect.analysis.worst_case import candidates, error_bounds, worst_case_error
from dpselect.errors import InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.registry import KINDS, MechanismName, name_of


def largest(holds: Callable[[Fraction], bool], start: Fraction, within: float) -> Fraction:
    """The largest epsilon with a property that larger ones lose, `within` a relative error and never above it.

    >>> float(largest(lambda epsilon: epsilon * epsilon <= 2, Fraction(1), within=1e-3))
    1.4140625
    """
    low = start
    while not holds(low):
        low /= 2
    high = 2 * low
    while holds(high):
        low, high = high, 2 * high
    while high > low * (1 + Fraction(within)):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


_BISECTIONS = 60
_ROUNDINGS = Fraction(1, 10**12)


@dataclass(frozen=True)
class Promise:
    """What holds for the error of one selection whatever the scores, in units of the scores."""

    mechanism: MechanismBase
    average: float  # the expected error is at most this ...
    attained: float  # ... and on some scores at least this
    within_95: float  # at least 95 of 100 selections have a smaller error
    within_99: float


def promise(mechanism: MechanismBase, n: int) -> Promise:
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
def _at_rate_one(kind: type[MechanismBase], n: int) -> tuple[float, float, float, float]:
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
    kind: type[MechanismBase],
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


_PRECISION = 1e-5


@dataclass(frozen=True)
class Rounds:
    """Selections by one mechanism: what each promises, and what all of them cost together."""

    each: Promise
    total: Approximate


@dataclass(frozen=True)
class EqualRounds:
    """The exponential mechanism beside permute-and-flip at the same error, and at the same (epsilon, delta)."""

    exponential: Rounds
    equal_error: Rounds
    equal_budget: Rounds

    @property
    def better(self) -> Rounds:
        """The one with the smaller error in the worst case at the same budget."""
        return min(self.equal_budget, self.exponential, key=lambda rounds: rounds.each.average)


def equal_rounds(exponential: ExponentialMechanism, n: int, count: int, delta: float) -> EqualRounds:
    """Compare `count` selections among n candidates.

    >>> compared = equal_rounds(ExponentialMechanism("0.5"), n=1000, count=20, delta=1e-6)
    >>> round(compared.exponential.total.epsilon, 1), round(compared.equal_error.total.epsilon, 1)
    (5.9, 9.3)
    >>> type(compared.better.each.mechanism).__name__
    'ExponentialMechanism'
    """

    def rounds(mechanism: MechanismBase) -> Rounds:
        releases = {(name_of(mechanism).value, mechanism.epsilon): count}
        return Rounds(promise(mechanism, n), approximate(releases, delta))

    def flip(epsilon: Fraction) -> PermuteAndFlip:
        return PermuteAndFlip(epsilon, **exponential.claim.arguments())

    theirs = rounds(exponential)
    # Worst cases are proportional to 1/epsilon.
    ratio = Fraction(promise(flip(exponential.epsilon), n).average) / Fraction(theirs.each.average)
    budget = theirs.total.epsilon
    affordable = affordable_epsilon(MechanismName.PERMUTE_AND_FLIP, count, budget, delta, exponential.epsilon)
    return EqualRounds(theirs, rounds(flip(exponential.epsilon * ratio)), rounds(flip(affordable)))


def affordable_epsilon(
    mechanism: MechanismName, count: int, budget: float, delta: float, start: Fraction | None = None
) -> Fraction:
    """The largest epsilon of each of `count` selections that cost at most `budget` together, with this delta.

    >>> each = affordable_epsilon(MechanismName.EXPONENTIAL, count=20, budget=1.0, delta=1e-6)
    >>> round(float(each), 3)
    0.099
    """
    first = Fraction(budget) / count if start is None else start

    def fits(epsilon: Fraction) -> bool:
        return approximate({(mechanism.value, epsilon): count}, delta).epsilon <= budget

    return largest(fits, first, _PRECISION)


@dataclass(frozen=True, repr=False)
class Question:
    """What the options ask, once checked: either an epsilon or an error is given."""

    candidates: int
    epsilon: Fraction | None
    error: Fraction | None
    claim: Claim
    selections: int
    delta: float | None
    file: str | None
    scores: Vector | None


@dataclass(frozen=True)
class Proxy:
    """A mechanism on the public scores: its errors at the given epsilon, or the epsilon that the given error needs."""

    expected_error: float | None = None
    error_95: float | None = None
    epsilon: float | None = None  # None beside no errors: every epsilon is enough


@dataclass(frozen=True, repr=False)
class Figures:
    """The answer: for each mechanism, and for many selections."""

    promises: dict[MechanismName, Promise]
    proxies: dict[MechanismName, Proxy]
    equal: EqualCost | None
    rounds: EqualRounds | None


def figures(question: Question) -> Figures:
    """All figures that the question asks for."""
    mechanisms = {name: _mechanism(kind, question) for name, kind in KINDS.items()}
    promises = {name: promise(mechanism, question.candidates) for name, mechanism in mechanisms.items()}
    scores = question.scores
    proxies = {} if scores is None else {name: _proxy(m, scores, question.error) for name, m in mechanisms.items()}
    epsilon, n, times = mechanisms[MechanismName.EXPONENTIAL].epsilon, question.candidates, question.selections
    exponential = ExponentialMechanism(epsilon, **question.claim.arguments())
    equal = None if times == 1 else equal_cost(exponential, n)
    rounds = None if question.delta is None else equal_rounds(exponential, n, times, question.delta)
    return Figures(promises, proxies, equal, rounds)


def _mechanism(kind: type[MechanismBase], question: Question) -> MechanismBase:
    epsilon, claim = question.epsilon, question.claim.arguments()
    if question.error is not None:
        n, error = question.candidates, question.error
        epsilon = epsilon_promising(kind, n, error=error, **claim)
    assert epsilon is not None
    return kind(epsilon, **claim)


def _proxy(mechanism: MechanismBase, scores: Vector, error: Fraction | None) -> Proxy:
    if error is None:
        return Proxy(expected_error(mechanism, scores), error_quantile(mechanism, scores, 0.95))
    target = float(error)
    if losses(scores).mean() <= target:  # the error of a uniform choice, which every mechanism stays below
        return Proxy()
    needed = epsilon_for(type(mechanism), scores, expected_error=target, **mechanism.claim.arguments())
    return Proxy(epsilon=needed)
