"""McKenna & Sheldon (2020), Appendix "Report Noisy Max": three mechanisms on (c, c, 0)."""

from typing import Any

import numpy as np

from dpselect.analysis import expected_error
from dpselect.mechanisms.noisy_max import ReportNoisyMax
from dpselect.mechanisms.record import SelectionRecord
from dpselect.paper.experiment import KINDS
from dpselect.paper.plot import Material, Plot
from dpselect.paper.style import NOISY_MAX, of_mechanism
from dpselect.paper.table import Table

_LOWEST, _POINTS = -20.0, 160


def table(_: Material) -> Table:
    """The expected errors at epsilon = sensitivity = 1, from the probabilities."""
    grid = np.linspace(_LOWEST, 0, _POINTS + 1).tolist()
    kinds: dict[str, type[SelectionRecord]] = {**KINDS, NOISY_MAX: ReportNoisyMax}
    rows = [(name, c, expected_error(kind(1), [c, c, 0.0])) for name, kind in kinds.items() for c in grid]
    return Table(("mechanism", "c", "expected_error"), tuple(rows))


def draw(figure: Any, table: Table) -> None:
    """One line a mechanism."""
    axes = figure.subplots()
    for name, c, error in table.series("mechanism", "c", "expected_error"):
        axes.plot(c, error, label=name, **of_mechanism(name))
    axes.set(xlabel="$c$ (units of the score)", ylabel="expected error (units of the score)")
    axes.set(xlim=(_LOWEST, 0), ylim=(0, None), xticks=[-20, -15, -10, -5, 0])
    axes.legend(loc="upper left")


PLOT = Plot(
    "figure-4-noisy-max",
    "Figure 4",
    "Expected error of the three mechanisms on the scores (c, c, 0) for ε = Δ = 1.",
    table,
    draw,
)
