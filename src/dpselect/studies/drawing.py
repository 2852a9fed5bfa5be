"""The figures of a study: error against budget, a row for each currency and a column for each data set."""

from collections.abc import Sequence
from typing import Any

from dpselect.paper import style
from dpselect.studies.comparison import Comparison

_NAMES = {style.FLIP: "permute_and_flip", style.EXPONENTIAL: "exponential"}


def draw(comparisons: Sequence[Comparison]) -> Any:
    """A matplotlib figure of one study."""
    currencies = list(dict.fromkeys(one.currency for one in comparisons))
    data_sets = list(dict.fromkeys(one.data_set for one in comparisons))
    figure = style.blank_figure(2.4 * len(data_sets) + 1.2, 2.1 * len(currencies) + 0.6)
    grid = figure.subplots(len(currencies), len(data_sets), squeeze=False, sharex=True, sharey="col")
    for row, currency in zip(grid, currencies, strict=True):
        for axes, data_set in zip(row, data_sets, strict=True):
            _panel(axes, [one for one in comparisons if (one.currency, one.data_set) == (currency, data_set)])
            axes.set_title(f"{data_set}: {currency}", fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("total budget $\\epsilon$")
    for row in grid:
        row[0].set_ylabel(f"error ({comparisons[0].unit})")
    grid[0][0].legend(fontsize=7)
    style.lay_out(figure)
    return figure


def _panel(axes: Any, comparisons: Sequence[Comparison]) -> None:
    """Means with their intervals on logarithmic axes; a mean of zero is not on them, and is left out."""
    for name, field in _NAMES.items():
        found = [(one.budget, getattr(one, field)) for one in comparisons if getattr(one, field).value > 0]
        budgets, means = [budget for budget, _ in found], [mean for _, mean in found]
        values = [mean.value for mean in means]
        below = [min(mean.half_width, 0.9 * mean.value) for mean in means]
        widths = [below, [mean.half_width for mean in means]]
        axes.errorbar(budgets, values, widths, label=name, capsize=2, **style.of_mechanism(name))
    axes.set(xscale="log", yscale="log")
