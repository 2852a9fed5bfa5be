"""SQLite and DuckDB files as sources, sources that only look like databases, and polars LazyFrames."""

import datetime
import sqlite3
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pytest
from typer.testing import CliRunner

import dpselect
from dpselect.cli.app import app
from dpselect.errors import EngineFailure, InvalidType, InvalidValue
from dpselect.tables.duckdb.source import connect_file, spill_path
from dpselect.tables.files import resolved
from tests.tables.looking import counts, places

MIXED = [(None, None)] * 3000 + [
    (1, "a"),
    (2.5, b"\xff\xfe"),
    ("three", ""),
    ("1", "ü"),
    (b"1", "a\0b"),
    (10**18, None),
]


def sqlite_file(path, rows=MIXED):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE visits (x, code TEXT)")
        connection.executemany("INSERT INTO visits VALUES (?, ?)", rows)
        connection.execute("INSERT INTO visits VALUES (7, CAST(x'ff41' AS TEXT))")
        connection.commit()
    return path


def test_all_columns_of_sqlite_are_text(tmp_path):
    """Missing values first: the driver alone would guess integers from them, and fail on the text that follows."""
    path = sqlite_file(tmp_path / "a b%3F#.db")
    for source, how in ((f"sqlite:///{path}", {"table": "visits"}), (path, {"query": "SELECT x, code FROM visits"})):
        table = dpselect.open_table(source, **how)
        assert all(column.untyped for column in table.columns.values())
        assert counts(table, "x", ["1", "2.5", "three", "7"]) == [3, 1, 1, 1]
        assert counts(table, "x", [1, 7, 10**18]) == [3, 1, 1]
        assert counts(table, "x", [Decimal("2.5")]) == [1]
        assert counts(table, "code", ["a", "", "ü", "a\0b"]) == [1, 1, 1, 1]  # what is not UTF-8 is missing
        assert places(table, "x", 0, 9) == [(1, False, 3), (2, True, 1), (7, False, 1), (9, False, 1)]


ENCODINGS = ["UTF-8", "UTF-16le", "UTF-16be"]
TEXTS = ["I10", "", "ü", "a\0b", "\0", "=", "-", "-x", "\ufeff", "\U0001f600", "\ufffd", "\u3d00", "日本" * 99]


