"""A question on data that everyone may see, with what may be spent on it: one frozen record for each kind.

The question itself is a record of `dpselect.analysis`, and `analysis.plan` says what it costs and what holds for any
data. `Asked` adds what happens on the shown data: the outcomes of each choice. The choices are mechanisms or, for the
top k, methods. All that the page shows of a question is here, so that no other file asks which question it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpselect._numbers import DOWN, NEAREST, UP
from dpselect._types import Floats
from dpselect.accounting.budget import AUTO, Price
from dpselect.analysis import error_quantile, error_tail
from dpselect.errors import InvalidValue
from dpselect.explore.score_set import Known, ScoreSet
from dpselect.explore.settings import Fields, Spending, optional_whole, text, written
from dpselect.mechanisms import MECHANISMS, MechanismBase
from dpselect.questions.costs import share_of
from dpselect.questions.planning import plan
from dpselect.questions.plans import Plan
from dpselect.questions.question import Question

_ALMOST = 0.9999
_LITTLE = 0.001
MOST = 10**9


class Cell(NamedTuple):
    """An entry of the table: what it is, as the page shows it, and its number."""

    name: str
    text: str
    value: float | None


class Drawn(NamedTuple):
    """Simulated answers: how often each candidate was one, out of how many, and what happened in words."""

    counts: list[int]
    total: int
    told: str


@dataclass(frozen=True, repr=False)
class Outcomes:
    """What the answers of one choice can be: exactly, or by simulation.

    Attributes:
        chances: the probability of each candidate to be an answer, or among the answers.
        weights: the probability of each outcome.
        errors: the error of each outcome, in people or units of the scores. One of them is zero.
        runs: the number of simulated answers; 0 if the probabilities are exact.
    """

    chances: Floats
    weights: Floats
    errors: Floats
    runs: int = 0

    @classmethod
    def simulated(cls, chances: Floats, errors: Floats) -> "Outcomes":
        """Return outcomes that are equally likely, by their errors."""
        weights = np.full(errors.size + 1, 1 / errors.size)
        weights[0] = 0.0  # no error, which may not occur
        return cls(chances, weights, np.concatenate([[0.0], errors]), errors.size)

    @property
    def best(self) -> float:
        """Return the probability of no error."""
        return min(1.0, float(self.weights[self.errors == 0].sum()))

    def error_quantile(self, level: float) -> float:
        """Return the error that is not exceeded with this probability."""
        return error_quantile(Known(self.weights), -self.errors, level)

    def tail(self, thresholds: Floats) -> Floats:
        """Return how often the error is at least each threshold."""
        tail: Floats = error_tail(Known(self.weights), -self.errors, thresholds)
        return tail


@dataclass(frozen=True, repr=False)
class Asked(ABC):
    """A question, what may be spent on it, and the data that are shown.

    Attributes:
        question: the question.
        spending: the budget, and the number of questions that share it.
        chosen: "auto", or the name of a mechanism or method.
        data: the candidates, and what is known about them so far.
        unit: the unit of errors.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    choice_title: ClassVar[str] = "Mechanism"
    chart_title: ClassVar[str] = "Probability of each candidate"
    chart_order: ClassVar[str] = "rank of the candidate, best score first"
    note: ClassVar[str] = "score"  # what `notes` are
    is_ranked: ClassVar[bool] = True  # whether the page may show the best candidates only
    has_scores: ClassVar[bool] = True  # whether it is about the scores that the reader loaded
    is_simulated_slowly: ClassVar[bool] = False
    most_draws: ClassVar[int] = 10_000

    question: Question
    spending: Spending
    chosen: str
    data: ScoreSet
    unit: str

    @classmethod
    @abstractmethod
    def read(cls, fields: Fields, spending: Spending, scores: ScoreSet | None) -> "Asked":
        """Return the question that a request states."""

    def at(self, amount: Fraction) -> "Asked":
        """Return the same question with another budget."""
        return replace(self, spending=self.spending.at(amount))

    @cached_property
    def planned(self) -> Plan:
        """Return the plan: what is charged, and what holds for any data."""
        return plan(
            question=self.question,
            budget=self.spending.budget,
            questions=self.spending.questions,
            mechanism=self._mechanism_of_plan,
        )

    @property
    def _mechanism_of_plan(self) -> str:
        return self.chosen

    @property
    def _any_price(self) -> Price:
        return Price(1, mechanism=self._mechanism_of_plan)

    @cached_property
    def settled(self) -> Question:
        """Return the question with the method that answers, as in the plan. The plan itself takes longer."""
        return self.question.settled(self._any_price, self.spending.budget)

    @cached_property
    def price(self) -> Mapping[str, Fraction]:
        """Return the share of the budget that one question gets: epsilon or rho."""
        return share_of(self.spending.budget, self.settled, self.spending.questions)

    @property
    def choices(self) -> Mapping[str, str]:
        """Return the mechanisms or methods that can answer: their names and titles."""
        return {name: MECHANISMS[name].title for name in self.settled.mechanisms}

    @property
    def taken(self) -> str:
        """Return the choice of the reader, or the one that a table with this budget takes."""
        return self.settled.used(self._any_price, self.spending.budget)

    def mechanism(self, choice: str) -> MechanismBase:
        """Return what draws, at its share of the budget."""
        return self.settled.drawn(choice, **self.price)

    @abstractmethod
    def mean(self, choice: str) -> float:
        """Return the average error."""

    @property
    def compared(self) -> Iterable[str]:
        """Return the choices whose answers are shown."""
        return self.choices

    @abstractmethod
    def outcomes(self, choice: str) -> Outcomes:
        """Return what the answers can be."""

    @abstractmethod
    def drawn(self, draws: int) -> Drawn:
        """Return simulated answers of the taken choice. Never for release."""

    @property
    def draw_counts(self) -> list[int]:
        """Return the numbers of simulated answers that the page offers."""
        return [draws for draws in (1, 100, 10_000) if draws <= self.most_draws]

    @property
    @abstractmethod
    def target(self) -> float:
        """Return an average error at which there is something to see: a small part of what matters on these data."""

    @property
    def order(self) -> list[int]:
        """Return the candidates in the order in which the page shows them."""
        return list(map(int, np.argsort(self.data.losses, kind="stable")))

    @property
    def notes(self) -> list[str]:
        """Return what is known about each candidate: its score."""
        return [str(score) for score in self.data.exact]

    @abstractmethod
    def sentence(self) -> str:
        """Return what to expect from the taken choice, in plain words."""

    @property
    @abstractmethod
    def heads(self) -> list[str]:
        """Return the heads of the table of choices, after the first."""

    @abstractmethod
    def cells(self, choice: str) -> list[Cell]:
        """Return the row of a choice in that table."""

    @property
    def words(self) -> list[str]:
        """Return what holds for any data, and what it costs, in the words of the plan."""
        told = self.planned.sentences, self.planned.about_methods, self.planned.advice
        return [" ".join(sentences) for sentences in told if sentences]

    @property
    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Return the question as arguments of `analysis.plan`, without those that have their default."""

    def python(self) -> str:
        """Return a program that prints the numbers of the page."""
        return f"from dpselect import analysis\n\n{self.plan_code()}"

    def plan_code(self) -> str:
        """Return the plan as Python code."""
        given = {"question": self.question.name, **self.arguments, **self._paid}
        listed = "".join(f"    {name}={value!r},\n" for name, value in given.items())
        return f'planned = analysis.plan(\n{listed})\nprint("\\n".join(planned.sentences))\n'

    def command(self) -> str:
        """Return commands for a shell that print the numbers of the page."""
        words = [
            f"--{name.replace('_', '-')}{_option(value)}" for name, value in {**self.arguments, **self._paid}.items()
        ]
        return f"dpselect plan {self.command_name} {' '.join(words)}\n".replace("--k=", "-k ")

    @property
    def command_name(self) -> str:
        """Return the name of the command that plans it."""
        return self.question.name

    @property
    def _paid(self) -> dict[str, Any]:
        mechanism = {} if self._mechanism_of_plan == AUTO else {"mechanism": self._mechanism_of_plan}
        return {"budget": self.spending.written, "questions": self.spending.questions, **mechanism}


def _option(value: Any) -> str:
    if value is True:
        return ""
    return f"={','.join(value) if isinstance(value, list) else value}"


def of_table(fields: Fields) -> dict[str, Any]:
    """The arguments that all questions about tables share, without those that have their default."""
    groups, most = optional_whole(fields, "groups", 1, MOST), optional_whole(fields, "max_groups", 1, MOST)
    given = {"groups": groups, "max_groups": most, "neighbours": text(fields, "neighbours", "") or None}
    if most == 1:
        del given["max_groups"]
    return {name: value for name, value in given.items() if value is not None and value != "add-remove"}


def grouped(question: Question) -> dict[str, Any]:
    """The same of a question, as arguments of a plan."""
    stated = question.parameters()
    given = {name: stated[name] for name in ("groups", "max_groups", "neighbours")}
    defaults = {"groups": None, "max_groups": 1, "neighbours": "add-remove"}
    return {name: value for name, value in given.items() if value != defaults[name]}


def choice_of(fields: Fields, known: Mapping[str, Any]) -> str:
    """The choice that a request names."""
    chosen = text(fields, "choice", AUTO)
    if chosen not in (AUTO, *known):
        raise InvalidValue(f"choice must be one of {', '.join([AUTO, *known])}")
    return chosen


def error_cell(name: str, error: float | None) -> Cell:
    """An error, rounded up."""
    return Cell(name, "\N{EN DASH}" if error is None else error_text(error), error)


def error_text(error: float, digits: int = 4) -> str:
    """An error, rounded up; below a thousandth it does not matter how small."""
    return written(error, UP, digits) if error == 0 or error >= _LITTLE else f"less than {_LITTLE}"


def probability_text(value: float) -> str:
    """A probability rounded down to two digits; near one, to as many as distinguish it from one.

    >>> probability_text(0.8389), probability_text(0.99996), probability_text(0.000123)
    ('0.83', 'above 0.9999', 'below 0.001')
    """
    if value < _LITTLE:
        return f"below {_LITTLE}"
    if value > _ALMOST:
        return f"above {_ALMOST}"
    return written(value, DOWN, 2 if value < 0.99 else 4)


def each_cell(mechanism: MechanismBase) -> Cell:
    """The epsilon of a draw, to compare."""
    epsilon = float(mechanism.epsilon)
    return Cell("each", written(epsilon, NEAREST, 3), epsilon)
