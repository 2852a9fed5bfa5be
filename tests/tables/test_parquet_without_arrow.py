"""Parquet files where PyArrow is not installed: no outcome depends on a row, and what cannot be read is refused."""

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpselect
from dpselect.errors import MissingExtra
from dpselect.tables.duckdb import files
from tests.tables.looking import counts, in_writing
from tests.tables.test_leaks import broken_texts, outcome, questions, raw

ENCODINGS = [None, "PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"]
MOMENT = datetime.datetime(2024, 1, 1, 12)


@pytest.fixture
def _without_arrow(monkeypatch):
    monkeypatch.setattr(files, "has_arrow", lambda: False)


def written(table, path, encoding=None):
    kinds = {} if encoding is None else {"use_dictionary": False, "column_encoding": {"text": encoding}}
    pq.write_table(table, path, row_group_size=4, **kinds)
    return path


@pytest.mark.usefixtures("_without_arrow")
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_broken_text_is_missing(encoding, tmp_path):
    """It equals no candidate, not even one of question marks, and it names nobody."""
    table = pa.table({"text": broken_texts(pa.string()), "x": ["p"] * 10, "n": range(10)})
    path = written(table, tmp_path / "t.parquet", encoding)
    opened = in_writing(dpselect.open_table(path))
    listed = ["a", "?", "a?", "\ufffd", "a\ufffd", "", "1?"]
    assert counts(opened, "text", listed) == [1, 0, 0, 0, 0, 1, 0]
    assert counts(opened, "n", [0, 1, 9]) == [1, 1, 1]
    people = dpselect.open_table(path, person="text")
    assert counts(people, "x", ["p"]) == [2]
    assert counts(people.group_by("x", groups=["p", "q"], max_groups=2), "text", ["a"]) == [[1], [0]]
    assert counts(dpselect.open_table(path).group_by("text", groups=["a", "?"]), "n", [0, 1]) == [[1, 0], [0, 0]]
    for _, ask in zip(range(4), questions("text"), strict=False):
        assert outcome(lambda ask=ask: ask(opened)).startswith("an answer")
    check = opened.check("text", candidates=["a"])
    assert (check.rows, check.counted) == (10, 1)


@pytest.mark.usefixtures("_without_arrow")
def test_each_row_of_several_files_in_folders_counts_once(tmp_path):
    """Files are read twice, and their rows joined: also rows that are equal, and folders that are columns."""
    for year in ("2023", "2024"):
        for name in ("a", "b"):
            folder = tmp_path / f"year={year}"
            folder.mkdir(exist_ok=True)
            rows = {"text": broken_texts(pa.string()), 'who "x"': ["p", "p", *"qrstuvwx"]}
            pq.write_table(pa.table(rows), folder / f"{name}.parquet")
    table = dpselect.open_table(tmp_path)
    assert counts(table, "text", ["a", "", "?"]) == [4, 4, 0]
    assert counts(table, 'who "x"', ["p", "x"]) == [8, 4]
    grouped = dpselect.open_table(tmp_path, person='who "x"').group_by("year", groups=["2023", "2024"], max_groups=2)
    assert counts(grouped, "text", ["a", ""]) == [[1, 1], [1, 1]]


def test_broken_text_beside_what_arrow_reads_differently(tmp_path):
    """Arrow, though it is installed, is no help with nanoseconds."""
    rows = {"text": broken_texts(pa.string()), "who": raw(range(10), pa.timestamp("ns"))}
    path = written(pa.table(rows), tmp_path / "t.parquet")
    assert counts(dpselect.open_table(path, person="who"), "text", ["a", "?", ""]) == [1, 0, 1]


@pytest.mark.usefixtures("_without_arrow")
@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("type_", [pa.timestamp("ms"), pa.timestamp("ms", "UTC"), pa.timestamp("s")])
def test_milliseconds_are_refused_by_the_schema_alone(type_, rows, tmp_path):
    zoned = MOMENT if type_.tz is None else MOMENT.replace(tzinfo=datetime.UTC)
    types = {"t": type_, "x": pa.string(), "t2": pa.timestamp("us")}
    columns = zip((zoned, "p", MOMENT), types.items(), strict=True)
    table = pa.table({name: pa.array([value] * rows, own) for value, (name, own) in columns})
    path = written(table, tmp_path / "t.parquet")
    opened = dpselect.open_table(path, ledger=tmp_path / "t.ledger", budget=10)
    other = opened.mode("x", candidates=["p", "q"], epsilon=1)
    assert other.value in ("p", "q")
    questions = (
        lambda: opened.mode("t", candidates=[zoned], epsilon=1),
        lambda: opened.group_by("t", groups=[zoned]).mode("x", candidates=["p"], epsilon=1),
        lambda: opened.median("t", lower=zoned, upper=zoned.replace(year=2025), epsilon=1),
        lambda: dpselect.open_table(path, person="t"),
        lambda: dpselect.open_table(path).check("t", candidates=[zoned]),
    )
    for ask in questions:
        with pytest.raises(
            MissingExtra, match=r"'t' has timestamps.* that only PyArrow can read: .* -m pip install pyarrow$"
        ):
            ask()
    assert dpselect.Ledger(tmp_path / "t.ledger").spent == 1
    assert counts(dpselect.open_table(path), "t2", [MOMENT]) == [rows]


@pytest.mark.usefixtures("_without_arrow")
def test_one_file_of_several_has_milliseconds(tmp_path):
    for unit in ("us", "ms"):
        pq.write_table(pa.table({"t": pa.array([MOMENT], pa.timestamp(unit))}), tmp_path / f"{unit}.parquet")
    with pytest.raises(MissingExtra, match="pip install pyarrow"):
        dpselect.open_table(tmp_path).mode("t", candidates=[MOMENT], epsilon=1)
    assert counts(dpselect.open_table(tmp_path / "us.parquet"), "t", [MOMENT]) == [1]


@pytest.mark.usefixtures("_without_arrow")
def test_other_units_are_read(tmp_path):
    """Microseconds and nanoseconds, and 96 bits. A time of day in milliseconds is something else."""
    times = {"us": pa.timestamp("us"), "zoned": pa.timestamp("us", "UTC"), "ns": pa.timestamp("ns")}
    rows = {name: pa.array([MOMENT], type_) for name, type_ in times.items()}
    rows["day"] = pa.array([MOMENT.time()], pa.time32("ms"))
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    pq.write_table(pa.table({"t": rows["ns"]}), tmp_path / "96.parquet", use_deprecated_int96_timestamps=True)
    table = dpselect.open_table(tmp_path / "t.parquet")
    assert not any(column.needs_arrow for column in table.columns.values())
    assert counts(table, "us", [MOMENT]) == counts(table, "ns", [MOMENT]) == [1]
    assert counts(table, "zoned", [MOMENT.replace(tzinfo=datetime.UTC)]) == [1]
    assert counts(dpselect.open_table(tmp_path / "96.parquet"), "t", [MOMENT]) == [1]


@pytest.mark.usefixtures("_without_arrow")
def test_a_name_that_duckdb_needs_for_itself(tmp_path):
    """The rows cannot be numbered, so texts need Arrow; numbers do not."""
    pq.write_table(pa.table({"File_Row_Number": [5], "text": ["a"]}), tmp_path / "t.parquet")
    table = dpselect.open_table(tmp_path / "t.parquet")
    assert counts(table, "File_Row_Number", [5, 0]) == [1, 0]
    with pytest.raises(MissingExtra, match="'text' has text that only PyArrow can read"):
        table.mode("text", candidates=["a"], epsilon=1)
