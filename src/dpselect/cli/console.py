"""Print results and tables to standard output, and errors to standard error.

An error of the library ends a command with one line and the exit code of its kind.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpselect.errors import (
    BudgetExceeded,
    BudgetMismatch,
    DoubtfulValue,
    DPSelectError,
    EngineFailure,
    LedgerError,
    MissingExtra,
    RequestConflict,
    UnitMismatch,
)
from dpselect.release import Answer

BAD_INPUT, BUDGET_EXCEEDED, LEDGER_UNUSABLE, EXTRA_MISSING, ENGINE_FAILED = 2, 3, 4, 5, 6
# The exit code of an error is that of its nearest base class listed here.
EXIT_CODES: dict[type, int] = {
    DPSelectError: BAD_INPUT,
    BudgetExceeded: BUDGET_EXCEEDED,
    LedgerError: LEDGER_UNUSABLE,
    BudgetMismatch: BAD_INPUT,  # the ledger is fine, but the budgets differ
    UnitMismatch: BAD_INPUT,
    RequestConflict: BAD_INPUT,
    MissingExtra: EXTRA_MISSING,
    EngineFailure: ENGINE_FAILED,
}
_WIDE = 1000


def printable(text: str) -> str:
    """The text without characters that could control a terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def print_line(text: str, style: str = "") -> None:
    """Print one line unchanged: markup in a label stays text, and no line breaks are added."""
    Console().print(Text(printable(text), style), soft_wrap=True)


def print_hint(text: str) -> None:
    """Print a line for the person at the terminal, on standard error; nothing if nobody is there."""
    console = Console(stderr=True)
    if console.is_terminal:
        console.print(Text(printable(text), "dim"), soft_wrap=True)


def print_paragraph(title: str, text: str) -> None:
    """Print a paragraph, wrapped between words, after a bold title."""
    Console().print(Text.assemble((printable(title), "bold"), " " if title else "", printable(text)))


def print_table(table: Table) -> None:
    """Print a table at its full width: no number is cut or wrapped, even on a narrow terminal."""
    # Markup in a cell stays text.
    Console(width=_WIDE, markup=False).print(table)


def has_several(value: Any) -> bool:
    """Whether an answer, or that of a group, lists several candidates."""
    answers = value.values() if isinstance(value, dict) else [value]
    return any(isinstance(answer, list) and len(answer) > 1 for answer in answers)


def print_terms(answer: Answer, claim: str = "") -> None:
    """Print what drew an answer, what it guarantees, and which entry of a ledger paid for it."""
    if not answer.epsilon:
        print_line("these are all candidates: nothing was drawn, and nothing is charged", "dim")
        return
    entry = f"; {answer.entry}" if answer.entry else ""
    print_line(f"chosen by {answer.mechanism}{claim}; guarantee: {answer.guarantee}{entry}", "dim")


@contextmanager
def clean_errors() -> Iterator[None]:
    """Turn an error or a warning of the library into one line on standard error, and an error into an exit code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", DoubtfulValue)
            warnings.showwarning = _print_warning
            yield
    except DPSelectError as error:
        message = Text.assemble(("error: ", "bold red"), printable(str(error)))
        Console(stderr=True).print(message, soft_wrap=True)
        raise typer.Exit(exit_code(error)) from None


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    Console(stderr=True).print(Text.assemble(("warning: ", "bold yellow"), printable(str(message))), soft_wrap=True)


def exit_code(error: DPSelectError) -> int:
    """The exit code of an error.

    >>> exit_code(BudgetExceeded("too much")), exit_code(DPSelectError("wrong"))
    (3, 2)
    """
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show a spinner on standard error while the body runs, if it is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def print_figures(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: a first column of names, then columns of numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for position, head in enumerate(heads):
        table.add_column(head, justify="right" if position else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    print_table(table)
