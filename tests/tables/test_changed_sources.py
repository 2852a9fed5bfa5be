"""Sources whose columns change between opening and asking: one error for all rows, before anything is charged."""

import datetime
import os
import sqlite3
from contextlib import closing
from decimal import Decimal
from fractions import Fraction

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpselect
from dpselect import Ledger
from dpselect.errors import EngineFailure, InvalidValue
from dpselect.tables import files
from dpselect.tables.duckdb import databases
from dpselect.tables.duckdb import files as duckdb_files
from tests.carried import carried

CHANGED = r"^source has changed since it was opened: its columns or their types differ\. Open it again$"
DAY, MOMENT = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30)
ZONED = MOMENT.replace(tzinfo=datetime.UTC)
# Each type of Arrow and of DuckDB, with a value.
ARROW = {
    "boolean": (pa.bool_(), True),
    "int32": (pa.int32(), 7),
    "int64": (pa.int64(), 7),
    "uint64": (pa.uint64(), 7),
    "float": (pa.float32(), 7.5),
    "double": (pa.float64(), 1e300),
    "text": (pa.string(), "abc"),
    "decimal": (pa.decimal128(9, 2), Decimal("7.25")),
    "more digits": (pa.decimal128(9, 3), Decimal("7.125")),
    "date": (pa.date32(), DAY),
    "microseconds": (pa.timestamp("us"), MOMENT),
    "milliseconds": (pa.timestamp("ms"), MOMENT),  # the same type in DuckDB, which fails on some values
    "zoned": (pa.timestamp("us", "UTC"), ZONED),
    "bytes": (pa.binary(), b"\xff"),
}
DUCKDB = {
    "BOOLEAN": "true",
    "INTEGER": "7",
    "BIGINT": "7",
    "HUGEINT": "7",
    "DOUBLE": "1e300",
    "VARCHAR": "'abc'",
    "DECIMAL(9,2)": "7.25",
    "DATE": "DATE '2024-02-29'",
    "TIMESTAMP": "TIMESTAMP '2024-02-29 12:30:00'",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2024-02-29 12:30:00+00'",
    "UUID": "uuid()",
}


def same_error(table, asked, changes):
    """Every change makes the question fail with the same words."""
    for name, change in changes.items():
        change()
        with pytest.raises(InvalidValue, match=CHANGED) as caught:
            asked(table)
        assert caught.value.__context__ is None, name


def write_parquet(folder, kind, rows):
    type_, value = ARROW[kind]
    pq.write_table(pa.table({"who": [1] * rows, "x": pa.array([value] * rows, type_)}), folder / "t.parquet")


def write_duckdb(folder, type_, rows):
    with closing(duckdb.connect(str(folder / "t.duckdb"))) as connection:
        value = f"CAST({DUCKDB[type_]} AS {type_})"
        connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT 1 AS who, {value} AS x FROM range({rows})")


RETYPED = {"t.parquet": (write_parquet, ARROW, {}), "t.duckdb": (write_duckdb, DUCKDB, {"table": "t"})}
QUICK = ("int64", "double", "text", "microseconds", "BIGINT", "VARCHAR", "TIMESTAMP")  # others are for the slow suite
OLD = [
    pytest.param(name, kind, marks=[] if kind in QUICK else [pytest.mark.slow])
    for name, (_, kinds, _) in RETYPED.items()
    for kind in kinds
    if kind not in ("bytes", "UUID")
]


@pytest.mark.parametrize(("name", "old"), OLD)
def test_a_column_that_becomes_another_type(name, old, tmp_path):
    """With and without a row; then with other rows of the type that it had."""
    write, kinds, how = RETYPED[name]
    ledger = Ledger(tmp_path / "ledger", dpselect.approximate(3, 1e-6))

    def asked(table):
        return table.values("x", epsilon="0.25", delta=1e-9)

    write(tmp_path, old, 1)
    table = dpselect.open_table(tmp_path / name, person="who", ledger=ledger, **how)
    for kind in kinds.keys() - {old}:
        same_error(table, asked, {rows: lambda kind=kind, rows=rows: write(tmp_path, kind, rows) for rows in (0, 1)})
    assert ledger.entries() == []
    write(tmp_path, old, 5)
    asked(table)
    assert len(ledger.entries()) == 1


# Each change of the columns who, x, y, which are all integers.
COLUMNS = ["who", "x", "y"]
NAMES = {
    "removed": ["who", "y"],
    "the person is removed": ["x", "y"],
    "another one is removed": ["who", "x"],
    "renamed": ["who", "z", "y"],
    "exchanged": ["who", "y", "x"],
    "moved": ["x", "who", "y"],
    "added": ["who", "x", "y", "z"],
    "another case": ["who", "X", "y"],
}


