"""McKenna & Sheldon (2020), Figures 1 and 4: errors on score vectors (c, ..., c, 0), and the worst of them.

Their p is exp(epsilon c / (2 sensitivity)), with a gap c <= 0.
"""

import math
from typing import Any

import numpy as np

from dpselect.analysis import error_bounds, expected_error, worst_case_error
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.research.paper.experiment import KINDS, Material, Plot
from dpselect.research.plotting import COLOURS, NOISY_MAX, NumberTable, of_mechanism, of_number

_P = "$p = \\exp(\\epsilon c / 2\\Delta)$"
ERROR_BY_P_CANDIDATES = 3
_ERROR_BY_P_POINTS = 300


def error_by_p_table(_: Material) -> NumberTable:
    """The expected errors of both mechanisms at epsilon = sensitivity = 1, from their probabilities."""
    rows = []
    for name, kind in KINDS.items():
        mechanism = kind(1)
        for p in np.linspace(0, 1, _ERROR_BY_P_POINTS + 1)[1:].tolist():
            gap = -math.log(p) / float(mechanism.rate)
            rows.append((name, p, gap, expected_error(mechanism, [-gap] * (ERROR_BY_P_CANDIDATES - 1) + [0.0])))
    return NumberTable(("mechanism", "p", "gap", "expected_error"), tuple(rows))


def draw_errors(figure: Any, table: NumberTable, x: str, label: str, start: tuple[float, ...] = (), **look: Any) -> Any:
    """Draw one line per mechanism, which may start at the origin."""
    axes = figure.subplots()
    for name, xs, errors in table.series("mechanism", x, "expected_error"):
        axes.plot([*start, *xs], [*start, *errors], label=name, **of_mechanism(name))
    axes.set(xlabel=label, ylabel="expected error (units of the score)", ylim=(0, None), **look)
    return axes


def draw_error_by_p(figure: Any, table: NumberTable) -> None:
    """Draw one line per mechanism, from p = 0."""
    draw_errors(figure, table, "p", _P, start=(0,), xlim=(0, 1)).legend()


ERROR_BY_P = Plot(
    "figure-1a-error-by-p",
    "Figure 1 (a)",
    "Expected error on the scores (c, c, 0) as a function of p, for n = 3 and ε = Δ = 1.",
    error_by_p_table,
    draw_error_by_p,
)


RATIO_BY_P_CANDIDATES = (2, 3, 10, 100, 1000)
_RATIO_BY_P_POINTS = 300
_SMALLEST = 1e-5


def ratio(p: float, n: int) -> float:
    """The exponential mechanism's error relative to permute-and-flip's; both lose by the same gap.

    >>> round(ratio(0.5, 2), 6)
    1.333333
    """
    exponential, flip = (
        kind.worst.loss_probability(-math.log(p), math.log(n)) for kind in (ExponentialMechanism, PermuteAndFlip)
    )
    return exponential / flip


def ratio_by_p_table(_: Material) -> NumberTable:
    """The ratios on a logarithmic grid of p."""
    grid = np.geomspace(_SMALLEST, 1, _RATIO_BY_P_POINTS).tolist()
    return NumberTable(("n", "p", "ratio"), tuple((n, p, ratio(p, n)) for n in RATIO_BY_P_CANDIDATES for p in grid))


def draw_ratio_by_p(figure: Any, table: NumberTable) -> None:
    """Draw one line per number of candidates."""
    axes = figure.subplots()
    for number, (n, p, ratios) in enumerate(table.series("n", "p", "ratio")):
        axes.plot(p, ratios, label=f"$n$ = {n:,}", **of_number(number))
    axes.set(xlabel=_P, ylabel="error ratio, exponential / permute-and-flip")
    axes.set(xscale="log", xlim=(_SMALLEST, 1), ylim=(0.98, 2.02))
    axes.legend()


RATIO_BY_P = Plot(
    "figure-1b-ratio-by-p",
    "Figure 1 (b)",
    "Expected error of the exponential mechanism relative to that of permute-and-flip on the scores (c, …, c, 0).",
    ratio_by_p_table,
    draw_ratio_by_p,
)


_LARGEST, _WORST_CASE_BY_N_POINTS = 10**6, 80
UPPER, LOWER = "upper bound", "lower bound"


def worst_case_by_n_table(_: Material) -> NumberTable:
    """Worst cases and bounds at epsilon = sensitivity = 1."""
    sizes = np.unique(np.geomspace(2, _LARGEST, _WORST_CASE_BY_N_POINTS).round().astype(np.int64)).tolist()
    rows = [(name, n, worst_case_error(kind(1), n).error) for name, kind in KINDS.items() for n in sizes]
    bounds = {n: error_bounds(PermuteAndFlip(1), n) for n in sizes}
    rows += [(UPPER, n, bounds[n].upper) for n in sizes] + [(LOWER, n, bounds[n].lower) for n in sizes]
    return NumberTable(("curve", "n", "expected_error"), tuple(rows))


def draw_worst_case_by_n(figure: Any, table: NumberTable) -> None:
    """Draw two mechanisms between two bounds."""
    axes = figure.subplots()
    labels = {UPPER: "upper bound, $2\\Delta \\log(n)/\\epsilon$", LOWER: "lower bound, $\\Delta \\log(n)/2\\epsilon$"}
    dashes = {UPPER: (0, (1, 1)), LOWER: (0, (6, 2, 1, 2))}
    for name, n, error in table.series("curve", "n", "expected_error"):
        bound = {"color": COLOURS[5], "linestyle": dashes[name], "linewidth": 1.1} if name in labels else {}
        axes.plot(n, error, label=labels.get(name, name), **(bound or of_mechanism(name)))
    axes.set(xlabel="number of candidates $n$", ylabel="worst expected error (units of the score)")
    axes.set(xscale="log", xlim=(2, _LARGEST), ylim=(0, None))
    axes.legend()


WORST_CASE_BY_N = Plot(
    "figure-1c-worst-case-by-n",
    "Figure 1 (c)",
    "Worst-case expected error against the number of candidates for ε = Δ = 1, between the analytic bounds.",
    worst_case_by_n_table,
    draw_worst_case_by_n,
)


_LOWEST, _NOISY_MAX_BY_GAP_POINTS = -20.0, 160


def noisy_max_by_gap_table(_: Material) -> NumberTable:
    """The expected errors at epsilon = sensitivity = 1, from the probabilities."""
    grid = np.linspace(_LOWEST, 0, _NOISY_MAX_BY_GAP_POINTS + 1).tolist()
    kinds: dict[str, type[MechanismBase]] = {**KINDS, NOISY_MAX: ReportNoisyMax}
    rows = [(name, c, expected_error(kind(1), [c, c, 0.0])) for name, kind in kinds.items() for c in grid]
    return NumberTable(("mechanism", "c", "expected_error"), tuple(rows))


def draw_noisy_max_by_gap(figure: Any, table: NumberTable) -> None:
    """Draw one line per mechanism."""
    ticks = [-20, -15, -10, -5, 0]
    draw_errors(figure, table, "c", "$c$ (units of the score)", xlim=(_LOWEST, 0), xticks=ticks).legend(
        loc="upper left"
    )


NOISY_MAX_BY_GAP = Plot(
    "figure-4-noisy-max",
    "Figure 4",
    "Expected error of the three mechanisms on the scores (c, c, 0) for ε = Δ = 1.",
    noisy_max_by_gap_table,
    draw_noisy_max_by_gap,
)
