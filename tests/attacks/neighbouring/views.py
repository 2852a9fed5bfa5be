"""Random views of a table: expressions of every operation over whatever columns there are, and notations of text files.

Nothing here knows which expressions are allowed: what is refused is drawn again. The names of derived columns are those
that statements use themselves, where a user can choose them.
"""

import datetime
import math
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

import dpselect
from dpselect.errors import DPSelectError
from dpselect.tables.duckdb import expressions
from dpselect.tables.duckdb.expressions import derived
from dpselect.tables.duckdb.values import identifier
from dpselect.tables.kinds import Column as Known
from dpselect.tables.kinds import Kind
from dpselect.tables.view import View
from tests.attacks.neighbouring.cases import GROUP, VALUE, WHO, Case, random_questions
from tests.attacks.neighbouring.sources import Column, NotWritten
from tests.attacks.neighbouring.values import DAY, NUMBER, Family, Type

TEXTS = ["a", "3", "-3.5", "x%", "%_a", "%Y-%m-%d", "%m/%d/%Y %z", "%n", "é", "", "(a)", "[0-9]+", "a*", r"\1", "b|c"]
TEXTS += [
    "2024-01-31",
    "1999-12-31 23:59:59",
    "infinity",
    "now",
    "true",
    "ß",
    "\U0001d518",
    "'",
    '"',
    "\\",
    "{0}",
    "nan",
]
NUMBERS = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "1000000",
    "-1000000",
    "9223372036854775807",
    "1e300",
    "0.5",
    "-2.25",
    "1e-300",
]
COMPARED = ["=", "<>", "<", ">", "<=", ">=", "IS DISTINCT FROM"]
TYPES = ["TINYINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(9, 2)", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP"]
# What statements name themselves.
NAMES = ["item", "person", "grp", "place", "present", "value0", "member0", "line", "fields", "candidate", "source_rows"]
NAMES += ["facts", "rowid", "salt", "counts", "c0", "d0", "dpselect_rows", "a.b", 'a "b"', "select", "a;b", "İ", "{0}"]


def quoted(text: str) -> str:
    """A literal."""
    return "'" + text.replace("'", "''") + "'"


def random_expression(names: Sequence[str], rng: Random, depth: int) -> str:
    """A text that looks like an expression. Most are refused, because they mix kinds."""

    def part() -> str:
        return random_expression(names, rng, depth - 1)

    if depth <= 0 or rng.random() < 0.15:
        return rng.choice([*[identifier(rng.choice(names))] * 5, quoted(rng.choice(TEXTS)), rng.choice(NUMBERS)])
    forms = [
        lambda: f"({part()} {rng.choice(COMPARED)} {part()})",
        lambda: f"({part()} {rng.choice(['BETWEEN', 'NOT BETWEEN'])} {part()} AND {part()})",
        lambda: f"({part()} {rng.choice(['IN', 'NOT IN'])} ({', '.join(part() for _ in range(rng.randint(1, 3)))}))",
        lambda: f"CASE WHEN {part()} THEN {part()} ELSE {part()} END",
        lambda: f"{rng.choice(['coalesce', 'nullif', 'concat'])}({part()}, {part()})",
        lambda: f"({part()} {rng.choice(['IS NULL', 'IS NOT NULL'])})",
        lambda: f"{rng.choice(['CAST', 'TRY_CAST'])}({part()} AS {rng.choice(TYPES)})",
        lambda: f"({part()} {rng.choice('+-')} INTERVAL {rng.choice([1, 400])} {rng.choice(['DAY', 'MONTH', 'HOUR'])})",
        lambda: f"({part()} {rng.choice(['AND', 'OR'])} NOT {part()})",
    ]
    return rng.choice(forms)() if rng.random() < 0.5 else _operation(part, rng)


def _operation(part: Any, rng: Random) -> str:
    name = rng.choice(list(expressions._OPERATIONS))
    takes = rng.choice(expressions._OPERATIONS[name]).takes
    written = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}
    given = []
    for wanted in takes:
        if isinstance(wanted, frozenset):
            given.append(quoted(rng.choice(sorted(wanted))))
        elif isinstance(wanted, str) and wanted != expressions._ANY:
            is_number = wanted == expressions._POSITION
            given.append(rng.choice(NUMBERS[:7]) if is_number else quoted(rng.choice(TEXTS)))
        else:
            given.append(part())
    if name[0].isalpha():
        return f"{name}({', '.join(given)})"
    return f"({given[0]} {written.get(name, name)} {given[1]})" if len(given) == 2 else f"({name} {given[0]})"


def accepted(
    columns: Mapping[str, Known], rng: Random, derive: Mapping[str, str], *, is_condition: bool = False, depth: int = 4
) -> str | None:
    """An expression of these columns and of those derived before; None if none is found soon."""
    names = [*columns, *derive]
    for _ in range(60):
        text = random_expression(names, rng, rng.randint(1, depth))
        forms = [f"({text}) IS NOT NULL", f"NOT coalesce({text}, false)", f"coalesce({text}, true)", text]
        text = rng.choice(forms) if is_condition else text
        try:
            derived(columns, View(where=text, derive=derive) if is_condition else View(derive={**derive, "made": text}))
        except DPSelectError:
            continue
        return text
    return None


