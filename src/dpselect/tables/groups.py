"""Public groups: the values of one column, or combinations of the values of several.

A group must not come from the data, for the same reason as a candidate, unless it was found privately. No row is in two
groups: the values of each column are different in the column's type, and so are the combinations, because they differ
in a value.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from dpselect._validate import warn
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.candidates import Values, aligned_values, given_items, python_scalar
from dpselect.tables.schema import Column, Kind

_MOST_COMBINATIONS = 10**6
_SHOWN = 60
_NAME = "groups"

Listed = Callable[[Any, Column, str], Values]


@dataclass(frozen=True)
class Groups:
    """The public groups, and the largest number of groups in which a person is counted.

    Attributes:
        columns: the columns that determine the group of a row.
        kinds: for each column, the kind of the values with which it is compared.
        names: the groups, as answers name them: values of the only column, or tuples with a value for each column.
        max_groups: the largest number of groups in which a person is counted.
    """

    columns: tuple[Column, ...]
    kinds: tuple[Kind, ...]
    names: tuple[Any, ...] = field(repr=False)
    max_groups: int

    def __len__(self) -> int:
        return len(self.names)

    @property
    def is_plain(self) -> bool:
        """Return whether the groups are the values of one column, and not tuples."""
        return not self.names or not isinstance(self.names[0], tuple)

    @property
    def members(self) -> list[Values]:
        """Return for each column its value in every group. Values of several columns repeat."""
        if self.is_plain:
            return [Values(self.kinds[0], self.names)]
        return [Values(kind, tuple(own)) for kind, own in zip(self.kinds, zip(*self.names, strict=True), strict=True)]

    @property
    def words(self) -> str:
        """Return the names of the columns, for a sentence."""
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
    """The public list of each column."""
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
    """The different values of each column, and the tuples of them."""
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
