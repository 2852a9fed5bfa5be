"""Questions about the scores that the page shows: one of the candidates, and the top k.

The errors of one candidate are exact. Those of the top k are exact where `analysis.top_k_error` has a formula, and
otherwise simulated.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpselect._numbers import DOWN, NEAREST, UP, exact_text
from dpselect._scores import as_vector
from dpselect._types import Integers, Vector
from dpselect.accounting.budget import AUTO, Price
from dpselect.analysis.error import expected_error
from dpselect.analysis.top_k import shortfalls
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
    probability_text,
)
from dpselect.explore.score_set import ScoreSet, scores_code, scores_file
from dpselect.explore.settings import Fields, Spending, optional_whole, positive, text, whole, written
from dpselect.mechanisms import MECHANISMS
from dpselect.questions.methods import METHODS, Method
from dpselect.questions.most import Mode, TopK
from dpselect.questions.question import Draw, Select
from dpselect.questions.top_k_error import TopKError, error_of, seeded, simulated_answers

_SOME_PERCENT = 0.2  # of the gap, which shows both the best candidate and its rivals
_EQUAL = "All candidates have the same score, so every choice is a best one, whatever the budget."


@dataclass(frozen=True, repr=False)
class OneCandidate(Asked):
    """One of the candidates, by their exact probabilities."""

    best: ClassVar[str]

    @property
    def has_rivals(self) -> bool:
        """Return whether an answer can be wrong."""
        return bool(self.data.losses.any())

    @property
    def _each(self) -> bool:
        return self.spending.questions > 1 or self.question.is_grouped

    def mean(self, choice: str) -> float:
        """Return the average error, exactly."""
        rate = self.mechanism(choice).rate
        found: float = self.data.remembered((choice, rate), lambda: self._mean(choice, rate))
        return found / self.question.unit

    def _mean(self, choice: str, rate: Fraction) -> float:
        return expected_error(self.data.known(choice, rate), self.data.scores)

    def outcomes(self, choice: str) -> Outcomes:
        """Return all candidates, with their exact probabilities."""
        known = self.data.known(choice, self.mechanism(choice).rate)
        return Outcomes(known.probabilities, known.probabilities, self.data.losses / self.question.unit)

    def drawn(self, draws: int) -> Drawn:
        """Return how often each candidate is the simulated answer."""
        found = self.mechanism(self.taken).simulate(self.data.scores, draws)
        counts = np.bincount(found, minlength=len(self.data.exact))
        best = int(self.data.losses.argmin())
        told = f"{counts[best]:,} of {draws:,} times on {self.data.labels[best]}, which is the best"
        return Drawn(counts.tolist(), draws, f"landed {told if draws > 1 else f'on {self.data.labels[found[0]]}'}.")

    @property
    def target(self) -> float:
        """Return a part of the gap between the best and the next."""
        errors = self.data.losses[self.data.losses > 0]
        return _SOME_PERCENT * float(errors.min(initial=np.inf)) if errors.size else 0.0

    @property
    def heads(self) -> list[str]:
        """Return the heads of the table."""
        return ["Best candidate", "Average error", "95 in 100 at most", "Any data, average", "\u03b5 of a draw"]

    def cells(self, choice: str) -> list[Cell]:
        """Return the row of a choice."""
        outcomes = self.outcomes(choice)
        best = outcomes.best
        return [
            Cell("best", "1" if not self.has_rivals else probability_text(best), best),
            error_cell("mean", self.mean(choice)),
            error_cell("error_95", outcomes.error_quantile(0.95)),
            error_cell("any_data", self.planned.accuracy_of(self.planned.promises[choice]).average),
            each_cell(self.mechanism(choice)),
        ]

    def sentence(self) -> str:
        """Return what to expect from the mechanism that draws."""
        if not self.has_rivals:
            return _EQUAL
        outcomes = self.outcomes(self.taken)
        who, lose = ("each answer is", "loses") if self._each else ("you get", "lose")
        return (
            f"With {self.spending.words} {who} {self.best} with probability {probability_text(outcomes.best)}"
            f" and {lose} {error_text(self.mean(self.taken), 2)} {self.unit} on average; 95 times in 100 at most"
            f" {written(outcomes.error_quantile(0.95), UP, 4)}."
        )

    def python(self) -> str:
        """Return a program that prints the errors, the probabilities and the plan."""
        return f"{scores_code(self.data, self.mechanism(self.taken))}\n# What holds for any data:\n{self.plan_code()}"


@dataclass(frozen=True, repr=False)
class MostCommon(OneCandidate):
    """The value that most people have."""

    name = "mode"
    title = "Most common value"
    best = "the most common value"
    note = "people"

    @classmethod
    def read(cls, fields: Fields, spending: Spending, scores: ScoreSet | None) -> Asked:
        """Return the question that a request states."""
        data = _shown(scores)
        question = Mode(candidates=len(data.exact), **of_table(fields))
        return cls(question, spending, choice_of(fields, MECHANISMS), data, "people")

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the plan."""
        return {"candidates": self.question.size, **grouped(self.question)}


