"""`dpselect paper`: reproduce every figure of the permute-and-flip paper, and check every number in it."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dpselect.cli.console import clean_errors, print_line, print_paragraph
from dpselect.cli.options import Benchmark, Folder, Json, whole

if TYPE_CHECKING:
    from dpselect.research.paper.reproduce import Report


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
        report = _write_report(out, data, whole(least=2, most=10_000, points=points))
    if as_json:
        print_json(report)
    else:
        print_text(report)


def _write_report(out: str, data: str | None, points: int) -> "Report":
    """Write the report."""
    from dpselect.research.paper.reproduce import reproduce  # noqa: PLC0415 - the other commands start without SciPy

    return reproduce(out, data, points=points)
