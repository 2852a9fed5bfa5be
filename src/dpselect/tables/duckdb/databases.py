"""Databases as sources: rows of PostgreSQL, SQLite and DuckDB files, streamed into DuckDB, which counts.

The database selects only the columns of a question. A connection is opened for each question and closed after it; it
can only read. In the same transaction, the columns are looked at and the rows are read: no expression meets a column of
another type. If a stream breaks off, DuckDB fails: a part of the rows is never taken for all of them.

PostgreSQL and SQLite are read through their ADBC drivers. Each column has an expression in the SQL of the database that
no row makes fail, a type in which it arrives, which follows from the declared types and never from rows, and an
expression of DuckDB for its value.

PostgreSQL's driver receives rows with COPY in binary form. It does not check the infinities of dates and timestamps,
which wrap around to other values, nor timestamps that overflow when they are counted from 1970. So these are moved to
the ends of what can be sent. Numbers of the type numeric are sent as text. Types come from the server's description of
the statement: none depends on a row. Texts of a database whose encoding is not UTF-8 may have no equivalent in it, and
PostgreSQL would fail on a row that has one. So such a database is refused.

All columns of SQLite are text, as in a CSV file. A column can hold values of any type, whatever was declared. The
driver guesses a type from the first rows, and fails on a later row that differs. So every value is sent as bytes, with
a mark before it, and a missing value as a mark of its own: what the driver sees has the same type in every row. DuckDB
reads the bytes as text; if they are not UTF-8, the value is missing. The bytes of a database in UTF-16 are converted on
the way. Numbers that SQLite says are equal have the same text, and others have another one: the integer 7 and the float
7.0 are "7", and a float has as many digits as it takes to read it back.

The rows of a DuckDB file are streamed by Arrow's C interface, which needs no PyArrow. While its connection is open,
nobody can change the file.
"""

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import duckdb

from dpselect._messages import install_command
from dpselect._validate import withheld
from dpselect.errors import InvalidValue, MissingExtra
from dpselect.tables.duckdb.queries import checked, trial
from dpselect.tables.duckdb.source import ROWS, Cursor, Query, Source, check_names, check_same, connect_file, registered
from dpselect.tables.duckdb.values import column_of, identifier
from dpselect.tables.files import Database, System, Watch

if TYPE_CHECKING:
    import pyarrow as pa

Run: TypeAlias = "Callable[[str], pa.RecordBatchReader]"  # runs a statement, after the stream before was closed


_Result = TypeVar("_Result")


class _Rows(Source):
    """The rows of a table or a query. No row is read when it is opened, and no message of a driver is passed on."""

    _log = ""  # how the name of a file ends that has what was not yet written to the database's own file

    def __init__(self, database: Database) -> None:
        self._database, self._relation = database, _relation_of(database)
        address = database.address
        files = [Path(address), Path(f"{address}{self._log}")] if self._log else []
        unreadable = InvalidValue(
            f"{database.what} cannot be read: check the names, which are compared exactly, the permissions, and that it"
            f" is {database.system.value}'s SQL"
        )
        # The columns are found again if one of these files has changed; without files, each time.
        self._watch = _explained(lambda: Watch(files, self._found), unreadable, self.reason)
        check_names([column.name for column in self._watch.facts])

    def _found(self) -> Sequence[Any]:
        raise NotImplementedError

    def reason(self, error: Exception) -> str:  # noqa: ARG002 - for PostgreSQL
        """Return why no column is found, in our words; nothing if the error does not say it in public terms."""
        return ""

    def check(self) -> None:
        check_same(self._watch.is_untouched() or self._watch.is_same())


def _explained(call: Callable[[], _Result], error: InvalidValue, reason: Callable[[Exception], str]) -> _Result:
    # As `withheld`, but the error says the reason, if there is one.
    def noted() -> _Result:
        failure: Exception
        try:
            return call()
        except Exception as foreign:
            failure, error.args = foreign, (reason(foreign) or error.args[0],)
        try:
            raise failure  # not in the handler, whose error would become the context of this one
        finally:
            del failure  # it refers to this frame

    return withheld(noted, error)


