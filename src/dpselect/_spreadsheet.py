"""CSV files that a spreadsheet takes as data: no text in them is a formula."""

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

# What begins a formula in Excel, LibreOffice or Google Sheets, also in the full width of East Asian keyboards.
_BEGINS_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
_SEPARATORS = ("\t", "\r", "\n")
_QUOTES = "'\"`\u2018\u2019\u201c\u201d\uff07\uff02"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]], end: str = "\r\n") -> str:
    """A table as CSV. Numbers are written as they are; a text that could be a formula has an apostrophe before it.

    >>> csv_text(["name", "change"], [["=1+1", -3]], end=" / ")
    "name,change / '=1+1,-3 / "
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=end)
    writer.writerows([_cell(value) for value in row] for row in (header, *rows))
    return text.getvalue()


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, Number):
        return value
    text = str(value)
    return f"'{text}" if text.startswith(_SEPARATORS) or _first_sign(text) in _BEGINS_FORMULA else text


def _first_sign(text: str) -> str:
    """The first character that is not a quotation mark, a space or invisible: some programs drop these."""
    return next((sign for sign in text if not (sign in _QUOTES or sign.isspace() or _is_invisible(sign))), "")


def _is_invisible(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cf")
