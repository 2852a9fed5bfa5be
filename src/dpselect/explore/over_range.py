"""One quantile, or several, of made-up people on a public range.

The errors of one quantile are exact. For several, the page shows the usual error of the plan, and some
simulated answers.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from dpselect._levels import NAMED
from dpselect._numbers import UP, exact_text
from dpselect._types import Floats, Integers
from dpselect.errors import InvalidType, InvalidValue
from dpselect.explore.asked import (
    MOST,
    Asked,
    Cell,
    Drawn,
    Outcomes,
    choice_of,
    each_cell,
    error_cell,
    error_text,
    grouped,
    of_table,
)
from dpselect.explore.by_scores import OneCandidate
from dpselect.explore.score_set import MOST_CANDIDATES, ScoreSet, people_on_grid
from dpselect.explore.settings import Fields, Spending, number, positive, text, whole, written
from dpselect.mechanisms import MECHANISMS
from dpselect.questions.quantiles import Quantile, Quantiles, for_each_level
from dpselect.questions.rows import Places, quantile_score_runs
from dpselect.questions.splitting import split_quantiles
from dpselect.score_files import ScoreFile
from dpselect.selection.draws import Draws

_SOME_PEOPLE = 0.02  # of all people
_MOST_PEOPLE = 10**8
_MOST_SPLIT = 20_000  # people of several levels, whose answers are simulated
_ANSWERS = 20
_PATIENCE, _LONG_PATIENCE = 0.3, 3.0  # seconds: an answer takes milliseconds, but with tiny budgets a second


@dataclass(frozen=True)
class People:
    """Made-up people on a public grid."""

    lower: Fraction
    step: Fraction
    size: int
    total: int
    middle: Fraction
    spread: Fraction

    @cached_property
    def counts(self) -> Integers:
        """Return the number of people at each value."""
        middle, spread = float((self.middle - self.lower) / self.step), float(self.spread / self.step)
        return people_on_grid(self.size, self.total, middle, spread)

    @cached_property
    def places(self) -> Places:
        """Return the people as the engines of tables count them."""
        taken = np.flatnonzero(self.counts)
        return Places(taken.astype(np.uint64), np.zeros(taken.size, np.bool_), self.counts[taken])

    @property
    def values(self) -> list[str]:
        """Return the values of the grid."""
        return [exact_text(self.lower + place * self.step) for place in range(self.size)]

    def off_by(self, level: Fraction, places: Any) -> Floats:
        """Return how many people the rank of each place is away from a level."""
        ends = np.cumsum(self.counts)
        aim = float(level) * self.total
        off = np.maximum((ends - self.counts)[places] - aim, aim - ends[places])
        off_by: Floats = np.maximum(off, 0.0)
        return off_by


@lru_cache(maxsize=32)
def _scored(people: People, level: Fraction | None) -> ScoreSet:
    """The values with their scores for a level, or with their people."""
    scores = people.counts
    if level is not None:
        runs, lengths = quantile_score_runs(people.places, people.size, level)
        scores = np.repeat(runs, lengths.astype(np.int64))
    return ScoreSet("made-up people", ScoreFile(scores.tolist(), people.values), "people")


@dataclass(frozen=True, repr=False)
class OfPeople(Asked):
    """What one and several quantiles share: made-up people, and values from low to high."""

    name = "quantiles"
    title = "Median and quantiles"
    chart_title = "Probability of each value"
    chart_order = "value"
    note = "people"
    is_ranked = False
    has_scores = False

    people: People

    @classmethod
    def read(cls, fields: Fields, spending: Spending, scores: ScoreSet | None) -> Asked:
        """Return the question that a request states: about one level, or about several."""
        del scores
        lower, upper = number(fields, "lower", "0"), number(fields, "upper", "100")
        step = positive(fields, "step", "1")
        grid = {"lower": lower, "upper": upper, "step": step}
        levels = _levels(text(fields, "levels", "0.5"))
        several = len(levels) > 1
        kind: Any = Quantiles if several else Quantile
        asked = {"levels": levels} if several else {"level": levels[0]}
        question = kind(**asked, **grid, **of_table(fields))
        if not 2 <= question.size <= MOST_CANDIDATES:
            raise InvalidValue(
                f"lower, upper and step must make 2 to {MOST_CANDIDATES:,} values here: give another step"
            )
        spread = positive(fields, "spread") if text(fields, "spread", "") else (upper - lower) / 8
        middle = number(fields, "middle") if text(fields, "middle", "") else (lower + upper) / 2
        if not -MOST <= (middle - lower) / step <= MOST or not Fraction(1, MOST) <= spread / step <= MOST:
            raise InvalidValue("middle and spread must be of the size of the range: give numbers near it")
        total = whole(fields, "people", 1, _MOST_SPLIT if several else _MOST_PEOPLE, "2000")
        people = People(lower, step, question.size, total, middle, spread)
        data = _scored(people, None if several else levels[0])
        made: type[OfPeople] = SeveralLevels if several else OneLevel
        return made(question, spending, choice_of(fields, MECHANISMS), data, "people", people)

    @property
    def order(self) -> list[int]:
        """Return the values between those that are hardly ever an answer."""
        chances = np.max([self.outcomes(choice).chances for choice in self.compared], axis=0)
        seen = np.flatnonzero(chances >= chances.max() / 200)
        return list(range(max(0, int(seen[0]) - 1), min(self.people.size, int(seen[-1]) + 2)))

    @property
    def notes(self) -> list[str]:
        """Return the number of people at each value."""
        return [str(count) for count in self.people.counts.tolist()]

    @property
    def warning(self) -> str:
        """Return that there are too few people, if that is so."""
        needed = self.planned.people_needed or 0
        if self.people.total >= needed:
            return ""
        return f" It needs about {needed:,} people: with {self.people.total:,}, the answer may say nothing about them."

    @property
    def target(self) -> float:
        """Return a part of all people."""
        return _SOME_PEOPLE * self.people.total

    @property
    def _range(self) -> dict[str, Any]:
        upper = self.people.lower + (self.people.size - 1) * self.people.step
        ends = {"lower": self.people.lower, "upper": upper, "step": self.people.step}
        return {name: exact_text(value) for name, value in ends.items()}


@dataclass(frozen=True, repr=False)
class OneLevel(OfPeople, OneCandidate):
    """One quantile, by the exact probabilities of all values."""

    question: Quantile
    best: ClassVar[str] = "the best value"

    @property
    def heads(self) -> list[str]:
        """Return the heads of the table."""
        _, *others = super().heads
        return ["Best value", *others]

    def value_error(self, choice: str) -> float:
        """Return how far the answer is from the nearest best value, on average, in units of the column."""
        places = np.arange(self.people.size)
        best = np.flatnonzero(self.data.losses == 0)
        distance = np.maximum(np.maximum(best[0] - places, places - best[-1]), 0)
        return float(self.outcomes(choice).chances @ distance) * float(self.people.step)

    def sentence(self) -> str:
        """Return what to expect from the mechanism that draws."""
        outcomes, level = self.outcomes(self.taken), self.question.what
        return (
            f"With {self.spending.words} the rank of the answer is on average {error_text(self.mean(self.taken), 2)} of"
            f" {self.people.total:,} people away from the {level}; 95 times in 100 at most"
            f" {written(outcomes.error_quantile(0.95), UP, 4)}. The value is off by"
            f" {error_text(self.value_error(self.taken), 2)} on average.{self.warning}"
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the plan."""
        return {"level": exact_text(self.question.exact_level), **self._range, **grouped(self.question)}

    def python(self) -> str:
        """Return the plan."""
        return Asked.python(self)


