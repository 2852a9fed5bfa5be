"""The canonical form of values: the one place that decides whether a value of a column equals a candidate.

Both are cast to one type of DuckDB, which follows from the column and the kind of the candidates, and a cast never
happens unless it is written here: an implicit one once made a float equal to thousands of whole numbers. A value of a
row has at most one form, because a form is an expression of that value. Different candidates of a list have different
forms, because the list keeps one of those with the same form (`listed`). So a row equals at most one candidate,
for every type and kind. In Spark, where DuckDB's types do not exist, two forms are equal if their keys are.
"""

import datetime
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dpselect.errors import InvalidValue
from dpselect.tables.candidates import Groups, Values, public_values
from dpselect.tables.kinds import COMPARABLE, EPOCH, EPOCH_ZONED, MICROSECOND, Column, Kind, digits_after_point

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

CANDIDATES, GROUPS = "dpselect_candidates", "dpselect_groups"


# The number of digits kept after the decimal point of a number written as text.
TEXT_DIGITS = 9


def identifier(name: str) -> str:
    """A quoted identifier: nothing in the name can end the quotes."""
    return '"' + name.replace('"', '""') + '"'


_WIDE_INTEGERS = ("UBIGINT", "HUGEINT")


_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", *_WIDE_INTEGERS)


_KINDS = {
    "BOOLEAN": Kind.BOOLEAN,
    **dict.fromkeys(_INTEGERS, Kind.INTEGER),
    "FLOAT": Kind.FLOAT,
    "DOUBLE": Kind.FLOAT,
    "VARCHAR": Kind.TEXT,
    "UUID": Kind.TEXT,
    "DATE": Kind.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Kind.TIMESTAMP),
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"), Kind.ZONED),
}


def column_of(name: str, type_: str, untyped: bool = False) -> Column:
    """The column that DuckDB describes; text is untyped if its source has no types."""
    decimal = re.fullmatch(r"DECIMAL\(([0-9]+),([0-9]+)\)", type_)
    if decimal is not None:
        return Column(name, type_, Kind.DECIMAL, int(decimal[2]), precision=int(decimal[1]))
    if type_.startswith("ENUM(") and type_.endswith(")"):  # but not a list of enums
        return Column(name, "ENUM", Kind.TEXT)
    kind = _KINDS.get(type_, Kind.OTHER)
    return Column(name, _outer(type_) if kind is Kind.OTHER else type_, kind, untyped=untyped and type_ == "VARCHAR")


def _outer(type_: str) -> str:
    """A type without its parts: the members of an enum and the names of fields are data if they were inferred."""
    if re.fullmatch(r"[A-Z0-9_ ]+(\([0-9]+,[0-9]+\))?(\[[0-9]*\])*", type_):
        return type_
    return "LIST" if type_.endswith("]") else type_.partition("(")[0].strip('"')


def is_wide(column: Column) -> bool:
    """Whether the integers of a column exceed 64 bits with a sign."""
    return column.type in _WIDE_INTEGERS


def value_of(column: Column, kind: Kind) -> str:
    """The value of a row, in a text the one of this kind; NULL for what does not fit.."""
    x = identifier(column.name)
    if column.kind is Kind.TEXT:
        return from_text(column, kind)
    if column.kind is Kind.INTEGER:
        return f"TRY_CAST({x} AS HUGEINT)" if is_wide(column) else f"CAST({x} AS BIGINT)"
    if column.kind is Kind.ZONED:
        return f"TRY_CAST({x} AS TIMESTAMPTZ)"
    return f"TRY_CAST({x} AS TIMESTAMP)" if column.kind is Kind.TIMESTAMP else x


def present(column: Column) -> str:
    """Whether a value is not missing; NULL or false if it is.

    A text that cannot be read as a number or a date is not missing. NaN is, and a timestamp that does not fit.
    """
    x = identifier(column.name)
    if column.kind is Kind.FLOAT:  # without isnan, as in `places`
        infinite = f"{x} = CAST('inf' AS DOUBLE) OR {x} = CAST('-inf' AS DOUBLE)"
        return f"CASE WHEN {x} * 0 = 0 THEN true ELSE {infinite} END"
    return f"{x if column.kind is Kind.TEXT else value_of(column, column.kind)} IS NOT NULL"


def from_text(column: Column, kind: Kind) -> str:
    x = identifier(column.name) if column.type == "VARCHAR" else f"CAST({identifier(column.name)} AS VARCHAR)"
    if kind is Kind.TEXT:
        return x
    if kind is Kind.INTEGER:  # DuckDB would read 12.5 as 13
        return rf"CASE WHEN regexp_full_match({x}, '\s*[-+]?[0-9]+\s*') THEN TRY_CAST({x} AS HUGEINT) END"
    types = {Kind.BOOLEAN: "BOOLEAN", Kind.DECIMAL: f"DECIMAL(38,{2 * TEXT_DIGITS})", Kind.FLOAT: "DOUBLE"}
    return f"TRY_CAST({x} AS {types.get(kind, kind.name)})"


