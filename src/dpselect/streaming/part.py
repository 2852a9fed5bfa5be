"""Permute-and-flip (McKenna & Sheldon 2020) in one pass over any number of parts, by a summary that merges exactly.

For each block, keep its best score m, the number h of heads when coins are flipped against m, and one head,
chosen uniformly. Against a larger maximum M each head stays a head with probability exp(-c (M - m)), independently, so
the block is like a run of h equal candidates with score m. The arrival of the first head of such a run is one random
number, which is revealed bit by bit (see `selection.arrivals`). Which of two blocks is earlier does not depend on M: a
merge compares two arrivals and keeps the earlier one. By symmetry the kept head is a uniform one of those that stay.
So any parts in any order give the distribution of one selection from all candidates, and nobody needs to know M.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpselect._types import Array, Vector
from dpselect.errors import ScoresChanged
from dpselect.mechanisms.parameters import Parameters
from dpselect.selection.arrivals import Arrival, draw_arrival, earlier
from dpselect.selection.draws import Draws
from dpselect.selection.flips import (
    FEW,
    Heads,
    SteadyHeads,
    flip_at_once,
    flip_listed,
    flip_long,
    flip_steadily,
    left_to_flip,
)
from dpselect.selection.gaps import MIDDLE, Gaps, Rate, gaps_of
from dpselect.selection.kernel import Left
from dpselect.streaming.labels import Labels, labels_of

# Coins wait until there are so many, or so many blocks: a block without a coin takes memory too.
_MANY, _MANY_BLOCKS = 2**15, 256


@dataclass(frozen=True, repr=False)
class Part:
    """A summary of some candidates: the arrival of their first head, that head, and the number of candidates. Secret.

    The exponent of the arrival is counted from a score of zero: it is -c m. `maximum` is the best score of all. `head`
    is the position of the head, the result if its label is `Unlabelled.POSITION`. `writable` says whether an Arrow
    row can hold every label seen, not only the drawn one.
    """

    arrival: Arrival
    maximum: Fraction
    head: int
    label: Any
    candidates: int
    writable: bool = True

    def merged(self, later: "Part", draws: Draws) -> "Part":
        """Return one part of the candidates of both; those of the later one come after ours in position."""
        winner, arrival = earlier(self.arrival, later.arrival, draws)
        return Part(
            arrival,
            max(self.maximum, later.maximum),
            self.candidates + later.head if winner else self.head,
            later.label if winner else self.label,
            self.candidates + later.candidates,
            self.writable and later.writable,
        )

    def longer(self, candidates: int, writable: bool) -> "Part":
        """Return the part with so many more candidates, none of them a head against its maximum."""
        known = self.arrival, self.maximum, self.head, self.label
        return Part(*known, self.candidates + candidates, self.writable and writable)


def merged(first: Part | None, second: Part | None, draws: Draws) -> Part | None:
    """The summary of both; None is the neutral element."""
    if first is None or second is None:
        return second if first is None else first
    return first.merged(second, draws)


class _Block(NamedTuple):
    """Candidates whose coins were flipped against a best score: one of theirs, or that of an earlier candidate."""

    heads: Heads | SteadyHeads
    best: Fraction
    is_own: bool
    candidates: int


class _Waiting:
    """Blocks of scores of one type whose coins are not flipped yet: copies of the few scores that may be heads."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._lists: list[Left] = []
        self._starts: list[int] = []
        self._maximum: Array
        self._is_own = False
        self.best: Fraction
        self._coins = self.candidates = 0

    @property
    def is_full(self) -> bool:
        """Return whether the coins should be flipped, so that memory does not grow with the stream."""
        return self._coins > _MANY or len(self._lists) >= _MANY_BLOCKS

    def takes(self, gaps: Gaps) -> bool:
        """Return whether the scores have the type of those that wait."""
        return self._lists[0].scores.dtype == gaps.values.dtype

    def add(self, left: Left, gaps: Gaps, best: Fraction) -> None:
        """Add what is left to flip of a block with these gaps, whose best score is not below that of the others."""
        self._lists.append(left)
        self._starts.append(self.candidates)
        self._maximum, self.best = gaps.maximum, best
        self._is_own |= not gaps.is_to_hint
        self.candidates += gaps.size
        self._coins += left.depths.size

    def flipped(self, draws: Draws) -> _Block:
        """Flip all coins against the best score, as those of one block."""
        positions, scores, depths = (np.concatenate(parts) for parts in zip(*self._lists, strict=True))
        exponents = Gaps(scores, self._rate, self._maximum).exponents(np.arange(scores.size))
        positions += np.repeat(self._starts, [left.depths.size for left in self._lists])
        heads = Heads(positions[draws.finish(exponents, 0, depths)])
        return _Block(heads, self.best, self._is_own, self.candidates)


