"""Dughmi et al. (2017), a Bernoulli race: a coin U < exp(-near), given that U < exp(-near - further) does not hold.

With a = exp(-near) and b = exp(-further) its probability is a (1 - b) / (1 - a b). Flip a: tails is tails. Otherwise
flip b: tails is heads. Otherwise start over. A round ends with heads with probability a (1 - b) and with tails with
probability 1 - a, so the quotient of the two is right, and so is everything. A round starts over with probability a b,
which is that of the event that is known not to have happened.
"""

from fractions import Fraction

from dpselect.sampling.bits import BitSource
from dpselect.sampling.coin import coin


def coin_between(near: Fraction, further: Fraction, source: BitSource) -> bool:
    """Whether U < exp(-near), given U >= exp(-near - further); further > 0."""
    while coin(near, source):
        if not coin(further, source):
            return True
    return False
