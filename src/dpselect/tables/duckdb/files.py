"""Files as sources, rows of CSV files that are kept in memory, and the source for what the user gave.

**CSV.** One line of a CSV file is one row, and a malformed line affects only itself. A reader that lets a quoted value
continue on the next lines would let one odd field remove the rows of everybody after it, and no sensitivity could bound
that. So a value in quotation marks may hold delimiters and doubled quotation marks, but no line break. Lines that are
not UTF-8, have another number of fields than the header or a quotation mark out of place, or have 65,536 bytes or more,
are left out; what follows a unit separator (a control character) in a line is not read, and not counted. All columns
are text: a type guessed from the rows would depend on them.

The time should not reveal lines that are left out, either. So the length is tested first, then one regular expression
tests that the line is well-formed and has as many fields as the header; only then is it split.

**Parquet.** DuckDB fails on a text in Parquet that is not UTF-8, unless it replaces each wrong byte with a question
mark, or leaves it out. Neither result can be used alone: two people whose names differ only in wrong bytes would become
one, and each would move what counts of the other. So if a strict scan fails, Arrow reads the files. Without Arrow, or
if it would read another column differently, which would let a row with such a text change what is read of others,
DuckDB reads them in both ways, and the rows are joined. The two results are equal exactly if the text is valid: the
first is as long as the text, and the second is shorter if anything is left out. A text that is not valid is then
missing. DuckDB also fails on timestamps in milliseconds that do not fit into microseconds: Arrow reads all questions
about such a column, whatever its rows are.

**Kept rows.** Rows of CSV files can be kept in memory, so that several questions about one table read its files once.
They are read by the query of the files themselves into a private table of DuckDB, and count only while the files are
the same: size, time of the last change, inode and device of each file are compared before every question. Rows are kept
only if none of these changed while they were read.

Whether rows are kept follows from the sizes of the files and the memory of the machine, and never from a row. In
memory, a field of one byte takes 16 bytes or a little more, and longer fields take less than that for each byte. So
files are kept if their size is at most a sixteenth of the memory that DuckDB may use. If memory runs out nevertheless,
because other questions need it, DuckDB moves rows to the private folder for spilling, encrypted, as it does for any
question. Of compressed files the size says nothing, and Parquet files are quick to read, so neither are kept. Nor are
files of very many columns: DuckDB plans a question about one of them quickly, but for all of them it compares each
expression with every other, which takes minutes for 5,000 columns.
"""

import csv
import glob
import gzip
import itertools
import os
import shutil
import sys
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import duckdb

from dpselect._messages import install_command
from dpselect._validate import withheld
from dpselect.errors import EngineFailure, InvalidType, InvalidValue, MissingExtra
from dpselect.tables.checks import Reason
from dpselect.tables.duckdb.source import (
    ROWS,
    UNREADABLE,
    Cursor,
    Frame,
    Query,
    Source,
    connect,
    has_arrow,
    progress_shown,
    registered,
    spill_path,
)
from dpselect.tables.duckdb.values import identifier
from dpselect.tables.files import (
    PARQUET_MAGIC,
    Database,
    Format,
    Listing,
    State,
    System,
    Watch,
    Workbook,
    check_once,
    checked_header,
    files_of,
    shown,
    state_of,
)
from dpselect.tables.view import AS_IT_IS, View, characters

_KINDS = "give a path, a database's URL, a DuckDB relation, a pandas or polars DataFrame, or an Arrow table"


def _pattern(path: Path) -> str:
    return glob.escape(str(path))  # DuckDB expands patterns: a file named t[1].csv is not t1.csv


