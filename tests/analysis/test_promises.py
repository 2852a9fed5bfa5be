"""What holds for all scores: the paper's bounds and worst cases, and no random score vector beyond them.

By Proposition 4, the worst case is attained on (c, ..., c, 0), and its formulas are maximised.
"""

import contextlib
import math
from itertools import pairwise

import numpy as np
import pytest
from flint import ctx
from scipy.integrate import quad

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.analysis import WorstCase, error_bounds, error_tail, expected_error, worst_case_error
from dpselect.analysis.measures import promise
from dpselect.mechanisms.laws import noisy_max_by_level, permute_and_flip_probabilities, softmax
from tests import reference

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


@pytest.mark.parametrize("kind", KINDS)
def test_tails_are_probabilities_that_fall(kind):
    bounds = error_bounds(kind(1), 100)
    tails = [bounds.tail(t) for t in (1e-300, 1, 10, 20, 30, 100, 1e3, 1e6, 1e300)]
    assert tails == sorted(tails, reverse=True)
    assert tails[0] == 1
    assert tails[-1] == 0
    assert 0 < bounds.tail(30) < 1


SIZES = [2, 3, 4, 10, 50, 10**3, 10**5, 10**7, 10**9]
HUGE = [10**17, 2**64, 10**300, 10**400, 10**3999]


def error_on_family(kind, exponent, n):
    """Rate times the expected error on (c, ..., c, 0), where the losers' exponent is -rate c: equations 3 and 4."""
    if kind is ReportNoisyMax:
        loser = noisy_max_by_level(np.array([-exponent, 0.0]), np.array([n - 1.0, 1.0]))[0]
        return exponent * (n - 1) * float(loser)
    with ctx.workprec(200 + 2 * n.bit_length()):
        x = reference.ball(exponent)
        p = (-x).exp()
        lost = (n * (1 - p).log()).exp()
        wins = 1 / (1 + (n - 1) * p) if kind is ExponentialMechanism else (1 - lost) / (n * p)
        return float(x * (1 - wins))


@pytest.mark.parametrize(
    ("kind", "n"),
    [(kind, n) for kind in KINDS for n in ([2, 10, 10**3, 10**9] if kind is ReportNoisyMax else SIZES)],
)
def test_the_formulas_are_evaluated_and_maximised(kind, n):
    """The value is the formula's at the gap, and no gap of a dense grid has a larger one."""
    worst = worst_case_error(kind(2), n)  # the rate is one
    assert worst.error == pytest.approx(error_on_family(kind, worst.gap, n), rel=1e-12)
    steps = 40 if kind is ReportNoisyMax else 2_000
    grid = np.geomspace(1e-3, 200, steps).tolist() + np.linspace(0.9 * worst.gap, 1.1 * worst.gap, 41).tolist()
    highest = max(error_on_family(kind, exponent, n) for exponent in grid)
    assert worst.error >= highest * (1 - 1e-12)
    assert worst.error <= highest * (1 + 1e-4), "the grid comes close"


@pytest.mark.parametrize("n", HUGE, ids=lambda n: f"{n.bit_length()} bits")
@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism])
def test_more_candidates_than_floats_can_count(kind, n):
    """The same formulas with as many bits as n has."""
    worst = worst_case_error(kind(2), n)
    tolerance = 1e-14 * math.log(n)  # a float of log n is off by 2**-53 of it
    assert worst.error == pytest.approx(error_on_family(kind, worst.gap, n), rel=max(1e-12, tolerance))
    for step in (-3.0, -0.3, -0.03, 0.03, 0.3, 3.0):
        assert error_on_family(kind, worst.gap + step, n) < worst.error


