"""Choose a parameter of a private scikit-learn estimator with `PrivateSearchCV`, and charge a ledger for all runs.

The estimator adds up features, clipped to a bound, with the sign of their labels, and adds noise. A small bound cuts
the features off, and a large one needs much noise, so the bound is worth a search. The noise of the model consists of
floats, as in most libraries, so its epsilon holds for its formulas, not for its floats. That of the search is exact.

    .venv/bin/python -m pip install scikit-learn
    .venv/bin/python examples/tune_scikit_learn.py
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin

from dpselect import Ledger
from dpselect.tuning import PrivateSearchCV, geometric

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


class PrivateDirection(ClassifierMixin, BaseEstimator):
    """Predicts 1 on one side of a plane through zero, and 0 on the other side.

    One row more or less changes each coordinate of the sum by at most `bound`, and there are d of them. So Laplace
    noise of scale d bound/epsilon makes `fit` epsilon-DP. It works for any number of rows, also for none.
    """

    def __init__(self, epsilon: float = 1.0, bound: float = 1.0) -> None:
        self.epsilon = epsilon
        self.bound = bound

    def fit(self, features: Floats, labels: Labels) -> "PrivateDirection":
        """Release the direction. Nothing else that is kept depends on the rows."""
        signs = 2 * labels - 1
        exact = (np.clip(features, -self.bound, self.bound) * signs[:, None]).sum(axis=0)
        scale = exact.size * self.bound / self.epsilon
        self.direction_ = exact + np.random.default_rng().laplace(scale=scale, size=exact.size)  # no seed: fresh noise
        self.classes_ = np.array([0, 1])  # public, not taken from the rows
        self.n_features_in_ = exact.size
        return self

    def predict(self, features: Floats) -> Labels:
        """Each row by itself."""
        return (features @ self.direction_ > 0).astype(np.int64)


def make_people(size: int = 4_000, seed: int = 4) -> tuple[Floats, Labels]:
    """Synthetic people: four features of two classes, with a few extreme values."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, size)
    features = generator.standard_t(2, (size, 4)) + np.outer(2 * labels - 1, [0.5, 0.3, 0.0, -0.4])
    return features, labels


def search(folder: str | Path, features: Floats, labels: Labels) -> Any:
    """The fitted search. Its ledger is charged once, for all runs."""
    ledger = Ledger(Path(folder) / "people.ledger", budget="1")
    private = PrivateSearchCV(
        PrivateDirection(epsilon=0.25),
        {"bound": stats.loguniform(0.01, 1000)},  # public; each run draws one
        epsilon=0.25,  # of one fit, and of one noisy count: nobody is in both parts
        repeats=geometric(mean=20),
        ledger=ledger,
        what={"question": "tune", "model": "direction"},
    )
    return private.fit(features, labels)


def main() -> None:
    """Search, and print what may be printed."""
    features, labels = make_people()
    with tempfile.TemporaryDirectory() as folder:
        found = search(folder, features, labels)
        print(f"bound {found.best_params_['bound']:.3g}")
        print(f"noisy number of held-out people with the right class: {found.noisy_count_}")
        print(f"all runs together: {found.guarantee_}")
        print(f"ledger: {Ledger(Path(folder) / 'people.ledger').remaining.words_down} is left")
    others = make_people(seed=5)
    print(f"right for other, made-up people: {found.score(*others):.0%}")


if __name__ == "__main__":
    main()
