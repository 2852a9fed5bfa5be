"""Databases as sources: what a URL, or the first bytes of a file, says about where the rows are.

A URL may hold a password. So no message quotes a source that looks like an address, not even one that is mistyped, and
the record of a database does not show its address. Nothing here opens a connection.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from dpselect._validate import is_unicode
from dpselect.errors import InvalidType, InvalidValue

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
    """A table or a query of a database.

    Attributes:
        system: the kind of database.
        address: the URL, which may hold a password, or the path of the file.
        relation: what the rows are selected from, in the SQL of the database.
        what: the table or the query, for messages.
    """

    system: System
    address: str = field(repr=False)
    relation: str = field(repr=False)
    what: str


def quoted(name: str) -> str:
    """A name in the SQL of all these systems: nothing in it can end the quotes."""
    return '"' + name.replace('"', '""') + '"'


def resolved(source: Any, table: Any = None, query: Any = None) -> Any:
    """The database that the source names, or the source itself if it is something else."""
    found = _found(str(source)) if isinstance(source, (str, Path)) else None
    if found is None:
        for name, value in {"table": table, "query": query}.items():
            if value is not None:
                raise InvalidValue(f"{name} is for databases, and source is not one: leave {name} out")
        return source
    if (table is None) == (query is None):
        raise InvalidValue("source is a database: give either table, a name, or query, a SELECT statement")
    relation, what = _of_query(query) if table is None else _of_table(table)
    return Database(*found, relation, what)


def file_of(source: str) -> str:
    """The path of the file in a URL such as sqlite:///file.db; other sources as they are."""
    match = _FILE_URL.fullmatch(source)
    return source if match is None else match[2]


def _found(source: str) -> tuple[System, str] | None:
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
    """The kind of database in a file, by its first bytes."""
    try:
        with open(path if os.path.isfile(path) else os.devnull, "rb") as file:
            beginning = file.read(16)
    except (OSError, ValueError):  # the reader of files reports it
        return None
    if beginning == b"SQLite format 3\0":
        return System.SQLITE, _sendable(path, "source")
    return (System.DUCKDB, _sendable(path, "source")) if beginning[8:12] == b"DUCK" else None


def _of_table(table: Any) -> tuple[str, str]:
    """A table by its name: a text is split at its points, and the parts of a tuple are taken as they are."""
    parts: Sequence[Any] = table.split(".") if isinstance(table, str) else table
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise InvalidType('table must be a name such as "visits" or "clinic.visits", or a tuple of names')
    if not 1 <= len(parts) <= _MOST_PARTS or not all(parts):
        raise InvalidValue('table must be a name such as "visits" or "clinic.visits", or a tuple of names')
    names = [_sendable(part, "table") for part in parts]
    return ".".join(map(quoted, names)), f"table {'.'.join(names)!r}"


def _of_query(query: Any) -> tuple[str, str]:
    if not isinstance(query, str):
        raise InvalidType(f"query must be a SELECT statement as text, got {type(query).__name__}")
    text = _sendable(query, "query").strip().rstrip(";").strip()
    if not text:
        raise InvalidValue("query must be a SELECT statement: it is empty")
    # The line break ends a comment in the last line.
    return f"({text}\n) AS dpselect_query", "query"


def _sendable(text: str, what: str) -> str:
    """The text, if a driver can take it: a zero byte would end it, and what follows would be ignored."""
    if "\0" in text or not is_unicode(text):
        raise InvalidValue(f"{what} has a zero character, or one that UTF-8 cannot encode: remove it")
    return text
