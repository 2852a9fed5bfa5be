"""`dpselect compare`: compare the mechanisms on public scores, over a range of epsilons.

The file of a plot is checked before anything is computed.
"""

import json
from fractions import Fraction
from importlib import import_module
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

import dpselect
from dpselect._numbers import NEAREST, finite, shown
from dpselect._types import Vector
from dpselect.cli.console import clean_errors, figure_table, print_line, print_paragraph, print_table, progress_bar
from dpselect.cli.options import Column, File, Json, Label, Monotonic, ScoreRange, Sensitivity, claimed, epsilons
from dpselect.errors import InvalidValue, MissingExtra
from dpselect.mechanisms import MECHANISMS, PermuteAndFlip
from dpselect.mechanisms.parameters import Claim
from dpselect.score_files import PRIVACY, read_public_scores

if TYPE_CHECKING:
    from dpselect.analysis import Comparison

_ENDINGS = (".png", ".svg", ".pdf")


def check_plot(path: str) -> None:
    """Refuse a wrong file ending, a missing folder and a missing matplotlib."""
    if Path(path).suffix.lower() not in _ENDINGS:
        raise InvalidValue(f"--plot must end in {', '.join(_ENDINGS)}: got {path!r}")
    if not Path(path).parent.is_dir():
        raise InvalidValue(f"--plot {path!r}: there is no such folder: create it first")
    try:
        import_module("matplotlib")
    except ImportError:
        raise MissingExtra("--plot needs matplotlib: pip install 'dpselect[plot]'") from None


def save_plot(comparison: "Comparison", path: str) -> None:
    """Draw the comparison and write it to the file."""
    try:
        comparison.plot(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidValue(f"--plot {path!r}: the file cannot be written ({reason})") from None


_NARROW = 8  # characters per line of a column head, so that three mechanisms fit into 80 columns


def _heads() -> list[str]:
    """The heads of the columns: average and tail of each mechanism, and its ratio to permute-and-flip."""
    names = {name: _lines(name) for name in MECHANISMS}
    tallest = max(map(len, names.values()))

    def head(*lines: str) -> str:
        return "\n".join([""] * (tallest + 1 - len(lines)) + list(lines))

    heads = [head("epsilon")]
    for name, lines in names.items():
        heads += [head(*lines, "average"), head("95 %")]
        heads += [] if name == PermuteAndFlip.name else [head("ratio")]
    return heads


def _lines(name: str) -> list[str]:
    """The name in narrow lines, broken at its hyphens, or with one.

    >>> _lines("permute-and-flip"), _lines("exponential")
    (['permute-', 'and-flip'], ['expo-', 'nential'])
    """
    lines = wrap(name, _NARROW, break_long_words=False)
    halves = ([line[: 1 - _NARROW] + "-", line[1 - _NARROW :]] if len(line) > _NARROW else [line] for line in lines)
    return [half for pair in halves for half in pair]


def print_text(comparison: "Comparison", candidates: int, plot: str | None) -> None:
    """Print a table with one row per epsilon, and how to read it."""
    print_paragraph(f"{candidates:,} candidates:", "how far the choice is below the best, in units of the scores")
    table = figure_table(*_heads())
    for epsilon, records in groupby(comparison.records, key=lambda record: record.epsilon):
        cells: list[str] = []
        for record in records:
            cells += [shown(record.expected_error), shown(record.error_95)]
            if record.mechanism != PermuteAndFlip.name:
                cells.append(shown(record.ratio, NEAREST))
        table.add_row(shown(epsilon, NEAREST), *cells)
    print_table(table)
    print_paragraph(
        "How to read it:",
        "average is the expected error; 95 of 100 selections stay within the error under 95 %; ratio is the average"
        " relative to permute-and-flip's, between 1 and 2 for the exponential mechanism on any scores.",
    )
    if plot is not None:
        print_line(f"Plot: {plot}", "bold")
    print_paragraph("Privacy:", f"{PRIVACY}. Unless these scores are public or synthetic, do not share the results.")


def print_json(comparison: "Comparison", *, candidates: int, claim: Claim, plot: str | None) -> None:
    """Print one JSON object with unrounded results. A ratio of two zeros is null."""
    content = {
        "candidates": candidates,
        **claim.to_json(),
        "plot": plot,
        "records": [{**record, "ratio": finite(record["ratio"])} for record in comparison.to_dicts()],
    }
    typer.echo(json.dumps(content, allow_nan=False))


_Epsilons = Annotated[
    str, typer.Option(metavar="A:B", help="A range such as 0.01:1, a list such as 0.1,0.5,1 or a single number.")
]
_Points = Annotated[str | None, typer.Option(metavar="P", help="Number of epsilons in the range A:B. Default: 25.")]
_Plot = Annotated[
    str | None, typer.Option(metavar="FILE", help="Also plot the errors to a file that ends in .png, .svg or .pdf.")
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
    """Compare the errors of the mechanisms on public or synthetic scores.

    SCORES.csv has one column of scores, or two: label, score. A header is fine.
    Results computed from private scores are private too: do not share them.

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
    """Compute the comparison, with a progress bar on a terminal."""
    parts = []
    with progress_bar("Comparing ...") as watch:
        for done, epsilon in enumerate(wanted, start=1):
            parts.append(dpselect.analysis.compare(scores, [epsilon], **claim.arguments()))
            watch(done / len(wanted))
    return dpselect.analysis.Comparison(tuple(record for part in parts for record in part.records))
