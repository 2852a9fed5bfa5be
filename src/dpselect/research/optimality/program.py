"""McKenna & Sheldon (2020), Appendix "Overall Optimality": the linear program of the optimal regular mechanism.

Minimise the sum of expected errors over the bounded lattice, subject to privacy, symmetry (merged classes) and
probabilities that sum to one. The relaxed program keeps the privacy constraints of candidates below the best, unrolled
up to the best, and drops the others.

The unknowns of the solver are the shares z = x / odds**step, which are of moderate size: a probability x of a candidate
t steps below the best is as small as odds**t, far below a solver's tolerance. In z privacy below the best reads
z >= z', with coefficients one, and the tolerance becomes relative to each probability.

The linear program of a finer lattice, for an average of expected errors with any weights or for the largest of them.

The largest expected error is a linear program too: the smallest t that is not below any of them. Its prices are weights
of the classes, and for any weights the largest error is at least the average: so one lower bound serves both.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, vstack

from dpselect._types import Floats
from dpselect.errors import NotConverged
from dpselect.research.optimality.finer import FineLattice
from dpselect.research.optimality.lattice import Lattice
from dpselect.research.optimality.recurrence import Numbers, Odds, costs, powers

Indices = npt.NDArray[np.int64]

# The dual simplex method is the faster one on small programs, interior points on large ones. Those do not come closer
# than 1e-8 to a small epsilon's solution, so there HiGHS keeps its own tolerance of 1e-7.
_SMALL = 5_000
OPTIONS = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
LARGEST_GAP = 1e-6


@dataclass(frozen=True)
class Solution:
    """What the solver found: the shares, their objective, and a lower bound of any solution's objective."""

    shares: Floats
    objective: float  # the sum of expected errors over odds, a mean over the vectors of the lattice
    bound: float

    @property
    def gap(self) -> float:
        """How far the objective is from a proven lower bound of the optimum, relative to it.

        The solver meets constraints within a tolerance, so its objective can be below the bound by as much.
        """
        return abs(self.objective - self.bound) / self.objective


@dataclass(frozen=True)
class Program:
    """The program of a lattice. Only its numbers depend on epsilon, never its shape."""

    lattice: Lattice
    relaxed: bool = False

    @cached_property
    def parents(self) -> Indices:
        """The variable that privacy compares each one with; -1 where there is no constraint."""
        lattice = self.lattice
        if self.relaxed:
            return np.where(lattice.step > 0, lattice.raised, -1)
        return lattice.neighbour

    @cached_property
    def constrained(self) -> Indices:
        """The variables that have a privacy constraint."""
        return np.flatnonzero(self.parents >= 0)

    def objective(self, odds: float) -> Floats:
        """The cost of each z. All costs are divided by odds, so that they do not vanish for large epsilons."""
        lattice = self.lattice
        heads = odds ** np.maximum(lattice.step - 1.0, 0.0)
        cost: Floats = np.asarray(costs(lattice) / lattice.vectors, np.float64) * heads
        return cost

    def privacy(self, odds: float) -> csr_array:
        """The rows -z + z' <= 0, or -z + odds z' <= 0 for the best candidates."""
        rows, size = np.arange(self.constrained.size), self.constrained.size
        theirs = np.where(self.lattice.step[self.constrained] > 0, 1.0, odds)
        entries = np.concatenate([np.full(size, -1.0), theirs])
        columns = np.concatenate([self.constrained, self.parents[self.constrained]])
        return csr_array((entries, (np.tile(rows, 2), columns)), shape=(size, self.lattice.variables))

    def sums(self, odds: float) -> csr_array:
        """The rows that sum the probabilities of each class."""
        lattice = self.lattice
        entries = lattice.multiplicity * powers(lattice, odds)
        columns = np.arange(lattice.variables)
        shape = (len(lattice.classes), lattice.variables)
        return csr_array((entries, (lattice.class_of, columns)), shape=shape)


