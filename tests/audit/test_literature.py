"""The audit catches the wrong mechanisms of Ding et al. (2018) and Lyu et al. (2017), and accuses none of the right."""

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from tests.audit.literature import ABOVE, BELOW, CASES, POINTS, WEIGHTS, Histogram, NoisyMax, SparseVector
from tests.statistical.detection import MISSED, least_bound

DOUBT = 1e-9  # of each audit here
WRONG = [case for case in CASES if case.is_wrong]
RUNS = 20_000
RIGHT = [case for case in CASES if not case.is_wrong]


def names(cases):
    return [case.name for case in cases]


def test_there_are_right_and_wrong_ones():
    assert (len(WRONG), len(RIGHT)) == (9, 5)
    assert sum(math.isinf(case.true) for case in CASES) == 2


@pytest.mark.slow
@pytest.mark.parametrize("case", WRONG, ids=names(WRONG))
def test_a_wrong_one_is_caught(case):
    """The event that the paper knows would be enough; the audit must find it or a better one, and not overstate."""
    assert least_bound(case.likely, case.unlikely, case.runs // 2, DOUBT) > case.claimed, "too few runs"
    found = case.audit(case.runs, DOUBT)
    assert found.violates
    assert case.claimed < found.lower_bound <= case.true
    assert found.worst.description


def with_less_noise(mechanism, factor):
    scales = {name: scale / factor for name, scale in vars(mechanism).items() if name.endswith("scale")}
    return dataclasses.replace(mechanism, **scales)


@pytest.mark.parametrize("case", RIGHT, ids=names(RIGHT))
def test_a_right_one_is_not_accused(case):
    """The power check: with a twelfth of the noise the same audit accuses it."""
    found = case.audit(RUNS, DOUBT)
    assert not found.violates
    assert found.lower_bound <= case.true
    sharp = dataclasses.replace(case, mechanism=with_less_noise(case.mechanism, 12))
    ends = worst_probabilities(sharp)
    assert least_bound(max(ends), min(ends), RUNS // 2, DOUBT) > case.claimed, "too few runs for a power check"
    assert sharp.audit(RUNS, DOUBT).violates


def worst_probabilities(case):
    """Of the event that a count is not above the lower one, or of the output with the best bound."""
    if isinstance(case.mechanism, Histogram):
        return 0.5, 0.5 * math.exp(-1 / case.mechanism.scale)
    here, there = (case.mechanism.probabilities(scores) for scores in case.pair.both)
    ends = [sorted((here[output], there[output])) for output in here]
    return max(ends, key=lambda two: least_bound(two[1], two[0], RUNS // 2, DOUBT))


FINITE = [case for case in CASES if not getattr(case.mechanism, "returns_value", True)]


@pytest.mark.parametrize("case", FINITE, ids=names(FINITE))
def test_probabilities_are_those_of_the_draws(case):
    """What the table calls the true epsilon rests on them."""
    draws = 20_000
    for scores in case.pair.both:
        expected = case.mechanism.probabilities(scores)
        assert sum(expected.values()) == pytest.approx(1, abs=1e-7)
        drawn = case.mechanism.select_rows(np.broadcast_to(scores, (draws, len(scores)))).tolist()
        counts = Counter(tuple(one) if isinstance(one, list) else one for one in drawn)
        assert set(counts) <= set(expected)
        for output, chance in expected.items():
            low, high = stats.binom.ppf(MISSED, draws, chance), stats.binom.isf(MISSED, draws, chance)
            assert low <= counts[output] <= high


def test_lyu_su_and_li_bound_the_fourth_algorithm():
    """Its true epsilon is at most (1 + 6 c) / 4 epsilon, and on this pair no less than two thirds of that."""
    [case] = [case for case in CASES if case.name.startswith("iSVT 3")]
    bound = (1 + 6 * 3) / 4
    assert 2 * bound / 3 < case.true <= bound


def test_the_fifth_algorithm_has_an_impossible_output():
    """Three below and then three above needs a threshold between the scores, on one side only."""
    mechanism, output = SparseVector(2, 0), (BELOW,) * 3 + (ABOVE,) * 3
    here, there = (
        mechanism.probabilities(np.array(scores))[output] for scores in ([0] * 3 + [1] * 3, [1] * 3 + [0] * 3)
    )
    assert here == pytest.approx((1 - math.exp(-0.5)) / 2)
    assert there == 0


def test_the_points_integrate():
    assert WEIGHTS @ stats.laplace.pdf(POINTS) == pytest.approx(1)
    assert NoisyMax(2).probability_up_to(0, np.zeros(5)) == pytest.approx(2**-5)
