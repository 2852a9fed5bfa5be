"""A request that is repeated gets its answer on the same data only; the digest that decides it stays secret."""

import json
import pickle
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from dpselect import Ledger, open_table
from dpselect.cli import main
from dpselect.errors import EngineFailure, RequestConflict, UnitMismatch
from dpselect.tables.duckdb.engine import DuckDBEngine
from tests import spark

SLOW_ON_SPARK = [*spark.MARKS, pytest.mark.slow]
ROWS = {
    "who": [1, 1, 2, 3, 4, 5],
    "code": ["a", "b", "a", "c", "a", None],
    "county": ["n", "s", "s", "n", "s", "n"],
    "cost": [1, 2, 3, 4, 5, 6],
    "unread": [0, 0, 0, 0, 0, 0],
}
SCHEMA = pa.schema(
    {"who": pa.int64(), "code": pa.string(), "county": pa.string(), "cost": pa.int64(), "unread": pa.int64()}
)
CODES = ["a", "b", "c"]


def relation(table, _folder):
    connection = duckdb.connect()
    connection.register("rows", table)
    return connection.sql("SELECT * FROM rows")


def csv_file(table, folder):
    pacsv.write_csv(table, folder / "rows.csv")
    return folder / "rows.csv"


def parquet_file(table, folder):
    pq.write_table(table, folder / "rows.parquet")
    return folder / "rows.parquet"


def parquet_folder(table, folder):
    half = table.num_rows // 2
    (folder / "halves").mkdir(exist_ok=True)
    pq.write_table(table.slice(0, half), folder / "halves" / "1.parquet")
    pq.write_table(table.slice(half), folder / "halves" / "2.parquet")
    return folder / "halves"


SOURCES = {
    "Arrow": lambda table, _: table,
    "pandas": lambda table, _: table.to_pandas(),
    "pandas objects": lambda table, _: table.to_pandas().astype(object),
    "polars": lambda table, _: pl.from_arrow(table),
    "relation": relation,
    "CSV": csv_file,
    "Parquet": parquet_file,
    "Parquet folder": parquet_folder,
}
FILES = ("CSV", "Parquet", "Parquet folder")
QUESTIONS = {
    "mode": lambda table, **ask: table.mode("code", candidates=CODES, **ask),
    "top_k": lambda table, **ask: table.top_k("code", 2, candidates=CODES, **ask),
    "median": lambda table, **ask: table.median("cost", lower=0, upper=9, **ask),
    "groups": lambda table, **ask: table.group_by("county", groups=["n", "s"]).mode("code", candidates=CODES, **ask),
}
READ = {
    "mode": ("who", "code"),
    "top_k": ("who", "code"),
    "median": ("who", "cost"),
    "groups": ("who", "code", "county"),
}


def changed(name):
    """The rows with another value of one column in one row."""
    values = list(ROWS[name])
    values[3] = {"who": 9, "code": "b", "county": "s", "cost": 7, "unread": 1}[name]
    return pa.table({**ROWS, name: values}, SCHEMA)


SAME = pa.table(ROWS, SCHEMA)
OTHERS = {
    "a row more": pa.concat_tables([SAME, SAME.slice(2, 1)]),
    "a row less": SAME.slice(0, 5),
    "a row instead of another": SAME.take([0, 1, 2, 3, 4, 4]),
    "all rows twice": pa.concat_tables([SAME, SAME]),
    "no rows": SAME.slice(0, 0),
}


def ask(source, question, path, **options):
    """The answer to a question with the request id of all tests."""
    table = open_table(source, person="who", ledger=path, budget="1", **options)
    return QUESTIONS[question](table, epsilon="0.001", request_id="r")


def assert_conflict(source, question, path, **options):
    with pytest.raises(RequestConflict, match="request_id was used before on other data, as entry 1: give a new one"):
        ask(source, question, path, **options)
    assert Ledger(path).spent == Fraction(1, 1000)


