"""Queries of databases: what is accepted counts as a table with `where`, and what mixes rows is refused on its text."""

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

import dpselect
from dpselect import Ledger
from dpselect.cli.app import app
from dpselect.errors import EngineFailure, InvalidType, InvalidValue
from tests import postgresql
from tests.postgresql import execute, url
from tests.tables.looking import counts

ROWS = [
    (1, "a", 10.0, "2024-01-05", True),
    (2, "a", 20.0, "2024-02-05", True),
    (2, "b", 30.5, "2024-03-05", False),
    (3, "b", None, "2024-04-05", False),
    (4, "it's", 50.0, None, True),
    (5, None, 60.0, "2024-06-05", None),
]
CREATE = 'CREATE TABLE visits (who {int}, code {text}, cost {real}, day {date}, flag {bool}, "Case" {int})'
POSTGRESQL, SQLITE, DUCKDB = "postgresql", "sqlite", "duckdb"
UNREADABLE = "query (cannot be read|names a column that does not exist)"
WAY_OUT = "Filter with where= and compute columns with derive=, .* or say trusted_query=True if each row of the query"


def inserts():
    for row in ROWS:
        values = ("NULL" if each is None else repr(each) for each in (*row, row[0]))
        yield f"INSERT INTO visits VALUES ({', '.join(values)})".replace('"it\'s"', "'it''s'")


@pytest.fixture(scope="module", params=[SQLITE, DUCKDB, pytest.param(POSTGRESQL)])
def database(request, tmp_path_factory):
    """The source, with the table `visits`, and the name of its system."""
    folder = tmp_path_factory.mktemp("databases")
    types = {"int": "int", "text": "text", "real": "double precision", "date": "date", "bool": "boolean"}
    if request.param == POSTGRESQL:
        with postgresql.server() as server:
            execute(server, CREATE.format(**types), *inserts(), "CREATE SCHEMA clinic", "CREATE TABLE other (who int)")
            yield url(server), POSTGRESQL
        return
    if request.param == SQLITE:
        with closing(sqlite3.connect(folder / "t.db")) as connection:
            connection.execute(CREATE.format(**{**types, "date": "text"}))
            for statement in inserts():
                connection.execute(statement)
            connection.execute("CREATE TABLE other (who int)")
            connection.commit()
        yield folder / "t.db", SQLITE
        return
    with closing(duckdb.connect(str(folder / "t.duckdb"))) as connection:
        for statement in (CREATE.format(**types), *inserts(), "CREATE TABLE other (who int)"):
            connection.execute(statement)
    yield folder / "t.duckdb", DUCKDB


# Each query, and the rows of the table that it has: a condition of `where`.
ACCEPTED = {
    "SELECT * FROM visits": "true",
    "FROM visits": "true",
    "TABLE visits;": "true",
    "select who, code from visits": "true",
    "SELECT v.who, v.code FROM visits v": "true",
    "SELECT visits.who, code AS code FROM visits WHERE visits.code = 'a'": "code = 'a'",
    'SELECT "who", "code" FROM "visits" WHERE "Case" > 2': "\"Case\" > 2",
    "SELECT who, code FROM visits WHERE code = 'it''s'": "code = 'it''s'",
    "SELECT who, code FROM visits WHERE cost < 30": "cost < 30",
    "SELECT who, code FROM visits WHERE cost >= 30.5 AND NOT code = 'b' OR who = 1":
        "cost >= 30.5 AND NOT code = 'b' OR who = 1",
    "SELECT who, code FROM visits WHERE cost > -1e1 AND cost <> - 20": "cost > -10 AND cost <> -20",
    "SELECT who, code FROM visits WHERE cost IS NULL": "cost IS NULL",
    "SELECT who, code FROM visits WHERE cost IS NOT NULL AND (code != 'a')": "cost IS NOT NULL AND code <> 'a'",
    "SELECT who, code FROM visits WHERE code IN ('a', 'c')": "code IN ('a', 'c')",
    "SELECT who, code FROM visits WHERE code NOT IN ('a', 'c')": "code NOT IN ('a', 'c')",
    "SELECT who, code FROM visits WHERE cost BETWEEN 20 AND 50": "cost BETWEEN 20 AND 50",
    "SELECT who, code FROM visits WHERE cost NOT BETWEEN 20 AND 50": "NOT cost BETWEEN 20 AND 50",
    "SELECT who, code FROM visits WHERE code LIKE 'it%' OR code LIKE '_'": "code LIKE 'it%' OR code LIKE '_'",
    "SELECT who, code FROM visits WHERE code NOT LIKE 'it%'": "code NOT LIKE 'it%'",
    "SELECT who, code FROM visits WHERE who = CAST('2' AS int)": "who = 2",
    "SELECT who, code FROM visits WHERE code IS DISTINCT FROM 'a'": "code IS DISTINCT FROM 'a'",
    "SELECT who, code FROM visits WHERE day >= '2024-02-05'": "day >= '2024-02-05'",
}  # fmt: skip
DATES = {
    "SELECT who, code FROM visits WHERE day >= DATE '2024-02-05'": "day >= '2024-02-05'",
    "SELECT who, code FROM visits WHERE flag": "flag",
    "SELECT who, code FROM visits WHERE NOT flag OR cost = CAST(20 AS DECIMAL(9, 2))": "NOT flag OR cost = 20",
}
CODES = ["a", "b", "it's", "c"]


