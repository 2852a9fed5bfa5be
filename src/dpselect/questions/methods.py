"""The methods for the k candidates that most people have: what each costs, how far it is off, and which one is taken.

Counts of people are scored in one of these ways. A person counts for at most m candidates (`max_values`), or for any
number of them. There are d candidates, and c is the number of people that one noise unit is worth, 1/rate.

  set           one choice among all sets of k, by the sum of their counts (theorem 12 of docs/theory.md)
  margin        one choice among all sets of k, by the smallest count inside minus the largest outside (theorem 13)
  one-shot      exponential noise on every count, once; the k largest in order (theorem 15)
  peel          k selections, each among the candidates that are left (Durfee & Rogers 2019)
  noisy-counts  Laplace noise on every count, once; the k largest in order (Dwork & Roth 2014, Section 3.3)

**Score ranges**, if one person is added or removed; twice as much if one is replaced. A set's sum moves by 0 to m, and
a difference of two sums by at most min(m, k, d - k). A margin moves by at most one, so a difference by two. A count
moves by one. All counts together move by at most m, which is what Laplace noise on all of them needs.

**Costs.** A set or a margin is one draw of the mechanism. Peeling is k of them. One shot costs what any release of its
epsilon costs. Laplace noise on m counts costs m times what it costs on one, at epsilon / m each.

If an answer need not be ordered and k > d/2, one shot and peeling choose the d - k candidates that are left out.

**Which method `auto` takes** follows from public numbers only, never from the counts: `automatic` states it.
docs/top-k.md has the measurements.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from dpselect import _validate
from dpselect._numbers import shown
from dpselect._scores import as_lengths, as_vector
from dpselect._types import Array, Vector
from dpselect.accounting.budget import AUTO, Budget, Price
from dpselect.accounting.charge import ONE_SHOT
from dpselect.analysis.promises import UnitErrors
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.mechanisms.privacy import PURE_LOSS, Guarantee, PrivacyLoss
from dpselect.mechanisms.several import (
    MOST_MEMBERS,
    checked_counts,
    selecting_in_order,
    selecting_sets,
    sizes_of,
)
from dpselect.questions import bounds
from dpselect.release import Priced
from dpselect.selection.gaps import UNIT_RATE, gaps_of


@dataclass(frozen=True)
class Share:
    """One of several equal parts of a cost, in the form that a release needs."""

    name: str
    epsilon: Fraction
    loss: PrivacyLoss = PURE_LOSS
    claim: Claim | None = None

    @property
    def guarantee(self) -> Guarantee:
        """Return what one part guarantees."""
        return Guarantee(self.epsilon, self.loss.zcdp(self.epsilon))

    def terms(self) -> dict[str, Any]:
        """Return how far apart neighbours are, for the ledger; nothing if the question says it all."""
        return {} if self.claim is None else self.claim.to_dict()


@dataclass(frozen=True)
class Method(ABC):
    """A way to choose several candidates. All of its fields are public.

    Args:
        k: the number of candidates to choose.
        candidates: the number of candidates to choose from.
        max_values: for how many candidates one person may count; None for any number.
        ordered: whether the answer is in order, best first.
    """

    name: ClassVar[str]
    draws_of: ClassVar[str] = "selections"  # what one person can influence several of
    is_free: ClassVar[bool] = False  # whether the answer follows from public numbers alone
    needs_limit: ClassVar[bool] = False  # whether its noise grows with `max_values`
    needs_runs: ClassVar[bool] = False  # whether an engine that returns levels draws with `select_runs`

    k: int
    candidates: int
    max_values: int | None = None
    ordered: bool = False

    @property
    def values(self) -> int:
        """Return for how many candidates one person can count."""
        return self.candidates if self.max_values is None else min(self.max_values, self.candidates)

    @property
    def fewer(self) -> int:
        """Return the number of candidates that are chosen, or left out, whichever is smaller."""
        return min(self.k, self.candidates - self.k)

    @property
    def leaves_out(self) -> bool:
        """Return whether the candidates that are left out are chosen."""
        return False

    @property
    def sizes_asked(self) -> Any:
        """Return how many candidates are chosen: a number, or a pair for an interval."""
        return self.k

    @property
    def rounds(self) -> int:
        """Return how many draws an answer consists of."""
        return 1

    @property
    def selections(self) -> int | None:
        """Return the number of selections, each among the candidates that are left; None if it is not done so."""
        return None

    @property
    def parts(self) -> int:
        """Return the number of equal parts of a charge."""
        return self.rounds

    @abstractmethod
    def claim(self, monotonic: bool) -> Claim:
        """Return how far apart the scores of neighbours are: `monotonic` if one is added or removed, else replaced."""

    def drawn_by(self, price: Price, budget: Budget | None, groups: int, monotonic: bool) -> MechanismBase:
        """Return the mechanism that draws, with its share of a price that is divided among groups."""
        claim = self.claim(monotonic).arguments()
        return self.checked(price.drawn_by(budget, self.rounds * groups, **claim))

    def checked(self, mechanism: MechanismBase) -> MechanismBase:
        """Return the mechanism, checked to be one that can draw."""
        if not mechanism.has_sets:
            raise InvalidType(
                f"mechanism {mechanism.name} cannot draw with method {self.name}: use permute-and-flip or exponential"
            )
        return mechanism

    def check_scores(self, scores: Vector) -> None:
        """Refuse scores that the method cannot take. Called before anything is charged."""
        gaps_of(scores, UNIT_RATE)  # refuses scores that are not finite

    def cost(self, mechanism: MechanismBase) -> tuple[Priced, int]:
        """Return the parts that a ledger records, and their number."""
        return mechanism, self.parts

    @abstractmethod
    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:
        """Return bounds on the errors with this mechanism at rate one, for all data.

        `average` is about the shortfall per item. `tail` is about that, too, for sets and for candidates that are left
        out one after another; about a single choice if one after another is chosen; and otherwise about the cut, or
        about all differences of an answer in order.
        """

    @abstractmethod
    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:
        """Draw: return positions, in order if that is part of the answer, otherwise ascending.

        With lengths, the positions are those in the vector in which each score is repeated.
        """

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        limit = {} if self.max_values is None else {"max_values": self.max_values}
        return {"k": self.k, "method": self.name, "ordered": self.ordered, **limit}

    @property
    def limit(self) -> int | None:
        """Return for how many candidates a person counts, if they may have more; otherwise None."""
        return None if self.max_values is None or self.max_values >= self.candidates else self.max_values

    @property
    def size_words(self) -> str:
        """Return how many candidates are chosen, in words."""
        return f"{self.k:,}"

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the bounds mean: on average, in 95 and in 99 of 100 cases."""
        return (
            f"On average, the mean count of the {self.k:,} chosen values is at most {average} people below that of the"
            f" {self.k:,} most common ones. {self._in_most_cases(usual, rare)}"
        )

    def _in_most_cases(self, usual: str, rare: str) -> str:
        if self.ordered:
            return (
                f"In 95 of 100 cases, each i-th value has less than {usual} fewer people than the i-th most common one,"
                f" for all i together; in 99 of 100, less than {rare}."
            )
        return (
            f"In 95 of 100 cases, every value that is left out has less than {usual} people more than any chosen one;"
            f" in 99 of 100, less than {rare}."
        )

    def remark(self, within_95: float) -> str:  # noqa: ARG002 - for methods that have one
        """Return what else follows from the bound for 95 of 100 cases; usually nothing."""
        return ""

    def taken_for(self, concentrated: bool, asked: str) -> str:
        """Return that this method answers, and why.

        >>> Peel(1, 1000).taken_for(concentrated=False, asked="auto")
        'The method is peel, because one candidate is chosen, so one selection is enough.'
        """
        if asked == self.name:
            return f"The method is {self.name}, as asked."
        if asked == ONE_SHOT:
            return (
                f"The method is {self.name}: with this mechanism, one shot has the law of one selection after another."
            )
        return f"The method is {self.name}, because {self._reason('in zCDP ' if concentrated else '')}."

    @abstractmethod
    def _reason(self, currency: str) -> str:
        """Why `automatic` takes this method. `currency` names zCDP if costs add up in it."""

    @property
    def _counts_for(self) -> str:
        if self.max_values is None:
            return "a person may count for any number of candidates"
        return f"a person counts for at most {'one candidate' if self.values == 1 else f'{self.values:,} candidates'}"


