"""The search for the last number with a property, and the first without: on the safe side, as near as asked."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect._numbers import first_true, last_true

POSITIVE = st.fractions(Fraction(1, 10**9), 10**9)


@given(POSITIVE, POSITIVE, st.sampled_from([1e-1, 1e-3, 1e-6]))
def test_it_is_never_above_and_as_near_as_asked(true, start, within):
    found = last_true(lambda epsilon: epsilon <= true, start, within=within)
    assert found <= true < found * (1 + Fraction(within))


@pytest.mark.parametrize("start", [Fraction(1), Fraction(1, 8), Fraction(64)])
def test_an_end_that_has_the_property_can_be_found(start):
    assert last_true(lambda epsilon: epsilon <= 1, start, within=1e-9) == 1


@pytest.mark.parametrize("start", [Fraction(1), Fraction(1, 8), Fraction(64)])
def test_an_end_without_the_property_is_not_found(start):
    assert last_true(lambda epsilon: epsilon < 1, start, within=1e-9) < 1


@given(st.integers(0, 10**30), st.integers(1, 10**30))
def test_whole_numbers_are_found_exactly(before, more):
    true = before + more
    assert first_true(lambda n: n >= true, before, true + more) == true
    assert last_true(lambda n: n < true, before, true + more) == true - 1


@given(st.floats(5e-324, 1e300), st.floats(5e-324, 1e300))
def test_floats_are_found_exactly(true, start):
    assert first_true(lambda x: x >= true, start) == true
    assert last_true(lambda x: x <= true, start) == true
