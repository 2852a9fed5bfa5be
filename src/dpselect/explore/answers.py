"""A question on data that everyone may see, with what may be spent on it: what the page shows of it.

The questions of the page are those that users can ask by name (`questions.options`), and so are their fields. The
record that they make says what draws, and `analysis.plan` what it costs and what holds for any data. `Asked` adds what
happens on the shown data: the outcomes of each choice. The choices are mechanisms or, for the top k, methods.

Any question can be shown: the shown data count as an engine counts, so the question itself answers, again and again.
Some records have a view of their own (`VIEWS`). The errors of one candidate and of one quantile are exact. Those of the
top k are exact where `analysis.top_k_error` has a formula. For several quantiles, the page shows the usual error.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from dpselect import _validate
from dpselect._levels import levels_name
from dpselect._numbers import DOWN, NEAREST, UP, exact_text, shown
from dpselect._types import Floats, Integers
from dpselect.accounting import largest_belief
from dpselect.accounting.budget import AUTO, Budget, Price, as_budget
from dpselect.analysis import error_quantile, error_tail
from dpselect.analysis.measures import expected_error
from dpselect.analysis.top_k import shortfalls
from dpselect.errors import InvalidType, InvalidValue
from dpselect.explore.scores import MOST_CANDIDATES, SOME, Known, People, ScoreSet, made_up, scores_code, scores_file
from dpselect.mechanisms import MECHANISMS, MechanismBase
from dpselect.questions.methods import Draw
from dpselect.questions.most import Mode, TopK
from dpselect.questions.options import QUESTIONS, Field, Named, Option, named, whole
from dpselect.questions.plan import Plan, plan, share_of
from dpselect.questions.quantiles import Quantile, Quantiles
from dpselect.questions.question import OfTable, Question, Select, plain, question_of
from dpselect.questions.rows import Individuals
from dpselect.top_k import TopKError, error_of, seeded, simulated_answers

Fields = Mapping[str, Any]
_Known = TypeVar("_Known")

EPSILON, RHO, DELTA = "\N{GREEK SMALL LETTER EPSILON}", "\N{GREEK SMALL LETTER RHO}", "\N{GREEK SMALL LETTER DELTA}"
_RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_MOST_QUESTIONS = 10_000
_PRIORS = ("0.01", "0.1", "0.5")
_ALMOST, _LITTLE = 0.9999, 0.001


def text(given: Fields, name: str, default: str | None = None) -> str:
    """A short string."""
    value = given.get(name, default)
    if not isinstance(value, str):
        raise InvalidType(f"{name} must be a text")
    if len(value) > 1000:
        raise InvalidValue(f"{name} must be at most 1,000 characters")
    return value.strip()


def _one_of(known: Mapping[str, _Known], given: Fields, name: str, default: str) -> _Known:
    chosen = text(given, name, default)
    if chosen not in known:
        raise InvalidValue(f"{name} must be one of {', '.join(known)}")
    return known[chosen]


def written(number: float, rounding: str = UP, digits: int = 4) -> str:
    """A number for readers: as `shown`, with powers of ten as people write them."""
    factor, _, power = shown(number, rounding, digits).partition("e")
    if not power:
        return factor
    times = "" if factor == "1" else f"{factor} \N{MULTIPLICATION SIGN} "
    return f"{times}10{power.lstrip('+').translate(_RAISED)}"


def _error_text(error: float, digits: int = 4) -> str:
    # Rounded up; below a thousandth it does not matter how small.
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
    """A kind of budget: how the page and `--budget` name it, and its smallest and largest amount."""

    name: str
    title: str
    symbol: str
    word: str  # the symbol in messages
    option: str  # the budget as `--budget` takes it
    words: str
    low: Fraction
    has_delta: bool = True
    high: Fraction = Fraction(100)


_SMALL = Fraction(1, 10**6)
_OF_EPSILON = f"{EPSILON} = {{amount}}"
_PURE = Currency("pure", f"pure {EPSILON}", EPSILON, "epsilon", "{amount}", _OF_EPSILON, _SMALL, has_delta=False)
_ZCDP = Currency("zcdp", f"zCDP {RHO}", RHO, "rho", "zcdp:{amount}", f"{RHO} = {{amount}}", _SMALL**2)
_APPROXIMATE = Currency(
    "approximate",
    f"({EPSILON}, {DELTA})",
    EPSILON,
    "epsilon",
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
        return as_budget(self.option)

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
        """The budget in words."""
        many = "" if self.questions == 1 else f" for {self.questions:,} questions"
        return f"{self.total}{many}"

    def beliefs(self) -> dict[str, Any]:
        """Return what the budget means for a person: beliefs before and after, in percent, rounded up."""
        # Near one hundred there are as many digits as distinguish a belief from it.
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
    """The spending that a request states."""
    currency = _one_of(CURRENCIES, given, "currency", "pure")
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


def _error_cell(name: str, error: float | None) -> Cell:
    return Cell(name, "\N{EN DASH}" if error is None else _error_text(error), error)


@dataclass(frozen=True, repr=False)
class Outcomes:
    """What the answers of one choice can be: exactly, or by simulation.

    Attributes:
        chances: the probability of each candidate to be an answer, or among the answers.
        weights: the probability of each outcome; all zero if errors are not known.
        errors: the error of each outcome, in people or units of the scores. One of them is zero.
    """

    chances: Floats
    weights: Floats
    errors: Floats
    runs: int = 0

    @property
    def best(self) -> float:
        """The probability of no error."""
        return min(1.0, float(self.weights[self.errors == 0].sum()))

    def error_quantile(self, level: float) -> float:
        """Return the error that is not exceeded with this probability."""
        return error_quantile(Known(self.weights), -self.errors, level) if self.weights.any() else 0.0

    def tail(self, thresholds: Floats) -> Floats:
        """Return how often the error is at least each threshold."""
        tail: Floats = error_tail(Known(self.weights), -self.errors, thresholds)
        return tail


_RUNS, _LONG_PATIENCE, _PATIENCE = 20, 3.0, 0.3  # seconds: an answer takes milliseconds, but with tiny budgets a second
_EVERYBODY = Individuals(None)
_EACH = f"{EPSILON} of a draw"


@dataclass(frozen=True, repr=False)
class Asked:
    """A question, what may be spent on it, and the data that are shown."""

    note: ClassVar[str] = "people"  # what is shown of each candidate
    chance: ClassVar[str] = "How often each {noun} is among the answers"
    is_slow: ClassVar[bool] = True  # whether a simulated answer takes long
    runs: ClassVar[int] = _RUNS
    most_draws: ClassVar[int] = 100

    question: Any
    spending: Spending
    chosen: str
    data: Any
    unit: str

    def at(self, amount: Fraction) -> "Asked":
        """Return the same question with another budget."""
        return replace(self, spending=replace(self.spending, amount=amount))

    @property
    def _mechanism(self) -> str:
        # Of questions with methods, the reader chooses the method.
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
    def settled(self) -> Any:
        """The question with the method that answers, as in the plan. The plan itself takes longer."""
        return self.question.settled(Price(1, mechanism=self._mechanism), self.spending.budget)

    @cached_property
    def draws(self) -> Mapping[str, Draw]:
        """What draws by each choice that can answer, at its share of the budget."""
        share: dict[str, Any] = share_of(self.spending.budget, self.settled, self.spending.questions)
        if self.settled.method_name is not None:
            return self._by_method(self.settled.applicable(Price(**share), self.spending.budget))
        return {name: self.settled.draw(Price(**share, mechanism=name)) for name in self.settled.mechanisms}

    def _by_method(self, found: Mapping[str, Draw]) -> Mapping[str, Draw]:
        return found

    def mechanism(self, choice: str) -> MechanismBase:
        """Return what draws, at its share of the budget."""
        drawn: MechanismBase = self.draws[choice].mechanism
        return drawn

    @property
    def choices(self) -> Mapping[str, str]:
        """The mechanisms or methods that can answer: their names and titles."""
        return {name: MECHANISMS[name].title if name in MECHANISMS else name.replace("-", " ") for name in self.draws}

    @property
    def choice_title(self) -> str:
        """What the reader chooses."""
        return "Mechanism" if self.question.method_name is None else "Method"

    @property
    def taken(self) -> str:
        """The choice of the reader, or the one that a table with this budget takes."""
        price = Price(1, mechanism=self._mechanism)
        return str(self.settled.method_name or self.settled.used(price, self.spending.budget))

    @property
    def compared(self) -> list[str]:
        """The choices whose answers are shown."""
        return [self.taken] if self.is_slow else list(self.choices)

    def mean(self, choice: str) -> float:
        """Return the average error: the usual one, or a bound for any data."""
        drawn = self.mechanism(choice)
        usual = self.question.usual_error(drawn)
        return float(usual if usual is not None else self.settled.promise(drawn).average / self.question.unit)

    def outcomes(self, choice: str) -> Outcomes:
        """Return what the answers can be."""
        key = "outcomes", self.question, self.draws[choice]
        found: Outcomes = self.data.results.get(key, lambda: self._simulated(choice))
        return found

    def _simulated(self, choice: str) -> Outcomes:
        answers = self.answers(choice, self.runs, _PATIENCE, 2)
        errors = self.errors(answers)
        weights = np.full(errors.size + 1, 1 / max(errors.size, 1))
        weights[0] = 0.0  # no error, which may not occur
        return Outcomes(self._often(answers) / len(answers), weights, np.concatenate([[0.0], errors]), len(answers))

    def _often(self, answers: Integers) -> Integers:
        return np.bincount(answers.ravel(), minlength=self.data.size)

    def answers(self, choice: str, runs: int, patience: float, seed: int | None = None) -> Integers:  # noqa: ARG002 - for simulations in floats
        """Return simulated answers as rows of positions: `runs` of them, fewer if `patience` runs out."""
        counted = {each.name: self.data for each in fields(self.settled) if each.name in ("among", "grid")}
        asked, draw, deadline = replace(self.settled, **counted), self.draws[choice], time.monotonic() + patience
        found: list[Any] = []
        while not found or (len(found) < runs and time.monotonic() < deadline):
            found.append(np.atleast_1d(asked.answer(self.data, _EVERYBODY, draw)))
        return np.array(found, np.int64)

    def errors(self, answers: Integers) -> Floats:  # noqa: ARG002 - not known in general
        """Return the errors of answers; nothing if they are not known."""
        return np.empty(0)

    def drawn(self, draws: int) -> dict[str, Any]:
        """Return simulated answers of the taken choice: each candidate's count, and words. Never for release."""
        answers = self.answers(self.taken, draws, _LONG_PATIENCE)
        return {"counts": self._often(answers).tolist(), "total": len(answers), "told": self.told(answers)}

    def told(self, answers: Integers) -> str:
        """Return in words what simulated answers are."""
        return f"gave {len(answers):,} answers." if len(answers) > 1 else f"gave {self._labels(answers[0])}."

    def _labels(self, positions: Integers) -> str:
        return ", ".join(self.data.labels[position] for position in positions)

    @property
    def draw_counts(self) -> list[int]:
        """The numbers of simulated answers that the page offers."""
        return [draws for draws in (1, 100, 10_000) if draws <= self.most_draws]

    @property
    def target(self) -> float:
        """An average error at which there is something to see: a small part of what matters on these data."""
        return float(self.data.target)

    @property
    def order(self) -> list[int]:
        """The candidates in the order in which the page shows them."""
        found: list[int] = self.data.order(lambda: [self.outcomes(choice).chances for choice in self.compared])
        return found

    def cells(self, choice: str) -> dict[str, Cell]:
        """Return the row of a choice in the table of choices, by the heads of its columns."""
        return {"Any data, average": self._any_data(choice), _EACH: self._each(choice)}

    def _any_data(self, choice: str) -> Cell:
        planned = self.planned
        known = planned.methods.get(choice) or planned.accuracy_of(planned.promises[choice])
        return _error_cell("any_data", known.average)

    def _each(self, choice: str) -> Cell:
        epsilon = float(self.draws[choice].part.epsilon)
        return Cell("each", written(epsilon, NEAREST, 3), epsilon)

    def sentence(self) -> str:
        """Return what to expect from the taken choice, in plain words."""
        return (
            f"With {self.spending.words} the error is at most {self._mean_text} {self.unit} on average, for any data."
        )

    @property
    def _mean_text(self) -> str:
        return _error_text(self.mean(self.taken), 2)

    @property
    def words(self) -> list[str]:
        """What holds for any data, and what it costs, in the words of the plan."""
        told = self.planned.sentences, self.planned.about_methods, self.planned.advice
        return [" ".join(sentences) for sentences in told if sentences]

    @property
    def arguments(self) -> dict[str, Any]:
        """The question as arguments of `analysis.plan`, without those that have their default."""
        values = {name: (getattr(self.question, name), own) for name, own in self.question.stated_fields().items()}
        return {name: plain(value) for name, (value, own) in values.items() if value != own.default}

    @property
    def _paid(self) -> dict[str, Any]:
        mechanism = {} if self._mechanism == AUTO else {"mechanism": self._mechanism}
        return {"budget": self.spending.option, "questions": self.spending.questions, **mechanism}

    def python(self) -> str:
        """Return a program that prints the numbers of the page."""
        given = {"question": self.question.name, **self.arguments, **self._paid}
        listed = "".join(f"    {name}={value!r},\n" for name, value in given.items())
        planned = f'planned = analysis.plan(\n{listed})\nprint("\\n".join(planned.sentences))\n'
        return f"from dpselect import analysis\n\n{planned}"

    def command(self) -> str:
        """Return commands for a shell that print the numbers of the page."""
        one = named(self.question.name)
        flags = {each.name: each.flags[0] for each in reversed(one.planning)}
        words = [one.name]
        for name, value in {**self.arguments, **self._paid}.items():
            told = ",".join(value) if isinstance(value, list) else str(value)
            flag = flags.get(name, f"--{name}")
            words.append(flag if value is True else f"{flag}{'=' if flag.startswith('--') else ' '}{told}")
        return f"dpselect plan {' '.join(words)}\n"


