"""Read scores, and the labels of candidates, from a CSV file, at their exact decimal values.

No message contains a field of the file: scores are secret. A message lists the names in a header only if all of them
look like names, because a file without a header starts with a score.
"""

import csv
import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import TextIO

import numpy as np

from dpselect._messages import NO_NUMBER, is_data, shown_names
from dpselect._numbers import LARGEST_EXPONENT, NotExact, NotFinite, TooLong, number_from_text
from dpselect._scores import as_vector, losses
from dpselect._types import Vector
from dpselect.errors import InvalidValue

Score = int | Decimal


def parse_score(field: str, line: int) -> Score:
    """The score in a field: an int for digits, otherwise a Decimal; never a float, which would round."""
    if NO_NUMBER.fullmatch(field):
        rule = f"the score on line {line} is missing, NaN or infinite"
        raise InvalidValue(f"{rule}: drop or replace such scores by a public rule first")
    try:
        return number_from_text(field)
    except NotExact:
        rule = f"the score on line {line} is not a number"
        remedy = "write numbers like 12, -0.5 or 1e-3, with commas between fields only"
    except TooLong:
        rule = f"the score on line {line} has more than {LARGEST_EXPONENT} digits"
        remedy = "round the scores by a public rule first"
    except NotFinite:
        rule = f"the score on line {line} is beyond 1e{LARGEST_EXPONENT} or nearer to zero than 1e-{LARGEST_EXPONENT}"
        remedy = "give the scores and the sensitivity in another unit"
    raise InvalidValue(f"{rule}: {remedy}")


_SHOWN_NAMES = 20
_OTHER_MARKS = ";\t"


@dataclass(frozen=True, repr=False)
class ScoreFile:
    """The scores of the candidates, and their labels if the file has labels."""

    scores: list[Score]
    labels: list[str] | None


@dataclass(frozen=True)
class Names:
    """How messages refer to the two options that name a column."""

    column: str
    label: str


@dataclass(frozen=True)
class _Layout:
    """The number of columns, and the positions of the score and the label in a row."""

    width: int
    score: int
    label: int | None
    has_header: bool


def check_columns(column: str | None, label: str | None, names: Names) -> None:
    """Refuse a label column without a score column, and the same column for both."""
    if label is not None and column is None:
        raise InvalidValue(f"{names.label} needs {names.column}: name the score column with {names.column} too")
    if label is not None and column is not None and label.strip() == column.strip():
        rule = f"{names.label} and {names.column} must name different columns"
        raise InvalidValue(f"{rule}: a score must not be printed as a label")


def candidates_of(lines: Iterable[str], column: str | None, label: str | None, names: Names) -> ScoreFile:
    """The candidates in CSV lines: one column of scores, two columns label and score, or the named columns.

    >>> candidates_of(["a,1", "b,0.5"], None, None, Names("--column", "--label")).labels
    ['a', 'b']
    """
    rows = _rows(lines)
    first = next(rows, None)
    if first is None:
        raise InvalidValue("the file is empty: give one row per candidate, with a score or with a label and a score")
    _check_commas(*first)
    layout = _plain_layout(first[1], names) if column is None else _named_layout(first[1], column, label, names)
    scores: list[Score] = []
    labels: list[str] = []
    for line, row in rows if layout.has_header else chain([first], rows):
        if len(row) != layout.width:
            rule = f"line {line} does not have {layout.width} fields like the first row"
            raise InvalidValue(f"{rule}: give every row the same columns, and quote labels that contain a comma")
        scores.append(parse_score(row[layout.score], line))
        if layout.label is not None:
            labels.append(_label(row[layout.label], line))
    if not scores:
        raise InvalidValue("there is no candidate below the header: give one row per candidate")
    return ScoreFile(scores, None if layout.label is None else labels)


