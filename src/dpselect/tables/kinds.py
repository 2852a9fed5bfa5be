"""The kinds of columns. The kind of a column is part of the public schema."""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from numbers import Integral
from typing import Any

import numpy as np

from dpselect._messages import SHOWN_CHARACTERS, install_command, question_for, shown_names
from dpselect._numbers import NotExact, NotFinite, decimal_from_text, rational_from_text
from dpselect.errors import InvalidType, InvalidValue, MissingExtra

_SHOWN_COLUMNS = 30


class Kind(Enum):
    """The kind of the values of a column."""

    BOOLEAN = "true or false"
    INTEGER = "whole numbers"
    DECIMAL = "decimal numbers"
    FLOAT = "floating-point numbers"
    TEXT = "text"
    DATE = "dates"
    TIMESTAMP = "timestamps"
    ZONED = "timestamps with a time zone"
    OTHER = "something that no question can be asked about"


# The kinds of values with which the values of a column can be compared exactly.
COMPARABLE: dict[Kind, frozenset[Kind]] = {
    Kind.BOOLEAN: frozenset({Kind.BOOLEAN}),
    Kind.INTEGER: frozenset({Kind.INTEGER}),
    Kind.DECIMAL: frozenset({Kind.INTEGER, Kind.DECIMAL}),
    Kind.FLOAT: frozenset({Kind.INTEGER, Kind.FLOAT}),
    Kind.TEXT: frozenset({Kind.TEXT}),
    Kind.DATE: frozenset({Kind.DATE}),
    Kind.TIMESTAMP: frozenset({Kind.TIMESTAMP}),
    Kind.ZONED: frozenset({Kind.ZONED}),
    Kind.OTHER: frozenset(),
}
_IN_WRITING = frozenset(Kind) - {Kind.OTHER, Kind.ZONED}


@dataclass(frozen=True)
class Column:
    """A column of the public schema: its name, the engine's type, what that holds, and digits after the point.

    A column of text is `untyped` if its source has no types, like a CSV file. Then it may hold values of any kind,
    written as text, and the question determines the kind.

    Attributes:
        name: the name of the column.
        type: its type in the engine.
        kind: the kind of its values.
        digits: the number of digits after the decimal point, for decimals.
        untyped: whether its source has no types.
        precision: the number of all digits, for decimals.
        needs_arrow: whether only PyArrow can read the column, and it is not installed.

    >>> Column("cost", "BIGINT", Kind.INTEGER).kind.value
    'whole numbers'
    """

    name: str
    type: str
    kind: Kind
    digits: int = 0
    untyped: bool = False
    precision: int = 0
    needs_arrow: bool = field(default=False, repr=False)

    @property
    def comparable(self) -> frozenset[Kind]:
        """Return the kinds of values with which those of the column can be compared."""
        return _IN_WRITING if self.untyped else COMPARABLE[self.kind]


def known_column(
    columns: Mapping[str, Column], name: Any, what: str, elsewhere: Mapping[str, str] | None = None
) -> Column:
    """The column of this name. An error lists the existing names, which are public, unless they look like data.

    `elsewhere` has names that are no columns of the table, and what to do about each.
    """
    if not isinstance(name, str):
        raise InvalidType(f"{what} must be the name of a column, got {type(name).__name__}")
    found = columns.get(name)
    if found is None:
        names = shown_names(columns, _SHOWN_COLUMNS)
        has = names or f"{len(columns)} others, which look like data: the first row must hold the column names"
        where = what if what == "column" else f"{what}: the column"
        near = [known for known in list(columns)[:_SHOWN_COLUMNS] if len(known) <= SHOWN_CHARACTERS] if names else []
        meant = question_for(name, near, elsewhere or {})
        raise InvalidValue(f"{where} {name[:SHOWN_CHARACTERS]!r} is not in the table, which has {has}{meant}")
    if found.kind is Kind.OTHER:
        raise InvalidType(f"{what} {name!r} has the type {found.type}, about which no question can be asked")
    if found.needs_arrow:
        remedy = install_command("pyarrow")
        raise MissingExtra(f"{what} {name!r} has {found.kind.value} that only PyArrow can read: {remedy}")
    return found


