"""The questions that can be planned, as frozen records of public numbers.

A question knows how many candidates it has, how often one person is exposed, how much one person can change its scores
(`mechanisms.parameters`), and what its errors mean. For the top k, some of this depends on the method (`ways`). Nothing
here is computed from rows.

Errors are in people. The score of a count is a number of people. The score of a quantile of level a/b is -u, where u/b
is how far the rank of the candidate is off: with n people, at most a n / b + u/b of them are below it, and at least
a n / b - u/b are at or below it. So errors of scores are divided by b.
"""

import datetime
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpselect import _validate
from dpselect._levels import NAMED, read_levels
from dpselect._numbers import NotExact, NotFinite, exact_text, rational_from_text, shown
from dpselect._types import Number
from dpselect.accounting.budget import AUTO, Price
from dpselect.analysis.methods import Choice
from dpselect.analysis.promises import Promise, promise, rarely_exceeded, smallest
from dpselect.analysis.quantile_errors import (
    errors_by_level,
    people_for_level,
    people_for_levels,
    promise_for_levels,
    usual_error_of_levels,
)
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import (
    Claim,
    Neighbours,
    Sensitivity,
    neighbours_of,
    of_counts,
    of_cuts,
    of_quantile,
    stated,
)
from dpselect.mechanisms.several import sizes_of

_MOST_LISTED = 2**53
_MOST_IN_RANGE = 2**64
# Results are floats. This is far beyond any use, and far below numbers whose square overflows.
_FARTHEST = Fraction(10**50)
_MOST_ROWS = 10**9
FULL, LOG = "full", "log"
# The candidates of the range "log" for floats: zero and, for either sign, 90 in each of 27 decades and the end of them.
_MAGNITUDES = 2 * (27 * 90 + 1) + 1
_MICROSECOND = datetime.timedelta(microseconds=1)


def whole_number(least: int, most: int, **parameter: Any) -> int:
    """A whole number in a range."""
    [(name, _)] = parameter.items()
    number = _validate.count(**parameter)
    if not least <= number <= most:
        raise InvalidValue(f"{name} must be a whole number from {least:,} to {most:,}, got {number}")
    return number


