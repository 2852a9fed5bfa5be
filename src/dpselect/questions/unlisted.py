"""Values that nobody listed: found in the data, with a delta, if enough people have them. And how many that must be.

The most common ones are chosen above a threshold (`mechanisms.thresholds`). All that are common enough are found by
coins (`selection.finding`). Both are (epsilon, delta)-differentially private, and what they return is public. "Nothing
was common enough" is an answer like any other, at the same cost.

**Shares.** A top-k of found values is k selections one after another, each with 1/k of epsilon and of delta; so are
groups. The coins of m values of a person have a share of 1/m each. A person who is replaced changes the counts of up to
m values that they leave and of m that they get: 2 m coins.

**How many people a value needs, by coins.** A value that n people have comes out with the probability pi(n) of
`selection.finding`.

**Above "nothing".** "Nothing" has the score s = 1 + T, and the rate is c for each person. A value that n = s + g people
have, g >= 0, and that no other value competes with, loses

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
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from dpselect import _validate
from dpselect._numbers import exact_text, shortest_text, shown
from dpselect._types import Number
from dpselect.accounting.budget import AUTO, Budget, Price, as_budget
from dpselect.accounting.charge import EXPONENTIAL_FOUND, PARTITION_SELECTION
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.mechanisms.privacy import PURE_LOSS
from dpselect.mechanisms.thresholds import MOST, Factor, Threshold, chosen_above, threshold
from dpselect.questions.costs import times_allowed
from dpselect.questions.methods import Peel, Share, checked_limit
from dpselect.questions.options import Option, option, whole
from dpselect.questions.plans import Texts, shown_in_notebook
from dpselect.questions.question import Asked, Draw, OfTable, checked_for_tables, divided, many_in_words
from dpselect.questions.rows import Engine, Individuals, counted
from dpselect.release import Accuracy
from dpselect.selection.enclosure import log_bracket
from dpselect.selection.finding import Finding

_HALF, _RARELY = Fraction(1, 2), Fraction(1, 20)
_DIGITS = 40


class People(NamedTuple):
    """How many people must have a value so that it is found: in half of all cases, in 95 of 100, and always."""

    half: int
    usual: int
    surely: int | None = None
    nothing: Fraction | None = None  # the score of "nothing", in people


@dataclass(frozen=True, kw_only=True)
class Unlisted(OfTable):
    """What questions about unlisted values share: for how many values a person counts; None for any number."""

    coins: ClassVar[str] = "selections"  # what one person can influence several of
    max_values: int | None = None

    @classmethod
    def about(cls, table: Asked, column: Any, price: Price, *, max_values: Any = None, **stated: Any) -> OfTable:
        """Return the question about a column of a table. A row has one value."""
        return super().about(table, column, price, max_values=table.individuals.limit(max_values), **stated)

    @property
    def size(self) -> int:
        """Return the largest number of values that are distinguished."""
        return MOST

    @property
    def claim(self) -> Claim:
        """Return how much one person can change a count."""
        return stated(1, self.is_added)

    @abstractmethod
    def people(self, draw: Draw) -> People:
        """Return how many people must have a value."""

    @property
    @abstractmethod
    def what(self) -> str:
        """Return what is found, in words."""

    @property
    def title(self) -> str:
        """Return the question in words."""
        if self.max_values is None:
            return f"{self.what}, with any number of values for each person"
        limit = "one value" if self.max_values == 1 else f"at most {self.max_values:,} values"
        return f"{self.what}, with {limit} for each person"

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return nothing: there are no errors, but people that a value needs."""
        del average, usual, rare
        return ""

    @abstractmethod
    def found_if(self, people: People) -> list[str]:
        """Return in words how many people a value needs."""

    @property
    def counted_people(self) -> str:
        """Return in words whom these numbers count; nothing if everybody counts for all their values."""
        if self.max_values is None:
            return ""
        chosen = many_in_words(self.max_values, "value")
        return f"These are people for whom the value counts: of people with more than {chosen}, some chosen at random."

    def accuracy(self, draw: Draw) -> Accuracy:
        """Return how many people must have a value so that it is found."""
        people, limit = self.people(draw), self.max_values if self.noun == "people" else None
        told = " ".join(filter(None, [*self.found_if(people), "" if limit is None else self.counted_people]))
        condition = "" if limit is None else f"if nobody has more than {many_in_words(limit, 'value')}"
        numbers = float(people.half), float(people.usual)
        method = "people who must have a value to be found"
        return self.in_nouns(Accuracy(*numbers, "people", method, told, condition=condition))


