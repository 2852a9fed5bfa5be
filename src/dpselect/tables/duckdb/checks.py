"""Count with DuckDB what a question would read and leave out, for the data owner only.

The rows are read once, by the same expressions as in a question, into a private temporary table that says for each row
why it is left out. DuckDB says what is wrong with the lines of CSV files that it returns. What its reader drops by
itself (lines that are not UTF-8, and lines beyond its limit) is counted from the bytes of the files.

Suspicious notations are looked for among the different texts only, without the spaces around them, which may be any of
Unicode's. The patterns are those of RE2.
"""

import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import duckdb

from dpselect.questions.rows import Individuals
from dpselect.tables.checks import MOST_EXAMPLES, Check, Notation, Notice, Reading, Reason, check_from
from dpselect.tables.domains import counted_item
from dpselect.tables.duckdb.files import LONGEST_READ, CSVFiles, csv_lines, line_fault, pattern_of
from dpselect.tables.duckdb.source import Query, Source, read
from dpselect.tables.duckdb.values import (
    CANDIDATES,
    GROUPS,
    cast_groups,
    columns_of_groups,
    columns_of_list,
    compared_digits,
    form_of,
    forms_of,
    grid_item,
    identifier,
    is_between,
    listed,
    listed_groups,
    members_equal,
    present,
    value_of,
)
from dpselect.tables.kinds import Column, Kind, Span

# What is made: all rows, their different texts, and people.
_ROWS, _TEXTS, _PEOPLE = "dpselect_checked", "dpselect_texts", "dpselect_people"
_SHOWN_CHARACTERS = 60


