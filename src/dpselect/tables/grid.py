"""The candidates lower, lower + step, ..., upper of a quantile, in exact integers.

A candidate is a whole number of units: of 1 for whole numbers, of 10**-digits for decimals and floats, of days for
dates and of microseconds for timestamps. A float candidate is the float nearest to its decimal value, so that 0.1 means
one tenth here, and the candidate 0.3 is the float that a user writes as 0.3.
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any

from dpselect._numbers import has_few_digits
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.schema import Column, Kind, digits_after_point, kind_of_value

_EPOCH_DAY = datetime.date(1970, 1, 1)
_EPOCH = datetime.datetime(1970, 1, 1)  # of columns without time zone
_EPOCH_ZONED = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)

_LARGEST_SIZE = 2**64
_LARGEST_UNIT = 2**64 - 1
# Below this the index of a float can be found in floats, and different candidates are different floats; see `sql`.
_LARGEST_FLOAT_UNIT = 2**48
_MOST_DIGITS = 15
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)


@dataclass(frozen=True)
class Grid:
    """Candidate number i is first + i * step units; values of the data are clamped to [first, last] units."""

    kind: Kind
    first: int
    last: int
    step: int
    digits: int = 0

    @property
    def size(self) -> int:
        """Return the number of candidates."""
        return (self.last - self.first) // self.step + 1

    def value(self, index: int) -> Any:
        """Return a candidate in the type of the column."""
        return _VALUES[self.kind](self.first + index * self.step, self.digits)


_VALUES: dict[Kind, Callable[[int, int], Any]] = {
    Kind.INTEGER: lambda units, _: units,
    Kind.DECIMAL: lambda units, digits: Decimal(f"{units}e-{digits}"),  # from text, so that no context rounds it
    Kind.FLOAT: lambda units, digits: units / 10**digits,
    Kind.DATE: lambda units, _: _EPOCH_DAY + datetime.timedelta(days=units),
    Kind.TIMESTAMP: lambda units, _: _EPOCH + units * _MICROSECOND,
    Kind.ZONED: lambda units, _: _EPOCH_ZONED + units * _MICROSECOND,
}


def public_grid(lower: Any, upper: Any, step: Any, column: Column) -> Grid:
    """The grid of a column."""
    kind = column.kind
    given = {kind_of_value(bound) for bound in (lower, upper)}
    if kind is Kind.TEXT and not column.untyped:
        raise InvalidType(
            f"column {column.name!r} holds text, which has no quantiles: ask for a column of numbers or dates"
        )
    if None in given or given & {Kind.BOOLEAN, Kind.TEXT}:
        raise InvalidType("lower and upper must be numbers, dates or timestamps: give the public range of the column")
    if kind in (Kind.DATE, Kind.TIMESTAMP, Kind.ZONED) or (kind is Kind.TEXT and given & {Kind.DATE, Kind.TIMESTAMP}):
        grid = _grid_of_times(lower, upper, step, kind=_kind_of_times(given, column))
    elif kind in (*_NUMBERS, Kind.TEXT) and given <= set(_NUMBERS):
        wanted = _kind_of_numbers((lower, upper, step)) if kind is Kind.TEXT else kind
        grid = _grid_of_numbers(lower, upper, step, kind=wanted, digits=column.digits if kind is Kind.DECIMAL else None)
    else:
        names = " and ".join(sorted(bound.value for bound in given if bound is not None))
        raise InvalidType(
            f"column {column.name!r} holds {kind.value}, lower and upper are {names}: a quantile needs an order"
        )
    return _checked(grid)


def _checked(grid: Grid) -> Grid:
    if grid.step <= 0:
        raise InvalidValue("step must be > 0: give the distance between two candidates")
    if grid.last < grid.first:
        raise InvalidValue("lower must be <= upper: give the public range of the column")
    if grid.size > _LARGEST_SIZE:
        raise InvalidValue("lower, upper and step make more than 2**64 candidates: give a larger step")
    most = _LARGEST_FLOAT_UNIT if grid.kind is Kind.FLOAT else _LARGEST_UNIT
    if max(abs(grid.first), abs(grid.last), grid.step) > most or grid.digits > _MOST_DIGITS:
        raise InvalidValue("lower, upper and step have too many digits for this column: give rounder numbers")
    return grid


def _kind_of_numbers(numbers: tuple[Any, ...]) -> Kind:
    """What comes out of a column of text: floats if any number is one, else decimals, else whole numbers."""
    kinds = {kind_of_value(number) for number in numbers}
    return next((kind for kind in (Kind.FLOAT, Kind.DECIMAL) if kind in kinds), Kind.INTEGER)


def _grid_of_numbers(lower: Any, upper: Any, step: Any, *, kind: Kind, digits: int | None) -> Grid:
    decimals = [_decimal(value, name) for value, name in ((lower, "lower"), (upper, "upper"), (step, "step"))]
    needed = max(digits_after_point(decimal) for decimal in decimals)
    most = 0 if kind is Kind.INTEGER else digits
    if most is not None and needed > most:
        raise InvalidValue(f"lower, upper and step must have at most {most} digits after the point, as the column has")
    if needed > _MOST_DIGITS:
        raise InvalidValue(f"lower, upper and step must have at most {_MOST_DIGITS} digits after the point")
    used = needed if kind is Kind.FLOAT or digits is None else digits
    first, last, width = (int(Fraction(decimal) * 10**used) for decimal in decimals)
    return Grid(kind, first, last, width, used)


def _decimal(value: Any, name: str) -> Decimal:
    """The number as it is written; a float by the shortest text that gives it."""
    if kind_of_value(value) not in _NUMBERS:
        raise InvalidType(f"{name} must be a number, got {type(value).__name__}")
    if isinstance(value, Integral):  # a long one would take long to convert
        decimal = Decimal(int(value)) if abs(int(value)) < 10**41 else Decimal("inf")
    else:
        decimal = Decimal(str(value))
    if not decimal.is_finite() or abs(decimal.adjusted()) > 40 or not has_few_digits(decimal):
        raise InvalidValue(f"{name} must be a finite number of moderate size: give the public range of the column")
    return decimal


def _kind_of_times(given: set[Kind | None], column: Column) -> Kind:
    kind = column.kind
    if len(given) > 1:
        raise InvalidType("lower and upper must be of one type: give two dates or two timestamps")
    [bound] = given
    if bound is None or (kind is not Kind.TEXT and bound is not kind):
        name = "nothing" if bound is None else bound.value
        raise InvalidType(f"column {column.name!r} holds {kind.value}, lower and upper are {name}: give {kind.value}")
    return bound


def _grid_of_times(lower: Any, upper: Any, step: Any, *, kind: Kind) -> Grid:
    if kind is Kind.DATE:
        return Grid(kind, (lower - _EPOCH_DAY).days, (upper - _EPOCH_DAY).days, _days(step))
    epoch = _EPOCH if kind is Kind.TIMESTAMP else _EPOCH_ZONED
    return Grid(kind, (lower - epoch) // _MICROSECOND, (upper - epoch) // _MICROSECOND, _microseconds(step))


def _days(step: Any) -> int:
    if isinstance(step, datetime.timedelta):
        if step % datetime.timedelta(days=1):
            raise InvalidValue("step must be whole days for a column of dates: give for instance 7")
        return step.days
    if kind_of_value(step) is not Kind.INTEGER:
        raise InvalidType("step must be a number of days for a column of dates: give for instance 7")
    return int(step)


def _microseconds(step: Any) -> int:
    if isinstance(step, datetime.timedelta):
        return step // _MICROSECOND
    if kind_of_value(step) not in _NUMBERS:
        raise InvalidType("step must be seconds or a timedelta for a column of timestamps: give for instance 60")
    microseconds = Fraction(_decimal(step, "step")) * 1_000_000
    if microseconds.denominator != 1:
        raise InvalidValue("step must be whole microseconds for a column of timestamps: give fewer digits")
    return int(microseconds)
