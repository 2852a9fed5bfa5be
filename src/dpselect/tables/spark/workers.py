"""The Python code that runs on Spark's workers: values become keys, and scores become summaries.

The values are read with the expressions of the DuckDB engine, by a DuckDB inside the worker, so that both engines
read a text, a float or a date in the same way. Summaries draw bits from the worker's system: what is sent holds
public parameters and no randomness. An error does not mention the rows, because Spark writes it to its logs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpselect._validate import withheld
from dpselect.errors import EngineFailure
from dpselect.mechanisms.summary import COLUMNS, ROWS, Summary, gathered
from dpselect.tables.spark.csv_lines import connect_in_worker, decoded

_OTHERS = ["person", "individuals"]  # what is passed through
_SCORES = ["grp", "label", "individuals"]
_BLOCK = 1 << 17
SUMMARY_SCHEMA = ", ".join(["grp bigint", *(f"{name} string" for name in COLUMNS)])


@dataclass(frozen=True)
class Reader:
    """Replaces columns by DuckDB expressions, and passes the other columns through.

    `typed` gives the columns the types that the expressions expect.
    """

    typed: Mapping[str, str]
    expressions: Mapping[str, str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the batches with the columns in order."""
        connection = connect_in_worker()
        query = f"SELECT {_listed(self.expressions)} FROM (SELECT {_listed(self.typed)} FROM dpselect_batch)"
        try:
            for block in _gathered(batches, [*self.expressions, *_OTHERS], _BLOCK):
                connection.register("dpselect_batch", decoded(block.select(list(self.expressions)), connection))
                found = connection.sql(query).to_arrow_table()
                yield from _replaced(block, found).to_batches()
            return
        except Exception:  # noqa: S110 - raised below, without a context
            pass
        raise EngineFailure("a worker could not read its rows")


def _listed(expressions: Mapping[str, str]) -> str:
    return ", ".join(f"{expression} AS {name}" for name, expression in expressions.items())


def _replaced(block: pa.Table, found: pa.Table) -> pa.Table:
    names = block.column_names
    return pa.table([found[name] if name in found.column_names else block[name] for name in names], names)


def _gathered(batches: Iterator[pa.RecordBatch], columns: list[str], rows: int) -> Iterator[pa.Table]:
    """The rows in larger blocks. An empty batch may represent an empty partition."""
    for block in gathered(batches, columns, rows):
        if block.num_rows:
            yield block


class Summarizing(Protocol):
    """A mechanism that has summaries."""

    def summary(self, *, steady: bool = False) -> Summary:
        """Return an empty summary."""
        ...


@dataclass(frozen=True)
class SparkChooser:
    """Reads the candidates of a partition, and returns one row per group: its summary."""

    mechanism: Summarizing
    taken: Mapping[int, list[Any]] = field(default_factory=dict)  # the labels already chosen, by group

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the summaries; nothing for a partition without candidates."""
        rows = withheld(lambda: self._rows(batches), EngineFailure("a worker could not choose"))
        if rows:
            types = {"grp": pa.int64(), **dict.fromkeys(COLUMNS, pa.string())}
            yield pa.RecordBatch.from_pylist(rows, pa.schema(types))

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
        summaries: dict[int, Summary] = {}
        for block in _gathered(batches, _SCORES, ROWS):
            for group, labels, scores in _by_group(block):
                summary = summaries.setdefault(group, self.mechanism.summary(steady=True))
                self._update(summary, group, labels, scores)
        return [{"grp": group, **summary._cells()} for group, summary in summaries.items()]

    def _update(self, summary: Summary, group: int, labels: pa.ChunkedArray, scores: pa.ChunkedArray) -> None:
        if group in self.taken:
            left = pc.invert(pc.is_in(labels, pa.array(self.taken[group], labels.type)))
            labels, scores = labels.filter(left), scores.filter(left)
        summary.update(scores.to_numpy(), labels)


def _by_group(block: pa.Table) -> Iterator[tuple[int, pa.ChunkedArray, pa.ChunkedArray]]:
    """The labels and scores of each group in a block."""
    groups = block["grp"].to_numpy()
    if groups[0] == groups[-1] and (groups == groups[0]).all():
        yield int(groups[0]), block["label"], block["individuals"]
        return
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        own = block.take(rows)
        yield int(groups[rows[0]]), own["label"], own["individuals"]
