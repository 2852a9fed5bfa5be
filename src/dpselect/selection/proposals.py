"""Candidates that are proposed one after another: by tickets, lazily, and by a clock that waits.

**Tickets**, for the exponential mechanism (McSherry & Talwar 2007). A candidate with exponent g has a level j <= g / ln
2. Propose a candidate with probability proportional to 2**-j, accept it with probability 2**j exp(-g) <= 1, repeat: the
accepted one has probability proportional to exp(-g). With 2**(J - j) tickets for each candidate, a proposal is one
uniform integer, of any length. Levels end at J, where 2**J is more than 2**8 times the number of candidates. There are
at least 2**J tickets (of the best candidate), and fewer than 2**(J - 8) of candidates at J. A proposal at any other
level is accepted with probability 1/2 or (because levels are rounded) hardly less. So there are 2.1 proposals on
average, or fewer, for any scores and lengths.

**Lazily**: scores are computed only when they are needed. These are the cores of `select_lazily`.

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

**By waiting**: permute-and-flip from samples of the exponential mechanism (theorem 11 of docs/theory.md).

Let events come at rate Z, the sum of all p_s = exp(-c (q* - q_s)), each with a candidate drawn by the exponential
mechanism. At time s, an event with candidate r is accepted with probability e**-s / (1 - p_r (1 - e**-s)). The first
accepted candidate has the law of permute-and-flip. The acceptance is a race without arithmetic: if p_r is one, accept.
Otherwise accept with probability e**-s, else flip the coin of r: tails rejects it, heads starts over with the same s.

So permute-and-flip can be sampled from every family of candidates, however large, from which the exponential mechanism
can be sampled, if q* and the rate Z are known as finely as a comparison needs. A sampler that rejects may state the
rate of its raw events instead: those that give no candidate let time pass, too.
"""

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpselect import _validate
from dpselect._numbers import NotExact, NotFinite, rational
from dpselect._types import Array, Floats, Positions
from dpselect.errors import InvalidType, InvalidValue, ScoresChanged
from dpselect.selection.draws import Draws
from dpselect.selection.enclosure import log_bracket
from dpselect.selection.gaps import ALL, Gaps
from dpselect.selection.races import total_of

# At most 1 / ln 2, and less by a relative 2**-49: the computed exponent is above the exact one by at most a relative
# 2**-50.9, and this number, with its three roundings, and the product add four times 2**-53; in all less than 2**-49.
_BITS_PER_UNIT = (1 - 2.0**-49) / math.log(2)
# So many more zeros than there are candidates: see above.
_ZEROS = 8


def choose_by_tickets(gaps: Gaps, lengths: Array, draws: Draws) -> int:
    """A position in the vector in which each score is repeated, with probability proportional to exp(-exponent)."""
    # The lengths are positive, and 64-bit or Python's integers. Nobody may change the scores meanwhile.
    last = total_of(lengths).bit_length() + _ZEROS
    tickets = Tickets(levels_of(gaps.approximate(gaps.at(ALL)), last), lengths, last)
    _, _, (run, rank) = next(tickets.accepted(lambda run, _: gaps.exact(run), draws))
    return int(lengths[:run].sum() if lengths.dtype == object else total_of(lengths[:run])) + rank


class Tickets:
    """Proposals of candidates from runs, each with probability proportional to 2**-level of its run. Secret."""

    # An exponent is at least ln 2 times the level. So a proposal is accepted with probability 2**level exp(-exponent),
    # which needs the exact exponent of this candidate only: a run may hold candidates of different scores.

    def __init__(self, levels: Positions, lengths: Array, last: int) -> None:
        # Runs with a level from zero to `last`. The lengths are positive, and 64-bit or Python's integers.
        total = total_of(lengths)
        if total >= 2**64:  # then 64 bits do not hold all sums below
            lengths = lengths.astype(object)
        self._order = np.argsort(levels, kind="stable")
        self._lengths = lengths
        self._ends = np.cumsum(lengths[self._order])  # of the runs, with the highest level last
        found, firsts = np.unique(levels[self._order], return_index=True)
        self._levels: list[int] = found.tolist()
        self._starts = [0, *(int(self._ends[first - 1]) for first in firsts[1:].tolist()), total]
        self._shifts = [last - level for level in self._levels]
        sizes = [stop - start for start, stop in itertools.pairwise(self._starts)]
        self._tickets = list(
            itertools.accumulate((size << shift for size, shift in zip(sizes, self._shifts, strict=True)), initial=0)
        )
        self.mass = Fraction(self._tickets[-1], 1 << last)  # the sum of 2**-level over all candidates

    def accepted(
        self, exponent: Callable[[int, int], Fraction], draws: Draws
    ) -> Iterator[tuple[int, Fraction, tuple[int, int]]]:
        """Draw candidates with probability proportional to exp(-exponent), one after another."""
        # `exponent` returns the exact exponent of a candidate, given its run and rank. For each candidate that is
        # drawn, return the number of proposals since the last one, its exponent, and its run and rank.
        passed = 0
        while True:
            passed += 1
            level, run, rank = self._propose(draws)
            exact = exponent(run, rank)
            if draws.flip(exact, zeros=level):
                yield passed, exact, (run, rank)
                passed = 0

    def _propose(self, draws: Draws) -> tuple[int, int, int]:
        ticket = draws.index(self._tickets[-1])
        place = bisect_right(self._tickets, ticket) - 1
        rank = self._starts[place] + (ticket - self._tickets[place] >> self._shifts[place])
        within = bisect_right(self._ends, rank, key=int)
        run = int(self._order[within])
        return self._levels[place], run, rank - int(self._ends[within]) + int(self._lengths[run])


def levels_of(exponents: Floats, last: int) -> Positions:
    """A whole number j <= exponent / ln 2 for each exponent, at most `last`: the largest, or hardly ever one less."""
    # Exponents are floats, each within a relative 2**-50.9.
    with np.errstate(over="ignore", under="ignore"):  # at the ends of the floats: a warning would reveal it
        levels: Positions = np.minimum(np.floor(exponents * _BITS_PER_UNIT), last).astype(np.int64)
    return levels


# Lazily.


Score = Callable[[int], Any]
Watch = Callable[[int], None]
Exponent = Callable[[int], Fraction]


def lazy_exponents(
    score: Any, n: Any, rate: Fraction, watch: Any, by_range: bool, **bound: Any
) -> tuple[Exponent, int]:
    """Checked arguments: what computes the exponent c (b - q_r) of a candidate, and the number of candidates."""
    # A score above the bound b counts as the bound.
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
    best, evaluated = _validate.exact(**bound), itertools.count(1)

    def exponent(candidate: int) -> Fraction:
        value = _exact(score(candidate))
        if watch is not None:
            watch(next(evaluated))
        return rate * max(best - value, Fraction(0))

    return exponent, count


def _exact(value: Any) -> Fraction:
    try:
        return rational(value)
    except NotFinite:
        raise InvalidValue("score must return finite numbers: replace others by a public rule") from None
    except NotExact:
        raise InvalidType(f"score must return a number, got a {type(value).__name__}") from None


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


# By waiting.


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
