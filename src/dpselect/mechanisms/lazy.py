"""Scores on demand: what `select_lazily` of permute-and-flip and of the exponential mechanism share."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpselect import _validate
from dpselect._exact import NotExact, NotFinite, rational
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.claim import Claim

Score = Callable[[int], Any]
Watch = Callable[[int], None]


class LazyScores:
    """The exponents c (b - q_r) of candidates below a public bound b, computed on demand. Secret, but for the bound."""

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


def lazy_scores(score: Any, n: Any, claim: Claim, rate: Fraction, watch: Any, **bound: Any) -> tuple[LazyScores, int]:
    """Checked arguments: the exponents on demand, and the number of candidates."""
    if not callable(score):
        raise InvalidType(f"score must be callable, got {type(score).__name__}: give a function of a candidate's index")
    if watch is not None and not callable(watch):
        raise InvalidType(f"watch must be callable, got {type(watch).__name__}: give a function of a count, or nothing")
    count = _validate.count(n=n)
    if count < 1:
        raise InvalidValue("n must be >= 1: there is nothing to choose from")
    if claim.by_range:
        raise InvalidValue(
            "lazy scores need a sensitivity, not a score_range: scores above the bound are cut to it, which keeps a"
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
