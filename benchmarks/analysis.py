"""The rows about the probabilities and the analysis."""

import tracemalloc
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks import units
from benchmarks.bars import Figures, at_most_seconds, at_most_times, no_bar, times_faster
from benchmarks.case import Case, contest, solo
from benchmarks.contestant import SOFTMAX, Contestant
from benchmarks.scores import Data, Scores
from benchmarks.stopwatch import Call, Effort
from dpselect import ExponentialMechanism, Mechanism, PermuteAndFlip, ReportNoisyMax, generalized_scores
from dpselect.analysis import compare, expected_evaluations

_BINS = 1024


def cases() -> Iterator[Case]:
    """All rows about the analysis, but for the probabilities beside softmax at epsilon 1, which are rows of speed."""
    yield contest(_pmf(PermuteAndFlip(epsilon="0.001")), SOFTMAX, Data(10**7), at_most_times(20))
    yield contest(_pmf(ExponentialMechanism(epsilon=1)), SOFTMAX, Data(10**6), no_bar())
    yield contest(_pmf(ReportNoisyMax(epsilon=1)), SOFTMAX, Data(10**6), no_bar())
    yield contest(_pmf(PermuteAndFlip(epsilon=1)), _DYNAMIC_PROGRAM, Data(_BINS), times_faster(100))
    yield _pmf_memory()
    yield solo(_COMPARE, Data(_BINS), at_most_seconds(2))
    yield solo(_SIMULATE, Data(_BINS), at_most_seconds(1))
    yield solo(_GENERALIZED, Data(10**5), at_most_seconds(1))
    yield contest(_EVALUATIONS, SOFTMAX, Data(10**6), no_bar())


def _pmf(mechanism: Mechanism) -> Contestant:
    epsilon = f"{float(mechanism.epsilon):g}"
    return Contestant(f"{type(mechanism).__name__}, pmf", lambda scores: partial(mechanism.pmf, scores), epsilon)


def _dynamic_program(scores: Scores) -> Call:
    """The O(n^2) program of McKenna & Sheldon (2020), Appendix "Dynamic Programming Algorithm", at epsilon = 1."""

    def probabilities() -> Scores:
        heads = np.exp(0.5 * (scores - scores.max()))
        sums = np.zeros(heads.size + 1)  # over subsets of each size
        sums[0] = 1
        for head in heads:
            sums[1:] += head * sums[:-1]
        without = np.ones_like(heads)  # over subsets that leave out each candidate
        total = without.copy()
        for size in range(1, heads.size):
            without = sums[size] - heads * without
            total += (-1) ** size / (size + 1) * without
        return heads * total

    return probabilities


def _generalized(scores: Scores) -> Call:
    """Sensitivities between 1 and 1000, one for each score."""
    sensitivities = np.random.default_rng(scores.size).integers(1, 1000, scores.size)
    return partial(generalized_scores, scores, sensitivities, 1)


def _pmf_memory() -> Case:
    """The most memory that a pmf of ten million candidates needs, in arrays of the size of the scores."""

    def figures(_: Effort) -> Figures:
        scores, mechanism = Data(10**7).scores(), PermuteAndFlip(epsilon=1)
        tracemalloc.start()
        try:
            mechanism.pmf(scores)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        return Figures(peak, scores.nbytes)

    data = Data(10**7)
    what = "PermuteAndFlip, pmf, memory"
    return Case(what, "scores", at_most_times(4), figures, "1", data.size, data.shape, data.dtype, units.megabytes)


_DYNAMIC_PROGRAM = Contestant("O(n^2) program", _dynamic_program)
_COMPARE = Contestant(
    "compare, 100 epsilons", lambda scores: partial(compare, scores, np.geomspace(0.01, 1, 100).tolist()), "0.01:1"
)
_GENERALIZED = Contestant("generalized_scores", _generalized)
_EVALUATIONS = Contestant(
    "PermuteAndFlip, expected_evaluations",
    lambda scores: partial(expected_evaluations, PermuteAndFlip(epsilon=1), scores),
)
_SIMULATE = Contestant(
    "simulate, 10^6 draws", lambda scores: partial(PermuteAndFlip(epsilon=1).simulate, scores, 10**6)
)
