"""How private a mechanism is: what is private passes, every broken mechanism is flagged, and a score range is enough.

Score ranges are those of Dong, Durfee & Rogers (2019).
"""

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
from tests.broken import (
    BROKEN,
    BiasedShuffle,
    HalfTheSensitivity,
    PlainPermuteAndFlip,
    RateOffByOnePercent,
    RoundedScores,
    TiesToTheFirst,
    UnderflowingExp,
)
from tests.statistical.goodness import assert_fits

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
SLACK = 1e-9


def random_scores(seed, count, largest):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.integers(1, largest + 1))
        yield rng.choice([rng.integers(-3, 4, n).astype(float), rng.normal(size=n) * 3, rng.normal(size=n) * 30])


@pytest.mark.parametrize("monotonic", [False, True], ids=["any scores", "monotonic"])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "7"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_mechanism_keeps_its_promise(kind, epsilon, monotonic):
    """On random scores, with the worst neighbours of the paper's Proposition 2."""
    mechanism = kind(epsilon, sensitivity="1.5", monotonic=monotonic)
    found = [
        check_privacy(mechanism, scores) for scores in random_scores(1, 12, 8 if kind is not ReportNoisyMax else 4)
    ]
    assert max(found) <= float(epsilon) + SLACK
    assert max(found) > 0.3 * float(epsilon), "the check sees a difference"


