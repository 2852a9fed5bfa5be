"""The methods for the top k on the DPBench histograms: people short per item, against k.

The error is that of `analysis.top_k_error`: exact where a formula is cheap, otherwise the mean of simulated answers.
The counts are the same for people with one value and for people with many; only what a method must assume differs. In
zCDP an answer may cost the rho that implies (epsilon, delta), as in a ledger with that budget.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np

from dpselect._types import Counts
from dpselect.accounting.budget import rho_within
from dpselect.analysis import TopKError, top_k_error
from dpselect.mechanisms import ExponentialMechanism
from dpselect.research import plotting
from dpselect.research.plotting import NumberTable, Watch
from dpselect.research.studies.procedures import DELTA

KS = (2, 5, 10, 20, 50, 100)
EPSILONS = (0.1, 1.0)
ONE, MANY = "one value a person", "many values a person"
ZCDP_PEEL = "peel, zCDP"
# The methods in the order of their styles, and those of each kind of people.
METHODS = ("set", "noisy-counts", "one-shot", "peel", ZCDP_PEEL, "margin")
COMPARED = {ONE: METHODS[:5], MANY: ("one-shot", "peel", "margin")}
_LEAST = 1e-3  # a figure does not show smaller errors
_LARGEST_SEED = 2**31


@dataclass(frozen=True)
class TopKCase:
    """The error of one method on one data set, in people per item, with a 95 % interval."""

    people: str
    data_set: str
    epsilon: float
    k: int
    method: str
    error: float
    low: float
    high: float
    exact: bool

    @property
    def place(self) -> tuple[str, str, float, int]:
        """Return what all methods of a comparison share."""
        return self.people, self.data_set, self.epsilon, self.k


def top_k_cases(
    histograms: Mapping[str, Counts], runs: int, generator: np.random.Generator, watch: Watch
) -> tuple[TopKCase, ...]:
    """Every method on every data set, for every k and epsilon. A method is run once for both kinds of people."""
    places = [
        (name, epsilon, k) for name, counts in histograms.items() for epsilon in EPSILONS for k in KS if k < counts.size
    ]
    found: dict[tuple[str, float, int, str], TopKError] = {}
    for name, epsilon, k in watch(places, "Top k"):
        for method in METHODS:
            seed = int(generator.integers(_LARGEST_SEED))
            found[name, epsilon, k, method] = _error(histograms[name], epsilon, k, method, runs, seed)
    return tuple(
        TopKCase(people, *place, method, error.mean, error.low, error.high, error.exact)
        for people, methods in COMPARED.items()
        for place in places
        for method in methods
        for error in [found[*place, method]]
    )


def _error(counts: Counts, epsilon: float, k: int, method: str, runs: int, seed: int) -> TopKError:  # noqa: PLR0913, PLR0917
    """The error of a method. Only the set and noisy counts use that a person has one value."""
    options: dict[str, Any] = {"method": method, "epsilon": epsilon}
    if method == ZCDP_PEEL:
        rho = rho_within(Fraction(epsilon), Fraction(DELTA))
        options = {"method": "peel", "mechanism": ExponentialMechanism.name, "rho": rho}
    return top_k_error(counts, k, max_values=1, runs=runs, seed=seed, **options)


def top_k_table(cases: Iterable[TopKCase]) -> NumberTable:
    """All numbers."""
    return NumberTable(tuple(field.name for field in fields(TopKCase)), tuple(astuple(case) for case in cases))


@dataclass(frozen=True)
class TopKSummary:
    """A method for one kind of people: how often it has the smallest error, and its median error."""

    people: str
    method: str
    cases: int
    best: int
    median_error: float


def top_k_summaries(cases: Sequence[TopKCase]) -> tuple[TopKSummary, ...]:
    """One row for each kind of people and method. Errors below 0.001 people count as equal, and as equally good."""
    smallest: dict[tuple[Any, ...], float] = defaultdict(lambda: math.inf)
    for case in cases:
        smallest[case.place] = min(max(case.error, _LEAST), smallest[case.place])
    found = []
    for people, method in dict.fromkeys((case.people, case.method) for case in cases):
        own = [case for case in cases if (case.people, case.method) == (people, method)]
        best = sum(case.error <= smallest[case.place] for case in own)
        found.append(TopKSummary(people, method, len(own), best, median(case.error for case in own)))
    return tuple(found)


def draw_top_k(cases: Sequence[TopKCase]) -> Any:
    """A matplotlib figure: a row for each kind of people and epsilon, and a column for each data set."""
    rows = list(dict.fromkeys((case.people, case.epsilon) for case in cases))
    data_sets = list(dict.fromkeys(case.data_set for case in cases))
    figure = plotting.blank_figure(2.2 * len(data_sets) + 1.0, 1.9 * len(rows) + 0.9)
    grid = figure.subplots(len(rows), len(data_sets), squeeze=False, sharex=True, sharey=True)
    for panels, (people, epsilon) in zip(grid, rows, strict=True):
        for axes, name in zip(panels, data_sets, strict=True):
            own = [case for case in cases if (case.people, case.epsilon, case.data_set) == (people, epsilon, name)]
            _draw_panel(axes, own)
        panels[0].set_ylabel(f"{people},\n$\\epsilon$ = {epsilon:g}:\npeople short per item")
    for axes, name in zip(grid[0], data_sets, strict=True):
        axes.set_title(name)
    for axes in grid[-1]:
        axes.set_xlabel("k")
    grid[0][0].set_ylim(_LEAST, 2 * max(case.high for case in cases) + 2 * _LEAST)
    lines = {line.get_label(): line for panels in grid for line in panels[0].containers}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=len(lines))
    plotting.lay_out(figure)
    return figure


def _draw_panel(axes: Any, cases: Sequence[TopKCase]) -> None:
    """Draw means with their intervals on logarithmic axes. Smaller ones than the least are below the frame."""
    for method in dict.fromkeys(case.method for case in cases):
        own = [case for case in cases if case.method == method]
        means = [max(case.error, _LEAST**3) for case in own]
        below = [min(mean - case.low, 0.9 * mean) for mean, case in zip(means, own, strict=True)]
        above = [case.high - case.error if case.error else 0.0 for case in own]
        style = plotting.of_number(METHODS.index(method)) | {"markevery": 1}
        axes.errorbar([case.k for case in own], means, [below, above], label=method, capsize=2, **style)
    axes.set(xscale="log", yscale="log")
    ks = sorted({case.k for case in cases})
    axes.set_xticks(ks, [str(k) for k in ks])
    axes.minorticks_off()
