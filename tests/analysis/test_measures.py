"""Errors on given scores: mean, tails and quantiles, against sums over the candidates written out, and their inverse.

`epsilon_for` inverts the mean and the tails: the result suffices, and a millionth less does not.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.analysis import epsilon_for, error_quantile, error_tail, expected_error

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
SCORES = {
    "one": [7],
    "ties": [2, 2, 2],
    "ints": [10, 8, 0, 8, 9],
    "floats": [0.5, -0.25, 3.0, 2.75, 2.75],
    "beyond 2**53": [2**60, 2**60 - 1, 2**60 - 5],
    "uint64": np.array([2**64 - 1, 2**64 - 3, 2**64 - 3], np.uint64),
    "uint8": np.array([3, 200, 201], np.uint8),
    "int8": np.array([-128, 127, 126], np.int8),
    "Fractions": [Fraction(1, 3), Fraction(7, 3), Fraction(5, 3)],
    "random": np.random.default_rng(1).normal(size=60) * 5,
}


def distribution(mechanism, scores):
    """Pairs of error and probability, one a candidate, with errors from exact differences."""
    exact = [Fraction(*score.as_integer_ratio()) for score in np.asarray(scores, object).tolist()]
    return [(max(exact) - score, p) for score, p in zip(exact, mechanism.pmf(scores).tolist(), strict=True)]


@pytest.mark.parametrize("case", SCORES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_is_a_sum(kind, case):
    mechanism = kind(1)
    wanted = math.fsum(float(error) * p for error, p in distribution(mechanism, SCORES[case]))
    found = expected_error(mechanism, SCORES[case])
    assert type(found) is float
    assert found == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("case", SCORES)
@pytest.mark.parametrize("kind", KINDS)
def test_tails_are_sums(kind, case):
    """At every error, just before it, just after it, at zero and beyond the largest."""
    mechanism = kind("0.3")
    pairs = distribution(mechanism, SCORES[case])
    thresholds = sorted({float(error) for error, _ in pairs})
    thresholds += [math.nextafter(t, math.inf) for t in thresholds] + [math.nextafter(t, -math.inf) for t in thresholds]
    thresholds += [-1.0, 2 * max(thresholds) + 1]
    wanted = [math.fsum(p for error, p in pairs if float(error) >= t) for t in thresholds]
    found = error_tail(mechanism, SCORES[case], thresholds)
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-300)
    assert found[-1] == 0
    for t, tail in zip(thresholds, found.tolist(), strict=True):
        assert error_tail(mechanism, SCORES[case], t) == tail


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_of_tails(kind):
    mechanism, scores = kind(1), [3, 2, 0]
    assert type(error_tail(mechanism, scores, 1)) is float
    assert type(error_tail(mechanism, scores, np.float64(1))) is float
    assert error_tail(mechanism, scores, 0) == 1
    assert error_tail(mechanism, scores, []).shape == (0,)
    square = error_tail(mechanism, scores, [[0, 1], [2, 4]])
    assert square.shape == (2, 2)
    assert square[0, 0] == 1
    assert square[1, 1] == 0
    assert square[0, 1] > square[1, 0] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_small_tails_keep_their_digits(kind):
    """A tail of 1e-200 is not lost beside the winner's probability."""
    far = error_tail(kind(1), [0, 0, -900], 500)
    assert far == pytest.approx(kind(1).pmf([0, 0, -900])[2], rel=1e-13)
    assert 0 < far < 1e-180


@pytest.mark.parametrize("case", SCORES)
@pytest.mark.parametrize("kind", KINDS)
def test_quantiles_are_the_smallest_error_that_suffices(kind, case):
    mechanism = kind("0.3")
    pairs = sorted(distribution(mechanism, SCORES[case]))
    for level in (1e-9, 0.1, 0.35, 0.5, 0.75, 0.9, 0.95, 0.999, 1 - 1e-9):
        quantile = error_quantile(mechanism, SCORES[case], level)
        assert type(quantile) is float
        within = math.fsum(p for error, p in pairs if float(error) <= quantile)
        closer = math.fsum(p for error, p in pairs if float(error) < quantile)
        assert within >= level - 1e-12
        assert closer < level + 1e-12
        assert quantile in {float(error) for error, _ in pairs}


@pytest.mark.parametrize("kind", KINDS)
def test_quantiles_change_where_the_distribution_steps(kind):
    scores = [10, 8, 0]
    best = kind(1).pmf(scores)[0]
    assert error_quantile(kind(1), scores, best - 1e-9) == 0
    assert error_quantile(kind(1), scores, best + 1e-9) == 2
    assert error_quantile(kind(1), scores, 1 - 1e-15) == 10
    assert error_quantile(kind(1), scores, "0.5") == error_quantile(kind(1), scores, 0.5)


# A sentinel for candidates that must not win, as users write it.
SENTINELS = {"largest float": [-1.7e308, 1.7e308, 1.7e308], "beyond the floats": [-(10**400), 0, 0]}