def _rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    # A quoted empty field is a row whose score is missing.
    reader = csv.reader(lines, strict=True)
    try:
        for row in reader:
            if row and not (len(row) == 1 and row[0].isspace()):
                yield reader.line_num, [field.strip() for field in row]
        return
    except csv.Error:
        pass
    rule = f"line {reader.line_num} is not valid CSV"
    raise InvalidValue(f"{rule}: check its quotes, and check that no field is very long")


def _check_commas(line: int, first: list[str]) -> None:
    if len(first) == 1 and any(mark in first[0] for mark in _OTHER_MARKS):
        rule = f"the fields of line {line} are not separated by commas"
        raise InvalidValue(f"{rule}: write label,score with a comma, not a semicolon or tab, and 12.5 with a point")


def _plain_layout(first: list[str], names: Names) -> _Layout:
    if len(first) > 2:
        rule = f"the file has {len(first)} columns, but one (score) or two (label, score) are expected"
        remedy = f"name the score column with {names.column}, and the label column with {names.label}"
        raise InvalidValue(f"{rule}: {remedy}")
    return _Layout(len(first), len(first) - 1, 0 if len(first) == 2 else None, not is_data(first[-1]))


def _named_layout(header: list[str], column: str, label: str | None, names: Names) -> _Layout:
    return _Layout(
        len(header),
        _position(header, column, names.column),
        None if label is None else _position(header, label, names.label),
        has_header=True,
    )


def _position(header: list[str], name: str, option: str) -> int:
    matches = header.count(name.strip())
    if matches == 1:
        return header.index(name.strip())
    if matches:
        raise InvalidValue(f"the header has {matches} columns named {name!r}: rename one of them")
    names = shown_names(header, _SHOWN_NAMES)
    if names is None:
        rule = f"there is no column {name!r}, and the first row looks like data"
        raise InvalidValue(f"{rule}: {option} needs a header row with column names")
    raise InvalidValue(f"there is no column {name!r}: give {option} one of {names}")


def _label(field: str, line: int) -> str:
    if not field:
        raise InvalidValue(f"line {line} has no label: give every candidate a label")
    return field


STANDARD_INPUT = "-"
_OPTIONS = Names("--column", "--label")


def read_scores(path: str, *, column: str | None = None, label: str | None = None) -> ScoreFile:
    """Read the candidates of a CSV file, or of standard input for "-". No error contains a score."""
    check_columns(column, label, _OPTIONS)
    name = shown_path(path)
    try:
        with _opened(path) as lines:
            return candidates_of(lines, column, label, _OPTIONS)
    except InvalidValue as error:
        raise InvalidValue(f"{name}: {error}") from None
    except FileNotFoundError:
        raise InvalidValue(f"{name}: there is no such file: check the path") from None
    except IsADirectoryError:
        raise InvalidValue(f"{name}: this is a directory: give the path of one CSV file") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidValue(f"{name}: the file cannot be read ({reason}): check its path and permissions") from None
    except UnicodeDecodeError:  # it holds bytes of the file, so it must not become the context of another error
        pass
    raise InvalidValue(f"{name}: the file is not UTF-8 text: save it as CSV in UTF-8")


def shown_path(path: str) -> str:
    """The name of the file in messages."""
    return "standard input" if path == STANDARD_INPUT else path


@contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    if path != STANDARD_INPUT:
        with open(path, encoding="utf-8-sig", newline="") as lines:
            yield lines
        return
    text = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline="")
    try:
        yield text
    finally:
        text.detach()  # otherwise it would close standard input, which is not ours


PRIVACY = "results computed from private scores are private too"


def read_public_scores(path: str, column: str | None, label: str | None) -> Vector:
    """Read scores whose differences all fit into floats: public or synthetic ones, or the owner's own."""
    scores = as_vector(read_scores(path, column=column, label=label).scores)
    if not np.isfinite(losses(scores)).all():
        rule = "the scores differ by more than a float can hold"
        raise InvalidValue(f"{shown_path(path)}: {rule}: give them in another unit")
    return scores
