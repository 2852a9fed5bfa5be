"""Names of folders are columns of private text: they are read exactly, and no message shows them."""

import io
import os
import re
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpselect
from dpselect.errors import DPSelectError, InvalidValue
from dpselect.tables import files
from tests.carried import carried
from tests.tables.duckdb import test_sources
from tests.tables.looking import counts

CANARY = "canary7310"
ODD = ["1", "2023", "01", "2024-01-01", "a b", " lead", "trail ", "é", "e\u0301", "日本", "%41", "%C3%A9", "100%"]
ODD += ["%zz", "%FF", "%00", "a'b", 'a"b', "a[b]", "[", "{x}", "{", "}", "*", "?", "a*b?", "\\", "a\\b[", "~", "$HOME"]
ODD += ["#", "&", "+", "a+b", "a=b", "=", ":", "12:30 [am]", ";", "|", "<>", "!", "^", "`", "(", "a,b", "\t", "a\nb"]
ODD += ["\r", "\u202e", "😀", "__HIVE_DEFAULT_PARTITION__", "", "null", "NaN", "1e5", "true", "-", "_x", ".x", ".."]
ODD += ["x" * 200, "\x7f", "\x01", "\u00a0", "\udcff", "%5C", "%2F", "Ã©", "file:x", "s3:"]


def meant(written):
    """The value of a folder's name by the rules of docs/tables.md; None is a missing value."""
    data = re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), written.encode())
    try:
        return None if written in ("", "__HIVE_DEFAULT_PARTITION__") else data.decode()
    except UnicodeDecodeError:
        return None


def is_read(written):
    """Whether the rows of a folder are read, by the rules of docs/tables.md."""
    is_pattern_with_colon = ":" in written and set(written) & set("*?[]{}")
    return "\\" not in written and "\udcff" not in written and not is_pattern_with_colon


def partition(top, written, kind, rows=1):
    """A folder with a file, as tools that write partitions leave it."""
    data = b"d\n" + b"x\n" * rows
    if kind == "parquet":
        buffer = io.BytesIO()
        pq.write_table(pa.table({"d": ["x"] * rows}), buffer)
        data = buffer.getvalue()
    return test_sources.saved(top / f"code={written}" / f"0.{kind}", data)


def tree(top, values, kind):
    """A folder for each of the values, with 1, 2, ... rows; the candidates for all of them, with their numbers."""
    top.mkdir(parents=True, exist_ok=True)
    expected = {}
    for rows, written in enumerate(values, 1):
        partition(top, written, kind, rows)
        if is_read(written) and meant(written) is not None:
            expected[meant(written)] = expected.get(meant(written), 0) + rows
    return expected


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_odd_names_of_folders_are_text(kind, tmp_path):
    top = tmp_path / "env=prod" / "b[1]"
    expected = tree(top, ODD, kind)
    for source in (top, f"{tmp_path}/env=prod/b[[]1]/*/*", f"{tmp_path}/env=prod/b[[]1]/**/0.{kind}"):
        table = dpselect.open_table(source)
        assert {name: (c.type, c.untyped) for name, c in table.columns.items()}["code"] == ("VARCHAR", True)
        assert list(table.columns) == ["d", "code"]
        assert counts(table, "code", list(expected)) == list(expected.values())
        read = sum(rows for rows, written in enumerate(ODD, 1) if is_read(written))
        assert counts(table, "d", ["x"]) == [read]


LETTERS = st.one_of(st.sampled_from("019-.eE%25 \t'\"[]{}*?$~:=+\\é日"), st.characters(exclude_characters="/\0"))
VALUES = st.one_of(
    st.text(LETTERS, max_size=12),
    st.integers().map(str),
    st.dates().map(str),
    st.datetimes().map(str),
    st.floats().map(str),
    st.sampled_from(ODD),
).filter(lambda text: len(os.fsencode(f"code={text}") if "\udcff" in text else f"code={text}".encode()) < 250)


