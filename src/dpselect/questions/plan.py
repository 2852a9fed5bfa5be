"""Plan before any data are seen: what accuracy a price gives, what price an accuracy needs, and what a budget pays for.

`plan` is what `dpselect plan` prints, for every kind of question (`questions`). The accuracies hold for all data
(`analysis.measures`). The costs are in the arithmetic of a ledger: which charges it records, and when it refuses one.

A ledger records a charge at its exact cost if that is on a grid, and otherwise rounded up to a multiple of 1/ROUND
(`Budget.recorded`). Only a charge of exactly what is left need not be rounded. `times_allowed` follows these rules.

**Equal cost.** At the same epsilon, permute-and-flip is more accurate, but over many selections the exponential
mechanism composes better. So the two are compared at the same rho of zCDP, and under (epsilon, delta) at the same
error and at the same total. The totals are those of the best known accounting, for epsilons that are fixed in advance.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, cast

from dpselect import _show, _validate
from dpselect._numbers import exact_text, first_true, last_true, shortest_text, shown
from dpselect._scores import as_vector, losses
from dpselect._types import Number, Vector
from dpselect.accounting.budget import AUTO, Amount, Budget, Price, as_budget, pure, zcdp
from dpselect.accounting.charge import ROUND, Charge
from dpselect.accounting.totals import Approximate, approximate
from dpselect.analysis.measures import (
    ErrorsOf,
    Promise,
    epsilon_for,
    epsilon_for_average,
    error_quantile,
    expected_error,
    promised_by,
    rarely_exceeded,
)
from dpselect.errors import InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.privacy import Guarantee
from dpselect.mechanisms.unlisted import MOST
from dpselect.questions.methods import WHAT, Draw, Method, Peel
from dpselect.questions.most import People, Unlisted, UnlistedMode, UnlistedTopK, Values, checked_delta
from dpselect.questions.question import FOUND, Question, Select, divided, question_of
from dpselect.release import Accuracy

Texts = tuple[list[str], list[list[str]]]

# Costs.


@dataclass(frozen=True)
class Cost:
    """What a question costs by one mechanism, in the currency of the budget.

    Attributes:
        charge: what a ledger is asked to record for one question; None if it costs nothing.
        allowed: how many such questions the budget pays for; None without a budget.
        refusal: why the budget allows none, if it is for another reason than its size.
    """

    charge: Charge | None
    one: Budget
    total: Budget
    allowed: int | None
    refusal: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the cost in the types of JSON: floats, and the exact costs in the currency of the budget."""
        charge = self.charge
        return {
            "mechanism": None if charge is None else charge.mechanism,
            "draws": 0 if charge is None else charge.count,
            "epsilon_each": 0.0 if charge is None else float(charge.each),
            "epsilon": 0.0 if charge is None else float(charge.each * charge.count),
            "rho": 0.0 if charge is None else float(charge.rho),
            "one": self.one.to_dict(),
            "total": self.total.to_dict(),
            "questions_allowed": self.allowed,
            "refusal": self.refusal,
        }


def currency_of(budget: Budget | None, rho: Fraction | None) -> Budget:
    """The budget; without one, any budget of the currency of the price."""
    if budget is not None:
        return budget
    return pure(1) if rho is None else zcdp(1)


def cost(charge: Charge | None, questions: int, budget: Budget | None, currency: Budget) -> Cost:
    """What this many charges cost, and how many of them the budget pays for; None costs nothing."""
    if charge is None:
        return Cost(None, currency.of(Amount()), currency.of(Amount()), None, None)
    allowed, refusal = paid_for(budget, charge)
    # A charge that is refused is never recorded, and a cap would hide what it costs.
    amount = currency.amount(charge if refusal else currency.recorded(charge))
    total = amount._replace(value=amount.value * questions)
    return Cost(charge, currency.of(amount), currency.of(total), allowed, refusal)


def paid_for(budget: Budget | None, charge: Charge) -> tuple[int | None, str | None]:
    """For how many equal charges a budget pays, and why for none, if that has another reason than its size."""
    if budget is None:
        return None, None
    try:
        budget.check(charge)
    except InvalidValue as error:
        return 0, str(error)
    return times_allowed(budget, charge), None


