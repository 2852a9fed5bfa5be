"""Check a column in one pass with DuckDB: why each row is left out, and which texts have a suspicious notation.

The rows are read once, by the same expressions as in a question, into a private temporary table that says for each row
why it is left out. The source says which lines of CSV files are left out. Suspicious notations are looked for among the
different texts only, without the spaces around them, which may be any of Unicode's. The patterns are those of RE2.
"""

from collections.abc import Iterator, Mapping, Sequence

from dpselect.questions.rows import Individuals
from dpselect.tables.checks import Check, Near, Notation, Notice, Reading, Reason
from dpselect.tables.domains import counted_item
from dpselect.tables.duckdb import values as sql
from dpselect.tables.duckdb.source import Cursor, Query, Source, read
from dpselect.tables.kinds import Column, Kind, Span, Style

_MOST_EXAMPLES, _SHOWN_CHARACTERS = 5, 60  # of the data, for a notation, if they are asked for
# What is made: all rows, their different texts, and people.
_ROWS, _TEXTS, _PEOPLE = "dpselect_checked", "dpselect_texts", "dpselect_people"


def checked(source: Source, cursor: Cursor, reading: Reading, individuals: Individuals) -> Check:
    """The check of a column. Its temporary tables stay on the cursor."""
    sql.register_lists(cursor, reading.column, reading.values, individuals.groups)

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
    numbers |= {reason.name: number for reason, number in source.left_out(cursor).items()}
    counted = numbers.get(None, 0)
    left_out = {reason: numbers[reason.name] for reason in Reason if numbers.get(reason.name)}
    other = 0
    if reading.values is not None and reading.values.other is not None:
        other = sum(left_out.pop(reason, 0) for reason in (Reason.UNREADABLE, Reason.UNLISTED))
        counted += other
    below, above, between = next((places for reason, _, *places in counts if reason is None), (0, 0, 0))
    people: dict[str, int] = {} if individuals.person is None else _people(cursor)
    looks, unlike = _looks(cursor, reading)
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
        looks=looks,
        unlike=unlike,
        as_other=other,
        near=tuple(_near(cursor, reading, individuals)),
        **people,
    )


def _classified(source: str, reading: Reading, individuals: Individuals) -> str:
    # The reason is NULL if the row counts.
    column, groups = reading.column, individuals.groups
    value, is_listed = _value(reading)
    below, above = ("false", "false") if reading.grid is None else _outside(column, reading.grid)
    read = {"written": _written(column), "present": sql.present(column), "item": value, "below": below, "above": above}
    reasons, join = [], ""
    stored = {"written": _stored("written"), "below": "below", "above": "above"}
    if reading.values is not None:
        join += f" LEFT JOIN {sql.candidate(sql.form_of(column, reading.values.kind))}"
    if individuals.person is not None:
        reasons.append((Reason.PERSON, "person IS NULL"))
        stored["person"] = _stored("CAST(person AS VARCHAR)") if individuals.person.is_text else "person"
    if groups is not None:
        join += f" LEFT JOIN {sql.public_group(groups)}"
        reasons.append((Reason.GROUP, "public_group.place IS NULL"))
        for i, kind in enumerate(groups.kinds):
            stored[f"member{i}"] = _stored(f"member{i}") if kind is Kind.TEXT else f"member{i}"
    reasons += [
        (Reason.MISSING, "NOT coalesce(present, false)"),
        (Reason.UNREADABLE, "item IS NULL"),
        (Reason.UNLISTED, f"NOT coalesce({is_listed}, false)"),
    ]
    reason = " ".join(f"WHEN {condition} THEN '{why.name}'" for why, condition in reasons)
    between = "false" if reading.grid is None else sql.OnGrid(column, reading.grid).is_between
    stored["between_steps"] = f"coalesce({between} AND NOT (below OR above), false)"
    kept = [f"CASE {reason} END AS reason", *(f"{expression} AS {name}" for name, expression in stored.items())]
    named = sql.renamed(f"({source})", read, individuals.person, groups)
    return f"SELECT {', '.join(kept)} FROM ({named}) {join}"