@pytest.mark.parametrize("case", SENTINELS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_impossible_candidate_adds_no_error(kind, case):
    """Its error is beyond the floats and its probability is zero: it never happens."""
    scores = SENTINELS[case]
    assert expected_error(kind(1), scores) == 0
    assert error_tail(kind(1), scores, [0, 1, 1e308]).tolist() == [1, 0, 0]
    assert error_quantile(kind(1), scores, 0.99) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_errors_beyond_the_floats_are_infinite(kind):
    """Two candidates, half the probability each, a distance of 2e308 apart."""
    flat = kind(1, sensitivity="1e400")
    assert expected_error(flat, [-1e308, 1e308]) == math.inf
    assert error_tail(flat, [-1e308, 1e308], 1e308) == pytest.approx(0.5)


INVERTED = {
    "two": [1, 0],
    "ints": [10, 8, 0, 8, 9],
    "ties at the top": [5, 5, 5, 1, 0],
    "ties below": [5, *[0] * 50],
    "floats": [0.5, -0.25, 3.0, 2.75],
    "large": [10**9, 10**9 - 7 * 10**6, 0],
    "small": [1e-9, 0.0, -3e-9],
    "beyond 2**53": [2**60, 2**60 - 3, 2**60 - 50],
    "Fractions": [Fraction(1, 3), Fraction(7, 3), Fraction(5, 3)],
    "random": np.random.default_rng(1).normal(size=40) * 5,
    "two scales": [1.0, 1 - 1e-6, -1e6],
    "a sentinel": [1.0, 0.9, 0.0, -1e40],
    "a larger sentinel": [1.0, 0.9, 0.0, -1e300],
}


def uniform_error(scores):
    exact = [Fraction(*score.as_integer_ratio()) for score in np.asarray(scores, object).tolist()]
    return float(sum(max(exact) - score for score in exact) / len(exact))


@pytest.mark.parametrize("part", [1e-6, 0.5, 0.99], ids=lambda part: f"{part} of a uniform choice's error")
@pytest.mark.parametrize("case", INVERTED)
@pytest.mark.parametrize("kind", KINDS)
def test_means_are_inverted(kind, case, part):
    scores = INVERTED[case]
    target = part * uniform_error(scores)
    epsilon = epsilon_for(kind, scores, expected_error=target)
    assert type(epsilon) is float
    assert expected_error(kind(epsilon), scores) <= target
    assert expected_error(kind(epsilon * (1 - 1e-6)), scores) > target


@pytest.mark.parametrize("probability", [1e-12, 0.2])
@pytest.mark.parametrize("case", INVERTED)
@pytest.mark.parametrize("kind", KINDS)
def test_tails_are_inverted(kind, case, probability):
    """The chance of missing the best candidates is brought down to the wanted one."""
    scores = INVERTED[case]
    exact = sorted(Fraction(*score.as_integer_ratio()) for score in np.asarray(scores, object).tolist())
    error = float(next(exact[-1] - score for score in exact[::-1] if score < exact[-1]))
    epsilon = epsilon_for(kind, scores, error=error, probability=probability)
    assert error_tail(kind(epsilon), scores, error) <= probability
    assert error_tail(kind(epsilon * (1 - 1e-6)), scores, error) > probability


@pytest.mark.parametrize("case", ["a sentinel", "a larger sentinel"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_impossible_candidate_does_not_stop_the_search(kind, case):
    """What is wanted is far below the sentinel's distance: the epsilon is that of the scores without it."""
    with_it = epsilon_for(kind, INVERTED[case], expected_error=0.01)
    assert with_it == pytest.approx(epsilon_for(kind, INVERTED[case][:-1], expected_error=0.01), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_known_inverse(kind):
    """Two candidates lose with probability p/2, p/(1 + p) and (1/2 + x/4) p, where p = exp(-x)."""
    x = 3.0
    p = math.exp(-x)
    chance = {PermuteAndFlip: p / 2, ExponentialMechanism: p / (1 + p), ReportNoisyMax: (0.5 + x / 4) * p}[kind]
    assert epsilon_for(kind, [4, 0], error=4, probability=chance) == pytest.approx(2 * x / 4, rel=1e-9)
    assert epsilon_for(kind, [4, 0], expected_error=4 * chance) == pytest.approx(2 * x / 4, rel=1e-9)


@pytest.mark.parametrize("target", [{"expected_error": 0.3}, {"error": 2, "probability": 0.05}], ids=["mean", "tail"])
@pytest.mark.parametrize("kind", KINDS)
def test_epsilons_scale(kind, target):
    """Twice the sensitivity needs twice the epsilon, monotonic scores half, scores in other units the inverse unit."""
    scores = [10, 8, 7, 7, 0]
    epsilon = epsilon_for(kind, scores, **target)
    assert epsilon_for(kind, scores, **target, sensitivity=2) == pytest.approx(2 * epsilon, rel=1e-9)
    assert epsilon_for(kind, scores, **target, sensitivity="1/7") == pytest.approx(epsilon / 7, rel=1e-9)
    assert epsilon_for(kind, scores, **target, monotonic=True) == pytest.approx(epsilon / 2, rel=1e-9)
    tenfold = {name: value if name == "probability" else 10 * value for name, value in target.items()}
    assert epsilon_for(kind, [10 * score for score in scores], **tenfold) == pytest.approx(epsilon / 10, rel=1e-9)


@pytest.mark.parametrize(
    ("scores", "target"),
    [
        ([3, 3, 3], {"expected_error": 1e-9}),
        ([3], {"expected_error": 1}),
        ([3, 2, 1], {"expected_error": 1.01}),
        ([3, 2, 1], {"expected_error": 100}),
        ([3, 2, 1], {"error": 1, "probability": 0.7}),
        ([3, 2, 1], {"error": 2.5, "probability": 1e-9}),
        ([3, 3], {"error": 1, "probability": 0.5}),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_is_met_anyway_is_said_to_be(kind, scores, target):
    with pytest.raises(errors.InvalidValue, match="every epsilon meets the target"):
        epsilon_for(kind, scores, **target)


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_at_the_edge_is_met(kind):
    """A little below what a uniform choice achieves, a small epsilon is found, not an error."""
    epsilon = epsilon_for(kind, [3, 2, 1], expected_error=1 - 1e-9)
    assert 0 < epsilon < 1e-7