def times_allowed(budget: Budget, charge: Charge) -> int:
    """How many equal charges a new ledger with this budget records before it refuses one."""
    limit, exact = budget.limit.value, budget.amount(charge).value
    recorded = budget.amount(budget.recorded(charge)).value
    times = limit // recorded
    # If the cost was rounded up, one more at its exact cost may take exactly what is left.
    allowed = int(times) + (times * recorded + exact == limit)
    if not charge.delta:
        return allowed
    return min(allowed, int(budget.limit.delta // budget.amount(budget.recorded(charge)).delta))


def share_of(budget: Budget, question: Question, questions: int) -> dict[str, Fraction]:
    """The largest price of each question, within 10**-50, at which a budget pays for this many: epsilon or rho.

    >>> from dpselect.questions.most import Mode
    >>> share_of(pure(1), Mode(candidates=30), 4)
    {'epsilon': Fraction(1, 4)}
    """
    # A cap on the epsilon of a single draw may leave a part of the budget unspent.
    currency = "epsilon" if budget.rho is None else "rho"
    share = budget.limit.value / questions
    if budget.cap is not None:
        share = min(share, budget.cap * question.draws)
    price = {currency: _validate.moderate(**{currency: share})}
    charge = Charge(WHAT, share) if currency == "epsilon" else Charge(WHAT, rho=share)
    if times_allowed(budget, charge) < questions:  # its cost is not on the grid
        price = {currency: _validate.moderate(**{currency: Fraction(share * ROUND // 1, ROUND)})}
    return price


_ROUNDINGS = Fraction(1, 10**12)
_PRECISION = 1e-5


def equal_cost(exponential: MechanismBase, errors_of: ErrorsOf) -> dict[str, Promise]:
    """Permute-and-flip at the largest epsilon that costs no more zCDP than this exponential mechanism, and that."""
    # Equal costs in zCDP are equal for any number of selections.
    rho = exponential.guarantee.zcdp
    beyond = first_true(lambda epsilon: PermuteAndFlip.loss.zcdp(Fraction(epsilon)) > rho, 1.0)
    affordable = Fraction(beyond) * (1 - _ROUNDINGS)
    other = PermuteAndFlip(affordable, **exponential.claim.arguments())
    return {each.name: promised_by(each, errors_of) for each in (other, exponential)}


class Rounds(NamedTuple):
    """Selections by one mechanism: the bounds of each, and their total cost."""

    each: Promise
    total: Approximate


class EqualRounds(NamedTuple):
    """The exponential mechanism, and permute-and-flip at the same error and at the same (epsilon, delta)."""

    exponential: Rounds
    equal_error: Rounds
    equal_budget: Rounds

    @property
    def better(self) -> Rounds:
        """The one with the smaller error in the worst case at the same budget."""
        return min(self.equal_budget, self.exponential, key=lambda rounds: rounds.each.average)


def equal_rounds(exponential: MechanismBase, errors_of: ErrorsOf, count: int, delta: float) -> EqualRounds:
    """Compare `count` selections."""

    def rounds(mechanism: MechanismBase) -> Rounds:
        total = approximate({(mechanism.name, mechanism.epsilon): count}, delta)
        return Rounds(promised_by(mechanism, errors_of), total)

    def flip(epsilon: Fraction) -> PermuteAndFlip:
        return PermuteAndFlip(epsilon, **exponential.claim.arguments())

    theirs = rounds(exponential)
    # Worst cases are proportional to 1/epsilon.
    ratio = Fraction(promised_by(flip(exponential.epsilon), errors_of).average) / Fraction(theirs.each.average)
    budget = theirs.total.epsilon
    affordable = affordable_epsilon(PermuteAndFlip.name, count, budget, delta, exponential.epsilon)
    return EqualRounds(theirs, rounds(flip(exponential.epsilon * ratio)), rounds(flip(affordable)))


def affordable_epsilon(
    mechanism: str, count: int, budget: float, delta: float, start: Fraction | None = None
) -> Fraction:
    """Find the largest epsilon at which `count` selections cost at most `budget` together, with this delta."""
    first = Fraction(budget) / count if start is None else start

    def fits(epsilon: Fraction) -> bool:
        return approximate({(mechanism, epsilon): count}, delta).epsilon <= budget

    return last_true(fits, first, within=_PRECISION)


# Plans.


@dataclass(frozen=True)
class OnScores:
    """A mechanism on public scores: its errors at the given epsilon, or the epsilon that the given error needs."""

    expected_error: float | None = None
    error_95: float | None = None
    epsilon: float | None = None  # None without errors: every epsilon is enough


@dataclass(frozen=True)
class PlannedMethod:
    """A method for the top k at the price of the plan: bounds on its error that hold for all data, in people.

    Attributes:
        method: the name of the method.
        mechanism: the name of the mechanism that draws.
        average: the mean count of the chosen candidates is on average at most this far below that of the k largest.
        within_95: a bound for 95 of 100 cases. What it is about depends on the method (docs/plan.md).

    >>> from dpselect import analysis
    >>> analysis.plan(1000, question="top_k", k=10, max_values=1, epsilon="0.1").methods["set"].mechanism
    'permute-and-flip'
    """

    method: str
    mechanism: str
    average: float
    within_95: float


@dataclass(frozen=True, repr=False)
class Plan:
    """What to expect from each mechanism, by name, and what the questions cost together.

    All of it follows from public numbers alone, except `on_scores`, which is as private as the scores that were given,
    and empty without them.

    Attributes:
        question: the question, a record of `dpselect.questions`, with the method that answers.
        epsilon: the epsilon of each question, if it was given.
        rho: the rho of each question, if it was given.
        error: the expected error, if it was given instead.
        budget: the budget that pays, if it was given.
        questions: the number of questions that share the budget.
        delta: the delta of each question about unlisted values, or of the (epsilon, delta) comparison, if it was given.
        used: the mechanism that draws, as a table with this budget chooses it.
        drawn: what draws by each mechanism, and what is charged.
        methods: for "top_k", the methods that can answer, at the price that the plan has for `used`.
        promises: the bounds of one selection by each mechanism, in units of the scores.
        costs: what each mechanism costs.
        on_scores: the exact results of each mechanism on the given scores.
        equal_cost: the bounds of both mechanisms at equal zCDP, for more than one question.
        equal_rounds: the comparison under (epsilon, delta), if a delta was given.

    >>> from dpselect import analysis
    >>> planned = analysis.plan(30, question="mode", budget="zcdp:0.5", questions=20)
    >>> planned.used, planned.better, planned.costs["exponential"].allowed
    ('exponential', 'exponential', 20)
    """

    question: Question
    epsilon: Fraction | None
    rho: Fraction | None
    error: Fraction | None
    budget: Budget | None
    questions: int
    delta: Fraction | float | None
    used: str
    drawn: Mapping[str, Draw]
    costs: Mapping[str, Cost] = field(default_factory=dict)
    promises: Mapping[str, Promise] = field(default_factory=dict)
    methods: Mapping[str, PlannedMethod] = field(default_factory=dict)
    on_scores: Mapping[str, OnScores] = field(default_factory=dict)
    equal_cost: Mapping[str, Promise] | None = None
    equal_rounds: EqualRounds | None = None
    _same_cost: Mapping[str, Promise] = field(default_factory=dict)  # the bounds at the cost of `used`
    _pure: Promise | None = None  # for an (epsilon, delta) budget, the bounds for a pure budget of the same epsilon

    def __repr__(self) -> str:
        given = {"epsilon": self.epsilon, "rho": self.rho, "error": self.error}
        price = [f"{name}={shortest_text(number)}" for name, number in given.items() if number is not None]
        price += [] if self.budget is None else [f"budget={self.budget!r}"]
        return f"Plan({self.question!r}, {', '.join(price)}, questions={self.questions})"

    def _repr_html_(self) -> str:
        caption = f"{self.title}: {self.subject}"
        texts = map(_show.paragraph, self.paragraphs.values())
        return _show.page(_show.table(*self.table, caption=caption, is_numeric=True), *texts)

    @property
    def title(self) -> str:
        """The question in words."""
        return self.question.title

    @property
    def subject(self) -> str:
        """What the numbers of the table are about."""
        asked = self.question
        return f"how far the answer can be off, {asked.condition or 'for any data'}, in {asked.error_unit}"

    @property
    def table(self) -> Texts:
        """The heads and the rows of a table: the accuracy and the cost of each mechanism. Public numbers only."""
        rounds, count = self.question.rounds, self.questions
        heads = ["\nmechanism", "epsilon of\na draw", "average\nat most", "95 of 100\nbelow", "99 of 100\nbelow"]
        heads += [f"all {rounds:,}, 95 of\n100 below"] if rounds > 1 else []
        heads += ["one question\ncosts"]
        heads += [f"{count:,} questions\ncost"] if count > 1 else []
        heads += ["questions that\nthe budget allows"] if self.budget is not None else []
        return heads, [self._row(name, accuracy) for name, accuracy in self.accuracy.items()]

    def _row(self, name: str, accuracy: Accuracy) -> list[str]:
        cost = self.costs[name]
        each = 0 if cost.charge is None else cost.charge.each
        cells = [shown(float(each), digits=6), *map(shown, accuracy.bounds)]
        cells += [shown(accuracy.all_within_95)] if self.question.rounds > 1 else []
        cells += [cost.one.words]
        cells += [cost.total.words] if self.questions > 1 else []
        if self.budget is not None:
            cells += ["any number" if cost.allowed is None else f"{cost.allowed:,}"]
        return [name, *cells]

    @property
    def paragraphs(self) -> dict[str, str]:
        """What the numbers mean, by titles."""
        told = {"In words": self.sentences, "Which method": self.about_methods, "Which mechanism": self.advice}
        return {title: " ".join(sentences) for title, sentences in told.items() if sentences}

    @property
    def method(self) -> str | None:
        """The name of the method for the top k; None for other questions."""
        return self.question.method_name

    @property
    def better(self) -> str:
        """The mechanism with the smallest average error in the worst case, all at the cost of `used`."""
        return _better(self._same_cost) if self._same_cost else self.used

    @property
    def people_needed(self) -> int | None:
        """About how many people a quantile, or the most common value of a rule, needs; None for other questions.

        With fewer, more than 5 of 100 answers by the mechanism `used` may be far from all people.
        """
        return self.question.people_needed(self.drawn[self.used].mechanism)

    @property
    def allowed(self) -> int | None:
        """How many such questions the budget pays for by the mechanism `used`; None without a budget."""
        return self.costs[self.used].allowed

    @property
    def suffices(self) -> bool | None:
        """Whether the budget pays for all questions by the mechanism `used`; None without a budget."""
        if self.question.is_free:
            return None if self.budget is None else True
        return None if self.allowed is None else self.allowed >= self.questions

    @property
    def accuracy(self) -> Mapping[str, Accuracy]:
        """The accuracy of each mechanism by name."""
        return {name: self.accuracy_of(promised) for name, promised in self.promises.items()}

    def accuracy_of(self, promised: Promise) -> Accuracy:
        """Return the bounds of one selection as the accuracy of an answer.

        Args:
            promised: one of `promises`.

        >>> from dpselect import analysis
        >>> planned = analysis.plan(question="median", lower=0, upper=1000, epsilon="0.1")
        >>> promised = planned.promises["exponential"]
        >>> planned.accuracy_of(promised).average == promised.average / 2  # the median's scores are half people
        True
        """
        asked = self.question
        average, usual, rare = (
            each / asked.unit for each in (promised.average, promised.within_95, promised.within_99)
        )
        together = asked.all_within(promised.mechanism, 0.05) / asked.unit
        method = f"bound {asked.condition or 'for any data'}"
        return Accuracy(average, usual, asked.error_unit, method, within_99=rare, all_within_95=together)

    @property
    def sentences(self) -> list[str]:
        """The accuracy and the cost in plain English, for the mechanism `used`. Numbers are rounded up."""
        expected = self.accuracy_of(self.promises[self.used])
        told = self.question.meaning(*map(shown, expected.bounds))
        return [*filter(None, [f"{told} {self.question.holds}", *self._about_draws(expected), *self._about_costs()])]

    def _about_draws(self, expected: Accuracy) -> list[str]:
        asked, mechanism, people = self.question, self.drawn[self.used].mechanism, self.people_needed
        all_of_them, growth = "", ""
        if asked.rounds > 1:
            bound = shown(expected.all_within_95)
            all_of_them = f"In 95 of 100 cases, all {asked.rounds:,} differences are less than {bound} (a union bound)."
        if asked.has_range and asked.size > 1:
            more = rarely_exceeded(mechanism, 10 * asked.size, 0.05) / asked.unit - expected.within_95
            growth = (
                f"The bounds grow with the logarithm of the number of candidates: ten times as many add {shown(more)}."
            )
        needed = "" if people is None else asked.need(people)
        return [asked.remark(expected.within_95), all_of_them, asked.dense(mechanism), needed, growth, asked.shares]

    def _about_costs(self) -> list[str]:
        if self.question.is_free:
            return ["It costs nothing."]
        cost = self.costs[self.used]
        price = f"One question costs {cost.one.words}"
        price += "." if self.questions == 1 else f", and {self.questions:,} of them {cost.total.words}."
        told = [price, *_paid(self.budget, cost.allowed, cost.refusal, self.questions, "such questions")]
        if self.epsilon is None and self.rho is None and self.error is None and cost.refusal is None:
            told.append(f"Ask each question with {cost.one.words_down}.")  # rounded down: copied, it must be paid for
        return told

    @property
    def advice(self) -> list[str]:
        """Which mechanism to take, and why, in plain English."""
        if self.question.is_free or not self._same_cost:
            return []
        better, unit = self.better, self.question.error_unit
        bounds = {name: shown(each.average / self.question.unit) for name, each in self._same_cost.items()}
        others = " and ".join(f"that of {name} {bound}" for name, bound in bounds.items() if name != better)
        same = f"at the same cost, {self.costs[self.used].one.words} for a question"
        told = [f"Take {better}: {same}, its average error is at most {bounds[better]} {unit}, and {others}."]
        if not others:
            told = [f"Only {better} draws with this method."]
        if better != self.used:
            told.append(f"The numbers above are those of {self.used}: to use {better}, give mechanism={better!r}.")
        if self._pure is not None and self._pure.average < self._same_cost[better].average:
            pure, name = shown(self._pure.average / self.question.unit), self._pure.mechanism.name
            told.append(
                f"A pure budget of the same epsilon is better for this number of questions: divided evenly, the average"
                f" error of {name} is at most {pure} {unit}."
            )
        return told

    @property
    def about_methods(self) -> list[str]:
        """Which method answers and why, and the methods at the same price; nothing except for "top_k"."""
        if self.method is None:
            return []
        told = self.question.about_method(currency_of(self.budget, self.rho).rho is not None)
        ranked = sorted(self.methods.values(), key=lambda method: method.average)
        if len(ranked) > 1:
            bounds = "; ".join(f"{one.method} {shown(one.average)}" for one in ranked)
            told.append(f"At the same price, the mean count is on average at most this many people too low: {bounds}.")
            if shown(ranked[0].average) != shown(self.methods[self.method].average):
                told.append(
                    f"{self.method} is taken although its bound is not the smallest: it is a loose bound for the worst"
                    " data. On real counts it wins about as often as it loses, and its wins are larger (docs/top-k.md)."
                )
            told.append("dpselect compare -k shows the errors on public data that are like yours.")
        return told

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in the types of JSON: the question as exact strings, and the results as unrounded floats.

        >>> from dpselect import analysis
        >>> analysis.plan(1000, epsilon="0.5").to_dict()["mechanisms"][1]["mechanism"]
        'exponential'
        """
        claim = ("sensitivity", "monotonic", "score_range")  # of "select", and below in one form for all questions
        return {
            **{name: value for name, value in self.question.to_dict().items() if name not in claim},
            "candidates": self.question.size,
            **self.question.claim.to_json(),
            **{name: _exact(getattr(self, name)) for name in ("epsilon", "rho", "error")},
            "budget": None if self.budget is None else self.budget.to_dict(),
            "questions": self.questions,
            "unit": self.question.error_unit,
            "mechanisms": [self._promised(name) for name in self.promises],
            "costs": [each.to_dict() for each in self.costs.values()],
            "used": self.used,
            "better": self.better,
            "people_needed": self.people_needed,
            "suffices": self.suffices,
            "sentences": [*self.sentences, *self.about_methods, *self.advice],
            **self._methods(),
            "better_for_many": None if self.equal_cost is None else self._at_equal_cost(self.equal_cost),
            "approximate": None if self.equal_rounds is None else self._approximate(self.equal_rounds),
            "proxy": {"mechanisms": [self._on_scores(name) for name in self.on_scores]} if self.on_scores else None,
        }

    def _promised(self, name: str) -> dict[str, Any]:
        promised, accuracy, count = self.promises[name], self.accuracy_of(self.promises[name]), self.drawn[name].count
        guarantee = self.drawn[name].part.guarantee
        together = {"all_95": accuracy.all_within_95} if self.question.rounds > 1 else {}
        if self.question.is_free:
            guarantee, count = Guarantee(Fraction(0), 0.0), 0
        return {
            "mechanism": name,
            "epsilon": float(guarantee.epsilon),
            "expected_error_at_most": accuracy.average,
            "expected_error_attained": promised.attained / self.question.unit,
            "error_95": accuracy.within_95,
            "error_99": accuracy.within_99,
            **together,
            "total_epsilon": float(guarantee.epsilon * (count * self.questions)),
            "total_zcdp": guarantee.zcdp * (count * self.questions),
        }

    def _methods(self) -> dict[str, Any]:
        if self.method is None:
            return {}
        return {"method_taken": self.method, "methods": [asdict(each) for each in self.methods.values()]}

    def _at_equal_cost(self, equal: Mapping[str, Promise]) -> dict[str, Any]:
        rho = equal[ExponentialMechanism.name].mechanism.guarantee.zcdp
        return {
            "pure": PermuteAndFlip.name,
            "zcdp": _better(equal),
            "at_total_zcdp": rho * self.question.draws * self.questions,
            **{name: self._one(equal[name]) for name in (ExponentialMechanism.name, PermuteAndFlip.name)},
        }

    def _approximate(self, compared: EqualRounds) -> dict[str, Any]:
        return {
            "delta": compared.exponential.total.delta,
            "better": compared.better.each.mechanism.name,
            "exponential": self._rounds(compared.exponential),
            "permute_and_flip_at_equal_error": self._rounds(compared.equal_error),
            "permute_and_flip_at_equal_budget": self._rounds(compared.equal_budget),
        }

    def _rounds(self, rounds: Rounds) -> dict[str, Any]:
        return {**self._one(rounds.each), "total_epsilon": rounds.total.epsilon, "method": rounds.total.method}

    def _one(self, promised: Promise) -> dict[str, Any]:
        average = promised.average / self.question.unit
        return {"epsilon": float(promised.mechanism.epsilon), "expected_error_at_most": average}

    def _on_scores(self, name: str) -> dict[str, Any]:
        found, keys = self.on_scores[name], ("epsilon",) if self.error is not None else ("expected_error", "error_95")
        return {"mechanism": name, **{key: getattr(found, key) for key in keys}}


def _better(promises: Mapping[str, Promise]) -> str:
    return min(promises, key=lambda name: promises[name].average)


def _exact(number: Fraction | float | None) -> str | None:
    return None if number is None else exact_text(Fraction(number))


def _paid(budget: Budget | None, allowed: int | None, refusal: str | None, questions: int, noun: str) -> list[str]:
    if budget is None or allowed is None:
        return []
    if refusal is not None:
        return [f"The budget does not allow it: {refusal}."]
    enough = "" if not allowed or allowed >= questions else f", not for {questions:,}"
    paid = {0: "no such question", 1: "one such question"}.get(allowed, f"{allowed:,} {noun}")
    return [f"A budget of {budget.words} pays for {paid}{enough}."]


@dataclass(frozen=True, repr=False)
class FoundPlan(Plan):
    """How many people must have a value so that it is found, and what the question costs. Public numbers only.

    Attributes:
        question: the question.
        epsilon: the epsilon of each question, if it was given.
        rho: the rho of each question, if it was given.
        delta: the delta of each question.
        budget: the budget that pays, if it was given.
        questions: the number of questions that share the budget.
        used: the name of what draws.
        half: how many people have a value that is found with probability 1/2.
        usual: how many people have a value that is found in 95 of 100 cases.
        surely: how many people have a value that is always found; None if there is no such number.
        nothing: the score of "nothing", in people; None for "values".

    >>> planned = plan_found("values", epsilon=1, delta="1e-6")
    >>> planned.half, planned.usual, planned.surely
    (14, 16, 28)
    """

    question: Unlisted

    half: int = 0
    usual: int = 0
    surely: int | None = None
    nothing: Fraction | None = None

    @property
    def _draw(self) -> Draw:
        return self.drawn[self.used]

    @property
    def draws(self) -> int:
        """How many draws one person can influence."""
        return self._draw.count

    @property
    def each(self) -> tuple[Fraction, Fraction]:
        """The epsilon and the delta of each draw."""
        return self._draw.part.epsilon, self._draw.delta / self._draw.count

    @cached_property
    def limited(self) -> "FoundPlan | None":
        """The same plan with max_values=1, if there is no limit; otherwise None."""
        if self.question.max_values is not None:
            return None
        price = Price(self.epsilon, self.rho, self.used, self.delta)
        return _found_plan(replace(self.question, max_values=1), price, self.budget, self.questions)

    @cached_property
    def _paid(self) -> tuple[int | None, str | None]:
        return paid_for(self.budget, self._draw.charge(self.rho))

    @property
    def allowed(self) -> int | None:
        return self._paid[0]

    @property
    def refusal(self) -> str | None:
        """Why the budget allows none, if it is for another reason than its size."""
        return self._paid[1]

    def __repr__(self) -> str:
        asked = {"k": None, **self.question.to_dict()}
        given = {name: asked[name] for name in ("k", "max_values", "groups") if asked[name] is not None}
        price = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
        stated = [f"{name}={value}" for name, value in given.items()]
        stated += [f"{name}={shortest_text(Fraction(number))}" for name, number in price.items() if number is not None]
        return f"FoundPlan({self.question.name!r}, {', '.join(stated)})"

    @property
    def subject(self) -> str:
        return "how many people must have a value so that it is found"

    @property
    def table(self) -> Texts:
        """The heads and the rows of a table: how many people must have a value so that it is found."""
        rows = {"": self} if self.limited is None else {"any number of values": self, "max-values 1": self.limited}
        heads = ["\nmechanism", "probability\n1/2", "95 of\n100"] + (["\nalways"] if self.surely is not None else [])
        texts = []
        for name, each in rows.items():
            people = [each.half, each.usual] + ([] if each.surely is None else [each.surely])
            texts.append([", ".join(filter(None, [each.used, name])), *(f"{number:,}" for number in people)])
        return heads, texts

    @property
    def sentences(self) -> list[str]:
        """In plain English how many people a value needs, and what a question costs.

        >>> plan_found("values", epsilon=1, delta="1e-6").sentences[0]
        'A value is found with probability 1/2 if 14 people have it, in 95 of 100 cases if 16 have it, and always if 28 have it.'
        """  # noqa: E501 - a sentence of output
        asked, people, limit = self.question, People(self.half, self.usual, self.surely, self.nothing), ""
        if self.limited is not None:
            limit = (
                f"If more than {MOST:,} values occur, a value needs as many people more as the first one that is left"
                f" out has. With max_values=1, {self.limited.usual:,} people are enough for 95 of 100 cases."
            )
        shares = divided(self.draws, asked.coins)
        return [*filter(None, [*asked.found_if(people), asked.counted_people, limit, shares, *self._about_costs()])]

    def _about_costs(self) -> list[str]:
        currency = "epsilon" if self.rho is None else "rho"
        price, delta = (shown(float(getattr(self, name))) for name in (currency, "delta"))
        told = f"One question costs {currency} {price} and delta {delta}."
        return [told, *_paid(self.budget, *self._paid, self.questions, "of them")]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in the types of JSON; exact numbers are text.

        >>> plan_found("mode", epsilon=1, delta="1e-6", max_values=1).to_dict()["people_95"]
        17
        """
        asked = {"k": getattr(self.question, "k", None), **self.question.to_dict()}
        return {
            **{name: asked[name] for name in ("question", "k", "max_values", "neighbours", "groups", "max_groups")},
            **{name: _exact(getattr(self, name)) for name in ("epsilon", "rho", "delta")},
            "mechanism": self.used,
            "draws": self.draws,
            "epsilon_each": float(self.each[0]),
            "delta_each": float(self.each[1]),
            "people_half": self.half,
            "people_95": self.usual,
            "people_surely": self.surely,
            "people_of_nothing": None if self.nothing is None else float(self.nothing),
            "people_95_with_max_values_1": None if self.limited is None else self.limited.usual,
            "budget": None if self.budget is None else self.budget.to_dict(),
            "questions": self.questions,
            "questions_allowed": self.allowed,
            "refusal": self.refusal,
            "sentences": self.sentences,
        }


def plan(  # noqa: PLR0913 - the price, by keyword
    candidates: int | None = None,
    *,
    question: str | Question | None = None,
    epsilon: Number | None = None,
    rho: Number | None = None,
    error: Number | None = None,
    budget: Number | Budget | None = None,
    questions: int = 1,
    mechanism: str = AUTO,
    delta: Number | None = None,
    scores: Any = None,
    **stated: Any,
) -> Plan:
    """Plan what accuracy to expect from a price, or what price an accuracy needs, before any data are seen.

    Give one of `epsilon`, `rho` and `error`, or only a `budget`, which is then divided evenly among the questions. All
    bounds hold for all data, and follow from public numbers alone. With `scores`, which should be public or
    synthetic, the plan also has exact results on these scores.

    Args:
        candidates: the number of candidates of "mode", "top_k" and "select", or of a quantile instead of a range. For
            "select" it is the length of `scores` if omitted.
        question: "mode", "top_k", "median", "quantile", "quantiles", or "select" for scores of your own, which is the
            default; or a record of `dpselect.questions`.
        epsilon: the epsilon of each question; the plan then has its error.
        rho: the rho of zCDP of each question, instead of epsilon.
        error: the acceptable average error, in people or in units of the scores; the plan then has the epsilon.
        budget: what pays for all questions: a number, text such as "zcdp:0.5" or "1,1e-6", or a `Budget`.
        questions: the number of such questions that share one budget.
        mechanism: "auto" for the one that a table with this budget uses, or the name of one.
        delta: if given, also compare the total cost as (epsilon, delta), by the best accounting for epsilons that are
            fixed in advance. Needs dp-accounting. For values that are found in the data, their delta, as for
            `plan_found`.
        scores: public or synthetic scores, one for each candidate of "select".
        stated: the fields of the question's record, such as `k` of `questions.TopK` or `lower` of
            `questions.Quantile`, and `groups`, `max_groups` and `neighbours` of all questions about tables.

    Returns:
        The accuracy and the cost of each mechanism by name, and which one is better.

    Raises:
        InvalidType: an argument is not a number.
        InvalidValue: more or less than one of `epsilon`, `rho` and `error` is given, a parameter does not belong to the
            question, or a number is out of range.
        MissingExtra: `delta` is given, and dp-accounting is not installed.

    >>> planned = plan(1000, epsilon="0.5")
    >>> round(planned.promises["permute-and-flip"].average, 2)
    17.06
    >>> plan(1000, error=20, monotonic=True).promises["permute-and-flip"].mechanism.epsilon
    Fraction(2133, 10000)
    >>> planned = plan(question="median", lower=0, upper=1000, budget=1, questions=10)
    >>> planned.used, round(planned.accuracy["permute-and-flip"].average, 1)
    ('permute-and-flip', 42.7)
    """
    paid = None if budget is None else as_budget(budget)
    count = _validate.count(1, _validate.MANY, questions=questions)
    if isinstance(question, Unlisted):
        if error is not None:
            raise InvalidValue("error needs candidates: leave it out for values that are found")
        price = Price(epsilon, rho, mechanism, delta)
        _validate.warn_of_large_delta(checked_delta(price))
        return _found_plan(question_of(question, stated), price, paid, count)
    if question in _FOUND and candidates is None and (delta is not None or question == Values.name):
        method = stated.pop("method", None)
        if error is not None or method not in (None, AUTO, Peel.name):
            name = "method" if error is None else "error"
            raise InvalidValue(f"{name} needs candidates: leave it out for values that are found")
        priced: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "delta": delta, "mechanism": mechanism}
        return plan_found(str(question), **priced, budget=paid, questions=count, **_without_false(stated))
    given = _price(paid is not None, epsilon=epsilon, rho=rho, error=error)
    doubt = None if delta is None else _validate.fraction_of_one(delta=delta)
    if doubt is not None and paid is not None and not paid.delta:
        raise InvalidValue("delta does not belong to this budget: give an (epsilon, delta) budget such as '1,1e-6'")
    _validate.warn_of_large_delta(doubt or 0)
    vector = None if scores is None else as_vector(scores)
    question = Select.name if question is None else question
    if vector is not None and question != Select.name:
        raise InvalidValue("scores are for the question 'select': leave them out")
    if question == Select.name and candidates is None:
        if vector is None:
            raise InvalidValue("give candidates, the number of candidates, or public scores")
        candidates = len(vector)
    asked = question_of(question, {"candidates": candidates, **_without_false(stated)})
    if doubt is not None and asked.is_split:
        raise InvalidValue("delta is for questions of one selection: leave it out, and give an (epsilon, delta) budget")
    unit = Price(rho=1, mechanism=mechanism) if "rho" in given else Price(1, mechanism=mechanism)
    asked = asked.settled(unit, paid)
    used = asked.used(unit, paid)
    if used not in asked.mechanisms:
        raise InvalidValue(f"mechanism must be one of {', '.join([AUTO, *asked.mechanisms])} for {asked.name}")
    planned = Plan(asked, given.get("epsilon"), given.get("rho"), given.get("error"), paid, count, doubt, used, {})
    return _compared(planned, given, mechanism, vector)


_FOUND = (UnlistedMode.name, UnlistedTopK.name, Values.name)


def plan_found(  # noqa: PLR0913 - the price, by keyword
    question: str,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    mechanism: str = AUTO,
    budget: Number | Budget | None = None,
    questions: int = 1,
    **stated: Any,
) -> FoundPlan:
    """Plan a question about values that nobody listed: how many people must have a value so that it is found.

    Args:
        question: "values" for `Table.values` and for groups that are found; "mode" or "top_k" for those without
            candidates.
        delta: the delta of each question. For other parameters, see `plan`.
        mechanism: as for `plan`. For "values" it is not used.
        stated: `k` of "top_k", the largest number of values; `max_values`, for how many values a person counts (for
            "values" it is 1 if omitted, and the `max_groups` of groups that are found; for the others it is any
            number); `groups`, `max_groups` and `neighbours`, as for `plan`.

    Raises:
        InvalidType: an argument is not a number.
        InvalidValue: an argument is missing, does not belong to the question, or is out of range.

    >>> plan_found("mode", epsilon=1, delta="1e-9", max_values=1).usual
    24
    >>> plan_found("mode", epsilon=1, delta="1e-9").usual
    33
    """
    if question not in _FOUND:
        raise InvalidValue(f"question must be values, mode or top_k, got {str(question)[:40]!r}")
    if delta is None:
        raise InvalidValue("give delta, such as 1e-9: values that nobody listed are found with one")
    if "candidates" in stated:
        raise InvalidValue("candidates are found in the data: leave them out, or use plan")
    if stated.get("max_values") is not None:
        _validate.count(1, _validate.EXACT_IN_FLOATS, max_values=stated["max_values"])
    candidates = {} if question == Values.name else {"candidates": FOUND}
    asked = question_of(question, {**stated, **candidates})
    paid = None if budget is None else as_budget(budget)
    count = _validate.count(1, _validate.MANY, questions=questions)
    price = Price(epsilon, rho, mechanism, delta)
    _validate.warn_of_large_delta(checked_delta(price))
    return _found_plan(asked, price, paid, count)


def _found_plan(asked: Any, price: Price, budget: Budget | None, count: int) -> FoundPlan:
    draw = asked.draw(price, budget)
    stated = (price.epsilon, price.rho, None, budget, count, price.delta, draw.mechanism.name)
    return FoundPlan(asked, *stated, {draw.mechanism.name: draw}, **asked.people(draw)._asdict())


def _without_false(stated: Mapping[str, Any]) -> dict[str, Any]:
    # Every question has that default.
    return {name: value for name, value in stated.items() if value is not False}


def _price(has_budget: bool, **given: Any) -> dict[str, Fraction]:
    price = {name: _validate.moderate(**{name: number}) for name, number in given.items() if number is not None}
    if len(price) > 1 or not (price or has_budget):
        raise InvalidValue(
            "give exactly one of epsilon, rho and error, or only a budget, which is then divided among the questions"
        )
    return price


def _compared(planned: Plan, price: Mapping[str, Fraction], mechanism: str, vector: Vector | None) -> Plan:
    asked, used, budget, count = planned.question, planned.used, planned.budget, planned.questions
    paid = price if price or budget is None else share_of(budget, asked, count)
    rho = paid.get("rho")
    currency = currency_of(budget, rho)
    drawn = {name: _draw(asked, name, paid) for name in asked.mechanisms}
    charges = {name: None if asked.is_free else each.charge(rho) for name, each in drawn.items()}
    spent = drawn[used].charge(rho)
    same = {"epsilon": spent.each * spent.count} if currency.rho is None else {"rho": spent.rho}
    at_same_cost = {name: asked.draw(Price(**same, mechanism=name)).mechanism for name in asked.mechanisms}
    rivals = {ExponentialMechanism.name, PermuteAndFlip.name} <= drawn.keys() and not asked.is_free
    bounds = asked.errors if rivals else None
    equal, together, found = None, None, {}
    if vector is not None:
        found = {name: _on_scores(each.mechanism, vector, planned.error) for name, each in drawn.items()}
    if bounds is not None:
        exponential, delta = drawn[ExponentialMechanism.name].mechanism, planned.delta
        equal = None if count == 1 else equal_cost(exponential, bounds)
        together = None if delta is None else equal_rounds(exponential, bounds, count * asked.draws, float(delta))
    return replace(
        planned,
        drawn=drawn,
        costs={name: cost(each, count, budget, currency) for name, each in charges.items()},
        promises={name: asked.promise(each.mechanism) for name, each in drawn.items()},
        methods=_methods(asked, Price(**same, mechanism=mechanism), budget),
        on_scores=found,
        equal_cost=equal,
        equal_rounds=together,
        _same_cost={name: asked.promise(each) for name, each in at_same_cost.items()},
        _pure=None if price or budget is None else _from_pure_budget(asked, budget, count),
    )


def _draw(asked: Question, name: str, price: Mapping[str, Fraction]) -> Draw:
    if "error" not in price:
        return asked.draw(Price(**price, mechanism=name))
    unit = asked.draw(Price(1, mechanism=name))
    if asked.is_free:
        return unit
    drawn = unit.mechanism
    average = asked.promise(type(drawn)(1, **drawn.claim.arguments())).average
    epsilon = epsilon_for_average(average, price["error"] * asked.unit) / drawn.epsilon
    return asked.draw(Price(epsilon, mechanism=name))


def _methods(asked: Question, price: Price, budget: Budget | None) -> dict[str, PlannedMethod]:
    planned = {}
    for name, draw in asked.applicable(price, budget).items():
        promised = promised_by(draw.mechanism, cast("Method", draw.method).bounds)
        planned[name] = PlannedMethod(name, draw.mechanism.name, promised.average, promised.within_95)
    return planned


def _from_pure_budget(asked: Question, budget: Budget, count: int) -> Promise | None:
    # Pure epsilon implies (epsilon, delta), and for a few questions it may leave more for each of them.
    if budget.epsilon is None or budget.rho is None or asked.is_free:
        return None
    unit, without_delta = Price(1), pure(budget.epsilon)
    other = asked.settled(unit, without_delta)
    price = Price(**share_of(without_delta, other, count), mechanism=other.used(unit, without_delta))
    return other.promise(other.draw(price).mechanism)


def _on_scores(mechanism: MechanismBase, scores: Vector, error: Fraction | None) -> OnScores:
    if error is None:
        return OnScores(expected_error(mechanism, scores), error_quantile(mechanism, scores, 0.95))
    target = float(error)
    if losses(scores).mean() <= target:  # the error of a uniform choice: no mechanism exceeds it
        return OnScores()
    return OnScores(epsilon=epsilon_for(type(mechanism), scores, expected_error=target, **mechanism.claim.arguments()))