def _value(reading: Reading) -> tuple[str, str]:
    column = reading.column
    if reading.values is not None:
        return sql.form_of(column, reading.values.kind).value, "candidate.place IS NOT NULL"
    if reading.domain is not None:
        return reading.domain.form(column).value, reading.domain.condition("item")
    return (counted_item(column, None) if reading.grid is None else sql.OnGrid(column, reading.grid).item), "true"


def _written(column: Column) -> str:
    # The expression cannot fail on any row.
    x = sql.value_of(column, column.kind)
    if column.is_text:
        return x
    if column.kind.is_moment:  # without a time zone of the machine
        text = f"CAST(make_timestamp(epoch_us({x})) AS VARCHAR)"
        return f"CASE WHEN isfinite({x}) THEN {text} WHEN {x} IS NOT NULL THEN 'infinity' END"
    return f"TRY_CAST({sql.identifier(column.name)} AS VARCHAR)"


def _stored(text: str) -> str:
    # A text that is not UTF-8, as Parquet and Arrow may hold, is written in hexadecimal.
    return f"coalesce(TRY(decode(encode({text}))), chr(65533) || hex(encode({text})))"


def _outside(column: Column, grid: Span) -> tuple[str, str]:
    # Only for values that count: the conditions may hold for NaN.
    x, kind = sql.value_of(column, grid.kind), grid.kind
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
    type_ = "HUGEINT" if column.kind is Kind.INTEGER else f"DECIMAL(38,{sql.OnGrid(column, grid).digits})"
    exponent = "" if column.kind is Kind.INTEGER else f"e-{grid.digits}"
    low, high = (f"CAST('{units}{exponent}' AS {type_})" for units in (grid.first, grid.last))
    if not column.is_text:
        return f"{x} < {low}", f"{x} > {high}"
    # As `OnGrid` reads a text that is a number: one with too many digits by its float, and a tiny one as zero.
    number = sql.number_in(sql.text_of(column), column.style)
    decimal, double = (f"TRY_CAST({number} AS {name})" for name in (type_, "DOUBLE"))
    start = f"CASE WHEN {decimal} IS NOT NULL THEN {decimal}"
    return (
        f"{start} < {low} WHEN {double} >= 1 THEN false WHEN {double} <= -1 THEN true ELSE 0 < {low} END",
        f"{start} > {high} WHEN {double} >= 1 THEN true WHEN {double} <= -1 THEN false ELSE 0 > {high} END",
    )


def _people(cursor: Cursor) -> dict[str, int]:
    cursor.execute(
        f"CREATE OR REPLACE TEMP TABLE {_PEOPLE} AS SELECT person, count(*) AS number,"
        f" count(*) FILTER (reason IS NULL) AS counted FROM {_ROWS} WHERE person IS NOT NULL GROUP BY person"
    )
    query = f"SELECT count(*), count(*) FILTER (counted > 0), coalesce(max(number), 0) FROM {_PEOPLE}"
    [(people, people_counted, most_rows)] = cursor.sql(query).fetchall()
    return {"people": people, "people_counted": people_counted, "most_rows": most_rows}


def _unlisted(cursor: Cursor) -> int:
    [(number,)] = cursor.sql(f"SELECT count(*) FROM {_TEXTS} WHERE reason = '{Reason.UNLISTED.name}'").fetchall()
    return int(number)


def _examples(cursor: Cursor) -> dict[Reason, tuple[str, ...]]:
    texts = f"SELECT written FROM {_TEXTS} WHERE reason = '{{}}'"
    found = {why: _first_texts(cursor, texts.format(why.name)) for why in (Reason.UNREADABLE, Reason.UNLISTED)}
    return {reason: examples for reason, examples in found.items() if examples}


# Suspicious notations.


_MOST_LISTED, _MOST_UNLISTED, _MOST_NEAR = 1000, 1000, 10  # so many texts are compared with each other, and shown


