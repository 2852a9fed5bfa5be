"""A question: what is asked, as one frozen record of public numbers, for a plan, an answer, a command and a page.

A record can be made from public numbers alone, also from JSON (`Question.from_dict`). Then it can be planned. A table
adds what only it knows: the column, and what the candidates are. Either way the same methods say who draws, how often,
what is charged (`draw`), how far the answer may be off (`accuracy`), and what that means in words.

Errors are in people. The score of a count is a number of people. The score of a quantile of level a/b is -u, where u/b
is how far the rank of the candidate is off: with n people, at most a n / b + u/b of them are below it, and at least
a n / b - u/b are at or below it. So errors of scores are divided by b.
"""

import dataclasses
import datetime
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from types import NoneType
from typing import Annotated, Any, ClassVar, Protocol, Self, cast, get_args, get_origin

from dpselect import _validate
from dpselect._messages import question_for
from dpselect._numbers import exact_text, shown
from dpselect._types import Number
from dpselect.accounting.budget import Budget, Price
from dpselect.analysis.measures import ErrorsOf, Promise, among, promised_by
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import Claim, Neighbours, neighbours_of, stated
from dpselect.questions.methods import Draw
from dpselect.questions.options import HIDDEN, PLANNING, Field, Option, combined, listed, named, whole
from dpselect.questions.rows import Engine, Individuals
from dpselect.release import Accuracy

