"""Public lists of candidates and groups.

The list must not come from the data: a value that only one person has would tell on them by being listed. A candidate
that nobody has is welcome; it has score zero, and can win.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from dpselect._numbers import LARGEST_EXPONENT, float_near, has_few_digits, rational
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.schema import Column, Kind, is_unicode, kind_of_value

_LARGEST = 10**LARGEST_EXPONENT
_SHOWN_CHARACTERS = 60
_WHY = "it must be public: a list taken from the data leaks who is in it"


@dataclass(frozen=True)
class Values:
    """Different values of one kind, in the order in which they were given."""

    kind: Kind
    items: tuple[Any, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def sha256(self) -> str:
        """Return a digest of the list, by which a ledger knows it again."""
        return hashlib.sha256(repr(self.items).encode()).hexdigest()


def public_values(values: Any, column: Column, name: str = "candidates") -> Values:
    """The list of candidates (or of groups), checked against the kind of its column."""
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
        raise InvalidValue(f"{name} must be different values, and {_shown(twice)} is there twice: drop the duplicates")
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
    """The kinds of the items: one look at each type, except where items of one type can differ."""
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
        raise InvalidValue(f"{name} must be text that UTF-8 can write: drop the surrogates")
    return kinds


def _check_numbers(items: list[Any], name: str) -> None:
    """Refuse what is not finite, or too long to be written."""
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
    """The float that is this number; a column of floats can hold no other."""
    nearest = item if isinstance(item, float) else float_near(rational(item))
    if nearest != item:
        raise InvalidValue(f"{name} must be floating-point numbers: {str(item)[:40]} is none, and can never be counted")
    return nearest
