"""The figures of McKenna & Sheldon (2020): Sections 3 to 6, and the appendix on report noisy max.

Figures 1 and 4 show errors on score vectors (c, ..., c, 0), and the worst of them. Their p is
exp(epsilon c / (2 sensitivity)), with a gap c <= 0. Figure 2 shows optimality ratios over a range of epsilons, by the
solver. The others are about mode and median of the DPBench data: curves show the error against epsilon, down to an
error of one; bars show both mechanisms at the epsilon where the exponential mechanism's error is 50.
"""

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from dpselect.analysis import error_bounds, expected_error, worst_case_error
from dpselect.mechanisms import ExponentialMechanism, MechanismBase, PermuteAndFlip, ReportNoisyMax
from dpselect.optimality import THRESHOLD, Ratios
from dpselect.optimality.lattice import bounded_lattice
from dpselect.optimality.optimum import optimum
from dpselect.optimality.program import paper_program
from dpselect.research.experiment import KINDS, TASKS, Experiment, Material, Plot
from dpselect.research.plotting import (
    COLOURS,
    EXPONENTIAL,
    NOISY_MAX,
    NumberTable,
    draw_lines,
    of_bar,
    of_mechanism,
    of_number,
)

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
    return NumberTable(("mechanism", "p", "gap", "expected_error"), tuple(rows))


def draw_error_by_p(figure: Any, table: NumberTable) -> None:
    axes = figure.subplots()
    draw_lines(axes, table, "mechanism", "p", "expected_error", start=(0,))
    axes.set(xlabel=_P, ylabel=_ERROR, xlim=(0, 1), ylim=(0, None))
    axes.legend()


def ratio(p: float, n: int) -> float:
    """The exponential mechanism's error relative to permute-and-flip's; both lose by the same gap."""
    exponential, flip = (
        kind.worst.loss_probability(-math.log(p), math.log(n)) for kind in (ExponentialMechanism, PermuteAndFlip)
    )
    return exponential / flip


def ratio_by_p_table(_: Material) -> NumberTable:
    grid = np.geomspace(_SMALLEST, 1, _GRID).tolist()
    return NumberTable(("n", "p", "ratio"), tuple((n, p, ratio(p, n)) for n in RATIO_BY_P_CANDIDATES for p in grid))


def draw_ratio_by_p(figure: Any, table: NumberTable) -> None:
    axes = figure.subplots()
    draw_lines(axes, table, "n", "p", "ratio", lambda number, n: {"label": f"$n$ = {n:,}", **of_number(number)})
    axes.set(xlabel=_P, ylabel="error ratio, exponential / permute-and-flip")
    axes.set(xscale="log", xlim=(_SMALLEST, 1), ylim=(0.98, 2.02))
    axes.legend()


def worst_case_by_n_table(_: Material) -> NumberTable:
    sizes = np.unique(np.geomspace(2, _LARGEST, _SIZES).round().astype(np.int64)).tolist()
    rows = [(name, n, worst_case_error(kind(1), n).error) for name, kind in KINDS.items() for n in sizes]
    bounds = {n: error_bounds(PermuteAndFlip(1), n) for n in sizes}
    rows += [(UPPER, n, bounds[n].upper) for n in sizes] + [(LOWER, n, bounds[n].lower) for n in sizes]
    return NumberTable(("curve", "n", "expected_error"), tuple(rows))


_BOUND = {"color": COLOURS[5], "linewidth": 1.1}
_BOUNDS: dict[str, dict[str, Any]] = {
    UPPER: {"label": "upper bound, $2\\Delta \\log(n)/\\epsilon$", "linestyle": (0, (1, 1)), **_BOUND},
    LOWER: {"label": "lower bound, $\\Delta \\log(n)/2\\epsilon$", "linestyle": (0, (6, 2, 1, 2)), **_BOUND},
}


