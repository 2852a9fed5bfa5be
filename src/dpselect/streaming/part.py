"""Permute-and-flip (McKenna & Sheldon 2020) in one pass over any number of parts, by a summary that merges exactly.

For each block, keep its best score m, the number h of heads when coins are flipped against m, and one head,
chosen uniformly. Against a larger maximum M each head stays a head with probability exp(-c (M - m)), independently, so
the block is like a run of h equal candidates with score m. The arrival of the first head of such a run is one random
number, which is revealed bit by bit (see `sampling.arrival`). Which of two blocks is earlier does not depend on M: a
merge compares two arrivals and keeps the earlier one. By symmetry the kept head is a uniform one of those that stay.
So any parts in any order give the distribution of one selection from all candidates, and nobody needs to know M.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect.errors import ScoresChanged
from dpselect.mechanisms.flips import Heads, flip_at_once, flip_listed, flip_long
from dpselect.mechanisms.gaps import MIDDLE, Gaps, gaps_of
from dpselect.mechanisms.parameters import Parameters
from dpselect.mechanisms.steady import flip_steadily
from dpselect.sampling.arrival import Arrival
from dpselect.sampling.draws import Draws
from dpselect.streaming.labels import labels_of


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
        winner, arrival = draws.earlier(self.arrival, later.arrival)
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


def seen(  # noqa: PLR0913, PLR0917 - the block, the mechanism and the options
    part: Part | None,
    mechanism: Parameters,
    scores: Any,
    labels: Any,
    draws: Draws,
    steady: bool = False,
) -> Part:
    """The part with a block of candidates after it.

    A steady block is flipped against its own best score. Others are flipped against the best score so far, if that
    is larger: fewer candidates are hot, and a block without a head has none against any larger maximum either.
    """
    named = labels_of(labels, len(scores))
    gaps = gaps_of(scores, mechanism._rate, hint=None if part is None or steady else part.maximum, steady=steady)
    heads = flip_steadily(gaps, draws) if steady else _flipped(gaps, draws)
    if heads.size:
        maximum = part.maximum if part is not None and gaps.is_to_hint else gaps.best(mechanism.rate)
        position, arrival = heads.choose(draws), draws.arrival(-mechanism.rate * maximum, heads.size)
        block = Part(arrival, maximum, position, named.at(position), gaps.size, named.writable)
        return block if part is None else part.merged(block, draws)
    if part is None or not gaps.is_to_hint:  # the best candidate was a head when first read, so the scores changed
        raise ScoresChanged
    return part.longer(gaps.size, named.writable)


def _flipped(gaps: Gaps, draws: Draws) -> Heads:
    members = flip_listed(gaps, draws)
    if members is None:
        if gaps.size > MIDDLE:
            return flip_long(gaps, draws)
        members = flip_at_once(gaps, draws)
    return Heads(members)
