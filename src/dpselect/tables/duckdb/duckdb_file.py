"""Read a DuckDB database file in read-only connections of its own.

The rows are streamed by Arrow's C interface, which needs no PyArrow. Only the columns of a question are selected. A
connection is opened for each question and closed after it. While it is open, nobody can change the file.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from copy import copy
from pathlib import Path
from typing import Any, TypeAlias

import duckdb

from dpselect._validate import withheld
from dpselect.tables.databases import Database, quoted
from dpselect.tables.duckdb.connector import unreadable
from dpselect.tables.duckdb.names import check_names, check_same
from dpselect.tables.duckdb.values import column_of
from dpselect.tables.files import Watch
from dpselect.tables.kinds import Column

ConnectFile: TypeAlias = Callable[[str], duckdb.DuckDBPyConnection]

_ROWS = "dpselect_rows"


class DuckDBFileRows:
    """The rows of a table or a query of a DuckDB file, with connections that `connect` opens."""

    query = f"SELECT * FROM {_ROWS}"
    files: Sequence[Path] = ()
    needs_arrow = frozenset[str]()

    def __init__(self, database: Database, connect: ConnectFile) -> None:
        self._database, self._connect, self._open = database, connect, ExitStack()
        self.parameters: dict[str, Any] = {}
        # What was not yet written to the file itself is in its log.
        paths = [Path(database.address), Path(f"{database.address}.wal")]
        self._watch = withheld(lambda: Watch(paths, self._found_columns), unreadable(database))
        self._columns = self._watch.facts
        check_names([column.name for column in self._columns])

    def _found_columns(self) -> list[Column]:
        with closing(self._connect(self._database.address)) as connection:
            return _columns_of(connection.sql(f"SELECT * FROM {self._database.relation} LIMIT 0"))

    def is_untyped(self, column: str) -> bool:  # noqa: ARG002 - all columns have types
        """Return False."""
        return False

    def readings(self, names: Sequence[str]) -> "Sequence[DuckDBFileRows]":
        """Return the rows with only these columns, to be read once."""
        other = copy(self)
        other._open, other._columns = ExitStack(), [column for column in self._columns if column.name in names]
        return [other]

    def check(self) -> None:
        """Refuse the table if its columns have changed since it was opened."""
        check_same(True, self._watch.is_same())

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Start a stream of the rows, or of none for the types."""
        columns = ", ".join(quoted(column.name) for column in self._columns)
        statement = f"SELECT {columns} FROM {self._database.relation}{' LIMIT 0' if empty else ''}"
        own = self._open.enter_context(closing(self._connect(self._database.address)))
        rows = own.sql(statement)
        check_same(self._columns, _columns_of(rows))
        connection.register(_ROWS, rows.__arrow_c_stream__())
        self._open.callback(connection.unregister, _ROWS)

    def close(self) -> None:
        """Let go of the stream, and close the connection to the file."""
        self._open.close()


def _columns_of(rows: duckdb.DuckDBPyRelation) -> list[Column]:
    return [column_of(name, str(type_)) for name, type_ in zip(rows.columns, rows.types, strict=True)]