def save_parquet(folder, names):
    pq.write_table(pa.table({name: [1] for name in names}), folder / "t.parquet")


def save_folder(folder, names):
    """The first of two files keeps its columns."""
    (folder / "year=1").mkdir(parents=True, exist_ok=True)
    (folder / "year=2").mkdir(exist_ok=True)
    pq.write_table(pa.table({name: [1] for name in COLUMNS}), folder / "year=1" / "t.parquet")
    pq.write_table(pa.table({name: [1] for name in names}), folder / "year=2" / "t.parquet")


def save_duckdb(folder, names):
    with closing(duckdb.connect(str(folder / "t.duckdb"))) as connection:
        connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT {', '.join(f'1 AS {name}' for name in names)}")


def save_sqlite(folder, names):
    with closing(sqlite3.connect(folder / "t.db")) as connection:
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute(f"CREATE TABLE t ({', '.join(names)})")
        connection.execute(f"INSERT INTO t VALUES ({', '.join('1' for _ in names)})")
        connection.commit()


SAVED = {
    "Parquet": (save_parquet, "t.parquet", {}),
    "a folder": (save_folder, "", {}),
    "DuckDB": (save_duckdb, "t.duckdb", {"table": "t"}),
    "SQLite": (save_sqlite, "t.db", {"table": "t"}),
    "a query of SQLite": (save_sqlite, "t.db", {"query": "SELECT * FROM t"}),
}


@pytest.mark.parametrize("kind", SAVED)
def test_columns_that_are_removed_renamed_or_reordered(kind, tmp_path):
    save, name, how = SAVED[kind]
    (tmp_path / "data").mkdir()
    save(tmp_path / "data", COLUMNS)
    ledger = tmp_path / "ledger"
    table = dpselect.open_table(tmp_path / "data" / name, person="who", ledger=ledger, budget=1, **how)

    def asked(table):
        return table.mode("x", candidates=[1, 2], epsilon="0.25")

    changes = {change: lambda names=names: save(tmp_path / "data", names) for change, names in NAMES.items()}
    same_error(table, asked, changes)
    assert Ledger(ledger).spent == 0
    save(tmp_path / "data", COLUMNS)
    asked(table)
    assert Ledger(ledger).spent == Fraction(1, 4)


def test_other_declared_types_of_sqlite_change_nothing(tmp_path):
    """All columns are text, whatever is declared."""
    save_sqlite(tmp_path, COLUMNS)
    table = dpselect.open_table(tmp_path / "t.db", table="t")
    for type_ in ("TEXT", "REAL", "INTEGER", "BLOB"):
        save_sqlite(tmp_path, [f"{name} {type_}" for name in COLUMNS])
        assert table.mode("x", candidates=[1], epsilon=1).value == 1


@pytest.mark.parametrize("kind", [*SAVED, "CSV"])
def test_a_source_that_is_gone_costs_nothing(kind, tmp_path):
    save, name, how = SAVED.get(kind, (None, "t.csv", {}))
    (tmp_path / "data").mkdir()
    save(tmp_path / "data", COLUMNS) if save else (tmp_path / "data" / name).write_text("who,x\n1,1\n")
    table = dpselect.open_table(tmp_path / "data" / name, ledger=tmp_path / "ledger", budget=1, **how)
    os.rename(tmp_path / "data", tmp_path / "elsewhere")
    with pytest.raises(EngineFailure, match="could not be counted"):
        table.mode("x", candidates=[1], epsilon=1)
    assert Ledger(tmp_path / "ledger").spent == 0


@pytest.mark.parametrize("wrong", [b"", b"PAR1", b"who,x\n1,1\n", b"PAR1 and then something else"])
def test_a_parquet_file_that_is_something_else_now(wrong, tmp_path):
    save_parquet(tmp_path, COLUMNS)
    table = dpselect.open_table(tmp_path / "t.parquet", ledger=tmp_path / "ledger", budget=1)
    (tmp_path / "t.parquet").write_bytes(wrong)
    with pytest.raises(InvalidValue, match=CHANGED):
        table.mode("x", candidates=[1], epsilon=1)
    assert Ledger(tmp_path / "ledger").spent == 0


# Written again after the question was charged. The canary is a text that cannot be read as a number.

