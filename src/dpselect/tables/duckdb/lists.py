"""Public lists of candidates and groups, as tables that DuckDB joins with the rows, and as keys for other engines.

A key is a text that is equal exactly where DuckDB takes the values as equal, so that another engine can join by it. Two
values of one type have the same key if and only if they are equal: whole numbers, decimals of one scale, dates and
flags are written in one way only, a float by the shortest text that reads back as itself, and moments as microseconds.
What equals no candidate (a missing value, an infinite moment) has no key.
"""

from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from dpselect.errors import InvalidValue
from dpselect.tables.candidates import Values, digits_after_point, public_values
from dpselect.tables.duckdb import expressions as sql
from dpselect.tables.schema import Column, Kind


def arrow_list(values: Values, column: Column) -> pa.Table:
    """A public list as a table; whole and decimal numbers are text, which the statement casts."""
    if values.kind in (Kind.INTEGER, Kind.DECIMAL):
        items = pa.array([_written(item, column) for item in values.items], pa.string())
    else:
        types = {Kind.TIMESTAMP: pa.timestamp("us"), Kind.ZONED: pa.timestamp("us", "UTC")}
        items = pa.array(values.items, types.get(values.kind))
    return pa.table({"place": pa.array(range(len(values)), pa.int64()), "value": items})


def _written(item: int | Decimal, column: Column) -> str | None:
    """The number in digits; None if it has more digits after the point than the column, and can equal no value."""
    if isinstance(item, Decimal):
        too_fine = column.kind is Kind.DECIMAL and digits_after_point(item) > column.digits
        return None if too_fine else f"{item:f}"
    return str(item)


_LIST = "dpselect_list"
_SHOWN_CHARACTERS = 60


def cast_list(name: str, values: Values, column: Column) -> str:
    """A public list in the type in which it is compared; NULL equals nothing."""
    return f"SELECT place, TRY_CAST(value AS {sql.type_of_candidates(column, values.kind)}) AS value FROM {name}"


def listed(name: str, values: Values, column: Column) -> str:
    """The different values of a public list, each once, so that no row can match two of its items.

    Items that are equal in the column's type are refused before (`different_values`); this is a second wall.
    """
    cast = cast_list(name, values, column)
    return f"SELECT min(place) AS place, value FROM ({cast}) WHERE value IS NOT NULL GROUP BY value"


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
    listed = f"SELECT place, {key('value', values.kind)} AS key FROM ({cast_list(_LIST, values, column)})"
    first = f"SELECT place, CASE WHEN place = min(place) OVER (PARTITION BY key) THEN key END AS key FROM ({listed})"
    return _over_list(values, column, connection).sql(first).to_arrow_table()


def different_values(
    values: Any, column: Column, connection: duckdb.DuckDBPyConnection, name: str = "candidates"
) -> Values:
    """A public list, checked against the kind of its column; no two of its items are one value in the column's type.

    A row that is in two groups would count twice for the price of one.
    """
    listed = public_values(values, column, name)
    equal = (
        f"SELECT min(place), max(place) FROM ({cast_list(_LIST, listed, column)})"
        " WHERE value IS NOT NULL GROUP BY value HAVING count(*) > 1 ORDER BY ALL LIMIT 1"
    )
    for first, second in _over_list(listed, column, connection).sql(equal).fetchall():
        raise same_value(listed.items[first], listed.items[second], column, name)
    return listed


def same_value(first: Any, second: Any, column: Column, name: str = "candidates") -> InvalidValue:
    """The error for two items of a public list that a column cannot tell apart."""
    shown = " and ".join(str(item)[:_SHOWN_CHARACTERS] for item in (first, second))
    return InvalidValue(
        f"{name} must be different values: {shown} are equal when they are compared with the column"
        f" {column.name!r} ({column.kind.value}, {column.type}): keep one of the two"
    )


def _over_list(values: Values, column: Column, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A cursor that can query the list."""
    cursor = connection.cursor()
    cursor.register(_LIST, arrow_list(values, column))
    return cursor
