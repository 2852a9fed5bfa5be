"""The law of an answer on a table and on each of its neighbours, and how far apart the two are.

A world is some other people, and everything that one individual may be: absent, or some rows. The law comes from the
real question on real rows (`seam.answers`), with one salt on both tables: if no law of one salt is too far from its
neighbour's, then neither is the law of a random salt. The distance is the hockey stick at the epsilon that is charged,
which must be at most the delta that is charged. Without a delta it is the largest logarithm of a ratio of
probabilities, which must be at most epsilon; and no Rényi divergence of an order alpha may exceed alpha times the rho
that is guaranteed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import dpselect
from tests import seam

Row = tuple[Any, ...]
Rows = tuple[Row, ...]
ADD_REMOVE, REPLACE = "add-remove", "replace"
RELATIONS = (ADD_REMOVE, REPLACE)
SLACK = 1e-9
ORDERS = np.array([1.01, 2.0, 5.0, 30.0])
_TYPES = {"x": pa.string(), "n": pa.int64(), "g": pa.string(), "h": pa.int64()}


@dataclass(frozen=True)
class World:
    """Other people and the rows that one individual may have; the first of these is nobody.

    Attributes:
        columns: the names of the columns: x is text, n a number, g and h are groups.
        others: tables of everybody else, who are individuals with rows.
        options: the rows of one individual.
        person: whether there is a column of people. Without it, each individual has one row.
    """

    columns: tuple[str, ...]
    others: tuple[tuple[Rows, ...], ...]
    options: tuple[Rows, ...]
    person: bool = True

    def source(self, individuals: Sequence[Rows]) -> pa.Table:
        """Return the table of these individuals, the last of whom is the one who changes."""
        numbered = [(i, row) for i, rows in enumerate(individuals) for row in rows]
        own = {
            name: pa.array([row[place] for _, row in numbered], _TYPES[name]) for place, name in enumerate(self.columns)
        }
        return pa.table({"who": pa.array([i for i, _ in numbered], pa.int64()), **own} if self.person else own)

    def opened(self, relation: str, **options: Any) -> Any:
        """Return a table without rows."""
        person = "who" if self.person else None
        return dpselect.open_table(self.source([]), person=person, neighbours=relation, **options)


@dataclass(frozen=True)
class Apart:
    """How far the laws of neighbours are apart at most, and what is charged."""

    loss: float  # the largest logarithm of a ratio; infinite if an answer is possible on one table only
    divergence: float  # the largest hockey stick at the charged epsilon
    renyi: float  # the largest Rényi divergence over its order
    epsilon: float
    delta: float
    rho: float

    @property
    def is_private(self) -> bool:
        """Return whether the charge covers the distance."""
        if self.delta:
            return self.divergence <= self.delta * (1 + SLACK)
        return self.loss <= self.epsilon * (1 + SLACK) and self.renyi <= self.rho * (1 + SLACK)

    @property
    def share(self) -> float:
        """Return the part of what is charged that is lost."""
        return self.divergence / self.delta if self.delta else self.loss / self.epsilon


Ask = Callable[[Any], Any]


def apart(world: World, ask: Ask, relation: str, salt: int = 7, **options: Any) -> Apart:
    """The largest distance of the laws of neighbours."""
    table = world.opened(relation, **options)
    loss = divergence = renyi = 0.0
    charged = set()
    for others in world.others:
        found = []
        for option in world.options:
            seam.refilled(table, world.source([*others, option]))
            found.append(seam.answers(lambda: ask(table), salt))
        charged |= {(one.epsilon, one.delta, one.rho) for one in found}
        epsilon = float(found[0].epsilon)
        for first, second in _pairs([one.law for one in found], relation):
            loss = max(loss, largest_ratio(first, second))
            divergence = max(divergence, hockey_stick(first, second, epsilon))
            renyi = max(renyi, largest_renyi(first, second))
    [(epsilon, delta, rho)] = charged  # the same on all tables
    return Apart(loss, divergence, renyi, float(epsilon), float(delta), float(rho))


def frozen_loss(world: World, ask: Ask, relation: str, seed: int, salt: int = 7) -> Fraction:
    """The largest loss that the scores of neighbours allow, as a share of epsilon, with the selections frozen.

    For what has too many answers to follow, such as several quantiles: a selection at rate c loses at most c times the
    range of the changes of its scores, and the losses of all selections of an answer add up.
    """
    table, worst, rng = world.opened(relation), Fraction(0), Random(seed)
    for others in world.others:
        options = world.options if relation == ADD_REMOVE else world.options[1:]
        for option in options:
            first, answer = _recorded(table, world.source([*others, option]), ask, seam.Recorder(rng), salt)
            for other in options if relation == REPLACE else options[: 1 if option else None]:
                second, again = _recorded(
                    table, world.source([*others, other]), ask, seam.Recorder(outcomes=first.chosen), salt
                )
                assert (again.value, again.epsilon) == (answer.value, answer.epsilon)
                pairs = list(zip(first.selections, second.selections, strict=True))
                assert all(one.public == two.public for one, two in pairs)
                worst = max(worst, sum(_moved(*pair) for pair in pairs) / answer.epsilon)
    return worst


def _recorded(table: Any, source: Any, ask: Ask, recorder: seam.Recorder, salt: int) -> tuple[seam.Recorder, Any]:
    seam.refilled(table, source)
    with seam.recording(recorder, salt, "duckdb"):
        return recorder, ask(table)


def _moved(before: seam.Selection, after: seam.Selection) -> Fraction:
    assert before.what == seam.ONE
    changes = [Fraction(new) - Fraction(old) for old, new in before.beside(after)]
    return before.mechanism.rate * (max(changes) - min(changes))


def _pairs(laws: Sequence[dict[Any, float]], relation: str) -> list[tuple[dict[Any, float], dict[Any, float]]]:
    """The laws of neighbours, in both orders."""
    if relation == REPLACE:
        return [(first, second) for first, second in product(laws[1:], repeat=2) if first is not second]
    return [pair for own in laws[1:] for pair in ((laws[0], own), (own, laws[0]))]


def largest_ratio(first: dict[Any, float], second: dict[Any, float]) -> float:
    """The largest logarithm of a ratio of two probabilities."""
    return max(math.log(mass / second[out]) if second.get(out) else math.inf for out, mass in first.items() if mass)


def hockey_stick(first: dict[Any, float], second: dict[Any, float], epsilon: float) -> float:
    """How much the first law exceeds e^epsilon times the second."""
    return sum(max(0.0, mass - math.exp(epsilon) * second.get(out, 0.0)) for out, mass in first.items())


def largest_renyi(first: dict[Any, float], second: dict[Any, float]) -> float:
    """The largest Rényi divergence over its order, given an answer that is possible on both tables."""
    common = [out for out, mass in first.items() if mass and second.get(out)]
    if not common:
        return math.inf
    p, q = (np.log([law[out] for out in common]) - math.log(sum(law[out] for out in common)) for law in (first, second))
    powers = np.outer(ORDERS, p) - np.outer(ORDERS - 1, q)
    top = powers.max(axis=1)
    divergences = (top + np.log(np.exp(powers - top[:, np.newaxis]).sum(axis=1))) / (ORDERS - 1)
    return float((divergences / ORDERS).max())
