"""McKenna & Sheldon (2020), Figure 2 (a): the optimality ratio of permute-and-flip for k = 4 and n = 3..6."""

from typing import Any

from dpselect.paper.plot import Material, Plot
from dpselect.paper.ratio_curves import BY_CANDIDATES, draw_ratios, ratio_table
from dpselect.paper.table import Table


def table(material: Material) -> Table:
    """The ratios by the linear program."""
    return ratio_table(material, BY_CANDIDATES, "permute_and_flip")


def draw(figure: Any, table: Table) -> None:
    """One line a number of candidates."""
    draw_ratios(figure, table, by="n")


PLOT = Plot(
    "figure-2a-optimality-by-n",
    "Figure 2 (a)",
    "Optimality ratio of permute-and-flip, k = 4, n = 3 to 6. Right of the dashed line it is proven to be one.",
    table,
    draw,
)
