"""Read SQLite through its ADBC driver. All columns are text, as in a CSV file.

A column of SQLite can hold values of any type, whatever was declared. The driver guesses a type from the first rows,
and fails on a later row that differs. So every value is sent as bytes, with a mark before it, and a missing value as a
mark of its own: what the driver sees has the same type in every row. DuckDB reads the bytes as text; if they are not
UTF-8, the value is missing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from dpselect._install import install_command
from dpselect.errors import MissingExtra
from dpselect.tables.databases import Database, quoted
from dpselect.tables.duckdb.connector import Field, Run, described, watched_fields

_SELECTED = "CAST(CASE WHEN {0} IS NULL THEN '-' ELSE '=' || CAST({0} AS TEXT) END AS BLOB)"
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

            yield run