def test_an_accepted_query_counts_as_a_table_with_where(database):
    source, system = database
    for query, condition in {**ACCEPTED, **({} if system == SQLITE else DATES)}.items():
        date = "CAST('2024-02-05' AS DATE)" if system == SQLITE else "'2024-02-05'"  # the column has no type there
        where = condition.replace("'2024-02-05'", date)
        for person in (None, "who"):
            found = dpselect.open_table(source, query=query, person=person)
            same = dpselect.open_table(source, table="visits", where=where, person=person)
            assert counts(found, "code", CODES) == counts(same, "code", CODES), (query, person)
            assert sum(counts(found, "code", CODES)) > 0, query


def test_names_are_read_as_the_database_reads_them(database):
    source, system = database
    table = dpselect.open_table(source, query='SELECT Who, "Case" AS "Two Words" FROM Visits')
    assert list(table.columns) == ["who" if system == POSTGRESQL else "Who", "Two Words"]
    assert counts(table, "Two Words", [1, 2]) == [1, 2]
    with pytest.raises(InvalidValue, match=UNREADABLE):  # SQLite would take it for a text
        dpselect.open_table(source, query='SELECT who, "nothing" FROM visits')
    if system == POSTGRESQL:
        with pytest.raises(InvalidValue, match=UNREADABLE):
            dpselect.open_table(source, query='SELECT "Who" FROM visits')
        assert next(iter(dpselect.open_table(source, query="TABLE PUBLIC.Visits").columns)) == "who"


