"""A coin with a rational probability: a uniform integer below the denominator, compared with the numerator.

No float and no logarithm takes part, so there is nothing to filter.
"""

from fractions import Fraction

from dpselect.sampling.draws import Draws


def rational_coin(probability: Fraction, draws: Draws) -> bool:
    """Heads with exactly this probability, from 0 to 1."""
    return draws.index(probability.denominator) < probability.numerator