# What some questions show.

_EQUAL = "All candidates have the same score, so every choice is a best one, whatever the budget."


@dataclass(frozen=True, repr=False)
class OneCandidate(Asked):
    """One of the candidates, by their exact probabilities."""

    chance = "Probability of each {noun}"
    is_slow = False
    most_draws = 10_000
    best: ClassVar[str] = "the most common value"

    @cached_property
    def scored(self) -> ScoreSet:
        """The candidates with the scores that are drawn from."""
        return self.data.scored(self.question)  # type: ignore[no-any-return]

    def mean(self, choice: str) -> float:
        rate, data = self.mechanism(choice).rate, self.scored
        found = data.results.get((choice, rate), lambda: expected_error(data.known(choice, rate), data.scores))
        return found / float(self.question.unit)

    def outcomes(self, choice: str) -> Outcomes:
        known = self.scored.known(choice, self.mechanism(choice).rate)
        return Outcomes(known.probabilities, known.probabilities, self.scored.losses / self.question.unit)

    def answers(self, choice: str, runs: int, patience: float, seed: int | None = None) -> Integers:  # noqa: ARG002 - this is fast
        found: Integers = self.mechanism(choice).simulate(self.scored.scores, runs)
        return found[:, None]

    def told(self, answers: Integers) -> str:
        best = int(self.scored.losses.argmin())
        count = f"{(answers == best).sum():,} of {len(answers):,} times on {self.data.labels[best]}, which is the best"
        return f"landed {count if len(answers) > 1 else f'on {self._labels(answers[0])}'}."

    def cells(self, choice: str) -> dict[str, Cell]:
        outcomes, has_rivals = self.outcomes(choice), self.scored.losses.any()
        best = Cell("best", _probability_text(outcomes.best) if has_rivals else "1", outcomes.best)
        return {
            f"Best {self.data.noun}": best,
            "Average error": _error_cell("mean", self.mean(choice)),
            "95 in 100 at most": _error_cell("error_95", outcomes.error_quantile(0.95)),
            **super().cells(choice),
        }

    def sentence(self) -> str:
        if not self.scored.losses.any():
            return _EQUAL
        is_one = self.spending.questions == 1 and not self.question.is_grouped
        who, lose = ("you get", "lose") if is_one else ("each answer is", "loses")
        best = _probability_text(self.outcomes(self.taken).best)
        return (
            f"With {self.spending.words} {who} {self.best} with probability {best} and {lose} {self._mean_text}"
            f" {self.unit} on average; 95 times in 100 at most {self._usual_text}."
        )

    @property
    def _usual_text(self) -> str:
        return written(self.outcomes(self.taken).error_quantile(0.95), UP, 4)

    def python(self) -> str:
        program = super().python().removeprefix("from dpselect import analysis\n\n")
        return f"{scores_code(self.data, self.mechanism(self.taken))}\n# What holds for any data:\n{program}"


