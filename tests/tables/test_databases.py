"""Tables of PostgreSQL: the same counts as Arrow, nothing of a row or a password in an error, and no partial counts."""

import datetime
import json
import logging
import re
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import dpselect
from dpselect.cli.app import app
from dpselect.errors import EngineFailure, InvalidType, InvalidValue
from dpselect.tables.files import resolved
from dpselect.tables.kinds import Kind
from tests import postgresql
from tests.postgresql import PASSWORD, execute, url
from tests.tables.looking import counts, places

pytestmark = pytest.mark.xdist_group("postgresql")

DAY, MOMENT = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30, 0, 123456)
ZONED = MOMENT.replace(tzinfo=datetime.UTC)
ONE, TWO = uuid.UUID(int=1), uuid.UUID(int=2**127 + 5)
# The name of each column: its type in PostgreSQL, that of Arrow, and values, of which the first are the candidates.
COLUMNS = {
    "text": ("text", pa.string(), ["I10", "E11, 'x'", "", None, "I10", 'say "ü"']),
    "short": ("varchar(9)", pa.string(), ["a", "b", "c", "a", None, "a"]),
    "int2": ("int2", pa.int16(), [1, -(2**15), 2**15 - 1, 1, None, 7]),
    "int4": ("int4", pa.int32(), [1, -(2**31), 2**31 - 1, 1, None, 7]),
    "int8": ("int8", pa.int64(), [1, -(2**63), 2**63 - 1, 1, None, 7]),
    "price": (
        "numeric(10,2)",
        pa.decimal128(10, 2),
        [*map(Decimal, ["1.50", "-2.00", "0.01", "1.5"]), None, Decimal(7)],
    ),
    "wide": (
        "numeric(38,3)",
        pa.decimal128(38, 3),
        [Decimal("1.5"), Decimal(10) ** 30, Decimal(2), None, Decimal(2), None],
    ),
    "real": ("float4", pa.float32(), [1.5, -2.0, 0.25, 1.5, None, 7.0]),
    "double": ("float8", pa.float64(), [0.1, -2.0, 1e300, 0.1, None, float("inf")]),
    "flag": ("boolean", pa.bool_(), [True, False, True, True, None, False]),
    "day": ("date", pa.date32(), [DAY, datetime.date(1, 1, 1), datetime.date(9999, 12, 31), DAY, None, DAY]),
    "moment": (
        "timestamp",
        pa.timestamp("us"),
        [MOMENT, MOMENT.replace(year=1904), MOMENT.replace(microsecond=0), MOMENT, None, MOMENT],
    ),
    "zoned": (
        "timestamptz",
        pa.timestamp("us", "UTC"),
        [ZONED, ZONED.replace(year=1904), ZONED.replace(hour=1), ZONED, None, ZONED],
    ),
    "id": ("uuid", pa.string(), [*map(str, [ONE, TWO, uuid.UUID(int=3), ONE]), None, str(TWO)]),
}
RANGES = {
    **dict.fromkeys(["int2", "int4", "int8", "price", "wide", "real", "double"], (-3, 5)),
    **dict.fromkeys(["day", "moment", "zoned"], ("2024-02-27", "2024-03-02")),
}
PEOPLE = [1, 1, 2, 2, 3, None]


def literal(value):
    if value is None:
        return "NULL"
    return "'" + str(value).replace("'", "''") + "'"


@pytest.fixture(scope="module")
def folder():
    with postgresql.server() as found:
        types = ", ".join(f'"{name}" {type_}' for name, (type_, _, _) in COLUMNS.items())
        columns = [values for *_, values in COLUMNS.values()]
        rows = (", ".join(map(literal, row)) for row in zip(PEOPLE, *columns, strict=True))
        execute(
            found,
            f"CREATE TABLE visits (person int8, {types})",
            *(f"INSERT INTO visits VALUES ({row})" for row in rows),
            f"CREATE USER guarded PASSWORD '{PASSWORD}'",
            "GRANT SELECT ON visits TO guarded",
            "CREATE TABLE strange (person int8, code text)",
            "INSERT INTO strange VALUES (1, 'SECRETROW')",
        )
        yield found


@pytest.fixture(scope="module")
def arrow():
    columns = {name: pa.array(values, type_) for name, (_, type_, values) in COLUMNS.items()}
    return pa.table({"person": pa.array(PEOPLE, pa.int64()), **columns})


