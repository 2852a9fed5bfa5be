"""Plan before any data are seen: what accuracy a price gives, what price an accuracy needs, and what a budget pays for.

`plan` is what `dpselect plan` prints, for every kind of question (`questions`). The accuracies hold for all data
(`promises`), the costs are in the arithmetic of a ledger (`costs`), and with many selections the mechanisms are
compared at equal cost (`equal_cost`).
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from dpselect import _html, _validate
from dpselect._numbers import exact_text, shortest_text, shown
from dpselect._scores import as_vector, losses
from dpselect._types import Number, Vector
from dpselect.accounting.budget import AUTO, Budget, Price, PureBudget, as_budget
from dpselect.analysis.calibrate import epsilon_for
from dpselect.analysis.costs import Cost, cost, currency_of, free, share_of
from dpselect.analysis.equal_cost import EqualCost, EqualRounds, Rounds, equal_cost, equal_rounds
from dpselect.analysis.error import error_quantile, expected_error
from dpselect.analysis.plan_tables import plan_table
from dpselect.analysis.promises import ErrorsOf, Promise, promised_by, rarely_exceeded
from dpselect.analysis.questions import Question, Select, TopK, moderate, question_of, whole_number
from dpselect.analysis.top_k_bounds import errors_of
from dpselect.analysis.top_k_words import taken_for
from dpselect.analysis.ways import ByMethod, Way, way_of
from dpselect.errors import InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.parameters import Claim
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.privacy import Guarantee

_MOST_QUESTIONS = 10**9


@dataclass(frozen=True)
class OnScores:
    """A mechanism on public scores: its errors at the given epsilon, or the epsilon that the given error needs."""

    expected_error: float | None = None
    error_95: float | None = None
    epsilon: float | None = None  # None without errors: every epsilon is enough


@dataclass(frozen=True)
class Accuracy:
    """Bounds on the error of an answer that hold for all data.

    Attributes:
        average: the expected error of each selection is at most this.
        within_95: in at least 95 of 100 cases, the error of a selection is smaller than this.
        within_99: in at least 99 of 100 cases, the error of a selection is smaller than this.
        all_within_95: in at least 95 of 100 cases, the errors of all selections of an answer are smaller than this. It
            is a union bound: each of k selections exceeds it in at most 5/k of 100 cases.
        unit: the unit of the errors: people, or units of the scores.

    >>> plan(30, question="mode", epsilon="0.1").accuracy["permute-and-flip"].unit
    'people'
    """

    average: float
    within_95: float
    within_99: float
    all_within_95: float
    unit: str


@dataclass(frozen=True)
class PlannedMethod:
    """A method for the top k at the price of the plan: bounds on its error that hold for all data, in people.

    Attributes:
        method: the name of the method.
        mechanism: the name of the mechanism that draws.
        average: the mean count of the chosen candidates is on average at most this far below that of the k largest.
        within_95: a bound for 95 of 100 cases. What it is about depends on the method (docs/plan.md).

    >>> plan(1000, question="top_k", k=10, max_values=1, epsilon="0.1").methods["set"].mechanism
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
        question: the question, a record of `analysis.questions`.
        epsilon: the epsilon of each question, if it was given.
        rho: the rho of each question, if it was given.
        error: the expected error, if it was given instead.
        budget: the budget that pays, if it was given.
        questions: the number of questions that share the budget.
        delta: the delta of the (epsilon, delta) comparison, if it was given.
        used: the mechanism that draws, as a table with this budget chooses it.
        way: how the question is answered: who draws, how often, and what is charged.
        methods: for "top_k", the methods that can answer, at the price that the plan has for `used`.
        promises: the bounds of one selection by each mechanism, in units of the scores.
        costs: what each mechanism costs.
        equally_dear: the bounds of each mechanism at the price that `used` costs, in the currency of the budget.
        pure: for an (epsilon, delta) budget, the bounds of the mechanism for a pure budget of the same epsilon.
        on_scores: the exact results of each mechanism on the given scores.
        equal_cost: the comparison at equal zCDP, for more than one question.
        equal_rounds: the comparison under (epsilon, delta), if a delta was given.

    >>> planned = plan(30, question="mode", budget="zcdp:0.5", questions=20)
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
    way: Way
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
        return f"Plan({self.question.code(', '.join(price), self.questions)})"

    def _repr_html_(self) -> str:
        """What a notebook shows: what `dpselect plan` prints of public numbers, and nothing of `on_scores`."""
        unit = self.question.per_person
        title = f"{self.question.title}: how far the answer can be off, for any data, in {unit}"
        told = [self.sentences, self.about_methods, self.advice]
        texts = [_html.paragraph(" ".join(sentences)) for sentences in told if sentences]
        return _html.page(_html.table(*plan_table(self), caption=title, is_numeric=True), *texts)

    @property
    def candidates(self) -> int:
        """Return the number of candidates."""
        return self.question.size

    @property
    def claim(self) -> Claim:
        """Return how far apart neighbours are."""
        return self.way.claim

    @property
    def method(self) -> str | None:
        """Return the name of the method for the top k; None for other questions."""
        return self.way.method.name if isinstance(self.way, ByMethod) else None

    @property
    def selections(self) -> int:
        """Return the number of questions: the older name for questions that are one selection each."""
        return self.questions

    @property
    def better(self) -> str:
        """Return the mechanism with the smallest average error in the worst case, all at the cost of `used`."""
        return min(self.equally_dear.values(), key=lambda promised: promised.average).mechanism.name

    @property
    def people_needed(self) -> int | None:
        """Return about how many people a quantile, or the most common value of a rule, needs; None for other questions.

        With fewer, more than 5 of 100 answers by the mechanism `used` may be far from all people.

        >>> plan(question="median", epsilon=1).people_needed
        95
        """
        return self.question.people_needed(self.promises[self.used].mechanism)

    @property
    def suffices(self) -> bool | None:
        """Return whether the budget pays for all questions by the mechanism `used`; None without a budget."""
        if self.way.is_free:
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

        >>> planned = plan(question="median", lower=0, upper=1000, epsilon="0.1")
        >>> promised = planned.promises["exponential"]
        >>> planned.accuracy_of(promised).average == promised.average / 2  # the median's scores are half people
        True
        """
        asked, mechanism = self.question, promised.mechanism
        return Accuracy(
            promised.average / asked.unit,
            promised.within_95 / asked.unit,
            promised.within_99 / asked.unit,
            self.way.all_within(mechanism, 0.05) / asked.unit,
            asked.per_person,
        )

    @property
    def sentences(self) -> list[str]:
        """Return the accuracy and the cost in plain English, for the mechanism `used`. Numbers are rounded up.

        >>> plan(30, question="mode", epsilon="0.1").sentences[0][:72]
        'On average, the chosen value has at most 15.7 fewer people than the most'
        """
        expected = self.accuracy[self.used]
        told = self.way.meaning(*map(shown, (expected.average, expected.within_95, expected.within_99)))
        return [*filter(None, [f"{told} This holds for any data.", *self._about_draws(expected), *self._about_costs()])]

    def _about_draws(self, expected: Accuracy) -> list[str]:
        asked, mechanism, rounds = self.question, self.promises[self.used].mechanism, self.way.rounds
        all_of_them, growth, people = "", "", self.people_needed
        if rounds > 1:
            bound = shown(expected.all_within_95)
            all_of_them = f"In 95 of 100 cases, all {rounds:,} differences are less than {bound} (a union bound)."
        if asked.has_range and asked.size > 1:
            more = rarely_exceeded(mechanism, 10 * asked.size, 0.05) / asked.unit - expected.within_95
            growth = (
                f"The bounds grow with the logarithm of the number of candidates: ten times as many add {shown(more)}."
            )
        usual = asked.usual_error(mechanism)
        dense = "" if usual is None else f"If values lie densely, expect about {shown(usual)} {asked.per_person}."
        needed = "" if people is None else asked.need(people)
        return [self.way.remark(expected.within_95), all_of_them, dense, needed, growth, self.way.shares]

    def _about_costs(self) -> list[str]:
        if self.way.is_free:
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

        >>> plan(30, question="mode", budget="zcdp:0.5", questions=20).advice[0][:71]
        'Take exponential: at the same cost, rho 0.025 for a question, its avera'
        """
        if self.way.is_free:
            return []
        better, unit = self.better, self.question.per_person
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

        >>> plan(1000, question="top_k", k=10, max_values=1, epsilon="0.1").about_methods[0][:55]
        'The method is set, because a person counts for at most '
        """
        if not (isinstance(self.way, ByMethod) and isinstance(self.question, TopK)):
            return []
        currency = currency_of(self.budget, self.rho)
        told = [taken_for(self.way.method, currency.rho is not None, self.question.method)]
        ranked = sorted(self.methods.values(), key=lambda method: method.average)
        if len(ranked) > 1:
            bounds = "; ".join(f"{one.method} {shown(one.average)}" for one in ranked)
            told.append(
                f"At the same price, the mean count is on average at most this many people too low: {bounds}. These"
                " bounds hold for any data, and some are less tight than others. dpselect compare -k shows the errors"
                " on public data that are like yours."
            )
        return told

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in the types of JSON: the question as exact strings, and the results as unrounded floats.

        Returns:
            What `dpselect plan --json` prints.

        >>> plan(1000, epsilon="0.5").to_dict()["mechanisms"][1]["mechanism"]
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
            "selections": self.questions,
            "unit": self.question.per_person,
            "mechanisms": [self._promised(name) for name in self.promises],
            "costs": [each.to_dict() for each in self.costs.values()],
            "used": self.used,
            "better": self.better,
            "people_needed": self.people_needed,
            "suffices": self.suffices,
            "sentences": [*self.sentences, *self.about_methods, *self.advice],
            **self._methods(),
            "better_for_one": PermuteAndFlip.name,
            "better_for_many": None if self.equal_cost is None else self._at_equal_cost(self.equal_cost),
            "approximate": None if self.equal_rounds is None else self._approximate(self.equal_rounds),
            "proxy": {"mechanisms": [self._on_scores(name) for name in self.on_scores]} if self.on_scores else None,
        }

    def _promised(self, name: str) -> dict[str, Any]:
        promised, accuracy, count = self.promises[name], self.accuracy[name], self.way.draws * self.questions
        guarantee = self.way.part(promised.mechanism).guarantee
        together = {"all_95": accuracy.all_within_95} if self.way.rounds > 1 else {}
        if self.way.is_free:
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
            "at_total_zcdp": equal.rho * self.way.draws * self.questions,
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


def plan(  # noqa: PLR0913 - the question, by keyword
    candidates: int | None = None,
    *,
    question: str | Question | None = None,
    epsilon: Number | None = None,
    rho: Number | None = None,
    error: Number | None = None,
    budget: Number | Budget | None = None,
    questions: int | None = None,
    mechanism: str = AUTO,
    rule: str | None = None,
    k: int | tuple[int, int] | None = None,
    method: str | None = None,
    max_values: int | None = None,
    ordered: bool = False,
    level: Number | None = None,
    levels: Any = None,
    lower: Any = None,
    upper: Any = None,
    step: Any = None,
    range: str | None = None,
    max_rows: int | None = None,
    groups: int | None = None,
    max_groups: int | None = None,
    neighbours: str | None = None,
    sensitivity: Number | None = None,
    monotonic: bool = False,
    score_range: Number | None = None,
    selections: int | None = None,
    delta: Number | None = None,
    scores: Any = None,
) -> Plan:
    """Plan what accuracy to expect from a price, or what price an accuracy needs, before any data are seen.

    Give one of `epsilon`, `rho` and `error`, or only a `budget`, which is then divided evenly among the questions. All
    bounds hold for all data, and follow from public numbers alone. With `scores`, which should be public or
    synthetic, the plan also has exact results on these scores.

    Args:
        candidates: the number of candidates of "mode", "top_k" and "select", or of a quantile instead of a range. For
            "select" it is the length of `scores` if omitted.
        question: "mode", "top_k", "median", "quantile", "quantiles", or "select" for scores of your own, which is the
            default; or a record of `analysis.questions`.
        epsilon: the epsilon of each question; the plan then has its error.
        rho: the rho of zCDP of each question, instead of epsilon.
        error: the acceptable average error, in people or in units of the scores; the plan then has the epsilon.
        budget: what pays for all questions: a number, text such as "zcdp:0.5" or "1,1e-6", or a `Budget`.
        questions: the number of such questions that share one budget; 1 if omitted.
        mechanism: "auto" for the one that a table with this budget uses, or the name of one.
        rule: for "mode" and "top_k", the rule that the candidates follow, in words, if they are not listed.
        k: the number of candidates that "top_k" returns, or a pair for the method "margin".
        method: the method of "top_k", such as "set"; "auto" if omitted.
        max_values: for how many candidates of "top_k" one person counts at most; any number if omitted. It is 1 if rows
            are counted.
        ordered: whether the answer of "top_k" is in order, best first.
        level: the level of "quantile", such as 0.9.
        levels: the levels of "quantiles", such as [0.1, 0.5, 0.9] or "deciles".
        lower: the smallest candidate of "median", "quantile" and "quantiles". Without both ends, the plan takes 2**64
            candidates, the most that a column's type can have.
        upper: the largest one.
        step: the step between candidates; 1 if omitted.
        range: "log" for the candidates of `range="log"` of a table, about 5,000, instead of a range.
        max_rows: with how many rows a person counts, for `per_person="rows"`; once if omitted.
        groups: the number of groups of a grouped table.
        max_groups: in how many groups a person may count; 1 if omitted.
        neighbours: "add-remove", which is the default, or "replace".
        sensitivity: for "select", the largest change of any single score when one person changes; 1 if omitted.
        monotonic: for "select", whether one person moves all scores in the same direction, as with counts of people.
        score_range: for "select", the largest change of the difference of two scores; replaces the other two.
        selections: the older name of `questions`.
        delta: if given, also compare the total cost as (epsilon, delta), by the best accounting for epsilons that are
            fixed in advance. Needs dp-accounting.
        scores: public or synthetic scores, one for each candidate of "select".

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
    price = _price(budget is not None, epsilon=epsilon, rho=rho, error=error)
    paid = None if budget is None else as_budget(budget)
    count = _count(questions, selections)
    doubt = None if delta is None else _validate.fraction_of_one(delta=delta)
    if doubt is not None and paid is not None and not paid.delta:
        raise InvalidValue("delta does not belong to this budget: give an (epsilon, delta) budget such as '1,1e-6'")
    vector = None if scores is None else as_vector(scores)
    if question is None or question == Select.name:
        candidates = _size(candidates, vector)
    elif vector is not None:
        raise InvalidValue("scores are for the question 'select': leave them out")
    given = {
        "candidates": candidates,
        "rule": rule,
        "k": k,
        "method": method,
        "max_values": max_values,
        "ordered": None if ordered is False else ordered,
        "level": level,
        "levels": levels,
        "lower": lower,
        "upper": upper,
        "step": step,
        "range": range,
        "max_rows": max_rows,
        "groups": groups,
        "max_groups": max_groups,
        "neighbours": neighbours,
        "sensitivity": sensitivity,
        "monotonic": None if monotonic is False else monotonic,
        "score_range": score_range,
    }
    asked = question_of(Select.name if question is None else question, given)
    if doubt is not None and asked.is_split:
        raise InvalidValue("delta is for questions of one selection: leave it out, and give an (epsilon, delta) budget")
    unit = Price(rho=1, mechanism=mechanism) if "rho" in price else Price(1, mechanism=mechanism)
    way = way_of(asked, unit, paid)
    used = way.used(unit, paid)
    if used not in way.mechanisms:
        raise InvalidValue(f"mechanism must be one of {', '.join([AUTO, *way.mechanisms])} for {asked.name}")
    return _planned(way, used, price, paid, count, doubt, mechanism, vector)