def _difference(usual: str, rare: str) -> str:
    return f"In 95 of 100 cases the difference is less than {usual}, in 99 of 100 less than {rare}."


class All(Method):
    """All candidates: nothing is read, and nothing is charged."""

    name: ClassVar[str] = "all"

    is_free: ClassVar[bool] = True

    def claim(self, monotonic: bool) -> Claim:
        """Return any claim: nothing is drawn."""
        return stated(1, monotonic)

    def checked(self, mechanism: MechanismBase) -> MechanismBase:
        """Return the mechanism, which does not draw."""
        return mechanism

    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:  # noqa: ARG002 - unread
        """Return all positions."""
        return list(range(self.candidates))

    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:  # noqa: ARG002 - nothing is drawn
        """Return that there is no error."""
        return UnitErrors(0.0, 0.0, lambda _: 0.0)

    def meaning(self, average: str, usual: str, rare: str) -> str:  # noqa: ARG002 - there is no error
        """Return that there is no error."""
        return f"All {self.k:,} candidates are chosen, so the answer has no error."

    def _reason(self, currency: str) -> str:  # noqa: ARG002 - for methods whose reason is about zCDP
        return "all candidates are chosen, so nothing need be drawn or charged"


class Set(Method):
    """One choice among all sets of k candidates, by the sum of their scores."""

    name: ClassVar[str] = "set"
    needs_limit: ClassVar[bool] = True

    def claim(self, monotonic: bool) -> Claim:
        """Return the range of sums."""
        return stated(score_range=min(self.values, self.fewer) * (1 if monotonic else 2))

    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:
        """Draw a set, listed by position."""
        return selecting_sets(mechanism).select_set(scores, self.k, lengths=lengths)

    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:
        """Return the bounds of one choice among all sets."""
        return bounds.of_sets(kind, self.candidates, self.k)

    def _in_most_cases(self, usual: str, rare: str) -> str:
        return _difference(usual, rare)

    def _reason(self, currency: str) -> str:
        less = f"one choice of a whole set needs less noise than {self.fewer:,} selections"
        return f"{self._counts_for}, so {currency}{less}"


