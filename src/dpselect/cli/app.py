"""The commands of `dpselect`."""

import io
import sys
from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

from dpselect._version import __version__
from dpselect.cli.commands import Late, LateCommands


class _Commands(LateCommands):
    """The commands in the order in which help shows them."""

    late: ClassVar[Mapping[str, Late]] = {
        "check": Late(
            "check", "Print what a question would read and leave out, and why. PRIVATE: for the data owner only."
        ),
        "mode": Late("tables", "Return the candidate that most people have, privately."),
        "top": Late("tables", "Return the K candidates that most people have, privately."),
        "values": Late("tables", "Return the values that enough people have, privately. They are public then."),
        "median": Late("tables", "Return a value with about half of the people below it, privately."),
        "quantile": Late("tables", "Return a value with about a share Q of the people below it, privately."),
        "quantiles": Late(
            "tables", "Return a value for each of several shares of the people, privately, in one question."
        ),
        "minimum": Late("tables", "Return a value with only few people below it, privately, in place of the minimum."),
        "maximum": Late("tables", "Return a value with only few people above it, privately, in place of the maximum."),
        "select": Late("select", "Choose one candidate with a high score, or several, privately."),
        "compare": Late("compare", "Compare the errors of the mechanisms on public or synthetic scores."),
        "explore": Late("explore", "Choose epsilon by eye, on a local web page that only this machine can reach."),
        "paper": Late("paper", "Reproduce every figure of the permute-and-flip paper and check every claim."),
        "study": Late(
            "paper",
            "Compare permute-and-flip with the exponential mechanism inside larger mechanisms, and the methods for the"
            " top k.",
        ),
        "audit": Late("audit", "Try to show that a mechanism is less private than it claims."),
        "demo": Late("demo", "Answer private questions about a synthetic hospital table."),
        "plan": Late(
            "plan", "Print what accuracy to expect, what it costs, or what epsilon to use, before touching any data."
        ),
        "ledger": Late("ledger", "Show, verify and export the ledger of a data set."),
    }


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
