"""What planned questions cost, in the arithmetic of the ledger: which charges it records, and when it refuses one.

A ledger records a charge at its exact cost if that is on a grid, and otherwise rounded up to a multiple of 1/ROUND
(`Budget.recorded`). Only a charge of exactly what is left need not be rounded. `times_allowed` follows these rules.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect.accounting.budget import Amount, Budget, ConcentratedBudget, PureBudget
from dpselect.accounting.charge import ROUND, Charge
from dpselect.analysis.questions import moderate
from dpselect.analysis.ways import WHAT, Way
from dpselect.errors import InvalidValue


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
    return PureBudget(Fraction(1)) if rho is None else ConcentratedBudget(Fraction(1), Fraction(0))


def free(currency: Budget) -> Cost:
    """What an answer costs that follows from public numbers alone."""
    nothing = currency.shown(Amount(Fraction(0)))
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
    return currency.shown(amount), currency.shown(amount._replace(value=amount.value * questions))


def times_allowed(budget: Budget, charge: Charge) -> int:
    """How many equal charges a new ledger with this budget records before it refuses one.

    >>> times_allowed(PureBudget(Fraction(1)), Charge(WHAT, "0.3"))
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


def share_of(budget: Budget, way: Way, questions: int) -> dict[str, Fraction]:
    """The largest price of each question, within 10**-50, at which a budget pays for this many: epsilon or rho.

    A cap on the epsilon of a single draw may leave a part of the budget unspent.

    >>> from dpselect.analysis.questions import Mode
    >>> from dpselect.analysis.ways import BySelection
    >>> share_of(PureBudget(Fraction(1)), BySelection(Mode(candidates=30)), 4)
    {'epsilon': Fraction(1, 4)}
    """
    currency = "epsilon" if budget.rho is None else "rho"
    cap = getattr(budget, "cap", None)
    share = budget.limit.value / questions
    if cap is not None:
        share = min(share, cap * way.draws)
    price = {currency: moderate(**{currency: share})}
    charge = Charge(WHAT, share) if currency == "epsilon" else Charge(WHAT, rho=share)
    if times_allowed(budget, charge) < questions:  # its cost is not on the grid
        price = {currency: moderate(**{currency: Fraction(share * ROUND // 1, ROUND)})}
    return price
