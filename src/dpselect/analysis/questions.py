"""The questions that can be planned, as frozen records of public numbers.

A question knows how many candidates it has, in how many groups one person may be, how much one person can change its
scores (`mechanisms.parameters`), and what its errors mean. Nothing here is computed from rows.

Errors are in people. The score of a count is a number of people. The score of a quantile of level a/b is -u, where u/b
is how far the rank of the candidate is off: with n people, at most a n / b + u/b of them are below it, and at least
a n / b - u/b are at or below it. So errors of scores are divided by b.
"""

import datetime
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpselect import _validate
from dpselect._numbers import NotExact, NotFinite, exact_text, rational_from_text
from dpselect._types import Number
from dpselect.accounting.budget import AUTO, Price
from dpselect.analysis.methods import Choice
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.parameters import (
    Claim,
    Neighbours,
    Sensitivity,
    neighbours_of,
    of_counts,
    of_quantile,
    stated,
)
from dpselect.mechanisms.several import sizes_of

_MOST_LISTED = 2**53
_MOST_IN_RANGE = 2**64
# Results are floats. This is far beyond any use, and far below numbers whose square overflows.
_FARTHEST = Fraction(10**50)
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
    per_person: ClassVar[str] = "people"  # the unit of errors

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of candidates."""

    @property
    @abstractmethod
    def claim(self) -> Claim:
        """Return how much one person can change the scores."""

    @property
    def groups_of_one(self) -> int:
        """Return the number of groups that one person may be in. Each gets an equal share of the price."""
        return 1

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

    @property
    def for_each_group(self) -> str:
        """Return in words that the accuracy holds for each group; nothing if there are none."""
        return ""

    def code(self, price: str, questions: int) -> str:
        """Return the arguments of a plan as Python source."""
        return f"{self!r}, {price}, questions={questions}"

    def parameters(self) -> dict[str, Any]:
        """Return the question in the types of JSON.

        Returns:
            Its name and its fields; exact numbers, dates and times are text.

        >>> Mode(candidates=30, groups=12).parameters()["groups"]
        12
        """
        return {"question": self.name, **{field.name: _plain(getattr(self, field.name)) for field in fields(self)}}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, tuple):
        return list(value)
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
    def groups_of_one(self) -> int:
        """Return the number of groups that one person may be in."""
        return self.max_groups

    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """Return how much one individual can change a score."""

    @property
    def claim(self) -> Claim:
        """Return how much one person can change the scores."""
        bound = self.sensitivity()
        return stated(bound.largest_change, bound.monotonic)

    @property
    def for_each_group(self) -> str:
        """Return in words that the accuracy holds for each group."""
        return "" if self.groups is None else "The accuracy holds for each group."

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
        candidates: the number of candidates.
        groups: the number of public groups, each of which gets an answer; None for one answer.
        max_groups: in how many groups a person may count.
        neighbours: "add-remove" or "replace".

    Raises:
        InvalidType, InvalidValue: an argument is wrong.

    >>> Mode(candidates=30, groups=12, max_groups=2).groups_of_one
    2
    """

    name: ClassVar[str] = "mode"
    candidates: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(2, _MOST_LISTED, candidates=self.candidates)

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
        return f"The most common of {self.candidates:,} candidates{self.in_groups}"

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
        candidates: the number of candidates.
        method: "auto", "set", "margin", "one-shot", "peel" or "noisy-counts".
        max_values: for how many candidates one person counts at most; None for any number. It is 1 if rows are counted.
        ordered: whether the answer is in order, best first.
        groups: the number of public groups, each of which gets an answer; None for one answer.
        max_groups: in how many groups a person may count.
        neighbours: "add-remove" or "replace".

    Raises:
        InvalidType, InvalidValue: an argument is wrong, or the method cannot answer.

    >>> TopK(k=3, candidates=30, method="set", max_values=1).title
    'The 3 most common of 30 candidates'
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
        return f"The {number} most common of {self.candidates:,} candidates{order}{most}{self.in_groups}"

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors of one choice mean, if one candidate is chosen after another."""
        return (
            f"On average, the i-th chosen value has at most {average} fewer people than the i-th most common one. In 95"
            f" of 100 cases the difference is less than {usual}, in 99 of 100 less than {rare}."
        )


@dataclass(frozen=True, kw_only=True)
class Quantile(OfTable):
    """A value with about a share `level` of the people below it, as `Table.quantile` returns it.

    Args:
        level: the share, between 0 and 1, taken exactly: 0.9 is nine tenths. 1/2 is the median.
        lower: the smallest candidate: a number, a date or a timestamp; dates and timestamps may be ISO text.
        upper: the largest candidate.
        step: the step between candidates: days for dates, seconds or a timedelta for timestamps.
        groups: the number of public groups, each of which gets an answer; None for one answer.
        max_groups: in how many groups a person may count.
        neighbours: "add-remove" or "replace".

    Raises:
        InvalidType, InvalidValue: an argument is wrong.

    >>> Quantile(level=0.9, lower=0, upper=1000).size
    1001
    """

    name: ClassVar[str] = "quantile"
    level: Number
    lower: Any
    upper: Any
    step: Any = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "level", _validate.level(self.level))
        for name in ("lower", "upper", "step"):
            object.__setattr__(self, name, _written(getattr(self, name), name))
        if self.size > _MOST_IN_RANGE:
            raise InvalidValue("lower, upper and step make more than 2**64 candidates: give a larger step")

    @property
    def size(self) -> int:
        """Return the number of candidates lower, lower + step, ..., up to upper."""
        distance, step = _distance(self.lower, self.upper, self.step)
        if step <= 0:
            raise InvalidValue("step must be > 0: give the step between two candidates")
        if distance < 0:
            raise InvalidValue("lower must be <= upper: give the public range of the column")
        return int(distance // step) + 1

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
        return of_quantile(self.exact_level, neighbours_of(self.neighbours), in_groups=self.groups is not None)

    @property
    def unit(self) -> int:
        """Return the denominator of the level: how much of a score is one person."""
        return self.exact_level.denominator

    @property
    def what(self) -> str:
        """Return the name of the quantile."""
        return "median" if self.exact_level == Fraction(1, 2) else f"{exact_text(self.exact_level)} quantile"

    @property
    def title(self) -> str:
        """Return the question in words."""
        ends = f"{_plain(self.lower)} to {_plain(self.upper)} in steps of {_plain(self.step)}"
        return f"The {self.what} from {ends} ({_many(self.size, 'candidate')}){self.in_groups}"

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean."""
        return (
            f"On average, the rank of the answer is at most {average} people further from the {self.what} than that of"
            f" the best candidate. In 95 of 100 cases the difference is less than {usual}, in 99 of 100 less than"
            f" {rare}."
        )

    def parameters(self) -> dict[str, Any]:
        """Return the question in the types of JSON.

        Returns:
            Its name, its fields, and the number of candidates.

        >>> Quantile(level="0.9", lower=0, upper=1000).parameters()["candidates"]
        1001
        """
        return {**super().parameters(), "candidates": self.size}


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
    per_person: ClassVar[str] = "units of the scores"
    candidates: int
    sensitivity: Number | None = None
    monotonic: bool = False
    score_range: Number | None = None

    def __post_init__(self) -> None:
        whole_number(2, _MOST_LISTED, candidates=self.candidates)
        claim = stated(self.sensitivity, self.monotonic, self.score_range)
        moderate(**({"score_range": claim.score_range} if claim.by_range else {"sensitivity": claim.sensitivity}))

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

    def code(self, price: str, questions: int) -> str:
        """Return the arguments of a plan as Python source, in their older form."""
        return f"candidates={self.candidates}, {price}, {self.claim.code()}, selections={questions}"

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


_KINDS: Mapping[str, type[Question]] = {kind.name: kind for kind in (Mode, TopK, Quantile, Select)}
_MEDIAN = "median"
NAMES = (Mode.name, TopK.name, _MEDIAN, Quantile.name, Select.name)


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
