"""Public candidates and groups: lists of values, and the grid lower, lower + step, ..., upper of a quantile.

Neither may come from the data: listing a value that only one person has would reveal them. A candidate that
nobody has is fine: it has score zero, and it can win.

A candidate of a grid is a whole number of units: 1 for whole numbers, 10**-digits for decimals and floats,
days for dates, and microseconds for timestamps. A float candidate is the float nearest to its decimal value, so
0.1 means one tenth here, and the candidate 0.3 is the float that a user writes as 0.3.
"""

import datetime
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np

from dpselect._numbers import LARGEST_EXPONENT, float_near, has_few_digits, rational
from dpselect._validate import is_unicode
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.schema import Column, Kind

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
    """How many digits a finite decimal has after the point, without zeros at its end.

    Written with no operation of `decimal` that rounds to the precision of the thread's own context.
    """
    _, digits, exponent = number.as_tuple()
    shown = "".join(map(str, digits))
    zeros = len(shown) - len(shown.rstrip("0"))
    return max(0, -int(exponent) - zeros) if number else 0


_LARGEST = 10**LARGEST_EXPONENT
_SHOWN_CHARACTERS = 60
_WHY = "it must be public: a list taken from the data reveals who is in the data"


@dataclass(frozen=True)
class Values:
    """Distinct values of one kind, in the given order."""

    kind: Kind
    items: tuple[Any, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def sha256(self) -> str:
        """Return a digest that identifies the list in a ledger."""
        return hashlib.sha256(repr(self.items).encode()).hexdigest()

    @property
    def listed(self) -> list[Any]:
        """Return all values in the given order."""
        return list(self.items)


def public_values(values: Any, column: Column, name: str = "candidates") -> Values:
    """The list of candidates or groups, checked against the kind of its column. Messages use `name`."""
    items = _items(values, name)
    if not items:
        raise InvalidValue(f"{name} must have at least one value: list what may be answered; {_WHY}")
    kinds = _kinds(items, name)
    if kinds in ({Kind.INTEGER, Kind.FLOAT}, {Kind.INTEGER, Kind.DECIMAL}):
        kinds -= {Kind.INTEGER}
    if len(kinds) > 1:
        raise InvalidType(f"{name} must be values of one type: {', '.join(sorted(kind.value for kind in kinds))} mixed")
    [given] = kinds
    if given not in column.comparable:
        raise InvalidType(
            f"{name} are {given.value}, but the column {column.name!r} holds {column.kind.value}:"
            " give values of the column's type"
        )
    if column.kind is Kind.FLOAT or given is Kind.FLOAT:
        items = [_exact_float(item, name) for item in items]
        given = Kind.FLOAT
    if len(set(items)) != len(items):
        twice = next(item for item, times in Counter(items).items() if times > 1)
        raise InvalidValue(f"{name} must be different values, but {_shown(twice)} occurs twice: drop the duplicates")
    return Values(given, tuple(items))


def _shown(item: Any) -> str:
    return str(item)[:_SHOWN_CHARACTERS]


def _items(values: Any, name: str) -> list[Any]:
    if values is None:
        raise InvalidValue(f"{name} must be given: list what may be answered; {_WHY}")
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, set, frozenset)):
        kinds = "a list, tuple, range, set, NumPy array, pandas or polars Series or Arrow array"
        raise InvalidType(f"{name} must be a list of values, got {type(values).__name__}: give {kinds}")
    return [item.item() if isinstance(item, np.generic) else item for item in values]


def _kinds(items: list[Any], name: str) -> set[Kind]:
    """The kinds of the items. Each type is checked once, unless items of one type can differ in kind."""
    kinds = set()
    for example in {type(item): item for item in items}.values():
        kind = kind_of_value(example)
        if kind is None:
            kinds_known = "numbers, text, dates, timestamps or booleans"
            raise InvalidType(f"{name} must be {kinds_known}, got {type(example).__name__}")
        kinds.add(kind)
    if kinds & {Kind.TIMESTAMP, Kind.ZONED}:
        kinds |= {kind for item in items if (kind := kind_of_value(item)) is not None}
    if kinds & {Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL}:
        _check_numbers(items, name)
    if Kind.TEXT in kinds and not is_unicode("".join(item for item in items if isinstance(item, str))):
        raise InvalidValue(f"{name} must be text that can be encoded as UTF-8: drop the lone surrogates")
    return kinds


