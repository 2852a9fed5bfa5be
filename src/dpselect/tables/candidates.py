"""Public lists of candidates and groups.

They must not come from the data: listing a value that only one person has would reveal them. A candidate that
nobody has is fine: it has score zero, and it can win. The ranges of quantiles are in `ranges`.
"""

import datetime
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np

from dpselect._numbers import LARGEST_EXPONENT, float_near, has_few_digits, rational
from dpselect._validate import is_unicode
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.grids import EPOCH, EPOCH_ZONED, MICROSECOND
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
    return [python_scalar(item) for item in values]


def python_scalar(item: Any) -> Any:
    """The item, as Python's type if it is a NumPy scalar."""
    return item.item() if isinstance(item, np.generic) else item


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
