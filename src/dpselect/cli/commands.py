"""Groups of commands, which import a command when it is used.

The list of commands needs one line about each, and nothing that they compute with: `dpselect --help` imports none.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from dpselect._messages import NO_QUESTIONS


class Commands(TyperGroup):
    """The commands. For a question that other libraries have, it says what there is here."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command, or raise an error that says what to do."""
        if args and args[0] in NO_QUESTIONS and args[0] not in self.commands:
            ctx.fail(f"No such command {args[0]!r}: {NO_QUESTIONS[args[0]]}.")
        return super().resolve_command(ctx, args)


class Late(NamedTuple):
    """A command, or a group of them, that is not imported yet."""

    module: str  # of `dpselect.cli`; it has the command under the command's own name
    summary: str  # the first paragraph of its help


class LateCommands(Commands):
    """Commands that are imported when they are used."""

    late: ClassVar[Mapping[str, Late]]

    def __init__(self, **settings: Any) -> None:
        """Take the settings of the group."""
        super().__init__(**settings)
        self.commands: Any = _Imported(self.late)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - part of the protocol
        """Return the names in the order in which help shows them."""
        return list(self.late)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, with the summaries of the commands in place of the commands."""
        listed = copy(self)
        listed.commands = {name: TyperCommand(name, help=late.summary) for name, late in self.late.items()}
        super(LateCommands, listed).format_help(ctx, formatter)


class _Imported(Mapping[str, Any]):
    """Commands by name, imported when they are looked up."""

    def __init__(self, late: Mapping[str, Late]) -> None:
        self._late = late

    def __getitem__(self, name: str) -> Any:
        return _imported(self._late[name].module, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._late)

    def __len__(self) -> int:
        return len(self._late)


@cache
def _imported(module: str, name: str) -> Any:
    """The command of this name, as typer makes it of a function or of a group."""
    found, holder = getattr(import_module(f"dpselect.cli.{module}"), name), typer.Typer(add_completion=False)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command()(found)
    return typer.main.get_group(holder).commands[name]
