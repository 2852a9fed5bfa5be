"""The examples of tuning a private model, where scikit-learn and Optuna are installed (`.[dev]`)."""

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


def test_the_search_of_scikit_learn_pays_once_for_all_runs(tmp_path, capsys):
    script = example("tune_scikit_learn")
    found = script.search(tmp_path, *script.make_people(400))
    [entry] = Ledger(tmp_path / "people.ledger").entries()
    assert entry.epsilon == found.guarantee_.epsilon == geometric(mean=20).epsilon("1/4")
    assert found.best_estimator_.bound == found.best_params_["bound"]
    script.main()
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_a_person_moves_the_direction_by_no_more_than_the_noise_covers():
    """Nearly without noise, a row more changes each coordinate by at most the bound. Its scale covers all of them."""
    script = example("tune_scikit_learn")
    features, labels = script.make_people(50)
    features[0] = 1e9

    def direction(size):
        return script.PrivateDirection(epsilon=1e12, bound=2.0).fit(features[size:], labels[size:]).direction_

    assert np.abs(np.abs(direction(0) - direction(1)) - 2).max() < 1e-6
    assert direction(50).shape == (4,)  # nobody is enough people


@pytest.fixture
def optuna_script():
    pytest.importorskip("optuna", reason="the Optuna example needs Optuna: install '.[dev]'")
    return example("tune_with_optuna")


def test_the_example_with_optuna_tells_its_study_the_winners_only(optuna_script, tmp_path, capsys):
    script = optuna_script
    study = script.optuna.create_study(direction="maximize")
    ledger = Ledger(tmp_path / "ledger", budget=2)
    best = [script.tuned_round(study, *script.two_halves(400), ledger) for _ in range(2)]
    assert ledger.spent == 2 * geometric(mean=20).epsilon(script.EPSILON)
    assert [trial.params for trial in study.trials] == [one.candidate for one in best]
    assert [trial.value for trial in study.trials] == [one.result.noisy_count for one in best]
    script.main()
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_optunas_candidates_are_drawn_before_any_run(optuna_script):
    drawn = optuna_script.draw_candidates(60)
    assert len({one["bound"] for one in drawn}) == 60
    assert {one["features"] for one in drawn} == {1, 2, 3, 4}
    assert optuna_script.two_halves()[0].features.shape == (2_000, 4)
