"""The table, for a terminal, for a pipe and for a README."""

import sys
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.case import Row

_COLUMNS = ("what", "eps", "n", "shape", "dtype", "against", "ours", "reference", "ratio", "bar", "verdict")
_NUMBERS = ("eps", "n", "ours", "reference", "ratio", "bar")
_WIDTH = 200
_STYLES = {True: "green", False: "bold red", None: "dim"}


def print_table(rows: Sequence[Row]) -> None:
    """Print with colours on a terminal; plain and aligned, one line a row, elsewhere."""
    if sys.stdout.isatty():
        # Folded cells are harder to read than lines that a narrow terminal wraps.
        Console(width=_WIDTH).print(_rich_table(rows))
    else:
        print("\n".join(_aligned(rows)))


def markdown(rows: Sequence[Row]) -> str:
    """A Markdown table."""
    rule = ["--:" if name in _NUMBERS else ":--" for name in _COLUMNS]
    lines = [_COLUMNS, rule, *(row.cells for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def summary(rows: Sequence[Row]) -> str:
    """How many bars are met, missed and not measured."""
    verdicts = [row.is_met for row in rows if row.figures is not None]
    met, missed, unmeasured = verdicts.count(True), verdicts.count(False), len(rows) - len(verdicts)
    return f"{met} bars met, {missed} not met" + (f", {unmeasured} not measured." if unmeasured else ".")


def _rich_table(rows: Iterable[Row]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in _COLUMNS:
        table.add_column(name, justify="right" if name in _NUMBERS else "left")
    for row in rows:
        *cells, verdict = map(Text, row.cells)
        verdict.stylize(_STYLES[row.is_met])
        table.add_row(*cells, verdict)
    return table


def _aligned(rows: Iterable[Row]) -> Iterable[str]:
    lines = [_COLUMNS, *(row.cells for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            cell.rjust(width) if name in _NUMBERS else cell.ljust(width)
            for name, cell, width in zip(_COLUMNS, line, widths, strict=True)
        ]
        yield "  ".join(cells).rstrip()
