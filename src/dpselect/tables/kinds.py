"""The kinds of values, the columns that hold them, and spans of values between two public ends.

Values of an ordered kind are whole numbers of units: of 1 for whole numbers, of 10**-digits for decimals, of a day for
dates, and of a microsecond since 1970 for timestamps. A value of any kind has a key: a text that DuckDB writes
(`duckdb.values`) and that is read here.

**A span** is the range of a quantile, or all values of a type. What users write of a range becomes a grid, and what
they leave out follows from the column.

A missing end is the end of the column's type: of the integer type, of the decimals, of all finite floats, of the years
1 to 9999. A missing step is 1 (a day, a second) if both ends are given, and otherwise as fine as the type. A step
without a lower end makes a grid of its multiples. None of it comes from the rows.

A source without types, such as CSV, holds text. There the question must say what the text stands for: by an end, or by
a step of whole numbers or decimals.

The range "log" is a coarser grid, for few people: zero, and all numbers of two digits times a power of ten, 90 for each
decade and sign. Values are rounded to the nearest of them. For the level q, a grid of n candidates costs about 2 max(q,
1 - q) ln(n) / epsilon ranks: for a median 44 / epsilon with 2**64 candidates, and 9 / epsilon with the 5,000 of "log".

**A grid** has whole numbers of units between two public ends. A unit is 1 for whole numbers, 10**-digits for decimals
and floats, a day for dates, and a microsecond for timestamps. A float candidate is the float nearest to its decimal
value, so 0.1 means one tenth here, and the candidate 0.3 is the float that a user writes as 0.3.

A grid of all floats has no decimal unit. Its unit is the step from one float to the next, and the rank of a float is
its number of units, counted from zero: the bits of a positive float, read as a whole number, and the negated rank of -x
for a negative x (IEEE 754 orders floats of one sign like their bits). Both zeros have rank 0.

A grid with marks has only those units as candidates. Rows are counted on all units between its ends, and then every
value is rounded to the nearest mark. If it stayed between two candidates, and most values were between the same two,
then all candidates would be equally far from a quantile.
"""

import datetime
import re
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import pairwise
from numbers import Integral
from typing import Any, Self

import numpy as np

from dpselect._messages import SHOWN_CHARACTERS, install_command, question_for, shown_names
from dpselect._numbers import (
    NotExact,
    NotFinite,
    decimal_from_text,
    float_near,
    has_few_digits,
    number_from_text,
    rational,
    rational_from_text,
)
from dpselect._types import Lengths
from dpselect.errors import InvalidType, InvalidValue, MissingExtra

