"""Which methods of `dpselect.top_k` can answer a question, and the mechanism that each would draw with."""

from typing import Any, NamedTuple

from dpselect.accounting.budget import AUTO, Budget, Price
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.top_k import METHODS, Method, method_for


class Drawing(NamedTuple):
    """A method with the mechanism that draws."""

    method: Method
    mechanism: MechanismBase


class Choice(NamedTuple):
    """What a top-k question states besides its price. All of it is public.

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
