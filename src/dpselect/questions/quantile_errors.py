"""Errors of quantiles that hold for all data, and how many people a quantile needs.

**The errors of several quantiles** (`questions.splitting`). A level q that is answered in the part between the levels l
and h has the level p = (q - l)/(h - l) in this part. The part has the people between the ranks R_l and R_h, so the cut
aims at the rank R_l + p (R_h - R_l) = (1 - p) R_l + p R_h, while q n = (1 - p) l n + p h n. With the error
E_q = |R_q - q n| and the error e_q of the cut itself,

    E_q <= e_q + (1 - p) E_l + p E_h,    where E_0 = E_1 = 0.

So the error of a level is at most a sum over the depths, with weights of at most one (`_Cut.weights`). The cut itself
has a score of one for each person, and one person moves it by at most max(p, 1 - p): its error is max(p, 1 - p) times
that of a selection at the rate of the question. The last cut of a part is one of the `size` values, all others are one
of size 2**32 places. Averages add up. For a tail of probability t, each of d depths may exceed its own bound with
probability t/d (a union bound). None of it is attained: it is an upper bound. Places are whole people, so the best cut
of a depth may be off by up to one more person, which is left out.

**How many people.** With n people, the candidates below all people and those above all of them are at least
min(p, 1 - p) n people away from the level, where n is the number of people in the part. There are at most `size` of
them, so the probability that one of them is the answer, and thus says nothing about anybody, is at most
size exp(-c min(p, 1 - p) n), with the rate c of a person. It is at most 1/20 if n >= ln(20 size) / (c min(p, 1 - p)).
For the median c = epsilon: 95/epsilon people for 2**64 candidates, 47 on either side. Cuts may be among people who
share a value. There a rank has 2**32/n places, so the good cuts weigh as much as 2/c ranks, or 2**33/(c n) places, and
there are size c n/2 other candidates for each of them.

**The usual error.** If values lie so densely that ranks near the level have about equally many places, the error of a
cut has about the weights exp(-c |j|) for ranks j, and a mean of 1/c. That is much less than the bound, in which all
other candidates are equally far away. The errors of the depths are added up here, too, as if all of them went in one
direction. They do not, so the true mean is somewhat smaller: for deciles at epsilon 1 about 7.5 people instead of 11.5.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from dpselect.analysis.promises import Promise, promise, rarely_exceeded
from dpselect.mechanisms.base import MechanismBase

_SUB_PLACES = 2**32
_ONE_IN = 20  # answers may say nothing
_ITERATIONS = 50


@dataclass(frozen=True)
class _Cut:
    """How one level is answered.

    Attributes:
        level: its level within the part, p.
        share: the share of all people in the part.
        is_last: whether the part is not split again.
        weights: the levels whose errors add up to its own, by their position, with their weights.
    """

    level: Fraction
    share: Fraction
    is_last: bool
    weights: dict[int, Fraction]

    @property
    def largest_side(self) -> Fraction:
        """Return max(p, 1 - p)."""
        return max(self.level, 1 - self.level)


@cache
def cuts_of(levels: tuple[Fraction, ...]) -> tuple[_Cut, ...]:
    """How levels in ascending order are answered: the middle one first."""
    found: dict[int, _Cut] = {}

    def solve(first: int, last: int) -> None:
        if first == last:
            return
        middle = (first + last) // 2
        low = levels[first - 1] if first else Fraction(0)
        high = levels[last] if last < len(levels) else Fraction(1)
        p = (levels[middle] - low) / (high - low)
        weights = {middle: Fraction(1)}
        for position, weight in ((first - 1, 1 - p), (last, p)):
            for other, share in found[position].weights.items() if position in found else ():
                weights[other] = weights.get(other, Fraction(0)) + weight * share
        found[middle] = _Cut(p, high - low, last - first == 1, weights)
        solve(first, middle)
        solve(middle + 1, last)

    solve(0, len(levels))
    return tuple(found[position] for position in range(len(levels)))


def promise_for_levels(mechanism: MechanismBase, size: int, levels: tuple[Fraction, ...]) -> Promise:
    """The bounds for the level with the largest ones, in people. The mechanism is that of one depth.

    >>> from dpselect import PermuteAndFlip
    >>> deciles = tuple(Fraction(i, 10) for i in range(1, 10))
    >>> round(promise_for_levels(PermuteAndFlip("0.25"), 1001, deciles).average)
    272
    """
    among_places, among_values = (promise(mechanism, n).average for n in (_SUB_PLACES * size, size))
    average = max(_sums(levels, lambda _, is_last: among_values if is_last else among_places))
    usual, rare = (max(errors_by_level(mechanism, size, levels, probability)) for probability in (0.05, 0.01))
    return Promise(mechanism, average, 0.0, usual, rare)


def errors_by_level(
    mechanism: MechanismBase, size: int, levels: tuple[Fraction, ...], probability: float, *, together: bool = False
) -> list[float]:
    """For each level, an error in people that it reaches with at most this probability.

    If `together`, the probability is that any of the levels reaches its own error.
    """

    def bound(depth: int, is_last: bool) -> float:
        candidates = size if is_last else _SUB_PLACES * size
        return rarely_exceeded(mechanism, candidates, probability / (len(levels) if together else depth))

    return _sums(levels, bound)


def _sums(levels: tuple[Fraction, ...], bound: Callable[[int, bool], float]) -> list[float]:
    """The error of each level, given the bound of a selection by the depth of the level, and whether it is the last."""
    cuts = cuts_of(levels)
    return [
        sum(
            float(weight * cuts[other].largest_side) * bound(len(cut.weights), cuts[other].is_last)
            for other, weight in cut.weights.items()
        )
        for cut in cuts
    ]


def usual_error_of_levels(mechanism: MechanismBase, levels: tuple[Fraction, ...]) -> float:
    """About how large the error of the worst level is if values lie densely: an estimate, in people.

    >>> from dpselect import PermuteAndFlip
    >>> round(usual_error_of_levels(PermuteAndFlip("0.25"), tuple(Fraction(i, 10) for i in range(1, 10))), 1)
    11.5
    """
    return max(_sums(levels, lambda *_: 1 / float(mechanism.rate)))


def people_for_level(rate: float, size: int, level: Fraction) -> int:
    """How many people a quantile needs. `rate` is that of one person's rank.

    >>> people_for_level(1.0, 2**64, Fraction(1, 2)), people_for_level(1.0, 1001, Fraction(1, 2))
    (95, 20)
    """
    return math.ceil(math.log(_ONE_IN * size) / (rate * float(min(level, 1 - level))))


def people_for_levels(mechanism: MechanismBase, size: int, levels: tuple[Fraction, ...]) -> int:
    """How many people several quantiles need: as many as the level that needs most.

    >>> from dpselect import PermuteAndFlip
    >>> deciles = tuple(Fraction(i, 10) for i in range(1, 10))
    >>> people_for_levels(PermuteAndFlip("0.25"), 2**64, deciles)
    2758
    """
    return max(_people_for_cut(cut, float(mechanism.rate), size) for cut in cuts_of(levels))


def _people_for_cut(cut: _Cut, rate: float, size: int) -> int:
    own, smallest_side = rate / float(cut.largest_side), float(1 - cut.largest_side)
    exponent = math.log(_ONE_IN * size)  # c n min(p, 1 - p), for n people of the part
    if not cut.is_last:
        for _ in range(_ITERATIONS):
            exponent = math.log(_ONE_IN * size * max(1.0, exponent / smallest_side / 2))
    return math.ceil(exponent / (own * smallest_side * float(cut.share)))
