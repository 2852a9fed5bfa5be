"""Read a DuckDB database file in read-only connections of its own.

The rows are streamed by Arrow's C interface, which needs no PyArrow. Only the columns of a question are selected. A
connection is opened for each question and closed after it.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeAlias

import duckdb

from dpselect._validate import withheld
from dpselect.tables.databases import Database, quoted
from dpselect.tables.duckdb.connector import unreadable
from dpselect.tables.duckdb.names import check_names

ConnectFile: TypeAlias = Callable[[str], duckdb.DuckDBPyConnection]

_ROWS = "dpselect_rows"


class DuckDBFileRows:
    """The rows of a table or a query of a DuckDB file, with connections that `connect` opens."""

    query = f"SELECT * FROM {_ROWS}"
    files: Sequence[Path] = ()
    needs_arrow = frozenset[str]()

    def __init__(self, database: Database, connect: ConnectFile, names: Sequence[str] | None = None) -> None:
        self._database, self._connect, self._open = database, connect, ExitStack()
        self.parameters: dict[str, Any] = {}
        self._names = names
        if names is None:
            check_names(withheld(self._all_names, unreadable(database)))

    def _all_names(self) -> list[str]:
        with closing(self._connect(self._database.address)) as connection:
            return connection.sql(f"SELECT * FROM {self._database.relation} LIMIT 0").columns

    def is_untyped(self, column: str) -> bool:  # noqa: ARG002 - all columns have types
        """Return False."""
        return False

    def readings(self, names: Sequence[str]) -> "Sequence[DuckDBFileRows]":
        """Return the rows with only these columns, to be read once."""
        return [DuckDBFileRows(self._database, self._connect, names)]

    def attach(self, connection: duckdb.DuckDBPyConnection, *, empty: bool = False) -> None:
        """Start a stream of the rows, or of none for the types."""
        columns = "*" if self._names is None else ", ".join(map(quoted, self._names))
        statement = f"SELECT {columns} FROM {self._database.relation}{' LIMIT 0' if empty else ''}"
        own = self._open.enter_context(closing(self._connect(self._database.address)))
        connection.register(_ROWS, own.sql(statement).__arrow_c_stream__())
        self._open.callback(connection.unregister, _ROWS)

    def close(self) -> None:
        """Let go of the stream, and close the connection to the file."""
        self._open.close()