def _price(has_budget: bool, **given: Any) -> dict[str, Fraction]:
    """The only one of epsilon, rho and error that is given; nothing if the budget is to be divided."""
    price = {name: moderate(**{name: number}) for name, number in given.items() if number is not None}
    if len(price) > 1 or not (price or has_budget):
        raise InvalidValue(
            "give exactly one of epsilon, rho and error, or only a budget, which is then divided among the questions"
        )
    return price


def _count(questions: Any, selections: Any) -> int:
    if questions is not None and selections is not None:
        raise InvalidValue("give only questions: selections is its older name")
    if questions is None:
        return whole_number(1, _MOST_QUESTIONS, selections=1 if selections is None else selections)
    return whole_number(1, _MOST_QUESTIONS, questions=questions)


def _size(candidates: int | None, vector: Vector | None) -> int | None:
    if candidates is None and vector is None:
        raise InvalidValue("give candidates, the number of candidates, or public scores")
    return len(vector) if candidates is None and vector is not None else candidates


def _planned(  # noqa: PLR0913, PLR0917 - what `plan` has checked
    way: Way,
    used: str,
    price: Mapping[str, Fraction],
    budget: Budget | None,
    count: int,
    delta: float | None,
    mechanism: str,
    vector: Vector | None,
) -> Plan:
    error = price.get("error")
    paid = price if price or budget is None else share_of(budget, way, count)
    rho, currency = paid.get("rho"), currency_of(budget, paid.get("rho"))
    drawing = {name: _mechanism(way, name, paid) for name in way.mechanisms}
    costs = {name: _cost(way, one, rho, count, budget, currency) for name, one in drawing.items()}
    same = _same_price(costs[used], currency)
    exponential = None if way.is_free else drawing.get(ExponentialMechanism.name)
    return Plan(
        question=way.question,
        epsilon=price.get("epsilon"),
        rho=price.get("rho"),
        error=error,
        budget=budget,
        questions=count,
        delta=delta,
        used=used,
        way=way,
        methods=_methods(way, Price(**same, mechanism=mechanism), budget),
        promises={name: way.promise(one) for name, one in drawing.items()},
        costs=costs,
        equally_dear={name: way.promise(way.drawn(name, **same)) for name in way.mechanisms},
        pure=None if price or budget is None else _from_pure_budget(way, budget, count),
        on_scores={} if vector is None else {name: _on_scores(one, vector, error) for name, one in drawing.items()},
        equal_cost=None if count == 1 else _compared(way, exponential, equal_cost),
        equal_rounds=None
        if delta is None
        else _compared(way, exponential, partial(equal_rounds, count=count * way.draws, delta=delta)),
    )