@pytest.mark.parametrize(
    ("kind", "question"), [*((kind, "groups") for kind in SOURCES), *(("Arrow", question) for question in QUESTIONS)]
)
def test_a_request_on_other_data_is_a_conflict(kind, question, path, tmp_path):
    make = SOURCES[kind]
    first = ask(make(SAME, tmp_path), question, path)
    others = {**OTHERS, **{name: changed(name) for name in READ[question]}}
    for other in others.values():
        assert_conflict(make(other, tmp_path), question, path)
    assert ask(make(SAME, tmp_path), question, path) == first
    unread = [name for name in ROWS if name not in READ[question]]
    for name in unread:  # of a file, every byte is read
        if kind in FILES:
            assert_conflict(make(changed(name), tmp_path), question, path)
        else:
            assert ask(make(changed(name), tmp_path), question, path) == first
    assert Ledger(path).spent == Fraction(1, 1000)


def test_an_answer_stored_by_hand_is_not_given_to_a_table(path, tmp_path):
    """It may be another table's: nothing is known of its data."""
    ask(SAME, "mode", tmp_path / "other")
    [entry] = Ledger(tmp_path / "other").entries()
    ledger = Ledger(path, budget="1")
    ledger.store_answer(ledger.charge(entry.charge, request_id="r").id, '"a"')
    with pytest.raises(RequestConflict, match="the answer of entry 1 was stored by hand, without a digest of its data"):
        ask(SAME, "mode", path)
    assert ledger.charge(entry.charge, request_id="r").answer == '"a"'
    assert ledger.spent == Fraction(1, 1000)


@pytest.mark.parametrize("kind", [kind for kind in SOURCES if kind not in FILES])
def test_the_order_of_rows_does_not_matter(kind, path, tmp_path):
    question = "groups"
    first = ask(SOURCES[kind](SAME, tmp_path), question, path)
    order = list(range(6))
    for seed in range(3):
        random.Random(seed).shuffle(order)
        assert ask(SOURCES[kind](SAME.take(order), tmp_path), question, path) == first
    chunks = pa.concat_tables([SAME.slice(4), SAME.slice(0, 0), SAME.slice(0, 3), SAME.slice(3, 1)])
    assert ask(SOURCES[kind](chunks, tmp_path), question, path) == first


def test_a_file_is_known_by_its_bytes_wherever_it_is(path, tmp_path):
    first = ask(parquet_folder(SAME, tmp_path), "mode", path)
    (tmp_path / "halves" / "1.parquet").rename(tmp_path / "halves" / "zz.parquet")
    (tmp_path / "halves").rename(tmp_path / "moved")
    assert ask(tmp_path / "moved", "mode", path) == first


def test_threads_and_row_groups_do_not_matter():
    many = pa.table({"who": list(range(50_000)), "code": [str(i % 97) for i in range(50_000)]})
    digests = set()
    for threads in (1, 2, 7):
        for source in (many, pa.Table.from_batches(many.to_batches(max_chunksize=999)[::-1]), relation(many, None)):
            engine = DuckDBEngine(source)
            engine._connection.execute(f"SET threads = {threads}")
            digests.add(engine.content(list(engine.columns.values())))
    assert len(digests) == 1


def test_a_retry_in_another_process(path, tmp_path):
    file = csv_file(SAME, tmp_path)
    options = "--column code --candidates a,b,c --person who --epsilon 0.001 --budget 1 --request-id r --json"
    command = [sys.executable, "-m", "dpselect", "mode", str(file), *options.split(), "--ledger", str(path)]
    first = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    repeated = first | {"repeated": True}
    assert json.loads(subprocess.run(command, capture_output=True, check=True).stdout) == repeated
    assert ask(file, "mode", path).to_dict() == repeated
    csv_file(changed("unread"), tmp_path)
    refused = subprocess.run(command, capture_output=True, check=False, text=True)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--request-id was used before on other data" in refused.stderr
    assert Ledger(path).spent == Fraction(1, 1000)


