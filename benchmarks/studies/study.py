"""Run all studies and write their tables and figures. All data are public; the results are not private.

**Larger mechanisms.** Both mechanisms run inside larger ones. Two samples of errors are compared by their means, with
Welch's (1947) confidence intervals at 95 percent. Each interval is for one comparison: of twenty comparisons without
any difference, one will seem to show one.

**Winners.** Which mechanism wins for how many selections, both at the same total budget, in each of three currencies.
The error of a selection in the worst case is W / rate, and W depends only on the mechanism and on the number of
candidates. So the ratio of errors needs no data: it is the ratio of the W times the inverse ratio of the epsilons that
the budget buys.

**Top k.** The methods for the top k on the DPBench histograms: people short per item, against k. The error is that of
`analysis.top_k_error`: exact where a formula is cheap, otherwise the mean of simulated answers. The counts are the same
for people with one value and for people with many; only what a method must assume differs. In zCDP an answer may cost
the rho that implies (epsilon, delta), as in a ledger with that budget.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from fractions import Fraction
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.studies.procedures import COMPARED, DELTA, Case, Currency, cases, plan
from dpselect import _validate
from dpselect._show import tracked
from dpselect._types import Counts, Floats
from dpselect.accounting.budget import rho_within
from dpselect.analysis import TopKError, top_k_error
from dpselect.analysis.measures import promise
from dpselect.errors import InvalidValue
from dpselect.mechanisms import ExponentialMechanism, PermuteAndFlip
from dpselect.research import plotting
from dpselect.research.datasets import available
from dpselect.research.plotting import Curves, NumberTable, make_folder, write_figure, write_file
from dpselect.top_k import LEVEL, half_width

FLIP, EXPONENTIAL = PermuteAndFlip.name, ExponentialMechanism.name
NO_DIFFERENCE = "no difference seen"


@dataclass(frozen=True)
class Mean:
    value: float
    half_width: float


@dataclass(frozen=True)
class StudyComparison:
    study: str
    data_set: str
    currency: str
    budget: float
    unit: str
    permute_and_flip: Mean
    exponential: Mean
    better: str

    @property
    def ratio(self) -> float:
        """The exponential mechanism's error over permute-and-flip's; one if both are zero."""
        theirs, ours = self.exponential.value, self.permute_and_flip.value
        return theirs / ours if ours else (math.inf if theirs else 1.0)


def compared(case: Case, errors: dict[str, Floats]) -> StudyComparison:
    flip, soft, task = errors[FLIP], errors[EXPONENTIAL], case.task
    place = (task.study, task.data_set, case.currency.value, case.budget, task.unit)
    return StudyComparison(*place, mean_of(flip), mean_of(soft), better(flip, soft))


def mean_of(errors: Floats) -> Mean:
    return Mean(float(errors.mean()), half_width(errors))


def better(flip: Floats, soft: Floats) -> str:
    """The mechanism with the smaller mean, if the interval of the difference excludes zero."""
    difference, spreads = float(soft.mean() - flip.mean()), (float(flip.std(ddof=1)), float(soft.std(ddof=1)))
    if any(spreads):
        samples = (flip.mean(), spreads[0], flip.size, soft.mean(), spreads[1], soft.size)
        seen = stats.ttest_ind_from_stats(*samples, equal_var=False).pvalue < 1 - LEVEL
    else:
        seen = difference != 0
    return NO_DIFFERENCE if not seen else FLIP if difference > 0 else EXPONENTIAL


def draw_means(axes: Any, points: list[tuple[float, float, float, float]], **style: Any) -> None:
    """Draw means on logarithmic axes: where, the mean, and by how much its interval goes below and above it."""
    xs, means, below, above = ([point[i] for point in points] for i in range(4))
    shown = [min(width, 0.9 * mean) for width, mean in zip(below, means, strict=True)]
    axes.errorbar(xs, means, [shown, above], capsize=2, **style)
    axes.set(xscale="log", yscale="log")


# What a comparison has of each mechanism that is compared.
_MEANS = (attrgetter("permute_and_flip"), attrgetter("exponential"))


def _grid(records: Sequence[Any], row_of: Callable[[Any], Any], sizes: tuple[float, ...], **options: Any) -> Any:
    # A figure with a row of panels for each value of `row_of` and a column for each data set, its array of panels, and
    # the records of each. The sizes are inches per column and beside them, and per row and beside them.
    rows, names = (list(dict.fromkeys(map(of, records))) for of in (row_of, attrgetter("data_set")))
    figure = plotting.blank_figure(sizes[0] * len(names) + sizes[1], sizes[2] * len(rows) + sizes[3])
    grid = figure.subplots(len(rows), len(names), squeeze=False, sharex=True, **options)
    places = [(row, name) for row in rows for name in names]
    own = [[one for one in records if (row_of(one), one.data_set) == place] for place in places]
    return figure, grid, list(zip(grid.flat, own, strict=True))


def draw(comparisons: Sequence[StudyComparison]) -> Any:
    """A figure of one study: error against budget, with a row for each currency and a column for each data set."""
    figure, grid, panels = _grid(comparisons, attrgetter("currency"), (2.4, 1.2, 2.1, 0.6), sharey="col")
    for axes, own in panels:
        for kind, mean_of_kind in zip(COMPARED, _MEANS, strict=True):
            means = [(one.budget, mean_of_kind(one)) for one in own]
            points = [(x, mean.value, mean.half_width, mean.half_width) for x, mean in means if mean.value]
            draw_means(axes, points, label=kind.title, **plotting.of_mechanism(kind.title))
        axes.set_title(f"{own[0].data_set}: {own[0].currency}", fontsize=8)
    for row in grid:
        row[0].set_ylabel(f"error ({comparisons[0].unit})")
    for axes in grid[-1]:
        axes.set_xlabel("total budget $\\epsilon$")
    grid[0][0].legend(fontsize=7)
    return figure


@dataclass(frozen=True)
class StudySummary:
    # One study in one unit: the number of cases in which each mechanism was better, and the median ratio of errors.

    study: str
    currency: str
    cases: int
    permute_and_flip: int
    exponential: int
    ratio: float


def summaries(comparisons: Iterable[StudyComparison]) -> tuple[StudySummary, ...]:
    groups: dict[tuple[str, str], list[StudyComparison]] = {}
    for one in comparisons:
        groups.setdefault((one.study, one.currency), []).append(one)
    found = []
    for (name, currency), group in groups.items():
        wins = Counter(one.better for one in group)
        ratios = [one.ratio for one in group if math.isfinite(one.ratio)]
        ratio = median(ratios) if ratios else math.inf
        found.append(StudySummary(name, currency, len(group), wins[FLIP], wins[EXPONENTIAL], ratio))
    return tuple(found)


def table(comparisons: Iterable[StudyComparison]) -> NumberTable:
    rows = []
    for one in comparisons:
        *case, flip, soft, verdict = astuple(one)
        rows.append((*case, *flip, *soft, one.ratio, verdict))
    means = ("permute_and_flip", "permute_and_flip_half_width", "exponential", "exponential_half_width")
    return NumberTable(("study", "data_set", "currency", "budget", "unit", *means, "ratio", "better"), rows)


CANDIDATES = 1000
WINNER_BUDGETS = (0.1, 1.0, 10.0)
SELECTIONS = (1, 2, 3, 5, 10, 20, 50, 100)


def winners(
    budgets: Sequence[float] = WINNER_BUDGETS,
    selections: Sequence[int] = SELECTIONS,
    currencies: Iterable[Currency] = Currency,
) -> NumberTable:
    """The worst-case expected error of one of many selections, and the ratio (above one: permute-and-flip wins)."""
    rows = []
    for currency, budget, count in itertools.product(currencies, budgets, selections):
        plans = [(kind, plan(currency, kind, budget, count, measured=False)) for kind in COMPARED]
        flip, soft = (promise(kind(each.epsilon, monotonic=True), CANDIDATES).average for kind, each in plans)
        rows.append((currency.value, budget, count, flip, soft, soft / flip))
    return NumberTable(("currency", "budget", "selections", "permute_and_flip", "exponential", "ratio"), rows)


def draw_winners(table: NumberTable) -> Any:
    currencies = list(dict.fromkeys(table.column("currency")))
    figure = plotting.blank_figure(2.8 * len(currencies) + 0.6, 2.9)
    panels = figure.subplots(1, len(currencies), sharey=True, squeeze=False)[0]
    style = {"marker": "o", "markersize": 3}
    budgets = Curves(
        ("budget", "selections", "ratio"), style=lambda _, one: {**style, "label": f"total $\\epsilon$ = {one:g}"}
    )
    for axes, currency in zip(panels, currencies, strict=True):
        budgets.lines(axes, table.where(currency=currency))
        axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
        axes.set(xscale="log", xlabel="number of selections", title=currency)
    first, last = figure.axes[0], figure.axes[-1]
    first.set_ylabel("error of the exponential mechanism\nover that of permute-and-flip")
    first.set_ylim(0.45, 1.12)
    last.text(1, 1.03, "above the line permute-and-flip wins,", fontsize=7, va="bottom")
    last.text(1, 0.97, "below it the exponential mechanism", fontsize=7, va="top")
    first.legend(fontsize=7, loc="center")
    return figure


KS = (2, 5, 10, 20, 50, 100)
EPSILONS = (0.1, 1.0)
ONE, MANY = "one value a person", "many values a person"
ZCDP_PEEL = "peel, zCDP"
# The methods in the order of their styles, and those of each kind of people.
METHODS = ("set", "noisy-counts", "one-shot", "peel", ZCDP_PEEL, "margin")
METHODS_OF = {ONE: METHODS[:5], MANY: ("one-shot", "peel", "margin")}
_LEAST = 1e-3  # a figure does not show smaller errors
_LARGEST_SEED = 2**31


@dataclass(frozen=True)
class TopKCase:
    # The error of one method on one data set, in people per item, with a 95 % interval.

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
        """What all methods of a comparison share."""
        return self.people, self.data_set, self.epsilon, self.k


def top_k_cases(histograms: Mapping[str, Counts], runs: int, generator: np.random.Generator) -> tuple[TopKCase, ...]:
    # Every method on every data set, for every k and epsilon. A method is run once for both kinds of people.
    places = [
        (name, epsilon, k) for name, counts in histograms.items() for epsilon in EPSILONS for k in KS if k < counts.size
    ]
    found: dict[tuple[str, float, int, str], TopKError] = {}
    for name, epsilon, k in tracked(places, "Top k"):
        for method in METHODS:
            seed = int(generator.integers(_LARGEST_SEED))
            found[name, epsilon, k, method] = _error(histograms[name], epsilon, k, method, runs, seed)
    return tuple(
        TopKCase(people, *place, method, error.mean, error.low, error.high, error.exact)
        for people, methods in METHODS_OF.items()
        for place in places
        for method in methods
        for error in [found[*place, method]]
    )


def _error(counts: Counts, epsilon: float, k: int, method: str, runs: int, seed: int) -> TopKError:  # noqa: PLR0913, PLR0917
    # The error of a method. Only the set and noisy counts use that a person has one value.
    options: dict[str, Any] = {"method": method, "epsilon": epsilon}
    if method == ZCDP_PEEL:
        rho = rho_within(Fraction(epsilon), Fraction(DELTA))
        options = {"method": "peel", "mechanism": ExponentialMechanism.name, "rho": rho}
    return top_k_error(counts, k, max_values=1, runs=runs, seed=seed, **options)


def top_k_table(cases: Iterable[TopKCase]) -> NumberTable:
    return NumberTable(tuple(field.name for field in fields(TopKCase)), [astuple(case) for case in cases])


@dataclass(frozen=True)
class TopKSummary:
    # A method for one kind of people: how often it has the smallest error, and its median error.

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
    # A figure with a row for each kind of people and epsilon, and a column for each data set.
    figure, grid, panels = _grid(cases, attrgetter("people", "epsilon"), (2.2, 1.0, 1.9, 0.9), sharey=True)
    for axes, own in panels:
        for method in dict.fromkeys(case.method for case in own):
            style = plotting.of_number(METHODS.index(method)) | {"markevery": 1}
            draw_means(axes, [_point(case) for case in own if case.method == method], label=method, **style)
        ks = sorted({case.k for case in own})
        axes.set_xticks(ks, [str(k) for k in ks])
        axes.minorticks_off()
        if axes in grid[:, 0]:
            axes.set_ylabel(f"{own[0].people},\n$\\epsilon$ = {own[0].epsilon:g}:\npeople short per item")
        if axes in grid[0]:
            axes.set_title(own[0].data_set)
    for axes in grid[-1]:
        axes.set_xlabel("k")
    grid[0][0].set_ylim(_LEAST, 2 * max(case.high for case in cases) + 2 * _LEAST)
    lines = {line.get_label(): line for axes in grid[:, 0] for line in axes.containers}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=len(lines))
    return figure


def _point(case: TopKCase) -> tuple[float, float, float, float]:
    mean = max(case.error, _LEAST**3)
    return case.k, mean, mean - case.low, case.high - case.error if case.error else 0.0


_FEWEST_RUNS = 2
_RUNS_OF_TOP_K = 10  # for each run of a larger mechanism: answers are faster to simulate


@dataclass(frozen=True)
class Study:
    folder: Path
    runs: int
    comparisons: tuple[StudyComparison, ...]
    summaries: tuple[StudySummary, ...]
    top_k: tuple[TopKCase, ...]
    why_missing: str


def study(out: str | Path, data: str | Path | None = None, *, runs: int = 100, seed: int = 1) -> Study:
    """Compare both mechanisms inside larger ones; write `study.csv` and a figure (PNG, PDF) for each study."""
    # `winners.csv` and its figure say which mechanism wins for how many selections, in the worst case. `top_k.csv` and
    # its figure compare the methods for the top k. `data` is the folder of the DPBench files. By default they are taken
    # from the folder in DPSELECT_DPBENCH, or downloaded. Without any of these, only the studies that need no data are
    # run.
    if _validate.count(runs=runs) < _FEWEST_RUNS:
        raise InvalidValue(f"runs must be >= {_FEWEST_RUNS}: one run has no confidence interval")
    generator = np.random.default_rng(_validate.count(seed=seed))
    with plotting.settings():  # raises an error if matplotlib is missing, before anything is computed
        found, why_missing = available(data)
        folder = make_folder(out)
        listed = tracked(cases(found, generator), "Cases")
        comparisons = tuple(compared(case, case.errors(runs, generator)) for case in listed)
        write_file(folder / "study.csv", table(comparisons).to_csv())
        for name in dict.fromkeys(one.study for one in comparisons):
            figure = draw([one for one in comparisons if one.study == name])
            write_figure(folder, name.replace(" ", "-").lower(), figure)
        won = winners()
        write_file(folder / "winners.csv", won.to_csv())
        write_figure(folder, "winners", draw_winners(won))
        top_k = top_k_cases(found, _RUNS_OF_TOP_K * runs, generator)
        if top_k:
            write_file(folder / "top_k.csv", top_k_table(top_k).to_csv())
            write_figure(folder, "top_k", draw_top_k(top_k))
    return Study(folder, runs, comparisons, summaries(comparisons), top_k, why_missing)
