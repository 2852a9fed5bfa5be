"""Combine small Arrow batches into larger ones: DuckDB and Spark send only thousands of rows at a time.

Every block has a fixed cost, about that of a hundred thousand candidates. Arrow data cannot change, so
batches can be collected without a copy. Other blocks pass through at once: their owner may reuse them.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from dpselect._validate import withheld
from dpselect.errors import InvalidType

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
