"""Plan before any data are seen: accuracies and epsilons from the number of candidates alone.

`plan` is what `dpselect plan` prints. With the rate c = epsilon / score_range every error is that of rate one divided
by c, so errors are computed once for each mechanism and number of candidates.

At the same epsilon, permute-and-flip is more accurate, but over many selections the exponential mechanism composes
better. So the two are compared at equal cost: at the same rho of zCDP, and under (epsilon, delta) at the same error and
at the same total.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from dpselect import _validate
from dpselect._numbers import exact_text, rounded_up_text, shortest_text
from dpselect._scores import as_vector, losses
from dpselect._types import Number, Vector
from dpselect.accounting.totals import Approximate, approximate
from dpselect.analysis.calibrate import epsilon_for
from dpselect.analysis.error import error_quantile, expected_error
from dpselect.analysis.worst_case import checked_count, worst_exponent
from dpselect.errors import InvalidValue
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip


def largest(holds: Callable[[Fraction], bool], start: Fraction, within: float) -> Fraction:
    """Find the largest epsilon with a property that larger ones lose, `within` a relative error and never above it.

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

    >>> promised = promise(PermuteAndFlip(epsilon=1), 1000)
    >>> round(promised.average, 2), round(promised.within_95, 2)
    (8.53, 19.81)
    """
    rate = float(mechanism.rate)
    return Promise(mechanism, *(error / rate for error in _at_rate_one(type(mechanism), checked_count(n))))


@cache
def _at_rate_one(kind: type[MechanismBase], n: int) -> tuple[float, float, float, float]:
    if n == 1:
        return 0.0, 0.0, 0.0, 0.0
    worst = kind.worst
    attained = worst_exponent(worst, n)[1]
    average = attained if worst.is_exact else worst.averages(n)[1]
    within_95 = _first(lambda x: worst.tail(x, n) <= 0.05)
    return average, attained, within_95, _first(lambda x: worst.tail(x, n) <= 0.01)


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

    >>> epsilon_promising(PermuteAndFlip, 1000, error=5)
    Fraction(1707, 1000)
    """
    if checked_count(n) == 1:
        raise InvalidValue("every epsilon meets the target: there is one candidate, so the error is zero")
    unit = Fraction(promise(kind(1, **stated(sensitivity, monotonic, score_range).arguments()), n).average)
    return Fraction(rounded_up_text(unit / _validate.exact_positive(error=error), digits=4))


@dataclass(frozen=True)
class EqualCost:
    """The two mechanisms at epsilons with the same zCDP rho: equal costs for any number of selections."""

    rho: float
    exponential: Promise
    permute_and_flip: Promise

    @property
    def better(self) -> Promise:
        """Return the one with the smaller expected error in the worst case."""
        return min(self.permute_and_flip, self.exponential, key=lambda promised: promised.average)


def equal_cost(exponential: MechanismBase, n: int) -> EqualCost:
    """Permute-and-flip at the largest epsilon that costs no more zCDP than this exponential mechanism.

    >>> equal = equal_cost(ExponentialMechanism(epsilon=0.5), 1000)
    >>> round(float(equal.permute_and_flip.mechanism.epsilon), 3), equal.better.mechanism.name
    (0.266, 'exponential')
    """
    rho = exponential.guarantee.zcdp
    beyond = _first(lambda epsilon: PermuteAndFlip.loss.zcdp(Fraction(epsilon)) > rho)
    affordable = Fraction(beyond) * (1 - _ROUNDINGS)
    other = PermuteAndFlip(affordable, **exponential.claim.arguments())
    return EqualCost(rho, promise(exponential, n), promise(other, n))


def _first(holds: Callable[[float], bool]) -> float:
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


_PRECISION = 1e-5


@dataclass(frozen=True)
class Rounds:
    """Selections by one mechanism: the bounds of each, and their total cost."""

    each: Promise
    total: Approximate


