import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.analysis import expected_error
from dpselect.research.datasets import histograms
from dpselect.research.experiment import Experiment, Experiments, median_scores, mode_scores
from dpselect.research.plotting import EXPONENTIAL, FLIP
from tests.dpbench import FOLDER, needs_data

counts_lists = st.lists(st.integers(0, 3), min_size=2, max_size=4)


def has_median(counts: tuple[int, ...], bin_: int) -> bool:
    """Neither those below nor those above are more than half of all."""
    return 2 * sum(counts[:bin_]) <= sum(counts) and 2 * sum(counts[bin_ + 1 :]) <= sum(counts)


def fewest_changes(counts: tuple[int, ...], bin_: int) -> int:
    """Breadth-first: add or remove one person anywhere until the bin has the median."""
    seen, frontier = {counts}, {counts}
    for changes in itertools.count():
        if any(has_median(one, bin_) for one in frontier):
            return changes
        moved = {
            (*one[:i], one[i] + change, *one[i + 1 :])
            for one in frontier
            for i in range(len(one))
            for change in (1, -1)
            if one[i] + change >= 0
        }
        frontier = moved - seen
        seen |= frontier
    raise AssertionError


@given(counts_lists)
@settings(max_examples=60)
def test_median_scores_count_the_people_to_add_or_remove(counts: list[int]) -> None:
    expected = [-fewest_changes(tuple(counts), bin_) for bin_ in range(len(counts))]
    assert median_scores(np.array(counts)).tolist() == expected


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=20), st.data())
def test_one_person_moves_a_median_score_by_at_most_one(counts: list[int], data: st.DataObject) -> None:
    before = np.array(counts)
    after = before.copy()
    after[data.draw(st.integers(0, len(counts) - 1))] += 1
    assert np.abs(median_scores(after) - median_scores(before)).max() <= 1
    assert median_scores(before).max() == 0


@given(st.lists(st.integers(0, 100), min_size=2, max_size=9), st.floats(0.01, 2))
def test_twice_the_count_is_the_monotonic_mechanism_in_other_units(counts: list[int], epsilon: float) -> None:
    scores = mode_scores(np.array(counts))
    for kind in (PermuteAndFlip, ExponentialMechanism):
        ours = expected_error(kind(epsilon), scores)
        assert ours == pytest.approx(2 * expected_error(kind(epsilon, monotonic=True), counts), rel=1e-11, abs=1e-300)


def test_figures_of_an_experiment_agree_with_each_other() -> None:
    experiment = Experiment("made up", "mode", np.array([5, 90, 100, 3]))
    epsilon = experiment.epsilon(FLIP, 2.0)
    assert experiment.error(FLIP, epsilon) == pytest.approx(2)
    assert experiment.ratio(epsilon) == pytest.approx(experiment.error(EXPONENTIAL, epsilon) / 2)
    assert experiment.error(EXPONENTIAL, epsilon * experiment.budget(epsilon)) == pytest.approx(2)
    assert experiment.people == 0.5


@needs_data
@pytest.mark.parametrize(
    ("task", "epsilon", "ratio", "error", "budget"),
    [
        ("mode", 0.04, 1.840, 5.32, 1.265),
        ("mode", 0.0398, 1.838, 5.39, 1.267),
        ("median", 0.01, 1.909, 17.2, 1.196),
        ("median", 0.01066, 1.925, 13.7, 1.188),
    ],
)
def test_hepth(task: str, epsilon: float, ratio: float, error: float, budget: float) -> None:
    """Numbers of an independent computation."""
    experiment = Experiments(histograms(FOLDER)).on("HEPTH", task)
    assert experiment.ratio(epsilon) == pytest.approx(ratio, abs=6e-4)
    assert experiment.error(FLIP, epsilon) == pytest.approx(error, rel=3e-3)
    assert experiment.budget(epsilon) == pytest.approx(budget, abs=6e-4)