@dataclass(frozen=True, repr=False)
class OwnScores(OneCandidate):
    """The best candidate by scores of one's own."""

    name = "select"
    title = "Your own scores"
    best = "the best candidate"

    @classmethod
    def read(cls, fields: Fields, spending: Spending, scores: ScoreSet | None) -> Asked:
        """Return the question that a request states."""
        data = _shown(scores)
        monotonic = fields.get("monotonic", False)
        question = Select(
            candidates=max(2, len(data.exact)),  # a plan has at least two
            sensitivity=positive(fields, "sensitivity", "1"),
            monotonic=monotonic,
        )
        unit = text(fields, "unit", data.unit)[:40] or "points"
        return cls(question, spending, choice_of(fields, MECHANISMS), data, unit)

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the plan."""
        claim = self.question.claim
        monotonic = {"monotonic": True} if claim.monotonic else {}
        return {"candidates": self.question.size, "sensitivity": exact_text(claim.sensitivity), **monotonic}

    def command(self) -> str:
        """Return commands that print the plan, the errors of all mechanisms, and one private selection."""
        drawn, claim = self.mechanism(self.taken), self.question.claim
        file, lines = scores_file(self.data)
        options = f"--epsilon {exact_text(drawn.epsilon)} --sensitivity {exact_text(claim.sensitivity)}"
        options += " --monotonic" * claim.monotonic
        compared = f"dpselect compare {file} {options}\ndpselect select {file} {options} --mechanism {self.taken}\n"
        return f"{lines}{compared}"


_RUNS, _RUNS_OF_MEANS = 400, 200


@dataclass(frozen=True, repr=False)
class TopCandidates(Asked):
    """The k values that most people have, by each method that can answer."""

    name = "top_k"
    title = "Top k"
    choice_title = "Method"
    chart_title = "How often each candidate is among the answers"
    note = "people"

    question: TopK

    @cached_property
    def method(self) -> Method:
        """Return the method that answers, as in the plan."""
        return self.question.settled(self._any_price, self.spending.budget).how

    @classmethod
    def read(cls, fields: Fields, spending: Spending, scores: ScoreSet | None) -> Asked:
        """Return the question that a request states."""
        data, chosen = _shown(scores), choice_of(fields, METHODS)
        if len(data.exact) < 2:
            raise InvalidValue("the top k needs at least two candidates")
        k = whole(fields, "k", 1, len(data.exact) - 1, "3")
        most, ordered = optional_whole(fields, "max_values", 1, MOST), fields.get("ordered", False)
        given = {"k": k, "max_values": most, "ordered": ordered, "method": chosen}
        question = TopK(candidates=len(data.exact), **given, **of_table(fields))
        return cls(question, spending, chosen, data, "people")

    @property
    def _mechanism_of_plan(self) -> str:
        return AUTO

    @cached_property
    def drawings(self) -> Mapping[str, Draw]:
        """Return what draws by each method that can answer, at its share of the budget."""
        found = self.settled.applicable(Price(**self.price), self.spending.budget)
        self.method.check_scores(self.counts)
        return {name: each for name, each in found.items() if _takes(each, self.counts)}

    @cached_property
    def counts(self) -> Vector:
        """Return the people of each candidate."""
        return as_vector(list(self.data.exact))

    @property
    def choices(self) -> Mapping[str, str]:
        """Return the methods that can answer."""
        return {name: name.replace("-", " ") for name in self.drawings}

    @property
    def taken(self) -> str:
        """Return the method that answers."""
        return self.method.name

    def error(self, choice: str) -> TopKError:
        """Return the average error, with an interval if it is simulated."""
        drawing = self.drawings[choice]
        return self.data.remembered(drawing, lambda: error_of(self.counts, drawing, _RUNS_OF_MEANS, seeded(1)))

    def mean(self, choice: str) -> float:
        """Return the average error: people short of the true top k, per candidate."""
        return self.error(choice).mean

    def outcomes(self, choice: str) -> Outcomes:
        """Return simulated answers."""
        return self.data.remembered(("outcomes", self.drawings[choice]), lambda: self._simulated(choice))

    def _simulated(self, choice: str) -> Outcomes:
        answers = simulated_answers(self.counts, self.drawings[choice], _RUNS, seeded(2))
        return Outcomes.simulated(self._often(answers) / _RUNS, shortfalls(-self.data.losses, answers))

    def _often(self, answers: Any) -> Integers:
        return np.bincount(answers.ravel(), minlength=len(self.data.exact))

    def drawn(self, draws: int) -> Drawn:
        """Return how often each candidate is among the simulated answers."""
        answers = simulated_answers(self.counts, self.drawings[self.taken], draws, seeded(None))
        right = int((shortfalls(-self.data.losses, answers) == 0).sum())
        told = f"found the whole top {self.question.k:,} {right:,} of {draws:,} times."
        if draws == 1:
            chosen = answers[0] if self.method.ordered else np.sort(answers[0])
            told = f"chose {', '.join(self.data.labels[place] for place in chosen)}."
        return Drawn(self._often(answers).tolist(), draws, told)

    @property
    def target(self) -> float:
        """Return a part of the gap between the last candidate of the top k and the next lower one."""
        below, k = np.sort(self.data.losses), self.method.k
        gaps = below[k:] - below[k - 1]
        return _SOME_PERCENT * float(gaps[gaps > 0][0]) / k if gaps.any() else 0.0

    @property
    def heads(self) -> list[str]:
        """Return the heads of the table."""
        return ["Whole top k", "Average error", "95 in 100 at most", "Any data, average", "Draws", "\u03b5 of a draw"]

    def cells(self, choice: str) -> list[Cell]:
        """Return the row of a choice."""
        outcomes, found, drawing = self.outcomes(choice), self.error(choice), self.drawings[choice]
        mean = error_text(found.mean)
        if not found.exact:
            mean = f"{error_text(found.mean, 2)} ({written(found.low, DOWN, 2)} to {error_text(found.high, 2)})"
        right = round(outcomes.best * outcomes.runs)
        return [
            Cell("best", f"{right} of {outcomes.runs}", outcomes.best),
            Cell("mean", mean, found.mean),
            error_cell("error_95", outcomes.error_quantile(0.95)),
            error_cell("any_data", self.planned.methods[choice].average),
            Cell("draws", f"{drawing.count:,}", drawing.count),
            Cell("each", written(float(drawing.part.epsilon), NEAREST, 3), float(drawing.part.epsilon)),
        ]

    def sentence(self) -> str:
        """Return what to expect from the method that answers."""
        if not self.data.losses.any():
            return _EQUAL
        found, outcomes, k = self.error(self.taken), self.outcomes(self.taken), self.question.k
        about = "" if found.exact else "about "
        return (
            f"With {self.spending.words} the method {self.choices[self.taken]} finds the whole top {k:,} in"
            f" {math.floor(outcomes.best * 100)} of 100 answers. On average, a chosen candidate has"
            f" {about}{error_text(found.mean, 2)} fewer people than one of the true top {k:,}."
        )

    @property
    def command_name(self) -> str:
        """Return the name of the command that plans it."""
        return "top"

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the plan."""
        asked = self.question
        given = {
            "candidates": asked.size,
            "k": asked.k,
            "method": None if self.chosen == AUTO else self.chosen,
            "max_values": asked.max_values,
            "ordered": asked.ordered or None,
        }
        return {**{name: value for name, value in given.items() if value is not None}, **grouped(asked)}


def _takes(draw: Draw, counts: Vector) -> bool:
    try:
        if draw.method is not None:
            draw.method.check_scores(counts)
    except (InvalidType, InvalidValue):
        return False
    return True


def _shown(scores: ScoreSet | None) -> ScoreSet:
    if scores is None:
        raise InvalidValue("there are no scores: choose a shape or a file")
    return scores
