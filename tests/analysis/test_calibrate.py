"""`epsilon_for` inverts the mean and the tails of the error: the result suffices, and a millionth less does not."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.analysis import epsilon_for, error_tail, expected_error
from dpselect.mechanisms.base import MechanismBase

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
SCORES = {
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
@pytest.mark.parametrize("case", SCORES)
@pytest.mark.parametrize("kind", KINDS)
def test_means_are_inverted(kind, case, part):
    scores = SCORES[case]
    target = part * uniform_error(scores)
    epsilon = epsilon_for(kind, scores, expected_error=target)
    assert type(epsilon) is float
    assert expected_error(kind(epsilon), scores) <= target
    assert expected_error(kind(epsilon * (1 - 1e-6)), scores) > target


@pytest.mark.parametrize("probability", [1e-12, 0.2])
@pytest.mark.parametrize("case", SCORES)
@pytest.mark.parametrize("kind", KINDS)
def test_tails_are_inverted(kind, case, probability):
    """The chance of missing the best candidates is brought down to the wanted one."""
    scores = SCORES[case]
    exact = sorted(Fraction(*score.as_integer_ratio()) for score in np.asarray(scores, object).tolist())
    error = float(next(exact[-1] - score for score in exact[::-1] if score < exact[-1]))
    epsilon = epsilon_for(kind, scores, error=error, probability=probability)
    assert error_tail(kind(epsilon), scores, error) <= probability
    assert error_tail(kind(epsilon * (1 - 1e-6)), scores, error) > probability


@pytest.mark.parametrize("case", ["a sentinel", "a larger sentinel"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_impossible_candidate_does_not_stop_the_search(kind, case):
    """What is wanted is far below the sentinel's distance: the epsilon is that of the scores without it."""
    with_it = epsilon_for(kind, SCORES[case], expected_error=0.01)
    assert with_it == pytest.approx(epsilon_for(kind, SCORES[case][:-1], expected_error=0.01), rel=1e-9)


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
def test_scaling_laws(kind, target):
    """Twice the sensitivity needs twice the epsilon, monotonic scores half, scores in other units the inverse unit."""
    scores = [10, 8, 7, 7, 0]
    epsilon = epsilon_for(kind, scores, **target)
    assert epsilon_for(kind, scores, **target, sensitivity=2) == pytest.approx(2 * epsilon, rel=1e-9)
    assert epsilon_for(kind, scores, **target, sensitivity="1/7") == pytest.approx(epsilon / 7, rel=1e-9)
    assert epsilon_for(kind, scores, **target, monotonic=True) == pytest.approx(epsilon / 2, rel=1e-9)
    tenfold = {name: value if name == "probability" else 10 * value for name, value in target.items()}
    assert epsilon_for(kind, [10 * score for score in scores], **tenfold) == pytest.approx(epsilon / 10, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_more_accuracy_needs_more_epsilon(kind):
    scores = [10, 8, 7, 7, 0]
    epsilons = [epsilon_for(kind, scores, expected_error=target) for target in (3, 0.1, 1e-9, 1e-100)]
    assert epsilons == sorted(epsilons)
    assert len(set(epsilons)) == len(epsilons)


@pytest.mark.parametrize("kind", KINDS)
def test_permute_and_flip_needs_the_least(kind):
    scores = [10, 8, 7, 7, 0]
    ours = epsilon_for(PermuteAndFlip, scores, expected_error=0.3)
    assert epsilon_for(kind, scores, expected_error=0.3) >= ours * (1 - 1e-9)


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


BAD_CALLS = {
    "no target": ({}, errors.InvalidValue, "give either expected_error, or both error and probability"),
    "both targets": ({"expected_error": 1, "error": 1, "probability": 0.1}, errors.InvalidValue, "give either"),
    "error alone": ({"error": 1}, errors.InvalidValue, "give either"),
    "probability alone": ({"probability": 0.1}, errors.InvalidValue, "give either"),
    "zero": ({"expected_error": 0}, errors.InvalidValue, "expected_error must be > 0"),
    "negative": ({"expected_error": -1}, errors.InvalidValue, "expected_error must be > 0"),
    "nan": ({"expected_error": math.nan}, errors.InvalidValue, "expected_error must be finite"),
    "infinite": ({"expected_error": math.inf}, errors.InvalidValue, "expected_error must be finite"),
    "text": ({"expected_error": "much"}, errors.InvalidValue, "expected_error must be a number"),
    "list": ({"expected_error": [1]}, errors.InvalidType, "expected_error must be a number"),
    "certain": ({"error": 1, "probability": 1}, errors.InvalidValue, "probability must be between 0 and 1"),
    "impossible": ({"error": 1, "probability": 0}, errors.InvalidValue, "probability must be > 0"),
    "no error": ({"error": 0, "probability": 0.1}, errors.InvalidValue, "error must be > 0"),
    "sensitivity": ({"expected_error": 1, "sensitivity": 0}, errors.InvalidValue, "sensitivity must be > 0"),
    "monotonic": ({"expected_error": 0.1, "monotonic": 1}, errors.InvalidType, "monotonic must be True or False"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_arguments_are_refused(case):
    arguments, error, words = BAD_CALLS[case]
    with pytest.raises(error, match=words):
        epsilon_for(PermuteAndFlip, [3, 1, 0], **arguments)


@pytest.mark.parametrize("kind", [PermuteAndFlip(1), "permute-and-flip", None, int, Fraction, MechanismBase], ids=str)
def test_kind_must_be_a_mechanism(kind):
    with pytest.raises(errors.InvalidType, match="kind must be a mechanism class"):
        epsilon_for(kind, [3, 1, 0], expected_error=0.1)


@pytest.mark.parametrize(
    "scores",
    [[], [1.0, math.nan], [1.0, math.inf], np.array([1.0, -math.inf]), np.ones((2, 2)), "abc", None, ["a"]],
    ids=str,
)
@pytest.mark.parametrize("target", [{"expected_error": 0.3}, {"error": 2, "probability": 0.05}], ids=["mean", "tail"])
def test_bad_scores_are_refused(scores, target):
    with pytest.raises(errors.DPSelectError, match="scores"):
        epsilon_for(PermuteAndFlip, scores, **target)


@pytest.mark.parametrize("sensitivity", ["1e-400", "1e400"])
def test_an_epsilon_beyond_the_floats_is_refused(sensitivity):
    """The answer is near the sensitivity, and no float is."""
    with pytest.raises(errors.InvalidValue):
        epsilon_for(PermuteAndFlip, [3, 2, 0], expected_error=0.1, sensitivity=sensitivity)