_SHOWN_COLUMNS = 30
TEXT_DIGITS = 9  # after the decimal point of a number that is written as text
_DECIMAL = f"DECIMAL(38,{2 * TEXT_DIGITS})"
_SAMPLE = "2026-01-31 23:59:00"
# The first moment of 1970, and the unit in which dates or timestamps are counted from there.
_DAYS = datetime.date(1970, 1, 1), datetime.timedelta(days=1)
_MICROSECONDS = datetime.datetime(1970, 1, 1), datetime.timedelta(microseconds=1)
_IN_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(microseconds=1)


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
        clock: for dates and timestamps, the first moment of 1970, and the unit in which they are counted from there.
        is_time: whether it is of dates or timestamps.
        is_moment: whether it is of timestamps.
    """

    BOOLEAN = "true or false", "BOOLEAN", "boolean", "true or false", _boolean, _boolean, None
    INTEGER = "whole numbers", "HUGEINT", "int64", "1500", _integer, int, None
    DECIMAL = "decimal numbers", _DECIMAL, "decimal", "1234.5, with a point", decimal_from_text, Decimal, None
    FLOAT = "floating-point numbers", "DOUBLE", "float64", "1234.5, with a point", _float, float, None
    TEXT = "text", "VARCHAR", "text", "", str, str, None
    DATE = "dates", "DATE", "date", "2026-01-31", _date, _date, _DAYS
    TIMESTAMP = "timestamps", "TIMESTAMP", "timestamp", _SAMPLE, _moment, None, _MICROSECONDS
    ZONED = "timestamps with a time zone", "TIMESTAMPTZ", "timestamptz", f"{_SAMPLE}+00:00", _zoned, None, _IN_UTC
    OTHER = "something that no question can be asked about", "", "", "", str, str, None

    type: str
    rule: str
    sample: str
    of_text: Callable[[str], Any]
    of_key: Callable[[str], Any] | None
    clock: Any
    is_time: bool
    is_moment: bool

    def __new__(cls, words: str, *facts: Any) -> Self:
        """Create a kind whose value is its name in words."""
        kind = object.__new__(cls)
        kind._value_ = words
        kind.type, kind.rule, kind.sample, kind.of_text, kind.of_key, kind.clock = facts
        kind.is_time, kind.is_moment = kind.clock is not None, kind.clock in (_MICROSECONDS, _IN_UTC)
        return kind

    @property
    def is_number(self) -> bool:
        return self in _NUMBERS

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


_NUMBERS = {Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT}
_IN_WRITING = frozenset(Kind) - {Kind.OTHER, Kind.ZONED}


# The integer types, as `every` calls them, and their ends; and the types of DuckDB.
INTEGERS = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
DUCKDB_INTEGERS = dict(zip((*_SIGNED, *(f"U{name}" for name in _SIGNED)), INTEGERS.values(), strict=True))


_MARKS = ".,"
_SEPARATORS = (",", ".", " ", "'", "\N{RIGHT SINGLE QUOTATION MARK}", "_")


@dataclass(frozen=True, kw_only=True)
class Style:
    """How numbers and dates are written in a file of text. It is public, and never guessed from rows.

    Attributes:
        decimal: the decimal mark, a point or a comma.
        thousands: what separates thousands; None if nothing does.
        dates: the form of dates and timestamps, as strptime has it; None for that of ISO 8601.
    """

    decimal: str = "."
    thousands: str | None = None
    dates: str | None = None

    def __post_init__(self) -> None:
        if self.decimal not in tuple(_MARKS):
            raise InvalidValue(f"decimal must be '.' or ',', got {str(self.decimal)[:SHOWN_CHARACTERS]!r}")
        if self.thousands is not None and (self.thousands not in _SEPARATORS or self.thousands == self.decimal):
            others = " ".join(repr(each) for each in _SEPARATORS if each != self.decimal)
            raise InvalidValue(f"thousands must be one of {others}, got {str(self.thousands)[:SHOWN_CHARACTERS]!r}")
        if self.dates is not None and not _is_form_of_dates(self.dates):
            raise InvalidValue(
                "dates must have a day, a month and a year, as in '%m/%d/%Y' or '%d.%m.%Y %H:%M', got"
                f" {str(self.dates)[:SHOWN_CHARACTERS]!r}"
            )


# Of the forms of strptime, those that DuckDB reads.
_FORM = re.compile(r"%(-?[dmyHIMSj]|[YbBpfaA%])")


def _is_form_of_dates(form: Any) -> bool:
    if not isinstance(form, str) or "%" in _FORM.sub("", form):
        return False
    parts = {part.removeprefix("-") for part in _FORM.findall(form)}
    return bool(parts & {"y", "Y"}) and ("j" in parts or ("d" in parts and bool(parts & {"m", "b", "B"})))


PLAIN = Style()


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
        style: how numbers and dates are written in it, if it is untyped.

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
    style: Style = field(default=PLAIN, repr=False)

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
    if isinstance(name, (list, tuple)) and len(name) > 1:
        own = [each for each in name if isinstance(each, str) and each in columns and each.isidentifier()]
        joined = " || '-' || ".join(own if len(own) == len(name) else ["origin", "dest"])
        raise InvalidType(
            f'{what} must be one column. Derive one when you open the table: derive={{"both": "{joined}"}}'
        )
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


# Spans.


FULL, LOG = "full", "log"
# The rank of the largest finite float of so many bits.
LARGEST_RANK = {32: 0x7F7FFFFF, 64: 0x7FEFFFFFFFFFFFFF}
_LARGEST_UNIT, _LARGEST_SIZE = 2**64 - 1, 2**64
# Below this, the index of a float can be computed in floats, and candidates are distinct floats: see `duckdb.values`.
_LARGEST_FLOAT_UNIT = 2**48
_MOST_DIGITS = {Kind.FLOAT: 15, Kind.DECIMAL: 18}
_MOST_DIGITS_OF_TEXT = 15
_PRECISION = 18  # all decimals of so many digits are at most 2**64 candidates
_EXPONENTS = range(-9, 18)  # of the smallest and the largest magnitude of a float in the range "log"
_CODES = {32: ("<i", "<f"), 64: ("<q", "<d")}


def rank_of_float(number: float, bits: int) -> int:
    """The place of a float in the order of all floats of so many bits; zero has rank 0."""
    whole, real = _CODES[bits]
    [code] = struct.unpack(whole, struct.pack(real, number))
    return int(code) if code >= 0 else -int(code + 2 ** (bits - 1))


def float_of_rank(rank: int, bits: int) -> float:
    """The float at a place. One of 32 bits is the number that people write for it: 0.1, not 0.10000000149."""
    whole, real = _CODES[bits]
    [size] = struct.unpack(real, struct.pack(whole, abs(rank)))
    written = float(size) if bits == 64 else float(str(np.float32(size)))
    return -written if rank < 0 else written


@dataclass(frozen=True)
class Span:
    """Candidate number i is first + i * step units, or mark number i. Values are clamped to [first, last] units.

    Attributes:
        last: the end of the range, in units; it need not be a candidate.
        digits: the number of digits after the point of decimal units.
        bits: 32 or 64 if the units are all floats of so many bits; 0 otherwise.
        marks: the candidates in units, in ascending order from first to last, if they are not all steps.
    """

    kind: Kind
    first: int
    last: int
    step: int = 1
    digits: int = 0
    bits: int = 0
    marks: tuple[int, ...] = field(default=(), repr=False)

    @property
    def size(self) -> int:
        """The number of candidates."""
        return len(self.marks) or (self.last - self.first) // self.step + 1

    def value(self, index: int) -> Any:
        """A candidate in the type of the column."""
        return self._value(self.marks[index] if self.marks else self.first + index * self.step)

    @property
    def ends(self) -> tuple[Any, Any]:
        """The ends of the range. The upper one need not be a candidate."""
        return self._value(self.first), self._value(self.last)

    def _value(self, units: int) -> Any:
        return float_of_rank(units, self.bits) if self.bits else self.kind.from_units(units, self.digits)

    def units(self, value: Any) -> int | None:
        """A value in units, within the ends or not; None for what is not a whole number of them."""
        if not self.bits:
            return self.kind.units(value, self.digits)
        number = self.kind.exact(value)
        if number is None or abs(number) > float_of_rank(LARGEST_RANK[self.bits], self.bits):
            return None
        return rank_of_float(float(number), self.bits) if float(number) == number else None

    def located(self, places: Lengths) -> Lengths:
        """The candidate of each value, given where it is among all units from `first`."""
        if not self.marks:
            return places
        # The first unit of each candidate but the first one.
        firsts: Lengths = np.array([self._middle(*pair) - self.first for pair in pairwise(self.marks)], np.uint64)
        return np.searchsorted(firsts, places, side="right").astype(np.uint64)

    def _middle(self, below: int, above: int) -> int:
        if not self.bits:
            return (below + above + 1) // 2
        return rank_of_float((float_of_rank(below, self.bits) + float_of_rank(above, self.bits)) / 2, self.bits)

    def checked(self) -> "Span":
        """The span, if it has candidates, and not too many or too long ones."""
        if self.last < self.first:
            raise InvalidValue(
                f"lower must be <= upper, got {self.ends[0]} and {self.ends[1]}: give the public range of the column"
            )
        if self.size > _LARGEST_SIZE:
            raise InvalidValue("lower, upper and step make more than 2**64 candidates: give a larger step")
        most = _LARGEST_FLOAT_UNIT if self.kind is Kind.FLOAT and not self.bits else _LARGEST_UNIT
        if max(abs(self.first), abs(self.last), self.step) > most or self.digits > _MOST_DIGITS.get(self.kind, 0):
            raise InvalidValue("lower, upper and step have too many digits for this column: give rounder numbers")
        return self


def public_span(lower: Any, upper: Any, step: Any, column: Column, range: Any = FULL) -> Span:
    """The grid of candidates for a column. Any of the ends and the step may be None."""
    if not (column.kind.is_number or column.kind.is_time or column.untyped):
        have = "has" if column.is_text else "have"
        raise InvalidType(
            f"column {column.name!r} holds {column.kind.value}, which {have} no quantiles: use a column of numbers or"
            " dates"
        )
    if range not in (FULL, LOG):
        raise InvalidValue(f"range must be {FULL!r} or {LOG!r}, got {str(range)[:40]!r}")
    if range == LOG:
        if (lower, upper, step) != (None, None, None):
            raise InvalidValue("range='log' is a grid of its own: leave out lower, upper and step, or range")
        return _magnitudes(column)
    stated = {"lower": lower, "upper": upper, "step": step}
    given = {name: _read(value, name, column) for name, value in stated.items() if value is not None}
    if given.keys() == {"lower", "upper"}:
        given["step"] = 1
    kind, digits, bits = _kind(given, column), 0, 0
    units: Mapping[str, Any]
    if kind.is_time:
        units = {name: _step(value, kind) if name == "step" else kind.units(value) for name, value in given.items()}
    elif kind is Kind.FLOAT and "step" not in given:
        bits = _bits(column)
        units = {name: _rank(value, name, bits) for name, value in given.items()}
    else:
        decimals = {name: _decimal(value, name) for name, value in given.items()}
        digits = _digits(decimals, kind, column)
        units = {name: int(Fraction(decimal) * 10**digits) for name, decimal in decimals.items()}
    step = units.get("step", 1)
    if step <= 0:
        raise InvalidValue("step must be > 0: give the step between two candidates")
    least, most = (0, 0) if {"lower", "upper"} <= units.keys() else _ends_of_type(kind, bits, column)
    # Without `lower`, it begins at the least multiple of the step.
    first, last = units.get("lower", -(-least // step) * step), units.get("upper", most)
    return Span(kind, first, last, step, digits, bits).checked()


def _ends_of_type(kind: Kind, bits: int, column: Column) -> tuple[int, int]:
    if kind.is_time:
        return kind.ends
    if kind is Kind.INTEGER:
        return column.integer_ends or INTEGERS["int64"]
    if kind is Kind.FLOAT:
        most = LARGEST_RANK[bits] if bits else _LARGEST_FLOAT_UNIT
    elif column.untyped or 0 < column.precision <= _PRECISION:
        most = 10 ** (_PRECISION if column.untyped else column.precision) - 1
    else:
        raise InvalidValue(
            f"column {column.name!r} has the type {column.type}, which has more than 2**64 values: give lower and upper"
        )
    return -most, most


# What is given: values, or text as on the command line.


def _read(value: Any, name: str, column: Column) -> Any:
    # The step is in days for dates and in seconds for timestamps.
    if not isinstance(value, str):
        return value
    if not column.untyped:
        of_times = Kind.DECIMAL if column.kind.is_moment else Kind.INTEGER
        kind = of_times if name == "step" and column.kind.is_time else column.kind
        return kind.from_text(value, name)
    readers: tuple[Callable[[str], Any], ...] = (number_from_text, _date, _moment)
    for reader in readers:
        with suppress(NotExact, ValueError):
            return reader(value.strip())
    raise InvalidValue(
        f"{name}: {value[:40]!r} is neither a number nor a date: write for example 12, 0.5 or 2026-01-31"
    )


def _kind(given: Mapping[str, Any], column: Column) -> Kind:
    # For a column of text, the kind of the ends or the step.
    kinds = {name: kind_of_value(value) for name, value in given.items()}
    step = kinds.pop("step", None)
    for name, kind in kinds.items():
        if kind is None or not (kind.is_number or kind.is_time):
            raise InvalidType(
                f"lower and upper must be numbers, dates or timestamps, got {type(given[name]).__name__}: give the"
                " public range of the column, such as 0 and 100, or '2026-01-01' and '2026-12-31'"
            )
    ends = {kind for kind in kinds.values() if kind is not None}
    if column.untyped:
        return _kind_in_writing(ends, step, column)
    if not ends <= ({column.kind} if column.kind.is_time else _NUMBERS):
        raise _other_kinds(ends, column, column.kind.value)
    return column.kind


def _kind_in_writing(ends: set[Kind], step: Kind | None, column: Column) -> Kind:
    if not ends and step not in _NUMBERS:
        raise InvalidValue(
            f"column {column.name!r} is text, and the question must say what it stands for: give a step of 1 for whole"
            " numbers, a step of 0.01 for numbers with two digits after the point, or a lower or upper end, such as"
            " 2000-01-01 for dates"
        )
    if ends <= _NUMBERS:  # floats if any number is a float, then decimals, then whole numbers
        return next((kind for kind in (Kind.FLOAT, Kind.DECIMAL) if kind in {*ends, step}), Kind.INTEGER)
    if not ends <= {Kind.DATE, Kind.TIMESTAMP}:
        raise _other_kinds(ends, column, "numbers, dates or timestamps without a time zone")
    if len(ends) > 1:
        raise InvalidType("lower and upper must be of one type: give two dates or two timestamps")
    return ends.pop()


def _other_kinds(given: set[Kind], column: Column, wanted: str) -> InvalidType:
    names = " and ".join(sorted(kind.value for kind in given))
    return InvalidType(f"column {column.name!r} holds {column.kind.value}, lower and upper are {names}: give {wanted}")


# In units.


def _digits(decimals: Mapping[str, Decimal], kind: Kind, column: Column) -> int:
    needed = max(map(digits_after_point, decimals.values()), default=0)
    if kind is Kind.INTEGER and needed:
        raise InvalidValue(f"lower, upper and step must be whole numbers, as those in the column {column.name!r} are")
    if column.kind is Kind.DECIMAL:
        if needed > column.digits:
            digits = f"{column.digits} digit{'' if column.digits == 1 else 's'} after the point"
            raise InvalidValue(f"lower, upper and step must have at most {digits}, as the column {column.name!r} has")
        return column.digits
    if needed > _MOST_DIGITS_OF_TEXT:
        raise InvalidValue(f"lower, upper and step must have at most {_MOST_DIGITS_OF_TEXT} digits after the point")
    if "step" not in decimals and kind is Kind.DECIMAL:
        raise InvalidValue("step must be given with only one end of the range, such as 0.01")
    return needed


def _decimal(value: Any, name: str) -> Decimal:
    # For a float, the shortest text that reads back as that float.
    if kind_of_value(value) not in _NUMBERS:
        raise InvalidType(f"{name} must be a number, got {type(value).__name__}")
    if isinstance(value, Integral):  # converting a very long integer would be slow
        decimal = Decimal(int(value)) if abs(int(value)) < 10**41 else Decimal("inf")
    else:
        decimal = Decimal(str(value))
    if not decimal.is_finite() or abs(decimal.adjusted()) > 40 or not has_few_digits(decimal):
        raise InvalidValue(f"{name} must be a finite number of moderate size: give the public range of the column")
    return decimal


def _bits(column: Column) -> int:
    return 32 if column.type == "FLOAT" else 64


def _rank(value: Any, name: str, bits: int) -> int:
    nearest = value if isinstance(value, float) else float_near(rational(_decimal(value, name)))
    if not abs(nearest) <= float_of_rank(LARGEST_RANK[bits], bits):  # NaN is not, either
        raise InvalidValue(f"{name} must be a finite number that floats of {bits} bits can hold")
    return rank_of_float(nearest, bits)


def _step(step: Any, kind: Kind) -> int:
    is_date, given = kind is Kind.DATE, kind_of_value(step)
    if isinstance(step, datetime.timedelta):
        units = Fraction(step // _MICROSECONDS[1], 86_400 * 10**6 if is_date else 1)
    elif is_date and given is not Kind.INTEGER:
        raise InvalidType("step must be a number of days for a column of dates: give for example 7")
    elif given not in _NUMBERS:
        raise InvalidType("step must be seconds or a timedelta for a column of timestamps: give for example 60")
    else:
        units = Fraction(_decimal(step, "step")) * (1 if is_date else 10**6)
    if units.denominator == 1:
        return int(units)
    if is_date:
        raise InvalidValue("step must be whole days for a column of dates: give for example 7")
    raise InvalidValue("step must be whole microseconds for a column of timestamps: give fewer digits")


# Magnitudes: the range "log".


def _magnitudes(column: Column) -> Span:
    if column.kind.is_time:
        raise InvalidType(
            f"column {column.name!r} holds {column.kind.value}, which have no magnitude: leave range='log' out, and"
            " give lower and upper if there are few people"
        )
    if column.kind is Kind.FLOAT or column.untyped:
        kind, bits = Kind.FLOAT, _bits(column)
        least, most = -LARGEST_RANK[bits], LARGEST_RANK[bits]
        sizes = [rank_of_float(float(size), bits) for size in _decades(_EXPONENTS)]
    else:
        kind, bits = column.kind, 0
        least, most = _ends_of_type(kind, bits, column)
        sizes = [int(size) for size in map(Decimal, _decades(range(20))) if size == int(size)]
    marks = (*(-size for size in reversed(sizes) if -size >= least), 0, *(size for size in sizes if size <= most))
    return Span(kind, marks[0], marks[-1], digits=column.digits, bits=bits, marks=marks)


def _decades(exponents: range) -> list[str]:
    return [*(f"{two}e{exponent - 1}" for exponent in exponents for two in range(10, 100)), f"1e{exponents.stop}"]
