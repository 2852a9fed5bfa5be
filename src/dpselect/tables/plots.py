"""A figure of a private distribution function: the answers of several quantiles, with bounds on their errors.

Everything in it is the answer itself, or follows from public numbers. An error is a number of people. As a share of all
people it needs their number, which is private unless you say that it is public.
"""

import datetime
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Any

from dpselect import _validate
from dpselect._levels import read_levels
from dpselect.errors import InvalidType, InvalidValue
from dpselect.release import Answer
from dpselect.tables.candidates import group_text

# The colours of Okabe & Ito suit all kinds of colour vision. Markers distinguish the lines in greyscale.
_STYLES = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#56B4E9", "v"), ("#000000", "P"))
_RARE = 0.05
_MANY = 30  # levels, beyond which markers would touch


def plot_quantiles(
    answer: Answer, levels: Any, *, people: int | None = None, path: str | Path | None = None, **asked: Any
) -> Any:
    """Draw the answer of `Table.quantiles` as a distribution function.

    Args:
        answer: the answer, of a table or of a grouped table, which has a line for each group.
        levels: the levels, as the question had them: a list, or a name such as "deciles".
        people: the number of people (of rows, if the question is about rows), or of those in each group, if it is
            public. Then each level gets a bar with its error: 95 of 100 answers are within it, for any data.
        path: a file to save the figure to; it must end in .png, .svg or .pdf.
        asked: for the bars, what else the question had, as `questions.Quantiles` takes it: `lower`, `upper`
            and `step`, or `range`, or `candidates`; `max_rows`, `groups`, `max_groups` and `neighbours`. Dates
            stand for days there: for a column of timestamps, give timestamps, or the number of candidates.

    Returns:
        The matplotlib figure.

    Raises:
        InvalidType, InvalidValue: the levels are not those of the answer, or the file name has a different ending.
        MissingExtra: matplotlib is not installed.

    >>> import pyarrow
    >>> import dpselect
    >>> table = dpselect.open_table(pyarrow.table({"cost": list(range(1000))}))
    >>> answer = table.quantiles("cost", "quartiles", lower=0, upper=1000, epsilon=1)
    >>> figure = plot_quantiles(answer, "quartiles", people=1000, lower=0, upper=1000)
    >>> figure.axes[0].get_ylabel()
    'share of rows below'
    """
    from dpselect.analysis.comparison import matplotlib_figure, save_figure  # noqa: PLC0415 - SciPy is slow to import

    exact = read_levels(levels)
    lines = {group_text(group): own for group, own in answer.value.items()} if isinstance(answer.value, Mapping) else {}
    figure = matplotlib_figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    errors = None if people is None else _shares_off(answer, exact, people, asked)
    for (colour, marker), (name, values) in zip(cycle(_STYLES), (lines or {"": answer.value}).items(), strict=False):
        _draw_line(axes, exact, values, errors, color=colour, marker=marker if len(exact) <= _MANY else "", label=name)
    what = "rows" if "over rows" in answer.estimate else "people"
    axes.set(xlabel="value", ylabel=f"share of {what} below", ylim=(-0.02, 1.02), title=answer.estimate)
    axes.title.set(fontsize=9, wrap=True)
    axes.grid(visible=True, alpha=0.2)
    if lines:
        axes.legend(frameon=False)
    if errors is not None:
        axes.text(
            0.99, 0.02, "bars: 95 of 100 answers are within, for any data", transform=axes.transAxes, ha="right", size=8
        )
    if path is not None:
        save_figure(figure, path)
    return figure


def _draw_line(axes: Any, levels: tuple[Fraction, ...], values: Any, errors: list[float] | None, **style: Any) -> None:
    if not isinstance(values, list) or len(values) != len(levels):
        raise InvalidValue("levels must be those of the question: give the same ones as to quantiles")
    ordered = sorted(range(len(levels)), key=levels.__getitem__)
    xs, ys = [_drawn(values[i]) for i in ordered], [float(levels[i]) for i in ordered]
    if errors is None:
        axes.plot(xs, ys, markersize=4, **style)
        return
    # A share is between 0 and 1, and so is the bar.
    below = [min(y, error) for y, error in zip(ys, errors, strict=True)]
    above = [min(1 - y, error) for y, error in zip(ys, errors, strict=True)]
    axes.errorbar(xs, ys, yerr=(below, above), markersize=4, capsize=2, elinewidth=0.8, **style)


def _drawn(value: Any) -> Any:
    if isinstance(value, (int, float, datetime.date)):
        return value
    if not isinstance(value, Decimal):
        raise InvalidType("the answer must be that of quantiles: its values are numbers, dates or timestamps")
    return float(value)


def _shares_off(answer: Answer, levels: tuple[Fraction, ...], people: int, asked: Mapping[str, Any]) -> list[float]:
    from dpselect.mechanisms import MECHANISMS  # noqa: PLC0415 - only accuracy bars need it
    from dpselect.questions.quantiles import Quantiles, errors_by_level  # noqa: PLC0415 - as above

    number = _validate.count(1, 2**63, people=people)
    question = Quantiles(levels=list(levels), **asked)
    each = MECHANISMS[answer.mechanism](answer.epsilon / question.draws, **question.claim.arguments())
    return [error / number for error in errors_by_level(each, question.size, question.ascending, _RARE)]
