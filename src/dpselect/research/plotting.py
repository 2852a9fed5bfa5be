"""What the figures share: their style, tables of numbers, and writing files.

Colours suit all kinds of colour vision; dashes and markers work in greyscale. A mechanism has the same style in all
figures, chosen by its position among the mechanisms, and is labelled with its title.
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from dpselect._messages import install_command
from dpselect._show import csv_text
from dpselect.errors import InvalidValue, MissingExtra
from dpselect.mechanisms import MECHANISMS, ExponentialMechanism, PermuteAndFlip, ReportNoisyMax

# Okabe & Ito (2008), without yellow, which is too pale for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#000000", "#E69F00")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1.5, 1, 1.5, 1, 1.5)), "-", "--")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "+++")

FLIP, EXPONENTIAL, NOISY_MAX = (kind.title for kind in (PermuteAndFlip, ExponentialMechanism, ReportNoisyMax))
_SETTINGS: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,
    "svg.hashsalt": "dpselect",
    "hatch.linewidth": 0.6,
}
# Without dates, the same numbers give the same files.
_NO_DATES: dict[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}


def settings() -> Any:
    """A context in which matplotlib uses our style."""
    try:
        return import_module("matplotlib").rc_context(_SETTINGS)
    except ImportError:
        raise MissingExtra(f"the figures need matplotlib: {install_command('matplotlib')}") from None


def blank_figure(width: float, height: float) -> Any:
    """An empty figure; the size is in inches."""
    return import_module("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")


def of_mechanism(title: str) -> dict[str, Any]:
    """The style of a mechanism's line, which is the same in all figures."""
    number = _place(title)
    return {"color": COLOURS[number], "linestyle": DASHES[number]}


def _place(title: str) -> int:
    return [kind.title for kind in MECHANISMS.values()].index(title)


def of_number(number: int) -> dict[str, Any]:
    """The style of the line with this number. Markers are spread along it, at different positions on each line."""
    marks = {"marker": MARKERS[number], "markersize": 4, "markevery": (0.02 + 0.025 * number, 0.12)}
    return {"color": COLOURS[number], "linestyle": DASHES[number], **marks}


def of_bar(title: str) -> dict[str, Any]:
    number = _place(title)
    return {"color": COLOURS[number], "hatch": HATCHES[number], "edgecolor": "white", "label": title}


@dataclass(frozen=True)
class Curves:
    """Draws one line for each label, by default a mechanism, which may start at the origin."""

    columns: tuple[str, str, str]  # of the labels, of x and of y
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the axes
    style: Callable[[int, Any], dict[str, Any]] = lambda _, title: of_mechanism(title)
    start: tuple[float, ...] = ()
    legend: str = "best"

    def lines(self, axes: Any, table: "NumberTable") -> None:
        for number, (value, xs, ys) in enumerate(table.series(*self.columns)):
            axes.plot([*self.start, *xs], [*self.start, *ys], **{"label": value, **self.style(number, value)})

    def __call__(self, figure: Any, table: "NumberTable") -> None:
        axes = figure.subplots()
        self.lines(axes, table)
        axes.set(**self.settings)
        axes.legend(loc=self.legend)


def image(figure: Any, ending: str) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format=ending, dpi=200, facecolor="white", metadata=_NO_DATES[ending])
    return stream.getvalue()


@dataclass(frozen=True)
class NumberTable:
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def series(self, label: str, x: str, y: str) -> Iterator[tuple[Any, list[Any], list[Any]]]:
        """For each distinct label, in the order of the rows: the label, its x values and its y values."""
        for wanted in dict.fromkeys(self.column(label)):
            own = self.where(**{label: wanted})
            yield wanted, own.column(x), own.column(y)

    def curves(self, label: str, x: str, y: str) -> dict[Any, dict[Any, Any]]:
        """For each distinct label, the y of each x."""
        return {value: dict(zip(xs, ys, strict=True)) for value, xs, ys in self.series(label, x, y)}

    def where(self, **wanted: Any) -> "NumberTable":
        places = {self.columns.index(name): value for name, value in wanted.items()}
        return NumberTable(self.columns, [row for row in self.rows if all(row[i] == v for i, v in places.items())])

    def column(self, name: str) -> list[Any]:
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def to_csv(self) -> str:
        """The table as CSV, with all digits of floats."""
        return csv_text(self.columns, self.rows, end="\n")


def make_folder(out: str | Path) -> Path:
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidValue(f"out: the folder {str(out)!r} cannot be created ({_reason(error)})") from None
    return folder


def write_file(path: Path, content: str | bytes) -> Path:
    """Write text or bytes to a file."""
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise InvalidValue(f"out: {str(path)!r} cannot be written ({_reason(error)})") from None
    return path


def write_figure(folder: Path, name: str, figure: Any) -> None:
    """Write a figure as PNG and PDF. It is laid out once, so that every file of it has the same layout."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for ending in ("png", "pdf"):
        write_file(folder / f"{name}.{ending}", image(figure, ending))


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
