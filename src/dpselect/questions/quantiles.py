"""One quantile or several: levels, the range of the candidates, who counts with what, and what the answer estimates.

One level is one selection among the values of a grid. Several levels are answered part by part (`splitting`): m of them
have L = ceil(log2(m + 1)) depths, each of which gets an equal share of the price.
"""

import datetime
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np

from dpselect import _validate
from dpselect._levels import NAMED, levels_name, levels_text, percent, read_levels
from dpselect._numbers import NotExact, NotFinite, exact_text, rational_from_text
from dpselect._types import Number
from dpselect.accounting.budget import Price
from dpselect.analysis.promises import ErrorsOf, Promise
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import (
    Claim,
    Sensitivity,
    change_by_addition,
    neighbours_of,
    of_cuts,
    of_quantile,
    stated,
)
from dpselect.mechanisms.several import SelectsSeveral, selecting_sets
from dpselect.questions.options import HIDDEN, Field, Option, end, listed_levels, option, whole
from dpselect.questions.quantile_errors import (
    errors_by_level,
    people_for_level,
    people_for_levels,
    promise_for_levels,
    usual_error_of_levels,
)
from dpselect.questions.question import OF_TABLE, Asked, Draw, OfTable, many, plain
from dpselect.questions.rows import Engine, Individuals, Places, quantile_score_runs
from dpselect.questions.splitting import split_quantiles
from dpselect.selection.draws import Draws

MEDIAN, ROWS = "median", "rows"  # what a person counts with
FULL, LOG = "full", "log"
_HALF = Fraction(1, 2)
_MOST_IN_RANGE = 2**64
# The candidates of the range "log" for floats: zero and, for either sign, 90 in each of 27 decades and the end of them.
_MAGNITUDES = 2 * (27 * 90 + 1) + 1
_MICROSECOND = datetime.timedelta(microseconds=1)


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
    if not 1 <= rows <= _validate.MANY:
        raise InvalidValue(f"max_rows must be from 1 to {_validate.MANY:,}")
    return rows


