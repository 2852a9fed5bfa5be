"""Expected error against epsilon on a data set, down to an error of one: shared by the paper's Figures 3, 5 and 6."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from dpselect.paper.experiment import KINDS, Experiment
from dpselect.paper.style import EXPONENTIAL, of_mechanism
from dpselect.paper.table import Table

COLUMNS = ("data_set", "mechanism", "epsilon", "expected_error", "people")
_POINTS = 100


def error_table(experiments: Iterable[Experiment]) -> Table:
    """The errors of both mechanisms, from small epsilons to where the exponential mechanism's error is one."""
    rows = []
    for experiment in experiments:
        last = experiment.epsilon(EXPONENTIAL, 1.0)
        for name in KINDS:
            for epsilon in np.linspace(0, last, _POINTS + 1)[1:].tolist():
                error = experiment.error(name, epsilon)
                rows.append((experiment.data_set, name, epsilon, error, error * experiment.people))
    return Table(COLUMNS, tuple(rows))


def draw_errors(axes: Any, table: Table) -> None:
    """One line a mechanism, truncated where the error falls below one."""
    for name, epsilon, error in table.series("mechanism", "epsilon", "expected_error"):
        axes.plot(epsilon, error, label=name, **of_mechanism(name))
    axes.set(yscale="log", xlim=(0, max(table.column("epsilon"))), ylim=(1, None))
    axes.locator_params(axis="x", nbins=4, steps=[1, 2, 5, 10])
    axes.xaxis.set_major_formatter(lambda epsilon, _: f"{epsilon:g}")


def draw_one(figure: Any, table: Table) -> Any:
    """The errors on a single data set."""
    axes = figure.subplots()
    draw_errors(axes, table)
    axes.set(xlabel="$\\epsilon$", ylabel="expected error (units of the score)")
    axes.legend()
    return axes


def draw_five(figure: Any, table: Table) -> None:
    """A panel a data set, and the legend in the sixth place."""
    panels = figure.subplots(2, 3).flatten()
    data_sets = list(dict.fromkeys(table.column("data_set")))
    for axes, data_set in zip(panels, data_sets, strict=False):
        draw_errors(axes, table.where(data_set=data_set))
        axes.set(title=data_set)
    panels[-1].axis("off")
    panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center")
    figure.supxlabel("$\\epsilon$", fontsize=9)
    figure.supylabel("expected error (units of the score)", fontsize=9)