@dataclass(frozen=True)
class Form:
    """How the values of a column are compared with values of a kind.

    Attributes:
        kind: the kind of the candidates.
        type: the type of DuckDB in which both sides are compared.
        value: DuckDB's SQL of the column in this type; NULL for a value that equals no value of the kind.
        digits: the number of digits after the point that the type holds, for decimals.
    """

    kind: Kind
    type: str
    value: str
    digits: int = 0

    def cast(self, candidate: str) -> str:
        """DuckDB's SQL of a candidate in this form; NULL if no value can equal it."""
        return f"TRY_CAST({candidate} AS {self.type})"

    def equal(self, value: str, candidate: str) -> str:
        """DuckDB's SQL that compares two forms. No operand has another type, so DuckDB adds no cast of its own."""
        return f"CAST({value} AS {self.type}) = CAST({candidate} AS {self.type})"

    def key(self, expression: str) -> str:
        """DuckDB's SQL of a text that equals another one exactly if the forms do; NULL for infinite moments."""
        if self.kind is Kind.FLOAT:  # there are two zeros
            # DuckDB's own text of a DOUBLE is wrong for some powers of two: that of 2**91 is the text of 2**92.
            exact = f"format('{{:.17g}}', {expression})"
            text = f"CAST({expression} AS VARCHAR)" if self.type == "FLOAT" else exact
            return f"CASE WHEN {expression} = 0 THEN '0' ELSE {text} END"
        if self.kind in (Kind.TIMESTAMP, Kind.ZONED):  # their text would depend on a time zone
            return f"CASE WHEN isfinite({expression}) THEN CAST(epoch_us({expression}) AS VARCHAR) END"
        return f"CAST({expression} AS VARCHAR)"


def form_of(column: Column, kind: Kind) -> Form:
    """The form in which values of a column are compared with values of a kind."""
    if column.kind is Kind.TEXT:
        digits = 2 * TEXT_DIGITS if kind is Kind.DECIMAL else 0
        return _read(column, kind, _TYPES_OF_TEXTS.get(kind, kind.name), digits)
    if kind not in COMPARABLE[column.kind]:
        raise TypeError(f"{column.kind.value} cannot be compared with {kind.value}")
    if kind is Kind.INTEGER:
        return _of_integers(column)
    # In a column of 32-bit floats, the candidate 0.1 is the 32-bit float nearest to 0.1.
    own = column.type if kind in (Kind.DECIMAL, Kind.FLOAT) else _TYPES.get(kind, kind.name)
    return _read(column, kind, own, column.digits)


_TYPES = {Kind.TEXT: "VARCHAR", Kind.ZONED: "TIMESTAMPTZ"}
_TYPES_OF_TEXTS = {
    **_TYPES,
    Kind.INTEGER: "HUGEINT",
    Kind.DECIMAL: f"DECIMAL(38,{2 * TEXT_DIGITS})",
    Kind.FLOAT: "DOUBLE",
}


def _read(column: Column, kind: Kind, type_: str, digits: int = 0) -> Form:
    return Form(kind, type_, f"CAST({value_of(column, kind)} AS {type_})", digits)


def _of_integers(column: Column) -> Form:
    if column.kind is Kind.INTEGER:
        return _read(column, Kind.INTEGER, "HUGEINT" if is_wide(column) else "BIGINT")
    # The cast rounds 12.5, and is refused for NaN and infinities. A whole number comes back as it was, because HUGEINT
    # holds it exactly. Any other number does not: a type that holds 12.5 also holds 12 and 13, or they do not fit.
    x = identifier(column.name)
    rounded = f"TRY_CAST({x} AS HUGEINT)"
    return Form(Kind.INTEGER, "HUGEINT", f"CASE WHEN TRY_CAST({rounded} AS {column.type}) = {x} THEN {rounded} END")


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


def keys_of(values: Values, form: Form, connection: "duckdb.DuckDBPyConnection") -> "pa.Table":
    """The position and the key of every item of a public list.

    Of several items with the same key, only the first keeps it, so that no row can match two of them.
    """
    if _are_texts(values, form):
        import pyarrow as pa  # noqa: PLC0415 - keys are for engines that need it

        return pa.table({"place": np.arange(len(values.items)), "key": pa.array(values.items, pa.string())})
    listed = f"SELECT place, {form.key('value')} AS key FROM ({cast_list(_LIST, form)})"
    first = f"SELECT place, CASE WHEN place = min(place) OVER (PARTITION BY key) THEN key END AS key FROM ({listed})"
    return _over_list(values, form, connection).sql(first).to_arrow_table()


def keys_of_groups(groups: Groups, connection: "duckdb.DuckDBPyConnection") -> "pa.Table":
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
    values: Any, column: Column, connection: "duckdb.DuckDBPyConnection", name: str = "candidates"
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


def _over_list(values: Values, form: Form, connection: "duckdb.DuckDBPyConnection") -> "duckdb.DuckDBPyConnection":
    """A cursor with the list registered."""
    cursor = connection.cursor()
    cursor.register(_LIST, columns_of_list(values, form))
    return cursor
