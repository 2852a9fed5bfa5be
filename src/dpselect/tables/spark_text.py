"""The DuckDB inside of a worker, and text that arrives there as bytes: what is no UTF-8 is a missing value."""

import duckdb
import pyarrow as pa

from dpselect.tables.duckdb_source import connect
from dpselect.tables.sql import identifier

_BYTES = "dpselect_bytes"


def connect_in_worker() -> duckdb.DuckDBPyConnection:
    """A private connection that uses the one core of its task, and writes nothing: it sees one block at a time."""
    connection = connect(spills=False)
    connection.execute("SET threads = 1")
    return connection


def decoded(table: pa.Table, connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """The table with its bytes as text.

    In a statement of its own: DuckDB 1.5 forgets rows where TRY meets a condition.
    """
    texts = [field.name for field in table.schema if pa.types.is_binary(field.type)]
    if not texts:
        return table
    connection.register(_BYTES, table.select(texts))
    selected = ", ".join(f"TRY(decode({identifier(name)})) AS {identifier(name)}" for name in texts)
    found = connection.sql(f"SELECT {selected} FROM {_BYTES}").to_arrow_table()
    names = table.column_names
    return pa.table([found[name] if name in texts else table[name] for name in names], names)
