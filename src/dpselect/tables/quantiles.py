"""The question for one quantile or several: levels, who counts with what, and what the answer estimates.

One level is one selection among the values of the grid. Several levels are answered part by part (`splitting`): m of
them have L = ceil(log2(m + 1)) depths, each of which gets an equal share of the price.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from dpselect import _validate
from dpselect._levels import levels_name, levels_text, percent
from dpselect.accounting.budget import Budget, Price
from dpselect.accounting.charge import QUANTILES
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import Neighbours, change_by_addition, of_cuts, of_quantile
from dpselect.mechanisms.several import SelectsSeveral
from dpselect.sampling.draws import Draws
from dpselect.tables.accuracy import Asked, Measure, of_levels
from dpselect.tables.candidates import Grid
from dpselect.tables.questions import Drawing, Engine, Individuals, Places, checked_for_tables, quantile_score_runs
from dpselect.tables.ranges import LOG
from dpselect.tables.schema import Column
from dpselect.tables.splitting import split_quantiles

MEDIAN, ROWS = "median", "rows"  # what a person counts with

_HALF = Fraction(1, 2)
_MOST_ROWS = 10**9


def read_max_rows(per_person: Any, max_rows: Any, individuals: Individuals) -> int | None:
    """With how many rows a person counts; None if a person counts once, at their median, or if there are no people."""
    if per_person not in (MEDIAN, ROWS):
        raise InvalidValue(f"per_person must be {MEDIAN!r} or {ROWS!r}, got {str(per_person)[:40]!r}")
    if individuals.person is None and (per_person != MEDIAN or max_rows is not None):
        raise InvalidValue(
            "per_person and max_rows need a person column: without one, each row counts by itself. Open the table with"
            " person="
        )
    if per_person == MEDIAN:
        if max_rows is not None:
            raise InvalidValue("max_rows needs per_person='rows': otherwise a person counts once, at their median")
        return None
    if max_rows is None:
        raise InvalidValue("per_person='rows' needs max_rows, the largest number of rows with which a person counts")
    rows = _validate.count(max_rows=max_rows)
    if not 1 <= rows <= _MOST_ROWS:
        raise InvalidValue(f"max_rows must be from 1 to {_MOST_ROWS:,}")
    return rows


@dataclass(frozen=True)
class Quantile:
    """Values of the grid, each with about a share of the individuals, its level, below it.

    Attributes:
        column: the column that the question is about.
        grid: the public candidates.
        levels: the levels, in the order of the answer.
        question: its name in ledgers: "quantile", "quantiles", or what is asked for: "minimum" or "maximum".
        max_rows: with how many rows a person counts; None if a person counts once.
    """

    column: Column
    grid: Grid
    levels: tuple[Fraction, ...]
    question: str = "quantile"
    max_rows: int | None = None

    @property
    def depths(self) -> int:
        """Return how many parts an individual is in, one after another: ceil(log2(m + 1)) for m levels."""
        return len(self.levels).bit_length()

    def mechanism(self, price: Price, budget: Budget | None, neighbours: Neighbours, groups: int | None) -> Drawing:
        """Return the mechanism that draws at this price, and what is charged for it.

        That of several levels is stated for scores in units of each level's `change_by_addition`.
        """
        count, rows = self.depths * (1 if groups is None else groups), self.max_rows or 1
        if len(self.levels) == 1:
            bound = of_quantile(self.levels[0], neighbours, in_groups=groups is not None, rows=rows)
        else:
            bound = of_cuts(neighbours, rows=rows)
        claim = {"sensitivity": bound.largest_change, "monotonic": bound.monotonic}
        drawn = checked_for_tables(price.drawn_by(budget, count, **claim))
        if len(self.levels) > 1 and not drawn.has_sets:
            raise InvalidType(
                f"mechanism {drawn.name} cannot draw several quantiles: use permute-and-flip or exponential"
            )
        return Drawing(drawn, drawn, count)

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        asked: dict[str, Any] = {"question": self.question, "column": self.column.name}
        if self.question == QUANTILES:
            asked["levels"] = levels_name(self.levels) or [str(level) for level in self.levels]
        else:
            asked["level"] = str(self.levels[0])
        asked["lower"] = str(self.grid.value(0))
        asked["upper"] = str(self.grid.value(self.grid.size - 1))
        asked["candidates"] = self.grid.size
        marks = {"range": LOG} if self.grid.marks else {}
        rows = {} if self.max_rows is None else {"per_person": ROWS, "max_rows": self.max_rows}
        return {**asked, **marks, **rows}

    def estimate(self, individuals: Individuals) -> str:
        """Return what is estimated, in words."""
        return f"{self._what} over {self._whom(individuals)}{self._instead}{individuals.in_each_group}"

    @property
    def _what(self) -> str:
        if self.question != QUANTILES:
            return "median" if self.levels[0] == _HALF else f"{percent(self.levels[0])} quantile"
        return levels_text(self.levels)

    def _whom(self, individuals: Individuals) -> str:
        if individuals.person is None:
            return "rows"
        if self.max_rows is None:
            return "people, each at the median of their own rows"
        plural = "" if self.max_rows == 1 else "s"
        return f"rows of people, at most {self.max_rows:,} row{plural} of each person"

    @property
    def _instead(self) -> str:
        return f" (in place of the {self.question})" if self.question in ("minimum", "maximum") else ""

    def measured(self, asked: Asked, drawing: Drawing, price: Price, budget: Budget | None) -> Measure:  # noqa: ARG002
        """Return what computes how far an answer may be off."""
        return of_levels(asked, self.levels, self.grid.size, self.max_rows, drawing.mechanism)

    def answer(self, engine: Engine, individuals: Individuals, mechanism: MechanismBase) -> Any:
        """Count and select: return a value or a list of values of the grid, or a dict with that for each group."""
        choose = self._chosen_alone if len(self.levels) == 1 else self._chosen_together
        found: Sequence[Places] = engine.places(self.column, self.grid, individuals, self.max_rows)
        values = [[self.grid.value(index) for index in choose(data, mechanism)] for data in found]
        return individuals.by_group(values if self.question == QUANTILES else [own for [own] in values])

    def _chosen_alone(self, data: Places, mechanism: MechanismBase) -> list[int]:
        return [mechanism.select_runs(*quantile_score_runs(data, self.grid.size, self.levels[0]))]

    def _chosen_together(self, data: Places, mechanism: MechanismBase) -> list[int]:
        """The indices of the answers in the order of the levels, which are drawn in ascending order."""
        ascending = sorted(self.levels)
        drawn = dict(
            zip(
                ascending,
                split_quantiles(data, self.grid.size, ascending, for_each_level(mechanism), Draws()),
                strict=True,
            )
        )
        return [drawn[level] for level in self.levels]


def for_each_level(mechanism: MechanismBase) -> Callable[[Fraction], SelectsSeveral]:
    """The mechanism for the scores of a level, given the one for scores in units of its `change_by_addition`."""
    several = cast("SelectsSeveral", mechanism)
    return lambda level: several.with_sensitivity(several.sensitivity * change_by_addition(level))