@dataclass(frozen=True, repr=False)
class SeveralLevels(OfPeople):
    """Several quantiles: the usual error of the plan, and some simulated answers."""

    question: Quantiles
    chart_title = "How often each value is an answer"
    most_draws = 100
    is_simulated_slowly = True

    def mean(self, choice: str) -> float:
        """Return about how large the error of the worst level is if values lie densely."""
        return float(self.question.usual_error(self.mechanism(choice)) or 0.0)

    @property
    def compared(self) -> Iterable[str]:
        """Return the taken choice: simulated answers of others would take too long."""
        return [self.taken]

    def outcomes(self, choice: str) -> Outcomes:
        """Return simulated answers."""
        key = (choice, self.mechanism(choice).rate, self.question)
        return self.data.remembered(key, lambda: self._simulated(choice))

    def _simulated(self, choice: str) -> Outcomes:
        answers = self._answers(choice, _ANSWERS, _PATIENCE)
        errors = [self.people.off_by(*one) for one in zip(self.question.ascending, answers.T, strict=True)]
        return Outcomes.simulated(self._often(answers) / answers.size, np.concatenate(errors))

    def _answers(self, choice: str, runs: int, patience: float) -> Integers:
        """This many simulated answers, or as many as there is patience for."""
        asked = self.people.places, self.people.size, self.question.ascending
        drawing, deadline = for_each_level(self.mechanism(choice)), time.monotonic() + patience
        answers = [split_quantiles(*asked, drawing, Draws())]
        while len(answers) < runs and time.monotonic() < deadline:
            answers.append(split_quantiles(*asked, drawing, Draws()))
        return np.array(answers, np.int64)

    def _often(self, answers: Integers) -> Integers:
        return np.bincount(answers.ravel(), minlength=self.people.size)

    def drawn(self, draws: int) -> Drawn:
        """Return how often each value is among the simulated answers."""
        answers = self._answers(self.taken, draws, _LONG_PATIENCE)
        values = ", ".join(self.data.labels[place] for place in answers[0])
        told = f"gave {values}." if draws == 1 else f"gave {answers.size:,} values."
        return Drawn(self._often(answers).tolist(), answers.size, told)

    @property
    def heads(self) -> list[str]:
        """Return the heads of the table."""
        return ["Usual error, worst level", "Any data, average", "Any data, all in 95 of 100", "\u03b5 of a draw"]

    def cells(self, choice: str) -> list[Cell]:
        """Return the row of a choice."""
        accuracy = self.planned.accuracy_of(self.planned.promises[choice])
        return [
            error_cell("mean", self.mean(choice)),
            error_cell("any_data", accuracy.average),
            error_cell("all_95", accuracy.all_within_95),
            each_cell(self.mechanism(choice)),
        ]

    def sentence(self) -> str:
        """Return what to expect from the mechanism that draws."""
        return (
            f"With {self.spending.words} the ranks of the {self.question.what} are usually off by up to about"
            f" {error_text(self.mean(self.taken), 2)} of {self.people.total:,} people.{self.warning}"
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the plan."""
        levels = next((name for name, named in NAMED.items() if named == self.question.ascending), None)
        listed = [exact_text(level) for level in self.question.levels] if levels is None else levels
        return {"levels": listed, **self._range, **grouped(self.question)}


def _levels(listed: str) -> tuple[Fraction, ...]:
    """The levels: a name, or numbers with commas between them."""
    if listed in NAMED:
        return NAMED[listed]
    try:
        return Quantiles(levels=[level.strip() for level in listed.split(",")]).ascending
    except (InvalidType, InvalidValue):
        names = ", ".join(NAMED)
        raise InvalidValue(
            f"levels must be different numbers between 0 and 1 with commas between them, such as 0.1, 0.5, 0.9,"
            f" or one of {names}"
        ) from None
