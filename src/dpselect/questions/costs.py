"""What planned questions cost, in the arithmetic of the ledger: which charges it records, and when it refuses one.

A ledger records a charge at its exact cost if that is on a grid, and otherwise rounded up to a multiple of 1/ROUND
(`Budget.recorded`). Only a charge of exactly what is left need not be rounded. `times_allowed` follows these rules.

**Equal cost.** At the same epsilon, permute-and-flip is more accurate, but over many selections the exponential
mechanism composes better. So the two are compared at the same rho of zCDP, and under (epsilon, delta) at the same
error and at the same total. The totals are those of the best known accounting, for epsilons that are fixed in
advance. What a ledger allows is in `planning`.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect import _validate
from dpselect._numbers import first_true, last_true
from dpselect.accounting.budget import Amount, Budget, pure, zcdp
from dpselect.accounting.charge import ROUND, Charge
from dpselect.accounting.totals import Approximate, approximate
from dpselect.analysis.promises import ErrorsOf, Promise, promised_by
from dpselect.errors import InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.questions.question import WHAT, Question


@dataclass(frozen=True)
class Cost:
    """What a question costs by one mechanism, in the currency of the budget.

    Attributes:
        charge: what a ledger is asked to record for one question: the number of draws, and the epsilon of each; None if
            it costs nothing.
        one: the cost of one question.
        total: the cost of all questions.
        allowed: how many such questions the budget pays for; None without a budget.
        refusal: why the budget allows none, if it is for another reason than its size.
    """

    charge: Charge | None
    one: Budget
    total: Budget
    allowed: int | None
    refusal: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the cost in the types of JSON.

        Returns:
            The draws, the epsilon of each, epsilon and rho of one question as floats, and the exact costs in the
            currency of the budget.
        """
        charge = self.charge
        return {
            "mechanism": None if charge is None else charge.mechanism,
            "draws": 0 if charge is None else charge.count,
            "epsilon_each": 0.0 if charge is None else float(charge.each),
            "epsilon": 0.0 if charge is None else float(charge.each * charge.count),
            "rho": 0.0 if charge is None else float(charge.rho),
            "one": self.one.to_dict(),
            "total": self.total.to_dict(),
            "questions_allowed": self.allowed,
            "refusal": self.refusal,
        }


def currency_of(budget: Budget | None, rho: Fraction | None) -> Budget:
    """The budget; without one, any budget of the currency of the price."""
    if budget is not None:
        return budget
    return pure(1) if rho is None else zcdp(1)


def free(currency: Budget) -> Cost:
    """What an answer costs that follows from public numbers alone."""
    nothing = currency.of(Amount())
    return Cost(None, nothing, nothing, None, None)


def cost(charge: Charge, questions: int, budget: Budget | None, currency: Budget) -> Cost:
    """What this many charges cost, and how many of them the budget pays for."""
    if budget is None:
        return Cost(charge, *_amounts(currency.recorded(charge), questions, currency), None, None)
    try:
        budget.check(charge)
    except InvalidValue as error:  # it is never recorded, and a cap would hide what it costs
        return Cost(charge, *_amounts(charge, questions, currency), 0, str(error))
    amounts = _amounts(currency.recorded(charge), questions, currency)
    return Cost(charge, *amounts, times_allowed(budget, charge), None)


def _amounts(charge: Charge, questions: int, currency: Budget) -> tuple[Budget, Budget]:
    """What one charge and this many of them cost."""
    amount = currency.amount(charge)
    return currency.of(amount), currency.of(amount._replace(value=amount.value * questions))


def times_allowed(budget: Budget, charge: Charge) -> int:
    """How many equal charges a new ledger with this budget records before it refuses one.

    >>> times_allowed(pure(1), Charge(WHAT, "0.3"))
    3
    """
    limit, exact = budget.limit.value, budget.amount(charge).value
    recorded = budget.amount(budget.recorded(charge)).value
    times = limit // recorded
    # If the cost was rounded up, one more at its exact cost may take exactly what is left.
    allowed = int(times) + (times * recorded + exact == limit)
    return allowed if not charge.delta else min(allowed, _times_of_delta(budget, charge))


def _times_of_delta(budget: Budget, charge: Charge) -> int:
    """For how many equal charges the delta of a budget is enough."""
    return int(budget.limit.delta // budget.amount(budget.recorded(charge)).delta)


def share_of(budget: Budget, question: Question, questions: int) -> dict[str, Fraction]:
    """The largest price of each question, within 10**-50, at which a budget pays for this many: epsilon or rho.

    A cap on the epsilon of a single draw may leave a part of the budget unspent.

    >>> from dpselect.questions.most import Mode
    >>> share_of(pure(1), Mode(candidates=30), 4)
    {'epsilon': Fraction(1, 4)}
    """
    currency = "epsilon" if budget.rho is None else "rho"
    share = budget.limit.value / questions
    if budget.cap is not None:
        share = min(share, budget.cap * question.draws)
    price = {currency: _validate.moderate(**{currency: share})}
    charge = Charge(WHAT, share) if currency == "epsilon" else Charge(WHAT, rho=share)
    if times_allowed(budget, charge) < questions:  # its cost is not on the grid
        price = {currency: _validate.moderate(**{currency: Fraction(share * ROUND // 1, ROUND)})}
    return price


_ROUNDINGS = Fraction(1, 10**12)
_PRECISION = 1e-5


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
    beyond = first_true(lambda epsilon: PermuteAndFlip.loss.zcdp(Fraction(epsilon)) > rho, 1.0)
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

    return last_true(fits, first, within=_PRECISION)
