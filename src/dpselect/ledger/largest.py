"""Search for the largest epsilon that still has a property, such as to cost no more than a budget."""

from collections.abc import Callable
from fractions import Fraction


def largest(holds: Callable[[Fraction], bool], start: Fraction, within: float) -> Fraction:
    """The largest epsilon with a property that larger ones lose, `within` a relative error and never above it.

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