def moderate(**parameter: Any) -> Fraction:
    """A positive number that floats can be computed with."""
    [(name, _)] = parameter.items()
    number = _validate.exact_positive(**parameter)
    if not 1 / _FARTHEST <= number <= _FARTHEST:
        raise InvalidValue(f"{name} must be between 1e-50 and 1e50: give it in another unit")
    return number


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """What a plan needs to know about a question."""

    name: ClassVar[str]
    is_split: ClassVar[bool] = False  # whether an answer needs several selections, one after another

    @property
    def per_person(self) -> str:
        """Return the unit of errors."""
        return "people"

    @property
    def is_grouped(self) -> bool:
        """Return whether there is an answer for each of several groups."""
        return False

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of candidates."""

    @property
    @abstractmethod
    def claim(self) -> Claim:
        """Return how much one person can change the scores."""

    @property
    def rounds(self) -> int:
        """Return the number of selections of an answer, or of the answer for one group."""
        return 1

    @property
    def draws(self) -> int:
        """Return the number of selections that one person can influence. Each gets an equal share of the price."""
        return self.rounds

    @property
    def unit(self) -> int:
        """Return how much of a score is one person."""
        return 1

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Return the names of the mechanisms that can answer it: tables need those that select from runs."""
        return tuple(name for name, kind in MECHANISMS.items() if kind.has_runs)

    @property
    @abstractmethod
    def title(self) -> str:
        """Return the question in words."""

    @abstractmethod
    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean: on average, in 95 and in 99 of 100 cases."""

    @property
    def has_range(self) -> bool:
        """Return whether the candidates are a range, which can be made longer or finer."""
        return False

    def promised(self, mechanism: MechanismBase) -> Promise:
        """Return the bounds of an answer, in units of the scores. The mechanism is that of one draw."""
        return promise(mechanism, self.size)

    def all_within(self, mechanism: MechanismBase, probability: float) -> float:
        """Return an error that any selection of an answer reaches with at most this probability: a union bound."""
        return rarely_exceeded(mechanism, self.size, probability / self.rounds)

    def people_needed(self, mechanism: MechanismBase) -> int | None:
        """Return about how many people an answer needs to mean something; None if that has no general rule."""
        del mechanism
        return None

    def need(self, people: int) -> str:
        """Return in words what `people_needed` means."""
        where = " in each group" if self.is_grouped else ""
        return (
            f"It needs about {people:,} {self.per_person}{where}: with fewer, more than 5 of 100 answers may lie"
            " outside all values of the data."
        )

    def usual_error(self, mechanism: MechanismBase) -> float | None:
        """Return about how large the error is on data without wide gaps; None if the bounds say enough."""
        del mechanism
        return None

    def condition(self, max_values: int | None = None) -> str:
        """Return in words which data the bounds are about, if people count for at most `max_values` values; "" for any.

        Of people with more values or groups, some are chosen at random. The bounds are about what is chosen.
        """
        del max_values
        return ""

    def dense(self, mechanism: MechanismBase) -> str:
        """Return in words how large the error is on data without wide gaps; nothing if the bounds say enough."""
        usual = self.usual_error(mechanism)
        return "" if usual is None else f"If values lie densely, expect about {shown(usual)} {self.per_person}."

    @property
    def shares(self) -> str:
        """Return in words how the price is divided; nothing if there is one draw."""
        return divided(self.draws, "selections")

    def parameters(self) -> dict[str, Any]:
        """Return the question in the types of JSON.

        Returns:
            Its name and its fields; exact numbers, dates and times are text.

        >>> Mode(candidates=30, groups=12).parameters()["groups"]
        12
        """
        return {"question": self.name, **{field.name: _plain(getattr(self, field.name)) for field in fields(self)}}


def divided(draws: int, noun: str) -> str:
    """How a price is divided, in words; nothing if it is not.

    >>> divided(3, "selections")
    'One person can influence 3 selections, and each gets 1/3 of the price.'
    """
    if draws == 1:
        return ""
    return f"One person can influence {draws:,} {noun}, and each gets 1/{draws:,} of the price."


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return exact_text(value) if isinstance(value, Fraction) else str(value)


@dataclass(frozen=True, kw_only=True)
class OfTable(Question):
    """What all questions about a table share.

    Args:
        groups: the number of public groups, each of which gets an answer; None for one answer.
        max_groups: in how many groups a person may count.
        neighbours: "add-remove" or "replace".
    """

    groups: int | None = None
    max_groups: int = 1
    neighbours: str = Neighbours.ADD_REMOVE.value

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", neighbours_of(self.neighbours).value)
        most = whole_number(1, _MOST_LISTED, max_groups=self.max_groups)
        if self.groups is None:
            if most > 1:
                raise InvalidValue("max_groups needs groups: give the number of groups")
        else:
            groups = whole_number(1, _MOST_LISTED, groups=self.groups)
            object.__setattr__(self, "groups", groups)
            object.__setattr__(self, "max_groups", min(most, groups))

    @property
    def draws(self) -> int:
        """Return the number of selections that one person can influence: those of all groups that they may be in."""
        return self.rounds * self.max_groups

    @property
    def is_grouped(self) -> bool:
        """Return whether there is an answer for each of several groups."""
        return self.groups is not None

    def condition(self, max_values: int | None = None) -> str:
        """Return in words which data the bounds are about; nothing for any data."""
        told = [] if max_values is None else [f"has more than {_many_in_words(max_values, 'value')}"]
        if self.groups is not None and self.max_groups < self.groups:
            told.append(f"is in more than {_many_in_words(self.max_groups, 'group')}")
        return f"if nobody {' or '.join(told)}" if told else ""

    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """Return how much one individual can change a score."""

    @property
    def claim(self) -> Claim:
        """Return how much one person can change the scores."""
        bound = self.sensitivity()
        return stated(bound.largest_change, bound.monotonic)

    @property
    def shares(self) -> str:
        """Return in words how the price is divided, and that the accuracy holds for each group."""
        return self.with_groups(super().shares)

    def with_groups(self, shares: str) -> str:
        """Return in words how the price is divided, and that the accuracy holds for each group."""
        each = "" if self.groups is None else "The accuracy holds for each group."
        return " ".join(filter(None, [shares, each]))

    @property
    def in_groups(self) -> str:
        """Return in words for which groups it is asked."""
        if self.groups is None:
            return ""
        each = "" if self.max_groups == 1 else f", with a person in at most {self.max_groups:,} of them"
        return f" in each of {_many(self.groups, 'group')}{each}"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


@dataclass(frozen=True, kw_only=True)
class Mode(OfTable):
    """The candidate that most people have, as `Table.mode` returns it.

    Args:
        candidates: the number of candidates, of any size.
        rule: the rule that they follow, in words, if they are not listed.
        groups: the number of public groups, each of which gets an answer; None for one answer.
        max_groups: in how many groups a person may count.
        neighbours: "add-remove" or "replace".

    Raises:
        InvalidType, InvalidValue: an argument is wrong.

    >>> Mode(candidates=30, groups=12, max_groups=2).draws
    2
    >>> Mode(candidates=2**64, rule="every int64").title
    'The most common of every int64, about 1.84e+19 candidates'
    """

    name: ClassVar[str] = "mode"
    candidates: int
    rule: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if _validate.count(candidates=self.candidates) < 2:
            raise InvalidValue(f"candidates must be a whole number from 2, got {self.candidates}")
        if self.rule is not None and not isinstance(self.rule, str):
            raise InvalidType(f"rule must be text, got {type(self.rule).__name__}")

    @property
    def size(self) -> int:
        """Return the number of candidates."""
        return self.candidates

    def sensitivity(self) -> Sensitivity:
        """Return how much one individual can change a count."""
        return of_counts(neighbours_of(self.neighbours))

    @property
    def title(self) -> str:
        """Return the question in words."""
        return f"The most common of {self.of_what}{self.in_groups}"

    @property
    def of_what(self) -> str:
        """Return in words what the candidates are, and how many."""
        size = self.candidates
        number = f"{size:,}" if size <= _MOST_LISTED else f"about {Decimal(size):.2e}"
        return f"{number} candidates" if self.rule is None else f"{self.rule}, {number} candidates"

    def people_needed(self, mechanism: MechanismBase) -> int | None:
        """Return how many people the most common value of a rule needs; None for a list.

        With x people it loses to n - 1 values that nobody has with the probability of the mechanism's worst case. Other
        values that people have only take from that of the n - 1.
        """
        if self.rule is None:
            return None
        worst, log_n = mechanism.worst, math.log(self.size)
        exponent = smallest(lambda x: worst.loss_probability(x, log_n) <= 0.05)
        return math.ceil(exponent / float(mechanism.rate))

    def need(self, people: int) -> str:
        """Return in words how many people the most common value needs."""
        where = " of the group" if self.is_grouped else ""
        return (
            f"The most common value needs {people:,} people{where}: with fewer, more than 5 of 100 answers may be"
            " values that nobody has."
        )

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean."""
        return (
            f"On average, the chosen value has at most {average} fewer people than the most common one. In 95 of 100"
            f" cases the difference is less than {usual}, in 99 of 100 less than {rare}."
        )