def _check_numbers(items: list[Any], name: str) -> None:
    """Refuse numbers that are not finite or have too many digits."""
    for item in items:
        finite, short = True, True
        if isinstance(item, Decimal):
            finite, short = item.is_finite(), abs(item.adjusted()) <= LARGEST_EXPONENT and has_few_digits(item)
        elif isinstance(item, float):
            finite = math.isfinite(item)
        elif isinstance(item, int):
            short = abs(item) <= _LARGEST
        if not finite:
            raise InvalidValue(f"{name} must be finite numbers: NaN and infinities cannot be counted")
        if not short:
            raise InvalidValue(f"{name} must have at most {LARGEST_EXPONENT} digits: give shorter numbers")


def _exact_float(item: Any, name: str) -> float:
    """The float equal to this number. A column of floats cannot hold any other number."""
    nearest = item if isinstance(item, float) else float_near(rational(item))
    if nearest != item:
        raise InvalidValue(
            f"{name} must be floating-point numbers: {str(item)[:40]} is not one, so no row can match it"
        )
    return nearest


_EPOCH_DAY = datetime.date(1970, 1, 1)
_EPOCH = datetime.datetime(1970, 1, 1)  # for columns without a time zone
_EPOCH_ZONED = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)

_LARGEST_SIZE = 2**64
_LARGEST_UNIT = 2**64 - 1
# Below this, the index of a float can be computed in floats, and candidates are distinct floats: see `expressions`.
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

    @property
    def upper(self) -> Any:
        """Return the end of the range, which need not be a candidate."""
        return _VALUES[self.kind](self.last, self.digits)


_VALUES: dict[Kind, Callable[[int, int], Any]] = {
    Kind.INTEGER: lambda units, _: units,
    Kind.DECIMAL: lambda units, digits: Decimal(f"{units}e-{digits}"),  # from text, so no decimal context rounds it
    Kind.FLOAT: lambda units, digits: units / 10**digits,
    Kind.DATE: lambda units, _: _EPOCH_DAY + datetime.timedelta(days=units),
    Kind.TIMESTAMP: lambda units, _: _EPOCH + units * _MICROSECOND,
    Kind.ZONED: lambda units, _: _EPOCH_ZONED + units * _MICROSECOND,
}


def public_grid(lower: Any, upper: Any, step: Any, column: Column) -> Grid:
    """The grid of candidates for a column."""
    kind = column.kind
    given = {kind_of_value(bound) for bound in (lower, upper)}
    if kind is Kind.TEXT and not column.untyped:
        raise InvalidType(
            f"column {column.name!r} holds text, which has no quantiles: use a column of numbers or dates"
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
        raise InvalidValue("step must be > 0: give the step between two candidates")
    if grid.last < grid.first:
        raise InvalidValue(
            f"lower must be <= upper, got {grid.value(0)} and {grid.upper}: give the public range of the column"
        )
    if grid.size > _LARGEST_SIZE:
        raise InvalidValue("lower, upper and step make more than 2**64 candidates: give a larger step")
    most = _LARGEST_FLOAT_UNIT if grid.kind is Kind.FLOAT else _LARGEST_UNIT
    if max(abs(grid.first), abs(grid.last), grid.step) > most or grid.digits > _MOST_DIGITS:
        raise InvalidValue("lower, upper and step have too many digits for this column: give rounder numbers")
    return grid


def _kind_of_numbers(numbers: tuple[Any, ...]) -> Kind:
    """The kind of answers from a column of text: floats if any number is a float, then decimals, then whole numbers."""
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
            raise InvalidValue("step must be whole days for a column of dates: give for example 7")
        return step.days
    if kind_of_value(step) is not Kind.INTEGER:
        raise InvalidType("step must be a number of days for a column of dates: give for example 7")
    return int(step)


def _microseconds(step: Any) -> int:
    if isinstance(step, datetime.timedelta):
        return step // _MICROSECOND
    if kind_of_value(step) not in _NUMBERS:
        raise InvalidType("step must be seconds or a timedelta for a column of timestamps: give for example 60")
    microseconds = Fraction(_decimal(step, "step")) * 1_000_000
    if microseconds.denominator != 1:
        raise InvalidValue("step must be whole microseconds for a column of timestamps: give fewer digits")
    return int(microseconds)
