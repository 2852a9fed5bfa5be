"""`dpselect paper`: every figure and number of the paper, beside what the paper prints."""

from typing import TYPE_CHECKING, Annotated

import typer

from dpselect.cli.console import clean_errors, progress_bars
from dpselect.cli.options import Benchmark, Folder, Json
from dpselect.cli.paper_report import print_json, print_text
from dpselect.cli.parsing import whole

if TYPE_CHECKING:
    from dpselect.paper.reproduce import Report

_Points = Annotated[str, typer.Option(metavar="P", help="How many epsilons a curve of the linear programs has.")]


def paper(*, out: Folder, data: Benchmark = None, points: _Points = "250", as_json: Json = False) -> None:
    """Make every figure and check every claim of the permute-and-flip paper.

    Writes PNG, PDF and CSV of each figure, claims.csv, and report.html, which opens offline.
    Takes about a minute. Needs the extra 'paper': matplotlib and pooch.

    Example: dpselect paper --out report

    Example: dpselect paper --out report --data dpbench
    """
    with clean_errors():
        report = _report(out, data, whole(least=2, most=10_000, points=points))
    if as_json:
        print_json(report)
    else:
        print_text(report)


def _report(out: str, data: str | None, points: int) -> "Report":
    """The report, with a progress bar a stage if somebody is watching."""
    from dpselect.paper.reproduce import reproduce  # noqa: PLC0415 - the other commands start without SciPy

    with progress_bars() as watch:
        return reproduce(out, data, points=points, watch=watch)
