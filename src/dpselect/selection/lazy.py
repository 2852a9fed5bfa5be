"""Lazy selection: scores are computed only when they are needed. These are the cores of `select_lazily`.

b is a public upper bound on the scores, and p_r = exp(-c (b - q_r)) the probability that the coin of r is heads.

Permute-and-flip (McKenna & Sheldon 2020, Algorithm 1). Walk through the candidates in random order, flip the coin of
each, and stop at the first head. If b is the best score, this is permute-and-flip.

If no score attains b, there may be no head, and none of the simple remedies is private: starting over, returning any
candidate or returning none makes some answers more likely than exp(epsilon) allows. Instead, the walk goes on with the
same coins. Permute-and-flip returns the largest q_r + E_r, with exponential E_r of rate c (Ding et al. 2021).

* The coin against b is heads if q_r + E_r > b. If some are, their excesses over b are again exponential, independent
  and identically distributed, so the largest is a uniform head: the first head in a random order.
* If none is, all scores are known, and the best of them, m, too. The coin against m is heads if q_r + E_r > m; given
  that q_r + E_r <= b, that is `coin_between`. The excesses over m, at most b - m, are again independent and alike, so
  that a uniform one of the heads is the largest: again the first in a random order. The best is always a head.

So every public bound gives exactly permute-and-flip on the scores, or on min(q_r, b) where some exceed it.

The exponential mechanism (McSherry & Talwar 2007; McKenna & Sheldon 2020, Algorithm 2). Propose a uniform candidate,
accept it if its coin is heads, repeat. Acceptance is proportional to exp(c q_r), for every b and however often
proposals were refused before. So scores are remembered, and once all of them are known, the rest of the work is left to
the mechanism that sees all scores. A bound far above the scores costs evaluations, but the walk always ends.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpselect import _validate
from dpselect._numbers import NotExact, NotFinite, rational
from dpselect.errors import InvalidType, InvalidValue
from dpselect.selection.draws import Draws

Score = Callable[[int], Any]
Watch = Callable[[int], None]


class LazyScores:
    # The exponents c (b - q_r) of candidates below a public bound b, computed on demand. Secret, except the bound.

    def __init__(self, score: Score, bound: Fraction, rate: Fraction, watch: Watch | None) -> None:
        self._score, self._bound, self._rate, self._watch = score, bound, rate, watch
        self._evaluated = 0

    def exponent(self, candidate: int) -> Fraction:
        """Return the exponent of one candidate; a score above the bound counts as the bound."""
        value = _exact(self._score(candidate))
        self._evaluated += 1
        if self._watch is not None:
            self._watch(self._evaluated)
        return self._rate * max(self._bound - value, Fraction(0))


def lazy_scores(score: Any, n: Any, rate: Fraction, watch: Any, by_range: bool, **bound: Any) -> tuple[LazyScores, int]:
    """Checked arguments: the exponents on demand, and the number of candidates."""
    if not callable(score):
        raise InvalidType(f"score must be callable, got {type(score).__name__}: give a function of a candidate's index")
    if watch is not None and not callable(watch):
        raise InvalidType(f"watch must be callable, got {type(watch).__name__}: give a function of a count, or nothing")
    count = _validate.count(n=n)
    if count < 1:
        raise InvalidValue("n must be >= 1: give at least one candidate")
    if by_range:
        raise InvalidValue(
            "lazy scores need a sensitivity, not a score_range: scores above the bound are lowered to it, which keeps a"
            " sensitivity but not a range. Use select with all scores, or state a sensitivity"
        )
    return LazyScores(score, _validate.exact(**bound), rate, watch), count


def _exact(value: Any) -> Fraction:
    try:
        return rational(value)
    except NotFinite:
        raise InvalidValue("score must return finite numbers: replace others by a public rule") from None
    except NotExact:
        raise InvalidType(f"score must return a number, got a {type(value).__name__}") from None


Exponent = Callable[[int], Fraction]


def flip_lazily(exponent: Exponent, n: int, draws: Draws) -> int:
    """Select one of n candidates. `exponent` computes c (b - q_r) >= 0 for one, and is called at most once for each."""
    tails: dict[int, Fraction] = {}
    for candidate in draws.order(n):
        gap = exponent(candidate)
        if draws.flip(gap):
            return candidate
        tails[candidate] = gap
    unreached = min(tails.values())  # c (b - m), positive because a coin with exponent zero is heads
    # The order of the walk is independent of the coins, so it can be used again.
    return next(candidate for candidate, gap in tails.items() if draws.flip_between(gap - unreached, unreached))


def reject_lazily(exponent: Exponent, n: int, draws: Draws, choose: Callable[[list[Fraction], Draws], int]) -> int:
    """Select one of n candidates. `exponent` computes c (b - q_r) >= 0 for one, and is called at most once for each."""
    # `choose` selects among all candidates, given their exponents.
    known: dict[int, Fraction] = {}
    while len(known) < n:
        candidate = draws.index(n)
        if candidate not in known:
            known[candidate] = exponent(candidate)
        if draws.flip(known[candidate]):
            return candidate
    return choose([known[candidate] for candidate in range(n)], draws)
