"""A question on data that everyone may see, with what may be spent on it: what the page shows of it.

The question itself is a record of `dpselect.questions`, and `analysis.plan` says what it costs and what holds for any
data. `Asked` adds what happens on the shown data: the outcomes of each choice. The choices are mechanisms or, for the
top k, methods. Which of the classes here shows a question follows from the kind of its record (`VIEWS`), and its fields
are those of the record, so that no other file asks which question it is.

The errors of one candidate and of one quantile are exact. Those of the top k are exact where `analysis.top_k_error`
has a formula, and otherwise simulated. For several quantiles, the page shows the usual error of the plan, and some
simulated answers.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpselect import _validate
from dpselect._levels import NAMED
from dpselect._numbers import DOWN, NEAREST, UP, exact_text, shown
from dpselect._types import Floats, Integers, Vector
from dpselect.accounting import largest_belief
from dpselect.accounting.budget import AUTO, Budget, Price, approximate, pure, zcdp
from dpselect.analysis import error_quantile, error_tail
from dpselect.analysis.error import expected_error
from dpselect.analysis.top_k import shortfalls
from dpselect.errors import InvalidType, InvalidValue
from dpselect.explore.scores import MOST_CANDIDATES, Known, ScoreSet, people_on_grid, scores_code, scores_file
from dpselect.mechanisms import MECHANISMS, MechanismBase
from dpselect.questions.methods import METHODS, Draw, Method
from dpselect.questions.most import Mode, TopK
from dpselect.questions.plan import Plan, plan, share_of
from dpselect.questions.quantiles import Quantile, Quantiles, for_each_level
from dpselect.questions.question import Question, Select, plain
from dpselect.questions.rows import Places, quantile_score_runs
from dpselect.questions.splitting import split_quantiles
from dpselect.questions.top_k_error import TopKError, error_of, seeded, simulated_answers
from dpselect.score_files import ScoreFile
from dpselect.selection.draws import Draws

Fields = Mapping[str, Any]

EPSILON, RHO, DELTA = "\N{GREEK SMALL LETTER EPSILON}", "\N{GREEK SMALL LETTER RHO}", "\N{GREEK SMALL LETTER DELTA}"
_RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_MOST = 10**9
_MOST_QUESTIONS = 10_000
_PRIORS = ("0.01", "0.1", "0.5")
_ALMOST, _LITTLE = 0.9999, 0.001
_EACH = f"{EPSILON} of a draw"


def text(given: Fields, name: str, default: str | None = None) -> str:
    """A short string."""
    value = given.get(name, default)
    if not isinstance(value, str):
        raise InvalidType(f"{name} must be a text")
    if len(value) > 1000:
        raise InvalidValue(f"{name} must be at most 1,000 characters")
    return value.strip()


def _optional_whole(given: Fields, name: str) -> int | None:
    written = text(given, name, "")
    return _validate.count_in_text(1, _MOST, **{name: written}) if written else None


def written(number: float, rounding: str = UP, digits: int = 4) -> str:
    """A number for readers: as `shown`, with powers of ten as people write them.

    >>> written(1234.5), written(1e-6) == "10\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT SIX}"
    ('1,235', True)
    """
    factor, _, power = shown(number, rounding, digits).partition("e")
    if not power:
        return factor
    times = "" if factor == "1" else f"{factor} \N{MULTIPLICATION SIGN} "
    return f"{times}10{power.lstrip('+').translate(_RAISED)}"


def _error_text(error: float, digits: int = 4) -> str:
    """An error, rounded up; below a thousandth it does not matter how small."""
    return written(error, UP, digits) if error == 0 or error >= _LITTLE else f"less than {_LITTLE}"


def _probability_text(value: float) -> str:
    """A probability rounded down to two digits; near one, to as many as distinguish it from one.

    >>> _probability_text(0.8389), _probability_text(0.99996), _probability_text(0.000123)
    ('0.83', 'above 0.9999', 'below 0.001')
    """
    if value < _LITTLE:
        return f"below {_LITTLE}"
    if value > _ALMOST:
        return f"above {_ALMOST}"
    return written(value, DOWN, 2 if value < 0.99 else 4)


# What may be spent.


@dataclass(frozen=True)
class Currency:
    """A kind of budget: how the page names it, how it is made from an amount and a delta, and its smallest amount."""

    name: str
    title: str
    symbol: str
    word: str  # the symbol in messages
    budget: Callable[[Fraction, Fraction], Budget]
    option: str  # the budget as `--budget` takes it
    words: str
    low: Fraction
    has_delta: bool = True
    high: Fraction = Fraction(100)


_SMALL = Fraction(1, 10**6)
_OF_EPSILON = f"{EPSILON} = {{amount}}"
_PURE = Currency(
    "pure", f"pure {EPSILON}", EPSILON, "epsilon", lambda e, _: pure(e), "{amount}", _OF_EPSILON, _SMALL, False
)
_ZCDP = Currency(
    "zcdp", f"zCDP {RHO}", RHO, "rho", lambda r, _: zcdp(r), "zcdp:{amount}", f"{RHO} = {{amount}}", _SMALL**2
)
_APPROXIMATE = Currency(
    "approximate",
    f"({EPSILON}, {DELTA})",
    EPSILON,
    "epsilon",
    lambda e, d: approximate(e, d, share=0),
    "{amount},{delta},0",
    f"{_OF_EPSILON} and {DELTA} = {{delta}}",
    _SMALL,
)
CURRENCIES = {currency.name: currency for currency in (_PURE, _ZCDP, _APPROXIMATE)}


@dataclass(frozen=True)
class Spending:
    """What may be spent, and the number of questions that share it."""

    currency: Currency
    amount: Fraction
    delta: Fraction
    questions: int

    @cached_property
    def budget(self) -> Budget:
        return self.currency.budget(self.amount, self.delta)

    @property
    def option(self) -> str:
        """The budget as `--budget` takes it."""
        return self.currency.option.format(amount=exact_text(self.amount), delta=exact_text(self.delta))

    @property
    def total(self) -> str:
        """The budget in words, without the number of questions."""
        return self.currency.words.format(amount=exact_text(self.amount), delta=written(float(self.delta), UP, 3))

    @property
    def words(self) -> str:
        """The budget in words.

        >>> spending_of({"currency": "zcdp", "amount": "0.5", "questions": "3"}).words
        '\N{GREEK SMALL LETTER RHO} = 0.5 for 3 questions'
        """
        many = "" if self.questions == 1 else f" for {self.questions:,} questions"
        return f"{self.total}{many}"

    def beliefs(self) -> dict[str, Any]:
        """Return what the budget means for a person: beliefs before and after, in percent, rounded up.

        Near one hundred there are as many digits as distinguish a belief from it.
        """
        beliefs = [(prior, largest_belief(prior, self.budget, self.delta)) for prior in _PRIORS]
        doubt = f"The belief may be larger with probability {DELTA} = {written(float(self.delta), UP, 3)} at most. "
        return {
            "title": f"What {self.total} means for a person",
            "rows": [
                [f"{shown(100 * float(prior))} %", f"{shown(100 * after, UP, 3 if after < 0.99 else 5)} %"]
                for prior, after in beliefs
            ],
            "about": f"{doubt if self.currency.has_delta else ''}All answers that the budget pays for count together.",
        }


def spending_of(given: Fields) -> Spending:
    """The spending that a request states.

    >>> spending_of({"amount": "0.1"}).budget
    pure('0.1')
    """
    name = text(given, "currency", "pure")
    if name not in CURRENCIES:
        raise InvalidValue(f"currency must be one of {', '.join(CURRENCIES)}")
    currency = CURRENCIES[name]
    amount = _validate.moderate(**{currency.word: text({currency.word: given.get("amount", "1")}, currency.word)})
    if not currency.low <= amount <= currency.high:
        ends = f"{shown(float(currency.low))} and {shown(float(currency.high))}"
        raise InvalidValue(f"{currency.word} must be between {ends} here")
    delta = _validate.exact_positive(delta=text(given, "delta", "1e-6"))
    if delta > _validate.LARGE_DELTA:  # elsewhere this is a warning, which the page would not show
        raise InvalidValue(
            "delta must be at most 0.001: give much less than one over the number of people, such as 1e-6"
        )
    questions = _validate.count_in_text(1, _MOST_QUESTIONS, questions=text(given, "questions", "1"))
    return Spending(currency, amount, delta, questions)


# What the answers can be.


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
        """The probability of no error."""
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

    choice_title: ClassVar[str] = "Mechanism"
    chart_title: ClassVar[str] = "Probability of each candidate"
    chart_order: ClassVar[str] = "rank of the candidate, best score first"
    note: ClassVar[str] = "people"  # what `notes` are
    is_ranked: ClassVar[bool] = True  # whether the page may show the best candidates only
    has_scores: ClassVar[bool] = True  # whether it is about the scores that the reader loaded
    is_simulated_slowly: ClassVar[bool] = False
    most_draws: ClassVar[int] = 10_000

    question: Question
    spending: Spending
    chosen: str
    data: ScoreSet
    unit: str

    def at(self, amount: Fraction) -> "Asked":
        """Return the same question with another budget."""
        return replace(self, spending=replace(self.spending, amount=amount))

    @property
    def _mechanism(self) -> str:
        """The mechanism that the reader has chosen. Of questions with methods, the reader chooses the method."""
        return self.chosen if self.question.method_name is None else AUTO

    @cached_property
    def planned(self) -> Plan:
        """The plan: what is charged, and what holds for any data."""
        return plan(
            question=self.question,
            budget=self.spending.budget,
            questions=self.spending.questions,
            mechanism=self._mechanism,
        )

    @cached_property
    def settled(self) -> Question:
        """The question with the method that answers, as in the plan. The plan itself takes longer."""
        return self.question.settled(Price(1, mechanism=self._mechanism), self.spending.budget)

    @cached_property
    def draws(self) -> Mapping[str, Draw]:
        """What draws by each choice that can answer, at its share of the budget."""
        share = share_of(self.spending.budget, self.settled, self.spending.questions)
        return self._draws(share)

    def _draws(self, share: Mapping[str, Fraction]) -> Mapping[str, Draw]:
        return {name: self.settled.draw(Price(**share, mechanism=name)) for name in self.settled.mechanisms}

    def mechanism(self, choice: str) -> MechanismBase:
        """Return what draws, at its share of the budget."""
        drawn: MechanismBase = self.draws[choice].mechanism
        return drawn

    @property
    def choices(self) -> Mapping[str, str]:
        """The mechanisms or methods that can answer: their names and titles."""
        return {name: MECHANISMS[name].title for name in self.draws}

    @property
    def taken(self) -> str:
        """The choice of the reader, or the one that a table with this budget takes."""
        price = Price(1, mechanism=self._mechanism)
        return self.settled.method_name or self.settled.used(price, self.spending.budget)

    @abstractmethod
    def mean(self, choice: str) -> float:
        """Return the average error."""

    @property
    def compared(self) -> Iterable[str]:
        """The choices whose answers are shown."""
        return self.choices

    @abstractmethod
    def outcomes(self, choice: str) -> Outcomes:
        """Return what the answers can be."""

    @abstractmethod
    def drawn(self, draws: int) -> Drawn:
        """Return simulated answers of the taken choice. Never for release."""

    @property
    def draw_counts(self) -> list[int]:
        """The numbers of simulated answers that the page offers."""
        return [draws for draws in (1, 100, 10_000) if draws <= self.most_draws]

    @property
    @abstractmethod
    def target(self) -> float:
        """An average error at which there is something to see: a small part of what matters on these data."""

    @property
    def order(self) -> list[int]:
        """The candidates in the order in which the page shows them."""
        return list(map(int, np.argsort(self.data.losses, kind="stable")))

    @property
    def notes(self) -> list[str]:
        """What is known about each candidate: its score."""
        return [str(score) for score in self.data.exact]

    @abstractmethod
    def sentence(self) -> str:
        """Return what to expect from the taken choice, in plain words."""

    @abstractmethod
    def cells(self, choice: str) -> dict[str, Cell]:
        """Return the row of a choice in the table of choices, by the heads of its columns."""

    def _any_data(self, choice: str) -> Cell:
        return _error_cell("any_data", self.planned.accuracy_of(self.planned.promises[choice]).average)

    @property
    def words(self) -> list[str]:
        """What holds for any data, and what it costs, in the words of the plan."""
        told = self.planned.sentences, self.planned.about_methods, self.planned.advice
        return [" ".join(sentences) for sentences in told if sentences]

    @property
    def arguments(self) -> dict[str, Any]:
        """The question as arguments of `analysis.plan`, without those that have their default."""
        stated = [each for each in fields(self.question) if "of_table" not in each.metadata]
        values = {each.name: (getattr(self.question, each.name), each.default) for each in stated}
        return {name: plain(value) for name, (value, default) in values.items() if value != default}

    def python(self) -> str:
        """Return a program that prints the numbers of the page."""
        return f"from dpselect import analysis\n\n{self._plan_code()}"

    def _plan_code(self) -> str:
        given = {"question": self.question.name, **self.arguments, **self._paid}
        listed = "".join(f"    {name}={value!r},\n" for name, value in given.items())
        return f'planned = analysis.plan(\n{listed})\nprint("\\n".join(planned.sentences))\n'

    def command(self) -> str:
        """Return commands for a shell that print the numbers of the page."""
        given = {**self.arguments, **self._paid}
        words = [f"--{name.replace('_', '-')}{_option(value)}" for name, value in given.items()]
        return f"dpselect plan {self.command_name} {' '.join(words)}\n".replace("--k=", "-k ")

    @property
    def command_name(self) -> str:
        return self.question.name

    @property
    def _paid(self) -> dict[str, Any]:
        mechanism = {} if self._mechanism == AUTO else {"mechanism": self._mechanism}
        return {"budget": self.spending.option, "questions": self.spending.questions, **mechanism}


def _option(value: Any) -> str:
    if value is True:
        return ""
    return f"={','.join(value) if isinstance(value, list) else value}"


def _error_cell(name: str, error: float | None) -> Cell:
    """An error, rounded up."""
    return Cell(name, "\N{EN DASH}" if error is None else _error_text(error), error)


def _each_cell(epsilon: Fraction) -> Cell:
    """The epsilon of a draw, to compare."""
    return Cell("each", written(float(epsilon), NEAREST, 3), float(epsilon))


_SOME_PERCENT = 0.2  # of the gap, which shows both the best candidate and its rivals
_EQUAL = "All candidates have the same score, so every choice is a best one, whatever the budget."


@dataclass(frozen=True, repr=False)
class OneCandidate(Asked):
    """One of the candidates, by their exact probabilities."""

    best: ClassVar[str] = "the most common value"
    best_head: ClassVar[str] = "Best candidate"

    @classmethod
    def read(cls, kind: Any, given: Fields, spending: Spending, scores: ScoreSet | None) -> Asked:
        """Return the question that a request states."""
        data = _shown(scores)
        question = kind(candidates=len(data.exact), **stated(kind, given))
        return cls(question, spending, choice_of(given, MECHANISMS), data, "people")

    @property
    def has_rivals(self) -> bool:
        """Whether an answer can be wrong."""
        return bool(self.data.losses.any())

    def mean(self, choice: str) -> float:
        rate = self.mechanism(choice).rate
        found = self.data.results.get(
            (choice, rate), lambda: expected_error(self.data.known(choice, rate), self.data.scores)
        )
        return found / self.question.unit

    def outcomes(self, choice: str) -> Outcomes:
        """Return all candidates, with their exact probabilities."""
        known = self.data.known(choice, self.mechanism(choice).rate)
        return Outcomes(known.probabilities, known.probabilities, self.data.losses / self.question.unit)

    def drawn(self, draws: int) -> Drawn:
        found = self.mechanism(self.taken).simulate(self.data.scores, draws)
        counts = np.bincount(found, minlength=len(self.data.exact))
        best = int(self.data.losses.argmin())
        told = f"{counts[best]:,} of {draws:,} times on {self.data.labels[best]}, which is the best"
        return Drawn(counts.tolist(), draws, f"landed {told if draws > 1 else f'on {self.data.labels[found[0]]}'}.")

    @property
    def target(self) -> float:
        """A part of the gap between the best and the next."""
        errors = self.data.losses[self.data.losses > 0]
        return _SOME_PERCENT * float(errors.min()) if errors.size else 0.0

    def cells(self, choice: str) -> dict[str, Cell]:
        outcomes = self.outcomes(choice)
        best = outcomes.best
        return {
            self.best_head: Cell("best", "1" if not self.has_rivals else _probability_text(best), best),
            "Average error": _error_cell("mean", self.mean(choice)),
            "95 in 100 at most": _error_cell("error_95", outcomes.error_quantile(0.95)),
            "Any data, average": self._any_data(choice),
            _EACH: _each_cell(self.mechanism(choice).epsilon),
        }

    def sentence(self) -> str:
        if not self.has_rivals:
            return _EQUAL
        outcomes = self.outcomes(self.taken)
        is_one = self.spending.questions == 1 and not self.question.is_grouped
        who, lose = ("you get", "lose") if is_one else ("each answer is", "loses")
        return (
            f"With {self.spending.words} {who} {self.best} with probability {_probability_text(outcomes.best)}"
            f" and {lose} {_error_text(self.mean(self.taken), 2)} {self.unit} on average; 95 times in 100 at most"
            f" {written(outcomes.error_quantile(0.95), UP, 4)}."
        )

    def python(self) -> str:
        """Return a program that prints the errors, the probabilities and the plan."""
        return f"{scores_code(self.data, self.mechanism(self.taken))}\n# What holds for any data:\n{self._plan_code()}"


@dataclass(frozen=True, repr=False)
class OwnScores(OneCandidate):
    """The best candidate by scores of one's own."""

    best = "the best candidate"
    note = "score"
    question: Select

    @classmethod
    def read(cls, kind: Any, given: Fields, spending: Spending, scores: ScoreSet | None) -> Asked:
        data = _shown(scores)
        # A plan has at least two candidates.
        question = kind(candidates=max(2, len(data.exact)), **stated(kind, given))
        unit = text(given, "unit", data.unit)[:40] or "points"
        return cls(question, spending, choice_of(given, MECHANISMS), data, unit)

    def command(self) -> str:
        """Return commands that print the errors of all mechanisms, and one private selection."""
        drawn, claim = self.mechanism(self.taken), self.question.claim
        file, lines = scores_file(self.data)
        options = f"--epsilon {exact_text(drawn.epsilon)} --sensitivity {exact_text(claim.sensitivity)}"
        options += " --monotonic" * claim.monotonic
        return f"{lines}dpselect compare {file} {options}\ndpselect select {file} {options} --mechanism {self.taken}\n"


