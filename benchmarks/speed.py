"""The rows about speed."""

from collections.abc import Iterator
from functools import partial
from itertools import product

from benchmarks.bars import at_most_seconds, at_most_times, no_bar, times_faster
from benchmarks.case import Case, contest, solo
from benchmarks.contestant import (
    ARGMAX,
    ARGMAX_OF_ROWS,
    DIFFPRIVLIB,
    NAIVE_NOISY_MAX,
    NAIVE_PERMUTE_AND_FLIP,
    OPENDP,
    SOFTMAX,
    Contestant,
    by_numpy,
    ours,
)
from benchmarks.scores import DTYPES, SHAPES, Data, Scores
from benchmarks.stopwatch import Call
from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax

_MECHANISM = PermuteAndFlip(epsilon=1)
_MECHANISM_OF_TINY_EPSILON = PermuteAndFlip(epsilon="0.001")

_PERMUTE_AND_FLIP = ours(_MECHANISM)
_EXPONENTIAL = ours(ExponentialMechanism(epsilon=1))
_NOISY_MAX = ours(ReportNoisyMax(epsilon=1))
_ROWS = Contestant("PermuteAndFlip, select_rows", lambda scores: partial(_MECHANISM.select_rows, scores))
_WITH_GAP = Contestant("PermuteAndFlip, select_with_gap", lambda scores: partial(_MECHANISM.select_with_gap, scores))
_STEADY = Contestant("PermuteAndFlip, steady", lambda scores: partial(_MECHANISM.select, scores, steady=True))
_PROBABILITIES = Contestant("PermuteAndFlip, pmf", lambda scores: partial(_MECHANISM.pmf, scores))
_ALL_HOT = ours(_MECHANISM_OF_TINY_EPSILON)
_ALL_HOT_EARLY = Contestant(
    "PermuteAndFlip, early_exit",
    lambda scores: partial(_MECHANISM_OF_TINY_EPSILON.select, scores, early_exit=True),
    _ALL_HOT.epsilon,
)
_BLOCK = 2**20


def _summary(scores: Scores) -> Call:
    """A selection by a summary that sees blocks of 2^20 scores."""

    def result() -> object:
        summary = _MECHANISM.summary()
        summary.feed(scores[start : start + _BLOCK] for start in range(0, scores.size, _BLOCK))
        return summary.result()

    return result


_SUMMARY = Contestant("PermuteAndFlip, summary in blocks", _summary)


_PLAIN = Contestant(
    "PermuteAndFlip without the compiled kernel", lambda scores: by_numpy(partial(_MECHANISM.select, scores))
)


def cases() -> Iterator[Case]:
    """All rows about speed, ordered so that neighbours share their scores."""
    yield from _ten_million()
    yield from _million()
    yield from _hundred_thousand()
    yield from _thousand()
    for dtype in DTYPES:
        rows = Data(10**5, dtype=dtype, width=100)
        yield contest(_ROWS, ARGMAX_OF_ROWS, rows, at_most_times(8))
        yield contest(_ROWS, NAIVE_PERMUTE_AND_FLIP, rows, at_most_times(2))


def _ten_million() -> Iterator[Case]:
    for dtype, shape in product(DTYPES, SHAPES):
        data = Data(10**7, shape, dtype)
        is_poisson = shape == "poisson"
        yield contest(_PERMUTE_AND_FLIP, ARGMAX, data, at_most_times(1.3 if is_poisson else 2))
        yield contest(_WITH_GAP, _PERMUTE_AND_FLIP, data, at_most_times(1.5))
        if is_poisson:
            yield contest(_PLAIN, ARGMAX, data, no_bar())
        if shape != "zipf":  # whose scores lie so far apart that few candidates are hot even at a tiny epsilon
            yield contest(_ALL_HOT, ARGMAX, data, at_most_times(8 if is_poisson else 25))
            yield contest(_ALL_HOT_EARLY, _ALL_HOT, data, no_bar())
        yield contest(_SUMMARY, _PERMUTE_AND_FLIP, data, at_most_times(1.3))
        if is_poisson:
            yield contest(_PROBABILITIES, SOFTMAX, data, at_most_times(5))


def _million() -> Iterator[Case]:
    for dtype, shape in product(DTYPES, SHAPES):
        data = Data(10**6, shape, dtype)
        is_poisson = shape == "poisson"
        yield contest(_PERMUTE_AND_FLIP, ARGMAX, data, at_most_times(3 if is_poisson else 5))
        yield contest(_WITH_GAP, _PERMUTE_AND_FLIP, data, at_most_times(1.5))
        if is_poisson:
            yield contest(_PLAIN, ARGMAX, data, no_bar())
        yield contest(_STEADY, ARGMAX, data, at_most_times(16))  # what is aimed at: each candidate needs a random octet
        if is_poisson:
            yield contest(_PROBABILITIES, SOFTMAX, data, at_most_times(5))
        yield contest(_PERMUTE_AND_FLIP, OPENDP, data, times_faster(500))
        yield contest(_EXPONENTIAL, _PERMUTE_AND_FLIP, data, at_most_times(3))
        yield contest(_NOISY_MAX, NAIVE_NOISY_MAX, data, at_most_times(4))


def _hundred_thousand() -> Iterator[Case]:
    for dtype, size in product(DTYPES, (10**5, 10**4)):
        data = Data(size, dtype=dtype)
        yield contest(_PERMUTE_AND_FLIP, NAIVE_PERMUTE_AND_FLIP, data, at_most_times(1))
        yield contest(_PLAIN, NAIVE_PERMUTE_AND_FLIP, data, no_bar())
        yield contest(_PROBABILITIES, SOFTMAX, data, at_most_times(10))


def _thousand() -> Iterator[Case]:
    for dtype, shape in product(DTYPES, SHAPES):
        data = Data(10**3, shape, dtype)
        yield contest(_WITH_GAP, _PERMUTE_AND_FLIP, data, no_bar())  # what is left is the cost of a few calls
        if shape == "poisson":
            yield contest(_PERMUTE_AND_FLIP, NAIVE_PERMUTE_AND_FLIP, data, at_most_times(4))
            yield contest(_PLAIN, NAIVE_PERMUTE_AND_FLIP, data, no_bar())
            yield contest(_PROBABILITIES, SOFTMAX, data, at_most_times(10))
        yield solo(_PERMUTE_AND_FLIP, data, at_most_seconds(60e-6))
        yield contest(_PERMUTE_AND_FLIP, OPENDP, data, times_faster(10))
        yield contest(_PERMUTE_AND_FLIP, DIFFPRIVLIB, data, times_faster(10))
