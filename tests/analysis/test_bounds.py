"""Bounds that hold for all scores: the paper's formulas, and no random score vector beyond them."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

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


@pytest.mark.parametrize("n", [1, 2, 10**6])
def test_report_noisy_max_is_bounded_by_the_mean_of_the_largest_noise(n):
    """E[max of n Laplace] by numerical integration of 1 - F**n above zero and of F**n below."""
    bounds = error_bounds(ReportNoisyMax(2), n)
    middle = math.log(n)
    above = [
        quad(lambda x: -math.expm1(n * math.log1p(-math.exp(-x) / 2)), *ends, epsabs=0, epsrel=1e-12)[0]
        for ends in ((0, middle), (middle, middle + 60))
    ]
    largest = sum(above) - 2.0**-n / n
    assert bounds.upper == pytest.approx(largest, rel=1e-6, abs=1e-12)
    assert bounds.lower <= worst_case_error(ReportNoisyMax(2), n).error


def random_scores(rng, n):
    """Vectors of all kinds, many near the worst one."""
    shape = rng.integers(4)
    if shape == 0:
        return rng.normal(size=n) * rng.choice([0.1, 1, 10])
    if shape == 1:
        return np.append(rng.integers(0, 6, n - 1), 6.0)
    losers = np.full(n - 1, -math.log(n) + rng.uniform(-3, 1)) + (0 if shape == 2 else rng.normal(size=n - 1))
    return np.append(losers, 0.0)


@pytest.mark.parametrize("n", [2, 6, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_no_scores_are_beyond_the_bounds(kind, n):
    """Expected errors and tails at every error, on random scores."""
    rng = np.random.default_rng(n)
    mechanism = kind(2)
    bounds = error_bounds(mechanism, n)
    means, fills = [], []
    for _ in range(100 if kind is ReportNoisyMax else 1_000):
        scores = random_scores(rng, n)
        means.append(expected_error(mechanism, scores))
        positive = np.unique(scores.max() - scores)[1:]
        tails = error_tail(mechanism, scores, positive)
        limits = np.array([bounds.tail(t) for t in positive.tolist()])
        assert (tails <= limits * (1 + 1e-12)).all()
        fills.append((tails / limits).max())
    assert max(means) <= bounds.upper
    assert max(means) > 0.15 * bounds.upper, "the bound is not idle"
    assert max(fills) > 0.3


@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism])
def test_bounds_scale_with_the_parameters(kind):
    """Only the rate counts: errors in units of 2 sensitivity / epsilon."""
    base = error_bounds(kind(2), 17)
    for mechanism, unit in ((kind(1), 2), (kind(2, sensitivity=7), 7), (kind(1, monotonic=True), 1)):
        scaled = error_bounds(mechanism, 17)
        assert scaled.upper == pytest.approx(unit * base.upper, rel=1e-14)
        assert scaled.lower == pytest.approx(unit * base.lower, rel=1e-14)
        assert scaled.tail(5 * unit) == pytest.approx(base.tail(5), rel=1e-13)


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
