"""Permute-and-flip (McKenna & Sheldon 2020) in one pass over any number of parts, by a summary that merges exactly.

For each block, keep its best score m, the number h of heads when coins are flipped against m, and one head,
chosen uniformly. Against a larger maximum M each head stays a head with probability exp(-c (M - m)), independently, so
the block is like a run of h equal candidates with score m. The arrival of the first head of such a run is one random
number, which is revealed bit by bit (see `sampling.arrival`). Which of two blocks is earlier does not depend on M: a
merge compares two arrivals and keeps the earlier one. By symmetry the kept head is a uniform one of those that stay.
So any parts in any order give the distribution of one selection from all candidates, and nobody needs to know M.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect._scores import as_vector
from dpselect._validate import withheld
from dpselect.errors import InvalidType, InvalidValue, ScoresChanged
from dpselect.mechanisms.flips import Heads, flip, flip_long
from dpselect.mechanisms.gaps import SHORT, Gaps, gaps_of
from dpselect.mechanisms.parameters import Parameters
from dpselect.mechanisms.steady import flip_steadily
from dpselect.sampling.arrival import Arrival
from dpselect.sampling.draws import Draws
from dpselect.streaming.batches import gathered, stream_of
from dpselect.streaming.labels import Unlabelled, labels_of

if TYPE_CHECKING:
    import pyarrow as pa


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
        chosen = (self, replace(later, head=self.candidates + later.head))[winner]
        return replace(
            chosen,
            arrival=arrival,
            maximum=max(self.maximum, later.maximum),
            candidates=self.candidates + later.candidates,
            writable=self.writable and later.writable,
        )


class Summary:
    """A selection in progress: feed it candidates block by block, on any number of machines, and merge.

    A summary holds a few secret numbers, for any number of candidates; its repr shows none. It can be pickled. The
    selection is made while candidates are added. Calling `result` twice returns the same label. After more candidates
    were added, it may return another one. Each different result is a separate release, which costs epsilon again.

    Args:
        mechanism: the mechanism; use `PermuteAndFlip.summary` to create a summary.
        part: the summary of the candidates seen so far.
        steady: whether the time for a block must not depend on its scores.

    >>> from dpselect import PermuteAndFlip
    >>> first, second = PermuteAndFlip(epsilon=1).summary(), PermuteAndFlip(epsilon=1).summary()
    >>> first.update([0, 1]); second.update([1000, 3], labels=["c", "d"])
    >>> first.merge(second).result()
    'c'
    """

    def __init__(self, mechanism: Parameters, part: Part | None = None, steady: bool = False) -> None:
        self._mechanism, self._part, self._steady = mechanism, part, steady

    def __repr__(self) -> str:
        return f"Summary({self._mechanism!r})"

    @property
    def mechanism(self) -> Parameters:
        """Return the public parameters."""
        return self._mechanism

    @property
    def candidates(self) -> int:
        """Return the number of candidates seen."""
        return 0 if self._part is None else self._part.candidates

    def update(self, scores: Any, labels: Any = None) -> None:
        """Add a block of candidates. Labels default to positions, counted from the start of the stream.

        Args:
            scores: the scores of the block, as for `select`. Secret.
            labels: a list, tuple, range, NumPy array, pandas or polars Series or Arrow array of public labels.

        Raises:
            InvalidType: the scores or labels cannot be read.
            InvalidValue: a score is not finite, or the lengths differ.
        """
        if hasattr(scores, "__len__") and not len(scores):
            return
        self._part = seen(self._part, self._mechanism, as_vector(scores), labels, Draws(), self._steady)

    def feed(self, batches: Any, scores: str | None = None, labels: str | None = None) -> None:
        """Add a stream of blocks: arrays of scores, or Arrow record batches (or one table) with these columns.

        The stream may be larger than memory: no block is kept. Small Arrow batches are combined.

        Args:
            batches: an iterable of blocks, a table, or a reader of record batches.
            scores: the name of the column of scores; None if the blocks are arrays of scores.
            labels: the name of the column of labels.

        Raises:
            InvalidType: the stream cannot be read.
            InvalidValue: a column is missing, or a score is not finite.
        """
        if labels is not None and scores is None:
            raise InvalidValue("labels needs scores: name the column of the scores too")
        blocks = stream_of(batches)
        if scores is None:
            for block in blocks:
                self.update(block)
            return
        for batch in gathered(blocks, [scores] if labels is None else [scores, labels]):
            self.update(_column(batch, scores), None if labels is None else _column(batch, labels))

    def merge(self, other: "Summary") -> "Summary":
        """Return one summary of the candidates of both.

        The candidates of the other summary come after ours in position. Merge each summary once only: a copy would
        bring the same coins again.

        Args:
            other: a summary of other candidates, made with the same parameters.

        Returns:
            A new summary. Both old ones stay as they are.

        Raises:
            InvalidType: `other` is not a summary.
            InvalidValue: `other` has other parameters.
        """
        if not isinstance(other, Summary):
            raise InvalidType(f"other must be a Summary, got {type(other).__name__}")
        if other._mechanism != self._mechanism:
            raise InvalidValue("summaries must have the same mechanism: create all of them with equal parameters")
        part = merged(self._part, other._part, Draws())
        return Summary(self._mechanism, part, self._steady or other._steady)

    def to_arrow(self) -> "pa.RecordBatch":
        """Return the exact summary as an Arrow record batch of one row.

        Returns:
            The batch. It is secret, like the scores.

        Raises:
            InvalidType: an Arrow row cannot hold the labels.
        """
        from dpselect.streaming.summary_arrow import to_arrow  # noqa: PLC0415 - Arrow is imported when it is used

        return to_arrow(self)

    @staticmethod
    def from_arrow(batch: Any) -> "Summary":
        """Return the summary that `to_arrow` wrote.

        Args:
            batch: a record batch or table of one row.

        Returns:
            The summary.

        Raises:
            InvalidType: `batch` is not Arrow data.
            InvalidValue: it is not the row of a summary.
        """
        from dpselect.streaming.summary_arrow import from_arrow  # noqa: PLC0415

        return from_arrow(batch)

    def result(self) -> Any:
        """Return the label of the selected candidate.

        Returns:
            The label, or the position if the candidates have no labels. Calling it again returns the same value.

        Raises:
            InvalidValue: there are no candidates.
        """
        if self._part is None:
            raise InvalidValue("the summary has seen no candidates: add some with update or feed")
        return self._part.head if self._part.label is Unlabelled.POSITION else self._part.label


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
    heads, maximum = flip_steadily(gaps, draws) if steady else _flipped(gaps, draws), gaps.best(mechanism.rate)
    if heads.size:
        position, arrival = heads.choose(draws), draws.arrival(-mechanism.rate * maximum, heads.size)
        block = Part(arrival, maximum, position, named.at(position), gaps.size, named.writable)
        return block if part is None else part.merged(block, draws)
    if part is None or part.maximum < maximum:  # the best candidate was a head when first read, so the scores changed
        raise ScoresChanged
    return replace(part, candidates=part.candidates + gaps.size, writable=part.writable and named.writable)


def _flipped(gaps: Gaps, draws: Draws) -> Heads:
    if gaps.size > SHORT:
        return flip_long(gaps, draws)
    heads = Heads()
    heads.add(np.flatnonzero(flip(gaps, draws)))
    return heads


def _column(batch: Any, name: str) -> Any:
    missing = InvalidValue(f"the stream has no column {name[:40]!r}: name a column of its batches")
    return withheld(lambda: batch[name], missing, (KeyError, IndexError, TypeError))
