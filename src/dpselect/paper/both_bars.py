"""McKenna & Sheldon (2020), Figure 7: mode and median of five data sets, where the exponential mechanism errs by 50."""

from typing import Any

from dpselect.paper.error_bars import bar_table, draw_bars
from dpselect.paper.experiment import TASKS
from dpselect.paper.plot import Material, Plot
from dpselect.paper.table import Table


def table(material: Material) -> Table:
    """The errors of both mechanisms on each data set."""
    return bar_table(experiment for task in TASKS for experiment in material.experiments.of(task))


def draw(figure: Any, table: Table) -> None:
    """A panel a task."""
    for axes, task in zip(figure.subplots(1, 2, sharey=True), TASKS, strict=True):
        draw_bars(axes, table.where(task=task))
        axes.set(title=task)
        axes.label_outer()


PLOT = Plot(
    "figure-7-both-bars",
    "Figure 7",
    "Expected error for mode (scores are twice the people) and median of five data sets, at the ε where the"
    " exponential mechanism's is 50.",
    table,
    draw,
    size=(9.6, 3.4),
    needs_data=True,
)
