"""Selection among values that nobody listed, with a threshold (Durfee & Rogers 2019, for permute-and-flip and exactly).

The values are those that somebody has, so a new person can bring new ones. A further candidate, "nothing", stands T
above whatever a single person could bring. Its score is 1 + T, or 1 + T above the first count that is left out.

  limited    A person has at most m values. All values that occur compete, and "nothing" at 1 + T.
  unlimited  Only the `MOST` largest counts compete (of equal counts, the first values in order), filled up with
             anonymous candidates of count 0. "Nothing" stands at 1 + T plus the next count, or 0 if there is none.
             An anonymous winner is "nothing", too. m is `MOST`.

**Delta** is m F exp(-c T) with a rate c per individual. F depends on the mechanism and on who is a neighbour.

  permute-and-flip   1/2 for a person who is added or removed (theorem 18 of docs/theory.md).
                     Replaced, limited: (1 + exp(-c))/2; unlimited: (1 + exp(c))/2, by two steps.
  exponential        1. Replaced and unlimited: exp(c), because the counts of both data sets are further apart.

If there are groups, a replaced person may leave one and enter another, and what both cost adds up: F is at least 1 for
permute-and-flip and at least 2 for the exponential mechanism.

A candidate that is T below another one wins with probability at most exp(-c T)/2 with permute-and-flip, and at most
exp(-c T) with the exponential mechanism. So the noise of permute-and-flip needs ln 2 / c people less. Given that no
value of a single person wins, the exponential mechanism chooses among the other candidates like the exponential
mechanism among those alone. So it is rho-zCDP except for an event of probability delta, with its own rho. Of
permute-and-flip only (epsilon, delta) is known.
"""

import math
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

from dpselect.mechanisms.base import MechanismBase
from dpselect.selection.enclosure import log_bracket, scaled_exp

MOST = 10_000
# Thresholds are multiples of this: a power of two, so that floats hold them, and far below a person.
_STEP = Fraction(1, 1024)
_DIGITS = 40
_BITS = 64


@dataclass(frozen=True)
class Threshold:
    """How far above a single person "nothing" stands, and how many candidates compete. Public.

    Attributes:
        distance: T, in people.
        most: how many of the largest counts compete; None if all of them do.
    """

    distance: Fraction
    most: int | None

    @property
    def people(self) -> Fraction:
        """The score of "nothing", if no count is left out."""
        return 1 + self.distance


def threshold(rate: Fraction, delta: Fraction, max_values: int | None, factor: "Factor") -> Threshold:
    """The smallest multiple of 1/1024 for T that keeps delta, with c = `rate` and F = `factor`."""
    # One person counts for at most `max_values` values; None stands for any number.
    values = MOST if max_values is None else max_values
    # m F exp(-c T) <= delta if T >= (ln(m / delta) + ln F) / c. With F = f exp(j c), that is ln(m f / delta) / c + j.
    bounds = factor.bounds(rate, limited=max_values is not None)
    needed = [log_bracket(values / delta * scale, _DIGITS)[1] / rate + shift for scale, shift in bounds]
    rounded = math.ceil(max(Fraction(0), *needed) / _STEP) * _STEP
    return Threshold(rounded, None if max_values is not None else MOST)


@dataclass(frozen=True)
class Factor:
    """F of the module's docstring: by how much delta exceeds m exp(-c T).

    Attributes:
        far_below: the mechanism's own: 1/2 for permute-and-flip, and 1 for the exponential mechanism.
        replaced: whether a person may be replaced.
        grouped: whether there are groups.
    """

    far_below: Fraction
    replaced: bool
    grouped: bool

    def bounds(self, rate: Fraction, *, limited: bool) -> list[tuple[Fraction, int]]:
        """Return f and j for each of some numbers f exp(j c), of which the largest is at least F."""
        if not self.replaced:
            return [(self.far_below, 0)]
        half = (1 + Fraction(scaled_exp(rate, _BITS) + 1, 2**_BITS)) / 2  # at least (1 + exp(-c))/2
        alone = (half if self.far_below < 1 else Fraction(1), 0 if limited else 1)  # (1 + exp(c))/2 is exp(c) times it
        return [alone, (2 * self.far_below, 0)] if self.grouped else [alone]


def chosen_above(
    individuals: Sequence[int], values: Sequence[int], k: int, threshold: Threshold, mechanism: MechanismBase
) -> list[tuple[int, int]]:
    """Select up to k values until "nothing" is: of each its count, and its rank from zero among those that share it."""
    # The secret `individuals` are the different counts, ascending and positive; `values` is how many values have each.
    left, taken = list(values), [list[int]() for _ in values]
    chosen: list[tuple[int, int]] = []
    while len(chosen) < k:
        runs, nothing = _competing(individuals, left, threshold)
        scores: list[Any] = [*(individuals[level] for level, _ in runs), 0, nothing]
        anonymous = 0 if threshold.most is None else threshold.most - sum(size for _, size in runs)
        lengths = [*(size for _, size in runs), anonymous, 1]
        position = mechanism.select_runs(scores, lengths)
        ends = list(accumulate(lengths))
        run = bisect_right(ends, position)
        if run >= len(runs):
            break
        level, size = runs[run]
        rank = position - (ends[run] - size)
        for earlier in taken[level]:  # in ascending order
            rank += earlier <= rank
        insort(taken[level], rank)
        left[level] -= 1
        chosen.append((individuals[level], rank))
    return chosen


def _competing(
    individuals: Sequence[int], left: Sequence[int], threshold: Threshold
) -> tuple[list[tuple[int, int]], Fraction]:
    if threshold.most is None:
        return [(level, size) for level, size in enumerate(left) if size], threshold.people
    room, runs = threshold.most, list[tuple[int, int]]()
    for level in reversed(range(len(left))):
        size = min(left[level], room)
        if size:
            runs.append((level, size))
            room -= size
        if size < left[level]:
            return runs, individuals[level] + threshold.people
    return runs, threshold.people