def _boolean_from_text(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _integer_from_text(text: str) -> int:
    number = rational_from_text(text)
    if number.denominator != 1:
        raise ValueError
    return int(number)


def _zoned_from_text(text: str) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(text.strip())
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


_READERS: dict[Kind, Callable[[str], Any]] = {
    Kind.BOOLEAN: _boolean_from_text,
    Kind.INTEGER: _integer_from_text,
    Kind.DECIMAL: decimal_from_text,
    Kind.FLOAT: lambda text: float(decimal_from_text(text)),
    Kind.TEXT: str,
    Kind.DATE: lambda text: datetime.date.fromisoformat(text.strip()),
    Kind.TIMESTAMP: lambda text: datetime.datetime.fromisoformat(text.strip()),
    Kind.ZONED: _zoned_from_text,
}


_EXAMPLES = {
    Kind.BOOLEAN: "true or false",
    Kind.INTEGER: "1500",
    Kind.DECIMAL: "1234.5, with a point",
    Kind.FLOAT: "1234.5, with a point",
    Kind.DATE: "2026-01-31",
    Kind.TIMESTAMP: "2026-01-31 23:59:00",
    Kind.ZONED: "2026-01-31 23:59:00+00:00",
}


def value_from_text(text: str, kind: Kind, name: str) -> Any:
    """A public value of this kind, parsed from text. Messages use the name."""
    try:
        return _READERS[kind](text)
    except (ValueError, ArithmeticError, KeyError, NotExact, NotFinite):
        example = f": write it as {_EXAMPLES[kind]}" if kind in _EXAMPLES else ""
        cannot = f"{name}: {text[:40]!r} cannot be read as one of the {kind.value} of the column"
        raise InvalidValue(f"{cannot}{example}") from None


EPOCH_DAY = datetime.date(1970, 1, 1)


EPOCH = datetime.datetime(1970, 1, 1)  # for columns without a time zone


EPOCH_ZONED = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


MICROSECOND = datetime.timedelta(microseconds=1)


# In this order: a bool is an int, and a timestamp is a date.
_KINDS_OF_TYPES: tuple[tuple[Any, Kind], ...] = (
    ((bool, np.bool_), Kind.BOOLEAN),
    (Integral, Kind.INTEGER),
    (Decimal, Kind.DECIMAL),
    ((float, np.floating), Kind.FLOAT),
    (str, Kind.TEXT),
    (datetime.datetime, Kind.TIMESTAMP),
    (datetime.date, Kind.DATE),
)


def kind_of_value(value: Any) -> Kind | None:
    """The kind of a Python or NumPy scalar; None for what is none of them."""
    kind = next((kind for types, kind in _KINDS_OF_TYPES if isinstance(value, types)), None)
    if kind is Kind.TIMESTAMP and value != value:  # noqa: PLR0124 - pandas' NaT is a datetime, and no time
        return None
    return Kind.ZONED if kind is Kind.TIMESTAMP and value.tzinfo is not None else kind


def value_of_key(kind: Kind) -> Callable[[str], Any]:
    """The function that reads a value of a kind from its key (`duckdb.values`).

    >>> value_of_key(Kind.DATE)("2024-02-29")
    datetime.date(2024, 2, 29)
    """
    return _VALUES_OF_KEYS[kind]


_VALUES_OF_KEYS: dict[Kind, Callable[[str], Any]] = {
    Kind.TEXT: str,
    Kind.INTEGER: int,
    Kind.DECIMAL: Decimal,
    Kind.FLOAT: float,
    Kind.BOOLEAN: lambda label: label == "true",
    Kind.DATE: datetime.date.fromisoformat,
    Kind.TIMESTAMP: lambda label: EPOCH + int(label) * MICROSECOND,
    Kind.ZONED: lambda label: EPOCH_ZONED + int(label) * MICROSECOND,
}


def digits_after_point(number: Decimal) -> int:
    """How many digits a finite decimal has after the point, without zeros at its end.

    Written with no operation of `decimal` that rounds to the precision of the thread's own context.
    """
    _, digits, exponent = number.as_tuple()
    shown = "".join(map(str, digits))
    zeros = len(shown) - len(shown.rstrip("0"))
    return max(0, -int(exponent) - zeros) if number else 0
