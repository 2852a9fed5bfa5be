"""McKenna & Sheldon (2020), Section 5: how close to optimal a mechanism is, on average over the bounded lattice.

By Proposition 6, permute-and-flip is also Pareto optimal there. By how much can a mechanism's errors be lowered without
raising any? The answer is a linear program too: that of the optimal mechanism, with the expected error on each score
vector capped by the mechanism's own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpselect import _validate
from dpselect._numbers import float_near
from dpselect._types import Floats, Number
from dpselect.errors import InvalidType, InvalidValue
from dpselect.optimality.dual import Certificate, certificate
from dpselect.optimality.lattice import (
    MOST_VARIABLES,
    Lattice,
    Numbers,
    Steps,
    bounded_lattice,
    checked_size,
    exponential,
    permute_and_flip,
)
from dpselect.optimality.program import Program, least_error, paper_program, regular_program, solution

Weights = Callable[[Steps], Any]

LARGEST_EPSILON = 200


class Ratios(NamedTuple):
    """The sums of expected errors of both mechanisms relative to the optimum; one if optimal.

    >>> solve(3, 2, 1).ratios.permute_and_flip
    1.0
    """

    permute_and_flip: float
    exponential: float


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimal regular mechanism on a bounded lattice, compared with permute-and-flip and the exponential mechanism.

    Sums of expected errors run over all score vectors of the lattice, in units of a sensitivity of one: a step of the
    lattice is 2, or 2/m if it is finer. With weights they are weighted sums; for `worst_case` they are the largest
    expected errors instead.

    Attributes:
        n: the number of candidates.
        k: the depth of the lattice, in steps of 2 sensitivity.
        epsilon: the epsilon of the mechanisms.
        value: the optimum's sum of expected errors.
        permute_and_flip: that of permute-and-flip.
        exponential: that of the exponential mechanism.
        ratios: the sums of both mechanisms relative to the optimum.
        variables: the number of variables of the program, with symmetric ones merged.
        certificate: the proof that permute-and-flip is optimal, if there is one.
        duality_gap: the relative distance of `value` from a proven lower bound.
        lattice: the lattice.
        by_variable: the probability of each variable.
        steps: the number of steps per 2 sensitivity.

    >>> solve(3, 2, 1).ratios.permute_and_flip
    1.0
    """

    n: int
    k: int
    epsilon: float
    value: float  # the optimum's sum of expected errors
    permute_and_flip: float  # permute-and-flip's
    exponential: float  # the exponential mechanism's
    ratios: Ratios
    variables: int  # in the program, with symmetric ones merged
    certificate: Certificate | None  # the proof that permute-and-flip is optimal, if there is one
    duality_gap: float  # the relative distance of `value` from a proven lower bound
    lattice: Lattice = field(repr=False)
    by_variable: Floats = field(repr=False)
    steps: int = 1  # per 2 sensitivity

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


