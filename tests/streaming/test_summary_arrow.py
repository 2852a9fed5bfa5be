"""Summaries to Arrow and back: exact, small, and silent about what they hold."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import PermuteAndFlip
from dpselect.errors import InvalidType, InvalidValue
from dpselect.streaming.summary import Summary

UNIT = PermuteAndFlip(epsilon=2)
SCORES = (
    st.integers(-(10**400), 10**400)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.fractions()
    | st.just(Fraction(10**5_000, 3**7_000))
)
LABELS = (
    st.text(st.characters())
    | st.text("a\ud800\udc00\udfff")
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.just(7**9_000)
    | st.floats(allow_nan=False)
    | st.fractions()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.binary()
)
MECHANISMS = st.builds(
    PermuteAndFlip, st.fractions("1/1000", 10) | st.floats(1e-300, 1e300), st.fractions("1/7", 9), st.booleans()
) | st.builds(PermuteAndFlip, st.fractions("1/1000", 10), score_range=st.fractions("1/7", 9))


def there_and_back(watched):
    """Through the bytes of a stream, as between two machines."""
    sink = pa.BufferOutputStream()
    batch = watched.to_arrow()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    [received] = list(pa.ipc.open_stream(sink.getvalue()))
    return Summary.from_arrow(received)


@given(mechanism=MECHANISMS, scores=st.lists(SCORES, max_size=3), label=st.none() | LABELS)
def test_every_summary_comes_back_as_it_was(mechanism, scores, label):
    watched = mechanism.summary()
    watched.update(scores, None if label is None else [label] * len(scores))
    returned = there_and_back(watched)
    assert returned.mechanism == watched.mechanism
    assert returned._part == watched._part
    if scores:
        assert type(returned.result()) is type(watched.result())


def test_the_digits_of_an_integer_have_no_limit():
    watched = UNIT.summary()
    watched.update([7**9_000], labels=[7**9_001])
    assert there_and_back(watched).result() == 7**9_001
    assert there_and_back(watched)._part.arrival.exponent == -(7**9_000)


def test_summaries_of_many_machines_stack_into_one_table_and_merge():
    parts = []
    for start in range(0, 40, 10):
        part = UNIT.summary()
        part.update(np.arange(start, start + 10) * 100)
        parts.append(part.to_arrow())
    table = pa.Table.from_batches(parts)
    merged = UNIT.summary()
    for row in range(table.num_rows):
        merged = merged.merge(Summary.from_arrow(table.slice(row, 1)))
    assert (merged.result(), merged.candidates) == (39, 40)


def test_a_row_is_small_whatever_it_has_seen():
    watched = UNIT.summary()
    watched.feed(np.full(100_000, 2.0**-30) for _ in range(10))
    assert watched.candidates == 10**6
    assert watched.to_arrow().nbytes < 300


def test_an_empty_summary_is_still_the_identity():
    full = UNIT.summary()
    full.update([0, 900], labels=["a", "b"])
    assert there_and_back(UNIT.summary()).merge(full).result() == "b"


@pytest.mark.parametrize(
    ("batch", "error", "words"),
    [
        (3, InvalidType, "batch must be an Arrow record batch or table, got int"),
        (pa.table({"x": [1]}), InvalidValue, "is not a summary"),
        (pa.table({"x": [1, 2]}), InvalidValue, "must have one row"),
        (pa.table({"x": []}), InvalidValue, "must have one row"),
    ],
)
def test_other_batches_are_refused(batch, error, words):
    with pytest.raises(error, match=words):
        Summary.from_arrow(batch)


@pytest.mark.parametrize("label", [True, False])
@pytest.mark.parametrize("monotonic", [True, False])
def test_flags_come_back_as_they_were(label, monotonic):
    watched = PermuteAndFlip(epsilon=2, monotonic=monotonic).summary()
    watched.update([1], labels=[label])
    again = Summary.from_arrow(watched.to_arrow())
    assert again.result() is label
    assert again.mechanism.monotonic is monotonic
    row = watched.to_arrow().to_pylist()[0]
    with pytest.raises(InvalidValue, match="is not a summary"):
        Summary.from_arrow(pa.Table.from_pylist([{**row, "label": "true"}]))


@pytest.mark.parametrize(("label", "text"), [("a", "['a']"), ("a", "1"), (7, "0x7"), (None, "()"), (Decimal(1), "1_0")])
def test_a_label_of_another_type_or_text_is_refused(label, text):
    watched = UNIT.summary()
    watched.update([1], labels=[label])
    row = watched.to_arrow().to_pylist()[0]
    with pytest.raises(InvalidValue, match="is not a summary"):
        Summary.from_arrow(pa.Table.from_pylist([{**row, "label": text}]))


@pytest.mark.parametrize(
    "column", ["epsilon", "monotonic", "maximum", "exponent", "heads", "prefix", "depth", "label_kind"]
)
def test_a_damaged_row_is_refused_and_not_shown(column):
    watched = UNIT.summary()
    watched.update([123456789], labels=["canary"])
    row = {**watched.to_arrow().to_pylist()[0], column: "canary-7"}
    with pytest.raises(InvalidValue, match="is not a summary") as caught:
        Summary.from_arrow(pa.Table.from_pylist([row]))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "damage",
    [
        {"heads": "0"},
        {"heads": "2"},
        {"heads": "-1"},
        {"head": "-1"},
        {"head": "1"},
        {"prefix": "-1"},
        {"depth": "34"},
        {"depth": "ffffffff"},
        {"prefix": "f" * 14},
    ],
    ids=str,
)
def test_numbers_that_no_summary_has_are_refused(damage):
    """None, or more heads than candidates; fewer than 53 bits of V, or so many that they take all memory."""
    watched = UNIT.summary()
    watched.update([7])
    with pytest.raises(InvalidValue, match="is not a summary"):
        Summary.from_arrow(pa.Table.from_pylist([{**watched.to_arrow().to_pylist()[0], **damage}]))


@pytest.mark.parametrize("text", ["int64 5", "datetime64[us] ", "datetime64[us]", "nothing 5"])
def test_a_moment_of_another_type_is_refused(text):
    watched = UNIT.summary()
    watched.update([1], labels=[np.datetime64(5, "us")])
    row = watched.to_arrow().to_pylist()[0]
    assert (row["label_kind"], row["label"]) == ("datetime64", "datetime64[us] 5")
    with pytest.raises(InvalidValue, match="is not a summary"):
        Summary.from_arrow(pa.Table.from_pylist([{**row, "label": text}]))


def test_labels_that_arrow_cannot_hold_are_refused():
    watched = UNIT.summary()
    watched.update([1], labels=[object()])
    with pytest.raises(InvalidType, match=r"all labels must be text, numbers, dates or bytes .*pickle"):
        watched.to_arrow()


def test_decimals_keep_their_digits():
    watched = UNIT.summary()
    watched.update([1], labels=[Decimal("1.500")])
    assert str(there_and_back(watched).result()) == "1.500"


@pytest.mark.parametrize("steady", [False, True])
def test_a_steady_summary_comes_back_steady(steady):
    watched = UNIT.summary(steady=steady)
    watched.update([1, 2])
    assert there_and_back(watched)._steady is steady
    assert there_and_back(UNIT.summary(steady=steady))._steady is steady
