"""Labels of summaries: read exactly, and no error tells which of them was drawn."""

import datetime
import pickle
from collections import deque
from enum import IntEnum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpselect import PermuteAndFlip
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms import summary as part
from dpselect.mechanisms.summary import Summary

CERTAIN = PermuteAndFlip(epsilon=2)
NANOSECOND = np.datetime64("2020-01-01T00:00:00.000000001", "ns")
COUNT = int(NANOSECOND.view(np.int64))
FAR = 2**60  # microseconds: beyond the year 9999


def watched(labels, chosen=-1):
    """A summary that has chosen this one of the labels."""
    scores = np.zeros(len(labels))
    scores[chosen] = 10_000
    made = CERTAIN.summary()
    made.update(scores, labels)
    return made


def outcome(call):
    """What a call gives: nothing, or the type and the words of an error."""
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    return None


class Colour(IntEnum):
    """An int that would come back as a plain one."""

    RED = 1


class Series(deque):
    """Of another library, whose name comes before those of pandas and polars."""

    __module__ = "frames"


class Wrapped:
    """A scalar of another library, which says what NumPy would make of it."""

    dtype = np.dtype(np.int64)


NULLS = {
    "list": ["a", None],
    "object array": np.array(["a", None], object),
    "masked array": np.ma.MaskedArray([3, 4], [False, True]),
    "pandas": pd.Series(["a", None], dtype=object),
    "pandas, nullable": pd.Series([1, None], dtype="Int64"),
    "polars": pl.Series(["a", None]),
    "polars, dates": pl.Series([datetime.date(2020, 1, 1), None]),
    "Arrow": pa.array(["a", None]),
    "Arrow, chunked": pa.chunked_array([[1], [None]]),
    "Arrow, nanoseconds": pa.array([1, None], pa.timestamp("ns")),
    "Arrow, dictionary": pa.array(["a", None]).dictionary_encode(),
}


@pytest.mark.parametrize("name", NULLS)
def test_a_null_label_is_none_and_no_position(name):
    made = watched(NULLS[name])
    for same in (made, pickle.loads(pickle.dumps(made)), Summary.from_arrow(made.to_arrow())):  # noqa: S301 - our own
        assert same.result() is None
        assert same.merge(CERTAIN.summary()).result() is None


def test_positions_survive_pickles_and_arrow():
    made = CERTAIN.summary()
    made.update([0, 0, 10_000])
    assert pickle.loads(pickle.dumps(made)).result() == 2  # noqa: S301 - our own
    assert Summary.from_arrow(made.to_arrow()).result() == 2


MIXED = {
    "tuple": ["a", ("b", 1)],
    "object array": np.array(["a", object()], object),
    "enumeration": [3, Colour.RED],
    "enumeration first": [Colour.RED, 3],
    "Timestamp": ["a", pd.Timestamp(COUNT)],
    "array": ["a", np.array([1, 2])],
    "a type with a dtype": [1, Wrapped()],
    "complex": np.array([1, 2], np.complex64),
    "pandas durations": pd.Series([pd.Timedelta(1), pd.Timedelta(2)]),
    "pandas": pd.Series(["a", 1j], dtype=object),
    "pandas dates": pd.Series([NANOSECOND, NANOSECOND]),
    "long double": np.array([1, 2], np.longdouble),
    "categories": pd.Series(["a", 1j], dtype="category"),
    "polars": pl.Series([[1], [2]]),
    "Arrow": pa.array([[1], None]),
    "Arrow, zoned nanoseconds": pa.array([1, None], pa.timestamp("ns", "UTC")),
}


@pytest.mark.parametrize("name", MIXED)
def test_writing_fails_for_all_labels_or_for_none(name):
    outcomes = {outcome(watched(MIXED[name], chosen).to_arrow) for chosen in (0, 1)}
    [(error, words)] = outcomes
    assert error is InvalidType
    assert "all labels must be text, numbers, dates or bytes" in words


