"""Simulations of the ways to choose the top k, against the probabilities of all sets or sequences of small cases.

Each test also shows its power: draws do not pass for those of the other mechanism, or of a rate that is a little wrong.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.analysis.top_k import (
    expected_shortfall_of_margins,
    expected_shortfall_of_one_shot,
    expected_shortfall_of_peeling,
    expected_shortfall_of_sets,
    margin_runs,
    shortfalls,
    simulate_margins,
    simulate_sets,
)
from dpselect.errors import InvalidValue
from tests import reference
from tests.selection.samplers import law_over_sets, margin, total
from tests.simulated_top_k import noisy_counts, one_shot, peeling
from tests.statistical.goodness import THRESHOLD, assert_fits, assert_rejected
from tests.top_k.exact import one_shot_pmf

PMF = {True: reference.permute_and_flip_pmf, False: reference.exponential_pmf}
IN_BALLS = {True: reference.flip_pmf_in_balls, False: reference.softmax_in_balls}
CASES = {
    "spread": ([4, 3, 1, 0, 2], 2),
    "one": ([3, 1, 0, 2], 1),
    "all but one": ([3, 1, 0, 2.5], 3),
    "ties": ([2, 0, 2, 1, 1, 0], 3),
    "one far above": ([900, 2, 1, 0, 2], 3),
    "one far below": ([2, 1, 0, -900, 2], 2),
}
RATE = 0.7


def generator():
    return np.random.default_rng(20)


def counts_of(drawn, outcomes):
    """How often each outcome was drawn; every draw is one of them."""
    index = {outcome: place for place, outcome in enumerate(outcomes)}
    rows, numbers = np.unique(drawn, axis=0, return_counts=True)
    counts = np.zeros(len(outcomes))
    for row, number in zip(rows.tolist(), numbers, strict=True):
        counts[index[tuple(i for i in row if i >= 0)]] = number
    return counts


def sum_law(scores, k, rate, waits):
    return law_over_sets(scores, total, [k], rate, IN_BALLS[waits])


def margin_law(scores, k, rate, waits):
    return law_over_sets(scores, margin, range(k[0], k[1] + 1) if isinstance(k, tuple) else [k], rate, IN_BALLS[waits])


def peeling_law(scores, k, rate, waits):
    return reference.peeled_orders(scores, (PermuteAndFlip if waits else ExponentialMechanism)(rate, score_range=1), k)


def one_shot_law(scores, k, rate, waits):
    """Of the exponential mechanism there is none; peeling stands for it in power checks."""
    if not waits:
        return peeling_law(scores, k, rate, True)
    coins = [Fraction(math.exp(rate * (score - max(scores)))).limit_denominator(10**6) for score in scores]
    found = one_shot_pmf(coins, k)
    return {order: float(probability) for order, probability in found.items()}


# The law of each simulation, its draws and those of its power check, and the rate that this tells from the right one.
WAYS = {
    "sets": (simulate_sets, sum_law, 50_000, 300_000, 1.05),
    "margins": (simulate_margins, margin_law, 8_000, 40_000, 1.15),
    "peeling": (peeling, peeling_law, 50_000, 300_000, 1.05),
    "one shot": (one_shot, one_shot_law, 50_000, 300_000, 1.05),
}
ALL = [(name, case, waits) for name in WAYS for case in CASES for waits in (True, False)]
ALL = [one for one in ALL if one[0] != "one shot" or (one[2] and "far" not in one[1])]


def assert_simulated(name, scores, k, rate, waits, draws):
    simulate, law = WAYS[name][:2]
    right = law(scores, k, rate, waits)
    counts = counts_of(simulate(np.array(scores), k, rate, draws, generator(), waits=waits), list(right))
    assert_fits(counts, list(right.values()))
    return counts, list(right.values())


@pytest.mark.parametrize(("name", "case", "waits"), ALL)
def test_simulations_fit(name, case, waits):
    assert_simulated(name, *CASES[case], RATE, waits, WAYS[name][2])


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("sizes", [(1, 4), (2, 3)], ids=str)
def test_margins_of_several_sizes_fit(sizes, waits):
    assert_simulated("margins", CASES["spread"][0], sizes, RATE / 2, waits, 8_000)


@pytest.mark.parametrize(("name", "waits"), [*product(list(WAYS)[:3], (True, False)), ("one shot", True)])
def test_other_laws_are_rejected(name, waits):
    (scores, k), (_, law, _, draws, factor) = CASES["spread"], WAYS[name]
    counts, truth = assert_simulated(name, scores, k, RATE, waits, draws)
    for wrong in (law(scores, k, RATE, not waits), law(scores, k, factor * RATE, waits)):
        assert_rejected(counts, list(wrong.values()), truth=truth)


def test_far_candidates_of_one_shot():
    """The candidates between the far ones have the law that they have alone."""
    drawn = one_shot(np.array([0.0, 900.0, 1.0, 3.0, -900.0]), 2, RATE, 50_000, generator())
    assert (drawn[:, 0] == 1).all()
    assert_fits(np.bincount(drawn[:, 1], minlength=5)[[0, 2, 3]], PMF[True]([0, 1, 3], RATE))


# Many candidates: the mean of the simulated shortfalls is the expected one.


def assert_mean(simulated, expected):
    error = simulated.std(ddof=1) / math.sqrt(simulated.size)
    assert 0 < error < 0.05 * expected, "too few runs"
    assert abs(simulated.mean() - expected) < stats.norm.isf(THRESHOLD / 2) * error


COUNTS = np.random.default_rng(21).poisson(40, 120).astype(float)


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("k", [3, 30, 100])
def test_the_mean_of_sets(k, waits):
    drawn = simulate_sets(COUNTS, k, 0.3, 20_000, generator(), waits=waits)
    assert_mean(shortfalls(COUNTS, drawn), expected_shortfall_of_sets(COUNTS, k, 0.3, waits=waits))


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("k", [3, 60, (2, 40)])
def test_the_mean_of_margins(k, waits):
    drawn = simulate_margins(COUNTS, k, 0.8, 2_000, generator(), waits=waits)
    assert_mean(shortfalls(COUNTS, drawn), expected_shortfall_of_margins(COUNTS, k, 0.8, waits=waits))


@pytest.mark.parametrize("k", [2, 20, 110])
def test_the_mean_of_one_shots(k):
    drawn = one_shot(COUNTS, k, 0.2, 10_000, generator())
    assert_mean(shortfalls(COUNTS, drawn), expected_shortfall_of_one_shot(COUNTS, k, 0.2))


@pytest.mark.parametrize("waits", [True, False])
def test_the_mean_of_peeling(waits):
    drawn = peeling(COUNTS, 3, 0.2, 10_000, generator(), waits=waits)
    assert_mean(shortfalls(COUNTS, drawn), expected_shortfall_of_peeling(COUNTS, 3, 0.2, waits=waits))


def test_runs_of_margins_count_every_set():
    for sizes in [(1, 1), (3, 3), (7, 7), (1, 7), (2, 5)]:
        found = margin_runs(np.arange(8.0)[::-1], *sizes)
        total = sum(math.comb(8, k) for k in range(sizes[0], sizes[1] + 1))
        assert np.exp(found.log_lengths).sum() == pytest.approx(total)
    assert margin_runs(np.arange(8.0)[::-1], 3, 3).margins.size == 3 * 5 + 1


def test_runs_of_margins_are_accurate_where_they_are_long():
    """There are more sets than floats can count."""
    found = margin_runs(np.arange(1_000.0)[::-1], 500, 500)
    for place in range(0, found.margins.size, 9_973):
        h, t = int(found.inside[place]), int(found.last[place])
        number = math.comb(t - h - 2, 500 - h - 1) if h < 500 else 1
        assert found.log_lengths[place] == pytest.approx(math.log(number), abs=1e-9)


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("name", WAYS)
def test_a_seed_repeats_and_no_runs_are_none(name, waits):
    simulate = WAYS[name][0]
    first, second = (simulate(COUNTS, 4, 0.1, 50, generator(), waits=waits) for _ in range(2))
    assert first.shape == (50, 4)
    assert first.dtype == np.int64
    assert first.tolist() == second.tolist()
    assert all(len(set(row)) == 4 for row in first.tolist())
    assert simulate(COUNTS, 4, 0.1, 0, generator(), waits=waits).shape == (0, 4)


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("name", WAYS)
def test_huge_differences_are_certain(name, waits):
    scores = np.array([1e15, -1e15, 1.0, 2.0])
    drawn = WAYS[name][0](scores, 2, 1e10, 20, generator(), waits=waits)
    assert np.sort(drawn, axis=1).tolist() == [[0, 3]] * 20


@pytest.mark.parametrize("name", WAYS)
def test_k_must_be_in_range(name):
    for k in (0, 4):
        with pytest.raises(InvalidValue, match="between 1 and"):
            WAYS[name][0](np.arange(3.0), k, 1.0, 1, generator(), waits=True)


def test_all_candidates_can_be_put_in_order():
    scores = np.array([0.0, 300.0, 100.0])
    assert one_shot(scores, 3, 1.0, 1, generator()).tolist() == [[1, 2, 0]]
    assert peeling(scores, 3, 1.0, 1, generator(), waits=True).tolist() == [[1, 2, 0]]
    for refused in (simulate_sets, simulate_margins):
        with pytest.raises(InvalidValue, match="between 1 and 2"):
            refused(scores, 3, 1.0, 1, generator(), waits=True)


def test_sizes_must_be_in_order():
    with pytest.raises(InvalidValue, match="sizes"):
        simulate_margins(np.arange(5.0), (3, 2), 1.0, 1, generator(), waits=True)


@pytest.mark.parametrize("case", ["one", "ties"])
def test_noisy_counts_of_one_are_report_noisy_max(case):
    scores, _ = CASES[case]
    drawn = noisy_counts(np.array(scores), 1, RATE, 50_000, generator())[:, 0]
    counts = np.bincount(drawn, minlength=len(scores))
    assert_fits(counts, reference.noisy_max_pmf(scores, RATE))
    more = noisy_counts(np.array(scores), 1, RATE, 300_000, generator())[:, 0]
    truth, wrong = (reference.noisy_max_pmf(scores, rate) for rate in (RATE, 1.1 * RATE))
    assert_rejected(np.bincount(more, minlength=len(scores)), wrong, truth=truth)


def test_noisy_counts_of_all_but_one_leave_out_the_smallest():
    """The one that is left out has the largest negated score plus noise, which is symmetric."""
    scores, k = CASES["all but one"]
    drawn = noisy_counts(np.array(scores), k, RATE, 50_000, generator())
    left_out = len(scores) * (len(scores) - 1) // 2 - drawn.sum(axis=1)
    assert_fits(np.bincount(left_out, minlength=len(scores)), reference.noisy_max_pmf([-s for s in scores], RATE))


def test_noisy_counts_are_in_order():
    scores = np.array([0.0, 900.0, 1800.0, 2700.0])
    assert noisy_counts(scores, 4, 1.0, 2, generator()).tolist() == [[3, 2, 1, 0]] * 2
    with pytest.raises(InvalidValue, match="k must be between 1 and 4"):
        noisy_counts(scores, 5, 1.0, 1, generator())
