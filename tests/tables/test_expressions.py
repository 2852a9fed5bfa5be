"""Expressions of `where` and `derive`: whatever the text, it is refused, or it is a map from one row to one value."""

import datetime
import math
import re
import secrets
import time
from contextlib import closing
from random import Random

import duckdb
import pyarrow as pa
import pytest

from dpselect import Ledger, open_table
from dpselect.errors import InvalidType, InvalidValue, RequestConflict, UnitMismatch
from dpselect.tables.duckdb import expressions, source
from dpselect.tables.duckdb.values import column_of, identifier
from dpselect.tables.kinds import Kind
from dpselect.tables.view import View
from tests import spark
from tests.attacks.neighbouring.views import NAMES, TEXTS, accepted, quoted, random_expression
from tests.tables.looking import counts, opened, places

# A table of all types, with what is odd in them.

WRITTEN = [
    "",
    "a",
    "A b",
    "é",
    "3",
    "3.0",
    " 03 ",
    "1e308",
    "-1e308",
    "1e999",
    "nan",
    "inf",
    "-inf",
    "1_0",
    "+-1",
    "0x10",
]
WRITTEN += ["9223372036854775807", "99999999999999999999", "2024-01-31", "2024-02-30", "infinity", "epoch", "true"]
WRITTEN += ["290000-01-01", "5881580-07-10", "0001-01-01 (BC)", "2024-01-31 10:00:00", "2024-01-31 10:00:00 +0300"]
WRITTEN += ["12:30", "10:00:00 Europe/Berlin", "ß" * 20, "x" * 300, "%", "_", "\\", "'", "ﬁ", "{}"]
DAYS = ["2024-01-31", "infinity", "-infinity", "5881580-07-10", "5877642-06-25 (BC)", "0001-01-01", "9999-12-31"]
MOMENTS = ["2024-01-31 10:11:12.5", "infinity", "-infinity", "294247-01-10 04:00:54.775806", "0001-01-01 00:00:00"]
FLOATS = ["0", "-0.0", "1.5", "1e308", "-1e308", "inf", "-inf", "nan", "5e-324"]
VALUES = {
    "s": ("VARCHAR", WRITTEN),
    "u": ("VARCHAR", WRITTEN),
    "n": ("BIGINT", ["0", "1", "-1", "7", str(2**63 - 1), str(-(2**63))]),
    "i": ("INTEGER", ["0", "1", "-5", str(2**31 - 1), str(-(2**31))]),
    "h": ("HUGEINT", ["0", "3", str(2**127 - 1), str(-(2**127))]),
    "x": ("DOUBLE", FLOATS),
    "f": ("FLOAT", ["0.1", "3e38", "nan", "inf"]),
    "dec": ("DECIMAL(38,10)", ["0", "0.1", f"{'9' * 28}.{'9' * 10}", f"-{'9' * 28}.{'9' * 10}"]),
    "d": ("DATE", DAYS),
    "m": ("TIMESTAMP", [*MOMENTS, "290309-12-22 (BC) 00:00:00"]),
    "ns": ("TIMESTAMP_NS", ["2024-01-31 10:11:12.5", "2262-04-11 23:47:16.854775806", "1677-09-22", "-infinity"]),
    "tz": ("TIMESTAMP WITH TIME ZONE", [f"{moment}+00" if moment[0] in "02" else moment for moment in MOMENTS]),
    "b": ("BOOLEAN", ["true", "false"]),
}
COLUMNS = {name: column_of(name, type_, untyped=name == "u") for name, (type_, _) in VALUES.items()}


def written(connection, folder, rng, rows=40):
    """Tables of the same rows: all of them; some; those without a missing value; in Parquet, with its statistics."""
    typed = ", ".join(f"{name} {type_}" for name, (type_, _) in VALUES.items())
    connection.execute(f"CREATE TABLE every_row (number BIGINT, {typed})")
    casts = ", ".join(f"CAST(? AS {type_})" for type_, _ in VALUES.values())
    for number in range(rows):
        own = [None if rng.random() < 0.1 else rng.choice(values) for _, values in VALUES.values()]
        connection.execute(f"INSERT INTO every_row VALUES (?, {casts})", [number, *own])
    tables = {"every_row": "true", "one": f"number = {rng.randrange(rows)}", "few": f"number % 9 = {rng.randrange(9)}"}
    tables |= {f"known_{name}": f"{name} IS NOT NULL" for name in rng.sample(list(VALUES), 2)}
    for name, condition in tables.items():
        if name != "every_row":
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM every_row WHERE {condition}")
        connection.execute(f"COPY {name} TO '{folder}/{name}.parquet' (FORMAT parquet)")
    return [*tables, *(f"'{folder}/{name}.parquet'" for name in tables)]


