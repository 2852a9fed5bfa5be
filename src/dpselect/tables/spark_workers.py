"""What runs in Python on Spark's workers: values become keys, and scores become summaries.

The values are read by the very expressions of the DuckDB engine, in a DuckDB inside of the worker, so that both engines
read a text, a float or a date alike. The summaries draw from the worker's own operating system: what is sent here holds
public parameters and no randomness. A failure says nothing of the rows, as Spark writes it into its logs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpselect.errors import EngineFailure
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.summary import Summary
from dpselect.mechanisms.summary_arrow import COLUMNS, cells_of
from dpselect.tables.duckdb_source import connect

SUMMARY_SCHEMA = ", ".join(["grp bigint", *(f"{name} string" for name in COLUMNS)])


@dataclass(frozen=True)
class Reader:
    """Replaces columns by expressions of DuckDB's SQL, and carries the other columns as they are.

    `typed` gives the columns the types that the expressions expect.
    """

    typed: Mapping[str, str]
    expressions: Mapping[str, str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the batches with the columns in their order."""
        connection = connect()
        connection.execute("SET threads = 1")
        query = f"SELECT {_listed(self.expressions)} FROM (SELECT {_listed(self.typed)} FROM dpselect_batch)"
        try:
            for batch in batches:
                read = pa.table({name: batch[name] for name in self.expressions})
                connection.register("dpselect_batch", read)
                found = connection.sql(query).to_arrow_table().combine_chunks()
                yield from _replaced(batch, found).to_batches()
        except Exception:
            raise EngineFailure("a worker could not read its rows") from None


def _listed(expressions: Mapping[str, str]) -> str:
    return ", ".join(f"{expression} AS {name}" for name, expression in expressions.items())


def _replaced(batch: pa.RecordBatch, found: pa.Table) -> pa.Table:
    names = batch.schema.names
    return pa.table([found[name] if name in found.column_names else batch[name] for name in names], names)


@dataclass(frozen=True)
class Chooser:
    """Sees the candidates of a partition, and gives one row for each group: its summary."""

    mechanism: PermuteAndFlip
    taken: Mapping[int, list[Any]] = field(default_factory=dict)  # labels by group that were chosen before

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the summaries; nothing for a partition without candidates."""
        summaries: dict[int, Summary] = {}
        try:
            for batch in batches:
                for group, labels, scores in _by_group(batch):
                    self._update(summaries.setdefault(group, self.mechanism.summary()), group, labels, scores)
            rows = [{"grp": group, **cells_of(summary)} for group, summary in summaries.items()]
        except Exception:
            raise EngineFailure("a worker could not choose") from None
        if rows:
            types = {"grp": pa.int64(), **dict.fromkeys(COLUMNS, pa.string())}
            yield pa.RecordBatch.from_pylist(rows, pa.schema(types))

    def _update(self, summary: Summary, group: int, labels: pa.Array, scores: pa.Array) -> None:
        if group in self.taken:
            left = pc.invert(pc.is_in(labels, pa.array(self.taken[group], labels.type)))
            labels, scores = labels.filter(left), scores.filter(left)
        summary.update(scores.to_numpy(zero_copy_only=False), labels)


def _by_group(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Array, pa.Array]]:
    """The labels and scores of each group of a batch."""
    groups = batch["grp"].to_numpy()
    if not groups.size:
        return
    if groups[0] == groups[-1] and (groups == groups[0]).all():
        yield int(groups[0]), batch["label"], batch["individuals"]
        return
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        yield int(groups[rows[0]]), batch["label"].take(pa.array(rows)), batch["individuals"].take(pa.array(rows))
