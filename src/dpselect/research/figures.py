"""The figures of McKenna & Sheldon (2020): Sections 3 to 6, and the appendix on report noisy max.

Figures 1 and 4 show errors on score vectors (c, ..., c, 0), and the worst of them. Their p is
exp(epsilon c / (2 sensitivity)), with a gap c <= 0. Figure 2 shows optimality ratios over a range of epsilons, by the
solver. The others are about mode and median of the DPBench data: curves show the error against epsilon, down to an
error of one; bars show both mechanisms at the epsilon where the exponential mechanism's error is 50.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dpselect.analysis import error_bounds, expected_error, worst_case_error
from dpselect.mechanisms import ExponentialMechanism, MechanismBase, PermuteAndFlip, ReportNoisyMax
from dpselect.optimality import THRESHOLD, Ratios
from dpselect.optimality.lattice import bounded_lattice
from dpselect.optimality.program import optimum, paper_program
from dpselect.research.datasets import KINDS, TASKS, Experiment, Material
from dpselect.research.plotting import (
    COLOURS,
    EXPONENTIAL,
    NOISY_MAX,
    Curves,
    NumberTable,
    of_bar,
    of_mechanism,
    of_number,
)

Draw = Callable[[Any, NumberTable], None]


@dataclass(frozen=True)
class Plot:
    """One figure: `table` computes its numbers, `draw` draws them on a matplotlib figure."""

    name: str  # of its files, which starts with its number in the paper
    caption: str
    table: Callable[[Material], NumberTable]
    draw: Draw
    size: tuple[float, float] = (4.6, 3.3)  # inches
    needs_data: bool = False

    @property
    def number(self) -> str:
        """The number in the paper: "Figure 2 (a)" if the name starts with "figure-2a"."""
        number, panel = re.findall(r"^figure-(\d)(\w?)-", self.name)[0]
        return f"Figure {number} ({panel})" if panel else f"Figure {number}"


_P = "$p = \\exp(\\epsilon c / 2\\Delta)$"
_ERROR = "expected error (units of the score)"
_GRID = 300  # values of p

ERROR_BY_P_CANDIDATES = 3
RATIO_BY_P_CANDIDATES = (2, 3, 10, 100, 1000)
UPPER, LOWER = "upper bound", "lower bound"
_SMALLEST = 1e-5  # p of a ratio
_LARGEST, _SIZES = 10**6, 80  # of the numbers of candidates
_LOWEST, _GAPS = -20.0, 160


def error_by_p_table(_: Material) -> NumberTable:
    # The expected errors of both mechanisms at epsilon = sensitivity = 1, from their probabilities.
    rows = []
    for name, kind in KINDS.items():
        mechanism = kind(1)
        for p in np.linspace(0, 1, _GRID + 1)[1:].tolist():
            gap = -math.log(p) / float(mechanism.rate)
            rows.append((name, p, gap, expected_error(mechanism, [-gap] * (ERROR_BY_P_CANDIDATES - 1) + [0.0])))
    return NumberTable(("mechanism", "p", "gap", "expected_error"), rows)


def ratio(p: float, n: int) -> float:
    """The exponential mechanism's error relative to permute-and-flip's; both lose by the same gap."""
    exponential, flip = (
        kind.worst.loss_probability(-math.log(p), math.log(n)) for kind in (ExponentialMechanism, PermuteAndFlip)
    )
    return exponential / flip


def ratio_by_p_table(_: Material) -> NumberTable:
    grid = np.geomspace(_SMALLEST, 1, _GRID).tolist()
    return NumberTable(("n", "p", "ratio"), [(n, p, ratio(p, n)) for n in RATIO_BY_P_CANDIDATES for p in grid])


def worst_case_by_n_table(_: Material) -> NumberTable:
    sizes = np.unique(np.geomspace(2, _LARGEST, _SIZES).round().astype(np.int64)).tolist()
    rows = [(name, n, worst_case_error(kind(1), n).error) for name, kind in KINDS.items() for n in sizes]
    bounds = {n: error_bounds(PermuteAndFlip(1), n) for n in sizes}
    rows += [(UPPER, n, bounds[n].upper) for n in sizes] + [(LOWER, n, bounds[n].lower) for n in sizes]
    return NumberTable(("curve", "n", "expected_error"), rows)


def noisy_max_by_gap_table(_: Material) -> NumberTable:
    # The expected errors at epsilon = sensitivity = 1, from the probabilities.
    grid = np.linspace(_LOWEST, 0, _GAPS + 1).tolist()
    kinds: dict[str, type[MechanismBase]] = {**KINDS, NOISY_MAX: ReportNoisyMax}
    rows = [(name, c, expected_error(kind(1), [c, c, 0.0])) for name, kind in kinds.items() for c in grid]
    return NumberTable(("mechanism", "c", "expected_error"), rows)


def _numbered(symbol: str) -> Callable[[int, Any], dict[str, Any]]:
    return lambda number, value: {"label": f"${symbol}$ = {value:,}", **of_number(number)}


_BOUND = {"color": COLOURS[5], "linewidth": 1.1}
_BOUNDS: dict[str, dict[str, Any]] = {
    UPPER: {"label": "upper bound, $2\\Delta \\log(n)/\\epsilon$", "linestyle": (0, (1, 1)), **_BOUND},
    LOWER: {"label": "lower bound, $\\Delta \\log(n)/2\\epsilon$", "linestyle": (0, (6, 2, 1, 2)), **_BOUND},
}


Sizes = tuple[tuple[int, int], ...]

BY_CANDIDATES: Sizes = ((3, 4), (4, 4), (5, 4), (6, 4))
BY_DEPTH: Sizes = ((4, 2), (4, 4), (4, 6), (4, 8))
LATTICES: Sizes = tuple(dict.fromkeys(BY_CANDIDATES + BY_DEPTH))


@lru_cache(maxsize=64)
def ratio_curve(n: int, k: int, epsilons: tuple[float, ...]) -> tuple[Ratios, ...]:
    """The optimality ratios of both mechanisms at each epsilon. Every program is solved, even if a proof exists."""
    program = paper_program(bounded_lattice(n, k))
    return tuple(optimum(program, epsilon, always_solve=True).ratios for epsilon in epsilons)


def ratio_table(material: Material, sizes: Sizes, mechanism: str) -> NumberTable:
    rows = [
        (n, k, epsilon, getattr(ratios, mechanism))
        for n, k in sizes
        for epsilon, ratios in zip(material.epsilons, ratio_curve(n, k, material.epsilons), strict=True)
    ]
    return NumberTable(("n", "k", "epsilon", "optimality_ratio"), rows)


def draw_ratios(figure: Any, table: NumberTable, by: str, limits: tuple[float, float] | None = None) -> None:
    # One line per lattice, and the threshold above which permute-and-flip is optimal.
    epsilons = table.column("epsilon")
    settings = {"xscale": "log", "xlim": (min(epsilons), max(epsilons)), "ylim": limits}
    names = {"xlabel": "$\\epsilon$", "ylabel": "optimality ratio (1 = optimal)"}
    Curves((by, "epsilon", "optimality_ratio"), settings | names, _numbered(by))(figure, table)
    [axes] = figure.axes
    axes.axvline(THRESHOLD, color="0.45", linewidth=1, linestyle=(0, (2, 2)), zorder=0)
    text, place = " $\\log\\frac{3+\\sqrt{5}}{2}$", (THRESHOLD, 1)
    axes.annotate(text, place, xycoords=("data", "axes fraction"), va="top", color="0.3")
    axes.ticklabel_format(axis="y", useOffset=False)


_POINTS = 100
ERROR = 50.0  # of the exponential mechanism, where bars compare both
_WIDTH = 0.4


def error_table(experiments: Iterable[Experiment]) -> NumberTable:
    """The errors of both mechanisms, from small epsilons to where the exponential mechanism's error is one."""
    rows = []
    for experiment in experiments:
        last = experiment.epsilon(EXPONENTIAL, 1.0)
        for name in KINDS:
            for epsilon in np.linspace(0, last, _POINTS + 1)[1:].tolist():
                error = experiment.error(name, epsilon)
                rows.append((experiment.data_set, name, epsilon, error, error * experiment.people))
    return NumberTable(("data_set", "mechanism", "epsilon", "expected_error", "people"), rows)