@pytest.mark.parametrize("chosen", [0, 1])
@pytest.mark.parametrize("foreign_first", [True, False])
def test_writability_is_merged_whichever_head_stays(chosen, foreign_first):
    foreign, plain = CERTAIN.summary(), CERTAIN.summary()
    foreign.update([10_000 * chosen], [("b", 1)])
    plain.update([10_000 * (1 - chosen)], ["a"])
    merged = foreign.merge(plain) if foreign_first else plain.merge(foreign)
    assert outcome(merged.to_arrow)[0] is InvalidType
    blocks = CERTAIN.summary()
    for labels, score in ([("b", 1)], 10_000 * chosen), (["a"], 10_000 * (1 - chosen)):
        blocks.update([score], labels)
    assert outcome(blocks.to_arrow)[0] is InvalidType
    assert outcome(pickle.loads(pickle.dumps(blocks)).to_arrow)[0] is InvalidType  # noqa: S301 - our own
    behind = CERTAIN.summary()  # a block that has no head
    behind.update([10_000], ["a"])
    behind.update([0], [("b", 1)])
    assert outcome(behind.to_arrow)[0] is InvalidType


def test_lone_surrogates_are_written():
    for label in ("\ud800", "\udfff", "\ud800\udc00", "\U00010000", "file\udcff"):
        for labels in (["a", label], np.array(["a", label], object), np.array(["a", label])):
            assert Summary.from_arrow(watched(labels).to_arrow()).result() == label


