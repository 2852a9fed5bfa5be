"""A column, or an aggregate of one column, given as a table: its rows have no person any more."""

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpselect
from dpselect.errors import InvalidType, InvalidValue
from tests.tables.looking import counts

FRAME = pd.DataFrame({"who": [1, 1, 2, 3], "ward": ["a", "a", "b", "b"], "cost": [10, 20, 30, 40]})
SERIES = {
    "a column": FRAME["cost"],
    "a median of each group": FRAME.groupby("ward")["cost"].median(),
    "counts": FRAME["ward"].value_counts(),
    "an index": FRAME.set_index("ward").index,
    "polars": pl.Series("cost", [10, 20]),
    "Arrow": pa.array([10, 20]),
    "Arrow, in chunks": pa.chunked_array([[10, 20]]),
}
AGGREGATES = {
    "of one column": FRAME.groupby("ward")[["cost"]].median(),
    "of two groups": FRAME.groupby(["ward", "who"])[["cost"]].sum(),
    "a pivot": FRAME.pivot_table(index="ward", values="cost"),
    "no rows": FRAME[:0].groupby("ward")[["cost"]].median(),
}
HONEST = {
    "one column": FRAME[["cost"]],
    "a filtered one": FRAME[FRAME["cost"] > 15][["cost"]],
    "a shuffled one": FRAME.sample(frac=1, random_state=1)[["cost"]],
    "an index with a name and two columns": FRAME.set_index("ward"),
    "an index that became a column": FRAME.groupby("who")[["cost"]].sum().reset_index(),
    "an index without a name": FRAME.set_axis([5, 6, 7, 8])[["cost"]],
    "texts as the index": FRAME.set_axis(list("wxyz"))[["cost"]],
    "a Series that became a frame": FRAME["cost"].to_frame(),
    "polars": pl.DataFrame({"cost": [40]}),
    "Arrow": pa.table({"cost": [40]}),
    "a relation": duckdb.sql("SELECT 40 AS cost"),
}


@pytest.mark.parametrize("name", SERIES)
def test_a_single_column_is_refused_with_what_to_give(name):
    remedy = "give the frame"
    with pytest.raises(InvalidType, match=f"which has no column of the person: {remedy}") as caught:
        dpselect.open_table(SERIES[name])
    assert not any(word in str(caught.value) for word in ("ward", "cost"))


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_of_one_column_is_refused_whatever_its_rows_are(name):
    with pytest.raises(InvalidValue, match=r"the rows of an aggregate are not people.* frame.reset_index\(\)$"):
        dpselect.open_table(AGGREGATES[name])


@pytest.mark.parametrize("name", HONEST)
def test_honest_frames_are_opened(name):
    assert counts(dpselect.open_table(HONEST[name]), "cost", [40]) == [1]
