"""What a budget means for a person: how much a belief about them can grow by everything that the budget pays for.

Somebody believes with probability p that a person is in the data, and then sees an answer y. Let L = ln(P(y) / Q(y)) be
the privacy loss of y, where P is the law of the answers with the person and Q the law without them. By Bayes' rule the
belief becomes

    p e^L / (p e^L + 1 - p) = p / (p + (1 - p) e^-L),

which grows with L. With pure epsilon, L is at most epsilon for every answer. With zCDP it is at most

    rho + 2 sqrt(rho ln(1 / delta)),

except with probability delta (Bun & Steinke 2016): for every order a > 1 the mean of exp((a - 1) L) is at most
exp((a - 1) a rho), so by Markov's inequality L exceeds t with probability at most exp((a - 1)(a rho - t)), which is
exp(-(t - rho)^2 / (4 rho)) for a = (t + rho) / (2 rho). An (epsilon, delta) budget adds up rho, so this holds for it,
too.
"""

import math
from fractions import Fraction

from dpselect import _validate
from dpselect._numbers import float_above
from dpselect._types import Number
from dpselect.accounting.budget import Budget, as_budget

# A few operations in floats, each within 2^-53 relative, of positive terms: far below this.
_ROUNDED_UP = 1 + 1e-14


def largest_loss(budget: Budget, delta: float) -> float:
    """How large the privacy loss can be, except with probability `delta`, which pure epsilon does not need."""
    if budget.rho is None:
        return float_above(Fraction(budget.epsilon or 0))
    rho = float_above(budget.rho)
    return (rho + 2 * math.sqrt(rho * -math.log(delta))) * _ROUNDED_UP


def largest_belief(prior: Number, budget: Number | Budget, delta: Number = "1e-6") -> float:
    """Return the largest belief that a person is in the data, after all answers that a budget pays for.

    Args:
        prior: the belief before, strictly between 0 and 1.
        budget: a number for pure epsilon, text such as "zcdp:0.5" or "1,1e-6", or a `Budget`.
        delta: the probability with which the belief may be larger, if the budget is not pure epsilon. If releases have
            a delta of their own, that of the budget comes on top of it.

    Returns:
        The belief after, rounded up.

    Raises:
        InvalidType: an argument is not a number.
        InvalidValue: `prior` or `delta` is not between 0 and 1, or the budget is not valid.

    >>> round(largest_belief("0.5", 1), 4), round(largest_belief("0.01", 1), 4)
    (0.7311, 0.0267)
    >>> round(largest_belief("0.5", "1,1e-6"), 3)
    0.759
    """
    before = _validate.fraction_of_one(prior=prior)
    doubt = _validate.fraction_of_one(delta=delta)
    _validate.warn_of_large_delta(doubt)
    less_likely = math.exp(-largest_loss(as_budget(budget), doubt))
    return min(1.0, before / (before + (1 - before) * less_likely) * _ROUNDED_UP)
