"""What a question about a column would read and leave out, exactly, for the data owner only; and odd notations.

Questions are silent about rows, so a file in another notation gets an answer that means nothing. A check says so, to
the data owner only. It counts exactly and adds no noise: what it returns is as private as the rows. So it is no
release. It takes no ledger, and a record of it shows none of its numbers unless it is asked for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dpselect.errors import InvalidValue
from dpselect.questions.rows import Engine, Individuals
from dpselect.tables.candidates import Values
from dpselect.tables.domains import Domain
from dpselect.tables.kinds import FULL, Column, Kind, Span, public_span

_PRIVATE = (
    "PRIVATE: exact numbers about the rows, for the data owner only. Do not publish them, and do not choose candidates"
    " or a range by them."
)
_NOT_A_RELEASE = "Nothing was charged, and nothing was released."


class Reason(Enum):
    """Why a row is left out, in words. A row is counted for the first reason that holds, in this order.

    >>> Reason.MISSING.value
    'missing values'
    """

    ENCODING = "lines that are not UTF-8 (save the file as UTF-8)"
    LONG = "lines of 65,536 bytes or more (save the table as Parquet)"
    QUOTES = "lines with a quotation mark out of place, or a line break in a value (save the table as Parquet)"
    FIELDS = "lines with another number of fields than the header"
    PERSON = "rows without a person"
    GROUP = "rows in no listed group"
    MISSING = "missing values"
    UNREADABLE = "values that cannot be read as the question requires"
    UNLISTED = "values that are not listed, or not described by the rule"


class Notation(Enum):
    """A suspicious notation: what it is, and how to fix it.

    Attributes:
        words: what it is, with an example that is not from the data.
        remedy: how to fix it.

    >>> Notation.DECIMAL_COMMA.remedy
    'write 1.5, with a point'
    """

    DECIMAL_COMMA = ("numbers with a decimal comma, such as 1,5", "write 1.5, with a point")
    THOUSANDS = (
        "numbers with separators of thousands, such as 1.234,50 or 1,234.50 or 1 234",
        "write 1234.50, without separators",
    )
    COMMA_AND_THREE_DIGITS = (
        "numbers with a comma before three digits, such as 1,234, which may mean 1.234 or 1234",
        "write 1.234 or 1234",
    )
    POINT_AND_THREE_DIGITS = (
        "numbers with a point before three digits, such as 1.234, next to numbers with a comma; they are read as 1.234",
        "write 1234 if the point separates thousands",
    )
    UNIT = (
        "numbers with a unit or a currency sign, such as 12 EUR, $12 or 5 %",
        "write the number only, and name the unit in the name of the column",
    )
    MINUS = ("numbers with a typographic minus sign or a dash", "write - (hyphen-minus), as on the keyboard")
    POINT_ZERO = (
        "texts with a point and zeros that are listed without, such as 5.0 for 5",
        "list them as they are written, or list numbers",
    )
    DATE_ORDER = (
        "dates that do not begin with the year, such as 31/12/2024, 31.12.2024 or 31 Dec 2024",
        "write 2024-12-31",
    )
    SHORT_YEAR = (
        "dates with a year of two digits, such as 31/12/24; with / or - they are read as a day in the first century",
        "write 2024-12-31",
    )
    DATE_WITHOUT_DASHES = ("dates such as 20241231 or 2024.12.31", "write 2024-12-31")
    PADDED = ("texts with spaces before or after, such as ' I10 '", "remove the spaces")
    CASE = (
        "texts that are listed in other upper and lower case, such as i10 for I10",
        "write them as they are listed, or list them as they are written if that is public",
    )
    MISSING_WORD = ("words or signs for a missing value, such as NA, null or -", "leave the field empty")
    NOT_UTF8 = (
        "texts that are not UTF-8, or have the character U+FFFD, which replaces what could not be read",
        "convert the file to UTF-8 again, from its own encoding",
    )
    SIMILAR_PEOPLE = (
        "people whose names equal those of others, except for spaces, case or a .0 at the end",
        "write each name in one way: otherwise one person counts, and is protected, as several",
    )

    def __init__(self, words: str, remedy: str) -> None:
        self.words, self.remedy = words, remedy


@dataclass(frozen=True)
class Reading:
    """What a question would read: a column, as listed values, as those of a rule, on a grid, or as it is."""

    column: Column
    values: Values | None = None
    domain: Domain | None = None
    grid: Span | None = None
    show_values: bool = False

    @property
    def kind(self) -> Kind | None:
        """The kind of values that the question needs; None if that is open, as for CSV without a list."""
        for asked in (self.values, self.domain, self.grid):
            if asked is not None:
                return asked.kind
        return None if self.column.untyped else self.column.kind

    @property
    def words(self) -> str:
        """How the column is read."""
        if self.values is not None:
            return f"one of {len(self.values):,} listed values ({self.values.kind.value})"
        if self.domain is not None:
            return self.domain.words
        if self.grid is not None:
            return f"{self.grid.kind.value} from {self.grid.value(0)} to {self.grid.ends[1]}"
        return "text, because no candidates and no range say more" if self.kind is None else self.kind.value


@dataclass(frozen=True, repr=False)
class Notice:
    """A suspicious notation in a column. Its number and its examples are private.

    Attributes:
        column: the name of the column.
        notation: what is suspicious, with `words` and a `remedy`.
        number: how many rows have it (how many people, for similar names of people).
        examples: up to five different values, if they were asked for.

    >>> Notice("cost", Notation.DECIMAL_COMMA, 12)
    Notice(column='cost', private)
    """

    column: str
    notation: Notation
    number: int
    examples: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Notice(column={self.column!r}, private)"

    def to_dict(self) -> dict[str, Any]:
        """Return the notice in the types of JSON. It is private.

        >>> Notice("cost", Notation.DECIMAL_COMMA, 12).to_dict()["remedy"]
        'write 1.5, with a point'
        """
        found = {"column": self.column, "notation": self.notation.name.lower(), "number": self.number}
        return {**found, "what": self.notation.words, "remedy": self.notation.remedy, "examples": list(self.examples)}


@dataclass(frozen=True, repr=False)
class Check:
    """What a question about a column would read and leave out. `Table.check` makes it. All of it is private.

    Neither `repr` nor `str` shows a number: `report` and `to_dict` do. `rows` is `counted` and all of `left_out`
    together.

    Attributes:
        column: the name of the column.
        read_as: how its values are read, in words.
        rows: how many rows there are; for CSV, lines after the header that are not blank.
        counted: how many of them a question counts.
        left_out: how many are left out, for each reason that occurs. A row has the first reason that holds.
        below: how many counted values are below the range, and count as its lower end.
        above: how many counted values are above the range, and count as its upper end.
        between: how many counted values lie between two candidates of a range: a smaller step is more accurate.
        unlisted: how many different values are not listed; None without a list or rule.
        people: how many people have a row; None without a person column.
        people_counted: how many people have a counted row; None without a person column.
        most_rows: the largest number of rows of a person; None without a person column.
        notices: suspicious notations.
        examples: up to five different values for a reason, if they were asked for.

    >>> import pyarrow
    >>> import dpselect
    >>> table = dpselect.open_table(pyarrow.table({"city": ["Ulm", "ulm", "Bonn"]}))
    >>> check = table.check("city", candidates=["Ulm", "Bonn"])
    >>> check
    Check(column='city', private)
    >>> check.passed, check.counted, check.left_out[dpselect.tables.Reason.UNLISTED]
    (False, 2, 1)
    >>> [notice.notation.name for notice in check.notices]
    ['CASE']
    """

    column: str
    read_as: str
    rows: int
    counted: int
    left_out: Mapping[Reason, int]
    below: int = 0
    above: int = 0
    between: int = 0
    unlisted: int | None = None
    people: int | None = None
    people_counted: int | None = None
    most_rows: int | None = None
    notices: tuple[Notice, ...] = ()
    examples: Mapping[Reason, tuple[str, ...]] | None = None

    def __repr__(self) -> str:
        return f"Check(column={self.column!r}, private)"

    @property
    def passed(self) -> bool:
        """Whether some row counts, none is left out or moved to an end of the range, and nothing is suspicious.

        Private. If most values lie between two candidates, that is suspicious too.
        """
        is_complete = not (self.left_out or self.below or self.above or self.notices)
        return bool(self.counted) and is_complete and 2 * self.between <= self.counted

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers in the types of JSON. They are private.

        The first key is "private", with a sentence that says for whom it is. Reasons and notations have their names in
        small letters.

        >>> import pyarrow
        >>> import dpselect
        >>> check = dpselect.open_table(pyarrow.table({"cost": [10, None]})).check("cost", lower=0, upper=99)
        >>> check.to_dict()["left_out"]
        {'missing': 1}
        """
        numbers = ("rows", "counted", "below", "above", "between", "unlisted", "people", "people_counted", "most_rows")
        return {
            "private": f"{_PRIVATE} {_NOT_A_RELEASE}",
            "passed": self.passed,
            "column": self.column,
            "read_as": self.read_as,
            **{name: getattr(self, name) for name in numbers},
            "left_out": {reason.name.lower(): number for reason, number in self.left_out.items()},
            "examples": {reason.name.lower(): list(values) for reason, values in (self.examples or {}).items()},
            "notices": [notice.to_dict() for notice in self.notices],
        }

    def report(self) -> str:
        """Return all numbers as text, for the data owner to print. They are private.

        >>> import pyarrow
        >>> import dpselect
        >>> check = dpselect.open_table(pyarrow.table({"cost": [10, None]})).check("cost", lower=0, upper=99)
        >>> print(*check.report().splitlines()[1:5], sep=chr(10))
        column 'cost', read as whole numbers from 0 to 99
        rows: 2
          counted: 1
          left out: 1
        """
        result = "Nothing suspicious was found." if self.passed else "Something is left out, moved or suspicious."
        parts = [_PRIVATE, f"column {self.column!r}, read as {self.read_as}", *self._rows(), *self._people()]
        return "\n".join([*parts, *self._notices(), f"{result} {_NOT_A_RELEASE}"])

    def _rows(self) -> list[str]:
        lines = [f"rows: {self.rows:,}", f"  counted: {self.counted:,}"]
        for number, end in ((self.below, "lower"), (self.above, "upper")):
            if number:
                lines.append(f"    outside the range, counted as its {end} end: {number:,}")
        if self.between:
            lines.append(f"    between two candidates: {self.between:,} (a smaller step is more accurate)")
        lines.append(f"  left out: {sum(self.left_out.values()):,}")
        for reason, number in self.left_out.items():
            different = f" ({self.unlisted:,} different)" if reason is Reason.UNLISTED else ""
            lines.append(f"    {reason.value}: {number:,}{different}{_shown((self.examples or {}).get(reason, ()))}")
        return lines

    def _people(self) -> list[str]:
        if self.people is None or self.people_counted is None or self.most_rows is None:
            return ["no person column: each row counts as a person"]
        several = f"yes, up to {self.most_rows:,}" if self.most_rows > 1 else "no"
        return [
            f"people: {self.people:,}",
            f"  with a row that is counted: {self.people_counted:,}",
            f"  several rows for a person: {several}",
        ]

    def _notices(self) -> list[str]:
        return [
            f"suspicious in {notice.column!r}: {notice.notation.words}: {notice.number:,}{_shown(notice.examples)}."
            f" Fix: {notice.notation.remedy}."
            for notice in self.notices
        ]


def _shown(examples: tuple[str, ...]) -> str:
    return f" [{', '.join(map(repr, examples))}]" if examples else ""


def check_column(  # noqa: PLR0913, PLR0917 - what a table and its caller say
    engine: Engine,
    individuals: Individuals,
    column: Column,
    candidates: Any,
    ends: tuple[Any, Any, Any, Any],
    show_values: bool,
) -> Check:
    """Check a column of an engine. `ends` are lower, upper, step and range."""
    check = getattr(engine, "checked", None)
    if check is None:
        raise InvalidValue("check works on this machine only: open the table with engine='duckdb'")
    has_range = ends != (None, None, None, FULL)
    if candidates is not None and has_range:
        raise InvalidValue("candidates and a range exclude each other: check one question at a time")
    values = domain = grid = None
    if isinstance(candidates, Domain):
        candidates.check(column)
        domain = candidates
    elif candidates is not None:
        values = engine.candidates(candidates, column)
    elif has_range:
        grid = public_span(*ends[:3], column, ends[3])
    found: Check = check(Reading(column, values, domain, grid, show_values), individuals)
    return found
