"""Read a DuckDB database file in a read-only connection of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TypeAlias

import duckdb
import pyarrow as pa

from dpselect.tables.databases import Database, quoted
from dpselect.tables.duckdb.connector import Field, described

ConnectFile: TypeAlias = Callable[[str], duckdb.DuckDBPyConnection]


class DuckDBFile:
    """Reads a table or a query of a DuckDB file, with connections that `connect` opens."""

    def __init__(self, database: Database, connect: ConnectFile) -> None:
        self._path, self._connect = database.address, connect
        columns = described(database, self)
        self.fields: Sequence[Field] = [Field(each.name, quoted(each.name), each.type) for each in columns]

    @contextmanager
    def stream(self, statement: str) -> Iterator[pa.RecordBatchReader]:
        """Run a statement in a read-only connection of its own."""
        with closing(self._connect(self._path)) as connection:
            yield connection.sql(statement).to_arrow_reader()