CANARY = "s3cr3t"
ODD = {"numbers": ["1", "1"], "no numbers": ["1", CANARY]}


def rewritten_parquet(folder, rows):
    pq.write_table(pa.table({"who": range(len(rows)), "x": rows, "y": rows}), folder / "t.parquet")


def rewritten_duckdb(folder, rows):
    with closing(duckdb.connect(str(folder / "t.duckdb"))) as connection:
        connection.execute("CREATE OR REPLACE TABLE t AS SELECT 1 AS who, unnest($rows) AS x", {"rows": rows})


def rewritten_sqlite(folder, rows):
    save_sqlite(folder, ["who", "z", "y"])
    with closing(sqlite3.connect(folder / "t.db")) as connection:
        connection.executemany("INSERT INTO t VALUES (1, ?, 1)", [(row,) for row in rows])
        connection.commit()


RACES = {
    "Parquet": (rewritten_parquet, duckdb_files.ParquetFiles),
    "DuckDB": (rewritten_duckdb, databases.DuckDBFile),
    "SQLite": (rewritten_sqlite, databases.SQLite),
}


@pytest.mark.parametrize("rows", ODD)
@pytest.mark.parametrize("kind", RACES)
def test_no_row_decides_the_error_if_a_source_changes_after_the_check(kind, rows, monkeypatch, tmp_path):
    save, name, how = SAVED[kind]
    rewrite, class_ = RACES[kind]
    save(tmp_path, COLUMNS)
    table = dpselect.open_table(tmp_path / name, **how)
    read = class_.rows

    def late(self, cursor, names):
        rewrite(tmp_path, ODD[rows])
        return read(self, cursor, names)

    monkeypatch.setattr(class_, "rows", late)
    with pytest.raises(InvalidValue, match=CHANGED) as caught:
        table.mode("x", candidates=[1, 2], epsilon=1)
    assert caught.value.__context__ is None
    assert CANARY not in carried(caught.value)


def test_a_table_of_sqlite_stays_as_it_is_while_it_is_read(tmp_path):
    """What is looked at and what is read belong to one transaction."""
    save_sqlite(tmp_path, COLUMNS)
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    table = dpselect.open_table(tmp_path / "t.db", table="t")
    connector = table._engine._source
    with connector.session() as run:
        before = connector.found_fields(run)
        save_sqlite(tmp_path, ["other"])
        assert connector.found_fields(run) == before
    with connector.session() as run:
        assert connector.found_fields(run) != before


# What is not read again.


@pytest.mark.parametrize(("tick", "times"), [(0, 1), (3600 * 10**9, 7)])
def test_schemas_are_read_again_only_if_a_file_has_changed(tick, times, monkeypatch, tmp_path):
    """Or was changed a moment before: the clock of the file system may not show a second change."""
    found = []
    monkeypatch.setattr(files, "_TICK", tick)
    columns = duckdb_files._parquet_schema
    monkeypatch.setattr(duckdb_files, "_parquet_schema", lambda *given: found.append(1) or columns(*given))
    save_parquet(tmp_path, COLUMNS)
    table = dpselect.open_table(tmp_path / "t.parquet")
    for _ in range(3):
        table.mode("x", candidates=[1], epsilon=1)
    assert len(found) == times
    save_parquet(tmp_path, COLUMNS)
    table.mode("x", candidates=[1], epsilon=1)
    assert len(found) > times


# Frames that are changed in place, and tables of a relation that are made again.


def changed_pandas(rows):
    frame = pd.DataFrame({"x": [1]})
    return frame, lambda: frame.__setitem__("x", (rows * 2)[:1])


def changed_polars(rows):
    frame = pl.DataFrame({"x": [1, 1]})
    return frame, lambda: frame.replace_column(0, pl.Series("x", rows))


def changed_relation(rows):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    again = "CREATE OR REPLACE TABLE t AS SELECT unnest($rows) AS x"
    return connection.table("t"), lambda: connection.execute(again, {"rows": rows})


@pytest.mark.parametrize("rows", ODD)
@pytest.mark.parametrize("changed", [changed_pandas, changed_polars, changed_relation])
def test_frames_that_are_changed_in_place(changed, rows, tmp_path):
    frame, change = changed(ODD[rows])
    table = dpselect.open_table(frame, ledger=tmp_path / "ledger", budget=1)
    table.mode("x", candidates=[1], epsilon="0.25")
    same_error(table, lambda table: table.mode("x", candidates=[1], epsilon="0.25"), {"text": change})
    assert len(list(Ledger(tmp_path / "ledger").entries())) == 1