@pytest.mark.parametrize("monotonic", [False, True], ids=["any scores", "monotonic"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_neighbour_is_worse_than_the_worst_neighbours(kind, monotonic):
    """The whole box of neighbours holds nothing worse than its corners, which are the neighbours of the check."""
    mechanism = kind("0.8", sensitivity=2, monotonic=monotonic)
    for scores in ([0, 0], [3, 0, -7], [0.5, 0.25, 0, 0], *random_scores(2, 3, 3)):
        worst = search_neighbours(mechanism, scores)
        assert worst <= 0.8 + SLACK
        assert worst == pytest.approx(check_privacy(mechanism, scores), abs=1e-9)


@pytest.mark.parametrize("scores", [[0, 0], [0, -6], [0, 0.1], [5, 0, -30, -3], [1, 1, 1, 1]], ids=str)
@pytest.mark.parametrize("monotonic", [False, True], ids=["any scores", "monotonic"])
def test_permute_and_flip_spends_all_of_epsilon(scores, monotonic):
    """The paper's recurrence: a candidate that stays at or below the best falls by exactly exp(-epsilon)."""
    mechanism = PermuteAndFlip("0.7", sensitivity=3, monotonic=monotonic)
    assert check_privacy(mechanism, scores) == pytest.approx(0.7, abs=1e-12)
    assert search_neighbours(mechanism, scores, steps=2) == pytest.approx(0.7, abs=1e-12)


def test_the_others_come_close_only():
    """The exponential mechanism and report noisy max approach epsilon on a candidate that hardly ever wins."""
    for kind in (ExponentialMechanism, ReportNoisyMax):
        assert 0.9 < check_privacy(kind(1), [0, -30]) < 1
        assert check_privacy(kind(1), [0, 0]) < 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_candidates_that_never_win_raise_no_alarm(kind):
    """Probabilities below the smallest float are rounded: a difference between them is not a leak."""
    assert check_privacy(kind(1), [0, -1488]) <= 1 + SLACK
    assert check_privacy(kind(1), [0, -1400, -1440, -1480, -1500, -5000]) <= 1 + SLACK
    assert check_privacy(kind(30), np.arange(-50, 1, 5)) <= 30 + SLACK
    assert search_neighbours(kind(1), [0, -1488]) <= 1 + SLACK


# Where each mistake shows. None of the broken mechanisms is private by accident.
FLAGGED = {
    # For candidate 2 the order is first 8 and second 10 times of 27: its probability grows by 10/8 epsilon.
    BiasedShuffle: (0.1, [0, 0, 0]),
    RateOffByOnePercent: (1, [0, 4, 8]),
    HalfTheSensitivity: (1, [0, 4, 8]),
    # The second of two equals never wins; its neighbour that is ahead does.
    TiesToTheFirst: (1, [0, 0]),
    # exp(-745) is the smallest float, exp(-746) is zero: the second candidate cannot win, its neighbour can.
    UnderflowingExp: (1, [-1480, -1491]),
    # Between 2**60 and 2**60 + 256 there is no float: one more than the middle is a gap of 256 less.
    RoundedScores: (1, [2**60 + 128, 2**60 + 512]),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_every_broken_mechanism_is_flagged_and_no_right_one(kind):
    epsilon, scores = FLAGGED[kind]
    for check in (check_privacy, search_neighbours):
        assert check(kind(epsilon), scores) > 1.005 * epsilon
        assert all(check(right(epsilon), scores) <= epsilon + SLACK for right in KINDS)
    if kind is not RoundedScores:  # the control works in floats, and rounds as well
        assert check_privacy(PlainPermuteAndFlip(epsilon), scores) <= epsilon + SLACK


def test_what_is_broken_for_any_scores_is_right_for_monotonic_ones():
    """Twice the rate is the mistake of HalfTheSensitivity, and what monotonic scores allow."""

    class Monotonic(HalfTheSensitivity):
        monotonic = True

    for scores in ([0, 4, 8], [0, 0, 0], [0, 0.5]):
        assert check_privacy(Monotonic(1), scores) <= 1 + SLACK
        assert search_neighbours(Monotonic(1), scores) <= 1 + SLACK


@pytest.mark.parametrize("kind", [PlainPermuteAndFlip, *BROKEN])
def test_the_probabilities_of_the_broken_are_what_they_draw(kind):
    for scores in ([0.0, 1.0, 2.0, 0.0], [-1480.0, -1484.0, -1481.0], [-4000.0, -4001.0, -4003.0]):
        draws = kind(1).select_rows(np.broadcast_to(scores, (300_000, len(scores))))
        assert_fits(np.bincount(draws, minlength=len(scores)), kind(1).pmf(scores))


class Cliff:
    """Chooses uniformly, but for negative scores the first: neither shift-invariant nor private."""

    sensitivity, monotonic = 1, True

    def pmf(self, scores):
        return [0.5, 0.5] if min(scores) >= 0 else [1.0, 0.0]


def test_the_search_looks_at_neighbours_above_and_below():
    """One person more or less: with monotonic scores all scores may rise, and all may fall."""
    assert search_neighbours(Cliff(), [-0.5, -0.5]) == math.inf
    assert search_neighbours(Cliff(), [5, 5]) == 0
    assert search_neighbours(Cliff(), [0, 0]) == math.inf


def test_zero_probabilities():
    """Infinite where a candidate is possible on one side only, nothing where it is impossible on both."""

    class FirstOnly:
        sensitivity, monotonic = 1, False

        def pmf(self, scores):
            return [1.0] + [0.0] * (len(scores) - 1)

    assert check_privacy(FirstOnly(), [1, 2, 3]) == 0
    assert search_neighbours(FirstOnly(), [1, 2, 3]) == 0
    assert check_privacy(TiesToTheFirst(1), [0, 0]) == math.inf


def test_scores_are_moved_exactly():
    """A step of one at 2**60 and a sensitivity of a third are not lost in floats."""
    seen = []

    class Listening:
        sensitivity, monotonic = Fraction(1, 3), False

        def pmf(self, scores):
            seen.append(tuple(scores))
            return [0.5, 0.5]

    check_privacy(Listening(), np.array([2**60, 2**60 + 1]))
    step = Fraction(2, 3)
    wanted = {(2**60 + move, 2**60 + 1) for move in (0, step, -step)} | {
        (2**60, 2**60 + 1 + move) for move in (step, -step)
    }
    assert set(seen) == wanted
    seen.clear()
    search_neighbours(Listening(), [2**60, 0], steps=5)
    moves = [Fraction(k, 6) for k in range(-2, 3)]
    assert set(itertools.product([2**60 + move for move in moves], moves)) == set(seen)


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
