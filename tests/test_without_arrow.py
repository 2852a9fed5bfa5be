"""The base installation has neither PyArrow nor pandas nor polars: what works without them, and what the others say."""

import csv
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.without_arrow import MOMENT, PEOPLE, VALUES

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One table in every format."""
    folder = tmp_path_factory.mktemp("tables")
    rows = [{"who": who, **VALUES} for who in range(PEOPLE)]
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    columns = {name: [row[name] for row in rows] for name in rows[0] if name != "huge"}
    pq.write_table(pa.table(columns), folder / "t.parquet")
    frame = pa.table(columns)
    with duckdb.connect(folder / "t.duckdb") as connection:
        connection.register("frame", frame)
        connection.execute(f"CREATE TABLE t AS SELECT *, CAST({VALUES['huge']} AS HUGEINT) AS huge FROM frame")
    with closing(sqlite3.connect(folder / "t.db")) as connection:
        connection.execute("CREATE TABLE t (x)")
    pq.write_table(pa.table({"t": pa.array([MOMENT], pa.timestamp("ms"))}), folder / "milli.parquet", version="2.6")
    return folder


def run(what, folder):
    """Run the program in a new interpreter, and return what it prints."""
    command = [sys.executable, "-m", "tests.without_arrow", what, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "s3cr3t" not in done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_every_question_is_answered(folder):
    assert run("complete", folder) == []


def test_hints_name_the_interpreter_and_the_package(folder):
    frame, sqlite, postgresql, spark, milli, summary, milli_command, sqlite_command = run("short", folder)
    pip = f"{shlex.quote(sys.executable)} -m pip install"
    install = f"{pip} pyarrow"
    assert frame == f"data frames and Arrow tables need PyArrow: {install}"
    assert sqlite == f"SQLite needs its ADBC driver and PyArrow: {pip} adbc-driver-sqlite pyarrow"
    assert postgresql == f"PostgreSQL needs its ADBC driver and PyArrow: {pip} adbc-driver-postgresql pyarrow"
    assert spark.endswith(" -m pip install pandas pyarrow pyspark")
    assert milli == f"column 't' has timestamps that only PyArrow can read: {install}"
    assert summary == f"to_arrow needs PyArrow: {install}"
    assert milli_command == f"error: {milli}"
    assert sqlite_command == f"error: {sqlite}"
