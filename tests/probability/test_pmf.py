"""`pmf` of every mechanism, from scores as users have them to probabilities."""

import contextlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.mechanisms import laws
from tests import reference
from tests.carried import carried
from tests.contract.test_anything import ARRAYS, GOOD, POSITIVE, THINGS
from tests.contract.test_parameters import SECRETS
from tests.contract.test_selection import BAD, EPSILON, WINNER

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
TRUTH = {
    PermuteAndFlip: reference.flip_pmf_in_balls,
    ExponentialMechanism: reference.softmax_in_balls,
    ReportNoisyMax: reference.noisy_max_pmf_in_balls,
}
# Scores whose exact differences matter: a float or a common type in between would change the probabilities.
SCORES = {
    "ints": [3, 1, 0, 3],
    "beyond 2**53": [2**60, 2**60 + 1, 2**60 + 3],
    "whole range of int64": np.array([2**63 - 1, 2**63 - 9, -(2**63)]),
    "uint64": np.array([2**64 - 1, 2**64 - 2, 2**64 - 40], np.uint64),
    "beyond 64 bits": [10**40, 10**40 - 7, 10**40 - 100],
    "thirds": [Fraction(1, 3), Fraction(2, 3), Fraction(7, 3)],
    "no common denominator": [Fraction(1, 3**50), Fraction(1, 7**40), Fraction(5, 11**30), Fraction(2)],
    "floats that cancel": [1e15 + 0.125, 1e15, 1e15 - 600.0],
    "tiny floats": [5e-324, 0.0, 1e-300],
    "float32": np.array([0.1, 0.2, 16777216.0], np.float32) - np.float32(16777210),
    "bools": np.array([True, False, True]),
    "mixed": [2**60, 2.0**60 + 4096, Fraction(1, 3) + 2**60],
}
PARAMETERS = {
    "epsilon 1": {"epsilon": 1},
    "monotonic": {"epsilon": 1, "monotonic": True},
    "a tenth, exactly": {"epsilon": "0.1"},
    "a third of the sensitivity": {"epsilon": Fraction(2, 7), "sensitivity": "1/3"},
    "large sensitivity": {"epsilon": 0.5, "sensitivity": 10**18},
}


def exact_exponents(mechanism, scores):
    exact = [Fraction(*score.as_integer_ratio()) for score in (np.asarray(scores, object).tolist())]
    return [mechanism.rate * (max(exact) - score) for score in exact]


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("case", SCORES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_score_is_taken_at_its_exact_value(kind, case, parameters):
    mechanism = kind(**PARAMETERS[parameters])
    ours = mechanism.pmf(SCORES[case])
    exponents = exact_exponents(mechanism, SCORES[case])
    kept = [r for r, exponent in enumerate(exponents) if exponent < 2_000]  # the others have probability 0.0
    truth = TRUTH[kind]([exponents[r] for r in kept])
    assert ours.dtype == np.float64
    assert reference.relative_error(ours[kept], truth) <= 1e-12
    assert math.fsum(ours) == pytest.approx(1, abs=1e-12)
    assert not [r for r in range(len(exponents)) if r not in kept and ours[r] != 0]


@pytest.mark.parametrize("container", WINNER)
@pytest.mark.parametrize("kind", KINDS)
def test_every_container_is_read(kind, container):
    pmf = kind(EPSILON.get(container, 1)).pmf(WINNER[container])
    assert pmf == pytest.approx([0, 0, 1], abs=1e-12)


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_scores_are_refused_as_select_refuses_them(kind, case):
    scores, error, words = BAD[case]
    with pytest.raises(error, match=words):
        kind(1).pmf(scores)


@pytest.mark.parametrize("kind", KINDS)
@given(scores=THINGS | ARRAYS)
@settings(max_examples=100, deadline=None)
def test_whatever_comes_in_only_our_errors_come_out(kind, scores):
    with contextlib.suppress(errors.InvalidValue, errors.InvalidType):
        assert kind(1).pmf(scores).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@given(scores=GOOD, epsilon=POSITIVE, sensitivity=POSITIVE)
@settings(max_examples=60, deadline=None)
def test_good_scores_have_probabilities_that_sum_to_one(kind, scores, epsilon, sensitivity):
    pmf = kind(epsilon, sensitivity).pmf(scores)
    assert pmf.shape == (len(scores),)
    assert ((pmf >= 0) & (pmf <= 1 + 1e-12)).all()
    assert math.fsum(pmf) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_no_score_is_shown_by_an_error(kind):
    for poison in (math.nan, None, "text", [1], 1j, object()):
        with pytest.raises(errors.DPSelectError) as caught:
            kind(1).pmf([*SECRETS, poison])
        assert "7310" not in carried(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_monotonic_scores_double_the_rate(kind):
    scores = [5, 3, 3, -20]
    assert kind("0.3", monotonic=True).pmf(scores).tolist() == kind("0.6").pmf(scores).tolist()
    assert kind("0.3", monotonic=True).pmf(scores).tolist() != kind("0.3").pmf(scores).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_only_epsilon_over_sensitivity_matters(kind):
    scores = [5, 3, 3, -20]
    assert kind(1, sensitivity=4).pmf(scores).tolist() == kind("1/4").pmf(scores).tolist()


# The last candidate is the best; what the others get is 0, 1/n or in between by the size of epsilon * gap.
EXTREMES = {
    "flat": ({"epsilon": 1e-300, "sensitivity": 1e308}, [-1.7e308, 1.7e308], [0.5, 0.5]),
    "flatter than floats": ({"epsilon": "1e-3000"}, [0, 1, 3], [1 / 3] * 3),
    "steep": ({"epsilon": 1e300}, [0, 0, 1], [0, 0, 1]),
    "steeper than floats": ({"epsilon": "1e3000"}, [0, 1, 3], [0, 0, 1]),
    "tiny steps of a tiny sensitivity": ({"epsilon": 1, "sensitivity": 1e-310}, [0, 5e-324], [0.5, 0.5]),
    "a step of a tiny sensitivity": ({"epsilon": 1, "sensitivity": 1e-310}, [0, 0, 1e-300], [0, 0, 1]),
    "all of the floats": ({"epsilon": 1}, [-1.7e308, 1e308, 1.7e308], [0, 0, 1]),
    "beyond the floats": ({"epsilon": 1}, [-(10**400), -(10**399), 10**400], [0, 0, 1]),
    "the whole range, on average": ({"epsilon": 1, "sensitivity": 1e308}, [-1e308, -1e308], [0.5, 0.5]),
}


@pytest.mark.parametrize("case", EXTREMES)
@pytest.mark.parametrize("kind", KINDS)
def test_extreme_parameters_keep_their_sense(kind, case):
    parameters, scores, wanted = EXTREMES[case]
    assert kind(**parameters).pmf(scores) == pytest.approx(wanted, abs=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_left_alone(kind):
    scores = np.array([3.0, 1.0, -50.0])
    kind(1).pmf(scores)
    assert scores.tolist() == [3.0, 1.0, -50.0]


@pytest.mark.parametrize(("kind", "nodes"), [(PermuteAndFlip, "_NODES"), (ReportNoisyMax, "_PANEL_NODES")])
def test_an_integral_that_did_not_converge_raises(kind, nodes, monkeypatch):
    """With two nodes a panel instead of many the probabilities are wrong, and none is returned."""
    scores = np.arange(20) % 5
    kind(1).pmf(scores)
    monkeypatch.setattr(laws, nodes, 2)
    monkeypatch.setattr(laws, "_WIDTH", 4.0)
    with pytest.raises(errors.NotConverged, match="sum to one"):
        kind(1).pmf(scores)
