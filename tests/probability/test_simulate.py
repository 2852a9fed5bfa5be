"""`simulate` draws from `pmf`: reproducibly with a seed, in random order, at any number of draws."""

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from tests.statistical.goodness import assert_fits, assert_rejected

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
SCORES = np.random.default_rng(4).normal(size=300) * 4


@pytest.mark.parametrize("kind", KINDS)
def test_draws_fit_the_probabilities(kind):
    """And the same test tells ten percent more epsilon apart."""
    draws = kind(1).simulate(SCORES, 400_000)
    counts = np.bincount(draws, minlength=SCORES.size)
    assert_fits(counts, kind(1).pmf(SCORES))
    assert_rejected(counts, kind(1.1).pmf(SCORES), truth=kind(1).pmf(SCORES))


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_repeats_and_another_does_not(kind):
    first = kind(1).simulate(SCORES, 1_000, seed=7)
    assert first.dtype == np.int64
    assert first.tolist() == kind(1).simulate(SCORES, 1_000, seed=7).tolist()
    assert first.tolist() != kind(1).simulate(SCORES, 1_000, seed=8).tolist()
    assert first.tolist() != kind(1).simulate(SCORES, 1_000).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_independent_of_their_place(kind):
    """Each half has the distribution of the whole, and neighbours are as often equal as independence says."""
    draws = kind(1).simulate(SCORES, 400_000)
    pmf = kind(1).pmf(SCORES)
    for half in (draws[:200_000], draws[200_000:]):
        assert_fits(np.bincount(half, minlength=SCORES.size), pmf)
    pairs = draws.reshape(-1, 2)
    equal = np.count_nonzero(pairs[:, 0] == pairs[:, 1])
    assert_fits([equal, len(pairs) - equal], [pmf @ pmf, 1 - pmf @ pmf])
    rejected = np.sort(draws).reshape(-1, 2)
    equal = np.count_nonzero(rejected[:, 0] == rejected[:, 1])
    assert_rejected([equal, len(pairs) - equal], [pmf @ pmf, 1 - pmf @ pmf], truth=[1, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_impossible_candidates_are_never_drawn(kind):
    """Wherever they stand, also at the end, where what is left of a float sum would go."""
    scores = np.full(1_000, -1e6)
    scores[::10] = 0
    drawn = kind(1).simulate(scores, 1_000_000)
    assert (drawn % 10 == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_few_draws(kind):
    assert kind(1).simulate(SCORES, 0).shape == (0,)
    assert kind(1).simulate(SCORES, 1).shape == (1,)
    assert kind(1).simulate([5], 3).tolist() == [0, 0, 0]
