"""What many selections cost under (epsilon, delta), by permute-and-flip and by the exponential mechanism.

At the same epsilon permute-and-flip is more accurate, and over many selections the exponential mechanism composes
better. So they are compared at equal error and at equal budget, from public numbers alone.
"""

from dataclasses import dataclass
from fractions import Fraction

from dpselect.analysis.plan import Promise, promise
from dpselect.ledger.accounting import Approximate, approximate
from dpselect.ledger.largest import largest
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.names import MechanismName, name_of
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.record import SelectionRecord

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

    def rounds(mechanism: SelectionRecord) -> Rounds:
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