@dataclass(frozen=True)
class EqualRounds:
    """The exponential mechanism, and permute-and-flip at the same error and at the same (epsilon, delta)."""

    exponential: Rounds
    equal_error: Rounds
    equal_budget: Rounds

    @property
    def better(self) -> Rounds:
        """Return the one with the smaller error in the worst case at the same budget."""
        return min(self.equal_budget, self.exponential, key=lambda rounds: rounds.each.average)


def equal_rounds(exponential: MechanismBase, n: int, count: int, delta: float) -> EqualRounds:
    """Compare `count` selections among n candidates.

    >>> compared = equal_rounds(ExponentialMechanism("0.5"), n=1000, count=20, delta=1e-6)
    >>> round(compared.exponential.total.epsilon, 1), round(compared.equal_error.total.epsilon, 1)
    (5.4, 9.3)
    >>> compared.better.each.mechanism.name
    'exponential'
    """

    def rounds(mechanism: MechanismBase) -> Rounds:
        return Rounds(promise(mechanism, n), approximate({(mechanism.name, mechanism.epsilon): count}, delta))

    def flip(epsilon: Fraction) -> PermuteAndFlip:
        return PermuteAndFlip(epsilon, **exponential.claim.arguments())

    theirs = rounds(exponential)
    # Worst cases are proportional to 1/epsilon.
    ratio = Fraction(promise(flip(exponential.epsilon), n).average) / Fraction(theirs.each.average)
    budget = theirs.total.epsilon
    affordable = affordable_epsilon(PermuteAndFlip.name, count, budget, delta, exponential.epsilon)
    return EqualRounds(theirs, rounds(flip(exponential.epsilon * ratio)), rounds(flip(affordable)))


def affordable_epsilon(
    mechanism: str, count: int, budget: float, delta: float, start: Fraction | None = None
) -> Fraction:
    """Find the largest epsilon at which `count` selections cost at most `budget` together, with this delta.

    >>> each = affordable_epsilon("exponential", count=20, budget=1.0, delta=1e-6)
    >>> round(float(each), 3)
    0.107
    """
    first = Fraction(budget) / count if start is None else start

    def fits(epsilon: Fraction) -> bool:
        return approximate({(mechanism, epsilon): count}, delta).epsilon <= budget

    return largest(fits, first, _PRECISION)


@dataclass(frozen=True)
class OnScores:
    """A mechanism on public scores: its errors at the given epsilon, or the epsilon that the given error needs."""

    expected_error: float | None = None
    error_95: float | None = None
    epsilon: float | None = None  # None without errors: every epsilon is enough


