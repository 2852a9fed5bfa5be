"""Choose the parameters of a private model with Optuna's search space, and charge for all runs.

Optuna draws the candidates, `tune` runs and charges, and Optuna's study keeps the winner of each charged round.

The candidates of a round must not depend on the results of that round. The proof of `tune` needs runs that are
independent and alike, and only one of them is released. An adaptive sampler such as TPE looks at the results of all
earlier trials: each candidate would leak results that nobody paid for. So candidates come from a RandomSampler, which
never looks at results, and no trial but the winner is ever told to a study.

    .venv/bin/python -m pip install optuna
    .venv/bin/python examples/tune_with_optuna.py
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna

from dpselect import Ledger
from dpselect.tuning import Tuned, geometric, tune

Floats = npt.NDArray[np.float64]

EPSILON = 0.25  # of each run; exact as a float
SPACE = {
    "bound": optuna.distributions.FloatDistribution(0.01, 1000, log=True),
    "features": optuna.distributions.IntDistribution(1, 4),
}
GENERATOR = np.random.default_rng()  # seeded from the operating system's entropy


@dataclass(frozen=True)
class People:
    """Features, and labels -1 or 1."""

    features: Floats
    labels: Floats


@dataclass(frozen=True)
class Model:
    """A private result: the direction that separates the labels, and the noisy number of people on the right side."""

    direction: Floats
    noisy_count: float


def two_halves(size: int = 4_000, seed: int = 4) -> tuple[People, People]:
    """Synthetic people to train on, and others to test on: four features, with a few extreme values."""
    generator = np.random.default_rng(seed)
    labels = generator.choice([-1.0, 1.0], size)
    features = generator.standard_t(2, (size, 4)) + np.outer(labels, [0.6, 0.4, 0.0, 0.0])
    half = size // 2
    return People(features[:half], labels[:half]), People(features[half:], labels[half:])


def draw_candidates(number: int = 100) -> list[dict[str, Any]]:
    """Public candidates. The study in which they are drawn gets no result, and is thrown away."""
    drawing = optuna.create_study(sampler=optuna.samplers.RandomSampler())
    return [drawing.ask(SPACE).params for _ in range(number)]


def private_model(training: People, testing: People, bound: float, features: int) -> Model:
    """One run: EPSILON-DP for one person more or less, because nobody is in both halves.

    A person changes each of the chosen coordinates of the sum by at most `bound`, and the number on the right side by
    at most one. The noise consists of floats, as in most libraries.
    """
    clipped = np.clip(training.features[:, :features], -bound, bound)
    noise = GENERATOR.laplace(scale=features * bound / EPSILON, size=features)
    direction = training.labels @ clipped + noise
    right = np.count_nonzero(testing.features[:, :features] @ direction * testing.labels > 0)
    return Model(direction, right + GENERATOR.laplace(scale=1 / EPSILON))


def tuned_round(study: optuna.Study, training: People, testing: People, ledger: Ledger) -> Tuned[dict[str, Any], Model]:
    """One charged round of about twenty runs. The study gets the winner, which was paid for, and nothing else.

    Later rounds may use what the study knows, for example to draw candidates near earlier winners.
    """
    best = tune(
        lambda parameters: private_model(training, testing, **parameters),
        draw_candidates(),
        epsilon=EPSILON,
        repeats=geometric(mean=20),
        score=lambda model: model.noisy_count,
        ledger=ledger,
        what={"question": "tune", "model": "direction"},
    )
    if best.candidate is not None and best.result is not None:
        winner = optuna.trial.create_trial(params=best.candidate, distributions=SPACE, value=best.result.noisy_count)
        study.add_trial(winner)
    return best


def main() -> None:
    """Two rounds, and what may be printed."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize")
    training, testing = two_halves()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "people.ledger", budget="1.5")
        for _ in range(2):
            best = tuned_round(study, training, testing, ledger)
            print(f"a round of {best.guarantee}")
        print(f"ledger: {ledger.remaining.words_down} is left")
    for trial in study.trials:
        print(f"  {trial.params}: about {trial.value:.0f} people on the right side")
    print(f"best: {study.best_params}")


if __name__ == "__main__":
    main()
