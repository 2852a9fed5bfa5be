"""Selections of several candidates at once, for mechanisms that have them: a set by its sum or margin, or an order.

Each is one draw of the mechanism, at its own rate. How the score range depends on the question is stated in
`dpselect.top_k`, which is the way that users take.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpselect import _validate
from dpselect._numbers import float_near
from dpselect._scores import as_lengths, as_vector, copied
from dpselect._types import Array, Integers, Positions, Vector
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import Gaps, gaps_of
from dpselect.selection.proposals import Tickets, levels_of
from dpselect.selection.races import Arrival, Members, Tier, choose_in_order, single, without_empty

MOST_MEMBERS = 2**60
_LARGEST_COUNT = 2**61
_LARGEST_EXPONENT = 2.0**1000

# The number of proposals since the last one, the exact exponent, and the run and rank, of each candidate.
Events = Iterator[tuple[int, Fraction, tuple[int, int]]]


class SelectsInOrder(MechanismBase):
    """A mechanism that can select several candidates in order, from noise that is added once."""

    _arrival: ClassVar[type[Arrival]]  # the negative logarithm of its time is a noisy score

    def select_order(self, scores: Any, k: int, *, lengths: Any = None) -> list[int]:
        """Return k candidates in order, the best first: those with the largest noisy scores.

        Permute-and-flip adds exponential noise to all scores, once; it costs k times epsilon. The exponential mechanism
        adds Gumbel noise, which has the law of one selection after another, and costs as much. Report noisy max adds
        Laplace noise; it costs epsilon, whatever k is, if the score range bounds the sum of all changes of scores.

        Args:
            scores: one score per candidate. Secret.
            k: how many to return, from 1 to the number of candidates.
            lengths: the number of candidates that share each score; one each if omitted. Secret if data-dependent. Then
                positions are those in the vector in which each score is repeated.

        >>> from dpselect import PermuteAndFlip
        >>> PermuteAndFlip(epsilon=1).select_order([0, 900, 0, 1000], 2)
        [3, 1]
        """
        runs = _Runs.read(scores, lengths)
        size = runs.checked_size(k)
        gaps = gaps_of(runs.scores, self._rate)
        with np.errstate(all="ignore"):
            chosen = choose_in_order(gaps, runs.lengths, size, self._arrival, Draws())
        return [runs.position(*member) for member in chosen]


class SelectsSeveral(SelectsInOrder):
    """A mechanism that can also select a whole set of candidates at once."""

    has_sets: ClassVar[bool] = True

    def select_set(self, scores: Any, k: int, *, lengths: Any = None) -> list[int]:
        """Return k candidates, in ascending order, chosen at once among all sets of k by the sum of their scores.

        The score range of the mechanism must be that of the sums: if one person changes at most m scores, each by at
        most one and all in one direction, it is min(m, k, d - k) for d candidates. `dpselect.select_top_k` states it.
        The number of tries, and so the time, depends on the scores. See `SelectsInOrder.select_order`.

        >>> from dpselect import PermuteAndFlip
        >>> PermuteAndFlip(epsilon=1, score_range=1).select_set([0, 900, 0, 1000], 2)
        [1, 3]
        """
        runs = _Runs.read(scores, lengths)
        size = runs.checked_size(k)
        gaps = gaps_of(runs.scores, self._rate)  # refuses scores that are not finite
        if size == runs.total:
            return list(range(size))
        with np.errstate(all="ignore"):  # a warning would reveal something about the scores
            return sorted(runs.position(*member) for member in self._choose_set(gaps, runs.lengths, size, Draws()))

    def select_margin(self, scores: Any, k: int | tuple[int, int], *, lengths: Any = None) -> list[int]:
        """Return candidates, in ascending order, chosen among all sets: smallest count minus the largest outside.

        If a person is added or removed, the margin of a set changes by at most one, and a difference of two margins by
        at most two, however many counts that person changes. So the score range of the mechanism must be 2, or 4 if a
        person may be replaced.

        Args:
            scores: one count per candidate: whole numbers from 0 to 2**61. Secret.
            k: the size of the set, or a pair of the smallest and the largest size. At least one candidate must be left
                out, unless k is the number of candidates.
            lengths: the number of candidates that share each count, as for `select_order`.

        >>> from dpselect import PermuteAndFlip
        >>> PermuteAndFlip(epsilon=1, score_range=2).select_margin([0, 900, 0, 1000], (1, 3))
        [1, 3]
        """
        from dpselect.selection.sets import choose_margin  # noqa: PLC0415 - imported when first used

        runs = _Runs.read(scores, lengths)
        interval = sizes_of(k, runs.total)
        counts = checked_counts(runs.scores)
        if interval[0] == runs.total:
            return list(range(runs.total))
        order = np.argsort(-counts, kind="stable")
        ranked = Tier(0, order, np.cumsum(runs.lengths[order]))
        firsts = np.flatnonzero(np.diff(counts[order], prepend=-1))
        with np.errstate(all="ignore"):
            sizes = np.add.reduceat(runs.lengths[order], firsts)
            chosen = choose_margin(counts[order][firsts], sizes, interval, self._rate, self._arrival, Draws())
        found = zip(*ranked.located(np.array(chosen)), strict=True)
        return sorted(runs.position(int(run), int(rank)) for run, rank in found)

    def select_bounded(
        self, bounds: Sequence[int], lengths: Sequence[int], distance: Callable[[int, int], int]
    ) -> tuple[int, int]:
        """Return the run and the rank of one candidate of runs whose scores are only bounded, until it is proposed.

        The candidate has exactly the law of `select` on all candidates. A distance below the bound of its run raises
        `InvalidValue`, because the law would be wrong.

        Args:
            bounds: for each run, a whole number that the distance of its candidates below the best score is never
                smaller than. Any such bounds give the same law; large ones are fast. Secret.
            lengths: the number of candidates of each run, positive. Secret.
            distance: returns how far a candidate is below the best score, exactly, given its run and its rank there.
                The best candidate has distance zero.

        >>> from dpselect import PermuteAndFlip
        >>> PermuteAndFlip(epsilon=1).select_bounded([0, 90], [1, 10**6], lambda run, rank: run * (90 + rank))
        (0, 0)
        """
        sizes = np.array([int(length) for length in lengths], dtype=object)
        last = sum(sizes.tolist()).bit_length() + 8
        rate, draws = self._rate.exact, Draws()
        least = [max(bound, 0) for bound in bounds]

        def exponent(run: int, rank: int) -> Fraction:
            exact = distance(run, rank)
            if exact < least[run]:
                raise InvalidValue("distance must not be below the bound of its run")
            return rate * exact

        with np.errstate(all="ignore"):
            exponents = np.array([min(float_near(rate * bound), _LARGEST_EXPONENT) for bound in least])
            tickets = Tickets(levels_of(exponents, last), sizes, last)
        return self._first_event(tickets.accepted(exponent, draws), tickets.mass, draws)

    @abstractmethod
    def _first_event(self, events: Events, mass: Fraction, draws: Draws) -> tuple[int, int]:
        """Choose one of the candidates that the exponential mechanism draws one after another.

        `mass` is the rate of proposals, if a candidate of exponent zero has rate one.
        """

    @abstractmethod
    def _choose_set(self, gaps: Gaps, lengths: Positions, k: int, draws: Draws) -> Members:
        """Choose k members of runs by the sum of their scores; fewer than all."""


def selecting_in_order(mechanism: MechanismBase) -> SelectsInOrder:
    """The mechanism, checked to be one that selects in order."""
    if not isinstance(mechanism, SelectsInOrder):
        raise InvalidType(f"{type(mechanism).__name__} does not support select_order: use PermuteAndFlip")
    return mechanism


def selecting_sets(mechanism: MechanismBase) -> SelectsSeveral:
    """The mechanism, checked to be one that selects sets."""
    if not isinstance(mechanism, SelectsSeveral):
        raise InvalidType(f"{type(mechanism).__name__} does not support select_set: use PermuteAndFlip")
    return mechanism


def sizes_of(k: Any, total: int) -> tuple[int, int]:
    """The smallest and the largest size of a set of `total` candidates: a pair, or one number twice."""
    pair = k if isinstance(k, (tuple, list)) else (k, k)
    if len(pair) != 2:
        raise InvalidType("k must be a whole number, or a pair of the smallest and the largest size")
    least, most = (_validate.count(k=size) for size in pair)
    if pair is k and not 1 <= least <= most < total:
        raise InvalidValue(
            f"k must be a pair (lo, hi) with 1 <= lo <= hi <= {total - 1}, the number of candidates less one, got"
            f" ({least}, {most})"
        )
    if not 1 <= most <= total:
        raise InvalidValue(f"k must be from 1 to the number of candidates, {total}, got {most}")
    return least, most


@dataclass(frozen=True, repr=False)
class _Runs:
    # Scores, how many candidates share each, and the position of the first of them in the long vector. Secret.

    scores: Vector
    lengths: Positions
    starts: Positions | None  # None if each run has one candidate

    @classmethod
    def read(cls, scores: Any, lengths: Any) -> "_Runs":
        # A copy of what the arguments state. Runs without candidates are left out.
        vector = as_vector(scores)
        if lengths is None:
            count = len(vector)
            return cls(copied(vector), single(count), None)
        counts = as_lengths(lengths, len(vector))
        if sum(counts.tolist()) > MOST_MEMBERS:
            raise InvalidValue("lengths must have a sum of at most 2**60: there are too many candidates")
        ends = np.cumsum(counts.astype(np.int64))
        starts = (ends - counts.astype(np.int64))[counts > 0]
        present, counts = without_empty(vector, counts)
        return cls(copied(present), counts.astype(np.int64), starts)

    @property
    def total(self) -> int:
        return int(self.lengths.sum())

    def checked_size(self, k: Any) -> int:
        return sizes_of(_validate.count(k=k), self.total)[0]

    def position(self, run: int, rank: int) -> int:
        return run if self.starts is None else int(self.starts[run]) + rank


def checked_counts(scores: Vector) -> Integers:
    """The scores as whole numbers, if they are counts."""
    array: Array = np.asarray(scores, dtype=object if isinstance(scores, list) else None)
    with np.errstate(all="ignore"):
        if not (np.all(array >= 0) and np.all(array <= _LARGEST_COUNT) and np.all(array == array // 1)):
            raise InvalidValue("scores must be counts for the margin: whole numbers from 0 to 2**61")
        return array.astype(np.int64)
