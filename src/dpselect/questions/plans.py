"""A plan: what to expect from each mechanism and what questions cost, as numbers, sentences, a table and JSON.

`planning.plan` makes one. The command line and notebooks show the same table and paragraphs.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Protocol

from dpselect import _show
from dpselect._numbers import exact_text, shortest_text, shown
from dpselect.accounting.budget import Budget
from dpselect.analysis.promises import Promise, rarely_exceeded
from dpselect.mechanisms.parameters import Claim
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.privacy import Guarantee
from dpselect.questions.costs import Cost, EqualCost, EqualRounds, Rounds, currency_of
from dpselect.questions.question import Question
from dpselect.release import Accuracy

Texts = tuple[list[str], list[list[str]]]


class Shown(Protocol):
    """What the command line and notebooks show of a plan: all of it follows from public numbers."""

    @property
    def title(self) -> str:
        """Return the question in words."""
        ...

    @property
    def subject(self) -> str:
        """Return what the numbers of the table are about."""
        ...

    @property
    def table(self) -> Texts:
        """Return the heads and the rows."""
        ...

    @property
    def paragraphs(self) -> dict[str, str]:
        """Return what the numbers mean, by titles."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in the types of JSON."""
        ...


def shown_in_notebook(planned: Shown) -> str:
    """The table and the paragraphs of a plan as HTML."""
    caption = f"{planned.title}: {planned.subject}"
    texts = map(_show.paragraph, planned.paragraphs.values())
    return _show.page(_show.table(*planned.table, caption=caption, is_numeric=True), *texts)


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
        delta: the delta of the (epsilon, delta) comparison, if it was given.
        used: the mechanism that draws, as a table with this budget chooses it.
        methods: for "top_k", the methods that can answer, at the price that the plan has for `used`.
        promises: the bounds of one selection by each mechanism, in units of the scores.
        costs: what each mechanism costs.
        equally_dear: the bounds of each mechanism at the price that `used` costs, in the currency of the budget.
        pure: for an (epsilon, delta) budget, the bounds of the mechanism for a pure budget of the same epsilon.
        on_scores: the exact results of each mechanism on the given scores.
        equal_cost: the comparison at equal zCDP, for more than one question.
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
    delta: float | None
    used: str
    methods: Mapping[str, PlannedMethod]
    promises: Mapping[str, Promise]
    costs: Mapping[str, Cost]
    equally_dear: Mapping[str, Promise]
    pure: Promise | None
    on_scores: Mapping[str, OnScores]
    equal_cost: EqualCost | None  # for more than one question
    equal_rounds: EqualRounds | None  # with a delta

    def __repr__(self) -> str:
        given = {"epsilon": self.epsilon, "rho": self.rho, "error": self.error}
        price = [f"{name}={shortest_text(number)}" for name, number in given.items() if number is not None]
        price += [] if self.budget is None else [f"budget={self.budget!r}"]
        return f"Plan({self.question!r}, {', '.join(price)}, questions={self.questions})"

    def _repr_html_(self) -> str:
        """What a notebook shows: what `dpselect plan` prints of public numbers, and nothing of `on_scores`."""
        return shown_in_notebook(self)

    @property
    def title(self) -> str:
        """Return the question in words."""
        return self.question.title

    @property
    def subject(self) -> str:
        """Return what the numbers of the table are about."""
        return (
            f"how far the answer can be off, {self.question.condition or 'for any data'}, in {self.question.error_unit}"
        )

    @property
    def table(self) -> Texts:
        """Return the heads and the rows of a table: the accuracy and the cost of each mechanism. Public numbers only.

        >>> from dpselect import analysis
        >>> analysis.plan(4, question="mode", epsilon="0.1").table[1][0]
        ['permute-and-flip', '0.1', '4.42', '43.83', '59.92', 'epsilon 0.1']
        """
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
        """Return what the numbers mean, by titles."""
        told = {"In words": self.sentences, "Which method": self.about_methods, "Which mechanism": self.advice}
        return {title: " ".join(sentences) for title, sentences in told.items() if sentences}

    @property
    def candidates(self) -> int:
        """Return the number of candidates."""
        return self.question.size

    @property
    def claim(self) -> Claim:
        """Return how far apart neighbours are."""
        return self.question.claim

    @property
    def method(self) -> str | None:
        """Return the name of the method for the top k; None for other questions."""
        return self.question.method_name

    @property
    def better(self) -> str:
        """Return the mechanism with the smallest average error in the worst case, all at the cost of `used`."""
        return min(self.equally_dear.values(), key=lambda promised: promised.average).mechanism.name

    @property
    def people_needed(self) -> int | None:
        """Return about how many people a quantile, or the most common value of a rule, needs; None for other questions.

        With fewer, more than 5 of 100 answers by the mechanism `used` may be far from all people.

        >>> from dpselect import analysis
        >>> analysis.plan(question="median", epsilon=1).people_needed
        95
        """
        return self.question.people_needed(self.promises[self.used].mechanism)

    @property
    def suffices(self) -> bool | None:
        """Return whether the budget pays for all questions by the mechanism `used`; None without a budget."""
        if self.question.is_free:
            return None if self.budget is None else True
        allowed = self.costs[self.used].allowed
        return None if allowed is None else allowed >= self.questions

    @property
    def is_shared(self) -> bool:
        """Return whether only a budget was given, which is divided evenly among the questions."""
        return self.epsilon is None and self.rho is None and self.error is None

    @property
    def accuracy(self) -> Mapping[str, Accuracy]:
        """Return the accuracy of each mechanism by name."""
        return {name: self.accuracy_of(promised) for name, promised in self.promises.items()}

    def accuracy_of(self, promised: Promise) -> Accuracy:
        """Return the bounds of one selection as the accuracy of an answer.

        Args:
            promised: one of `promises` or `equally_dear`, or `pure`.

        Returns:
            Its errors in the unit of the question.

        >>> from dpselect import analysis
        >>> planned = analysis.plan(question="median", lower=0, upper=1000, epsilon="0.1")
        >>> promised = planned.promises["exponential"]
        >>> planned.accuracy_of(promised).average == promised.average / 2  # the median's scores are half people
        True
        """
        asked, mechanism = self.question, promised.mechanism
        average, usual, rare = (
            each / asked.unit for each in (promised.average, promised.within_95, promised.within_99)
        )
        together = asked.all_within(mechanism, 0.05) / asked.unit
        method = f"bound {asked.condition or 'for any data'}"
        return Accuracy(average, usual, asked.error_unit, method, within_99=rare, all_within_95=together)

    @property
    def sentences(self) -> list[str]:
        """Return the accuracy and the cost in plain English, for the mechanism `used`. Numbers are rounded up.

        >>> from dpselect import analysis
        >>> analysis.plan(30, question="mode", epsilon="0.1").sentences[0][:72]
        'On average, the chosen value has at most 15.7 fewer people than the most'
        """
        expected = self.accuracy[self.used]
        told = self.question.meaning(*map(shown, expected.bounds))
        return [*filter(None, [f"{told} {self.question.holds}", *self._about_draws(expected), *self._about_costs()])]

    def _about_draws(self, expected: Accuracy) -> list[str]:
        asked, mechanism, rounds = self.question, self.promises[self.used].mechanism, self.question.rounds
        all_of_them, growth, people = "", "", self.people_needed
        if rounds > 1:
            bound = shown(expected.all_within_95)
            all_of_them = f"In 95 of 100 cases, all {rounds:,} differences are less than {bound} (a union bound)."
        if asked.has_range and asked.size > 1:
            more = rarely_exceeded(mechanism, 10 * asked.size, 0.05) / asked.unit - expected.within_95
            growth = (
                f"The bounds grow with the logarithm of the number of candidates: ten times as many add {shown(more)}."
            )
        dense = asked.dense(mechanism)
        needed = "" if people is None else asked.need(people)
        return [self.question.remark(expected.within_95), all_of_them, dense, needed, growth, self.question.shares]

    def _about_costs(self) -> list[str]:
        if self.question.is_free:
            return ["It costs nothing."]
        cost, budget, count = self.costs[self.used], self.budget, f"{self.questions:,}"
        price = f"One question costs {cost.one.words}"
        price += "." if self.questions == 1 else f", and {count} of them {cost.total.words}."
        if budget is None or cost.allowed is None:
            return [price]
        if cost.refusal is not None:
            return [price, f"The budget does not allow it: {cost.refusal}."]
        enough = "" if self.suffices or not cost.allowed else f", not for {count}"
        paid = {0: "no such question", 1: "one such question"}.get(cost.allowed, f"{cost.allowed:,} such questions")
        told = [price, f"A budget of {budget.words} pays for {paid}{enough}."]
        if self.is_shared:  # rounded down, because a price that is copied must not exceed the budget
            told.append(f"Ask each question with {cost.one.words_down}.")
        return told

    @property
    def advice(self) -> list[str]:
        """Return which mechanism to take, and why, in plain English.

        >>> from dpselect import analysis
        >>> analysis.plan(30, question="mode", budget="zcdp:0.5", questions=20).advice[0][:71]
        'Take exponential: at the same cost, rho 0.025 for a question, its avera'
        """
        if self.question.is_free:
            return []
        better, unit = self.better, self.question.error_unit
        bounds = {name: shown(self.accuracy_of(each).average) for name, each in self.equally_dear.items()}
        others = " and ".join(f"that of {name} {bound}" for name, bound in bounds.items() if name != better)
        same = f"at the same cost, {self.costs[self.used].one.words} for a question"
        told = [f"Take {better}: {same}, its average error is at most {bounds[better]} {unit}, and {others}."]
        if not others:
            told = [f"Only {better} draws with this method."]
        if better != self.used:
            told.append(f"The numbers above are those of {self.used}: to use {better}, give mechanism={better!r}.")
        if self.pure is not None and self.pure.average < self.equally_dear[better].average:
            pure, name = shown(self.pure.average / self.question.unit), self.pure.mechanism.name
            told.append(
                f"A pure budget of the same epsilon is better for this number of questions: divided evenly, the average"
                f" error of {name} is at most {pure} {unit}."
            )
        return told

    @property
    def about_methods(self) -> list[str]:
        """Return which method answers and why, and the methods at the same price; nothing except for "top_k".

        >>> from dpselect import analysis
        >>> analysis.plan(1000, question="top_k", k=10, max_values=1, epsilon="0.1").about_methods[0][:55]
        'The method is set, because a person counts for at most '
        """
        if self.method is None:
            return []
        told = self.question.about_method(currency_of(self.budget, self.rho).rho is not None)
        ranked = sorted(self.methods.values(), key=lambda method: method.average)
        if len(ranked) > 1:
            bounds = "; ".join(f"{one.method} {shown(one.average)}" for one in ranked)
            told.append(f"At the same price, the mean count is on average at most this many people too low: {bounds}.")
            if ranked[0].method != self.method:
                told.append(
                    f"{self.method} is taken although its bound is not the smallest: it is a loose bound for the worst"
                    " data. On real counts it wins about as often as it loses, and its wins are larger (docs/top-k.md)."
                )
            told.append("dpselect compare -k shows the errors on public data that are like yours.")
        return told

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in the types of JSON: the question as exact strings, and the results as unrounded floats.

        Returns:
            What `dpselect plan --json` prints.

        >>> from dpselect import analysis
        >>> analysis.plan(1000, epsilon="0.5").to_dict()["mechanisms"][1]["mechanism"]
        'exponential'
        """
        return {
            **self.question.parameters(),
            "candidates": self.candidates,
            **self.claim.to_json(),
            "epsilon": _exact(self.epsilon),
            "rho": _exact(self.rho),
            "error": _exact(self.error),
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
        promised, accuracy, count = self.promises[name], self.accuracy[name], self.question.draws * self.questions
        guarantee = self.question.part(promised.mechanism).guarantee
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
            "total_epsilon": float(guarantee.epsilon * count),
            "total_zcdp": guarantee.zcdp * count,
        }

    def _methods(self) -> dict[str, Any]:
        """The method that is taken and those that it is compared with, if there are any."""
        if self.method is None:
            return {}
        return {"method_taken": self.method, "methods": [asdict(each) for each in self.methods.values()]}

    def _at_equal_cost(self, equal: EqualCost) -> dict[str, Any]:
        return {
            "pure": PermuteAndFlip.name,
            "zcdp": equal.better.mechanism.name,
            "at_total_zcdp": equal.rho * self.question.draws * self.questions,
            **{one.mechanism.name: self._one(one) for one in (equal.exponential, equal.permute_and_flip)},
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


def _exact(number: Fraction | None) -> str | None:
    return None if number is None else exact_text(number)
