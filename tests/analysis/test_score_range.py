"""A score range is all that the privacy of a selection needs: Dong, Durfee & Rogers (2019)."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.analysis import (
    check_privacy,
    compare,
    epsilon_for,
    error_bounds,
    expected_error,
    plan,
    search_neighbours,
    worst_case_error,
)
from dpselect.analysis.promises import among
from dpselect.questions.plan import equal_cost

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
SLACK = 1e-9
EPSILON, RANGE = 0.9, Fraction(3, 2)
EXACT_POSITIVE = st.fractions(Fraction(1, 100), 100, max_denominator=1000)


def neighbours(scores, wide):
    """All scores whose differences move by at most `wide`, in halves of it, with a shift that is not small."""
    for moves in itertools.product(range(3), repeat=len(scores)):
        shift = Fraction(17) * (sum(moves) % 3 - 1)
        yield [Fraction(score) + wide * move / 2 + shift for score, move in zip(scores, moves, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scores", [[0, 0], [5, 0, -2], [0, "0.3", 1]], ids=str)
def test_no_neighbour_of_a_range_tells_more_than_epsilon(kind, scores):
    exact = [Fraction(score) for score in scores]
    mechanism, careless = kind(EPSILON, score_range=RANGE), kind(EPSILON, score_range=RANGE / 2)
    worst = dict.fromkeys((mechanism, careless), 0.0)
    for candidate in worst:
        here = np.log(candidate.pmf(exact))
        for neighbour in neighbours(exact, RANGE):
            worst[candidate] = max(worst[candidate], np.abs(np.log(candidate.pmf(neighbour)) - here).max())
    assert worst[mechanism] <= EPSILON + SLACK
    assert worst[careless] > EPSILON, "the power check: half of the range is too little"
    assert check_privacy(mechanism, exact) == pytest.approx(worst[mechanism], abs=SLACK)
    assert search_neighbours(mechanism, exact) == pytest.approx(worst[mechanism], abs=SLACK)


@given(
    scores=st.lists(st.integers(-20, 20), min_size=2, max_size=5),
    moves=st.lists(st.fractions(0, 1, max_denominator=50), min_size=5, max_size=5),
    wide=EXACT_POSITIVE,
    shift=st.integers(-1000, 1000),
)
@settings(max_examples=40)
def test_the_loss_of_the_exponential_mechanism_spans_epsilon(scores, moves, wide, shift):
    """Bounded range, which gives it the zCDP of that range: log-ratios lie in one interval of length epsilon."""
    mechanism = ExponentialMechanism(2, score_range=wide)
    there = [score + wide * move + shift for score, move in zip(scores, moves, strict=False)]
    here_pmf, there_pmf = mechanism.pmf(scores), mechanism.pmf(there)
    told = (here_pmf > 1e-290) & (there_pmf > 1e-290)
    losses = np.log(here_pmf[told]) - np.log(there_pmf[told])
    assert losses.max() - losses.min() <= 2 + SLACK
    assert mechanism.guarantee.zcdp == pytest.approx(0.474474647, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(epsilon=EXACT_POSITIVE, wide=EXACT_POSITIVE)
@settings(max_examples=15)
def test_sensitivities_are_special_cases(kind, epsilon, wide):
    ways = [
        kind(epsilon, score_range=wide),
        kind(epsilon, sensitivity=wide / 2),
        kind(epsilon, sensitivity=wide, monotonic=True),
    ]
    assert {way.rate for way in ways} == {epsilon / wide}
    assert len({error_bounds(way, 2).rate for way in ways}) == 1
    if kind is not ReportNoisyMax:  # whose probabilities take longer
        assert len({worst_case_error(way, 50) for way in ways}) == 1
        assert len({expected_error(way, [3, 1, 0]) for way in ways}) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_calibration_and_comparison_take_a_range(kind):
    scores = [10, 8, 7, 0]
    needed = epsilon_for(kind, scores, expected_error=0.5, score_range=3)
    assert needed == epsilon_for(kind, scores, expected_error=0.5, sensitivity="1.5")
    assert expected_error(kind(needed, score_range=3), scores) == pytest.approx(0.5, rel=1e-6)
    by_range, monotonic = (plan(100, error=5, **claim) for claim in ({"score_range": 1}, {"monotonic": True}))
    assert by_range.promises[kind.name].mechanism.epsilon == monotonic.promises[kind.name].mechanism.epsilon
    assert compare(scores, [1], score_range=3) == compare(scores, [1], sensitivity="3/2")
    assert compare(scores, [1], score_range=3) != compare(scores, [1])
    for refused in (
        lambda: epsilon_for(kind, scores, expected_error=0.5, sensitivity=1, score_range=3),
        lambda: compare(scores, [1], monotonic=True, score_range=3),
        lambda: plan(100, error=5, sensitivity=1, score_range=3),
    ):
        with pytest.raises(errors.InvalidValue, match="give either score_range"):
            refused()


def test_equal_cost_keeps_the_claim():
    equal = equal_cost(ExponentialMechanism("0.5", score_range=3), among(100))
    assert equal.permute_and_flip.mechanism.claim == equal.exponential.mechanism.claim
    assert equal.permute_and_flip.mechanism.score_range == 3


class Foreign:
    """A mechanism that is not ours, and states a range only."""

    epsilon, score_range = 1, Fraction(1, 2)

    def pmf(self, scores):
        weights = [math.exp(2 * (score - max(scores))) for score in scores]
        return [weight / sum(weights) for weight in weights]


def test_other_mechanisms_may_state_a_range():
    assert check_privacy(Foreign(), [3, 0]) <= 1 + SLACK
    assert check_privacy(Foreign(), [0, 0]) > 0.4
    assert search_neighbours(Foreign(), [0, 0, 1]) <= 1 + SLACK
    twice = Foreign()
    twice.score_range = 1
    assert search_neighbours(twice, [3, 0, 1]) > 1


class LooksAtSigns(Foreign):
    """No selection from differences: what it does depends on where the scores are."""

    def __init__(self, is_odd):
        self.is_odd = is_odd

    def pmf(self, scores):
        return [0.9, 0.1] if self.is_odd(scores) else [0.1, 0.9]


@pytest.mark.parametrize(
    "is_odd",
    [lambda q: max(q) < 0, lambda q: min(q) > 0, lambda q: min(q) < 0 < max(q)],
    ids=["all fall", "all rise", "one falls and one rises"],
)
def test_neighbours_of_a_range_move_in_every_direction(is_odd):
    assert search_neighbours(LooksAtSigns(is_odd), [0, 0]) > 2
    assert search_neighbours(LooksAtSigns(lambda q: False), [0, 0]) == 0