def random_notation(rng: Random) -> dict[str, Any]:
    """How a text file is written and read."""
    stated = {
        "encoding": rng.choice(["latin-1", "cp1252", "utf-8"]),
        "delimiter": rng.choice([";", "tab", "|", "^", "~", ":"]),
        "decimal": rng.choice([",", "."]),
        "dates": rng.choice(["%d.%m.%Y", "%m/%d/%Y %H:%M:%S", "%Y-%m-%d"]),
    }
    stated["thousands"] = rng.choice([mark for mark in ".,' _" if mark != stated["decimal"]])
    return {name: value for name, value in stated.items() if rng.random() < 0.6}


def viewed(case: Case, rng: Random, methods: Sequence[str]) -> Case:
    """The case with a view, and questions about derived columns among others."""
    notation = random_notation(rng) if case.source.name in NOTED and case.layout.alias is None else {}
    case = replace(case, layout=replace(case.layout, notation=notation), options=notation)
    derive: dict[str, str] = {}
    try:
        with _opened(case) as table:
            columns = table.columns
    except DPSelectError:  # of files that are refused, however they are read
        return case
    for name in rng.sample(NAMES, 2):
        text = accepted(columns, rng, derive)
        derive |= {} if text is None else {name: text}
    options: dict[str, Any] = {**notation, "derive": derive}
    with _opened(case, derive=derive) as table:
        # A filter reads derived columns, too.
        where = accepted(columns, rng, derive, is_condition=True) if rng.random() < 0.7 else None
        asked = [_column(table, name, case, rng) for name in (WHO, GROUP, VALUE)]
        others = [_column(table, name, case, rng) for name in derive]
        is_text = table.columns[WHO].kind is Kind.TEXT
    options |= {} if where is None else {"where": where}
    if is_text and case.person is not None and rng.random() < 0.5:
        options |= {"derive": {**derive, "Person ": f"'no. ' || {WHO}"}, "person": "Person "}  # under other names
    asked[1:] = [rng.choice([own, *others, *others]) for own in asked[1:]]
    asked = list({column.name: column for column in asked}.values())
    asked += [own for own in case.columns if own not in asked][: 3 - len(asked)]
    questions = tuple(random_questions(asked, case.person, methods, rng))
    return replace(case, asked=tuple(asked), options=options, questions=questions)


NOTED = ("CSV", "CSV kept in memory")


@contextmanager
def _opened(case: Case, **options: Any) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that write the table
        try:
            source = case.write(case.rows, Path(name))
        except Exception as error:
            raise NotWritten from error
        yield dpselect.open_table(source, **{**case.options, **options})


def _column(table: Any, name: str, case: Case, rng: Random) -> Column:
    """A column with what the rows have in it: the lists of a well-informed attacker."""
    own = {column.name: column for column in case.columns}
    if name in own:
        return own[name]
    engine, kind = table._engine, table.columns[name].kind
    with closing(engine._connection.cursor()) as cursor, engine._keeper.rows(cursor, [name]) as query:
        text = f"SELECT DISTINCT {identifier(name)} FROM ({query.text}) LIMIT 30"
        values = []
        with suppress(duckdb.Error):  # of a mistake that was built in
            values = [value for (value,) in cursor.execute(text, query.parameters).fetchall()]
    family, example = _FAMILIES[kind]
    fit = [value for value in values if type(value) is type(example) and value == value]  # noqa: PLR0124 - NaN
    rng.shuffle(fit)
    return Column(name, Type(f"derived {kind.value}", family, pa.null()), (*fit, example), tuple(fit))


def _hours(moment: datetime.datetime, rng: Random) -> dict[str, Any]:
    lower = min(moment, datetime.datetime(9999, 1, 1))
    return {"lower": lower, "upper": lower + datetime.timedelta(hours=rng.choice([1, 500])), "step": _SECOND}


_SECOND = datetime.timedelta(seconds=1)


def _number_range(number: float, rng: Random) -> dict[str, Any]:
    return NUMBER.range_of(Fraction(number) if math.isfinite(number) else Fraction(0), rng)  # type: ignore[misc]


def _family(range_of: Any = None) -> Family:
    return Family(lambda rng: [], (lambda value: [value],), lambda value: [str(value)], range_of)


_FAMILIES: dict[Kind, tuple[Family, Any]] = {
    Kind.INTEGER: (_family(_number_range), 3),
    Kind.FLOAT: (_family(_number_range), 2.5),
    Kind.TEXT: (_family(), "a"),
    Kind.BOOLEAN: (_family(), True),
    Kind.DATE: (_family(DAY.range_of), datetime.date(2024, 1, 31)),
    Kind.TIMESTAMP: (_family(_hours), datetime.datetime(2024, 1, 31)),
}
