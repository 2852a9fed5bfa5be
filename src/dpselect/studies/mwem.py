"""Hardt, Ligett & McSherry (2012), "A simple and practical algorithm for differentially private data release": MWEM.

Each round selects the query that the synthetic histogram answers worst, measures it with noise, and updates the
histogram by multiplicative weights, several times for all measurements so far (as the paper's Section 2.3 does).
The queries are random intervals of bins; the number of people is taken as known.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpselect.studies.chooser import Chooser
from dpselect.studies.currencies import Plan

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
ROUNDS, QUERIES, _PASSES = 20, 1_000, 5


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Queries: the number of people in bins start, ..., stop - 1."""

    start: Counts
    stop: Counts

    def answers(self, histograms: Floats) -> Floats:
        """The answers on each row."""
        sums = np.concatenate([np.zeros((len(histograms), 1)), np.cumsum(histograms, axis=1)], axis=1)
        found: Floats = sums[:, self.stop] - sums[:, self.start]
        return found


def random_intervals(bins: int, count: int, generator: np.random.Generator) -> Intervals:
    """Intervals with uniform ends, none of them empty."""
    ends = np.sort(generator.integers(0, bins, (count, 2)), axis=1)
    return Intervals(ends[:, 0], ends[:, 1] + 1)


def mwem_errors(  # noqa: PLR0913, PLR0917 - what a run is made of
    counts: Counts,
    queries: Intervals,
    chooser: Chooser,
    plan: Plan,
    runs: int,
    generator: np.random.Generator,
    rounds: int = ROUNDS,
) -> Floats:
    """The mean absolute error of the queries on the last synthetic histogram of each run, in people."""
    truth = queries.answers(counts[np.newaxis].astype(np.float64))
    people = counts.sum()
    synthetic = np.full((runs, counts.size), people / counts.size)
    bins, everyone = np.arange(counts.size), np.arange(runs)
    asked: list[npt.NDArray[np.bool_]] = []
    told: list[Floats] = []
    for _ in range(rounds):
        chosen = chooser.choose(np.abs(queries.answers(synthetic) - truth), generator)
        asked.append((bins >= queries.start[chosen, np.newaxis]) & (bins < queries.stop[chosen, np.newaxis]))
        told.append(truth[0, chosen] + _noise(plan, runs, generator))
        for number in range(_PASSES * len(asked)):
            inside, answer = asked[number % len(asked)], told[number % len(asked)]
            gap = answer - np.where(inside, synthetic, 0.0).sum(axis=1)
            synthetic *= np.where(inside, np.exp(gap / (2 * people))[everyone, np.newaxis], 1.0)
            synthetic *= people / synthetic.sum(axis=1, keepdims=True)
    errors: Floats = np.abs(queries.answers(synthetic) - truth).mean(axis=1)
    return errors


def _noise(plan: Plan, runs: int, generator: np.random.Generator) -> Floats:
    if plan.gaussian:
        return generator.normal(scale=plan.deviation, size=runs)
    return generator.laplace(scale=plan.deviation / np.sqrt(2), size=runs)