def draw_worst_case_by_n(figure: Any, table: NumberTable) -> None:
    axes = figure.subplots()
    draw_lines(axes, table, "curve", "n", "expected_error", lambda _, name: _BOUNDS.get(name) or of_mechanism(name))
    axes.set(xlabel="number of candidates $n$", ylabel="worst expected error (units of the score)")
    axes.set(xscale="log", xlim=(2, _LARGEST), ylim=(0, None))
    axes.legend()


def noisy_max_by_gap_table(_: Material) -> NumberTable:
    # The expected errors at epsilon = sensitivity = 1, from the probabilities.
    grid = np.linspace(_LOWEST, 0, _GAPS + 1).tolist()
    kinds: dict[str, type[MechanismBase]] = {**KINDS, NOISY_MAX: ReportNoisyMax}
    rows = [(name, c, expected_error(kind(1), [c, c, 0.0])) for name, kind in kinds.items() for c in grid]
    return NumberTable(("mechanism", "c", "expected_error"), tuple(rows))


def draw_noisy_max_by_gap(figure: Any, table: NumberTable) -> None:
    axes = figure.subplots()
    draw_lines(axes, table, "mechanism", "c", "expected_error")
    axes.set(xlabel="$c$ (units of the score)", ylabel=_ERROR, xlim=(_LOWEST, 0), ylim=(0, None))
    axes.set(xticks=[-20, -15, -10, -5, 0])
    axes.legend(loc="upper left")


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
    return NumberTable(("n", "k", "epsilon", "optimality_ratio"), tuple(rows))


def draw_ratios(figure: Any, table: NumberTable, by: str, limits: tuple[float, float] | None = None) -> None:
    # One line per lattice, and the threshold above which permute-and-flip is optimal.
    axes = figure.subplots()
    draw_lines(
        axes,
        table,
        by,
        "epsilon",
        "optimality_ratio",
        lambda number, value: {"label": f"${by}$ = {value}", **of_number(number)},
    )
    axes.axvline(THRESHOLD, color="0.45", linewidth=1, linestyle=(0, (2, 2)), zorder=0)
    text, place = " $\\log\\frac{3+\\sqrt{5}}{2}$", (THRESHOLD, 1)
    axes.annotate(text, place, xycoords=("data", "axes fraction"), va="top", color="0.3")
    axes.set(xscale="log", xlim=(min(table.column("epsilon")), max(table.column("epsilon"))))
    axes.set(xlabel="$\\epsilon$", ylabel="optimality ratio (1 = optimal)")
    axes.set(ylim=limits)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.legend()


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
    return NumberTable(("data_set", "mechanism", "epsilon", "expected_error", "people"), tuple(rows))


def _draw_errors(axes: Any, table: NumberTable) -> None:
    draw_lines(axes, table, "mechanism", "epsilon", "expected_error")
    axes.set(yscale="log", xlim=(0, max(table.column("epsilon"))), ylim=(1, None))
    axes.locator_params(axis="x", nbins=4, steps=[1, 2, 5, 10])
    axes.xaxis.set_major_formatter(lambda epsilon, _: f"{epsilon:g}")


def draw_one(figure: Any, table: NumberTable) -> Any:
    axes = figure.subplots()
    _draw_errors(axes, table)
    axes.set(xlabel="$\\epsilon$", ylabel=_ERROR)
    axes.legend()
    return axes


def draw_with_people(figure: Any, table: NumberTable) -> None:
    # The errors on one data set, with a second scale in people: the paper's scores count everybody twice.
    axes = draw_one(figure, table)
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
    return NumberTable(("task", "data_set", "epsilon", "mechanism", "expected_error", "people"), tuple(rows))


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


def _of_ratios(name: str, number: str, caption: str, sizes: Sizes, mechanism: str, **limits: Any) -> Plot:
    by = "n" if len({k for _, k in sizes}) == 1 else "k"
    return Plot(
        name,
        number,
        caption,
        lambda material: ratio_table(material, sizes, mechanism),
        lambda figure, table: draw_ratios(figure, table, by, **limits),
    )


def _on_hepth(task: str) -> Callable[[Material], NumberTable]:
    return lambda material: error_table([material.experiments.on("HEPTH", task)])


