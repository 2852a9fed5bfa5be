"""Read PostgreSQL through its ADBC driver, in read-only transactions.

The driver receives rows with COPY in binary form. It does not check the infinities of dates and timestamps, which wrap
around to other values, nor timestamps that overflow when they are counted from 1970. So these are moved to the ends of
what can be sent. Numbers of the type numeric are sent as text.

Types come from the server's description of the statement: none depends on a row. Texts of a database whose encoding is
not UTF-8 may have no equivalent in it, and PostgreSQL would fail on a row that has one. So such a database is refused.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from dpselect._messages import install_command
from dpselect._validate import withheld
from dpselect.errors import InvalidValue, MissingExtra
from dpselect.tables.databases import Database, quoted
from dpselect.tables.duckdb.connector import Field, Run, described, selection, watched_fields

_UNREACHABLE = "the PostgreSQL server cannot be reached: check the URL, the database, the user and the password"
_FACTS = (
    "SELECT encoding, name FROM (SELECT current_setting('server_encoding') AS encoding) AS one LEFT JOIN"
    " (SELECT CAST(typname AS text) AS name FROM pg_type GROUP BY typname HAVING bool_and(typtype = 'e')) AS enums"
    " ON true"
)
_SETTINGS = ("SET TRANSACTION READ ONLY", "SET client_encoding TO 'UTF8'")

_AS_THEY_ARE = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
}
_TEXTS = ("text", "varchar", "bpchar", "name")
# The largest moments that fit when they are counted from 1970, and the smallest that PostgreSQL has.
_ENDS = {
    "date": ("DATE '4714-11-24 BC'", "DATE '5874897-12-31'", pa.date32()),
    "timestamp": (
        "TIMESTAMP '4714-11-24 00:00:00 BC'",
        "TIMESTAMP '294246-12-31 23:59:59.999999'",
        pa.timestamp("us"),
    ),
    "timestamptz": (
        "TIMESTAMPTZ '4714-11-24 00:00:00+00 BC'",
        "TIMESTAMPTZ '294246-12-31 23:59:59.999999+00'",
        pa.timestamp("us", "UTC"),
    ),
}
_MOST_DIGITS = 38  # of a decimal in DuckDB


class PostgreSQL:
    """Reads a table or a query of a PostgreSQL database."""

    def __init__(self, database: Database) -> None:
        self._database, self._url = database, database.address
        encoding, self._enums = withheld(self._facts, InvalidValue(_UNREACHABLE))
        if encoding != "UTF8":
            raise InvalidValue(f"the database has the encoding {encoding}: copy the table to a database in UTF8")
        self.fields = watched_fields(database, self)
        # Whether the server knows all functions, and sends what is expected, is found out before a charge.
        fields = self.fields.facts
        checked = withheld(lambda: self._schema(selection(database, fields)), InvalidValue(_UNREACHABLE))
        if checked.types != [field.sent for field in fields]:
            raise InvalidValue(f"{database.what} has a column whose type is not what its name says: cast it in a query")

    def found_fields(self, run: Run) -> Sequence[Field]:
        """Return the fields as they are now. Until the end of the session, nobody can change them."""
        return [_field(each, self._enums) for each in described(self._database, run)]

    @contextmanager
    def session(self) -> Iterator[Run]:
        """Open a connection, with one read-only transaction for all statements."""
        try:
            from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - an extra
        except ImportError:
            raise MissingExtra(
                f"PostgreSQL needs its ADBC driver: {install_command('adbc-driver-postgresql')}"
            ) from None
        with dbapi.connect(self._url) as connection, connection.cursor() as cursor:
            for setting in _SETTINGS:
                cursor.execute(setting)

            def run(statement: str) -> pa.RecordBatchReader:
                cursor.execute(statement)
                return cursor.fetch_record_batch()

            yield run

    def _facts(self) -> tuple[str, frozenset[str]]:
        """The encoding of the database, and the names of types that are enumerations in all schemas."""
        with self.session() as run, run(_FACTS) as stream:
            found = stream.read_all().to_pydict()
        return found["encoding"][0], frozenset(name for name in found["name"] if name is not None)

    def _schema(self, statement: str) -> pa.Schema:
        with self.session() as run, run(f"{statement} LIMIT 0") as stream:
            return stream.schema


def _field(each: pa.Field, enums: frozenset[str]) -> Field:
    """How to read a column. The driver states its type, for a domain that of its values."""
    name, x = each.name, quoted(each.name)
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
        return Field(name, f"CAST(trim_scale({x}) AS text)", pa.string(), value, untyped=value == "{}")
    if type_ in _TEXTS or type_ in enums:
        return Field(name, f"CAST({x} AS text)", pa.string())
    if type_ == "uuid":
        return Field(name, f"CAST({x} AS text)", pa.string(), "TRY_CAST({} AS UUID)")
    return Field(name, "CAST(NULL AS bytea)", pa.binary())


def _decimal(modifier: int) -> str:
    """The decimal with the declared digits. Without a declaration, or if DuckDB has none such, it stays text.

    PostgreSQL packs numeric(p, s) as p * 2**16 + (s modulo 2**11) + 4, and has -1 where nothing is declared.
    """
    precision, scale = (modifier - 4) >> 16, ((modifier - 4) & 2047 ^ 1024) - 1024
    if modifier < 4 or not 0 <= scale <= precision <= _MOST_DIGITS:
        return "{}"
    # What is not a number becomes NULL: NaN.
    return f"TRY_CAST({{}} AS DECIMAL({precision},{scale}))"
