"""Compare all mechanisms over a range of epsilons: as a table and as a figure."""

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib import import_module
from itertools import cycle
from pathlib import Path
from typing import Any, ClassVar

from dpselect import _show, _validate
from dpselect._messages import install_command
from dpselect._numbers import NEAREST, NONE, float_near, shown
from dpselect._scores import as_vector
from dpselect._show import tracked
from dpselect._types import Number
from dpselect.analysis.measures import error_quantile, expected_error
from dpselect.errors import InvalidType, InvalidValue, MissingExtra
from dpselect.mechanisms import MECHANISMS
from dpselect.mechanisms.parameters import stated
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip

_ENDINGS = (".png", ".svg", ".pdf")
_DOTS_PER_INCH = 100
_NEGLIGIBLE = 1e-6  # of the largest error: a figure does not show less
# The colours of Okabe & Ito suit all kinds of colour vision. Dashes distinguish the lines in greyscale.
_STYLES = (
    ("#0072B2", "-"),
    ("#D55E00", "--"),
    ("#009E73", ":"),
    ("#CC79A7", "-."),
    ("#000000", (0, (3, 1, 1, 1, 1, 1))),
)


def matplotlib_figure(**options: Any) -> Any:
    """An empty figure that no window shows, and that notebooks show as a picture, without a magic command."""
    # `%matplotlib inline` teaches a notebook to show all figures; it then shows this one in its own way.
    try:
        figure: Any = import_module("matplotlib.figure").Figure
    except ModuleNotFoundError:
        raise MissingExtra(f"plots need matplotlib: {install_command('matplotlib')}") from None

    def png(self: Any) -> bytes:
        written = io.BytesIO()
        self.savefig(written, format="png", dpi=_DOTS_PER_INCH)
        return written.getvalue()

    return type("Picture", (figure,), {"_repr_png_": png})(**options)


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure as PNG, SVG or PDF, depending on the ending of the path."""
    if Path(path).suffix.lower() not in _ENDINGS:
        raise InvalidValue(f"the file name of the plot must end in {', '.join(_ENDINGS)}")
    figure.savefig(path, dpi=150)


@dataclass(frozen=True)
class Record:
    """The errors of one mechanism at one epsilon. They are as private as the scores."""

    mechanism: str
    epsilon: float
    expected_error: float
    error_95: float  # 95 of 100 selections have at most this error
    ratio: float  # expected error relative to permute-and-flip's; nan if both are zero


@dataclass(frozen=True, repr=False)
class Records(ABC):
    """Records that can be turned into tables and a figure. They are as private as the scores.

    Attributes:
        records: the records, each a frozen dataclass with an `epsilon` and an `expected_error`.

    Raises:
        MissingExtra: pandas, polars or matplotlib is not installed.
        InvalidValue: the file name of a plot does not end in .png, .svg or .pdf.
    """

    _series: ClassVar[str]  # the field of a record that distinguishes the lines of a figure
    _unit: ClassVar[str]  # of the errors

    records: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.records)} records)"

    def _repr_html_(self) -> str:
        # a row for each epsilon, and columns for each line of the figure
        names = list(dict.fromkeys(getattr(record, self._series) for record in self.records))
        rows: dict[float, dict[str, dict[str, str]]] = {}
        for record in self.records:
            rows.setdefault(record.epsilon, {})[getattr(record, self._series)] = self._cells(record)
        heads = {name: list(next(row[name] for row in rows.values() if name in row)) for name in names}
        body = (
            [shown(epsilon, NEAREST), *(row.get(name, {}).get(head, NONE) for name in names for head in heads[name])]
            for epsilon, row in rows.items()
        )
        return _show.page(
            _show.table(
                ["epsilon", *(head for name in names for head in heads[name])],
                body,
                caption=f"Expected error in {self._unit}",
                spans=[("", 1), *((name, len(heads[name])) for name in names)],
                is_numeric=True,
            ),
            _show.paragraph("These numbers are as private as the scores. plot() draws them."),
        )

    @staticmethod
    @abstractmethod
    def _cells(record: Any) -> dict[str, str]: ...  # by the heads of their columns

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the records as dictionaries, with a key for each field.

        >>> compare([10, 8, 0], [1]).to_dicts()[0]["mechanism"]
        'permute-and-flip'
        """
        return [asdict(record) for record in self.records]

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with a row for each record.

        >>> compare([10, 8, 0], [1]).to_pandas()["mechanism"].tolist()
        ['permute-and-flip', 'exponential', 'noisy-max']
        """
        return _data_frame("pandas", self.to_dicts())

    def to_polars(self) -> Any:
        """Return a polars DataFrame with a row for each record.

        >>> compare([10, 8, 0], [1]).to_polars()["mechanism"].to_list()
        ['permute-and-flip', 'exponential', 'noisy-max']
        """
        return _data_frame("polars", self.to_dicts())

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a matplotlib figure of error against epsilon.

        Args:
            path: a file to save the figure to; it must end in .png, .svg or .pdf.

        >>> figure = compare([10, 8, 0], [0.1, 1]).plot()
        >>> len(figure.axes[0].lines)
        3
        """
        figure = matplotlib_figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        names = dict.fromkeys(getattr(record, self._series) for record in self.records)
        for (colour, dashes), name in zip(cycle(_STYLES), names, strict=False):
            own = [record for record in self.records if getattr(record, self._series) == name]
            points = sorted((record.epsilon, record.expected_error) for record in own if record.expected_error > 0)
            if points:
                axes.plot(*zip(*points, strict=True), color=colour, linestyle=dashes, marker=".", label=name)
        axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel=f"expected error ({self._unit})")
        axes.grid(visible=True, which="both", alpha=0.2)
        if axes.lines:
            largest = max(record.expected_error for record in self.records)
            axes.set_ylim(bottom=max(axes.get_ylim()[0], _NEGLIGIBLE * largest))
            axes.legend(frameon=False)
        if path is not None:
            save_figure(figure, path)
        return figure


