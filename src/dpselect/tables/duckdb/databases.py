"""Rows of PostgreSQL or SQLite, streamed through Arrow into DuckDB, which counts.

The database selects only the columns of a question. Each column has an expression in the SQL of the database that no
row makes fail, a type in which it arrives, which follows from the declared types and never from rows, and an expression
of DuckDB for its value. A connection is opened for each question and closed after it. In the same transaction, the
columns are looked at and the rows are read: no expression meets a column of another type. If a stream breaks off,
DuckDB fails: a part of the rows is never taken for all of them.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from dpselect.tables.databases import Database, System, quoted
from dpselect.tables.duckdb.connector import Connector, selection
from dpselect.tables.duckdb.names import check_names, check_same
from dpselect.tables.duckdb.postgresql import PostgreSQL
from dpselect.tables.duckdb.sqlite import SQLite

_ROWS = "dpselect_rows"


class DatabaseRows:
    """The rows of a table or a query of a database: some of the columns, or all."""

    files: Sequence[Path] = ()
    needs_arrow = frozenset[str]()

    def __init__(self, database: Database, connector: Connector, names: Sequence[str] | None = None) -> None:
        self._database, self._connector, self._open = database, connector, ExitStack()
        self._fields = [field for field in connector.fields.facts if names is None or field.name in names]
        self.parameters: dict[str, Any] = {}
        values = (f"{field.value.format(quoted(field.name))} AS {quoted(field.name)}" for field in self._fields)
        self.query = f"SELECT {', '.join(values)} FROM {_ROWS}"

    def is_untyped(self, column: str) -> bool:
        """Return whether the database gives this column as text."""
        return any(field.untyped for field in self._fields if field.name == column)

    def readings(self, names: Sequence[str]) -> "Sequence[DatabaseRows]":
        """Return the rows with only these columns, to be read once."""
        return [DatabaseRows(self._database, self._connector, names)]

    def check(self) -> None:
        """Refuse the table if its columns have changed since it was opened."""
        check_same(True, self._connector.fields.is_same())

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Start a stream of the rows, or register only the types."""
        schema = pa.schema({field.name: field.sent for field in self._fields})
        if empty:
            connection.register(_ROWS, schema.empty_table())
            return
        run = self._open.enter_context(self._connector.session())
        check_same(self._connector.fields.facts, self._connector.found_fields(run))
        stream = self._open.enter_context(run(selection(self._database, self._fields)))
        connection.register(_ROWS, pa.RecordBatchReader.from_batches(schema, _batches(stream, schema)))

    def close(self) -> None:
        """Close the connection to the database."""
        self._open.close()


def _batches(stream: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in stream:
        if len(batch):  # SQLite's driver guesses types from rows, and without rows it has none
            yield pa.record_batch(batch.columns, schema=schema)


def rows_of_database(database: Database) -> DatabaseRows:
    """The rows, after their columns were read and checked. No row is read, and no message of a driver is passed on."""
    connector: Connector = PostgreSQL(database) if database.system is System.POSTGRESQL else SQLite(database)
    check_names([field.name for field in connector.fields.facts])
    return DatabaseRows(database, connector)