def _draw_errors(axes: Any, table: NumberTable) -> None:
    Curves(("mechanism", "epsilon", "expected_error")).lines(axes, table)
    axes.set(yscale="log", xlim=(0, max(table.column("epsilon"))), ylim=(1, None))
    axes.locator_params(axis="x", nbins=4, steps=[1, 2, 5, 10])
    axes.xaxis.set_major_formatter(lambda epsilon, _: f"{epsilon:g}")


def draw_one(figure: Any, table: NumberTable) -> None:
    axes = figure.subplots()
    _draw_errors(axes, table)
    axes.set(xlabel="$\\epsilon$", ylabel=_ERROR)
    axes.legend()


def draw_with_people(figure: Any, table: NumberTable) -> None:
    # The errors on one data set, with a second scale in people: the paper's scores count everybody twice.
    draw_one(figure, table)
    [axes] = figure.axes
    people = axes.secondary_yaxis("right", functions=(lambda error: error / 2, lambda error: error * 2))
    people.set_ylabel("expected error (people)")
    people.spines["right"].set_visible(True)


def draw_five(figure: Any, table: NumberTable) -> None:
    panels = figure.subplots(2, 3).flatten()
    for axes, data_set in zip(panels, dict.fromkeys(table.column("data_set")), strict=False):
        _draw_errors(axes, table.where(data_set=data_set))
        axes.set(title=data_set)
    panels[-1].axis("off")
    panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center")
    figure.supxlabel("$\\epsilon$", fontsize=9)
    figure.supylabel(_ERROR, fontsize=9)


