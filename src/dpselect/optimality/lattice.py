"""McKenna & Sheldon (2020), Section 5: the bounded 2 sensitivity-lattice, with symmetric score vectors merged.

A score vector of the lattice is a tuple of steps: candidate r is steps[r] * 2 * sensitivity below the best, with
steps from 0 to k and at least one zero. A symmetric mechanism gives the same probabilities to every ordering of a
vector, so a class is one ascending tuple, and a variable is a class and one of its distinct steps: the probability of
any single candidate there.

**The recurrence** of Section 3.1 defines permute-and-flip on the bounded lattice. Everything depends on epsilon only
through the odds exp(-epsilon), so with rational odds everything is rational: give a Fraction to get Fractions, a
float to get floats. Cancellation is harmless: in a class with n* best candidates the others' probabilities sum to at
most 1 - n*/n, so one minus their sum is at least n*/n.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect import _validate
from dpselect._types import Integers
from dpselect.errors import InvalidValue, ProgramTooLarge

Steps = tuple[int, ...]

MOST_VARIABLES = 50_000
_MOST_DIGITS = 300  # limit for the number of vectors: sums over all of them must fit floats
NONE = -1  # stands for a variable outside the lattice


@dataclass(frozen=True, repr=False, eq=False)
class Lattice:
    """The classes, and arrays with one entry per variable. Variables of a class are adjacent, its best step first."""

    n: int
    k: int
    classes: tuple[Steps, ...]  # those with the fewest zeros first
    first: Integers  # the variable of the best candidates of each class
    zeros: Integers  # how many candidates of each class are best
    orderings: npt.NDArray[Any]  # score vectors per class; Python ints if 64 bits are too few
    class_of: Integers  # the class of each variable
    step: Integers  # the step of each variable
    multiplicity: Integers  # how many candidates of the class share the step
    raised: Integers  # the variable after the candidate rises to the best
    neighbour: Integers  # the variable after the worst change of one person's data; -1 outside the lattice

    def __repr__(self) -> str:
        return f"Lattice(n={self.n}, k={self.k}, {self.variables:,} variables)"

    @property
    def variables(self) -> int:
        return self.step.size

    @property
    def vectors(self) -> int:
        return int((self.k + 1) ** self.n - self.k**self.n)

    @property
    def variable(self) -> dict[tuple[Steps, int], int]:
        """The number of each variable, by its class and step."""
        steps = self.step.tolist()
        return {
            (self.classes[number], step): i for i, (number, step) in enumerate(zip(self.class_of, steps, strict=True))
        }

    @property
    def levels(self) -> Iterator[tuple[int, slice]]:
        """The numbers of best candidates, ascending, each with the variables of its classes."""
        starts = np.append(self.first, self.variables)
        for zeros in range(1, self.n + 1):
            low, high = np.searchsorted(self.zeros, [zeros, zeros + 1])
            yield zeros, slice(int(starts[low]), int(starts[high]))


def variable_count(n: int, k: int) -> int:
    """The number of variables of the merged program, without listing them.

    The best step occurs in each class: n - 1 other steps out of k + 1. One of the k other steps leaves n - 2.

    Args:
        n: the number of candidates.
        k: the depth of the lattice.

    >>> variable_count(4, 8), variable_count(8, 8)
    (525, 30459)
    """
    return math.comb(n - 1 + k, k) + k * math.comb(n - 2 + k, k)


def checked_size(n: int, k: int, most_variables: int) -> tuple[int, int]:
    """The checked size of a lattice: large enough to compare mechanisms, and small enough to list."""
    candidates, depth = _validate.count(n=n), _validate.count(k=k)
    if candidates < 2:
        raise InvalidValue("n must be >= 2: with one candidate there is no error to compare")
    if depth < 1:
        raise InvalidValue("k must be >= 1: with all scores equal there is no error to compare")
    limit = _validate.count(most_variables=most_variables)
    # There are more variables than candidates and more than steps; the binomials of huge numbers are never formed.
    size = variable_count(candidates, depth) if max(candidates, depth) <= limit else None
    if size is None or size > limit:
        raise ProgramTooLarge(
            f"n = {candidates:,}, k = {depth:,} gives {_in_words(size, limit)} variables, more than the limit of"
            f" {limit:,}: give a smaller n or k, or raise most_variables (this may take a long time)"
        )
    if candidates * math.log10(depth + 1) > _MOST_DIGITS:
        raise ProgramTooLarge(
            f"n = {candidates:,}, k = {depth:,} gives more than 10^{_MOST_DIGITS} score vectors, too many for sums of"
            " floats: give a smaller n or k"
        )
    return candidates, depth


def _in_words(size: int | None, limit: int) -> str:
    if size is None:
        return f"more than {limit:,}"
    return f"{size:,}" if size < 10**15 else f"about 10^{size.bit_length() * math.log10(2):.0f}"


@lru_cache(maxsize=16)
def bounded_lattice(n: int, k: int) -> Lattice:
    """The lattice of n candidates at most k steps below the best."""
    others = itertools.combinations_with_replacement(range(k + 1), n - 1)
    classes = sorted(((0, *steps) for steps in others), key=lambda steps: steps.count(0))
    variables = [(number, step) for number, steps in enumerate(classes) for step in sorted(set(steps))]
    index = {(classes[number], step): variable for variable, (number, step) in enumerate(variables)}
    counts = [Counter(steps) for steps in classes]
    return Lattice(
        n,
        k,
        tuple(classes),
        first=_array(index[steps, 0] for steps in classes),
        zeros=_array(count[0] for count in counts),
        orderings=_orderings(n, k, counts),
        class_of=_array(number for number, _ in variables),
        step=_array(step for _, step in variables),
        multiplicity=_array(counts[number][step] for number, step in variables),
        raised=_array(index[_moved(classes[number], step, 0), 0] for number, step in variables),
        neighbour=_array(index.get(worst_neighbour(classes[number], step), NONE) for number, step in variables),
    )


def _array(values: Iterator[int]) -> Integers:
    return np.fromiter(values, np.int64)


def _orderings(n: int, k: int, counts: list[Counter[int]]) -> npt.NDArray[Any]:
    # multinomial coefficients; in 64 bits if the costs computed from them fit, too
    found = [math.factorial(n) // math.prod(map(math.factorial, count.values())) for count in counts]
    return np.array(found, np.int64 if 2 * n * k * (k + 1) ** n < 2**63 else object)


def _moved(steps: Steps, step: int, target: int) -> Steps:
    left = list(steps)
    left[left.index(step)] = target
    return tuple(sorted(left))


def worst_neighbour(steps: Steps, step: int, m: int = 1, lowest: float = math.inf) -> tuple[Steps, int]:
    """The position of a candidate at this step after it gains 2 sensitivity, that is m steps, on all others."""
    # It rises to the best, and the others fall by what is left, at most to the lowest step.
    others = list(steps)
    others.remove(step)
    fall, target = max(0, m - step), max(0, step - m)
    return tuple(sorted([target, *(int(min(other + fall, lowest)) for other in others)])), target


def after_falls(steps: Steps, step: int, lowest: int) -> list[tuple[Steps, int]]:
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


Odds = float | Fraction
Numbers = npt.NDArray[Any]


def powers(lattice: Lattice, odds: Odds) -> Numbers:
    """odds**step of each variable: the probability that its coin shows heads."""
    return table(odds**step for step in range(lattice.k + 1))[lattice.step]


def table(numbers: Any) -> Numbers:
    listed = list(numbers)
    return np.array(listed, dtype=object if isinstance(listed[0], Fraction) else np.float64)


def class_sums(lattice: Lattice, values: Numbers) -> Numbers:
    sums: Numbers = np.add.reduceat(values, lattice.first)
    return sums


def permute_and_flip(lattice: Lattice, odds: Odds) -> Numbers:
    """The share of each variable, by the recurrence: from the class where all are best downwards."""
    # A share is a probability over odds**step. Below the best it is that of the candidate after it rises to the best.
    weight = lattice.multiplicity * powers(lattice, odds)
    shares = np.zeros_like(weight)
    for zeros, level in reversed(list(lattice.levels)):
        below = lattice.step[level] > 0
        here = shares[level]  # a view
        here[below] = shares[lattice.raised[level][below]]
        best = np.flatnonzero(~below)
        here[best] = (1 - np.add.reduceat(weight[level] * here, best)) / zeros
    return shares


def exponential(lattice: Lattice, odds: Odds) -> Numbers:
    """The share of each variable under the exponential mechanism: the same for all of a class."""
    totals = class_sums(lattice, lattice.multiplicity * powers(lattice, odds))
    shares: Numbers = (1 / totals)[lattice.class_of]
    return shares


def costs(lattice: Lattice) -> Numbers:
    """What one unit of each variable adds to the sum of expected errors over all vectors, at sensitivity one."""
    cost: Numbers = lattice.orderings[lattice.class_of] * lattice.multiplicity * 2 * lattice.step
    return cost
