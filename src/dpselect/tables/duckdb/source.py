"""Sources of rows for DuckDB (files, frames, Arrow tables, relations, databases), and the private folder for spilling.

Rows that do not fit into memory go to a private folder. Each process has one below the system's temporary folder, which
only its user can enter and which is removed when the process ends. A killed process does not remove its folder,
but the next process does: a process holds a lock on its folder while it runs, so a folder whose lock is free
belongs to a dead one. `systemd-tmpfiles` also spares locked folders.
"""

import glob
import importlib
import itertools
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import duckdb

from dpselect._messages import install_command
from dpselect._show import polled
from dpselect._validate import withheld
from dpselect.errors import EngineFailure, InvalidType, InvalidValue
from dpselect.tables.databases import Database, System
from dpselect.tables.duckdb import lines, parquet
from dpselect.tables.duckdb.arrow import check_arrow, has_arrow
from dpselect.tables.duckdb.duckdb_file import DuckDBFileRows
from dpselect.tables.duckdb.names import FrameColumns, check_same
from dpselect.tables.duckdb.values import column_of, identifier
from dpselect.tables.files import Format, Listing, Watch, check_once, files_of, shown
from dpselect.tables.kinds import Column

if TYPE_CHECKING:
    from dpselect.tables.duckdb.frames import ParquetColumns

# Windows has no such locks: the folder of a killed process stays.
_fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None
_PREFIX = "dpselect-spill-"
_MADE_BY_US = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
_MARK = ".dpselect"  # a file that marks our folders


class _Own:
    """The folder of this process, once there is one."""

    def __init__(self) -> None:
        self.lock, self.numbers = threading.Lock(), itertools.count()
        self.folder, self.descriptor = "", -1

    def path(self) -> str:
        """Return a new path in the folder, or nothing if there is none."""
        with self.lock, suppress(OSError):
            if not os.path.isdir(self.folder):
                self._close()
                _remove_orphans()
                self.folder, self.descriptor = _made()
                # Also runs at the end of a `multiprocessing` child, but never in a child on behalf of its parent.
                Finalize(None, _remove, (self.folder,), exitpriority=0)
            return os.path.join(self.folder, str(next(self.numbers)))
        return ""

    def forget(self) -> None:
        """Forget the folder in a forked child, which creates its own; the lock stays with the parent."""
        self._close()
        self.lock, self.folder = threading.Lock(), ""

    def _close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


_own = _Own()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_own.forget)


def spill_path() -> str:
    """A path for one connection in the folder of this process. DuckDB creates a folder there when memory is full.

    The path is empty if no folder can be created. Then DuckDB uses memory only.
    """
    return _own.path()


def _made() -> tuple[str, int]:
    """Create a folder, and return it with the descriptor that holds its lock."""
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        if _fcntl is None:
            _mark(folder)
            return folder, -1
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            with suppress(OSError):  # a file system without locks: the folder is at least removed at the end
                _fcntl.flock(descriptor, _fcntl.LOCK_EX)
            # Before it was locked, another process may have considered it an orphan.
            if os.path.isdir(folder):
                _mark(folder)
                return folder, descriptor
            os.close(descriptor)


def _mark(folder: str) -> None:
    with open(os.path.join(folder, _MARK), "xb"):
        pass


def _remove_orphans() -> None:
    """Remove the folders of this user whose processes are gone."""
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
            _remove(folder)
    finally:
        os.close(descriptor)


def _remove(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)


_Read = TypeVar("_Read")

_FRAME = "dpselect_rows"
_UNREADABLE = "the table cannot be opened: check that it is valid"
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
_KINDS = "give a path, a database's URL, a DuckDB relation, a pandas or polars DataFrame, or an Arrow table"


class Readable(Protocol):
    """Rows that can be read in one or several ways."""

    files: Sequence[Path]  # empty if the rows are not in files

    def check(self) -> None:
        """Refuse the source if its public columns are not those with which it was opened. No row is read."""
        ...

    def readings(self, names: Sequence[str]) -> "Sequence[Source]":
        """Return the ways to read the rows for a question about these columns. Each is tried if the one before fails.

        No value of a row makes the last one fail.
        """
        ...


