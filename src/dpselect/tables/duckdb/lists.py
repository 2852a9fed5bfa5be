"""Public lists of candidates and groups, as tables that DuckDB joins with the rows, and as keys for other engines.

Both hold the values in their canonical form (`duckdb.forms`), each once. A value that equals no candidate has no key.
"""

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb
import numpy as np

from dpselect.errors import InvalidValue
from dpselect.tables.candidates import EPOCH, EPOCH_ZONED, MICROSECOND, Values, digits_after_point, public_values
from dpselect.tables.duckdb.forms import Form, form_of
from dpselect.tables.groups import Groups
from dpselect.tables.schema import Column, Kind

if TYPE_CHECKING:
    import pyarrow as pa

Columns: TypeAlias = dict[str, np.ndarray[Any, Any]]  # what DuckDB registers as a table, without PyArrow or pandas

_FIRST_DAY = datetime.date(1970, 1, 1).toordinal()


def columns_of_list(values: Values, form: Form) -> Columns:
    """A public list as a table, which `cast_list` reads: the place of each item, and its value."""
    return {"place": np.arange(len(values.items)), "value": _sent(values, form)}


def columns_of_groups(groups: Groups) -> Columns:
    """The public groups as a table, which `cast_groups` reads, with the values of each of their columns."""
    values = zip(groups.members, forms_of(groups), strict=True)
    arrays = {f"value{i}": _sent(own, form) for i, (own, form) in enumerate(values)}
    return {"place": np.arange(len(groups)), **arrays}


def _sent(values: Values, form: Form) -> np.ndarray[Any, Any]:
    """The values in a type that NumPy and DuckDB share; `_received` reads them.

    Integers and decimals are text. Days and moments are counted from 1970: in days, and in microseconds.
    """
    kind, items = values.kind, values.items
    if kind in (Kind.INTEGER, Kind.DECIMAL):
        return np.array([_written(item, form) for item in items], dtype=object)
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


def _written(item: int | Decimal, form: Form) -> str | None:
    """The number as digits; None if it has more decimal places than the form, whose cast would round it."""
    if isinstance(item, Decimal):
        return None if digits_after_point(item) > form.digits else f"{item:f}"
    return str(item)


_LIST = "dpselect_list"
_SHOWN_CHARACTERS = 60


def cast_list(name: str, form: Form) -> str:
    """A public list in its form; NULL equals nothing."""
    return f"SELECT place, {form.cast(_received('value', form.kind))} AS value FROM {name}"


def listed(name: str, form: Form) -> str:
    """The distinct forms of a public list, so that no row can match two of its items.

    Items with the same form were refused before (`different_values`); this is a second safeguard.
    """
    cast = cast_list(name, form)
    return f"SELECT min(place) AS place, value FROM ({cast}) WHERE value IS NOT NULL GROUP BY value"


def forms_of(groups: Groups) -> list[Form]:
    """The forms of the columns that make groups."""
    return [form_of(column, kind) for column, kind in zip(groups.columns, groups.kinds, strict=True)]


def members_equal(groups: Groups, group: str) -> str:
    """DuckDB's SQL that compares the columns member0, member1 and so on with the values of a group."""
    return " AND ".join(form.equal(f"member{i}", f"{group}.value{i}") for i, form in enumerate(forms_of(groups)))


def cast_groups(name: str, groups: Groups) -> str:
    """The public groups in their forms; NULL equals nothing."""
    received = ((_received(f"value{i}", form.kind), form) for i, form in enumerate(forms_of(groups)))
    casts = ", ".join(f"{form.cast(value)} AS value{i}" for i, (value, form) in enumerate(received))
    return f"SELECT place, {casts} FROM {name}"


def listed_groups(name: str, groups: Groups) -> str:
    """The distinct public groups, so that no row can match two of them: a second safeguard, as in `listed`."""
    values = [f"value{i}" for i in range(len(groups.columns))]
    known = " AND ".join(f"{value} IS NOT NULL" for value in values)
    every = ", ".join(values)
    return f"SELECT min(place) AS place, {every} FROM ({cast_groups(name, groups)}) WHERE {known} GROUP BY {every}"


def keys_of(values: Values, form: Form, connection: duckdb.DuckDBPyConnection) -> "pa.Table":
    """The position and the key of every item of a public list.

    Of several items with the same key, only the first keeps it, so that no row can match two of them.
    """
    if _are_texts(values, form):
        import pyarrow as pa  # noqa: PLC0415 - keys are for engines that need it

        return pa.table({"place": np.arange(len(values.items)), "key": pa.array(values.items, pa.string())})
    listed = f"SELECT place, {form.key('value')} AS key FROM ({cast_list(_LIST, form)})"
    first = f"SELECT place, CASE WHEN place = min(place) OVER (PARTITION BY key) THEN key END AS key FROM ({listed})"
    return _over_list(values, form, connection).sql(first).to_arrow_table()


def keys_of_groups(groups: Groups, connection: duckdb.DuckDBPyConnection) -> "pa.Table":
    """The position of every group, and a key for each of its columns: grp, member0, member1 and so on.

    Groups that no row can match are left out. Of several groups with the same keys, only the first is there.
    """
    cursor = connection.cursor()
    cursor.register(_LIST, columns_of_groups(groups))
    keys = ", ".join(f"{form.key(f'value{i}')} AS member{i}" for i, form in enumerate(forms_of(groups)))
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
    form = form_of(column, listed.kind)
    if _are_texts(listed, form):
        return listed
    equal = (
        f"SELECT min(place), max(place) FROM ({cast_list(_LIST, form)})"
        " WHERE value IS NOT NULL GROUP BY value HAVING count(*) > 1 ORDER BY ALL LIMIT 1"
    )
    for first, second in _over_list(listed, form, connection).sql(equal).fetchall():
        raise same_value(listed.items[first], listed.items[second], column, name)
    return listed


def _are_texts(values: Values, form: Form) -> bool:
    """Whether the items are compared as the texts that they are: then different ones are different for DuckDB too."""
    are_plain = values.kind is Kind.TEXT and set(map(type, values.items)) == {str}
    return are_plain and form.type == "VARCHAR"


def same_value(first: Any, second: Any, column: Column, name: str = "candidates") -> InvalidValue:
    """The error for two items of a public list that are equal in the type of the column."""
    shown = " and ".join(str(item)[:_SHOWN_CHARACTERS] for item in (first, second))
    return InvalidValue(
        f"{name} must be different values: {shown} are equal when compared with the column"
        f" {column.name!r} ({column.kind.value}, {column.type}): keep one of the two"
    )


def _over_list(values: Values, form: Form, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A cursor with the list registered."""
    cursor = connection.cursor()
    cursor.register(_LIST, columns_of_list(values, form))
    return cursor
