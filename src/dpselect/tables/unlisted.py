"""Questions whose candidates nobody listed: a rule instead of a list, or values that are found in the data.

**A rule** is a public domain that is too large to list. All values that nobody has are one run of candidates with score
0, whatever their number. If the choice falls into that run, a uniform value that nobody has is the answer, drawn again
and again until it is one. So the answer has exactly the distribution that it would have if all values of the domain
were listed, at the same pure epsilon. An answer "none of them" would reveal that nobody has the value.

**Found values** need a delta. The most common ones are chosen above a threshold (`mechanisms.thresholds`). All that are
common enough are found by coins (`mechanisms.finding`). Both are (epsilon, delta)-differentially private, and what they
return is public. "Nothing was common enough" is an answer like any other, at the same cost.

**Shares.** A top-k of found values is k selections one after another, each with 1/k of epsilon and of delta; so are
groups. The coins of m values of a person have a share of 1/m each. A person who is replaced changes the counts of up to
m values that they leave and of m that they get: 2 m coins.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

from dpselect import _validate
from dpselect._numbers import LONGEST
from dpselect.accounting.budget import AUTO, Budget, Price
from dpselect.accounting.charge import EXPONENTIAL_FOUND, PARTITION_SELECTION
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.finding import Finding
from dpselect.mechanisms.parameters import Neighbours
from dpselect.mechanisms.privacy import PURE_LOSS, Guarantee
from dpselect.mechanisms.thresholds import MOST, Factor, Threshold, chosen_above, threshold
from dpselect.sampling.draws import Draws
from dpselect.tables.accuracy import Asked, Measure, of_found, of_most
from dpselect.tables.candidates import Values
from dpselect.tables.domains import Domain
from dpselect.tables.questions import (
    Drawing,
    Engine,
    Individuals,
    Levels,
    Tally,
    checked_for_tables,
    counted,
    drawing_of,
    most_words,
)
from dpselect.tables.schema import Column
from dpselect.top_k import Method, Peel, Share

# A domain with so few values is counted like a list.
_LISTED = 2**12
_MOST_LISTED = 10**6
_FIRST_TRIES, _MOST_TRIES = 64, 2**16


@dataclass(frozen=True)
class RuleTopK:
    """The values of a domain that most individuals have, as a method of `dpselect.top_k` chooses them; or the mode."""

    column: Column
    domain: Domain
    method: Method
    single: bool = False

    def mechanism(self, price: Price, budget: Budget | None, neighbours: Neighbours, groups: int | None) -> Drawing:
        """Return the mechanism that draws at this price, and what is charged for it."""
        # No mechanism takes a longer run. This must be refused before the charge.
        if self.domain.size.bit_length() > LONGEST:
            raise InvalidValue(f"{self.domain.words} has too many values: give a smaller max_bytes, or an alphabet")
        return drawing_of(self.method, price, budget, neighbours, groups)

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        question = {"question": "mode"} if self.single else {"question": "top_k", **self.method.parameters()}
        return {**question, "column": self.column.name, "candidates": self.domain.words}

    @property
    def listed(self) -> list[Any]:
        """Return all values of the domain in order."""
        if self.domain.size > _MOST_LISTED:
            raise InvalidValue(f"k must be at most {_MOST_LISTED:,}: {self.domain.words} has more values than that")
        return list(map(self.domain.value, range(self.domain.size)))

    def estimate(self, individuals: Individuals) -> str:
        """Return what is estimated, in words."""
        return f"{most_words(self.method, self.single, individuals)}, of {self.domain.words}"

    def measured(self, asked: Asked, drawing: Drawing, price: Price, budget: Budget | None) -> Measure:  # noqa: ARG002
        """Return what computes how far an answer may be off."""
        return of_most(asked, self.method, drawing.mechanism, single=self.single, rule=self.domain.words)

    def answer(self, engine: Engine, individuals: Individuals, mechanism: MechanismBase) -> Any:
        """Count and select: return a value or several of them, or a dict with that for each group."""
        chosen = self._chosen(engine, individuals, mechanism)
        return individuals.by_group([values[0] for values in chosen] if self.single else chosen)

    def _chosen(self, engine: Engine, individuals: Individuals, mechanism: MechanismBase) -> list[list[Any]]:
        if self.domain.size <= _LISTED:
            every = Values(self.domain.kind, tuple(self.listed))
            return engine.chosen(self.column, every, individuals, self.method, mechanism)
        draws = Draws()

        def choose() -> list[list[Any]]:
            with engine.tally(self.column, self.domain, individuals, self.method.max_values) as tally:
                levels = tally.levels()
                return [self._of_group(group, own, tally, mechanism, draws) for group, own in enumerate(levels)]

        return counted(choose)

    def _of_group(self, group: int, levels: Levels, tally: Tally, mechanism: MechanismBase, draws: Draws) -> list[Any]:
        scores, lengths = [0, *levels.individuals], [self.domain.size - sum(levels.values), *levels.values]
        positions = self.method.chosen(mechanism, scores, lengths)
        ends = list(accumulate(lengths))
        runs = [bisect_right(ends, position) for position in positions]
        wanted = [
            (group, scores[run], position - ends[run] + lengths[run])
            for run, position in zip(runs, positions, strict=True)
            if run
        ]
        # At least one value is drawn even if none is needed, so that the time does not tell.
        seen, unseen = iter(tally.values(wanted)), iter(self._unseen(group, runs.count(0), tally, draws))
        chosen = [next(seen) if run else next(unseen) for run in runs]
        places = [_known(self.domain.index(value)) for value in chosen]
        return [self.domain.value(place) for place in (places if self.method.ordered else sorted(places))]

    def _unseen(self, group: int, count: int, tally: Tally, draws: Draws) -> Sequence[Any]:
        """So many different uniform values that nobody in the group has."""
        found: dict[int, Any] = {}
        tries = max(_FIRST_TRIES, 2 * count)
        while True:
            drawn = dict.fromkeys(draws.index(self.domain.size) for _ in range(tries))
            values = tally.unseen(group, [self.domain.value(index) for index in drawn])
            found.update({_known(self.domain.index(value)): value for value in values})
            if len(found) >= count:
                return list(found.values())[:count]
            tries = min(2 * tries, _MOST_TRIES)


def _known(index: int | None) -> int:
    """The index of a value that is in the domain."""
    if index is None:
        raise LookupError("a value that was counted is not in the domain")
    return index


@dataclass(frozen=True)
class Above:
    """A mechanism, and the threshold above which it chooses. Public."""

    mechanism: MechanismBase
    threshold: Threshold


@dataclass(frozen=True)
class FoundTopK:
    """The values that most individuals have, if they are common enough.

    Attributes:
        column: the column that the question is about.
        k: the largest number of values.
        max_values: for how many values a person counts; None for any number.
        single: whether the only value is the answer, or None.
    """

    column: Column
    k: int
    max_values: int | None
    single: bool = False

    def mechanism(self, price: Price, budget: Budget | None, neighbours: Neighbours, groups: int | None) -> Drawing:
        """Return the mechanism and its threshold, and what is charged for it."""
        delta = checked_delta(price)
        kind = price.kind(budget)
        count, is_luce = self.k * (groups or 1), getattr(kind, "is_luce", False)
        loss = kind.loss if is_luce else PURE_LOSS
        monotonic = neighbours is Neighbours.ADD_REMOVE
        drawn = checked_for_tables(kind(price.each(loss, count), sensitivity=1, monotonic=monotonic))
        if drawn.far_below is None:
            raise InvalidType(f"mechanism {drawn.name} cannot choose among found values: use permute-and-flip")
        factor = Factor(drawn.far_below, replaced=not monotonic, grouped=groups is not None)
        above = Above(drawn, threshold(drawn.rate, delta / count, self.max_values, factor))
        part = Share(EXPONENTIAL_FOUND if is_luce else drawn.name, drawn.epsilon, loss, drawn.claim)
        return Drawing(above, part, count, delta)

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        question = {"question": "mode"} if self.single else {"question": "top_k", "k": self.k}
        limit = {} if self.max_values is None else {"max_values": self.max_values}
        return {**question, "column": self.column.name, "candidates": "found in the data", **limit}

    def estimate(self, individuals: Individuals) -> str:
        """Return what is estimated, in words."""
        is_one = self.single or self.k == 1
        what, it = ("the value", "it") if is_one else (f"up to {self.k:,} values", "them")
        counted = individuals.counted_for(self.max_values)
        return f"{what} that most {individuals.noun} have, if enough have {it}{counted}{individuals.in_each_group}"

    def measured(self, asked: Asked, drawing: Drawing, price: Price, budget: Budget | None) -> Measure:  # noqa: ARG002
        """Return what computes how many individuals must have a value."""
        named: dict[str, Any] = {"question": "mode"} if self.single else {"question": "top_k", "k": self.k}
        return of_found(asked, price, budget, **named, max_values=self.max_values)

    def answer(self, engine: Engine, individuals: Individuals, mechanism: Above) -> Any:
        """Count and select: return a value or None, or a list of at most k values, or a dict with that."""

        def choose() -> list[list[Any]]:
            with engine.tally(self.column, None, individuals, self.max_values) as tally:
                levels = tally.levels()
                chosen = [
                    chosen_above(own.individuals, own.values, self.k, mechanism.threshold, mechanism.mechanism)
                    for own in levels
                ]
                wanted = [(group, *place) for group, places in enumerate(chosen) for place in places]
                values = iter(tally.values(wanted))
                return [[next(values) for _ in places] for places in chosen]

        found = counted(choose)
        return individuals.by_group([own[0] if own else None for own in found] if self.single else found)


@dataclass(frozen=True)
class FoundShare:
    """One coin of a value, in the form that a release needs."""

    epsilon: Fraction
    name: str = PARTITION_SELECTION

    @property
    def guarantee(self) -> Guarantee:
        """Return what one coin guarantees, without its delta."""
        return Guarantee(self.epsilon, PURE_LOSS.zcdp(self.epsilon))

    def terms(self) -> dict[str, Any]:
        """Return nothing: the question states all parameters."""
        return {}


@dataclass(frozen=True)
class FoundValues:
    """All values that enough individuals have.

    Attributes:
        column: the column that the question is about.
        max_values: for how many values a person counts.
    """

    column: Column
    max_values: int

    def mechanism(self, price: Price, budget: Budget | None, neighbours: Neighbours, groups: int | None) -> Drawing:  # noqa: ARG002
        """Return the coins, and what is charged for them."""
        delta = checked_delta(price)
        count = self.max_values * (groups or 1) * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
        each = price.each(PURE_LOSS, count)
        return Drawing(Finding(each, delta / count), FoundShare(each), count, delta)

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        return {"question": "values", "column": self.column.name, "max_values": self.max_values}

    def estimate(self, individuals: Individuals) -> str:
        """Return what is estimated, in words."""
        counted = individuals.counted_for(self.max_values)
        return f"the values that enough {individuals.noun} have{counted}{individuals.in_each_group}"

    def measured(self, asked: Asked, drawing: Drawing, price: Price, budget: Budget | None) -> Measure:  # noqa: ARG002
        """Return what computes how many individuals must have a value."""
        return of_found(asked, price, budget, question="values", max_values=self.max_values)

    def answer(self, engine: Engine, individuals: Individuals, mechanism: Finding) -> Any:
        """Count and flip: return the values in ascending order, or a dict with that for each group."""

        def find() -> list[list[Any]]:
            with engine.tally(self.column, None, individuals, self.max_values) as tally:
                return tally.found(mechanism)

        return individuals.by_group(counted(find))


def checked_delta(price: Price) -> Fraction:
    """The delta of a question about values that nobody listed."""
    if price.delta is None:
        raise InvalidValue(
            "give candidates, the public list of possible answers, or a rule such as dpselect.every('int64');"
            " without them the question needs delta, such as 1e-9"
        )
    delta: Fraction = price.delta
    return delta


def found_size(k: Any, method: str) -> int:
    """How many values a top-k without a list may have, checked."""
    if method not in (AUTO, Peel.name):
        raise InvalidValue(f"method must be auto or peel without a list of candidates, got {str(method)[:40]!r}")
    if isinstance(k, (tuple, list)):
        raise InvalidValue("k may be a pair only with a list of candidates: give one number")
    number = _validate.count(k=k)
    if not 1 <= number <= MOST:
        raise InvalidValue(f"k must be from 1 to {MOST:,} without a list of candidates, got {number}")
    return number
