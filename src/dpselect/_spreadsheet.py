"""Write CSV files that are safe to open in a spreadsheet: no text in them is read as a formula."""

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

# The characters that begin a formula in Excel, LibreOffice or Google Sheets, also in full width (East Asian keyboards),
# and those that may begin a new cell.
_BEGINS_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20\t\r\n")
_QUOTES = "'\"`\u2018\u2019\u201c\u201d\uff07\uff02"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]], end: str = "\r\n") -> str:
    """A table as CSV. Numbers are written as they are; a text that could be a formula gets an apostrophe in front.

    >>> csv_text(["name", "change"], [["=1+1", -3]], end=" / ")
    "name,change / '=1+1,-3 / "
    """
    return "".join(_line([_cell(value) for value in row]) + end for row in (header, *rows))


def _line(cells: list[Any]) -> str:
    """One row. Python quotes a line break in a cell only if it is part of `lineterminator`, so that is CR LF."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n")


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, Number):
        return value
    text = str(value)
    return f"'{text}" if _may_be_formula(text) else text


def _may_be_formula(text: str) -> bool:
    """Whether a text begins a formula after quotes, spaces and invisible characters, which some programs drop."""
    for sign in text:
        if sign in _BEGINS_FORMULA:
            return True
        if not (sign in _QUOTES or sign.isspace() or unicodedata.category(sign) in ("Cc", "Cf")):
            return False
    return False