# Each query that is refused, and what its message names.
REFUSED = {
    "SELECT DISTINCT who FROM visits": "query has DISTINCT",
    "SELECT DISTINCT ON (who) who, cost FROM visits": "query has DISTINCT",
    "SELECT * FROM visits LIMIT 5": "query has LIMIT or OFFSET",
    "SELECT * FROM visits OFFSET 5": "query has LIMIT or OFFSET",
    "SELECT * FROM visits FETCH FIRST 5 ROWS ONLY": "query has LIMIT or OFFSET",
    "SELECT * FROM visits LIMIT 50 %": "query has LIMIT or OFFSET|the character '%'",
    "SELECT * FROM visits TABLESAMPLE 5 ROWS": "query has a sample",
    "SELECT * FROM visits TABLESAMPLE BERNOULLI (5)": "query has a sample",
    "SELECT * FROM visits USING SAMPLE 5": "query has a sample",
    "SELECT * FROM visits ORDER BY cost": "query has ORDER BY",
    "SELECT code FROM visits GROUP BY code": "query has GROUP BY",
    "SELECT code, sum(cost) FROM visits GROUP BY ALL": "query has GROUP BY",
    "SELECT code FROM visits HAVING code = 'a'": "query has HAVING",
    "SELECT sum(cost) AS cost FROM visits": "query has 'sum', which computes",
    "SELECT count(*) AS n FROM visits": "query has 'count_star', which computes",
    "SELECT max(cost) FILTER (WHERE cost > 5) AS n FROM visits": "query has 'max', which computes",
    "SELECT who, row_number() OVER () AS n FROM visits": "query has a window function",
    "SELECT who FROM visits QUALIFY row_number() OVER () = 1": "query has QUALIFY",
    "SELECT who FROM visits UNION ALL SELECT who FROM other": "query has a set operation such as UNION",
    "SELECT who FROM visits EXCEPT SELECT who FROM other": "query has a set operation such as UNION",
    "(SELECT who FROM visits) INTERSECT (SELECT who FROM other)": "query has a set operation such as UNION",
    "SELECT * FROM visits JOIN other USING (who)": "query has a second table",
    "SELECT * FROM visits, other": "query has a second table",
    "SELECT * FROM visits NATURAL JOIN other": "query has a second table",
    "SELECT v.* FROM visits v LEFT JOIN other o ON v.who = o.who": "query has a second table",
    "SELECT * FROM (SELECT * FROM visits) AS v": "query has a subquery",
    "SELECT * FROM visits WHERE cost > (SELECT avg(cost) FROM visits)": "query has a subquery",
    "SELECT * FROM visits WHERE who IN (SELECT who FROM other)": "query has a subquery",
    "SELECT * FROM visits WHERE EXISTS (SELECT 1 FROM other)": "query has a subquery",
    "SELECT * FROM visits WHERE cost >= ALL (SELECT cost FROM visits)": "query has a subquery|cannot be checked",
    "SELECT who, (SELECT 1) AS one FROM visits": "query has a subquery",
    "WITH v AS (SELECT * FROM visits) SELECT * FROM v": "query has WITH",
    "WITH RECURSIVE v AS (SELECT * FROM visits) SELECT * FROM v": "query has WITH",
    "SELECT * FROM generate_series(1, 9)": "query has a table function",
    "SELECT * FROM read_csv('x.csv')": "query has a table function",
    "SELECT 1 AS one": "query has no table",
    "VALUES (1)": "query has no table",
    "SELECT lower(code) AS code FROM visits": "query has 'lower', which computes",
    "SELECT cost * 2 AS cost FROM visits": "query has '\\*', which computes",
    "SELECT code || 'x' AS code FROM visits": "the character '\\|'",
    "SELECT -cost AS cost FROM visits": "query has '-', which computes",
    "SELECT CASE WHEN flag THEN 1 ELSE 0 END AS n FROM visits": "query has CASE",
    "SELECT CAST(cost AS int) AS cost FROM visits": "query has an expression",
    "SELECT cost::int AS cost FROM visits": "the character ':'",
    "SELECT 5 AS five FROM visits": "query has an expression",
    "SELECT * FROM visits WHERE lower(code) = 'a'": "query has 'lower', which computes",
    "SELECT * FROM visits WHERE cost + 1 > 5": "query has '\\+', which computes",
    "SELECT * FROM visits WHERE code ILIKE 'a'": "query has '~~\\*', which computes",
    "SELECT * FROM visits WHERE code LIKE 'a' ESCAPE 'x'": "query has 'like_escape', which computes",
    "SELECT * FROM visits WHERE code LIKE code": "query has an expression",
    "SELECT * FROM visits WHERE code IN (code)": "query has an expression",
    "SELECT * FROM visits WHERE CAST(cost AS int) = 1": "query has a cast of something that is no constant",
    "SELECT * FROM visits WHERE who = CAST('1' AS visits)": "a cast to a type that not all databases have",
    "SELECT * FROM visits WHERE who = CAST('1' AS clinic.int)": "a cast to a type that not all databases have",
    "SELECT * FROM visits WHERE code = 'a' COLLATE nocase": "query has COLLATE",
    "SELECT * FROM visits WHERE (who, code) = (1, 'a')": "query has 'row', which computes",
    "SELECT * FROM visits WHERE who = ?": "the character '\\?'",
    "SELECT * FROM visits WHERE rowid <= 3": "query has a column of the system, 'rowid'",
    "SELECT * FROM visits WHERE CTID = '(0,1)'": "query has a column of the system, '(CTID|ctid)'",
    "SELECT oid FROM visits": "query has a column of the system, 'oid'",
    "SELECT * FROM pg_stats": "query has a table of the system",
    "SELECT * FROM pg_catalog.pg_stats": "query has a table of the system",
    "SELECT * FROM information_schema.tables": "query has a table of the system",
    "SELECT * FROM sqlite_stat1": "query has a table of the system",
    'SELECT * FROM "visits.csv"': "query has a table whose name has a point",
    "SELECT * FROM 'visits.csv'": "query has a table whose name has a point|cannot be checked",
    "SELECT * EXCLUDE (who) FROM visits": "query has \\* with further words",
    "SELECT COLUMNS('c.*') FROM visits": "query has \\* with further words",
    "SELECT other.* FROM visits": "query has \\* with further words",
    "SELECT other.who FROM visits": "a name with points that is no column of the table",
    "SELECT public.visits.who FROM visits": "a name with points that is no column of the table",
    "SELECT * FROM visits AS v (a, b)": "query has names of columns after the table",
    "SELECT * FROM visits AT (VERSION => 3)": "query has ",
    "SELECT * FROM visits PIVOT (sum(cost) FOR code IN ('a'))": "query has ",
    "PIVOT visits ON code USING sum(cost)": "query ",
    "SUMMARIZE visits": "query ",
    "DESCRIBE visits": "query ",
    "DELETE FROM visits": "query cannot be checked",
    "SELEKT": "query cannot be checked: syntax error",
    "SELECT * FROM": "query cannot be checked: syntax error",
    f"SELECT * FROM visits WHERE {'NOT ' * 70} flag": "query has a condition that is nested too deeply",
    f"SELECT * FROM visits WHERE code = '{'x' * 10_000}'": "query has more than 10,000 characters",
}
# What the parsers of DuckDB, PostgreSQL and SQLite read in different ways, or what hides in it.
READ_DIFFERENTLY = {
    "SELECT * FROM visits -- LIMIT 5": "a comment",
    "SELECT * FROM visits /* LIMIT 5 */": "a comment",
    "SELECT * FROM visits /* /* */ WHERE cost < 5 /* */ */": "a comment",  # nests in PostgreSQL, and not in SQLite
    "SELECT * FROM visits /*! LIMIT 5 */": "a comment",
    "SELECT * FROM visits WHERE cost = 1--1": "a comment",
    "SELECT * FROM visits --\r LIMIT 5": "a comment",  # whether a carriage return ends it
    "SELECT * FROM visits WHERE code = $$a$$": "a dollar sign",
    "SELECT * FROM visits WHERE code = $x$ LIMIT $x$": "a dollar sign",
    "SELECT * FROM visits WHERE who = $1": "a dollar sign",
    "SELECT * FROM visits WHERE code = 'a\\' OR code = ' LIMIT 5'": "a backslash",  # without standard strings
    "SELECT * FROM visits WHERE code LIKE 'a\\%'": "a backslash",
    "SELECT * FROM visits WHERE code = E'a'": "a prefixed text",
    "SELECT * FROM visits WHERE code = e'a'": "a prefixed text",
    "SELECT * FROM visits WHERE code = U&'a'": "the character '&'",
    'SELECT U&"c" FROM visits': "the character '&'",
    "SELECT * FROM visits WHERE code = x'61'": "a prefixed text",
    "SELECT * FROM visits WHERE code = b'1'": "a prefixed text",
    "SELECT * FROM visits WHERE code = n'a'": "a prefixed text",
    "SELECT * FROM visits WHERE who = 0x1F": "words that no space separates",
    "SELECT * FROM visits WHERE who = 1_000": "words that no space separates",
    "SELECT * FROM visits WHERE who = 1AND cost = 2": "words that no space separates",
    "SELECT * FROM visits WHERE code = 'a'AND cost = 2": "words that no space separates",
    "SELECT * FROM visits WHERE code = 'a'\n'b'": "query has two texts side by side",  # one text in PostgreSQL
    "SELECT [who] FROM visits": "the character '\\['",  # a name in SQLite
    "SELECT `who` FROM visits": "a backquote",
    "SELECT who FROM visits; SELECT who FROM other": "a semicolon",
    "SELECT who FROM visits;;LIMIT 5": "a semicolon",
    "SELECT who AS a) AS b; DROP TABLE visits; --": "a semicolon",
    "SELECT who FROM visits) AS a LIMIT (5": "query cannot be checked",
    "SELECT who\u00a0FROM visits": "the character '\\\\xa0'",  # a space in DuckDB, a letter in the others
    "SELECT who\u2003FROM visits": "the character",
    "SELECT who\x0cFROM visits": "the character",
    "SELECT who\x0bFROM visits": "the character",
    "\ufeffSELECT who FROM visits": "the character",
    "SELECT who # 5\nFROM visits": "the character '#'",
    "SELECT who @ 5 FROM visits": "the character '@'",
    "SELECT who FROM visits WHERE code == 'a' AND code GLOB 'a'": "query ",
    "SELECT who FROM visits WHERE code REGEXP 'a'": "query ",
    "SELECT who FROM visits WHERE code SIMILAR TO 'a'": "query ",
    "SELECT who FROM ONLY visits": "query ",
    "SELECT who FROM visits FOR UPDATE": "query ",
    "SELECT who FROM visits INDEXED BY x": "query ",
    "SELECT ALL who INTO other FROM visits": "query ",
    "SELECT TOP 5 who FROM visits": "query ",
    "SELECT who FROM visits WHERE flag IS TRUE": "query has ",
    "SELECT visits.count FROM other": "a name with points that is no column of the table",
}  # fmt: skip


