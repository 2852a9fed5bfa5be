"""The public range of a quantile: what users write becomes a grid, and what they leave out follows from the column.

A missing end is the end of the column's type: of the integer type, of the decimals, of all finite floats, of the years
1 to 9999. A missing step is 1 (a day, a second) if both ends are given, and otherwise as fine as the type. A step
without a lower end makes a grid of its multiples. None of it comes from the rows.

A source without types, such as CSV, holds text. There the question must say what the text stands for: by an end, or by
a step of whole numbers or decimals.

The range "log" is a coarser grid, for few people: zero, and all numbers of two digits times a power of ten, 90 for each
decade and sign. Values are rounded to the nearest of them. For the level q, a grid of n candidates costs about
2 max(q, 1 - q) ln(n) / epsilon ranks: for a median 44 / epsilon with 2**64 candidates, and 9 / epsilon with the 5,000
of "log".
"""

import datetime
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from dpselect._numbers import NotExact, float_near, has_few_digits, number_from_text, rational
from dpselect._types import Lengths
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.kinds import (
    EPOCH,
    EPOCH_DAY,
    EPOCH_ZONED,
    MICROSECOND,
    Column,
    Kind,
    digits_after_point,
    kind_of_value,
    value_from_text,
)

LARGEST_UNIT = 2**64 - 1


# Below this, the index of a float can be computed in floats, and candidates are distinct floats: see `duckdb.places`.
LARGEST_FLOAT_UNIT = 2**48


# The rank of the largest finite float of so many bits.
LARGEST_RANK = {32: 0x7F7FFFFF, 64: 0x7FEFFFFFFFFFFFFF}


_LARGEST_SIZE = 2**64


_MOST_OF_KIND = {Kind.FLOAT: 15, Kind.DECIMAL: 18}


_CODES = {32: ("<i", "<f"), 64: ("<q", "<d")}


def rank_of_float(number: float, bits: int) -> int:
    """The place of a float in the order of all floats of so many bits; zero has rank 0.

    >>> rank_of_float(5e-324, 64), rank_of_float(-0.0, 64)
    (1, 0)
    """
    whole, real = _CODES[bits]
    [code] = struct.unpack(whole, struct.pack(real, number))
    return int(code) if code >= 0 else -int(code + 2 ** (bits - 1))


def float_of_rank(rank: int, bits: int) -> float:
    """The float at a place. One of 32 bits is the number that people write for it: 0.1, not 0.10000000149.

    >>> float_of_rank(-1, 64), float_of_rank(rank_of_float(0.1, 32), 32)
    (-5e-324, 0.1)
    """
    whole, real = _CODES[bits]
    [size] = struct.unpack(real, struct.pack(whole, abs(rank)))
    written = float(size) if bits == 64 else float(str(np.float32(size)))
    return -written if rank < 0 else written


