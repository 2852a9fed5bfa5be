"""What a source of rows for DuckDB is, the private connections that read it, and its digest.

No value of a row makes a source fail.

**The private folder** is for rows that do not fit into memory. Each process has one such folder below the system's
temporary folder, which only its user can enter and which is removed when the process ends. A killed process does not
remove its folder, but the next process does: a process holds a lock on its folder while it runs, so a folder whose lock
is free belongs to a dead one. `systemd-tmpfiles` also spares locked folders.

**A digest** of the data that a question reads lets a ledger recognise a retry on the same data. For files, all bytes
are read. For frames and relations, only columns of the question, the person and the groups: the rows are treated as a
multiset, so neither their order nor the number of threads matters. A row becomes one text, in which every field is
preceded by its length. The digest has the number of rows, and the sums of both halves of the MD5 of every text. That
does not stop somebody who forges rows with the same sums; they would gain an answer that was already released.

A digest is a function of private data, and as secret as the rows. It goes to the ledger, which keeps a salted hash.
"""

import glob
import hashlib
import importlib
import itertools
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import duckdb

from dpselect._show import polled
from dpselect._validate import is_unicode, withheld
from dpselect.errors import EngineFailure, InvalidType, InvalidValue
from dpselect.tables.checks import Reason
from dpselect.tables.duckdb.values import column_of, identifier, value_of
from dpselect.tables.kinds import PLAIN, Column, Kind, Style

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
    style: Style = PLAIN  # how numbers and dates are written in columns without a type

    def is_untyped(self, column: str) -> bool:  # noqa: ARG002 - most sources have types for all columns
        """Return whether the source has no type for this column and gives it as text."""
        return False

    def check(self) -> None:
        """Refuse the source if its public columns are not those with which it was opened. No row is read."""
        raise NotImplementedError

    def rows(self, cursor: Cursor, names: Sequence[str] | None) -> AbstractContextManager[Query]:
        """Make these columns available to statements of the body, or only the types of all (None)."""
        # No value of a row makes the query fail. Databases are checked again, in the transaction in which they are
        # read. Whatever is read of any source passes here: a source may also wrap another one, as `Keeper` does.
        raise NotImplementedError

    def left_out(self, cursor: Cursor) -> Mapping[Reason, int]:  # noqa: ARG002 - for CSV
        """Return how many lines of the source are no rows, for each reason."""
        return {}

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
    columns = (column_of(name, type_, source.is_untyped(name)) for name, type_, *_ in described)
    return {
        column.name: replace(
            column,
            needs_arrow=column.name in source.needs_arrow,
            style=source.style if column.untyped else PLAIN,
        )
        for column in columns
    }


def has_arrow() -> bool:
    """Whether PyArrow, an extra, can be imported."""
    with suppress(ImportError):
        import pyarrow.dataset  # noqa: PLC0415 - an extra
        import pyarrow.parquet  # noqa: F401, PLC0415 - an extra

        return True
    return False


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
        self.names = [name for name, _ in self._opened]

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


# Private connections.


# Windows has no such locks: the folder of a killed process stays.
_fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None
_PREFIX = "dpselect-spill-"
_MADE_BY_US = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
_MARK = ".dpselect"  # a file that marks our folders

# DuckDB calls its built-in cipher unsafe because of its weak key generator. The alternative is an extension that
# opens the network. The folder's permissions protect the rows; the cipher is for what a killed process leaves behind.
_ENCRYPTED = {"temp_file_encryption": True, "force_mbedtls_unsafe": True}
# Neither the network nor variables of the caller.
_OFFLINE: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
# DuckDB would move conditions on a column below the expressions of that column, and compute these once more for each
# condition: split every line twice, and read every number twice. Our conditions stand where they cost least.
_AS_WRITTEN = {"disabled_optimizers": "filter_pushdown"}


def connect(*, spills: bool = True) -> duckdb.DuckDBPyConnection:
    """Open a private in-memory connection that never accesses the network or variables of the caller."""
    # Rows that do not fit into memory go to a private folder. Without `spills`, the statement fails instead.
    config: dict[str, Any] = {
        **_OFFLINE,
        **_AS_WRITTEN,
        # A pandas column of Python objects is text, no matter what its first rows hold.
        "pandas_analyze_sample": 0,
        "temp_directory": spill_path() if spills else "",
    }
    with suppress(duckdb.Error):  # a version of DuckDB without one of these options
        return duckdb.connect(config={**config, **_ENCRYPTED})
    return duckdb.connect(config=config)


