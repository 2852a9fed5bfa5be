"""The kinds of values, and all that is known about each; and the columns that hold them, which are the public schema.

Values of an ordered kind are whole numbers of units: of 1 for whole numbers, of 10**-digits for decimals, of a day for
dates, and of a microsecond since 1970 for timestamps. A value of any kind has a key: a text that DuckDB writes
(`duckdb.values`) and that is read here.
"""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Integral
from typing import Any, Self

import numpy as np

from dpselect._messages import SHOWN_CHARACTERS, install_command, question_for, shown_names
from dpselect._numbers import NotExact, NotFinite, decimal_from_text, rational, rational_from_text
from dpselect.errors import InvalidType, InvalidValue, MissingExtra

_SHOWN_COLUMNS = 30
TEXT_DIGITS = 9  # after the decimal point of a number that is written as text
_DECIMAL = f"DECIMAL(38,{2 * TEXT_DIGITS})"
_DAY, _MICROSECOND = datetime.timedelta(days=1), datetime.timedelta(microseconds=1)


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _integer(text: str) -> int:
    number = rational_from_text(text)
    if number.denominator != 1:
        raise ValueError
    return int(number)


def _float(text: str) -> float:
    return float(decimal_from_text(text))


def _date(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text.strip())


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.strip())


def _zoned(text: str) -> datetime.datetime:
    moment = _moment(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


class Kind(Enum):
    """The kind of the values of a column: its name in words, and what is known about it.

    Attributes:
        type: the type of DuckDB in which values that are written as text are compared.
        rule: what `every` calls it.
        sample: how people write a value.
        of_text: reads what people write.
        of_key: reads a key.
    """

    BOOLEAN = "true or false", "BOOLEAN", "boolean", "true or false", _boolean, _boolean
    INTEGER = "whole numbers", "HUGEINT", "int64", "1500", _integer, int
    DECIMAL = "decimal numbers", _DECIMAL, "decimal", "1234.5, with a point", decimal_from_text, Decimal
    FLOAT = "floating-point numbers", "DOUBLE", "float64", "1234.5, with a point", _float, float
    TEXT = "text", "VARCHAR", "text", "", str, str
    DATE = "dates", "DATE", "date", "2026-01-31", _date, _date
    TIMESTAMP = "timestamps", "TIMESTAMP", "timestamp", "2026-01-31 23:59:00", _moment, None
    ZONED = "timestamps with a time zone", "TIMESTAMPTZ", "timestamptz", "2026-01-31 23:59:00+00:00", _zoned, None
    OTHER = "something that no question can be asked about", "", "", "", str, str

    type: str
    rule: str
    sample: str
    of_text: Callable[[str], Any]
    of_key: Callable[[str], Any] | None

    def __new__(cls, words: str, *facts: Any) -> Self:
        """Create a kind whose value is its name in words."""
        kind = object.__new__(cls)
        kind._value_ = words
        kind.type, kind.rule, kind.sample, kind.of_text, kind.of_key = facts
        return kind

    @property
    def is_number(self) -> bool:
        return self in _NUMBERS

    @property
    def is_time(self) -> bool:
        return self in _CLOCKS

    @property
    def is_moment(self) -> bool:
        return self.is_time and self is not Kind.DATE

    @property
    def comparable(self) -> "frozenset[Kind]":
        """The kinds of values with which those of a column can be compared exactly."""
        whole = {Kind.INTEGER} if self.is_number else set()
        return frozenset() if self is Kind.OTHER else frozenset({self, *whole})

    def from_text(self, text: str, name: str) -> Any:
        """A public value that people wrote. Messages use the name."""
        try:
            return self.of_text(text)
        except (ValueError, ArithmeticError, KeyError, NotExact, NotFinite):
            example = f": write it as {self.sample}" if self.sample else ""
            cannot = f"{name}: {text[:40]!r} cannot be read as one of the {self.value} of the column"
            raise InvalidValue(f"{cannot}{example}") from None

    def from_key(self, key: str) -> Any:
        """The value that has a key.

        >>> Kind.DATE.from_key("2024-02-29")
        datetime.date(2024, 2, 29)
        """
        return self.from_units(int(key)) if self.of_key is None else self.of_key(key)

    @property
    def clock(self) -> tuple[Any, datetime.timedelta]:
        """The first moment of 1970, and the unit in which dates or timestamps are counted from there."""
        return _CLOCKS[self]

    def units(self, value: Any, digits: int = 0) -> int | None:
        """A value in units; None for what is not a whole number of them, or is of another kind."""
        given = kind_of_value(value)
        if self.is_time:
            origin, unit = self.clock
            return int((value - origin) // unit) if given is self else None
        if self is Kind.BOOLEAN:
            return int(value) if given is self else None
        number = self.exact(value)
        scaled = None if number is None else number * 10**digits
        return int(scaled) if scaled is not None and scaled.denominator == 1 else None

    def exact(self, value: Any) -> Fraction | None:
        """The exact value of a finite number that may equal one of this kind; None for anything else."""
        given = kind_of_value(value)
        if given is None or (given not in self.comparable and self not in given.comparable):
            return None
        try:
            return rational(value)
        except (NotExact, NotFinite):
            return None

    def from_units(self, units: int, digits: int = 0) -> Any:
        """The value of so many units."""
        if self.is_time:
            origin, unit = self.clock
            return origin + units * unit
        if self is Kind.DECIMAL:
            return Decimal(f"{units}e-{digits}")  # from text, so no decimal context rounds it
        if self is Kind.FLOAT:
            return units / 10**digits
        return bool(units) if self is Kind.BOOLEAN else units

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last moment of the years 1 to 9999, in UTC, in units."""
        moments: Any = datetime.datetime.min, datetime.datetime.max
        zone = datetime.UTC if self is Kind.ZONED else None
        origin, unit = self.clock
        first, last = (each.replace(tzinfo=zone) if self.is_moment else each.date() for each in moments)
        return (first - origin) // unit, (last - origin) // unit


_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
_CLOCKS: dict[Kind, tuple[Any, datetime.timedelta]] = {
    Kind.DATE: (datetime.date(1970, 1, 1), _DAY),
    Kind.TIMESTAMP: (datetime.datetime(1970, 1, 1), _MICROSECOND),
    Kind.ZONED: (datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC), _MICROSECOND),
}
_IN_WRITING = frozenset(Kind) - {Kind.OTHER, Kind.ZONED}


# The integer types, as `every` calls them, and their ends; and the types of DuckDB.
INTEGERS = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
DUCKDB_INTEGERS = dict(zip((*_SIGNED, *(f"U{name}" for name in _SIGNED)), INTEGERS.values(), strict=True))


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
        """The kinds of values with which those of the column can be compared."""
        return _IN_WRITING if self.untyped else self.kind.comparable

    @property
    def is_text(self) -> bool:
        """Whether its values are text, of whatever kind they are in writing."""
        return self.kind is Kind.TEXT

    @property
    def integer_ends(self) -> tuple[int, int] | None:
        """The least and the largest value of its integer type; None if that has more than 64 bits.

        >>> Column("age", "UTINYINT", Kind.INTEGER).integer_ends
        (0, 255)
        """
        return DUCKDB_INTEGERS.get(self.type)


def known_column(
    columns: Mapping[str, Column], name: Any, what: str, elsewhere: Mapping[str, str] | None = None
) -> Column:
    """The column of this name. An error lists the existing names, which are public, unless they look like data."""
    # `elsewhere` has names that are no columns of the table, and what to do about each.
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


def digits_after_point(number: Decimal) -> int:
    """How many digits a finite decimal has after the point, without zeros at its end."""
    # Written with no operation of `decimal` that rounds to the precision of the thread's own context.
    _, digits, exponent = number.as_tuple()
    shown = "".join(map(str, digits))
    zeros = len(shown) - len(shown.rstrip("0"))
    return max(0, -int(exponent) - zeros) if number else 0
