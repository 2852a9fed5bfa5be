"""What all commands share: how one is made of its options, what it prints, and how it ends with an error.

Results and tables go to standard output. Standard error gets errors, and what is said about an answer. An error of the
library ends a command with one line and the exit code of its kind. The library's messages name parameters of Python;
here they name the options that state them.
"""

import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpselect import _validate
from dpselect._messages import printable
from dpselect.errors import (
    BudgetExceeded,
    BudgetMismatch,
    CheckFailed,
    DoubtfulValue,
    DPSelectError,
    EngineFailure,
    InvalidValue,
    LedgerError,
    MissingExtra,
    RequestConflict,
    UnitMismatch,
)
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.questions.options import QUESTIONS, Option
from dpselect.release import Answer

if TYPE_CHECKING:
    from dpselect.ledger import Ledger

# How a command is made.

Given = Mapping[str, Any]  # the texts of options, by the names of their flags


def command(*options: Option, text: Sequence[str] | None = None) -> Callable[[Callable[[Given], None]], Any]:
    """Make a command of a function of what is given. Its help is the docstring, or these paragraphs."""

    def made(run: Callable[[Given], None]) -> Any:
        def called(**given: Any) -> None:
            with clean_errors(options):
                run(given)

        parameters = [_parameter(option) for option in options]
        vars(called)["__signature__"] = inspect.Signature(parameters)
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        called.__doc__ = run.__doc__ if text is None else "\n\n".join(text)
        return called

    return made


def _parameter(option: Option) -> inspect.Parameter:
    text: Any = str if option.is_required or option.default is not None else str | None
    kind: Any = list[str] | None if option.is_repeated else bool if option.is_flag else text
    shown_as: dict[str, Any] = {"metavar": option.metavar, "help": option.help}
    declared = (
        typer.Option(*option.flags, hidden=not option.help, **shown_as)
        if option.flags[0].startswith("-")
        else typer.Argument(**shown_as)
    )
    default = inspect.Parameter.empty if option.is_required else False if option.is_flag else option.default
    return inspect.Parameter(
        option.key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared]
    )


def planned_options(question: str, *names: str) -> tuple[Option, ...]:
    """Options of a plan, which a command without a table has too."""
    found = {option.name: option for option in QUESTIONS[question].planning}
    return tuple(replace(found[name], is_required=False) for name in names)


# Options that several commands have, and what their text states.

SCORES = Option(("file",), "SCORES.csv", "CSV file with the scores; - reads standard input.", is_required=True)
SCORE_COLUMNS = (
    Option(("--column",), "C", "Name of the score column; the file needs a header."),
    Option(("--label",), "L", "Name of the label column; needs --column."),
)
CLAIM = planned_options("select", "sensitivity", "monotonic", "score_range")
PRICE = (
    Option(("--epsilon",), "E", "Privacy loss, exactly as written: 0.1, 1e-3 or 1/3. Give this or --rho."),
    Option(("--rho",), "R", "Privacy loss in zCDP, exactly as written. Give this or --epsilon."),
)
LEDGER = (
    Option(("--ledger",), "L", "Ledger file to charge before the answer is drawn."),
    Option(("--budget",), "B", "Budget of a new ledger, fixed forever: 1 (epsilon), zcdp:0.5, 1,1e-6 or 10,cap:0.1."),
    Option(("--dataset",), "NAME", "A public name of the data, which a new ledger is bound to."),
    Option(("--request-id",), "ID", "Store the answer; the same id on the same data repeats it and costs nothing."),
)
JSON = Option(("--json",), "", "Print a JSON object.")


def check_ledger_options(ledger: str | None, **others: str | None) -> None:
    """Refuse options of a ledger without one, and a ledger that neither exists nor can be created."""
    if ledger is None:
        for name, value in others.items():
            if value is not None:
                raise InvalidValue(f"--{name.replace('_', '-')} needs a ledger: name its file with --ledger")
    elif others.get("budget") is None and not os.path.lexists(ledger):
        raise InvalidValue(f"there is no ledger {ledger}: give --budget to create it")


def open_ledger(path: str, budget: str | None, dataset: str | None) -> "Ledger":
    """Open or create the ledger of this data set."""
    from dpselect.ledger import Ledger  # noqa: PLC0415 - SQLite is imported when it is used

    ledger = Ledger(path, budget, dataset=dataset)
    ledger.check_table(None, dataset)
    return ledger


