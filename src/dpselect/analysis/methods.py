"""The methods of `dpselect.top_k`: which of them can answer, with which mechanism, and what that means in words."""

from typing import Any, NamedTuple

from dpselect._numbers import shown
from dpselect.accounting.budget import AUTO, Budget, Price
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.top_k import METHODS, Margin, Method, NoisyCounts, OneShot, Peel, Set, method_for


class Drawing(NamedTuple):
    """A method with the mechanism that draws."""

    method: Method
    mechanism: MechanismBase


class Choice(NamedTuple):
    """What a top-k question states, without its price. All of it is public.

    Args:
        k: how many candidates to choose, or a pair for the margin.
        candidates: the number of candidates.
        max_values: for how many candidates one person counts at most; None for any number.
        ordered: whether the answer is in order.
        monotonic: whether a person is added or removed, not replaced.
        groups: the number of groups that one person may be in, each of which gets an equal share of the price.
    """

    k: Any
    candidates: int
    max_values: Any = None
    ordered: Any = False
    monotonic: bool = True
    groups: int = 1

    def by(self, method: Any, price: Price, budget: Budget | None = None) -> Method:
        """Return the method of this name, or the one that "auto" takes, checked."""
        choices = {"method": method, "max_values": self.max_values, "ordered": self.ordered}
        return method_for(self.k, self.candidates, **choices, price=price, budget=budget)

    def drawn(self, method: Method, price: Price, budget: Budget | None = None) -> Drawing:
        """Return a method with the mechanism that draws at this price."""
        return Drawing(method, method.drawn_by(price, budget, self.groups, self.monotonic))

    def applicable(self, price: Price, budget: Budget | None = None) -> dict[str, Drawing]:
        """Return the methods that can answer, by name. A method that refuses these numbers is left out.

        The method that "auto" takes is as "auto" takes it: it may choose the candidates that are left out.

        >>> list(Choice(10, 1000).applicable(Price("0.1")))
        ['margin', 'one-shot', 'peel']
        """
        taken = self.by(AUTO, price, budget)
        if taken.is_free:
            return {taken.name: self.drawn(taken, price, budget)}
        found: dict[str, Drawing] = {}
        for name in METHODS:
            try:
                method = taken if name == taken.name else self.by(name, price, budget)
                found.setdefault(method.name, self.drawn(method, price, budget))
            except (InvalidType, InvalidValue):
                continue
        return found


def meaning(method: Method, average: str, usual: str, rare: str) -> str:
    """What the bounds of `top_k_bounds` mean, for all methods but one selection after another."""
    if method.is_free:
        return f"All {method.k:,} candidates are chosen, so the answer has no error."
    return f"{_on_average(method, average)} {_in_most_cases(method, usual, rare)}"


def _on_average(method: Method, average: str) -> str:
    if isinstance(method, Margin) and method.sizes[0] < method.sizes[1]:
        return (
            f"On average, the mean count of the chosen values is at most {average} people below that of the same number"
            " of most common ones."
        )
    return (
        f"On average, the mean count of the {method.k:,} chosen values is at most {average} people below that of the"
        f" {method.k:,} most common ones."
    )


def _in_most_cases(method: Method, usual: str, rare: str) -> str:
    if isinstance(method, (Set, Peel)):
        return f"In 95 of 100 cases the difference is less than {usual}, in 99 of 100 less than {rare}."
    if method.ordered:
        return (
            f"In 95 of 100 cases, each i-th value has less than {usual} fewer people than the i-th most common one, for"
            f" all i together; in 99 of 100, less than {rare}."
        )
    return (
        f"In 95 of 100 cases, every value that is left out has less than {usual} people more than any chosen one; in 99"
        f" of 100, less than {rare}."
    )


def remark(method: Method, within_95: float) -> str:
    """When the margin finds the true top k; nothing for other methods."""
    if not isinstance(method, Margin) or method.sizes[0] < method.sizes[1]:
        return ""
    return (
        f"If the k-th most common value leads the next one by {shown(within_95 / 2)} people or more, the {method.k:,}"
        " most common ones are chosen in 95 of 100 cases."
    )


def taken_for(method: Method, concentrated: bool, asked: str) -> str:
    """Which method answers, and why.

    >>> taken_for(Peel(1, 1000), concentrated=False, asked="auto")
    'The method is peel, because one candidate is chosen, so one selection is enough.'
    """
    if asked == method.name:
        return f"The method is {method.name}, as asked."
    if asked == OneShot.name:
        return f"The method is {method.name}: with this mechanism, one shot has the law of one selection after another."
    return f"The method is {method.name}, because {_reason(method, concentrated)}."


def _reason(method: Method, concentrated: bool) -> str:
    """Why `automatic` takes this method."""
    if method.is_free:
        return "all candidates are chosen, so nothing need be drawn or charged"
    if isinstance(method, Margin):
        return "a person changes the margin of a set by at most one, however many candidates they count for"
    if isinstance(method, OneShot):
        return _reason_for_one_shot(method)
    if isinstance(method, Peel):
        return _reason_for_peeling(method)
    currency = "in zCDP " if concentrated else ""
    if isinstance(method, NoisyCounts):
        return f"{_limit(method)}, so {currency}noise on all counts, which also pays for an order, may be the smallest"
    return f"{_limit(method)}, so {currency}one choice of a whole set needs less noise than {method.fewer:,} selections"


def _reason_for_peeling(method: Peel) -> str:
    if method.rounds == 1:
        return f"one candidate is {'chosen' if method.k == 1 else 'left out'}, so one selection is enough"
    return f"{_limit(method)}, and in zCDP {method.rounds:,} selections need less noise than the other methods"


def _reason_for_one_shot(method: Method) -> str:
    if method.ordered:
        return (
            f"{_limit(method)}, and for an answer in order, noise that is added to each count once has no larger bounds"
            f" than {method.k:,} selections"
        )
    return (
        f"{_limit(method)}, so a set needs as much noise, and for so few candidates noise that is added to each count"
        " once was better on public data"
    )


def _limit(method: Method) -> str:
    if method.max_values is None:
        return "a person may count for any number of candidates"
    return f"a person counts for at most {'one candidate' if method.values == 1 else f'{method.values:,} candidates'}"
