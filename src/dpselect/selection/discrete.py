"""Whole numbers, drawn exactly from coins: how often private tuning runs, and two-sided geometric noise.

A coin with a rational probability compares a uniform integer below the denominator with the numerator. No float is
involved.

**The number of runs** of private tuning (Papernot & Steinke 2022, Definition 1). The negative binomial distribution
without its zero: with shape h >= 0 and probability of stopping g the number K >= 1 has probabilities proportional to

    (1 - g)**k * product over l = 1..k-1 of (l + h) / (l + 1);

h = 1 is the geometric distribution, h = 0 the logarithmic one. Their sum is irrational but their ratios are not, so
rejection needs rational coins only. With m the smallest integer that is not below h, and at least one, the failures
before the m-th success have probabilities proportional to the same with m in place of h: they are proposed, and kept
with probability product (l + h) / (l + m), coin by coin, so that a rejected proposal costs little: about 1/g coins
for the logarithmic distribution, a few for each success and failure of the others.

The Poisson distribution with a rational mean, by rejection (Devroye 1986, II.3). With a mean a <= 1/2 the probabilities
are proportional to a**k / k!: a geometric number, which has them proportional to a**k, is kept with probability 1/k!,
and four of five are. A larger mean is a sum of independent numbers with means of at most one half. No exponential takes
part: the normalising exp(-a) is never needed.

**Two-sided geometric noise** (Ghosh, Roughgarden & Sundararajan 2009): an integer z has a probability proportional to
e^(-rate |z|). The size is drawn as Canonne, Kamath & Steinke (2020) do, in two parts, so that a small rate takes few
coins. With a power of two B for which rate B is at least one half, size = B high + low, and e^(-rate size) is a
product: `high` is the number of heads, before the first tails, of coins with probability e^(-rate B), and `low` is
uniform below B and kept with probability e^(-rate low). Then a fair sign is drawn. "Minus zero" is refused, as zero
would have two chances.
"""

import math
from fractions import Fraction

from dpselect.selection.draws import Draws


def rational_coin(probability: Fraction, draws: Draws) -> bool:
    return draws.index(probability.denominator) < probability.numerator


def truncated_negative_binomial(shape: Fraction, stop: Fraction, draws: Draws) -> int:
    """Draw a number of at least one."""
    while True:
        proposed = proposed_negative_binomial(shape, stop, draws)
        if proposed:
            return proposed


def proposed_negative_binomial(shape: Fraction, stop: Fraction, draws: Draws) -> int:
    # A proposed number if it was kept, otherwise zero.
    successes, wanted = 0, max(1, math.ceil(shape))
    failures = 0
    while successes < wanted:
        if rational_coin(stop, draws):
            successes += 1
        elif failures and not rational_coin((failures + shape) / (failures + wanted), draws):
            return 0
        else:
            failures += 1
    return failures


def poisson(mean: Fraction, draws: Draws) -> int:
    """Draw a number of at least zero."""
    parts = math.ceil(2 * mean)
    return sum(_small_poisson(mean / parts, draws) for _ in range(parts))


def _small_poisson(mean: Fraction, draws: Draws) -> int:
    while True:
        proposed = proposed_poisson(mean, draws)
        if proposed is not None:
            return proposed


def proposed_poisson(mean: Fraction, draws: Draws) -> int | None:
    # A geometric number that is kept with probability one over its factorial; None if it is not.
    number = 0
    while rational_coin(mean, draws):
        number += 1
        if not rational_coin(Fraction(1, number), draws):
            return None
    return number


def two_sided_geometric(rate: Fraction, draws: Draws) -> int:
    """Draw an integer z with probability proportional to e^(-rate |z|). The rate is positive."""
    while True:
        proposed = proposed_two_sided(rate, draws)
        if proposed is not None:
            return proposed


def proposed_two_sided(rate: Fraction, draws: Draws) -> int | None:
    # A proposed integer if it was kept, otherwise None. More than one of four is kept.
    block = 1
    while 2 * rate * block < 1:
        block *= 2
    low = draws.index(block)
    if low and not draws.flip(rate * low):
        return None
    high = 0
    while draws.flip(rate * block):
        high += 1
    size, is_negative = block * high + low, draws.index(2) == 1
    if is_negative and not size:
        return None
    return -size if is_negative else size