@dataclass(frozen=True, kw_only=True)
class TopK(Mode):
    """The k candidates that most people have, as `Table.top_k` returns them.

    Args:
        k: the number of candidates to return. With the method "margin" also a pair of the smallest and the largest.
        candidates: the number of candidates, of any size.
        rule: the rule that they follow, in words, if they are not listed.
        method: "auto", "set", "margin", "one-shot", "peel" or "noisy-counts".
        max_values: for how many candidates one person counts at most; None for any number. It is 1 if rows are counted.
        ordered: whether the answer is in order, best first.
        groups: the number of public groups, each of which gets an answer; None for one answer.
        max_groups: in how many groups a person may count.
        neighbours: "add-remove" or "replace".

    Raises:
        InvalidType, InvalidValue: an argument is wrong, or the method cannot answer.

    >>> TopK(k=3, candidates=30, method="set", max_values=1).title
    'The 3 most common of 30 candidates, with one value for each person'
    """

    name: ClassVar[str] = "top_k"
    k: int | tuple[int, int]
    method: str = AUTO
    max_values: int | None = None
    ordered: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.choice.by(self.method, Price(1))  # checks all fields
        least, most = sizes_of(self.k, self.candidates)
        object.__setattr__(self, "k", most if isinstance(self.k, int) else (least, most))

    @property
    def choice(self) -> Choice:
        """Return what is chosen, for the methods of `dpselect.top_k`."""
        is_added = self.neighbours == Neighbours.ADD_REMOVE
        return Choice(self.k, self.candidates, self.max_values, self.ordered, is_added, self.max_groups)

    @property
    def title(self) -> str:
        """Return the question in words."""
        number = f"{self.k:,}" if isinstance(self.k, int) else f"{self.k[0]:,} to {self.k[1]:,}"
        limit = {None: "", 1: ", with one value for each person"}
        most = limit.get(self.max_values, f", with at most {self.max_values} values for each person")
        order = ", in order" if self.ordered else ""
        return f"The {number} most common of {self.of_what}{order}{most}{self.in_groups}"

    def people_needed(self, mechanism: MechanismBase) -> int | None:
        """Return None: what a value needs depends on the method."""
        del mechanism
        return None

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors of one choice mean, if one candidate is chosen after another."""
        return (
            f"On average, the i-th chosen value has at most {average} fewer people than the i-th most common one. In 95"
            f" of 100 cases the difference is less than {usual}, in 99 of 100 less than {rare}."
        )


@dataclass(frozen=True, kw_only=True)
class OverRange(OfTable):
    """What questions about quantiles share: the candidates, and with how many rows a person counts."""

    lower: Any = None
    upper: Any = None
    step: Any = None
    range: str = FULL
    candidates: int | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step is None and self.lower is not None and self.upper is not None:
            object.__setattr__(self, "step", 1)
        for name in ("lower", "upper", "step"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else _written(value, name))
        if self.range not in (FULL, LOG):
            raise InvalidValue(f"range must be {FULL!r} or {LOG!r}, got {str(self.range)[:40]!r}")
        if self.max_rows is not None:
            whole_number(1, _MOST_ROWS, max_rows=self.max_rows)
        if (self.candidates is not None or self.range == LOG) and self._has_ends:
            other = "candidates" if self.candidates is not None else "range='log'"
            raise InvalidValue(f"{other} replaces lower, upper and step: leave them out, or {other}")
        if self.candidates is not None:
            whole_number(2, _MOST_IN_RANGE, candidates=self.candidates)
        if self.size > _MOST_IN_RANGE:
            raise InvalidValue("lower, upper and step make more than 2**64 candidates: give a larger step")

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
    def per_person(self) -> str:
        """Return the unit of errors: a person who counts with several rows has several ranks."""
        return "people" if self.max_rows is None else "rows"

    @property
    def rows(self) -> int:
        """Return with how many rows a person counts."""
        return 1 if self.max_rows is None else self.max_rows

    @property
    def over(self) -> str:
        """Return the candidates in words."""
        many = _many(self.size, "candidate")
        if self.candidates is not None:
            return f"among {many}"
        if self.range == LOG:
            return f"among {many} of two digits (range log)"
        ends = [f"from {_plain(self.lower)}"] if self.lower is not None else []
        ends += [f"to {_plain(self.upper)}"] if self.upper is not None else []
        ends += [f"in steps of {_plain(self.step)}"] if self.step is not None else []
        at_most = "" if self.lower is not None and self.upper is not None else "at most "
        number = "2**64 candidates" if self.size == _MOST_IN_RANGE else many
        return f"{' '.join(ends) or 'over the whole range of the column'} ({at_most}{number})"

    @property
    def of_rows(self) -> str:
        """Return in words with how many rows a person counts; nothing if once."""
        return "" if self.max_rows is None else f", with at most {_many(self.max_rows, 'row')} of each person"

    def parameters(self) -> dict[str, Any]:
        """Return the question in the types of JSON.

        Returns:
            Its name, its fields, and the number of candidates.

        >>> Quantile(level="0.9", lower=0, upper=1000).parameters()["candidates"]
        1001
        """
        return {**super().parameters(), "candidates": self.size}


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
    level: Number

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
        return _validate.level(self.level)

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
            f"On average, the rank of the answer is at most {average} {self.per_person} further from the {self.what}"
            f" than that of the best candidate. In 95 of 100 cases the difference is less than {usual}, in 99 of 100"
            f" less than {rare}."
        )


@dataclass(frozen=True, kw_only=True)
class Quantiles(OverRange):
    """A value for each of several levels, as `Table.quantiles` returns them.

    Args:
        levels: the shares, between 0 and 1, or "quartiles", "deciles" or "percentiles".
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

    >>> Quantiles(levels="deciles", lower=0, upper=1000, groups=12, max_groups=2).draws
    8
    """

    name: ClassVar[str] = "quantiles"
    is_split: ClassVar[bool] = True
    levels: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "levels", read_levels(self.levels))

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
        return of_cuts(neighbours_of(self.neighbours), rows=self.rows)

    def promised(self, mechanism: MechanismBase) -> Promise:
        """Return the bounds for the level with the largest ones."""
        return promise_for_levels(mechanism, self.size, self.ascending)

    def all_within(self, mechanism: MechanismBase, probability: float) -> float:
        """Return an error that any level reaches with at most this probability."""
        return max(errors_by_level(mechanism, self.size, self.ascending, probability, together=True))

    def people_needed(self, mechanism: MechanismBase) -> int | None:
        """Return about how many people, or rows, an answer needs."""
        return people_for_levels(mechanism, self.size, self.ascending)

    def usual_error(self, mechanism: MechanismBase) -> float | None:
        """Return about how large the error of the worst level is on data without wide gaps."""
        return usual_error_of_levels(mechanism, self.ascending)

    @property
    def title(self) -> str:
        """Return the question in words."""
        return f"The {self.what} {self.over}{self.of_rows}{self.in_groups}"

    @property
    def what(self) -> str:
        """Return the name of the levels, or their number."""
        name = next((name for name, levels in NAMED.items() if levels == self.ascending), None)
        return name or _many(len(self.levels), "quantile")

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean."""
        return (
            f"On average, the rank of each answer is at most {average} {self.per_person} from its level, apart from"
            f" rounding to whole {self.per_person}. In 95 of 100 cases it is less than {usual}, in 99 of 100 less than"
            f" {rare}. These are upper bounds, summed over {_many(self.depths, 'depth')}. They are about the values"
            " rounded down to candidates: if values lie between candidates, choose a smaller step."
        )

    @property
    def shares(self) -> str:
        """Return in words how the price is divided."""
        if self.draws == 1:
            return super().shares
        groups = f" in each of {_many(self.max_groups, 'group')}" if self.max_groups > 1 else ""
        each = "" if self.groups is None else " The accuracy holds for each group."
        levels, depths = _many(len(self.levels), "level"), _many(self.depths, "depth")
        return f"{levels} are found in {depths}{groups}, and each depth gets 1/{self.draws:,} of the price.{each}"


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


