"""Every float that accounting shows is the next one above the exact cost, never the nearest one.

The exact values are fractions. About half of these would be wrong if a float were the nearest one.
"""

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpselect import pure, zcdp
from dpselect.accounting.budget import largest_loss
from dpselect.accounting.charge import Charge, rho_of
from dpselect.accounting.totals import Total, total
from dpselect.ledger import PURE
from dpselect.mechanisms import MECHANISMS

NAMES = [*MECHANISMS, PURE]
EPSILONS = st.fractions(min_value=Fraction(1, 1000), max_value=3, max_denominator=10**6)


def is_next_above(value: float, exact: Fraction) -> bool:
    """Whether this is the smallest float that is not below an exact number."""
    return Fraction(math.nextafter(value, 0)) < exact <= Fraction(value)


def test_the_nearest_float_is_not_enough() -> None:
    """The power check."""
    assert is_next_above(1 / 10, Fraction(1, 10))
    assert not is_next_above(1 / 3, Fraction(1, 3))
    assert is_next_above(math.nextafter(1 / 3, 1), Fraction(1, 3))
    assert not is_next_above(math.nextafter(math.nextafter(1 / 3, 1), 1), Fraction(1, 3))


@pytest.mark.parametrize("name", NAMES)
@given(epsilons=st.lists(EPSILONS, min_size=1, max_size=4), count=st.integers(1, 50))
@example(epsilons=[Fraction(1, 3)], count=1)
@example(epsilons=[Fraction(1, 3)], count=3)
@example(epsilons=[Fraction(1, 7), Fraction(1, 3)], count=5)
def test_the_zcdp_of_a_total_is_the_exact_sum_rounded_up(name: str, epsilons: list[Fraction], count: int) -> None:
    exact = sum((count * rho_of(name, epsilon) for epsilon in epsilons), Fraction(0))
    found = total([Charge("question", epsilon, name, count) for epsilon in epsilons])
    assert is_next_above(found.zcdp, exact)
    assert found.epsilon == count * sum(epsilons)


@given(EPSILONS)
@example(Fraction(1, 3))
def test_one_pure_release_costs_its_epsilon_rounded_up(epsilon: Fraction) -> None:
    """A delta this small helps nothing: the smallest epsilon that is known is the pure one."""
    found = total([Charge("question", epsilon)], delta="1e-300").approximate
    assert found is not None
    assert found.method == "pure"
    assert is_next_above(found.epsilon, epsilon)


@given(EPSILONS, st.integers(1, 40))
@example(Fraction(1, 3), 1)
def test_the_zcdp_that_follows_from_a_cap_is_rounded_up(cap: Fraction, parts: int) -> None:
    budget = pure(cap * parts, cap=cap)
    for shown, rho in budget.follows.items():
        assert is_next_above(rho, parts * rho_of(PURE if shown == "any" else shown, cap))


@given(EPSILONS)
@example(Fraction(1, 3))
def test_the_largest_loss_is_rounded_up(number: Fraction) -> None:
    assert is_next_above(largest_loss(pure(number), 1e-6), number)
    assert Fraction(largest_loss(zcdp(number), math.nextafter(1, 0))) >= number


@given(EPSILONS)
@example(Fraction(1, 3))
def test_texts_of_a_budget_and_a_total_are_rounded_up(number: Fraction) -> None:
    for words in (Total(number, 0.0).always, pure(number).guaranteed(pure(number).limit)):
        assert Fraction(words.partition("-DP")[0]) >= number
