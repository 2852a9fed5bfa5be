"""Checks of what a ledger is given."""

import os
from pathlib import Path
from typing import Any

from dpselect.errors import InvalidType, InvalidValue

_LONGEST_REQUEST = 200


def request_text(request_id: Any) -> str:
    """A request id: short and printable."""
    if not isinstance(request_id, str):
        raise InvalidType(f"request_id must be a text, got {type(request_id).__name__}")
    if not 1 <= len(request_id) <= _LONGEST_REQUEST or not request_id.isprintable():
        raise InvalidValue(f"request_id must be 1 to {_LONGEST_REQUEST} printable characters")
    return request_id


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
