"""Run all studies and write a table, a summary and a figure for each. All data are public; the results are not private.

Two samples of errors are compared by their means, with Welch's (1947) confidence intervals at 95 percent. Each interval
is for one comparison: of twenty comparisons without any difference, one will seem to show one. A figure shows
error against budget, with a row for each currency and a column for each data set.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import stats

from dpselect import _validate
from dpselect._show import tracked
from dpselect._types import Floats
from dpselect.errors import DataNotAvailable, InvalidValue
from dpselect.mechanisms import ExponentialMechanism, PermuteAndFlip
from dpselect.questions.top_k_error import LEVEL, half_width
from dpselect.research import plotting
from dpselect.research.datasets import histograms
from dpselect.research.plotting import NumberTable, Watch, make_folder, write_figure, write_file
from dpselect.research.studies.procedures import Case, cases
from dpselect.research.studies.top_k import TopKCase, draw_top_k, top_k_cases, top_k_table
from dpselect.research.studies.winners import draw_winners, winners

FLIP, EXPONENTIAL = PermuteAndFlip.name, ExponentialMechanism.name
NO_DIFFERENCE = "no difference seen"


@dataclass(frozen=True)
class Mean:
    """A mean error, and half the width of its confidence interval."""

    value: float
    half_width: float


@dataclass(frozen=True)
class StudyComparison:
    """Both mechanisms on one case."""

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
    """The comparison of two samples of errors."""
    flip, soft = errors[FLIP], errors[EXPONENTIAL]
    task = case.task
    return StudyComparison(
        task.study,
        task.data_set,
        case.currency.value,
        case.budget,
        task.unit,
        mean_of(flip),
        mean_of(soft),
        better(flip, soft),
    )


def mean_of(errors: Floats) -> Mean:
    """The mean of a sample, with Student's interval."""
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
    """A matplotlib figure of one study."""
    currencies = list(dict.fromkeys(one.currency for one in comparisons))
    data_sets = list(dict.fromkeys(one.data_set for one in comparisons))
    figure = plotting.blank_figure(2.4 * len(data_sets) + 1.2, 2.1 * len(currencies) + 0.6)
    grid = figure.subplots(len(currencies), len(data_sets), squeeze=False, sharex=True, sharey="col")
    for row, currency in zip(grid, currencies, strict=True):
        for axes, data_set in zip(row, data_sets, strict=True):
            _panel(axes, [one for one in comparisons if (one.currency, one.data_set) == (currency, data_set)])
            axes.set_title(f"{data_set}: {currency}", fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("total budget $\\epsilon$")
    for row in grid:
        row[0].set_ylabel(f"error ({comparisons[0].unit})")
    grid[0][0].legend(fontsize=7)
    plotting.lay_out(figure)
    return figure


def _panel(axes: Any, comparisons: Sequence[StudyComparison]) -> None:
    """Draw means with their intervals on logarithmic axes. A mean of zero is left out."""
    for title, field in _TITLES.items():
        found = [(one.budget, getattr(one, field)) for one in comparisons if getattr(one, field).value > 0]
        budgets, means = [budget for budget, _ in found], [mean for _, mean in found]
        values = [mean.value for mean in means]
        below = [min(mean.half_width, 0.9 * mean.value) for mean in means]
        widths = [below, [mean.half_width for mean in means]]
        axes.errorbar(budgets, values, widths, label=title, capsize=2, **plotting.of_mechanism(title))
    axes.set(xscale="log", yscale="log")


_MEANS = ("permute_and_flip", "permute_and_flip_half_width", "exponential", "exponential_half_width")
_COLUMNS = ("study", "data_set", "currency", "budget", "unit", *_MEANS, "ratio", "better")
_FEWEST_RUNS = 2
_RUNS_OF_TOP_K = 10  # for each run of a larger mechanism: answers are faster to simulate


@dataclass(frozen=True)
class StudySummary:
    """One study in one unit: the number of cases in which each mechanism was better, and the median ratio of errors."""

    study: str
    currency: str
    cases: int
    permute_and_flip: int
    exponential: int
    ratio: float


@dataclass(frozen=True)
class Study:
    """What was written, and what is missing."""

    folder: Path
    runs: int
    comparisons: tuple[StudyComparison, ...]
    summaries: tuple[StudySummary, ...]
    top_k: tuple[TopKCase, ...]
    why_missing: str


def study(
    out: str | Path, data: str | Path | None = None, *, runs: int = 100, seed: int = 1, watch: Watch = tracked
) -> Study:
    """Compare both mechanisms inside larger ones; write `study.csv` and a figure (PNG, PDF) for each study.

    `winners.csv` and its figure say which mechanism wins for how many selections, in the worst case. `top_k.csv` and
    its figure compare the methods for the top k.

    `data` is the folder of the DPBench files. By default they are taken from the folder in DPSELECT_DPBENCH, or
    downloaded. Without any of these, only the studies that need no data are run.
    """
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


def summaries(comparisons: Iterable[StudyComparison]) -> tuple[StudySummary, ...]:
    """One row for each study and unit."""
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
    """All numbers."""
    rows = []
    for one in comparisons:
        means = (one.permute_and_flip, one.exponential)
        numbers = [number for mean in means for number in (mean.value, mean.half_width)]
        rows.append((one.study, one.data_set, one.currency, one.budget, one.unit, *numbers, one.ratio, one.better))
    return NumberTable(_COLUMNS, tuple(rows))