@pytest.mark.parametrize(
    "labels",
    [
        {0: "a", 5: "b"},
        {"a", "b"},
        (name for name in "ab"),
        "ab",
        b"ab",
        7,
        {"a": 1, "b": 2}.keys(),
        deque("ab"),
        Series("ab"),
        np.array([["a"], ["b"]]),
        np.array("a"),
        pd.DataFrame({"a": [1, 2]}),
        pl.DataFrame({"a": [1, 2]}),
        pa.table({"a": [1, 2]}),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_other_labels_are_refused_before_anything_is_drawn(labels, monkeypatch):
    monkeypatch.setattr(part, "gaps_of", lambda *_: pytest.fail("looked at the scores"))
    made = CERTAIN.summary()
    with pytest.raises(InvalidType, match="labels must be") as caught:
        made.update([0, 1], labels)
    assert made.candidates == 0
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(
    "labels", [[], (), range(3), pa.array([1, 2, 3]), pd.Index([1, 2, 3])], ids=lambda labels: type(labels).__name__
)
def test_the_number_of_labels_is_checked(labels):
    with pytest.raises(InvalidValue, match="as long as scores"):
        CERTAIN.summary().update([0, 1], labels)


LABELS = {
    "list": (["a", "b"], "b"),
    "tuple": (("a", "b"), "b"),
    "array": (np.array(["a", "b"]), "b"),
    "polars": (pl.Series(["a", "b"]), "b"),
    "Arrow": (pa.array(["a", "b"]), "b"),
    "range": (range(5, 7), 6),
    "index": (pd.Index(["a", "b"]), "b"),
    "pandas": (pd.Series(["a", "b"], index=[1, 0]), "b"),
    "categories": (pd.Series(["a", "b"], dtype="category"), "b"),
    "pandas, Arrow": (pd.Series(["a", "b"], dtype="string[pyarrow]"), "b"),
    "polars categories": (pl.Series(["a", "b"], dtype=pl.Categorical), "b"),
    "polars, 128 bits": (pl.Series([1, 2**100], dtype=pl.Int128), 2**100),
    "numbers": (np.array([1, 2], np.float16), 2.0),
    "Arrow, microseconds": (pa.array([1, 2], pa.timestamp("us")), datetime.datetime(1970, 1, 1, 0, 0, 0, 2)),
    "Arrow, milliseconds and zoned": (
        pa.array([0, 5], pa.timestamp("ms", "UTC")),
        datetime.datetime(1970, 1, 1, 0, 0, 0, 5_000, tzinfo=datetime.UTC),
    ),
    "double numbers": (np.array([1, 2], np.float64), 2.0),
    "scalars": ([np.int64(1), np.str_("b")], "b"),
    "bytes": (np.array([b"a", b"b"]), b"b"),
    "chunks": (pa.chunked_array([["a"], ["b"]]), "b"),
    "views": (pa.array(["a", "b"], pa.string_view()), "b"),
    "no text": (pa.array([b"a", b"\xff"]).view(pa.string()), b"\xff"),
    "dates": (pa.array([1, 2], pa.date32()), datetime.date(1970, 1, 3)),
    "microseconds": (pl.Series([1, 2]).cast(pl.Datetime("us")), datetime.datetime(1970, 1, 1, 0, 0, 0, 2)),
    "nanoseconds": (np.array([NANOSECOND - 1, NANOSECOND]), NANOSECOND),
    "list of nanoseconds": ([None, NANOSECOND], NANOSECOND),
    "days": (np.array(["2020-01-01", "2020-01-02"], "M8[D]"), np.datetime64("2020-01-02")),
    "durations": (np.array([1, 2], "m8[s]"), np.timedelta64(2, "s")),
    "Arrow, nanoseconds": (pa.array([0, COUNT], pa.timestamp("ns")), NANOSECOND),
    "polars, nanoseconds": (pl.Series([0, COUNT]).cast(pl.Datetime("ns")), NANOSECOND),
    "Arrow, far": (pa.array([0, FAR], pa.timestamp("us")), np.datetime64(FAR, "us")),
    "Arrow, far and zoned": (pa.array([0, FAR], pa.timestamp("us", "UTC")), np.datetime64(FAR, "us")),
    "Arrow, far days": (pa.array([0, 10**8], pa.int32()).view(pa.date32()), np.datetime64(10**8, "D")),
    "polars, far": (pl.Series([0, FAR]).cast(pl.Datetime("us")), np.datetime64(FAR, "us")),
    "polars, far days": (pl.Series([0, 10**8], dtype=pl.Int32).cast(pl.Date), np.datetime64(10**8, "D")),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_exact_here_and_through_arrow(name):
    labels, expected = LABELS[name]
    made = watched(labels)
    for same in (made, Summary.from_arrow(made.to_arrow()), pickle.loads(pickle.dumps(made))):  # noqa: S301 - our own
        assert (same.result(), type(same.result())) == (expected, type(expected))
        if isinstance(expected, (np.datetime64, np.timedelta64)):
            assert same.result().dtype == expected.dtype


def test_a_null_behind_a_label_does_not_cut_it():
    labels = pl.Series([COUNT, None]).cast(pl.Datetime("ns"))
    result = watched(labels, chosen=0).result()
    assert (result, type(result)) == (NANOSECOND, np.datetime64)


def test_many_labels_are_as_many_as_scores():
    """More than Python keeps one object of each number for."""
    made = CERTAIN.summary()
    made.update([*range(299), 10_000], [f"label{i}" for i in range(300)])
    assert made.result() == "label299"


def test_a_label_may_be_any_object():
    assert watched(pd.MultiIndex.from_tuples([(1, 2), (3, 4)])).result() == (3, 4)
    assert watched(pl.Series([int, str], dtype=pl.Object)).result() is str


@pytest.mark.parametrize("kind", [list, pd.Series, lambda labels: np.array(labels, object)])
def test_a_timestamp_stays_what_it_is(kind):
    stamp = pd.Timestamp(COUNT, tz="UTC")
    result = watched(kind([pd.Timestamp(0, tz="UTC"), stamp])).result()
    assert (result, type(result)) == (stamp, pd.Timestamp)


TABLE = pa.table({"s": [0, 10_000, 1], "l": ["a", "b", "c"]})
ONE = {
    "table": TABLE,
    "chunks": pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    "record batch": TABLE.to_batches()[0],
    "reader": TABLE.to_reader(),
    "pandas": TABLE.to_pandas(),
    "polars": pl.DataFrame(TABLE.to_pydict()),
}


@pytest.mark.parametrize("name", ONE)
def test_one_table_is_a_stream(name):
    made = CERTAIN.summary()
    made.feed(ONE[name], "s", "l")
    assert (made.result(), made.candidates) == ("b", 3)


def test_what_is_no_stream_is_refused():
    for nothing in (7, None, object()):
        with pytest.raises(InvalidType, match=f"batches must be .* got {type(nothing).__name__}"):
            CERTAIN.summary().feed(nothing, "s")
    for table in (TABLE, TABLE.to_batches()[0]):
        with pytest.raises(InvalidType, match="one-dimensional"):
            CERTAIN.summary().feed(table)
        with pytest.raises(InvalidValue, match="no column 'x'"):
            CERTAIN.summary().feed(table, "x")