@dataclass(frozen=True, repr=False)
class OwnScores(OneCandidate):
    """The best candidate by scores of one's own."""

    best = "the best candidate"
    note = "score"

    def command(self) -> str:
        drawn, claim = self.mechanism(self.taken), self.question.claim
        file, lines = scores_file(self.data)
        options = f"--epsilon {exact_text(drawn.epsilon)} --sensitivity {exact_text(claim.sensitivity)}"
        options += " --monotonic" * claim.monotonic
        return f"{lines}dpselect compare {file} {options}\ndpselect select {file} {options} --mechanism {self.taken}\n"


_RUNS_OF_MEANS = 200


@dataclass(frozen=True, repr=False)
class TopCandidates(Asked):
    """The k values that most people have, by each method that can answer."""

    is_slow = False
    runs = 400
    most_draws = 10_000

    def __post_init__(self) -> None:
        most = self.data.size - 1
        if not isinstance(self.question.k, int) or not 1 <= self.question.k <= most:
            raise InvalidValue(f"k must be a whole number from 1 to {most:,}")

    def _by_method(self, found: Mapping[str, Draw]) -> Mapping[str, Draw]:
        self.settled.how.check_scores(self.data.vector)
        return {name: each for name, each in found.items() if _takes(each, self.data)}

    def error(self, choice: str) -> TopKError:
        """Return the average error, with an interval if it is simulated."""
        draw, counts = self.draws[choice], self.data.vector
        found: TopKError = self.data.results.get(draw, lambda: error_of(counts, draw, _RUNS_OF_MEANS, seeded(1)))
        return found

    def mean(self, choice: str) -> float:
        return self.error(choice).mean

    def answers(self, choice: str, runs: int, patience: float, seed: int | None = None) -> Integers:  # noqa: ARG002 - this is fast
        return simulated_answers(self.data.vector, self.draws[choice], runs, seeded(seed))

    def errors(self, answers: Integers) -> Floats:
        return shortfalls(-self.data.losses, answers)

    def told(self, answers: Integers) -> str:
        if len(answers) == 1:
            return f"chose {self._labels(answers[0] if self.settled.how.ordered else np.sort(answers[0]))}."
        right = int((self.errors(answers) == 0).sum())
        return f"found the whole top {self.question.k:,} {right:,} of {len(answers):,} times."

    @property
    def target(self) -> float:
        below, k = np.sort(self.data.losses), self.question.k
        gaps = below[k:] - below[k - 1]
        return SOME * float(gaps[gaps > 0][0]) / k if gaps.any() else 0.0

    def cells(self, choice: str) -> dict[str, Cell]:
        outcomes, found, count = self.outcomes(choice), self.error(choice), self.draws[choice].count
        mean = _error_text(found.mean)
        if not found.exact:
            mean = f"{_error_text(found.mean, 2)} ({written(found.low, DOWN, 2)} to {_error_text(found.high, 2)})"
        right = round(outcomes.best * outcomes.runs)
        return {
            "Whole top k": Cell("best", f"{right} of {outcomes.runs}", outcomes.best),
            "Average error": Cell("mean", mean, found.mean),
            "95 in 100 at most": _error_cell("error_95", outcomes.error_quantile(0.95)),
            "Any data, average": self._any_data(choice),
            "Draws": Cell("draws", f"{count:,}", count),
            _EACH: self._each(choice),
        }

    def sentence(self) -> str:
        if not self.data.losses.any():
            return _EQUAL
        outcomes, k = self.outcomes(self.taken), self.question.k
        about = "" if self.error(self.taken).exact else "about "
        return (
            f"With {self.spending.words} the method {self.choices[self.taken]} finds the whole top {k:,} in"
            f" {math.floor(outcomes.best * 100)} of 100 answers. On average, a chosen candidate has"
            f" {about}{self._mean_text} fewer people than one of the true top {k:,}."
        )