@pytest.mark.parametrize("query", [*REFUSED, *READ_DIFFERENTLY])
def test_a_query_that_may_mix_rows_is_refused_on_its_text(query, tmp_path):
    """Without a driver, a server, or a file that could be read."""
    (tmp_path / "t.db").write_bytes(b"SQLite format 3\0")
    (tmp_path / "t.duckdb").write_bytes(b"\0" * 8 + b"DUCK")
    message = {**REFUSED, **READ_DIFFERENTLY}[query]
    for source in (tmp_path / "t.db", tmp_path / "t.duckdb", "postgresql://nobody@nowhere.invalid/none"):
        with pytest.raises(InvalidValue, match=f"(?s)({message}).*{WAY_OUT}") as caught:
            dpselect.open_table(source, query=query)
        assert "\n" not in str(caught.value)
        assert caught.value.__context__ is None


def test_what_one_parser_reads_as_a_column_cannot_be_an_aggregate_to_another(database):
    """PostgreSQL takes `visits.count`, without such a column, for count(visits)."""
    source, system = database
    for query in ("SELECT visits.count FROM visits", "SELECT v.count FROM visits v", "SELECT count FROM visits"):
        with pytest.raises(InvalidValue, match=UNREADABLE):
            dpselect.open_table(source, query=query)
    if system == POSTGRESQL:
        trusted = dpselect.open_table(source, query="SELECT visits.count FROM visits", trusted_query=True)
        assert counts(trusted, "count", [len(ROWS)]) == [1]


