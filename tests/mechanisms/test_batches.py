"""Small Arrow batches are gathered: the same rows in the same order, whatever comes between them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import PermuteAndFlip
from dpselect.mechanisms.summary import gathered, stream_of

SIZES = st.lists(st.integers(0, 9), max_size=12)


WHOLE = pa.int64()


def batch(start, size, kind=WHOLE):
    return pa.record_batch({"score": pa.array(range(start, start + size), kind), "other": ["x"] * size})


def batches(sizes, kinds=None):
    starts = np.cumsum([0, *sizes]).tolist()
    kinds = kinds or [WHOLE] * len(sizes)
    return [batch(start, size, kind) for start, size, kind in zip(starts, sizes, kinds, strict=False)]


@given(SIZES, st.integers(1, 12))
def test_rows_keep_their_order_and_all_but_the_last_table_are_large(sizes, rows):
    tables = list(gathered(batches(sizes), ["score"], rows))
    assert [row for table in tables for row in table["score"].to_pylist()] == list(range(sum(sizes)))
    assert all(table.num_rows >= rows for table in tables[:-1])
    assert all(table.column_names == ["score"] for table in tables)


@given(SIZES, st.data())
def test_a_change_of_type_ends_a_table(sizes, data):
    kinds = [data.draw(st.sampled_from([WHOLE, pa.float64()])) for _ in sizes]
    tables = list(gathered(batches(sizes, kinds), ["score"], 10**6))
    assert [row for table in tables for row in table["score"].to_pylist()] == list(range(sum(sizes)))
    assert len(tables) == sum(1 for i, kind in enumerate(kinds) if i == 0 or kind != kinds[i - 1])


def test_other_blocks_pass_at_once_and_in_their_place():
    frame = {"score": [7]}
    stream = gathered([batch(0, 1), frame, batch(1, 1)], ["score"])
    first, second, third = stream
    assert (first["score"].to_pylist(), second, third["score"].to_pylist()) == ([0], frame, [1])


def test_a_stream_of_small_batches_is_seen_in_few_updates(monkeypatch):
    summary, sizes = PermuteAndFlip(epsilon=1).summary(), []
    add = summary._stream.add

    def counted(scores, labels, draws, **options):
        sizes.append(len(scores))
        add(scores, labels, draws, **options)

    monkeypatch.setattr(summary._stream, "add", counted)
    summary.feed((batch(i * 2048, 2048) for i in range(512)), "score")
    assert sizes == [2**19, 2**19]
    assert summary.candidates == 2**20


@pytest.mark.parametrize(
    ("sizes", "kinds", "tables"),
    [
        ([1, 2, 1, 1, 1], [WHOLE, *[pa.float64()] * 4], [1, 4, 1]),
        ([3, 3, 1], None, [6, 1]),
        ([4, 2, 2, 1], None, [4, 4, 1]),
    ],
    ids=["after another type", "larger than asked for", "after a large one"],
)
def test_tables_are_as_large_as_asked_for(sizes, kinds, tables):
    assert [table.num_rows for table in gathered(batches(sizes, kinds), ["score"], 4)] == tables


class RecordBatch(dict):
    """Of another library."""


@pytest.mark.parametrize(
    "block", [pa.table({"score": [7]}), pa.array([7]), RecordBatch(score=[7])], ids=["T", "A", "R"]
)
def test_only_record_batches_of_arrow_wait(block):
    first, second, third = gathered([batch(0, 1), block, batch(1, 1)], ["score"])
    assert second is block
    assert (first["score"].to_pylist(), third["score"].to_pylist()) == ([0], [1])


class Reader(list):
    """Blocks with the names of their columns, which do not make a table of it."""

    columns = ("score",)


def test_a_stream_is_no_table_and_a_table_is_one_block():
    blocks = [{"score": [1]}, {"score": [2]}]
    assert list(stream_of(Reader(blocks))) == blocks
    assert list(stream_of(np.array([3, 4]))) == [3, 4]
    frame = pd.DataFrame({"score": [1, 2]})
    assert [block is frame for block in stream_of(frame)] == [True]
    assert [block.num_rows for block in stream_of(pa.table({"score": [1, 2]}))] == [2]