def solution(program: Program, odds: float) -> Solution:
    """The optimum by HiGHS, with a lower bound from its dual values."""
    cost, privacy, sums = program.objective(odds), program.privacy(odds), program.sums(odds)
    lattice = program.lattice
    is_small = lattice.variables <= _SMALL
    found = linprog(  # type: ignore[call-overload] # its stubs know no sparse matrices
        cost,
        A_ub=privacy,
        b_ub=np.zeros(privacy.shape[0]),
        A_eq=sums,
        b_eq=np.ones(sums.shape[0]),
        method="highs-ds" if is_small else "highs-ipm",
        options=OPTIONS if is_small else {},
    )
    if found.status != 0:
        raise NotConverged(f"HiGHS found no optimum of {lattice}: {found.message}")
    shares = np.maximum(found.x, 0.0)
    shares /= (sums @ shares)[lattice.class_of]  # sums that are off by the tolerance become exact
    bound = lower_bound(program, odds, found.eqlin.marginals, found.ineqlin.marginals)
    solved = Solution(shares, float(cost @ shares), bound)
    if not solved.gap <= LARGEST_GAP:
        raise NotConverged(f"HiGHS left a duality gap of {solved.gap:.1e} on {lattice}: no number is returned instead")
    return solved


def lower_bound(program: Program, odds: float, sum_prices: Floats, privacy_prices: Floats) -> float:
    """A bound of every solution's objective, whatever the prices are: they are repaired until they are feasible.

    With prices s of the sums and f >= 0 of privacy, weak duality asks of each z that its reduced cost

        cost - multiplicity odds**step s(class) - f(own) + (1 or odds) sum of f(those compared with it)

    is not negative; then the sum of s is a bound. A deficit below the best is first taken from the own f, which moves
    it to the parent, from the lowest step up; what is left is taken from s.
    """
    lattice = program.lattice
    flow = np.zeros(lattice.variables)
    flow[program.constrained] = np.maximum(-privacy_prices, 0.0)
    weight = lattice.multiplicity * powers(lattice, odds)
    reduced = program.objective(odds) - weight * sum_prices[lattice.class_of] - flow
    passed = np.where(lattice.step > 0, 1.0, odds) * flow
    np.add.at(reduced, program.parents[program.constrained], passed[program.constrained])
    for step in range(lattice.k, 0, -1):
        here = np.flatnonzero(lattice.step == step)
        taken = np.minimum(flow[here], np.maximum(-reduced[here], 0.0))
        reduced[here] += taken
        np.subtract.at(reduced, program.parents[here], taken)
    deficit = np.divide(np.maximum(-reduced, 0.0), weight, out=np.zeros_like(weight), where=weight > 0)
    return float(sum_prices.sum() - np.maximum.reduceat(deficit, lattice.first).sum())


@dataclass(frozen=True, eq=False)
class FineProgram:
    """The program of a finer lattice. Only its numbers depend on epsilon, never its shape."""

    fine: FineLattice

    def class_errors(self, odds: float) -> csr_array:
        """The rows that give the expected error of each class, over odds, from the shares z."""
        lattice = self.fine.lattice
        entries = self.fine.errors * lattice.multiplicity * odds ** np.maximum(self.fine.rise - 1.0, 0.0)
        shape = (len(lattice.classes), lattice.variables)
        return csr_array((entries, (lattice.class_of, np.arange(lattice.variables))), shape=shape)

    def sums(self, odds: float) -> csr_array:
        """The rows that sum the probabilities of each class."""
        lattice = self.fine.lattice
        entries = lattice.multiplicity * self.fine.heads(odds)
        shape = (len(lattice.classes), lattice.variables)
        return csr_array((entries, (lattice.class_of, np.arange(lattice.variables))), shape=shape)

    def rows(self, odds: float) -> csr_array:
        """The rows of privacy, one for each variable, and then those of monotonicity: all at most zero."""
        fine, size = self.fine, self.fine.lattice.variables
        own = np.concatenate([np.arange(size), fine.upper])
        other = np.concatenate([fine.neighbour, fine.lower])
        entries = np.concatenate([np.full(own.size, -1.0), *(part.astype(np.float64) for part in self.factors(odds))])
        numbers = np.tile(np.arange(own.size), 2)
        return csr_array((entries, (numbers, np.concatenate([own, other]))), shape=(own.size, size))

    def factors(self, odds: Odds) -> tuple[Numbers, Numbers]:
        """The factor of the other variable in z >= factor z', for privacy and for monotonicity."""
        rise = self.fine.rise
        one = odds**0
        choices = np.array([one, odds], dtype=object if not isinstance(odds, float) else np.float64)
        return choices[(rise == 0).astype(int)], choices[rise[self.fine.lower] - rise[self.fine.upper]]


