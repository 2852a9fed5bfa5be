"""McKenna & Sheldon (2020), Figure 3 (c): the median of five data sets, where the exponential mechanism errs by 50."""

from typing import Any

from dpselect.paper.error_bars import bar_table, draw_bars
from dpselect.paper.plot import Material, Plot
from dpselect.paper.table import Table


def table(material: Material) -> Table:
    """The errors of both mechanisms on each data set."""
    return bar_table(material.experiments.of("median"))


def draw(figure: Any, table: Table) -> None:
    """A pair of bars a data set."""
    draw_bars(figure.subplots(), table)


PLOT = Plot(
    "figure-3c-median-bars",
    "Figure 3 (c)",
    "Expected error for the median of five data sets, at the ε where the exponential mechanism's is 50.",
    table,
    draw,
    size=(5.4, 3.3),
    needs_data=True,
)