class Source(Readable, Protocol):
    """Rows, as a query with named parameters."""

    query: str
    parameters: dict[str, Any]
    needs_arrow: frozenset[str]  # the columns that only Arrow could read, if it is not installed

    def is_untyped(self, column: str) -> bool:
        """Return whether the source has no type for this column and gives it as text."""
        ...

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Make the rows available to the next statement; only their types if `empty`.

        Databases are checked again, in the transaction in which they are read.
        """
        ...

    def close(self) -> None:
        """Close what `attach` opened, after the statement."""
        ...


def read(source: Readable, names: Sequence[str], how: Callable[[Source], _Read]) -> _Read:
    """The result of `how` for these columns, with the first way of reading them on which DuckDB does not fail.

    Files may be written again while they are read. Then a row of another type may make DuckDB fail, or not. So they are
    checked once more at the end, and refused in either case.
    """
    failure: Exception | None = None
    try:
        result = _first(source, names, how)
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


def _first(source: Readable, names: Sequence[str], how: Callable[[Source], _Read]) -> _Read:
    *others, last = source.readings(names)
    for reading in others:
        with suppress(duckdb.InvalidInputException), closing(reading):
            return how(reading)
    with closing(last):
        return how(last)


class Files:
    """CSV or Parquet files with one schema."""

    def __init__(self, listing: Listing) -> None:
        paths = listing.paths
        self.files: Sequence[Path] = paths
        self._untyped = listing.format is Format.CSV
        self._texts, self.needs_arrow = frozenset[str](), frozenset[str]()  # of Parquet files
        self._lines = Watch(paths, partial(common_header, paths)) if self._untyped else None
        self._parquet = None if self._untyped else Watch(paths, partial(_parquet_facts, listing))
        self.header = None if self._lines is None else self._lines.facts  # of CSV files: delimiter and names
        names = [] if self._parquet is None else [column.name for column in self._parquet.facts.columns]
        self._folders = Folders(listing, names if self.header is None else self.header[1])
        bound = {"paths": [parquet.literal(path) for path in paths]}
        self.parameters: dict[str, Any] = bound | self._folders.parameters
        if self.header is not None:
            self.query = lines.rows(*self.header, self._folders.option, self._folders.join, self._folders.columns)
        if self._parquet is not None:
            scan = f"read_parquet($paths, hive_partitioning = false{self._folders.option}){self._folders.join}"
            self.query = f"SELECT {self._folders.renamed} FROM {scan}"
            self._texts, self.needs_arrow = self._parquet.facts.texts, self._parquet.facts.needs_arrow

    def is_untyped(self, column: str) -> bool:
        """Return whether the files are CSV, or the column comes from folder names: both hold values as text."""
        return self._untyped or column in self._folders.columns

    def readings(self, names: Sequence[str]) -> Sequence[Source]:
        """Return the files themselves, and another reading of them in case DuckDB fails on values of these types."""
        columns = None if self._parquet is None else self._parquet.facts.by_arrow
        if columns is None or not columns.can_read(names):
            return [self] if self._texts.isdisjoint(names) else [self, self._with_valid_texts(names)]
        by_arrow = Frame(columns, names)
        return [by_arrow] if columns.must_read(names) else [self, by_arrow]

    def _with_valid_texts(self, names: Sequence[str]) -> "Files":
        """The files, read so that a text that is not UTF-8 is missing."""
        other, folders = copy(self), self._folders
        texts = [name for name in names if name in self._texts]
        others = {name: folders.columns.get(name, identifier(name)) for name in names if name not in texts}
        other.query = parquet.valid_texts(texts, others, folders.file, folders.join)
        return other

    def check(self) -> None:
        """Check that each file still counts once, and has its columns: of CSV files, also in the same places."""
        if self._lines is not None and not self._lines.is_untouched():
            check_once(self.files)
            _check_header(self.files, self._lines.is_same)
        if self._parquet is not None and not self._parquet.is_untouched():
            check_once(self.files)
            check_same(True, _is_same(self.files, self._parquet.is_same))

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Do nothing: the paths are bound. Files are checked before a question is charged, and after it is read."""

    def close(self) -> None:
        """Do nothing: DuckDB closes files itself."""


