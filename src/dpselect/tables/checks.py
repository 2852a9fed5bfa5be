"""What a question about a column would read and leave out, exactly, for the data owner only; and odd notations.

Questions are silent about rows, so a file in another notation gets an answer that means nothing. A check says so, to
the data owner only. It counts exactly and adds no noise: what it returns is as private as the rows. So it is no
release. It takes no ledger, and a record of it shows none of its numbers unless it is asked for them.

**Before a charge** (`Before`). The answer of a question that was not stopped has the distribution that it would have
without a check, because the check draws nothing and changes nothing. Whether it was stopped depends on the rows and is
not noisy, so it is for the owner alone (docs/tables.md).
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dpselect.errors import CheckFailed, InvalidType, InvalidValue
from dpselect.questions.question import OfTable
from dpselect.questions.rows import Engine, Individuals
from dpselect.tables.candidates import Values
from dpselect.tables.domains import Domain
from dpselect.tables.kinds import FULL, Column, Kind, Span, public_span

_PRIVATE = (
    "PRIVATE: exact numbers about the rows, for the data owner only. Do not publish them, and do not choose candidates"
    " or a range by them."
)
_NOT_A_RELEASE = "Nothing was charged, and nothing was released."
_HEADING = "For the data owner only"
# The same words, whatever the rows are.
NOT_CHECKED = "not checked: what cannot be read is left out silently; the data owner can see it with dpselect check"


class Reason(Enum):
    """Why a row is left out, in words. A row is counted for the first reason that holds, in this order.

    >>> Reason.MISSING.value
    'missing values'
    """

    ENCODING = "lines that are not UTF-8 (open the file with its encoding, such as encoding='cp1252', or --encoding)"
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
    "open a text file with decimal=',', or --decimal ,; elsewhere derive replace(column, ',', '.')"
    """

    DECIMAL_COMMA = (
        "numbers with a decimal comma, such as 1,5",
        "open a text file with decimal=',', or --decimal ,; elsewhere derive replace(column, ',', '.')",
    )
    THOUSANDS = (
        "numbers with separators of thousands, such as 1.234,50 or 1,234.50 or 1 234",
        "open a text file with thousands=',' (or '.', ' '), or --thousands; elsewhere derive replace(column, ',', '')",
    )
    COMMA_AND_THREE_DIGITS = (
        "numbers with a comma before three digits, such as 1,234, which may mean 1.234 or 1234",
        "open the table with decimal=',' for the first, or thousands=',' for the second",
    )
    POINT_AND_THREE_DIGITS = (
        "numbers with a point before three digits, such as 1.234, next to numbers with a comma; they are read as 1.234",
        "open the table with decimal=',' and thousands='.' if the point separates thousands",
    )
    UNIT = (
        "numbers with a unit or a currency sign, such as 12 EUR, $12 or 5 %",
        "derive the number, as in trim(column, '$') or replace(column, ' EUR', '')",
    )
    MINUS = ("numbers with a typographic minus sign or a dash", "write - (hyphen-minus), as on the keyboard")
    POINT_ZERO = (
        "texts with a point and zeros that are listed without, such as 5.0 for 5",
        "list numbers, or list them as they are written",
    )
    DATE_ORDER = (
        "dates that do not begin with the year, such as 31/12/2024, 31.12.2024 or 31 Dec 2024",
        "open a text file with dates='%d/%m/%Y', '%m/%d/%Y', '%d.%m.%Y' or '%d %b %Y', as they are meant, or --dates;"
        " elsewhere derive CAST(strptime(column, '%d/%m/%Y') AS DATE)",
    )
    SHORT_YEAR = (
        "dates with a year of two digits, such as 31/12/24; with / or - they are read as a day in the first century",
        "open the table with dates='%d/%m/%y' or '%m/%d/%y', as they are meant, or --dates",
    )
    DATE_WITHOUT_DASHES = ("dates such as 20241231 or 2024.12.31", "open the table with dates='%Y%m%d', or --dates")
    TIME_OF_DAY = (
        "timestamps, such as 2024-12-31 10:15, where dates are asked for; their day is taken",
        "ask for timestamps, with ends such as '2024-12-31 00:00:00', if the time matters",
    )
    PADDED = ("texts with spaces before or after, such as ' I10 '", "remove the spaces, or derive trim(column)")
    CASE = (
        "texts that are listed in other upper and lower case, such as i10 for I10",
        "list them as they are written if that is public, or derive upper(column)",
    )
    MISSING_WORD = ("words or signs for a missing value, such as NA, null or -", "leave the field empty")
    NOT_UTF8 = (
        "texts that are not UTF-8, or have the character U+FFFD, which replaces what could not be read",
        "open the file with its encoding, such as encoding='cp1252', or --encoding",
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

        >>> Notice("cost", Notation.MISSING_WORD, 12).to_dict()["remedy"]
        'leave the field empty'
        """
        found = {"column": self.column, "notation": self.notation.name.lower(), "number": self.number}
        return {**found, "what": self.notation.words, "remedy": self.notation.remedy, "examples": list(self.examples)}


@dataclass(frozen=True, repr=False)
class Near:
    """A listed candidate that nobody has, and a text that is nearly the same. The text and its number are private.

    Attributes:
        candidate: what is listed.
        text: what is in the data.
        number: how many rows have the text.
        group_of: the column of the groups, if the candidate is a group.

    >>> Near("Yes", "yes", 12)
    Near('Yes', private)
    """

    candidate: str
    text: str
    number: int
    group_of: str = ""

    def __repr__(self) -> str:
        return f"Near({self.candidate!r}, private)"

    def words(self, column: str) -> str:
        """Return it as a line of a report. It is private.

        Args:
            column: the column that was checked.

        >>> Near("Yes", "yes", 12).words("smokes")
        "suspicious in 'smokes': nobody has the candidate 'Yes', and 12 rows have 'yes'. Did you mean 'yes'?"
        """
        nobody = f"is in the group {self.candidate!r}" if self.group_of else f"has the candidate {self.candidate!r}"
        seen = f"{self.number:,} rows have {self.text!r}. Did you mean {self.text!r}?"
        return f"suspicious in {(self.group_of or column)!r}: nobody {nobody}, and {seen}"

    def to_dict(self) -> dict[str, Any]:
        """Return it in the types of JSON. It is private.

        >>> Near("Yes", "yes", 12).to_dict()
        {'candidate': 'Yes', 'text': 'yes', 'number': 12}
        """
        return {"candidate": self.candidate, "text": self.text, "number": self.number}


# Reasons for which something cannot be read. The first are about lines of the file.
_OF_LINES = (Reason.ENCODING, Reason.LONG, Reason.QUOTES, Reason.FIELDS)
_UNREAD = (*_OF_LINES, Reason.UNREADABLE)
# What is worth knowing, and no reason for an alarm.
_HARMLESS = {Notation.MISSING_WORD, Notation.TIME_OF_DAY}


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
        looks: what the texts of a column look like, if nothing says how to read them: "numbers", "dates" or "text".
        unlike: how many texts then look different from most.
        as_other: how many of the counted values count as the candidate for other values.
        near: candidates that nobody has, next to texts that are nearly the same.

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
    looks: str = ""
    unlike: int = 0
    as_other: int = 0
    near: tuple[Near, ...] = ()

    def __repr__(self) -> str:
        return f"Check(column={self.column!r}, private)"

    @property
    def missing(self) -> int:
        """How many values are missing, also by a word such as NA where numbers or dates are asked for. Private."""
        words = sum(each.number for each in self.notices if each.notation is Notation.MISSING_WORD)
        unread = self.left_out.get(Reason.UNREADABLE, 0)
        hidden = min(words, unread) if not self.looks else words if self.looks != "text" else 0
        return self.left_out.get(Reason.MISSING, 0) + hidden

    @property
    def unreadable(self) -> int:
        """How many rows cannot be read: broken lines, and values in another notation. Private."""
        return self._unread + self.unlike

    @property
    def _unread(self) -> int:
        # Where nothing says how a text is read, any text counts as it is.
        hidden = 0 if self.looks else self.missing - self.left_out.get(Reason.MISSING, 0)
        return sum(self.left_out.get(reason, 0) for reason in _UNREAD) - hidden

    @property
    def stops(self) -> str:
        """Why an answer would mean nothing, in words; nothing if it may mean something. Private."""
        outside = self.missing + sum(self.left_out.get(why, 0) for why in (Reason.PERSON, Reason.GROUP))
        present = self.rows - outside
        if not self.rows:
            return "there is no row"
        if not present:
            return "no row has a value, a person and a listed group"
        if 2 * self._unread >= present:
            return "at most half of the values that are not missing can be read"
        return "" if self.counted else "nobody has any of the candidates"

    @property
    def passed(self) -> bool:
        """Whether something counts, all that is not missing can be read, and nothing is suspicious. Private.

        If a range misses most values, or most lie between two candidates, that is suspicious. Missing values and values
        that are not listed are not.
        """
        # A word for a missing person is a person of its own, who counts once for all of them.
        alarms = [each for each in self.notices if each.notation not in _HARMLESS or each.column != self.column]
        if self.stops or self.unreadable or alarms or self.near:
            return False
        return 2 * max(self.between, self.below + self.above) <= self.counted

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
        of_rows = ("rows", "counted", "missing", "unreadable", "below", "above", "between", "unlisted", "as_other")
        numbers = (*of_rows, "people", "people_counted", "most_rows")
        return {
            "private": f"{_PRIVATE} {_NOT_A_RELEASE}",
            "passed": self.passed,
            "column": self.column,
            "read_as": self.read_as,
            **{name: getattr(self, name) for name in numbers},
            "left_out": {reason.name.lower(): number for reason, number in self.left_out.items()},
            "examples": {reason.name.lower(): list(values) for reason, values in (self.examples or {}).items()},
            "notices": [notice.to_dict() for notice in self.notices],
            "near": [near.to_dict() for near in self.near],
            **({"looks": self.looks} if self.looks else {}),
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
        return "\n".join([_PRIVATE, *self.lines(), f"{_result(self.passed, self.stops)} {_NOT_A_RELEASE}"])

    def lines(self) -> list[str]:
        """Return the lines of the report about the column."""
        return [f"column {self.column!r}, read as {self.read_as}", *self._rows(), *self._people(), *self.suspicions()]

    def _rows(self) -> list[str]:
        lines = [f"rows: {self.rows:,}", f"  counted: {self.counted:,}"]
        for number, end in ((self.below, "lower"), (self.above, "upper")):
            if number:
                lines.append(f"    outside the range, counted as its {end} end: {number:,}")
        if self.as_other:
            lines.append(f"    as the candidate for other values: {self.as_other:,}")
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

    def suspicions(self) -> list[str]:
        """Return what looks wrong, and how to fix it, a line each."""
        found = [
            f"{'noticed' if notice.notation in _HARMLESS else 'suspicious'} in {notice.column!r}:"
            f" {notice.notation.words}: {notice.number:,}{_shown(notice.examples)}. Fix: {notice.notation.remedy}."
            for notice in self.notices
        ]
        if 2 * (self.below + self.above) > self.counted:
            found.append(f"suspicious in {self.column!r}: most values are outside the range.")
        return found + [near.words(self.column) for near in self.near]


def _result(passed: bool, stops: str) -> str:
    if stops:
        return f"The answer would mean nothing: {stops}."
    return "Nothing suspicious was found." if passed else "Something cannot be read, or is suspicious."


@dataclass(frozen=True, repr=False)
class Overview:
    """What can be read of each column of a table. `Table.overview` makes it. All of it is private.

    Attributes:
        checks: a check of each column, in which nothing says how its values are read.

    >>> Overview(())
    Overview(columns=0, private)
    """

    checks: tuple[Check, ...]

    def __repr__(self) -> str:
        return f"Overview(columns={len(self.checks)}, private)"

    @property
    def passed(self) -> bool:
        """Whether there are rows, and all that is not missing can be read like most of its column. Private."""
        return bool(self.checks) and all(check.rows and not check.unreadable for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers in the types of JSON. They are private.

        >>> Overview(()).to_dict()["columns"]
        []
        """
        columns = [{key: value for key, value in each.to_dict().items() if key != "private"} for each in self.checks]
        return {"private": f"{_PRIVATE} {_NOT_A_RELEASE}", "passed": self.passed, "columns": columns}

    def table(self) -> list[tuple[str, str, str, str]]:
        """Return a row for each column: its name, what it looks like, how many are missing, and cannot be read.

        >>> Overview(()).table()
        []
        """
        return [
            (
                each.column,
                each.looks or each.read_as,
                f"{each.missing:,}",
                f"{each.unlike if each.looks else each.unreadable:,}",
            )
            for each in self.checks
        ]

    def remarks(self) -> list[str]:
        """Return what is wrong with lines and columns, and how to fix it, a line each.

        >>> Overview(()).remarks()
        []
        """
        lines = self.checks[0].left_out if self.checks else {}
        broken = [f"suspicious: {lines[reason]:,} {reason.value}" for reason in _OF_LINES if reason in lines]
        return broken + [line for each in self.checks for line in each.suspicions()]

    def report(self) -> str:
        """Return all numbers as text, for the data owner to print. They are private.

        >>> print(Overview(()).report().splitlines()[1])
        rows: 0
        """
        rows = self.checks[0].rows if self.checks else 0
        columns = [
            f"  {name!r}: {looks}, {missing} missing, {unread} cannot be read"
            for name, looks, missing, unread in self.table()
        ]
        result = f"{_result(self.passed, '' if rows else 'there is no row')} {_NOT_A_RELEASE}"
        return "\n".join([_PRIVATE, f"rows: {rows:,}", *columns, *self.remarks(), result])


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
    return _check(engine, Reading(column, values, domain, grid, show_values), individuals)


def check_columns(engine: Engine, individuals: Individuals, show_values: bool) -> Overview:
    """Check all columns of an engine, by what their values look like."""
    readings = [Reading(column, show_values=show_values) for column in engine.columns.values()]
    return Overview(tuple(_check(engine, reading, individuals) for reading in readings))


def _check(engine: Engine, reading: Reading, individuals: Individuals) -> Check:
    check = getattr(engine, "checked", None)
    if check is None:
        raise InvalidValue(f"check {_HERE}")
    found: Check = check(reading, individuals)
    return found


_HERE = "works on this machine only: open the table with engine='duckdb'"
_OFF, _STOP = "off", "stop"
_MODES = (_OFF, "warn", _STOP)


@dataclass(frozen=True)
class Before:
    """What comes before each charge: nothing, a check that prints what it finds, or one that may stop the question.

    Args:
        mode: "off", "warn" or "stop".
        engine: the name of the engine that would check.
    """

    mode: str
    engine: str

    def __post_init__(self) -> None:
        if not isinstance(self.mode, str):
            raise InvalidType(f"check must be text, got {type(self.mode).__name__}: give one of {', '.join(_MODES)}")
        if self.mode not in _MODES:
            raise InvalidValue(f"check must be one of {', '.join(_MODES)}, got {self.mode[:40]!r}")
        if self.is_on and self.engine == "spark":
            raise InvalidValue(f"a check before the charge {_HERE}, or leave check out")

    @property
    def is_on(self) -> bool:
        """Whether anything is checked."""
        return self.mode != _OFF

    def run(self, engine: Engine, individuals: Individuals, question: OfTable) -> None:
        """Check what a question would read. It prints to standard error, for the data owner."""
        if not self.is_on:
            return
        found = _check(engine, Reading(question.column, **question.read_as), individuals)
        if not found.passed:
            told = [*found.lines(), _result(found.passed, found.stops)]
            sys.stderr.write("\n".join([f"{_HEADING}:", *told, ""]))
        if found.stops and self.mode == _STOP:
            raise CheckFailed(
                f"column {question.column.name!r}: {found.stops}. {_NOT_A_RELEASE} {_HEADING}: see with `check` what is"
                " left out, then mend the data or the question"
            )
