"""The laws that other tests compare with: against single selections, exact rationals and simulations."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect.questions.methods import Margin, NoisyCounts, OneShot, Peel, Set
from tests.reference import exponential_orders, laplace_orders
from tests.selection.samplers import assert_drawn, slow
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.top_k import exact
from tests.top_k.laws import law_of

COUNTS = [(0, 0, 0), (2, 1, 0), (3, 3, 0, 1), (0, 5)]


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize(
    ("kind", "orders"), [(PermuteAndFlip, exponential_orders), (ReportNoisyMax, laplace_orders)], ids=["exp", "laplace"]
)
def test_an_order_of_one_is_a_selection(kind, orders, counts):
    found = orders(counts, 1.5, 1)
    single = [found[place,] for place in range(len(counts))]
    assert np.allclose(single, kind("1.5", score_range=1).pmf(counts), rtol=1e-9)
    assert math.isclose(sum(orders(counts, 1.5, 2).values()), 1, rel_tol=1e-12)


@pytest.mark.parametrize("rate", [0.3, 5.0])
@pytest.mark.parametrize("counts", COUNTS)
def test_one_shot_is_that_of_exact_rationals(counts, rate):
    coins = [Fraction(math.exp(-rate * (max(counts) - count))) for count in counts]
    right = exact.one_shot_pmf(coins, 2)
    found = exponential_orders(counts, rate, 2)
    assert all(math.isclose(found[order], right[order], rel_tol=1e-11) for order in right)


def test_orders_of_laplace_noise_fit_simulations():
    generator, counts = np.random.default_rng(5), np.array([2, 1, 0])
    drawn = np.argsort(-(counts + generator.laplace(size=(200_000, 3))), axis=1)[:, :2]
    right, wrong = laplace_orders(counts, 1.0, 2), laplace_orders(counts, 1.1, 2)
    found = [int((drawn == order).all(axis=1).sum()) for order in right]
    assert_fits(found, list(right.values()))
    assert_rejected(found, list(wrong.values()), truth=list(right.values()))


DRAWS = 2_500
METHODS = [
    (Set(2, 4, 1), PermuteAndFlip(1, score_range=1)),
    (Margin(3, 4, least=1), ExponentialMechanism(1, score_range=2)),
    (OneShot(2, 4, ordered=True), PermuteAndFlip(1, monotonic=True)),
    (OneShot(3, 4), PermuteAndFlip(1, monotonic=True)),
    (Peel(2, 4), ExponentialMechanism(1, monotonic=True)),
    (Peel(3, 4), PermuteAndFlip(1, monotonic=True)),
    (NoisyCounts(2, 4, 2, ordered=True), ReportNoisyMax(1, score_range=2)),
    (NoisyCounts(2, 4, 2), ReportNoisyMax(1, score_range=2)),
]


@pytest.mark.parametrize(
    ("counts", "moved", "runs"),
    [
        ([3, 0, 4, 2], [3, 0, 4, 3], ([3, 0, 4, 2],)),
        slow([0, 2, 2, 5], [0, 2, 3, 5], ((0, 2, 5), (1, 2, 1))),
    ],
    ids=["counts", "runs"],
)
@pytest.mark.parametrize(("method", "mechanism"), METHODS, ids=lambda own: own.name)
def test_a_method_draws_by_its_law(method, mechanism, counts, moved, runs):
    """Counts that are one off have another law. Positions in runs, as Spark counts them, are those of the vector."""
    right, wrong = (law_of(method, mechanism, own) for own in (counts, moved))
    assert math.isclose(sum(right.values()), 1, rel_tol=1e-9)
    assert_drawn(lambda: tuple(method.chosen(mechanism, *runs)), DRAWS, right, wrong)
