"""Figures of the analysis, with matplotlib.

The three mechanisms side by side over a range of epsilons.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from dpselect import _validate
from dpselect._numbers import float_near
from dpselect._scores import as_vector
from dpselect._types import Number
from dpselect.analysis.error import error_quantile, expected_error
from dpselect.errors import InvalidType, InvalidValue, MissingExtra
from dpselect.mechanisms.parameters import stated
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.mechanisms.registry import KINDS

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


@dataclass(frozen=True)
class Record:
    """One mechanism at one epsilon. As private as the scores that it was computed from."""

    mechanism: str
    epsilon: float
    expected_error: float
    error_95: float  # the error that 95 of 100 selections stay within
    ratio: float  # expected error relative to permute-and-flip's; nan where both are zero


@dataclass(frozen=True, repr=False)
class Comparison:
    """A table of mechanisms by epsilons."""

    records: tuple[Record, ...]

    def __repr__(self) -> str:
        return f"Comparison({len(self.records)} records)"

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the records as dictionaries."""
        return [asdict(record) for record in self.records]

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame."""
        return _data_frame("pandas", self.to_dicts())

    def to_polars(self) -> Any:
        """Return a polars DataFrame."""
        return _data_frame("polars", self.to_dicts())

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a matplotlib figure of error against epsilon; saved as PNG, SVG or PDF by the path's ending."""
        from dpselect.analysis.compare import comparison_figure, save_figure  # noqa: PLC0415 - needs matplotlib

        figure = comparison_figure(self.records)
        if path is not None:
            save_figure(figure, path)
        return figure


def _data_frame(library: str, rows: list[dict[str, Any]]) -> Any:
    try:
        return import_module(library).DataFrame(rows)
    except ModuleNotFoundError:
        raise MissingExtra(f"to_{library} needs {library}: pip install {library}") from None


def compare(
    scores: Any,
    epsilons: Iterable[Number],
    sensitivity: Number | None = None,
    monotonic: bool = False,
    *,
    score_range: Number | None = None,
) -> Comparison:
    """Expected error and 95 % quantile of each mechanism at each epsilon, on these scores.

    >>> for record in compare([10, 8, 0], [1]).records:
    ...     print(record.mechanism, round(record.expected_error, 3), round(record.ratio, 3))
    permute-and-flip 0.397 1.0
    exponential 0.584 1.473
    noisy-max 0.592 1.492
    """
    if isinstance(epsilons, (str, bytes)) or not isinstance(epsilons, Iterable):
        raise InvalidType("epsilons must be a sequence of numbers: give for instance [0.1, 1]")
    exact = [_validate.exact_positive(epsilon=epsilon) for epsilon in epsilons]
    if not exact:
        raise InvalidValue("epsilons must have at least one number")
    claim, vector = stated(sensitivity, monotonic, score_range).arguments(), as_vector(scores)
    records: list[Record] = []
    for epsilon in exact:
        best = expected_error(PermuteAndFlip(epsilon, **claim), vector)
        for name, kind in KINDS.items():
            mechanism = kind(epsilon, **claim)
            error = expected_error(mechanism, vector)
            ratio = error / best if best else float("nan")
            records.append(
                Record(name.value, float_near(epsilon), error, error_quantile(mechanism, vector, 0.95), ratio)
            )
    return Comparison(tuple(records))
