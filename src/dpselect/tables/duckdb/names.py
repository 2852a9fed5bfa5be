"""The names of columns that a source may have, and what DuckDB needs to know about the columns of a frame."""

from collections.abc import Sequence
from typing import Any, Protocol

from dpselect._validate import is_unicode
from dpselect.errors import InvalidType, InvalidValue


class FrameColumns(Protocol):
    """The columns of a data frame."""

    def stated(self) -> list[tuple[Any, Any]]:
        """Return the names with the types that the frame states now: most frames can be changed in place."""
        ...

    def is_untyped(self, name: str) -> bool:
        """Return whether the column holds Python objects, which have no common type."""
        ...

    def scanned(self, names: Sequence[str]) -> Any:
        """Return what DuckDB scans for these columns."""
        ...

    def described(self) -> Any:
        """Return what DuckDB scans for the names and types of all columns; it need not have rows."""
        ...


def check_names(names: Sequence[Any]) -> None:
    """Refuse names that no question could use. They are not shown: the names of a pivoted frame are data."""
    remedy = "rename the columns first"
    for name in names:
        if not isinstance(name, str):
            raise InvalidType(f"source has a column whose name is of type {type(name).__name__}, not text: {remedy}")
    if not all(name and is_unicode(name) for name in names):
        raise InvalidValue(f"source has a column whose name is empty or cannot be written in UTF-8: {remedy}")
    if len({name.lower() for name in names}) != len(names):
        raise InvalidValue("source has two columns of the same name (upper and lower case are the same): rename one")


def check_same(before: Any, now: Any) -> None:
    """Refuse a source whose public columns are not what they were when it was opened.

    Expressions are written for the types of that time. On another type, a row might decide whether they fail.
    """
    if before != now:
        raise InvalidValue("source has changed since it was opened: its columns or their types differ. Open it again")


def index_of(source: Any) -> dict[str, str]:
    """The names of a pandas index, which are no columns, and what to do about them."""
    names = getattr(getattr(source, "index", None), "names", ())
    hint = "it is the index of the frame: give frame.reset_index()"
    return {name: hint for name in names if isinstance(name, str)}
