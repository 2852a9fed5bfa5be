"""McSherry & Talwar (2007), the exponential mechanism, with scores that are computed only when they are needed.

Propose a uniform candidate, accept it with probability exp(-c (b - q_r)), where b is a public bound of the scores,
repeat (McKenna & Sheldon 2020, Algorithm 2). What is accepted is proportional to exp(c q_r), whatever b is and however
often proposals were refused before. So scores are remembered, and once all of them are known, the rest of the work is
left to the mechanism that sees all scores: a bound far above the scores costs evaluations, never eternity.
"""

from collections.abc import Callable
from fractions import Fraction

from dpselect.sampling.draws import Draws

Exponent = Callable[[int], Fraction]


def choose_lazily(exponent: Exponent, n: int, draws: Draws, choose: Callable[[list[Fraction], Draws], int]) -> int:
    """A selection from n candidates; `exponent` computes c (b - q_r) >= 0 of one, and is called once for each.

    `choose` selects among all candidates by their exponents.
    """
    known: dict[int, Fraction] = {}
    while len(known) < n:
        candidate = draws.index(n)
        if candidate not in known:
            known[candidate] = exponent(candidate)
        if draws.flip(known[candidate]):
            return candidate
    return choose([known[candidate] for candidate in range(n)], draws)
