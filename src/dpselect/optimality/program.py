"""McKenna & Sheldon (2020), Appendix "Overall Optimality": the linear program of the optimal regular mechanism.

Minimise an average of the expected errors over the bounded lattice, or the largest of them, subject to privacy,
symmetry (merged classes), monotonicity and probabilities that sum to one. Shift-invariance keeps the best at zero.

The paper's program leaves monotonicity out, and has no constraint where a neighbour falls out of the lattice: its
optimum can be smaller than that of regular mechanisms. Its relaxed form keeps the privacy constraints of candidates
below the best, unrolled up to the best, and drops the others.

The regular program uses a lattice with m steps per 2 sensitivity (Section 8). Write u_s for how far candidate s
is below candidate r. Monotonicity says that r's probability does not fall where no u_s falls.

  * One candidate s that falls by one step is all that monotonicity needs. Let u <= U both belong to the bounded
    lattice, that is, all u_s and 0 lie within k m of each other. First raise those below b = min(U, 0) to b, then all
    to U: the lowest never falls, from then on all are between b and max(U, 0), and so no step leaves the lattice.
  * One neighbour is all that privacy needs. Neighbours have u'_s <= u_s + m. In the bounded lattice the largest such u'
    lets r rise by m steps: up to the best if it was at least m steps below; else it becomes the best, and the others
    fall by the rest, at most to the lowest step. No coordinate can be larger, so by monotonicity its probability is the
    largest.

The unknowns of the solver are the shares z = x / odds**ceil(step/m), odds = exp(-epsilon), which are of moderate size:
privacy allows a probability x to be as small as that, far below a solver's tolerance. In z all coefficients of privacy
and monotonicity are one or odds, and the tolerance becomes relative to each probability.

Privacy below the best then reads z >= z', where z' belongs to the same candidate after it rises. This leads from each
variable up to one of a best candidate, so z is the sum of increments d >= 0 along the way: z >= 0 and all rows below
the best hold if and only if d >= 0. HiGHS gets the program in d, which has these rows no more; their prices are the
reduced costs of d. Privacy of the best keeps its rows: with those substituted too, the columns of the best
candidates would no longer be triangular, and the factors that the solver computes would fill up.

The largest expected error is a linear program too: the smallest t that is not below any of them. Its prices are weights
of the classes, and for any weights the largest error is at least the average: so one lower bound serves both.

By Proposition 6, permute-and-flip is also Pareto optimal. By how much can a mechanism's errors be lowered without
raising any? The answer is a linear program too: that of the optimal mechanism, with the expected error on each score
vector capped by the mechanism's own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array, eye_array, hstack, vstack

from dpselect import _validate
from dpselect._numbers import float_near
from dpselect._types import Floats, Integers, Number
from dpselect.errors import InvalidType, InvalidValue, NotConverged
from dpselect.optimality.lattice import (
    MOST_VARIABLES,
    NONE,
    Certificate,
    Lattice,
    Numbers,
    Odds,
    Steps,
    after_falls,
    bounded_lattice,
    certificate,
    checked_size,
    exponential,
    permute_and_flip,
    table,
    worst_neighbour,
)

# The dual simplex method is faster on small programs, interior points on large ones. The latter do not come closer
# than 1e-8 to a small epsilon's solution, so there HiGHS keeps its own tolerance of 1e-7.
_SMALL = 5_000
_OPTIONS = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
LARGEST_GAP = 1e-6


@dataclass(frozen=True)
class Solution:
    # The solver's result: the shares, their objective, and a lower bound on the objective of any solution.

    shares: Floats
    objective: float  # an average of expected errors or the largest, over odds
    bound: float

    @property
    def gap(self) -> float:
        """The relative distance of the objective from a proven lower bound on the optimum."""
        # The solver meets constraints only within a tolerance, so its objective can be slightly below the bound.
        return abs(self.objective - self.bound) / self.objective


@dataclass(frozen=True, eq=False)
class Program:
    """The pairs of variables that privacy and monotonicity compare. Only the numbers depend on epsilon."""

    # Errors are divided by odds everywhere, so that they do not vanish for large epsilons.

    lattice: Lattice
    parent: Integers  # the variable that privacy compares each one with, or NONE
    lower: Integers  # x of this variable ...
    upper: Integers  # ... is at most x of this one
    m: int  # the number of steps per 2 sensitivity
    is_regular: bool  # whether it has all constraints of regular mechanisms

    @cached_property
    def constrained(self) -> Integers:
        """The variables that have a privacy constraint."""
        return np.flatnonzero(self.parent != NONE)

    @cached_property
    def rise(self) -> Integers:
        """The number of factors of odds of each variable: its step, rounded up to whole multiples of 2 sensitivity."""
        return -(-self.lattice.step // self.m)

    def head_probabilities(self, odds: Odds) -> Numbers:
        return table(odds**rise for rise in range(int(self.rise.max()) + 1))[self.rise]

    def errors(self, odds: Odds) -> Numbers:
        """The amount that one unit of each share adds to the expected error of its class, at sensitivity one."""
        below = table(odds ** max(rise - 1, 0) for rise in range(int(self.rise.max()) + 1))[self.rise]
        errors: Numbers = 2 * self.lattice.step * self.lattice.multiplicity * below / self.m
        return errors

    def class_errors(self, odds: float) -> csr_array:
        return self._by_class(self.errors(odds))

    def sums(self, odds: float) -> csr_array:
        return self._by_class(self.lattice.multiplicity * self.head_probabilities(odds))

    def _by_class(self, entries: Numbers) -> csr_array:
        shape = (len(self.lattice.classes), self.lattice.variables)
        return csr_array((entries, (self.lattice.class_of, np.arange(self.lattice.variables))), shape=shape)

    def rows(self, odds: float) -> csr_array:
        """The rows -z + factor z' of privacy and then those of monotonicity: all at most zero."""
        own = np.concatenate([self.constrained, self.upper])
        other = np.concatenate([self.parent[self.constrained], self.lower])
        entries = np.concatenate([np.full(own.size, -1.0), *self.factors(odds)])
        numbers = np.tile(np.arange(own.size), 2)
        return csr_array((entries, (numbers, np.concatenate([own, other]))), shape=(own.size, self.lattice.variables))

    @cached_property
    def is_bound(self) -> npt.NDArray[np.bool_]:
        # Which of the privacy rows say that an increment is not negative: those below the best.
        bounds: npt.NDArray[np.bool_] = self.lattice.step[self.constrained] > 0
        return bounds

    @cached_property
    def paths(self) -> csr_array:
        """The rows that sum increments to shares: a one for each variable on the way up to a best candidate."""
        parent = np.where(self.lattice.step > 0, self.parent, NONE)
        own = met = np.arange(self.lattice.variables)
        pairs = []
        while own.size:
            pairs.append((own, met))
            rises = parent[met] != NONE
            own, met = own[rises], parent[met[rises]]
        where = np.hstack(pairs)
        return csr_array((np.ones(where.shape[1]), tuple(where)), shape=(self.lattice.variables,) * 2)

    def factors(self, odds: Odds) -> tuple[Numbers, Numbers]:
        """The factor of the other variable in z >= factor z', for privacy and for monotonicity."""
        choices = table([odds**0, odds])
        private = (self.rise[self.constrained] == 0).astype(int)
        return choices[private], choices[self.rise[self.lower] - self.rise[self.upper]]


