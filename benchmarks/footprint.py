"""The rows about memory."""

import tracemalloc
from collections.abc import Callable, Iterator, Sequence

from benchmarks import units
from benchmarks.bars import Figures, at_most_share
from benchmarks.case import Case
from benchmarks.scores import SHAPES, Data, Scores
from benchmarks.stopwatch import Effort
from dpselect import ExponentialMechanism, Mechanism, PermuteAndFlip, ReportNoisyMax

_N = 10**7
_SHARE = 0.1
_SELECTIONS = 5


def cases() -> Iterator[Case]:
    """All rows about memory."""
    for kind in (PermuteAndFlip, ExponentialMechanism, ReportNoisyMax):
        for epsilon in ("1", "0.001"):
            yield _extra_memory(kind(epsilon=epsilon), epsilon)


def _extra_memory(mechanism: Mechanism, epsilon: str) -> Case:
    """The most memory that a selection needs besides the scores, over all shapes."""

    def figures(effort: Effort) -> Figures:
        vectors = [Data(_N, shape).scores() for shape in SHAPES]
        return Figures(largest_peak(mechanism.select, vectors, effort), vectors[0].nbytes)

    what, bar, data = f"{type(mechanism).__name__}, memory", at_most_share(_SHARE), Data(_N)
    return Case(what, "scores", bar, figures, epsilon, data.size, "worst", data.dtype, units.megabytes)


def largest_peak(select: Callable[[Scores], object], vectors: Sequence[Scores], effort: Effort) -> int:
    """The most bytes that some selections from each vector need besides the scores."""
    return max(_peak_bytes(select, scores) for scores in vectors for _ in range(min(effort.rounds, _SELECTIONS)))


def _peak_bytes(select: Callable[[Scores], object], scores: Scores) -> int:
    """The peak of what Python and NumPy allocate during one selection."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        select(scores)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before