@dataclass(frozen=True, repr=False)
class Plan:
    """What to expect from each mechanism, by name, and what many selections cost together.

    `promises` and the comparisons follow from public numbers alone. `on_scores` is as private as the scores that were
    given, and empty without them.

    Attributes:
        candidates: the number of candidates.
        claim: how far apart neighbours are.
        epsilon: the epsilon of each selection, if it was given.
        error: the expected error, if it was given instead.
        selections: the number of selections that share a budget.
        delta: the delta of the (epsilon, delta) comparison, if it was given.
        promises: the bounds of each mechanism.
        on_scores: the exact results of each mechanism on the given scores.
        equal_cost: the comparison at equal zCDP, for more than one selection.
        equal_rounds: the comparison under (epsilon, delta), if a delta was given.

    >>> plan(candidates=1000, epsilon="0.5").promises["permute-and-flip"].average < 17.07
    True
    """

    candidates: int
    claim: Claim
    epsilon: Fraction | None  # of each selection, if it was given ...
    error: Fraction | None  # ... or the expected error, if that was given
    selections: int
    delta: float | None
    promises: Mapping[str, Promise]
    on_scores: Mapping[str, OnScores]
    equal_cost: EqualCost | None  # for more than one selection
    equal_rounds: EqualRounds | None  # with a delta

    def __repr__(self) -> str:
        given = {"epsilon": self.epsilon, "error": self.error}
        [asked] = (f"{name}={shortest_text(number)}" for name, number in given.items() if number is not None)
        return f"Plan(candidates={self.candidates}, {asked}, {self.claim.code()}, selections={self.selections})"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in the types of JSON: the question as exact strings, and the results as unrounded floats.

        Returns:
            What `dpselect plan --json` prints.

        >>> plan(1000, epsilon="0.5").to_dict()["mechanisms"][1]["mechanism"]
        'exponential'
        """
        return {
            "candidates": self.candidates,
            **self.claim.to_json(),
            "epsilon": None if self.epsilon is None else exact_text(self.epsilon),
            "error": None if self.error is None else exact_text(self.error),
            "selections": self.selections,
            "mechanisms": [self._promised(name) for name in self.promises],
            "better_for_one": PermuteAndFlip.name,
            "better_for_many": None if self.equal_cost is None else self._at_equal_cost(self.equal_cost),
            "approximate": None if self.equal_rounds is None else _approximate(self.equal_rounds),
            "proxy": {"mechanisms": [self._on_scores(name) for name in self.on_scores]} if self.on_scores else None,
        }

    def _promised(self, name: str) -> dict[str, Any]:
        promised = self.promises[name]
        guarantee = promised.mechanism.guarantee
        return {
            "mechanism": name,
            "epsilon": float(guarantee.epsilon),
            "expected_error_at_most": promised.average,
            "expected_error_attained": promised.attained,
            "error_95": promised.within_95,
            "error_99": promised.within_99,
            "total_epsilon": float(guarantee.epsilon * self.selections),
            "total_zcdp": guarantee.zcdp * self.selections,
        }

    def _at_equal_cost(self, equal: EqualCost) -> dict[str, Any]:
        return {
            "pure": PermuteAndFlip.name,
            "zcdp": equal.better.mechanism.name,
            "at_total_zcdp": equal.rho * self.selections,
            **{
                one.mechanism.name: {"epsilon": float(one.mechanism.epsilon), "expected_error_at_most": one.average}
                for one in (equal.exponential, equal.permute_and_flip)
            },
        }

    def _on_scores(self, name: str) -> dict[str, Any]:
        found, shown = self.on_scores[name], ("epsilon",) if self.epsilon is None else ("expected_error", "error_95")
        return {"mechanism": name, **{key: getattr(found, key) for key in shown}}


def _approximate(compared: EqualRounds) -> dict[str, Any]:
    return {
        "delta": compared.exponential.total.delta,
        "better": compared.better.each.mechanism.name,
        "exponential": _rounds(compared.exponential),
        "permute-and-flip at equal error": _rounds(compared.equal_error),
        "permute-and-flip at equal budget": _rounds(compared.equal_budget),
    }


def _rounds(rounds: Rounds) -> dict[str, Any]:
    return {
        "epsilon": float(rounds.each.mechanism.epsilon),
        "expected_error_at_most": rounds.each.average,
        "total_epsilon": rounds.total.epsilon,
        "method": rounds.total.method,
    }


_MOST_SELECTIONS = 10**9
# Results are floats. This is far beyond any use, and far below numbers whose square overflows.
_FARTHEST = Fraction(10**50)


def plan(  # noqa: PLR0913 - the question, by keyword
    candidates: int | None = None,
    *,
    epsilon: Number | None = None,
    error: Number | None = None,
    sensitivity: Number | None = None,
    monotonic: bool = False,
    score_range: Number | None = None,
    selections: int = 1,
    delta: Number | None = None,
    scores: Any = None,
) -> Plan:
    """Plan what accuracy to expect from an epsilon, or what epsilon an accuracy needs, before any data are seen.

    Give either `epsilon` or `error`. All promises hold for all scores, and follow from public numbers alone. With
    `scores`, which should be public or synthetic, the plan also has exact results on these scores.

    Args:
        candidates: the number of candidates; the length of `scores` if omitted.
        epsilon: the epsilon of each selection; the plan then has its error.
        error: the acceptable average distance from the best, in units of the scores; the plan then has the epsilon.
        sensitivity: the largest change of any single score when one person changes; 1 if omitted.
        monotonic: whether one person moves all scores in the same direction, as with counts of people.
        score_range: the largest change of the difference of two scores; replaces the other two.
        selections: the number of selections that share one privacy budget.
        delta: if given, also compare their total cost as (epsilon, delta). Needs dp-accounting.
        scores: public or synthetic scores, one for each candidate.

    Returns:
        The bounds of each mechanism by name and, for many selections, which of two mechanisms is better.

    Raises:
        InvalidType: an argument is not a number.
        InvalidValue: both or none of `epsilon` and `error` are given, or a number is out of range.
        MissingExtra: `delta` is given, and dp-accounting is not installed.

    >>> planned = plan(1000, epsilon="0.5")
    >>> round(planned.promises["permute-and-flip"].average, 2)
    17.06
    >>> plan(1000, error=20, monotonic=True).promises["permute-and-flip"].mechanism.epsilon
    Fraction(2133, 10000)
    """
    if (epsilon is None) == (error is None):
        raise InvalidValue("give either epsilon to get the error, or error to get the epsilon")
    spent, wanted = (
        None if n is None else _moderate(**{key: n}) for key, n in (("epsilon", epsilon), ("error", error))
    )
    claim = stated(sensitivity, monotonic, score_range)
    _moderate(**({"score_range": claim.score_range} if claim.by_range else {"sensitivity": claim.sensitivity}))
    count = _whole(1, _MOST_SELECTIONS, selections=selections)
    doubt = None if delta is None else _validate.fraction_of_one(delta=delta)
    vector = None if scores is None else as_vector(scores)
    n = _size(candidates, vector)
    mechanisms = {name: _mechanism(kind, n, spent, wanted, claim) for name, kind in MECHANISMS.items()}
    exponential = mechanisms[ExponentialMechanism.name]
    return Plan(
        n,
        claim,
        spent,
        wanted,
        count,
        doubt,
        {name: promise(mechanism, n) for name, mechanism in mechanisms.items()},
        {} if vector is None else {name: _on_scores(one, vector, wanted) for name, one in mechanisms.items()},
        None if count == 1 else equal_cost(exponential, n),
        None if doubt is None else equal_rounds(exponential, n, count, doubt),
    )


def _size(candidates: int | None, vector: Vector | None) -> int:
    if candidates is None and vector is None:
        raise InvalidValue("give candidates, the number of candidates, or public scores")
    return _whole(2, 2**53, candidates=len(vector) if candidates is None and vector is not None else candidates)


def _whole(least: int, most: int, **parameter: Any) -> int:
    [(name, _)] = parameter.items()
    number = _validate.count(**parameter)
    if not least <= number <= most:
        raise InvalidValue(f"{name} must be a whole number from {least:,} to {most:,}, got {number}")
    return number


def _moderate(**parameter: Any) -> Fraction:
    """A positive number that floats can be computed with."""
    [(name, _)] = parameter.items()
    number = _validate.exact_positive(**parameter)
    if not 1 / _FARTHEST <= number <= _FARTHEST:
        raise InvalidValue(f"{name} must be between 1e-50 and 1e50: give it in another unit")
    return number


def _mechanism(
    kind: type[MechanismBase], n: int, epsilon: Fraction | None, error: Fraction | None, claim: Claim
) -> MechanismBase:
    if error is not None:
        epsilon = epsilon_promising(kind, n, error=error, **claim.arguments())
    assert epsilon is not None
    return kind(epsilon, **claim.arguments())


def _on_scores(mechanism: MechanismBase, scores: Vector, error: Fraction | None) -> OnScores:
    if error is None:
        return OnScores(expected_error(mechanism, scores), error_quantile(mechanism, scores, 0.95))
    target = float(error)
    if losses(scores).mean() <= target:  # the error of a uniform choice: no mechanism exceeds it
        return OnScores()
    return OnScores(epsilon=epsilon_for(type(mechanism), scores, expected_error=target, **mechanism.claim.arguments()))
