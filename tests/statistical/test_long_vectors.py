"""Selections from vectors of many blocks, where the kernels skip, list and crowd candidates."""

from fractions import Fraction

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect.mechanisms import permute_and_flip
from tests import reference
from tests.statistical.goodness import assert_fits, assert_rejected

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_kernel")]

RATE = 0.5
DRAWS = 3_000


def layers(*counts_and_scores):
    """So many candidates of each score, in a fixed scattered order."""
    scores = np.concatenate([np.full(count, float(score)) for count, score in counts_and_scores])
    return np.random.default_rng(1).permutation(scores)


CASES = {
    "peaked": layers((20_000, 70), (300, 85), (5, 97), (1, 100)),
    "crowded": layers((12_000, 100), (8_000, 99), (5, 95)),
    "warm": layers((16_383, 88), (1, 100)),  # 2**-8.7 each: cold one by one, likely as a whole
    "frozen": layers((40_000, 82.0), (1, 100)),  # 2**-13 each
    "mixed blocks": np.concatenate(
        [np.full(4096, 100.0), np.full(9000, 60.0), layers((4000, 80), (96, 99), (50, 101))]
    ),
}


def grouped(pmf, scores, selected):
    """Counts and probabilities per distinct score."""
    levels, inverse = np.unique(scores, return_inverse=True)
    counts = np.bincount(inverse[selected], minlength=levels.size)
    return counts, np.bincount(inverse, weights=pmf, minlength=levels.size)


@pytest.fixture(params=[0, 2**20], ids=["by blocks", "at once"])
def road(request, monkeypatch):
    """Both ways to flip many coins, whatever their number is."""
    monkeypatch.setattr(permute_and_flip, "MIDDLE", request.param)


@pytest.mark.usefixtures("road")
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@pytest.mark.parametrize("case", CASES)
def test_permute_and_flip_fits(case, dtype):
    scores = CASES[case].astype(dtype)
    selected = [PermuteAndFlip(2 * RATE).select(scores) for _ in range(DRAWS)]
    assert_fits(*grouped(reference.permute_and_flip_pmf(scores, RATE), scores, selected))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float32, np.int16, np.uint64])
@pytest.mark.parametrize("option", ["early_exit", "steady"])
@pytest.mark.parametrize("case", CASES)
def test_other_schedules_fit(case, option, dtype):
    scores = CASES[case].astype(dtype)
    selected = [PermuteAndFlip(2 * RATE).select(scores, **{option: True}) for _ in range(1_000)]
    assert_fits(*grouped(reference.permute_and_flip_pmf(scores, RATE), scores, selected))


@pytest.mark.parametrize(
    ("kind", "pmf", "draws"),
    [(ExponentialMechanism, reference.exponential_pmf, DRAWS), (ReportNoisyMax, reference.noisy_max_pmf, 1_000)],
)
@pytest.mark.parametrize("case", CASES)
def test_other_mechanisms_fit(case, kind, pmf, draws):
    scores = CASES[case]
    selected = [kind(2 * RATE).select(scores) for _ in range(draws)]
    assert_fits(*grouped(pmf(scores, RATE), scores, selected))


@pytest.mark.parametrize("options", [{}, {"steady": True}], ids=str)
@pytest.mark.parametrize("case", ["peaked", "warm", "frozen"])
def test_a_wrong_rate_is_rejected(case, options):
    """The power check: a fifth more epsilon is told from the right one."""
    scores = CASES[case]
    selected = [PermuteAndFlip(2.4 * RATE).select(scores, **options) for _ in range(DRAWS)]
    counts, wrong = grouped(reference.permute_and_flip_pmf(scores, RATE), scores, selected)
    _, truth = grouped(reference.permute_and_flip_pmf(scores, 1.2 * RATE), scores, selected)
    assert_rejected(counts, wrong, truth=truth)


@pytest.mark.usefixtures("road")
def test_positions_of_ties_are_uniform():
    """Where everybody ties, every position is as likely as any other, at the ends and across blocks."""
    scores = np.zeros(10_000)
    selected = np.array([PermuteAndFlip(1).select(scores) for _ in range(5_000)])
    assert_fits(np.bincount(selected * 20 // scores.size, minlength=20), np.full(20, 1 / 20))


@pytest.mark.slow
def test_exact_rationals_take_the_same_long_road():
    """Scores with a denominator beyond 64 bits fit no array; the choice between two groups has the right odds."""
    losers, winners, draws = 4_200, 40, 200
    low = Fraction(1, 3**50)
    scores = [low] * losers + [low + 8] * winners
    selected = np.array([PermuteAndFlip(2 * RATE).select(scores) for _ in range(draws)])
    won = np.count_nonzero(selected >= losers)

    def odds(rate):
        pmf = reference.permute_and_flip_pmf([0] * losers + [8] * winners, rate)
        return [pmf[losers:].sum(), pmf[:losers].sum()]

    assert_fits([won, draws - won], odds(RATE))
    assert_rejected([won, draws - won], odds(1.5 * RATE), truth=odds(RATE))