WAYS = {
    "a table": ({"table": "visits"}, None),
    "people": ({"table": ("public", "visits")}, "person"),
    "a query": ({"query": "SELECT * FROM visits; "}, None),
}


@pytest.mark.parametrize("way", ["a table", *(pytest.param(way, marks=pytest.mark.slow) for way in list(WAYS)[1:])])
def test_every_kind_of_column_counts_as_in_arrow(folder, arrow, way):
    how, person = WAYS[way]
    table, same = (dpselect.open_table(s, person=person, **k) for s, k in ((url(folder), how), (arrow, {})))
    assert [column.kind for column in table.columns.values()] == [column.kind for column in same.columns.values()]
    for name, (_, _, values) in COLUMNS.items():
        candidates = list(dict.fromkeys(values[:3]))
        assert counts(table, name, candidates) == counts(same, name, candidates), name
        assert sum(counts(table, name, candidates)) > 0, name
        if name in RANGES:
            found = [places(each, name, *RANGES[name]) for each in (table, same)]
            if person is not None:  # people with two middle values stand at a random one of them
                found = [sum(number for *_, number in each) for each in found]
            assert found[0] == found[1], name
            assert found[0]


def test_infinities_go_to_the_ends_and_no_row_makes_the_question_fail(folder):
    execute(
        folder,
        "CREATE TABLE ends (d date, t timestamp, z timestamptz, n numeric(5,2), m numeric, f float8)",
        "INSERT INTO ends VALUES ('infinity', 'infinity', 'infinity', 'NaN', 'Infinity', 'NaN'),"
        " ('-infinity', '-infinity', '-infinity', 1, 'NaN', '-Infinity'),"
        " ('5874897-12-31', '294276-12-31', '294276-12-31', 2, 1e40, 1),"
        " ('4714-11-24 BC', '4714-11-24 BC', '4714-11-24 00:00:00+00 BC', NULL, 1.50, 2)",
    )
    table = dpselect.open_table(url(folder), table="ends")
    for name in "dtz":
        found = places(table, name, "2020-01-01", "2020-01-03")
        assert [number for *_, number in found] == [2, 2], name
    assert places(table, "n", 0, 5) == [(1, False, 1), (2, False, 1)]
    assert sum(number for *_, number in places(table, "f", 0, 5)) == 3
    assert counts(table, "m", [Decimal("1.5")]) == [1]  # no digits are declared: as in a CSV file
    assert places(table, "m", 0, 5, "0.5")[0] == (3, False, 1)


def test_types_are_the_declared_ones(folder):
    execute(
        folder,
        "CREATE TYPE colour AS ENUM ('red', 'blue')",
        "CREATE DOMAIN cents AS numeric(12,2)",
        "CREATE TABLE typed (c colour, e cents, n numeric(5,-2), w numeric(50,2), b char(4), j jsonb, a int4[])",
        "INSERT INTO typed VALUES ('red', 1.25, 1234, 1.5, 'ab', '{}', '{1}')",
    )
    trusted = {"query": "SELECT * FROM typed LIMIT 0 -- none of it", "trusted_query": True}
    for how in ({"table": "typed"}, {"query": "SELECT * FROM typed"}, {"query": "TABLE typed"}, trusted):
        columns = dpselect.open_table(url(folder), **how).columns
        kinds = {name: (column.kind, column.untyped, column.digits) for name, column in columns.items()}
        plain, written, other = (Kind.TEXT, False, 0), (Kind.TEXT, True, 0), (Kind.OTHER, False, 0)
        expected = {"c": plain, "e": (Kind.DECIMAL, False, 2), "n": written, "w": written, "b": plain}
        assert kinds == {**expected, "j": other, "a": other}
    table = dpselect.open_table(url(folder), table="typed")
    assert counts(table, "c", ["red", "blue"]) == [1, 0]
    assert counts(table, "b", ["ab"]) == [1]
    assert counts(table, "w", [Decimal("1.5"), Decimal(2)]) == [1, 0]
    with pytest.raises(InvalidType, match="no question"):
        table.mode("j", candidates=["{}"], epsilon=1)


