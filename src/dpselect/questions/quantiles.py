"""One quantile or several: levels, the range of the candidates, who counts with what, and what the answer estimates.

One level is one selection among the values of a grid. Several levels are answered part by part (`splitting`): m of them
have L = ceil(log2(m + 1)) depths, each of which gets an equal share of the price.

**The errors of several quantiles** (`questions.splitting`). A level q that is answered in the part between the levels l
and h has the level p = (q - l)/(h - l) in this part. The part has the people between the ranks R_l and R_h, so the cut
aims at the rank R_l + p (R_h - R_l) = (1 - p) R_l + p R_h, while q n = (1 - p) l n + p h n. With the error
E_q = |R_q - q n| and the error e_q of the cut itself,

    E_q <= e_q + (1 - p) E_l + p E_h,    where E_0 = E_1 = 0.

So the error of a level is at most a sum over the depths, with weights of at most one (`_Cut.weights`). The cut itself
has a score of one for each person, and one person moves it by at most max(p, 1 - p): its error is max(p, 1 - p) times
that of a selection at the rate of the question. The last cut of a part is one of the `size` values, all others are one
of size 2**32 places. Averages add up. For a tail of probability t, each of d depths may exceed its own bound with
probability t/d (a union bound). None of it is attained: it is an upper bound. Places are whole people, so the best cut
of a depth may be off by up to one more person, which is left out.

**How many people.** With n people, the candidates below all people and those above all of them are at least
min(p, 1 - p) n people away from the level, where n is the number of people in the part. There are at most `size` of
them, so the probability that one of them is the answer, and thus says nothing about anybody, is at most
size exp(-c min(p, 1 - p) n), with the rate c of a person. It is at most 1/20 if n >= ln(20 size) / (c min(p, 1 - p)).
For the median c = epsilon: 95/epsilon people for 2**64 candidates, 47 on either side. Cuts may be among people who
share a value. There a rank has 2**32/n places, so the good cuts weigh as much as 2/c ranks, or 2**33/(c n) places, and
there are size c n/2 other candidates for each of them.

**The usual error.** If values lie so densely that ranks near the level have about equally many places, the error of a
cut has about the weights exp(-c |j|) for ranks j, and a mean of 1/c. That is much less than the bound, in which all
other candidates are equally far away. The errors of the depths are added up here, too, as if all of them went in one
direction. They do not, so the true mean is somewhat smaller: for deciles at epsilon 1 about 7.5 people instead of 11.5.
"""

import datetime
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, ClassVar

import numpy as np

from dpselect import _validate
from dpselect._levels import NAMED, levels_name, levels_text, percent, read_levels
from dpselect._numbers import NotExact, NotFinite, exact_text, rational_from_text
from dpselect._types import Number
from dpselect.accounting.budget import Price
from dpselect.analysis.measures import ErrorsOf, Promise, promise, rarely_exceeded
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import (
    Claim,
    change_by_addition,
    neighbours_of,
    of_cuts,
    of_quantile,
    stated,
)
from dpselect.mechanisms.several import SelectsSeveral, selecting_sets
from dpselect.questions.methods import Draw
from dpselect.questions.options import ASKING, HIDDEN, Field, Option, as_it_is, end, listed_levels, whole
from dpselect.questions.question import OF_TABLE, Asked, EndOfRange, Exact, OfTable, many, plain
from dpselect.questions.rows import Engine, Individuals, Places, quantile_score_runs
from dpselect.questions.splitting import SUB_PLACES, split_quantiles
from dpselect.selection.draws import Draws

