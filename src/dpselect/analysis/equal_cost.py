"""The exponential mechanism and permute-and-flip at equal cost, for many selections.

At the same epsilon, permute-and-flip is more accurate, but over many selections the exponential mechanism composes
better. So the two are compared at the same rho of zCDP, and under (epsilon, delta) at the same error and at the same
total. The totals are those of the best known accounting, for epsilons that are fixed in advance. What a ledger allows
is in `planning`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpselect.accounting.totals import Approximate, approximate
from dpselect.analysis.promises import ErrorsOf, Promise, promised_by, smallest
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip

_ROUNDINGS = Fraction(1, 10**12)
_PRECISION = 1e-5


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


def equal_cost(exponential: MechanismBase, errors_of: ErrorsOf) -> EqualCost:
    """Permute-and-flip at the largest epsilon that costs no more zCDP than this exponential mechanism.

    >>> from dpselect import ExponentialMechanism
    >>> from dpselect.analysis.promises import among
    >>> equal = equal_cost(ExponentialMechanism(epsilon=0.5), among(1000))
    >>> round(float(equal.permute_and_flip.mechanism.epsilon), 3), equal.better.mechanism.name
    (0.266, 'exponential')
    """
    rho = exponential.guarantee.zcdp
    beyond = smallest(lambda epsilon: PermuteAndFlip.loss.zcdp(Fraction(epsilon)) > rho)
    affordable = Fraction(beyond) * (1 - _ROUNDINGS)
    other = PermuteAndFlip(affordable, **exponential.claim.arguments())
    return EqualCost(rho, promised_by(exponential, errors_of), promised_by(other, errors_of))


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


def equal_rounds(exponential: MechanismBase, errors_of: ErrorsOf, count: int, delta: float) -> EqualRounds:
    """Compare `count` selections.

    >>> from dpselect import ExponentialMechanism
    >>> from dpselect.analysis.promises import among
    >>> compared = equal_rounds(ExponentialMechanism("0.5"), among(1000), count=20, delta=1e-6)
    >>> round(compared.exponential.total.epsilon, 1), round(compared.equal_error.total.epsilon, 1)
    (5.4, 9.3)
    >>> compared.better.each.mechanism.name
    'exponential'
    """

    def rounds(mechanism: MechanismBase) -> Rounds:
        return Rounds(
            promised_by(mechanism, errors_of), approximate({(mechanism.name, mechanism.epsilon): count}, delta)
        )

    def flip(epsilon: Fraction) -> PermuteAndFlip:
        return PermuteAndFlip(epsilon, **exponential.claim.arguments())

    theirs = rounds(exponential)
    # Worst cases are proportional to 1/epsilon.
    ratio = Fraction(promised_by(flip(exponential.epsilon), errors_of).average) / Fraction(theirs.each.average)
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
