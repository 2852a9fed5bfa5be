"""Plan before any data are seen: what accuracy a price gives, what price an accuracy needs, and what a budget pays for.

`plan` is what `dpselect plan` prints, for every kind of question (`questions`). The accuracies hold for all data
(`promises`), the costs are in the arithmetic of a ledger (`costs`), and with many selections the mechanisms are
compared at equal cost (`equal_cost`).
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar, cast

from dpselect import _validate
from dpselect._scores import as_vector, losses
from dpselect._types import Number, Vector
from dpselect.accounting.budget import AUTO, Budget, Price, as_budget, pure
from dpselect.analysis.error import epsilon_for, error_quantile, expected_error
from dpselect.analysis.promises import ErrorsOf, Promise, promised_by
from dpselect.errors import InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.questions.costs import Cost, cost, currency_of, equal_cost, equal_rounds, free, share_of
from dpselect.questions.methods import Method, Peel
from dpselect.questions.options import named
from dpselect.questions.plans import OnScores, Plan, PlannedMethod
from dpselect.questions.question import Question, Select
from dpselect.questions.unlisted import plan_found

_FOUND = ("mode", "top_k", "values")  # what can be asked about values that nobody listed


def plan(  # noqa: PLR0913 - the question, by keyword
    candidates: int | None = None,
    *,
    question: str | Question | None = None,
    epsilon: Number | None = None,
    rho: Number | None = None,
    error: Number | None = None,
    budget: Number | Budget | None = None,
    questions: int = 1,
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
        delta: if given, also compare the total cost as (epsilon, delta), by the best accounting for epsilons that are
            fixed in advance. Needs dp-accounting.
        scores: public or synthetic scores, one for each candidate of "select".
        stated: fields of questions that are defined elsewhere.

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
    if question in _FOUND and candidates is None and (delta is not None or question == "values"):
        if error is not None or method not in (None, AUTO, Peel.name):
            name = "method" if error is None else "error"
            raise InvalidValue(f"{name} needs candidates: leave it out for values that are found")
        people: dict[str, Any] = {"groups": groups, "max_groups": max_groups, "neighbours": neighbours}
        paying: dict[str, Any] = {"mechanism": mechanism, "budget": budget, "questions": questions}
        number: dict[str, Any] = {"k": k, "max_values": max_values}
        return cast(
            "Plan", plan_found(str(question), epsilon=epsilon, rho=rho, delta=delta, **number, **people, **paying)
        )
    price = _price(budget is not None, epsilon=epsilon, rho=rho, error=error)
    paid = None if budget is None else as_budget(budget)
    count = _validate.count(1, _validate.MANY, questions=questions)
    doubt = None if delta is None else _validate.fraction_of_one(delta=delta)
    if doubt is not None and paid is not None and not paid.delta:
        raise InvalidValue("delta does not belong to this budget: give an (epsilon, delta) budget such as '1,1e-6'")
    _validate.warn_of_large_delta(doubt or 0)
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
        **stated,
    }
    asked = question_of(Select.name if question is None else question, given)
    if doubt is not None and asked.is_split:
        raise InvalidValue("delta is for questions of one selection: leave it out, and give an (epsilon, delta) budget")
    unit = Price(rho=1, mechanism=mechanism) if "rho" in price else Price(1, mechanism=mechanism)
    asked = asked.settled(unit, paid)
    used = asked.used(unit, paid)
    if used not in asked.mechanisms:
        raise InvalidValue(f"mechanism must be one of {', '.join([AUTO, *asked.mechanisms])} for {asked.name}")
    return _planned(asked, used, price, paid, count, doubt, mechanism, vector)


def _price(has_budget: bool, **given: Any) -> dict[str, Fraction]:
    """The only one of epsilon, rho and error that is given; nothing if the budget is to be divided."""
    price = {name: _validate.moderate(**{name: number}) for name, number in given.items() if number is not None}
    if len(price) > 1 or not (price or has_budget):
        raise InvalidValue(
            "give exactly one of epsilon, rho and error, or only a budget, which is then divided among the questions"
        )
    return price


def _size(candidates: int | None, vector: Vector | None) -> int | None:
    if candidates is None and vector is None:
        raise InvalidValue("give candidates, the number of candidates, or public scores")
    return len(vector) if candidates is None and vector is not None else candidates


def _planned(  # noqa: PLR0913, PLR0917 - what `plan` has checked
    asked: Question,
    used: str,
    price: Mapping[str, Fraction],
    budget: Budget | None,
    count: int,
    delta: float | None,
    mechanism: str,
    vector: Vector | None,
) -> Plan:
    error = price.get("error")
    paid = price if price or budget is None else share_of(budget, asked, count)
    rho, currency = paid.get("rho"), currency_of(budget, paid.get("rho"))
    drawing = {name: _mechanism(asked, name, paid) for name in asked.mechanisms}
    costs = {name: _cost(asked, one, rho, count, budget, currency) for name, one in drawing.items()}
    same = _same_price(costs[used], currency)
    exponential = None if asked.is_free else drawing.get(ExponentialMechanism.name)
    return Plan(
        question=asked,
        epsilon=price.get("epsilon"),
        rho=price.get("rho"),
        error=error,
        budget=budget,
        questions=count,
        delta=delta,
        used=used,
        methods=_methods(asked, Price(**same, mechanism=mechanism), budget),
        promises={name: asked.promise(one) for name, one in drawing.items()},
        costs=costs,
        equally_dear={name: asked.promise(asked.drawn(name, **same)) for name in asked.mechanisms},
        pure=None if price or budget is None else _from_pure_budget(asked, budget, count),
        on_scores={} if vector is None else {name: _on_scores(one, vector, error) for name, one in drawing.items()},
        equal_cost=None if count == 1 else _compared(asked, exponential, equal_cost),
        equal_rounds=None
        if delta is None
        else _compared(asked, exponential, partial(equal_rounds, count=count * asked.draws, delta=delta)),
    )


_Compared = TypeVar("_Compared")


def _compared(
    asked: Question, exponential: MechanismBase | None, compare: Callable[[MechanismBase, ErrorsOf], _Compared]
) -> _Compared | None:
    """The exponential mechanism compared with permute-and-flip, if both can draw, and their bounds are of one kind."""
    if exponential is None or asked.errors is None or PermuteAndFlip.name not in asked.mechanisms:
        return None
    return compare(exponential, asked.errors)


def _mechanism(asked: Question, name: str, price: Mapping[str, Fraction]) -> MechanismBase:
    """The mechanism that draws at this price of the question, or the one with this error."""
    if asked.is_free:
        return asked.drawn(name, epsilon=Fraction(1))
    return asked.with_error(name, price["error"]) if "error" in price else asked.drawn(name, **price)


def _cost(  # noqa: PLR0913, PLR0917 - what `_planned` has found
    asked: Question, mechanism: MechanismBase, rho: Fraction | None, count: int, budget: Budget | None, currency: Budget
) -> Cost:
    return free(currency) if asked.is_free else cost(asked.charge(mechanism, rho), count, budget, currency)


def _same_price(paid: Cost, currency: Budget) -> dict[str, Fraction]:
    """The epsilon or rho of a question, by the currency; any epsilon if it costs nothing."""
    charge = paid.charge
    if charge is None:
        return {"epsilon": Fraction(1)}
    return {"epsilon": charge.each * charge.count} if currency.rho is None else {"rho": charge.rho}


def _methods(asked: Question, price: Price, budget: Budget | None) -> dict[str, PlannedMethod]:
    """The methods for the top k that can answer at this price; nothing for other questions."""
    planned = {}
    for name, draw in asked.applicable(price, budget).items():
        promised = promised_by(draw.mechanism, cast("Method", draw.method).bounds)
        planned[name] = PlannedMethod(name, draw.mechanism.name, promised.average, promised.within_95)
    return planned


def _from_pure_budget(asked: Question, budget: Budget, count: int) -> Promise | None:
    """Pure epsilon implies (epsilon, delta), and for a few questions it may leave more for each of them."""
    if budget.epsilon is None or budget.rho is None or asked.is_free:
        return None
    unit, without_delta = Price(1), pure(budget.epsilon)
    other = asked.settled(unit, without_delta)
    return other.promise(other.drawn(other.used(unit, without_delta), **share_of(without_delta, other, count)))


def _on_scores(mechanism: MechanismBase, scores: Vector, error: Fraction | None) -> OnScores:
    if error is None:
        return OnScores(expected_error(mechanism, scores), error_quantile(mechanism, scores, 0.95))
    target = float(error)
    if losses(scores).mean() <= target:  # the error of a uniform choice: no mechanism exceeds it
        return OnScores()
    return OnScores(epsilon=epsilon_for(type(mechanism), scores, expected_error=target, **mechanism.claim.arguments()))


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
    entry = named(question)
    kind, fixed = entry.record, entry.fixed
    known = {each.name: each for each in fields(kind) if each.name not in fixed and "of_table" not in each.metadata}
    for name in stated_fields:
        if name not in known and name in {each.name for each in entry.planning}:
            raise InvalidValue(f"{name} is for values that nobody listed: give delta instead of candidates")
        if name not in known:
            raise InvalidValue(f"{name} is not a parameter of {question}, which takes {', '.join(sorted(known))}")
    for name, text in entry.defaults.items():
        stated_fields.setdefault(name, text)
    missing = [name for name, field in known.items() if _is_required(field) and name not in stated_fields]
    if missing:
        raise InvalidValue(f"{question} needs {' and '.join(missing)}")
    asked: Question = kind(**stated_fields, **fixed)
    return asked


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING
