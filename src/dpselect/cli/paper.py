"""`dpselect paper`: every figure and number of the paper, beside what the paper prints."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from dpselect.cli.console import clean_errors
from dpselect.cli.options import Json
from dpselect.cli.paper_report import print_json, print_text
from dpselect.cli.parsing import whole

if TYPE_CHECKING:
    from dpselect.paper.reproduce import Report

_Out = Annotated[str, typer.Option("--out", metavar="DIR", help="The folder to write to; made if it is not there.")]
_Data = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Folder of the DPBench files; else $DPSELECT_DPBENCH, else they are fetched."),
]
_Points = Annotated[str, typer.Option(metavar="P", help="How many epsilons a curve of the linear programs has.")]


def paper(*, out: _Out, data: _Data = None, points: _Points = "250", as_json: Json = False) -> None:
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

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:

        def watch(items: list[Any], what: str) -> Iterable[Any]:
            return progress.track(items, description=what)

        return reproduce(out, data, points=points, watch=watch)
