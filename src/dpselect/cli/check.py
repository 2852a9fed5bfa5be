"""`dpselect check`: what a question about a file would read and leave out, for the data owner only."""

import json
from typing import Annotated, Any

import typer

from dpselect.cli.asking import public_list, rule
from dpselect.cli.console import clean_errors, print_line
from dpselect.cli.options import Json
from dpselect.errors import InvalidValue
from dpselect.tables import Check, Table, open_table
from dpselect.tables.kinds import known_column

FAILED = 1
_NOT_CHARGED = "a check charges nothing, and is for the data owner only: leave {option} out"


def check(  # noqa: PLR0913 - typer makes an option of each argument
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV or Parquet file, a folder of them, or a pattern.")],
    *,
    column: Annotated[str, typer.Option(metavar="C", help="The column that the question is about.")],
    person: Annotated[
        str | None,
        typer.Option(metavar="P", help="Column that identifies the person. Default: each row is a person."),
    ] = None,
    candidates: Annotated[
        str | None, typer.Option(metavar="LIST|FILE", help="The public candidates of mode or top, as there.")
    ] = None,
    every: Annotated[str | None, typer.Option(metavar="RULE", help="The rule of mode or top, as there.")] = None,
    lower: Annotated[str | None, typer.Option(metavar="A", help="The range of a median or quantile, as there.")] = None,
    upper: Annotated[str | None, typer.Option(metavar="B", help="The upper end of the range.")] = None,
    step: Annotated[str | None, typer.Option(metavar="S", help="The step between candidates.")] = None,
    range_: Annotated[str, typer.Option("--range", metavar="full|log", help="As for median and quantile.")] = "full",
    group_by: Annotated[
        list[str] | None, typer.Option(metavar="G", help="A column of groups. Repeat it to combine columns.")
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option(metavar="LIST|FILE", help="The public groups of --group-by, once for each of them."),
    ] = None,
    show_values: Annotated[
        bool,
        typer.Option("--show-values", metavar="", help="Also print up to five values of the data for each problem."),
    ] = False,
    engine: Annotated[str, typer.Option(metavar="duckdb", help="A check runs on this machine only.")] = "duckdb",
    ledger: Annotated[str | None, typer.Option("--ledger", hidden=True)] = None,
    budget: Annotated[str | None, typer.Option("--budget", hidden=True)] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", hidden=True)] = None,
    as_json: Json = False,
) -> None:
    """Print what a question would read and leave out, and why. PRIVATE: for the data owner only.

    Run it before the first question. It counts malformed lines, missing and unreadable values, values that are not
    listed or outside the range, and suspicious notations such as decimal commas, and says how to fix them.
    The numbers are exact, so do not publish them, and do not choose candidates or a range by them.
    Nothing is charged, and nothing is released.

    Exit code 0: every row counts as it is. Exit code 1: rows are left out or moved, or something is suspicious.

    Example: dpselect check visits.csv --column cost --lower 0 --upper 100000 --person patient

    Example: dpselect check visits.csv --column diagnosis --candidates I10,E11,J45 --person patient
    """
    with clean_errors():
        _check_free({"--ledger": ledger, "--budget": budget, "--epsilon": epsilon})
        if engine != "duckdb":  # before Spark is started
            raise InvalidValue("a check runs on this machine only: leave --engine out")
        table = open_table(file, person=person)
        possible = _possible(table, file, column, candidates, every)
        ends: dict[str, Any] = {"lower": lower, "upper": upper, "step": step, "range": range_}
        grouped = _grouped(table, file, group_by or [], groups or [])
        found = grouped.check(column, candidates=possible, **ends, show_values=show_values)
    _print(found, as_json)
    if not found.passed:
        raise typer.Exit(FAILED)


def _check_free(given: dict[str, str | None]) -> None:
    """Refuse the options of questions that cost something."""
    for option, value in given.items():
        if value is not None:
            raise InvalidValue(_NOT_CHARGED.format(option=option))


def _possible(table: Table, file: str, column: str, candidates: str | None, every: str | None) -> Any:
    """The list or the rule, or None."""
    if candidates is not None and every is not None:
        raise InvalidValue("--candidates and --every exclude each other: give a list or a rule")
    if candidates is None:
        return None if every is None else rule(every)
    return public_list(candidates, known_column(table.columns, column, "column"), "--candidates", file)


def _grouped(table: Table, file: str, columns: list[str], texts: list[str]) -> Table:
    """The table in listed groups, if there are any."""
    if len(columns) != len(texts):
        raise InvalidValue(
            "--group-by and --groups belong together: name each column, and list its public groups, in the same order"
        )
    if any(text.startswith("found:") for text in texts):
        raise InvalidValue("--groups found: costs epsilon, and a check is free: give a list of groups")
    listed = {
        column: public_list(text, known_column(table.columns, column, "--group-by"), "--groups", file)
        for column, text in zip(columns, texts, strict=True)
    }
    if not columns:
        return table
    return (
        table.group_by(columns[0], groups=listed[columns[0]])
        if len(columns) == 1
        else table.group_by(columns, groups=listed)
    )


def _print(found: Check, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
        return
    first, *lines = found.report().splitlines()
    print_line(first, "bold red")
    for line in lines:
        print_line(line, "yellow" if line.startswith("suspicious") else "")
