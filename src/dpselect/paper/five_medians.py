"""McKenna & Sheldon (2020), Figure 6: expected error against epsilon for the median of five data sets."""

from typing import Any

from dpselect.paper.error_curves import draw_five, error_table
from dpselect.paper.plot import Material, Plot
from dpselect.paper.table import Table


def table(material: Material) -> Table:
    """The errors of both mechanisms on each data set."""
    return error_table(material.experiments.of("median"))


def draw(figure: Any, table: Table) -> None:
    """A panel a data set."""
    draw_five(figure, table)


PLOT = Plot(
    "figure-6-five-medians",
    "Figure 6",
    "Expected error against ε for the median of five data sets, down to an error of one.",
    table,
    draw,
    size=(7.6, 4.4),
    needs_data=True,
)