@dataclass(frozen=True)
class Margin(Method):
    """One choice among all sets whose size is in an interval, by their margin.

    Args:
        k: the largest size.
        candidates: the number of candidates to choose from.
        max_values: for how many candidates one person may count; it does not matter here.
        ordered: must be False.
        least: the smallest size; k if omitted.
    """

    name: ClassVar[str] = "margin"

    least: int | None = None

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the smallest and the largest size."""
        return self.k if self.least is None else self.least, self.k

    @property
    def sizes_asked(self) -> Any:
        """Return how many candidates are chosen: a number, or a pair for an interval."""
        return self.k if self.least is None else self.sizes

    def claim(self, monotonic: bool) -> Claim:
        """Return the range of margins."""
        return stated(score_range=2 if monotonic else 4)

    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:
        """Draw a set, listed by position."""
        return selecting_sets(mechanism).select_margin(scores, self.sizes_asked, lengths=lengths)

    def check_scores(self, scores: Vector) -> None:
        """Refuse scores that are not counts."""
        super().check_scores(scores)
        checked_counts(scores)

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        return {**super().parameters(), "k": self.k if self.least is None else list(self.sizes)}

    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:
        """Return the bounds of the cut."""
        return bounds.of_margins(kind, self.candidates, *self.sizes)

    @property
    def _is_interval(self) -> bool:
        return self.sizes[0] < self.sizes[1]

    @property
    def size_words(self) -> str:
        """Return how many candidates are chosen, in words."""
        return super().size_words if self.least is None else f"{self.least} to {self.k}"

    def meaning(self, average: str, usual: str, rare: str) -> str:
        """Return what the bounds mean."""
        if not self._is_interval:
            return super().meaning(average, usual, rare)
        return (
            f"On average, the mean count of the chosen values is at most {average} people below that of the same number"
            f" of most common ones. {self._in_most_cases(usual, rare)}"
        )

    def remark(self, within_95: float) -> str:
        """Return when the margin finds the true top k."""
        if self._is_interval:
            return ""
        return (
            f"If the k-th most common value leads the next one by {shown(within_95 / 2)} people or more, the"
            f" {self.k:,} most common ones are chosen in 95 of 100 cases."
        )

    def _reason(self, currency: str) -> str:  # noqa: ARG002 - for methods whose reason is about zCDP
        return "a person changes the margin of a set by at most one, however many candidates they count for"


class _OneByOne(Method):
    """What one shot and peeling share: they can choose what is left out instead."""

    @property
    def leaves_out(self) -> bool:
        """Return whether the candidates that are left out are chosen."""
        return not self.ordered and 2 * self.k > self.candidates

    @property
    def rounds(self) -> int:
        """Return how many candidates are chosen, or left out."""
        return self.candidates - self.k if self.leaves_out else self.k

    def claim(self, monotonic: bool) -> Claim:
        """Return how far one count moves, up or down."""
        return stated(1, monotonic)

    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:
        """Draw one candidate after another, or those that are left out."""
        vector = as_vector(scores)
        if not self.leaves_out:
            found = self._in_order(mechanism, vector, lengths)
            return found if self.ordered else sorted(found)
        out = set(self._in_order(mechanism, negated(vector), lengths))
        return [position for position in range(self.candidates) if position not in out]

    @abstractmethod
    def _in_order(self, mechanism: MechanismBase, scores: Vector, lengths: Any) -> list[int]:
        """Draw `rounds` candidates with high scores in order."""


class OneShot(_OneByOne):
    """The candidates with the largest counts after exponential noise."""

    name: ClassVar[str] = ONE_SHOT

    def drawn_by(self, price: Price, budget: Budget | None, groups: int, monotonic: bool) -> MechanismBase:
        """Return the mechanism of each candidate. Only the pure epsilon of all of them together is known."""
        kind, each = price.kind(budget), price.each(PURE_LOSS, groups) / self.rounds
        return self.checked(kind(each, **self.claim(monotonic).arguments()))

    def cost(self, mechanism: MechanismBase) -> tuple[Priced, int]:
        """Return one part, of which only the pure epsilon is known."""
        return Share(self.name, mechanism.epsilon * self.rounds, PURE_LOSS, mechanism.claim), self.parts

    @property
    def parts(self) -> int:
        """Return one: all noises are one release."""
        return 1

    def _in_order(self, mechanism: MechanismBase, scores: Vector, lengths: Any) -> list[int]:
        return selecting_in_order(mechanism).select_order(scores, self.rounds, lengths=lengths)

    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:
        """Return the bounds of exponential noise."""
        return bounds.of_one_shot(kind, self.candidates, self.k, self.rounds, ordered=self.ordered)

    def _reason(self, currency: str) -> str:  # noqa: ARG002 - for methods whose reason is about zCDP
        if self.ordered:
            return (
                f"{self._counts_for}, and for an answer in order, noise that is added to each count once has no larger"
                f" bounds than {self.k:,} selections"
            )
        return (
            f"{self._counts_for}, so a set needs as much noise, and for so few candidates noise that is added to each"
            " count once was better on public data"
        )


class Peel(_OneByOne):
    """One selection after another, each among the candidates that are left."""

    name: ClassVar[str] = "peel"
    needs_runs: ClassVar[bool] = True

    @property
    def selections(self) -> int | None:
        """Return the number of selections, unless the candidates that are left out are selected."""
        return None if self.leaves_out else self.rounds

    def checked(self, mechanism: MechanismBase) -> MechanismBase:
        """Return the mechanism: any can draw."""
        return mechanism

    def _in_order(self, mechanism: MechanismBase, scores: Vector, lengths: Any) -> list[int]:
        if lengths is None:
            return peeled(scores, self.rounds, mechanism)
        return peeled_in_runs(scores, lengths, self.rounds, mechanism)

    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:
        """Return the bounds of one selection, or of all that are left out."""
        return bounds.of_peeling(kind, self.candidates, self.k, self.rounds, leaves_out=self.leaves_out)

    def _in_most_cases(self, usual: str, rare: str) -> str:
        return _difference(usual, rare)

    def _reason(self, currency: str) -> str:  # noqa: ARG002 - for methods whose reason is about zCDP
        if self.rounds == 1:
            return f"one candidate is {'chosen' if self.k == 1 else 'left out'}, so one selection is enough"
        return f"{self._counts_for}, and in zCDP {self.rounds:,} selections need less noise than the other methods"


class NoisyCounts(Method):
    """The candidates with the largest counts after Laplace noise, whose scale follows from all counts of a person."""

    name: ClassVar[str] = "noisy-counts"
    draws_of: ClassVar[str] = "counts"
    needs_limit: ClassVar[bool] = True
    mechanisms: ClassVar[tuple[str, ...]] = (AUTO, ReportNoisyMax.name)  # that may be asked for

    def claim(self, monotonic: bool) -> Claim:
        """Return how far all counts together move."""
        return stated(score_range=self.values * (1 if monotonic else 2))

    def drawn_by(self, price: Price, budget: Budget | None, groups: int, monotonic: bool) -> MechanismBase:  # noqa: ARG002 - one mechanism
        """Return report noisy max, whatever the budget: it adds Laplace noise."""
        if price.mechanism not in self.mechanisms:
            raise InvalidValue(f"method {self.name} adds Laplace noise: leave mechanism out, or give noisy-max")
        each = price.each(ReportNoisyMax.loss, self.values * groups)
        return ReportNoisyMax(each * self.values, **self.claim(monotonic).arguments())

    def cost(self, mechanism: MechanismBase) -> tuple[Priced, int]:
        """Return one part for each count that a person can change."""
        return Share(mechanism.name, mechanism.epsilon / self.parts, mechanism.loss, mechanism.claim), self.parts

    @property
    def parts(self) -> int:
        """Return the number of counts that a person can change."""
        return self.values

    def chosen(self, mechanism: MechanismBase, scores: Any, lengths: Any = None) -> list[int]:
        """Draw the candidates with the largest noisy counts."""
        found = selecting_in_order(mechanism).select_order(scores, self.k, lengths=lengths)
        return found if self.ordered else sorted(found)

    def bounds(self, kind: type[MechanismBase]) -> UnitErrors:
        """Return the bounds of Laplace noise."""
        return bounds.of_noisy_counts(kind, self.candidates, self.k, ordered=self.ordered)

    def _reason(self, currency: str) -> str:
        smallest = "noise on all counts, which also pays for an order, may be the smallest"
        return f"{self._counts_for}, so {currency}{smallest}"


METHODS: dict[str, type[Method]] = {kind.name: kind for kind in (Set, Margin, OneShot, Peel, NoisyCounts)}
_SETS = (Set.name, Margin.name)
_LIMITED = (Set.name, NoisyCounts.name)


def automatic(  # noqa: PLR0913 - one parameter for each public number
    k: int,
    candidates: int,
    max_values: int | None,
    ordered: bool,
    concentrated: bool,
    *,
    sets: bool = True,
    laplace: bool = True,
) -> type[Method]:
    """The method that `auto` takes: the first row that holds. k' = min(k, d - k), and m = d without a limit.

      pure, not ordered    k' = 1: peel;  2 m <= k': set;  k' >= 5: margin;  m < k': set;  otherwise one-shot
      pure, ordered        k = 1: peel;  5 m <= 4 k: noisy-counts;  otherwise one-shot
      zCDP, not ordered    the smallest of sqrt(k') (peel), m (set) and 2 sqrt(m) (noisy-counts)
      zCDP, ordered        the smaller of sqrt(k) (peel) and 2 sqrt(m) (noisy-counts)

    A mechanism that is named must be able to draw. Without `sets` it cannot choose a set or in one shot, and without
    `laplace` it adds no Laplace noise, so noisy-counts is left out. Among more than 2**60 candidates, which a rule may
    have, only peeling can choose.

    In zCDP these are the scales of the noise, up to a common factor: k selections at rho / k, one of range m, or
    Laplace noise on m counts at rho / m. In pure epsilon they are k', m and m; which of two of one size is better, and
    where the margin is better than one shot, was measured on public data (docs/top-k.md).

    >>> automatic(10, 1000, None, ordered=False, concentrated=False).name
    'margin'
    """
    m = candidates if max_values is None else min(max_values, candidates)
    few = k if ordered else min(k, candidates - k)
    if not sets:
        return NoisyCounts if laplace and max_values is not None else Peel
    if concentrated:
        squares: dict[type[Method], int] = {Peel: few, **({NoisyCounts: 4 * m} if laplace else {})}
        squares.update({} if ordered else {Set: m * m})
        return min(squares, key=lambda method: squares[method])
    if few == 1:
        return Peel
    if ordered:
        return NoisyCounts if laplace and 5 * m <= 4 * k else OneShot
    if 2 * m <= few:
        return Set
    return Margin if few >= 5 else Set if m < few else OneShot


def method_for(  # noqa: PLR0913 - one parameter for each public choice
    k: Any,
    candidates: int,
    *,
    method: Any = AUTO,
    max_values: Any = None,
    ordered: Any = False,
    price: Price,
    budget: Budget | None = None,
) -> Method:
    """The method that these public numbers state, checked. `method` is a name or "auto"."""
    limit = checked_limit(max_values)
    in_order = _validate.boolean(ordered=ordered)
    name = _name(method)
    if in_order and name in _SETS:
        raise InvalidValue(f"method {name} has no order to return: leave out either ordered or the method")
    least, most = sizes_of(k, candidates)
    is_pair = isinstance(k, (tuple, list))
    if is_pair and (in_order or name not in (AUTO, Margin.name)):
        raise InvalidValue("k may be a pair only with method margin: give one number")
    if is_pair:
        return Margin(most, candidates, limit, least=least)
    if name in _LIMITED and limit is None:
        raise InvalidValue(
            f"method {name} needs max_values: how many candidates one person may count for. It is public, and must"
            " not be taken from the data"
        )
    explicit_order = is_in_order(name, in_order)
    if most == candidates and not explicit_order:
        return All(most, candidates, limit)
    drawn = price.kind(budget)
    if candidates > MOST_MEMBERS:
        if name not in (AUTO, Peel.name):
            raise InvalidValue(f"method {name} takes at most 2**60 candidates: use method peel, or fewer candidates")
        name = Peel.name
    kind = METHODS.get(name) or automatic(
        most,
        candidates,
        limit,
        in_order,
        price.is_concentrated(budget),
        sets=drawn.has_sets,
        laplace=price.mechanism in NoisyCounts.mechanisms,
    )
    if kind is OneShot and not drawn.has_one_shot:
        kind = Peel  # with Gumbel noise, one shot has the law of one selection after another, and costs less so
    return kind(most, candidates, limit, explicit_order)


def is_in_order(method: str, ordered: bool) -> bool:
    """Whether an answer is in order: if that is asked, or if a method is asked by name that returns an order.

    >>> is_in_order("auto", ordered=False), is_in_order("peel", ordered=False)
    (False, True)
    """
    return ordered or method not in (AUTO, *_SETS)


def _name(method: Any) -> str:
    if not isinstance(method, str):
        raise InvalidType(f"method must be a name, got {type(method).__name__}")
    if method != AUTO and method not in METHODS:
        raise InvalidValue(f"method must be one of {', '.join([AUTO, *METHODS])}, got {method[:40]!r}")
    return method


def checked_limit(max_values: Any) -> int | None:
    """For how many candidates one person may count; None for any number."""
    if max_values is None:
        return None
    number = _validate.count(max_values=max_values)
    if not number:
        raise InvalidValue("max_values must be >= 1, got 0")
    return number


def negated(scores: Vector) -> Vector:
    """Scores in reverse order: the largest minus each one would be rounded, so integers and rationals are negated."""
    if isinstance(scores, list):
        return [-score for score in scores]
    if scores.dtype.kind == "f":
        return -scores
    return as_vector([-score for score in scores.tolist()]) if scores.dtype.kind == "u" else _negated_integers(scores)


def _negated_integers(scores: Array) -> Vector:
    """Negated 64-bit integers; the smallest one has no counterpart of its own type."""
    wide = scores.astype(np.int64)
    if wide.size and int(wide.min()) == np.iinfo(np.int64).min:
        return as_vector([-score for score in wide.tolist()])
    return -wide


def peeled(scores: Vector, k: int, mechanism: MechanismBase) -> list[int]:
    """Select positions one after another, each from those that are left.

    The time does not depend on the scores if the mechanism has a steady schedule.
    """
    left, chosen = list(range(len(scores))), []
    values = np.array(scores) if isinstance(scores, np.ndarray) else list(scores)
    for _ in range(k):
        position = mechanism.select(values, steady=mechanism.has_steady)
        chosen.append(left.pop(position))
        values = np.delete(values, position) if isinstance(values, np.ndarray) else _without(values, position)
    return chosen


def _without(values: list[Fraction], position: int) -> list[Fraction]:
    return values[:position] + values[position + 1 :]


def peeled_in_runs(scores: Vector, lengths: Any, k: int, mechanism: MechanismBase) -> list[int]:
    """Select from runs of equal scores one after another, each from the candidates that are left.

    Returns positions in the vector in which each score is repeated.
    """
    sizes = [int(length) for length in as_lengths(lengths, len(scores)).tolist()]
    starts = [0, *accumulate(sizes)]
    left, taken = list(sizes), [list[int]() for _ in sizes]
    chosen = []
    for _ in range(k):
        position = mechanism.select_runs(scores, left)
        ends = list(accumulate(left))
        run = bisect_right(ends, position)
        rank = position - (ends[run] - left[run])
        for earlier in taken[run]:  # in ascending order
            rank += earlier <= rank
        insort(taken[run], rank)
        left[run] -= 1
        chosen.append(starts[run] + rank)
    return chosen
