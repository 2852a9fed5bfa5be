"""Count how many scores a lazy selection computes: medians and modes of the DPBench histograms, and a model choice.

    python examples/lazy_scores.py [FOLDER OF THE DPBENCH FILES]

The best score of a median is zero for any data, so it is a public bound. The largest count of a mode is not public;
its rows show what knowing it would save. The last rows compare 360 classifiers by the number of people in a private
test set whom they classify correctly. Their bound is a public guess: scores above it are lowered to it.
"""

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.analysis import expected_error, expected_evaluations

Scores = npt.NDArray[np.int64]
DATA_SETS = ("HEPTH", "ADULTFRANK", "MEDCOST", "SEARCHLOGS", "PATENT")
HISTOGRAMS, MODELS = ("0.001", "0.01", "0.1"), ("0.01", "0.1", "1")  # epsilons
RUNS = 20
PEOPLE, TEST = 1_500, 1_000


class Row(NamedTuple):
    """One row of the table. Most fields count the scores that are computed."""

    task: str
    bound: int
    epsilon: str
    candidates: int
    flip: float  # expected, for permute-and-flip
    measured: float  # the mean of RUNS runs of permute-and-flip
    exponential: float  # expected, for the exponential mechanism
    error: float  # expected error of permute-and-flip on scores lowered to the bound, in units of the scores


def row(task: str, scores: Scores, bound: int, epsilon: str, *, monotonic: bool) -> Row:
    """The expected and the measured number of scores that are computed."""
    flip = PermuteAndFlip(epsilon, monotonic=monotonic)
    exponential = ExponentialMechanism(epsilon, monotonic=monotonic)
    computed: list[int] = []
    for _ in range(RUNS):
        flip.select_lazily(lambda index: scores[index], scores.size, best=bound, watch=computed.append)
    return Row(
        task,
        bound,
        epsilon,
        scores.size,
        expected_evaluations(flip, scores, bound),
        len(computed) / RUNS,
        expected_evaluations(exponential, scores, bound),
        lost(flip, scores, bound),
    )


def lost(mechanism: PermuteAndFlip, scores: Scores, bound: int) -> float:
    """The expected error relative to the true best score, when scores above the bound are lowered to it."""
    if scores.max() <= bound:
        return expected_error(mechanism, scores)
    return float(mechanism.pmf(np.minimum(scores, bound)) @ (scores.max() - scores))


def histogram_rows(folder: str, epsilons: tuple[str, ...] = HISTOGRAMS) -> Iterator[Row]:
    """Medians and modes of the five histograms with 1,024 bins each."""
    for name in DATA_SETS:
        counts = np.load(Path(folder) / f"{name}.n4096.npy").astype(np.int64).reshape(1024, -1).sum(axis=1)
        for epsilon in epsilons:
            yield row(f"{name} median", median_scores(counts), 0, epsilon, monotonic=False)
        for epsilon in epsilons:
            yield row(f"{name} mode", counts, int(counts.max()), epsilon, monotonic=True)


def median_scores(counts: Scores) -> Scores:
    """For each bin, minus the number of people to add or remove until it contains the median; zero if it does."""
    below = np.cumsum(counts) - counts
    above = counts.sum() - below - counts
    return np.minimum(counts - np.abs(below - above), 0)


@cache
def right_predictions() -> Scores:
    """How many of TEST people each of 360 classifiers gets right (ridge regression on random features)."""
    generator = np.random.default_rng(7)
    x = generator.normal(size=(PEOPLE, 6))
    y = np.sign(np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.4 * generator.normal(size=PEOPLE))
    train, test = slice(0, PEOPLE - TEST), slice(PEOPLE - TEST, PEOPLE)
    scores = []
    for width in np.geomspace(0.02, 5, 15):
        for size in (5, 20, 60, 150):
            features = np.cos(width * x @ generator.normal(size=(6, size)) + generator.uniform(0, 6.3, size))
            gram, target = features[train].T @ features[train], features[train].T @ y[train]
            for penalty in np.geomspace(1e-3, 100, 6):
                weights = np.linalg.solve(gram + penalty * np.eye(size), target)
                scores.append(int((np.sign(features[test] @ weights) == y[test]).sum()))
    return np.array(scores)


def model_rows(epsilons: tuple[str, ...] = MODELS) -> Iterator[Row]:
    """The choice of a model, with three public guesses at the score of the best one."""
    scores = right_predictions()
    for bound in (TEST, TEST * 8 // 10, TEST * 7 // 10):
        for epsilon in epsilons:
            yield row("best of 360 models", scores, bound, epsilon, monotonic=False)


def print_rows(rows: Iterator[Row], out: Callable[[str], None] = print) -> None:
    """Print the table, each row as soon as it is computed."""
    out("| task | bound | epsilon | candidates | permute-and-flip | measured | exponential | error |")
    out("|---|---|---|---|---|---|---|---|")
    for r in rows:
        out(
            f"| {r.task} | {r.bound:,} | {r.epsilon} | {r.candidates:,} | {r.flip:,.1f} | {r.measured:,.1f} "
            f"| {r.exponential:,.1f} | {r.error:,.1f} |"
        )


if __name__ == "__main__":
    if sys.argv[1:]:
        print_rows(histogram_rows(sys.argv[1]))
    print_rows(model_rows())
