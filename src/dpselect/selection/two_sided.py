"""Two-sided geometric noise (Ghosh, Roughgarden & Sundararajan 2009), drawn exactly.

An integer z has a probability proportional to e^(-rate |z|).

The size is drawn as Canonne, Kamath & Steinke (2020) do, in two parts, so that a small rate takes few coins. With a
power of two B for which rate B is at least one half, size = B high + low, and e^(-rate size) is a product: `high` is
the number of heads, before the first tails, of coins with probability e^(-rate B), and `low` is uniform below B and
kept with probability e^(-rate low). Then a fair sign is drawn. "Minus zero" is refused, as zero would have two chances.
"""

from fractions import Fraction

from dpselect.selection.draws import Draws


def two_sided_geometric(rate: Fraction, draws: Draws) -> int:
    """Draw an integer z with probability proportional to e^(-rate |z|). The rate is positive."""
    while True:
        proposed = proposed_two_sided(rate, draws)
        if proposed is not None:
            return proposed


def proposed_two_sided(rate: Fraction, draws: Draws) -> int | None:
    """A proposed integer if it was kept, otherwise None. More than one of four is kept."""
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