def claimed(given: Given) -> Claim:
    """How far neighbours are apart, in numbers of a size that floats can compute with."""
    claim = stated(given["sensitivity"], given["monotonic"], given["score_range"])
    for name in ("sensitivity", "score_range"):
        if given[name] is not None:
            _validate.moderate(**{name: given[name]})
    return claim


# What a command prints, and how it fails.

BAD_INPUT, BUDGET_EXCEEDED, LEDGER_UNUSABLE, EXTRA_MISSING, ENGINE_FAILED, CHECK_FAILED = 2, 3, 4, 5, 6, 7
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
    CheckFailed: CHECK_FAILED,
}
_WIDE = 1000


def print_line(text: str, style: str = "") -> None:
    """Print one line unchanged: markup in a label stays text, and no line breaks are added."""
    Console().print(Text(printable(text), style), soft_wrap=True)


def print_comment(text: str) -> None:
    """Print a line about an answer, on standard error: standard output carries the answer and nothing else."""
    Console(stderr=True).print(Text(printable(text), "dim"), soft_wrap=True)


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
    """Print what drew an answer, what it guarantees, which entry of a ledger paid for it, and what else to know."""
    if not answer.epsilon:
        print_comment("these are all candidates: nothing was drawn, and nothing is charged")
        return
    entry = f"; {answer.entry}" if answer.entry else ""
    print_comment(f"chosen by {answer.mechanism}{claim}; guarantee: {answer.promise}{entry}")
    for note in answer.notes:
        print_comment(f"note: {note}")


@contextmanager
def clean_errors(options: Sequence[Option] = ()) -> Iterator[None]:
    """Turn an error or a warning of the library into one line on standard error, and an error into an exit code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _print_message("warning", "bold yellow", in_options(str(message), options))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", DoubtfulValue)
            warnings.showwarning = show
            yield
    except DPSelectError as error:
        _print_message("error", "bold red", in_options(str(error), options))
        raise typer.Exit(exit_code(error)) from None


def _print_message(title: str, style: str, text: str) -> None:
    Console(stderr=True).print(Text.assemble((f"{title}: ", style), printable(text)), soft_wrap=True)


# What is before the name of a parameter, or after it at the beginning of a message.
_AFTER = "".join(f"(?<={words} )|" for words in ("leave", "either", "without", "give", "needs", "one of", "<="))
_FIRST = r"^(?=\w+(?: (?:must|needs?|is|are|and)\b|:))"
_RULE = re.compile(r"dpselect\.every\(['\"](\w+)['\"]\)")


def in_options(message: str, options: Sequence[Option]) -> str:
    """Return a message in which parameters have the names of their options.

    >>> options = [Option(("--max-values",), "N", "", name="max_values"), Option(("--engine",), "E", "")]
    >>> in_options("max_values must be >= 1: leave it out, or give engine='duckdb'", options)
    '--max-values must be >= 1: leave it out, or give --engine duckdb'
    """
    # The first option of several that state the same is the usual one.
    stating = [option for option in reversed(options) if option.flags[0].startswith("-")]
    flags = {option.name or option.key: option.flags[0] for option in stating}
    if not flags:
        return message
    message = _RULE.sub(r"--every \1", message)
    # A name that is an English word is a parameter only in the places where messages name parameters.
    names = "|".join(sorted(flags, key=len, reverse=True))
    unlike_words = "|".join(name for name in flags if "_" in name) or "(?!)"
    found = re.compile(
        rf"(?<![\w.=-])(?:(?P<stated>{names})=(?P<quote>['\"]?)(?P<value>[^'\", ]*)(?P=quote)|(?P<odd>{unlike_words})\b"
        rf"|(?:{_AFTER}{_FIRST})(?P<word>{names})\b(?! of| column| table)(?!=))"
    )

    def flag(match: "re.Match[str]") -> str:
        if match["stated"]:
            value = "" if match["value"] == "True" else match["value"]  # a flag has none
            return f"{flags[match['stated']]} {value}".strip()
        return flags[match["odd"] or match["word"]]

    message, before = found.sub(flag, message), ""
    while message != before:  # the next of several: --epsilon, rho and error
        before = message
        message = re.sub(rf"(--[\w-]+(?:,| and| or) )({names})\b", lambda two: two[1] + flags[two[2]], message)
    return message


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


@contextmanager
def writing(shown: str, remedy: str = "") -> Iterator[None]:
    """Turn the error of a file that cannot be written into a message about this option or path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidValue(f"{shown}: the file cannot be written ({reason}){remedy}") from None