@dataclass(frozen=True)
class Span:
    """Candidate number i is first + i * step units, or mark number i. Values are clamped to [first, last] units.

    Attributes:
        kind: the kind of the candidates.
        first: the first candidate, in units.
        last: the end of the range, in units; it need not be a candidate.
        step: the number of units between two candidates.
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
        """Return the number of candidates."""
        return len(self.marks) or (self.last - self.first) // self.step + 1

    def value(self, index: int) -> Any:
        """Return a candidate in the type of the column."""
        return self._value(self.marks[index] if self.marks else self.first + index * self.step)

    @property
    def upper(self) -> Any:
        """Return the end of the range, which need not be a candidate."""
        return self._value(self.last)

    def _value(self, units: int) -> Any:
        return float_of_rank(units, self.bits) if self.bits else _VALUES[self.kind](units, self.digits)

    def located(self, places: Lengths) -> Lengths:
        """Return the candidate of each value, given where it is among all units from `first`."""
        if not self.marks:
            return places
        # The first unit of each candidate but the first one.
        firsts: Lengths = np.array([self._middle(*pair) - self.first for pair in pairwise(self.marks)], np.uint64)
        return np.searchsorted(firsts, places, side="right").astype(np.uint64)

    def _middle(self, below: int, above: int) -> int:
        """The unit half-way between two, or the next one."""
        if not self.bits:
            return (below + above + 1) // 2
        return rank_of_float((float_of_rank(below, self.bits) + float_of_rank(above, self.bits)) / 2, self.bits)

    def checked(self) -> "Span":
        """Return the grid, if it has candidates, and not too many or too long ones."""
        if self.last < self.first:
            raise InvalidValue(
                f"lower must be <= upper, got {self.value(0)} and {self.upper}: give the public range of the column"
            )
        if self.size > _LARGEST_SIZE:
            raise InvalidValue("lower, upper and step make more than 2**64 candidates: give a larger step")
        most = LARGEST_FLOAT_UNIT if self.kind is Kind.FLOAT and not self.bits else LARGEST_UNIT
        if max(abs(self.first), abs(self.last), self.step) > most or self.digits > _MOST_OF_KIND.get(self.kind, 0):
            raise InvalidValue("lower, upper and step have too many digits for this column: give rounder numbers")
        return self


_VALUES: dict[Kind, Callable[[int, int], Any]] = {
    Kind.INTEGER: lambda units, _: units,
    Kind.DECIMAL: lambda units, digits: Decimal(f"{units}e-{digits}"),  # from text, so no decimal context rounds it
    Kind.FLOAT: lambda units, digits: units / 10**digits,
    Kind.DATE: lambda units, _: EPOCH_DAY + datetime.timedelta(days=units),
    Kind.TIMESTAMP: lambda units, _: EPOCH + units * MICROSECOND,
    Kind.ZONED: lambda units, _: EPOCH_ZONED + units * MICROSECOND,
}


FULL, LOG = "full", "log"

_MOST_DIGITS = 15
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
_TIMES = (Kind.DATE, Kind.TIMESTAMP, Kind.ZONED)
_WIDTHS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
_INT64 = (-(2**63), 2**63 - 1)
_INTEGERS = {
    **{name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in _WIDTHS.items()},
    **{f"U{name}": (0, 2**bits - 1) for name, bits in _WIDTHS.items()},
}
# All decimals of so many digits are at most 2**64 candidates.
_PRECISION = 18
_EXPONENTS = range(-9, 18)  # of the smallest and the largest magnitude of a float in the range "log"


def integer_ends(column: Column) -> tuple[int, int] | None:
    """The least and the largest value of a column's integer type; None if that has more than 64 bits.

    >>> integer_ends(Column("age", "UTINYINT", Kind.INTEGER))
    (0, 255)
    """
    return _INTEGERS.get(column.type)


def public_span(lower: Any, upper: Any, step: Any, column: Column, range: Any = FULL) -> Span:
    """The grid of candidates for a column. Any of the ends and the step may be None."""
    _check_order(column)
    if range not in (FULL, LOG):
        raise InvalidValue(f"range must be {FULL!r} or {LOG!r}, got {str(range)[:40]!r}")
    if range == LOG:
        if (lower, upper, step) != (None, None, None):
            raise InvalidValue("range='log' is a grid of its own: leave out lower, upper and step, or range")
        return _grid_of_magnitudes(column)
    named = {"lower": lower, "upper": upper}
    ends = {name: _read_end(value, column, name) for name, value in named.items() if value is not None}
    width = _read_step(step, column)
    if width is None and len(ends) == 2:
        width = 1
    kind = _kind(ends, width, column)
    if kind in _TIMES:
        return _grid_of_times(ends, width, kind).checked()
    if kind is Kind.FLOAT and width is None:
        return _grid_of_floats(ends, column).checked()
    return _grid_of_numbers(ends, width, kind, column).checked()


def _check_order(column: Column) -> None:
    ordered = column.kind in (*_NUMBERS, *_TIMES) or column.untyped
    if not ordered:
        have = "has" if column.kind is Kind.TEXT else "have"
        raise InvalidType(
            f"column {column.name!r} holds {column.kind.value}, which {have} no quantiles: use a column of numbers or"
            " dates"
        )


# What is given: values, or text as on the command line.


def _read_end(value: Any, column: Column, name: str) -> Any:
    """An end of the range. Text is read in the type of the column or, for a column of text, as it is written."""
    if not isinstance(value, str):
        return value
    return _written(value, name) if column.untyped else value_from_text(value, column.kind, name)


def _read_step(value: Any, column: Column) -> Any:
    """The step between two candidates: a number, in days for dates and in seconds for timestamps."""
    if not isinstance(value, str):
        return value
    if column.untyped:
        return _written(value, "step")
    kinds = {Kind.DATE: Kind.INTEGER, Kind.TIMESTAMP: Kind.DECIMAL, Kind.ZONED: Kind.DECIMAL}
    return value_from_text(value, kinds.get(column.kind, column.kind), "step")


def _written(text: str, name: str) -> Any:
    """A whole number, a decimal number, a date or a timestamp, as it is written."""
    readers: tuple[Callable[[str], Any], ...] = (
        number_from_text,
        datetime.date.fromisoformat,
        datetime.datetime.fromisoformat,
    )
    for reader in readers:
        try:
            return reader(text.strip())
        except (NotExact, ValueError):
            continue
    raise InvalidValue(f"{name}: {text[:40]!r} is neither a number nor a date: write for example 12, 0.5 or 2026-01-31")


def _kind(ends: Mapping[str, Any], step: Any, column: Column) -> Kind:
    """The kind of the candidates: that of the column or, for a column of text, that of the ends or the step."""
    given = {kind_of_value(end) for end in ends.values()}
    if None in given or given & {Kind.BOOLEAN, Kind.TEXT}:
        got = next(type(end).__name__ for end in ends.values() if kind_of_value(end) in {None, Kind.BOOLEAN, Kind.TEXT})
        raise InvalidType(
            f"lower and upper must be numbers, dates or timestamps, got {got}: give the public range of the column,"
            " such as 0 and 100, or '2026-01-01' and '2026-12-31'"
        )
    if column.untyped:
        return _kind_in_writing(given, (*ends.values(), step), column)
    if not given <= (set(_NUMBERS) if column.kind in _NUMBERS else {column.kind}):
        raise _other_kinds(given, column, column.kind.value)
    return column.kind


def _kind_in_writing(given: set[Kind | None], numbers: tuple[Any, ...], column: Column) -> Kind:
    """The kind of what the text of a column stands for."""
    if not given and kind_of_value(numbers[-1]) not in _NUMBERS:
        raise InvalidValue(
            f"column {column.name!r} is text, and the question must say what it stands for: give a step of 1 for whole"
            " numbers, a step of 0.01 for numbers with two digits after the point, or a lower or upper end, such as"
            " 2000-01-01 for dates"
        )
    if given <= set(_NUMBERS):
        return _kind_of_numbers(numbers)
    if not given <= {Kind.DATE, Kind.TIMESTAMP}:
        raise _other_kinds(given, column, "numbers, dates or timestamps without a time zone")
    if len(given) > 1:
        raise InvalidType("lower and upper must be of one type: give two dates or two timestamps")
    return Kind.DATE if Kind.DATE in given else Kind.TIMESTAMP


def _other_kinds(given: set[Kind | None], column: Column, wanted: str) -> InvalidType:
    names = " and ".join(sorted(kind.value for kind in given if kind is not None))
    return InvalidType(f"column {column.name!r} holds {column.kind.value}, lower and upper are {names}: give {wanted}")


def _kind_of_numbers(numbers: tuple[Any, ...]) -> Kind:
    """The kind of answers from a column of text: floats if any number is a float, then decimals, then whole numbers."""
    kinds = {kind_of_value(number) for number in numbers}
    return next((kind for kind in (Kind.FLOAT, Kind.DECIMAL) if kind in kinds), Kind.INTEGER)


# Numbers.


def _grid_of_numbers(ends: Mapping[str, Any], step: Any, kind: Kind, column: Column) -> Span:
    """All steps between two ends. A missing step is the smallest number with the digits of the column."""
    given = {**ends, **({} if step is None else {"step": step})}
    decimals = {name: _decimal(value, name) for name, value in given.items()}
    digits = _digits(decimals, kind, column)
    if step is None and kind is Kind.DECIMAL and column.untyped:
        raise InvalidValue("step must be given with only one end of the range, such as 0.01")
    units = {name: int(Fraction(decimal) * 10**digits) for name, decimal in decimals.items()}
    first, last, width = _with_ends(units, lambda: _ends_of_numbers(kind, column))
    return Span(kind, first, last, width, digits)


def _with_ends(units: Mapping[str, int], ends: Callable[[], tuple[int, int]]) -> tuple[int, int, int]:
    """First, last and step in units. The first candidate is `lower`, or the least multiple of the step."""
    step = units.get("step", 1)
    if step <= 0:
        raise InvalidValue("step must be > 0: give the step between two candidates")
    if "lower" in units and "upper" in units:
        return units["lower"], units["upper"], step
    least, most = ends()
    return units.get("lower", -(-least // step) * step), units.get("upper", most), step


def _digits(decimals: Mapping[str, Decimal], kind: Kind, column: Column) -> int:
    """The number of digits after the point of the units."""
    needed = max(map(digits_after_point, decimals.values()), default=0)
    if kind is Kind.INTEGER and needed:
        raise InvalidValue(f"lower, upper and step must be whole numbers, as those in the column {column.name!r} are")
    if column.kind is Kind.DECIMAL:
        if needed > column.digits:
            digits = f"{column.digits} digit{'' if column.digits == 1 else 's'} after the point"
            raise InvalidValue(f"lower, upper and step must have at most {digits}, as the column {column.name!r} has")
        return column.digits
    if needed > _MOST_DIGITS:
        raise InvalidValue(f"lower, upper and step must have at most {_MOST_DIGITS} digits after the point")
    return needed


def _ends_of_numbers(kind: Kind, column: Column) -> tuple[int, int]:
    """The least and the largest number of the column's type, in its units."""
    if kind is Kind.FLOAT:
        return -LARGEST_FLOAT_UNIT, LARGEST_FLOAT_UNIT
    if kind is Kind.INTEGER:
        return integer_ends(column) or _INT64
    if not column.untyped and not 0 < column.precision <= _PRECISION:
        raise InvalidValue(
            f"column {column.name!r} has the type {column.type}, which has more than 2**64 values: give lower and upper"
        )
    most = 10 ** (_PRECISION if column.untyped else column.precision) - 1
    return -most, most


