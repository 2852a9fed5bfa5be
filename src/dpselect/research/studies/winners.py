"""Which mechanism wins for how many selections: both at the same total budget, in each of three currencies.

The error of a selection in the worst case is W / rate, and W depends only on the mechanism and on the number of
candidates. So the ratio of errors needs no data: it is the ratio of the W times the inverse ratio of the epsilons that
the budget buys.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from dpselect.analysis.promises import promise
from dpselect.mechanisms import ExponentialMechanism, MechanismBase, PermuteAndFlip
from dpselect.research import plotting
from dpselect.research.plotting import NumberTable
from dpselect.research.studies.procedures import Currency, plan

CANDIDATES = 1000
BUDGETS = (0.1, 1.0, 10.0)
SELECTIONS = (1, 2, 3, 5, 10, 20, 50, 100)
_COLUMNS = ("currency", "budget", "selections", "permute_and_flip", "exponential", "ratio")


def winners(
    budgets: Sequence[float] = BUDGETS,
    selections: Sequence[int] = SELECTIONS,
    currencies: Iterable[Currency] = Currency,
) -> NumberTable:
    """The worst-case expected error of one of many selections, and the ratio (above one: permute-and-flip wins).

    >>> [row[-1] > 1 for row in winners([1.0], [1, 10], [Currency.PURE, Currency.ZCDP]).rows]
    [True, True, False, False]
    """
    rows = []
    for currency in currencies:
        for budget in budgets:
            for count in selections:
                flip, soft = (_error(kind, currency, budget, count) for kind in (PermuteAndFlip, ExponentialMechanism))
                rows.append((currency.value, budget, count, flip, soft, soft / flip))
    return NumberTable(_COLUMNS, tuple(rows))


def _error(kind: type[MechanismBase], currency: Currency, budget: float, count: int) -> float:
    epsilon = plan(currency, kind, budget, count, measured=False).epsilon
    return promise(kind(epsilon, monotonic=True), CANDIDATES).average


def draw_winners(table: NumberTable) -> Any:
    """A matplotlib figure: the ratio of errors against the number of selections, with a line for each budget."""
    currencies = list(dict.fromkeys(table.column("currency")))
    figure = plotting.blank_figure(2.8 * len(currencies) + 0.6, 2.9)
    panels = figure.subplots(1, len(currencies), sharey=True, squeeze=False)[0]
    for axes, currency in zip(panels, currencies, strict=True):
        found = table.where(currency=currency)
        for budget, counts, ratios in found.series("budget", "selections", "ratio"):
            axes.plot(counts, ratios, marker="o", markersize=3, label=f"total $\\epsilon$ = {budget:g}")
        axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
        axes.set(xscale="log", xlabel="number of selections", title=currency)
    first, last = figure.axes[0], figure.axes[-1]
    first.set_ylabel("error of the exponential mechanism\nover that of permute-and-flip")
    first.set_ylim(0.45, 1.12)
    last.text(1, 1.03, "above the line permute-and-flip wins,", fontsize=7, va="bottom")
    last.text(1, 0.97, "below it the exponential mechanism", fontsize=7, va="top")
    first.legend(fontsize=7, loc="center")
    plotting.lay_out(figure)
    return figure
