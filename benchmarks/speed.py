"""The rows about speed."""

from collections.abc import Iterator
from functools import partial
from itertools import product

from benchmarks.bars import at_most_seconds, at_most_times, no_bar, times_faster
from benchmarks.case import Case, contest, solo
from benchmarks.contestant import ARGMAX, ARGMAX_OF_ROWS, DIFFPRIVLIB, NAIVE_NOISY_MAX, OPENDP, Contestant, ours
from benchmarks.scores import DTYPES, SHAPES, Data
from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax

_MECHANISM = PermuteAndFlip(epsilon=1)
_MECHANISM_OF_TINY_EPSILON = PermuteAndFlip(epsilon="0.001")

_PERMUTE_AND_FLIP = ours(_MECHANISM)
_EXPONENTIAL = ours(ExponentialMechanism(epsilon=1))
_NOISY_MAX = ours(ReportNoisyMax(epsilon=1))
_ROWS = Contestant("PermuteAndFlip, select_rows", lambda scores: partial(_MECHANISM.select_rows, scores))
_STEADY = Contestant("PermuteAndFlip, steady", lambda scores: partial(_MECHANISM.select, scores, steady=True))
_ALL_HOT = ours(_MECHANISM_OF_TINY_EPSILON)
_ALL_HOT_EARLY = Contestant(
    "PermuteAndFlip, early_exit",
    lambda scores: partial(_MECHANISM_OF_TINY_EPSILON.select, scores, early_exit=True),
    _ALL_HOT.epsilon,
)


def cases() -> Iterator[Case]:
    """All rows about speed, ordered so that neighbours share their scores."""
    yield from _ten_million()
    yield from _million()
    yield from _thousand()
    yield contest(_ROWS, ARGMAX_OF_ROWS, Data(10**5, width=100), at_most_times(20))


def _ten_million() -> Iterator[Case]:
    for dtype, shape in product(DTYPES, SHAPES):
        data = Data(10**7, shape, dtype)
        yield contest(_PERMUTE_AND_FLIP, ARGMAX, data, at_most_times(2))
        if shape != "zipf":  # whose scores lie so far apart that few candidates are hot even at a tiny epsilon
            yield contest(_ALL_HOT, ARGMAX, data, at_most_times(25))
            yield contest(_ALL_HOT_EARLY, _ALL_HOT, data, no_bar())


def _million() -> Iterator[Case]:
    for dtype, shape in product(DTYPES, SHAPES):
        data = Data(10**6, shape, dtype)
        yield contest(_PERMUTE_AND_FLIP, ARGMAX, data, at_most_times(5))
        yield contest(_STEADY, ARGMAX, data, at_most_times(60))
        yield contest(_PERMUTE_AND_FLIP, OPENDP, data, times_faster(500))
        yield contest(_EXPONENTIAL, _PERMUTE_AND_FLIP, data, at_most_times(3))
        yield contest(_NOISY_MAX, NAIVE_NOISY_MAX, data, at_most_times(4))


def _thousand() -> Iterator[Case]:
    for dtype, shape in product(DTYPES, SHAPES):
        data = Data(10**3, shape, dtype)
        yield solo(_PERMUTE_AND_FLIP, data, at_most_seconds(60e-6))
        yield contest(_PERMUTE_AND_FLIP, OPENDP, data, times_faster(10))
        yield contest(_PERMUTE_AND_FLIP, DIFFPRIVLIB, data, times_faster(10))
