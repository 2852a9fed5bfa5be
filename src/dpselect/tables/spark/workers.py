"""The Python code that runs on Spark's workers: lines of files, values that become keys, and scores become summaries.

Each worker has its own DuckDB, which reads lines and values with the expressions of the DuckDB engine, so that both
engines read a line, a text, a float or a date in the same way. Text arrives there as bytes; text that is not UTF-8 is a
missing value. CSV files are read line by line: a task reads the lines that start in its bytes. Summaries draw bits from
the worker's system: what is sent holds public parameters and no randomness. An error does not mention the rows, because
Spark writes it to its logs.
"""

import gzip
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpselect.errors import EngineFailure
from dpselect.mechanisms.summary import COLUMNS, ROWS, Summary, gathered
from dpselect.mechanisms.unlisted import Finding
from dpselect.selection.draws import Draws
from dpselect.tables.duckdb.files import LONGEST_LINE, LONGEST_READ, is_compressed, rows_of
from dpselect.tables.duckdb.source import connect
from dpselect.tables.duckdb.values import identifier
from dpselect.tables.view import characters

_BYTES = "dpselect_bytes"


def connect_in_worker() -> duckdb.DuckDBPyConnection:
    """Open a private connection that uses one core and writes nothing to disk: it reads one block at a time."""
    connection = connect(spills=False)
    connection.execute("SET threads = 1")
    return connection


