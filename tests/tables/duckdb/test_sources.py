"""The same table from every source gives the same counts; files are found by path, folder and pattern."""

import datetime
import gzip
import io

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import dpselect
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables import files
from tests.tables.looking import counts, places

CODES = ["I10", "E11, type 2", 'said "no"', None, "I10", "J45"]
COSTS = [10, 20, None, 10, 35, -4]
DAYS = [datetime.date(2024, 1, day) for day in (1, 2, 3)] + [None, datetime.date(2024, 1, 2), datetime.date(2024, 2, 1)]
PEOPLE = [1, 1, 2, 2, 3, None]
ROWS = {"code": CODES, "cost": COSTS, "day": DAYS, "who": PEOPLE}
ARROW = pa.table(ROWS, pa.schema({"code": pa.string(), "cost": pa.int64(), "day": pa.date32(), "who": pa.int64()}))


def written(end="\n", delimiter=",", start=""):
    def field(value):
        text = "" if value is None else str(value)
        return '"' + text.replace('"', '""') + '"' if set(text) & set('",;\t ') else text

    lines = [list(ROWS), *zip(*ROWS.values(), strict=True)]
    return (start + "".join(delimiter.join(map(field, line)) + end for line in lines)).encode()


def saved(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, pa.Table):
        pq.write_table(data, path)
    else:
        path.write_bytes(gzip.compress(data) if path.name.lower().endswith(".gz") else data)
    return path


def csv_halves(folder):
    lines = written().splitlines(keepends=True)
    saved(folder / "1.csv", b"".join(lines[:3]))
    saved(folder / "2.csv", b"".join([lines[0], *lines[3:]]))
    return folder


def parquet_halves(folder):
    saved(folder / "1.parquet", ARROW.slice(0, 2))
    saved(folder / "deep" / "2.parquet", ARROW.slice(2))
    saved(folder / "_SUCCESS", b"")
    saved(folder / "_delta_log" / "3.parquet", ARROW)
    saved(folder / ".hidden.parquet", ARROW)
    return folder


def pandas_frame():
    return pd.DataFrame(
        {"code": CODES, "cost": pd.array(COSTS, dtype="Int64"), "day": DAYS, "who": pd.array(PEOPLE, dtype="Int64")}
    )


def pandas_objects():
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in ROWS.items()})


def pandas_categories():
    return pandas_frame().astype({"code": "category"})


def relation(_):
    connection = duckdb.connect()
    connection.register("rows", ARROW)
    return connection.sql("SELECT * FROM rows")


SOURCES = {
    "CSV": lambda folder: saved(folder / "t.csv", written()),
    "CSV as str": lambda folder: str(saved(folder / "t.csv", written())),
    "CSV gz": lambda folder: saved(folder / "t.csv.gz", written()),
    "CSV GZ": lambda folder: saved(folder / "T.CSV.GZ", written()),
    "TSV": lambda folder: saved(folder / "t.tsv", written(delimiter="\t")),
    "semicolons": lambda folder: saved(folder / "t.txt", written(delimiter=";")),
    "bars": lambda folder: saved(folder / "t.csv", written(delimiter="|")),
    "BOM": lambda folder: saved(folder / "t.csv", written(start="\ufeff")),
    "CRLF": lambda folder: saved(folder / "t.csv", written(end="\r\n")),
    "mixed ends": lambda folder: saved(folder / "t.csv", written().replace(b"\n", b"\r\n", 3)),
    "no last end": lambda folder: saved(folder / "t.csv", written().rstrip(b"\n")),
    "CSV folder": csv_halves,
    "CSV glob": lambda folder: f"{csv_halves(folder)}/*.csv",
    "CSV bracket": lambda folder: saved(folder / "t[1].csv", written()),
    "Parquet": lambda folder: saved(folder / "t.parquet", ARROW),
    "Parquet by its bytes": lambda folder: saved(folder / "t.data", ARROW),
    "Parquet folder": parquet_halves,
    "Parquet glob": lambda folder: f"{parquet_halves(folder)}/**/[12].parquet",
    "relation": relation,
    "pandas": lambda _: pandas_frame(),
    "pandas objects": lambda _: pandas_objects(),
    "pandas categories": lambda _: pandas_categories(),
    "polars": lambda _: pl.DataFrame(ROWS),
    "polars lazy": lambda _: pl.LazyFrame(ROWS),
    "Arrow": lambda _: ARROW,
    "Arrow dictionary": lambda _: ARROW.set_column(0, "code", ARROW["code"].dictionary_encode()),
    "Arrow batch": lambda _: ARROW.to_batches()[0],
    "Arrow dataset": lambda _: pads.dataset(ARROW),
}


