"""Choose the regularisation of a private model: the best of a random number of private runs, as one release.

Each run trains a logistic regression with output perturbation (Chaudhuri, Monteleoni & Sarwate 2011, Algorithm 1) on
one half of the people, and counts its correct predictions on the other half with Laplace noise. Every person is in only
one half, so a run that spends epsilon on each part is epsilon-DP. `tune` runs it with random strengths of the
regularisation and keeps the model with the best noisy count. The noise here consists of floats, as in most libraries,
so the guarantee of a run holds for its formulas, not for its floats.

    .venv/bin/python -m pip install scikit-learn
    .venv/bin/python examples/tune_regularisation.py
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from dpselect.tuning import Tuned, geometric, tune

Floats = npt.NDArray[np.float64]

EPSILON = 1
STRENGTHS = [0.0001, 0.001, 0.01, 0.1, 1.0]
GENERATOR = np.random.default_rng()  # seeded from the operating system's entropy


@dataclass(frozen=True)
class People:
    """Feature vectors of length at most one, and labels -1 or 1."""

    features: Floats
    labels: Floats


@dataclass(frozen=True)
class Model:
    """A private result: the weights, and the noisy number of correct predictions on the other half."""

    weights: Floats
    noisy_count: float


def two_halves(size: int = 4_000, seed: int = 3) -> tuple[People, People]:
    """Synthetic people to train on, and others to test on."""
    features, labels = make_classification(size, n_features=10, n_informative=5, class_sep=1.5, random_state=seed)
    features /= np.maximum(1, np.linalg.norm(features, axis=1, keepdims=True))
    everyone = People(features, 2.0 * labels - 1)
    half = size // 2
    return (
        People(everyone.features[:half], everyone.labels[:half]),
        People(everyone.features[half:], everyone.labels[half:]),
    )


def private_model(training: People, testing: People, strength: float, epsilon: float) -> Model:
    """One run: epsilon-DP, because nobody is in both halves."""
    size, dimension = training.features.shape
    exact = LogisticRegression(C=1 / (size * strength), fit_intercept=False, tol=1e-10, max_iter=10_000)
    exact.fit(training.features, training.labels)
    # Replacing one person moves the minimiser by at most 2 / (size * strength): noise density ~ exp(-length / scale).
    scale = 2 / (size * strength * epsilon)
    direction = GENERATOR.normal(size=dimension)
    noise = GENERATOR.gamma(dimension, scale) * direction / np.linalg.norm(direction)
    weights = exact.coef_[0] + noise
    right = np.count_nonzero(testing.features @ weights * testing.labels > 0)
    return Model(weights, right + GENERATOR.laplace(scale=1 / epsilon))


def chosen(training: People, testing: People) -> Tuned[float, Model]:
    """The best of about ten runs, at the cost of less than three times epsilon."""
    return tune(
        lambda strength: private_model(training, testing, strength, EPSILON),
        STRENGTHS,
        epsilon=EPSILON,
        repeats=geometric(mean=10),
        score=lambda model: model.noisy_count,
    )


if __name__ == "__main__":
    training, testing = two_halves()
    best = chosen(training, testing)
    assert best.result is not None
    print(f"regularisation {best.candidate}: about {best.result.noisy_count / len(testing.labels):.0%} right")
    print(f"guarantee of all runs together: {best.guarantee}")
    for strength in STRENGTHS:
        counts = [private_model(training, testing, strength, EPSILON).noisy_count for _ in range(20)]
        print(f"  {strength}: {np.mean(counts) / len(testing.labels):.1%} right on average (this line is not private)")