class Folders:
    """The columns from folder names, as parts of a query that joins them with the rows by file path.

    DuckDB's own parsing of such names is off: it guesses types from the values, and also reads parent folders.
    """

    def __init__(self, listing: Listing, names: Sequence[str]) -> None:
        values = list(listing.folder_columns(names).items())
        prefix = "dpselect_"
        while any(name.lower().startswith(prefix) for name in names):  # our names must differ from the user's
            prefix += "_"
        self.columns = {key: f"{prefix}{i}" for i, (key, _) in enumerate(values)}
        self.parameters: dict[str, Any] = {f"folder{i}": column for i, (_, column) in enumerate(values)}
        self.file = file = f"{prefix}file"
        self.option, self.join, self.renamed = "", "", "*"
        if values:
            self.parameters["files"] = [str(path) for path in listing.paths]
            texts = (f"CAST(unnest($folder{i}) AS VARCHAR) AS {name}" for i, name in enumerate(self.columns.values()))
            self.option = f", filename = '{file}'"
            self.join = f" LEFT JOIN (SELECT unnest($files) AS {file}, {', '.join(texts)}) USING ({file})"
            renamed = (f"{name} AS {identifier(key)}" for key, name in self.columns.items())
            self.renamed = f"* EXCLUDE ({file}) RENAME ({', '.join(renamed)})"


class Frame:
    """The columns of a data frame, or of another object that Arrow can represent."""

    query = f"SELECT * FROM {_FRAME}"
    files: Sequence[Path] = ()
    needs_arrow = frozenset[str]()

    def __init__(self, columns: FrameColumns, names: Sequence[str] = ()) -> None:
        self._columns, self._names, self._attached = columns, names, ExitStack()
        self._stated = columns.stated()
        self.parameters: dict[str, Any] = {}

    def check(self) -> None:
        """Refuse a frame whose columns have changed since it was opened."""
        check_same(self._stated, self._columns.stated())

    def is_untyped(self, column: str) -> bool:
        """Return whether this is a column of Python objects."""
        return self._columns.is_untyped(column)

    def readings(self, names: Sequence[str]) -> Sequence[Source]:
        """Return the frame with only these columns converted."""
        other = copy(self)
        other._names, other._attached = names, ExitStack()
        return [other]

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Register the columns of this question, or the types of all."""
        connection.register(_FRAME, self._columns.described() if empty else self._columns.scanned(self._names))
        self._attached.callback(connection.unregister, _FRAME)

    def close(self) -> None:
        """Let go of what was registered: a stream would keep its query open."""
        self._attached.close()


class Relation:
    """A relation of the user's own connection. Its rows are streamed by Arrow's C interface, without PyArrow."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation

    def is_untyped(self, name: str) -> bool:  # noqa: ARG002 - all columns have types
        """Return False."""
        return False

    def stated(self) -> list[tuple[Any, Any]]:
        """Return the names and types, which are others if a table of the relation was made again."""
        return list(zip(self._relation.columns, self._relation.types, strict=True))

    def described(self) -> Any:
        """Return a stream without rows."""
        return self._relation.limit(0).__arrow_c_stream__()

    def scanned(self, names: Sequence[str]) -> Any:
        """Return a new stream of these columns, which can be read only once and must be read to its end."""
        own = self._relation.columns
        # A relation may have several columns of one name. DuckDB renames them when it scans.
        distinct = len({name.lower() for name in own}) == len(own) and set(names).issubset(own)
        columns = ", ".join(map(identifier, names)) if distinct else "*"
        return self._relation.project(columns).__arrow_c_stream__()


def source_of(source: Any) -> Source:
    """The source for the object that the user gave."""
    if isinstance(source, Database):
        return _rows_of_database(source)
    if isinstance(source, (str, Path)):
        return Files(files_of(str(source)))
    if isinstance(source, duckdb.DuckDBPyRelation):
        return Frame(Relation(source))
    if any(hasattr(type(source), attribute) for attribute in ("columns", "schema", "__arrow_c_stream__")):
        return _frame(source)
    raise InvalidType(f"source must be a table, got {type(source).__name__}: {_KINDS}")


def _frame(source: Any) -> Frame:
    check_arrow("data frames and Arrow tables need PyArrow", install_command("pyarrow"))
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.dataset as pads  # noqa: PLC0415 - an extra

    from dpselect.tables.duckdb.frames import columns_of  # noqa: PLC0415 - needs PyArrow, an extra

    if isinstance(source, pa.RecordBatchReader):
        raise InvalidType("source is a stream that can be read only once: read it into a table first")
    if isinstance(source, (pads.FileSystemDataset, pads.UnionDataset)):
        # Its files may differ from its schema, now or later, and then a row would decide whether it can be read.
        raise InvalidType("source is an Arrow dataset of files: give their folder or a pattern, or source.to_table()")
    return Frame(withheld(lambda: columns_of(source), EngineFailure(_UNREADABLE)))


