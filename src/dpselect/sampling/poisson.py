"""The Poisson distribution with a rational mean, drawn exactly from rational coins (rejection; Devroye 1986, II.3).

With a mean a <= 1/2 the probabilities are proportional to a**k / k!: a geometric number, which has them proportional to
a**k, is kept with probability 1/k!, and four of five are. A larger mean is a sum of independent numbers with means of
at most one half. No exponential takes part: the normalising exp(-a) is never needed.
"""

import math
from fractions import Fraction

from dpselect.sampling.draws import Draws
from dpselect.sampling.rational import rational_coin


def poisson(mean: Fraction, draws: Draws) -> int:
    """A number of at least zero."""
    parts = math.ceil(2 * mean)
    return sum(_small_poisson(mean / parts, draws) for _ in range(parts))


def _small_poisson(mean: Fraction, draws: Draws) -> int:
    while True:
        proposed = proposed_number(mean, draws)
        if proposed is not None:
            return proposed


def proposed_number(mean: Fraction, draws: Draws) -> int | None:
    """A geometric number that is kept with probability one over its factorial; None if it is not."""
    number = 0
    while rational_coin(mean, draws):
        number += 1
        if not rational_coin(Fraction(1, number), draws):
            return None
    return number
