"""Both mechanisms at the epsilon where the exponential mechanism's error is 50: shared by Figures 3 (c) and 7."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from dpselect.paper.experiment import KINDS, Experiment
from dpselect.paper.style import EXPONENTIAL, of_bar
from dpselect.paper.table import Table

COLUMNS = ("task", "data_set", "epsilon", "mechanism", "expected_error", "people")
ERROR = 50.0
_WIDTH = 0.4


def bar_table(experiments: Iterable[Experiment]) -> Table:
    """The errors of both mechanisms on each data set."""
    rows = []
    for experiment in experiments:
        epsilon = experiment.epsilon(EXPONENTIAL, ERROR)
        for name in reversed(KINDS):
            error = experiment.error(name, epsilon)
            rows.append((experiment.task, experiment.data_set, epsilon, name, error, error * experiment.people))
    return Table(COLUMNS, tuple(rows))


def draw_bars(axes: Any, table: Table) -> None:
    """A pair of bars a data set, with the errors on top and epsilon below."""
    for number, (name, _, errors) in enumerate(table.series("mechanism", "data_set", "expected_error")):
        bars = axes.bar(np.arange(len(errors)) + (number - 0.5) * _WIDTH, errors, _WIDTH, **of_bar(name))
        axes.bar_label(bars, fmt="%.1f", fontsize=7, padding=1)
    one = table.where(mechanism=EXPONENTIAL)
    names = zip(one.column("data_set"), one.column("epsilon"), strict=True)
    labels = [f"{name}\n$\\epsilon$ = {epsilon:.3g}" for name, epsilon in names]
    axes.set_xticks(range(len(labels)), labels, fontsize=7)
    axes.grid(visible=False, axis="x")
    axes.set(ylabel="expected error (units of the score)", ylim=(0, 1.22 * ERROR))
    axes.legend(loc="upper center", ncols=2)
