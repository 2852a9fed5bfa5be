"""Rows of CSV files that are kept in memory, so that several questions about one table read its files once.

The rows are read by the query of the files themselves, each line on its own, into a private table of DuckDB: the same
texts in the same columns, with the same lines left out. A later question counts these rows as if they came from the
files. They count only while the files are the same: size, time of the last change, inode and device of each file are
compared before every question. Rows are kept only if none of these changed while they were read.

Whether rows are kept follows from the sizes of the files and the memory of the machine, and never from a row. In
memory, a field of one byte takes 16 bytes or a little more, and longer fields take less than that for each byte. So
files are kept if their size is at most a sixteenth of the memory that DuckDB may use. If memory runs out nevertheless,
because other questions need it, DuckDB moves rows to the private folder for spilling, encrypted, as it does for any
question. Of compressed files the size says nothing, and Parquet files are quick to read, so neither are kept. Nor are
files of very many columns: DuckDB plans a question about one of them quickly, but for all of them it compares each
expression with every other, which takes minutes for 5,000 columns.
"""

import itertools
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import duckdb

from dpselect.tables.duckdb.source import Files, Source, progress_shown
from dpselect.tables.files import TICK as _TICK
from dpselect.tables.files import State, state_of

_SHARE = 16  # files are at most this part of DuckDB's memory
_MOST_COLUMNS = 500  # up to here, a plan for all columns takes about as long as one for a few

_numbers = itertools.count()


class KeptRows:
    """All columns of some files in a private table, which exists as long as this object."""

    files: Sequence[Path] = ()
    needs_arrow = frozenset[str]()

    def __init__(self, source: Files, connection: duckdb.DuckDBPyConnection) -> None:
        self.parameters: dict[str, Any] = {}
        name = f"dpselect_kept_{next(_numbers)}"
        self.query = f"SELECT * FROM {name}"
        with closing(source), closing(connection.cursor()) as cursor, progress_shown(cursor, "Reading"):
            source.check()
            source.attach(cursor)
            cursor.execute(f"CREATE TABLE {name} AS {source.query}", source.parameters)
        weakref.finalize(self, _drop, connection, name).atexit = False

    def is_untyped(self, column: str) -> bool:  # noqa: ARG002 - all columns are text
        """Return True."""
        return True

    def readings(self, names: Sequence[str]) -> Sequence[Source]:  # noqa: ARG002 - DuckDB reads only what it needs
        """Return the rows themselves: no value can make reading them fail."""
        return [self]

    def check(self) -> None:
        """Do nothing: the table never changes."""

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Do nothing: all cursors see the table."""

    def close(self) -> None:
        """Do nothing: other questions may read the table."""


def _drop(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    with suppress(duckdb.Error), closing(connection.cursor()) as cursor:
        cursor.execute(f"DROP TABLE {name}")


class Keeper:
    """Keeps the rows of a source: from the first question on, from the second on (None), or never.

    The first of several questions costs no more than an only one, if rows are kept from the second on. While one
    thread reads the rows, others read the files: they neither wait nor can be left waiting in a forked process.
    """

    def __init__(self, source: Source, connection: duckdb.DuckDBPyConnection, keep: bool | None) -> None:
        self._source, self._connection, self._from_first = source, connection, keep is True
        self.files = source.files
        self._files = None if keep is False else _can_be_kept(source)
        self._lock = threading.Lock()
        self._rows: KeptRows | None = None
        self._state: State | None = None  # of the files at the last question

    def readings(self, names: Sequence[str]) -> Sequence[Source]:
        """Return the ways to read the rows for a question about these columns, as of `Source`."""
        rows = None if self._files is None else self._kept(self._files)
        return self._source.readings(names) if rows is None else [rows]

    def check(self) -> None:
        """Refuse the source if its columns have changed since it was opened."""
        self._source.check()

    def _kept(self, files: Files) -> KeptRows | None:
        """The rows of the files as they are now, if they are kept."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            state = state_of(files.files)
            is_first, self._state = state != self._state, state
            if is_first:
                self._rows = None
            if self._rows is None and state is not None and (self._from_first or not is_first):
                self._rows = self._read(files, state)
            return self._rows
        finally:
            self._lock.release()

    def _read(self, files: Files, state: State) -> KeptRows | None:
        if not self._has_room(state) or state.changed > time.time_ns() - _TICK:
            return None
        rows = None
        try:
            rows = KeptRows(files, self._connection)
        except (duckdb.OutOfMemoryException, duckdb.IOException):
            self._files = None  # no second try: this and later questions are counted from the files
        return rows if state_of(files.files) == state else None

    def _has_room(self, state: State) -> bool:
        query = "SELECT parse_formatted_bytes(current_setting('memory_limit'))"
        with closing(self._connection.cursor()) as cursor:
            [(memory,)] = cursor.execute(query).fetchall()
        return bool(state.size * _SHARE <= memory)


def _can_be_kept(source: Source) -> Files | None:
    """The files, if they are CSV, not compressed and not too wide."""
    if not isinstance(source, Files) or source.header is None or len(source.header[1]) > _MOST_COLUMNS:
        return None
    return None if any(path.name.lower().endswith(".gz") for path in source.files) else source