@dataclass(frozen=True, repr=False)
class Comparison(Records):
    """The result of `compare`. It is as private as the scores.

    Attributes:
        records: one record per mechanism and epsilon.

    >>> compare([3, 1], [0.1, 1])
    Comparison(6 records)
    """

    _series: ClassVar[str] = "mechanism"
    _unit: ClassVar[str] = "units of the scores"

    records: tuple[Record, ...]

    @staticmethod
    def _cells(record: Record) -> dict[str, str]:
        numbers = {"average": shown(record.expected_error), "95 of 100 within": shown(record.error_95)}
        if record.mechanism == PermuteAndFlip.name:
            return numbers
        return {**numbers, "ratio": shown(record.ratio, NEAREST)}


def _data_frame(library: str, rows: list[dict[str, Any]]) -> Any:
    try:
        return import_module(library).DataFrame(rows)
    except ModuleNotFoundError:
        raise MissingExtra(f"to_{library} needs {library}: {install_command(library)}") from None


def checked_epsilons(epsilons: Any) -> list[Fraction]:
    """The exact values of one or more positive numbers."""
    if isinstance(epsilons, (str, bytes)) or not isinstance(epsilons, Iterable):
        raise InvalidType("epsilons must be a sequence of numbers: give for example [0.1, 1]")
    exact = [_validate.exact_positive(epsilon=epsilon) for epsilon in epsilons]
    if not exact:
        raise InvalidValue("epsilons must have at least one number")
    return exact


def compare(
    scores: Any,
    epsilons: Iterable[Number],
    sensitivity: Number | None = None,
    monotonic: bool = False,
    *,
    score_range: Number | None = None,
) -> Comparison:
    """Compare the expected errors and 95 % quantiles of all mechanisms at each epsilon, on these scores.

    The result is as private as the scores: use public or synthetic ones, or keep it to yourself. The `ratio` of a
    record is relative to permute-and-flip.

    Args:
        scores: one score per candidate.
        epsilons: the epsilons to compare at.
        sensitivity, monotonic, score_range: See `PermuteAndFlip`.

    Raises:
        InvalidType: the scores cannot be read, or `epsilons` is not a sequence of numbers.
        InvalidValue: there are no scores or no epsilons, or a number is out of range.

    >>> for record in compare([10, 8, 0], [1]).records:
    ...     print(record.mechanism, round(record.expected_error, 3), round(record.ratio, 3))
    permute-and-flip 0.397 1.0
    exponential 0.584 1.473
    noisy-max 0.592 1.492
    """
    exact = checked_epsilons(epsilons)
    claim, vector = stated(sensitivity, monotonic, score_range).arguments(), as_vector(scores)
    records: list[Record] = []
    for epsilon in tracked(exact, "Comparing"):
        best = expected_error(PermuteAndFlip(epsilon, **claim), vector)
        for name, kind in MECHANISMS.items():
            mechanism = kind(epsilon, **claim)
            error = expected_error(mechanism, vector)
            ratio = error / best if best else float("nan")
            records.append(Record(name, float_near(epsilon), error, error_quantile(mechanism, vector, 0.95), ratio))
    return Comparison(tuple(records))
