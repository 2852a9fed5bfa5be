"""Public values of the command line: lists of candidates and groups, and the ends of a range."""

import csv
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpselect._exact import NotExact, number_from_text
from dpselect.errors import InvalidValue
from dpselect.tables.kinds import Column, Kind, value_from_text

_SECONDS = (Kind.TIMESTAMP, Kind.ZONED)


def public_list(text: str, column: Column, option: str) -> list[Any]:
    """The values of a list such as A,B,C, or of a file with one value per line, in the type of the column."""
    path = Path(text)
    texts = _lines(path) if _is_file(path) else _items(text, option)
    if option == "--candidates" and not _is_file(path) and len(texts) == 1:
        raise InvalidValue(
            f"{option}: one value is no choice, and there is no file of that name: give A,B,C with commas, or a file"
            " with one value per line"
        )
    if not texts:
        raise InvalidValue(f"{option} must name at least one value: give A,B,C or a file with one value per line")
    return [value_from_text(item, column.kind, option) for item in texts]


def _items(text: str, option: str) -> list[str]:
    try:
        return next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:  # a line break, or an item beyond all sizes
        raise InvalidValue(f"{option} must be one line A,B,C, or a file with one value per line") from None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a list that is too long, or has characters that no path has
        return False


def _lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InvalidValue(f"{path}: the list cannot be read: give a UTF-8 text file with one value per line") from None
    return [line for line in lines if line.strip()]


def bound(text: str, column: Column, option: str) -> Any:
    """An end of the range of a quantile, in the type of the column; for a CSV file, as it is written."""
    return _written(text, option) if column.untyped else value_from_text(text, column.kind, option)


def distance(text: str, column: Column) -> Any:
    """The step between two candidates: a number, of days for dates and of seconds for timestamps."""
    if column.kind is Kind.DATE:
        return value_from_text(text, Kind.INTEGER, "--step")
    kind = Kind.DECIMAL if column.kind in _SECONDS else column.kind
    return _written(text, "--step") if column.untyped else value_from_text(text, kind, "--step")


def _written(text: str, option: str) -> Any:
    """A whole number, a decimal number, a date or a timestamp, as it is written."""
    readers: tuple[Callable[[str], Any], ...] = (
        number_from_text,
        datetime.date.fromisoformat,
        datetime.datetime.fromisoformat,
    )
    for reader in readers:
        try:
            return reader(text.strip())
        except (NotExact, ValueError):
            continue
    raise InvalidValue(
        f"{option}: {text[:40]!r} is neither a number nor a date: write for instance 12, 0.5 or 2026-01-31"
    )
