"""Draws of every mechanism fit its probabilities, and the same test rejects every broken mechanism."""

from fractions import Fraction

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from tests import reference
from tests.broken import BROKEN, PlainPermuteAndFlip
from tests.statistical.goodness import THRESHOLD, assert_fits, assert_rejected, p_value

pytestmark = pytest.mark.slow

EPSILON = 1
# The probabilities depend on differences only; the second vector is what the mechanisms get.
CASES = {
    "spread": ([0, 1, 2, 3, 5], [0, 1, 2, 3, 5]),
    "close": ([0, 1, 2, 2, 1], [0.0, 1.0, 2.0, 2.0, 1.0]),
    "ties": ([0, 0, 0, 0], [7, 7, 7, 7]),
    "low": ([0, -1, -3], [-4000, -4001, -4003]),
    "cold": ([0, -14, -15, -12], [0.0, -14.0, -15.0, -12.0]),
    "beyond floats": ([0, 1, 3], [2**60, 2**60 + 1, 2**60 + 3]),
    "unsigned": ([0, 1, 3], np.array([2**64 - 4, 2**64 - 3, 2**64 - 1], dtype=np.uint64)),
    "one": ([0], [5]),
}
PMF = {
    PermuteAndFlip: reference.permute_and_flip_pmf,
    ExponentialMechanism: reference.exponential_pmf,
    ReportNoisyMax: reference.noisy_max_pmf,
}
# With so many draws the case "spread" misses a rate that is off by one percent less than once in 10**10 runs.
ROWS = {case: 3_000_000 if case == "spread" else 1_000_000 for case in CASES}


def counts_of(mechanism, scores, draws):
    matrix = np.broadcast_to(np.array(scores), (draws, len(scores)))
    return np.bincount(mechanism.select_rows(matrix), minlength=len(scores))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", PMF, ids=lambda kind: kind.__name__)
def test_rows_fit(kind, case):
    differences, scores = CASES[case]
    assert_fits(counts_of(kind(EPSILON), scores, ROWS[case]), PMF[kind](differences, EPSILON / 2))


# Other ways to write scores are also those of `test_rows_fit`: one by one they are drawn by `make test-slow`.
OTHER_WRITINGS = ("low", "beyond floats", "unsigned", "one")


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * (case in OTHER_WRITINGS)) for case in CASES]
)
@pytest.mark.parametrize("kind", PMF, ids=lambda kind: kind.__name__)
def test_single_selections_fit(kind, case):
    differences, scores = CASES[case]
    mechanism = kind(EPSILON)
    counts = np.bincount([mechanism.select(scores) for _ in range(20_000)], minlength=len(scores))
    assert_fits(counts, PMF[kind](differences, EPSILON / 2))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", PMF, ids=lambda kind: kind.__name__)
def test_simulations_fit(kind, case):
    differences, scores = CASES[case]
    counts = np.bincount(kind(EPSILON).simulate(scores, 200_000), minlength=len(scores))
    assert_fits(counts, PMF[kind](differences, EPSILON / 2))


def test_the_control_fits_harmless_scores():
    for case in ("spread", "close", "ties"):
        differences, scores = CASES[case]
        counts = counts_of(PlainPermuteAndFlip(EPSILON), scores, ROWS[case])
        assert_fits(counts, reference.permute_and_flip_pmf(differences, EPSILON / 2))


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_every_broken_mechanism_is_caught(kind):
    """The power check of test_rows_fit: the same draws of the same cases reject each mistake."""
    values = [
        p_value(counts_of(kind(EPSILON), scores, ROWS[case]), reference.permute_and_flip_pmf(differences, EPSILON / 2))
        for case, (differences, scores) in CASES.items()
    ]
    assert min(values) < THRESHOLD


@pytest.mark.parametrize("kind", PMF, ids=lambda kind: kind.__name__)
def test_a_slightly_wrong_epsilon_is_rejected(kind):
    """The power check of the three mechanisms: one percent more epsilon does not pass for the right one."""
    differences, scores = CASES["spread"]
    counts = counts_of(kind(EPSILON * 1.01), scores, ROWS["spread"])
    truth = PMF[kind](differences, EPSILON * 1.01 / 2)
    assert_rejected(counts, PMF[kind](differences, EPSILON / 2), truth=truth)


@pytest.mark.parametrize(
    ("draw", "pmf"),
    [
        (reference.algorithm_1, reference.permute_and_flip_pmf),
        (reference.algorithm_3, reference.permute_and_flip_pmf),
        (reference.algorithm_2, reference.exponential_pmf),
    ],
    ids=["algorithm 1", "algorithm 3", "algorithm 2"],
)
def test_the_papers_algorithms_fit_the_same_probabilities(draw, pmf):
    differences, _ = CASES["close"]
    scores = [Fraction(score) for score in differences]
    counts = np.bincount([draw(scores, Fraction(1, 2)) for _ in range(20_000)], minlength=len(scores))
    assert_fits(counts, pmf(differences, 0.5))


@pytest.mark.parametrize("case", CASES)
def test_exponential_noise_is_permute_and_flip(case):
    """Ding et al. (2021), by a road that shares no draw with the coins."""
    differences, scores = CASES[case]
    noise = np.random.default_rng(1).exponential(size=(200_000, len(differences)))
    drawn = (np.array(differences, np.float64) * EPSILON / 2 + noise).argmax(axis=1)
    assert_fits(np.bincount(drawn, minlength=len(differences)), PermuteAndFlip(EPSILON).pmf(scores))


def test_noisy_max_stays_right_when_its_filter_doubts(monkeypatch):
    """With a margin of a tenth the exact contest decides often."""
    monkeypatch.setattr("dpselect.selection.races.MARGIN", 0.1)
    differences, scores = CASES["close"]
    counts = counts_of(ReportNoisyMax(EPSILON), scores, 4_000)
    assert_fits(counts, reference.noisy_max_pmf(differences, EPSILON / 2))
    assert_rejected(
        counts_of(ReportNoisyMax(2 * EPSILON), scores, 4_000),
        reference.noisy_max_pmf(differences, EPSILON / 2),
        truth=reference.noisy_max_pmf(differences, EPSILON),
    )


def test_permute_and_flip_stays_right_when_its_filter_doubts(monkeypatch):
    monkeypatch.setattr("dpselect.selection.draws.Draws.finish.__defaults__", (0.05,))
    differences, scores = CASES["close"]
    counts = np.bincount([PermuteAndFlip(EPSILON).select(scores) for _ in range(4_000)], minlength=len(scores))
    assert_fits(counts, reference.permute_and_flip_pmf(differences, EPSILON / 2))