def paper_program(lattice: Lattice, *, relaxed: bool = False) -> Program:
    """The program of the paper, or its relaxed form."""
    parent = np.where(lattice.step > 0, lattice.raised, NONE) if relaxed else lattice.neighbour
    none = np.zeros(0, np.int64)
    return Program(lattice, parent, none, none, m=1, is_regular=False)


@lru_cache(maxsize=8)
def regular_program(n: int, k: int, m: int) -> Program:
    """The program of all regular mechanisms, for n candidates at most k times 2 sensitivity below the best."""
    lattice = bounded_lattice(n, k * m)
    variable = lattice.variable
    parent = [variable[worst_neighbour(*key, m, k * m)] for key in variable]
    pairs = {(number, variable[other]) for key, number in variable.items() for other in after_falls(*key, k * m)}
    lower, upper = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    return Program(lattice, np.array(parent, np.int64), lower, upper, m, is_regular=True)


def solution(program: Program, odds: float, weights: Floats | None) -> Solution:
    """The optimum by HiGHS and a lower bound: of the weighted average or, without weights, of the largest error."""
    errors, rows, sums = program.class_errors(odds), program.rows(odds), program.sums(odds)
    if weights is None:
        found = _solved(program, *_with_largest(errors, rows, sums))
        paid = np.maximum(found.row_prices[rows.shape[0] :], 0.0)  # prices of the errors, which sum to one
        scale = 1 / float(paid.sum())
        weights, largest = paid * scale, True
    else:
        found = _solved(program, errors.T @ weights, rows, sums)
        scale, largest = 1.0, False
    shares = found.shares / (sums @ found.shares)[program.lattice.class_of]  # sums are off by the solver's tolerance
    objective = float((errors @ shares).max() if largest else weights @ (errors @ shares))
    prices = found.row_prices[: rows.shape[0]] * scale
    bound = lower_bound(program, odds, weights, found.sum_prices * scale, prices)
    solved = Solution(shares, objective, float(bound))
    if not solved.gap <= LARGEST_GAP:
        raise NotConverged(f"HiGHS left a duality gap of {solved.gap:.1e} on {program.lattice}: no result is returned")
    return solved


