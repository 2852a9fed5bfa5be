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

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import stats

from dpselect import _validate
from dpselect._show import tracked
from dpselect._types import Counts, Floats
from dpselect.accounting.budget import rho_within
from dpselect.analysis import TopKError, top_k_error
from dpselect.analysis.measures import promise
from dpselect.errors import DataNotAvailable, InvalidValue
from dpselect.mechanisms import ExponentialMechanism, MechanismBase, PermuteAndFlip
from dpselect.research import plotting
from dpselect.research.datasets import histograms
from dpselect.research.plotting import NumberTable, Watch, draw_lines, draw_means, make_folder, write_figure, write_file
from dpselect.research.procedures import DELTA, Case, Currency, cases, plan
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
    case_of = (task.study, task.data_set, case.currency.value, case.budget, task.unit)
    return StudyComparison(*case_of, mean_of(flip), mean_of(soft), better(flip, soft))


def mean_of(errors: Floats) -> Mean:
    return Mean(float(errors.mean()), half_width(errors))


def better(flip: Floats, soft: Floats) -> str:
    """The mechanism with the smaller mean, if the interval of the difference excludes zero."""
    parts = [float(errors.var(ddof=1)) / errors.size for errors in (flip, soft)]
    difference, variance = float(soft.mean() - flip.mean()), sum(parts)
    if not variance:
        return NO_DIFFERENCE if not difference else FLIP if difference > 0 else EXPONENTIAL
    freedom = variance**2 / sum(part**2 / (errors.size - 1) for part, errors in zip(parts, (flip, soft), strict=True))
    if abs(difference) <= stats.t.ppf((1 + LEVEL) / 2, freedom) * math.sqrt(variance):
        return NO_DIFFERENCE
    return FLIP if difference > 0 else EXPONENTIAL


_TITLES = {PermuteAndFlip.title: "permute_and_flip", ExponentialMechanism.title: "exponential"}


def draw(comparisons: Sequence[StudyComparison]) -> Any:
    """A figure of one study: error against budget, with a row for each currency and a column for each data set."""
    currencies = list(dict.fromkeys(one.currency for one in comparisons))
    data_sets = list(dict.fromkeys(one.data_set for one in comparisons))
    figure = plotting.blank_figure(2.4 * len(data_sets) + 1.2, 2.1 * len(currencies) + 0.6)
    grid = figure.subplots(len(currencies), len(data_sets), squeeze=False, sharex=True, sharey="col")
    for row, currency in zip(grid, currencies, strict=True):
        for axes, data_set in zip(row, data_sets, strict=True):
            own = [one for one in comparisons if (one.currency, one.data_set) == (currency, data_set)]
            for title, field in _TITLES.items():
                means = {one.budget: getattr(one, field) for one in own}
                points = [(x, mean.value, mean.half_width, mean.half_width) for x, mean in means.items() if mean.value]
                draw_means(axes, points, label=title, **plotting.of_mechanism(title))
            axes.set_title(f"{data_set}: {currency}", fontsize=8)
        row[0].set_ylabel(f"error ({comparisons[0].unit})")
    for axes in grid[-1]:
        axes.set_xlabel("total budget $\\epsilon$")
    grid[0][0].legend(fontsize=7)
    plotting.lay_out(figure)
    return figure


_MEANS = ("permute_and_flip", "permute_and_flip_half_width", "exponential", "exponential_half_width")
_COLUMNS = ("study", "data_set", "currency", "budget", "unit", *_MEANS, "ratio", "better")


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
        means = (one.permute_and_flip, one.exponential)
        numbers = [number for mean in means for number in (mean.value, mean.half_width)]
        rows.append((one.study, one.data_set, one.currency, one.budget, one.unit, *numbers, one.ratio, one.better))
    return NumberTable(_COLUMNS, tuple(rows))


CANDIDATES = 1000
WINNER_BUDGETS = (0.1, 1.0, 10.0)
SELECTIONS = (1, 2, 3, 5, 10, 20, 50, 100)
_WINNER_COLUMNS = ("currency", "budget", "selections", "permute_and_flip", "exponential", "ratio")


def winners(
    budgets: Sequence[float] = WINNER_BUDGETS,
    selections: Sequence[int] = SELECTIONS,
    currencies: Iterable[Currency] = Currency,
) -> NumberTable:
    """The worst-case expected error of one of many selections, and the ratio (above one: permute-and-flip wins)."""
    rows = []
    for currency in currencies:
        for budget in budgets:
            for count in selections:
                flip, soft = (
                    _worst_error(kind, currency, budget, count) for kind in (PermuteAndFlip, ExponentialMechanism)
                )
                rows.append((currency.value, budget, count, flip, soft, soft / flip))
    return NumberTable(_WINNER_COLUMNS, tuple(rows))


