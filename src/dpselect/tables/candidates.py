"""Public candidates and groups: lists of values, and the grids of quantiles.

They must not come from the data: listing a value that only one person has would reveal them. A candidate that
nobody has is fine: it has score zero, and it can win. How a range becomes a grid is in `ranges`.

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
import hashlib
import math
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from dpselect._numbers import LARGEST_EXPONENT, float_near, has_few_digits, rational
from dpselect._types import Lengths
from dpselect._validate import is_unicode
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.schema import Column, Kind

EPOCH_DAY = datetime.date(1970, 1, 1)
EPOCH = datetime.datetime(1970, 1, 1)  # for columns without a time zone
EPOCH_ZONED = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)

LARGEST_UNIT = 2**64 - 1
# Below this, the index of a float can be computed in floats, and candidates are distinct floats: see `duckdb.places`.
LARGEST_FLOAT_UNIT = 2**48
# The rank of the largest finite float of so many bits.
LARGEST_RANK = {32: 0x7F7FFFFF, 64: 0x7FEFFFFFFFFFFFFF}

_LARGEST_SIZE = 2**64
_MOST_DIGITS = {Kind.FLOAT: 15, Kind.DECIMAL: 18}
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
class Grid:
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

    def checked(self) -> "Grid":
        """Return the grid, if it has candidates, and not too many or too long ones."""
        if self.last < self.first:
            raise InvalidValue(
                f"lower must be <= upper, got {self.value(0)} and {self.upper}: give the public range of the column"
            )
        if self.size > _LARGEST_SIZE:
            raise InvalidValue("lower, upper and step make more than 2**64 candidates: give a larger step")
        most = LARGEST_FLOAT_UNIT if self.kind is Kind.FLOAT and not self.bits else LARGEST_UNIT
        if max(abs(self.first), abs(self.last), self.step) > most or self.digits > _MOST_DIGITS.get(self.kind, 0):
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
    """The function that reads a value of a kind from its key (`duckdb.lists`).

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


_LARGEST = 10**LARGEST_EXPONENT
_SHOWN_CHARACTERS = 60
_WHY = "it must be public: a list taken from the data reveals who is in the data"


@dataclass(frozen=True)
class Values:
    """Distinct values of one kind, in the given order; and maybe a further candidate, for all other values.

    An individual has the candidate `other` if they have a value that is neither missing nor listed, however many they
    have. So their data move its count by at most one, like that of a listed candidate, and no sensitivity changes.

    Attributes:
        kind: the kind of the listed values.
        items: the listed values.
        other: the further candidate, which comes last; None if there is none.
    """

    kind: Kind
    items: tuple[Any, ...] = field(repr=False)
    other: Any = field(default=None, repr=False, kw_only=True)

    def __len__(self) -> int:
        return len(self.items) + (self.other is not None)

    @property
    def size(self) -> int:
        """Return the number of candidates."""
        return len(self)

    @property
    def words(self) -> str | None:
        """Return None: a list has no rule."""
        return None

    @property
    def as_list(self) -> "Values":
        """Return the list."""
        return self

    def entry(self) -> dict[str, Any]:
        """Return what a ledger records of the candidates."""
        other = {} if self.other is None else {"other": str(self.other)}
        return {"candidates": len(self), "candidates_sha256": self.sha256, **other}

    @property
    def sha256(self) -> str:
        """Return a digest that identifies the list in a ledger."""
        listed = self.items if self.other is None else (self.items, self.other)
        return hashlib.sha256(repr(listed).encode()).hexdigest()

    @property
    def listed(self) -> list[Any]:
        """Return all values in the given order, and the candidate for other values."""
        return [*self.items, *([] if self.other is None else [self.other])]

    @property
    def other_label(self) -> Any:
        """Return how engines call the candidate for other values; None if there is none."""
        return None if self.other is None else len(self.items)

    def with_other(self, other: Any, column: Column, listed: Callable[[Any, Column, str], "Values"]) -> "Values":
        """Return the list with a candidate for other values, checked. `listed` is that of the engine."""
        if other is None:
            return self
        if isinstance(other, str) and self.kind is not Kind.TEXT:
            check_other_text(other)
            if other in map(str, self.items):
                raise other_is_listed(other)
            return replace(self, other=other)
        if type(other) in (str, int) and other in self.items:
            raise other_is_listed(other)
        together = listed([*self.items, other], column, "candidates with other")
        if together.kind is not self.kind:
            raise other_of_another_kind(self.kind)
        return replace(self, other=together.items[-1])


def check_other_text(other: str) -> None:
    """Refuse a text that cannot be stored."""
    if not is_unicode(other):
        raise InvalidValue("other must be text that can be encoded as UTF-8: drop the lone surrogates")


def other_is_listed(other: Any) -> InvalidValue:
    """The error for a candidate for other values that is also listed."""
    return InvalidValue(f"other must not be one of the candidates, but {_shown(other)!r} is listed: give another name")


def other_of_another_kind(kind: Kind) -> InvalidType:
    """The error for a candidate for other values that is neither text nor of the candidates' kind."""
    return InvalidType(f"other must be text, or {kind.value} like the candidates")


def public_values(values: Any, column: Column, name: str = "candidates") -> Values:
    """The list of candidates or groups, checked against the kind of its column. Messages use `name`."""
    listed = aligned_values(given_items(values, name), column, name)
    items = listed.items
    if len(set(items)) != len(items):
        twice = next(item for item, times in Counter(items).items() if times > 1)
        raise InvalidValue(f"{name} must be different values, but {_shown(twice)} occurs twice: drop the duplicates")
    return listed


def aligned_values(items: list[Any], column: Column, name: str) -> Values:
    """The values, checked against the kind of their column. Some may be equal."""
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
    return Values(given, tuple(items))


def _shown(item: Any) -> str:
    return str(item)[:_SHOWN_CHARACTERS]


def given_items(values: Any, name: str) -> list[Any]:
    """The items of a public list, of which there is at least one."""
    if values is None:
        raise InvalidValue(f"{name} must be given: list what may be answered; {_WHY}")
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, set, frozenset)):
        kinds = "a list, tuple, range, set, NumPy array, pandas or polars Series or Arrow array"
        raise InvalidType(f"{name} must be a list of values, got {type(values).__name__}: give {kinds}")
    if not values:
        raise InvalidValue(f"{name} must have at least one value: list what may be answered; {_WHY}")
    if any(issubclass(type_, np.generic) for type_ in set(map(type, values))):
        return [python_scalar(item) for item in values]
    return list(values)


def python_scalar(item: Any) -> Any:
    """The item, as Python's type if it is a NumPy scalar."""
    return item.item() if isinstance(item, np.generic) else item


def _kinds(items: list[Any], name: str) -> set[Kind]:
    """The kinds of the items. Each type is checked once, unless items of one type can differ in kind."""
    kinds = set()
    for example in dict(zip(map(type, items), items, strict=True)).values():
        kind = kind_of_value(example)
        if kind is None:
            kinds_known = "numbers, text, dates, timestamps or booleans"
            raise InvalidType(f"{name} must be {kinds_known}, got {type(example).__name__}")
        kinds.add(kind)
    if kinds & {Kind.TIMESTAMP, Kind.ZONED}:
        kinds |= {kind for item in items if (kind := kind_of_value(item)) is not None}
    if kinds & {Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL}:
        _check_numbers(items, name)
    if kinds == {Kind.TEXT} and not is_unicode("".join(items)):
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