@pytest.mark.parametrize("times", [25, pytest.param(500, marks=pytest.mark.slow)])
def test_an_expression_has_a_value_for_each_row_and_depends_on_no_other_row_nor_on_the_time_zone(times, tmp_path):
    rng = Random(seed := secrets.randbits(32))
    with closing(source.connect()) as connection:
        tables = written(connection, tmp_path, rng)
        for _ in range(times):
            text = accepted(COLUMNS, rng, {}, depth=4)
            if text is None:
                continue
            sql = expressions.derived(COLUMNS, View(derive={"z": text})).selected["z"]
            bare = sql.replace("TRY(", "(")  # TRY alone would evaluate rows one by one after the first that fails
            found = {}
            for table in tables:
                zone = rng.choice(["UTC", "America/New_York", "Asia/Kolkata"])
                connection.execute(f"SET TimeZone = '{zone}'")
                query = f"SELECT number, CAST({bare} AS VARCHAR) FROM {table}"
                own = dict(connection.execute(query).fetchall())
                assert own.items() <= (found or own).items(), f"seed {seed}: {text} in {table}"
                found = found or own
            numbers = rng.sample(range(len(found)), 3)
            alone = {n: f"SELECT CAST({sql} AS VARCHAR) FROM every_row WHERE number = {n}" for n in numbers}
            values = {n: connection.execute(query).fetchone()[0] for n, query in alone.items()}
            assert values == {n: found[n] for n in numbers}, f"seed {seed}: {text}"


def test_the_test_above_notices_a_time_zone_and_a_failure():
    with closing(source.connect()) as connection:
        connection.execute("SET TimeZone = 'Asia/Kolkata'")
        query = "SELECT CAST(CAST(strptime('2024-01-31 +0300', '%Y-%m-%d %z') AS TIMESTAMP) AS VARCHAR)"
        assert connection.execute(query).fetchone()[0] != "2024-01-30 21:00:00"
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT CAST('a' AS DATE)").fetchall()


PIECES = [
    *TEXTS,
    "x",
    "n",
    "(",
    ")",
    ",",
    "'",
    '"',
    ";",
    "--",
    "/*",
    "*",
    "+",
    "::",
    "SELECT",
    "FROM",
    "WHERE",
    "1",
    "0x",
]
PIECES += [
    "OVER ()",
    "count",
    "random()",
    "now()",
    "AS",
    "IN",
    "NOT",
    "NULL",
    "\0",
    "\ud800",
    "\n",
    "[",
    "]",
    "{",
    "$1",
    "?",
]
PIECES += ["read_csv('x')", "getenv('HOME')", "EXISTS", "CASE", "END", "->", "lambda", ":=", "."]


@pytest.mark.parametrize("times", [60, pytest.param(1_000, marks=pytest.mark.slow)])
def test_a_text_is_refused_before_anything_is_read_or_its_rows_can_be_counted(times, monkeypatch):
    rng = Random(seed := secrets.randbits(32))
    rows = pa.table({"x": ["a", "b", None], "n": [1, 2, 3]})
    read = []
    right = source.Frame.rows
    spied = lambda self, cursor, names: (read.append(names), right(self, cursor, names))[1]  # noqa: E731
    monkeypatch.setattr(source.Frame, "rows", spied)
    for _ in range(times):
        pieces = [rng.choice(PIECES) for _ in range(rng.randint(1, 8))]
        made = random_expression(["x", "n"], rng, 3)
        cut = rng.randrange(len(made))
        text = rng.choice([" ".join(pieces), made, made[:cut] + rng.choice(PIECES) + made[cut:], made[:cut]])
        options = {"where": text} if rng.random() < 0.5 else {"derive": {"z": text}}
        read.clear()
        try:
            table = open_table(rows, **options)
        except InvalidValue:
            assert read == [None], f"seed {seed}: {text!r}"  # the types of the columns
        else:
            assert sum(counts(table, "x", ["a", "b"])) <= 2, f"seed {seed}: {text!r}"