def bar_table(experiments: Iterable[Experiment]) -> NumberTable:
    rows = []
    for experiment in experiments:
        epsilon = experiment.epsilon(EXPONENTIAL, ERROR)
        for name in reversed(KINDS):
            error = experiment.error(name, epsilon)
            rows.append((experiment.task, experiment.data_set, epsilon, name, error, error * experiment.people))
    return NumberTable(("task", "data_set", "epsilon", "mechanism", "expected_error", "people"), rows)


def _draw_bars(axes: Any, table: NumberTable) -> None:
    # A pair of bars per data set, with the errors on top and epsilon below.
    for number, (name, _, errors) in enumerate(table.series("mechanism", "data_set", "expected_error")):
        bars = axes.bar(np.arange(len(errors)) + (number - 0.5) * _WIDTH, errors, _WIDTH, **of_bar(name))
        axes.bar_label(bars, fmt="%.1f", fontsize=7, padding=1)
    one = table.where(mechanism=EXPONENTIAL)
    names = zip(one.column("data_set"), one.column("epsilon"), strict=True)
    labels = [f"{name}\n$\\epsilon$ = {epsilon:.3g}" for name, epsilon in names]
    axes.set_xticks(range(len(labels)), labels, fontsize=7)
    axes.grid(visible=False, axis="x")
    axes.set(ylabel=_ERROR, ylim=(0, 1.22 * ERROR))
    axes.legend(loc="upper center", ncols=2)


def draw_tasks(figure: Any, table: NumberTable) -> None:
    tasks = list(dict.fromkeys(table.column("task")))
    for axes, task in zip(figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0], tasks, strict=True):
        _draw_bars(axes, table.where(task=task))
        if len(tasks) > 1:
            axes.set(title=task)
        axes.label_outer()


def _of_ratios(name: str, sizes: Sizes, by: str, where: str) -> Plot:
    return Plot(
        name,
        f"Optimality ratio of permute-and-flip, {where}. Right of the dashed line it is proven to be one.",
        partial(ratio_table, sizes=sizes, mechanism="permute_and_flip"),
        partial(draw_ratios, by=by),
    )