@dataclass(frozen=True, kw_only=True)
class UnlistedTopK(Unlisted):
    """The values that most people have, if they are common enough: at most k of them.

    Args:
        k: the largest number of values.
        max_values: for how many values a person counts; None for any number.
        groups: the number of public groups, each of which gets an answer; None for one answer.
        max_groups: in how many groups a person may count.
        neighbours: "add-remove" or "replace".
    """

    name: ClassVar[str] = "top_k"
    k: Any

    @classmethod
    def about(
        cls, table: Asked, column: Any, price: Price, *, method: str = AUTO, ordered: Any = True, **stated: Any
    ) -> OfTable:
        del ordered  # the answer always is
        check_method(method)
        return super().about(table, column, price, **stated)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.k, (tuple, list)):
            raise InvalidValue("k may be a pair only with a list of candidates: give one number")
        number = _validate.count(k=self.k)
        if not 1 <= number <= MOST:
            raise InvalidValue(f"k must be from 1 to {MOST:,} without a list of candidates, got {number}")

    @property
    def what(self) -> str:
        """Return what is found, in words."""
        return f"Up to {self.k} most common values, found in the data"

    @property
    def rounds(self) -> int:
        """Return the number of selections."""
        return int(self.k)

    def draw(self, price: Price, budget: Budget | None = None) -> Draw:
        """Return the mechanism and its threshold, and what is charged for it."""
        delta, kind, count = checked_delta(price), price.kind(budget), self.draws
        is_luce = kind.is_luce
        loss = kind.loss if is_luce else PURE_LOSS
        drawn = checked_for_tables(kind(price.each(loss, count), **self.claim.arguments()))
        if drawn.far_below is None:
            raise InvalidType(f"mechanism {drawn.name} cannot choose among found values: use permute-and-flip")
        factor = Factor(drawn.far_below, replaced=not self.is_added, grouped=self.is_grouped)
        above = threshold(drawn.rate, delta / count, self.max_values, factor)
        part = Share(EXPONENTIAL_FOUND if is_luce else drawn.name, drawn.epsilon, loss, drawn.claim)
        return Draw(drawn, part, count, delta, threshold=above)

    def people(self, draw: Draw) -> People:
        """Return how many people a value needs that no other one competes with."""
        nothing, mechanism, delta = _above(draw), draw.mechanism, draw.delta / draw.count
        half, usual = (_people_above(nothing, mechanism, delta, rarely) for rarely in (_HALF, _RARELY))
        return People(half, usual, nothing=nothing.people)

    def found_if(self, people: People) -> list[str]:
        """Return in words how many people a value needs."""
        where = " of a group" if self.is_grouped else ""
        nothing = 0.0 if people.nothing is None else float(people.nothing)
        return [
            f'"Nothing was common enough" competes like a value that {shown(nothing)} people have.',
            f"A value that no other one competes with wins against it with probability 1/2 if {people.half:,}"
            f" people{where} have it, and in 95 of 100 cases if {people.usual:,} have it.",
        ]

    def entry(self) -> dict[str, Any]:
        """Return the public parameters that a ledger records."""
        limit = {} if self.max_values is None else {"max_values": self.max_values}
        return {**self._asked, "column": self.column.name, "candidates": "found in the data", **limit}

    @property
    def _asked(self) -> dict[str, Any]:
        return {"question": self.name, "k": self.k}

    def estimate(self, individuals: Individuals) -> str:
        """Return what is estimated, in words."""
        what, it = ("the value", "it") if self.k == 1 else (f"up to {self.k:,} values", "them")
        counts = individuals.counted_for(self.max_values)
        return f"{what} that most {individuals.noun} have, if enough have {it}{counts}{individuals.in_each_group}"

    def answer(self, engine: Engine, individuals: Individuals, draw: Draw) -> Any:
        """Count and select: return a value or None, or a list of at most k values, or a dict with that."""
        above = _above(draw)

        def choose() -> list[list[Any]]:
            with engine.tally(self.column, None, individuals, self.max_values) as tally:
                chosen = [
                    chosen_above(own.individuals, own.values, self.k, above, draw.mechanism) for own in tally.levels()
                ]
                wanted = [(group, *place) for group, places in enumerate(chosen) for place in places]
                values = iter(tally.values(wanted))
                return [[next(values) for _ in places] for places in chosen]

        return individuals.by_group([self._shown(own) for own in counted(choose)])

    def _shown(self, found: list[Any]) -> Any:
        return found