MIDDLES = [[(10, False, 2), (30, False, 1)], [(10, False, 1), (20, False, 1), (30, False, 1)]]


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("keep", [None, True])
def test_every_source_counts_the_same(name, keep, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_TICK", -(10**18))  # files that have just been written are kept, too
    source = SOURCES[name](tmp_path)
    table = dpselect.open_table(source, keep=keep)
    for _ in range(2):  # a source is not used up by a question
        assert list(table.columns) == list(ROWS)
        assert counts(table, "code", ["I10", "E11, type 2", 'said "no"', "Z00"]) == [2, 1, 1, 0]
        assert places(table, "cost", 0, 30) == [(0, False, 1), (10, False, 2), (20, False, 1), (30, False, 1)]
        days = places(table, "day", datetime.date(2024, 1, 1), datetime.date(2024, 1, 31), 2)
        assert days == [(0, False, 1), (0, True, 2), (1, False, 1), (15, False, 1)]
    people = dpselect.open_table(source, person="who", keep=keep)
    assert counts(people, "code", ["I10", "J45"]) == [2, 0]
    # Who has two middle values stands at one of both, at random.
    assert places(people, "cost", 0, 30) in MIDDLES
    grouped = people.group_by("code", groups=["I10", 'said "no"', "Z00"])
    assert counts(grouped, "who", [1, 2, 3]) == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]


def test_a_file_with_a_bracket_in_its_name_is_itself(tmp_path):
    """The engine reads patterns in paths: t[1] would be t1, somebody else's file."""
    for ending in ("csv", "parquet"):
        for name, value in (("t[1]", "mine"), ("t1", "other"), ("t*", "star"), ("t?", "mark"), ("tx", "another")):
            rows = pa.table({"a": [value]}) if ending == "parquet" else f"a\n{value}\n".encode()
            saved(tmp_path / f"{name}.{ending}", rows)
        for name, value in (("t[1]", "mine"), ("t*", "star"), ("t?", "mark")):
            table = dpselect.open_table(tmp_path / f"{name}.{ending}")
            assert counts(table, "a", [value, "other", "another"]) == [1, 0, 0]
        every = dpselect.open_table(f"{tmp_path}/*.{ending}")
        assert counts(every, "a", ["mine", "other", "star", "mark", "another"]) == [1] * 5
        folder = saved(tmp_path / ending / f"t[1].{ending}", rows).parent
        assert counts(dpselect.open_table(folder), "a", ["another"]) == [1]


def test_a_csv_file_has_the_columns_of_its_header_wherever_it_lies(tmp_path):
    """A folder named like a column of ours does not become that column."""
    path = saved(tmp_path / "line=3" / "t.csv", b"a\nx\n")
    table = dpselect.open_table(path)
    assert list(table.columns) == ["a"]
    assert counts(table, "a", ["x", "3"]) == [1, 0]


def test_a_stream_that_can_be_read_once_is_refused():
    """The second question would find it empty, after the first has been paid."""
    with pytest.raises(InvalidType, match="read only once: read it into a table first"):
        dpselect.open_table(ARROW.to_reader())


@pytest.mark.parametrize("made", [lambda one: one, lambda one: pads.dataset([one, one])])
def test_a_dataset_of_files_is_refused(made, tmp_path):
    """A file that differs from the schema of the dataset would fail or not, depending on its rows."""
    pq.write_table(ARROW, tmp_path / "t.parquet")
    with pytest.raises(InvalidType, match="an Arrow dataset of files: give their folder or a pattern"):
        dpselect.open_table(made(pads.dataset(tmp_path / "t.parquet")))


BAD_PATHS = {
    "missing": (lambda folder: folder / "nothing.csv", "there is no such file: check the path"),
    "no match": (lambda folder: f"{folder}/*.csv", "there is no such file"),
    "empty folder": (lambda folder: folder, "this folder has no CSV or Parquet file"),
    "not Parquet": (
        lambda folder: saved(folder / "t.parquet", b"a,b\n"),
        "not a Parquet file, despite its name",
    ),
    "cut Parquet": (
        lambda folder: saved(folder / "t.parquet", parquet_bytes()[:200]),
        "this is not a complete Parquet file",
    ),
    "some other file": (lambda folder: saved(folder / "t.docx", b"PK"), "neither Parquet nor named as CSV"),
    "not gzip": (lambda folder: saved(folder / "a.txt", b"a\n").rename(folder / "t.csv.gz"), "not a CSV file in UTF-8"),
    "mixed": (
        lambda folder: [saved(folder / "t.csv", b"a\n"), saved(folder / "t.pq", ARROW), folder][-1],
        "some files are CSV and some are Parquet",
    ),
    "different headers": (
        lambda folder: [saved(folder / "1.csv", b"a\n"), saved(folder / "2.csv", b"b\n"), folder][-1],
        r"2\.csv: its header differs from that of .*1\.csv",
    ),
    "different schemas": (
        lambda folder: [saved(folder / "1.pq", ARROW), saved(folder / "2.pq", ARROW.drop(["cost"])), folder][-1],
        r"2\.pq: its columns differ from those of .*1\.pq",
    ),
}


def parquet_bytes():
    buffer = io.BytesIO()
    pq.write_table(ARROW, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", BAD_PATHS)
def test_bad_paths_say_which_file_and_what_to_do(kind, tmp_path):
    make, words = BAD_PATHS[kind]
    source = make(tmp_path)
    with pytest.raises(InvalidValue, match=words) as caught:
        dpselect.open_table(source)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("source", [None, 3, {"a": [1]}, [1, 2], object()])
def test_what_is_no_table_is_refused(source):
    with pytest.raises(InvalidType, match="source must be a table, got"):
        dpselect.open_table(source)
