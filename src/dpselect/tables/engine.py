"""What an engine does for a table: tell the public schema, and count individuals. It never draws an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dpselect.tables.grid import Grid
from dpselect.tables.kinds import Column
from dpselect.tables.ranks import Places
from dpselect.tables.values import Values

Counts = npt.NDArray[np.int64]


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


class Engine(Protocol):
    """Counts individuals. Everything that it returns but the schema is secret."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """Return the public schema."""
        ...

    def counts(self, column: Column, candidates: Values, who: Individuals) -> Sequence[Counts]:
        """Return how many individuals have each candidate: a vector for each group, or one for all."""
        ...

    def places(self, column: Column, grid: Grid, who: Individuals) -> Sequence[Places]:
        """Return where the individuals' values are on the grid: for each group, or once for all.

        A person with several values stands at their lower median.
        """
        ...