def _decimal(value: Any, name: str) -> Decimal:
    """The exact number that was written. For a float, the shortest text that reads back as that float."""
    if kind_of_value(value) not in _NUMBERS:
        raise InvalidType(f"{name} must be a number, got {type(value).__name__}")
    if isinstance(value, Integral):  # converting a very long integer would be slow
        decimal = Decimal(int(value)) if abs(int(value)) < 10**41 else Decimal("inf")
    else:
        decimal = Decimal(str(value))
    if not decimal.is_finite() or abs(decimal.adjusted()) > 40 or not has_few_digits(decimal):
        raise InvalidValue(f"{name} must be a finite number of moderate size: give the public range of the column")
    return decimal


# Floats in the order of their bits.


def _bits(column: Column) -> int:
    return 32 if column.type == "FLOAT" else 64


def _grid_of_floats(ends: Mapping[str, Any], column: Column) -> Span:
    """All finite floats between two ends."""
    bits = _bits(column)
    ranks = {name: _rank(value, name, bits) for name, value in ends.items()}
    first, last = ranks.get("lower", -LARGEST_RANK[bits]), ranks.get("upper", LARGEST_RANK[bits])
    return Span(Kind.FLOAT, first, last, bits=bits)


def _rank(value: Any, name: str, bits: int) -> int:
    """The rank of the float that was written."""
    nearest = value if isinstance(value, float) else float_near(rational(_decimal(value, name)))
    if not abs(nearest) <= float_of_rank(LARGEST_RANK[bits], bits):  # NaN is not, either
        raise InvalidValue(f"{name} must be a finite number that floats of {bits} bits can hold")
    return rank_of_float(nearest, bits)