_Compared = TypeVar("_Compared")


def _compared(
    way: Way, exponential: MechanismBase | None, compare: Callable[[MechanismBase, ErrorsOf], _Compared]
) -> _Compared | None:
    """The exponential mechanism compared with permute-and-flip, if both can draw, and their bounds are of one kind."""
    if exponential is None or way.errors is None or PermuteAndFlip.name not in way.mechanisms:
        return None
    return compare(exponential, way.errors)


def _mechanism(way: Way, name: str, price: Mapping[str, Fraction]) -> MechanismBase:
    """The mechanism that draws at this price of the question, or the one with this error."""
    if way.is_free:
        return way.drawn(name, epsilon=Fraction(1))
    return way.with_error(name, price["error"]) if "error" in price else way.drawn(name, **price)


def _cost(  # noqa: PLR0913, PLR0917 - what `_planned` has found
    way: Way, mechanism: MechanismBase, rho: Fraction | None, count: int, budget: Budget | None, currency: Budget
) -> Cost:
    return free(currency) if way.is_free else cost(way.charge(mechanism, rho), count, budget, currency)


def _same_price(paid: Cost, currency: Budget) -> dict[str, Fraction]:
    """The epsilon or rho of a question, by the currency; any epsilon if it costs nothing."""
    charge = paid.charge
    if charge is None:
        return {"epsilon": Fraction(1)}
    return {"epsilon": charge.each * charge.count} if currency.rho is None else {"rho": charge.rho}


