"""What explains and checks the mechanisms: `dpselect explore`, `dpselect paper` and `dpselect study`.

The first is a page to choose a budget on, the second reproduces the permute-and-flip paper, and the third compares
mechanisms inside larger ones.
"""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dpselect import _validate
from dpselect._messages import install_command
from dpselect._numbers import NEAREST, finite, shown
from dpselect.cli.console import clean_errors, figure_table, print_line, print_paragraph, print_table
from dpselect.cli.options import Benchmark, Column, Folder, Json, Label
from dpselect.errors import InvalidValue, MissingExtra
from dpselect.score_files import STANDARD_INPUT, read_scores, shown_path

if TYPE_CHECKING:
    from dpselect.explore.scores import ScoreSet
    from dpselect.research.reproduce import Report
    from dpselect.research.studies import Study


def print_text(report: "Report") -> None:
    """Print what was written, which claims fail, and what is missing."""
    unchecked = report.count(None)
    beyond = f", {unchecked} not checked" if unchecked else ""
    print_paragraph(
        f"{len(report.figures)} figures,", f"{report.count(True)} claims pass, {report.count(False)} fail{beyond}."
    )
    for claim in report.claims:
        if claim.holds is False:
            print_paragraph("Fails:", f"{claim.where}: {claim.statement} Ours: {claim.ours}. {claim.remark}")
    if report.missing:
        names = ", ".join(plot.number for plot in report.missing)
        print_paragraph("Missing:", f"{names}: {report.why_missing}. Give --data DIR; the report explains how.")
    print_line(f"Report: {report.html}", "bold")


def print_json(report: "Report") -> None:
    """Print the report as one JSON object."""
    content = {
        "report": str(report.html),
        "figures": [plot.name for plot in report.figures],
        "missing": [plot.name for plot in report.missing],
        "why_missing": report.why_missing or None,
        "passed": report.count(True),
        "failed": report.count(False),
        "not_checked": report.count(None),
        "claims": [{**asdict(claim), "verdict": claim.verdict} for claim in report.claims],
    }
    typer.echo(json.dumps(content))


_Points = Annotated[str, typer.Option(metavar="P", help="Number of epsilons on each curve from a linear program.")]


def paper(*, out: Folder, data: Benchmark = None, points: _Points = "250", as_json: Json = False) -> None:
    """Reproduce every figure of the permute-and-flip paper and check every claim.

    Writes each figure as PNG, PDF and CSV, and claims.csv and report.html, which works offline.
    Takes about a minute. Needs the extra 'paper' (matplotlib and pooch).

    Example: dpselect paper --out report

    Example: dpselect paper --out report --data dpbench
    """
    with clean_errors():
        from dpselect.research.reproduce import reproduce  # noqa: PLC0415 - the other commands start without SciPy

        report = reproduce(out, data, points=_validate.count_in_text(2, 10_000, points=points))
    if as_json:
        print_json(report)
    else:
        print_text(report)


_Runs = Annotated[str, typer.Option(metavar="R", help="Number of runs of each mechanism on each case.")]
_Seed = Annotated[str, typer.Option(metavar="S", help="Seed of the simulation. The same seed gives the same numbers.")]


def study(
    *, out: Folder, data: Benchmark = None, runs: _Runs = "100", seed: _Seed = "1", as_json: Json = False
) -> None:
    """Compare permute-and-flip with the exponential mechanism inside larger mechanisms, and the methods for the top k.

    The larger mechanisms are MWEM, peeled top-k and stepwise feature selection.
    They are compared at equal pure epsilon, equal (epsilon, delta) and equal zCDP: study.csv.
    The methods for the top k are set, margin, one-shot, peel and noisy-counts: top_k.csv.
    Also writes figures (PNG, PDF). This is a simulation on public data; its results are not private.
    Takes about four minutes. Needs the extra 'paper' (matplotlib and pooch).

    Example: dpselect study --out study --data dpbench
    """
    with clean_errors():
        times = _validate.count_in_text(2, 10**6, runs=runs)
        number = _validate.count_in_text(1, _validate.MANY, seed=seed)
        from dpselect.research import studies  # noqa: PLC0415 - the other commands start without SciPy

        made = studies.study(out, data, runs=times, seed=number)
    if as_json:
        _print_json(made)
    else:
        _print_text(made)


