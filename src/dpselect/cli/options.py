"""How a command is made of its options, and what several commands share: options, and what their text states."""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpselect import _validate
from dpselect.cli.console import clean_errors
from dpselect.errors import InvalidValue
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.questions.options import QUESTIONS, Option

if TYPE_CHECKING:
    from dpselect.ledger import Ledger

Given = Mapping[str, Any]  # the texts of options, by the names of their flags


def command(*options: Option, text: Sequence[str] | None = None) -> Callable[[Callable[[Given], None]], Any]:
    """Make a command of a function of what is given. Its help is the docstring, or these paragraphs."""

    def made(run: Callable[[Given], None]) -> Any:
        def called(**given: Any) -> None:
            with clean_errors():
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


@contextmanager
def writing(shown: str, remedy: str = "") -> Iterator[None]:
    """Turn the error of a file that cannot be written into a message about this option or path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidValue(f"{shown}: the file cannot be written ({reason}){remedy}") from None