def test_epsilons_nearer_than_the_rounding_are_different_requests(path):
    """Both cost 10^-50; but the answer would come with a guarantee that it does not have."""
    table = open_table(SAME, person="who", ledger=path, budget="1")
    table.mode("code", candidates=CODES, epsilon="2e-60", request_id="r")
    with pytest.raises(RequestConflict):
        table.mode("code", candidates=CODES, epsilon="1e-60", request_id="r")
    assert table.mode("code", candidates=CODES, epsilon="2e-60", request_id="r").epsilon == Fraction(2, 10**60)
    assert Ledger(path).spent == Fraction(1, 10**50)


# When the digest is made.


def test_the_digest_is_made_for_requests_only_and_before_the_charge(path, monkeypatch):
    seen = []

    def failing(self, columns):
        seen.append((Ledger(path).spent, [column.name for column in columns]))
        raise EngineFailure("no")

    monkeypatch.setattr(DuckDBEngine, "content", failing)
    table = open_table(SAME, person="who", ledger=path, budget="1")
    QUESTIONS["groups"](table, epsilon="0.1")
    assert seen == []
    with pytest.raises(EngineFailure):
        QUESTIONS["groups"](table, epsilon="0.1", request_id="r")
    assert seen == [(Fraction(1, 10), ["code", "who", "county"])]
    assert Ledger(path).spent == Fraction(1, 10)


def test_a_file_that_is_gone_fails_without_its_message(tmp_path, path):
    file = csv_file(SAME, tmp_path)
    table = open_table(file, person="who", ledger=path, budget="1")
    file.unlink()
    with pytest.raises(EngineFailure) as raised:
        table.mode("code", candidates=CODES, epsilon="0.1", request_id="r")
    assert raised.value.__context__ is None
    assert Ledger(path).spent == 0


# The digest is secret.


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_digest_is_nowhere_to_be_seen(question, path, run_cli):
    answer = ask(SAME, question, path)
    ledger = Ledger(path)
    [entry] = ledger.entries()
    engine = DuckDBEngine(SAME)
    digest = engine.content([engine.columns[name] for name in ("code", "who")])
    with closing(sqlite3.connect(path)) as connection:
        [(stored,)] = connection.execute("SELECT answer FROM answers").fetchall()
    content = json.loads(stored)
    assert content["answer"] == entry.answer
    secrets = [digest, content["salt"], content["content"]]
    assert all(len(secret) >= 32 for secret in secrets)
    assert digest not in stored  # only a salted hash of it is stored
    again = ask(SAME, question, path)
    shown = [repr(one) + str(one) + str(vars(one)) for one in (answer, again, entry, ledger.receipt(), ledger)]
    shown += [str(pickle.dumps(one)) for one in (answer, entry)] + [json.dumps(answer.to_dict()), str(entry.to_dict())]
    for arguments in (("show",), ("show", "--json"), ("export",), ("export", "--format", "csv"), ("verify", "--json")):
        shown.append(run_cli("ledger", arguments[0], path, *arguments[1:]))
    assert not [secret for secret in secrets for text in shown if secret in text]


@pytest.fixture
def run_cli(capsys, monkeypatch):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpselect", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_info:
            main()
        assert exit_info.value.code in (0, None)
        return capsys.readouterr().out

    return run


def test_equal_data_have_unequal_hashes(tmp_path):
    """The salt: two ledgers do not show that their tables are the same."""
    hashes = set()
    for name in ("a", "b"):
        ask(SAME, "mode", tmp_path / name)
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            [(stored,)] = connection.execute("SELECT answer FROM answers").fetchall()
        hashes.add(json.loads(stored)["content"])
    assert len(hashes) == 2


# A ledger of one privacy unit, or of one named data set, refuses tables of another.

UNITS = [{"person": person, "neighbours": kind} for person in (None, "who") for kind in ("add-remove", "replace")]


