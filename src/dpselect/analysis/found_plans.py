"""Plans for values that nobody listed: how many people must have a value so that it is found. From public numbers.

**Values, by coins.** A value that n people have comes out with the probability pi(n) of `mechanisms.finding`.

**The most common ones, above "nothing"** (`mechanisms.thresholds`). "Nothing" has the score s = 1 + T, and the rate is
c for each person. A value that n = s + g people have, g >= 0, and that no other value competes with, loses

    permute-and-flip   exp(-c g) / 2           if "nothing" is asked first, which has probability 1/2, and its coin,
                                               of probability exp(-c g), is heads;
    exponential        x / (1 + x), x = exp(-c g).

In the unlimited version it also loses to `MOST` anonymous candidates of score 0. Their weight is at most
MOST exp(-c n) = exp(-c g) exp(-c) MOST exp(-c T) <= exp(-c g) delta / F, with F >= 1/2 for permute-and-flip and F >= 1
for the exponential mechanism. With permute-and-flip a candidate wins with at most half its weight against a better one
(theorem 18), so all of them win with at most exp(-c g) delta. So with d = delta, or d = 0 in the limited version, the
value loses with probability at most q <= 1/2 if

    permute-and-flip   g >= ln((1/2 + d) / q) / c,
    exponential        g >= ln((1 + d) (1 - q) / q) / c.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from dpselect import _validate
from dpselect._numbers import exact_text, shortest_text, shown
from dpselect._types import Number
from dpselect.accounting.budget import AUTO, Budget, Price, as_budget
from dpselect.accounting.charge import EXPONENTIAL_FOUND, PARTITION_SELECTION, Charge
from dpselect.analysis.costs import times_allowed
from dpselect.analysis.plans import Texts, shown_in_notebook
from dpselect.analysis.questions import divided, whole_number
from dpselect.analysis.ways import WHAT
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.finding import Finding
from dpselect.mechanisms.parameters import Neighbours, neighbours_of
from dpselect.mechanisms.privacy import PURE_LOSS
from dpselect.mechanisms.thresholds import MOST, Factor, Threshold, threshold
from dpselect.sampling.enclosure import log_bracket

_VALUES, _MODE, _TOP_K = "values", "mode", "top_k"
_HALF, _RARELY = Fraction(1, 2), Fraction(1, 20)
_DIGITS = 40
_MOST_VALUES = 2**53
_MOST_QUESTIONS = 10**9


@dataclass(frozen=True, repr=False)
class FoundPlan:
    """How many people must have a value so that it is found, and what the question costs. Public numbers only.

    Attributes:
        question: "values", "mode" or "top_k".
        k: the largest number of values of "top_k", otherwise 1 or, for "values", None.
        max_values: for how many values a person counts; None for any number.
        neighbours: "add-remove" or "replace".
        groups: the number of groups; None for one answer.
        max_groups: in how many groups a person may count.
        price: epsilon or rho, and delta, of a question.
        mechanism: the name of what draws.
        draws: how many draws one person can influence.
        each: the epsilon and the delta of each draw.
        half: a value that this many people have is found with probability 1/2.
        usual: a value that this many people have is found in 95 of 100 cases.
        surely: a value that this many people have is always found; None if there is no such number.
        nothing: the score of "nothing", in people; None for "values".
        limited: the same plan with max_values=1, if there is no limit; otherwise None.
        budget: the budget that pays, if it was given.
        questions: the number of questions that share the budget.
        allowed: how many such questions the budget pays for; None without a budget.
        refusal: why the budget allows none, if it is for another reason than its size.

    >>> planned = plan_found("values", epsilon=1, delta="1e-6")
    >>> planned.half, planned.usual, planned.surely
    (14, 16, 28)
    """

    question: str
    k: int | None
    max_values: int | None
    neighbours: str
    groups: int | None
    max_groups: int
    price: Price
    mechanism: str
    draws: int
    each: tuple[Fraction, Fraction]
    half: int
    usual: int
    surely: int | None
    nothing: Fraction | None
    limited: "FoundPlan | None"
    budget: Budget | None
    questions: int
    allowed: int | None
    refusal: str | None

    def __repr__(self) -> str:
        given = {"k": self.k if self.question == _TOP_K else None, "max_values": self.max_values, "groups": self.groups}
        stated = [f"{name}={value}" for name, value in given.items() if value is not None]
        price = {"epsilon": self.price.epsilon, "rho": self.price.rho, "delta": self.price.delta}
        stated += [f"{name}={shortest_text(number)}" for name, number in price.items() if number is not None]
        return f"FoundPlan({self.question!r}, {', '.join(stated)})"

    def _repr_html_(self) -> str:
        """What a notebook shows: what `dpselect plan values` prints."""
        return shown_in_notebook(self)

    @property
    def subject(self) -> str:
        """Return what the numbers of the table are about."""
        return "how many people must have a value so that it is found"

    @property
    def table(self) -> Texts:
        """Return the heads and the rows of a table: how many people must have a value so that it is found.

        >>> plan_found("values", epsilon=1, delta="1e-6").table[1][0][1:]
        ['14', '16', '28']
        """
        rows = {"" if self.limited is None else "any number of values": self}
        rows |= {} if self.limited is None else {"max-values 1": self.limited}
        heads = ["\nmechanism", "probability\n1/2", "95 of\n100"] + (["\nalways"] if self.surely is not None else [])
        texts = []
        for name, each in rows.items():
            people = [each.half, each.usual] + ([] if each.surely is None else [each.surely])
            texts.append([", ".join(filter(None, [each.mechanism, name])), *(f"{number:,}" for number in people)])
        return heads, texts

    @property
    def paragraphs(self) -> dict[str, str]:
        """Return what the numbers mean, by titles."""
        return {"In words": " ".join(self.sentences)}

    @property
    def title(self) -> str:
        """Return the question in words."""
        what = {
            _VALUES: "The values that enough people have",
            _MODE: "The most common value, found in the data",
            _TOP_K: f"Up to {self.k} most common values, found in the data",
        }[self.question]
        if self.max_values is None:
            return f"{what}, with any number of values for each person"
        limit = "one value" if self.max_values == 1 else f"at most {self.max_values:,} values"
        return f"{what}, with {limit} for each person"

    @property
    def sentences(self) -> list[str]:
        """Return in plain English how many people a value needs, and what a question costs.

        >>> plan_found("values", epsilon=1, delta="1e-6").sentences[0]
        'A value is found with probability 1/2 if 14 people have it, in 95 of 100 cases if 16 have it, and always if 28 have it.'
        """  # noqa: E501 - a sentence of output
        where = "" if self.groups is None else " of a group"
        if self.nothing is None:
            told = [
                f"A value is found with probability 1/2 if {self.half:,} people{where} have it, in 95 of 100 cases if"
                f" {self.usual:,} have it, and always if {self.surely:,} have it.",
            ]
        else:
            told = [
                f'"Nothing was common enough" competes like a value that {shown(float(self.nothing))} people have.',
                f"A value that no other one competes with wins against it with probability 1/2 if {self.half:,}"
                f" people{where} have it, and in 95 of 100 cases if {self.usual:,} have it.",
            ]
        return [*told, *filter(None, [self.condition, self._about_limit, self._about_shares, *self._about_costs])]

    @property
    def condition(self) -> str:
        """Return in words whom these numbers count; nothing if everybody counts for all their values."""
        if self.max_values is None:
            return ""
        chosen = "one value" if self.max_values == 1 else f"{self.max_values:,} values"
        return f"These are people for whom the value counts: of people with more than {chosen}, some chosen at random."

    @property
    def _about_limit(self) -> str:
        if self.limited is None:
            return ""
        return (
            f"If more than {MOST:,} values occur, a value needs as many people more as the first one that is left out"
            f" has. With max_values=1, {self.limited.usual:,} people are enough for 95 of 100 cases."
        )

    @property
    def _about_shares(self) -> str:
        return divided(self.draws, "coins" if self.question == _VALUES else "selections")

    @property
    def _about_costs(self) -> list[str]:
        currency = "epsilon" if self.price.rho is None else "rho"
        price, delta = getattr(self.price, currency), self.price.delta
        told = [f"One question costs {currency} {shown(float(price))} and delta {shown(float(delta))}."]
        if self.budget is None:
            return told
        if self.refusal is not None:
            return [*told, f"The budget does not allow it: {self.refusal}."]
        paid = {0: "no such question", 1: "one such question"}.get(self.allowed or 0, f"{self.allowed:,} of them")
        enough = "" if not self.allowed or self.allowed >= self.questions else f", not for {self.questions:,}"
        return [*told, f"A budget of {self.budget.words} pays for {paid}{enough}."]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in the types of JSON; exact numbers are text.

        Returns:
            What `dpselect plan values --json` prints.

        >>> plan_found("mode", epsilon=1, delta="1e-6", max_values=1).to_dict()["people_95"]
        17
        """
        price = {"epsilon": self.price.epsilon, "rho": self.price.rho, "delta": self.price.delta}
        return {
            "question": self.question,
            "k": self.k,
            "max_values": self.max_values,
            "neighbours": self.neighbours,
            "groups": self.groups,
            "max_groups": self.max_groups,
            **{name: None if number is None else exact_text(number) for name, number in price.items()},
            "mechanism": self.mechanism,
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


def plan_found(  # noqa: PLR0913 - the question, by keyword
    question: str,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    k: int | None = None,
    max_values: int | None = None,
    groups: int | None = None,
    max_groups: int | None = None,
    neighbours: str | None = None,
    mechanism: str = AUTO,
    budget: Number | Budget | None = None,
    questions: int = 1,
) -> FoundPlan:
    """Plan a question about values that nobody listed: how many people must have a value so that it is found.

    Args:
        question: "values" for `Table.values` and for groups that are found; "mode" or "top_k" for those without
            candidates.
        epsilon: the epsilon of each question.
        rho: the rho of zCDP of each question, instead of epsilon.
        delta: the delta of each question.
        k: the largest number of values of "top_k".
        max_values: for how many values a person counts. For "values" it is 1 if omitted; for the others it is any
            number. It is 1 if rows are counted. For groups that are found, it is their `max_groups`.
        groups: the number of groups of a grouped table.
        max_groups: in how many groups a person may count; 1 if omitted.
        neighbours: "add-remove", which is the default, or "replace".
        mechanism: "auto" for the one that a table with this budget uses, or the name of one. For "values" it is not
            used.
        budget: what pays for all questions: a number, text such as "zcdp:0.5,1e-6" or "1,1e-6", or a `Budget`.
        questions: the number of such questions that share one budget.

    Returns:
        The plan.

    Raises:
        InvalidType: an argument is not a number.
        InvalidValue: an argument is missing, does not belong to the question, or is out of range.

    >>> plan_found("mode", epsilon=1, delta="1e-9", max_values=1).usual
    24
    >>> plan_found("mode", epsilon=1, delta="1e-9").usual
    33
    """
    if question not in (_VALUES, _MODE, _TOP_K):
        raise InvalidValue(f"question must be values, mode or top_k, got {str(question)[:40]!r}")
    if (k is None) == (question == _TOP_K):
        raise InvalidValue("top_k needs k, the largest number of values" if k is None else "k is for top_k only")
    if delta is None:
        raise InvalidValue("give delta, such as 1e-9: values that nobody listed are found with one")
    number = None if question == _VALUES else whole_number(1, MOST, k=1 if k is None else k)
    most = 1 if max_values is None and question == _VALUES else max_values
    limit = None if most is None else whole_number(1, _MOST_VALUES, max_values=most)
    asked = _Asked(
        question, number, limit, neighbours_of(neighbours or Neighbours.ADD_REMOVE), *_of_groups(groups, max_groups)
    )
    paid = None if budget is None else as_budget(budget)
    count = whole_number(1, _MOST_QUESTIONS, questions=questions)
    price = Price(epsilon, rho, mechanism, delta)
    _validate.warn_of_large_delta(price.delta)
    return _planned(asked, price, paid, count)


class _Asked(NamedTuple):
    """What is asked, checked."""

    question: str
    k: int | None
    max_values: int | None
    neighbours: Neighbours
    groups: int | None
    max_groups: int

    @property
    def is_replaced(self) -> bool:
        return self.neighbours is Neighbours.REPLACE


def _of_groups(groups: Any, max_groups: Any) -> tuple[int | None, int]:
    most = whole_number(1, _MOST_VALUES, max_groups=1 if max_groups is None else max_groups)
    if groups is None:
        if most > 1:
            raise InvalidValue("max_groups needs groups: give the number of groups")
        return None, 1
    number = whole_number(1, _MOST_VALUES, groups=groups)
    return number, min(number, most)


class _Found(NamedTuple):
    """What draws, and how many people a value needs."""

    mechanism: str
    charged: str  # the name in a charge
    draws: int
    each: tuple[Fraction, Fraction]
    half: int
    usual: int
    surely: int | None = None
    nothing: Fraction | None = None


def _planned(asked: _Asked, price: Price, budget: Budget | None, questions: int) -> FoundPlan:
    found = _by_coins(asked, price) if asked.k is None else _above_nothing(asked, price, budget)
    allowed, refusal = _paid(found, price, budget)
    unlimited = asked.max_values is None
    return FoundPlan(
        asked.question,
        asked.k,
        asked.max_values,
        asked.neighbours.value,
        asked.groups,
        asked.max_groups,
        price,
        found.mechanism,
        found.draws,
        found.each,
        found.half,
        found.usual,
        found.surely,
        found.nothing,
        _planned(asked._replace(max_values=1), price, budget, questions) if unlimited else None,
        budget,
        questions,
        allowed,
        refusal,
    )


def _by_coins(asked: _Asked, price: Price) -> _Found:
    """As `tables.unlisted.FoundValues` divides the price."""
    draws = (asked.max_values or 1) * asked.max_groups * (2 if asked.is_replaced else 1)
    each = price.each(PURE_LOSS, draws), price.delta / draws
    coins = Finding(*each)
    people = coins.people_for(_HALF), coins.people_for(1 - _RARELY), coins.surely
    return _Found(coins.name, PARTITION_SELECTION, draws, each, *people)


def _above_nothing(asked: _Asked, price: Price, budget: Budget | None) -> _Found:
    """As `tables.unlisted.FoundTopK` divides the price."""
    kind: type[Any] = price.kind(budget)
    draws = (asked.k or 1) * asked.max_groups
    mechanism: MechanismBase = kind(
        price.each(kind.loss if kind.is_luce else PURE_LOSS, draws), sensitivity=1, monotonic=not asked.is_replaced
    )
    if mechanism.far_below is None:
        raise InvalidType(f"mechanism {mechanism.name} cannot choose among found values: use permute-and-flip")
    delta = price.delta / draws
    factor = Factor(mechanism.far_below, replaced=asked.is_replaced, grouped=asked.groups is not None)
    nothing = threshold(mechanism.rate, delta, asked.max_values, factor)
    half, usual = (_people_above(nothing, mechanism, delta, rarely) for rarely in (_HALF, _RARELY))
    charged = EXPONENTIAL_FOUND if kind.is_luce else mechanism.name
    return _Found(mechanism.name, charged, draws, (mechanism.epsilon, delta), half, usual, None, nothing.people)


def _people_above(nothing: Threshold, mechanism: MechanismBase, delta: Fraction, rarely: Fraction) -> int:
    """So many people that a value loses with at most this probability, by the docstring of the module."""
    anonymous = Fraction(0) if nothing.most is None else delta
    lost = (_HALF + anonymous) / rarely
    if mechanism.is_luce:
        lost = (1 + anonymous) * (1 - rarely) / rarely
    _, high = log_bracket(max(lost, Fraction(1)), _DIGITS)
    return math.ceil(nothing.people + max(high, Fraction(0)) / mechanism.rate)


def _paid(found: _Found, price: Price, budget: Budget | None) -> tuple[int | None, str | None]:
    """How many such questions the budget pays for, or why it allows none."""
    if budget is None:
        return None, None
    charge = Charge(WHAT, found.each[0], found.charged, found.draws, rho=price.rho, delta=price.delta)
    try:
        budget.check(charge)
    except InvalidValue as error:
        return 0, str(error)
    return times_allowed(budget, charge), None
