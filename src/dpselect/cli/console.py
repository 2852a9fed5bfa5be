"""What the commands print: results and tables on standard output, errors and progress on standard error.

An error of the library ends a command with one line and with the exit code of its kind.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from dpselect.errors import (
    BudgetExceeded,
    BudgetMismatch,
    DPSelectError,
    EngineFailure,
    LedgerError,
    MissingExtra,
    RequestConflict,
    UnitMismatch,
)

BAD_INPUT, BUDGET_EXCEEDED, LEDGER_UNUSABLE, EXTRA_MISSING, ENGINE_FAILED = 2, 3, 4, 5, 6
# The code of an error is that of the nearest class of which it is one.
EXIT_CODES: dict[type, int] = {
    DPSelectError: BAD_INPUT,
    BudgetExceeded: BUDGET_EXCEEDED,
    LedgerError: LEDGER_UNUSABLE,
    BudgetMismatch: BAD_INPUT,  # the ledger is fine, and something else was asked of it
    UnitMismatch: BAD_INPUT,
    RequestConflict: BAD_INPUT,
    MissingExtra: EXTRA_MISSING,
    EngineFailure: ENGINE_FAILED,
}
_WIDE = 1000


def printable(text: str) -> str:
    """The text without characters that could steer a terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def print_line(text: str, style: str = "") -> None:
    """Print one line as it is: markup in a label stays text, and a pipe gets no line breaks of ours."""
    Console().print(Text(printable(text), style), soft_wrap=True)


def print_paragraph(title: str, text: str) -> None:
    """Print text that is wrapped between words, after a bold beginning."""
    Console().print(Text.assemble((printable(title), "bold"), " " if title else "", printable(text)))


def print_table(table: Table) -> None:
    """Print a table in its own width: a number is never cut or broken, however narrow the terminal is.

    Markup in a cell stays text.
    """
    Console(width=_WIDE, markup=False).print(table)


@contextmanager
def clean_errors() -> Iterator[None]:
    """Turn an error of the library into one line on standard error and an exit code."""
    try:
        yield
    except DPSelectError as error:
        message = Text.assemble(("error: ", "bold red"), printable(str(error)))
        Console(stderr=True).print(message, soft_wrap=True)
        raise typer.Exit(exit_code(error)) from None


def exit_code(error: DPSelectError) -> int:
    """The exit code of an error.

    >>> exit_code(BudgetExceeded("too much")), exit_code(DPSelectError("wrong"))
    (3, 2)
    """
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes how much is done, from 0 to 1; a bar on standard error, if somebody is watching."""
    console = Console(stderr=True)
    if not console.is_terminal:  # even a disabled bar prints an empty line, up to rich 14
        yield lambda _: None
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def progress_bars() -> Iterator[Callable[[list[Any], str], Iterable[Any]]]:
    """Yield a function that passes items on, with a bar for each stage on standard error, if somebody is watching."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda items, _: items
        return
    with Progress(console=console, transient=True) as progress:
        yield lambda items, what: progress.track(items, description=what)


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show a spinner on standard error while the body runs, if somebody is watching."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def figure_table(first: str, *others: str) -> Table:
    """A table without rows: a first column of names, then columns of numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for other in others:
        table.add_column(other, justify="right", no_wrap=True)
    return table