REFUSED = {  # with the way out
    r"regexp_replace(s, '\1', 'b') = 'a'": "not a regular expression that DuckDB reads",
    r"regexp_replace(s, 'a', '\1') = 'a'": "not a regular expression that DuckDB reads",
    r"regexp_extract(s, '(') = 'a'": "not a regular expression that DuckDB reads",
    "count(*) > 1": "'count_star' is not allowed: an expression is computed from the values of one row",
    "sum(n) > 1": "'sum' is not allowed: an expression is computed from the values of one row",
    "row_number() OVER () < 3": "a window is not allowed: an expression is computed from the values of one row",
    "n > (SELECT max(n) FROM t)": "a subquery is not allowed: an expression is computed from the values of one row",
    "random() < 0.5": "'random' is not allowed",
    "now() > '2024-01-01'": "is not allowed",
    "d > current_date": "'current_date' is not a column",
    "rowid < 3": "'rowid' is not a column",
    "nn > 3": "'nn' is not a column: did you mean 'n'?",
    "getenv('HOME') = 'a'": "'getenv' is not allowed",
    "current_setting('threads') = 1": "'current_setting' is not allowed",
    "nextval('s') > 1": "'nextval' is not allowed",
    "hash(x) % 2 = 0": "'hash' is not allowed",
    "repeat(x, 1000000) = 'a'": "'repeat' is not allowed",
    "lpad(x, 1000000, 'a') = 'a'": "'lpad' is not allowed",
    "error(x)": "'error' is not allowed",
    "(n > 1) FROM t": "without FROM, WHERE, AS or another clause",
    "n > 1 LIMIT 1": "without FROM, WHERE, AS or another clause",
    "DISTINCT n > 1": "without FROM, WHERE, AS or another clause",
    "n > 1; SELECT 1": "it must be one expression",
    "n > 1, n < 3": "it must be one expression",
    "*": "* is not allowed",
    "n > $1": "parameter is not allowed",
    "n > 1e": "the literal '1e' is not a number, a text, true, false or NULL",
    "n > 1)": "it is not an expression of SQL: syntax error",
    "x = '\ud800'": "it cannot be written in UTF-8",
    "n > 1 OR " * 700 + "true": "it has more than 5,000 characters",
    "abs(" * 70 + "n" + ")" * 70 + " > 1": "it is nested too deeply: derive a part of it as a column of its own",
    "n": "it must be true or false for each row, as in age >= 18",
    "n > '3'": "it mixes text and whole numbers: write numbers without quotation marks",
    "x > 3": "CAST one of them",
    "x LIKE s": "LIKE takes (text, text in quotation marks)",
    "CAST(x AS INTEGER[]) = 1": "a cast to LIST is not allowed: use TINYINT",
    "d + INTERVAL (n) DAY > d": "write INTERVAL 3 DAY",
    "replace(replace(x, 'a', 'bbbbbbbbbbb'), 'b', 'ccccccccccc') = 'c'": "replace less in one expression",
    "regexp_matches(x, '(a{1,30}){1,30}')": "repeats too much, or is too long: use a shorter one",
    "regexp_matches(x, 'a.{0,900}b')": "repeats too much, or is too long: use a shorter one",
    "regexp_matches(x, '(')": "not a regular expression that DuckDB reads",
    "strptime(x, '%Q') > '2024-01-01'": "DuckDB refuses the expression: Invalid Input Error: Failed to parse format",
    "x = CASE s WHEN CASE x WHEN 'a' THEN 'b' END THEN CASE x WHEN 'a' THEN 'b' END END": "write CASE WHEN x = 1",
    "sqrt(" * 20 + "n" + ")" * 20 + " > 1": "it computes a part too often: nest fewer divisions, roots, nullif",
    "n / (" * 20 + "n" + ")" * 20 + " > 1": "it computes a part too often: nest fewer divisions, roots, nullif",
    "l = l": "the column 'l' has the type BIGINT[], which expressions cannot read",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: re.sub(r"\W+", "-", text)[:40])
def test_what_is_not_of_one_row_is_refused(text):
    table = {"x": pa.array(["a"]), "s": ["b"], "n": [1], "d": pa.array([0], pa.date32()), "l": [[1]]}
    with pytest.raises(InvalidValue) as refused:
        open_table(pa.table(table), where=text)
    assert REFUSED[text].removeprefix("LIKE") in str(refused.value)


