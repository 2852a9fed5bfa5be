"""What an engine does for a table: tell the public schema, count individuals, and have a mechanism choose."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from dpselect.errors import EngineFailure, withheld
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.tables.grid import Grid
from dpselect.tables.kinds import Column
from dpselect.tables.ranks import Places
from dpselect.tables.values import Values

Counts = npt.NDArray[np.int64]
_Counted = TypeVar("_Counted")


@dataclass(frozen=True)
class Groups:
    """Public groups, and in how many of them a person is kept."""

    column: Column
    values: Values
    most: int


@dataclass(frozen=True)
class Individuals:
    """Who is counted: people or rows, all together or in groups."""

    person: Column | None
    groups: Groups | None = None

    @property
    def columns(self) -> list[Column]:
        """Return the columns that say who is counted, and in which group."""
        return [*filter(None, [self.person, None if self.groups is None else self.groups.column])]

    def names(self, column: Column) -> list[str]:
        """Return the names of the columns that a question about a column reads, each once."""
        return list(dict.fromkeys(each.name for each in (column, *self.columns)))

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        named = {"person": None if self.person is None else self.person.name}
        if self.groups is None:
            return named
        groups = {"group_by": self.groups.column.name, "max_groups": self.groups.most}
        return {**named, **groups, "groups": len(self.groups.values), "groups_sha256": self.groups.values.sha256}


def counted(count: Callable[[], _Counted]) -> _Counted:
    """What counting gives. What an engine says of a failure is withheld, and so is what a user's relation raises."""
    failure = EngineFailure("the table could not be counted: check that it is complete and readable")
    return withheld(count, failure)


def peeled(scores: Counts, k: int, mechanism: PermuteAndFlip) -> list[int]:
    """Positions selected one after another, each from those that are left, in a time that reveals none of them."""
    left = np.arange(scores.size)
    chosen = []
    for _ in range(k):
        position = mechanism.select(scores[left], steady=True)
        chosen.append(int(left[position]))
        left = np.delete(left, position)
    return chosen


class Engine(Protocol):
    """Counts individuals. Everything that it returns but the schema is secret."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """Return the public schema."""
        ...

    def listed(self, values: Any, column: Column) -> Values:
        """Return a public list of values that are different in the type of their column."""
        ...

    def candidates(self, values: Any, column: Column) -> Values:
        """Return a public list of candidates, in whatever form the engine takes them."""
        ...

    def chosen(
        self, column: Column, candidates: Values, who: Individuals, mechanism: PermuteAndFlip, k: int
    ) -> list[list[Any]]:
        """Return k candidates that many individuals have, peeled one after another: for each group, or once for all."""
        ...

    def places(self, column: Column, grid: Grid, who: Individuals) -> Sequence[Places]:
        """Return where the individuals' values are on the grid: for each group, or once for all.

        A person with several values stands at their lower median.
        """
        ...

    def content(self, columns: Sequence[Column]) -> str:
        """Return a digest of what a question about these columns reads: equal for equal rows in any order."""
        ...