OF_TABLE = {"of_table": True}  # the metadata of a field that only a table fills: plans do not state it
_EXACT = {"type": ["number", "string"]}  # a number may be text, and is taken exactly
Exact = Annotated[Any, _EXACT]
EndOfRange = Annotated[Any, {**_EXACT, "description": "a number, or a date or a timestamp as ISO text"}]


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """What is asked. All fields are public."""

    name: ClassVar[str]
    # What a form adds to the options of the fields, and to what it prints.
    priced: ClassVar[tuple[str, ...]] = ("mechanism",)  # beside epsilon or rho
    has_scores: ClassVar[bool] = False  # it may be planned on public scores
    has_plot: ClassVar[bool] = False  # an answer is a distribution function
    needed_for: ClassVar[str] = ""  # of whom `people_needed` are needed; of the whole table or group if empty
    is_of_numbers: ClassVar[bool] = False  # of numbers, dates and timestamps, so it leaves out other text
    is_split: ClassVar[bool] = False  # whether an answer needs several selections, one after another
    has_range: ClassVar[bool] = False  # whether the candidates are a range, which can be made longer or finer
    found: ClassVar["type[Question] | None"] = None  # the record of the same question about values that nobody listed

    def __post_init__(self) -> None:
        # NumPy's integers overflow, and are no numbers in JSON.
        for each in fields(self):
            number = getattr(self, each.name, None)
            if type(number) not in (int, bool) and isinstance(number, Integral):
                object.__setattr__(self, each.name, int(number))

    @classmethod
    def about(cls, table: "Asked", column: Any, price: Price, **stated: Any) -> "OfTable":  # noqa: ARG003 - for tables
        """Return the question about a column of a table, from the parameters that its options state."""
        raise InvalidValue(f"{cls.name} is not about a table: plan it instead")

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of candidates."""

    @classmethod
    def beside(cls, stated: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG003 - for answers of several values
        """Return what is printed beside the values of an answer: the levels of each, or whether they are in order."""
        return {}

    # Who draws, how often, and what is charged.

    def settled(self, price: Price, budget: Budget | None) -> Self:  # noqa: ARG002 - for questions with methods
        """Return the question with what a table with this budget decides at such a price: the method of a top-k."""
        return self

    @property
    def method_name(self) -> str | None:
        """The name of the method for the top k; None for other questions."""
        return None

    def applicable(self, price: Price, budget: Budget | None = None) -> dict[str, Draw]:  # noqa: ARG002 - for the top k
        """Return what draws by each method that can answer, by name; nothing for questions without methods."""
        return {}

    def about_method(self, concentrated: bool) -> list[str]:  # noqa: ARG002 - for the top k
        """Return in words which method answers and why; nothing for questions without methods."""
        return []

    @property
    @abstractmethod
    def claim(self) -> Claim:
        """How much one person can change the scores."""

    def suits(self, kind: type[MechanismBase]) -> bool:
        """Return whether this mechanism can answer it: tables need those that select from runs."""
        return kind.has_runs

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The names of the mechanisms that can answer it."""
        return tuple(name for name, kind in MECHANISMS.items() if self.suits(kind))

    @property
    def rounds(self) -> int:
        """The number of selections of an answer, or of the answer for one group, that have bounds each."""
        return 1

    @property
    def draws(self) -> int:
        """The number of equal parts of a charge, over all groups that one person may be in."""
        return self.rounds

    @property
    def is_free(self) -> bool:
        """Whether the answer follows from public numbers alone."""
        return False

    def draw(self, price: Price, budget: Budget | None = None) -> Draw:
        """Return what draws at this price of the whole question, and what is charged for it."""
        # The budget is the one that pays; None without a ledger.
        drawn = self.checked(price.drawn_by(budget, self.draws, **self.claim.arguments()))
        return Draw(drawn, drawn, self.draws)

    def drawn(self, price: Price, budget: Budget | None) -> Draw:
        """Return what draws, checked to be what the question claims: a record may define one without the other."""
        draw, claim, draws = self.draw(price, budget), self.claim, self.draws
        found = getattr(draw.mechanism, "claim", claim)
        if (found, draw.count) != (claim, draws):
            raise InvalidValue(
                f"question {self.name} claims {claim} and {draws} draws, but it draws {draw.count} times with {found}:"
                " define its draw and its claim together"
            )
        return draw

    def checked(self, mechanism: MechanismBase) -> MechanismBase:
        """Return the mechanism, checked to be one that can answer: about a table, on every engine."""
        if not self.suits(type(mechanism)):
            raise InvalidType(
                f"mechanism {mechanism.name} cannot answer questions about tables: use permute-and-flip or exponential"
            )
        return mechanism

    def used(self, price: Price, budget: Budget | None) -> str:
        """Return the name of the mechanism that draws at such a price, as a table with this budget chooses it."""
        return price.kind(budget).name

    # How far the answer may be off.

    @property
    def unit(self) -> int:
        """How much of a score is one person."""
        return 1

    @property
    def error_unit(self) -> str:
        """The unit of errors."""
        return "people"

    @property
    def errors(self) -> ErrorsOf | None:
        """The bounds of one difference, in units of the scores, at rate one; None if there are none."""
        return among(self.size)

    def promise(self, mechanism: MechanismBase) -> Promise:
        """Return the bounds with this mechanism, in units of the scores. The mechanism is that of one draw."""
        return promised_by(mechanism, cast("ErrorsOf", self.errors))

    def all_within(self, mechanism: MechanismBase, probability: float) -> float:
        """Return an error that any selection of an answer reaches with at most this probability: a union bound."""
        errors = cast("ErrorsOf", self.errors)(type(mechanism))
        return errors.rarely_exceeded(probability / self.rounds) / float(mechanism.rate)

    def people_needed(self, mechanism: MechanismBase) -> int | None:  # noqa: ARG002 - for questions with a rule
        """Return about how many people an answer needs to mean something; None if that has no general rule."""
        return None

    def usual_error(self, mechanism: MechanismBase) -> float | None:  # noqa: ARG002 - for several quantiles
        """Return about how large the error is on data without wide gaps; None if the bounds say enough."""
        return None

    # In words.

    @property
    @abstractmethod
    def title(self) -> str:
        """The question in words."""

    @abstractmethod
    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean: on average, in 95 and in 99 of 100 cases."""

    @property
    def is_grouped(self) -> bool:
        """Whether there is an answer for each of several groups."""
        return False

    def need(self, people: int) -> str:
        """Return in words what `people_needed` means."""
        where = " in each group" if self.is_grouped else ""
        return (
            f"It needs about {people:,} {self.error_unit}{where}: with fewer, more than 5 of 100 answers may lie"
            " outside all values of the data."
        )

    @property
    def condition(self) -> str:
        """Which data the bounds are about, in words; nothing for any data."""
        return ""

    @property
    def holds(self) -> str:
        """A sentence on which data the bounds hold for."""
        if not self.condition:
            return "This holds for any data."
        return (
            f"This holds {self.condition}. People with more count for that many, chosen at random, and the true counts"
            " can differ by more."
        )

    def remark(self, within_95: float) -> str:  # noqa: ARG002 - for questions that have one
        """Return what else follows from the bound for 95 of 100 cases; usually nothing."""
        return ""

    def dense(self, mechanism: MechanismBase) -> str:
        """Return in words how large the error is on data without wide gaps; nothing if the bounds say enough."""
        usual = self.usual_error(mechanism)
        return "" if usual is None else f"If values lie densely, expect about {shown(usual)} {self.error_unit}."

    @property
    def shares(self) -> str:
        """How the price is divided, in words; nothing if there is one draw."""
        return divided(self.draws, "selections")

    # As JSON.

    @classmethod
    def stated_fields(cls) -> "dict[str, dataclasses.Field[Any]]":
        """Return the fields that can be stated from public numbers alone, by name."""
        return {each.name: each for each in fields(cls) if "of_table" not in each.metadata}

    def to_dict(self) -> dict[str, Any]:
        """Return the question in the types of JSON, without what only a table knows."""
        return {"question": self.name, **{name: plain(getattr(self, name)) for name in self.stated_fields()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the question that `to_dict` described."""
        if not isinstance(data, Mapping) or "question" not in data:
            raise InvalidType("data must be a dict with the name of a question: give for example {'question': 'mode'}")
        given = dict(data)
        found = question_of(given.pop("question"), given)
        if not isinstance(found, cls):
            raise InvalidValue(f"question must be {getattr(cls, 'name', 'about a table')!r}, got {found.name!r}")
        return found

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of what `to_dict` returns and `from_dict` reads."""
        known = cls.stated_fields()
        return {
            "type": "object",
            "properties": {
                "question": {"const": cls.name},
                **{name: {**_schema_of(each.type), **_told(each)} for name, each in known.items()},
            },
            "required": ["question", *(n for n, each in known.items() if each.default is MISSING or not each.init)],
            "additionalProperties": False,
        }


def _told(stated: "dataclasses.Field[Any]") -> dict[str, Any]:
    default = {} if stated.default is MISSING else {"default": plain(stated.default)}
    options: tuple[Option, ...] = stated.metadata.get("planning") or stated.metadata.get("asking") or ()
    return {**default, **({"description": options[0].help} if options else {})}


_JSON = {
    bool: "boolean",
    int: "integer",
    float: "number",
    Fraction: "string",
    Decimal: "string",
    str: "string",
    NoneType: "null",
}


def _schema_of(kind: Any) -> dict[str, Any]:
    parts = get_args(kind)
    if get_origin(kind) is Annotated:
        return {**_schema_of(parts[0]), **parts[1]}
    if kind in _JSON:
        return {"type": _JSON[kind]}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _schema_of(parts[0]), "minItems": len(parts), "maxItems": len(parts)}
    different: list[dict[str, Any]] = []
    different += [each for each in map(_schema_of, parts) if each not in different]
    return {"anyOf": different} if different else {}


FOUND = "found in the data"


def question_of(question: Any, given: Mapping[str, Any]) -> Question:
    """The question of this name with these fields; or the record, which has its fields already.

    >>> question_of("median", {"lower": 0, "upper": 100}).level
    Fraction(1, 2)
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    if isinstance(question, Question):
        if chosen:
            raise InvalidValue(f"{next(iter(chosen))} belongs in the record of the question: give it there")
        return question
    entry = named(question)
    kind = entry.record
    if kind.found is not None and chosen.get("candidates") == FOUND:
        kind = kind.found
        del chosen["candidates"]
    known = {name: each for name, each in kind.stated_fields().items() if name not in entry.fixed}
    for name in chosen:
        if name not in known and name in {each.name for each in entry.planning}:
            raise InvalidValue(f"{name} is for values that nobody listed: give delta instead of candidates")
        if name not in known:
            meant = question_for(name, known, {})
            raise InvalidValue(
                f"{name} is not a parameter of {question}, which takes {', '.join(sorted(known))}{meant}"
            )
    needed = [name for name, each in known.items() if each.default is MISSING and name not in chosen]
    chosen |= {name: entry.defaults[name] for name in needed if name in entry.defaults}
    missing = [name for name in needed if name not in chosen]
    if missing:
        raise InvalidValue(f"{question} needs {' and '.join(missing)}")
    asked: Question = kind(**chosen, **entry.fixed)
    return asked


