"""The ways to answer a planned question: who draws, how often, what is charged, and how large the errors can be.

A mode, a quantile and a choice by scores of one's own are one selection, or one for each group. A top-k answer is drawn
by a method of `dpselect.top_k`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import cast

from dpselect.accounting.budget import Budget, Price
from dpselect.accounting.charge import Charge
from dpselect.analysis.methods import Choice, meaning, remark
from dpselect.analysis.promises import ErrorsOf, Promise, among, epsilon_for_average, promised_by
from dpselect.analysis.questions import Question, TopK, divided
from dpselect.analysis.top_k_bounds import errors_of
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import Claim
from dpselect.release import Priced
from dpselect.top_k import Method, NoisyCounts, Peel

WHAT = "a planned question"


@dataclass(frozen=True)
class Way(ABC):
    """How a question is answered. All numbers are public."""

    question: Question

    @property
    @abstractmethod
    def mechanisms(self) -> tuple[str, ...]:
        """Return the names of the mechanisms that can draw."""

    @property
    @abstractmethod
    def claim(self) -> Claim:
        """Return how much one person can change what is drawn from."""

    @property
    def is_free(self) -> bool:
        """Return whether the answer follows from public numbers alone."""
        return False

    @property
    def rounds(self) -> int:
        """Return how many differences of an answer the bounds are about, each for itself."""
        return 1

    @property
    @abstractmethod
    def draws(self) -> int:
        """Return the number of equal parts of a charge, over all groups that one person may be in."""

    @property
    @abstractmethod
    def errors(self) -> ErrorsOf | None:
        """Return the bounds of one difference, in units of the scores, at rate one; None if there are none."""

    @abstractmethod
    def promise(self, mechanism: MechanismBase) -> Promise:
        """Return the bounds with this mechanism, in units of the scores."""

    @abstractmethod
    def all_within(self, mechanism: MechanismBase, probability: float) -> float:
        """Return a bound that all differences of an answer exceed with at most this probability."""

    @abstractmethod
    def drawn(self, name: str, *, epsilon: Fraction | None = None, rho: Fraction | None = None) -> MechanismBase:
        """Return the mechanism of this name that draws at this price of the question."""

    @abstractmethod
    def used(self, price: Price, budget: Budget | None) -> str:
        """Return the name of the mechanism that draws at such a price, as a table with this budget chooses it."""

    @abstractmethod
    def part(self, mechanism: MechanismBase) -> Priced:
        """Return one of the parts of a charge."""

    @property
    @abstractmethod
    def shares(self) -> str:
        """Return in words how the price is divided; nothing if it is not."""

    @abstractmethod
    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean: on average, in 95 and in 99 of 100 cases."""

    @property
    def condition(self) -> str:
        """Return in words which data the bounds are about; nothing for any data."""
        return self.question.condition()

    @property
    def holds(self) -> str:
        """Return a sentence on which data the bounds hold for."""
        if not self.condition:
            return "This holds for any data."
        return (
            f"This holds {self.condition}. People with more count for that many, chosen at random, and the true counts"
            " can differ by more."
        )

    def remark(self, within_95: float) -> str:  # noqa: ARG002 - for methods that have one
        """Return what else follows from the bound for 95 of 100 cases; usually nothing."""
        return ""

    def charge(self, mechanism: MechanismBase, rho: Fraction | None = None) -> Charge:
        """Return what a ledger is asked to record for one question."""
        part = self.part(mechanism)
        return Charge(WHAT, part.epsilon, part.name, self.draws, rho=rho)

    def with_error(self, name: str, error: Fraction) -> MechanismBase:
        """Return the mechanism whose average error is at most this many people."""
        claim, kind = self.claim.arguments(), MECHANISMS[name]
        average = self.promise(kind(1, **claim)).average
        return kind(epsilon_for_average(average, error * self.question.unit), **claim)


