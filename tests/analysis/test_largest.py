"""The search for the largest epsilon: never above it, and as near as asked."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect.questions.plan import largest

POSITIVE = st.fractions(Fraction(1, 10**9), 10**9)


@given(POSITIVE, POSITIVE, st.sampled_from([1e-1, 1e-3, 1e-6]))
def test_it_is_never_above_and_as_near_as_asked(true, start, within):
    found = largest(lambda epsilon: epsilon <= true, start, within)
    assert found <= true < found * (1 + Fraction(within))


@pytest.mark.parametrize("start", [Fraction(1), Fraction(1, 8), Fraction(64)])
def test_an_end_that_has_the_property_can_be_found(start):
    assert largest(lambda epsilon: epsilon <= 1, start, 1e-9) == 1


@pytest.mark.parametrize("start", [Fraction(1), Fraction(1, 8), Fraction(64)])
def test_an_end_without_the_property_is_not_found(start):
    assert largest(lambda epsilon: epsilon < 1, start, 1e-9) < 1