OPERANDS = {
    Kind.INTEGER: "n",
    Kind.FLOAT: "x",
    Kind.DATE: "d",
    Kind.TIMESTAMP: "m",
    Kind.TEXT: "s",
    Kind.BOOLEAN: "b",
    expressions._ANY: "n",
    expressions._POSITION: "1",
    expressions._WRITTEN: "'%Y'",
    expressions._PATTERN: "'a+'",
}
WORDS = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}
ALL = [(name, number) for name, all_ in expressions._OPERATIONS.items() for number in range(len(all_))]


@pytest.mark.parametrize(("name", "number"), ALL)
def test_every_operation_is_one_of_duckdb_and_has_the_type_of_its_kind(name, number):
    operation = expressions._OPERATIONS[name][number]
    given = [quoted(sorted(w)[0]) if isinstance(w, frozenset) else OPERANDS[w] for w in operation.takes]
    text = f"{name}({', '.join(given)})"
    if name == "position":
        text = f"position({given[1]} IN {given[0]})"
    elif not name[0].isalpha():
        text = f"({given[0]} {WORDS.get(name, name)} {given[1]})" if len(given) == 2 else f"({name} {given[0]})"
    made = expressions.derived(COLUMNS, View(derive={"z": text}))
    bare = re.fullmatch(r"(?:TRY\()?CAST\((.*) AS \w+\)\)?", made.selected["z"], re.DOTALL)[1]
    types = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, (type_, _) in VALUES.items())
    with closing(duckdb.connect()) as connection:
        [(found,)] = connection.execute(f"SELECT typeof({bare}) FROM (SELECT {types})").fetchall()
    assert made.kinds["z"] is operation.returns
    assert found == expressions._TYPES[operation.returns]


# What a row can cost.


def peak_of(text, own, more=()):
    """The bytes of the longest text of an expression, on a row with this text."""
    columns = {"s": COLUMNS["s"], "u": COLUMNS["u"]}
    sql = expressions.derived(columns, View(derive={"z": text})).selected["z"]
    with closing(source.connect()) as connection:
        query = f"SELECT coalesce(strlen({sql}), 0) FROM (SELECT CAST($1 AS VARCHAR) AS s, CAST($1 AS VARCHAR) AS u)"
        return connection.execute(query, [own]).fetchone()[0]


GROWING = [
    "s || u",
    "concat(s, s, u, 'abc')",
    "upper(s)",
    f"replace(s, 'a', '{'b' * 99}')",
    f"replace(replace(s, 'a', '{'b' * 9}'), 'b', '{'c' * 9}')",
    f"regexp_replace(s, '', '{'b' * 90}', 'g')",
    r"regexp_replace(s, '(a*)', '\1\1\1\1\1\1', 'g')",
    "concat(" + ", ".join(["s"] * 99) + ")",
    "left(concat(" + ", ".join(["s"] * 99) + "), 3)",
]