def _methods(way: Way, price: Price, budget: Budget | None) -> dict[str, PlannedMethod]:
    """The methods for the top k that can answer at this price; nothing for other questions."""
    if not isinstance(way, ByMethod):
        return {}
    found = {**way.choice.applicable(price, budget), way.method.name: way.choice.drawn(way.method, price, budget)}
    planned = {}
    for name, (method, mechanism) in found.items():
        promised = promised_by(mechanism, partial(errors_of, method))
        planned[name] = PlannedMethod(name, mechanism.name, promised.average, promised.within_95)
    return planned


def _from_pure_budget(way: Way, budget: Budget, count: int) -> Promise | None:
    """Pure epsilon implies (epsilon, delta), and for a few questions it may leave more for each of them."""
    if budget.epsilon is None or budget.rho is None or way.is_free:
        return None
    pure = PureBudget(budget.epsilon)
    unit = Price(1)
    other = way_of(way.question, unit, pure)
    return other.promise(other.drawn(other.used(unit, pure), **share_of(pure, other, count)))


def _on_scores(mechanism: MechanismBase, scores: Vector, error: Fraction | None) -> OnScores:
    if error is None:
        return OnScores(expected_error(mechanism, scores), error_quantile(mechanism, scores, 0.95))
    target = float(error)
    if losses(scores).mean() <= target:  # the error of a uniform choice: no mechanism exceeds it
        return OnScores()
    return OnScores(epsilon=epsilon_for(type(mechanism), scores, expected_error=target, **mechanism.claim.arguments()))