MEDIAN, ROWS = "median", "rows"  # what a person counts with
FULL, LOG = "full", "log"
_HALF = Fraction(1, 2)
_MOST_IN_RANGE = 2**64
# The candidates of the range "log" for floats: zero and, for either sign, 90 in each of 27 decades and the end of them.
_MAGNITUDES = 2 * (27 * 90 + 1) + 1
_MICROSECOND = datetime.timedelta(microseconds=1)
_ONE_IN = 20  # answers may say nothing
_ITERATIONS = 50


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
    """What one quantile and several share: the candidates, and with how many rows a person counts."""

    is_of_numbers: ClassVar[bool] = True
    lower: EndOfRange = Option(
        ("--lower",),
        "A",
        "Smallest candidate: a number, date or timestamp. Default: that of the type.",
        end,
        page=Field("From", example="0"),
        planned={
            "help": "Smallest candidate: a number, date or timestamp. Default: 2^64 candidates.",
            "read": as_it_is,
        },
    ).as_field(default=None)
    upper: EndOfRange = Option(
        ("--upper",),
        "B",
        "Largest candidate. Default: that of the type.",
        end,
        page=Field("to", example="100"),
        planned={"help": "Largest candidate.", "read": as_it_is},
    ).as_field(default=None)
    step: Exact = Option(
        ("--step",),
        "S",
        "Step between candidates (days for dates, seconds for timestamps). Default: 1, or without --lower or"
        " --upper as fine as the type. For CSV, 1 reads whole numbers and 0.01 two digits after the point.",
        end,
        page=Field("in steps of", "The range must be public. It is not taken from the data.", "1"),
        planned={
            "help": "Step between candidates (days for dates, seconds for timestamps). Default: 1.",
            "read": as_it_is,
        },
    ).as_field(default=None)
    range: Annotated[str, {"enum": [FULL, LOG]}] = Option(
        ("--range",),
        "full|log",
        "log: values rounded to two digits, for few people or an unknown scale.",
        page=HIDDEN,
        planned={"metavar": "R", "help": "full, or log for about 5,000 candidates of two digits."},
    ).as_field(default=FULL)
    candidates: int | None = None
    per_person: str = Option(
        ("--per-person",),
        "median|rows",
        "A person counts once, at the median of their rows; or with up to --max-rows rows, chosen at random.",
    ).as_field(forms=(ASKING,), default=MEDIAN, table=True, repr=False)
    max_rows: int | None = Option(
        ("--max-rows",),
        "M",
        "With how many rows a person counts, for --per-person rows.",
        whole,
        page=HIDDEN,
        planned={"help": "A person counts with at most M rows. Default: once, at their median."},
    ).as_field(default=None)
    # The levels, in the order of the answer.
    asked: tuple[Fraction, ...] = field(init=False, repr=False, compare=False, metadata=OF_TABLE)
    grid: Any = field(default=None, repr=False, metadata=OF_TABLE)  # the candidates
    # The minimum or the maximum, of which it is an estimate.
    stands_for: str | None = field(default=None, repr=False, metadata=OF_TABLE)

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
        rows = read_max_rows(per_person, max_rows, table.individuals)
        grid = table.span(lower, upper, step, column, range)
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
        has_ends = (self.lower, self.upper, self.step) != (None, None, None)
        if has_ends and (self.candidates is not None or self.range == LOG):
            other = "candidates" if self.candidates is not None else "range='log'"
            raise InvalidValue(f"{other} replaces lower, upper and step: leave them out, or {other}")
        if self.candidates is not None:
            _validate.count(2, _MOST_IN_RANGE, candidates=self.candidates)
        if self.size > _MOST_IN_RANGE:
            raise InvalidValue("lower, upper and step make more than 2**64 candidates: give a larger step")

    @property
    def only(self) -> Fraction | None:
        """The only level, if there is one: it needs no cuts."""
        return self.asked[0] if len(self.asked) == 1 else None

    @property
    def ascending(self) -> tuple[Fraction, ...]:
        """The levels in ascending order."""
        return tuple(sorted(self.asked))

    @property
    def rounds(self) -> int:
        return len(self.asked)

    @property
    def depths(self) -> int:
        """How many selections one person can influence, one after another: ceil(log2(m + 1)) of m."""
        return len(self.asked).bit_length()

    @property
    def draws(self) -> int:
        return self.depths * self.max_groups

    @property
    def claim(self) -> Claim:
        neighbours, rows = neighbours_of(self.neighbours), self.max_rows or 1
        if self.only is None:  # of the number of people on the larger side of a cut
            bound = of_cuts(neighbours, rows=rows)
        else:
            bound = of_quantile(self.only, neighbours, in_groups=self.is_grouped, rows=rows)
        return stated(bound.largest_change, bound.monotonic)

    def suits(self, kind: type[MechanismBase]) -> bool:
        return kind.has_runs if self.only is not None else kind.has_sets

    def checked(self, mechanism: MechanismBase) -> MechanismBase:
        if mechanism.has_runs and not self.suits(type(mechanism)):
            raise InvalidType(
                f"mechanism {mechanism.name} cannot draw several quantiles: use permute-and-flip or exponential"
            )
        return super().checked(mechanism)

    @property
    def size(self) -> int:
        # Without an end of the range, it depends on the type of the column, and 2**64 is the most that it can be.
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
        # A person who counts with several rows has several ranks.
        return "people" if self.max_rows is None else "rows"

    @property
    def over(self) -> str:
        """The candidates, in words."""
        number = many(self.size, "candidate")
        if self.candidates is not None:
            return f"among {number}"
        if self.range == LOG:
            return f"among {number} of two digits (range log)"
        ends = [f"from {plain(self.lower)}"] if self.lower is not None else []
        ends += [f"to {plain(self.upper)}"] if self.upper is not None else []
        step = self.step if isinstance(self.step, datetime.timedelta) else plain(self.step)
        ends += [f"in steps of {step}"] if step is not None else []
        at_most = "" if self.lower is not None and self.upper is not None else "at most "
        shown = "2**64 candidates" if self.size == _MOST_IN_RANGE else number
        return f"{' '.join(ends) or 'over the whole range of the column'} ({at_most}{shown})"

    # How far the answer may be off.

    @property
    def unit(self) -> int:
        return 1 if self.only is None else self.only.denominator

    @property
    def errors(self) -> ErrorsOf | None:
        return None if self.only is None else super().errors

    def promise(self, mechanism: MechanismBase) -> Promise:
        if self.only is not None:
            return super().promise(mechanism)
        # The bounds for the level with the largest ones, in people.
        among_places, among_values = (promise(mechanism, n).average for n in (SUB_PLACES * self.size, self.size))
        average = max(_sums(self.ascending, lambda _, is_last: among_values if is_last else among_places))
        usual, rare = (max(errors_by_level(mechanism, self.size, self.ascending, rarely)) for rarely in (0.05, 0.01))
        return Promise(mechanism, average, 0.0, usual, rare)

    def all_within(self, mechanism: MechanismBase, probability: float) -> float:
        if self.only is not None:
            return super().all_within(mechanism, probability)
        return max(errors_by_level(mechanism, self.size, self.ascending, probability, together=True))

    def people_needed(self, mechanism: MechanismBase) -> int | None:
        if self.only is None:  # as many as the level that needs most
            return max(_people_for_cut(cut, float(mechanism.rate), self.size) for cut in cuts_of(self.ascending))
        smallest_side = float(min(self.only, 1 - self.only))
        return math.ceil(math.log(_ONE_IN * self.size) / (float(mechanism.rate * self.unit) * smallest_side))

    def usual_error(self, mechanism: MechanismBase) -> float | None:
        if self.only is not None:
            return None
        return max(_sums(self.ascending, lambda *_: 1 / float(mechanism.rate)))  # if values lie densely

    # In words.

    @property
    def what(self) -> str:
        """The name of the quantile, of the levels, or their number."""
        if self.returns_one:
            return _name_of(*self.asked)
        return levels_name(self.ascending) or many(self.rounds, "quantile")

    @property
    def title(self) -> str:
        rows = "" if self.max_rows is None else f", with at most {many(self.max_rows, 'row')} of each person"
        return f"The {self.what} {self.over}{rows}{self.in_groups}"

    def meaning(self, average: str, usual: str, rare: str) -> str:
        if self.only is not None:
            return (
                f"On average, the rank of the answer is at most {average} {self.error_unit} further from the"
                f" {_name_of(self.only)} than that of the best candidate. In 95 of 100 cases the difference is less"
                f" than {usual}, in 99 of 100 less than {rare}."
            )
        return (
            f"On average, the rank of each answer is at most {average} {self.error_unit} from its level, apart from"
            f" rounding to whole {self.error_unit}. In 95 of 100 cases it is less than {usual}, in 99 of 100 less than"
            f" {rare}. These are upper bounds, summed over {many(self.depths, 'depth')}. They are about the values"
            " rounded down to candidates: if values lie between candidates, choose a smaller step."
        )

    @property
    def shares(self) -> str:
        if self.only is not None:
            return super().shares
        groups = f" in each of {many(self.max_groups, 'group')}" if self.max_groups > 1 else ""
        levels, depths = many(self.rounds, "level"), many(self.depths, "depth")
        return self.with_groups(
            f"{levels} are found in {depths}{groups}, and each depth gets 1/{self.draws:,} of the price."
        )

    # What a table asks for.

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "question": self.stands_for or self.name}

    def entry(self) -> dict[str, Any]:
        marks = {"range": LOG} if self.grid.marks else {}
        # Text is read as the range says, and values up to the end of the range lie after the last candidate. Without
        # these, two questions would be one for a ledger.
        last, end = self.grid.value(self.grid.size - 1), self.grid.ends[1]
        ends = {} if end == last else {"end": str(end)}
        read = {"values": self.grid.kind.value} if self.column.is_text else {}
        rows = {} if self.max_rows is None else {"per_person": ROWS, "max_rows": self.max_rows}
        levels: dict[str, Any] = {"level": str(self.only)}
        if not self.returns_one:
            levels = {"levels": levels_name(self.asked) or [str(level) for level in self.asked]}
        return {
            "question": self.stands_for or self.name,
            "column": self.column.name,
            **levels,
            "lower": str(self.grid.value(0)),
            "upper": str(last),
            "candidates": self.grid.size,
            **ends,
            **read,
            **marks,
            **rows,
        }

    def estimate(self, individuals: Individuals) -> str:
        whom = "rows"
        if individuals.person is not None:
            whom = "people, each at the median of their own rows"
            if self.max_rows is not None:
                whom = f"rows of people, at most {many(self.max_rows, 'row')} of each person"
        instead = "" if self.stands_for is None else f" (in place of the {self.stands_for})"
        if not self.returns_one:
            what = levels_text(self.asked)
        else:
            what = "median" if self.only == _HALF else f"{percent(*self.asked)} quantile"
        return f"{what} over {whom}{instead}{individuals.in_each_group}"

    @property
    def read_as(self) -> dict[str, Any]:
        return {"grid": self.grid}

    def remarks(self, values: list[Any], draw: Draw) -> list[str]:  # noqa: ARG002 - none depends on the price
        ends = (self.grid.value(0), self.grid.value(self.grid.size - 1))
        at_end = [level for level, value in zip(self.asked, values, strict=True) if value in ends]
        if self.returns_one:
            return [f"{_AT_END} the true {_name_of(level)} may lie beyond it" for level in at_end]
        levels = ", ".join(map(exact_text, at_end))
        return [f"{_AT_END} this holds for {levels}, and the true values may lie beyond it"] if at_end else []

    def answer(self, engine: Engine, individuals: Individuals, draw: Draw) -> Any:
        found = engine.places(self.column, self.grid, individuals, self.max_rows)
        return individuals.by_group([self.shown(self._of_group(data, draw.mechanism)) for data in found])

    def _of_group(self, data: Places, mechanism: MechanismBase) -> list[Any]:
        if self.only is not None:
            return [self.grid.value(mechanism.select_runs(*quantile_score_runs(data, self.grid.size, self.only)))]
        drawn = split_quantiles(data, self.grid.size, self.ascending, for_each_level(mechanism), Draws())
        values = dict(zip(self.ascending, map(self.grid.value, drawn), strict=True))
        return [values[level] for level in self.asked]


