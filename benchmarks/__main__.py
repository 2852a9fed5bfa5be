"""Measure every row and print the table."""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import (
    analysis,
    explorer,
    footprint,
    found,
    found_people,
    ledger,
    quantiles,
    reproduction,
    scale,
    speed,
    tables,
    top_k,
    top_k_errors,
)
from benchmarks.case import Case, Row, measured
from benchmarks.machine import machine
from benchmarks.stopwatch import FULL, QUICK, Effort
from benchmarks.table import markdown, print_table, summary
from benchmarks.units import seconds


def main() -> None:
    """Run the benchmarks."""
    options = _options()
    cases = [
        *speed.cases(),
        *footprint.cases(),
        *top_k.cases(),
        *analysis.cases(),
        *tables.cases(),
        *found.cases(),
        *quantiles.cases(),
        *scale.cases(),
        *ledger.cases(),
        *explorer.cases(),
        *reproduction.cases(),
    ]
    cases = [case for case in cases if options.only.search(case.label) and case.rows <= options.largest]
    effort = replace(QUICK if options.quick else FULL, turn=options.turn)
    rows = list(_rows(cases, effort))
    print(f"{machine()}\n{_method(effort)}\n")
    if options.markdown:
        print(markdown(rows))
    elif rows:
        print_table(rows)
    print("\n" + summary(rows))
    if options.only.search(top_k_errors.TITLE):
        print("\n" + top_k_errors.report(options.quick))
    if options.only.search(found_people.TITLE):
        print("\n" + found_people.report(options.quick))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs of every row: sooner, and noisier")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument(
        "--turn", type=float, default=0.0, metavar="SECONDS", help="length of a competitor's turn; default: one call"
    )
    parser.add_argument(
        "--only", type=re.compile, default="", metavar="PATTERN", help="only rows whose description has this pattern"
    )
    parser.add_argument(
        "--largest", type=float, default=float("inf"), metavar="N", help="no rows of more candidates or rows: 1e7"
    )
    return parser.parse_args()


def _method(effort: Effort) -> str:
    turn = f"turns of {seconds(effort.turn)}" if effort.turn else "turns of one call"
    return f"Medians; competitors take {turn}; at least {effort.rounds} rounds and {seconds(effort.seconds)} a row"


def _rows(cases: Sequence[Case], effort: Effort) -> Iterator[Row]:
    """Measure, and say on stderr how far it is: a bar on a terminal, a line a row elsewhere."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(cases))
        for number, case in enumerate(cases, start=1):
            progress.update(task, description=case.label)
            if not console.is_terminal:
                print(f"[{number}/{len(cases)}] {case.label}", file=sys.stderr, flush=True)
            yield measured(case, effort)
            progress.advance(task)


if __name__ == "__main__":
    main()
