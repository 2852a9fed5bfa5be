"""Measure every row and print the table.

Rows and tables of errors need no idle machine; they are measured if --errors is given, or if --only names them.
"""

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import (
    analysis,
    cost_by_n,
    explorer,
    footprint,
    found,
    found_people,
    ledger,
    quantiles,
    reproduction,
    scale,
    speed,
    startup,
    tables,
    top_k,
    top_k_errors,
)
from benchmarks.case import FAILED, Case, Row, measured
from benchmarks.machine import machine
from benchmarks.page import rewritten
from benchmarks.run import Run, loaded
from benchmarks.stopwatch import FULL, QUICK, Effort
from benchmarks.table import markdown, missed, print_table, summary
from benchmarks.units import seconds

_PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
_REPORTS: dict[str, Callable[[Effort], str]] = {
    cost_by_n.TITLE: cost_by_n.report,
    top_k_errors.TITLE: top_k_errors.report,
    found_people.TITLE: found_people.report,
}
_OF_ERRORS = (top_k_errors.TITLE, found_people.TITLE)


def every_case() -> list[Case]:
    """All rows, in the order of the table."""
    return [
        *speed.cases(),
        *footprint.cases(),
        *startup.cases(),
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


def main() -> None:
    """Run the benchmarks."""
    options, cases = _options(), every_case()
    run = loaded(options.load) if options.load else _measured(options, cases)
    rows = run.rows(cases)
    print(f"{run.method}\n")
    if options.markdown and rows:
        print(markdown(rows))
    elif rows:
        print_table(rows)
    print("\n".join(["", summary(rows), missed(rows)]))
    for title, report in run.reports.items():
        print(f"\n{title}\n\n{report}")
    if options.page:
        _write_page(options.page, run, cases)
    if any(row.note == FAILED for row in rows):
        sys.exit("some rows FAILED; the run has printed why")


def _measured(options: argparse.Namespace, cases: Sequence[Case]) -> Run:
    """Measure what the options name, and save after each row, so that a run that is stopped is not lost."""
    only = re.compile(options.only)
    errors = bool(options.only) or options.errors
    chosen = [case for case in cases if only.search(case.label) and (errors or not case.is_of_errors)]
    effort = replace(QUICK if options.quick else FULL, turn=options.turn)
    run, start = Run(f"{time.strftime('%d %B %Y')}: {machine()}\n{_method(effort)}"), time.monotonic()

    def save() -> None:
        if options.save:
            run.save(options.save)

    for title, report in _REPORTS.items():  # first: some rows leave servers behind, such as Spark's
        if only.search(title) and (errors or title not in _OF_ERRORS):
            run.reports[title] = report(effort)
            save()
    for row in _rows(chosen, effort, options.largest):
        run.add(row)
        save()
    run.method += f"\nThe run took {(time.monotonic() - start) / 60:.1f} minutes."
    save()
    return run


def _write_page(page: Path, run: Run, cases: Sequence[Case]) -> None:
    """Write the results into the page, and draw the picture of its table."""
    from tools import draw_pictures  # noqa: PLC0415 - needs matplotlib

    text = rewritten(page.read_text(encoding="utf-8"), run, cases)
    page.write_text(text, encoding="utf-8")
    (_PICTURES / f"{draw_pictures.COST}.svg").write_bytes(draw_pictures.cost_by_n(text))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs of every row: sooner, and noisier")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument(
        "--turn", type=float, default=0.0, metavar="SECONDS", help="length of a competitor's turn; default: one call"
    )
    parser.add_argument("--errors", action="store_true", help="measure rows and tables of errors too")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the figures in a file")
    parser.add_argument("--load", type=Path, metavar="FILE", help="measure nothing, and take the figures of that file")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the figures into this page, and its picture")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only rows whose description has this pattern")
    parser.add_argument(
        "--largest", type=float, default=float("inf"), metavar="N", help="no rows of more candidates or rows: 1e7"
    )
    return parser.parse_args()


def _method(effort: Effort) -> str:
    turn = f"turns of {seconds(effort.turn)}" if effort.turn else "turns of one call"
    return (
        f"Medians; competitors take {turn}; at least {effort.rounds} rounds and {seconds(effort.seconds)} a row, "
        f"{seconds(effort.half.seconds)} if it has no bar;\nat least {effort.fewest} rounds where {effort.rounds} "
        f"take more than {seconds(effort.longest)}; linear programs and the paper once."
    )


def _rows(cases: Sequence[Case], effort: Effort, largest: float) -> Iterator[Row]:
    """Measure, and say on stderr how far it is: a bar on a terminal, a line a row elsewhere."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(cases))
        for number, case in enumerate(cases, start=1):
            progress.update(task, description=case.label)
            if not console.is_terminal:
                print(f"[{number}/{len(cases)}] {case.label}", file=sys.stderr, flush=True)
            yield Row(case, None, "left out") if case.rows > largest else measured(case, effort)
            progress.advance(task)


if __name__ == "__main__":
    main()
