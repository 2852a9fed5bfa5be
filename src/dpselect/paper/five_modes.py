"""McKenna & Sheldon (2020), Figure 5: expected error against epsilon for the mode of five data sets."""

from typing import Any

from dpselect.paper.error_curves import draw_five, error_table
from dpselect.paper.plot import Material, Plot
from dpselect.paper.table import Table


def table(material: Material) -> Table:
    """The errors of both mechanisms on each data set."""
    return error_table(material.experiments.of("mode"))


def draw(figure: Any, table: Table) -> None:
    """A panel a data set."""
    draw_five(figure, table)


PLOT = Plot(
    "figure-5-five-modes",
    "Figure 5",
    "Expected error against ε for the mode of five data sets, down to an error of one. Scores are twice the people.",
    table,
    draw,
    size=(7.6, 4.4),
    needs_data=True,
)