class BySelection(Way):
    """One selection after another, or one for each group, as the question says."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Return the names of the mechanisms that can draw."""
        return self.question.mechanisms

    @property
    def claim(self) -> Claim:
        """Return how much one person can change the scores."""
        return self.question.claim

    @property
    def rounds(self) -> int:
        """Return the number of selections of an answer."""
        return self.question.rounds

    @property
    def draws(self) -> int:
        """Return the number of selections that one person can influence."""
        return self.question.draws

    @property
    def errors(self) -> ErrorsOf | None:
        """Return the bounds of one selection; None if several of them make up an answer."""
        return None if self.question.is_split else among(self.question.size)

    def promise(self, mechanism: MechanismBase) -> Promise:
        """Return the bounds with this mechanism."""
        return self.question.promised(mechanism)

    def all_within(self, mechanism: MechanismBase, probability: float) -> float:
        """Return a bound for all selections of an answer."""
        return self.question.all_within(mechanism, probability)

    def drawn(self, name: str, *, epsilon: Fraction | None = None, rho: Fraction | None = None) -> MechanismBase:
        """Return the mechanism of each selection."""
        found = Price(epsilon, rho, name).drawn_by(None, self.draws, **self.claim.arguments())
        return cast("MechanismBase", found)

    def used(self, price: Price, budget: Budget | None) -> str:
        """Return the name of the mechanism that selects at such a price."""
        return price.kind(budget).name

    def part(self, mechanism: MechanismBase) -> Priced:
        """Return one selection."""
        return mechanism

    @property
    def shares(self) -> str:
        """Return in words how the price is divided."""
        return self.question.shares

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean."""
        return self.question.meaning(average, usual, rare)


@dataclass(frozen=True)
class ByMethod(Way):
    """A top-k answer by a method. Errors are in people."""

    question: TopK
    method: Method

    @property
    def choice(self) -> Choice:
        """Return what is chosen."""
        return self.question.choice

    @property
    def condition(self) -> str:
        """Return in words which data the bounds are about; nothing for any data."""
        limit = self.method.max_values
        return self.question.condition(None if limit is None or limit >= self.method.candidates else limit)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Return the names of the mechanisms that can draw with this method, in a table."""
        return tuple(name for name in MECHANISMS if self._can_draw(name))

    def _can_draw(self, name: str) -> bool:
        price = Price(1, None, name)
        try:
            named = self.method if self.is_free else self.choice.by(self.method.name, price)
            mechanism = self.choice.drawn(self.method, price).mechanism
        except (InvalidType, InvalidValue):
            return False
        return named.name == self.method.name and (mechanism.has_runs or not isinstance(self.method, Peel))

    @property
    def is_free(self) -> bool:
        """Return whether all candidates are chosen."""
        return self.method.is_free

    @property
    def claim(self) -> Claim:
        """Return how much one person can change what is drawn from."""
        return self.method.claim(self.choice.monotonic)

    @property
    def rounds(self) -> int:
        """Return the number of selections, if each of them has bounds of its own."""
        return self.method.selections or 1

    @property
    def draws(self) -> int:
        """Return the number of parts of a charge."""
        _, count = self.method.cost(self.drawn(self.mechanisms[0], epsilon=Fraction(1)))
        return count * self.choice.groups

    @property
    def errors(self) -> ErrorsOf:
        """Return the bounds of the method."""
        return partial(errors_of, self.method)

    def promise(self, mechanism: MechanismBase) -> Promise:
        """Return the bounds with this mechanism."""
        return promised_by(mechanism, self.errors)

    def all_within(self, mechanism: MechanismBase, probability: float) -> float:
        """Return a bound for all selections of an answer, or for the whole answer."""
        return self.errors(type(mechanism)).rarely_exceeded(probability / self.rounds) / float(mechanism.rate)

    def drawn(self, name: str, *, epsilon: Fraction | None = None, rho: Fraction | None = None) -> MechanismBase:
        """Return the mechanism that draws with this method."""
        return self.choice.drawn(self.method, Price(epsilon, rho, name)).mechanism

    def used(self, price: Price, budget: Budget | None) -> str:
        """Return the name of the mechanism that draws at such a price."""
        return self.choice.drawn(self.method, price, budget).mechanism.name

    def part(self, mechanism: MechanismBase) -> Priced:
        """Return one of the parts of a charge."""
        return self.method.cost(mechanism)[0]

    @property
    def shares(self) -> str:
        """Return in words how the price is divided."""
        noun = "counts" if isinstance(self.method, NoisyCounts) else "selections"
        return self.question.with_groups(divided(self.draws, noun))

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the errors mean."""
        if self.method.selections is not None:
            return self.question.meaning(average, usual, rare)
        return meaning(self.method, average, usual, rare)

    def remark(self, within_95: float) -> str:
        """Return when the margin finds the true top k."""
        return remark(self.method, within_95)


def way_of(question: Question, price: Price, budget: Budget | None) -> Way:
    """The way in which a table with this budget would answer the question, at a price of this currency."""
    if not isinstance(question, TopK):
        return BySelection(question)
    return ByMethod(question, question.choice.by(question.method, price, budget))