def encoded_file(path, encoding, rows):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.execute("CREATE TABLE visits (who, ä TEXT)")
        connection.executemany("INSERT INTO visits VALUES (?, ?)", rows)
        connection.commit()
        assert connection.execute("PRAGMA encoding").fetchall() == [(encoding,)]
    return path


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_of_sqlite_has_the_same_values(encoding, tmp_path):
    rows = [(i, text) for i, text in enumerate(TEXTS)] + [(i, "I10") for i in range(5)] + [(None, "I10"), (9, None)]
    path = encoded_file(tmp_path / "t.db", encoding, rows)
    for how in ({"table": "visits"}, {"query": "SELECT who, ä FROM visits WHERE ä IS NULL OR ä <> 'ö'"}):
        table = dpselect.open_table(path, person="who", **how)
        assert counts(table, "ä", TEXTS) == [5] + [1] * (len(TEXTS) - 1)
        assert counts(table, "ä", ["I10"], other="other") == [5, len(TEXTS) - 1]  # missing values are not others
        assert places(table, "who", 0, 9)[0] == (0, False, 1)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_of_sqlite_is_filtered_and_asked(encoding, tmp_path):
    """With `where` and `derive` of our own, in the mode and in the median."""
    rows = [(i, "größer") for i in range(60)] + [(i, "日本") for i in range(60, 100)] + [(None, "日本"), (500, None)]
    path = encoded_file(tmp_path / "t.db", encoding, rows)
    table = dpselect.open_table(path, table="visits", where="ä <> 'größer' OR who < 10", derive={"long": "length(ä)"})
    assert counts(table, "ä", ["größer", "日本"]) == [10, 41]
    assert counts(table, "long", [2, 6]) == [41, 10]
    assert table.mode("ä", candidates=["größer", "日本"], epsilon=100).value == "日本"
    assert abs(table.median("who", lower=0, upper=1000, epsilon=100).value - 75) <= 1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_is_no_text_in_its_encoding_is_missing(encoding, tmp_path):
    """In UTF-16, a half of a pair, in the middle and at the end, and an odd number of bytes."""
    wrong = (
        ["ff41", "fe"] if encoding == "UTF-8" else ["00d84100", "d8000041", "4100", "0041", "00d8", "d800", "410041"]
    )
    encode = {"UTF-8": "utf-8", "UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}[encoding]
    path = encoded_file(tmp_path / "t.db", encoding, [])

    def is_text(written):
        try:
            return bool(bytes.fromhex(written).decode(encode))
        except UnicodeDecodeError:
            return False

    with closing(sqlite3.connect(path)) as connection:
        for written in wrong:
            connection.execute(f"INSERT INTO visits VALUES (x'{written}', CAST(x'{written}' AS TEXT))")
        connection.commit()
    table = dpselect.open_table(path, table="visits")
    texts = sum(map(is_text, wrong))
    assert counts(table, "who", ["nothing"], other="other") == [0, texts]
    assert texts < len(wrong)
    for column in ("who", "ä"):
        table.mode(column, candidates=["A"], epsilon=1)


EQUAL = {
    "7": [7, 7.0, "7"],
    "0": [0, 0.0, -0.0],
    "-3": [-3, -3.0],
    str(2**53): [2**53, 2.0**53],
    str(2**53 + 1): [2**53 + 1],  # no float is equal to it
    str(2**53 + 2): [2**53 + 2, 2.0**53 + 2],
    str(2**62): [2**62, 2.0**62],
    str(2**63 - 1): [2**63 - 1],
    str(-(2**63)): [-(2**63), -(2.0**63)],
    "0.1": [0.1],
    "0.30000000000000004": [0.1 + 0.2],
    "0.3": [0.3],
    "2.5": [2.5, "2.5"],
    "7.0": ["7.0"],  # a text is another person than a number
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_sqlite_says_is_equal_is_one_person_and_one_value(encoding, tmp_path):
    values = [(value, name) for name, same in EQUAL.items() for value in same]
    large = [(2.0**63, "a"), (2.0**63 + 2048, "b"), (1e300, "c"), (5e-324, "d"), (float("inf"), "e")]
    path = encoded_file(tmp_path / "t.db", encoding, [*values, *large])
    rows = dpselect.open_table(path, table="visits")
    assert counts(rows, "who", list(EQUAL)) == list(map(len, EQUAL.values()))
    assert counts(rows, "who", [7, 0, 2**53, 2**53 + 1, 2**63 - 1]) == [4, 4, 2, 1, 1]  # 5e-324 is 0 to 18 digits
    people = dpselect.open_table(path, table="visits", person="who")
    assert counts(people, "ä", list(EQUAL)) == [1] * len(EQUAL)
    assert sum(counts(people, "who", list(EQUAL), other="other")) == len(EQUAL) + len(large)
    with closing(sqlite3.connect(path)) as connection:
        numbers = "SELECT count(DISTINCT who) FROM visits WHERE typeof(who) <> 'text'"
        [(equal,)] = connection.execute(numbers).fetchall()
    assert equal == len(EQUAL) + len(large) - 1


def test_sqlite_is_only_read(tmp_path):
    path = sqlite_file(tmp_path / "t.db")
    for query in ("DELETE FROM visits", "SELECT 1 AS x; DELETE FROM visits", "SELECT * FROM none"):
        for is_trusted in (False, True):
            with pytest.raises(InvalidValue):
                dpselect.open_table(path, query=query, trusted_query=is_trusted)
    two = "SELECT 1 AS x) AS y; DELETE FROM visits; --"  # SQLite runs the first part
    table = dpselect.open_table(path, query=two, trusted_query=True)
    assert counts(table, "x", ["1"]) == [1]
    assert counts(dpselect.open_table(path, table="visits"), "x", ["1"]) == [3]


def test_a_damaged_sqlite_file_gives_no_answer(tmp_path):
    path = sqlite_file(tmp_path / "t.db", [("x" * 500, "a")] * 20_000)
    table = dpselect.open_table(path, table="visits")
    assert counts(table, "code", ["a"]) == [20_000]
    content = bytearray(path.read_bytes())
    content[-len(content) // 8 :] = b"\xff" * len(content[-len(content) // 8 :])
    path.write_bytes(content)
    with pytest.raises(EngineFailure, match="could not be counted"):
        table.mode("code", candidates=["a", "b"], epsilon=1)


def test_a_duckdb_file(tmp_path):
    path = tmp_path / "visits.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE SCHEMA clinic; CREATE TYPE colour AS ENUM ('red', 'blue')")
        connection.execute(
            "CREATE TABLE clinic.visits AS SELECT i % 3 AS n, CAST(i AS DECIMAL(9,2)) AS cost,"
            " DATE '2024-01-01' AS day, CAST('red' AS colour) AS c FROM range(300) AS t(i)"
        )
    for source in (path, str(path), f"duckdb:///{path}"):
        for how in ({"table": "clinic.visits"}, {"table": ("clinic", "visits")}, {"query": "FROM clinic.visits;"}):
            table = dpselect.open_table(source, **how)
            assert counts(table, "n", [0, 5]) == [100, 0]
            assert counts(table, "c", ["red", "blue"]) == [300, 0]
            assert counts(table, "day", [datetime.date(2024, 1, 1)]) == [300]
            assert places(table, "cost", 0, 299)[0] == (0, False, 1)
    with closing(duckdb.connect(str(path))) as connection:  # the file was closed, and can be written
        connection.execute("INSERT INTO clinic.visits SELECT * FROM clinic.visits")
    assert counts(table, "n", [0]) == [200]
    for wrong in ({"table": "visits"}, {"query": "DROP TABLE clinic.visits"}, {"query": "SELEKT"}):
        with pytest.raises(InvalidValue) as caught:
            dpselect.open_table(path, **wrong)
        assert "\n" not in str(caught.value)


def test_the_name_of_a_table_is_never_that_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("a,b\n1,2\n")
    duckdb.sql("SELECT 1 AS a").write_parquet("x.parquet")
    duckdb.connect("t.duckdb").close()
    for name in ("x.csv", "x.parquet", "nothing"):
        with pytest.raises(InvalidValue, match=f"table '{name}' does not exist"):
            dpselect.open_table("t.duckdb", table=(name,))
    with pytest.raises(InvalidValue, match="a table whose name has a point"):
        dpselect.open_table("t.duckdb", query='SELECT * FROM "x.csv"')


def test_a_duckdb_file_spills_to_the_private_folder(tmp_path):
    """DuckDB would spill next to the file, where others may read it."""
    path = str(tmp_path / "visits.duckdb")
    duckdb.connect(path).close()
    with closing(connect_file(path)) as one, closing(connect_file(path)):  # also two at once
        [(folder, encrypted)] = one.execute(
            "SELECT current_setting('temp_directory'), current_setting('temp_file_encryption')"
        ).fetchall()
    assert Path(folder).parent == Path(spill_path()).parent
    assert encrypted


@pytest.mark.parametrize("name", ["visits.db", "visits.duckdb"])
def test_a_file_of_a_database_needs_a_table(name, tmp_path):
    path = tmp_path / name
    sqlite_file(path) if name.endswith(".db") else duckdb.connect(str(path)).close()
    with pytest.raises(InvalidValue, match="either table"):
        dpselect.open_table(path)


ADDRESSES = [
    "mysql://me:s3cr3t@host/db",
    "mysql+pymysql://me:s3cr3t@host/db",
    "postgresql+psycopg://me:s3cr3t@host/db",
    "postgresql:/me:s3cr3t@host/db",
    "postgresql:me:s3cr3t@host/db",
    "POSTGRESQL:me:s3cr3t@host/db",
    "s3://s3cr3t/visits.parquet",
    "sqlite://me:s3cr3t",
    "sqlite:///s3cr3t.db",
    "host=/tmp dbname=x password=s3cr3t",
    "password = s3cr3t",
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("how", [{}, {"table": "visits"}])
@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_no_address_is_quoted(address, how, engine):
    with pytest.raises(InvalidValue) as caught:
        dpselect.open_table(address, engine=engine, **how)
    assert "s3cr3t" not in f"{caught.value!r}{caught.value.__context__!r}"


def test_other_databases_get_a_hint():
    with pytest.raises(InvalidValue, match="ADBC or ODBC, or export the table to Parquet"):
        dpselect.open_table("mysql://host/db", table="visits")


@pytest.mark.parametrize("how", [{"table": "visits"}, {"query": "SELECT 1"}])
def test_a_table_is_for_databases(how, tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    for source in (tmp_path / "t.csv", str(tmp_path / "t.csv"), tmp_path / "none.csv", pl.DataFrame({"a": [1]})):
        with pytest.raises(InvalidValue, match="is for databases"):
            dpselect.open_table(source, **how)


def test_files_whose_names_look_like_addresses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mail:me@here.csv", "password=x.csv"):
        (tmp_path / name).write_text("a\n1\n")
        assert resolved(name) == name
        assert counts(dpselect.open_table(name), "a", [1]) == [1]


def test_types_of_table_and_query(tmp_path):
    path = sqlite_file(tmp_path / "t.db", [])
    for how in ({"table": 5}, {"table": (1, 2)}, {"query": b"SELECT 1"}):
        with pytest.raises(InvalidType):
            dpselect.open_table(path, **how)
    for how in ({"table": ()}, {"table": "a.b.c.d"}, {"query": ""}, {"query": "SELECT '\ud800'"}):
        with pytest.raises(InvalidValue):
            dpselect.open_table(path, **how)


def test_a_missing_driver_is_named(tmp_path):
    path = sqlite_file(tmp_path / "t.db", [])
    code = (
        "import sys; sys.modules['adbc_driver_sqlite'] = sys.modules['adbc_driver_postgresql'] = None\n"
        "import dpselect\n"
        "for source in (sys.argv[1], 'postgresql://me:s3cr3t@host/db'):\n"
        "    try: dpselect.open_table(source, table='visits')\n"
        "    except dpselect.errors.MissingExtra as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.count(" -m pip install adbc-driver-") == 2
    assert "s3cr3t" not in done.stdout + done.stderr


def test_the_command_line_takes_files(tmp_path):
    path = sqlite_file(tmp_path / "t.db", [("1", "a")] * 300)
    asked = ["--column", "code", "--candidates", "a,b", "--epsilon", "1"]
    done = CliRunner().invoke(app, ["mode", f"sqlite:///{path}", "--table", "visits", *asked])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("a\n")
    done = CliRunner().invoke(app, ["mode", str(path), *asked])
    assert (done.exit_code, "either --table" in done.output) == (2, True)
    asked[3] = str(path)  # errors about a list may quote it, so the database must not be one
    done = CliRunner().invoke(app, ["mode", f"sqlite:///{path}", "--table", "visits", *asked])
    assert "file of the table itself" in done.output


def test_a_lazy_frame_is_collected_for_every_question():
    frame = pl.LazyFrame({"who": [1, 1, 2, 3], "a": ["x", "x", "y", "x"], "t": [datetime.datetime(2024, 1, 1)] * 4})
    table = dpselect.open_table(frame.filter(pl.col("who") < 3), person="who")
    for _ in range(2):
        assert counts(table, "a", ["x", "y"]) == [1, 1]
        assert counts(table, "t", [datetime.datetime(2024, 1, 1)]) == [2]
    failing = frame.with_columns(pl.col("a").cast(pl.Int64).alias("n"))
    with pytest.raises(EngineFailure):
        dpselect.open_table(failing).median("n", lower=0, upper=5, epsilon=1)
