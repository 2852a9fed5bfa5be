"""McKenna & Sheldon (2020), Figure 1 (c): the worst-case expected error against n, with the analytic bounds."""

from typing import Any

import numpy as np

from dpselect.analysis import error_bounds, worst_case_error
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.paper.experiment import KINDS
from dpselect.paper.plot import Material, Plot
from dpselect.paper.style import COLOURS, of_mechanism
from dpselect.paper.table import Table

_LARGEST, _POINTS = 10**6, 80
UPPER, LOWER = "upper bound", "lower bound"


def table(_: Material) -> Table:
    """Worst cases and bounds at epsilon = sensitivity = 1."""
    sizes = np.unique(np.geomspace(2, _LARGEST, _POINTS).round().astype(np.int64)).tolist()
    rows = [(name, n, worst_case_error(kind(1), n).error) for name, kind in KINDS.items() for n in sizes]
    bounds = {n: error_bounds(PermuteAndFlip(1), n) for n in sizes}
    rows += [(UPPER, n, bounds[n].upper) for n in sizes] + [(LOWER, n, bounds[n].lower) for n in sizes]
    return Table(("curve", "n", "expected_error"), tuple(rows))


def draw(figure: Any, table: Table) -> None:
    """Two mechanisms between two bounds."""
    axes = figure.subplots()
    labels = {UPPER: "upper bound, $2\\Delta \\log(n)/\\epsilon$", LOWER: "lower bound, $\\Delta \\log(n)/2\\epsilon$"}
    dashes = {UPPER: (0, (1, 1)), LOWER: (0, (6, 2, 1, 2))}
    for name, n, error in table.series("curve", "n", "expected_error"):
        bound = {"color": COLOURS[5], "linestyle": dashes[name], "linewidth": 1.1} if name in labels else {}
        axes.plot(n, error, label=labels.get(name, name), **(bound or of_mechanism(name)))
    axes.set(xlabel="number of candidates $n$", ylabel="worst expected error (units of the score)")
    axes.set(xscale="log", xlim=(2, _LARGEST), ylim=(0, None))
    axes.legend()


PLOT = Plot(
    "figure-1c-worst-case-by-n",
    "Figure 1 (c)",
    "Worst-case expected error against the number of candidates for ε = Δ = 1, between the analytic bounds.",
    table,
    draw,
)