_AT_END = "the answer is the end of the range:"


def _name_of(level: Fraction) -> str:
    return "median" if level == _HALF else f"{exact_text(level)} quantile"


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

    Groups and neighbours are those of `Mode`.

    Raises:
        InvalidType, InvalidValue: an argument is wrong.

    >>> Quantile(level=0.9, lower=0, upper=1000).size
    1001
    >>> Quantile(level=0.9).size == 2**64
    True
    """

    name: ClassVar[str] = "quantile"
    has_range: ClassVar[bool] = True
    returns_one: ClassVar[bool] = True
    level: Number = Option(("--level", "-q"), "Q", "Share of people below it, such as 0.9 or 1/3.").as_field()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "level", _validate.level(self.level))
        object.__setattr__(self, "asked", (self.level,))


_LEVELS = {"anyOf": [{"type": "array", "items": {"type": ["number", "string"]}}, {"enum": [*NAMED]}]}


@dataclass(frozen=True, kw_only=True)
class Quantiles(OverRange):
    """A value for each of several levels, as `Table.quantiles` returns them."""

    name: ClassVar[str] = "quantiles"
    has_plot: ClassVar[bool] = True
    is_split: ClassVar[bool] = True
    levels: Annotated[Any, _LEVELS] = Option(
        ("--levels",),
        "LIST",
        "Shares such as 0.1,0.5,0.9, or quartiles, deciles or percentiles.",
        listed_levels,
        page=Field("Levels", "0.5 is the median. Several: 0.1, 0.5, 0.9, or quartiles or deciles.", "0.5"),
        planned={"metavar": "LEVELS", "help": "0.1,0.5,0.9, or quartiles, deciles or percentiles."},
    ).as_field()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "levels", read_levels(self.levels))
        object.__setattr__(self, "asked", self.levels)

    @classmethod
    def beside(cls, stated: Mapping[str, Any]) -> dict[str, Any]:
        return {"levels": [exact_text(level) for level in stated["levels"]]}


def _written(value: Any, name: str) -> Any:
    if isinstance(value, (datetime.date, datetime.timedelta)):  # timestamps are dates, too
        return value
    if not isinstance(value, str):
        return _validate.exact(**{name: str(value) if isinstance(value, (float, np.floating)) else value})
    for reader in (rational_from_text, datetime.date.fromisoformat, datetime.datetime.fromisoformat, _duration):
        with suppress(NotExact, NotFinite, ValueError):
            return reader(value.strip())
    raise InvalidValue(
        f"{name}: {value[:40]!r} is neither a number nor a date: write for example 12, 0.5 or 2026-01-31"
    )


def _duration(text: str) -> datetime.timedelta:
    found = re.fullmatch(r"PT(-?\d{1,15}(?:\.\d{1,6})?)S", text)
    if found is None:
        raise ValueError
    return datetime.timedelta(microseconds=int(Fraction(found[1]) * 10**6))


def _distance(lower: Any, upper: Any, step: Any) -> tuple[Fraction, Fraction]:
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


# The errors of several quantiles, and how many people they need.


@dataclass(frozen=True)
class _Cut:
    """How one level is answered.

    Attributes:
        level: its level within the part, p.
        is_last: whether the part is not split again.
        weights: the levels whose errors add up to its own, by their position, with their weights.
    """

    level: Fraction
    share: Fraction
    is_last: bool
    weights: dict[int, Fraction]

    @property
    def largest_side(self) -> Fraction:
        return max(self.level, 1 - self.level)


@cache
def cuts_of(levels: tuple[Fraction, ...]) -> tuple[_Cut, ...]:
    """How levels in ascending order are answered: the middle one first."""
    found: dict[int, _Cut] = {}

    def solve(first: int, last: int) -> None:
        if first == last:
            return
        middle = (first + last) // 2
        low = levels[first - 1] if first else Fraction(0)
        high = levels[last] if last < len(levels) else Fraction(1)
        p = (levels[middle] - low) / (high - low)
        weights = {middle: Fraction(1)}
        for position, weight in ((first - 1, 1 - p), (last, p)):
            for other, share in found[position].weights.items() if position in found else ():
                weights[other] = weights.get(other, Fraction(0)) + weight * share
        found[middle] = _Cut(p, high - low, last - first == 1, weights)
        solve(first, middle)
        solve(middle + 1, last)

    solve(0, len(levels))
    return tuple(found[position] for position in range(len(levels)))


def errors_by_level(
    mechanism: MechanismBase, size: int, levels: tuple[Fraction, ...], probability: float, *, together: bool = False
) -> list[float]:
    """For each level, or any if `together`, an error in people that it reaches with at most this probability."""

    def bound(depth: int, is_last: bool) -> float:
        candidates = size if is_last else SUB_PLACES * size
        return rarely_exceeded(mechanism, candidates, probability / (len(levels) if together else depth))

    return _sums(levels, bound)


def _sums(levels: tuple[Fraction, ...], bound: Callable[[int, bool], float]) -> list[float]:
    cuts = cuts_of(levels)
    return [
        sum(
            float(weight * cuts[other].largest_side) * bound(len(cut.weights), cuts[other].is_last)
            for other, weight in cut.weights.items()
        )
        for cut in cuts
    ]


def _people_for_cut(cut: _Cut, rate: float, size: int) -> int:
    own, smallest_side = rate / float(cut.largest_side), float(1 - cut.largest_side)
    exponent = math.log(_ONE_IN * size)  # c n min(p, 1 - p), for n people of the part
    if not cut.is_last:
        for _ in range(_ITERATIONS):
            exponent = math.log(_ONE_IN * size * max(1.0, exponent / smallest_side / 2))
    return math.ceil(exponent / (own * smallest_side * float(cut.share)))