def solve(  # noqa: PLR0913 - most are rarely used, and keywords
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
    """Find the optimal regular mechanism for n candidates with scores at most k steps of 2 sensitivity below the best.

    If the dual recurrence proves permute-and-flip optimal, no solver is used, unless `always_solve` asks for a second
    proof. Otherwise HiGHS solves the linear program. `relaxed` drops the privacy constraints that permute-and-flip
    does not meet with equality: its value is a lower bound, attained by a private mechanism if it equals
    that of permute-and-flip.

    `steps` divides each step into that many. `weights` gives each score vector, as ascending steps below the best, its
    weight in the average. `worst_case` minimises the largest expected error instead. All of them use
    all constraints of regular mechanisms; `regular` does so on the paper's own lattice, whose program leaves
    monotonicity out.

    Args:
        n: the number of candidates.
        k: the largest distance from the best, in steps of 2 sensitivity.
        epsilon: the epsilon of the mechanism.
        steps: the number of steps per 2 sensitivity.
        weights: a function from ascending steps to a weight; None for equal weights.
        worst_case: whether to minimise the largest expected error instead of the average.
        regular: whether to use all constraints of regular mechanisms on the paper's lattice.
        relaxed: whether to drop the privacy constraints that permute-and-flip does not meet with equality.
        always_solve: whether to run the solver even if there is a proof.
        most_variables: the largest allowed number of variables.

    Raises:
        InvalidType: an argument has the wrong type.
        InvalidValue: an argument is out of range, or options exclude each other.
        ProgramTooLarge: the program has too many variables.
        NotConverged: the solver missed its accuracy.

    >>> best = solve(4, 8, 0.2)
    >>> best.variables, round(best.ratios.permute_and_flip, 5), round(best.ratios.exponential, 4)
    (525, 1.00792, 1.2095)
    >>> solve(4, 8, 1).certificate.proves_optimality
    True
    >>> round(solve(3, 2, 1, steps=2).ratios.permute_and_flip, 5)
    1.04483
    """
    size = checked_size(n, k, most_variables)
    finer = _checked_steps(steps, *size, most_variables)
    value = float_near(_validate.exact_positive(epsilon=epsilon))
    wanted, witness = _validate.boolean(relaxed=relaxed), _validate.boolean(always_solve=always_solve)
    largest, whole = _validate.boolean(worst_case=worst_case), _validate.boolean(regular=regular)
    if finer == 1 and weights is None and not largest and not whole:
        return optimum(paper_program(bounded_lattice(*size), relaxed=wanted), value, always_solve=witness)
    if wanted:
        raise InvalidValue("relaxed needs the paper's program: leave out steps, weights, worst_case and regular")
    if largest and weights is not None:
        raise InvalidValue("give either weights or worst_case: the largest error has no weights")
    if value > LARGEST_EPSILON:
        raise InvalidValue(f"epsilon must be at most {LARGEST_EPSILON}: larger ones give errors of zero in floats")
    return optimum(regular_program(*size, finer), value, weights=weights, worst_case=largest)


def _checked_steps(steps: int, n: int, k: int, most_variables: int) -> int:
    """The number of steps to 2 sensitivity, if the finer lattice is not too large."""
    count = _validate.count(steps=steps)
    if count < 1:
        raise InvalidValue("steps must be >= 1: it is the number of steps to 2 sensitivity")
    checked_size(n, k * count, most_variables)
    return count


def optimum(
    program: Program,
    epsilon: float,
    *,
    weights: Weights | None = None,
    worst_case: bool = False,
    always_solve: bool = False,
) -> Optimum:
    """The optimum of a program that is already built: only its numbers depend on epsilon."""
    lattice, odds = program.lattice, math.exp(-epsilon)
    counts = _class_weights(lattice, weights)
    total = 1 if worst_case else counts.sum()
    shared = None if worst_case else np.asarray(counts / total, np.float64)
    flip, softmax = mechanism_shares(program, epsilon)
    errors = program.class_errors(odds)
    flip_mean, softmax_mean = (
        float((errors @ shares).max() if shared is None else shared @ (errors @ shares)) for shares in (flip, softmax)
    )
    proof = None if program.is_regular else certificate(lattice, odds)
    proven = proof if proof is not None and proof.proves_optimality else None
    if proven is not None and not always_solve:
        best, mean, gap = flip, flip_mean, _relative(proven)
    else:
        solved = solution(program, odds, shared)
        best, mean, gap = solved.shares, solved.objective, solved.gap
    scale = odds * float(total)
    return Optimum(
        lattice.n,
        lattice.k // program.m,
        epsilon,
        value=mean * scale,
        permute_and_flip=flip_mean * scale,
        exponential=softmax_mean * scale,
        ratios=Ratios(flip_mean / mean, softmax_mean / mean),
        variables=lattice.variables,
        certificate=proven,
        duality_gap=gap,
        lattice=lattice,
        by_variable=best * program.head_probabilities(odds),
        steps=program.m,
    )


def mechanism_shares(program: Program, epsilon: float) -> tuple[Numbers, Numbers]:
    """The shares of permute-and-flip and of the exponential mechanism.

    Their probabilities depend on the score by exp(-epsilon/m) to the power of the step, so the recurrence is that of
    the paper's lattice with these odds; its shares are probabilities over that power, and ours over odds**rise.
    """
    fine_odds = math.exp(-epsilon / program.m)
    over = np.exp(epsilon * (program.rise - program.lattice.step / program.m))  # all ones if m is one
    return permute_and_flip(program.lattice, fine_odds) * over, exponential(program.lattice, fine_odds) * over


def _class_weights(lattice: Lattice, weights: Weights | None) -> Numbers:
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


def _relative(proof: Certificate) -> float:
    """The difference between the values of the two programs: only rounding, because all constraints are tight."""
    scale = float(proof.value)
    return abs(float(proof.value - proof.permute_and_flip)) / scale if scale else 0.0


def pareto_ratios(n: int, k: int, epsilon: Number, *, most_variables: int = MOST_VARIABLES) -> Ratios:
    """The expected errors of each mechanism relative to the best one that is nowhere worse; one if Pareto optimal.

    Args:
        n: the number of candidates.
        k: the largest distance from the best, in steps of 2 sensitivity.
        epsilon: the epsilon of the mechanisms.
        most_variables: the largest allowed number of variables.

    Raises:
        InvalidType: an argument has the wrong type.
        InvalidValue: an argument is out of range.
        ProgramTooLarge: the program has too many variables.
        NotConverged: the solver found no optimum.

    >>> found = pareto_ratios(3, 4, 0.5)
    >>> round(found.permute_and_flip, 6), round(found.exponential, 3)
    (1.0, 1.375)
    """
    program = paper_program(bounded_lattice(*checked_size(n, k, most_variables)))
    value = float_near(_validate.exact_positive(epsilon=epsilon))
    odds = math.exp(-value)
    weights = np.asarray(program.lattice.orderings / program.lattice.vectors, np.float64)
    found = []
    for shares in mechanism_shares(program, value):
        own = program.class_errors(odds) @ shares
        found.append(float(weights @ own) / least_error(program, odds, own, weights))
    return Ratios(*found)
