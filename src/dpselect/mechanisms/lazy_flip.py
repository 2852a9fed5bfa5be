"""McKenna & Sheldon (2020), Algorithm 1, with scores that are computed only when they are needed.

Walk through the candidates in random order, flip a coin with probability of heads exp(-c (b - q_r)) for each, where b
is a public bound of the scores, and stop at the first head. If b is the best score, that is permute-and-flip.

If it is not attained there may be no head, and none of the simple remedies is private: to start over, to return any
candidate or to return none makes some answers more likely than exp(epsilon) allows. Instead, the walk goes on with the
very same coins. Permute-and-flip returns the largest q_r + E_r, with exponential E_r of rate c (Ding et al. 2021).

* The coin against b is heads if q_r + E_r > b. If some are, their excesses over b are again exponential, independent
  and alike, so that the largest is a uniform one of the heads: the first head in a random order.
* If none is, all scores are known, and the best of them, m, too. The coin against m is heads if q_r + E_r > m; given
  that q_r + E_r <= b, that is `coin_between`. The excesses over m, at most b - m, are again independent and alike, so
  that a uniform one of the heads is the largest: again the first in a random order. The best is always a head.

So every public bound gives exactly permute-and-flip on the scores, or on min(q_r, b) where some exceed it.
"""

from collections.abc import Callable
from fractions import Fraction

from dpselect.sampling.draws import Draws
from dpselect.sampling.order import random_order

Exponent = Callable[[int], Fraction]


def choose_lazily(exponent: Exponent, n: int, draws: Draws) -> int:
    """A selection from n candidates; `exponent` computes c (b - q_r) >= 0 of one, and is called once for each."""
    tails: dict[int, Fraction] = {}
    for candidate in random_order(n, draws.index):
        gap = exponent(candidate)
        if draws.flip(gap):
            return candidate
        tails[candidate] = gap
    unreached = min(tails.values())  # c (b - m); positive, because a coin with exponent zero is heads
    # The order of the walk tells nothing of the coins, and so serves again.
    return next(candidate for candidate, gap in tails.items() if draws.flip_between(gap - unreached, unreached))