def _relation_of(database: Database) -> str:
    if database.table:
        return ".".join(map(identifier, database.table))
    query = database.query if database.is_trusted else checked(database.query, database.system)
    return f"({query}\n) AS dpselect_rows"  # the line break ends a comment in the last line


# DuckDB takes a name that it does not know for a file, and would guess the types of its columns from rows.
_HAS_TABLE = (
    "SELECT 1 FROM (SELECT table_name AS name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views())"
    " WHERE lower(name) = lower(?) LIMIT 1"
)


class DuckDBFile(_Rows):
    """A DuckDB file, read in connections of its own."""

    _log = ".wal"

    def _found(self) -> Sequence[Any]:
        with closing(connect_file(self._database.address)) as connection:
            table = self._database.table
            if table and not connection.execute(_HAS_TABLE, [table[-1]]).fetchall():
                raise InvalidValue(f"{self._database.what} does not exist: check the name and its schema")
            if self._database.query and not self._database.is_trusted:
                connection.execute(trial(self._database.query))
            return _columns(connection.sql(f"SELECT * FROM {self._relation} LIMIT 0"))

    @contextmanager
    def rows(self, cursor: Cursor, names: Sequence[str] | None) -> Iterator[Query]:
        columns = [column for column in self._watch.facts if names is None or column.name in names]
        selected = ", ".join(identifier(column.name) for column in columns)
        statement = f"SELECT {selected} FROM {self._relation}{' LIMIT 0' if names is None else ''}"
        with closing(connect_file(self._database.address)) as own:
            rows = own.sql(statement)
            check_same(_columns(rows) == columns)
            with registered(cursor, rows.__arrow_c_stream__()) as query:
                yield query


def _columns(rows: duckdb.DuckDBPyRelation) -> Sequence[Any]:
    return [column_of(name, str(type_)) for name, type_ in zip(rows.columns, rows.types, strict=True)]


@dataclass(frozen=True)
class Field:
    """A column of a database.

    Attributes:
        name: its name.
        selected: its expression in the SQL of the database.
        sent: the type of Arrow in which it arrives, as text.
        value: DuckDB's expression for its value, in which {} is what arrived.
        untyped: whether it arrives as text because the database has no type for it that DuckDB has, too.
    """

    name: str
    selected: str
    sent: str
    value: str = "{}"
    untyped: bool = False


