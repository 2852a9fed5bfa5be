"""McKenna & Sheldon (2020), Figure 2 (c): the optimality ratio of the exponential mechanism for n = 4."""

from typing import Any

from dpselect.paper.plot import Material, Plot
from dpselect.paper.ratio_curves import BY_DEPTH, draw_ratios, ratio_table
from dpselect.paper.table import Table


def table(material: Material) -> Table:
    """The ratios by the linear program."""
    return ratio_table(material, BY_DEPTH, "exponential")


def draw(figure: Any, table: Table) -> None:
    """One line a depth of the lattice."""
    axes = draw_ratios(figure, table, by="k")
    axes.set(ylim=(0.98, 2.02))


PLOT = Plot(
    "figure-2c-optimality-exponential",
    "Figure 2 (c)",
    "Optimality ratio of the exponential mechanism, n = 4, k = 2, 4, 6, 8.",
    table,
    draw,
)