_RUNS, _RUNS_OF_MEANS = 400, 200


@dataclass(frozen=True, repr=False)
class TopCandidates(Asked):
    """The k values that most people have, by each method that can answer."""

    choice_title = "Method"
    chart_title = "How often each candidate is among the answers"
    question: TopK

    @classmethod
    def read(cls, kind: Any, given: Fields, spending: Spending, scores: ScoreSet | None) -> Asked:
        """Return the question that a request states."""
        data, chosen = _shown(scores), choice_of(given, METHODS)
        if len(data.exact) < 2:
            raise InvalidValue("the top k needs at least two candidates")
        k = _validate.count_in_text(1, len(data.exact) - 1, k=text(given, "k", "3"))
        question = kind(candidates=len(data.exact), method=chosen, **{**stated(kind, given), "k": k})
        return cls(question, spending, chosen, data, "people")

    @cached_property
    def method(self) -> Method:
        """The method that answers."""
        return self.question.settled(Price(1), self.spending.budget).how

    def _draws(self, share: Mapping[str, Any]) -> Mapping[str, Draw]:
        found = self.settled.applicable(Price(**share), self.spending.budget)
        self.method.check_scores(self.counts)
        return {name: each for name, each in found.items() if _takes(each, self.counts)}

    @property
    def counts(self) -> Vector:
        """The people of each candidate."""
        return self.data.vector

    @property
    def choices(self) -> Mapping[str, str]:
        return {name: name.replace("-", " ") for name in self.draws}

    def error(self, choice: str) -> TopKError:
        """Return the average error, with an interval if it is simulated."""
        drawing = self.draws[choice]
        return self.data.results.get(drawing, lambda: error_of(self.counts, drawing, _RUNS_OF_MEANS, seeded(1)))

    def mean(self, choice: str) -> float:
        """Return the average error: people short of the true top k, per candidate."""
        return self.error(choice).mean

    def outcomes(self, choice: str) -> Outcomes:
        """Return simulated answers."""
        return self.data.results.get(("outcomes", self.draws[choice]), lambda: self._simulated(choice))

    def _simulated(self, choice: str) -> Outcomes:
        answers = simulated_answers(self.counts, self.draws[choice], _RUNS, seeded(2))
        return Outcomes.simulated(self._often(answers) / _RUNS, shortfalls(-self.data.losses, answers))

    def _often(self, answers: Any) -> Integers:
        return np.bincount(answers.ravel(), minlength=len(self.data.exact))

    def drawn(self, draws: int) -> Drawn:
        answers = simulated_answers(self.counts, self.draws[self.taken], draws, seeded(None))
        right = int((shortfalls(-self.data.losses, answers) == 0).sum())
        told = f"found the whole top {self.question.k:,} {right:,} of {draws:,} times."
        if draws == 1:
            chosen = answers[0] if self.method.ordered else np.sort(answers[0])
            told = f"chose {', '.join(self.data.labels[place] for place in chosen)}."
        return Drawn(self._often(answers).tolist(), draws, told)

    @property
    def target(self) -> float:
        """A part of the gap between the last candidate of the top k and the next lower one."""
        below, k = np.sort(self.data.losses), self.method.k
        gaps = below[k:] - below[k - 1]
        return _SOME_PERCENT * float(gaps[gaps > 0][0]) / k if gaps.any() else 0.0

    def cells(self, choice: str) -> dict[str, Cell]:
        outcomes, found, drawing = self.outcomes(choice), self.error(choice), self.draws[choice]
        mean = _error_text(found.mean)
        if not found.exact:
            mean = f"{_error_text(found.mean, 2)} ({written(found.low, DOWN, 2)} to {_error_text(found.high, 2)})"
        right = round(outcomes.best * outcomes.runs)
        return {
            "Whole top k": Cell("best", f"{right} of {outcomes.runs}", outcomes.best),
            "Average error": Cell("mean", mean, found.mean),
            "95 in 100 at most": _error_cell("error_95", outcomes.error_quantile(0.95)),
            "Any data, average": _error_cell("any_data", self.planned.methods[choice].average),
            "Draws": Cell("draws", f"{drawing.count:,}", drawing.count),
            _EACH: _each_cell(drawing.part.epsilon),
        }

    def sentence(self) -> str:
        if not self.data.losses.any():
            return _EQUAL
        found, outcomes, k = self.error(self.taken), self.outcomes(self.taken), self.question.k
        about = "" if found.exact else "about "
        return (
            f"With {self.spending.words} the method {self.choices[self.taken]} finds the whole top {k:,} in"
            f" {math.floor(outcomes.best * 100)} of 100 answers. On average, a chosen candidate has"
            f" {about}{_error_text(found.mean, 2)} fewer people than one of the true top {k:,}."
        )

    @property
    def command_name(self) -> str:
        return "top"


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


