"""The confidence bound is wrong no more often than it says, by exact summation, and the event is well chosen."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from dpselect.audit.events import Event, Samples, chosen_event, epsilon_bound, noticeable_epsilon

CASES = [(0.5, 0.5), (0.9, 0.3), (0.2, 0.01), (0.03, 0.02), (1.0, 0.5), (0.999, 0.001), (0.6, 1e-6)]


@pytest.mark.parametrize("doubt", [0.3, 0.05, 1e-3])
@pytest.mark.parametrize("trials", [1, 2, 10, 60])
@pytest.mark.parametrize(("likely", "unlikely"), CASES)
def test_the_bound_holds_as_often_as_it_says(likely, unlikely, trials, doubt):
    """Summed over every pair of counts: how often is the bound above the truth?"""
    counts = np.arange(trials + 1)
    bounds = epsilon_bound(counts[:, np.newaxis], counts, trials, doubt)
    chances = np.outer(stats.binom.pmf(counts, trials, likely), stats.binom.pmf(counts, trials, unlikely))
    assert chances.sum() == pytest.approx(1)
    assert chances[bounds > math.log(likely / unlikely)].sum() <= doubt


def test_the_bound_is_not_idle():
    """Both ends are those of Clopper and Pearson: half of the doubt lies beyond each."""
    trials, doubt = 500, 1e-4
    for hits, others in [(400, 20), (3, 1), (500, 0), (250, 250)]:
        interval = stats.binomtest(hits, trials).proportion_ci(1 - doubt, method="exact")
        other = stats.binomtest(others, trials).proportion_ci(1 - doubt, method="exact")
        assert epsilon_bound(hits, others, trials, doubt) == pytest.approx(math.log(interval.low / other.high))


def test_no_hit_bounds_nothing():
    assert epsilon_bound(0, 0, 100, 0.01) == -np.inf
    assert epsilon_bound(0, 100, 100, 0.01) == -np.inf
    assert epsilon_bound(100, 100, 100, 0.01) < 0


@pytest.mark.parametrize("trials", [50, 101, 300])
@pytest.mark.parametrize("promised", [0.01, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("doubt", [0.2, 1e-6])
def test_an_epsilon_is_noticeable_where_the_expected_counts_give_a_larger_bound(trials, promised, doubt):
    """Every number of hits is tried."""
    half = trials // 2
    counts = [count for count in range(1, half + 1) if epsilon_bound(half, count, trials, doubt) > promised]
    expected = math.log(half / max(counts)) if counts else math.inf
    assert noticeable_epsilon(promised, trials, doubt) == expected
    assert expected > promised


@pytest.mark.parametrize("epsilon", [1.5, 3.0])
def test_what_is_noticeable_shows_about_half_of_the_time(epsilon):
    """By the exact probabilities of all counts: a little more shows mostly, a little less mostly not."""
    trials, doubt = 1000, 1e-3
    hits = np.arange(trials + 1)

    def chance(true):
        here, there = stats.binom.pmf(hits, trials, 0.5), stats.binom.pmf(hits, trials, 0.5 * math.exp(-true))
        return here @ (epsilon_bound(hits[:, None], hits, trials, doubt) > epsilon) @ there

    noticeable = noticeable_epsilon(epsilon, trials, doubt)
    assert chance(noticeable - 0.3) < 0.35 < chance(noticeable) < 0.65 < chance(noticeable + 0.5)


def samples(here, there):
    return Samples(Counter(here), Counter(there), sum(here.values()))


@pytest.mark.parametrize("seed", range(20))
def test_no_event_has_a_larger_bound(seed):
    """Against all subsets of six outcomes, in both directions, where the ranking is that of the same samples."""
    rng = np.random.default_rng(seed)
    here, there = (Counter(rng.choice(6, 2_000, p=rng.dirichlet(np.ones(6))).tolist()) for _ in range(2))
    seen = samples(here, there)
    subsets = [frozenset(i for i in range(6) if mask >> i & 1) for mask in range(64)]
    best = max(seen.bound(Event(subset, way), 1e-3) for subset in subsets for way in (False, True))
    assert seen.bound(chosen_event(seen, seen, 1e-3), 1e-3) == pytest.approx(best)


def test_an_event_may_be_more_likely_on_the_neighbour():
    seen = samples({0: 10_000}, {0: 5_000, "ValueError": 5_000})
    event = chosen_event(seen, seen, 1e-6)
    assert event == Event(frozenset(["ValueError"]), is_reversed=True)
    assert seen.hits(event) == (5_000, 0)


def test_luck_among_many_outcomes_does_not_choose():
    """Each outcome comes up once: the ranking is nothing but luck, and promises nothing on other samples."""
    rng = np.random.default_rng(5)
    parts = [samples(*(Counter(rng.choice(10**6, 500).tolist()) for _ in range(2))) for _ in range(2)]
    event = chosen_event(*parts, 1e-6, [frozenset(range(500_000))])
    assert parts[1].bound(event, 1e-6) < 0
    assert parts[0].bound(chosen_event(parts[0], parts[0], 1e-6), 1e-6) > 2, "as it would on the same samples"


def test_a_suspect_is_chosen_where_it_tells_most():
    rng = np.random.default_rng(6)
    low = [Counter(rng.choice(10**6, 500).tolist()) for _ in range(2)]
    high = [Counter((900_000 + rng.choice(10**5, 500)).tolist()) for _ in range(2)]
    suspect = frozenset(range(900_000))
    assert chosen_event(*map(samples, low, high), 1e-6, [suspect]) == Event(suspect, is_reversed=False)