def connect_file(path: str) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file to read it. What its own queries spill goes to the private folder, too."""
    connection = duckdb.connect(path, read_only=True, config={**_OFFLINE, **_ENCRYPTED})
    # Not a part of the configuration: DuckDB refuses two connections to one file that differ in it.
    with suppress(duckdb.Error):
        connection.execute("SET temp_directory = $path", {"path": spill_path()})
    return connection


def progress_shown(connection: duckdb.DuckDBPyConnection, what: str) -> AbstractContextManager[None]:
    """Show a bar while the body runs a statement. DuckDB's progress is in percent, and below zero if it is unknown."""

    def done() -> float | None:
        percent = connection.query_progress()
        return None if percent < 0 else percent / 100

    return polled(done, what)


class _Own:
    """The folder of this process, once there is one."""

    def __init__(self) -> None:
        self.lock, self.numbers = threading.Lock(), itertools.count()
        self.folder, self.descriptor = "", -1

    def path(self) -> str:
        with self.lock, suppress(OSError):
            if not os.path.isdir(self.folder):
                self._close()
                _remove_orphans()
                self.folder, self.descriptor = _made()
                # Also runs at the end of a `multiprocessing` child, but never in a child on behalf of its parent.
                Finalize(None, shutil.rmtree, (self.folder,), {"ignore_errors": True}, exitpriority=0)
            return os.path.join(self.folder, str(next(self.numbers)))
        return ""

    def forget(self) -> None:
        # A forked child creates its own folder; the lock stays with the parent.
        self._close()
        self.lock, self.folder = threading.Lock(), ""

    def _close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


_own = _Own()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_own.forget)


# A path for one connection in the folder of this process: DuckDB creates a folder there when memory is full. Without a
# path, because no folder can be created, DuckDB uses memory only.
spill_path = _own.path


def _made() -> tuple[str, int]:
    while True:
        folder, descriptor = tempfile.mkdtemp(prefix=_PREFIX), -1
        with suppress(FileNotFoundError):
            if _fcntl is not None:
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                with suppress(OSError):  # a file system without locks: the folder is at least removed at the end
                    _fcntl.flock(descriptor, _fcntl.LOCK_EX)
            # Before it was locked, another process may have considered it an orphan.
            if os.path.isdir(folder):
                with open(os.path.join(folder, _MARK), "xb"):
                    return folder, descriptor
            os.close(descriptor)


def _remove_orphans() -> None:
    if _fcntl is None:
        return
    for folder in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), f"{_PREFIX}*")):
        with suppress(OSError):  # in use, or owned by somebody else
            _remove_orphan(folder)


def _remove_orphan(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        ours = _MADE_BY_US.fullmatch(os.path.basename(folder)) and os.path.lexists(os.path.join(folder, _MARK))
        if ours and os.fstat(descriptor).st_uid == os.geteuid():
            _fcntl.flock(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


# Digests.


def _of_file(path: Path) -> list[str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return [digest, *(part for part in path.absolute().parts[:-1] if "=" in part)]


def of_source(source: Source, connection: duckdb.DuckDBPyConnection, columns: Sequence[Column]) -> str:
    """The digest of the rows that DuckDB reads."""
    if source.files:  # in any order: their bytes, and names of folders such as year=2024, which are columns
        return _digest(["files", sorted(map(_of_file, source.files))])
    texts = " || ".join(_field(_text(column)) for column in columns)
    sums = ", ".join(f"CAST(sum(md5_number_{half}(row_text)) AS VARCHAR)" for half in ("lower", "upper"))

    cursor = connection.cursor()

    def add_up(rows: Query) -> list[Any]:
        query = f"SELECT count(*), {sums} FROM (SELECT {texts} AS row_text FROM ({rows.text}))"
        return cursor.execute(query, rows.parameters).fetchall()

    return of_sums(columns, read(source, cursor, [column.name for column in columns], add_up))


def of_sums(columns: Sequence[Column], found: Sequence[Sequence[Any]]) -> str:
    """The digest of rows, from their number and sums."""
    [numbers] = found
    return _digest(["rows", [column.kind.name for column in columns], [str(number) for number in numbers]])


def _text(column: Column) -> str:
    # The expression cannot fail on any row, and does not depend on a time zone.
    if column.kind not in (Kind.TIMESTAMP, Kind.ZONED):
        return f"TRY_CAST({identifier(column.name)} AS VARCHAR)"
    moment = value_of(column, column.kind)
    type_ = "TIMESTAMPTZ" if column.kind is Kind.ZONED else "TIMESTAMP"
    return (
        f"CASE WHEN isfinite({moment}) THEN CAST(epoch_us({moment}) AS VARCHAR)"
        f" WHEN {moment} = CAST('infinity' AS {type_}) THEN '+' WHEN {moment} IS NOT NULL THEN '-' END"
    )


def _field(text: str) -> str:
    return f"CASE WHEN {text} IS NULL THEN '-' ELSE concat(strlen({text}), ':', {text}) END"


def _digest(content: list[Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode("ascii")).hexdigest()