# Quantiles of made-up people on a public range.

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
        """The number of people at each value."""
        middle, spread = float((self.middle - self.lower) / self.step), float(self.spread / self.step)
        return people_on_grid(self.size, self.total, middle, spread)

    @cached_property
    def places(self) -> Places:
        """The people as the engines of tables count them."""
        taken = np.flatnonzero(self.counts)
        return Places(taken.astype(np.uint64), np.zeros(taken.size, np.bool_), self.counts[taken])

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
    values = [exact_text(people.lower + place * people.step) for place in range(people.size)]
    return ScoreSet("made-up people", ScoreFile(scores.tolist(), values), "people")


@dataclass(frozen=True, repr=False)
class OfPeople(Asked):
    """What one and several quantiles share: made-up people, and values from low to high."""

    chart_title = "Probability of each value"
    chart_order = "value"
    is_ranked = False
    has_scores = False

    people: People

    @classmethod
    def read(cls, kind: Any, given: Fields, spending: Spending, scores: ScoreSet | None) -> Asked:
        """Return the question that a request states: about one level, or about several."""
        del kind, scores
        asked = stated(Quantiles, {"levels": "0.5", "lower": "0", "upper": "100", "step": "1", **given})
        levels = asked.pop("levels")
        several = len(levels) > 1
        question: Any = Quantiles(levels=levels, **asked) if several else Quantile(level=levels[0], **asked)
        if not 2 <= question.size <= MOST_CANDIDATES:
            raise InvalidValue(
                f"lower, upper and step must make 2 to {MOST_CANDIDATES:,} values here: give another step"
            )
        lower, upper, step = question.lower, question.upper, question.step
        spread = _validate.moderate(spread=text(given, "spread", "") or exact_text((upper - lower) / 8))
        middle = _validate.exact(middle=text(given, "middle", "") or exact_text((lower + upper) / 2))
        if not -_MOST <= (middle - lower) / step <= _MOST or not Fraction(1, _MOST) <= spread / step <= _MOST:
            raise InvalidValue("middle and spread must be of the size of the range: give numbers near it")
        most = _MOST_SPLIT if several else _MOST_PEOPLE
        total = _validate.count_in_text(1, most, people=text(given, "people", "2000"))
        people = People(lower, step, question.size, total, middle, spread)
        data = _scored(people, None if several else levels[0])
        made: type[OfPeople] = SeveralLevels if several else OneLevel
        return made(question, spending, choice_of(given, MECHANISMS), data, "people", people)

    @property
    def order(self) -> list[int]:
        """The values between those that are hardly ever an answer."""
        chances = np.max([self.outcomes(choice).chances for choice in self.compared], axis=0)
        seen = np.flatnonzero(chances >= chances.max() / 200)
        return list(range(max(0, int(seen[0]) - 1), min(self.people.size, int(seen[-1]) + 2)))

    @property
    def notes(self) -> list[str]:
        """The number of people at each value."""
        return [str(count) for count in self.people.counts.tolist()]

    @property
    def warning(self) -> str:
        """That there are too few people, if that is so."""
        needed = self.planned.people_needed or 0
        if self.people.total >= needed:
            return ""
        return f" It needs about {needed:,} people: with {self.people.total:,}, the answer may say nothing about them."

    @property
    def target(self) -> float:
        """A part of all people."""
        return _SOME_PEOPLE * self.people.total


