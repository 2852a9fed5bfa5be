"""The paper's Proposition 4: the worst case is attained on (c, ..., c, 0), and its formulas are maximised."""

import contextlib
import math
from itertools import pairwise

import numpy as np
import pytest
from flint import ctx

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.analysis import WorstCase, error_bounds, expected_error, worst_case_error
from dpselect.analysis.promises import promise
from dpselect.mechanisms.laws import noisy_max_by_level, permute_and_flip_probabilities, softmax
from tests import reference

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
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


@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_case_lies_between_the_bounds_and_grows(kind):
    previous = 0.0
    for n in [2, 10**9] if kind is ReportNoisyMax else SIZES:
        worst, bounds = worst_case_error(kind(1), n), error_bounds(kind(1), n)
        assert bounds.lower * (1 - 1e-12) <= worst.error <= bounds.upper
        assert previous < worst.error
        previous = worst.error


def test_the_mechanisms_differ_most_for_two_candidates():
    """The paper's Figure 2 (c): the ratio is largest at n = 2 and tends to one."""
    ratios = [
        worst_case_error(ExponentialMechanism(1), n).error / worst_case_error(PermuteAndFlip(1), n).error for n in SIZES
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert 1.5 < ratios[0] < 2
    assert 1 < ratios[-1] < 1.01


@pytest.mark.parametrize("kind", KINDS)
def test_scaling_laws(kind):
    base = worst_case_error(kind(1), 30)
    for mechanism, factor in ((kind(1, sensitivity=5), 5), (kind(4, monotonic=True), 1 / 8)):
        scaled = worst_case_error(mechanism, 30)
        assert scaled.error == pytest.approx(factor * base.error, rel=1e-12)
        assert scaled.gap == pytest.approx(factor * base.gap, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "error", "words"),
    [
        (0, errors.InvalidValue, "n must be"),
        (-1, errors.InvalidValue, "n must be"),
        (2.0, errors.InvalidType, "n must be an integer"),
        ("2", errors.InvalidType, "n must be an integer"),
        (True, errors.InvalidType, "n must be an integer"),
        (None, errors.InvalidType, "n must be an integer"),
    ],
)
def test_bad_sizes_are_refused(n, error, words):
    for kind in KINDS:
        with pytest.raises(error, match=words):
            worst_case_error(kind(1), n)
        with pytest.raises(error, match=words):
            error_bounds(kind(1), n)


@pytest.mark.parametrize("mechanism", [None, 3, PermuteAndFlip, "permute-and-flip"], ids=str)
def test_bad_mechanisms_are_refused(mechanism):
    with pytest.raises(errors.InvalidType, match="mechanism must be"):
        worst_case_error(mechanism, 5)


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
