"""McKenna & Sheldon (2020), Section 3.1: the recurrence that defines permute-and-flip, on the bounded lattice.

Everything depends on epsilon only through the odds exp(-epsilon), so with rational odds everything is rational: give a
Fraction to get Fractions, a float to get floats. Cancellation is harmless: in a class with n* best candidates the
others' probabilities sum to at most 1 - n*/n, so one minus their sum is at least n*/n.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.research.optimality.lattice import Lattice

Odds = float | Fraction
Numbers = npt.NDArray[Any]


def powers(lattice: Lattice, odds: Odds) -> Numbers:
    """odds**step of each variable: the probability that its coin shows heads."""
    return table(odds**step for step in range(lattice.k + 1))[lattice.step]


def table(numbers: Any) -> Numbers:
    """An array of floats, or of unchanged Fractions."""
    listed = list(numbers)
    return np.array(listed, dtype=object if isinstance(listed[0], Fraction) else np.float64)


def class_sums(lattice: Lattice, values: Numbers) -> Numbers:
    """The sum over the variables of each class."""
    sums: Numbers = np.add.reduceat(values, lattice.first)
    return sums


def permute_and_flip(lattice: Lattice, odds: Odds) -> Numbers:
    """The share of each variable, by the recurrence: from the class where all are best downwards.

    A share is a probability over odds**step. Below the best it is that of the candidate after it rises to the best.
    """
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
