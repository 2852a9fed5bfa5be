"""Where rows are: the files of a path, a folder or a pattern, each once and all of one format, or a database.

A file listed under two names would count twice, and each of its rows would have twice its weight. So files are
compared by device and inode, which links share, and by name: two files in one folder whose names differ only in the
ending may be a table and its compressed copy. Contents are never compared: an error would then depend on the rows.

A folder `key=value` below the given one is a column, as Hive writes partitions. The value belongs to every row in the
folder and is as private as these are: it is read as text, and no message shows it.

The URL of a database may hold a password. So no message quotes a source that looks like an address, not even one that
is mistyped, and the record of a database does not show its address. Nothing here opens a connection.
"""

import fnmatch
import glob
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote, unquote_to_bytes

from dpselect._validate import is_unicode
from dpselect.errors import InvalidType, InvalidValue

_CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_PARQUET_ENDINGS = (".parquet", ".pq")
_ENDINGS = (*_PARQUET_ENDINGS, *_CSV_ENDINGS)
_WORKBOOK_ENDINGS = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods")
PARQUET_MAGIC = b"PAR1"
_GLOB_MARKS = "*?[]{}"
_MISSING = ("", "__HIVE_DEFAULT_PARTITION__")

# Clocks of file systems tick at least every two seconds. A change in the same tick as the one before would not show.
_TICK = 2 * 10**9

_Identity = tuple[int, int] | str
_Facts = TypeVar("_Facts")


class Format(Enum):
    """The format of a file."""

    CSV = "CSV"
    PARQUET = "Parquet"


@dataclass(frozen=True)
class Listing:
    """Files of one format, each with the values from the names of its folders. Keys are public, values are private."""

    format: Format
    paths: tuple[Path, ...] = field(repr=False)
    folders: Mapping[str, list[str | None]] = field(default_factory=dict, repr=False)
    public_paths: tuple[str, ...] = ()  # without the folders that became columns

    def folder_columns(self, names: Iterable[str]) -> dict[str, list[str | None]]:
        """Return the value of each file for every key, except for keys that are columns of the files (`names`)."""
        own = set(map(str.lower, names))
        return {key: values for key, values in self.folders.items() if key.lower() not in own}


def shown(path: Path) -> str:
    """A path for messages, without what follows `key=` in the name of a folder, which is private."""
    parts = [re.sub("=.*", "=...", part, flags=re.DOTALL) for part in path.parts]
    return str(Path(*parts)).encode("utf-8", "backslashreplace").decode()


def files_of(source: str) -> Listing:
    """The files that the source names, all of one format."""
    path = Path(source)
    if os.path.isfile(path):
        _is_nameable(path, path.parent)
        return Listing(_format(path), (path.absolute(),), public_paths=(str(path.absolute()),))
    top, found = _found(source)
    names: dict[_Identity, list[Path]] = {}
    for path in found:
        if _is_nameable(path, top):
            names.setdefault(_identity(path), []).append(path)
    # For each file, a name without links if there is one, otherwise the first.
    paths = sorted(min(same, key=lambda path: (_has_link(path, top), path)) for same in names.values())
    if not paths:
        raise InvalidValue(f"{source}: none of its files can be read: check the path")
    formats = set(map(_format, paths))
    if len(formats) > 1:
        raise InvalidValue(f"{source}: some files are CSV and some are Parquet: give files of one format")
    _check_copies(paths)
    columns = [_columns(path, top) for path in paths]
    keys = enumerate(_common_keys(paths, columns))
    folders = {key: [_value(own[i][1]) for own in columns] for i, key in keys}
    # Absolute, because DuckDB gives a leading ~ or file: a special meaning.
    absolute = tuple(path.absolute() for path in paths)
    return Listing(formats.pop(), absolute, folders, tuple(_public(path, top) for path in paths))


def checked_header(names: Sequence[str], where: str) -> list[str]:
    """The names of columns in the first row of a file."""
    # A column without a name, as pandas writes the index, gets that of its position.
    # Names that look like data are not shown: a file without a header would reveal its first row.
    if not any(map(str.strip, names)) or not all(map(str.isprintable, names)):
        raise InvalidValue(f"{where}: the first line must be a header with a name for each column: add one")
    named = [name if name.strip() else f"column_{i}" for i, name in enumerate(names, start=1)]
    if any(map(_is_number, named)):
        raise InvalidValue(f"{where}: the first line holds numbers, not names of columns: add a header line")
    if len(set(map(str.lower, named))) != len(named):
        same = "two columns have the same name (upper and lower case are the same)"
        raise InvalidValue(f"{where}: {same}: rename one")
    return named


