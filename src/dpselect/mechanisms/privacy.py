"""What a selection guarantees, as inert data."""

import math
from dataclasses import dataclass
from fractions import Fraction

from dpselect import _validate
from dpselect._numbers import float_above, rounded_up_text, shortest_text


@dataclass(frozen=True)
class Guarantee:
    """Pure epsilon-differential privacy, and the zero-concentrated rho that it implies for this mechanism.

    >>> print(Guarantee(Fraction(1), zcdp=0.125))
    1-DP (pure), 0.125-zCDP
    """

    epsilon: Fraction
    zcdp: float

    def times(self, count: int) -> "Guarantee":
        """Return what so many selections guarantee together: both parts add up, rho rounded up."""
        _validate.count(count=count)
        rho = float_above(count * Fraction(self.zcdp)) if math.isfinite(self.zcdp) else math.inf
        return Guarantee(count * self.epsilon, rho)

    def __str__(self) -> str:
        shortest = shortest_text(self.epsilon).strip("'")
        epsilon = shortest if len(shortest) <= 12 else rounded_up_text(self.epsilon)
        rho = rounded_up_text(Fraction(self.zcdp)) if math.isfinite(self.zcdp) else "inf"
        return f"{epsilon}-DP (pure), {rho}-zCDP"


def laplace_zcdp(epsilon: Fraction) -> float:
    """The rho epsilon + exp(-epsilon) - 1: tight for Laplace noise of scale 1/epsilon (Harrison & Manurangsi 2026).

    Permute-and-flip is dominated by that mechanism. The sum cancels for small epsilon: its rounding error, below
    epsilon * 2**-51, is from epsilon = 0.01 on less than 10**-13 of the sum, which is about epsilon**2/2. Below, three
    terms of the alternating series epsilon**2/2 - epsilon**3/6 + epsilon**4/24 - ... are an upper bound.
    """
    value = float_above(epsilon)
    if value < 0.01:
        return _rounded_up(value * value * (0.5 - value / 6 + value * value / 24))
    return _rounded_up(value + math.expm1(-value))


def bounded_range_zcdp(epsilon: Fraction) -> float:
    """The rho epsilon**2 / 8 of a mechanism whose log-ratios span a range of epsilon (Cesar & Rogers 2021).

    Never more than what any pure mechanism has.
    """
    value = float_above(epsilon)
    return min(_rounded_up(value * value / 8), pure_zcdp(epsilon))


def pure_zcdp(epsilon: Fraction) -> float:
    """The rho min(epsilon**2 / 2, epsilon) of any pure epsilon-DP mechanism.

    The first by Bun & Steinke (2016), Proposition 3.3; the second because a Renyi divergence never exceeds epsilon.
    """
    value = float_above(epsilon)
    return _rounded_up(min(value * value / 2, value))


def _rounded_up(rho: float) -> float:
    """One part in 10**12 above the computed value, which covers its few roundings; never zero."""
    return math.nextafter(rho * (1 + 1e-12), math.inf)
