"""Values as text that is equal exactly where DuckDB takes the values as equal, so that another engine can join them.

Two values of one type have the same key if and only if they are equal: whole numbers, decimals of one scale, dates and
flags are written in one way only, a float by the shortest text that reads back as itself, and moments as microseconds.
What equals no candidate (a missing value, an infinite moment) has no key.
"""

from typing import Any

import duckdb
import pyarrow as pa

from dpselect.errors import InvalidValue
from dpselect.tables import duckdb_queries
from dpselect.tables.duckdb_lists import arrow_list
from dpselect.tables.kinds import Column, Kind
from dpselect.tables.values import Values, public_values

_LIST = "dpselect_list"
_SHOWN_CHARACTERS = 60


def key(expression: str, kind: Kind) -> str:
    """The key of an expression of DuckDB's SQL, as it comes from `sql.compared`."""
    if kind is Kind.FLOAT:  # zero has two signs
        return f"CASE WHEN {expression} = 0 THEN '0' ELSE CAST({expression} AS VARCHAR) END"
    if kind in (Kind.TIMESTAMP, Kind.ZONED):  # as text they would depend on a time zone
        return f"CASE WHEN isfinite({expression}) THEN CAST(epoch_us({expression}) AS VARCHAR) END"
    return f"CAST({expression} AS VARCHAR)"


def keys_of(values: Values, column: Column, connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """The place and the key of every item of a public list, which is compared with a column.

    Only the first of the items that have one key keeps it, so that no row can match two of them.
    """
    listed = (
        f"SELECT place, {key('value', values.kind)} AS key FROM ({duckdb_queries.cast_list(_LIST, values, column)})"
    )
    first = f"SELECT place, CASE WHEN place = min(place) OVER (PARTITION BY key) THEN key END AS key FROM ({listed})"
    return _over_list(values, column, connection).sql(first).to_arrow_table()


def different_values(values: Any, column: Column, connection: duckdb.DuckDBPyConnection) -> Values:
    """A public list, checked against the kind of its column; no two of its items are one value in the column's type.

    A row that is in two groups would count twice for the price of one.
    """
    listed = public_values(values, column)
    equal = (
        f"SELECT min(place), max(place) FROM ({duckdb_queries.cast_list(_LIST, listed, column)})"
        " WHERE value IS NOT NULL GROUP BY value HAVING count(*) > 1 ORDER BY ALL LIMIT 1"
    )
    for first, second in _over_list(listed, column, connection).sql(equal).fetchall():
        raise same_value(listed.items[first], listed.items[second], column)
    return listed


def same_value(first: Any, second: Any, column: Column) -> InvalidValue:
    """The error for two items of a public list that a column cannot tell apart."""
    shown = " and ".join(str(item)[:_SHOWN_CHARACTERS] for item in (first, second))
    return InvalidValue(
        f"candidates must be different values: {shown} are equal when they are compared with the column"
        f" {column.name!r} ({column.kind.value}, {column.type}): keep one of the two"
    )


def _over_list(values: Values, column: Column, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A cursor that can query the list."""
    cursor = connection.cursor()
    cursor.register(_LIST, arrow_list(values, column))
    return cursor