def checked(source: Source, cursor: duckdb.DuckDBPyConnection, reading: Reading, individuals: Individuals) -> Check:
    """The check of a column. Its temporary tables stay on the cursor."""
    if reading.values is not None:
        form = form_of(reading.column, reading.values.kind)
        cursor.register(CANDIDATES, columns_of_list(reading.values, form))
    if individuals.groups is not None:
        cursor.register(GROUPS, columns_of_groups(individuals.groups))

    def classify(rows: Query) -> None:
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
    below, above, between = next((places for reason, _, *places in counts if reason is None), (0, 0, 0))
    left_out = {Reason[name]: number for name, number in numbers.items() if name is not None}
    notices = [*_notices_of_column(cursor, reading), *_notices_of_groups(cursor, reading, individuals)]
    people: dict[str, int] = {}
    if individuals.person is not None:
        people = _people(cursor)
        notices += _notices_of_people(cursor, individuals.person, reading.show_values)
    return check_from(
        numbers.get(None, 0),
        {**left_out, **_faults_of_lines(source, cursor)},
        reading,
        below=below,
        above=above,
        between=between,
        unlisted=_unlisted(cursor, reading),
        notices=tuple(notices),
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
        selected |= {f"member{i}": form.value for i, form in enumerate(forms_of(groups))}
        same = members_equal(groups, "public_group")
        join += f" LEFT JOIN ({listed_groups(GROUPS, groups)}) AS public_group ON {same}"
        reasons.append((Reason.GROUP, "public_group.place IS NULL"))
    if reading.values is not None:
        form = form_of(column, reading.values.kind)
        same = form.equal("item", "candidate.value")
        join += f" LEFT JOIN ({listed(CANDIDATES, form)}) AS candidate ON {same}"
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
    # As `places` reads a text that is a number: one with too many digits by its float, and a tiny one as zero.
    decimal, double = (f"TRY_CAST({identifier(column.name)} AS {name})" for name in (type_, "DOUBLE"))
    start = f"CASE WHEN {decimal} IS NOT NULL THEN {decimal}"
    return (
        f"{start} < {low} WHEN {double} >= 1 THEN false WHEN {double} <= -1 THEN true ELSE 0 < {low} END",
        f"{start} > {high} WHEN {double} >= 1 THEN true WHEN {double} <= -1 THEN false ELSE 0 > {high} END",
    )


def _people(cursor: duckdb.DuckDBPyConnection) -> dict[str, int]:
    cursor.execute(
        f"CREATE OR REPLACE TEMP TABLE {_PEOPLE} AS SELECT person, count(*) AS number,"
        f" count(*) FILTER (reason IS NULL) AS counted FROM {_ROWS} WHERE person IS NOT NULL GROUP BY person"
    )
    query = f"SELECT count(*), count(*) FILTER (counted > 0), coalesce(max(number), 0) FROM {_PEOPLE}"
    [(people, people_counted, most_rows)] = cursor.sql(query).fetchall()
    return {"people": people, "people_counted": people_counted, "most_rows": most_rows}


def _unlisted(cursor: duckdb.DuckDBPyConnection, reading: Reading) -> int | None:
    if reading.values is None and reading.domain is None:
        return None
    [(number,)] = cursor.sql(f"SELECT count(*) FROM {_TEXTS} WHERE reason = '{Reason.UNLISTED.name}'").fetchall()
    return int(number)


def _examples(cursor: duckdb.DuckDBPyConnection) -> dict[Reason, tuple[str, ...]]:
    return {
        reason: found
        for reason in (Reason.UNREADABLE, Reason.UNLISTED)
        if (found := _first_texts(cursor, f"SELECT written FROM {_TEXTS} WHERE reason = '{reason.name}'"))
    }


# Malformed lines.

_BLOCK = 4_000_000
_SEPARATOR = b"\x1f"


def _faults_of_lines(source: Source, cursor: duckdb.DuckDBPyConnection) -> dict[Reason, int]:
    if not isinstance(source, CSVFiles):
        return {}
    delimiter, names = source.header
    query = (
        f"SELECT {line_fault(delimiter, len(names))} AS fault, count(*) FROM {csv_lines()}"
        " WHERE line IS NOT NULL GROUP BY fault"
    )
    found = dict(cursor.execute(query, {"paths": list(map(pattern_of, source.files))}).fetchall())
    total, encoding, empty = map(sum, zip(*(_lines_of_file(path) for path in source.files), strict=True))
    # What DuckDB did not return and is not UTF-8's fault is beyond its limit. A line that begins with the separator is
    # read as an empty one.
    beyond = total - sum(found.values()) - encoding - empty
    return {
        Reason.ENCODING: encoding,
        Reason.LONG: found.get("long", 0) + beyond,
        Reason.QUOTES: found.get("quotes", 0),
        Reason.FIELDS: found.get("fields", 0) + empty,
    }


def _lines_of_file(path: Path) -> tuple[int, int, int]:
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    total = encoding = empty = 0
    with opener(path, "rb") as file:
        file.readline()
        for block in _blocks(cast("BinaryIO", file)):
            lines = [line for line in block.replace(b"\r", b"\n").split(b"\n") if line]
            total += len(lines)
            if not _is_utf8(block):
                encoding += sum(not _is_utf8(line.partition(_SEPARATOR)[0]) for line in lines if _is_readable(line))
            if _SEPARATOR in block:
                empty += sum(line.startswith(_SEPARATOR) for line in lines if _is_readable(line))
    return total, encoding, empty


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    # Of a line that is too long for DuckDB, a block has only the beginning.
    rest = b""
    while block := file.read(_BLOCK):
        whole = rest + block
        end = max(whole.rfind(b"\n"), whole.rfind(b"\r")) + 1
        yield whole[:end]
        rest = whole[end:][: LONGEST_READ + 1]
    yield rest


def _is_readable(line: bytes) -> bool:
    return len(line) <= LONGEST_READ


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


# Suspicious notations.


def _first_texts(cursor: duckdb.DuckDBPyConnection, texts: str) -> tuple[str, ...]:
    query = (
        f"SELECT DISTINCT written[:{_SHOWN_CHARACTERS}] AS shown FROM ({texts}) ORDER BY shown LIMIT {MOST_EXAMPLES}"
    )
    return tuple(text for (text,) in cursor.sql(query).fetchall())


_BARE = r"regexp_replace({x}, '^[\s\p{{Z}}]+|[\s\p{{Z}}]+$', '', 'g')"
_MISSING_WORD = r"(?i)na|n/a|n\.a\.|#n/a|nan|nat|null|none|nil|missing|unknown|-+|\.+|\?+"
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
_NOT_UTF8 = "WHEN contains(written, chr(65533)) THEN 'NOT_UTF8'"  # as `checks` stores such texts


def _matches(pattern: str, x: str = "bare") -> str:
    return f"regexp_full_match({x}, '{pattern}')"


def _cases(patterns: Mapping[str, str], condition: str = "true") -> list[str]:
    return [f"WHEN {condition} AND {_matches(pattern)} THEN '{name}'" for name, pattern in patterns.items()]


def _notices_of_column(cursor: duckdb.DuckDBPyConnection, reading: Reading) -> list[Notice]:
    column = reading.column
    if not column.is_text:
        return []
    bare = f"SELECT *, {_BARE.format(x='written')} AS bare FROM {_TEXTS}"
    labels = f"SELECT *, CASE {' '.join(_cases_of(reading))} END AS label FROM ({bare})"
    found = _labelled(cursor, labels)
    [(texts,)] = cursor.sql(f"SELECT coalesce(sum(number), 0) FROM {_TEXTS}").fetchall()
    wanted = _suspicious(found, int(texts), reading.kind)
    return _notices(cursor, column, labels, found, wanted, reading.show_values)


def _notices(  # noqa: PLR0913, PLR0917 - what a notice says
    cursor: duckdb.DuckDBPyConnection,
    column: Column,
    labels: str,
    found: Mapping[str, int],
    wanted: Mapping[Notation, Sequence[str]],
    show_values: bool,
) -> list[Notice]:
    notices = []
    for notation, own in wanted.items():
        names = ", ".join(f"'{label}'" for label in own)
        texts = f"SELECT written FROM ({labels}) WHERE label IN ({names})"
        examples = _first_texts(cursor, texts) if show_values else ()
        notices.append(Notice(column.name, notation, sum(found[label] for label in own), examples))
    return notices


def _labelled(cursor: duckdb.DuckDBPyConnection, labels: str) -> dict[str, int]:
    query = f"SELECT label, sum(number) FROM ({labels}) WHERE label IS NOT NULL GROUP BY label"
    return {label: int(number) for label, number in cursor.sql(query).fetchall()}


def _cases_of(reading: Reading) -> list[str]:
    unread = f"reason = '{Reason.UNREADABLE.name}'"
    padded = "WHEN bare <> written THEN 'PADDED'"
    word = [_NOT_UTF8, *_cases({"MISSING_WORD": _MISSING_WORD})]
    if reading.kind is not None and reading.kind.is_number:
        first = _cases({"MISSING_WORD": _MISSING_WORD}, unread)
        plain = [f"WHEN {unread} AND bare <> written AND {_matches(_PLAIN)} THEN 'PADDED'"]
        zero = _cases({"POINT_ZERO": r"[-+]?\d+\.0*"}, unread) if reading.kind is Kind.INTEGER else []
        point = _cases({_POINT: _POINT_PATTERN}, "reason IS NULL")
        return [*first, *plain, *zero, *_cases(_PATTERNS_OF_NUMBERS, unread), *point]
    if reading.kind is not None and reading.kind.is_time:
        return [*_cases({"MISSING_WORD": _MISSING_WORD}, unread), *_cases(_PATTERNS_OF_DATES)]
    if reading.values is not None and reading.kind is Kind.TEXT:
        candidates = f"SELECT value FROM ({listed(CANDIDATES, form_of(reading.column, Kind.TEXT))})"
        return _cases_of_near_texts(f"reason = '{Reason.UNLISTED.name}'", candidates)
    if reading.kind is None:
        plain = _cases({_POINT: _POINT_PATTERN, _DATE: _ISO_DATE})
        plain.append(f"WHEN {_matches(_SPACED, 'written')} THEN '{_NUMBER}'")
        return [*word, *_cases(_PATTERNS_OF_DATES), *_cases(_PATTERNS_OF_NUMBERS), *plain, padded]
    return [*word, padded] if reading.kind is Kind.TEXT else word


def _cases_of_near_texts(off: str, candidates: str) -> list[str]:
    # A word for a missing value may be listed: NA is a country.
    near = {
        "PADDED": ("bare", candidates),
        "CASE": ("lower(bare)", f"SELECT lower(value) FROM ({candidates})"),
        "POINT_ZERO": ("regexp_replace(bare, '\\.0+$', '')", candidates),
        "DECIMAL_COMMA": ("replace(bare, ',', '.')", candidates),
    }
    cases = [f"WHEN {off} AND {text} IN ({texts}) THEN '{name}'" for name, (text, texts) in near.items()]
    return [_NOT_UTF8, *cases, *_cases({"MISSING_WORD": _MISSING_WORD}, off)]


def _suspicious(found: Mapping[str, int], texts: int, kind: Kind | None) -> dict[Notation, list[str]]:
    # If the kind is open, notations of numbers are suspicious only if at least half of the texts look like numbers, and
    # those of dates only if at least half look like dates. A number with a unit may be a code, so it is no evidence.
    labels = set(found)
    european = labels & {"DECIMAL_COMMA", "THOUSANDS_WITH_POINTS", "COMMA_AND_THREE_DIGITS"}
    if not european:
        labels -= {_POINT}
    if kind is None:
        numbers = {*_PATTERNS_OF_NUMBERS, _POINT, _NUMBER}
        dates = {*_PATTERNS_OF_DATES, _DATE}
        if 2 * sum(found.get(label, 0) for label in numbers - {"UNIT"}) < texts:
            labels -= numbers
        if 2 * sum(found.get(label, 0) for label in dates) < texts:
            labels -= dates
    names = {label: "THOUSANDS" if label == "THOUSANDS_WITH_POINTS" else label for label in labels - {_NUMBER, _DATE}}
    return {
        notation: own
        for notation in Notation
        if (own := sorted(label for label, name in names.items() if name == notation.name))
    }


def _notices_of_groups(cursor: duckdb.DuckDBPyConnection, reading: Reading, individuals: Individuals) -> list[Notice]:
    if individuals.groups is None:
        return []
    notices = []
    for i, (column, kind) in enumerate(zip(individuals.groups.columns, individuals.groups.kinds, strict=True)):
        if kind is not Kind.TEXT:
            continue
        groups = f"SELECT value{i} AS value FROM ({cast_groups(GROUPS, individuals.groups)})"
        off = f"written NOT IN ({groups})"
        texts = (
            f"SELECT member{i} AS written, {_BARE.format(x=f'member{i}')} AS bare, count(*) AS number FROM {_ROWS}"
            f" WHERE reason = '{Reason.GROUP.name}' AND member{i} IS NOT NULL GROUP BY ALL"
        )
        cases = " ".join(_cases_of_near_texts(off, groups))
        notices += _of_names(cursor, column, f"SELECT *, CASE {cases} END AS label FROM ({texts})", reading.show_values)
    return notices


def _notices_of_people(cursor: duckdb.DuckDBPyConnection, person: Column, show_values: bool) -> list[Notice]:
    if not person.is_text:
        return []
    texts = f"SELECT person AS written, number FROM {_PEOPLE}"
    bare = f"SELECT *, {_BARE.format(x='written')} AS bare FROM ({texts})"
    cases = " ".join([_NOT_UTF8, *_cases({"MISSING_WORD": _MISSING_WORD}), "WHEN bare <> written THEN 'PADDED'"])
    notices = _of_names(cursor, person, f"SELECT *, CASE {cases} END AS label FROM ({bare})", show_values)
    same = r"lower(regexp_replace(bare, '^([0-9]+)\.0+$', '\1'))"
    [(similar,)] = cursor.sql(f"SELECT count(*) - count(DISTINCT {same}) FROM ({bare})").fetchall()
    return [*notices, *([Notice(person.name, Notation.SIMILAR_PEOPLE, int(similar))] if similar else [])]


def _of_names(cursor: duckdb.DuckDBPyConnection, column: Column, labels: str, show_values: bool) -> list[Notice]:
    found = _labelled(cursor, labels)
    wanted = {notation: [notation.name] for notation in Notation if notation.name in found}
    return _notices(cursor, column, labels, found, wanted, show_values)
