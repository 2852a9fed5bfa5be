"""Expected error against epsilon on a data set, down to an error of one: shared by the paper's Figures 3, 5 and 6.

Both mechanisms at the epsilon where the exponential mechanism's error is 50: shared by Figures 3 (c) and 7.

McKenna & Sheldon (2020), Figure 3 (a): expected error against epsilon for the mode of HEPTH.

McKenna & Sheldon (2020), Figure 3 (b): expected error against epsilon for the median of HEPTH.

McKenna & Sheldon (2020), Figure 5: expected error against epsilon for the mode of five data sets.

McKenna & Sheldon (2020), Figure 6: expected error against epsilon for the median of five data sets.

McKenna & Sheldon (2020), Figure 3 (c): the median of five data sets, where the exponential mechanism errs by 50.

McKenna & Sheldon (2020), Figure 7: mode and median of five data sets, where the exponential mechanism errs by 50.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from dpselect.research.paper.experiment import KINDS, TASKS, Experiment, Material, Plot
from dpselect.research.plotting import EXPONENTIAL, Table, of_bar, of_mechanism

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


BAR_COLUMNS = ("task", "data_set", "epsilon", "mechanism", "expected_error", "people")
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
    return Table(BAR_COLUMNS, tuple(rows))


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


def hepth_mode_table(material: Material) -> Table:
    """The errors of both mechanisms."""
    return error_table([material.experiments.on("HEPTH", "mode")])


def draw_hepth_mode(figure: Any, hepth_mode_table: Table) -> None:
    """One line a mechanism, and a second scale in people: the paper's scores count everybody twice."""
    axes = draw_one(figure, hepth_mode_table)
    people = axes.secondary_yaxis("right", functions=(lambda error: error / 2, lambda error: error * 2))
    people.set_ylabel("expected error (people)")
    people.spines["right"].set_visible(True)


HEPTH_MODE = Plot(
    "figure-3a-hepth-mode",
    "Figure 3 (a)",
    "Expected error against ε for the mode of HEPTH, down to an error of one. Scores are twice the people.",
    hepth_mode_table,
    draw_hepth_mode,
    needs_data=True,
)


def hepth_median_table(material: Material) -> Table:
    """The errors of both mechanisms."""
    return error_table([material.experiments.on("HEPTH", "median")])


def draw_hepth_median(figure: Any, hepth_median_table: Table) -> None:
    """One line a mechanism."""
    draw_one(figure, hepth_median_table)


HEPTH_MEDIAN = Plot(
    "figure-3b-hepth-median",
    "Figure 3 (b)",
    "Expected error against ε for the median of HEPTH, down to an error of one.",
    hepth_median_table,
    draw_hepth_median,
    needs_data=True,
)


def five_modes_table(material: Material) -> Table:
    """The errors of both mechanisms on each data set."""
    return error_table(material.experiments.of("mode"))


def draw_five_modes(figure: Any, five_modes_table: Table) -> None:
    """A panel a data set."""
    draw_five(figure, five_modes_table)


FIVE_MODES = Plot(
    "figure-5-five-modes",
    "Figure 5",
    "Expected error against ε for the mode of five data sets, down to an error of one. Scores are twice the people.",
    five_modes_table,
    draw_five_modes,
    size=(7.6, 4.4),
    needs_data=True,
)


def five_medians_table(material: Material) -> Table:
    """The errors of both mechanisms on each data set."""
    return error_table(material.experiments.of("median"))


def draw_five_medians(figure: Any, five_medians_table: Table) -> None:
    """A panel a data set."""
    draw_five(figure, five_medians_table)


FIVE_MEDIANS = Plot(
    "figure-6-five-medians",
    "Figure 6",
    "Expected error against ε for the median of five data sets, down to an error of one.",
    five_medians_table,
    draw_five_medians,
    size=(7.6, 4.4),
    needs_data=True,
)


def median_bars_table(material: Material) -> Table:
    """The errors of both mechanisms on each data set."""
    return bar_table(material.experiments.of("median"))


def draw_median_bars(figure: Any, median_bars_table: Table) -> None:
    """A pair of bars a data set."""
    draw_bars(figure.subplots(), median_bars_table)


MEDIAN_BARS = Plot(
    "figure-3c-median-bars",
    "Figure 3 (c)",
    "Expected error for the median of five data sets, at the ε where the exponential mechanism's is 50.",
    median_bars_table,
    draw_median_bars,
    size=(5.4, 3.3),
    needs_data=True,
)


def both_bars_table(material: Material) -> Table:
    """The errors of both mechanisms on each data set."""
    return bar_table(experiment for task in TASKS for experiment in material.experiments.of(task))


def draw_both_bars(figure: Any, both_bars_table: Table) -> None:
    """A panel a task."""
    for axes, task in zip(figure.subplots(1, 2, sharey=True), TASKS, strict=True):
        draw_bars(axes, both_bars_table.where(task=task))
        axes.set(title=task)
        axes.label_outer()


BOTH_BARS = Plot(
    "figure-7-both-bars",
    "Figure 7",
    "Expected error for mode (scores are twice the people) and median of five data sets, at the ε where the"
    " exponential mechanism's is 50.",
    both_bars_table,
    draw_both_bars,
    size=(9.6, 3.4),
    needs_data=True,
)