def _rows_of_database(database: Database) -> Source:
    """The rows, after their columns were read and checked. No row is read, and no message of a driver is passed on."""
    if database.system is System.DUCKDB:
        return DuckDBFileRows(database, connect_file)
    remedies = {
        System.POSTGRESQL: install_command("adbc-driver-postgresql", "pyarrow"),
        System.SQLITE: install_command("adbc-driver-sqlite", "pyarrow"),
    }
    check_arrow(f"{database.system.value} needs its ADBC driver and PyArrow", remedies[database.system])
    from dpselect.tables.duckdb.databases import rows_of_database  # noqa: PLC0415 - needs PyArrow, an extra

    return rows_of_database(database)


def connect(*, spills: bool = True) -> duckdb.DuckDBPyConnection:
    """Open a private in-memory connection that never accesses the network or variables of the caller.

    Rows that do not fit into memory go to a private folder. Without `spills`, the statement fails instead.
    """
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


def schema(source: Source, connection: duckdb.DuckDBPyConnection) -> Mapping[str, Column]:
    """The columns with their types, without reading a row."""

    def describe() -> list[Any]:
        with closing(source):
            source.attach(connection, empty=True)
            return connection.execute(f"DESCRIBE {source.query}", source.parameters).fetchall()

    # An error of the engine or of the user's relation may quote a value.
    described = withheld(describe, EngineFailure(_UNREADABLE))
    columns = [column_of(name, type_, source.is_untyped(name)) for name, type_, *_ in described]
    return {column.name: replace(column, needs_arrow=column.name in source.needs_arrow) for column in columns}


def common_header(paths: Sequence[Path]) -> tuple[str, list[str]]:
    """The common header of all CSV files."""
    first = lines.header(paths[0])
    for path in paths[1:]:
        if lines.header(path) != first:
            same = "give files with the same columns"
            raise InvalidValue(f"{shown(path)}: its header differs from that of {shown(paths[0])}: {same}")
    return first


def check_header(paths: Sequence[Path], header: tuple[str, list[str]]) -> None:
    """Refuse CSV files whose header has changed since they were opened: values are found by their places in a line.

    With columns in other places, other people than those of the ledger would be protected.
    """
    _check_header(paths, lambda: common_header(paths) == header)


def _check_header(paths: Sequence[Path], is_same: Callable[[], bool]) -> None:
    if not _is_same(paths, is_same):
        raise InvalidValue("source has changed since it was opened: its header is another one: open it again")


def _is_same(paths: Sequence[Path], is_same: Callable[[], bool]) -> bool:
    """Whether files are what they were. They are not if they are damaged, or no longer alike."""
    with suppress(InvalidValue):
        if is_same():
            return True
    if not all(map(os.path.exists, paths)):
        raise FileNotFoundError  # the engine says that it cannot count
    return False


@dataclass(frozen=True)
class _ParquetFacts:
    """What the schemas of Parquet files say about how they can be read, by DuckDB and by Arrow, if it is there."""

    columns: list[Column]
    texts: frozenset[str]  # which DuckDB can read even if they are not UTF-8
    by_arrow: "ParquetColumns | None"
    needs_arrow: frozenset[str]


def _parquet_facts(listing: Listing) -> _ParquetFacts:
    with closing(connect()) as connection:
        types = parquet.common_columns(listing.paths, connection)
        coarse = frozenset[str]() if has_arrow() else parquet.coarse_columns(listing.paths, types, connection)
    columns = [column_of(*each) for each in types.items()]
    texts = frozenset(name for name, type_ in types.items() if type_ == "VARCHAR")
    readable = texts if parquet.can_number_rows(types) else frozenset[str]()
    if not has_arrow():
        return _ParquetFacts(columns, readable, None, coarse | (texts - readable))
    from dpselect.tables.duckdb.frames import ParquetColumns  # noqa: PLC0415 - needs PyArrow, an extra

    by_arrow = ParquetColumns(listing.paths, listing.folder_columns(types))
    return _ParquetFacts(columns, readable, by_arrow, frozenset())


def progress_shown(connection: duckdb.DuckDBPyConnection, what: str) -> AbstractContextManager[None]:
    """Show a bar while the body runs a statement. DuckDB's progress is in percent, and below zero if it is unknown."""

    def done() -> float | None:
        percent = connection.query_progress()
        return None if percent < 0 else percent / 100

    return polled(done, what)