class Stream:
    """A part in progress, to which blocks of candidates are added. Secret.

    The fixed cost of a block is mostly that of its coins. So blocks without labels may wait, and the coins of all of
    them are flipped together: when many wait, before a block that cannot wait, and when somebody asks for the part.
    """

    def __init__(self, mechanism: Parameters, part: Part | None = None, steady: bool = False) -> None:
        self._mechanism, self._steady, self._part = mechanism, steady, part
        self._waiting: _Waiting | None = None

    @property
    def candidates(self) -> int:
        """Return the number of candidates seen."""
        return sum(seen.candidates for seen in (self._part, self._waiting) if seen is not None)

    def add(self, scores: Vector, labels: Any, draws: Draws, *, may_wait: bool = False) -> None:
        """Add a block of candidates after the others.

        A steady block is flipped against its own best score. Others are flipped against the best score so far, if that
        is larger: fewer candidates are hot, and a block without a head has none against any larger maximum either.
        """
        named = labels_of(labels, len(scores))
        hint = None if self._steady else self._hint
        gaps = gaps_of(scores, self._mechanism._rate, hint=hint, steady=self._steady)
        best = hint if hint is not None and gaps.is_to_hint else gaps.best(self._mechanism.rate)
        if may_wait and labels is None and not self._steady and self._wait(gaps, best, draws):
            return
        self.part(draws)
        heads = flip_steadily(gaps, draws) if self._steady else _flipped(gaps, draws)
        self._part = self._with(_Block(heads, best, not gaps.is_to_hint, gaps.size), named, draws)

    def part(self, draws: Draws) -> Part | None:
        """Return the summary of all candidates seen. Blocks that wait are dropped if their scores changed meanwhile."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._part = self._with(waiting.flipped(draws), labels_of(None, 0), draws)
        return self._part

    @property
    def _hint(self) -> Fraction | None:
        """The best score of the blocks that wait, or of the part."""
        if self._waiting is not None:
            return self._waiting.best
        return None if self._part is None else self._part.maximum

    def _wait(self, gaps: Gaps, best: Fraction, draws: Draws) -> bool:
        """Let a block wait, and return whether it does: it must have few hot candidates, which the kernel lists.

        Scores that were rescaled to be integers do not wait: their unit is that of their own block.
        """
        listed = gaps.listed() if gaps.rate is self._mechanism._rate else None
        if listed is None or listed.hot.positions.size > FEW:
            return False
        if not (gaps.is_to_hint or (listed.hot.scores == gaps.maximum).any()):  # it was there when first read
            raise ScoresChanged
        left = left_to_flip(gaps, listed, draws)
        if self._waiting is not None and not self._waiting.takes(gaps):
            self.part(draws)
        if self._waiting is None:
            self._waiting = _Waiting(gaps.rate)
        self._waiting.add(left, gaps, best)
        if self._waiting.is_full:
            self.part(draws)
        return True

    def _with(self, block: _Block, named: Labels, draws: Draws) -> Part:
        """The part with a block after it."""
        part, count = self._part, block.heads.size
        if count:
            position = block.heads.choose(draws)
            arrival = draw_arrival(-self._mechanism.rate * block.best, count, draws)
            one = Part(arrival, block.best, position, named.at(position), block.candidates, named.writable)
            return one if part is None else part.merged(one, draws)
        if part is None or block.is_own:  # the best candidate was a head when first read, so the scores changed
            raise ScoresChanged
        return part.longer(block.candidates, named.writable)


def _flipped(gaps: Gaps, draws: Draws) -> Heads:
    members = flip_listed(gaps, draws)
    if members is None:
        if gaps.size > MIDDLE:
            return flip_long(gaps, draws)
        members = flip_at_once(gaps, draws)
    return Heads(members)
