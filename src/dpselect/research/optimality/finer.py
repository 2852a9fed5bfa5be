"""The optimal regular mechanism on a finer lattice, of m steps to 2 sensitivity (McKenna & Sheldon 2020, Section 8).

Symmetry merges orderings and shift-invariance keeps the best at zero, as on the paper's lattice. Write u_s for how far
candidate s is below candidate r. Monotonicity says that r's probability does not fall where no u_s falls.

  * One candidate s that falls by one step is all that monotonicity needs. Let u <= U both belong to the bounded
    lattice, that is, all u_s and 0 lie within k m of each other. First raise those below b = min(U, 0) to b, then all
    to U: the lowest never falls, from then on all are between b and max(U, 0), and so no step leaves the lattice.
  * One neighbour is all that privacy needs. Neighbours have u'_s <= u_s + m. In the bounded lattice the largest such u'
    lets r rise by m steps: up to the best if it was at least m steps below; else it becomes the best, and the others
    fall by the rest, at most to the lowest step. No coordinate can be larger, so by monotonicity its probability is the
    largest. (The paper's program has no constraint where a neighbour falls out of the lattice, and none for
    monotonicity: its optimum can be smaller than that of regular mechanisms.)

The solver's unknowns are z = x / odds**ceil(step/m), odds = exp(-epsilon): privacy allows x to be as small as that, and
all coefficients are one or odds.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect import _validate
from dpselect._numbers import float_near
from dpselect._types import Integers
from dpselect.errors import InvalidType, InvalidValue
from dpselect.research.optimality.lattice import Lattice, Steps, bounded_lattice, checked_size
from dpselect.research.optimality.recurrence import (
    Numbers,
    Odds,
    class_sums,
    exponential,
    permute_and_flip,
    powers,
    table,
)

Weights = Callable[[Steps], Any]


@dataclass(frozen=True, repr=False, eq=False)
class FineLattice:
    """A bounded lattice with m steps to 2 sensitivity: the pairs of variables that privacy and monotonicity compare."""

    lattice: Lattice
    m: int
    neighbour: Integers  # the variable after the worst change of one person's data
    lower: Integers  # x of this variable ...
    upper: Integers  # ... is at most x of this one

    @property
    def rise(self) -> Integers:
        """How many factors of exp(-epsilon) each variable may have: its step, rounded up to whole 2 sensitivity."""
        return -(-self.lattice.step // self.m)

    @property
    def errors(self) -> npt.NDArray[np.float64]:
        """The error of each variable's candidate, at sensitivity one."""
        return 2 * self.lattice.step / self.m

    def heads(self, odds: Odds) -> Numbers:
        """odds**rise of each variable."""
        return table(odds**rise for rise in range(int(self.rise.max()) + 1))[self.rise]


@lru_cache(maxsize=8)
def fine_lattice(n: int, k: int, m: int) -> FineLattice:
    """The lattice of n candidates at most k times 2 sensitivity below the best, in m steps each."""
    lattice = bounded_lattice(n, k * m)
    classes = [lattice.classes[number] for number in lattice.class_of]
    steps = lattice.step.tolist()
    index = {key: variable for variable, key in enumerate(zip(classes, steps, strict=True))}
    neighbour = [index[_worst_fine_neighbour(*key, m, k * m)] for key in index]
    pairs = {(variable, index[other]) for key, variable in index.items() for other in _after_falls(*key, k * m)}
    lower, upper = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    return FineLattice(lattice, m, np.array(neighbour, np.int64), lower, upper)


def _worst_fine_neighbour(steps: Steps, step: int, m: int, lowest: int) -> tuple[Steps, int]:
    """Where a candidate at this step is after it gains 2 sensitivity on all others, as far as the lattice goes."""
    others = list(steps)
    others.remove(step)
    fall = max(0, m - step)
    target = max(0, step - m)
    return tuple(sorted([target, *(min(other + fall, lowest) for other in others)])), target


def _after_falls(steps: Steps, step: int, lowest: int) -> list[tuple[Steps, int]]:
    """Where a candidate at this step is after one of the others falls by a step, for each kind of other."""
    others = list(steps)
    others.remove(step)
    found = []
    for other in Counter(others):
        if other < lowest:
            moved = [*others, step]
            moved[others.index(other)] += 1
            best = min(moved)  # one if the only best one fell, else zero
            found.append((tuple(sorted(each - best for each in moved)), step - best))
    return found


def fine_probabilities(fine: FineLattice, fine_odds: Odds) -> tuple[Numbers, Numbers]:
    """The probability of each variable under permute-and-flip and under the exponential mechanism.

    They depend on the score by exp(-epsilon/m) to the power of the step, so the recurrence is that of the paper's
    lattice with these odds.
    """
    heads = powers(fine.lattice, fine_odds)
    return permute_and_flip(fine.lattice, fine_odds) * heads, exponential(fine.lattice, fine_odds) * heads


def class_errors(fine: FineLattice, probabilities: Numbers) -> Any:
    """The expected error of each class."""
    return class_sums(fine.lattice, fine.lattice.multiplicity * fine.errors * probabilities)


def checked_steps(steps: int, n: int, k: int, most_variables: int) -> int:
    """The number of steps to 2 sensitivity, if the finer lattice is not too large."""
    count = _validate.count(steps=steps)
    if count < 1:
        raise InvalidValue("steps must be >= 1: it is the number of steps to 2 sensitivity")
    checked_size(n, k * count, most_variables)
    return count


def class_weights(lattice: Lattice, weights: Weights | None) -> Numbers:
    """The weight of each class: of all its orderings together."""
    if weights is None:
        return lattice.orderings
    if not callable(weights):
        raise InvalidType(f"weights must be a function of the steps below the best, got {type(weights).__name__}")
    found = np.array([float_near(_validate.finite(weights=weights(steps))) for steps in lattice.classes])
    unequal = lattice.zeros < lattice.n
    if (found < 0).any() or not found[unequal].any():
        raise InvalidValue("weights must not be negative, and not zero on all vectors that have an error")
    return found * lattice.orderings.astype(np.float64)
