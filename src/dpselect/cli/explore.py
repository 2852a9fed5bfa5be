"""`dpselect explore`: a local web page on which you choose epsilon by looking at charts."""

from typing import Annotated

import typer

from dpselect import _validate
from dpselect._messages import install_command
from dpselect.cli.console import clean_errors, print_line
from dpselect.cli.options import Column, Label
from dpselect.errors import InvalidValue, MissingExtra
from dpselect.explore.scores import ScoreSet, file_words
from dpselect.score_files import STANDARD_INPUT, read_scores, shown_path

_File = Annotated[
    str | None,
    typer.Argument(metavar="SCORES.csv", help="Public or synthetic scores to start with; - reads standard input."),
]
_Port = Annotated[str | None, typer.Option(metavar="P", help="Port of the page. Default: any free port.")]
_NoBrowser = Annotated[
    bool, typer.Option("--no-browser", metavar="", help="Print the address, but do not open the page.")
]


def explore(
    file: _File = None,
    *,
    port: _Port = None,
    no_browser: _NoBrowser = False,
    column: Column = None,
    label: Label = None,
) -> None:
    """Choose epsilon by eye, on a local web page that only this machine can reach.

    The page shows the scores, so give public or synthetic ones.
    Needs the extra 'explore' (starlette and uvicorn).

    Example: dpselect explore public.csv
    """
    with clean_errors():
        chosen = 0 if port is None else _validate.count_in_text(1, 65_535, port=port)
        try:
            from dpselect.explore.app import serve  # noqa: PLC0415 - needs the extra
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
                raise
            remedy = install_command("starlette", "uvicorn")
            raise MissingExtra(f"the explorer needs starlette and uvicorn: {remedy}") from None
        first = None if file is None else _read_first(file, column, label)
        serve(first, chosen, browser=not no_browser, announce=_announce)


def _read_first(file: str, column: str | None, label: str | None) -> ScoreSet:
    """Read the scores of the file."""
    candidates = read_scores(file, column=column, label=label)
    words = None if file == STANDARD_INPUT else file_words(file, column, label)
    try:
        return ScoreSet(shown_path(file), candidates, file=words)
    except InvalidValue as error:
        raise InvalidValue(f"{shown_path(file)}: {error}") from None


def _announce(address: str) -> None:
    print_line(f"The explorer: {address}", "bold")
    print_line("Only this machine can reach it. Anyone who sees the page sees the scores. Press Ctrl-C to stop.", "dim")
