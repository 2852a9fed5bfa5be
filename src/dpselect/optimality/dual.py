"""McKenna & Sheldon (2020), Appendix "Constructing a dual optimal solution": optimality without a solver.

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
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._numbers import rational_from_text
from dpselect.errors import InvalidType, InvalidValue
from dpselect.optimality.lattice import (
    MOST_VARIABLES,
    Lattice,
    Numbers,
    Odds,
    bounded_lattice,
    checked_size,
    costs,
    permute_and_flip,
    powers,
)

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
    odds: Odds  # exp(-epsilon); everything below is exact if it is a Fraction
    value: Odds  # the value of the dual program, a sum of expected errors
    permute_and_flip: Odds  # the sum of permute-and-flip's expected errors
    smallest: Odds  # the smallest dual variable that must not be negative
    rounding: float  # the computed `smallest` exceeds the exact one by at most this
    finer_bounds: bool  # whether the paper's bounds hold: -2/n* <= y_best <= 0 and 0 <= y_t <= 2 t

    @property
    def is_exact(self) -> bool:
        """Whether all numbers are rational, without any rounding."""
        return isinstance(self.odds, Fraction)

    @property
    def proves_optimality(self) -> bool:
        """Whether no regular mechanism has a smaller sum of expected errors on this lattice."""
        return self.smallest >= self.rounding


def certify(n: int, k: int, odds: Any, *, most_variables: int = MOST_VARIABLES) -> Certificate:
    """The certificate for exp(-epsilon) = odds in exact arithmetic. `odds` is a Fraction or a string such as "1/3".

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
    """The certificate on a lattice; with float odds its roundings are bounded."""
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
    """A Fraction unchanged, any other number as a float."""
    return number if isinstance(number, Fraction) else float(number)


def dual_solution(lattice: Lattice, odds: Odds) -> tuple[Numbers, Numbers]:
    """The dual variable of each primal one, and a bound on its rounding error (zero for rational odds)."""
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
    """The size of a rounding, and how many of them a product with a power of the odds has."""
    if isinstance(odds, Fraction):
        return Fraction(0), lattice.step
    epsilon = -math.log(max(odds, 5e-324))
    return _UNIT, lattice.step * (epsilon + 2) + lattice.k + 4
