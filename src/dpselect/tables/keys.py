"""Values as text that is equal exactly where DuckDB takes the values as equal, so that another engine can join them.

Two values of one type have the same key if and only if they are equal: whole numbers, decimals of one scale, dates and
flags are written in one way only, a float by the shortest text that reads back as itself, and moments as microseconds.
What equals no candidate (a missing value, an infinite moment) has no key.
"""

import pyarrow as pa

from dpselect.tables import duckdb_queries
from dpselect.tables.duckdb_lists import arrow_list
from dpselect.tables.duckdb_source import connect
from dpselect.tables.kinds import Column, Kind
from dpselect.tables.values import Values

_LIST = "dpselect_list"


def key(expression: str, kind: Kind) -> str:
    """The key of an expression of DuckDB's SQL, as it comes from `sql.compared`."""
    if kind is Kind.FLOAT:  # zero has two signs
        return f"CASE WHEN {expression} = 0 THEN '0' ELSE CAST({expression} AS VARCHAR) END"
    if kind in (Kind.TIMESTAMP, Kind.ZONED):  # as text they would depend on a time zone
        return f"CASE WHEN isfinite({expression}) THEN CAST(epoch_us({expression}) AS VARCHAR) END"
    return f"CAST({expression} AS VARCHAR)"


def keys_of(values: Values, column: Column) -> pa.Table:
    """The place and the key of every item of a public list, which is compared with a column."""
    connection = connect()
    connection.register(_LIST, arrow_list(values, column))
    listed = duckdb_queries.listed(_LIST, values, column)
    return connection.sql(f"SELECT place, {key('value', values.kind)} AS key FROM ({listed})").to_arrow_table()
