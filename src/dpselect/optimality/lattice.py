"""McKenna & Sheldon (2020), Section 5: the bounded 2 sensitivity-lattice, with symmetric score vectors merged.

A score vector of the lattice is a tuple of steps: candidate r is steps[r] * 2 * sensitivity below the best, with
steps from 0 to k and at least one zero. A symmetric mechanism gives the same probabilities to every ordering of a
vector, so a class is one ascending tuple, and a variable is a class and one of its distinct steps: the probability of
any single candidate there.

**The recurrence** of Section 3.1 defines permute-and-flip on the bounded lattice. Everything depends on epsilon only
through the odds exp(-epsilon), so with rational odds everything is rational: give a Fraction to get Fractions, a
float to get floats. Cancellation is harmless: in a class with n* best candidates the others' probabilities sum to at
most 1 - n*/n, so one minus their sum is at least n*/n.

**The dual.** Appendix "Constructing a dual optimal solution": optimality without a solver.
All probabilities of permute-and-flip are positive, so a dual solution that proves it optimal makes every dual
constraint tight. Those equalities are a recurrence with one solution y: in a class with n* best candidates

    y_best = -(1/n*) sum over t = 1..k of y(candidate lowered to step t) odds**t    (zero if n* = 1),
    y_t    = 2 t + n* y_best                                                        (sensitivity one).

If y_t >= 0 wherever t > 0, then y is feasible, and no regular mechanism has a smaller sum of expected errors over the
lattice than permute-and-flip: the paper's relaxed program, and so the full one, has that value. The paper shows it for
odds <= 2/(3 + sqrt 5); here y itself is checked, so smaller epsilons are proven where possible.

With rational odds this is exact. In floats, a running error bound (Higham 2002, Section 3.3) is computed with y. With
u = 2**-53 the computed odds are within (epsilon + 2) u of exp(-epsilon), their power t within (t (epsilon + 2) + 2) u,
and a sum of at most k products adds (k + 1) u of its terms' sizes; the factor 1.01 covers products of roundings and
the roundings of the bound itself.
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
from dpselect._numbers import rational_from_text
from dpselect._types import Integers
from dpselect.errors import InvalidType, InvalidValue, ProgramTooLarge

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
    totals = np.add.reduceat(lattice.multiplicity * powers(lattice, odds), lattice.first)
    shares: Numbers = (1 / totals)[lattice.class_of]
    return shares


THRESHOLD = math.log((3 + math.sqrt(5)) / 2)
_UNIT = 1.01 * 2.0**-53


@dataclass(frozen=True)
class Certificate:
    """A dual solution whose constraints are all tight, and whether its signs prove permute-and-flip optimal.

    Attributes:
        n: the number of candidates.
        k: the depth of the lattice.
        odds: exp(-epsilon). All numbers are exact if it is a Fraction.
        value: the value of the dual program, a sum of expected errors.
        permute_and_flip: the sum of permute-and-flip's expected errors.
        smallest: the smallest dual variable that must not be negative.
        rounding: the computed `smallest` exceeds the exact one by at most this.
        finer_bounds: whether the paper's bounds hold: -2/n* <= y_best <= 0 and 0 <= y_t <= 2 t.

    >>> certify(4, 8, "1/3").is_exact
    True
    """

    n: int
    k: int
    odds: Odds
    value: Odds
    permute_and_flip: Odds
    smallest: Odds
    rounding: float
    finer_bounds: bool

    @property
    def is_exact(self) -> bool:
        """Whether all numbers are rational, without any rounding."""
        return isinstance(self.odds, Fraction)

    @property
    def proves_optimality(self) -> bool:
        """Whether no regular mechanism has a smaller sum of expected errors on this lattice."""
        return self.smallest >= self.rounding


def certify(n: int, k: int, odds: Any, *, most_variables: int = MOST_VARIABLES) -> Certificate:
    """The certificate for exp(-epsilon) = odds in exact arithmetic.

    Args:
        n: the number of candidates.
        k: the depth of the lattice.
        odds: exp(-epsilon), as a Fraction or a string such as "1/3".
        most_variables: the largest allowed number of variables.

    Raises:
        InvalidType: an argument has the wrong type.
        InvalidValue: `odds` is not between 0 and 1, or another argument is out of range.
        ProgramTooLarge: the program has too many variables.

    >>> certificate = certify(4, 8, "1/3")
    >>> certificate.proves_optimality, certificate.value == certificate.permute_and_flip, certificate.finer_bounds
    (True, True, True)
    """
    if isinstance(odds, str):
        try:
            odds = rational_from_text(odds)
        except (TypeError, ValueError):
            raise InvalidValue("odds must be a number: give a string such as '1/3'") from None
    if not isinstance(odds, Fraction):
        raise InvalidType("odds must be a Fraction or a string such as '1/3': floats are not exact")
    if not 0 < odds < 1:
        raise InvalidValue("odds must be between 0 and 1: it is exp(-epsilon)")
    return certificate(bounded_lattice(*checked_size(n, k, most_variables)), odds)


def certificate(lattice: Lattice, odds: Odds) -> Certificate:
    # The certificate on a lattice; with float odds its roundings are bounded.
    dual, error = dual_solution(lattice, odds)
    best, below = lattice.step == 0, lattice.step > 0
    zeros = lattice.zeros[lattice.class_of]
    finer = (
        (zeros[best] * (dual + error)[best] >= -2).all()
        and ((dual - error)[best] <= 0).all()
        and ((dual + error)[below] >= 0).all()
        and ((dual - error)[below] <= 2 * lattice.step[below]).all()
    )
    least = np.argmin((dual - error)[below])
    cost = lattice.orderings[lattice.class_of] * lattice.multiplicity * 2 * lattice.step  # at sensitivity one
    return Certificate(
        lattice.n,
        lattice.k,
        odds,
        value=_plain(-(lattice.orderings * lattice.zeros * dual[best]).sum()),
        permute_and_flip=_plain((cost * powers(lattice, odds) * permute_and_flip(lattice, odds)).sum()),
        smallest=_plain(dual[below][least]),
        rounding=float(error[below][least]),
        finer_bounds=bool(finer),
    )


def _plain(number: Any) -> Odds:
    return number if isinstance(number, Fraction) else float(number)


def dual_solution(lattice: Lattice, odds: Odds) -> tuple[Numbers, Numbers]:
    # The dual variable of each primal one, and a bound on its rounding error (zero for rational odds).
    head_probabilities = powers(lattice, odds)
    zero, unit, growth = head_probabilities[0] * 0, *_roundings(lattice, odds)
    dual, error, received, received_error = (np.full_like(head_probabilities, zero) for _ in range(4))
    for zeros, level in lattice.levels:
        best = lattice.first[lattice.class_of[level]]
        total, total_error = -received[best], received_error[best]
        below = lattice.step[level] > 0
        dual[level] = np.where(below, 2 * lattice.step[level] + total, total / zeros)
        error[level] = np.where(below, total_error, total_error / zeros) + 2 * unit * (abs(total) + abs(dual[level]))
        targets = lattice.raised[level][below]
        weights, values = head_probabilities[level][below], dual[level][below]
        np.add.at(received, targets, values * weights)
        spread = error[level][below] + unit * growth[level][below] * abs(values)
        np.add.at(received_error, targets, spread * weights)
    return dual, error


def _roundings(lattice: Lattice, odds: Odds) -> tuple[Odds, Numbers]:
    # The size of a rounding, and how many of them a product with a power of the odds has.
    if isinstance(odds, Fraction):
        return Fraction(0), lattice.step
    epsilon = -math.log(max(odds, 5e-324))
    return _UNIT, lattice.step * (epsilon + 2) + lattice.k + 4
