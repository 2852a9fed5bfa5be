"""What `dpselect compare` prints."""

import json
from itertools import groupby
from typing import TYPE_CHECKING

import typer

from dpselect._shown import NEAREST, finite, shown
from dpselect.cli.console import print_line, print_paragraph, print_table
from dpselect.cli.figures import figure_table
from dpselect.cli.public_scores import PRIVACY
from dpselect.mechanisms.claim import Claim

if TYPE_CHECKING:
    from dpselect.analysis import Comparison

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
