"""Read a DuckDB database file in a read-only connection of its own."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress

import duckdb
import pyarrow as pa

from dpselect.tables.databases import Database, quoted
from dpselect.tables.duckdb.databases import Field, described
from dpselect.tables.duckdb.source import OFFLINE, spill_path


class DuckDBFile:
    """Reads a table or a query of a DuckDB file."""

    def __init__(self, database: Database) -> None:
        self._path = database.address
        columns = described(database, self)
        self.fields: Sequence[Field] = [Field(each.name, quoted(each.name), each.type) for each in columns]

    @contextmanager
    def stream(self, statement: str) -> Iterator[pa.RecordBatchReader]:
        """Run a statement in a read-only connection of its own."""
        with closing(duckdb.connect(self._path, read_only=True, config=OFFLINE)) as connection:
            # Not a part of the configuration: DuckDB refuses two connections to a file that differ in it.
            with suppress(duckdb.Error):
                connection.execute("SET temp_directory = $path", {"path": spill_path()})
            yield connection.sql(statement).to_arrow_reader()