def least_error(program: Program, odds: float, caps: Floats, weights: Floats) -> float:
    """The smallest weighted sum of the classes' errors, when none of them is above its cap."""
    errors, rows = program.class_errors(odds), program.rows(odds)
    limits = np.concatenate([np.zeros(rows.shape[0]), caps])
    return _solved(program, errors.T @ weights, vstack([rows, errors]), program.sums(odds), limits).value


def _with_largest(errors: csr_array, rows: csr_array, sums: csr_array) -> tuple[Any, Any, Any]:
    # Costs, inequalities and sums with one more unknown, which is at least every error and is minimised.
    above = vstack([_padded(rows, 0.0), _padded(errors, -1.0)])
    return np.append(np.zeros(errors.shape[1]), 1.0), above, _padded(sums, 0.0)


def _padded(rows: csr_array, entry: float) -> Any:
    return hstack([rows, csr_array(np.full((rows.shape[0], 1), entry))])


class _Found(NamedTuple):
    value: float
    shares: Floats
    sum_prices: Floats
    row_prices: Floats


def _solved(program: Program, cost: Any, rows: Any, sums: Any, limits: Floats | None = None) -> _Found:
    # Run HiGHS on the increments. The rows, those of the program first, are at most zero or at most their limits.
    size = program.lattice.variables
    is_small = size <= _SMALL
    sides = np.zeros(rows.shape[0]) if limits is None else limits
    paths = block_diag([program.paths, eye_array(cost.size - size)], format="csr")  # other unknowns stay as they are
    is_row = np.ones(rows.shape[0], np.bool_)
    is_row[: program.constrained.size] = ~program.is_bound
    found = linprog(  # type: ignore[call-overload] # its stubs lack sparse matrices
        cost @ paths,
        A_ub=rows.tocsr()[is_row] @ paths,
        b_ub=sides[is_row],
        A_eq=sums @ paths,
        b_eq=np.ones(sums.shape[0]),
        method="highs-ds" if is_small else "highs-ipm",
        options=_OPTIONS if is_small else {},
    )
    if found.status != 0:
        raise NotConverged(f"HiGHS found no optimum of {program.lattice}: {found.message}")
    prices = np.empty(rows.shape[0])
    prices[is_row] = -found.ineqlin.marginals
    prices[~is_row] = found.lower.marginals[program.constrained[program.is_bound]]
    shares = (paths @ np.maximum(found.x, 0.0))[:size]
    return _Found(float(found.fun), shares, found.eqlin.marginals, prices)