def divided(draws: int, noun: str) -> str:
    """How a price is divided, in words; nothing if it is not.

    >>> divided(3, "selections")
    'One person can influence 3 selections, and each gets 1/3 of the price.'
    """
    if draws == 1:
        return ""
    return f"One person can influence {draws:,} {noun}, and each gets 1/{draws:,} of the price."


def plain(value: Any) -> Any:
    """A field in the types of JSON."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, datetime.timedelta):
        return f"PT{exact_text(Fraction(value // datetime.timedelta(microseconds=1), 10**6))}S"
    return exact_text(value) if isinstance(value, Fraction) else str(value)


class Asked(Protocol):
    """What a question learns of the table that it is asked of, before anything is counted."""

    @property
    def individuals(self) -> Individuals:
        """Who is counted."""
        ...

    @property
    def stated(self) -> dict[str, Any]:
        """Of whom it is asked, as fields of a question."""
        ...

    def among(self, column: Any, candidates: Any, other: Any) -> Any:
        """Return public candidates, checked: a domain, or a list with the candidate for all others."""
        ...

    def span(self, lower: Any, upper: Any, step: Any, column: Any, range: str) -> Any:
        """Return the candidates between two public ends."""
        ...


@dataclass(frozen=True, kw_only=True)
class OfTable(Question):
    """What all questions about a table share. `noun` is who is counted in a table: people, or rows."""

    groups: int | None = Option(
        ("--groups",),
        "N|LIST|FILE",
        "One answer for each group: their number, A,B,C or a file. Repeat it to combine the groups of columns.",
        combined,
        is_shared=True,
        is_repeated=True,
        page=Field("Groups", empty="none"),
    ).as_field(forms=(PLANNING,), default=None)
    max_groups: int = Option(
        ("--max-groups",),
        "M",
        "In how many groups one person may be counted.",
        whole,
        is_shared=True,
        page=Field("Groups per person", "With groups, the data shown are those of one group."),
    ).as_field(default=1)
    neighbours: str = Option(
        ("--neighbours",),
        "N",
        "add-remove (hides who is in the table) or replace.",
        is_shared=True,
        page=Field("Protects", choices={"add-remove": "who is in the table", "replace": "what a person's rows say"}),
    ).as_field(default=Neighbours.ADD_REMOVE.value)
    returns_one: ClassVar[bool] = False  # whether an answer is a value, and not a list of values
    column: Any = field(default=None, repr=False, metadata=OF_TABLE)
    noun: str = field(default="people", repr=False, metadata=OF_TABLE)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "neighbours", neighbours_of(self.neighbours).value)
        most = _validate.count(1, _validate.EXACT_IN_FLOATS, max_groups=self.max_groups)
        if self.groups is None:
            if most > 1:
                raise InvalidValue("max_groups needs groups: give the number of groups")
        else:
            groups = _validate.count(1, _validate.EXACT_IN_FLOATS, groups=self.groups)
            object.__setattr__(self, "groups", groups)
            object.__setattr__(self, "max_groups", min(most, groups))

    @classmethod
    def about(cls, table: Asked, column: Any, price: Price, **stated: Any) -> "OfTable":  # noqa: ARG003 - for others
        return cls(column=column, **stated, **table.stated)

    def shown(self, values: list[Any]) -> Any:
        """Return the answer for one group: a value, or all of them."""
        if not self.returns_one:
            return values
        return values[0] if values else None

    @property
    def free_value(self) -> list[Any]:
        """The answer, if it follows from public numbers alone."""
        return []

    @property
    def is_added(self) -> bool:
        """Whether neighbours differ by one person who is added or removed, and not replaced."""
        return self.neighbours == Neighbours.ADD_REMOVE

    @property
    def is_grouped(self) -> bool:
        return self.groups is not None

    @property
    def draws(self) -> int:
        return self.rounds * self.max_groups

    @property
    def max_values_in_words(self) -> int | None:
        """For how many values a person counts, if they may have more; otherwise None."""
        return None

    @property
    def condition(self) -> str:
        # Of people with more values or groups, some are chosen at random. The bounds are about what is chosen.
        limit = self.max_values_in_words
        told = [] if limit is None else [f"has more than {many_in_words(limit, 'value')}"]
        if self.groups is not None and self.max_groups < self.groups:
            told.append(f"is in more than {many_in_words(self.max_groups, 'group')}")
        return f"if nobody {' or '.join(told)}" if told else ""

    @property
    def shares(self) -> str:
        return self.with_groups(super().shares)

    def with_groups(self, shares: str) -> str:
        each = "" if self.groups is None else "The accuracy holds for each group."
        return " ".join(filter(None, [shares, each]))

    @property
    def in_groups(self) -> str:
        if self.groups is None:
            return ""
        each = "" if self.max_groups == 1 else f", with a person in at most {self.max_groups:,} of them"
        return f" in each of {many(self.groups, 'group')}{each}"

    # What a table asks for.

    @abstractmethod
    def entry(self) -> dict[str, Any]:
        """Return the public parameters that a ledger records, as JSON can hold them."""

    @abstractmethod
    def estimate(self, individuals: Individuals) -> str:
        """Return what is estimated, in words."""

    @abstractmethod
    def answer(self, engine: Engine, individuals: Individuals, draw: Draw) -> Any:
        """Count and choose: return a value, or a dict with a value for each group."""

    def accuracy(self, draw: Draw) -> Accuracy | None:
        """Return how far an answer may be off, from public numbers alone; None if there is nothing to choose."""
        if self.size < 2:
            return None
        mechanism = draw.mechanism
        promised = self.promise(mechanism)
        average, usual, rare = (each / self.unit for each in (promised.average, promised.within_95, promised.within_99))
        needed = self.people_needed(mechanism)
        # A row has one value and is in one group.
        condition, holds = (self.condition, self.holds) if self.noun == "people" else ("", "This holds for any data.")
        told = [self.meaning(*map(shown, (average, usual, rare))), holds]
        told += filter(None, [self.dense(mechanism)])
        told += [] if needed is None else [self.need(needed)]
        if self.groups is not None:
            few = f"{math.ceil(usual):,} {self.error_unit}"
            told.append(f"In a group of fewer than {few}, the answer may be mere chance.")
        bounds = (average, usual, self.error_unit, f"bound {condition or 'for any data'}")
        dense, who = self.usual_error(mechanism), self.needed_for
        return self.in_nouns(Accuracy(*bounds, " ".join(told), dense, condition, needed, needed_for=who))

    @property
    def read_as(self) -> dict[str, Any]:
        """How the column is read, for a check: as `values` of a list, those of a rule (`domain`), or on a `grid`."""
        return {}

    def remarks(self, values: list[Any], draw: Draw) -> list[str]:  # noqa: ARG002 - for questions that have some
        """Return what to know before an answer is used, for one group: from public numbers and the answer."""
        return []

    def notes(self, draw: Draw, value: Any) -> list[str]:
        """Return the remarks on an answer, each with the groups that it is about."""
        if self.groups is None:
            return self.remarks(self.as_list(value), draw)
        found: dict[str, list[Any]] = {}
        for group, own in value.items():
            for remark in self.remarks(self.as_list(own), draw):
                found.setdefault(remark, []).append(group)
        # With something to say about every group, their names say nothing.
        every = len(value)
        return [
            remark if len(groups) == every else f"{remark} (in {many(len(groups), 'group')} of {every:,})"
            for remark, groups in found.items()
        ]

    def as_list(self, value: Any) -> list[Any]:
        """Return the values of the answer for one group: the inverse of `shown`."""
        if not self.returns_one:
            return list(value)
        return [] if value is None else [value]

    def in_nouns(self, accuracy: Accuracy) -> Accuracy:
        """Return the accuracy in the words of those who are counted: plans speak of people."""
        if self.noun == "people":
            return accuracy
        words, method = accuracy.words.replace(" people", " rows"), accuracy.method.replace("people", "rows")
        return replace(accuracy, unit="rows", method=method, words=words)


def many(number: int, noun: str) -> str:
    """So many things, in words."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def many_in_words(number: int, noun: str) -> str:
    """So many things, in words: a single one is not a figure."""
    return f"one {noun}" if number == 1 else f"{number:,} {noun}s"


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
    priced: ClassVar[tuple[str, ...]] = ("mechanism", "delta")
    has_scores: ClassVar[bool] = True
    candidates: int = Option(
        ("--candidates",), "N", "Number of candidates. Default: that of --scores.", listed
    ).as_field(forms=(PLANNING,), is_required=False)
    sensitivity: Number | None = Option(
        ("--sensitivity",),
        "D",
        "How much one person can change any single score. Default: 1.",
        page=Field(
            "Sensitivity \N{GREEK CAPITAL LETTER DELTA}",
            "\N{GREEK CAPITAL LETTER DELTA} is how much one person can change any single score.",
            "1",
        ),
    ).as_field(forms=(PLANNING,), default=None)
    monotonic: bool = Option(
        ("--monotonic",),
        "",
        "One person moves all scores in the same direction, as in counts of people.",
        page=Field(
            "Monotonic: one person moves all scores in the same direction, as with counts of people, but not with"
            " a median",
            example="true",
        ),
    ).as_field(forms=(PLANNING,), default=False)
    score_range: Number | None = Option(
        ("--score-range",),
        "R",
        "How much one person can change the difference of two scores; replaces both.",
        page=HIDDEN,
    ).as_field(forms=(PLANNING,), default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.count(2, _validate.EXACT_IN_FLOATS, candidates=self.candidates)
        claim = self.claim
        name = "score_range" if claim.by_range else "sensitivity"
        number = _validate.moderate(**{name: getattr(claim, name)})
        if getattr(self, name) is not None:
            object.__setattr__(self, name, number)

    @property
    def error_unit(self) -> str:
        return "units of the scores"

    @property
    def size(self) -> int:
        return self.candidates

    @property
    def claim(self) -> Claim:
        return stated(self.sensitivity, self.monotonic, self.score_range)

    def suits(self, kind: type[MechanismBase]) -> bool:  # noqa: ARG002 - for tables
        return True

    @property
    def title(self) -> str:
        return f"Choosing one of {self.candidates:,} candidates, {self.claim}"

    def meaning(self, average: str, usual: str, rare: str) -> str:
        return (
            f"On average, the chosen candidate scores at most {average} below the best one. In 95 of 100 cases the"
            f" difference is less than {usual}, in 99 of 100 less than {rare}."
        )