@pytest.mark.parametrize("text", GROWING, ids=lambda text: text[:30])
def test_a_long_text_makes_no_text_that_is_much_longer(text):
    for length in (2_000, 65_535, 1_000_000):
        assert peak_of(text, "a" * length) <= expressions._MOST_BYTES
        assert peak_of(text, "İ" * (length // 2)) <= expressions._MOST_BYTES
    assert peak_of(text, "a" * 100) > 0


def test_texts_of_a_line_are_read_and_longer_ones_have_no_value():
    for text in ("s", "lower(s)", "s || 'a'", "replace(s, 'a', '')", "regexp_replace(s, 'a', '', 'g') || s"):
        assert peak_of(text, "ab" * 32_000) > 0
        assert peak_of(text, "ab" * 200_000) == 0
    table = opened({"x": ["a" * 300_000, "a", None], "y": [1, 1, 1]}, where="length(x) > 0")
    assert counts(table, "y", [1]) == [1]


NESTED = ["sqrt({})", "nullif({}, 1)", "(x / {})", "(n % {})", "date_trunc('day', {})", "({} + INTERVAL 1 DAY)"]
NESTED += ["CAST(CAST({} AS DOUBLE) AS VARCHAR)", "CAST(CAST({} AS BIGINT) AS VARCHAR)"]
NESTED += [
    "CASE {} WHEN 1 THEN 2 WHEN 2 THEN 3 END",
    "coalesce(nullif({}, 0), 1)",
]


@pytest.mark.parametrize("form", NESTED)
def test_nested_operations_are_refused_before_they_take_long(form):
    """DuckDB's time would double with each of them, and for rows with a value more than for others."""
    text, base = "{}", "m" if "day" in form.lower() else "s" if "VARCHAR" in form or "%Y" in form else "n"
    for _ in range(50):
        text = text.format(form)
        started = time.process_time()
        try:
            expressions.derived(COLUMNS, View(derive={"z": text.format(base)}))
        except InvalidValue as refused:
            assert re.search("too often|too long|too deeply|more than two CASE", str(refused)), form  # noqa: PT017
            break
        finally:
            assert time.process_time() - started < 20
    else:
        pytest.fail("nothing was refused")


# Columns.


@pytest.mark.parametrize("person", [None, "item"])
def test_derived_columns_have_any_name(person):
    """Also those that statements use themselves."""
    rows = {"p": ["a", "a", "b", None], "x": [1, 2, 2, 3], "s": ["u", "v", "v", "w"]}
    values = {name: "x" if i % 2 else "s" for i, name in enumerate(NAMES)}
    table = opened(rows, derive={**values, "item": "p"}, person=person)
    for name, own in values.items():
        if name != "item":
            assert counts(table, name, [1, 2] if own == "x" else ["u", "v"]) == [1, 2]
    grouped = table.group_by(
        "member0" if values["member0"] == "s" else "place", groups=["u", "v"], max_groups=2 if person else 1
    )
    assert counts(grouped, "x", [1, 2]) == [[1, 0], [0, 2]]


def test_a_derived_person_is_all_rows_with_that_value():
    rows = {"who": ["anna", "ada", "bob", None], "x": [1, 1, 1, 1], "g": ["u", "v", "u", "u"]}
    table = opened(rows, derive={"first": "left(who, 1)"}, person="first")
    assert counts(table, "x", [1]) == [2]
    assert sum(map(sum, counts(table.group_by("g", groups=["u", "v"], max_groups=1), "x", [1]))) == 2


def test_a_derived_column_needs_no_column_of_the_source(tmp_path):
    rows = pa.table({"l": [[1]], "x": ["a"]})
    path = tmp_path / "rows.csv"
    path.write_text("x\na\n")
    for made in (rows, rows.to_pandas(), duckdb.from_arrow(rows), path):
        table = open_table(made, derive={"one": "1"}, where="true")
        assert counts(table, "one", [1, 2]) == [1, 0]


@pytest.mark.parametrize(
    ("name", "wrong"), [("where", 3), ("derive", ["x"]), ("derive", {"z": 1}), ("derive", {1: "x"})]
)
def test_expressions_are_text(name, wrong):
    with pytest.raises(InvalidType, match=f"{name} must be"):
        opened({"x": [1]}, **{name: wrong})


@pytest.mark.parametrize("name", ["x", "X"])
def test_a_derived_column_replaces_none(name):
    with pytest.raises(InvalidValue, match="the table already has a column"):
        opened({"x": [1]}, derive={name: "x + 1"})
    with pytest.raises(InvalidValue, match="the table already has a column"):
        opened({"y": [1]}, derive={"x": "y", name.upper(): "y + 1"} if name == "x" else {"Y": "y"})


def test_numbers_of_an_expression_are_text_in_its_own_notation(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x\n1,5\n2,5\n")
    derive = {"twice": "2 * CAST(x AS DOUBLE)", "text": "CAST(CAST(x AS DOUBLE) AS VARCHAR)"}
    table = open_table(path, delimiter=";", decimal=",", derive={**derive, "again": "CAST(text AS DOUBLE)"})
    assert counts(table, "twice", [3, 5]) == counts(table, "again", [1.5, 2.5]) == [1, 1]
    assert counts(table, "text", ["1.5", "1,5"]) == [1, 0]


# The ledger.


def test_another_view_is_another_question(tmp_path):
    """Also if the file is the same: a stored answer is not that of another filter."""
    path, ledger = tmp_path / "rows.csv", Ledger(tmp_path / "ledger", budget=100)
    path.write_text("x,y\na,1\nb,2\n")
    views = [{}, {"where": "x = 'a'"}, {"where": "x <> 'a'"}, {"where": "x='a'"}, {"derive": {"z": "x"}}]
    views += [
        {"derive": {"z": "y"}},
        {"encoding": "latin-1"},
        {"decimal": ","},
        {"thousands": ","},
        {"dates": "%Y-%m-%d"},
    ]
    for i, view in enumerate(views):
        ask = lambda number, view=view: open_table(path, ledger=ledger, **view).mode(  # noqa: E731
            "x", candidates=["a", "b"], epsilon=1, request_id=f"r{number}"
        )
        assert not ask(i).repeated
        assert ask(i).repeated
        for other in {0, i // 2, i - 1} - {i, -1}:
            with pytest.raises(RequestConflict):
                ask(other)


def test_what_is_recorded_is_what_was_checked(tmp_path):
    """The user's dict can change."""
    ledger, derive = Ledger(tmp_path / "ledger", budget=10), {"z": "x"}
    table = open_table(pa.table({"x": ["a"], "y": ["b"]}), ledger=ledger, derive=derive)
    derive["z"] = "y"
    table.mode("z", candidates=["a", "b"], epsilon=1)
    [entry] = ledger.entries()
    assert entry.charge.what["derive"] == {"z": "x"}


# Both engines.


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_both_engines_derive_the_same(tmp_path):
    spark.session()
    rng = Random(seed := secrets.randbits(32))
    names = ["s", "n", "i", "x", "f", "d", "b"]
    columns = {name: COLUMNS[name] for name in names}
    with closing(duckdb.connect()) as connection:
        written(connection, tmp_path, rng)
        rows = connection.sql(f"SELECT number, {', '.join(names)} FROM every_row").to_arrow_table()
    for _ in range(3):
        derive, where = {}, accepted(columns, rng, {}, is_condition=True)
        for number in range(12):
            text = accepted(columns, rng, derive)
            derive |= {} if text is None else {f"made{number}": text}
        where = f"coalesce({where}, true)"
        tables = [open_table(rows, derive=derive, where=where, engine=engine) for engine in ("duckdb", "spark")]
        assert tables[0].columns == tables[1].columns
        asked = ["number", *derive]
        engine = tables[0]._engine
        with closing(engine._connection.cursor()) as cursor, engine._keeper.rows(cursor, asked) as query:
            # Python has no dates of other years, nor infinite ones.
            within = "CASE WHEN {0} IS NOT NULL THEN least(greatest({0}, DATE '0001-01-01'), DATE '9999-12-31') END"
            moment = "CASE WHEN isfinite({0}) THEN epoch_us({0}) END"
            kinds = {name: tables[0].columns[name].kind for name in asked}
            forms = {
                name: within if kind is Kind.DATE else moment if kind.is_moment else "{}"
                for name, kind in kinds.items()
            }
            named = ", ".join(form.format(identifier(name)) for name, form in forms.items())
            here = cursor.execute(f"SELECT {named} FROM ({query.text}) ORDER BY number", query.parameters).fetchall()
        there = tables[1]._engine._rows.select(asked).orderBy("c0").toArrow()
        there = list(zip(*map(_listed, there.columns), strict=True))
        assert _plain(here) == _plain(there), f"seed {seed}: {derive} where {where}"


def _listed(column):
    if pa.types.is_timestamp(column.type):
        moments = column.cast(pa.int64()).to_pylist()
        return [None if moment is None or abs(moment) >= 2**63 - 1 else moment for moment in moments]
    if not pa.types.is_date32(column.type):
        return column.to_pylist()
    first, last = datetime.date.min.toordinal(), datetime.date.max.toordinal()
    unix = datetime.date(1970, 1, 1).toordinal()
    days = column.cast(pa.int32()).to_pylist()
    return [d if d is None else datetime.date.fromordinal(min(max(d + unix, first), last)) for d in days]


def _plain(rows):
    return [tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in row) for row in rows]


def test_quantiles_of_a_derived_column_lie_where_its_values_lie():
    table = opened({"x": [1, 2, None, 4]}, derive={"y": "x * 10"}, where="x <> 2 OR x IS NULL")
    assert places(table, "y", 0, 50, 10) == [(1, False, 1), (4, False, 1)]


def test_people_who_are_derived_in_another_way_are_another_unit(tmp_path):
    """Their epsilons do not add up, though the columns have one name."""
    rows, ledger = {"who": ["a", "a", "b"], "n": [1, 2, 3]}, tmp_path / "l"
    opened(rows, derive={"pid": "who"}, person="pid", ledger=ledger, budget=5)
    again = opened(rows, derive={"pid": "who"}, person="pid", ledger=ledger)
    assert again.mode("n", candidates=[1, 2], epsilon=1).protects == "one pid"
    for derive, person in (({"pid": "who || CAST(n AS VARCHAR)"}, "pid"), ({}, "who"), ({"pid": "who"}, None)):
        with pytest.raises(UnitMismatch, match="pid = who"):
            opened(rows, derive=derive, person=person, ledger=ledger)
