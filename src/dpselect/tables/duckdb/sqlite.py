"""Read SQLite through its ADBC driver. All columns are text, as in a CSV file.

A column of SQLite can hold values of any type, whatever was declared. The driver guesses a type from the first rows,
and fails on a later row that differs. So every value is sent as bytes, with a mark before it, and a missing value as a
mark of its own: what the driver sees has the same type in every row. DuckDB reads the bytes as text; if they are not
UTF-8, the value is missing. The bytes of a database in UTF-16 are converted on the way.

Numbers that SQLite says are equal have the same text, and others have another one: the integer 7 and the float 7.0 are
"7", and a float has as many digits as it takes to read it back.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa

from dpselect._messages import install_command
from dpselect.errors import MissingExtra
from dpselect.tables.databases import Database, quoted
from dpselect.tables.duckdb.connector import Field, Run, described, watched_fields

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


class SQLite:
    """Reads a table or a query of an SQLite file."""

    def __init__(self, database: Database) -> None:
        self._database, self._url = database, f"{Path(database.address).absolute().as_uri()}?mode=ro"
        # What was not yet written to the file itself is in its log.
        self.fields = watched_fields(database, self, [Path(database.address), Path(f"{database.address}-wal")])

    def found_fields(self, run: Run) -> Sequence[Field]:
        """Return the fields as they are now: all columns are text, whatever was declared."""
        names = described(self._database, run).names
        return [Field(name, _SELECTED.format(quoted(name)), pa.binary(), _VALUE, untyped=True) for name in names]

    @contextmanager
    def session(self) -> Iterator[Run]:
        """Open a read-only connection, with one transaction for all statements."""
        try:
            from adbc_driver_sqlite import dbapi  # noqa: PLC0415 - an extra
        except ImportError:
            raise MissingExtra(f"SQLite needs its ADBC driver: {install_command('adbc-driver-sqlite')}") from None
        with dbapi.connect(self._url) as connection, connection.cursor() as cursor:

            def run(statement: str) -> pa.RecordBatchReader:
                cursor.execute(statement)
                return cursor.fetch_record_batch()

            with closing(run("PRAGMA encoding")) as stream:
                encoding = stream.read_all()["encoding"][0].as_py()
            yield run if encoding == "UTF-8" else lambda statement: _in_utf8(run(statement), _CODECS[encoding])


def _in_utf8(stream: pa.RecordBatchReader, codec: str) -> pa.RecordBatchReader:
    """Columns of bytes that are text in another encoding, in UTF-8."""
    schema = pa.schema({name: pa.binary() for name in stream.schema.names})

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in stream:
            if len(batch):  # without rows, the driver has no types
                columns = [[_recoded(value, codec) for value in column.to_pylist()] for column in batch.columns]
                yield pa.record_batch([pa.array(column, pa.binary()) for column in columns], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _recoded(text: bytes, codec: str) -> bytes:
    try:
        return text.decode(codec).encode()
    except UnicodeDecodeError:
        return _INVALID
