"""The total of a ledger or a plan: pure epsilon, zCDP, and (epsilon, delta) by Google's dp_accounting.

The pure sum is always a guarantee: questions, their epsilons and their number may all depend on
earlier answers. The loss of a transcript is at most the sum of its epsilons, so a budget of pure epsilon is a filter
(Rogers, Roth, Ullman & Vadhan 2016).

zCDP and (epsilon, delta) are guarantees if the list of mechanisms and epsilons, and with it their number, was fixed
before the first answer. Then each question, and the order of the list, may depend on earlier answers. If the list
was not fixed, they guarantee nothing: `tests/accounting/test_odometer.py` has a counterexample.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Protocol, runtime_checkable

from dpselect import _validate
from dpselect._numbers import float_above, rounded_up_text
from dpselect.accounting.charge import Charge, loss_of, rho_of
from dpselect.accounting.composition import Releases, loss_epsilon, renyi_epsilon, without_repeats
from dpselect.accounting.recursion import recursion_epsilon
from dpselect.errors import InvalidType, InvalidValue

Method = Literal["pure", "renyi", "loss distribution", "recursion"]


class HasCharge(Protocol):
    """An entry of a ledger."""

    @property
    def charge(self) -> Charge:
        """Return what was charged."""


@runtime_checkable
class HasCharges(Protocol):
    """A ledger."""

    def charges(self) -> Iterable[Charge]:
        """Return everything that was charged."""


Spent = HasCharges | Iterable[Charge | HasCharge]


@dataclass(frozen=True)
class Approximate:
    """An (epsilon, delta) guarantee, and the method that found its epsilon.

    Attributes:
        epsilon: an upper bound on epsilon, for this delta.
        delta: the failure probability.
        method: how epsilon was found.

    >>> total([Charge("mode", "0.1")], delta=1e-6).approximate.delta
    1e-06
    """

    epsilon: float
    delta: float
    method: Method


@dataclass(frozen=True)
class Total:
    """A total cost: exact pure epsilon, zCDP rounded up, and (epsilon, delta) on request.

    Pure epsilon is always a guarantee. The others are guarantees if the mechanisms, their epsilons and their
    number were fixed before the first answer.

    Attributes:
        epsilon: the exact sum of pure epsilons; None if a release has none.
        zcdp: the sum of rho, rounded up.
        delta: the exact sum of the deltas of releases that have one. The zCDP then holds except with this probability.
        approximate: an (epsilon, delta) guarantee, if a delta was given.

    >>> print(Total(Fraction(1, 3), zcdp=0.125))
    0.333334-DP (pure); if fixed beforehand: 0.125-zCDP
    """

    epsilon: Fraction | None
    zcdp: float
    approximate: Approximate | None = None
    delta: Fraction = Fraction(0)

    def __str__(self) -> str:
        return f"{self.always}; if fixed beforehand: {self.if_fixed}"

    @property
    def always(self) -> str:
        """Return a text that states what always holds."""
        return "no pure epsilon" if self.epsilon is None else f"{_shown(self.epsilon)}-DP (pure)"

    @property
    def if_fixed(self) -> str:
        """Return a text that states what holds if mechanisms, epsilons and their number were fixed in advance."""
        failure = f" except with probability {_shown(self.delta)}" if self.delta else ""
        rho = f"{'inf' if math.isinf(self.zcdp) else _shown(Fraction(self.zcdp))}-zCDP{failure}"
        if self.approximate is None:
            return rho
        return f"{rho}, ({_shown(Fraction(self.approximate.epsilon))}, {self.approximate.delta:g})-DP"


def total(spent: Spent, delta: float | str | None = None) -> Total:
    """Add up a ledger or planned charges; with `delta`, also compute the smallest known (epsilon, delta).

    Only the pure sum is a guarantee for a ledger whose questions, epsilons or number were chosen after seeing
    earlier answers. zCDP and (epsilon, delta) are guarantees for a list that was fixed in advance, such as a plan.

    Args:
        spent: a ledger, or charges or entries.
        delta: the failure probability of (epsilon, delta); without it, only pure epsilon and zCDP are computed.

    Returns:
        The exact pure epsilon, zCDP rounded up, and (epsilon, delta) on request.

    Raises:
        InvalidType: `spent` holds something else.
        InvalidValue: `delta` is not between 0 and 1.
        MissingExtra: `delta` is given, but dp-accounting is not installed.

    >>> charges = [Charge("mode", "0.1", "exponential")] * 100
    >>> print(total(charges))
    10-DP (pure); if fixed beforehand: 0.124983-zCDP
    >>> round(total(charges, delta=1e-6).approximate.epsilon, 2)
    2.25
    """
    charges = _charges(spent.charges() if isinstance(spent, HasCharges) else spent)
    releases = releases_of(charges)
    failure = sum((charge.delta for charge in charges if charge.delta), Fraction(0))
    epsilon = None if failure else _pure_sum(releases)
    rhos = (rho_of(name, each) * count for (name, each), count in releases.items())
    zcdp = float_above(sum(rhos, Fraction(0)))
    if delta is None:
        return Total(epsilon, zcdp, delta=failure)
    rest = _validate.fraction_of_one(delta=delta) - float_above(failure)
    if rest <= 0:
        raise InvalidValue(f"delta must be larger than that of the releases, {_shown(failure)}")
    found = approximate(releases, rest, joined=all(_is_joined(charge) for charge in charges))
    return Total(epsilon, zcdp, replace(found, delta=rest + float_above(failure)), failure)


def _charges(spent: Iterable[Charge | HasCharge]) -> list[Charge]:
    charges: list[Any] = [one if isinstance(one, Charge) else getattr(one, "charge", one) for one in spent]
    for charge in charges:
        if not isinstance(charge, Charge):
            raise InvalidType(f"spent must be a Ledger or hold charges or entries, got {type(charge).__name__}")
    return charges


def releases_of(spent: Iterable[Charge | HasCharge]) -> Releases:
    """How often each mechanism was released at each epsilon."""
    releases: Counter[tuple[str, Fraction]] = Counter()
    for charge in _charges(spent):
        releases[charge.composes_as, charge.each] += charge.count
    return releases


def _is_joined(charge: Charge) -> bool:
    """Whether each release is a post-processing of a pair of its family."""
    return not charge.in_halves or loss_of(charge.composes_as).joins_halves


def _pure_sum(releases: Releases) -> Fraction | None:
    """The sum of epsilons; None if only the rho of a release is known."""
    if not all(loss_of(name).is_pure for name, _ in releases):
        return None
    return sum((each * count for (_, each), count in releases.items()), Fraction(0))


def approximate(releases: Releases, delta: float, *, joined: bool = True) -> Approximate:
    """The smallest epsilon that is known for this delta: by any `Method`.

    The recursion needs releases that are `joined`: none stands for several of smaller epsilons that do not join.
    """
    exact = _pure_sum(releases)
    pure = math.inf if exact is None else float_above(exact)
    found: list[tuple[float, Method]] = [(pure, "pure")]
    if releases:
        found += [(renyi_epsilon(releases, delta), "renyi"), (loss_epsilon(releases, delta), "loss distribution")]
        if joined:
            found.append((_equal_epsilon(releases, delta, min(found)[0]), "recursion"))
    epsilon, method = min(found)
    return Approximate(epsilon, delta, method)


def _equal_epsilon(releases: Releases, delta: float, most: float) -> float:
    """The recursion's epsilon, if all releases are of one mechanism with one epsilon; otherwise infinity."""
    if len(releases) > 1:
        return math.inf
    [((name, each), count)] = without_repeats(releases).items()
    return recursion_epsilon(loss_of(name), each, count, delta, most)


def _shown(number: Fraction) -> str:
    return rounded_up_text(number) if number else "0"