@dataclass(frozen=True, repr=False)
class OneLevel(OfPeople, OneCandidate):
    """One quantile, by the exact probabilities of all values."""

    question: Quantile
    best_head = "Best value"

    def value_error(self, choice: str) -> float:
        """Return how far the answer is from the nearest best value, on average, in units of the column."""
        places = np.arange(self.people.size)
        best = np.flatnonzero(self.data.losses == 0)
        distance = np.maximum(np.maximum(best[0] - places, places - best[-1]), 0)
        return float(self.outcomes(choice).chances @ distance) * float(self.people.step)

    def sentence(self) -> str:
        outcomes, level = self.outcomes(self.taken), self.question.what
        return (
            f"With {self.spending.words} the rank of the answer is on average {_error_text(self.mean(self.taken), 2)}"
            f" of {self.people.total:,} people away from the {level}; 95 times in 100 at most"
            f" {written(outcomes.error_quantile(0.95), UP, 4)}. The value is off by"
            f" {_error_text(self.value_error(self.taken), 2)} on average.{self.warning}"
        )

    def python(self) -> str:
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
        """The taken choice: simulated answers of others would take too long."""
        return [self.taken]

    def outcomes(self, choice: str) -> Outcomes:
        """Return simulated answers."""
        key = (choice, self.mechanism(choice).rate, self.question)
        return self.data.results.get(key, lambda: self._simulated(choice))

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
        answers = self._answers(self.taken, draws, _LONG_PATIENCE)
        values = ", ".join(self.data.labels[place] for place in answers[0])
        told = f"gave {values}." if draws == 1 else f"gave {answers.size:,} values."
        return Drawn(self._often(answers).tolist(), answers.size, told)

    def cells(self, choice: str) -> dict[str, Cell]:
        accuracy = self.planned.accuracy_of(self.planned.promises[choice])
        return {
            "Usual error, worst level": _error_cell("mean", self.mean(choice)),
            "Any data, average": _error_cell("any_data", accuracy.average),
            "Any data, all in 95 of 100": _error_cell("all_95", accuracy.all_within_95),
            _EACH: _each_cell(self.mechanism(choice).epsilon),
        }

    def sentence(self) -> str:
        return (
            f"With {self.spending.words} the ranks of the {self.question.what} are usually off by up to about"
            f" {_error_text(self.mean(self.taken), 2)} of {self.people.total:,} people.{self.warning}"
        )

    @property
    def arguments(self) -> dict[str, Any]:
        name = next((name for name, levels in NAMED.items() if levels == self.question.ascending), None)
        return {**super().arguments, **({} if name is None else {"levels": name})}