class _Driven(_Rows):
    """A database with an ADBC driver."""

    _driver: str
    _watch: Watch[Sequence[Field]]

    def session(self) -> AbstractContextManager[Run]:
        # All statements of a session see the same tables.
        raise NotImplementedError

    def found_fields(self, run: Run) -> Sequence[Field]:
        # No row is read.
        raise NotImplementedError

    @contextmanager
    def _cursor(self, url: str) -> Iterator[tuple[Any, Run]]:
        try:
            dbapi = importlib.import_module(f"{self._driver.replace('-', '_')}.dbapi")  # an extra
        except ImportError:
            needs = f"{self._database.system.value} needs its ADBC driver"
            raise MissingExtra(f"{needs}: {install_command(self._driver)}") from None

        def run(statement: str) -> "pa.RecordBatchReader":
            cursor.execute(statement)
            return cursor.fetch_record_batch()

        with dbapi.connect(url) as connection, connection.cursor() as cursor:
            yield cursor, run

    def _found(self) -> Sequence[Field]:
        with self.session() as run:
            return self.found_fields(run)

    def _described(self, run: Run) -> "pa.Schema":
        with run(f"SELECT * FROM {self._relation} LIMIT 0") as stream:
            return stream.schema

    def is_untyped(self, column: str) -> bool:
        return any(field.untyped for field in self._watch.facts if field.name == column)

    def _selection(self, fields: Sequence[Field]) -> str:
        columns = ", ".join(f"{field.selected} AS {identifier(field.name)}" for field in fields)
        return f"SELECT {columns} FROM {self._relation}"

    @contextmanager
    def rows(self, cursor: Cursor, names: Sequence[str] | None) -> Iterator[Query]:
        import pyarrow as pa  # noqa: PLC0415 - an extra

        fields = [field for field in self._watch.facts if names is None or field.name in names]
        zoned = {"timestamp[us, tz=UTC]": pa.timestamp("us", "UTC")}
        schema = pa.schema({field.name: zoned.get(field.sent) or pa.type_for_alias(field.sent) for field in fields})
        values = (f"{field.value.format(identifier(field.name))} AS {identifier(field.name)}" for field in fields)
        text = f"SELECT {', '.join(values)} FROM {ROWS}"
        if names is None:
            with registered(cursor, schema.empty_table(), text) as query:
                yield query
            return
        with self.session() as run:
            check_same(self.found_fields(run) == self._watch.facts)
            with run(self._selection(fields)) as stream:
                # SQLite's driver guesses types from rows, and without rows it has none.
                batches = (pa.record_batch(batch.columns, schema=schema) for batch in stream if len(batch))
                rows = pa.RecordBatchReader.from_batches(schema, batches)
                with registered(cursor, rows, text) as query:
                    yield query


_UNREACHABLE = "the PostgreSQL server cannot be reached: check the URL, the database, the user and the password"
# Before the login, the driver gives no code, only the words of the client and of the server, which nobody gets to see.
# If they are in another language than English, the message above is all that is said.
_LOGIN = {
    r"authentication failed|no password supplied": "refuses the user or the password. Check both: they are in the URL,"
    " in PGUSER and PGPASSWORD, or in ~/.pgpass",
    r"role \S* ?does not exist": "has no user of this name. Check the user in the URL",
    r"database \S* ?does not exist": "has no database of this name. Check the name after the last slash of the URL",
    r"pg_hba\.conf": "does not let this user into this database from here. Ask who runs it to allow it in pg_hba.conf",
    r"SSL|certificate": "does not agree about encryption. Check sslmode in the URL",
    r"too many clients|too many connections|connection slots": "has too many connections. Try again later",
    r"starting up|shutting down|recovery mode": "is starting or stopping. Try again later",
    r"could not translate host|name resolution": "cannot be found under this name. Check the host in the URL",
    r"Connection refused|No such file or directory": "does not listen there. Check the host and the port in the URL,"
    " and that the server runs",
    r"timeout|timed out|unreachable|No route": "does not answer. Check the host, the port and the network",
    r"URI|percent-encoded|invalid integer|invalid port|connection option": "cannot be looked for, because"
    " the URL is not valid. Write user@host:5432/name after the two slashes, with %40 for an @ in the password",
}
# After it, classes of errors that are known before a row is read.
_OPENING = {
    "42P01": "does not exist: check the name and its schema, which are compared exactly",
    "3F000": "is in a schema that does not exist: check the name, which is compared exactly",
    "42703": "names a column that does not exist: check the names, which are compared exactly",
    "42501": "may not be read by this user: ask the owner for GRANT SELECT",
    "42601": "is not PostgreSQL's SQL: try it in psql",
}


def _reason_of_login(error: Exception) -> str:
    said = re.sub('"[^"]*"', "", str(error))  # without names, which may be anything
    found = next((reason for words, reason in _LOGIN.items() if re.search(words, said)), "")
    return found and f"the PostgreSQL server {found}"


_FACTS = (
    "SELECT encoding, name FROM (SELECT current_setting('server_encoding') AS encoding) AS one LEFT JOIN"
    " (SELECT CAST(typname AS text) AS name FROM pg_type GROUP BY typname HAVING bool_and(typtype = 'e')) AS enums"
    " ON true"
)
_SETTINGS = ("SET TRANSACTION READ ONLY", "SET client_encoding TO 'UTF8'")