@pytest.mark.parametrize("kind", KINDS)
def test_errors_grow_beyond_the_floats(kind):
    """Up to 10**4000, through the place where floats of n end, and always close to log n."""
    sizes = [10**6, 2**52, 2**53, 2**53 + 1, 2**54, 10**307, 10**308, 10**309, 10**1000, 10**4000]
    for error in (lambda n: worst_case_error(kind(2), n).error, lambda n: promise(kind(2), n).within_95):
        errors = [error(n) for n in (sizes[::3] if kind is ReportNoisyMax else sizes)]
        assert errors == sorted(errors)
    for n in (2**53, 10**400):
        bounds = error_bounds(kind(2), n)
        assert bounds.lower < worst_case_error(kind(2), n).error <= bounds.upper <= math.log(n) + 1
        assert bounds.tail(math.log(n)) > 0.5
        assert 0 < bounds.tail(math.log(n) + 60) < 1e-9


def test_report_noisy_max_continues_where_floats_end():
    """Twice as many candidates cost ln 2 more, below and beyond 2**53."""
    errors = [worst_case_error(ReportNoisyMax(2), 2**power) for power in (51, 52, 53, 54, 55)]
    steps = [later.gap - first.gap for first, later in pairwise(errors)]
    assert steps == pytest.approx([math.log(2)] * 4, rel=0.05)
    assert [later.error - first.error for first, later in pairwise(errors)] == pytest.approx(steps, rel=0.1)


@pytest.mark.parametrize("n", [2, 7, 50])
@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_scores_have_that_error(kind, n):
    mechanisms = [kind("0.1", sensitivity=3), kind(1), kind(5, monotonic=True)]
    for mechanism in mechanisms[:1] if kind is ReportNoisyMax else mechanisms:
        worst = worst_case_error(mechanism, n)
        assert expected_error(mechanism, [-worst.gap] * (n - 1) + [0.0]) == pytest.approx(worst.error, rel=1e-11)
        for nearby in (0.8, 0.99, 1.01, 1.25):
            assert expected_error(mechanism, [-nearby * worst.gap] * (n - 1) + [0.0]) < worst.error


@pytest.mark.parametrize(
    ("kind", "probabilities"), [(PermuteAndFlip, permute_and_flip_probabilities), (ExponentialMechanism, softmax)]
)
def test_no_scores_are_worse(kind, probabilities):
    """The proposition itself, on thousands of random score vectors around the worst one."""
    rng = np.random.default_rng(3)
    worst = {n: worst_case_error(kind(2), n) for n in range(2, 12)}
    closest = 0.0
    for _ in range(3_000):
        n = int(rng.integers(2, 12))
        spread = rng.choice([0.01, 0.3, 1.0])
        exponents = np.append(0.0, worst[n].gap * np.exp(spread * rng.normal(size=n - 1)))
        error = probabilities(exponents) @ exponents
        assert error <= worst[n].error * (1 + 1e-12)
        closest = max(closest, error / worst[n].error)
    assert closest > 0.9999


def test_known_worst_cases():
    """For two candidates x exp(-x) / 2 is largest at x = 1; for one there is nothing to get wrong."""
    assert worst_case_error(PermuteAndFlip(2), 2).error == pytest.approx(math.exp(-1) / 2, rel=1e-12)
    assert worst_case_error(PermuteAndFlip(2), 2).gap == pytest.approx(1, rel=1e-6)
    for kind in KINDS:
        assert worst_case_error(kind(1), 1) == WorstCase(0.0, 0.0)


def test_the_mechanisms_differ_most_for_two_candidates():
    """The paper's Figure 2 (c): the ratio is largest at n = 2 and tends to one."""
    ratios = [
        worst_case_error(ExponentialMechanism(1), n).error / worst_case_error(PermuteAndFlip(1), n).error for n in SIZES
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert 1.5 < ratios[0] < 2
    assert 1 < ratios[-1] < 1.01


@pytest.mark.parametrize(
    ("n", "epsilon"),
    [(10**400, "1"), (5, "1e-400"), (5, "1e400")],
    ids=["n", "tiny epsilon", "huge epsilon"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_sizes_and_parameters_beyond_the_floats_raise_nothing_but_our_errors(kind, n, epsilon):
    with contextlib.suppress(errors.DPSelectError):
        assert worst_case_error(kind(epsilon), n).error >= 0
    with contextlib.suppress(errors.DPSelectError):
        assert error_bounds(kind(epsilon), n).upper >= 0
