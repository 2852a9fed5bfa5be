"""The file of a plot: refused before anything is computed, if it cannot be written.

What `dpselect compare` prints.

`dpselect compare`: the three mechanisms on public scores, over a range of epsilons.
"""

import json
from fractions import Fraction
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import dpselect
from dpselect._numbers import NEAREST, finite, shown
from dpselect._types import Vector
from dpselect.cli.console import clean_errors, figure_table, print_line, print_paragraph, print_table, progress_bar
from dpselect.cli.options import Column, File, Json, Label, Monotonic, ScoreRange, Sensitivity, claimed, epsilons
from dpselect.errors import InvalidValue, MissingExtra
from dpselect.mechanisms.parameters import Claim
from dpselect.score_files import PRIVACY, read_public_scores

if TYPE_CHECKING:
    from dpselect.analysis import Comparison

_ENDINGS = (".png", ".svg", ".pdf")


def check_plot(path: str) -> None:
    """Refuse a wrong ending, a missing folder and a missing matplotlib."""
    if Path(path).suffix.lower() not in _ENDINGS:
        raise InvalidValue(f"--plot must end in {', '.join(_ENDINGS)}: got {path!r}")
    if not Path(path).parent.is_dir():
        raise InvalidValue(f"--plot {path!r}: there is no such folder: make it first")
    try:
        import_module("matplotlib")
    except ImportError:
        raise MissingExtra("--plot needs matplotlib: pip install 'dpselect[plot]'") from None


def save_plot(comparison: "Comparison", path: str) -> None:
    """Draw the comparison into the file."""
    try:
        comparison.plot(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidValue(f"--plot {path!r}: the file cannot be written ({reason})") from None


_COLUMNS = (
    "permute-\nand-flip\naverage",
    "\n\n95 %",
    "expo-\nnential\naverage",
    "\n\n95 %",
    "\n\nratio",
    "noisy-\nmax\naverage",
    "\n\n95 %",
    "\n\nratio",
)


def print_text(comparison: "Comparison", candidates: int, plot: str | None) -> None:
    """Print a table with one row an epsilon, and how to read it."""
    print_paragraph(f"{candidates:,} candidates:", "how far the choice is below the best, in units of the scores")
    table = figure_table("\n\nepsilon", *_COLUMNS)
    for epsilon, records in groupby(comparison.records, key=lambda record: record.epsilon):
        cells: list[str] = []
        for record in records:
            cells += [shown(record.expected_error), shown(record.error_95)]
            if record.mechanism != "permute-and-flip":
                cells.append(shown(record.ratio, NEAREST))
        table.add_row(shown(epsilon, NEAREST), *cells)
    print_table(table)
    print_paragraph(
        "How to read it:",
        "average is the expected error; 95 of 100 selections stay within the error under 95 %; ratio is the average"
        " relative to permute-and-flip's, between 1 and 2 for the exponential mechanism whatever the scores.",
    )
    if plot is not None:
        print_line(f"Plot: {plot}", "bold")
    print_paragraph("Privacy:", f"{PRIVACY}. Unless these scores are public or synthetic, show them to nobody.")


def print_json(comparison: "Comparison", *, candidates: int, claim: Claim, plot: str | None) -> None:
    """Print one JSON object with the figures as they are, not rounded; a ratio of two zeros is null."""
    content = {
        "candidates": candidates,
        **claim.to_dict(),
        "plot": plot,
        "records": [{**record, "ratio": finite(record["ratio"])} for record in comparison.to_dicts()],
    }
    typer.echo(json.dumps(content, allow_nan=False))


_Epsilons = Annotated[
    str, typer.Option(metavar="A:B", help="A range such as 0.01:1, a list such as 0.1,0.5,1 or a single number.")
]
_Points = Annotated[str | None, typer.Option(metavar="P", help="How many epsilons of the range A:B; 25 if not given.")]
_Plot = Annotated[
    str | None, typer.Option(metavar="FILE", help="Draw the errors too, into a file that ends in .png, .svg or .pdf.")
]


def compare(  # noqa: PLR0913 - typer makes an option of each argument
    file: File,
    *,
    epsilon: _Epsilons,
    points: _Points = None,
    sensitivity: Sensitivity = None,
    monotonic: Monotonic = False,
    score_range: ScoreRange = None,
    column: Column = None,
    label: Label = None,
    plot: _Plot = None,
    as_json: Json = False,
) -> None:
    """Compare the errors of the three mechanisms on public or synthetic scores.

    SCORES.csv has one column of scores, or two: label, score. A header is fine.
    Figures computed from private scores are themselves private: do not show them to others.

    Example: dpselect compare public.csv --epsilon 0.01:1

    Example: dpselect compare public.csv --epsilon 0.1,0.5,1 --monotonic --plot errors.svg
    """
    with clean_errors():
        wanted = epsilons(epsilon, points)
        claim = claimed(sensitivity, monotonic, score_range)
        if plot is not None:
            check_plot(plot)
        scores = read_public_scores(file, column, label)
        comparison = _comparison(scores, wanted, claim)
        if plot is not None:
            save_plot(comparison, plot)
    if as_json:
        print_json(comparison, candidates=len(scores), claim=claim, plot=plot)
    else:
        print_text(comparison, candidates=len(scores), plot=plot)


def _comparison(scores: Vector, wanted: list[Fraction], claim: Claim) -> "Comparison":
    """The whole comparison, with a progress bar if somebody is watching."""
    parts = []
    with progress_bar("Comparing ...") as watch:
        for done, epsilon in enumerate(wanted, start=1):
            parts.append(dpselect.analysis.compare(scores, [epsilon], **claim.arguments()))
            watch(done / len(wanted))
    return dpselect.analysis.Comparison(tuple(record for part in parts for record in part.records))