def test_names_are_quoted(folder):
    execute(
        folder,
        'CREATE SCHEMA "My.S"',
        'CREATE TABLE "My.S"."ta""ble" ("we""ird {0}" int4)',
        'INSERT INTO "My.S"."ta""ble" VALUES (5)',
    )
    table = dpselect.open_table(url(folder), table=("My.S", 'ta"ble'))
    assert counts(table, 'we"ird {0}', [5, 6]) == [1, 0]
    execute(
        folder, "CREATE SCHEMA clinic", "CREATE TABLE clinic.visits (a int4)", "INSERT INTO clinic.visits VALUES (5)"
    )
    assert counts(dpselect.open_table(url(folder), table="clinic.visits"), "a", [5]) == [1]
    execute(folder, 'CREATE TABLE twice (a int4, "A" int4)')
    with pytest.raises(InvalidValue, match="two columns of the same name"):
        dpselect.open_table(url(folder), table="twice")


def test_only_the_columns_of_the_question_are_selected(folder):
    query = "SELECT person, code, 1 / (person - person) AS broken FROM strange"
    table = dpselect.open_table(url(folder), query=query, trusted_query=True)
    assert counts(table, "code", ["SECRETROW"]) == [1]
    with pytest.raises(EngineFailure) as caught:
        table.mode("broken", candidates=[1, 2], epsilon=1)
    assert_tells_nothing(caught.value)


def assert_tells_nothing(error):
    """One line, with no row, no password and no address, also in the errors before it."""
    while error is not None:
        text = f"{error!r} {error}"
        assert "\n" not in str(error)
        assert not any(
            word in text for word in ("SECRETROW", PASSWORD, "postgresql://", "dpselect-pg", "division", "libpq")
        )
        error = error.__cause__ or error.__context__


