"""Figures of the analysis, with matplotlib."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpselect.errors import InvalidValue, MissingExtra

if TYPE_CHECKING:
    from dpselect.analysis.compare import Record

_ENDINGS = (".png", ".svg", ".pdf")
# Okabe & Ito's colours are told apart by all kinds of colour vision; dashes tell the lines apart in grey.
_STYLES = (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", ":"))


def comparison_figure(records: Sequence["Record"]) -> Any:
    """Expected error against epsilon, one line a mechanism, on logarithmic axes."""
    figure = _matplotlib_figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for (colour, dashes), name in zip(_STYLES, dict.fromkeys(r.mechanism for r in records), strict=False):
        points = sorted((r.epsilon, r.expected_error) for r in records if r.mechanism == name and r.expected_error > 0)
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, linestyle=dashes, marker=".", label=name)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="expected error (units of the scores)")
    axes.grid(visible=True, which="both", alpha=0.2)
    if axes.lines:
        axes.legend(frameon=False)
    return figure


def _matplotlib_figure(**options: Any) -> Any:
    try:
        return import_module("matplotlib.figure").Figure(**options)
    except ModuleNotFoundError:
        raise MissingExtra("plots need matplotlib: pip install 'dpselect[plot]'") from None


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure as PNG, SVG or PDF by the path's ending."""
    if Path(path).suffix.lower() not in _ENDINGS:
        raise InvalidValue(f"the plot's file name must end in {', '.join(_ENDINGS)}")
    figure.savefig(path, dpi=150)