def test_dates_are_no_type_of_sqlite(tmp_path):
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE visits (day TEXT)")
    with pytest.raises(InvalidValue, match="a cast to DATE, which SQLite does not have"):
        dpselect.open_table(path, query="SELECT * FROM visits WHERE day >= DATE '2024-02-05'")


def test_hidden_columns_of_sqlite_cannot_be_named(tmp_path):
    """The rank of a row in a full-text search depends on all rows, and a comparison with the table is a search."""
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIRTUAL TABLE notes USING fts5(who, text)")
        connection.executemany("INSERT INTO notes VALUES (?, ?)", [(1, "flu"), (2, "flu and cold"), (3, "cold")])
        connection.commit()
    ranked = "SELECT who, rank AS place FROM notes WHERE notes = 'flu'"
    assert "place" in dpselect.open_table(path, query=ranked, trusted_query=True).columns
    for query in (ranked, "SELECT who, rank FROM notes", "SELECT who FROM notes WHERE notes = 'flu'"):
        with pytest.raises(InvalidValue, match=UNREADABLE):
            dpselect.open_table(path, query=query)
    assert counts(dpselect.open_table(path, query="SELECT who FROM notes WHERE text = 'flu'"), "who", [1, 2]) == [1, 0]


def test_no_row_makes_a_query_of_a_duckdb_file_fail(tmp_path):
    """A number that does not fit into the type of the other one is not equal to it, and a wrong constant is refused."""
    path = str(tmp_path / "t.duckdb")
    with closing(duckdb.connect(path)) as connection:
        connection.execute("CREATE TABLE visits (n HUGEINT, d DECIMAL(38,37), code TEXT)")
        connection.execute("INSERT INTO visits VALUES (1, 0.5, 'a'), (10::HUGEINT ** 30, 0.5, 'b'), (NULL, 1, 'c')")
    for is_trusted, found in ((False, [1, 0, 0]), (True, None)):
        table = dpselect.open_table(
            path, query="SELECT code FROM visits WHERE n > d", trusted_query=is_trusted, keep=False
        )
        if found is not None:
            assert counts(table, "code", ["a", "b", "c"]) == found
        else:
            with pytest.raises(EngineFailure):
                counts(table, "code", ["a", "b", "c"])
    for condition in ("n > 'x'", "code = 'a' OR n IN (1, 'x')", "code > 1"):
        with pytest.raises(InvalidValue, match=UNREADABLE):
            dpselect.open_table(path, query=f"SELECT code FROM visits WHERE {condition}")