def _takes(draw: Draw, data: ScoreSet) -> bool:
    try:
        if draw.method is not None:
            draw.method.check_scores(data.vector)
    except (InvalidType, InvalidValue):
        return False
    return True


@dataclass(frozen=True, repr=False)
class OneLevel(OneCandidate):
    """One quantile, by the exact probabilities of all values."""

    def value_error(self, choice: str) -> float:
        places = np.arange(self.data.size)
        best = np.flatnonzero(self.scored.losses == 0)
        distance = np.maximum(np.maximum(best[0] - places, places - best[-1]), 0)
        return float(self.outcomes(choice).chances @ distance) * float(self.data.step)

    def sentence(self) -> str:
        return (
            f"With {self.spending.words} the rank of the answer is on average {self._mean_text} of"
            f" {self.data.total:,} people away from the {self.question.what}; 95 times in 100 at most"
            f" {self._usual_text}. The value is off by {_error_text(self.value_error(self.taken), 2)} on"
            f" average.{_warning(self)}"
        )

    def python(self) -> str:
        return Asked.python(self)


@dataclass(frozen=True, repr=False)
class SeveralLevels(Asked):
    """Several quantiles: the usual error of the plan, and some simulated answers."""

    def errors(self, answers: Integers) -> Floats:
        off = [self.data.off_by(level, chosen) for level, chosen in zip(self.question.levels, answers.T, strict=True)]
        return np.concatenate(off)

    def cells(self, choice: str) -> dict[str, Cell]:
        promised = self.planned.accuracy_of(self.planned.promises[choice])
        return {
            "Usual error, worst level": _error_cell("mean", self.mean(choice)),
            "Any data, average": self._any_data(choice),
            "Any data, all in 95 of 100": _error_cell("all_95", promised.all_within_95),
            _EACH: self._each(choice),
        }

    def sentence(self) -> str:
        return (
            f"With {self.spending.words} the ranks of the {self.question.what} are usually off by up to about"
            f" {self._mean_text} of {self.data.total:,} people.{_warning(self)}"
        )

    @property
    def arguments(self) -> dict[str, Any]:
        name = levels_name(self.question.levels)
        return {**super().arguments, **({} if name is None else {"levels": name})}