def _of_errors(name: str, task: str, draw: Draw, data_set: str | None = None) -> Plot:
    unit = " Scores are twice the people." if task == "mode" else ""
    return Plot(
        name,
        f"Expected error against ε for the {task} of {data_set or 'five data sets'}, down to an error of one.{unit}",
        lambda material: error_table([material.on(data_set, task)] if data_set else material.of(task)),
        draw,
        size=Plot.size if data_set else (7.6, 4.4),
        needs_data=True,
    )


ERROR_BY_P = Plot(
    "figure-1a-error-by-p",
    "Expected error on the scores (c, c, 0) as a function of p, for n = 3 and ε = Δ = 1.",
    error_by_p_table,
    Curves(
        ("mechanism", "p", "expected_error"),
        {"xlabel": _P, "ylabel": _ERROR, "xlim": (0, 1), "ylim": (0, None)},
        start=(0,),
    ),
)
RATIO_BY_P = Plot(
    "figure-1b-ratio-by-p",
    "Expected error of the exponential mechanism relative to that of permute-and-flip on the scores (c, …, c, 0).",
    ratio_by_p_table,
    Curves(
        ("n", "p", "ratio"),
        {
            "xlabel": _P,
            "ylabel": "error ratio, exponential / permute-and-flip",
            "ylim": (0.98, 2.02),
            "xscale": "log",
            "xlim": (_SMALLEST, 1),
        },
        _numbered("n"),
    ),
)
WORST_CASE_BY_N = Plot(
    "figure-1c-worst-case-by-n",
    "Worst-case expected error against the number of candidates for ε = Δ = 1, between the analytic bounds.",
    worst_case_by_n_table,
    Curves(
        ("curve", "n", "expected_error"),
        {
            "xlabel": "number of candidates $n$",
            "ylabel": "worst expected error (units of the score)",
            "xscale": "log",
            "xlim": (2, _LARGEST),
            "ylim": (0, None),
        },
        lambda _, name: _BOUNDS.get(name) or of_mechanism(name),
    ),
)
NOISY_MAX_BY_GAP = Plot(
    "figure-4-noisy-max",
    "Expected error of the three mechanisms on the scores (c, c, 0) for ε = Δ = 1.",
    noisy_max_by_gap_table,
    Curves(
        ("mechanism", "c", "expected_error"),
        {
            "xlabel": "$c$ (units of the score)",
            "ylabel": _ERROR,
            "xlim": (_LOWEST, 0),
            "ylim": (0, None),
            "xticks": [-20, -15, -10, -5, 0],
        },
        legend="upper left",
    ),
)

FIGURES: tuple[Plot, ...] = (
    ERROR_BY_P,
    RATIO_BY_P,
    WORST_CASE_BY_N,
    _of_ratios("figure-2a-optimality-by-n", BY_CANDIDATES, "n", "k = 4, n = 3 to 6"),
    _of_ratios("figure-2b-optimality-by-k", BY_DEPTH, "k", "n = 4, k = 2, 4, 6, 8"),
    Plot(
        "figure-2c-optimality-exponential",
        "Optimality ratio of the exponential mechanism, n = 4, k = 2, 4, 6, 8.",
        partial(ratio_table, sizes=BY_DEPTH, mechanism="exponential"),
        partial(draw_ratios, by="k", limits=(0.98, 2.02)),
    ),
    _of_errors("figure-3a-hepth-mode", "mode", draw_with_people, "HEPTH"),
    _of_errors("figure-3b-hepth-median", "median", draw_one, "HEPTH"),
    Plot(
        "figure-3c-median-bars",
        "Expected error for the median of five data sets, at the ε where the exponential mechanism's is 50.",
        lambda material: bar_table(material.of("median")),
        draw_tasks,
        size=(5.4, 3.3),
        needs_data=True,
    ),
    NOISY_MAX_BY_GAP,
    _of_errors("figure-5-five-modes", "mode", draw_five),
    _of_errors("figure-6-five-medians", "median", draw_five),
    Plot(
        "figure-7-both-bars",
        "Expected error for mode (scores are twice the people) and median of five data sets, at the ε where the"
        " exponential mechanism's is 50.",
        lambda material: bar_table(material.of(*TASKS)),
        draw_tasks,
        size=(9.6, 3.4),
        needs_data=True,
    ),
)
