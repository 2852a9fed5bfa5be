"""Print plans: as tables with their meaning in plain words, or as JSON."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from dpselect._numbers import shown
from dpselect.cli.console import figure_table, print_line, print_paragraph, print_table
from dpselect.score_files import PRIVACY, shown_path

if TYPE_CHECKING:
    from dpselect.questions.plan import EqualRounds, Plan


def print_plan(
    planned: "Plan", as_json: bool, print_more: Callable[[], None] | None = None, file: str | None = None
) -> None:
    """Print a plan as a table with its meaning, and more if there is more; or as JSON."""
    if as_json:
        print_json(planned, file)
        return
    print_paragraph(f"{planned.title}:", planned.subject)
    heads, rows = planned.table
    table = figure_table(*heads)
    for row in rows:
        table.add_row(*row)
    print_table(table)
    for title, text in planned.paragraphs.items():
        print_paragraph(f"{title}:", text)
    if print_more is not None:
        print_more()
    print_paragraph("Privacy:", "a plan uses public numbers only and reveals nothing about your data.")


def print_json(planned: "Plan", file: str | None) -> None:
    """Print one JSON object: the question with exact numbers, and the results as unrounded floats."""
    content = planned.to_dict()
    if content.get("proxy") is not None:
        content["proxy"] = {"file": file, **content["proxy"]}
    typer.echo(json.dumps(content))


def print_many(planned: "Plan", file: str | None, size: int) -> None:
    """Print what a plan of selections has beside its table: totals in (epsilon, delta), and errors on scores."""
    if planned.equal_rounds is not None:
        _print_rounds(planned.questions, planned.equal_rounds)
    if file is not None:
        _print_on_scores(planned, file, size)


_FIXED = "This holds if the epsilons and the number of selections do not depend on the answers."


def _print_rounds(times: int, compared: "EqualRounds") -> None:
    delta = f"{compared.exponential.total.delta:g}"
    together = f"{times:,} selections together" if times > 1 else "One selection"
    print_paragraph(f"{together} as (epsilon, {delta})-DP:", "the exponential mechanism and permute-and-flip")
    table = figure_table("\nmechanism", "epsilon\neach", "average\nat most", "total\nepsilon")
    rows = {
        "exponential": compared.exponential,
        "permute-and-flip, same error": compared.equal_error,
        "permute-and-flip, same total": compared.equal_budget,
    }
    for name, rounds in rows.items():
        cells = (rounds.each.mechanism.epsilon, rounds.each.average, rounds.total.epsilon)
        table.add_row(name, *(shown(float(cell)) for cell in cells))
    print_table(table)
    better, error, total = compared.better.each.mechanism, compared.equal_error, compared.equal_budget
    print_paragraph(
        f"For a budget of (epsilon, {delta}), {better.name} is better:",
        f"for the same error, permute-and-flip costs {shown(error.total.epsilon)} instead of"
        f" {shown(compared.exponential.total.epsilon)}, and for the same total, its choice is on average at most"
        f" {shown(total.each.average)} below the best instead of {shown(compared.exponential.each.average)}. {_FIXED}",
    )


def _print_on_scores(planned: "Plan", file: str, size: int) -> None:
    source = f"on the {size:,} scores of {shown_path(file)}"
    if planned.error is None:
        print_line(f"Exact errors {source} (other data give other numbers):", "bold")
        table = figure_table("\nmechanism", "\naverage", "95 of 100\nwithin")
        for name, found in planned.on_scores.items():
            table.add_row(name, shown(found.expected_error), shown(found.error_95))
    else:
        wanted = f"an average of {shown(float(planned.error), digits=6)}"
        print_line(f"The epsilon for {wanted} {source} (other data may need more):", "bold")
        table = figure_table("mechanism", "epsilon")
        for name, found in planned.on_scores.items():
            table.add_row(name, "any" if found.epsilon is None else shown(found.epsilon))
    print_table(table)
    print_paragraph("Scores:", f"{PRIVACY}: give --scores public or synthetic scores only.")