def _warning(asked: Asked) -> str:
    needed, people = asked.planned.people_needed or 0, asked.data.total
    if people >= needed:
        return ""
    return f" It needs about {needed:,} people: with {people:,}, the answer may say nothing about them."


VIEWS: Mapping[type[Question], type[Asked]] = {
    Mode: OneCandidate,
    TopK: TopCandidates,
    Quantile: OneLevel,
    Quantiles: SeveralLevels,
    Select: OwnScores,
}


# The forms of the page, and what they state.

_SUPPLIED = {"candidates", "method"}  # by the shown data and the choices
_MOST = 10**9
_MOST_PEOPLE, _MOST_SPLIT = 10**8, 20_000  # of one level, and of several, whose answers are simulated


class _Page:
    """Reads what needs more than its text: groups are counted."""

    def listed(self, text: str, flag: str) -> int:
        return whole(text, flag.removeprefix("--"))


def offered() -> dict[str, Named]:
    """The questions that the page offers, by name."""
    return {one.method: one for one in QUESTIONS.values() if one.title is not None}


def form_of(one: Named) -> dict[str, Any]:
    """A question as the page shows it: its name and title, the data that it needs, and its fields."""
    return {
        "name": one.method,
        "title": one.title or _words(one.method),
        "data": "people" if is_over_range(one) else "scores",
        "counts": not one.record.has_scores,
        "fields": [
            {
                "name": each.name,
                "label": field.label or _words(each.name),
                "hint": field.hint,
                "value": _first(each),
                "empty": field.empty or "",
                "box": each.is_flag,
                "choices": field.choices,
                "shared": each.is_shared,
            }
            for each, field in _options(one)
        ],
    }