def _worst_error(kind: type[MechanismBase], currency: Currency, budget: float, count: int) -> float:
    epsilon = plan(currency, kind, budget, count, measured=False).epsilon
    return promise(kind(epsilon, monotonic=True), CANDIDATES).average


def draw_winners(table: NumberTable) -> Any:
    currencies = list(dict.fromkeys(table.column("currency")))
    figure = plotting.blank_figure(2.8 * len(currencies) + 0.6, 2.9)
    panels = figure.subplots(1, len(currencies), sharey=True, squeeze=False)[0]
    for axes, currency in zip(panels, currencies, strict=True):
        draw_lines(
            axes,
            table.where(currency=currency),
            "budget",
            "selections",
            "ratio",
            lambda _, budget: {"marker": "o", "markersize": 3, "label": f"total $\\epsilon$ = {budget:g}"},
        )
        axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
        axes.set(xscale="log", xlabel="number of selections", title=currency)
    first, last = figure.axes[0], figure.axes[-1]
    first.set_ylabel("error of the exponential mechanism\nover that of permute-and-flip")
    first.set_ylim(0.45, 1.12)
    last.text(1, 1.03, "above the line permute-and-flip wins,", fontsize=7, va="bottom")
    last.text(1, 0.97, "below it the exponential mechanism", fontsize=7, va="top")
    first.legend(fontsize=7, loc="center")
    plotting.lay_out(figure)
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


def top_k_cases(
    histograms: Mapping[str, Counts], runs: int, generator: np.random.Generator, watch: Watch
) -> tuple[TopKCase, ...]:
    # Every method on every data set, for every k and epsilon. A method is run once for both kinds of people.
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
    return NumberTable(tuple(field.name for field in fields(TopKCase)), tuple(astuple(case) for case in cases))


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
    rows = list(dict.fromkeys((case.people, case.epsilon) for case in cases))
    data_sets = list(dict.fromkeys(case.data_set for case in cases))
    figure = plotting.blank_figure(2.2 * len(data_sets) + 1.0, 1.9 * len(rows) + 0.9)
    grid = figure.subplots(len(rows), len(data_sets), squeeze=False, sharex=True, sharey=True)
    for panels, (people, epsilon) in zip(grid, rows, strict=True):
        for axes, name in zip(panels, data_sets, strict=True):
            own = [case for case in cases if (case.people, case.epsilon, case.data_set) == (people, epsilon, name)]
            for method in dict.fromkeys(case.method for case in own):
                style = plotting.of_number(METHODS.index(method)) | {"markevery": 1}
                points = [_point(case) for case in own if case.method == method]
                draw_means(axes, points, label=method, **style)
            ks = sorted({case.k for case in own})
            axes.set_xticks(ks, [str(k) for k in ks])
            axes.minorticks_off()
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


def study(
    out: str | Path, data: str | Path | None = None, *, runs: int = 100, seed: int = 1, watch: Watch = tracked
) -> Study:
    """Compare both mechanisms inside larger ones; write `study.csv` and a figure (PNG, PDF) for each study."""
    # `winners.csv` and its figure say which mechanism wins for how many selections, in the worst case. `top_k.csv` and
    # its figure compare the methods for the top k. `data` is the folder of the DPBench files. By default they are taken
    # from the folder in DPSELECT_DPBENCH, or downloaded. Without any of these, only the studies that need no data are
    # run.
    if _validate.count(runs=runs) < _FEWEST_RUNS:
        raise InvalidValue(f"runs must be >= {_FEWEST_RUNS}: one run has no confidence interval")
    generator = np.random.default_rng(_validate.count(seed=seed))
    with plotting.settings():  # raises an error if matplotlib is missing, before anything is computed
        try:
            found, why_missing = histograms(data), ""
        except DataNotAvailable as error:
            found, why_missing = {}, str(error)
        folder = make_folder(out)
        listed = watch(cases(found, generator), "Cases")
        comparisons = tuple(compared(case, case.errors(runs, generator)) for case in listed)
        write_file(folder / "study.csv", table(comparisons).to_csv())
        for name in dict.fromkeys(one.study for one in comparisons):
            figure = draw([one for one in comparisons if one.study == name])
            write_figure(folder, name.replace(" ", "-").lower(), figure)
        won = winners()
        write_file(folder / "winners.csv", won.to_csv())
        write_figure(folder, "winners", draw_winners(won))
        top_k = top_k_cases(found, _RUNS_OF_TOP_K * runs, generator, watch)
        if top_k:
            write_file(folder / "top_k.csv", top_k_table(top_k).to_csv())
            write_figure(folder, "top_k", draw_top_k(top_k))
    return Study(folder, runs, comparisons, summaries(comparisons), top_k, why_missing)