FUNCTIONS = {
    "an error": "RAISE EXCEPTION 'SECRETROW %', i",
    "a lost connection": "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10)",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_stream_that_breaks_off_gives_no_answer(folder, name):
    number = list(FUNCTIONS).index(name)
    rows = 150_000  # of 300 bytes: several batches, of 16 MiB each, arrive before the last row
    execute(
        folder,
        f"CREATE FUNCTION late{number}(i int) RETURNS text LANGUAGE plpgsql AS"
        f" $$ BEGIN IF i = {rows} THEN {FUNCTIONS[name]}; END IF; RETURN repeat('x', 300); END $$",
    )
    query = f"SELECT late{number}(i) AS code FROM generate_series(1, {{}}) AS i"
    whole = dpselect.open_table(url(folder), query=query.format(rows - 1), trusted_query=True)
    assert counts(whole, "code", ["x" * 300]) == [rows - 1]
    table = dpselect.open_table(url(folder), query=query.format(rows), trusted_query=True)
    with pytest.raises(EngineFailure) as caught:
        table.mode("code", candidates=["x" * 300, "y"], epsilon=1)
    assert_tells_nothing(caught.value)


def test_the_source_is_read_again_and_no_connection_stays_open(folder):
    execute(folder, "CREATE TABLE growing (a int4)", "INSERT INTO growing VALUES (1)")
    table = dpselect.open_table(url(folder), table="growing")
    assert counts(table, "a", [1]) == [1]
    execute(folder, "INSERT INTO growing VALUES (1)")
    assert counts(table, "a", [1]) == [2]
    others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    assert execute(folder, others) == [(0,)]


def test_a_query_cannot_write(folder):
    execute(
        folder,
        "CREATE TABLE written (a int4)",
        "CREATE FUNCTION writes() RETURNS int4 LANGUAGE sql AS $$ INSERT INTO written VALUES (1) RETURNING a $$",
    )
    for query in (
        "SELECT writes() AS a",
        "INSERT INTO written VALUES (1) RETURNING a",
        "SELECT 1 AS a) x; DROP TABLE written; --",
    ):
        with pytest.raises((InvalidValue, EngineFailure)) as caught:
            dpselect.open_table(url(folder), query=query, trusted_query=True).mode("a", candidates=[1, 2], epsilon=1)
        assert_tells_nothing(caught.value)
    assert execute(folder, "SELECT count(*) FROM written") == [(0,)]


def test_settings_of_the_session_change_nothing(folder, arrow):
    source = (
        f"{url(folder)}&options=-c%20timezone%3DAsia/Tokyo%20-c%20datestyle%3DGerman%20-c%20client_encoding%3DLATIN1"
    )
    table, same = dpselect.open_table(source, table="visits"), dpselect.open_table(arrow)
    for name in ("text", "day", "moment", "zoned", "price", "double"):
        candidates = COLUMNS[name][2][:3]
        assert counts(table, name, candidates) == counts(same, name, candidates), name


def test_another_encoding_is_refused(folder):
    execute(folder, "CREATE DATABASE old ENCODING 'SQL_ASCII' TEMPLATE template0")
    execute(folder, "CREATE TABLE t (a text)", name="old")
    with pytest.raises(InvalidValue, match="encoding SQL_ASCII"):
        dpselect.open_table(url(folder, name="old"), table="t")


WRONG = {
    "no such table": ({}, {"table": "nothing"}, "table 'nothing' does not exist: check the name and its schema"),
    "no such schema": ({}, {"table": "none.visits"}, "table 'none.visits' does not exist"),
    "no such column": ({}, {"query": "SELECT nothing FROM visits"}, "query names a column that does not exist"),
    "no right": ({"user": "guarded", "password": PASSWORD}, {"table": "strange"}, "may not be read by this user"),
    "no SQL": ({}, {"query": "SELEKT 'SECRETROW'"}, "query cannot be checked: syntax error"),
    "no SQL, trusted": ({}, {"query": "SELEKT 'SECRETROW'", "trusted_query": True}, "query is not PostgreSQL's SQL"),
    "two statements": ({}, {"query": "SELECT 1 AS a; SELECT 2 AS a", "trusted_query": True}, "query is not"),
    "wrong password": (
        {"user": "guarded", "password": f"{PASSWORD}x"},
        {"table": "visits"},
        "refuses the user or the pass",
    ),
    "no password": ({"user": "guarded"}, {"table": "visits"}, "refuses the user or the password"),
    "no such user": ({"user": "nobody"}, {"table": "visits"}, "has no user of this name"),
    "a misleading user": ({"user": "timeout"}, {"table": "visits"}, "has no user of this name"),
    "no such database": ({"name": "none", "password": PASSWORD}, {"table": "visits"}, "has no database of this name"),
    "both": ({"password": PASSWORD}, {"table": "visits", "query": "SELECT 1"}, "either table"),
    "neither": ({"password": PASSWORD}, {}, "either table"),
    "empty table": ({}, {"table": ""}, "table must be"),
    "empty part": ({}, {"table": "a..b"}, "table must be"),
    "no name": ({}, {"table": 5}, "table must be"),
    "empty query": ({}, {"query": " ; "}, "empty"),
    "zero": ({}, {"table": "visits\0x"}, "character"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_refused_in_one_line_before_a_charge(folder, name, tmp_path):
    address, how, message = WRONG[name]
    ledger = tmp_path / "spent.ledger"
    with pytest.raises((InvalidValue, InvalidType), match=message) as caught:
        dpselect.open_table(url(folder, **address), **how, ledger=ledger, budget=1)
    assert_tells_nothing(caught.value)
    assert not ledger.exists()


UNREACHABLE = {
    "a closed port": ("postgresql://me:s3cr3t@127.0.0.1:1/x", "does not listen there. Check the host and the port"),
    "no socket": ("postgresql://me:s3cr3t@/x?host=/none", "does not listen there"),
    "no such host": ("postgresql://me:s3cr3t@nowhere.invalid/x", "cannot be found under this name. Check the host"),
    "a wrong port": ("postgresql://me:s3cr3t@localhost:port/x", "the URL is not valid"),
    "an unknown option": ("postgresql://me:s3cr3t@localhost/x?s3cr3t=1", "the URL is not valid"),
    "no end": ("postgresql://me:s3cr3t@[::1/x", "the URL is not valid"),
}


@pytest.mark.parametrize("name", UNREACHABLE)
def test_what_to_fix_in_the_address_is_named(name):
    """Without a server."""
    address, message = UNREACHABLE[name]
    with pytest.raises(InvalidValue, match=re.escape(message)) as caught:
        dpselect.open_table(address, table="visits")
    assert "s3cr3t" not in str(caught.value)
    assert_tells_nothing(caught.value)


def test_the_password_appears_nowhere(folder, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    source, ledger = url(folder, user="guarded", password=PASSWORD), tmp_path / "spent.ledger"
    table = dpselect.open_table(source, table="visits", person="person", ledger=ledger, budget=10)
    answer = table.mode("short", candidates=["a", "b"], epsilon=1)
    shown = [repr(table), repr(answer), repr(resolved(source, "visits")), json.dumps(answer.to_dict()), caplog.text]
    shown += [repr(vars(table)), repr(table._engine), repr(table._engine._source), *capfd.readouterr()]
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(PASSWORD in text for text in shown)
    assert PASSWORD.encode() not in stored


def test_a_request_is_recognised_by_its_data(folder, tmp_path):
    execute(folder, "CREATE TABLE asked (a int4, n numeric)", "INSERT INTO asked VALUES (1, 1.5)")
    table = dpselect.open_table(url(folder), table="asked", ledger=tmp_path / "l", budget=9)
    question = {"candidates": [1, 2], "epsilon": 1, "request_id": "r"}
    first = table.mode("a", **question)
    assert table.mode("a", **question).value == first.value
    assert table._ledger.spent == 1
    execute(folder, "INSERT INTO asked VALUES (2, 1.5)")
    with pytest.raises(dpselect.errors.RequestConflict):
        table.mode("a", **question)


def test_the_command_line_takes_a_table_and_a_query(folder):
    asked = ["--column", "short", "--candidates", "a,b", "--person", "person", "--epsilon", "50", "--json"]
    for how in (["--table", "visits"], ["--query", "SELECT person, short FROM visits"]):
        done = CliRunner().invoke(app, ["mode", url(folder, user="guarded", password=PASSWORD), *how, *asked])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["value"] == "a"
    done = CliRunner().invoke(
        app, ["mode", url(folder, user="guarded", password=f"{PASSWORD}x"), "--table", "visits", *asked]
    )
    assert done.exit_code == 2
    assert PASSWORD not in done.output
    assert "refuses the user or the password" in done.output


RETYPED = {
    "bool": "true",
    "int4": "7",
    "int8": "7",
    "float8": "1e300",
    "text": "'abc'",
    "numeric(9,2)": "7.25",
    "numeric(9,3)": "7.25",
    "numeric": "1e40",
    "date": "'infinity'",
    "timestamp": "'infinity'",
    "jsonb": "'[]'",
}
COLUMNS_OF_CHANGED = {
    "removed": "y int8",
    "renamed": "z int8, y int8",
    "reordered": "y int8, x int8",
    "added": "x int8, y int8, z int8",
}


@pytest.mark.parametrize("old", ["int8", "text", "numeric(9,2)", "timestamp"])
def test_a_table_that_becomes_another_one_is_refused_before_a_charge(folder, old, tmp_path):
    def written(columns, *rows):
        execute(
            folder,
            "DROP TABLE IF EXISTS changed",
            f"CREATE TABLE changed ({columns})",
            *(f"INSERT INTO changed (x) VALUES ({row})" for row in rows),
        )

    def asked():
        return table.values("x", epsilon="0.25", delta=1e-9)

    written(f"x {old}, y int8")
    table = dpselect.open_table(
        url(folder), table="changed", ledger=tmp_path / "ledger", budget=dpselect.approximate(3, 1e-6)
    )
    changes = [
        (f"x {type_}, y int8", rows) for type_, value in RETYPED.items() if type_ != old for rows in ([], [value])
    ]
    for columns, rows in [*changes, *((columns, []) for columns in COLUMNS_OF_CHANGED.values())]:
        written(columns, *rows)
        with pytest.raises(InvalidValue, match="its columns or their types differ") as caught:
            asked()
        assert caught.value.__context__ is None
    assert not list(dpselect.Ledger(tmp_path / "ledger").entries())
    written(f"x {old}, y int8", RETYPED.get(old, "NULL"))
    asked()
    assert len(list(dpselect.Ledger(tmp_path / "ledger").entries())) == 1


def test_nobody_changes_a_table_while_it_is_read(folder):
    """What is looked at and what is read belong to one transaction, which holds a lock."""
    execute(folder, "CREATE TABLE held (x int8)")
    connector = dpselect.open_table(url(folder), table="held")._engine._source
    with connector.session() as run:
        connector.found_fields(run)
        with pytest.raises(Exception, match="lock timeout"):
            execute(folder, "SET lock_timeout = 100", "ALTER TABLE held ALTER x TYPE text")
    execute(folder, "SET lock_timeout = 100", "ALTER TABLE held ALTER x TYPE text")