@dataclass(frozen=True, kw_only=True)
class UnlistedMode(UnlistedTopK):
    """The value that most people have, if it is common enough."""

    name: ClassVar[str] = "mode"
    k: Any = 1

    @property
    def what(self) -> str:
        """Return what is found, in words."""
        return "The most common value, found in the data"

    @property
    def _asked(self) -> dict[str, Any]:
        return {"question": self.name}

    def _shown(self, found: list[Any]) -> Any:
        return found[0] if found else None


@dataclass(frozen=True, kw_only=True)
class Values(Unlisted):
    """All values that enough people have, as `Table.values` returns them.

    Args:
        max_values: for how many values a person counts.
        groups: the number of public groups, each of which gets an answer; None for one answer.
        max_groups: in how many groups a person may count.
        neighbours: "add-remove" or "replace".
    """

    name: ClassVar[str] = "values"
    priced: ClassVar[tuple[str, ...]] = ("delta",)
    coins: ClassVar[str] = "coins"
    max_values: int = option(
        asking=Option(
            ("--max-values",),
            "N",
            "For how many of the values that are found a person counts: N of theirs, at random.",
            whole,
        ),
        planning=Option(("--max-values",), "M", "For how many values one person counts at most.", whole),
        default=1,
    )

    @classmethod
    def about(cls, table: Asked, column: Any, price: Price, *, max_values: Any = 1, **stated: Any) -> OfTable:
        """Return the question about a column of a table."""
        limit = checked_limit(max_values)
        if limit is None:
            raise InvalidValue("max_values must be given: for how many values a person counts")
        if limit > 1 and table.individuals.person is None:
            raise InvalidValue("max_values must be 1 without a person column: a row has one value")
        if price.delta is None:
            raise InvalidValue("values are found in the data, which needs delta: give for example 1e-9")
        return super().about(table, column, price, max_values=limit, **stated)

    @property
    def what(self) -> str:
        """Return what is found, in words."""
        return "The values that enough people have"

    @property
    def rounds(self) -> int:
        """Return the number of coins that one person can influence, in one group."""
        return self.max_values * (1 if self.is_added else 2)

    def draw(self, price: Price, budget: Budget | None = None) -> Draw:  # noqa: ARG002 - coins suit every budget
        """Return the coins, and what is charged for them."""
        delta, count = checked_delta(price), self.draws
        each = price.each(PURE_LOSS, count)
        return Draw(Finding(each, delta / count), Share(PARTITION_SELECTION, each), count, delta)

    def people(self, draw: Draw) -> People:
        """Return how many people a value needs."""
        coins: Finding = draw.mechanism
        return People(coins.people_for(_HALF), coins.people_for(1 - _RARELY), coins.surely)

    def found_if(self, people: People) -> list[str]:
        """Return in words how many people a value needs."""
        where = " of a group" if self.is_grouped else ""
        return [
            f"A value is found with probability 1/2 if {people.half:,} people{where} have it, in 95 of 100 cases if"
            f" {people.usual:,} have it, and always if {people.surely:,} have it."
        ]

    def entry(self) -> dict[str, Any]:
        """Return the public parameters that a ledger records."""
        return {"question": self.name, "column": self.column.name, "max_values": self.max_values}

    def estimate(self, individuals: Individuals) -> str:
        """Return what is estimated, in words."""
        counts = individuals.counted_for(self.max_values)
        return f"the values that enough {individuals.noun} have{counts}{individuals.in_each_group}"

    def answer(self, engine: Engine, individuals: Individuals, draw: Draw) -> Any:
        """Count and flip: return the values in ascending order, or a dict with that for each group."""

        def find() -> list[list[Any]]:
            with engine.tally(self.column, None, individuals, self.max_values) as tally:
                return tally.found(draw.mechanism)

        return individuals.by_group(counted(find))


