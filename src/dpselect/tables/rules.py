"""The values of a rule that most individuals have. A rule is a public domain that is too large to list.

All values that nobody has are one run of candidates with score 0, whatever their number. If the choice falls into that
run, a uniform value that nobody has is the answer, drawn again and again until it is one. So the answer has exactly the
distribution that it would have if all values of the domain were listed, at the same pure epsilon. An answer "none of
them" would be different: it would reveal that nobody has the value.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from dpselect.accounting.budget import Budget, Price
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.parameters import Neighbours
from dpselect.sampling.draws import Draws
from dpselect.tables.candidates import Values
from dpselect.tables.domains import Domain
from dpselect.tables.questions import Drawing, Engine, Individuals, Levels, Tally, counted, drawing_of, most_words
from dpselect.tables.schema import Column
from dpselect.top_k import Method

# A domain with so few values is counted like a list.
_LISTED = 2**12
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
        return drawing_of(self.method, price, budget, neighbours, groups)

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters, as JSON can hold them."""
        question = {"question": "mode"} if self.single else {"question": "top_k", **self.method.parameters()}
        return {**question, "column": self.column.name, "candidates": self.domain.words}

    @property
    def listed(self) -> list[Any]:
        """Return all values of the domain in order."""
        return list(map(self.domain.value, range(self.domain.size)))

    @property
    def states_estimate(self) -> bool:
        """Return True."""
        return True

    def estimate(self, individuals: Individuals) -> str:
        """Return what is estimated, in words."""
        return f"{most_words(self.method, self.single, individuals)}, of {self.domain.words}"

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
        places = zip(runs, positions, strict=True)
        wanted = [(group, scores[run], position - ends[run] + lengths[run]) for run, position in places if run]
        # At least one value is drawn even if none is needed, so that the time does not tell.
        seen, unseen = iter(tally.values(wanted)), iter(self._unseen(group, runs.count(0), tally, draws))
        chosen = [next(seen) if run else next(unseen) for run in runs]
        own = [self.domain.value(_known(self.domain.index(value))) for value in chosen]  # as the rule writes it
        return own if self.method.ordered else sorted(own, key=self.domain.index)

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
