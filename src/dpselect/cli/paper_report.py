"""What `dpselect paper` prints."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from dpselect.cli.console import print_line, print_paragraph

if TYPE_CHECKING:
    from dpselect.paper.reproduce import Report


def print_text(report: "Report") -> None:
    """Print what was made, which claims fail, and what is missing."""
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
        print_paragraph("Missing:", f"{names}: {report.why_missing}. Give --data DIR; the report says how to get them.")
    print_line(f"Report: {report.html}", "bold")


def print_json(report: "Report") -> None:
    """Print one JSON object."""
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
