"""What a selection guarantees, as inert data."""

import math
from dataclasses import dataclass
from fractions import Fraction

from dpselect._exact import float_above, shortest_text


@dataclass(frozen=True)
class Guarantee:
    """Pure epsilon-differential privacy, and the zero-concentrated rho that it implies for this mechanism.

    >>> print(Guarantee(Fraction(1), zcdp=0.125))
    1-DP (pure), 0.125-zCDP
    """

    epsilon: Fraction
    zcdp: float

    def __str__(self) -> str:
        epsilon = self.epsilon
        exact = shortest_text(epsilon).strip("'") if epsilon.denominator < 10**6 else f"{float_above(epsilon):.6g}"
        return f"{exact}-DP (pure), {self.zcdp:.6g}-zCDP"


def laplace_zcdp(epsilon: Fraction) -> float:
    """The rho epsilon + exp(-epsilon) - 1: tight for Laplace noise of scale 1/epsilon (Harrison & Manurangsi 2026).

    Permute-and-flip is dominated by that mechanism. The sum cancels for small epsilon: its rounding error, below
    epsilon * 2**-51, is added. Three terms of the alternating series epsilon**2/2 - epsilon**3/6 + epsilon**4/24 - ...
    are an upper bound as well, and the better one for small epsilon.
    """
    value = float_above(epsilon)
    series = value * value * (0.5 - value / 6 + value * value / 24)
    return _rounded_up(min(series, value + math.expm1(-value) + value * 2.0**-51))


def bounded_range_zcdp(epsilon: Fraction) -> float:
    """The rho epsilon**2 / 8 of a mechanism whose log-ratios span a range of epsilon (Cesar & Rogers 2021)."""
    value = float_above(epsilon)
    return _rounded_up(value * value / 8)


def pure_zcdp(epsilon: Fraction) -> float:
    """The rho min(epsilon**2 / 2, epsilon) of any pure epsilon-DP mechanism.

    The first by Bun & Steinke (2016), Proposition 3.3; the second because a Renyi divergence never exceeds epsilon.
    """
    value = float_above(epsilon)
    return _rounded_up(min(value * value / 2, value))


def _rounded_up(rho: float) -> float:
    """One part in 10**12 above the computed value, which covers its few roundings; never zero."""
    return math.nextafter(rho * (1 + 1e-12), math.inf)