def is_over_range(one: Named) -> bool:
    """Whether its candidates are a range, so that the page makes up people on it."""
    return any(each.name == "lower" for each in one.planning)


def _words(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").capitalize()


def _options(one: Named) -> list[tuple[Option, Field]]:
    stated = one.record.stated_fields().keys() - _SUPPLIED
    found = [each for each in one.planning if each.name in stated]
    shown = [(each, each.page or Field(hint=each.help, empty=_empty(each))) for each in found]
    return [(each, field) for each, field in shown if field.is_shown]


def _empty(each: Option) -> str | None:
    return None if each.is_required else each.default or "none"


def _first(each: Option) -> str:
    example = None if each.page is None else each.page.example
    return (each.default or "") if example is None else example


def _stated(one: Named, given: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each, field in _options(one):
        if each.is_flag:
            found[each.name] = _validate.boolean(**{each.name: given.get(each.name, False)})
        elif (stated := text(given, each.name, _first(each))) or field.empty is None:
            reading: Any = [stated] if each.is_repeated else stated
            found[each.name] = each.read(reading, each.name, _Page())
    return found


def _named(given: Fields) -> Named:
    return _one_of(offered(), given, "question", Mode.name)


def needs_scores(given: Fields) -> bool:
    """Whether a request asks about scores, and not about made-up people."""
    return not is_over_range(_named(given))


def asked_of(given: Fields, scores: ScoreSet | None = None) -> Asked:
    """The question that a request states, on these scores if it is about scores."""
    one, spending = _named(given), spending_of(given)
    chosen, stated, unit = text(given, "choice", AUTO), _stated(one, given), "people"
    data: ScoreSet | People | None = scores
    if any(each.name == "method" for each in fields(one.record)):
        stated["method"] = chosen
    if is_over_range(one):
        question = question_of(one.method, stated)
        data = _people(question, given)
    else:
        if scores is None:
            raise InvalidValue("there are no scores: choose a shape or a file")
        # A plan has at least two candidates.
        question = question_of(one.method, {**stated, "candidates": max(2, scores.size)})
        if not isinstance(question, OfTable):
            unit = text(given, "unit", scores.unit)[:40] or "points"
    if "method" not in stated and chosen not in (AUTO, *question.mechanisms):
        raise InvalidValue(f"choice must be one of {', '.join([AUTO, *question.mechanisms])}")
    view = VIEWS.get(type(question), Asked)
    if view is SeveralLevels and question.rounds == 1:
        view = OneLevel
    return view(question, spending, chosen, data, unit)


def _people(question: Any, given: Fields) -> People:
    lower, upper, step = question.lower, question.upper, question.step
    if not (isinstance(lower, Fraction) and isinstance(upper, Fraction)):
        raise InvalidValue("lower and upper must be numbers here")
    if not 2 <= question.size <= MOST_CANDIDATES:
        raise InvalidValue(f"lower, upper and step must make 2 to {MOST_CANDIDATES:,} values here: give another step")
    spread = _validate.moderate(spread=text(given, "spread", "") or exact_text((upper - lower) / 8))
    middle = _validate.exact(middle=text(given, "middle", "") or exact_text((lower + upper) / 2))
    if not -_MOST <= (middle - lower) / step <= _MOST or not Fraction(1, _MOST) <= spread / step <= _MOST:
        raise InvalidValue("middle and spread must be of the size of the range: give numbers near it")
    most = _MOST_SPLIT if question.rounds > 1 else _MOST_PEOPLE
    total = _validate.count_in_text(1, most, people=text(given, "people", "2000"))
    return made_up((lower, step), question.size, total, middle, spread)
