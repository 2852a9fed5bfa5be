"""McKenna & Sheldon (2020), Section 5: how close to optimal a mechanism is, on average over the bounded lattice.

McKenna & Sheldon (2020), Proposition 6: permute-and-flip is Pareto optimal on the lattice.

By how much can a mechanism's errors be lowered without raising any? The answer is a linear program: that of the optimal
mechanism, with the expected error on each score vector capped by the mechanism's own.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from dpselect import _validate
from dpselect._numbers import float_near
from dpselect._types import Floats, Number
from dpselect.errors import InvalidValue, NotConverged
from dpselect.research.optimality.dual import Certificate, certificate
from dpselect.research.optimality.finer import (
    FineLattice,
    Weights,
    checked_steps,
    class_errors,
    class_weights,
    fine_lattice,
    fine_probabilities,
)
from dpselect.research.optimality.lattice import MOST_VARIABLES, Lattice, Steps, bounded_lattice, checked_size
from dpselect.research.optimality.program import OPTIONS, FineProgram, Program, fine_solution, solution
from dpselect.research.optimality.recurrence import Numbers, exponential, permute_and_flip, powers

LARGEST_EPSILON = 200


class Ratios(NamedTuple):
    """The sum of a mechanism's expected errors relative to the optimum's: one if it is optimal."""

    permute_and_flip: float
    exponential: float


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimal regular mechanism on a bounded lattice, beside permute-and-flip and the exponential mechanism.

    Sums of expected errors run over all score vectors of the lattice, in units of a sensitivity of one: a step of the
    lattice is 2, or 2/m if it is finer. With weights they are weighted sums; in the worst case they are the largest
    expected errors instead.
    """

    n: int
    k: int
    epsilon: float
    value: float  # the optimum's sum of expected errors
    permute_and_flip: float  # permute-and-flip's
    exponential: float  # the exponential mechanism's
    ratios: Ratios
    variables: int  # of the program, symmetric ones merged
    certificate: Certificate | None  # the proof that permute-and-flip is optimal, where there is one
    duality_gap: float  # how far `value` is from a proven lower bound, relative to it
    lattice: Lattice = field(repr=False)
    by_variable: Floats = field(repr=False)
    steps: int = 1  # of the lattice to 2 sensitivity

    @cached_property
    def probabilities(self) -> dict[Steps, tuple[float, ...]]:
        """The optimal mechanism: the probability of each candidate, for each vector of steps below the best.

        Vectors are ascending; other orderings have the same probabilities in that order.
        """
        numbers = dict(zip(zip(self.lattice.class_of, self.lattice.step, strict=True), self.by_variable, strict=True))
        return {
            steps: tuple(float(numbers[number, step]) for step in steps)
            for number, steps in enumerate(self.lattice.classes)
        }


def solve(  # noqa: PLR0913 - most of them are rarely used, by keyword
    n: int,
    k: int,
    epsilon: Number,
    *,
    steps: int = 1,
    weights: Weights | None = None,
    worst_case: bool = False,
    regular: bool = False,
    relaxed: bool = False,
    always_solve: bool = False,
    most_variables: int = MOST_VARIABLES,
) -> Optimum:
    """The optimal regular mechanism for n candidates with scores at most k steps of 2 sensitivity below the best.

    Where the dual recurrence proves permute-and-flip optimal no solver is asked, unless `always_solve` wants a second
    witness; elsewhere HiGHS solves the linear program. `relaxed` drops the privacy constraints that permute-and-flip
    does not meet with equality: its value is a lower bound, attained by a private mechanism where it is
    permute-and-flip's.

    `steps` divides each step into as many. `weights` gives each score vector, as ascending steps below the best, its
    weight in the average; `worst_case` makes the largest expected error as small as possible instead. All of them ask
    for every constraint of regular mechanisms; `regular` does so on the paper's own lattice, whose program leaves
    monotonicity out.

    >>> best = solve(4, 8, 0.2)
    >>> best.variables, round(best.ratios.permute_and_flip, 5), round(best.ratios.exponential, 4)
    (525, 1.00792, 1.2095)
    >>> solve(4, 8, 1).certificate.proves_optimality
    True
    >>> round(solve(3, 2, 1, steps=2).ratios.permute_and_flip, 5)
    1.04483
    """
    size = checked_size(n, k, most_variables)
    finer = checked_steps(steps, *size, most_variables)
    value = float_near(_validate.exact_positive(epsilon=epsilon))
    wanted, witness = _validate.boolean(relaxed=relaxed), _validate.boolean(always_solve=always_solve)
    largest, whole = _validate.boolean(worst_case=worst_case), _validate.boolean(regular=regular)
    if finer == 1 and weights is None and not largest and not whole:
        return optimum(Program(bounded_lattice(*size), wanted), value, always_solve=witness)
    if wanted:
        raise InvalidValue("relaxed belongs to the paper's program: leave out steps, weights, worst_case and regular")
    if largest and weights is not None:
        raise InvalidValue("give either weights or worst_case: the largest error has no weights")
    fine = fine_lattice(*size, finer)
    return fine_optimum(fine, value, None if largest else class_weights(fine.lattice, weights))