# Dates and timestamps.


def _grid_of_times(ends: Mapping[str, Any], step: Any, kind: Kind) -> Span:
    """All steps between two moments: in days or in microseconds since 1970."""
    read = _days if kind is Kind.DATE else _microseconds
    units = {name: _since_1970(end, kind) for name, end in ends.items()}
    width = {} if step is None else {"step": read(step)}
    first, last, every = _with_ends({**units, **width}, lambda: _ends_of_times(kind))
    return Span(kind, first, last, every)


def _ends_of_times(kind: Kind) -> tuple[int, int]:
    """The first and the last moment of the years 1 to 9999, in UTC."""
    moments = datetime.datetime.min, datetime.datetime.max
    zone = datetime.UTC if kind is Kind.ZONED else None
    least, most = (moment.date() if kind is Kind.DATE else moment.replace(tzinfo=zone) for moment in moments)
    return _since_1970(least, kind), _since_1970(most, kind)


def _since_1970(moment: Any, kind: Kind) -> int:
    if kind is Kind.DATE:
        return int((moment - EPOCH_DAY).days)
    return int((moment - (EPOCH if kind is Kind.TIMESTAMP else EPOCH_ZONED)) // MICROSECOND)


def _days(step: Any) -> int:
    if isinstance(step, datetime.timedelta):
        if step % datetime.timedelta(days=1):
            raise InvalidValue("step must be whole days for a column of dates: give for example 7")
        return step.days
    if kind_of_value(step) is not Kind.INTEGER:
        raise InvalidType("step must be a number of days for a column of dates: give for example 7")
    return int(step)


def _microseconds(step: Any) -> int:
    if isinstance(step, datetime.timedelta):
        return step // MICROSECOND
    if kind_of_value(step) not in _NUMBERS:
        raise InvalidType("step must be seconds or a timedelta for a column of timestamps: give for example 60")
    microseconds = Fraction(_decimal(step, "step")) * 1_000_000
    if microseconds.denominator != 1:
        raise InvalidValue("step must be whole microseconds for a column of timestamps: give fewer digits")
    return int(microseconds)


# Magnitudes: the range "log".


def _grid_of_magnitudes(column: Column) -> Span:
    """Zero and the numbers of two digits times a power of ten, as far as the type goes; floats for a column of text."""
    if column.kind in _TIMES:
        raise InvalidType(
            f"column {column.name!r} holds {column.kind.value}, which have no magnitude: leave range='log' out, and"
            " give lower and upper if there are few people"
        )
    if column.kind is Kind.FLOAT or column.untyped:
        bits = _bits(column)
        sizes = [rank_of_float(float(size), bits) for size in _decades(_EXPONENTS)]
        marks = (*(-size for size in reversed(sizes)), 0, *sizes)
        return Span(Kind.FLOAT, marks[0], marks[-1], bits=bits, marks=marks)
    least, most = _ends_of_numbers(column.kind, column)
    sizes = [int(size) for size in map(Decimal, _decades(range(20))) if size == int(size)]
    marks = (*(-size for size in reversed(sizes) if -size >= least), 0, *(size for size in sizes if size <= most))
    return Span(column.kind, marks[0], marks[-1], digits=column.digits, marks=marks)


def _decades(exponents: range) -> list[str]:
    """All numbers of two digits with leading digits at these powers of ten, and the next power of ten."""
    return [*(f"{two}e{exponent - 1}" for exponent in exponents for two in range(10, 100)), f"1e{exponents.stop}"]
