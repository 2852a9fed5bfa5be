"""Count with DuckDB what a question would read and leave out, for the data owner only.

The rows are read once, by the same expressions as in a question, into a private temporary table that says for each row
why it is left out. Notations are looked for among the different texts only.
"""

import duckdb

from dpselect.questions.rows import Individuals
from dpselect.tables.checks import Check, Reading, Reason, check_from
from dpselect.tables.domains import counted_item
from dpselect.tables.duckdb import places
from dpselect.tables.duckdb.faults import faults_of_lines
from dpselect.tables.duckdb.notations import (
    PEOPLE,
    ROWS,
    TEXTS,
    first_texts,
    notices_of_column,
    notices_of_groups,
    notices_of_people,
)
from dpselect.tables.duckdb.source import Query, Source, read
from dpselect.tables.duckdb.values import (
    CANDIDATES,
    GROUPS,
    columns_of_groups,
    columns_of_list,
    form_of,
    forms_of,
    identifier,
    listed,
    listed_groups,
    members_equal,
    present,
    value_of,
)
from dpselect.tables.kinds import TEXT_DIGITS, Column, Kind
from dpselect.tables.spans import Span, float_of_rank


def checked(source: Source, cursor: duckdb.DuckDBPyConnection, reading: Reading, individuals: Individuals) -> Check:
    """The check of a column. Its temporary tables stay on the cursor."""
    if reading.values is not None:
        form = form_of(reading.column, reading.values.kind)
        cursor.register(CANDIDATES, columns_of_list(reading.values, form))
    if individuals.groups is not None:
        cursor.register(GROUPS, columns_of_groups(individuals.groups))

    def classify(rows: Query) -> None:
        statement = f"CREATE OR REPLACE TEMP TABLE {ROWS} AS {_classified(rows.text, reading, individuals)}"
        cursor.execute(statement, rows.parameters)

    read(source, cursor, individuals.names(reading.column), classify)
    cursor.execute(
        f"CREATE OR REPLACE TEMP TABLE {TEXTS} AS SELECT reason, written, count(*) AS number"
        f" FROM {ROWS} WHERE written IS NOT NULL GROUP BY ALL"
    )
    counts = cursor.sql(
        f"SELECT reason, count(*), count(*) FILTER (below), count(*) FILTER (above), count(*) FILTER (between_steps)"
        f" FROM {ROWS} GROUP BY reason"
    ).fetchall()
    numbers = {reason: number for reason, number, *_ in counts}
    below, above, between = next((places for reason, _, *places in counts if reason is None), (0, 0, 0))
    left_out = {Reason[name]: number for name, number in numbers.items() if name is not None}
    notices = [*notices_of_column(cursor, reading), *notices_of_groups(cursor, reading, individuals)]
    people: dict[str, int] = {}
    if individuals.person is not None:
        people = _people(cursor)
        notices += notices_of_people(cursor, individuals.person, reading.show_values)
    return check_from(
        numbers.get(None, 0),
        {**left_out, **faults_of_lines(source, cursor)},
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
    """For each row: why it is left out (NULL if it counts), the text of its value, person, and end of the range."""
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
    if individuals.person is not None and individuals.person.kind is Kind.TEXT:
        stored["person"] = _stored("CAST(person AS VARCHAR)")
    for i, kind in enumerate(() if groups is None else groups.kinds):
        stored[f"member{i}"] = _stored(f"member{i}") if kind is Kind.TEXT else f"member{i}"
    between = "false" if reading.grid is None else places.is_between(column, reading.grid)
    stored["between_steps"] = f"coalesce({between} AND NOT (below OR above), false)"
    kept = [f"CASE {reason} END AS reason", *(f"{expression} AS {name}" for name, expression in stored.items())]
    return f"SELECT {', '.join(kept)} FROM (SELECT {inner} FROM ({source})) {join}"


def _value(reading: Reading) -> tuple[str, str]:
    """The value as a question reads it, NULL if it cannot; and a condition for what is listed, given it as `item`."""
    column = reading.column
    if reading.values is not None:
        return form_of(column, reading.values.kind).value, "candidate.place IS NOT NULL"
    if reading.domain is not None:
        return reading.domain.form(column).value, reading.domain.condition("item")
    return (counted_item(column, None) if reading.grid is None else places.item(column, reading.grid)), "true"


def _written(column: Column) -> str:
    """The value as text. It cannot fail on any row."""
    if column.kind is Kind.TEXT:
        return value_of(column, Kind.TEXT)
    if column.kind in (Kind.TIMESTAMP, Kind.ZONED):  # without a time zone of the machine
        moment = value_of(column, column.kind)
        text = f"CAST(make_timestamp(epoch_us({moment})) AS VARCHAR)"
        return f"CASE WHEN isfinite({moment}) THEN {text} WHEN {moment} IS NOT NULL THEN 'infinity' END"
    return f"TRY_CAST({identifier(column.name)} AS VARCHAR)"


def _stored(text: str) -> str:
    """A text that DuckDB can store. One that is not UTF-8, as Parquet and Arrow may hold, is written in hexadecimal."""
    return f"coalesce(TRY(decode(encode({text}))), chr(65533) || hex(encode({text})))"


def _outside(column: Column, grid: Span) -> tuple[str, str]:
    """Whether a value is below and above the range. Only for values that count: it may hold for NaN."""
    if grid.kind in (Kind.TIMESTAMP, Kind.ZONED):
        moment = value_of(column, Kind.TIMESTAMP if column.kind is Kind.TEXT else grid.kind)
        type_ = "TIMESTAMPTZ" if grid.kind is Kind.ZONED else "TIMESTAMP"
        finite = f"CASE WHEN isfinite({moment}) THEN epoch_us({moment})"
        return (
            f"{finite} < {grid.first} ELSE {moment} = CAST('-infinity' AS {type_}) END",
            f"{finite} > {grid.last} ELSE {moment} = CAST('infinity' AS {type_}) END",
        )
    if grid.kind is Kind.DATE:
        day = value_of(column, Kind.DATE)
        return f"{day} < DATE '1970-01-01' + ({grid.first})", f"{day} > DATE '1970-01-01' + ({grid.last})"
    if grid.kind is Kind.FLOAT:
        return _outside_of_floats(column, grid)
    digits = grid.digits if column.kind is not Kind.TEXT else max(TEXT_DIGITS, grid.digits)
    low, high = (f"CAST('{units}e-{grid.digits}' AS DECIMAL(38,{digits}))" for units in (grid.first, grid.last))
    if column.kind is Kind.TEXT:
        return _outside_of_texts(column, digits, low, high)
    if column.kind is Kind.INTEGER:
        low, high = (f"CAST('{units}' AS HUGEINT)" for units in (grid.first, grid.last))
    x = value_of(column, grid.kind)
    return f"{x} < {low}", f"{x} > {high}"


def _outside_of_floats(column: Column, grid: Span) -> tuple[str, str]:
    x = value_of(column, Kind.FLOAT)
    # A grid of all floats is compared in the column's type: 0.1 as a 32-bit float is another number than 0.1.
    type_ = column.type if grid.bits and column.kind is Kind.FLOAT else "DOUBLE"
    units = (grid.first, grid.last)
    ends = [float_of_rank(unit, grid.bits) if grid.bits else unit / 10**grid.digits for unit in units]
    low, high = (f"CAST('{end!r}' AS {type_})" for end in ends)
    return f"CAST({x} AS {type_}) < {low}", f"CAST({x} AS {type_}) > {high}"


def _outside_of_texts(column: Column, digits: int, low: str, high: str) -> tuple[str, str]:
    """As `places` reads a text that is a number: one with too many digits by its float, and a tiny one as zero."""
    x = identifier(column.name)
    decimal, double = f"TRY_CAST({x} AS DECIMAL(38,{digits}))", f"TRY_CAST({x} AS DOUBLE)"
    start = f"CASE WHEN {decimal} IS NOT NULL THEN {decimal}"
    return (
        f"{start} < {low} WHEN {double} >= 1 THEN false WHEN {double} <= -1 THEN true ELSE 0 < {low} END",
        f"{start} > {high} WHEN {double} >= 1 THEN true WHEN {double} <= -1 THEN false ELSE 0 > {high} END",
    )


def _people(cursor: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """How many people there are and count, and the largest number of rows of one."""
    cursor.execute(
        f"CREATE OR REPLACE TEMP TABLE {PEOPLE} AS SELECT person, count(*) AS number,"
        f" count(*) FILTER (reason IS NULL) AS counted FROM {ROWS} WHERE person IS NOT NULL GROUP BY person"
    )
    query = f"SELECT count(*), count(*) FILTER (counted > 0), coalesce(max(number), 0) FROM {PEOPLE}"
    [(people, people_counted, most_rows)] = cursor.sql(query).fetchall()
    return {"people": people, "people_counted": people_counted, "most_rows": most_rows}


def _unlisted(cursor: duckdb.DuckDBPyConnection, reading: Reading) -> int | None:
    """How many different values are not listed."""
    if reading.values is None and reading.domain is None:
        return None
    [(number,)] = cursor.sql(f"SELECT count(*) FROM {TEXTS} WHERE reason = '{Reason.UNLISTED.name}'").fetchall()
    return int(number)


def _examples(cursor: duckdb.DuckDBPyConnection) -> dict[Reason, tuple[str, ...]]:
    """Values that are left out because of what they are."""
    return {
        reason: found
        for reason in (Reason.UNREADABLE, Reason.UNLISTED)
        if (found := first_texts(cursor, f"SELECT written FROM {TEXTS} WHERE reason = '{reason.name}'"))
    }
