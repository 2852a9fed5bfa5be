"""McKenna & Sheldon (2020), Proposition 6: permute-and-flip is Pareto optimal on the lattice.

By how much can a mechanism's errors be lowered without raising any? The answer is a linear program: that of the optimal
mechanism, with the expected error on each score vector capped by the mechanism's own.
"""

import math

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from dpselect import _validate
from dpselect._exact import float_near
from dpselect.errors import NotConverged
from dpselect.mechanisms.record import Number
from dpselect.optimality.lattice import MOST_VARIABLES, Lattice, bounded_lattice, checked_size
from dpselect.optimality.optimum import Ratios
from dpselect.optimality.program import OPTIONS, Floats, Program
from dpselect.optimality.recurrence import exponential, permute_and_flip, powers


def pareto_ratios(n: int, k: int, epsilon: Number, *, most_variables: int = MOST_VARIABLES) -> Ratios:
    """Each mechanism's sum of expected errors relative to the best that is nowhere worse: one if Pareto optimal.

    >>> found = pareto_ratios(3, 4, 0.5)
    >>> round(found.permute_and_flip, 6), round(found.exponential, 3)
    (1.0, 1.375)
    """
    lattice = bounded_lattice(*checked_size(n, k, most_variables))
    odds = math.exp(-float_near(_validate.exact_positive(epsilon=epsilon)))
    weights = np.asarray(lattice.orderings / lattice.vectors, np.float64)
    found = []
    for shares in (permute_and_flip(lattice, odds), exponential(lattice, odds)):
        own = class_errors(lattice, odds) @ shares
        found.append(float(weights @ own) / least_error(Program(lattice), odds, own, weights))
    return Ratios(*found)


def class_errors(lattice: Lattice, odds: float) -> csr_array:
    """The rows that give the expected error of each class from the shares."""
    entries = 2 * lattice.step * lattice.multiplicity * powers(lattice, odds)
    shape = (len(lattice.classes), lattice.variables)
    return csr_array((entries, (lattice.class_of, np.arange(lattice.variables))), shape=shape)


def least_error(program: Program, odds: float, caps: Floats, weights: Floats) -> float:
    """The smallest weighted sum of the classes' errors, when none of them is above its cap."""
    errors, privacy, sums = class_errors(program.lattice, odds), program.privacy(odds), program.sums(odds)
    found = linprog(  # type: ignore[call-overload] # its stubs know no sparse matrices
        errors.T @ weights,
        A_ub=vstack([privacy, errors]),
        b_ub=np.concatenate([np.zeros(privacy.shape[0]), caps]),
        A_eq=sums,
        b_eq=np.ones(sums.shape[0]),
        method="highs",
        options=OPTIONS,
    )
    if found.status != 0:
        raise NotConverged(f"HiGHS found no optimum of {program.lattice}: {found.message}")
    return float(found.fun)
