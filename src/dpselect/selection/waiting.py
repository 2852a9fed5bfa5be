"""Permute-and-flip from samples of the exponential mechanism, by waiting (theorem 11 of docs/theory.md).

Let events come at rate Z, the sum of all p_s = exp(-c (q* - q_s)), each with a candidate drawn by the exponential
mechanism. At time s, an event with candidate r is accepted with probability e**-s / (1 - p_r (1 - e**-s)). The first
accepted candidate has the law of permute-and-flip. The acceptance is a race without arithmetic: if p_r is one, accept.
Otherwise accept with probability e**-s, else flip the coin of r: tails rejects it, heads starts over with the same s.

So permute-and-flip can be sampled from every family of candidates, however large, from which the exponential mechanism
can be sampled, if q* and the rate Z are known as finely as a comparison needs. A sampler that rejects may state the
rate of its raw events instead: those that give no candidate let time pass, too.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dpselect._types import Floats
from dpselect.errors import ScoresChanged
from dpselect.selection.draws import Draws
from dpselect.selection.enclosure import log_bracket

_Candidate = TypeVar("_Candidate")

_WORD, _DIGITS = 64, 30
_BITS_PER_STEP = 64
# -ln V of a word of 64 bits is at most 45, and log is assumed accurate to 256 units in the last place (2**-44
# relative), so that its error is below 2**-38. The conversion of the word to a float adds less than 2**-52.
_MARGIN = 2.0**-37


@dataclass(frozen=True, repr=False)
class LogRate:
    """The logarithm of the rate of events: a float with its largest error, and brackets as narrow as wanted. Secret.

    Args:
        approximate: the logarithm in floats.
        doubt: the largest error of that.
        bracket: a function of a number of digits: bounds that shrink to the logarithm as the number grows.
    """

    approximate: float
    doubt: float
    bracket: Callable[[int], tuple[Fraction, Fraction]]


def log_rate_of(mass: Fraction) -> LogRate:
    """The logarithm of a rate that is an exact fraction. math.log is within a few units in the last place."""
    top, bottom = math.log(mass.numerator), math.log(mass.denominator)
    return LogRate(top - bottom, (abs(top) + abs(bottom)) * 2.0**-48, lambda digits: log_bracket(mass, digits))


class Clock:
    # The time of the latest event, of which only so much is revealed as comparisons need. Secret. After n events at
    # rate C the time is s = G / C, where G is a sum of n exponential variables -ln V.

    def __init__(self, rate: LogRate, draws: Draws) -> None:
        self._rate, self._draws = rate, draws
        self._events = 0
        self._words = np.empty(0, np.uint64)
        self._prefixes: list[int] | None = None  # the bits of each V, once 64 were not enough
        self._depths: list[int] = []

    def pass_events(self, count: int) -> None:
        self._events += count

    def rings_later(self) -> bool:
        # Whether a new exponential variable of rate one exceeds the time: heads with probability e**-s.
        self._draw_missing()
        source = self._draws
        word = source.words(1, _WORD)
        low, high = _log_sums(word)
        least, most = _log_sums(self._words)
        # The three sums below are of numbers whose logarithms are within 2**-38, as above, and are rounded once each.
        known = self._rate.approximate
        doubt = self._rate.doubt + _MARGIN + 2.0**-50 * abs(known)
        if low + known - doubt > most:
            return True
        if high + known + doubt < least:
            return False
        return self._rings_later_exactly(int(word[0]))

    def _draw_missing(self) -> None:
        missing = self._events - self._words.size
        if not missing:
            return
        words: npt.NDArray[np.uint64] = self._draws.words(missing, _WORD)
        self._words = np.concatenate([self._words, words])
        if self._prefixes is not None:
            self._prefixes += words.tolist()
            self._depths += [_WORD] * missing

    def _rings_later_exactly(self, prefix: int) -> bool:
        depth, digits, source = _WORD, _DIGITS, self._draws
        if self._prefixes is None:
            self._prefixes, self._depths = self._words.tolist(), [_WORD] * self._words.size
        while True:
            low, high = _log_bracket_of_sum([prefix], depth, digits)
            least, most = _log_bracket_of_sum(self._prefixes, sum(self._depths), digits)
            rate_low, rate_high = self._rate.bracket(digits)
            if low is not None and most is not None and low + rate_low > most:
                return True
            if high is not None and least is not None and high + rate_high < least:
                return False
            prefix, depth = prefix << _BITS_PER_STEP | source.bits(_BITS_PER_STEP), depth + _BITS_PER_STEP
            self._prefixes = [known << _BITS_PER_STEP | source.bits(_BITS_PER_STEP) for known in self._prefixes]
            self._depths = [known + _BITS_PER_STEP for known in self._depths]
            digits += 20


def _log_sums(words: npt.NDArray[np.uint64]) -> tuple[float, float]:
    # Logarithms of bounds of the sum of -ln V, for V in the cells of these words. Both may be infinite.
    with np.errstate(divide="ignore"):
        floats: Floats = words.astype(np.float64)
        low = float((-np.log((floats + 1) * 2.0**-_WORD)).sum()) - _MARGIN * words.size
        high = float((-np.log(floats * 2.0**-_WORD)).sum()) + _MARGIN * words.size
        return float(np.log(max(low, 0.0))), float(np.log(high))


def _log_bracket_of_sum(prefixes: list[int], depth: int, digits: int) -> tuple[Fraction | None, Fraction | None]:
    # Bounds of ln G, where G = -ln of the product of all V, which have `depth` bits together; None where unknown.
    least = log_bracket(Fraction(1 << depth, math.prod(prefix + 1 for prefix in prefixes)), digits)[0]
    product = math.prod(prefixes)
    most = log_bracket(Fraction(1 << depth, product), digits)[1] if product else None
    low = log_bracket(least, digits)[0] if least > 0 else None
    return low, None if most is None else log_bracket(most, digits)[1]


def wait_for(events: Iterable[tuple[int, Fraction, _Candidate]], rate: LogRate, draws: Draws) -> _Candidate:
    """The first accepted candidate, which has the law of permute-and-flip.

    Args:
        events: for each candidate that the exponential mechanism draws, one after another: the number of raw events
            since the last one, which counts itself; its exact exponent c (q* - q_r); and the candidate. It must not
            end.
        rate: the logarithm of the rate of raw events: of Z, if each of them gives a candidate.
        draws: the source of randomness.

    >>> import itertools
    >>> one = LogRate(0.0, 0.0, lambda digits: (Fraction(0), Fraction(0)))  # a single candidate: Z = 1
    >>> wait_for(itertools.repeat((1, Fraction(0), "the only one")), one, Draws())
    'the only one'
    """
    clock = Clock(rate, draws)
    for passed, exponent, candidate in events:
        clock.pass_events(passed)
        if _is_accepted(clock, exponent, draws):
            return candidate
    raise ScoresChanged


def _is_accepted(clock: Clock, exponent: Fraction, draws: Draws) -> bool:
    # The race. Without the first rule its expected length would be infinite.
    if not exponent:
        return True
    while not clock.rings_later():
        if not draws.flip(exponent):
            return False
    return True