def lower_bound(program: Program, odds: Odds, weights: Numbers, sum_prices: Numbers, row_prices: Numbers) -> Any:
    """A bound on the weighted average (over odds) of every solution, for any prices: they are first made feasible."""
    # With prices s of the sums and f >= 0 of the rows -z + factor z' <= 0, weak duality requires for each z that
    #
    #     cost - multiplicity odds**rise s(class) - f(own) + factor f(those compared with it)
    #
    # is not negative; then the sum of s is a bound. A deficit below the best is first taken from the price of the own
    # privacy row, which moves it to the neighbour, from the lowest step up; what is left is taken from s. With rational
    # odds, weights and prices everything is exact.
    lattice, own = program.lattice, program.constrained
    zero = row_prices[:1] * 0
    flow = np.maximum(row_prices, zero)
    private, monotone = np.repeat(zero, lattice.variables), flow[own.size :]
    private[own] = flow[: own.size]
    weight = lattice.multiplicity * program.head_probabilities(odds)
    reduced = weights[lattice.class_of] * program.errors(odds) - weight * sum_prices[lattice.class_of] - private
    for_privacy, for_monotone = program.factors(odds)
    np.add.at(reduced, program.parent[own], for_privacy * private[own])
    np.subtract.at(reduced, program.upper, monotone)
    np.add.at(reduced, program.lower, for_monotone * monotone)
    for step in range(lattice.k, 0, -1):
        here = own[lattice.step[own] == step]
        taken = np.minimum(private[here], np.maximum(-reduced[here], zero))
        reduced[here] += taken
        np.subtract.at(reduced, program.parent[here], taken)
    has_weight = weight > 0  # false if a power of small odds underflows to zero
    deficit = np.where(has_weight, np.maximum(-reduced, zero), zero) / np.where(has_weight, weight, 1)
    return sum_prices.sum() - np.maximum.reduceat(deficit, lattice.first).sum()


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
    value: float
    permute_and_flip: float
    exponential: float
    ratios: Ratios
    variables: int
    certificate: Certificate | None
    duality_gap: float
    lattice: Lattice = field(repr=False)
    by_variable: Floats = field(repr=False)
    steps: int = 1

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

    `steps`, `weights` and `worst_case` use all constraints of regular mechanisms; `regular` does so on the paper's own
    lattice, whose program leaves monotonicity out.

    Args:
        n: the number of candidates.
        k: the largest distance from the best, in steps of 2 sensitivity.
        epsilon: the epsilon of the mechanism.
        steps: the number of steps per 2 sensitivity.
        weights: a function from a score vector, as ascending steps below the best, to its weight in the average.
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
    if (finer := _validate.count(steps=steps)) < 1:
        raise InvalidValue("steps must be >= 1: it is the number of steps to 2 sensitivity")
    checked_size(size[0], size[1] * finer, most_variables)
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
    # The shares of permute-and-flip and of the exponential mechanism. Their probabilities depend on the score by
    # exp(-epsilon/m) to the power of the step, so the recurrence is that of the paper's lattice with these odds; its
    # shares are probabilities over that power, and ours over odds**rise.
    fine_odds = math.exp(-epsilon / program.m)
    over = np.exp(epsilon * (program.rise - program.lattice.step / program.m))  # all ones if m is one
    return permute_and_flip(program.lattice, fine_odds) * over, exponential(program.lattice, fine_odds) * over


def _class_weights(lattice: Lattice, weights: Weights | None) -> Numbers:
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
    # The difference between the values of the two programs: only rounding, because all constraints are tight.
    scale = float(proof.value)
    return abs(float(proof.value - proof.permute_and_flip)) / scale if scale else 0.0


def pareto_ratios(n: int, k: int, epsilon: Number, *, most_variables: int = MOST_VARIABLES) -> Ratios:
    """The expected errors of each mechanism relative to the best one that is nowhere worse; one if Pareto optimal.

    See `solve` for the parameters.

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
