"""McKenna & Sheldon (2020), Figure 3 (a): expected error against epsilon for the mode of HEPTH."""

from typing import Any

from dpselect.paper.error_curves import draw_one, error_table
from dpselect.paper.plot import Material, Plot
from dpselect.paper.table import Table


def table(material: Material) -> Table:
    """The errors of both mechanisms."""
    return error_table([material.experiments.on("HEPTH", "mode")])


def draw(figure: Any, table: Table) -> None:
    """One line a mechanism, and a second scale in people: the paper's scores count everybody twice."""
    axes = draw_one(figure, table)
    people = axes.secondary_yaxis("right", functions=(lambda error: error / 2, lambda error: error * 2))
    people.set_ylabel("expected error (people)")
    people.spines["right"].set_visible(True)


PLOT = Plot(
    "figure-3a-hepth-mode",
    "Figure 3 (a)",
    "Expected error against ε for the mode of HEPTH, down to an error of one. Scores are twice the people.",
    table,
    draw,
    needs_data=True,
)
