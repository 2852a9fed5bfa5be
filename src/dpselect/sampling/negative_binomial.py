"""Papernot & Steinke (2022), Definition 1: the negative binomial distribution without its zero, drawn exactly.

With shape h >= 0 and probability of stopping g the number K >= 1 has probabilities proportional to

    (1 - g)**k * product over l = 1..k-1 of (l + h) / (l + 1);

h = 1 is the geometric distribution, h = 0 the logarithmic one. The sum of these is irrational, their ratios are not, so
rejection needs rational coins only. With m the smallest integer that is not below h, and at least one, the failures
before the m-th success have probabilities proportional to the same with m in place of h: they are proposed, and kept
with probability product (l + h) / (l + m). Coin by coin, so that a proposal that falls costs little: about 1/g coins
for the logarithmic distribution, a few for each success and failure of the others.
"""

import math
from fractions import Fraction

from dpselect.sampling.draws import Draws
from dpselect.sampling.rational import rational_coin


def truncated_negative_binomial(shape: Fraction, stop: Fraction, draws: Draws) -> int:
    """A number of at least one."""
    while True:
        proposed = proposed_number(shape, stop, draws)
        if proposed:
            return proposed


def proposed_number(shape: Fraction, stop: Fraction, draws: Draws) -> int:
    """A number that was proposed and kept, or zero."""
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
