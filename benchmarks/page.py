"""Write the results of a run into a Markdown page.

What stands between two comments of the page is replaced:

    <!-- run: PATTERN -->     when and how these rows were measured, and how many bars are met
    <!-- missed: PATTERN -->  a list of the bars that are not
    <!-- rows: PATTERN -->    the table of these rows
    <!-- grid: PATTERN -->    a smaller table of them
    <!-- report: TITLE -->    a table of its own
    <!-- end -->

A pattern finds rows as that of `--only` does. A table is replaced if the run has measured all of its rows, and all rows
of each account (`run`) that covers one of them: so an account is never of another run than the tables that it covers.
"""

import re
from collections.abc import Callable, Sequence

from benchmarks.case import Case, Row
from benchmarks.run import Run
from benchmarks.table import grid, markdown, missed, summary

BLOCK = re.compile(
    r"^(<!-- (run|missed|rows|grid|report): ([^\n]+) -->\n).*?^(<!-- end -->)$", re.MULTILINE | re.DOTALL
)


def rewritten(text: str, run: Run, cases: Sequence[Case]) -> str:
    """The page with the results of the run; the cases are all that there are."""
    accounts = [_found(wanted, cases) for _, kind, wanted, _ in BLOCK.findall(text) if kind == "run"]

    def body(kind: str, wanted: str) -> str | None:
        if kind == "report":
            return run.reports.get(wanted)
        chosen = _found(wanted, cases)
        labels = chosen.keys() | {label for account in accounts if account.keys() & chosen for label in account}
        return _BODIES[kind](run.rows(chosen.values()), run) if labels and labels <= run.figures.keys() else None

    def block(found: re.Match[str]) -> str:
        begin, kind, wanted, end = found.groups()
        new = body(kind, wanted)
        return found[0] if new is None else f"{begin}\n{new}\n\n{end}"

    return BLOCK.sub(block, text)


def _found(wanted: str, cases: Sequence[Case]) -> dict[str, Case]:
    return {case.label: case for case in cases if re.search(wanted, case.label)}


_BODIES: dict[str, Callable[[Sequence[Row], Run], str]] = {
    "run": lambda rows, run: f"{run.method}\n\n**{summary(rows)}**",
    "missed": lambda rows, _: missed(rows) or "None.",
    "rows": lambda rows, _: markdown(rows),
    "grid": lambda rows, _: grid(rows),
}
