"""Read CSV files in Spark line by line, by the rules of the DuckDB engine. A task reads lines that start in its bytes.

Each worker has its own DuckDB. Text arrives there as bytes; text that is not UTF-8 is a missing value.
"""

import gzip
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import duckdb
import pyarrow as pa

from dpselect.errors import EngineFailure
from dpselect.tables.duckdb import lines
from dpselect.tables.duckdb.connections import connect
from dpselect.tables.duckdb.values import identifier

_BYTES = "dpselect_bytes"


def connect_in_worker() -> duckdb.DuckDBPyConnection:
    """Open a private connection that uses one core and writes nothing to disk: it reads one block at a time."""
    connection = connect(spills=False)
    connection.execute("SET threads = 1")
    return connection


def decoded(table: pa.Table, connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """The table with its bytes decoded to text.

    This is a separate statement: DuckDB 1.5 loses rows if TRY is combined with a condition.
    """
    texts = [field.name for field in table.schema if pa.types.is_binary(field.type)]
    if not texts:
        return table
    connection.register(_BYTES, table.select(texts))
    selected = ", ".join(f"TRY(decode({identifier(name)})) AS {identifier(name)}" for name in texts)
    found = connection.sql(f"SELECT {selected} FROM {_BYTES}").to_arrow_table()
    names = table.column_names
    return pa.table([found[name] if name in texts else table[name] for name in names], names)


_RANGE = 32 * 2**20
_BLOCK = 4 * 2**20
_LINE_END = re.compile(b"[\r\n]")
_SEPARATOR = b"\x1f"
_KEPT = lines.LONGEST_READ


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
        if path.name.lower().endswith(".gz"):
            found.append(Range(str(path.absolute()), 0, None, i))
        else:
            starts = range(0, max(1, path.stat().st_size), size)
            found += [Range(str(path.absolute()), start, start + size, i) for start in starts]
    return found


@dataclass(frozen=True)
class LineReader:
    """Reads the wanted columns of the ranges with the given numbers. Runs on Spark's workers."""

    ranges: tuple[Range, ...]
    delimiter: str
    names: tuple[str, ...]
    wanted: tuple[str, ...]
    folders: Mapping[str, Sequence[str | None]] = field(default_factory=dict, repr=False)  # a value for each file

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the rows. An error does not quote them."""
        connection = connect_in_worker()
        others = {key: f"folder{i}" for i, key in enumerate(self.folders)}
        query = lines.rows_of("dpselect_lines", self.delimiter, self.names, self.wanted, others)
        try:
            for batch in batches:
                for number in batch[0].to_pylist():
                    for found in lines_in(self.ranges[number]):
                        table = self._table(found, self.ranges[number].file)
                        connection.register("dpselect_lines", decoded(table, connection))
                        rows = connection.sql(query).to_arrow_table()
                        yield from rows.rename_columns([f"c{i}" for i in range(len(self.wanted))]).to_batches()
            return
        except Exception:  # noqa: S110 - raised below, without a context
            pass
        raise EngineFailure("a file could not be read: check that every worker can reach it")

    def _table(self, found: list[bytes], file: int) -> pa.Table:
        """The lines, with the values from the folder names of their file."""
        values = (pa.scalar(column[file], pa.string()) for column in self.folders.values())
        columns = {f"folder{i}": pa.repeat(value, len(found)) for i, value in enumerate(values)}
        return pa.table({"line": pa.array(found, pa.binary()), **columns})


def lines_in(range_: Range) -> Iterator[list[bytes]]:
    """The lines that start in a range, in blocks, without the file's first line, which is the header.

    A line starts after the end of another one. So the line at the first byte belongs to this range only if the byte
    before it ends a line; the last line is read to its end, wherever that is.
    """
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
            started = map(_before_separator, _started(whole, position - len(rest), range_.stop))
            yield [line for line in started if len(line) < lines.LONGEST_LINE]
            if not block:
                return
            # Of a line that is too long to count, enough is kept to recognise it.
            dropped, rest = (dropped if not whole else 0) + max(0, len(rest) - _KEPT), rest[:_KEPT]


def _behind_first_end(file: IO[bytes], start: int) -> int:
    """Move past the first line end at or after the byte before `start`, and return that position.

    The header, which only the range at zero has, ends with a line feed.
    """
    file.seek(max(0, start - 1))
    end = _LINE_END if start else re.compile(b"\n")
    while block := file.read(_BLOCK):
        found = end.search(block)
        if found is not None:
            return file.seek(file.tell() - len(block) + found.end())
    return file.tell()


def _started(whole: list[bytes], position: int, stop: int | None) -> Iterator[bytes]:
    """The lines that start before `stop` and can be rows; the last of all lines ends before `position`."""
    kept = len(whole)
    while stop is not None and kept and position - len(whole[kept - 1]) - 1 >= stop:
        kept -= 1
        position -= len(whole[kept]) + 1
    return (line for line in whole[:kept] if 0 < len(line) < lines.LONGEST_READ)


def _before_separator(line: bytes) -> bytes:
    return line.partition(_SEPARATOR)[0]
