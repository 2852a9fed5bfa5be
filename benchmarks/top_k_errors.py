"""How far the k best fall short, by each method of `select_top_k`: the exact samplers, on DPBench and Poisson counts.

The error of an answer is the sum of the k largest counts minus the sum of the chosen ones, divided by k: people short
per item. All methods of one row cost the same: epsilon or, for those in zCDP, the rho that implies (epsilon, 1e-6).
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.contestant import NotAvailable
from benchmarks.dpbench import NAMES, histogram
from benchmarks.scores import Scores
from benchmarks.stopwatch import Effort
from benchmarks.table import piped
from dpselect import approximate, select_top_k

TITLE = "errors of the top k"
_EPSILONS = ("0.1", "0.01")
_SIZES = (20, 50, 100)
_RUNS, _RUNS_PER_ROUND = 100, 7
_NORMAL = 1.959964  # for 95 % intervals
_SEED = 2024

# The name of each column, and what `select_top_k` is told.
_PURE: dict[str, dict[str, Any]] = {
    "set, m = 1": {"method": "set", "max_values": 1},
    "noisy-counts, m = 1": {"method": "noisy-counts", "max_values": 1},
    "margin": {"method": "margin"},
    "one-shot": {"method": "one-shot"},
    "peel": {"method": "peel"},
}
_CONCENTRATED: dict[str, dict[str, Any]] = {
    "zCDP set, m = 1": {"method": "set", "max_values": 1, "mechanism": "exponential"},
    "zCDP noisy-counts, m = 1": {"method": "noisy-counts", "max_values": 1},
    "zCDP peel": {"method": "peel", "mechanism": "exponential"},
}


def report(effort: Effort) -> str:
    """A Markdown table of mean errors with 95 % intervals."""
    runs = min(_RUNS, _RUNS_PER_ROUND * effort.rounds)
    head = ["data", "epsilon", "k", *_PURE, *_CONCENTRATED]
    note = f"People short per item, mean and 95 % interval of {runs} runs. zCDP: the rho that implies (epsilon, 1e-6)."
    return f"{note}\n\n{piped(head, _rows(runs), left=head[:1])}"


def _rows(runs: int) -> Iterator[Sequence[str]]:
    for name, epsilon, k in product((*NAMES, "poisson"), _EPSILONS, _SIZES):
        print(f"{TITLE}: {name} {epsilon} {k}", file=sys.stderr, flush=True)
        try:
            counts = _counts(name)
        except NotAvailable as missing:
            yield [name, epsilon, str(k), str(missing), *[""] * (len(_PURE) + len(_CONCENTRATED) - 1)]
            continue
        rho = approximate(epsilon, "1e-6").rho
        calls = [partial(select_top_k, counts, k, epsilon=epsilon, **options) for options in _PURE.values()]
        calls += [partial(select_top_k, counts, k, rho=rho, **options) for options in _CONCENTRATED.values()]
        yield [name, epsilon, str(k), *(_cell(_errors(call, counts, k, runs)) for call in calls)]


def _counts(name: str) -> Scores:
    """The counts of a data set, or 4,096 Poisson counts around 1,000."""
    return np.random.default_rng(_SEED).poisson(1000, 4096) if name == "poisson" else histogram(name)


def _errors(call: Callable[[], list[int]], counts: Scores, k: int, runs: int) -> Scores:
    best = np.sort(counts)[-k:].sum()
    return np.array([(best - counts[call()].sum()) / k for _ in range(runs)])


def _cell(errors: Scores) -> str:
    half = _NORMAL * float(errors.std(ddof=1)) / math.sqrt(errors.size)
    if not half:
        return f"{errors.mean():g}"
    digits = max(1 - math.floor(math.log10(half)), 0) if half < 10 else 0  # two of the interval
    return f"{errors.mean():,.{digits}f} ± {half:,.{digits}f}"