@dataclass(frozen=True, kw_only=True)
class Select(Question):
    """One of n candidates by scores of your own, as `mechanism.release` chooses it.

    Args:
        candidates: the number of candidates.
        sensitivity: the largest change of any single score when one person changes; 1 if omitted.
        monotonic: whether one person moves all scores in the same direction, as with counts of people.
        score_range: the largest change of the difference of two scores; replaces the other two.

    Raises:
        InvalidType, InvalidValue: an argument is wrong.

    >>> print(Select(candidates=30, sensitivity=2).claim)
    sensitivity 2
    """

    name: ClassVar[str] = "select"
    candidates: int
    sensitivity: Number | None = None
    monotonic: bool = False
    score_range: Number | None = None

    def __post_init__(self) -> None:
        whole_number(2, _MOST_LISTED, candidates=self.candidates)
        claim = stated(self.sensitivity, self.monotonic, self.score_range)
        moderate(**({"score_range": claim.score_range} if claim.by_range else {"sensitivity": claim.sensitivity}))

    @property
    def per_person(self) -> str:
        """Return the unit of errors."""
        return "units of the scores"

    @property
    def size(self) -> int:
        """Return the number of candidates."""
        return self.candidates

    @property
    def claim(self) -> Claim:
        """Return how much one person can change the scores."""
        return stated(self.sensitivity, self.monotonic, self.score_range)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Return the names of all mechanisms."""
        return tuple(MECHANISMS)

    @property
    def title(self) -> str:
        """Return the question in words."""
        return f"Choosing one of {self.candidates:,} candidates, {self.claim}"

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean."""
        return (
            f"On average, the chosen candidate scores at most {average} below the best one. In 95 of 100 cases the"
            f" difference is less than {usual}, in 99 of 100 less than {rare}."
        )

    def parameters(self) -> dict[str, Any]:
        """Return the question in the types of JSON.

        Returns:
            Its name, the number of candidates, and how far apart neighbours are.

        >>> Select(candidates=30).parameters()
        {'question': 'select', 'candidates': 30, 'sensitivity': '1', 'monotonic': False}
        """
        return {"question": self.name, "candidates": self.candidates, **self.claim.to_json()}


