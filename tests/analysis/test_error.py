"""Mean, tails and quantiles of the error, against sums over the candidates written out."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.analysis import error_quantile, error_tail, expected_error

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


BAD = {
    "text": "a",
    "None": None,
    "bool": True,
    "nan": math.nan,
    "nan inside": [0, math.nan],
    "complex": 1j,
    "ragged": [[1], [1, 2]],
    "texts": ["1", "2"],
    "object": object(),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_thresholds_are_refused(case):
    with pytest.raises(errors.DPSelectError, match="t must be"):
        error_tail(PermuteAndFlip(1), [3, 2, 0], BAD[case])


@pytest.mark.parametrize(
    ("level", "error", "words"),
    [
        (0, errors.InvalidValue, "level must be > 0"),
        (1, errors.InvalidValue, "level must be between 0 and 1"),
        (1.5, errors.InvalidValue, "level must be between 0 and 1"),
        (-0.1, errors.InvalidValue, "level must be > 0"),
        (math.nan, errors.InvalidValue, "level must be finite"),
        (None, errors.InvalidType, "level must be a number"),
        (True, errors.InvalidType, "level must be a number"),
        ([0.5], errors.InvalidType, "level must be a number"),
    ],
)
def test_bad_levels_are_refused(level, error, words):
    with pytest.raises(error, match=words):
        error_quantile(PermuteAndFlip(1), [3, 2, 0], level)


BAD_SCORES = {
    "empty": [],
    "nan": [1.0, math.nan],
    "inf": np.array([1.0, math.inf]),
    "-inf": np.array([1.0, -math.inf]),
    "nested": [[1, 2], [3, 4]],
    "2-d": np.ones((2, 2)),
    "text": "abc",
    "texts": ["a", "b"],
    "None": None,
}


@pytest.mark.parametrize("case", BAD_SCORES)
@pytest.mark.parametrize(
    "call",
    [expected_error, lambda m, q: error_tail(m, q, 1), lambda m, q: error_quantile(m, q, 0.5)],
    ids=["mean", "tail", "quantile"],
)
def test_bad_scores_are_refused(call, case):
    with pytest.raises(errors.DPSelectError, match="scores"):
        call(PermuteAndFlip(1), BAD_SCORES[case])
