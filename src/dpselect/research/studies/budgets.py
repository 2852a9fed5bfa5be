"""How much each selection may cost when a whole procedure has a budget, in three units.

  pure             epsilon, which adds up;
  (epsilon, delta) by the accountant of the ledger, with delta = 10**-6;
  zCDP             the rho that implies the same (epsilon, delta), as in a ledger with that budget.

Measurements between the selections get half of the budget, and exactly the same noise for both mechanisms: they
are planned together with permute-and-flip, and the rest is spent on the selections of the exponential mechanism. They
have Laplace noise, which an accountant knows as report noisy max. Under zCDP they have Gaussian noise.
"""

import math
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache

from dpselect._numbers import float_below
from dpselect.accounting.budget import rho_within
from dpselect.accounting.totals import approximate
from dpselect.analysis.equal_cost import largest
from dpselect.mechanisms import ExponentialMechanism, MechanismBase, PermuteAndFlip, ReportNoisyMax
from dpselect.mechanisms.privacy import epsilon_of_rho

# The two mechanisms that are compared.
COMPARED: tuple[type[MechanismBase], ...] = (PermuteAndFlip, ExponentialMechanism)
DELTA = 1e-6
_PRECISION = 1e-3


class Currency(StrEnum):
    """The unit of a budget."""

    PURE = "pure epsilon"
    APPROXIMATE = "(epsilon, delta)"
    ZCDP = "zCDP"


@dataclass(frozen=True)
class Plan:
    """The epsilon of each selection, and the standard deviation of each measurement with its kind of noise."""

    epsilon: float
    deviation: float = 0.0
    gaussian: bool = False


@cache
def plan(currency: Currency, kind: type[MechanismBase], budget: float, selections: int, measured: bool) -> Plan:
    """What a budget buys: this many selections, each with or without a measurement of sensitivity one.

    >>> plan(Currency.PURE, ExponentialMechanism, 1.0, 10, measured=True)
    Plan(epsilon=0.05, deviation=28.284271247461902, gaussian=False)
    """
    if currency == Currency.PURE:
        each = budget / selections / (2 if measured else 1)
        return Plan(each, math.sqrt(2) / each if measured else 0.0)
    if currency == Currency.ZCDP:
        rho = rho_within(Fraction(budget), Fraction(DELTA)) / selections / (2 if measured else 1)
        each = float_below(epsilon_of_rho(kind.loss, rho))
        return Plan(each, math.sqrt(1 / (2 * rho)) if measured else 0.0, gaussian=True)
    beside = _affordable(PermuteAndFlip, budget, selections, None) if measured else 0.0
    return Plan(_affordable(kind, budget, selections, beside), math.sqrt(2) / beside if measured else 0.0)


def _affordable(kind: type[MechanismBase], budget: float, selections: int, measurement: float | None) -> float:
    """The largest epsilon of each selection, with Laplace measurements of this epsilon; None means the same epsilon."""

    def fits(epsilon: Fraction) -> bool:
        releases = Counter({(kind.name, epsilon): selections})
        beside = epsilon if measurement is None else Fraction(measurement)
        if beside:
            releases[ReportNoisyMax.name, beside] += selections  # its privacy loss is that of Laplace noise
        return approximate(releases, DELTA).epsilon <= budget

    return float_below(largest(fits, Fraction(budget / selections), _PRECISION))
