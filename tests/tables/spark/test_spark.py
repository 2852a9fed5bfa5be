"""What is Spark's own: its sources, its way to read and compare values, and candidates that are a DataFrame."""

import datetime
import importlib
import json
import math
import re
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812

import dpselect
from dpselect.cli.app import app
from dpselect.errors import EngineFailure, InvalidType, InvalidValue, MissingExtra
from dpselect.tables.domains import Domain
from dpselect.tables.duckdb.files import ParquetFiles
from dpselect.tables.files import files_of
from dpselect.tables.spark import source as spark_source
from tests import spark
from tests.carried import carried
from tests.tables import test_folder_names, test_leaks
from tests.tables.duckdb import test_sources
from tests.tables.looking import counts, in_writing, opened, places
from tests.tables.test_found import tally_of

pytestmark = [*spark.MARKS, pytest.mark.slow]
DAY, NOON = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)


@pytest.fixture(scope="module", autouse=True)
def session():
    return spark.session()


def frame_of_rows(session):
    """The table of the other tests as a DataFrame; its text has an order of its own, in which a equals A."""
    rows = list(zip(*test_sources.ROWS.values(), strict=True))
    frame = session.createDataFrame(rows, "code string, cost bigint, day date, who bigint")
    return frame.withColumn("code", F.collate("code", "UTF8_LCASE"))


SOURCES = ["CSV glob", "CSV GZ", "bars", "BOM", "mixed ends", "CSV bracket", "Parquet folder", "Parquet glob"]


@pytest.mark.parametrize("name", ["DataFrame", *SOURCES])
def test_every_source_counts_the_same(name, session, tmp_path):
    source = frame_of_rows(session) if name == "DataFrame" else test_sources.SOURCES[name](tmp_path)
    table = dpselect.open_table(source, engine="spark", person="who")
    assert list(table.columns) == list(test_sources.ROWS)
    assert counts(table, "code", ["I10", "E11, type 2", 'said "no"', "i10"]) == [2, 1, 1, 0]
    assert places(table, "cost", 0, 30) in test_sources.MIDDLES  # one of two middle values, at random


def test_folders_of_partitions_have_their_columns(session, tmp_path):
    for year in (2023, 2024):
        test_sources.saved(tmp_path / f"year={year}" / "part.parquet", test_sources.ARROW)
    for engine in ("duckdb", "spark"):
        table = dpselect.open_table(tmp_path, engine=engine)
        assert counts(table, "year", [2023, 2024, 2025]) == [6, 6, 0]
        grouped = table.group_by("year", groups=[2023, 2024])
        assert counts(grouped, "code", ["I10", "J45"]) == [[2, 1], [2, 1]]
        assert places(table, "year", 2000, 2023) == [(23, False, 12)]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("name", ["b", *(pytest.param(name, marks=pytest.mark.slow) for name in ("b[1]", "b:1"))])