@dataclass(frozen=True, kw_only=True)
class OverRange(OfTable):
    """What questions about quantiles share: the candidates, and with how many rows a person counts."""

    is_of_numbers: ClassVar[bool] = True
    lower: Any = option(
        asking=Option(
            ("--lower",),
            "A",
            "Smallest candidate: a number, date or timestamp. Default: that of the type.",
            end,
        ),
        planning=Option(
            ("--lower",),
            "A",
            "Smallest candidate: a number, date or timestamp. Default: 2^64 candidates.",
            page=Field("From", example="0"),
        ),
        default=None,
    )
    upper: Any = option(
        asking=Option(("--upper",), "B", "Largest candidate. Default: that of the type.", end),
        planning=Option(("--upper",), "B", "Largest candidate.", page=Field("to", example="100")),
        default=None,
    )
    step: Any = option(
        asking=Option(
            ("--step",),
            "S",
            "Step between candidates (days for dates, seconds for timestamps). Default: 1, or without --lower or"
            " --upper as fine as the type. For CSV, 1 reads whole numbers and 0.01 two digits after the point.",
            end,
        ),
        planning=Option(
            ("--step",),
            "S",
            "Step between candidates (days for dates, seconds for timestamps). Default: 1.",
            page=Field("in steps of", "The range must be public. It is not taken from the data.", "1"),
        ),
        default=None,
    )
    range: str = option(
        asking=Option(
            ("--range",),
            "full|log",
            "log: values rounded to two digits, for few people or an unknown scale.",
            default=FULL,
        ),
        planning=Option(
            ("--range",),
            "R",
            "full, or log for about 5,000 candidates of two digits.",
            default=FULL,
            page=HIDDEN,
        ),
        default=FULL,
    )
    candidates: int | None = None
    per_person: str = option(
        asking=Option(
            ("--per-person",),
            "median|rows",
            "A person counts once, at the median of their rows; or with up to --max-rows rows, chosen at random.",
            default=MEDIAN,
        ),
        default=MEDIAN,
        table=True,
        repr=False,
    )
    max_rows: int | None = option(
        asking=Option(("--max-rows",), "M", "With how many rows a person counts, for --per-person rows.", whole),
        planning=Option(
            ("--max-rows",),
            "M",
            "A person counts with at most M rows. Default: once, at their median.",
            whole,
            page=HIDDEN,
        ),
        default=None,
    )
    grid: Any = field(default=None, repr=False, metadata=OF_TABLE)  # the candidates
    stands_for: str | None = field(
        default=None, repr=False, metadata=OF_TABLE
    )  # the minimum or the maximum, of which it is an estimate

    @classmethod
    def about(  # noqa: PLR0913 - the range, by keyword
        cls,
        table: Asked,
        column: Any,
        price: Price,
        *,
        lower: Any = None,
        upper: Any = None,
        step: Any = None,
        range: str = FULL,
        per_person: str = MEDIAN,
        max_rows: Any = None,
        **stated: Any,
    ) -> OfTable:
        """Return the question about a column of a table."""
        rows = read_max_rows(per_person, max_rows, table.individuals)
        grid = table.span(column, lower, upper, step, range)
        return super().about(table, column, price, grid=grid, max_rows=rows, **stated)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grid is not None:
            object.__setattr__(self, "candidates", self.grid.size)
            return
        if self.step is None and self.lower is not None and self.upper is not None:
            object.__setattr__(self, "step", 1)
        for name in ("lower", "upper", "step"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else _written(value, name))
        if self.range not in (FULL, LOG):
            raise InvalidValue(f"range must be {FULL!r} or {LOG!r}, got {str(self.range)[:40]!r}")
        if self.max_rows is not None:
            _validate.count(1, _validate.MANY, max_rows=self.max_rows)
        if (self.candidates is not None or self.range == LOG) and self._has_ends:
            other = "candidates" if self.candidates is not None else "range='log'"
            raise InvalidValue(f"{other} replaces lower, upper and step: leave them out, or {other}")
        if self.candidates is not None:
            _validate.count(2, _MOST_IN_RANGE, candidates=self.candidates)
        if self.size > _MOST_IN_RANGE:
            raise InvalidValue("lower, upper and step make more than 2**64 candidates: give a larger step")

    @property
    def claim(self) -> Claim:
        """Return how much one person can change the scores."""
        bound = self.sensitivity()
        return stated(bound.largest_change, bound.monotonic)

    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """Return how much one individual can change a score."""

    @property
    def _has_ends(self) -> bool:
        return (self.lower, self.upper, self.step) != (None, None, None)

    @property
    def size(self) -> int:
        """Return the number of candidates.

        If an end of the range is missing, it depends on the type of the column, and 2**64 is the most that it can be.
        """
        if self.candidates is not None:
            return self.candidates
        if self.range == LOG:
            return _MAGNITUDES
        if self.lower is None or self.upper is None:
            return _MOST_IN_RANGE
        distance, step = _distance(self.lower, self.upper, self.step)
        if step <= 0:
            raise InvalidValue("step must be > 0: give the step between two candidates")
        if distance < 0:
            raise InvalidValue("lower must be <= upper: give the public range of the column")
        return int(distance // step) + 1

    @property
    def error_unit(self) -> str:
        """Return the unit of errors: a person who counts with several rows has several ranks."""
        return "people" if self.max_rows is None else "rows"

    @property
    def rows(self) -> int:
        """Return with how many rows a person counts."""
        return 1 if self.max_rows is None else self.max_rows

    @property
    def over(self) -> str:
        """Return the candidates in words."""
        number = many(self.size, "candidate")
        if self.candidates is not None:
            return f"among {number}"
        if self.range == LOG:
            return f"among {number} of two digits (range log)"
        ends = [f"from {plain(self.lower)}"] if self.lower is not None else []
        ends += [f"to {plain(self.upper)}"] if self.upper is not None else []
        ends += [f"in steps of {plain(self.step)}"] if self.step is not None else []
        at_most = "" if self.lower is not None and self.upper is not None else "at most "
        shown = "2**64 candidates" if self.size == _MOST_IN_RANGE else number
        return f"{' '.join(ends) or 'over the whole range of the column'} ({at_most}{shown})"

    @property
    def of_rows(self) -> str:
        """Return in words with how many rows a person counts; nothing if once."""
        return "" if self.max_rows is None else f", with at most {many(self.max_rows, 'row')} of each person"

    def parameters(self) -> dict[str, Any]:
        """Return the question in the types of JSON.

        Returns:
            Its name, its fields, and the number of candidates.

        >>> Quantile(level="0.9", lower=0, upper=1000).parameters()["candidates"]
        1001
        """
        return {**super().parameters(), "candidates": self.size}

    def entry(self) -> dict[str, Any]:
        """Return the public parameters that a ledger records."""
        marks = {"range": LOG} if self.grid.marks else {}
        rows = {} if self.max_rows is None else {"per_person": ROWS, "max_rows": self.max_rows}
        return {
            "question": self.stands_for or self.name,
            "column": self.column.name,
            **self._levels_entry,
            "lower": str(self.grid.value(0)),
            "upper": str(self.grid.value(self.grid.size - 1)),
            "candidates": self.grid.size,
            **marks,
            **rows,
        }

    @property
    @abstractmethod
    def _levels_entry(self) -> dict[str, Any]: ...

    def estimate(self, individuals: Individuals) -> str:
        """Return what is estimated, in words."""
        instead = "" if self.stands_for is None else f" (in place of the {self.stands_for})"
        return f"{self._estimated} over {self._whom(individuals)}{instead}{individuals.in_each_group}"

    @property
    @abstractmethod
    def _estimated(self) -> str:
        """The name of what is estimated."""

    def _whom(self, individuals: Individuals) -> str:
        if individuals.person is None:
            return "rows"
        if self.max_rows is None:
            return "people, each at the median of their own rows"
        plural = "" if self.max_rows == 1 else "s"
        return f"rows of people, at most {self.max_rows:,} row{plural} of each person"

    def answer(self, engine: Engine, individuals: Individuals, draw: Draw) -> Any:
        """Count and select: return a value or a list of values of the grid, or a dict with that for each group."""
        found = engine.places(self.column, self.grid, individuals, self.max_rows)
        return individuals.by_group([self._of_group(data, draw.mechanism) for data in found])

    @abstractmethod
    def _of_group(self, data: Places, mechanism: MechanismBase) -> Any:
        """The answer for the people of one group."""


@dataclass(frozen=True, kw_only=True)
class Quantile(OverRange):
    """A value with about a share `level` of the people below it, as `Table.quantile` returns it.

    Args:
        level: the share, between 0 and 1, taken exactly: 0.9 is nine tenths. 1/2 is the median.
        lower: the smallest candidate: a number, a date or a timestamp; dates and timestamps may be ISO text. Without
            both ends, the number of candidates depends on the type of the column, and the plan takes 2**64, the most.
        upper: the largest candidate.
        step: the step between candidates: days for dates, seconds or a timedelta for timestamps; 1 if omitted.
        range: "full", or "log" for the candidates of `range="log"` of a table, about 5,000.
        candidates: the number of candidates, instead of a range.
        max_rows: with how many rows a person counts, for `per_person="rows"`; None if a person counts once.
        groups: the number of public groups, each of which gets an answer; None for one answer.
        max_groups: in how many groups a person may count.
        neighbours: "add-remove" or "replace".

    Raises:
        InvalidType, InvalidValue: an argument is wrong.

    >>> Quantile(level=0.9, lower=0, upper=1000).size
    1001
    >>> Quantile(level=0.9).size == 2**64
    True
    """

    name: ClassVar[str] = "quantile"
    level: Number = option(Option(("--level", "-q"), "Q", "Share of people below it, such as 0.9 or 1/3."))

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "level", _validate.level(self.level))

    @property
    def has_range(self) -> bool:
        """Return True."""
        return True

    @property
    def exact_level(self) -> Fraction:
        """Return the level."""
        return cast("Fraction", self.level)

    def sensitivity(self) -> Sensitivity:
        """Return how much one individual can change a score."""
        neighbours = neighbours_of(self.neighbours)
        return of_quantile(self.exact_level, neighbours, in_groups=self.groups is not None, rows=self.rows)

    @property
    def unit(self) -> int:
        """Return the denominator of the level: how much of a score is one person."""
        return self.exact_level.denominator

    def people_needed(self, mechanism: MechanismBase) -> int | None:
        """Return about how many people, or rows, an answer needs."""
        return people_for_level(float(mechanism.rate * self.unit), self.size, self.exact_level)

    @property
    def what(self) -> str:
        """Return the name of the quantile."""
        return "median" if self.exact_level == Fraction(1, 2) else f"{exact_text(self.exact_level)} quantile"

    @property
    def title(self) -> str:
        """Return the question in words."""
        return f"The {self.what} {self.over}{self.of_rows}{self.in_groups}"

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean."""
        return (
            f"On average, the rank of the answer is at most {average} {self.error_unit} further from the {self.what}"
            f" than that of the best candidate. In 95 of 100 cases the difference is less than {usual}, in 99 of 100"
            f" less than {rare}."
        )

    @property
    def _levels_entry(self) -> dict[str, Any]:
        return {"level": str(self.level)}

    @property
    def _estimated(self) -> str:
        return "median" if self.level == _HALF else f"{percent(self.exact_level)} quantile"

    def _of_group(self, data: Places, mechanism: MechanismBase) -> Any:
        index = mechanism.select_runs(*quantile_score_runs(data, self.grid.size, self.exact_level))
        return self.grid.value(index)


@dataclass(frozen=True, kw_only=True)
class Quantiles(OverRange):
    """A value for each of several levels, as `Table.quantiles` returns them.

    Args:
        levels: the shares, between 0 and 1, or "quartiles", "deciles" or "percentiles".

    The other arguments are those of `Quantile`.

    Raises:
        InvalidType, InvalidValue: an argument is wrong.

    >>> Quantiles(levels="deciles", lower=0, upper=1000, groups=12, max_groups=2).draws
    8
    """

    name: ClassVar[str] = "quantiles"
    has_plot: ClassVar[bool] = True
    is_split: ClassVar[bool] = True
    levels: Any = option(
        asking=Option(
            ("--levels",), "LIST", "Shares such as 0.1,0.5,0.9, or quartiles, deciles or percentiles.", listed_levels
        ),
        planning=Option(
            ("--levels",),
            "LEVELS",
            "0.1,0.5,0.9, or quartiles, deciles or percentiles.",
            listed_levels,
            page=Field("Levels", "0.5 is the median. Several: 0.1, 0.5, 0.9, or quartiles or deciles.", "0.5"),
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "levels", read_levels(self.levels))

    @classmethod
    def beside(cls, stated: Mapping[str, Any]) -> dict[str, Any]:
        """Return the level of each value."""
        return {"levels": [exact_text(level) for level in stated["levels"]]}

    @property
    def alone(self) -> Quantile | None:
        """Return the question for the only level, if there is one: it needs no cuts."""
        if len(self.levels) > 1:
            return None
        shared = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "levels"}
        return Quantile(level=self.levels[0], **shared)

    @property
    def unit(self) -> int:
        """Return how much of a score is one person."""
        return 1 if self.alone is None else self.alone.unit

    @property
    def ascending(self) -> tuple[Fraction, ...]:
        """Return the levels in ascending order."""
        return tuple(sorted(self.levels))

    @property
    def rounds(self) -> int:
        """Return the number of selections: one for each level."""
        return len(self.levels)

    @property
    def depths(self) -> int:
        """Return how many selections one person can influence, one after another: ceil(log2(m + 1)) of m."""
        return len(self.levels).bit_length()

    @property
    def draws(self) -> int:
        """Return the number of selections that one person can influence, in all groups that they may be in."""
        return self.depths * self.max_groups

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Return the names of the mechanisms that can split."""
        return tuple(name for name, kind in MECHANISMS.items() if kind.has_sets)

    def sensitivity(self) -> Sensitivity:
        """Return how much one individual can change the number of people on the larger side of a cut."""
        if self.alone is not None:
            return self.alone.sensitivity()
        return of_cuts(neighbours_of(self.neighbours), rows=self.rows)

    def checked(self, mechanism: MechanismBase) -> MechanismBase:
        """Return the mechanism, checked to be one that can split."""
        drawn = super().checked(mechanism)
        if len(self.levels) > 1 and not drawn.has_sets:
            raise InvalidType(
                f"mechanism {drawn.name} cannot draw several quantiles: use permute-and-flip or exponential"
            )
        return drawn

    @property
    def errors(self) -> ErrorsOf | None:
        """Return None if several selections make up an answer."""
        return None if self.alone is None else self.alone.errors

    def promise(self, mechanism: MechanismBase) -> Promise:
        """Return the bounds for the level with the largest ones."""
        if self.alone is not None:
            return self.alone.promise(mechanism)
        return promise_for_levels(mechanism, self.size, self.ascending)

    def all_within(self, mechanism: MechanismBase, probability: float) -> float:
        """Return an error that any level reaches with at most this probability."""
        if self.alone is not None:
            return self.alone.all_within(mechanism, probability)
        return max(errors_by_level(mechanism, self.size, self.ascending, probability, together=True))

    def people_needed(self, mechanism: MechanismBase) -> int | None:
        """Return about how many people, or rows, an answer needs."""
        if self.alone is not None:
            return self.alone.people_needed(mechanism)
        return people_for_levels(mechanism, self.size, self.ascending)

    def usual_error(self, mechanism: MechanismBase) -> float | None:
        """Return about how large the error of the worst level is on data without wide gaps."""
        return None if self.alone is not None else usual_error_of_levels(mechanism, self.ascending)

    @property
    def title(self) -> str:
        """Return the question in words."""
        return f"The {self.what} {self.over}{self.of_rows}{self.in_groups}"

    @property
    def what(self) -> str:
        """Return the name of the levels, or their number."""
        name = next((name for name, levels in NAMED.items() if levels == self.ascending), None)
        return name or many(len(self.levels), "quantile")

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean."""
        if self.alone is not None:
            return self.alone.meaning(average, usual, rare)
        return (
            f"On average, the rank of each answer is at most {average} {self.error_unit} from its level, apart from"
            f" rounding to whole {self.error_unit}. In 95 of 100 cases it is less than {usual}, in 99 of 100 less than"
            f" {rare}. These are upper bounds, summed over {many(self.depths, 'depth')}. They are about the values"
            " rounded down to candidates: if values lie between candidates, choose a smaller step."
        )

    @property
    def shares(self) -> str:
        """Return in words how the price is divided."""
        if self.draws == 1:
            return super().shares
        groups = f" in each of {many(self.max_groups, 'group')}" if self.max_groups > 1 else ""
        each = "" if self.groups is None else " The accuracy holds for each group."
        levels, depths = many(len(self.levels), "level"), many(self.depths, "depth")
        return f"{levels} are found in {depths}{groups}, and each depth gets 1/{self.draws:,} of the price.{each}"

    @property
    def _levels_entry(self) -> dict[str, Any]:
        return {"levels": levels_name(self.levels) or [str(level) for level in self.levels]}

    @property
    def _estimated(self) -> str:
        return levels_text(self.levels)

    def _of_group(self, data: Places, mechanism: MechanismBase) -> Any:
        """The answers in the order of the levels, which are drawn in ascending order."""
        if self.alone is not None:
            return [self.alone._of_group(data, mechanism)]
        ascending = sorted(self.levels)
        drawn = split_quantiles(data, self.grid.size, ascending, for_each_level(mechanism), Draws())
        values = dict(zip(ascending, map(self.grid.value, drawn), strict=True))
        return [values[level] for level in self.levels]


def _written(value: Any, name: str) -> Any:
    """An exact number, a date, a timestamp or a length of time, as it was written: the float 0.1 is one tenth."""
    if isinstance(value, (datetime.date, datetime.timedelta)):  # timestamps are dates, too
        return value
    if not isinstance(value, str):
        return _validate.exact(**{name: str(value) if isinstance(value, (float, np.floating)) else value})
    for reader in (rational_from_text, datetime.date.fromisoformat, datetime.datetime.fromisoformat):
        try:
            return reader(value.strip())
        except (NotExact, NotFinite, ValueError):
            continue
    raise InvalidValue(
        f"{name}: {value[:40]!r} is neither a number nor a date: write for example 12, 0.5 or 2026-01-31"
    )


def _distance(lower: Any, upper: Any, step: Any) -> tuple[Fraction, Fraction]:
    """How far upper is from lower, and the step, in one unit."""
    if isinstance(lower, Fraction) and isinstance(upper, Fraction):
        if not isinstance(step, Fraction):
            raise InvalidType("step must be a number, as lower and upper are")
        return upper - lower, step
    try:
        distance = upper - lower
    except TypeError:
        distance = None
    if type(lower) is not type(upper) or not isinstance(distance, datetime.timedelta):
        raise InvalidType("lower and upper must be of one type: give two numbers, two dates or two timestamps")
    second = Fraction(10**6)
    width = Fraction(step // _MICROSECOND) if isinstance(step, datetime.timedelta) else None
    if width is None:
        if not isinstance(step, Fraction):
            raise InvalidType("step must be a number of days or seconds, or a timedelta")
        width = step * second * (1 if isinstance(lower, datetime.datetime) else 24 * 3600)
    return Fraction(distance // _MICROSECOND), width


def for_each_level(mechanism: MechanismBase) -> Callable[[Fraction], SelectsSeveral]:
    """The mechanism for the scores of a level, given the one for scores in units of its `change_by_addition`."""
    several = selecting_sets(mechanism)
    return lambda level: several.with_sensitivity(several.sensitivity * change_by_addition(level))
