"""Public lists of candidates and groups, as tables that DuckDB joins with the rows, and as keys for other engines.

A key is a text that is equal exactly if DuckDB considers the values equal, so that another engine can join by it. Two
values of one type have the same key if and only if they are equal: whole numbers, decimals of one scale, dates and
flags have only one text, a float is written with as many digits as read back, and a timestamp as microseconds.
A value that equals no candidate (a missing value, an infinite timestamp) has no key.
"""

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb
import numpy as np

from dpselect.errors import InvalidValue
from dpselect.tables.candidates import EPOCH, EPOCH_ZONED, MICROSECOND, Values, digits_after_point, public_values
from dpselect.tables.duckdb import expressions
from dpselect.tables.groups import Groups
from dpselect.tables.schema import Column, Kind

if TYPE_CHECKING:
    import pyarrow as pa

Columns: TypeAlias = dict[str, np.ndarray[Any, Any]]  # what DuckDB registers as a table, without PyArrow or pandas

_FIRST_DAY = datetime.date(1970, 1, 1).toordinal()


def columns_of_list(values: Values, column: Column) -> Columns:
    """A public list as a table, which `cast_list` reads: the place of each item, and its value."""
    return {"place": np.arange(len(values.items)), "value": _sent(values, column)}


def columns_of_groups(groups: Groups) -> Columns:
    """The public groups as a table, which `cast_groups` reads, with the values of each of their columns."""
    values = zip(groups.members, groups.columns, strict=True)
    arrays = {f"value{i}": _sent(own, column) for i, (own, column) in enumerate(values)}
    return {"place": np.arange(len(groups)), **arrays}


