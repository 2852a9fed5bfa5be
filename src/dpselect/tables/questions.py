"""The questions, as frozen records of public parameters: what to count, how to score it, and how to choose."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.tables import ranks, sensitivity
from dpselect.tables.engine import Engine, Individuals
from dpselect.tables.grid import Grid
from dpselect.tables.kinds import Column
from dpselect.tables.sensitivity import Neighbours, Sensitivity
from dpselect.tables.values import Values


class Question(Protocol):
    """One question to a table. It is answered once, or once for each group."""

    @property
    def column(self) -> Column:
        """Return the column that the question is about."""
        ...

    @property
    def rounds(self) -> int:
        """Return how many selections an answer takes."""
        ...

    def sensitivity(self, neighbours: Neighbours, *, in_groups: bool) -> Sensitivity:
        """Return how much one individual can change a score."""
        ...

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        ...

    def answers(self, engine: Engine, who: Individuals, mechanism: PermuteAndFlip) -> list[Any]:
        """Return an answer for each group, or one for all."""
        ...


@dataclass(frozen=True)
class TopK:
    """The candidates that most individuals have, in order of selection; `k` is None for the single mode.

    Top-k by peeling: k selections, each among the candidates that are left (Durfee & Rogers 2019).
    """

    column: Column
    candidates: Values
    k: int | None = None

    @property
    def rounds(self) -> int:
        """Return how many selections an answer takes."""
        return 1 if self.k is None else self.k

    def sensitivity(self, neighbours: Neighbours, *, in_groups: bool) -> Sensitivity:  # noqa: ARG002 - same in groups
        """Return how much one individual can change a count."""
        return sensitivity.of_counts(neighbours)

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        question = {"question": "mode"} if self.k is None else {"question": "top_k", "k": self.k}
        named = {"column": self.column.name, "candidates": len(self.candidates)}
        return {**question, **named, "candidates_sha256": self.candidates.sha256}

    def answers(self, engine: Engine, who: Individuals, mechanism: PermuteAndFlip) -> list[Any]:
        """Return an answer for each group, or one for all."""
        chosen = engine.chosen(self.column, self.candidates, who, mechanism, self.rounds)
        return [candidates[0] for candidates in chosen] if self.k is None else chosen


@dataclass(frozen=True)
class Quantile:
    """A value of the grid below which about a share `level` of the individuals lie."""

    column: Column
    grid: Grid
    level: Fraction

    @property
    def rounds(self) -> int:
        """Return how many selections an answer takes."""
        return 1

    def sensitivity(self, neighbours: Neighbours, *, in_groups: bool) -> Sensitivity:
        """Return how much one individual can change a score."""
        return sensitivity.of_quantile(self.level, neighbours, in_groups=in_groups)

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        return {
            "question": "quantile",
            "column": self.column.name,
            "level": str(self.level),
            "lower": str(self.grid.value(0)),
            "upper": str(self.grid.value(self.grid.size - 1)),
            "candidates": self.grid.size,
        }

    def answers(self, engine: Engine, who: Individuals, mechanism: PermuteAndFlip) -> list[Any]:
        """Return an answer for each group, or one for all."""
        found: Sequence[ranks.Places] = engine.places(self.column, self.grid, who)
        return [self.grid.value(mechanism.select_runs(*ranks.runs(data, self.grid.size, self.level))) for data in found]