def _on_all(task: str) -> Callable[[Material], NumberTable]:
    return lambda material: error_table(material.experiments.of(task))


ERROR_BY_P = Plot(
    "figure-1a-error-by-p",
    "Figure 1 (a)",
    "Expected error on the scores (c, c, 0) as a function of p, for n = 3 and ε = Δ = 1.",
    error_by_p_table,
    draw_error_by_p,
)
RATIO_BY_P = Plot(
    "figure-1b-ratio-by-p",
    "Figure 1 (b)",
    "Expected error of the exponential mechanism relative to that of permute-and-flip on the scores (c, …, c, 0).",
    ratio_by_p_table,
    draw_ratio_by_p,
)
WORST_CASE_BY_N = Plot(
    "figure-1c-worst-case-by-n",
    "Figure 1 (c)",
    "Worst-case expected error against the number of candidates for ε = Δ = 1, between the analytic bounds.",
    worst_case_by_n_table,
    draw_worst_case_by_n,
)
NOISY_MAX_BY_GAP = Plot(
    "figure-4-noisy-max",
    "Figure 4",
    "Expected error of the three mechanisms on the scores (c, c, 0) for ε = Δ = 1.",
    noisy_max_by_gap_table,
    draw_noisy_max_by_gap,
)

FIGURES: tuple[Plot, ...] = (
    ERROR_BY_P,
    RATIO_BY_P,
    WORST_CASE_BY_N,
    _of_ratios(
        "figure-2a-optimality-by-n",
        "Figure 2 (a)",
        "Optimality ratio of permute-and-flip, k = 4, n = 3 to 6. Right of the dashed line it is proven to be one.",
        BY_CANDIDATES,
        "permute_and_flip",
    ),
    _of_ratios(
        "figure-2b-optimality-by-k",
        "Figure 2 (b)",
        "Optimality ratio of permute-and-flip, n = 4, k = 2, 4, 6, 8. Right of the dashed line it is proven to be one.",
        BY_DEPTH,
        "permute_and_flip",
    ),
    _of_ratios(
        "figure-2c-optimality-exponential",
        "Figure 2 (c)",
        "Optimality ratio of the exponential mechanism, n = 4, k = 2, 4, 6, 8.",
        BY_DEPTH,
        "exponential",
        limits=(0.98, 2.02),
    ),
    Plot(
        "figure-3a-hepth-mode",
        "Figure 3 (a)",
        "Expected error against ε for the mode of HEPTH, down to an error of one. Scores are twice the people.",
        _on_hepth("mode"),
        draw_with_people,
        needs_data=True,
    ),
    Plot(
        "figure-3b-hepth-median",
        "Figure 3 (b)",
        "Expected error against ε for the median of HEPTH, down to an error of one.",
        _on_hepth("median"),
        draw_one,
        needs_data=True,
    ),
    Plot(
        "figure-3c-median-bars",
        "Figure 3 (c)",
        "Expected error for the median of five data sets, at the ε where the exponential mechanism's is 50.",
        lambda material: bar_table(material.experiments.of("median")),
        draw_tasks,
        size=(5.4, 3.3),
        needs_data=True,
    ),
    NOISY_MAX_BY_GAP,
    Plot(
        "figure-5-five-modes",
        "Figure 5",
        "Expected error against ε for the mode of five data sets, down to an error of one. Scores are twice the"
        " people.",
        _on_all("mode"),
        draw_five,
        size=(7.6, 4.4),
        needs_data=True,
    ),
    Plot(
        "figure-6-five-medians",
        "Figure 6",
        "Expected error against ε for the median of five data sets, down to an error of one.",
        _on_all("median"),
        draw_five,
        size=(7.6, 4.4),
        needs_data=True,
    ),
    Plot(
        "figure-7-both-bars",
        "Figure 7",
        "Expected error for mode (scores are twice the people) and median of five data sets, at the ε where the"
        " exponential mechanism's is 50.",
        lambda material: bar_table(experiment for task in TASKS for experiment in material.experiments.of(task)),
        draw_tasks,
        size=(9.6, 3.4),
        needs_data=True,
    ),
)
