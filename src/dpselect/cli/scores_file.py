"""The file of scores that a command names."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from dpselect._score_lines import Candidates, Names, candidates_of, check_columns
from dpselect.errors import InvalidValue

STANDARD_INPUT = "-"
_OPTIONS = Names("--column", "--label")


def read_scores(path: str, *, column: str | None = None, label: str | None = None) -> Candidates:
    """The candidates of a CSV file; "-" is standard input.

    Without `column` the file holds one column of scores, or two columns: label and score.
    """
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
    except UnicodeDecodeError:  # which holds the bytes of the file
        pass
    raise InvalidValue(f"{name}: the file is not UTF-8 text: save it as CSV in UTF-8")


def shown_path(path: str) -> str:
    """What a message calls the file."""
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
        text.detach()  # or it would close standard input, which is not ours