@settings(max_examples=10)
@given(values=st.lists(VALUES, min_size=1, max_size=4, unique=True), kind=st.sampled_from(["parquet", "csv"]))
def test_one_folder_more_or_less_changes_neither_the_schema_nor_that_there_is_an_answer(values, kind):
    """A tree with a folder that says nothing, each of its neighbours, and the counts that every one should have."""
    schemas = []
    for left_out in (None, *values):
        kept = [value for value in values if value != left_out]
        with tempfile.TemporaryDirectory() as name:
            expected = {"always": 1}
            partition(Path(name), "always", kind)
            for value, number in tree(Path(name), [v for v in kept if v != "always"], kind).items():
                expected[value] = expected.get(value, 0) + number
            table = dpselect.open_table(name)
            schemas.append(dict(table.columns))
            assert counts(table, "code", list(expected)) == list(expected.values())
            for candidates in (["always"], [1, 2], [1.5]):
                table.mode("code", candidates=candidates, epsilon=1)
            table.median("code", lower=0, upper=10, epsilon=1)
            assert not table.columns["code"].kind.value.startswith("something")
    assert all(schema == schemas[0] for schema in schemas)


def test_the_values_of_folders_are_read_as_the_question_needs(tmp_path):
    for year in (2023, 2024):
        for month in ("01", "02"):
            path = tmp_path / f"year={year}" / f"month={month}" / "part.parquet"
            test_sources.saved(path, test_sources.ARROW)
    table = dpselect.open_table(tmp_path, person="who")
    assert list(table.columns) == [*test_sources.ROWS, "year", "month"]
    assert counts(table, "year", [2023, 2024, 2025]) == [3, 3, 0]
    assert counts(table, "month", ["1", "01"]) == [0, 3]
    grouped = table.group_by("year", groups=[2023, 2024], max_groups=2)
    assert counts(grouped, "code", ["I10"]) == [[2], [2]]
    assert counts(dpselect.open_table(tmp_path, person="month"), "code", ["I10"]) == [2]


def test_only_folders_below_the_given_one_are_columns(tmp_path):
    """Neither those above it, nor those that a pattern names."""
    test_sources.saved(tmp_path / "env=prod" / "year=2024" / "t.parquet", pa.table({"a": ["x"]}))
    for source, columns in {
        "env=prod/year=2024/t.parquet": ["a"],
        "env=prod/year=2024": ["a"],
        "env=prod/year=2024/*.parquet": ["a"],
        "env=prod": ["a", "year"],
        "env=prod/*/*": ["a", "year"],
        "env=prod/year=*/t.parquet": ["a", "year"],
        "**/*.parquet": ["a", "env", "year"],
        "": ["a", "env", "year"],
    }.items():
        assert list(dpselect.open_table(tmp_path / source).columns) == columns