_KINDS: Mapping[str, type[Question]] = {kind.name: kind for kind in (Mode, TopK, Quantile, Quantiles, Select)}
_MEDIAN = "median"
NAMES = (Mode.name, TopK.name, _MEDIAN, Quantile.name, Quantiles.name, Select.name)


def question_of(question: Any, given: Mapping[str, Any]) -> Question:
    """The question of this name with these fields; or the record, which has its fields already.

    >>> question_of("median", {"lower": 0, "upper": 100}).level
    Fraction(1, 2)
    """
    stated_fields = {name: value for name, value in given.items() if value is not None}
    if isinstance(question, Question):
        if stated_fields:
            raise InvalidValue(f"{next(iter(stated_fields))} belongs in the record of the question: give it there")
        return question
    if not isinstance(question, str):
        raise InvalidType(f"question must be a name or a record of analysis.questions, got {type(question).__name__}")
    if question not in NAMES:
        raise InvalidValue(f"question must be one of {', '.join(NAMES)}, got {question[:40]!r}")
    kind, fixed = (Quantile, {"level": Fraction(1, 2)}) if question == _MEDIAN else (_KINDS[question], {})
    known = {field.name: field for field in fields(kind) if field.name not in fixed}
    for name in stated_fields:
        if name not in known:
            raise InvalidValue(f"{name} is not a parameter of {question}, which takes {', '.join(sorted(known))}")
    missing = [name for name, field in known.items() if _is_required(field) and name not in stated_fields]
    if missing:
        raise InvalidValue(f"{question} needs {' and '.join(missing)}")
    return kind(**stated_fields, **fixed)


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _many_in_words(number: int, noun: str) -> str:
    return f"one {noun}" if number == 1 else f"{number:,} {noun}s"