def _print_text(made: "Study") -> None:
    print_paragraph(
        f"{made.runs:,} runs per case.",
        "A mechanism counts as better if the 95 % interval of the difference excludes zero. By chance alone, this"
        " happens in one case of twenty.",
    )
    columns = ("cases", "permute-and-flip\nbetter", "exponential\nbetter", "median ratio of\nerrors, exp. / p&f")
    table = figure_table("study", "equal", *columns)
    for one in made.summaries:
        wins = (f"{one.cases}", f"{one.permute_and_flip}", f"{one.exponential}")
        table.add_row(one.study, one.currency, *wins, shown(one.ratio, NEAREST))
    print_table(table)
    if made.top_k:
        _print_top_k(made)
    if made.why_missing:
        print_paragraph("Missing:", f"the cases that need data: {made.why_missing}. Give --data DIR.")
    print_line(f"All numbers: {made.folder / 'study.csv'}", "bold")


def _print_top_k(made: "Study") -> None:
    from dpselect.research.studies import top_k_summaries  # noqa: PLC0415 - the other commands start without SciPy

    print_paragraph("The methods for the top k:", "errors in people per item; below 0.001 they count as equal.")
    table = figure_table("", "method", "cases", "smallest\nerror", "median\nerror")
    for one in top_k_summaries(made.top_k):
        table.add_row(one.people, one.method, f"{one.cases}", f"{one.best}", shown(one.median_error, NEAREST))
    print_table(table)
    print_line(f"All numbers: {made.folder / 'top_k.csv'}", "bold")


def _print_json(made: "Study") -> None:
    content = {
        "folder": str(made.folder),
        "runs": made.runs,
        "why_missing": made.why_missing or None,
        "summaries": [{**asdict(one), "ratio": finite(one.ratio)} for one in made.summaries],
        "comparisons": [{**asdict(one), "ratio": finite(one.ratio)} for one in made.comparisons],
        "top_k": [asdict(one) for one in made.top_k],
    }
    typer.echo(json.dumps(content, allow_nan=False))


_File = Annotated[
    str | None,
    typer.Argument(metavar="SCORES.csv", help="Public or synthetic scores to start with; - reads standard input."),
]
_Port = Annotated[str | None, typer.Option(metavar="P", help="Port of the page. Default: any free port.")]
_NoBrowser = Annotated[
    bool, typer.Option("--no-browser", metavar="", help="Print the address, but do not open the page.")
]


def explore(
    file: _File = None,
    *,
    port: _Port = None,
    no_browser: _NoBrowser = False,
    column: Column = None,
    label: Label = None,
) -> None:
    """Choose epsilon by eye, on a local web page that only this machine can reach.

    The page shows the scores, so give public or synthetic ones.
    Needs the extra 'explore' (starlette and uvicorn).

    Example: dpselect explore public.csv
    """
    with clean_errors():
        chosen = 0 if port is None else _validate.count_in_text(1, 65_535, port=port)
        try:
            from dpselect.explore.app import serve  # noqa: PLC0415 - needs the extra
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
                raise
            remedy = install_command("starlette", "uvicorn")
            raise MissingExtra(f"the explorer needs starlette and uvicorn: {remedy}") from None
        first = None if file is None else _read_first(file, column, label)
        serve(first, chosen, browser=not no_browser, announce=_announce)


def _read_first(file: str, column: str | None, label: str | None) -> "ScoreSet":
    from dpselect.explore.scores import ScoreSet, file_words  # noqa: PLC0415 - the other commands do not need it

    candidates = read_scores(file, column=column, label=label)
    words = None if file == STANDARD_INPUT else file_words(file, column, label)
    try:
        return ScoreSet(shown_path(file), candidates, file=words)
    except InvalidValue as error:
        raise InvalidValue(f"{shown_path(file)}: {error}") from None


def _announce(address: str) -> None:
    print_line(f"The explorer: {address}", "bold")
    print_line("Only this machine can reach it. Anyone who sees the page sees the scores. Press Ctrl-C to stop.", "dim")