def test_odd_names_of_folders_are_the_text_that_the_other_engine_reads(kind, name, tmp_path):
    """Spark cannot read a path with a colon and a bracket itself."""
    top = tmp_path / "env=prod" / name
    expected = test_folder_names.tree(top, test_folder_names.ODD, kind)
    schemas = []
    for engine in ("duckdb", "spark"):
        table = dpselect.open_table(top, engine=engine)
        schemas.append(dict(table.columns))
        assert counts(table, "code", list(expected)) == list(expected.values())
    assert schemas[0] == schemas[1]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_counts_once_however_it_is_reached(kind, tmp_path, monkeypatch):
    """Spark reads the files that were listed, and lists none itself."""
    path = test_folder_names.partition(tmp_path, "a", kind)
    (tmp_path / f"link.{kind}").symlink_to(path)
    (tmp_path / "code=a" / f"hard.{kind}").hardlink_to(path)
    (tmp_path / "code=a" / "loop").symlink_to(tmp_path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for source in (tmp_path, f"{tmp_path}/**/*.{kind}", "..", f"../*/*.{kind}"):
        table = dpselect.open_table(source, engine="spark")
        assert counts(table, "code", ["a"]) == counts(table, "d", ["x"]) == [1]


@pytest.mark.parametrize("name", ["b", "b[1]", "b:1"])
def test_no_value_of_a_folder_decides_who_reads_the_files(name, tmp_path):
    """Where Spark reads the files itself, one more folder with an odd value does not make it another reader."""
    readers = []
    for value in ("a", "12:30", "[x]", "12:30 [x]"):
        test_folder_names.partition(tmp_path / name, value, "parquet")
        readers.append(type(dpselect.open_table(tmp_path / name, engine="spark")._engine._rows).__name__)
    assert set(readers) == {"FrameRows" if name == "b" else "LocalRows"}


def test_hidden_files_that_a_pattern_names_count(tmp_path):
    """Spark would skip them without a word."""
    for name in ("_a.parquet", "b.parquet"):
        test_sources.saved(tmp_path / name, test_sources.ARROW)
    for engine in ("duckdb", "spark"):
        assert counts(dpselect.open_table(f"{tmp_path}/*.parquet", engine=engine), "code", ["I10"]) == [4]


def test_no_setting_of_the_session_types_the_names_of_folders(configured, tmp_path):
    """Spark guesses types of them by default, and a value that it cannot read would then be missing or an error."""
    configured({"spark.sql.sources.partitionColumnTypeInference.enabled": "true"})
    configured({"spark.sql.sources.validatePartitionColumns": "true"})
    for value in ("1", "2", test_leaks.CANARY):
        test_folder_names.partition(tmp_path, value, "parquet")
    table = dpselect.open_table(tmp_path, engine="spark")
    assert table.columns["code"].type == "VARCHAR"
    assert counts(table, "code", [test_leaks.CANARY, "1"]) == [1, 1]
    assert counts(table, "code", [1, 2, 3]) == [1, 1, 0]


def test_an_error_of_spark_shows_no_name_of_a_folder(monkeypatch, tmp_path):
    path = test_folder_names.partition(tmp_path, test_leaks.CANARY, "parquet")
    description = ParquetFiles(files_of(str(tmp_path)))
    path.write_bytes(b"PAR1" + b"x" * 100 + b"PAR1")
    monkeypatch.setattr(spark_source, "schema", lambda *_: {})
    with pytest.raises(EngineFailure, match="Spark cannot open these Parquet files") as caught:
        spark_source._parquet_rows(description)
    assert test_leaks.CANARY not in carried(caught.value)


@pytest.fixture
def configured(session):
    """Sets options of the session for one test."""
    changed = {}

    def configure(options):
        for name, value in options.items():
            changed.setdefault(name, session.conf.get(name))
            session.conf.set(name, value)

    yield configure
    for name, value in changed.items():
        session.conf.set(name, value)


def saved_by_spark(session, path, micros):
    """A folder of timestamps of 96 bits, so many microseconds after 1970 in UTC."""
    numbers = session.createDataFrame([(number,) for number in micros], "m bigint")
    numbers.select(F.timestamp_micros("m").alias("t")).write.parquet(str(path))
    files = [pq.read_metadata(file) for file in path.glob("*.parquet")]
    assert {file.schema.column(0).physical_type for file in files} == {"INT96"}
    return path


def test_timestamps_of_96_bits_are_moments_in_utc(session, configured, tmp_path):
    """As Spark writes them, whatever the time zone of the session."""
    configured({"spark.sql.session.timeZone": "America/New_York", "spark.sql.parquet.outputTimestampType": "INT96"})
    summer, hour = NOON.replace(month=7, microsecond=1), datetime.timedelta(hours=1)
    moments = [NOON, summer, summer, datetime.datetime(1, 1, 1)]
    micros = [(moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1) for moment in moments]
    path = saved_by_spark(session, tmp_path / "t", [*micros, None])
    for engine in ("duckdb", "spark"):
        table = dpselect.open_table(path, engine=engine)
        assert table.columns["t"].type == "TIMESTAMP"
        assert counts(table, "t", [summer, moments[3], NOON + 5 * hour]) == [2, 1, 0]
        assert places(table, "t", NOON, NOON.replace(month=8), 3600) == [(0, False, 2), (182 * 24, True, 2)]
    assert table.mode("t", candidates=[NOON, summer], epsilon=100).value == summer


def test_no_timestamp_of_96_bits_is_an_error(session, configured, tmp_path):
    configured({"spark.sql.parquet.outputTimestampType": "INT96"})
    table = dpselect.open_table(saved_by_spark(session, tmp_path / "t", [2**63 - 1, -(2**63)]), engine="spark")
    assert places(table, "t", NOON, NOON.replace(day=2), 3600) == [(0, False, 1), (24, False, 1)]
    assert counts(table, "t", [NOON]) == [0]


def test_no_old_moment_or_day_is_an_error(configured, tmp_path):
    """Also if the session is told to fail at rows of old calendars."""
    reading = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead")
    configured(dict.fromkeys(reading, "EXCEPTION"))
    old = datetime.datetime(1700, 1, 1)
    rows = pa.table({"t": pa.array([old], pa.timestamp("ns")), "d": pa.array([datetime.date(1200, 1, 1)])})
    pq.write_table(rows, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    for engine in ("duckdb", "spark"):
        table = dpselect.open_table(tmp_path / "t.parquet", engine=engine)
        assert counts(table, "t", [old]) == [1]
        assert counts(table, "d", [datetime.date(1200, 1, 1)]) == [1]


def test_names_meet_no_name_of_ours(session):
    """Spark reads dots and backquotes in names, and does not tell upper case from lower."""
    frame = session.createDataFrame([(1, 5, 2), (2, 5, 3)], ["a.`b", "item", "PERSON"])
    table = dpselect.open_table(frame, engine="spark", person="a.`b")
    assert counts(table, "item", [5]) == [2]
    assert counts(table.group_by("PERSON", groups=[2, 3]), "item", [5]) == [[1], [1]]
    with pytest.raises(InvalidValue, match="two columns of the same name"):
        dpselect.open_table(session.createDataFrame([(1, 2)], ["a", "A"]), engine="spark")


def test_types_that_no_question_is_about_are_told(session):
    schema = (
        "a array<struct<Alice:int>>, b binary, m map<string,int>, v variant, i interval day, s struct<Bob:int>, x int"
    )
    table = dpselect.open_table(session.createDataFrame([], schema), engine="spark")
    assert [name for name, column in table.columns.items() if column.kind.name != "OTHER"] == ["x"]
    assert not {"Alice", "Bob"} & set(re.findall(r"\w+", repr(table.columns)))  # names of fields may be data
    with pytest.raises(InvalidType, match="column 'm' has the type map, about which no question"):
        table.mode("m", candidates=[1], epsilon=1)


def test_what_is_no_table_is_refused(session):
    with pytest.raises(InvalidType, match="source is a stream"):
        dpselect.open_table(session.readStream.format("rate").load(), engine="spark")
    with pytest.raises(InvalidType, match="source must be a table, got int"):
        dpselect.open_table(3, engine="spark")


@pytest.mark.parametrize("column", test_leaks.POISON)
def test_whatever_a_row_holds_is_read_as_duckdb_reads_it(column, session):
    """Counts and places, for every candidate and range that can be asked, among people and rows of all kinds."""
    rows = test_leaks.table_with(column, test_leaks.POISON[column])
    there, here = (in_writing(dpselect.open_table(rows, engine=engine)) for engine in ("spark", "duckdb"))

    class Recorded:
        """A table that is asked twice instead of answering."""

        def mode(self, name, *, candidates, epsilon, other=None):
            if isinstance(candidates, Domain):
                assert tally_of(there, name, domain=candidates) == tally_of(here, name, domain=candidates)
            elif other is None:  # `test_other` compares what is not listed
                assert counts(there, name, candidates) == counts(here, name, candidates)

        def values(self, name, *, epsilon, delta):
            assert tally_of(there, name) == tally_of(here, name)

        def top_k(self, name, k, *, epsilon, delta, max_values):
            """What is kept of a person is random."""

        def quantile(self, name, level, *, lower, upper, step=1, epsilon):
            assert places(there, name, lower, upper, step) == places(here, name, lower, upper, step)

    for ask in test_leaks.questions(column):
        ask(Recorded())


def test_text_that_is_no_utf_8_changes_no_outcome(session):
    frame = session.createDataFrame([(b"a",), (b"\xff",), (b"\xed\xa0\x80",)], "x binary")
    text = frame.select(frame.x.cast("string").alias("x"), frame.x.cast("string").alias("who"))
    table = in_writing(dpselect.open_table(text, engine="spark", person="who"))
    assert counts(table, "x", ["a", "\ufffd"]) == [1, 0]
    assert counts(table, "x", [1, 2]) == [0, 0]
    assert table.mode("who", candidates=["a", "b"], epsilon=100).value == "a"


def test_a_failure_says_nothing_of_the_rows(session, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x\ncanary\n", encoding="utf-8")
    table = dpselect.open_table(path, engine="spark")
    path.unlink()
    with pytest.raises(EngineFailure, match=r"^the rows could not be counted: check") as caught:
        table.mode("x", candidates=["a"], epsilon=1)
    assert caught.value.__context__ is None


# Candidates in a DataFrame stay in Spark, and count as those of a list do.


@pytest.mark.parametrize(
    ("rows", "candidates", "absent"),
    [
        (pa.array(["a", "b", "a"]), ["a", "b"], "c"),
        (pa.array([2**62, 7, 2**62]), [2**62, 7], -1),
        (pa.array([0.1, -0.0, 0.1], pa.float32()), [0.1, 0.0], 0.25),
        (pa.array([0.1, 5e-324, 0.1]), [0.1, 5e-324], 1e300),
        (
            pa.array([Decimal("1.50"), Decimal("2.00")] * 2)[:3],
            [Decimal("1.5000"), Decimal("2.0000")],
            Decimal("1.5001"),
        ),
        (pa.array([DAY, DAY.replace(day=2), DAY]), [DAY, DAY.replace(day=2)], DAY.replace(day=3)),
        (pa.array([True, False, True]), [True, False], None),
        (pa.array([NOON, NOON.replace(day=2), NOON], pa.timestamp("us", "UTC")), [NOON, NOON.replace(day=2)], None),
    ],
    ids=lambda x: str(x.type) if isinstance(x, pa.Array) else "",
)
def test_candidates_of_a_frame_are_compared_in_spark(rows, candidates, absent, session):
    table = dpselect.open_table(pa.table({"x": rows}), engine="spark")
    if table.columns["x"].kind.name == "ZONED":
        candidates = [moment.replace(tzinfo=datetime.UTC) for moment in candidates]
    listed = candidates if absent is None else [*candidates, absent]
    frame = session.createDataFrame([(value,) for value in listed], ["candidate"])
    found = table.columns["x"]
    held = table._engine.candidates(frame, found)
    counted_there = {
        held.value(row["label"]): row["individuals"]
        for row in table._engine.scores(found, held, table._individuals).toArrow().to_pylist()
    }
    assert counted_there == dict(zip(listed, [2, 1, 0], strict=False))
    assert table.mode("x", candidates=frame, epsilon=100).value == candidates[0]


def test_the_digest_of_a_frame_is_that_of_its_set(session, tmp_path):
    table = opened({"x": [1, 2]}, "spark")
    column = table.columns["x"]
    orders = [session.createDataFrame([(v,) for v in order], "v bigint") for order in ([1, 2, 3], [3, 1, 2], [1, 2, 4])]
    first, same, other = (table._engine.candidates(frame, column) for frame in orders)
    assert first.sha256 == same.sha256 != other.sha256
    assert (len(first), repr(first)) == (3, "FrameValues(kind=<Kind.INTEGER: 'whole numbers'>, number=3)")


@pytest.mark.parametrize(
    ("candidates", "schema", "error", "words"),
    [
        ([], "x bigint", InvalidValue, "at least one value"),
        ([(1,), (1,)], "x bigint", InvalidValue, "different values"),
        ([(1,), (None,)], "x bigint", InvalidValue, "drop missing ones"),
        ([("a",)], "x string", InvalidType, "candidates are text, but the column 'x' holds whole numbers"),
        ([(1, 2)], "x bigint, w bigint", InvalidValue, "a DataFrame of one column, got 2"),
        *(([(value,)], "f double", InvalidValue, "finite numbers") for value in (math.nan, math.inf, -math.inf)),
    ],
)
def test_bad_frames_of_candidates_are_refused(candidates, schema, error, words, session):
    with pytest.raises(error, match=words):
        opened({"x": [1, 2], "f": [0.5, 1.5]}, "spark").mode(
            schema[0], candidates=session.createDataFrame(candidates, schema), epsilon=1
        )


LONG = ["é", "éé", "aé", "ab", "abc", "a", "", "a" * 99, "é" * 99, "ab\0", "\N{GRINNING FACE}"]


@pytest.mark.parametrize("candidates", [["a", "é"], ["a", "b"], ["", "z"], ["ab", "éé"], ["ab", "q"]])
@pytest.mark.parametrize("how", [{}, {"person": "who"}])
@pytest.mark.parametrize("other", [None, "else"])
def test_texts_longer_than_every_candidate_are_none_of_them(candidates, how, other):
    """They are cut before they are counted, and what is left equals no candidate either."""
    table = opened({"x": LONG * 2, "who": list(range(2 * len(LONG)))}, "spark", **how)
    equal = [2 * LONG.count(candidate) for candidate in candidates]
    rest = [] if other is None else [2 * len(LONG) - sum(equal)]
    assert counts(table, "x", candidates, other=other) == equal + rest


@pytest.mark.parametrize("size", [5, 6 * 10**7])
def test_one_long_text_cannot_make_a_question_fail(size, session, configured):
    """With the long text or without, there is an answer: Spark once ran out of memory when it counted the text."""
    # The settings that Spark has by default, which the other tests turn off because they are slow on small tables.
    configured({"spark.sql.adaptive.enabled": "true", "spark.sql.codegen.wholeStage": "true"})
    configured({"spark.sql.codegen.factoryMode": "FALLBACK"})
    rows = session.createDataFrame([("a",)] * 300 + [("b",)], "v string")
    rows = rows.union(session.sql(f"SELECT repeat('z', {size}) AS v"))
    table = dpselect.open_table(rows, engine="spark")
    assert table.mode("v", candidates=["a", "b", "c"], epsilon=1).value == "a"
    frame = session.createDataFrame([("a",), ("b",)], "candidate string")
    assert table.mode("v", candidates=frame, epsilon=1).value == "a"


# The ledger is the same.


def test_the_ledger_reads_as_with_duckdb(tmp_path):
    rows = {"who": [1, 2, 3], "x": [5, 5, 7], "g": ["p", "q", "p"]}
    entries = {}
    for engine in ("duckdb", "spark"):
        table = opened(rows, engine, person="who", ledger=tmp_path / engine, budget=10)
        first = table.mode("x", candidates=[5, 7], epsilon=1, request_id="r")
        assert table.mode("x", candidates=[5, 7], epsilon=1, request_id="r") == first
        table.group_by("g", groups=["p", "q"]).quantile("x", "0.3", lower=0, upper=9, epsilon=2)
        entries[engine] = [(entry.epsilon, entry.what) for entry in dpselect.Ledger(tmp_path / engine).entries()]
    assert entries["spark"] == entries["duckdb"]


def test_the_command_line_asks_spark(tmp_path, capsys):
    pq.write_table(pa.table({"n": [4] * 301}), tmp_path / "t.parquet")
    words = ["median", str(tmp_path / "t.parquet"), "--column", "n", "--lower", "0", "--upper", "9", "--epsilon", "1"]
    with pytest.raises(SystemExit) as left:
        app([*words, "--json", "--engine", "spark"])
    assert not left.value.code
    assert json.loads(capsys.readouterr().out)["value"] == 4


# What must be installed.

WITHOUT_JAVA = """
import dpselect, pyarrow
try:
    dpselect.open_table(pyarrow.table({"x": [1]}), engine="spark")
except dpselect.errors.MissingExtra as error:
    print(error)
"""


def test_without_java_the_error_says_what_to_install(tmp_path):
    environment = {"PATH": "/nowhere", "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JAVA], env=environment, capture_output=True, text=True, check=True
    )
    assert "Java 17 or newer: install it" in done.stdout


def test_without_pyspark_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtra, match=r" -m pip install pandas pyarrow pyspark$"):
        importlib.reload(dpselect.tables.spark)


def test_the_workers_are_looked_at_once(session, monkeypatch):
    monkeypatch.setattr(spark_source, "_checked", set())
    frame, context = session.range(3), session.sparkContext
    jobs = []
    for group in ("first", "second"):
        context.setJobGroup(group, "opens a table")
        dpselect.open_table(frame, engine="spark")
        jobs.append(len(context.statusTracker().getJobIdsForGroup(group)))
    context.setLocalProperty("spark.jobGroup.id", None)
    assert jobs == [1, 0]


# Files that change.


def save_csv(path, names, rows):
    path.write_text("\n".join([",".join(names), *(f"1,{row}" for row in rows)]))


def save_parquet(path, names, rows):
    pq.write_table(pa.table([[1] * len(rows), rows], names), path)


CHANGES = {
    "another type": ("t.parquet", save_parquet, ["who", "x"], ["1"]),
    "another type, and a text that is no number": ("t.parquet", save_parquet, ["who", "x"], ["abc"]),
    "other names": ("t.parquet", save_parquet, ["who", "y"], [1]),
    "another header": ("t.csv", save_csv, ["x", "who"], [1]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_files_are_refused_before_a_charge(change, tmp_path):
    name, save, names, rows = CHANGES[change]
    save(tmp_path / name, ["who", "x"], [1, 1])
    ledger = tmp_path / "ledger"
    table = dpselect.open_table(tmp_path / name, engine="spark", person="who", ledger=ledger, budget=1)
    save(tmp_path / name, names, rows)
    with pytest.raises(InvalidValue, match="source has changed since it was opened"):
        table.mode("x", candidates=[1, 2], epsilon="0.25")
    assert dpselect.Ledger(ledger).spent == 0
    save(tmp_path / name, ["who", "x"], [1, 2])
    table.mode("x", candidates=[1, 2], epsilon="0.25")
    assert dpselect.Ledger(ledger).spent > 0
