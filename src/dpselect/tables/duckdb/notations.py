"""Suspicious notations of texts, in the temporary tables of a check: numbers, dates, spaces, case, missing words.

Texts are matched without the spaces around them, which may be any of Unicode's. The patterns are those of RE2.
"""

from collections.abc import Mapping, Sequence

import duckdb

from dpselect.questions.rows import Individuals
from dpselect.tables.checks import MOST_EXAMPLES, Notation, Notice, Reading, Reason
from dpselect.tables.duckdb.values import CANDIDATES, GROUPS, cast_groups, form_of, listed
from dpselect.tables.kinds import Column, Kind

# The public lists, and what `checks` makes: all rows, their different texts, and people.
ROWS, TEXTS, PEOPLE = "dpselect_checked", "dpselect_texts", "dpselect_people"
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
_TIMES = (Kind.DATE, Kind.TIMESTAMP)
_SHOWN_CHARACTERS = 60


def first_texts(cursor: duckdb.DuckDBPyConnection, texts: str) -> tuple[str, ...]:
    """A few of these texts, each cut to a line."""
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


def notices_of_column(cursor: duckdb.DuckDBPyConnection, reading: Reading) -> list[Notice]:
    """The suspicious notations of the column."""
    column = reading.column
    if column.kind is not Kind.TEXT:
        return []
    bare = f"SELECT *, {_BARE.format(x='written')} AS bare FROM {TEXTS}"
    labels = f"SELECT *, CASE {' '.join(_cases_of(reading))} END AS label FROM ({bare})"
    query = f"SELECT label, sum(number) FROM ({labels}) WHERE label IS NOT NULL GROUP BY label"
    found = {label: int(number) for label, number in cursor.sql(query).fetchall()}
    [(texts,)] = cursor.sql(f"SELECT coalesce(sum(number), 0) FROM {TEXTS}").fetchall()
    wanted = _suspicious(found, int(texts), reading.kind)
    return [
        Notice(column.name, notation, sum(found[label] for label in own), _shown(cursor, labels, own, reading))
        for notation, own in wanted.items()
    ]


def _shown(cursor: duckdb.DuckDBPyConnection, labels: str, own: Sequence[str], reading: Reading) -> tuple[str, ...]:
    if not reading.show_values:
        return ()
    names = ", ".join(f"'{label}'" for label in own)
    return first_texts(cursor, f"SELECT written FROM ({labels}) WHERE label IN ({names})")


def _cases_of(reading: Reading) -> list[str]:
    """The cases of a text that name its notation, for the kind of values that the question needs."""
    unread = f"reason = '{Reason.UNREADABLE.name}'"
    padded = "WHEN bare <> written THEN 'PADDED'"
    word = [_NOT_UTF8, *_cases({"MISSING_WORD": _MISSING_WORD})]
    if reading.kind in _NUMBERS:
        first = _cases({"MISSING_WORD": _MISSING_WORD}, unread)
        plain = [f"WHEN {unread} AND bare <> written AND {_matches(_PLAIN)} THEN 'PADDED'"]
        zero = _cases({"POINT_ZERO": r"[-+]?\d+\.0*"}, unread) if reading.kind is Kind.INTEGER else []
        point = _cases({_POINT: _POINT_PATTERN}, "reason IS NULL")
        return [*first, *plain, *zero, *_cases(_PATTERNS_OF_NUMBERS, unread), *point]
    if reading.kind in _TIMES:
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
    """The cases of a text that is not in a list of texts, and would be if it were written in another way.

    A word for a missing value may be listed: NA is a country.
    """
    near = {
        "PADDED": ("bare", candidates),
        "CASE": ("lower(bare)", f"SELECT lower(value) FROM ({candidates})"),
        "POINT_ZERO": ("regexp_replace(bare, '\\.0+$', '')", candidates),
        "DECIMAL_COMMA": ("replace(bare, ',', '.')", candidates),
    }
    cases = [f"WHEN {off} AND {text} IN ({texts}) THEN '{name}'" for name, (text, texts) in near.items()]
    return [_NOT_UTF8, *cases, *_cases({"MISSING_WORD": _MISSING_WORD}, off)]


def _suspicious(found: Mapping[str, int], texts: int, kind: Kind | None) -> dict[Notation, list[str]]:
    """The labels of each suspicious notation.

    If the kind is open, notations of numbers are suspicious only if at least half of the texts look like numbers, and
    those of dates only if at least half look like dates. A number with a unit may be a code, so it is no evidence.
    """
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


def notices_of_groups(cursor: duckdb.DuckDBPyConnection, reading: Reading, individuals: Individuals) -> list[Notice]:
    """Texts that are nearly those of a group, in rows that are in no group."""
    if individuals.groups is None:
        return []
    notices = []
    for i, (column, kind) in enumerate(zip(individuals.groups.columns, individuals.groups.kinds, strict=True)):
        if kind is not Kind.TEXT:
            continue
        groups = f"SELECT value{i} AS value FROM ({cast_groups(GROUPS, individuals.groups)})"
        off = f"written NOT IN ({groups})"
        texts = (
            f"SELECT member{i} AS written, {_BARE.format(x=f'member{i}')} AS bare, count(*) AS number FROM {ROWS}"
            f" WHERE reason = '{Reason.GROUP.name}' AND member{i} IS NOT NULL GROUP BY ALL"
        )
        cases = " ".join(_cases_of_near_texts(off, groups))
        notices += _labelled(cursor, column, f"SELECT *, CASE {cases} END AS label FROM ({texts})", reading.show_values)
    return notices


def notices_of_people(cursor: duckdb.DuckDBPyConnection, person: Column, show_values: bool) -> list[Notice]:
    """Names of people that look wrong."""
    if person.kind is not Kind.TEXT:
        return []
    texts = f"SELECT person AS written, number FROM {PEOPLE}"
    bare = f"SELECT *, {_BARE.format(x='written')} AS bare FROM ({texts})"
    cases = " ".join([_NOT_UTF8, *_cases({"MISSING_WORD": _MISSING_WORD}), "WHEN bare <> written THEN 'PADDED'"])
    notices = _labelled(cursor, person, f"SELECT *, CASE {cases} END AS label FROM ({bare})", show_values)
    same = r"lower(regexp_replace(bare, '^([0-9]+)\.0+$', '\1'))"
    [(similar,)] = cursor.sql(f"SELECT count(*) - count(DISTINCT {same}) FROM ({bare})").fetchall()
    return [*notices, *([Notice(person.name, Notation.SIMILAR_PEOPLE, int(similar))] if similar else [])]


def _labelled(cursor: duckdb.DuckDBPyConnection, column: Column, labels: str, show_values: bool) -> list[Notice]:
    """The notices of a column whose texts are labelled with names of notations."""
    query = f"SELECT label, sum(number) FROM ({labels}) WHERE label IS NOT NULL GROUP BY label"
    found = {label: int(number) for label, number in cursor.sql(query).fetchall()}
    examples = {
        label: first_texts(cursor, f"SELECT written FROM ({labels}) WHERE label = '{label}'") if show_values else ()
        for label in found
    }
    own = [notation for notation in Notation if notation.name in found]
    return [Notice(column.name, each, found[each.name], examples[each.name]) for each in own]