_AS_THEY_ARE = {
    "bool": "bool",
    "int2": "int16",
    "int4": "int32",
    "int8": "int64",
    "float4": "float",
    "float8": "double",
}
_TEXTS = ("text", "varchar", "bpchar", "name")
# The largest moments that fit when they are counted from 1970, and the smallest that PostgreSQL has.
_ENDS = {
    "date": ("DATE '4714-11-24 BC'", "DATE '5874897-12-31'", "date32[day]"),
    "timestamp": ("TIMESTAMP '4714-11-24 00:00:00 BC'", "TIMESTAMP '294246-12-31 23:59:59.999999'", "timestamp[us]"),
    "timestamptz": (
        "TIMESTAMPTZ '4714-11-24 00:00:00+00 BC'",
        "TIMESTAMPTZ '294246-12-31 23:59:59.999999+00'",
        "timestamp[us, tz=UTC]",
    ),
}
_MOST_DIGITS = 38  # of a decimal in DuckDB


class PostgreSQL(_Driven):
    """PostgreSQL, in read-only transactions."""

    _driver = "adbc-driver-postgresql"

    def __init__(self, database: Database) -> None:
        self._database, self._relation = database, _relation_of(database)
        encoding, self._enums = _explained(self._facts, InvalidValue(_UNREACHABLE), _reason_of_login)
        if encoding != "UTF8":
            raise InvalidValue(f"the database has the encoding {encoding}: copy the table to a database in UTF8")
        super().__init__(database)
        # Whether the server knows all functions, and sends what is expected, is found out before a charge.
        if withheld(self._sent, InvalidValue(_UNREACHABLE)) != [field.sent for field in self._watch.facts]:
            raise InvalidValue(f"{database.what} has a column whose type is not what its name says: cast it in a query")

    @contextmanager
    def session(self) -> Iterator[Run]:
        with self._cursor(self._database.address) as (cursor, run):
            for setting in _SETTINGS:
                cursor.execute(setting)
            yield run

    def reason(self, error: Exception) -> str:
        found = _OPENING.get(str(getattr(error, "sqlstate", "")), "")
        return found and f"{self._database.what} {found}"

    def found_fields(self, run: Run) -> Sequence[Field]:
        # Until the end of the session, nobody can change the fields.
        return [_field(each, self._enums) for each in self._described(run)]

    def _facts(self) -> tuple[str, frozenset[str]]:
        with self.session() as run, run(_FACTS) as stream:
            found = stream.read_all().to_pydict()
        return found["encoding"][0], frozenset(name for name in found["name"] if name is not None)

    def _sent(self) -> list[str]:
        with self.session() as run, run(f"{self._selection(self._watch.facts)} LIMIT 0") as stream:
            return list(map(str, stream.schema.types))


def _field(each: "pa.Field", enums: frozenset[str]) -> Field:
    # The driver states the type of a column; for a domain, that of its values.
    name, x = each.name, identifier(each.name)
    stated = {key.decode(): value.decode() for key, value in (each.metadata or {}).items()}
    type_ = stated.get("POSTGRESQL:type", "")
    if type_ in _AS_THEY_ARE:
        return Field(name, x, _AS_THEY_ARE[type_])
    if type_ in _ENDS:
        low, high, sent = _ENDS[type_]
        return Field(name, f"CASE WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} ELSE {x} END", sent)
    if type_ == "numeric":
        # Without trailing zeros: 1.0 and 1 are the same number, and the same person.
        value = _decimal(int(stated.get("POSTGRESQL:typmod", "-1")))
        return Field(name, f"CAST(trim_scale({x}) AS text)", "string", value, untyped=value == "{}")
    if type_ in _TEXTS or type_ in enums:
        return Field(name, f"CAST({x} AS text)", "string")
    if type_ == "uuid":
        return Field(name, f"CAST({x} AS text)", "string", "TRY_CAST({} AS UUID)")
    return Field(name, "CAST(NULL AS bytea)", "binary")


