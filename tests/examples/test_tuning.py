"""The example of tuning a private model, where scikit-learn is installed (`.[dev]`)."""

import numpy as np
import pytest

from dpselect import Ledger
from dpselect.tuning import geometric, tune
from tests.examples.test_audits import example

# scikit-learn before 1.7 calls SciPy in a way that newer SciPys deprecate.
pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")

ours = example("tune_regularisation")


def test_the_example_finds_a_good_model_and_pays_for_all_runs(tmp_path):
    training, testing = ours.two_halves(size=2_000)
    best = ours.chosen(training, testing)
    assert best.guarantee.epsilon == geometric(mean=10).epsilon(ours.EPSILON)
    assert best.candidate in ours.STRENGTHS
    assert ours.STRENGTHS[best.position] == best.candidate
    ledger = Ledger(tmp_path / "ledger", budget=geometric(mean=3).epsilon(1))
    tune(
        lambda strength: ours.private_model(training, testing, strength, 1),
        ours.STRENGTHS,
        epsilon=1,
        repeats=geometric(mean=3),
        score=lambda model: model.noisy_count,
        ledger=ledger,
    )
    assert ledger.remaining == 0


def test_a_person_moves_the_exact_model_by_no_more_than_the_noise_covers():
    """The sensitivity of the minimiser, for people who are as far apart as they may be."""
    training, testing = ours.two_halves(size=400)
    strength, size = 0.05, len(training.labels)
    generator = ours.GENERATOR

    class NoNoise:
        def normal(self, size):
            return np.ones(size)

        def gamma(self, *_):
            return 0.0

        def laplace(self, scale):
            return 0.0

    ours.GENERATOR = NoNoise()
    try:
        before = ours.private_model(training, testing, strength, 1).weights
        features, labels = training.features.copy(), training.labels.copy()
        features[0] = np.eye(10)[np.abs(before).argmax()] * np.sign(before[np.abs(before).argmax()])
        moved = []
        for label in (-1.0, 1.0):
            labels[0] = label
            moved.append(ours.private_model(ours.People(features.copy(), labels.copy()), testing, strength, 1).weights)
    finally:
        ours.GENERATOR = generator
    distance = np.linalg.norm(moved[0] - moved[1])
    assert 0.01 / (size * strength) < distance <= 2 / (size * strength)
