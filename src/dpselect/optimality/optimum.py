"""McKenna & Sheldon (2020), Section 5: how close to optimal a mechanism is, on average over the bounded lattice.

By Proposition 6, permute-and-flip is also Pareto optimal there. By how much can a mechanism's errors be lowered without
raising any? The answer is a linear program too: that of the optimal mechanism, with the expected error on each score
vector capped by the mechanism's own.

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

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpselect import _validate
from dpselect._numbers import float_near, rational_from_text
from dpselect._types import Floats, Number
from dpselect.errors import InvalidType, InvalidValue
from dpselect.optimality.lattice import (
    MOST_VARIABLES,
    Lattice,
    Numbers,
    Odds,
    Steps,
    bounded_lattice,
    checked_size,
    costs,
    exponential,
    permute_and_flip,
    powers,
)
from dpselect.optimality.program import Program, least_error, paper_program, regular_program, solution

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
        odds = _read(odds)
    if not isinstance(odds, Fraction):
        raise InvalidType("odds must be a Fraction or a string such as '1/3': floats are not exact")
    if not 0 < odds < 1:
        raise InvalidValue("odds must be between 0 and 1: it is exp(-epsilon)")
    return certificate(bounded_lattice(*checked_size(n, k, most_variables)), odds)


def _read(text: str) -> Fraction:
    try:
        return rational_from_text(text)
    except (TypeError, ValueError):
        raise InvalidValue("odds must be a number: give a string such as '1/3'") from None


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
    return Certificate(
        lattice.n,
        lattice.k,
        odds,
        value=_plain(-(lattice.orderings * lattice.zeros * dual[best]).sum()),
        permute_and_flip=_plain((costs(lattice) * powers(lattice, odds) * permute_and_flip(lattice, odds)).sum()),
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
