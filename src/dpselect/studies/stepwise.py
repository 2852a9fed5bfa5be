"""Stepwise selection of features for a decision table, with private choices (after Smith & Thakurta 2013).

A table of k binary features predicts, in each of its 2**k cells, the label that most rows of the cell have. The score
of a feature is how many rows the table with it predicts rightly: one row more or less changes it by at most one, and in
the same direction for all features, so the scores are monotonic with sensitivity one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpselect.studies.chooser import Chooser

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.int64]
CHOSEN = 5
_ROWS, _FEATURES, _ONES, _NOISE = 2_000, 40, 0.4, 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows of binary features with a binary label."""

    features: Bits
    labels: Bits


def synthetic_rows(generator: np.random.Generator) -> Rows:
    """2,000 rows of 40 features, whose label is a decision list of five of them, wrong in one row of ten.

    The first of the five that is one decides: the label is its number modulo two, and one where all are zero.
    """
    features = (generator.random((_ROWS, _FEATURES)) < _ONES).astype(np.int64)
    deciding = np.concatenate([features[:, :CHOSEN], np.ones((_ROWS, 1), np.int64)], axis=1).argmax(axis=1)
    labels = deciding % 2
    return Rows(features, np.where(generator.random(_ROWS) < _NOISE, 1 - labels, labels))


def stepwise_errors(rows: Rows, chooser: Chooser | None, runs: int, generator: np.random.Generator) -> Floats:
    """How many rows fewer the table of each run predicts rightly than that of the exact steps; without chooser zero."""
    best = _right(rows, None, generator)
    return np.array([best - _right(rows, chooser, generator) for _ in range(runs)], np.float64)


def _right(rows: Rows, chooser: Chooser | None, generator: np.random.Generator) -> float:
    """How many rows the last table predicts rightly."""
    cells = np.zeros(len(rows.labels), np.int64)
    free = np.ones(rows.features.shape[1], np.bool_)
    scores = np.zeros(free.size)
    chosen = 0
    for _ in range(CHOSEN):
        scores = np.where(free, right_predictions(rows, cells), -np.inf)
        chosen = int(scores.argmax() if chooser is None else chooser.choose(scores[np.newaxis], generator)[0])
        cells = 2 * cells + rows.features[:, chosen]
        free[chosen] = False
    return float(scores[chosen])


def right_predictions(rows: Rows, cells: Bits) -> Floats:
    """How many rows are predicted rightly when each feature splits all cells."""
    groups = 2 * cells + rows.labels
    members = (np.arange(groups.max() + 2)[:, np.newaxis] == groups).astype(np.float64)
    ones = members @ rows.features.astype(np.float64)  # of each feature, in each cell with each label
    zeros = members.sum(axis=1, keepdims=True) - ones
    even = len(ones) // 2 * 2
    pairs = [part[:even].reshape(-1, 2, part.shape[1]).max(axis=1).sum(axis=0) for part in (ones, zeros)]
    right: Floats = pairs[0] + pairs[1]
    return right
