"""Bounds that hold for all scores: the paper's formulas, and no random score vector beyond them."""

import math

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.analysis import error_bounds, error_tail, expected_error, worst_case_error

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]


@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism])
@pytest.mark.parametrize("n", [1, 2, 1000, 10**9])
def test_the_papers_formulas(kind, n):
    """Proposition 1, Corollary 1 and Proposition 5 with epsilon 0.5 and sensitivity 3; half of it if monotonic."""
    bounds = error_bounds(kind("0.5", sensitivity=3), n)
    assert bounds.upper == pytest.approx(2 * 3 / 0.5 * math.log(n), rel=1e-14)
    assert bounds.lower == pytest.approx(3 / (2 * 0.5) * math.log(n), rel=1e-14)
    monotonic = error_bounds(kind("0.5", sensitivity=3, monotonic=True), n)
    assert monotonic.upper == pytest.approx(bounds.upper / 2, rel=1e-14)
    for t in (0.1, 1.0, 10.0):
        error = 2 * 3 / 0.5 * (math.log(n) + t)
        assert bounds.tail(error) == pytest.approx(math.exp(-t) if n > 1 else 0, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 999, 1000, 1001, 10**6])
def test_report_noisy_max_is_bounded_by_the_largest_of_n_exponential_noises(n):
    bounds = error_bounds(ReportNoisyMax(2), n)
    harmonic = math.fsum(1 / k for k in range(1, n + 1)) if n > 1 else 0
    assert harmonic * (1 - 1e-12) <= bounds.upper <= harmonic * (1 + 1e-6)
    assert bounds.lower == worst_case_error(ReportNoisyMax(2), n).error


def random_scores(rng):
    """Vectors of all kinds, many near the worst one."""
    n = int(rng.integers(2, 40))
    kind = rng.integers(4)
    if kind == 0:
        return rng.normal(size=n) * rng.choice([0.1, 1, 10])
    if kind == 1:
        return rng.integers(0, 6, n).astype(float)
    gap = (math.log(n) + rng.uniform(-1, 3)) * rng.choice([1, 2])
    losers = np.full(n - 1, -gap) + (0 if kind == 2 else rng.normal(size=n - 1))
    return np.append(losers, 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_no_scores_are_beyond_the_bounds(kind):
    """Expected errors and tails at every error, on random scores."""
    rng = np.random.default_rng(KINDS.index(kind))
    closest_mean = closest_tail = 0.0
    for _ in range(150 if kind is ReportNoisyMax else 1_500):
        scores = random_scores(rng)
        mechanism = kind(float(rng.choice([0.3, 1, 2, 4])), monotonic=bool(rng.integers(2)))
        bounds = error_bounds_of(mechanism, scores.size)
        mean = expected_error(mechanism, scores)
        assert mean <= bounds.upper
        closest_mean = max(closest_mean, mean / bounds.upper)
        positive = np.unique(scores.max() - scores)[1:]
        tails = error_tail(mechanism, scores, positive)
        limits = np.array([bounds.tail(t) for t in positive.tolist()])
        assert (tails <= limits * (1 + 1e-12)).all()
        closest_tail = max(closest_tail, (tails / limits).max())
    assert closest_mean > 0.2, "the bounds are within their order"
    assert closest_tail > 0.3


CACHE = {}


def error_bounds_of(mechanism, n):
    """Computed once for each mechanism and size: report noisy max searches for its lower bound."""
    if (mechanism, n) not in CACHE:
        CACHE[mechanism, n] = error_bounds(mechanism, n)
    return CACHE[mechanism, n]


@pytest.mark.parametrize("kind", KINDS)
def test_tails_are_probabilities_that_fall(kind):
    bounds = error_bounds(kind(1), 100)
    tails = [bounds.tail(t) for t in (1e-300, 1, 10, 20, 30, 100, 1e3, 1e6, 1e300)]
    assert tails == sorted(tails, reverse=True)
    assert tails[0] == 1
    assert tails[-1] == 0
    assert 0 < bounds.tail(30) < 1


@pytest.mark.parametrize("kind", KINDS)
def test_one_candidate_has_no_error(kind):
    bounds = error_bounds(kind(1), 1)
    assert (bounds.lower, bounds.upper, bounds.tail(0.001)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (0, errors.InvalidValue, "error must be > 0"),
        (-1, errors.InvalidValue, "error must be > 0"),
        (math.nan, errors.InvalidValue, "error must be finite"),
        (None, errors.InvalidType, "error must be a number"),
        ([1, 2], errors.InvalidType, "error must be a number"),
    ],
)
def test_bad_errors_are_refused(error, kind, words):
    with pytest.raises(kind, match=words):
        error_bounds(PermuteAndFlip(1), 10).tail(error)


@pytest.mark.parametrize("mechanism", [None, 3, PermuteAndFlip, "permute-and-flip"], ids=str)
def test_bad_mechanisms_are_refused(mechanism):
    with pytest.raises(errors.InvalidType, match="mechanism must be"):
        error_bounds(mechanism, 5)
