"""McKenna & Sheldon (2020), Figure 1 (a): expected error on (c, c, 0) against p = exp(epsilon c / (2 sensitivity))."""

import math
from typing import Any

import numpy as np

from dpselect.analysis import expected_error
from dpselect.paper.experiment import KINDS
from dpselect.paper.plot import Material, Plot
from dpselect.paper.style import of_mechanism
from dpselect.paper.table import Table

CANDIDATES = 3
_POINTS = 300


def table(_: Material) -> Table:
    """The expected errors of both mechanisms at epsilon = sensitivity = 1, from their probabilities."""
    rows = []
    for name, kind in KINDS.items():
        mechanism = kind(1)
        for p in np.linspace(0, 1, _POINTS + 1)[1:].tolist():
            gap = -math.log(p) / float(mechanism.rate)
            rows.append((name, p, gap, expected_error(mechanism, [-gap] * (CANDIDATES - 1) + [0.0])))
    return Table(("mechanism", "p", "gap", "expected_error"), tuple(rows))


def draw(figure: Any, table: Table) -> None:
    """One line a mechanism."""
    axes = figure.subplots()
    for name, p, error in table.series("mechanism", "p", "expected_error"):
        axes.plot([0, *p], [0, *error], label=name, **of_mechanism(name))
    axes.set(xlabel="$p = \\exp(\\epsilon c / 2\\Delta)$", ylabel="expected error (units of the score)")
    axes.set(xlim=(0, 1), ylim=(0, None))
    axes.legend()


PLOT = Plot(
    "figure-1a-error-by-p",
    "Figure 1 (a)",
    "Expected error on the scores (c, c, 0) as a function of p, for n = 3 and ε = Δ = 1.",
    table,
    draw,
)
