"""The table, for a terminal, for a pipe and for a README."""

import sys
from collections.abc import Container, Iterable, Sequence

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
    """A Markdown table, without the columns that no row fills."""
    columns = zip(_COLUMNS, *(row.cells for row in rows), strict=True)
    head, *lines = zip(*(column for column in columns if any(column[1:])), strict=True)
    return piped(head, lines, left=[name for name in head if name not in _NUMBERS])


def grid(rows: Sequence[Row]) -> str:
    """A smaller Markdown table: a line for each n and shape, and for each subject a column of times and ratios."""
    cells = {(_line(row), _subject(row)): _cell(row) for row in rows}
    lines, subjects = dict.fromkeys(map(_line, rows)), dict.fromkeys(map(_subject, rows))
    body = [[*line, *(cells.get((line, subject), "") for subject in subjects)] for line in lines]
    return piped(["n", "shape", *subjects], body, left=["shape"])


def _line(row: Row) -> tuple[str, str]:
    return row.case.n, row.case.shape


def _subject(row: Row) -> str:
    return f"{row.case.what}, ε = {row.case.epsilon}"


def _cell(row: Row) -> str:
    ours, _, ratio = row.results
    figures = ", ".join(filter(None, (ours, ratio))) or row.note
    return f"**{figures}: NOT MET**" if row.is_met is False else figures


def piped(head: Sequence[str], lines: Iterable[Sequence[str]], left: Container[str]) -> str:
    """A Markdown table; the columns that are not in `left` are aligned to the right."""
    rule = [":--" if name in left else "--:" for name in head]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))


def missed(rows: Sequence[Row]) -> str:
    """A list of the bars that are not met."""
    return "\n".join(f"* {_missed(row)}" for row in rows if row.is_met is False)


def _missed(row: Row) -> str:
    case, (ours, _, ratio) = row.case, row.results
    epsilon, against = case.epsilon and f"ε = {case.epsilon}", case.against and f"beside {case.against}"
    subject = filter(None, (case.what, epsilon, case.n, case.shape, case.dtype, against))
    return f"{', '.join(subject)}: {ratio or ours}, bar {case.bar.text}"


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
