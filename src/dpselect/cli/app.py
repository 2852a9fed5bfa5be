"""The commands of `dpselect`."""

import io
import sys
from typing import Annotated

import typer

from dpselect._version import __version__
from dpselect.cli.audit import audit
from dpselect.cli.check import check
from dpselect.cli.compare import compare
from dpselect.cli.demo import demo
from dpselect.cli.explore import explore
from dpselect.cli.ledger import ledger
from dpselect.cli.options import Commands
from dpselect.cli.paper import paper, study
from dpselect.cli.plan import plan
from dpselect.cli.select import select
from dpselect.cli.tables import maximum, median, minimum, mode, quantile, quantiles, top, values

# A pretty traceback would print local variables, which include scores.
app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
)
app.command()(check)
app.command()(mode)
app.command()(top)
app.command()(values)
app.command()(median)
app.command()(quantile)
app.command()(quantiles)
app.command()(minimum)
app.command()(maximum)
app.command()(select)
app.add_typer(plan, name="plan")
app.command()(compare)
app.command()(explore)
app.command()(paper)
app.command()(study)
app.command()(audit)
app.command()(demo)
app.add_typer(ledger, name="ledger")


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
    """Choose the best candidate without revealing anything about any one person.

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