def _above(draw: Draw) -> Threshold:
    if draw.threshold is None:
        raise LookupError("unlisted values are chosen above a threshold")
    return draw.threshold


def _people_above(nothing: Threshold, mechanism: MechanismBase, delta: Fraction, rarely: Fraction) -> int:
    """How many people a value needs to lose with at most this probability, by the docstring of the module."""
    anonymous = Fraction(0) if nothing.most is None else delta
    lost = (_HALF + anonymous) / rarely
    if mechanism.is_luce:
        lost = (1 + anonymous) * (1 - rarely) / rarely
    _, high = log_bracket(max(lost, Fraction(1)), _DIGITS)
    return math.ceil(nothing.people + max(high, Fraction(0)) / mechanism.rate)


def checked_delta(price: Price) -> Fraction:
    """The delta of a question about values that nobody listed."""
    if price.delta is None:
        raise InvalidValue(
            "give candidates, the public list of possible answers, or a rule such as dpselect.every('int64');"
            " without them the question needs delta, such as 1e-9"
        )
    delta: Fraction = price.delta
    return delta


def check_method(method: str) -> None:
    """Refuse methods that cannot choose among unlisted values."""
    if method not in (AUTO, Peel.name):
        raise InvalidValue(f"method must be auto or peel without a list of candidates, got {str(method)[:40]!r}")


