"""What many selections guarantee together: both parts add up, and neither is ever understated."""

import math
from fractions import Fraction

import pytest
from flint import arb, ctx

from dpselect.mechanisms.privacy import BOUNDED_RANGE, LAPLACE, PURE_LOSS, Guarantee
from tests.reference import ball

EPSILONS = [Fraction(k, 997) for k in (*range(1, 60), *range(60, 3_000, 7))]
EPSILONS += [Fraction(1, 10**k) for k in range(1, 40)] + [Fraction(7**k) for k in range(12)] + [Fraction(1, 100)]


@pytest.mark.parametrize(
    ("rho", "exact"),
    [
        (LAPLACE.zcdp, lambda x: x + (-x).exp() - 1),
        (BOUNDED_RANGE.zcdp, lambda x: x / x.expm1() - 1 - (x / x.expm1()).log()),
        (PURE_LOSS.zcdp, lambda x: x - 2 * x / (x.exp() + 1)),
    ],
    ids=["Laplace", "bounded range", "pure"],
)
def test_rho_is_never_below_its_formula_and_hardly_above(rho, exact):
    with ctx.workprec(400):
        for epsilon in EPSILONS:
            claimed = rho(epsilon)
            ratio = arb(claimed) / exact(ball(epsilon))
            assert claimed >= epsilon or ratio >= 1, epsilon  # no rho exceeds epsilon
            assert ratio <= 1 + 3e-12, epsilon


@pytest.mark.parametrize("rho", [0.1, 0.125, 5e-324, 1e300])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 10**6])
def test_guarantees_add_up(count, rho):
    together = Guarantee(Fraction(1, 3), rho).times(count)
    assert together.epsilon == Fraction(count, 3)
    assert Fraction(math.nextafter(together.zcdp, 0)) < count * Fraction(rho) <= Fraction(together.zcdp)


@pytest.mark.parametrize(
    ("epsilon", "shown"),
    [(Fraction(12345, 678901), "12345/678901"), (Fraction(123451, 678901), "0.18184")],
    ids=["twelve characters", "thirteen"],
)
def test_long_quotients_are_shown_as_decimals_that_are_not_below(epsilon, shown):
    assert str(Guarantee(epsilon, 0.125)) == f"{shown}-DP (pure), 0.125-zCDP"


@pytest.mark.parametrize("count", [1, 2, 10**6])
def test_a_rho_beyond_the_floats_stays_there(count):
    together = Guarantee(Fraction(10) ** 400, math.inf).times(count)
    assert (together.epsilon, together.zcdp) == (count * Fraction(10) ** 400, math.inf)
    assert Guarantee(Fraction(1), 1e308).times(2 * count).zcdp == math.inf