def fine_optimum(fine: FineLattice, epsilon: float, weights: Numbers | None) -> Optimum:
    """The optimum on a finer lattice, of a weighted sum or, without weights, of the largest expected error."""
    if epsilon > LARGEST_EPSILON:
        raise InvalidValue(f"epsilon must be at most {LARGEST_EPSILON}: errors beyond that vanish in floats")
    lattice, odds = fine.lattice, math.exp(-epsilon)
    total = 1.0 if weights is None else float(weights.sum())
    shared = None if weights is None else np.asarray(weights / total, np.float64)
    solved = fine_solution(FineProgram(fine), odds, shared)
    means = []
    for probabilities in fine_probabilities(fine, math.exp(-epsilon / fine.m)):
        errors = class_errors(fine, probabilities)
        means.append(float(errors.max() if shared is None else shared @ errors) / odds)
    flip_mean, softmax_mean = means
    scale = odds * total
    return Optimum(
        lattice.n,
        lattice.k // fine.m,
        epsilon,
        value=solved.objective * scale,
        permute_and_flip=flip_mean * scale,
        exponential=softmax_mean * scale,
        ratios=Ratios(flip_mean / solved.objective, softmax_mean / solved.objective),
        variables=lattice.variables,
        certificate=None,
        duality_gap=solved.gap,
        lattice=lattice,
        by_variable=solved.shares * fine.heads(odds),
        steps=fine.m,
    )


def optimum(program: Program, epsilon: float, *, always_solve: bool = False) -> Optimum:
    """The optimum of a program that is built already: only its numbers depend on epsilon."""
    lattice, odds = program.lattice, math.exp(-epsilon)
    cost = program.objective(odds)
    flip, softmax = permute_and_flip(lattice, odds), exponential(lattice, odds)
    flip_mean, softmax_mean = float(cost @ flip), float(cost @ softmax)
    proof = certificate(lattice, odds)
    proven = proof.proves_optimality
    if proven and not always_solve:
        best, mean, gap = flip, flip_mean, _relative(proof)
    else:
        solved = solution(program, odds)
        best, mean, gap = solved.shares, solved.objective, solved.gap
    scale = odds * lattice.vectors
    return Optimum(
        lattice.n,
        lattice.k,
        epsilon,
        value=mean * scale,
        permute_and_flip=flip_mean * scale,
        exponential=softmax_mean * scale,
        ratios=Ratios(flip_mean / mean, softmax_mean / mean),
        variables=lattice.variables,
        certificate=proof if proven else None,
        duality_gap=gap,
        lattice=lattice,
        by_variable=best * powers(lattice, odds),
    )


def _relative(proof: Certificate) -> float:
    """The difference of the two programs' values: of rounding only, because all constraints are tight."""
    scale = float(proof.value)
    return abs(float(proof.value - proof.permute_and_flip)) / scale if scale else 0.0


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
        own = lattice_errors(lattice, odds) @ shares
        found.append(float(weights @ own) / least_error(Program(lattice), odds, own, weights))
    return Ratios(*found)


def lattice_errors(lattice: Lattice, odds: float) -> csr_array:
    """The rows that give the expected error of each class from the shares."""
    entries = 2 * lattice.step * lattice.multiplicity * powers(lattice, odds)
    shape = (len(lattice.classes), lattice.variables)
    return csr_array((entries, (lattice.class_of, np.arange(lattice.variables))), shape=shape)


def least_error(program: Program, odds: float, caps: Floats, weights: Floats) -> float:
    """The smallest weighted sum of the classes' errors, when none of them is above its cap."""
    errors, privacy, sums = lattice_errors(program.lattice, odds), program.privacy(odds), program.sums(odds)
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