class _Worker:
    # What Spark calls with the batches of a partition.

    failure: ClassVar[str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the answer to the batches. An error does not quote the rows."""
        try:
            yield from self.answer(batches)
            return
        except Exception:  # noqa: S110 - raised below, without a context
            pass
        raise EngineFailure(self.failure)

    def answer(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError


def decoded(table: pa.Table, connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """The table with its bytes decoded to text."""
    # This is a separate statement: DuckDB 1.5 loses rows if TRY is combined with a condition.
    texts = [field.name for field in table.schema if pa.types.is_binary(field.type)]
    if not texts:
        return table
    connection.register(_BYTES, table.select(texts))
    selected = ", ".join(f"TRY(decode({identifier(name)})) AS {identifier(name)}" for name in texts)
    return _replaced(table, connection.sql(f"SELECT {selected} FROM {_BYTES}").to_arrow_table())


def _replaced(table: pa.Table, found: pa.Table) -> pa.Table:
    names = table.column_names
    return pa.table([found[name] if name in found.column_names else table[name] for name in names], names)


_RANGE = 32 * 2**20
_BLOCK = 4 * 2**20
_LINE_END = re.compile(b"[\r\n]")
_SEPARATOR = b"\x1f"
_KEPT = LONGEST_READ


@dataclass(frozen=True)
class Range:
    """A range of bytes of a file. A compressed file is a single range without an end."""

    path: str = field(repr=False)
    start: int
    stop: int | None
    file: int = 0  # its number


def ranges_of(paths: Sequence[Path], size: int = _RANGE) -> list[Range]:
    """All bytes of the files in ranges of this size."""
    found = []
    for i, path in enumerate(paths):
        if is_compressed(path):
            found.append(Range(str(path.absolute()), 0, None, i))
        else:
            starts = range(0, max(1, path.stat().st_size), size)
            found += [Range(str(path.absolute()), start, start + size, i) for start in starts]
    return found


@dataclass(frozen=True)
class LineReader(_Worker):
    """Reads the wanted columns of the ranges with the given numbers."""

    failure = "a file could not be read: check that every worker can reach it"
    ranges: tuple[Range, ...]
    delimiter: str
    names: tuple[str, ...]
    wanted: tuple[str, ...]
    folders: Mapping[str, Sequence[str | None]] = field(default_factory=dict, repr=False)  # a value for each file
    encoding: str = ""  # nothing for UTF-8

    def answer(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        connection = connect_in_worker()
        others = {key: f"folder{i}" for i, key in enumerate(self.folders)}
        query = rows_of("dpselect_lines", self.delimiter, self.names, self.wanted, others)
        for batch in batches:
            for number in batch[0].to_pylist():
                for found in lines_in(self.ranges[number]):
                    table = self._table(found, self.ranges[number].file)
                    connection.register("dpselect_lines", decoded(table, connection))
                    rows = connection.sql(query).to_arrow_table()
                    yield from rows.rename_columns([f"c{i}" for i in range(len(self.wanted))]).to_batches()

    def _table(self, found: list[bytes], file: int) -> pa.Table:
        values = (pa.scalar(column[file], pa.string()) for column in self.folders.values())
        columns = {f"folder{i}": pa.repeat(value, len(found)) for i, value in enumerate(values)}
        lines = [characters(line, self.encoding).encode() for line in found] if self.encoding else found
        return pa.table({"line": pa.array(lines, pa.binary()), **columns})


def lines_in(range_: Range) -> Iterator[list[bytes]]:
    """The lines that start in a range, in blocks, without the file's first line, which is the header."""
    # A line starts after the end of another one. So the line at the first byte belongs to this range only if the byte
    # before it ends a line; the last line is read to its end, wherever that is.
    opener: Callable[[str, Any], Any] = gzip.open if range_.stop is None else open
    with opener(range_.path, "rb") as file:
        position = _behind_first_end(file, range_.start)
        rest, dropped = b"", 0
        while range_.stop is None or position - dropped - len(rest) < range_.stop:
            block = file.read(_BLOCK)
            position += len(block)
            *whole, rest = _LINE_END.split(rest + block)
            if not block:  # the last line of the file has no end
                whole, rest = [rest], b""
            started = (line.partition(_SEPARATOR)[0] for line in _started(whole, position - len(rest), range_.stop))
            yield [line for line in started if len(line) < LONGEST_LINE]
            if not block:
                return
            # Of a line that is too long to count, enough is kept to recognise it.
            dropped, rest = (dropped if not whole else 0) + max(0, len(rest) - _KEPT), rest[:_KEPT]


def _behind_first_end(file: IO[bytes], start: int) -> int:
    # The header, which only the range at zero has, ends with a line feed.
    file.seek(max(0, start - 1))
    end = _LINE_END if start else re.compile(b"\n")
    while block := file.read(_BLOCK):
        found = end.search(block)
        if found is not None:
            return file.seek(file.tell() - len(block) + found.end())
    return file.tell()


def _started(whole: list[bytes], position: int, stop: int | None) -> Iterator[bytes]:
    # The last of all lines ends before `position`.
    kept = len(whole)
    while stop is not None and kept and position - len(whole[kept - 1]) - 1 >= stop:
        kept -= 1
        position -= len(whole[kept]) + 1
    return (line for line in whole[:kept] if 0 < len(line) < LONGEST_READ)


_OTHERS = ["person", "individuals"]  # what is passed through
_SCORES = ["grp", "label", "individuals"]
_BLOCK_OF_ROWS = 1 << 17
SUMMARY_SCHEMA = ", ".join(["grp bigint", *(f"{name} string" for name in COLUMNS)])


@dataclass(frozen=True)
class Reader(_Worker):
    """Replaces columns by DuckDB expressions, and passes the other columns through."""

    # `typed` gives the columns the types that the expressions expect.

    failure = "a worker could not read its rows"
    typed: Mapping[str, str]
    expressions: Mapping[str, str]

    def answer(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        connection = connect_in_worker()
        query = f"SELECT {_listed(self.expressions)} FROM (SELECT {_listed(self.typed)} FROM dpselect_batch)"
        for block in _gathered(batches, [*self.expressions, *_OTHERS], _BLOCK_OF_ROWS):
            connection.register("dpselect_batch", decoded(block.select(list(self.expressions)), connection))
            found = connection.sql(query).to_arrow_table()
            yield from _replaced(block, found).to_batches()


@dataclass(frozen=True)
class Deriver(_Worker):
    """Adds derived columns, and drops the rows for which the condition is not true. Other columns pass through."""

    failure = "a worker could not read its rows"
    typed: Mapping[str, str]  # the columns that are read, by number: DuckDB's SQL of each in its type, under its name
    selected: Mapping[str, str]
    condition: str

    def answer(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        connection = connect_in_worker()
        found = {**self.selected, "counts": self.condition or "true"}
        rows = f"SELECT {', '.join(self.typed.values()) or '1'} FROM dpselect_batch"
        for batch in batches:
            block = pa.table(batch)
            connection.register("dpselect_batch", decoded(block.select(list(self.typed)), connection))
            made = connection.sql(f"SELECT {_listed(found)} FROM ({rows})").to_arrow_table()
            for name in self.selected:
                block = block.append_column(name, made[name])
            yield from block.filter(made["counts"]).to_batches()


def _listed(expressions: Mapping[str, str]) -> str:
    return ", ".join(f"{expression} AS {name}" for name, expression in expressions.items())


def _gathered(batches: Iterator[pa.RecordBatch], columns: list[str], rows: int) -> Iterator[pa.Table]:
    # An empty batch may represent an empty partition.
    for block in gathered(batches, columns, rows):
        if block.num_rows:
            yield block


@dataclass(frozen=True)
class SparkChooser(_Worker):
    """Reads the candidates of a partition, and returns one row per group: its summary."""

    failure = "a worker could not choose"
    mechanism: Any  # one that has summaries
    taken: Mapping[int, list[Any]] = field(default_factory=dict)  # the labels already chosen, by group

    def answer(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        summaries: dict[int, Summary] = {}
        for block in _gathered(batches, _SCORES, ROWS):
            for group, labels, scores in _by_group(block):
                summary = summaries.setdefault(group, self.mechanism.summary(steady=True))
                self._update(summary, group, labels, scores)
        rows = [{"grp": group, **summary._cells()} for group, summary in summaries.items()]
        if rows:  # a partition may have no candidates
            types = {"grp": pa.int64(), **dict.fromkeys(COLUMNS, pa.string())}
            yield pa.RecordBatch.from_pylist(rows, pa.schema(types))

    def _update(self, summary: Summary, group: int, labels: pa.ChunkedArray, scores: pa.ChunkedArray) -> None:
        if group in self.taken:
            left = pc.invert(pc.is_in(labels, pa.array(self.taken[group], labels.type)))
            labels, scores = labels.filter(left), scores.filter(left)
        summary.update(scores.to_numpy(), labels)


def _by_group(block: pa.Table) -> Iterator[tuple[int, pa.ChunkedArray, pa.ChunkedArray]]:
    groups = block["grp"].to_numpy()
    if groups[0] == groups[-1] and (groups == groups[0]).all():
        yield int(groups[0]), block["label"], block["individuals"]
        return
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        own = block.take(rows)
        yield int(groups[rows[0]]), own["label"], own["individuals"]


@dataclass(frozen=True)
class SparkFinder(_Worker):
    """Flips a coin for each value of a partition, and returns the group and the label of those with heads."""

    failure = "a worker could not choose"
    finding: Finding

    def answer(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            heads = self.finding.found(batch["individuals"].to_numpy().astype(np.int64), Draws())
            yield batch.select(["grp", "label"]).filter(pa.array(heads))
