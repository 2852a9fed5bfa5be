"""Plans and promises: the errors that hold for all scores."""

import json
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from dpselect import ExponentialMechanism, ReportNoisyMax
from dpselect.analysis import epsilon_for, error_bounds, error_quantile, expected_error, plan
from dpselect.analysis.promises import among, epsilon_for_average, promise
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.questions.plan import EqualCost, equal_cost
from tests.cli.plans import MECHANISMS, guaranteed


def test_the_epsilon_scales_as_one_over_the_error() -> None:
    """The formula of the command's contract: the worst case at epsilon one, divided by the error."""
    for kind in MECHANISMS.values():
        needed = float(plan(50, error="0.3").promises[kind.name].mechanism.epsilon)
        assert needed == pytest.approx(guaranteed(kind(1), 50) / 0.3, rel=1.1e-3)
        assert needed >= guaranteed(kind(1), 50) / 0.3


@pytest.mark.parametrize("kind", MECHANISMS.values())
def test_one_candidate_has_no_error(kind: type[MechanismBase]) -> None:
    promised = promise(kind(1), 1)
    assert (promised.average, promised.attained, promised.within_95, promised.within_99) == (0, 0, 0, 0)
    with pytest.raises(InvalidValue, match="every epsilon meets the target"):
        epsilon_for_average(promised.average, 1)


@pytest.mark.parametrize("kind", MECHANISMS.values())
@pytest.mark.parametrize("n", [2, 3, 30, 10**9])
def test_a_promise_is_consistent(kind: type[MechanismBase], n: int) -> None:
    promised = promise(kind("0.3", 2), n)
    assert 0 < promised.attained <= promised.average <= error_bounds(kind("0.3", 2), n).upper
    assert promised.average < promised.within_95 < promised.within_99
    assert (promised.attained == promised.average) == (kind is not ReportNoisyMax)


def test_at_small_epsilon_permute_and_flip_has_half_of_it() -> None:
    equal = equal_cost(ExponentialMechanism("1e-4", "2", monotonic=True), among(100))
    mechanism = equal.permute_and_flip.mechanism
    assert float(mechanism.epsilon) == pytest.approx(0.5e-4, rel=1e-4)
    assert (mechanism.sensitivity, mechanism.monotonic) == (2, True)


def test_the_better_one_changes_once_with_epsilon() -> None:
    """Under zCDP the exponential mechanism is better for small epsilons and permute-and-flip for large ones."""

    def is_exponential(equal: EqualCost) -> bool:
        return equal.better is equal.exponential

    choices = [is_exponential(equal_cost(ExponentialMechanism(e / 2), among(100))) for e in range(1, 61)]
    assert choices[0]
    assert not choices[-1]
    assert sum(a != b for a, b in pairwise(choices)) == 1


SCORES = [310, 250, 120.5, 120, 7]


@pytest.mark.parametrize("claim", [{}, {"sensitivity": 3, "monotonic": True}, {"score_range": "1/3"}], ids=str)
def test_a_plan_from_an_epsilon_has_the_promises_of_that_epsilon(claim: dict[str, Any]) -> None:
    planned = plan(1000, epsilon="0.3", **claim)
    assert (planned.epsilon, planned.error, planned.questions) == (Fraction(3, 10), None, 1)
    assert list(planned.promises) == list(MECHANISMS)
    for name, kind in MECHANISMS.items():
        assert planned.promises[name] == promise(kind("0.3", **claim), 1000)
    assert not planned.on_scores
    assert planned.equal_cost is None
    assert planned.equal_rounds is None


def test_a_plan_from_an_error_has_the_epsilon_that_it_needs() -> None:
    planned = plan(50, error="0.3", monotonic=True, questions=7)
    assert (planned.epsilon, planned.error) == (None, Fraction(3, 10))
    for name, kind in MECHANISMS.items():
        mechanism = planned.promises[name].mechanism
        assert mechanism == kind(mechanism.epsilon, monotonic=True)
        assert planned.promises[name] == promise(mechanism, 50)
        assert 0.3 / 1.0011 < planned.promises[name].average <= 0.3
    assert planned.equal_cost is not None
    assert planned.equal_cost.exponential == planned.promises["exponential"]


def test_a_plan_with_scores_has_the_results_of_the_analysis() -> None:
    planned = plan(epsilon="0.05", scores=SCORES)
    assert planned.question.size == 5
    for name, kind in MECHANISMS.items():
        found = planned.on_scores[name]
        assert found.expected_error == expected_error(kind("0.05"), SCORES)
        assert found.error_95 == error_quantile(kind("0.05"), SCORES, 0.95)
    backwards = plan(20, error=3, scores=SCORES)
    assert backwards.question.size == 20
    for name, kind in MECHANISMS.items():
        assert backwards.on_scores[name].epsilon == epsilon_for(kind, SCORES, expected_error=3)


def test_a_plan_shows_what_was_asked_and_no_score() -> None:
    planned = plan(epsilon="1/3", scores=[731001, 731002, 5], questions=2, delta=1e-6)
    assert repr(planned) == (
        "Plan(Select(candidates=3, sensitivity=None, monotonic=False, score_range=None), epsilon='1/3', questions=2)"
    )
    assert "7310" not in json.dumps(planned.to_dict())
    assert repr(plan(3, error=2, score_range=1)) == (
        "Plan(Select(candidates=3, sensitivity=None, monotonic=False, score_range=Fraction(1, 1)), error=2,"
        " questions=1)"
    )


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({}, InvalidValue, "give exactly one of epsilon, rho and error"),
        ({"epsilon": 1, "error": 1}, InvalidValue, "give exactly one of epsilon, rho and error"),
        ({"epsilon": 1, "candidates": None}, InvalidValue, "give candidates, the number of candidates"),
        ({"epsilon": 1, "candidates": 1}, InvalidValue, "candidates must be a whole number from 2"),
        ({"epsilon": 1, "candidates": 2**54}, InvalidValue, "candidates must be a whole number from 2"),
        ({"epsilon": 1, "candidates": 2.5}, InvalidType, "candidates must be an integer"),
        ({"epsilon": 0}, InvalidValue, "epsilon must be > 0"),
        ({"epsilon": "1e-60"}, InvalidValue, "epsilon must be between 1e-50 and 1e50"),
        ({"error": "1e60"}, InvalidValue, "error must be between 1e-50 and 1e50"),
        ({"error": None, "epsilon": []}, InvalidType, "epsilon must be a number"),
        ({"epsilon": 1, "sensitivity": "1e60"}, InvalidValue, "sensitivity must be between 1e-50 and 1e50"),
        ({"epsilon": 1, "score_range": "1e-60"}, InvalidValue, "score_range must be between 1e-50 and 1e50"),
        ({"epsilon": 1, "sensitivity": 1, "score_range": 1}, InvalidValue, "give either score_range, or"),
        ({"epsilon": 1, "questions": 0}, InvalidValue, "questions must be a whole number from 1"),
        ({"epsilon": 1, "questions": "2"}, InvalidType, "questions must be an integer"),
        ({"epsilon": 1, "delta": 1}, InvalidValue, "delta must be between 0 and 1"),
        ({"epsilon": 1, "scores": [1, float("nan")]}, InvalidValue, "finite"),
    ],
    ids=str,
)
def test_bad_questions_are_refused(asked: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        plan(**{"candidates": 10, **asked})