def _decimal(modifier: int) -> str:
    # Without a declaration, or if DuckDB has no such decimal, the number stays text. PostgreSQL packs numeric(p, s) as
    # p * 2**16 + (s modulo 2**11) + 4, and has -1 where nothing is declared.
    precision, scale = (modifier - 4) >> 16, ((modifier - 4) & 2047 ^ 1024) - 1024
    if modifier < 4 or not 0 <= scale <= precision <= _MOST_DIGITS:
        return "{}"
    # What is not a number becomes NULL: NaN.
    return f"TRY_CAST({{}} AS DECIMAL({precision},{scale}))"


_TEXT = "CAST({0} AS TEXT)"
# SQLite compares integers and floats exactly. Most of its versions write 15 digits of a float, too few for some.
_REAL = (
    "CASE WHEN {0} = CAST({0} AS INTEGER) THEN CAST(CAST({0} AS INTEGER) AS TEXT)"
    f" WHEN CAST({_TEXT} AS REAL) = {{0}} THEN {_TEXT} ELSE printf('%!.17g', {{0}}) END"
)
# As text of a database in UTF-16, bytes of an odd number would lose the last one. They are no text, and missing.
_IS_TEXT = f"typeof({{0}}) <> 'blob' OR length(CAST({_TEXT} AS BLOB)) = length({{0}})"
_SELECTED = (
    f"CAST(CASE WHEN typeof({{0}}) = 'real' THEN '=' || {_REAL}"
    f" WHEN {{0}} IS NOT NULL AND ({_IS_TEXT}) THEN '=' || {_TEXT} ELSE '-' END AS BLOB)"
)
_CODECS = {"UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}
_INVALID = b"=\xff"  # not UTF-8
_VALUE = "CASE WHEN {0} <> CAST('-' AS BLOB) THEN TRY(decode({0}[2:])) END"


class SQLite(_Driven):
    """An SQLite file."""

    _driver, _log = "adbc-driver-sqlite", "-wal"

    @contextmanager
    def session(self) -> Iterator[Run]:
        url = f"{Path(self._database.address).absolute().as_uri()}?mode=ro"
        with self._cursor(url) as (_, run):
            with closing(run("PRAGMA encoding")) as stream:
                encoding = stream.read_all()["encoding"][0].as_py()
            yield run if encoding == "UTF-8" else lambda statement: _in_utf8(run(statement), _CODECS[encoding])

    def found_fields(self, run: Run) -> Sequence[Field]:
        # All columns are text, whatever was declared.
        names = self._described(run).names
        return [Field(name, _SELECTED.format(identifier(name)), "binary", _VALUE, untyped=True) for name in names]


def _in_utf8(stream: "pa.RecordBatchReader", codec: str) -> "pa.RecordBatchReader":
    import pyarrow as pa  # noqa: PLC0415 - an extra

    schema = pa.schema({name: pa.binary() for name in stream.schema.names})

    def recoded(batch: "pa.RecordBatch") -> "pa.RecordBatch":
        columns = [[_recoded(value, codec) for value in column.to_pylist()] for column in batch.columns]
        return pa.record_batch([pa.array(column, pa.binary()) for column in columns], schema=schema)

    # Without rows, the driver has no types.
    return pa.RecordBatchReader.from_batches(schema, (recoded(batch) for batch in stream if len(batch)))


def _recoded(text: bytes, codec: str) -> bytes:
    with suppress(UnicodeDecodeError):
        return text.decode(codec).encode()
    return _INVALID


_SOURCES = {System.POSTGRESQL: PostgreSQL, System.SQLITE: SQLite, System.DUCKDB: DuckDBFile}


def source_of_database(database: Database) -> Source:
    """The rows of a table or a query of a database."""
    return _SOURCES[database.system](database)
