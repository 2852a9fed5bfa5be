"""What a question about a column would read and leave out, exactly, for the data owner only; and odd notations.

Questions are silent about rows, so a file in another notation gets an answer that means nothing. A check says so, to
the data owner only. It counts exactly and adds no noise: what it returns is as private as the rows. So it is no
release. It takes no ledger, and a record of it shows none of its numbers unless it is asked for them.

The rows are read once, by the same expressions as in a question, into a private temporary table that says for each row
why it is left out. The source says which lines of CSV files are left out. Suspicious notations are looked for among the
different texts only, without the spaces around them, which may be any of Unicode's. The patterns are those of RE2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from dpselect.errors import InvalidValue
from dpselect.questions.rows import Engine, Individuals
from dpselect.tables.candidates import Values
from dpselect.tables.domains import Domain, counted_item
from dpselect.tables.duckdb.values import (
    CANDIDATES,
    GROUPS,
    cast_list,
    columns_of,
    compared_digits,
    form_of,
    forms_of,
    grid_item,
    identifier,
    is_between,
    listed,
    members_equal,
    present,
    value_of,
)
from dpselect.tables.kinds import FULL, Column, Kind, Span, public_span

if TYPE_CHECKING:
    from dpselect.tables.duckdb.source import Cursor, Query, Source

_PRIVATE = (
    "PRIVATE: exact numbers about the rows, for the data owner only. Do not publish them, and do not choose candidates"
    " or a range by them."
)
_NOT_A_RELEASE = "Nothing was charged, and nothing was released."
_MOST_EXAMPLES, _SHOWN_CHARACTERS = 5, 60  # of the data, for a notation, if they are asked for


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
        "whole numbers with a point and zeros, such as 5.0",
        "write 5; some programs write 5.0 if a column of whole numbers has missing values",
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

    @property
    def words(self) -> str:
        """What the notation is, with an example that is not from the data."""
        return self.value[0]

    @property
    def remedy(self) -> str:
        """How to fix it."""
        return self.value[1]


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


# What is made: all rows, their different texts, and people.
_ROWS, _TEXTS, _PEOPLE = "dpselect_checked", "dpselect_texts", "dpselect_people"


def checked(source: "Source", cursor: "Cursor", reading: Reading, individuals: Individuals) -> Check:
    """The check of a column. Its temporary tables stay on the cursor."""
    from dpselect.tables.duckdb.source import read  # noqa: PLC0415 - DuckDB is slow to import

    if reading.values is not None:
        form = form_of(reading.column, reading.values.kind)
        cursor.register(CANDIDATES, columns_of([reading.values], {"value": form}))
    if individuals.groups is not None:
        cursor.register(GROUPS, columns_of(individuals.groups.members, forms_of(individuals.groups)))

    def classify(rows: "Query") -> None:
        statement = f"CREATE OR REPLACE TEMP TABLE {_ROWS} AS {_classified(rows.text, reading, individuals)}"
        cursor.execute(statement, rows.parameters)

    read(source, cursor, individuals.names(reading.column), classify)
    cursor.execute(
        f"CREATE OR REPLACE TEMP TABLE {_TEXTS} AS SELECT reason, written, count(*) AS number"
        f" FROM {_ROWS} WHERE written IS NOT NULL GROUP BY ALL"
    )
    counts = cursor.sql(
        f"SELECT reason, count(*), count(*) FILTER (below), count(*) FILTER (above), count(*) FILTER (between_steps)"
        f" FROM {_ROWS} GROUP BY reason"
    ).fetchall()
    numbers = {reason: number for reason, number, *_ in counts}
    numbers |= {reason.name: number for reason, number in source.left_out(cursor).items()}
    counted = numbers.get(None, 0)
    left_out = {reason: numbers[reason.name] for reason in Reason if numbers.get(reason.name)}
    below, above, between = next((places for reason, _, *places in counts if reason is None), (0, 0, 0))
    people: dict[str, int] = {} if individuals.person is None else _people(cursor)
    return Check(
        reading.column.name,
        reading.words,
        counted + sum(left_out.values()),
        counted,
        left_out,
        below=below,
        above=above,
        between=between,
        unlisted=None if reading.values is None and reading.domain is None else _unlisted(cursor),
        notices=tuple(_notices(cursor, reading, individuals)),
        examples=_examples(cursor) if reading.show_values else None,
        **people,
    )


def _classified(source: str, reading: Reading, individuals: Individuals) -> str:
    # The reason is NULL if the row counts.
    column, groups = reading.column, individuals.groups
    value, is_listed = _value(reading)
    below, above = ("false", "false") if reading.grid is None else _outside(column, reading.grid)
    selected = {
        "written": _written(column),
        "present": present(column),
        "item": value,
        "below": below,
        "above": above,
        "person": "NULL" if individuals.person is None else identifier(individuals.person.name),
    }
    reasons, join = [], ""
    if individuals.person is not None:
        reasons.append((Reason.PERSON, "person IS NULL"))
    if groups is not None:
        forms = forms_of(groups)
        selected |= {f"member{i}": form.value for i, form in enumerate(forms.values())}
        same = members_equal(forms, "public_group")
        join += f" LEFT JOIN ({listed(GROUPS, forms)}) AS public_group ON {same}"
        reasons.append((Reason.GROUP, "public_group.place IS NULL"))
    if reading.values is not None:
        form = form_of(column, reading.values.kind)
        same = form.equal("item", "candidate.value")
        join += f" LEFT JOIN ({listed(CANDIDATES, {'value': form})}) AS candidate ON {same}"
    reasons += [
        (Reason.MISSING, "NOT coalesce(present, false)"),
        (Reason.UNREADABLE, "item IS NULL"),
        (Reason.UNLISTED, f"NOT coalesce({is_listed}, false)"),
    ]
    reason = " ".join(f"WHEN {condition} THEN '{why.name}'" for why, condition in reasons)
    inner = ", ".join(f"{expression} AS {name}" for name, expression in selected.items())
    stored = {"written": _stored("written"), "below": "below", "above": "above", "person": "person"}
    if individuals.person is not None and individuals.person.is_text:
        stored["person"] = _stored("CAST(person AS VARCHAR)")
    for i, kind in enumerate(() if groups is None else groups.kinds):
        stored[f"member{i}"] = _stored(f"member{i}") if kind is Kind.TEXT else f"member{i}"
    between = "false" if reading.grid is None else is_between(column, reading.grid)
    stored["between_steps"] = f"coalesce({between} AND NOT (below OR above), false)"
    kept = [f"CASE {reason} END AS reason", *(f"{expression} AS {name}" for name, expression in stored.items())]
    return f"SELECT {', '.join(kept)} FROM (SELECT {inner} FROM ({source})) {join}"


def _value(reading: Reading) -> tuple[str, str]:
    column = reading.column
    if reading.values is not None:
        return form_of(column, reading.values.kind).value, "candidate.place IS NOT NULL"
    if reading.domain is not None:
        return reading.domain.form(column).value, reading.domain.condition("item")
    return (counted_item(column, None) if reading.grid is None else grid_item(column, reading.grid)), "true"


def _written(column: Column) -> str:
    # The expression cannot fail on any row.
    x = value_of(column, column.kind)
    if column.is_text:
        return x
    if column.kind.is_moment:  # without a time zone of the machine
        text = f"CAST(make_timestamp(epoch_us({x})) AS VARCHAR)"
        return f"CASE WHEN isfinite({x}) THEN {text} WHEN {x} IS NOT NULL THEN 'infinity' END"
    return f"TRY_CAST({identifier(column.name)} AS VARCHAR)"


def _stored(text: str) -> str:
    # A text that is not UTF-8, as Parquet and Arrow may hold, is written in hexadecimal.
    return f"coalesce(TRY(decode(encode({text}))), chr(65533) || hex(encode({text})))"


def _outside(column: Column, grid: Span) -> tuple[str, str]:
    # Only for values that count: the conditions may hold for NaN.
    x, kind = value_of(column, grid.kind), grid.kind
    if kind.is_moment:
        finite = f"CASE WHEN isfinite({x}) THEN epoch_us({x})"
        return (
            f"{finite} < {grid.first} ELSE {x} = CAST('-infinity' AS {kind.type}) END",
            f"{finite} > {grid.last} ELSE {x} = CAST('infinity' AS {kind.type}) END",
        )
    if kind is Kind.DATE:
        return f"{x} < DATE '1970-01-01' + ({grid.first})", f"{x} > DATE '1970-01-01' + ({grid.last})"
    if kind is Kind.FLOAT:
        # A grid of all floats is compared in the column's type: 0.1 as a 32-bit float is another number than 0.1.
        type_ = column.type if grid.bits and column.kind is Kind.FLOAT else "DOUBLE"
        low, high = (f"CAST('{end!r}' AS {type_})" for end in grid.ends)
        return f"CAST({x} AS {type_}) < {low}", f"CAST({x} AS {type_}) > {high}"
    type_ = "HUGEINT" if column.kind is Kind.INTEGER else f"DECIMAL(38,{compared_digits(column, grid)})"
    exponent = "" if column.kind is Kind.INTEGER else f"e-{grid.digits}"
    low, high = (f"CAST('{units}{exponent}' AS {type_})" for units in (grid.first, grid.last))
    if not column.is_text:
        return f"{x} < {low}", f"{x} > {high}"
    # As `grid_item` reads a text that is a number: one with too many digits by its float, and a tiny one as zero.
    decimal, double = (f"TRY_CAST({identifier(column.name)} AS {name})" for name in (type_, "DOUBLE"))
    start = f"CASE WHEN {decimal} IS NOT NULL THEN {decimal}"
    return (
        f"{start} < {low} WHEN {double} >= 1 THEN false WHEN {double} <= -1 THEN true ELSE 0 < {low} END",
        f"{start} > {high} WHEN {double} >= 1 THEN true WHEN {double} <= -1 THEN false ELSE 0 > {high} END",
    )


def _people(cursor: "Cursor") -> dict[str, int]:
    cursor.execute(
        f"CREATE OR REPLACE TEMP TABLE {_PEOPLE} AS SELECT person, count(*) AS number,"
        f" count(*) FILTER (reason IS NULL) AS counted FROM {_ROWS} WHERE person IS NOT NULL GROUP BY person"
    )
    query = f"SELECT count(*), count(*) FILTER (counted > 0), coalesce(max(number), 0) FROM {_PEOPLE}"
    [(people, people_counted, most_rows)] = cursor.sql(query).fetchall()
    return {"people": people, "people_counted": people_counted, "most_rows": most_rows}


def _unlisted(cursor: "Cursor") -> int:
    [(number,)] = cursor.sql(f"SELECT count(*) FROM {_TEXTS} WHERE reason = '{Reason.UNLISTED.name}'").fetchall()
    return int(number)


def _examples(cursor: "Cursor") -> dict[Reason, tuple[str, ...]]:
    texts = f"SELECT written FROM {_TEXTS} WHERE reason = '{{}}'"
    found = {why: _first_texts(cursor, texts.format(why.name)) for why in (Reason.UNREADABLE, Reason.UNLISTED)}
    return {reason: examples for reason, examples in found.items() if examples}


# Suspicious notations.


def _first_texts(cursor: "Cursor", texts: str) -> tuple[str, ...]:
    query = (
        f"SELECT DISTINCT written[:{_SHOWN_CHARACTERS}] AS shown FROM ({texts}) ORDER BY shown LIMIT {_MOST_EXAMPLES}"
    )
    return tuple(text for (text,) in cursor.sql(query).fetchall())


_MISSING_WORD = {"MISSING_WORD": r"(?i)na|n/a|n\.a\.|#n/a|nan|nat|null|none|nil|missing|unknown|-+|\.+|\?+"}
_PLAIN = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_SPACED = rf"\s*(?:{_PLAIN})\s*"  # as DuckDB reads it, with spaces of ASCII only
_SIGN = "[-+−–]?"  # noqa: RUF001 - a minus sign and a dash
# In this order: the first pattern that matches a text names its notation.
_PATTERNS_OF_NUMBERS = {
    "COMMA_AND_THREE_DIGITS": rf"{_SIGN}\d{{1,3}},\d{{3}}",
    "DECIMAL_COMMA": rf"{_SIGN}\d*,\d+",
    "THOUSANDS_WITH_POINTS": rf"{_SIGN}\d{{1,3}}(?:\.\d{{3}})+,\d*|{_SIGN}\d{{1,3}}(?:\.\d{{3}}){{2,}}",
    "THOUSANDS": rf"{_SIGN}\d{{1,3}}(?:,\d{{2,3}})*,\d{{3}}(?:\.\d*)?"
    rf"|{_SIGN}\d{{1,3}}(?:[\p{{Z}}''’]\d{{3}})+(?:[.,]\d*)?",  # noqa: RUF001 - the separators of Switzerland
    "MINUS": r"[−–]\s*(?:\d+\.?\d*|\.\d+)",  # noqa: RUF001 - as above
    "UNIT": rf"{_SIGN}\d[\d.,]*[\s\p{{Z}}]*(?:[%‰\p{{Sc}}]|[°µμ]?\p{{L}}{{1,6}}\.?(?:/\p{{L}}{{1,4}})?)"
    rf"|{_SIGN}(?:\p{{Sc}}|[A-Z]{{2,3}}\p{{Sc}}?)[\s\p{{Z}}]*{_SIGN}\d[\d.,]*",
}
_TIME_OF_DAY = r"(?:[T\s]+\d.*)?"
_PATTERNS_OF_DATES = {
    "DATE_ORDER": rf"\d{{1,2}}\s*[./-]\s*\d{{1,2}}\s*[./-]\s*\d{{4}}{_TIME_OF_DAY}"
    rf"|\d{{1,2}}[.\s-]+\p{{L}}{{3,}}[.,\s-]+(?:\d{{2}}|\d{{4}}){_TIME_OF_DAY}"
    rf"|\p{{L}}{{3,}}[.\s]+\d{{1,2}}[,\s]+\d{{4}}{_TIME_OF_DAY}",
    "SHORT_YEAR": rf"\d{{1,2}}[./-]\d{{1,2}}[./-]\d{{1,2}}{_TIME_OF_DAY}",
    "DATE_WITHOUT_DASHES": r"(?:1[89]|20|21)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
    rf"|\d{{4}}\.\d{{1,2}}\.\d{{1,2}}{_TIME_OF_DAY}",
}
_ISO_DATE = rf"\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}{_TIME_OF_DAY}"
# What a text is read as without a warning, to see what most of a column is.
_NUMBER, _DATE, _POINT = "PLAIN_NUMBER", "ISO_DATE", "POINT_AND_THREE_DIGITS"
_POINT_PATTERN = r"[-+]?\d{1,3}\.\d{3}"
_NOT_UTF8 = "WHEN contains(written, chr(65533)) THEN 'NOT_UTF8'"  # as `_stored` writes such texts


def _matches(pattern: str, x: str = "bare") -> str:
    return f"regexp_full_match({x}, '{pattern}')"


def _cases(patterns: Mapping[str, str], condition: str = "true") -> list[str]:
    return [f"WHEN {condition} AND {_matches(pattern)} THEN '{name}'" for name, pattern in patterns.items()]


_PADDED = "WHEN bare <> written THEN 'PADDED'"
_WORDS = [_NOT_UTF8, *_cases(_MISSING_WORD)]


def _notices(cursor: "Cursor", reading: Reading, individuals: Individuals) -> list[Notice]:
    notices, column = [], reading.column
    if column.is_text:
        notices += _found(cursor, column, f"SELECT * FROM {_TEXTS}", _cases_of(reading), reading.kind, reading)
    groups, person = individuals.groups, individuals.person
    forms = {} if groups is None else forms_of(groups)
    for i, (name, form) in enumerate(forms.items()):
        if groups is None or form.kind is not Kind.TEXT:
            continue
        names = f"SELECT {name} AS value FROM ({cast_list(GROUPS, forms)})"
        texts = (
            f"SELECT member{i} AS written, count(*) AS number FROM {_ROWS}"
            f" WHERE reason = '{Reason.GROUP.name}' AND member{i} IS NOT NULL GROUP BY ALL"
        )
        cases = _cases_of_near_texts(f"written NOT IN ({names})", names)
        notices += _found(cursor, groups.columns[i], texts, cases, Kind.TEXT, reading)
    if person is not None and person.is_text:
        texts = f"SELECT person AS written, number FROM {_PEOPLE}"
        notices += _found(cursor, person, texts, [*_WORDS, _PADDED], Kind.TEXT, reading)
        same = r"lower(regexp_replace(bare, '^([0-9]+)\.0+$', '\1'))"
        [(similar,)] = cursor.sql(f"SELECT count(*) - count(DISTINCT {same}) FROM ({_bare(texts)})").fetchall()
        notices += [Notice(person.name, Notation.SIMILAR_PEOPLE, similar)] if similar else []
    return notices


def _found(  # noqa: PLR0913, PLR0917 - the texts of a column, and what is looked for
    cursor: "Cursor", column: Column, texts: str, cases: Sequence[str], kind: Kind | None, reading: Reading
) -> list[Notice]:
    labels = f"SELECT *, CASE {' '.join(cases)} END AS label FROM ({_bare(texts)})"
    counts = cursor.sql(f"SELECT label, sum(number) FROM ({labels}) GROUP BY label").fetchall()
    found = {label: int(number) for label, number in counts}
    suspicious, notices = _suspicious(found, kind), []
    for notation in Notation:
        own = [label for label in suspicious if label.removesuffix("_WITH_POINTS") == notation.name]
        if own:
            names = ", ".join(f"'{label}'" for label in own)
            examples = f"SELECT written FROM ({labels}) WHERE label IN ({names})"
            shown = _first_texts(cursor, examples) if reading.show_values else ()
            notices.append(Notice(column.name, notation, sum(found[label] for label in own), shown))
    return notices


def _bare(texts: str) -> str:
    return rf"SELECT *, regexp_replace(written, '^[\s\p{{Z}}]+|[\s\p{{Z}}]+$', '', 'g') AS bare FROM ({texts})"


def _suspicious(found: Mapping[str | None, int], kind: Kind | None) -> set[str]:
    # If the kind is open, notations of numbers are suspicious only if at least half of the texts look like numbers, and
    # those of dates only if at least half look like dates. A number with a unit may be a code, so it is no evidence.
    labels = {label for label in found if label is not None} - {_NUMBER, _DATE}
    if not labels & {"DECIMAL_COMMA", "THOUSANDS_WITH_POINTS", "COMMA_AND_THREE_DIGITS"}:  # as in Europe
        labels -= {_POINT}
    if kind is None:
        numbers, dates = {*_PATTERNS_OF_NUMBERS, _POINT, _NUMBER}, {*_PATTERNS_OF_DATES, _DATE}
        for alike, evidence in ((numbers, numbers - {"UNIT"}), (dates, dates)):
            if 2 * sum(found.get(label, 0) for label in evidence) < sum(found.values()):
                labels -= alike
    return labels


def _cases_of(reading: Reading) -> list[str]:
    unread = f"reason = '{Reason.UNREADABLE.name}'"
    if reading.kind is not None and reading.kind.is_number:
        first = _cases(_MISSING_WORD, unread)
        plain = [f"WHEN {unread} AND bare <> written AND {_matches(_PLAIN)} THEN 'PADDED'"]
        zero = _cases({"POINT_ZERO": r"[-+]?\d+\.0*"}, unread) if reading.kind is Kind.INTEGER else []
        point = _cases({_POINT: _POINT_PATTERN}, "reason IS NULL")
        return [*first, *plain, *zero, *_cases(_PATTERNS_OF_NUMBERS, unread), *point]
    if reading.kind is not None and reading.kind.is_time:
        return [*_cases(_MISSING_WORD, unread), *_cases(_PATTERNS_OF_DATES)]
    if reading.values is not None and reading.kind is Kind.TEXT:
        candidates = f"SELECT value FROM ({listed(CANDIDATES, {'value': form_of(reading.column, Kind.TEXT)})})"
        return _cases_of_near_texts(f"reason = '{Reason.UNLISTED.name}'", candidates)
    if reading.kind is None:
        plain = _cases({_POINT: _POINT_PATTERN, _DATE: _ISO_DATE})
        plain.append(f"WHEN {_matches(_SPACED, 'written')} THEN '{_NUMBER}'")
        return [*_WORDS, *_cases(_PATTERNS_OF_DATES), *_cases(_PATTERNS_OF_NUMBERS), *plain, _PADDED]
    return [*_WORDS, _PADDED] if reading.kind is Kind.TEXT else _WORDS


def _cases_of_near_texts(off: str, candidates: str) -> list[str]:
    # A word for a missing value may be listed: NA is a country.
    near = {
        "PADDED": ("bare", candidates),
        "CASE": ("lower(bare)", f"SELECT lower(value) FROM ({candidates})"),
        "POINT_ZERO": ("regexp_replace(bare, '\\.0+$', '')", candidates),
        "DECIMAL_COMMA": ("replace(bare, ',', '.')", candidates),
    }
    cases = [f"WHEN {off} AND {text} IN ({texts}) THEN '{name}'" for name, (text, texts) in near.items()]
    return [_NOT_UTF8, *cases, *_cases(_MISSING_WORD, off)]
