"""A random order: each sequence of draws gives another one, so that all are equally likely."""

import itertools
import math

import pytest

from dpselect.sampling.bits import random_order


@pytest.mark.parametrize("count", range(6))
def test_every_sequence_of_draws_gives_an_order_of_its_own(count):
    bounds = list(range(count, 0, -1))
    orders = set()
    for draws in itertools.product(*map(range, bounds)):
        asked = []
        drawn = iter(draws)
        orders.add(tuple(random_order(count, lambda bound: asked.append(bound) or next(drawn))))  # noqa: B023
        assert asked == bounds
    assert orders == set(itertools.permutations(range(count)))
    assert len(orders) == math.factorial(count)


def test_nothing_is_drawn_before_it_is_needed():
    walk = random_order(10**12, lambda bound: bound - 1)
    assert [next(walk) for _ in range(3)] == [10**12 - 1, 10**12 - 2, 10**12 - 3]
