"""Groups of commands, which are made when they are used.

The list of commands needs one line about each, and nothing that they compute with: `dpselect --help` imports none.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from dpselect._messages import NO_QUESTIONS
from dpselect.questions.options import QUESTIONS


class Late(NamedTuple):
    """A command, or a group of them, that is not made yet."""

    summary: str  # the first paragraph of its help
    made: Callable[[], Any]  # returns the function or the group


def imported(module: str, name: str, summary: str) -> Late:
    """A command of a module of `dpselect.cli`, imported when it is used."""
    return Late(summary, partial(_imported, module, name))


def questions(form: str) -> dict[str, Late]:
    """The commands that ask or plan each question."""
    texts = {name: entry.paragraphs(form) for name, entry in QUESTIONS.items()}
    return {name: Late(text[0], partial(_about, form, name)) for name, text in texts.items() if text}


def _about(form: str, name: str) -> Any:
    return _imported("questions", form)(QUESTIONS[name])


def _imported(module: str, name: str) -> Any:
    return getattr(import_module(f"dpselect.cli.{module}"), name)


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