@pytest.mark.parametrize("key", ["d", "D"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_column_of_the_files_counts_and_not_the_folder_of_this_name(key, kind, tmp_path):
    partition(tmp_path, "0", kind).parent.rename(tmp_path / f"{key}=1")
    table = dpselect.open_table(tmp_path)
    assert list(table.columns) == ["d"]
    assert counts(table, "d", ["x", "1"]) == [1, 0]


@pytest.mark.parametrize("name", ["dpselect_file", "dpselect_0", "file", "folder0", "line", "fields", "filename"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_no_name_of_ours_meets_one_of_the_users(name, kind, tmp_path):
    for other in ("key", name):
        data = pa.table({name: ["x"]}) if kind == "parquet" else f"{name}\nx\n".encode()
        test_sources.saved(tmp_path / other / f"{other}=v" / f"0.{kind}", data)
        table = dpselect.open_table(tmp_path / other)
        assert counts(table, name, ["x", "v"]) == [1, 0]
        assert list(table.columns) == ([name, "key"] if other == "key" else [name])
    data = pa.table({"a": ["x"]}) if kind == "parquet" else b"a\nx"
    test_sources.saved(tmp_path / "own" / f"{name}=v" / f"0.{kind}", data)
    assert counts(dpselect.open_table(tmp_path / "own"), name, ["v"]) == [1]


BAD_TREES = {
    "other keys": ({f"code={CANARY}/a.csv": b"d\n", "year=1/b.csv": b"d\n"}, "name other columns than those of"),
    "another order": (
        {f"a=1/code={CANARY}/a.csv": b"d\n", f"code={CANARY}/a=1/b.csv": b"d\n"},
        "same keys in the same order",
    ),
    "no key": ({f"code={CANARY}/a.csv": b"d\n", "b.csv": b"d\n"}, "name other columns"),
    "key twice": ({f"code={CANARY}/Code={CANARY}/a.csv": b"d\n"}, "two of its folders name the same column"),
    "no names": ({f"code={CANARY}/a.csv": f"{CANARY},1\n".encode()}, "the first line holds numbers"),
    "same names": ({f"code={CANARY}/a.csv": b"d,D\n"}, "two columns have the same name"),
    "no header": ({f"code={CANARY}/a.csv": b""}, "must be a header"),
    "not UTF-8": ({f"code={CANARY}/a.csv": b"\xff" + CANARY.encode()}, "not a CSV file in UTF-8"),
    "not gzip": ({f"code={CANARY}/a.csv.gz": None}, "not a CSV file in UTF-8"),
    "other header": ({"code=1/a.csv": b"d\n", f"code={CANARY}/a.csv": b"e\n"}, "its header differs from that of"),
    "other columns": (
        {"code=1/a.pq": pa.table({"d": [1]}), f"code={CANARY}/a.pq": pa.table({"d": ["x"]})},
        "its columns differ from those of",
    ),
    "cut": ({f"code={CANARY}/a.pq": test_sources.parquet_bytes()[:200]}, "not a complete Parquet file"),
    "no Parquet": ({f"code={CANARY}/a.pq": b"d\n"}, "not a Parquet file, despite its name"),
    "mixed": ({f"code={CANARY}/a.pq": pa.table({"d": [1]}), f"code={CANARY}/a.csv": b"d\n"}, "some are Parquet"),
    "not UTF-8 in the path": ({f"code={CANARY}/\udcff.csv": b"d\n"}, "the path is not UTF-8"),
}


@pytest.mark.parametrize("kind", BAD_TREES)
@pytest.mark.parametrize("pattern", ["", "/**/*"])
def test_no_message_shows_the_value_of_a_folder(kind, pattern, tmp_path):
    contents, words = BAD_TREES[kind]
    for path, data in contents.items():
        if data is None:
            test_sources.saved(tmp_path / path, b"").write_bytes(CANARY.encode())
        else:
            test_sources.saved(tmp_path / path, data)
    with pytest.raises(InvalidValue, match=words) as caught:
        dpselect.open_table(f"{tmp_path}{pattern}")
    assert CANARY not in carried(caught.value)
    assert str(caught.value).startswith(str(tmp_path))
    str(caught.value).encode()


def test_a_file_that_goes_away_is_named_without_its_value(tmp_path, monkeypatch):
    """Between the listing and the look at its first bytes."""
    path = partition(tmp_path, CANARY, "csv")
    listing = files._found(str(tmp_path))
    path.unlink()
    monkeypatch.setattr(files, "_found", lambda _: listing)
    with pytest.raises(InvalidValue, match="cannot be read") as caught:
        dpselect.open_table(tmp_path)
    assert CANARY not in carried(caught.value)


def test_a_value_that_cannot_be_named_leaves_its_rows_out(tmp_path):
    """As it belongs to the rows, it must not raise; the file itself is public, and does."""
    partition(tmp_path, "a", "csv")
    partition(tmp_path, "\udcff", "csv")
    assert rows_of_d(tmp_path) == [1]
    partition(tmp_path, "a", "csv").rename(tmp_path / "code=a" / "\udcff.csv")
    with pytest.raises(DPSelectError, match="not UTF-8: rename it"):
        dpselect.open_table(tmp_path)


def rows_of_d(source):
    return counts(dpselect.open_table(source), "d", ["x"])