def fine_solution(program: FineProgram, odds: float, weights: Floats | None) -> Solution:
    """The optimum by HiGHS and a lower bound: of the weighted average, or without weights of the largest error."""
    errors, rows, sums = program.class_errors(odds), program.rows(odds), program.sums(odds)
    if weights is None:
        found = _solved(program, *_with_largest(errors, rows, sums))
        paid = np.maximum(-found.ineqlin.marginals[rows.shape[0] :], 0.0)  # for the errors, in all one
        scale, shares = 1 / float(paid.sum()), _shares(program, sums, found)
        weights, objective = paid * scale, float((errors @ shares).max())
    else:
        found = _solved(program, errors.T @ weights, rows, sums)
        scale, shares = 1.0, _shares(program, sums, found)
        objective = float(weights @ (errors @ shares))
    prices = -found.ineqlin.marginals[: rows.shape[0]] * scale
    bound = fine_lower_bound(program, odds, weights, found.eqlin.marginals * scale, prices)
    solved = Solution(shares, objective, float(bound))
    if not solved.gap <= LARGEST_GAP:
        lattice = program.fine.lattice
        raise NotConverged(f"HiGHS left a duality gap of {solved.gap:.1e} on {lattice}: no number is returned instead")
    return solved


def _with_largest(errors: csr_array, rows: csr_array, sums: csr_array) -> tuple[Any, Any, Any]:
    """Costs, inequalities and sums with one unknown more, which is not below any error and is minimised."""
    above = vstack([_padded(rows, 0.0), _padded(errors, -1.0)])
    return np.append(np.zeros(errors.shape[1]), 1.0), above, _padded(sums, 0.0)


def _padded(rows: csr_array, entry: float) -> Any:
    """The rows with a last column of one entry."""
    return hstack([rows, csr_array(np.full((rows.shape[0], 1), entry))])


def _solved(program: FineProgram, cost: Any, above: Any, sums: Any) -> Any:
    """What HiGHS finds."""
    found = linprog(  # type: ignore[call-overload] # its stubs know no sparse matrices
        cost,
        A_ub=above,
        b_ub=np.zeros(above.shape[0]),
        A_eq=sums,
        b_eq=np.ones(sums.shape[0]),
        method="highs-ds",
        options=OPTIONS,
    )
    if found.status != 0:
        raise NotConverged(f"HiGHS found no optimum of {program.fine.lattice}: {found.message}")
    return found


def _shares(program: FineProgram, sums: csr_array, found: Any) -> Floats:
    """The solver's shares; sums that are off by the tolerance become exact."""
    lattice = program.fine.lattice
    shares = np.maximum(found.x[: lattice.variables], 0.0)
    exact: Floats = shares / (sums @ shares)[lattice.class_of]
    return exact


def fine_lower_bound(
    program: FineProgram, odds: Odds, weights: Numbers, sum_prices: Numbers, row_prices: Numbers
) -> Any:
    """A bound of every solution's weighted average (over odds), whatever the prices are: they are repaired first.

    With prices s of the sums and f >= 0 of the rows -z + factor z' <= 0, weak duality asks of each z that

        cost - multiplicity odds**rise s(class) - f(own) + factor f(those compared with it)

    is not negative; then the sum of s is a bound. A deficit below the best is first taken from the price of the own
    privacy row, which moves it to the neighbour, from the lowest step up; what is left is taken from s. With rational
    odds, weights and prices everything is exact.
    """
    fine, lattice = program.fine, program.fine.lattice
    size = lattice.variables
    heads = fine.heads(odds)
    flow = np.maximum(row_prices, row_prices[:1] * 0)
    private, monotone = flow[:size].copy(), flow[size:]
    weight = lattice.multiplicity * heads
    below = np.where(fine.rise > 0, heads / odds, heads)
    reduced = weights[lattice.class_of] * (2 * lattice.step * lattice.multiplicity) * below / fine.m
    reduced = reduced - weight * sum_prices[lattice.class_of] - private
    for_privacy, for_monotone = program.factors(odds)
    np.add.at(reduced, fine.neighbour, for_privacy * private)
    np.subtract.at(reduced, fine.upper, monotone)
    np.add.at(reduced, fine.lower, for_monotone * monotone)
    zero = reduced[:1] * 0
    for step in range(lattice.k, 0, -1):
        here = np.flatnonzero(lattice.step == step)
        taken = np.minimum(private[here], np.maximum(-reduced[here], zero))
        reduced[here] += taken
        np.subtract.at(reduced, fine.neighbour[here], taken)
    deficit = np.maximum(-reduced, zero) / weight
    return sum_prices.sum() - np.maximum.reduceat(deficit, lattice.first).sum()