@pytest.mark.parametrize("ours", UNITS)
@pytest.mark.parametrize("theirs", UNITS)
@pytest.mark.parametrize("given", ["path", "ledger", "made by hand"])
def test_a_table_of_another_unit_is_refused(ours, theirs, given, path):
    if given == "made by hand":
        Ledger(path, budget="1")
    first = open_table(SAME, ledger=path, budget="1", **ours)
    waiting = open_table(SAME, ledger=path, **theirs) if given == "made by hand" else None  # before the first question
    first.mode("code", candidates=CODES, epsilon="0.1")
    ledger = Ledger(path) if given == "ledger" else path
    if ours == theirs:
        open_table(SAME, ledger=ledger, **theirs).mode("code", candidates=CODES, epsilon="0.1")
        assert Ledger(path).spent == Fraction(1, 5)
        return
    for budget in (None, "1"):
        with pytest.raises(UnitMismatch, match="costs of different units do not add up; nothing was spent"):
            open_table(SAME, ledger=ledger, budget=budget, **theirs)
    if waiting is not None:
        with pytest.raises(UnitMismatch):
            waiting.mode("code", candidates=CODES, epsilon="0.1", request_id="r")
    assert Ledger(path).spent == Fraction(1, 10)


def test_groups_have_the_unit_of_their_table(path):
    table = open_table(SAME, person="who", ledger=path, budget="1")
    QUESTIONS["groups"](table, epsilon="0.1")
    QUESTIONS["median"](table, epsilon="0.1")
    assert [entry.charge.unit for entry in Ledger(path).entries()] == [Ledger(path).unit] * 2


def test_a_named_ledger_takes_tables_of_its_name_only(path):
    table = open_table(SAME, ledger=path, budget="1", dataset="visits 2024")
    table.mode("code", candidates=CODES, epsilon="0.1")
    assert Ledger(path).dataset == "visits 2024"
    for ledger in (path, Ledger(path)):
        open_table(SAME, ledger=ledger, dataset="visits 2024")
        for other in (None, "visits 2025"):
            with pytest.raises(UnitMismatch, match="belongs to the data set 'visits 2024'"):
                open_table(SAME, ledger=ledger, dataset=other)
    assert Ledger(path).spent == Fraction(1, 10)


# Spark.


@pytest.mark.parametrize("kind", ["DataFrame", "Arrow", "CSV", "Parquet"])
@pytest.mark.parametrize("question", ["median", "groups"])
class TestOnSpark:
    pytestmark = SLOW_ON_SPARK

    def make(self, kind, table, folder):
        if kind == "DataFrame":
            return spark.session().createDataFrame(
                table.to_pylist(), "who long, code string, county string, cost long, unread long"
            )
        return SOURCES[kind](table, folder)

    def test_a_request_on_other_data_is_a_conflict(self, kind, question, path, tmp_path):
        spark.session()
        first = ask(self.make(kind, SAME, tmp_path), question, path, engine="spark")
        for other in (OTHERS["a row instead of another"], OTHERS["no rows"], changed(READ[question][-1])):
            assert_conflict(self.make(kind, other, tmp_path), question, path, engine="spark")
        same = SAME if kind in FILES else SAME.take([5, 3, 1, 0, 2, 4])
        assert ask(self.make(kind, same, tmp_path), question, path, engine="spark") == first


class TestOfSparkDataFrames:
    pytestmark = SLOW_ON_SPARK

    def test_digests_differ_for_different_values_of_every_type(self):
        session = spark.session()
        values = [
            *("CAST(NULL AS STRING)", "''", "'-'", "'a'", "CAST(X'ff80' AS STRING)"),
            *("1Y", "2S", "3", "4L", "true", "12.50BD", "1.5D", "CAST('nan' AS DOUBLE)", "CAST('inf' AS FLOAT)"),
            *("DATE '2024-01-01'", "TIMESTAMP_NTZ '2024-01-01 00:00:00'"),
            *("timestamp_micros(1704067200000000)", "timestamp_micros(9223372036854775807)"),
        ]
        digests = []
        for zone in ("UTC", "Asia/Tokyo"):
            session.conf.set("spark.sql.session.timeZone", zone)
            found = []
            for value in values:
                frame = session.sql(f"SELECT {value} AS x UNION ALL SELECT {value} AS x")
                engine = open_table(frame, engine="spark")._engine
                found.append(engine.content(list(engine.columns.values())))
            digests.append(found)
        session.conf.set("spark.sql.session.timeZone", "UTC")
        assert digests[0] == digests[1]
        assert len(set(digests[0])) == len(values)
