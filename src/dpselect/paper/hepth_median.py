"""McKenna & Sheldon (2020), Figure 3 (b): expected error against epsilon for the median of HEPTH."""

from typing import Any

from dpselect.paper.error_curves import draw_one, error_table
from dpselect.paper.plot import Material, Plot
from dpselect.paper.table import Table


def table(material: Material) -> Table:
    """The errors of both mechanisms."""
    return error_table([material.experiments.on("HEPTH", "median")])


def draw(figure: Any, table: Table) -> None:
    """One line a mechanism."""
    draw_one(figure, table)


PLOT = Plot(
    "figure-3b-hepth-median",
    "Figure 3 (b)",
    "Expected error against ε for the median of HEPTH, down to an error of one.",
    table,
    draw,
    needs_data=True,
)