class _Files(Source):
    """Files with one schema, and columns from the names of their folders."""

    # Such columns are joined with the rows by file path. DuckDB's own parsing of such names is off: it guesses types
    # from the values, and also reads parent folders.

    _change: str  # what is another one if the files have changed

    def __init__(self, listing: Listing, watch: Watch[Any], names: Sequence[str]) -> None:
        self.listing, self.files, self._watch = listing, listing.paths, watch
        self.folders = values = listing.folder_columns(names)  # the value of each file, by the name of the column
        prefix = "dpselect_"
        while any(name.lower().startswith(prefix) for name in names):  # our names must differ from the user's
            prefix += "_"
        self._file, self._named = f"{prefix}file", {key: f"{prefix}{i}" for i, key in enumerate(values)}
        self._parameters: dict[str, Any] = {"paths": list(map(_pattern, self.files))}
        self._option, self._join = "", ""
        if values:
            self._parameters |= {f"folder{i}": column for i, column in enumerate(values.values())}
            self._parameters["files"] = list(map(str, self.files))
            texts = (f"CAST(unnest($folder{i}) AS VARCHAR) AS {name}" for i, name in enumerate(self._named.values()))
            self._option = f", filename = '{self._file}'"
            self._join = f" LEFT JOIN (SELECT unnest($files) AS {self._file}, {', '.join(texts)}) USING ({self._file})"

    def is_untyped(self, column: str) -> bool:
        return column in self.folders

    def check(self) -> None:
        # With columns in other places, other people than those of the ledger would be protected.
        if self._watch.is_untouched():
            return
        check_once(self.files)
        with suppress(InvalidValue):  # files that are damaged, or no longer alike, have changed
            if self._watch.is_same():
                return
        if not all(map(os.path.exists, self.files)):
            raise FileNotFoundError  # the engine says that it cannot count
        raise InvalidValue(f"source has changed since it was opened: {self._change}")


class CSVFiles(_Files):
    """CSV files with one header: all columns are text."""

    _change = "its header is another one: open it again"

    def __init__(self, listing: Listing, view: View = AS_IT_IS) -> None:
        watch = Watch(listing.paths, partial(_common_header, listing.paths, view))
        self.delimiter, self.names = watch.facts
        self.encoding, self.style = view.encoding, view.style
        super().__init__(listing, watch, self.names)
        lines, wanted = csv_lines(self._option, self._join), [*self.names, *self.folders]
        self._text = rows_of(lines, self.delimiter, self.names, wanted, self._named)
        self._copies = None if view.is_utf8 else Copies(self.files, self.encoding)

    def is_untyped(self, column: str) -> bool:  # noqa: ARG002 - as of Source
        return True

    def rows(self, cursor: Cursor, names: Sequence[str] | None) -> AbstractContextManager[Query]:  # noqa: ARG002 - as of Source
        if names is None:  # no row is read
            return nullcontext(Query(self._text, self._parameters))
        return nullcontext(Query(self._text, {**self._parameters, **self._paths()}))

    def _paths(self) -> dict[str, Any]:
        # What DuckDB reads: the files, or their copies in UTF-8.
        if self._copies is None:
            return {}
        paths = self._copies.paths()
        return {"paths": list(map(_pattern, paths)), **({"files": list(map(str, paths))} if self.folders else {})}

    def left_out(self, cursor: Cursor) -> dict[Reason, int]:
        query = (
            f"SELECT {line_fault(self.delimiter, len(self.names))} AS fault, count(*) FROM {csv_lines()}"
            " WHERE line IS NOT NULL GROUP BY fault"
        )
        paths = self.files if self._copies is None else self._copies.paths()
        found = dict(cursor.execute(query, {"paths": list(map(_pattern, paths))}).fetchall())
        total, encoding, empty = map(sum, zip(*map(_lines_of_file, paths), strict=True))
        # What DuckDB did not return and is not UTF-8's fault is beyond its limit. A line that begins with the separator
        # is read as an empty one.
        beyond = total - sum(found.values()) - encoding - empty
        return {
            Reason.ENCODING: encoding,
            Reason.LONG: found.get(Reason.LONG.name, 0) + beyond,
            Reason.QUOTES: found.get(Reason.QUOTES.name, 0),
            Reason.FIELDS: found.get(Reason.FIELDS.name, 0) + empty,
        }


class Copies:
    """Private copies of text files in UTF-8, made again when a file changes. A byte without a meaning is U+FFFD."""

    def __init__(self, files: Sequence[Path], encoding: str) -> None:
        self._files, self._encoding = files, encoding
        self._remove: Callable[[], Any] = lambda: None
        self._lock = threading.Lock()
        self._state: State | None = None
        self._folder = ""

    def paths(self) -> list[Path]:
        """Return the copies, in the order of the files."""
        with self._lock:
            state = state_of(self._files)
            if not os.path.isdir(self._folder) or state is None or state != self._state:
                self._folder, self._state = self._made(), state
            return [Path(self._folder, f"{i}.csv") for i in range(len(self._files))]

    def _made(self) -> str:
        _remove(self._folder, os.getpid())
        private = spill_path() or None  # only this user can enter it
        if private is not None:
            Path(private).mkdir(exist_ok=True)
        folder = tempfile.mkdtemp(dir=private)
        weakref.finalize(self, _remove, folder, os.getpid())
        for i, file in enumerate(self._files):
            with _opened(file) as source, Path(folder, f"{i}.csv").open("wb") as copy:
                while block := source.read(_BLOCK):
                    copy.write(characters(block, self._encoding).encode())
        return folder