def _sent(values: Values, column: Column) -> np.ndarray[Any, Any]:
    """The values in a type that NumPy and DuckDB share; `_received` reads them.

    Integers and decimals are text. Days and moments are counted from 1970: in days, and in microseconds.
    """
    kind, items = values.kind, values.items
    if kind in (Kind.INTEGER, Kind.DECIMAL):
        return np.array([_written(item, column) for item in items], dtype=object)
    if kind is Kind.DATE:
        return np.array([item.toordinal() - _FIRST_DAY for item in items], dtype=np.int32)
    if kind in (Kind.TIMESTAMP, Kind.ZONED):
        first = EPOCH if kind is Kind.TIMESTAMP else EPOCH_ZONED
        return np.array([(item - first) // MICROSECOND for item in items], dtype=np.int64)
    types = {Kind.BOOLEAN: np.bool_, Kind.FLOAT: np.float64}
    return np.array(items, dtype=types.get(kind, object))


def _received(name: str, kind: Kind) -> str:
    """The DuckDB expression for a value that `_sent` wrote."""
    read = {
        Kind.DATE: f"DATE '1970-01-01' + {name}",
        Kind.TIMESTAMP: f"make_timestamp({name})",
        Kind.ZONED: f"make_timestamptz({name})",
    }
    return read.get(kind, name)


def _written(item: int | Decimal, column: Column) -> str | None:
    """The number as digits; None if it has more decimal places than the column and so equals no value."""
    if isinstance(item, Decimal):
        too_fine = column.kind is Kind.DECIMAL and digits_after_point(item) > column.digits
        return None if too_fine else f"{item:f}"
    return str(item)


_LIST = "dpselect_list"
_SHOWN_CHARACTERS = 60


def cast_list(name: str, values: Values, column: Column) -> str:
    """A public list in the type for comparison; NULL equals nothing."""
    comparable = expressions.type_of_candidates(column, values.kind)
    return f"SELECT place, TRY_CAST({_received('value', values.kind)} AS {comparable}) AS value FROM {name}"


def listed(name: str, values: Values, column: Column) -> str:
    """The distinct values of a public list, so that no row can match two of its items.

    Items that are equal in the type of the column were refused before (`different_values`); this is a second safeguard.
    """
    cast = cast_list(name, values, column)
    return f"SELECT min(place) AS place, value FROM ({cast}) WHERE value IS NOT NULL GROUP BY value"


def cast_groups(name: str, groups: Groups) -> str:
    """The public groups in the types for comparison; NULL equals nothing."""
    received = [_received(f"value{i}", kind) for i, kind in enumerate(groups.kinds)]
    types = [expressions.type_of_candidates(*typed) for typed in zip(groups.columns, groups.kinds, strict=True)]
    typed = enumerate(zip(received, types, strict=True))
    casts = ", ".join(f"TRY_CAST({value} AS {type_}) AS value{i}" for i, (value, type_) in typed)
    return f"SELECT place, {casts} FROM {name}"


def listed_groups(name: str, groups: Groups) -> str:
    """The distinct public groups, so that no row can match two of them: a second safeguard, as in `listed`."""
    values = [f"value{i}" for i in range(len(groups.columns))]
    known = " AND ".join(f"{value} IS NOT NULL" for value in values)
    every = ", ".join(values)
    return f"SELECT min(place) AS place, {every} FROM ({cast_groups(name, groups)}) WHERE {known} GROUP BY {every}"


def key(expression: str, kind: Kind) -> str:
    """The key of a DuckDB expression from `sql.compared`."""
    if kind is Kind.FLOAT:  # there are two zeros
        # DuckDB's own text of a DOUBLE is wrong for some powers of two: that of 2**91 is the text of 2**92.
        double = f"format('{{:.17g}}', CAST({expression} AS DOUBLE))"
        text = f"CASE WHEN typeof({expression}) = 'FLOAT' THEN CAST({expression} AS VARCHAR) ELSE {double} END"
        return f"CASE WHEN {expression} = 0 THEN '0' ELSE {text} END"
    if kind in (Kind.TIMESTAMP, Kind.ZONED):  # their text would depend on a time zone
        return f"CASE WHEN isfinite({expression}) THEN CAST(epoch_us({expression}) AS VARCHAR) END"
    return f"CAST({expression} AS VARCHAR)"


def keys_of(values: Values, column: Column, connection: duckdb.DuckDBPyConnection) -> "pa.Table":
    """The position and the key of every item of a public list that is compared with a column.

    Of several items with the same key, only the first keeps it, so that no row can match two of them.
    """
    if _are_texts(values, column):
        import pyarrow as pa  # noqa: PLC0415 - keys are for engines that need it

        return pa.table({"place": np.arange(len(values.items)), "key": pa.array(values.items, pa.string())})
    listed = f"SELECT place, {key('value', values.kind)} AS key FROM ({cast_list(_LIST, values, column)})"
    first = f"SELECT place, CASE WHEN place = min(place) OVER (PARTITION BY key) THEN key END AS key FROM ({listed})"
    return _over_list(values, column, connection).sql(first).to_arrow_table()


def keys_of_groups(groups: Groups, connection: duckdb.DuckDBPyConnection) -> "pa.Table":
    """The position of every group, and a key for each of its columns: grp, member0, member1 and so on.

    Groups that no row can match are left out. Of several groups with the same keys, only the first is there.
    """
    cursor = connection.cursor()
    cursor.register(_LIST, columns_of_groups(groups))
    keys = ", ".join(f"{key(f'value{i}', kind)} AS member{i}" for i, kind in enumerate(groups.kinds))
    members = [f"member{i}" for i in range(len(groups.columns))]
    known, every = " AND ".join(f"{member} IS NOT NULL" for member in members), ", ".join(members)
    listed = f"SELECT place, {keys} FROM ({cast_groups(_LIST, groups)})"
    first = f"SELECT min(place) AS grp, {every} FROM ({listed}) WHERE {known} GROUP BY {every}"
    return cursor.sql(first).to_arrow_table()


def different_values(
    values: Any, column: Column, connection: duckdb.DuckDBPyConnection, name: str = "candidates"
) -> Values:
    """A public list, checked against the kind of its column. No two items are equal in the type of the column.

    Otherwise a row could be in two groups and count twice at the cost of one.
    """
    listed = public_values(values, column, name)
    if _are_texts(listed, column):
        return listed
    equal = (
        f"SELECT min(place), max(place) FROM ({cast_list(_LIST, listed, column)})"
        " WHERE value IS NOT NULL GROUP BY value HAVING count(*) > 1 ORDER BY ALL LIMIT 1"
    )
    for first, second in _over_list(listed, column, connection).sql(equal).fetchall():
        raise same_value(listed.items[first], listed.items[second], column, name)
    return listed


def _are_texts(values: Values, column: Column) -> bool:
    """Whether the items are compared as the texts that they are: then different ones are different for DuckDB too."""
    are_plain = values.kind is Kind.TEXT and set(map(type, values.items)) == {str}
    return are_plain and expressions.type_of_candidates(column, values.kind) == "VARCHAR"


def same_value(first: Any, second: Any, column: Column, name: str = "candidates") -> InvalidValue:
    """The error for two items of a public list that are equal in the type of the column."""
    shown = " and ".join(str(item)[:_SHOWN_CHARACTERS] for item in (first, second))
    return InvalidValue(
        f"{name} must be different values: {shown} are equal when compared with the column"
        f" {column.name!r} ({column.kind.value}, {column.type}): keep one of the two"
    )


def _over_list(values: Values, column: Column, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A cursor with the list registered."""
    cursor = connection.cursor()
    cursor.register(_LIST, columns_of_list(values, column))
    return cursor
