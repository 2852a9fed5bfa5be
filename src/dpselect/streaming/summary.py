"""A selection in progress: what a user feeds with blocks of candidates, sends to another machine and merges.

`streaming.part` has the mathematics. Small Arrow batches of a stream are combined into larger ones (`gathered`): DuckDB
and Spark send only thousands of rows at a time. Every block has a fixed cost, about that of a hundred thousand
candidates. Arrow data cannot change, so batches can be collected without a copy. Other blocks pass through at once:
their owner may reuse them.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from dpselect import _show
from dpselect._scores import as_vector
from dpselect._validate import withheld
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.parameters import Parameters
from dpselect.selection.draws import Draws
from dpselect.streaming.labels import Unlabelled
from dpselect.streaming.part import Part, Stream, merged
from dpselect.streaming.summary_arrow import Cells, cells_of, cells_of_batch, read_cells, record_batch

if TYPE_CHECKING:
    import pyarrow as pa


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
        self._mechanism, self._steady = mechanism, steady
        self._stream = Stream(mechanism, part, steady)

    def __reduce__(self) -> tuple[Any, ...]:
        """What a copy is made from: coins that are flipped. Flipping them again would be another selection."""
        return type(self), (self._mechanism, self._part, self._steady)

    @property
    def _part(self) -> Part | None:
        return self._stream.part(Draws())

    def __repr__(self) -> str:
        return f"Summary({self._mechanism!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the public parameters, and nothing about the candidates seen."""
        return _show.page(_show.facts({"mechanism": repr(self._mechanism)}, caption="Summary: a selection in progress"))

    @property
    def mechanism(self) -> Parameters:
        """Return the public parameters."""
        return self._mechanism

    @property
    def candidates(self) -> int:
        """Return the number of candidates seen."""
        return self._stream.candidates

    def update(self, scores: Any, labels: Any = None) -> None:
        """Add a block of candidates. Labels default to positions, counted from the start of the stream.

        Args:
            scores: the scores of the block, as for `select`. Secret.
            labels: a list, tuple, range, NumPy array, pandas or polars Series or Arrow array of public labels.

        Raises:
            InvalidType: the scores or labels cannot be read.
            InvalidValue: a score is not finite, or the lengths differ.
        """
        self._add(scores, labels)

    def _add(self, scores: Any, labels: Any, may_wait: bool = False) -> None:
        if getattr(scores, "ndim", 1) and hasattr(scores, "__len__") and not len(scores):
            return
        self._stream.add(as_vector(scores), labels, Draws(), may_wait=may_wait)

    def feed(self, batches: Any, scores: str | None = None, labels: str | None = None) -> None:
        """Add a stream of blocks: arrays of scores, or Arrow record batches (or one table) with these columns.

        The stream may be larger than memory: no block is kept. Small Arrow batches are combined. For blocks without
        labels, this is faster than `update`.

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
        try:
            if scores is None:
                for block in blocks:
                    self._add(block, None, may_wait=True)
                return
            for batch in gathered(blocks, [scores] if labels is None else [scores, labels]):
                named = None if labels is None else _column(batch, labels)
                self._add(_column(batch, scores), named, may_wait=True)
        finally:
            self._stream.part(Draws())  # no block waits longer, so that no copy of the process flips other coins

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
            InvalidValue: `other` is this summary, or has other parameters.
        """
        if not isinstance(other, Summary):
            raise InvalidType(f"other must be a Summary, got {type(other).__name__}")
        if other is self:
            raise InvalidValue("other must be a summary of other candidates: each summary is merged once only")
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
        return record_batch(self._cells())

    def _cells(self) -> Cells:
        return cells_of(self._mechanism, self._part, self._steady)

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
        return Summary(*read_cells(cells_of_batch(batch)))

    def result(self) -> Any:
        """Return the label of the selected candidate.

        Returns:
            The label, or the position if the candidates have no labels. Calling it again returns the same value.

        Raises:
            InvalidValue: there are no candidates.
        """
        part = self._part
        if part is None:
            raise InvalidValue("the summary has seen no candidates: add some with update or feed")
        return part.head if part.label is Unlabelled.POSITION else part.label


def _column(batch: Any, name: str) -> Any:
    missing = InvalidValue(f"the stream has no column {name[:40]!r}: name a column of its batches")
    return withheld(lambda: batch[name], missing, (KeyError, IndexError, TypeError))


ROWS = 1 << 19


def stream_of(batches: Any) -> Iterator[Any]:
    """The blocks of a stream. A single table is a stream, too: of its batches if it is Arrow, or of itself."""
    if hasattr(batches, "to_batches"):
        batches = batches.to_batches()
    elif hasattr(batches, "columns") and hasattr(batches, "shape"):
        batches = [batches]
    wrong = f"batches must be blocks or a table, got {type(batches).__name__}: give a list of blocks or a reader"
    blocks: Iterator[Any] = withheld(lambda: iter(batches), InvalidType(wrong), TypeError)
    return blocks


def gathered(batches: Iterable[Any], columns: list[str], rows: int = ROWS) -> Iterator[Any]:
    """The same rows in the same order, Arrow record batches of one schema as tables of at least `rows` rows.

    Only these columns wait, so that a wide table costs no memory. The reader notices one that is missing.
    """
    waiting: list[Any] = []
    size = 0
    for whole in batches:
        batch = _narrowed(whole, columns)
        if waiting and not (_is_record_batch(batch) and batch.schema.equals(waiting[0].schema)):
            yield _table(waiting)
            waiting, size = [], 0
        if not _is_record_batch(batch):
            yield batch
            continue
        waiting.append(batch)
        size += batch.num_rows
        if size >= rows:
            yield _table(waiting)
            waiting, size = [], 0
    if waiting:
        yield _table(waiting)


def _is_record_batch(batch: Any) -> bool:
    return type(batch).__module__.startswith("pyarrow") and type(batch).__name__ == "RecordBatch"


def _narrowed(batch: Any, columns: list[str]) -> Any:
    if not _is_record_batch(batch):
        return batch
    return batch.select([name for name in columns if name in batch.schema.names])


def _table(batches: list[Any]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - a batch of Arrow comes with it

    return pa.Table.from_batches(batches)