def _remove(folder: str, owner: int) -> None:
    if folder and os.getpid() == owner:  # not what a forked process inherited
        shutil.rmtree(folder, ignore_errors=True)


STANDARD_INPUT = "-"
_GZIP_MAGIC = b"\x1f\x8b"


class _Piped:
    """Standard input, copied once into a private file: a table is read several times, and a pipe only once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stream: Any = None
        self._copy: Path | None = None

    def path(self) -> Path:
        """Return the copy, which exists until the process ends."""
        with self._lock:
            stream = sys.stdin
            if self._copy is None or stream is not self._stream:
                binary = getattr(stream, "buffer", None)
                if binary is None or stream.closed or stream.isatty():
                    raise InvalidValue(
                        "source is -, which is standard input, and nothing is piped into it: give the path of a file,"
                        " or pipe one in, as in cat visits.csv | dpselect check -"
                    )
                self._copy, self._stream = self._copied(binary), stream
            return self._copy

    @staticmethod
    def _copied(stream: BinaryIO) -> Path:
        private = spill_path()  # only this user can enter it, and it is removed when the process ends
        if not private:
            raise InvalidValue("standard input needs a temporary folder that can be written: set TMPDIR")
        Path(private).mkdir(exist_ok=True)
        beginning = stream.read(len(PARQUET_MAGIC))
        ending = ".parquet" if beginning == PARQUET_MAGIC else ".csv"
        path = Path(private, f"standard-input{ending}{'.gz' if beginning.startswith(_GZIP_MAGIC) else ''}")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
            copy.write(beginning)
            shutil.copyfileobj(stream, copy)
        return path


_piped = _Piped()


def _common_header(paths: Sequence[Path], view: View = AS_IT_IS) -> tuple[str, list[str]]:
    first = header_of(paths[0], view)
    for path in paths[1:]:
        if header_of(path, view) != first:
            same = "give files with the same columns"
            raise InvalidValue(f"{shown(path)}: its header differs from that of {shown(paths[0])}: {same}")
    return first


_NUMBER = "file_row_number"  # DuckDB's own name, which cannot be changed
# Timestamps of finer units. All others count as coarse.
_FINE = "type = 'INT96' OR converted_type = 'TIMESTAMP_MICROS' OR contains(logical_type, 'MILLIS=<null>')"


class ParquetFiles(_Files):
    """Parquet files with one schema."""

    _change = "its columns or their types differ. Open it again"

    def __init__(self, listing: Listing) -> None:
        watch = Watch(listing.paths, partial(_parquet_schema, listing.paths))
        columns, coarse = watch.facts
        self._types = dict(columns)
        super().__init__(listing, watch, list(self._types))
        texts = frozenset(name for name, type_ in self._types.items() if type_ == "VARCHAR")
        can_number = _NUMBER not in {name.lower() for name in self._types}
        self._texts, self._by_arrow = (texts, coarse) if can_number else (frozenset[str](), coarse | texts)
        self.needs_arrow = frozenset[str]() if has_arrow() else self._by_arrow
        renamed = ", ".join(f"{name} AS {identifier(key)}" for key, name in self._named.items())
        selected = f"* EXCLUDE ({self._file}) RENAME ({renamed})" if renamed else "*"
        text = f"SELECT {selected} FROM {self._scan(self._option)}{self._join}"
        self._strict = Query(text, self._parameters)

    @staticmethod
    def _scan(options: str) -> str:
        return f"read_parquet($paths, hive_partitioning = false{options})"

    def quick(self, names: Sequence[str]) -> Query | None:
        may_fail = self._by_arrow.isdisjoint(names) and not self._texts.isdisjoint(names)
        return self._strict if may_fail else None

    def rows(self, cursor: Cursor, names: Sequence[str] | None) -> AbstractContextManager[Query]:
        if names is not None and not self._by_arrow.isdisjoint(names):
            return self._rows_by_arrow(cursor, names)
        if names is None or self._texts.isdisjoint(names):
            return nullcontext(self._strict)
        return self._rows_by_arrow(cursor, names) if self._is_read_alike(names) else nullcontext(self._twice(names))

    def _is_read_alike(self, names: Sequence[str]) -> bool:
        if not has_arrow():
            return False
        from dpselect.tables.duckdb.frames import are_read_alike  # noqa: PLC0415 - needs PyArrow, an extra

        return are_read_alike(self.files, [name for name in names if name in self._types])

    def _rows_by_arrow(self, cursor: Cursor, names: Sequence[str]) -> AbstractContextManager[Query]:
        from dpselect.tables.duckdb.frames import parquet_stream  # noqa: PLC0415 - needs PyArrow, an extra

        own = [name for name in dict.fromkeys(names) if name in self._types]
        folders = {name: values for name, values in self.folders.items() if name in names}
        # UUIDs arrive as bytes.
        uuids = (identifier(name) for name in own if self._types[name] == "UUID")
        replaced = ", ".join(f"TRY_CAST(hex({name}) AS UUID) AS {name}" for name in uuids)
        selected = f"* REPLACE ({replaced})" if replaced else "*"
        return registered(cursor, parquet_stream(self.files, own, folders), f"SELECT {selected} FROM {ROWS}")

    def _twice(self, names: Sequence[str]) -> Query:
        # A text that is not UTF-8 is missing: see the top of the file.
        texts = {name: f"{self._file}_text{i}" for i, name in enumerate(names) if name in self._texts}
        again = "".join(f", {identifier(name)} AS {other}" for name, other in texts.items())
        values = {name: self._named.get(name, identifier(name)) for name in names}
        values |= {name: f"CASE WHEN {values[name]} = {other} THEN {values[name]} END" for name, other in texts.items()}
        selected = ", ".join(f"{value} AS {identifier(name)}" for name, value in values.items())
        replaced, shortened = (
            self._scan(f", filename = '{self._file}', {_NUMBER} = true, utf8_validation = '{how}'")
            for how in ("replace", "ignore")
        )
        second = f"(SELECT {self._file}, {_NUMBER}{again} FROM {shortened})"
        text = f"SELECT {selected} FROM {replaced}{self._join} JOIN {second} USING ({self._file}, {_NUMBER})"
        return Query(text, self._parameters)


def _parquet_schema(paths: Sequence[Path]) -> tuple[list[tuple[str, str]], frozenset[str]]:
    # A field of a struct that has the name of a column counts as that column. Then it may be read by Arrow needlessly.
    columns: list[tuple[str, str]] = []
    other: set[str] = set()
    with closing(connect()) as connection:
        for path in paths:

            def found(query: str, path: Path = path) -> list[Any]:
                cut = InvalidValue(f"{shown(path)}: this is not a complete Parquet file: give a CSV or Parquet file")
                bound = {"path": _pattern(path)}
                return withheld(lambda: connection.execute(query, bound).fetchall(), cut, duckdb.Error)

            described = found("DESCRIBE SELECT * FROM read_parquet($path, hive_partitioning = false)")
            own = [(name, type_) for name, type_, *_ in described]
            columns = columns or own
            if own != columns:
                same = "give files with the same columns"
                raise InvalidValue(f"{shown(path)}: its columns differ from those of {shown(paths[0])}: {same}")
            other |= {
                name for (name,) in found(f"SELECT name FROM parquet_schema($path) WHERE NOT coalesce({_FINE}, false)")
            }
    moments = ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
    return columns, frozenset(name for name, type_ in columns if type_ in moments and name in other)


class Relation(Frame):
    """A relation of the user's own connection. Its rows are streamed by Arrow's C interface, without PyArrow."""

    def stated(self) -> list[tuple[Any, Any]]:
        return list(zip(self._frame.columns, self._frame.types, strict=True))

    def scanned(self, names: Sequence[str] | None) -> Any:
        if names is None:
            return self._frame.limit(0).__arrow_c_stream__()
        own = self._frame.columns
        # A relation may have several columns of one name. DuckDB renames them when it scans.
        distinct = len({name.lower() for name in own}) == len(own) and set(names).issubset(own)
        return self._frame.project(", ".join(map(identifier, names)) if distinct else "*").__arrow_c_stream__()


def source_of(source: Any, view: View = AS_IT_IS) -> Source:
    """The source for the object that the user gave, before expressions."""
    found = _source_of(source, view)
    if view.of_text() and not isinstance(found, CSVFiles):
        raise InvalidValue(f"{next(iter(view.of_text()))} is for text files, and source is not one: leave it out")
    return found


def _source_of(source: Any, view: View) -> Source:
    if isinstance(source, Database):
        if source.system is not System.DUCKDB:
            needs = f"{source.system.value} needs its ADBC driver and PyArrow"
            _check_arrow(needs, f"adbc-driver-{source.system.name.lower()}", "pyarrow")
        from dpselect.tables.duckdb.databases import source_of_database  # noqa: PLC0415 - few need it

        return source_of_database(source)
    if isinstance(source, Workbook):
        return _sheet(source)
    if isinstance(source, (str, Path)):
        listing = files_of(str(_piped.path() if source == STANDARD_INPUT else source))
        return CSVFiles(listing, view) if listing.format is Format.CSV else ParquetFiles(listing)
    if isinstance(source, duckdb.DuckDBPyRelation):
        return Relation(source)
    _check_rows(source)
    if not any(hasattr(type(source), attribute) for attribute in ("columns", "schema", "__arrow_c_stream__")):
        raise InvalidType(f"source must be a table, got {type(source).__name__}: {_KINDS}")
    _check_arrow("data frames and Arrow tables need PyArrow", "pyarrow")
    from dpselect.tables.duckdb.frames import frame_of  # noqa: PLC0415 - needs PyArrow, an extra

    return withheld(lambda: frame_of(source), EngineFailure(UNREADABLE))


def _sheet(workbook: Workbook) -> Source:
    try:
        from dpselect.tables.duckdb.workbooks import Sheet  # noqa: PLC0415 - needs an extra
    except ImportError:
        needs = "Excel files need python-calamine and PyArrow"
        raise MissingExtra(f"{needs}: {install_command('python-calamine', 'pyarrow')}") from None
    return Sheet(workbook)


def _check_arrow(what: str, *packages: str) -> None:
    if not has_arrow():
        raise MissingExtra(f"{what}: {install_command(*packages)}")


def _check_rows(source: Any) -> None:
    # By the class and the names alone: they are public.
    kinds = {(base.__module__.partition(".")[0], base.__name__) for base in type(source).__mro__}
    if kinds & {("pandas", "Series"), ("pandas", "Index")}:
        raise InvalidType(
            "source is a pandas Series, which has no column of the person: give the frame that it is a column of, or,"
            " if each value belongs to one person, series.to_frame()"
        )
    if ("polars", "Series") in kinds or kinds & {("pyarrow", "Array"), ("pyarrow", "ChunkedArray")}:
        raise InvalidType(
            "source is a single column, which has no column of the person: give the frame or table that it is from"
        )
    if (
        ("pandas", "DataFrame") in kinds
        and source.shape[1] == 1
        and any(name is not None for name in source.index.names)
    ):
        raise InvalidValue(
            "source has one column and an index with a name, as groupby returns it: the rows of an aggregate are not"
            " people, and the index is no column. Give the frame before groupby, or, if each row belongs to one person,"
            " frame.reset_index()"
        )


def index_of(source: Any) -> dict[str, str]:
    """The names of a pandas index, which are no columns, and what to do about them."""
    names = getattr(getattr(source, "index", None), "names", ())
    hint = "it is the index of the frame: give frame.reset_index()"
    return {name: hint for name in names if isinstance(name, str)}


_SHARE = 16  # files are at most this part of DuckDB's memory
_MOST_COLUMNS = 500  # up to here, a plan for all columns takes about as long as one for a few

_numbers = itertools.count()


class KeptRows:
    """All columns of some files in a private table, which exists as long as this object."""

    def __init__(self, source: CSVFiles, connection: Cursor) -> None:
        self.name = f"dpselect_kept_{next(_numbers)}"
        source.check()
        with (
            closing(connection.cursor()) as cursor,
            source.rows(cursor, source.names) as query,
            progress_shown(cursor, "Reading"),
        ):
            cursor.execute(f"CREATE TABLE {self.name} AS {query.text}", query.parameters)
        weakref.finalize(self, _drop, connection, self.name).atexit = False


def _drop(connection: Cursor, name: str) -> None:
    with suppress(duckdb.Error), closing(connection.cursor()) as cursor:
        cursor.execute(f"DROP TABLE {name}")


class Keeper(Source):
    """Keeps the rows of a source: from the first question on, from the second on (None), or never."""

    # The first of several questions costs no more than an only one, if rows are kept from the second on. While one
    # thread reads the rows, others read the files: they neither wait nor can be left waiting in a forked process.

    def __init__(self, source: Source, connection: Cursor, keep: bool | None) -> None:
        self._source, self._connection, self._from_first = source, connection, keep is True
        self.files, self.check, self.quick = source.files, source.check, source.quick  # type: ignore[method-assign]
        self._files = source if isinstance(source, CSVFiles) and keep is not False and _can_be_kept(source) else None
        self._lock = threading.Lock()
        self._rows: KeptRows | None = None
        self._state: State | None = None  # of the files at the last question

    @contextmanager
    def rows(self, cursor: Cursor, names: Sequence[str] | None) -> Iterator[Query]:
        kept = None if self._files is None else self._kept(self._files)
        if kept is not None:
            yield Query(f"SELECT * FROM {kept.name}")
            return
        with self._source.rows(cursor, names) as query:
            yield query

    def _kept(self, files: CSVFiles) -> KeptRows | None:
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

    def _read(self, files: CSVFiles, state: State) -> KeptRows | None:
        if not state.is_settled() or not self._has_room(state):
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


def _can_be_kept(source: CSVFiles) -> bool:
    return len(source.names) <= _MOST_COLUMNS and not any(map(is_compressed, source.files))


# Lines of CSV files.


_GUESSED_DELIMITERS = ",;\t|"
_LONGEST_HEADER = 1_000_000
_SEPARATOR, _BYTE = "\x1f", b"\x1f"
LONGEST_LINE = 65_536
# DuckDB skips lines longer than this. It counts preceding blank lines as part of a line, so this must be far beyond
# the longest row: otherwise the blank lines of one person could hide the row of another.
LONGEST_READ = 2_000_000
# The limit of repetitions in RE2, DuckDB's regular expressions.
_MOST_REPEATS = 1_000


def header_of(path: Path, view: View = AS_IT_IS) -> tuple[str, list[str]]:
    """The delimiter and the column names of a CSV file, both from its first line, which is public."""

    def first_line() -> str:
        with _opened(path) as file:
            line = file.readline(_LONGEST_HEADER)
            text = line.decode("utf-8-sig") if view.is_utf8 else characters(line, view.encoding, "strict")
            return text.rstrip("\r\n")

    where = shown(path)
    kind = "UTF-8" if view.is_utf8 else view.encoding
    unreadable = InvalidValue(
        f"{where}: this is not a CSV file in {kind}: save it as CSV in UTF-8 or as Parquet, or state its encoding, such"
        " as latin-1 or cp1252"
    )
    line = withheld(first_line, unreadable, (UnicodeDecodeError, EOFError, OSError, zlib.error))
    outside = "".join(line.split('"')[::2])  # outside quotation marks
    delimiter = view.delimiter or max(_GUESSED_DELIMITERS, key=outside.count)
    names: list[str] = []
    with suppress(csv.Error):
        names = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    if not line:
        raise InvalidValue(f"{where}: the first line must be a header with the names of the columns, and it is empty")
    return delimiter, checked_header(names, where)


def csv_lines(option: str = "", join: str = "") -> str:
    """A table with the lines of CSV files after their headers, in its column `line`. The paths are a parameter."""
    # With this new_line, every carriage return and every line feed ends a line, and an empty line
    # between two of them is not a row. DuckDB's own guess at CRLF would drop the row after a doubled carriage return.
    return (
        "read_csv($paths, auto_detect = false, columns = {'line': 'VARCHAR'}, header = false, skip = 1,"
        f" delim = '{_SEPARATOR}', quote = '', escape = '', new_line = '\\n',"
        f" strict_mode = false, ignore_errors = true, hive_partitioning = false, max_line_size = {LONGEST_READ}"
        f"{option}){join}"
    )


def rows_of(whole: str, delimiter: str, names: Sequence[str], wanted: Sequence[str], carried: Mapping[str, str]) -> str:
    """A query for some columns of the rows that are in the column `line` of a table."""
    # Other columns of the table are carried through: a mapping from the user's names to the table's names.
    plain = f"WHEN NOT contains(line, '\"') THEN string_split(line, '{delimiter}')"
    quoted = f"WHEN {_is_well_formed(delimiter, len(names))} THEN {_unquoted(delimiter)}"
    split = f"CASE WHEN strlen(line) >= {LONGEST_LINE} THEN NULL {plain} {quoted} END"
    values = {**{name: f"nullif(fields[{i + 1}], '')" for i, name in enumerate(names)}, **carried}
    columns = ", ".join(f"{values[name]} AS {identifier(name)}" for name in wanted)
    fields = ", ".join([f"{split} AS fields", *carried.values()])
    return f"SELECT {columns} FROM (SELECT {fields} FROM {whole}) WHERE len(fields) = {len(names)}"


def line_fault(delimiter: str, number: int) -> str:
    """The name of the reason for which a line that was read is left out; NULL if it has this many fields."""
    plain = f"WHEN NOT contains(line, '\"') THEN len(string_split(line, '{delimiter}'))"
    fields = f"CASE {plain} ELSE len({_unquoted(delimiter)}) END"
    return (
        f"CASE WHEN strlen(line) >= {LONGEST_LINE} THEN '{Reason.LONG.name}'"
        f" WHEN contains(line, '\"') AND NOT {_is_well_formed(delimiter)} THEN '{Reason.QUOTES.name}'"
        f" WHEN {fields} <> {number} THEN '{Reason.FIELDS.name}' END"
    )


def _is_well_formed(delimiter: str, number: int | None = None) -> str:
    # Each field has no quotation marks, or is enclosed in them with inner ones doubled.
    between, field = _patterns(delimiter)
    repeats = "*" if number is None or number - 1 > _MOST_REPEATS else f"{{{number - 1}}}"
    return f"regexp_full_match(line, '{field}(?:{between}{field}){repeats}')"


def _patterns(delimiter: str) -> tuple[str, str]:
    # Texts between quotation marks follow each other: the end of one and the start of the next are a doubled mark.
    between = f"\\{delimiter}" if delimiter in "|^" else delimiter
    return between, f'(?:(?:"[^"]*")+|[^"{between}]*)'


def _unquoted(delimiter: str) -> str:
    # With a delimiter put before the first, each field follows a delimiter.
    # The pattern has no capture group, which makes it fast on long lines.
    fields = f"regexp_extract_all('{delimiter}' || line, '{''.join(_patterns(delimiter))}')"
    inside = "replace(field[3:-2], '\"\"', '\"')"
    return (
        f"list_transform({fields}, lambda field:"
        f" CASE WHEN starts_with(field, '{delimiter}\"') THEN {inside} ELSE field[2:] END)"
    )


# What DuckDB's reader drops by itself (lines that are not UTF-8, or beyond its limit) is counted from the bytes.
_BLOCK = 4_000_000


def _opened(path: Path) -> BinaryIO:
    return cast("BinaryIO", (gzip.open if is_compressed(path) else open)(path, "rb"))


def is_compressed(path: Path) -> bool:
    """Whether the name of a file says that it is compressed."""
    return path.name.lower().endswith(".gz")


def _lines_of_file(path: Path) -> tuple[int, int, int]:
    # How many lines there are, and how many of those that DuckDB reads are not UTF-8, or begin with the separator.
    total = encoding = empty = 0
    with _opened(path) as file:
        file.readline()
        for block in _blocks(file):
            lines = [line for line in block.replace(b"\r", b"\n").split(b"\n") if line]
            total += len(lines)
            if _BYTE in block or not _is_utf8(block):
                readable = [line for line in lines if len(line) <= LONGEST_READ]
                encoding += sum(not _is_utf8(line.partition(_BYTE)[0]) for line in readable)
                empty += sum(line.startswith(_BYTE) for line in readable)
    return total, encoding, empty


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    # Of a line that is too long for DuckDB, a block has only the beginning.
    rest = b""
    while block := file.read(_BLOCK):
        whole = rest + block
        end = max(whole.rfind(b"\n"), whole.rfind(b"\r")) + 1
        yield whole[:end]
        rest = whole[end:][: LONGEST_READ + 1]
    yield rest


def _is_utf8(text: bytes) -> bool:
    with suppress(UnicodeDecodeError):
        text.decode("utf-8")
        return True
    return False