def _is_number(name: str) -> bool:
    # In any notation: 1,5 and 1.234,50 are no names either.
    with suppress(ValueError):
        float(re.sub("(?<=[0-9])[.,'](?=[0-9])", "", name))
        return True
    return False


class State(NamedTuple):
    """The state of files at a moment: if two states are equal, the files have most likely not changed."""

    files: tuple[tuple[int, ...], ...]
    size: int  # of all files together, in bytes
    changed: int  # when one of them was last changed, in nanoseconds since 1970

    def is_settled(self) -> bool:
        """Return whether there are files, and another change now would show."""
        return bool(self.files) and self.changed <= time.time_ns() - _TICK


def state_of(paths: Sequence[Path]) -> State | None:
    """The state of some files; None if one of them cannot be found."""
    try:
        found = list(map(os.stat, paths))
    except OSError:
        return None
    files = tuple((one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in found)
    # The time of writing can be set: a copy has that of its original. Then the other one says when that was done.
    *_, sizes, written, moved = zip(*files, strict=True) if files else ((0,),) * 3
    return State(files, sum(sizes), max(*written, *moved))


class Watch(Generic[_Facts]):
    """Public facts about some files, which are found again only if the state of the files is another one."""

    def __init__(self, paths: Sequence[Path], find: Callable[[], _Facts]) -> None:
        self._paths, self._find = paths, find
        self._state = self._settled()
        self.facts = find()

    def is_untouched(self) -> bool:
        """Return whether the files are in the state in which the facts were found."""
        return self._state is not None and self._settled() == self._state

    def is_same(self) -> bool:
        """Return whether the facts, which are found again, are still those of the beginning."""
        state = self._settled()
        is_same = self._find() == self.facts
        self._state = state if is_same else None
        return is_same

    def _settled(self) -> State | None:
        # None if a file was changed just now, so that another change may not show.
        state = state_of(list(filter(os.path.exists, self._paths)))
        return state if state is not None and state.is_settled() else None


def check_once(paths: Sequence[Path]) -> None:
    """Refuse the files if two of them have become the same file since they were listed."""
    if len(set(map(_identity, paths))) < len(paths):
        raise InvalidValue("source has changed since it was opened and now names one file twice: open it again")


def _found(source: str) -> tuple[Path, list[Path]]:
    path = Path(source)
    if os.path.isdir(path):
        # Tools leave files whose names start with a dot or an underscore beside the data.
        entries = (entry for folder in _tree(path, (".", "_")) for entry in _entries(folder, (".", "_")))
        found = [entry for entry in entries if entry.name.lower().endswith(_ENDINGS) and os.path.isfile(entry)]
        if not found:
            raise InvalidValue(f"{source}: this folder has no CSV or Parquet file: check the path")
        return path, found
    fixed = next((i for i, part in enumerate(path.parts) if glob.has_magic(part)), len(path.parts))
    top = Path(*path.parts[:fixed])
    found = list(filter(os.path.isfile, _matching(top, path.parts[fixed:])))
    if not found:
        raise InvalidValue(f"{source}: there is no such file: check the path")
    return top, found


def _matching(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    # As with `glob`, except that `**` enters each folder only once.
    if not parts:
        yield folder
        return
    first, *rest = parts
    if first == "**":
        for below in _tree(folder, (".",), through_links=True):
            yield from _matching(below, rest or ["*"])
    elif glob.has_magic(first):
        for entry in _entries(folder, () if first.startswith(".") else (".",)):
            if fnmatch.fnmatch(entry.name, first):
                yield from _matching(entry, rest)
    elif os.path.lexists(folder / first):
        yield from _matching(folder / first, rest)


def _tree(top: Path, hidden: tuple[str, ...], *, through_links: bool = False) -> Iterator[Path]:
    # Each folder once; those reached without a link come first.
    seen: set[_Identity] = set()
    plain, linked = [top], list[Path]()
    while plain or linked:
        folder = plain.pop() if plain else linked.pop()
        identity = _identity(folder)
        if identity in seen:
            continue
        seen.add(identity)
        yield folder
        below = [entry for entry in _entries(folder, hidden) if os.path.isdir(entry)]
        plain += [entry for entry in below if not os.path.islink(entry)]
        linked += [entry for entry in below if through_links and os.path.islink(entry)]


def _entries(folder: Path, hidden: tuple[str, ...]) -> list[Path]:
    with suppress(OSError):
        return [folder / name for name in os.listdir(folder) if not name.startswith(hidden)]
    return []


def _identity(path: Path) -> _Identity:
    # Some Windows file systems have no inodes.
    try:
        found = path.stat()
    except OSError:
        return str(path)
    return (found.st_dev, found.st_ino) if found.st_ino else os.path.realpath(path)


def _folders(path: Path, top: Path) -> tuple[str, ...]:
    return path.relative_to(top).parts[:-1]


def _has_link(path: Path, top: Path) -> bool:
    return any(map(os.path.islink, [path, *path.parents][: len(_folders(path, top)) + 1]))


def _is_nameable(path: Path, top: Path) -> bool:
    # If a value in the path is the reason, the rows are left out silently.
    private = "".join(part for part in _folders(path, top) if "=" in part)
    # Spark reads a path as a pattern, and fails on one with a colon. Which files are read must not depend on a row.
    if "\\" in private or not is_unicode(private) or (":" in private and set(private) & set(_GLOB_MARKS)):
        return False
    if not is_unicode(str(path)):
        raise InvalidValue(f"{shown(path)}: the path is not UTF-8: rename it")
    return True


def _public(path: Path, top: Path) -> str:
    return str(top.absolute().joinpath(*(part for part in _folders(path, top) if "=" not in part), path.name))


def _format(path: Path) -> Format:
    beginning, reason = b"", ""
    try:
        beginning = _beginning(path, len(PARQUET_MAGIC))
    except OSError as error:
        reason = error.strerror or type(error).__name__
    if reason:  # raised here, so that its context is not the error above, which names the path
        raise InvalidValue(f"{shown(path)}: the file cannot be read ({reason}): check its permissions")
    if beginning == PARQUET_MAGIC:
        return Format.PARQUET
    if path.name.lower().endswith(_CSV_ENDINGS):
        return Format.CSV
    wrong = (
        "an Excel file is opened alone, by its own path"
        if path.name.lower().endswith(_WORKBOOK_ENDINGS)
        else "this is not a Parquet file, despite its name"
        if path.name.lower().endswith(_PARQUET_ENDINGS)
        else "this is neither Parquet nor named as CSV (.csv, .tsv, .txt, with or without .gz)"
    )
    raise InvalidValue(f"{shown(path)}: {wrong}: give a CSV or Parquet file")


def _beginning(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


def _check_copies(paths: Sequence[Path]) -> None:
    folders: dict[Path, _Identity] = {}
    seen: dict[tuple[_Identity, str], Path] = {}
    for path in paths:
        if path.parent not in folders:
            folders[path.parent] = _identity(path.parent)
        other = seen.setdefault((folders[path.parent], _stem(path.name)), path)
        if other is not path:
            raise InvalidValue(
                f"{shown(other)} and {shown(path)}: their names differ only in the ending, so one may be a copy of the"
                " other, and its rows would count twice: give one of them, or rename one"
            )


def _stem(name: str) -> str:
    stem = name.casefold()
    while stem.endswith((*_ENDINGS, ".gz")):
        stem = stem.rpartition(".")[0]
    return stem


def _columns(path: Path, top: Path) -> list[tuple[str, str]]:
    found = []
    for part in _folders(path, top):
        key, equals, written = part.partition("=")
        if equals and unquote(key).strip() and unquote(key).isprintable():
            found.append((unquote(key), written))
    return found


def _common_keys(paths: Sequence[Path], columns: Sequence[Sequence[tuple[str, str]]]) -> tuple[str, ...]:
    first, *others = [tuple(key for key, _ in own) for own in columns]
    if len(set(map(str.lower, first))) != len(first):
        raise InvalidValue(f"{shown(paths[0])}: two of its folders name the same column: rename one")
    for path, keys in zip(paths[1:], others, strict=True):
        if keys != first:
            raise InvalidValue(
                f"{shown(path)}: its folders name other columns than those of {shown(paths[0])}: give files whose"
                " folders have the same keys in the same order"
            )
    return first


def _value(written: str) -> str | None:
    # Missing if it does not decode to UTF-8.
    with suppress(UnicodeDecodeError):
        return None if written in _MISSING else unquote_to_bytes(written).decode()
    return None


# An address, also one that lacks a slash: what precedes an @ may be a password.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://|[^/]*@|/[^/]*@)")
_KEYWORDS = re.compile(r"\bpassword\s*=")
_POSTGRESQL = ("postgresql", "postgres")
_FILE_URL = re.compile(r"(sqlite|duckdb):///(.+)", re.DOTALL)
_MOST_PARTS = 3  # the database, the schema and the table
_OTHERS = (
    "give a path, postgresql://..., sqlite:///file.db or duckdb:///file.duckdb; read other databases into an Arrow"
    " table with ADBC or ODBC, or export the table to Parquet"
)


class System(Enum):
    """The systems whose databases can be opened."""

    POSTGRESQL = "PostgreSQL"
    SQLITE = "SQLite"
    DUCKDB = "DuckDB"


@dataclass(frozen=True)
class Database:
    """A table or a query of a database. The address may hold a password. Only a trusted query is sent as it is."""

    system: System
    address: str = field(repr=False)
    table: tuple[str, ...] = ()
    query: str = field(default="", repr=False)
    is_trusted: bool = False

    @property
    def what(self) -> str:
        """The table or the query, for messages."""
        return f"table {'.'.join(self.table)!r}" if self.table else "query"


@dataclass(frozen=True)
class Workbook:
    """A sheet of an Excel file or of an OpenDocument spreadsheet; without a name, the only one."""

    path: Path
    sheet: str | None = None


def resolved(source: Any, table: Any = None, query: Any = None, *, is_trusted: bool = False) -> Any:
    """The database or the sheet that the source names, or the source itself if it is something else."""
    if is_trusted and query is None:
        raise InvalidValue("trusted_query is about the query of a database, and there is none: leave it out")
    found = _database(str(source)) if isinstance(source, (str, Path)) else None
    if found is None:
        is_book = query is None and isinstance(source, (str, Path)) and str(source).lower().endswith(_WORKBOOK_ENDINGS)
        if is_book and not os.path.isdir(source):
            return _workbook(Path(source), table)
        for name, value in {"table": table, "query": query}.items():
            if value is not None:
                instead = ": give where instead, a condition on each row" if name == "query" else f": leave {name} out"
                raise InvalidValue(f"{name} is for databases, and the source is not one{instead}")
        return source
    if (table is None) == (query is None):
        raise InvalidValue("source is a database: give either table, a name, or query, a SELECT statement")
    if table is None:
        return Database(*found, query=_query(query), is_trusted=is_trusted)
    return Database(*found, table=_parts(table))


def _workbook(path: Path, sheet: Any) -> Workbook:
    if sheet is not None and not isinstance(sheet, str):
        raise InvalidType(f"table must be the name of a sheet, got {type(sheet).__name__}")
    if not os.path.isfile(path):
        raise InvalidValue(f"{shown(path)}: there is no such file. Give the path of one Excel file, without a pattern")
    return Workbook(path.absolute(), sheet)


def file_of(source: str) -> str:
    """The path of the file in a URL such as sqlite:///file.db; other sources as they are."""
    match = _FILE_URL.fullmatch(source)
    return source if match is None else match[2]


def _database(source: str) -> tuple[System, str] | None:
    match = _ADDRESS.match(source)
    if match is None or os.path.exists(source):
        if _KEYWORDS.search(source) and not os.path.exists(source):
            raise InvalidValue("source looks like the parameters of a connection: give a URL postgresql://...")
        return _by_content(source)
    scheme = match[1].lower()
    if scheme in _POSTGRESQL and source[len(scheme) :].startswith("://"):
        return System.POSTGRESQL, _sendable(source, "source")
    path = file_of(source)
    if path == source:
        raise InvalidValue(
            f"there is no such file, and addresses that start with {scheme}: cannot be opened: {_OTHERS}"
        )
    if not os.path.isfile(path):
        raise InvalidValue(f"source names a file of {scheme} that does not exist: check the path after {scheme}:///")
    return System[scheme.upper()], _sendable(path, "source")


def _by_content(path: str) -> tuple[System, str] | None:
    try:
        beginning = _beginning(Path(path), 16) if os.path.isfile(path) else b""
    except (OSError, ValueError):  # the reader of files reports it
        return None
    if beginning == b"SQLite format 3\0":
        return System.SQLITE, _sendable(path, "source")
    return (System.DUCKDB, _sendable(path, "source")) if beginning[8:12] == b"DUCK" else None


def _parts(table: Any) -> tuple[str, ...]:
    parts: Sequence[Any] = table.split(".") if isinstance(table, str) else table
    must = 'table must be a name such as "visits" or "clinic.visits", or a tuple of names'
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise InvalidType(must)
    if not 1 <= len(parts) <= _MOST_PARTS or not all(parts):
        raise InvalidValue(must)
    return tuple(_sendable(part, "table") for part in parts)


def _query(query: Any) -> str:
    if not isinstance(query, str):
        raise InvalidType(f"query must be a SELECT statement as text, got {type(query).__name__}")
    text = _sendable(query, "query").strip().rstrip(";").strip()
    if not text:
        raise InvalidValue("query must be a SELECT statement: it is empty")
    return text


def _sendable(text: str, what: str) -> str:
    # A zero byte would end the text for a driver, and what follows would be ignored.
    if "\0" in text or not is_unicode(text):
        raise InvalidValue(f"{what} has a zero character, or one that UTF-8 cannot encode: remove it")
    return text
