"""How private a mechanism is: what one selection guarantees, and how many of them compose.

A `PrivacyLoss` bounds the privacy loss of every mechanism of one family, in the three forms that accountants use.
`LAPLACE` is that of Laplace noise, `BOUNDED_RANGE` that of mechanisms whose log-ratios span a short range, and
`PURE_LOSS` that of any mechanism of which only the epsilon is known.

The privacy profile is the largest value of Pr[M(x) in S] - e^a Pr[M(x') in S] over neighbours x, x' and sets S. It is
1 - e^a for a <= -epsilon, zero for a >= epsilon, and in between at most

  Laplace          1 - e^((a - epsilon)/2)
  bounded range    (1 - e^((a - epsilon)/2))^2 / (1 - e^-epsilon)
  pure             (e^epsilon - e^a) / (1 + e^epsilon)

All three are their own mirror images under exchange of x and x', so one direction is enough.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from dpselect import _validate
from dpselect._numbers import float_above, float_below, rounded_up_text, shortest_text
from dpselect._types import Floats


@dataclass(frozen=True)
class Guarantee:
    """Pure epsilon-differential privacy, and the zero-concentrated rho that it implies for this mechanism.

    Attributes:
        epsilon: the pure epsilon, exactly.
        zcdp: the rho of zero-concentrated differential privacy, rounded up.

    >>> print(Guarantee(Fraction(1), zcdp=0.125))
    1-DP (pure), 0.125-zCDP
    """

    epsilon: Fraction
    zcdp: float

    def times(self, count: int) -> "Guarantee":
        """Return what `count` selections guarantee together: both parts add up, rho rounded up.

        Args:
            count: the number of selections that one person can influence. Public.

        Returns:
            The guarantee of all of them.

        Raises:
            InvalidType: `count` is not an integer.
            InvalidValue: `count` is negative.

        >>> print(Guarantee(Fraction(1), zcdp=0.125).times(2))
        2-DP (pure), 0.25-zCDP
        """
        _validate.count(count=count)
        rho = float_above(count * Fraction(self.zcdp)) if math.isfinite(self.zcdp) else math.inf
        return Guarantee(count * self.epsilon, rho)

    def __str__(self) -> str:
        shortest = shortest_text(self.epsilon).strip("'")
        epsilon = shortest if len(shortest) <= 12 else rounded_up_text(self.epsilon)
        rho = rounded_up_text(Fraction(self.zcdp)) if math.isfinite(self.zcdp) else "inf"
        return f"{epsilon}-DP (pure), {rho}-zCDP"


class PrivacyLoss(Protocol):
    """Upper bounds on the privacy loss of one epsilon-DP selection."""

    def zcdp(self, epsilon: Fraction) -> float:
        """Return the rho of zero-concentrated differential privacy, rounded up."""
        ...

    def profile(self, epsilon: float, losses: Floats) -> Floats:
        """Return the privacy profile at these losses."""
        ...

    def renyi_event(self, accounting: ModuleType, epsilon: Fraction) -> Any:
        """Return the event of the given dp_accounting module that its Renyi accountant composes."""
        ...


# Below _SMALL, events of dp_accounting lose digits, and zCDP is as good; beyond _LARGE, the Renyi divergence is nearly
# epsilon at all orders.
_SMALL, _LARGE = Fraction(1, 100), Fraction(30)


class _Laplace:
    """Laplace noise of scale 1/epsilon on a query of sensitivity one.

    It dominates permute-and-flip (theorem 2 of docs/theory.md).
    """

    def zcdp(self, epsilon: Fraction) -> float:
        """The rho epsilon + exp(-epsilon) - 1, which is tight for Laplace noise (Harrison & Manurangsi 2026).

        The sum cancels for small epsilon. For epsilon >= 0.01 its rounding error, below epsilon * 2**-51, is less
        than 10**-13 of the sum, which is about epsilon**2/2. Below, three terms of the alternating series
        epsilon**2/2 - epsilon**3/6 + epsilon**4/24 - ... are an upper bound.
        """
        value = float_above(epsilon)
        if value < 0.01:
            return _rounded_up(value * value * (0.5 - value / 6 + value * value / 24))
        return _rounded_up(value + math.expm1(-value))

    def profile(self, epsilon: float, losses: Floats) -> Floats:
        """1 - e^((a - epsilon)/2)."""
        return _with_ends(epsilon, losses, -np.expm1((_clipped(epsilon, losses) - epsilon) / 2))

    def renyi_event(self, accounting: ModuleType, epsilon: Fraction) -> Any:
        """Laplace noise, with the scale rounded down."""
        if _SMALL <= epsilon <= _LARGE:
            return accounting.LaplaceDpEvent(float_below(1 / epsilon))
        return _concentrated_event(self, accounting, epsilon)


class _BoundedRange:
    """Mechanisms whose log-ratios span a range of epsilon (Durfee & Rogers 2019; Dong, Durfee & Rogers 2020).

    The privacy loss lies in [t - epsilon, t] for some t. The worst distribution puts p on t and the rest on
    t - epsilon, where p = (1 - e^(t - epsilon)) / (1 - e^-epsilon), as the other side's probabilities sum to one. Its
    profile at a is p (1 - e^(a - t)), largest at t = (a + epsilon)/2.
    """

    def zcdp(self, epsilon: Fraction) -> float:
        """The rho epsilon**2 / 8 (Cesar & Rogers 2021), but never more than that of any pure mechanism."""
        value = float_above(epsilon)
        return min(_rounded_up(value * value / 8), PURE_LOSS.zcdp(epsilon))

    def profile(self, epsilon: float, losses: Floats) -> Floats:
        """(1 - e^((a - epsilon)/2))^2 / (1 - e^-epsilon)."""
        inside = np.expm1((_clipped(epsilon, losses) - epsilon) / 2) ** 2 / -math.expm1(-epsilon)
        return _with_ends(epsilon, losses, inside)

    def renyi_event(self, accounting: ModuleType, epsilon: Fraction) -> Any:
        """Its zCDP."""
        return _concentrated_event(self, accounting, epsilon)


class _Pure:
    """Any epsilon-DP mechanism. None leaks more than randomized response between two values (Kairouz et al. 2015)."""

    def zcdp(self, epsilon: Fraction) -> float:
        """The rho min(epsilon**2 / 2, epsilon).

        The first by Bun & Steinke (2016), Proposition 3.3; the second because a Renyi divergence never exceeds epsilon.
        """
        value = float_above(epsilon)
        return _rounded_up(min(value * value / 2, value))

    def profile(self, epsilon: float, losses: Floats) -> Floats:
        """(e^epsilon - e^a) / (1 + e^epsilon), with numerator and denominator divided by e^epsilon."""
        inside = -np.expm1(_clipped(epsilon, losses) - epsilon) / (1 + math.exp(-epsilon))
        return _with_ends(epsilon, losses, inside)

    def renyi_event(self, accounting: ModuleType, epsilon: Fraction) -> Any:
        """Randomized response with slightly more leakage than epsilon allows."""
        if _SMALL <= epsilon <= _LARGE:
            noise = 2 / (1 + math.exp(float_above(epsilon)))
            return accounting.RandomizedResponseDpEvent(math.nextafter(noise * (1 - 1e-15), 0), 2)
        return _concentrated_event(self, accounting, epsilon)


LAPLACE: PrivacyLoss = _Laplace()
BOUNDED_RANGE: PrivacyLoss = _BoundedRange()
PURE_LOSS: PrivacyLoss = _Pure()


def _concentrated_event(loss: PrivacyLoss, accounting: ModuleType, epsilon: Fraction) -> Any:
    """The zCDP event of a loss; for a large epsilon, the divergence epsilon at all orders."""
    if epsilon > _LARGE:
        return accounting.ZCDpEvent(rho=0.0, xi=float_above(epsilon))
    return accounting.ZCDpEvent(loss.zcdp(epsilon))


def _clipped(epsilon: float, losses: Floats) -> Floats:
    return np.clip(losses, -epsilon, epsilon)


def _with_ends(epsilon: float, losses: Floats, inside: Floats) -> Floats:
    """A whole profile, given its values between -epsilon and epsilon."""
    return np.where(losses >= epsilon, 0.0, np.where(losses <= -epsilon, -np.expm1(losses), inside))


def _rounded_up(rho: float) -> float:
    """The computed value plus one part in 10**12, which covers its few roundings; never zero."""
    return math.nextafter(rho * (1 + 1e-12), math.inf)


class _Concentrated:
    def zcdp(self, epsilon: Fraction) -> float:
        return float_above(epsilon)

    def profile(self, epsilon: float, losses: Floats) -> Floats:
        return losses

    def renyi_event(self, accounting: ModuleType, epsilon: Fraction) -> Any:
        return accounting.ZCDpEvent(float_above(epsilon))


CONCENTRATED: PrivacyLoss = _Concentrated()


def epsilon_of_rho(loss: PrivacyLoss, rho: Fraction) -> Fraction:
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        if middle and Fraction(loss.zcdp(Fraction(middle))) <= rho:
            low = middle
        else:
            high = middle
    return Fraction(low)
