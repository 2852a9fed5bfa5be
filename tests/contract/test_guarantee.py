"""What many selections guarantee together: both parts add up, and neither is ever understated."""

import math
from fractions import Fraction

import pytest

from dpselect.mechanisms.guarantee import Guarantee


@pytest.mark.parametrize("rho", [0.1, 0.125, 5e-324, 1e300])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 10**6])
def test_guarantees_add_up(count, rho):
    together = Guarantee(Fraction(1, 3), rho).times(count)
    assert together.epsilon == Fraction(count, 3)
    assert Fraction(math.nextafter(together.zcdp, 0)) < count * Fraction(rho) <= Fraction(together.zcdp)
