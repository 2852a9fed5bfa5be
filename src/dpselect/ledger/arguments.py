"""Checks of what a ledger is given."""

import os
from pathlib import Path
from typing import Any

from dpselect._unit import PrivacyUnit
from dpselect.errors import InvalidType, InvalidValue, UnitMismatch

_LONGEST_NAME = 200


def name_text(**parameter: Any) -> str:
    """A name that somebody gives, such as a request id: short and printable."""
    [(name, text)] = parameter.items()
    if not isinstance(text, str):
        raise InvalidType(f"{name} must be a text, got {type(text).__name__}")
    if not 1 <= len(text) <= _LONGEST_NAME or not text.isprintable():
        raise InvalidValue(f"{name} must be 1 to {_LONGEST_NAME} printable characters")
    return text


def answer_text(answer: Any) -> str:
    """An answer that a file can hold."""
    if not isinstance(answer, str):
        raise InvalidType(f"answer must be a text, got {type(answer).__name__}")
    try:
        answer.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidValue("answer must be a text that can be written as UTF-8") from None
    return answer


def absolute_path(path: Any) -> Path:
    """The path of a file, wherever the process goes later."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidType(f"path must be a file's path, got {type(path).__name__}")
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidValue("path must be a file's path as a text that is not empty")
    return Path(text).absolute()


def check_unit(path: Path, ours: PrivacyUnit | None, theirs: PrivacyUnit) -> None:
    """Refuse a question whose privacy unit is not the ledger's."""
    if ours is not None and ours != theirs:
        raise UnitMismatch(
            f"ledger {path} has the privacy unit {ours}, and this is {theirs}: epsilons of different units do not add"
            " up; nothing was spent. Open the table with the ledger's unit, or use another ledger"
        )


def check_dataset(path: Path, ours: str | None, theirs: str | None) -> None:
    """Refuse a table whose name is not that of the ledger's data set."""
    if ours != theirs:
        has = "was created without a data set's name" if ours is None else f"belongs to the data set {ours!r}"
        given = "no name was given" if theirs is None else f"the name given is {theirs!r}"
        raise UnitMismatch(
            f"ledger {path} {has}, and {given}: nothing was spent. Give dataset= as when the ledger was created, or use"
            " another ledger"
        )