def _near(cursor: Cursor, reading: Reading, individuals: Individuals) -> Iterator[Near]:
    # Texts that are most common among those that are not listed, next to a candidate or a group that nobody has.
    values, groups = reading.values, individuals.groups
    if values is not None and values.kind is Kind.TEXT and len(values) <= _MOST_LISTED:
        form = sql.form_of(reading.column, Kind.TEXT)
        listed = f"SELECT value FROM ({sql.listed(sql.CANDIDATES, {'value': form})})"
        yield from _near_of(cursor, listed, _TEXTS, f"reason = '{Reason.UNLISTED.name}'")
    forms = {} if groups is None else sql.forms_of(groups)
    for i, (name, form) in enumerate(forms.items()):
        if form.kind is Kind.TEXT and len(groups or ()) <= _MOST_LISTED:
            listed = f"SELECT DISTINCT {name} AS value FROM ({sql.cast_list(sql.GROUPS, forms)})"
            texts = f"(SELECT member{i} AS written, reason, count(*) AS number FROM {_ROWS} GROUP BY ALL)"
            own = groups.columns[i].name if groups is not None else ""
            yield from _near_of(cursor, listed, texts, f"reason = '{Reason.GROUP.name}'", own)


_FOLDED = "strip_accents(lower(trim({})))"


def _near_of(cursor: Cursor, listed: str, texts: str, off: str, group_of: str = "") -> Iterator[Near]:
    common = (
        f"SELECT written, sum(number) AS number FROM {texts} WHERE {off} AND length(written) <= {_SHOWN_CHARACTERS}"
        f" GROUP BY written ORDER BY number DESC, written LIMIT {_MOST_UNLISTED}"
    )
    near = (
        f"{_FOLDED.format('written')} = {_FOLDED.format('value')} OR (length(value) > 3"
        " AND damerau_levenshtein(lower(written), lower(value)) <= 1 + length(value) // 8)"
    )
    had = f"SELECT written FROM {texts} WHERE ({off}) IS NOT TRUE AND written IS NOT NULL"  # a row that counts has none
    absent = f"SELECT value FROM ({listed}) WHERE value NOT IN ({had})"
    found = cursor.sql(
        f"SELECT value, written, number FROM ({absent}) JOIN ({common}) ON {near}"
        f" ORDER BY number DESC, value, written LIMIT {_MOST_NEAR}"
    )
    for value, text, number in found.fetchall():
        yield Near(value, text, int(number), group_of)


def _looks(cursor: Cursor, reading: Reading) -> tuple[str, int]:
    # What most texts look like if nothing says how they are read, and how many others look different.
    if reading.kind is not None:
        return "", 0
    _, labels = _labels(cursor, f"SELECT * FROM {_TEXTS} WHERE reason IS NULL", _cases_of(reading))
    present = sum(labels.values()) - labels.get("MISSING_WORD", 0)
    for name, evidence, plain in (("numbers", _EVIDENCE_OF_NUMBERS, {_NUMBER, _POINT}), ("dates", _DATES, {_DATE})):
        if present and 2 * sum(labels.get(label, 0) for label in evidence) >= present:
            return name, present - sum(labels.get(label, 0) for label in plain)
    return "text", 0


def _labels(cursor: Cursor, texts: str, cases: Sequence[str]) -> tuple[str, dict[str | None, int]]:
    # A query of the texts with their labels, and how many rows have each.
    labels = f"SELECT *, CASE {' '.join(cases)} END AS label FROM ({_bare(texts)})"
    counts = cursor.sql(f"SELECT label, sum(number) FROM ({labels}) GROUP BY label").fetchall()
    return labels, {label: int(number) for label, number in counts}


def _first_texts(cursor: Cursor, texts: str) -> tuple[str, ...]:
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
_ISO_TIME = r"\d{4}[-/]\d{1,2}[-/]\d{1,2}[T\s]+\d.*"
_ISO_DATE = rf"\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}{_TIME_OF_DAY}"
# What a text is read as without a warning, to see what most of a column is.
_NUMBER, _DATE, _POINT = "PLAIN_NUMBER", "ISO_DATE", "POINT_AND_THREE_DIGITS"
_EVIDENCE_OF_NUMBERS = {*_PATTERNS_OF_NUMBERS, _POINT, _NUMBER} - {"UNIT"}  # with a unit, it may be a code
_DATES = {*_PATTERNS_OF_DATES, _DATE}
_POINT_PATTERN = r"[-+]?\d{1,3}\.\d{3}"
_NOT_UTF8 = "WHEN contains(written, chr(65533)) THEN 'NOT_UTF8'"  # as `_stored` writes such texts


