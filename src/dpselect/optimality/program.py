"""McKenna & Sheldon (2020), Appendix "Overall Optimality": the linear program of the optimal regular mechanism.

Minimise the sum of expected errors over the bounded lattice, subject to privacy, symmetry (merged classes) and
probabilities that sum to one. The relaxed program keeps the privacy constraints of candidates below the best, unrolled
up to the best, and drops the others.

The unknowns of the solver are the shares z = x / odds**step, which are of moderate size: a probability x of a candidate
t steps below the best is as small as odds**t, far below a solver's tolerance. In z privacy below the best reads
z >= z', with coefficients one, and the tolerance becomes relative to each probability.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array

from dpselect.errors import NotConverged
from dpselect.optimality.lattice import Lattice
from dpselect.optimality.recurrence import costs, powers

Floats = npt.NDArray[np.float64]
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
