"""Public candidates and groups: lists of values.

They must not come from the data: listing a value that only one person has would reveal them. A candidate that
nobody has is fine: it has score zero, and it can win. Ranges are in `kinds`, and rules in `domains`.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np

from dpselect._numbers import LARGEST_EXPONENT, float_near, has_few_digits, rational
from dpselect._validate import is_unicode, warn
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.kinds import Column, Kind, kind_of_value

_LARGEST = 10**LARGEST_EXPONENT
_MOST_COMBINATIONS = 10**6
_SHOWN = 60  # characters of a value in a message
_NAME = "groups"
_WHY = "it must be public: a list taken from the data reveals who is in the data"


@dataclass(frozen=True)
class Values:
    """Distinct values of one kind, in the given order; and maybe a further candidate, for all other values.

    An individual has the candidate `other` if they have a value that is neither missing nor listed, however many they
    have. So their data move its count by at most one, like that of a listed candidate, and no sensitivity changes.
    """

    kind: Kind
    items: tuple[Any, ...] = field(repr=False)
    other: Any = field(default=None, repr=False, kw_only=True)

    def __len__(self) -> int:
        return len(self.items) + (self.other is not None)

    @property
    def size(self) -> int:
        return len(self)

    @property
    def words(self) -> str | None:
        """None: a list has no rule."""
        return None

    @property
    def as_list(self) -> "Values":
        return self

    def entry(self) -> dict[str, Any]:
        other = {} if self.other is None else {"other": str(self.other)}
        return {"candidates": len(self), "candidates_sha256": self.sha256, **other}

    @property
    def sha256(self) -> str:
        """A digest that identifies the list in a ledger."""
        listed = self.items if self.other is None else (self.items, self.other)
        return hashlib.sha256(repr(listed).encode()).hexdigest()

    @property
    def listed(self) -> list[Any]:
        """All values in the given order, and the candidate for other values."""
        return [*self.items, *([] if self.other is None else [self.other])]

    @property
    def other_label(self) -> Any:
        """How engines call the candidate for other values; None if there is none."""
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
    return str(item)[:_SHOWN]


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
    # Each type is checked once, unless items of one type can differ in kind.
    examples = dict(zip(map(type, items), items, strict=True)).values()
    odd = [type(example).__name__ for example in examples if kind_of_value(example) is None]
    if odd:
        raise InvalidType(f"{name} must be numbers, text, dates, timestamps or booleans, got {odd[0]}")
    kinds = {kind for example in examples if (kind := kind_of_value(example)) is not None}
    if kinds & {Kind.TIMESTAMP, Kind.ZONED}:
        kinds |= {kind for item in items if (kind := kind_of_value(item)) is not None}
    if kinds & {Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL}:
        _check_numbers(items, name)
    if kinds == {Kind.TEXT} and not is_unicode("".join(items)):
        raise InvalidValue(f"{name} must be text that can be encoded as UTF-8: drop the lone surrogates")
    return kinds


def _check_numbers(items: list[Any], name: str) -> None:
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
    # A column of floats cannot hold any other number.
    nearest = item if isinstance(item, float) else float_near(rational(item))
    if nearest != item:
        raise InvalidValue(
            f"{name} must be floating-point numbers: {str(item)[:40]} is not one, so no row can match it"
        )
    return nearest


Listed = Callable[[Any, Column, str], Values]


@dataclass(frozen=True)
class Groups:
    """The public groups, as answers name them, and the largest number of groups in which a person is counted."""

    columns: tuple[Column, ...]
    kinds: tuple[Kind, ...]
    names: tuple[Any, ...] = field(repr=False)
    max_groups: int

    def __len__(self) -> int:
        return len(self.names)

    @property
    def is_plain(self) -> bool:
        """Whether the groups are the values of one column, and not tuples."""
        return not self.names or not isinstance(self.names[0], tuple)

    @property
    def members(self) -> list[Values]:
        """For each column its value in every group. Values of several columns repeat."""
        if self.is_plain:
            return [Values(self.kinds[0], self.names)]
        return [Values(kind, tuple(own)) for kind, own in zip(self.kinds, zip(*self.names, strict=True), strict=True)]

    @property
    def words(self) -> str:
        """The names of the columns, for a sentence."""
        *others, last = [repr(column.name) for column in self.columns]
        return f"{', '.join(others)} and {last}" if others else last

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        names = [column.name for column in self.columns]
        digest = hashlib.sha256(repr(self.names).encode()).hexdigest()
        by = names[0] if self.is_plain else names
        return {"group_by": by, "max_groups": self.max_groups, "groups": len(self), "groups_sha256": digest}


def group_text(name: Any) -> str:
    """The name of a group for a line of text.

    >>> group_text("north"), group_text(("north", 2024))
    ('north', 'north, 2024')
    """
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def groups_of_column(groups: Any, column: Column, max_groups: int, listed: Listed) -> Groups:
    """The values of one column as groups, checked. `listed` is that of the engine."""
    values = listed(groups, column, _NAME)
    if len(values) == 1:
        warn(
            f"groups has one value, {str(values.items[0])[:_SHOWN]!r}, so there is one answer, for the people of that"
            " group alone: list all groups, such as 1, 2, 3, or ask without groups"
        )
    return Groups((column,), (values.kind,), values.items, min(max_groups, len(values)))


def found_groups(column: Column, values: Sequence[Any], max_groups: int) -> Groups:
    """Values of one column that were found privately, as groups. There may be none."""
    return Groups((column,), (column.kind,), tuple(values), max(1, min(max_groups, len(values))))


def groups_of_columns(groups: Any, columns: Sequence[Column], max_groups: int, listed: Listed) -> Groups:
    """Combinations of the values of several columns as groups, checked: all of them, or a list of tuples."""
    names = [column.name for column in columns]
    if not names:
        raise InvalidValue("group_by must name at least one column, got an empty list")
    if len(set(names)) != len(names):
        raise InvalidValue("group_by must name different columns: drop the one that is named twice")
    if isinstance(groups, Mapping):
        lists = _lists(groups, columns, listed)
        combinations = tuple(product(*(values.items for values in lists)))
    else:
        lists, combinations = _tuples(groups, columns, listed)
    kinds = tuple(values.kind for values in lists)
    return Groups(tuple(columns), kinds, combinations, min(max_groups, len(combinations)))


def _lists(groups: Mapping[Any, Any], columns: Sequence[Column], listed: Listed) -> list[Values]:
    names = [column.name for column in columns]
    for name in names:
        if name not in groups:
            raise InvalidValue(f"groups must have a list for each column, but there is none for {name!r}: add it")
    for name in groups:
        if name not in names:
            raise InvalidValue(f"groups has a list for {str(name)[:_SHOWN]!r}, which is not in group_by: drop it")
    lists = [listed(groups[column.name], column, _of(column)) for column in columns]
    number = math.prod(map(len, lists))
    if number > _MOST_COMBINATIONS:
        raise InvalidValue(
            f"groups has {number:,} combinations of values, more than {_MOST_COMBINATIONS:,}: shorten the lists, or"
            " give a list of tuples"
        )
    return lists


def _tuples(groups: Any, columns: Sequence[Column], listed: Listed) -> tuple[list[Values], tuple[tuple[Any, ...], ...]]:
    rows = given_items(groups, _NAME)
    size = len(columns)
    alone = f": for plain groups, write group_by({columns[0].name!r})" if size == 1 else ""
    # A list of lists could also be meant as one list for each column. The rows of an array cannot.
    kinds = (tuple,) if isinstance(groups, (list, tuple)) else (tuple, list)
    for row in rows:
        if not isinstance(row, kinds):
            raise InvalidType(
                f"groups must be tuples with a value for each column of group_by, or a mapping from each column to its"
                f" list, but one is {type(row).__name__}{alone}"
            )
        if len(row) != size:
            raise InvalidValue(
                f"groups must be tuples of length {size}, with a value for each column of group_by, but one has length"
                f" {len(row)}"
            )
    lists, members = [], []
    for column, own in zip(columns, zip(*rows, strict=True), strict=True):
        aligned = aligned_values(list(map(python_scalar, own)), column, _of(column))
        lists.append(listed(list(dict.fromkeys(aligned.items)), column, _of(column)))
        members.append(aligned.items)
    combinations = tuple(zip(*members, strict=True))
    if len(set(combinations)) != len(combinations):
        twice = next(each for each, times in Counter(combinations).items() if times > 1)
        raise InvalidValue(f"groups must be different, but {str(twice)[:_SHOWN]} occurs twice: drop the duplicates")
    return lists, combinations


def _of(column: Column) -> str:
    return f"groups of {column.name!r}"
