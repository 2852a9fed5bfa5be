"""`dpselect compare`: compare the mechanisms, or with -k the methods for the top k, on public scores.

The file of a plot is checked before anything is computed.
"""

import json
from fractions import Fraction
from importlib import import_module
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import dpselect
from dpselect import _validate
from dpselect._messages import install_command
from dpselect._numbers import NEAREST, finite, shown
from dpselect.cli.console import clean_errors, figure_table, print_line, print_paragraph, print_table
from dpselect.cli.options import (
    Column,
    File,
    Json,
    Label,
    MaxValues,
    Monotonic,
    NeighboursName,
    Ordered,
    ScoreRange,
    Sensitivity,
    claimed,
)
from dpselect.errors import InvalidValue, MissingExtra
from dpselect.mechanisms import MECHANISMS, PermuteAndFlip
from dpselect.mechanisms.parameters import Neighbours, neighbours_of
from dpselect.questions.options import sizes, whole
from dpselect.score_files import PRIVACY, read_public_scores

if TYPE_CHECKING:
    from dpselect.analysis import Comparison, TopKComparison
    from dpselect.top_k import TopKRecord

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
        raise MissingExtra(f"--plot needs matplotlib: {install_command('matplotlib')}") from None


def save_plot(comparison: "Comparison | TopKComparison", path: str) -> None:
    """Draw the comparison and write it to the file."""
    try:
        comparison.plot(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidValue(f"--plot {path!r}: the file cannot be written ({reason})") from None


_NARROW = 8  # characters per line of a column head, so that three mechanisms fit into 80 columns


def _heads() -> list[str]:
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
    _print_end(plot)


def _print_end(plot: str | None) -> None:
    if plot is not None:
        print_line(f"Plot: {plot}", "bold")
    print_paragraph("Privacy:", f"{PRIVACY}. Unless these scores are public or synthetic, do not share the results.")


def print_top_k_text(compared: "TopKComparison", asked: dict[str, Any], plot: str | None) -> None:
    """Print a table with one row per epsilon and one column per method, and how to read it."""
    methods = list(dict.fromkeys(record.method for record in compared.records))
    least, most = asked["k"] if isinstance(asked["k"], tuple) else (asked["k"], asked["k"])
    chosen = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    what = "how many fewer people the chosen ones have than the most common ones, per item"
    print_paragraph(f"{chosen} of {asked['candidates']:,} candidates:", what)
    table = figure_table("epsilon", *methods)
    for epsilon, records in groupby(compared.records, key=lambda record: record.epsilon):
        table.add_row(shown(epsilon, NEAREST), *map(_cell, records))
    print_table(table)
    print_paragraph(
        "How to read it:",
        f"these are average errors. A number with ± is from {asked['runs']:,} simulated answers, with a 95 % interval;"
        " < means that none of them was short; other numbers are exact.",
    )
    print_paragraph(f"The method auto takes {compared.automatic} here.", "This follows from public numbers alone.")
    _print_end(plot)


def _cell(record: "TopKRecord") -> str:
    if record.exact:
        return shown(record.expected_error, NEAREST)
    if not record.expected_error:
        return f"< {shown(record.high, digits=2)}"
    width = shown(record.high - record.expected_error, digits=2)
    return f"{shown(record.expected_error, NEAREST, digits=3)} ± {width}"


_Epsilon = Annotated[
    str, typer.Option(metavar="A:B", help="A range such as 0.01:1, a list such as 0.1,0.5,1 or a single number.")
]
_Points = Annotated[str | None, typer.Option(metavar="P", help="Number of epsilons in the range A:B. Default: 25.")]
_Plot = Annotated[
    str | None, typer.Option(metavar="FILE", help="Also plot the errors to a file that ends in .png, .svg or .pdf.")
]


_Size = Annotated[
    str | None,
    typer.Option("-k", metavar="K", help="Compare the methods for the K most common instead; LO:HI for the margin."),
]
_Runs = Annotated[
    str | None, typer.Option(metavar="R", help="With -k: answers to simulate where no formula is cheap. Default: 200.")
]
_Seed = Annotated[str | None, typer.Option(metavar="S", help="With -k: the same seed gives the same numbers.")]


def compare(  # noqa: PLR0913 - typer makes an option of each argument
    file: File,
    *,
    epsilon: _Epsilon,
    points: _Points = None,
    sensitivity: Sensitivity = None,
    monotonic: Monotonic = False,
    score_range: ScoreRange = None,
    k: _Size = None,
    max_values: MaxValues = None,
    ordered: Ordered = False,
    neighbours: NeighboursName = "add-remove",
    runs: _Runs = None,
    seed: _Seed = None,
    column: Column = None,
    label: Label = None,
    plot: _Plot = None,
    as_json: Json = False,
) -> None:
    """Compare the errors of the mechanisms on public or synthetic scores.

    SCORES.csv has one column of scores, or two: label, score. A header is fine.
    With -k, scores are counts of people, and the methods for the K most common candidates are compared.
    Results computed from private scores are private too: do not share them.

    Example: dpselect compare public.csv --epsilon 0.01:1

    Example: dpselect compare public.csv --epsilon 0.1,0.5,1 --monotonic --plot errors.svg

    Example: dpselect compare public.csv --epsilon 0.01:1 -k 3 --max-values 1
    """
    with clean_errors():
        wanted = _epsilons(epsilon, points)
        about_scores: dict[str, Any] = {"sensitivity": sensitivity, "monotonic": monotonic, "score_range": score_range}
        about_counts = {"max_values": max_values, "ordered": ordered, "neighbours": neighbours}
        simulated = {"runs": runs, "seed": seed}
        _check_belonging(k, about_scores, {**about_counts, **simulated})
        claim = claimed(**about_scores)
        asked = None if k is None else {"k": sizes(k), **_counts(about_counts), **_simulation(simulated)}
        if plot is not None:
            check_plot(plot)
        scores = read_public_scores(file, column, label)
        compared: Any
        if asked is None:
            compared = dpselect.analysis.compare(scores, wanted, **claim.arguments())
        else:
            given = {name: value for name, value in asked.items() if name != "neighbours"}
            is_added = asked["neighbours"] == Neighbours.ADD_REMOVE
            compared = dpselect.analysis.compare_top_k(scores, epsilons=wanted, monotonic=is_added, **given)
        if plot is not None:
            save_plot(compared, plot)
    if as_json:
        about = claim.to_json() if asked is None else {**asked, "automatic": compared.automatic}
        content = {"candidates": len(scores), **about, "plot": plot, "records": _records(compared)}
        typer.echo(json.dumps(content, allow_nan=False))
    elif asked is None:
        print_text(compared, len(scores), plot)
    else:
        print_top_k_text(compared, {"candidates": len(scores), **asked}, plot)


def _records(compared: "Comparison | TopKComparison") -> list[dict[str, Any]]:
    found = compared.to_dicts()
    # A ratio of two zeros is null.
    return [{**each, "ratio": finite(each["ratio"])} if "ratio" in each else each for each in found]


def _epsilons(text: str, points: str | None) -> list[Fraction]:
    """The epsilons of a range A:B, of a list A,B,C or of a single number.

    >>> [float(epsilon) for epsilon in _epsilons("0.01:1", "3")]
    [0.01, 0.1, 1.0]
    """
    listed = [_validate.moderate(epsilon=part.strip()) for part in text.split(":" if ":" in text else ",")]
    if ":" not in text:
        if points is not None:
            raise InvalidValue("--points needs a range of epsilons: give --epsilon as A:B, for example 0.01:1")
        return listed
    number = _validate.count_in_text(2, 10_000, points="25" if points is None else points)
    if len(listed) != 2 or listed[0] >= listed[1]:
        raise InvalidValue("epsilon must be a range A:B from a smaller to a larger number: give for example 0.01:1")
    between = np.geomspace(float(listed[0]), float(listed[1]), number)[1:-1]
    return [listed[0], *map(Fraction, between.tolist()), listed[1]]


_DEFAULTS = (None, False, Neighbours.ADD_REMOVE.value)


def _check_belonging(k: str | None, about_scores: dict[str, Any], about_counts: dict[str, Any]) -> None:
    ignored, why = (about_counts, "needs -k, the number of candidates to choose")
    if k is not None:
        ignored, why = (about_scores, "is not for -k: scores are then counts of people")
    for name, value in ignored.items():
        if value not in _DEFAULTS:
            raise InvalidValue(f"--{name.replace('_', '-')} {why}")


def _counts(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "max_values": None if given["max_values"] is None else whole(given["max_values"], "max_values"),
        "ordered": given["ordered"],
        "neighbours": neighbours_of(given["neighbours"]).value,
    }


def _simulation(given: dict[str, Any]) -> dict[str, Any]:
    runs, seed = given["runs"], given["seed"]
    return {
        "runs": _validate.count_in_text(2, 10**7, runs="200" if runs is None else runs),
        "seed": None if seed is None else whole(seed, "seed"),
    }
