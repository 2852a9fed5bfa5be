"""`dpselect compare`: the three mechanisms on public scores, over a range of epsilons."""

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

import dpselect
from dpselect._scores import Vector
from dpselect.cli.compare_report import print_json, print_text
from dpselect.cli.console import clean_errors, progress_bar
from dpselect.cli.options import Column, File, Json, Label, Monotonic, ScoreRange, Sensitivity
from dpselect.cli.parsing import claimed, epsilons
from dpselect.cli.plot_file import check_plot, save_plot
from dpselect.cli.public_scores import read_public_scores
from dpselect.mechanisms.claim import Claim

if TYPE_CHECKING:
    from dpselect.analysis import Comparison

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
