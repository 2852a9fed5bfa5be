"""The rows about the k best: one set, a margin, one shot, noisy counts and peeling, beside one selection and OpenDP.

Every call costs the same epsilon. A person counts for one candidate, where that matters.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product

from benchmarks import units
from benchmarks.bars import Figures, at_most_seconds, at_most_times, no_bar
from benchmarks.case import Case, contest
from benchmarks.contestant import Contestant, by_numpy, opendp_prelude
from benchmarks.dpbench import NAMES, shaped
from benchmarks.footprint import largest_peak
from benchmarks.scores import SHAPES, Data, Scores
from benchmarks.stopwatch import Call, Effort
from dpselect import PermuteAndFlip, select_top_k

_N, _MANY = 10**4, 10**5
_SIZES = (10, 100)
_EPSILONS = ("1", "0.1")
_TIMES, _SECONDS, _ARRAYS = 30, 1, 10


def cases() -> Iterator[Case]:
    """All rows about the k best."""
    for data, k in product(_shapes(_N), _SIZES):
        for epsilon in _EPSILONS:
            yield contest(_set(k, epsilon), _select(epsilon), data, at_most_times(_TIMES))
        others = [_margin(k, "1"), *(_by_name(method, k, "1") for method in ("one-shot", "noisy-counts", "peel"))]
        for ours in others:
            yield contest(ours, _select("1"), data, no_bar())
        for ours in (_set(k, "1"), _by_name("one-shot", k, "1"), _by_name("peel", k, "1")):
            yield contest(ours, _opendp(k), data, no_bar())
    for data, epsilon in product(_shapes(_MANY), _EPSILONS):
        yield contest(_margin(100, epsilon), _select(epsilon), data, at_most_seconds(_SECONDS))
    for n, epsilon in product((_N, _MANY, 10**6), _EPSILONS):
        for ours in (_set(100, epsilon), _margin(100, epsilon)):
            yield _memory(ours, n)


def _shapes(n: int) -> list[Data]:
    return [Data(n, dtype="int64"), *(shaped(name, n) for name in NAMES)]


def _called(name: str, k: int) -> str:
    return f"top {k}, {name}"


def _select(epsilon: str) -> Contestant:
    mechanism = PermuteAndFlip(epsilon, score_range=1)
    return Contestant("select by NumPy", lambda scores: by_numpy(partial(mechanism.select, scores)), epsilon)


def _set(k: int, epsilon: str) -> Contestant:
    mechanism = PermuteAndFlip(epsilon, score_range=1)
    return Contestant(_called("select_set", k), lambda scores: partial(mechanism.select_set, scores, k), epsilon)


def _margin(k: int, epsilon: str) -> Contestant:
    mechanism = PermuteAndFlip(epsilon, score_range=2)
    return Contestant(_called("select_margin", k), lambda scores: partial(mechanism.select_margin, scores, k), epsilon)


def _by_name(method: str, k: int, epsilon: str) -> Contestant:
    call = partial(select_top_k, k=k, epsilon=epsilon, method=method, max_values=1)
    return Contestant(_called(method, k), lambda scores: partial(call, scores), epsilon)


def _opendp(k: int) -> Contestant:
    """The k largest by exponential noise at epsilon = 1: a scale of k for counts that one person raises by one."""

    def prepared(scores: Scores) -> Call:
        dp = opendp_prelude()
        return partial(
            dp.m.make_noisy_top_k(
                dp.vector_domain(dp.atom_domain(T="i64")),
                dp.linf_distance(T="i64", monotonic=True),
                dp.max_divergence(),
                k=k,
                scale=float(k),
            ),
            scores,
        )

    return Contestant("OpenDP noisy top k", prepared)


def _memory(ours: Contestant, n: int) -> Case:
    """The most memory that a call needs besides the scores, over the shapes that need no file."""

    def figures(effort: Effort) -> Figures:
        vectors = [Data(n, shape, "int64").scores() for shape in SHAPES]
        return Figures(largest_peak(lambda scores: ours.prepared(scores)(), vectors, effort), vectors[0].nbytes)

    what, bar = f"{ours.name}, memory", at_most_times(_ARRAYS)
    return Case(what, "scores", bar, figures, ours.epsilon, units.power_of_ten(n), "worst", "int64", units.megabytes)
