"""Names and types of a frame's columns: odd ones are refused, and never shown."""

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import dpselect
from dpselect.errors import InvalidType, InvalidValue
from tests.tables.duckdb.test_frames import CANARY
from tests.tables.looking import counts


@pytest.mark.parametrize("name", ["^v.*$", "*", "v w", 'v"w', "v.w", "select", "İ"])
def test_names_are_no_patterns(name):
    rows = {name: ["a", "b"], "vv": ["b", "b"]}
    lazy = pl.LazyFrame({**rows, "o": pl.Series([1, 2], dtype=pl.Object)})
    for source in (pd.DataFrame(rows), pl.DataFrame(rows), lazy, pa.table(rows), pads.dataset(pa.table(rows))):
        assert counts(dpselect.open_table(source), name, ["a", "b"]) == [1, 1]


ODD_NAMES = {
    "integers": (lambda: pd.DataFrame({0: [1], 1: [2]}), InvalidType, "of type int, not text"),
    "tuples": (
        lambda: pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("v", CANARY), ("v", 2)])),
        InvalidType,
        "of type tuple, not text",
    ),
    "None": (lambda: pd.DataFrame({None: [1], "v": [2]}), InvalidType, "not text"),
    "dates": (lambda: pd.DataFrame({pd.Timestamp("2024-01-01"): [1]}), InvalidType, "of type Timestamp, not text"),
    "doubled": (lambda: pd.DataFrame([[1, 2]], columns=[CANARY] * 2), InvalidValue, "two columns of the same name"),
    "doubled in Arrow": (lambda: pa.table([[1], [2]], [CANARY] * 2), InvalidValue, "two columns of the same name"),
    "two cases": (lambda: pd.DataFrame({"v": [1], "V": [2]}), InvalidValue, "two columns of the same name"),
    "two cases in polars": (lambda: pl.DataFrame({"v": [1], "V": [2]}), InvalidValue, "two columns of the same name"),
    "empty": (lambda: pd.DataFrame({"": [1]}), InvalidValue, "name is empty"),
    "surrogates": (lambda: pd.DataFrame({"\ud800": [1]}), InvalidValue, "cannot be written in UTF-8"),
}


@pytest.mark.parametrize("kind", ODD_NAMES)
def test_odd_names_of_columns_are_refused_and_not_shown(kind):
    make, error, words = ODD_NAMES[kind]
    try:
        frame = make()
    except UnicodeEncodeError:
        pytest.skip("pandas has no such name")
    with pytest.raises(error, match=words) as caught:
        dpselect.open_table(frame)
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.period_range("2024", periods=2, freq="D")),
        pd.Series(pd.interval_range(0, 2)),
        pd.Series([1 + 2j, 0]),
        pd.Series([1, 0], dtype="Sparse[int]"),
    ],
    ids=lambda column: column.dtype.name,
)
def test_types_that_no_question_could_be_asked_about_are_refused(column):
    with pytest.raises(InvalidType, match=r"has a column of the pandas type .*drop or cast it"):
        dpselect.open_table(pd.DataFrame({"v": column, "w": ["a", "b"]}))


STRUCTURED = {
    "a struct": pa.array([{"Alice": 1}, {"Bob": 2}]),
    "a list of structs": pa.array([[{"Alice": 1}]]),
    "a map of structs": pa.array([[("k", {"Alice": 1})]], pa.map_(pa.string(), pa.struct({"Alice": pa.int64()}))),
    "a list of lists": pa.array([[[{"Bob": 1}]]]),
    "a fixed list": pa.array([[{"Bob": 1}]], pa.list_(pa.struct({"Bob": pa.int64()}), 1)),
    "a struct with brackets": pa.array([{"Alice] (Bob": 1}]),
}


@pytest.mark.parametrize("kind", STRUCTURED)
def test_names_inside_of_types_are_not_shown(kind):
    """Arrow makes them of the keys of rows."""
    table = dpselect.open_table(pa.table({"v": STRUCTURED[kind]}))
    with pytest.raises(InvalidType, match=r"has the type (STRUCT|LIST|MAP), about which no question") as caught:
        table.mode("v", candidates=["a"], epsilon=1)
    assert not [name for name in ("Alice", "Bob") if name in f"{caught.value} {table.columns!r} {table!r}"]


@pytest.mark.parametrize(
    "value", ["'x'::t", "['x'::t]", "{'f': 'x'::t}", "map {'x'::t: 1}", "union_value(Alice := 'x'::t)"]
)
def test_members_of_enums_are_not_shown(value):
    connection = duckdb.connect()
    connection.execute("CREATE TYPE t AS ENUM ('x', 'Alice', 'Bob)[]')")
    shown = repr(dpselect.open_table(connection.sql(f"SELECT {value} AS v")).columns)
    assert not [name for name in ("Alice", "Bob") if name in shown]