@dataclass(frozen=True, repr=False)
class FoundPlan:
    """How many people must have a value so that it is found, and what the question costs. Public numbers only.

    Attributes:
        asked: the question.
        price: epsilon or rho, and delta, of a question.
        budget: the budget that pays, if it was given.
        questions: the number of questions that share the budget.

    >>> planned = plan_found("values", epsilon=1, delta="1e-6")
    >>> planned.half, planned.usual, planned.surely
    (14, 16, 28)
    """

    asked: Unlisted
    price: Price
    budget: Budget | None
    questions: int

    @cached_property
    def draw(self) -> Draw:
        """Return what draws, and what is charged for it."""
        return self.asked.draw(self.price, self.budget)

    @cached_property
    def people(self) -> People:
        """Return how many people must have a value."""
        return self.asked.people(self.draw)

    @property
    def question(self) -> str:
        """Return the name of the question."""
        return self.asked.name

    @property
    def k(self) -> int | None:
        """Return the largest number of values; None for "values"."""
        return getattr(self.asked, "k", None)

    @property
    def max_values(self) -> int | None:
        """Return for how many values a person counts; None for any number."""
        return self.asked.max_values

    @property
    def mechanism(self) -> str:
        """Return the name of what draws."""
        return str(self.draw.mechanism.name)

    @property
    def draws(self) -> int:
        """Return how many draws one person can influence."""
        return self.draw.count

    @property
    def each(self) -> tuple[Fraction, Fraction]:
        """Return the epsilon and the delta of each draw."""
        return self.draw.part.epsilon, self.draw.delta / self.draw.count

    @property
    def half(self) -> int:
        """Return how many people have a value that is found with probability 1/2."""
        return self.people.half

    @property
    def usual(self) -> int:
        """Return how many people have a value that is found in 95 of 100 cases."""
        return self.people.usual

    @property
    def nothing(self) -> Fraction | None:
        """Return the score of "nothing", in people; None for "values"."""
        return self.people.nothing

    @property
    def surely(self) -> int | None:
        """Return how many people have a value that is always found; None if there is no such number."""
        return self.people.surely

    @cached_property
    def limited(self) -> "FoundPlan | None":
        """Return the same plan with max_values=1, if there is no limit; otherwise None."""
        if self.max_values is not None:
            return None
        return replace(self, asked=replace(self.asked, max_values=1))

    @cached_property
    def _paid(self) -> tuple[int | None, str | None]:
        """How many such questions the budget pays for, or why it allows none."""
        if self.budget is None:
            return None, None
        charge = self.draw.charge(self.price.rho)
        try:
            self.budget.check(charge)
        except InvalidValue as error:
            return 0, str(error)
        return times_allowed(self.budget, charge), None

    @property
    def allowed(self) -> int | None:
        """Return how many such questions the budget pays for; None without a budget."""
        return self._paid[0]

    @property
    def refusal(self) -> str | None:
        """Return why the budget allows none, if it is for another reason than its size."""
        return self._paid[1]

    def __repr__(self) -> str:
        k = None if self.question == UnlistedMode.name else self.k
        given = {"k": k, "max_values": self.max_values, "groups": self.asked.groups}
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
        return self.asked.title

    @property
    def sentences(self) -> list[str]:
        """Return in plain English how many people a value needs, and what a question costs.

        >>> plan_found("values", epsilon=1, delta="1e-6").sentences[0]
        'A value is found with probability 1/2 if 14 people have it, in 95 of 100 cases if 16 have it, and always if 28 have it.'
        """  # noqa: E501 - a sentence of output
        told = self.asked.found_if(self.people)
        return [
            *told,
            *filter(None, [self.asked.counted_people, self._about_limit, self._about_shares, *self._about_costs]),
        ]

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
        return divided(self.draws, self.asked.coins)

    @property
    def _about_costs(self) -> list[str]:
        currency = "epsilon" if self.price.rho is None else "rho"
        price, delta = getattr(self.price, currency), checked_delta(self.price)
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
            "neighbours": self.asked.neighbours,
            "groups": self.asked.groups,
            "max_groups": self.asked.max_groups,
            **{name: None if number is None else exact_text(number) for name, number in price.items()},
            "mechanism": self.mechanism,
            "draws": self.draws,
            "epsilon_each": float(self.each[0]),
            "delta_each": float(self.each[1]),
            "people_half": self.half,
            "people_95": self.usual,
            "people_surely": self.surely,
            "people_of_nothing": None if self.people.nothing is None else float(self.people.nothing),
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
    if question not in _KINDS:
        raise InvalidValue(f"question must be values, mode or top_k, got {str(question)[:40]!r}")
    if (k is None) == (question == UnlistedTopK.name):
        raise InvalidValue("top_k needs k, the largest number of values" if k is None else "k is for top_k only")
    if delta is None:
        raise InvalidValue("give delta, such as 1e-9: values that nobody listed are found with one")
    if k is not None:
        _validate.count(1, MOST, k=k)
    given: dict[str, Any] = {"k": k, "max_values": max_values, "groups": groups, "max_groups": max_groups}
    given |= {"neighbours": neighbours}
    if max_values is not None:
        _validate.count(1, _validate.EXACT_IN_FLOATS, max_values=max_values)
    asked = _KINDS[question](**{name: value for name, value in given.items() if value is not None})
    paid = None if budget is None else as_budget(budget)
    count = _validate.count(1, _validate.MANY, questions=questions)
    price = Price(epsilon, rho, mechanism, delta)
    _validate.warn_of_large_delta(checked_delta(price))
    planned = FoundPlan(asked, price, paid, count)
    planned.draw  # noqa: B018 - a mechanism that cannot draw is refused now
    return planned


_KINDS: dict[str, type[Unlisted]] = {kind.name: kind for kind in (Values, UnlistedMode, UnlistedTopK)}
