"""The commands of `dpselect`."""

import io
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dpselect._version import __version__
from dpselect.cli.commands import Late, LateCommands, imported, questions
from dpselect.questions.options import ASKING

_CHECK = "Print what a question would read and leave out, and why. PRIVATE: for the data owner only."
_OTHERS = (
    ("select", "select", "Choose one candidate with a high score, or several, privately."),
    ("compare", "compare", "Compare the errors of the mechanisms on public or synthetic scores."),
    ("research", "explore", "Choose epsilon by eye, on a local web page that only this machine can reach."),
    ("research", "paper", "Reproduce every figure of the permute-and-flip paper and check every claim."),
    (
        "research",
        "study",
        "Compare permute-and-flip with the exponential mechanism inside larger mechanisms, and the methods for the top"
        " k.",
    ),
    ("audit", "audit", "Try to show that a mechanism is less private than it claims."),
    ("demo", "demo", "Answer private questions about a synthetic hospital table."),
    (
        "questions",
        "plan",
        "Print what accuracy to expect, what it costs, or what epsilon to use, before touching any data.",
    ),
    ("ledger", "ledger", "Show, verify and export the ledger of a data set."),
)


def _check() -> Any:
    from dpselect.cli.questions import checking  # noqa: PLC0415 - imported when it is used

    return checking()


class _Commands(LateCommands):
    """The commands in the order in which help shows them."""

    def late(self) -> Mapping[str, Late]:
        others = {name: imported(module, name, summary) for module, name, summary in _OTHERS}
        return {"check": Late(_CHECK, _check), **questions(ASKING), **others}


# A pretty traceback would print local variables, which include scores.
app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpselect {__version__}")
        raise typer.Exit


@app.callback()
def describe(
    version: Annotated[
        bool,
        typer.Option("--version", metavar="", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Choose the best candidate, with a proven limit on what the answer reveals about any one person.

    New here? Start with: dpselect demo

    Exit codes: 0 success, 1 a failed check, 2 bad input,
    3 not enough budget left, 4 the ledger is corrupt or cannot be used,
    5 an optional part is not installed, 6 the table could not be counted.
    """


def main() -> None:
    """Run the command line."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A label that the terminal cannot encode must not turn the answer into a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    app()
