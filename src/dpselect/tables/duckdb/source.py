"""What a source of rows for DuckDB is, and how a question reads it. No value of a row makes it fail."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import duckdb

from dpselect._validate import is_unicode, withheld
from dpselect.errors import EngineFailure, InvalidType, InvalidValue
from dpselect.tables.duckdb.values import column_of
from dpselect.tables.kinds import Column

Cursor: TypeAlias = duckdb.DuckDBPyConnection
_Read = TypeVar("_Read")

ROWS = "dpselect_rows"
UNREADABLE = "the table cannot be opened: check that it is valid"


class Query(NamedTuple):
    """Rows as a statement, with the values of its parameters."""

    text: str
    parameters: Mapping[str, Any] = {}


class Source:
    """Rows that can be read again and again. Each source overrides what differs for it."""

    files: Sequence[Path] = ()  # empty if the rows are not in files
    needs_arrow: frozenset[str] = frozenset()  # the columns that only Arrow could read, if it is not installed

    def is_untyped(self, column: str) -> bool:  # noqa: ARG002 - most sources have types for all columns
        """Return whether the source has no type for this column and gives it as text."""
        return False

    def check(self) -> None:
        """Refuse the source if its public columns are not those with which it was opened. No row is read."""
        raise NotImplementedError

    def rows(self, cursor: Cursor, names: Sequence[str] | None) -> AbstractContextManager[Query]:
        """Make these columns available to statements of the body, or only the types of all (None)."""
        # No value of a row makes the query fail. Databases are checked again, in the transaction in which they are
        # read.
        raise NotImplementedError

    def quick(self, names: Sequence[str]) -> Query | None:  # noqa: ARG002 - for Parquet
        """Return a faster query for the same rows, on which DuckDB may fail; None if there is none."""
        return None


def read(source: Source, cursor: Cursor, names: Sequence[str], how: Callable[[Query], _Read]) -> _Read:
    """The result of `how` for these columns."""
    # Files may be written again while they are read. Then a row of another type may make DuckDB fail, or not. So they
    # are checked once more at the end, and refused in either case.
    failure: Exception | None = None
    try:
        result = _read_once(source, cursor, names, how)
    except Exception as error:
        failure = error
    if source.files:
        source.check()  # not while the failure is handled: it may quote a row, and would become the context
    if failure is None:
        return result
    try:
        raise failure
    finally:
        failure = None  # it refers to this frame, and would keep what was read alive


def _read_once(source: Source, cursor: Cursor, names: Sequence[str], how: Callable[[Query], _Read]) -> _Read:
    quick = source.quick(names)
    if quick is not None:
        with suppress(duckdb.InvalidInputException):
            return how(quick)
    with source.rows(cursor, names) as query:
        return how(query)


def schema(source: Source, connection: Cursor) -> Mapping[str, Column]:
    """The columns with their types, without reading a row."""

    def describe() -> list[Any]:
        with source.rows(connection, None) as query:
            return connection.execute(f"DESCRIBE {query.text}", query.parameters).fetchall()

    # An error of the engine or of the user's relation may quote a value.
    described = withheld(describe, EngineFailure(UNREADABLE))
    columns = [column_of(name, type_, source.is_untyped(name)) for name, type_, *_ in described]
    return {column.name: replace(column, needs_arrow=column.name in source.needs_arrow) for column in columns}


def has_arrow() -> bool:
    """Whether PyArrow, an extra, can be imported."""
    try:
        import pyarrow.dataset  # noqa: PLC0415 - an extra
        import pyarrow.parquet  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return False
    return True


def check_names(names: Sequence[Any]) -> None:
    """Refuse names that no question could use. They are not shown: the names of a pivoted frame are data."""
    remedy = "rename the columns first"
    for name in names:
        if not isinstance(name, str):
            raise InvalidType(f"source has a column whose name is of type {type(name).__name__}, not text: {remedy}")
    if not all(name and is_unicode(name) for name in names):
        raise InvalidValue(f"source has a column whose name is empty or cannot be written in UTF-8: {remedy}")
    if len({name.lower() for name in names}) != len(names):
        raise InvalidValue("source has two columns of the same name (upper and lower case are the same): rename one")


def check_same(is_same: bool) -> None:
    """Refuse a source whose public columns are not what they were when it was opened."""
    # Expressions are written for the types of that time. On another type, a row might decide whether they fail.
    if not is_same:
        raise InvalidValue("source has changed since it was opened: its columns or their types differ. Open it again")


@contextmanager
def registered(cursor: Cursor, rows: Any, text: str = f"SELECT * FROM {ROWS}") -> Iterator[Query]:
    """A query for rows that DuckDB scans, which are let go afterwards: a stream would keep its query open."""
    cursor.register(ROWS, rows)
    try:
        yield Query(text)
    finally:
        cursor.unregister(ROWS)


class Frame(Source):
    """The columns of a data frame, or of another object that DuckDB scans."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._opened = self.stated()

    def stated(self) -> list[tuple[Any, Any]]:
        """Return the names with the types that the frame states now: most frames can be changed in place."""
        raise NotImplementedError

    def scanned(self, names: Sequence[str] | None) -> Any:
        """Return what DuckDB scans for these columns; for the types of all (None), it need not have rows."""
        raise NotImplementedError

    def check(self) -> None:
        check_same(self._opened == self.stated())

    def rows(self, cursor: Cursor, names: Sequence[str] | None) -> AbstractContextManager[Query]:
        return registered(cursor, self.scanned(names))