def test_a_trusted_query_is_sent_as_it_is_and_recorded(database, tmp_path):
    source, _ = database
    query = "SELECT who, max(cost) AS cost FROM visits GROUP BY who -- one row of each person"
    ledger = Ledger(tmp_path / "ledger", budget=10)
    table = dpselect.open_table(source, query=query, trusted_query=True, person="who", ledger=ledger)
    table.mode("who", candidates=[1, 2], epsilon=1)
    plain = dpselect.open_table(source, query="SELECT who FROM visits", person="who", ledger=ledger)
    plain.mode("who", candidates=[1, 2], epsilon=1)
    first, second = ledger.entries()
    assert (first.what["trusted_query"], first.what["query"]) == (True, query)
    assert "trusted_query" not in second.what
    assert second.what["query"] == "SELECT who FROM visits"


def test_trust_needs_a_query(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    (tmp_path / "t.db").write_bytes(b"SQLite format 3\0")
    for source, how in ((tmp_path / "t.csv", {}), (tmp_path / "t.db", {"table": "visits"})):
        with pytest.raises(InvalidValue, match="trusted_query is about the query of a database, and there is none"):
            dpselect.open_table(source, **how, trusted_query=True)
    with pytest.raises(InvalidType, match="trusted_query must be True or False, got str"):
        dpselect.open_table(tmp_path / "t.db", query="SELECT 1", trusted_query="yes")
    assert Path(tmp_path / "t.db").exists()


def test_the_command_line_names_its_options(tmp_path):
    path = tmp_path / "t.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 'a' AS code FROM range(99)")
    asked = [
        "--column",
        "code",
        "--candidates",
        "a,b",
        "--epsilon",
        "50",
        "--query",
        "SELECT code FROM visits LIMIT 90",
    ]
    done = CliRunner().invoke(app, ["mode", str(path), *asked])
    assert done.exit_code == 2
    assert "Filter with --where and compute columns with --derive" in done.output
    assert "or say --trusted-query if each row" in done.output
    done = CliRunner().invoke(app, ["mode", str(path), *asked, "--trusted-query"])
    assert (done.exit_code, done.stdout[:2]) == (0, "a\n"), done.output
