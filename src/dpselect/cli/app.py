"""The commands of `dpselect`, which are made when they are used.

The list of commands needs one line about each, and nothing that they compute with: `dpselect --help` imports none.
"""

import io
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from dpselect._messages import NO_QUESTIONS
from dpselect._version import __version__
from dpselect.questions.options import ASKING, QUESTIONS


class Late(NamedTuple):
    """A command, or a group of them, that is not made yet."""

    summary: str  # the first paragraph of its help
    module: str
    name: str  # of the command, or of a function that makes it
    given: tuple[Any, ...] | None = None  # what that function is given; None if there is none

    def made(self) -> Any:
        """Return the function or the group."""
        found = getattr(import_module(f"dpselect.cli.{self.module}"), self.name)
        return found if self.given is None else found(*self.given)


def questions(form: str) -> dict[str, Late]:
    """The commands that ask or plan each question."""
    texts = {name: entry.paragraphs(form) for name, entry in QUESTIONS.items()}
    return {name: Late(text[0], "questions", form, (QUESTIONS[name],)) for name, text in texts.items() if text}


class LateCommands(TyperGroup):
    """Commands that are made when they are used. Of questions that other libraries have, it says what to do here."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Made(self.late)

    @abstractmethod
    def late(self) -> Mapping[str, Late]:
        """Return the commands by name, in the order in which help shows them."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - part of the protocol
        return list(self.late())

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in NO_QUESTIONS and args[0] not in self.commands:
            ctx.fail(f"No such command {args[0]!r}: {NO_QUESTIONS[args[0]]}.")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        listed = copy(self)
        listed.commands = {name: TyperCommand(name, help=late.summary) for name, late in self.late().items()}
        super(LateCommands, listed).format_help(ctx, formatter)


class _Made(Mapping[str, Any]):
    """Commands by name, made when they are looked up."""

    def __init__(self, late: Callable[[], Mapping[str, Late]]) -> None:
        self._late = late

    def __getitem__(self, name: str) -> Any:
        made, holder = self._late()[name].made(), typer.Typer(add_completion=False)
        if isinstance(made, typer.Typer):
            holder.add_typer(made, name=name)
        else:
            holder.command(name)(made)
        return typer.main.get_group(holder).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._late())

    def __len__(self) -> int:
        return len(self._late())


_CHECK = "Print what a question would read and leave out, and why. PRIVATE: for the data owner only."
_PLAN = "Print what accuracy to expect, what it costs, or what epsilon to use, before touching any data."
_OTHERS = {
    "select": Late("Choose one candidate with a high score, or several, privately.", "scores", "select"),
    "compare": Late("Compare the errors of the mechanisms on public or synthetic scores.", "scores", "compare"),
    "explore": Late(
        "Choose epsilon by eye, on a local web page that only this machine can reach.", "research", "explore"
    ),
    "paper": Late("Reproduce every figure of the permute-and-flip paper and check every claim.", "research", "paper"),
    "audit": Late("Try to show that a mechanism is less private than it claims.", "research", "audit"),
    "demo": Late("Answer private questions about a synthetic hospital table.", "demo", "demo"),
    "plan": Late(_PLAN, "questions", "plan"),
    "ledger": Late("Show, verify and export the ledger of a data set.", "ledger", "ledger"),
}


class _Commands(LateCommands):
    """The commands in the order in which help shows them."""

    def late(self) -> Mapping[str, Late]:
        return {"check": Late(_CHECK, "questions", "checking", ()), **questions(ASKING), **_OTHERS}


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
    5 an optional part is not installed, 6 the table could not be counted,
    7 the check before the charge stopped the question.
    """


def main() -> None:
    """Run the command line."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A label that the terminal cannot encode must not turn the answer into a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    app()