# The fields of a request.


def _boolean(given: Fields, name: str) -> Any:
    return given.get(name, False)


def _levels(given: Fields, name: str) -> tuple[Fraction, ...]:
    """The levels: a name, or numbers with commas between them."""
    listed = text(given, name)
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


_READERS: dict[str, Callable[[Fields, str], Any]] = {
    "groups": _optional_whole,
    "max_groups": _optional_whole,
    "max_values": _optional_whole,
    "neighbours": lambda given, name: text(given, name, "") or None,
    "ordered": _boolean,
    "monotonic": _boolean,
    "sensitivity": lambda given, name: _validate.moderate(**{name: text(given, name, "1")}),
    "levels": _levels,
    "lower": lambda given, name: _validate.exact(**{name: text(given, name)}),
    "upper": lambda given, name: _validate.exact(**{name: text(given, name)}),
    "step": lambda given, name: _validate.moderate(**{name: text(given, name)}),
}


def stated(kind: Any, given: Fields) -> dict[str, Any]:
    """The fields of a record that a request states."""
    read = {each.name: _READERS[each.name](given, each.name) for each in fields(kind) if each.name in _READERS}
    return {name: value for name, value in read.items() if value is not None}


def choice_of(given: Fields, known: Mapping[str, Any]) -> str:
    """The choice that a request names."""
    chosen = text(given, "choice", AUTO)
    if chosen not in (AUTO, *known):
        raise InvalidValue(f"choice must be one of {', '.join([AUTO, *known])}")
    return chosen


class Shown(NamedTuple):
    """A question that the page offers."""

    name: str
    title: str
    kind: type[Question]
    view: Any


QUESTIONS = {
    one.name: one
    for one in (
        Shown("mode", "Most common value", Mode, OneCandidate),
        Shown("top_k", "Top k", TopK, TopCandidates),
        Shown("quantiles", "Median and quantiles", Quantiles, OfPeople),
        Shown("select", "Your own scores", Select, OwnScores),
    )
}


def question_of(given: Fields) -> Shown:
    """The question that a request names."""
    name = text(given, "question", Mode.name)
    if name not in QUESTIONS:
        raise InvalidValue(f"question must be one of {', '.join(QUESTIONS)}")
    return QUESTIONS[name]


def asked_of(given: Fields, scores: ScoreSet | None = None) -> Asked:
    """The question that a request states, on these scores if it is about scores."""
    one = question_of(given)
    asked: Asked = one.view.read(one.kind, given, spending_of(given), scores)
    return asked
