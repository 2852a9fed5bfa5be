"""McKenna & Sheldon (2020), Figure 2 (b): the optimality ratio of permute-and-flip for n = 4 and k = 2, 4, 6, 8."""

from typing import Any

from dpselect.paper.plot import Material, Plot
from dpselect.paper.ratio_curves import BY_DEPTH, draw_ratios, ratio_table
from dpselect.paper.table import Table


def table(material: Material) -> Table:
    """The ratios by the linear program."""
    return ratio_table(material, BY_DEPTH, "permute_and_flip")


def draw(figure: Any, table: Table) -> None:
    """One line a depth of the lattice."""
    draw_ratios(figure, table, by="k")


PLOT = Plot(
    "figure-2b-optimality-by-k",
    "Figure 2 (b)",
    "Optimality ratio of permute-and-flip, n = 4, k = 2, 4, 6, 8. Right of the dashed line it is proven to be one.",
    table,
    draw,
)