def _matches(pattern: str, x: str = "bare") -> str:
    return f"regexp_full_match({x}, '{pattern}')"


def _cases(patterns: Mapping[str, str], condition: str = "true") -> list[str]:
    return [f"WHEN {condition} AND {_matches(pattern)} THEN '{name}'" for name, pattern in patterns.items()]


_PADDED = "WHEN bare <> written THEN 'PADDED'"
_WORDS = [_NOT_UTF8, *_cases(_MISSING_WORD)]


def _notices(cursor: Cursor, reading: Reading, individuals: Individuals) -> list[Notice]:
    notices, column = [], reading.column
    if column.is_text:
        notices += _found(cursor, column, f"SELECT * FROM {_TEXTS}", _cases_of(reading), reading.kind, reading)
    groups, person = individuals.groups, individuals.person
    forms = {} if groups is None else sql.forms_of(groups)
    for i, (name, form) in enumerate(forms.items()):
        if groups is None or form.kind is not Kind.TEXT:
            continue
        names = f"SELECT {name} AS value FROM ({sql.cast_list(sql.GROUPS, forms)})"
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
    cursor: Cursor, column: Column, texts: str, cases: Sequence[str], kind: Kind | None, reading: Reading
) -> list[Notice]:
    labels, found = _labels(cursor, texts, cases)
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
        numbers, dates = {*_EVIDENCE_OF_NUMBERS, "UNIT"}, _DATES
        for alike, evidence in ((numbers, _EVIDENCE_OF_NUMBERS), (dates, dates)):
            if 2 * sum(found.get(label, 0) for label in evidence) < sum(found.values()):
                labels -= alike
    return labels


def _cases_of(reading: Reading) -> list[str]:
    unread = f"reason = '{Reason.UNREADABLE.name}'"
    if reading.kind is not None and reading.kind.is_number:
        first = _cases(_MISSING_WORD, unread)
        plain = [f"WHEN {unread} AND bare <> written AND {_matches(_PLAIN)} THEN 'PADDED'"]
        point = _cases({_POINT: _POINT_PATTERN}, "reason IS NULL")
        return [*first, *plain, *_cases(_PATTERNS_OF_NUMBERS, unread), *point]
    if reading.kind is not None and reading.kind.is_time:
        day = _cases({"TIME_OF_DAY": _ISO_TIME}) if reading.kind is Kind.DATE else []
        # What is written as `dates` says is read as it is meant; without it, some of these are read as another day.
        odd = "true" if reading.column.style.dates is None else unread
        return [*_cases(_MISSING_WORD, unread), *_cases(_PATTERNS_OF_DATES, odd), *day]
    if reading.values is not None and reading.kind is Kind.TEXT:
        form = sql.form_of(reading.column, Kind.TEXT)
        candidates = f"SELECT value FROM ({sql.listed(sql.CANDIDATES, {'value': form})})"
        return _cases_of_near_texts(f"reason = '{Reason.UNLISTED.name}'", candidates)
    if reading.kind is None:
        plain = _cases({_POINT: _POINT_PATTERN, _DATE: _ISO_DATE})
        plain.append(f"WHEN {_matches(_SPACED, 'written')} THEN '{_NUMBER}'")
        return [
            *_WORDS,
            *_stated(reading.column),
            *_cases(_PATTERNS_OF_DATES),
            *_cases(_PATTERNS_OF_NUMBERS),
            *plain,
            _PADDED,
        ]
    return [*_WORDS, _PADDED] if reading.kind is Kind.TEXT else _WORDS


def _stated(column: Column) -> list[str]:
    # What is written as the options of the table say.
    style, read = column.style, {}
    if style != Style(dates=style.dates):
        read[_NUMBER] = f"TRY_CAST({sql.number_in('written', style)} AS DOUBLE)"
    if style.dates is not None:
        read[_DATE] = sql.read_text("written", Kind.TIMESTAMP, style)
    return [f"WHEN {value} IS NOT NULL THEN '{name}'" for name, value in read.items()]


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
