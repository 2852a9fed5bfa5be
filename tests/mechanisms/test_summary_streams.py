"""Streams: from files and databases, longer than memory, and whatever the order of the scores."""

import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from dpselect import PermuteAndFlip
from dpselect.errors import InvalidValue
from dpselect.mechanisms import summary
from dpselect.mechanisms import summary as part
from dpselect.selection.draws import Draws

UNIT = PermuteAndFlip(epsilon=2)


@pytest.fixture
def file(tmp_path):
    """A Parquet file of many row groups with one best candidate."""
    scores = np.arange(50_000) % 100
    scores[31_234] = 10_000
    rows = pa.table({"score": scores, "name": [f"n{i}" for i in range(scores.size)]})
    pq.write_table(rows, tmp_path / "t.parquet", row_group_size=1_000)
    return tmp_path / "t.parquet"


STREAMS = {
    "dataset": lambda path: pads.dataset(path).to_batches(batch_size=700),
    "scanner": lambda path: pads.dataset(path).scanner(columns=["name", "score"]).to_reader(),
    "Parquet": lambda path: pq.ParquetFile(path).iter_batches(batch_size=512),
    "DuckDB": lambda path: duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_reader(1_000),
    "generator": lambda path: (batch for batch in pq.read_table(path).to_batches(max_chunksize=333)),
    "tables": lambda path: iter([pq.read_table(path)]),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_of_every_kind(name, file):
    watched = UNIT.summary()
    watched.feed(STREAMS[name](file), "score", "name")
    assert (watched.result(), watched.candidates) == ("n31234", 50_000)
    by_position = UNIT.summary()
    by_position.feed(STREAMS[name](file), "score")
    assert by_position.result() == 31_234


# In a process of its own, so that nothing else counts; memory that is warm after a few blocks must not grow.
CONSTANT_MEMORY = r"""
import re, sys
import numpy as np, pyarrow as pa
from dpselect import PermuteAndFlip

def peak():
    # Not resource.getrusage, whose peak begins with that of the process that started this one.
    return int(re.search(r"VmHWM:\s*([0-9]+)", open("/proc/self/status").read())[1])

watched, generator = PermuteAndFlip(1).summary(), np.random.default_rng(1)

def stream(blocks):
    for _ in range(blocks):
        scores = generator.standard_normal(2**18)
        yield pa.record_batch({"score": scores, "name": np.arange(2**18)})

watched.feed(stream(8), "score", "name")
before = peak()
watched.feed(stream(int(sys.argv[1])), "score", "name")
print(watched.candidates, peak() - before, peak())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_stream():
    """Thirty million candidates, of which all scores would be 250 MB."""
    done = subprocess.run([sys.executable, "-c", CONSTANT_MEMORY, "112"], capture_output=True, text=True, check=True)
    candidates, growth, peak = map(int, done.stdout.split())
    assert candidates == 120 * 2**18
    assert growth < 16 * 1024  # kilobytes
    assert peak < 300 * 1024


class CountedBits(Draws):
    """The operating system's bits, counted."""

    drawn = 0

    def bits(self, count):
        self.drawn += count
        return super().bits(count)

    def words(self, count, width):
        self.drawn += count * width
        return super().words(count, width)


@pytest.fixture
def work(monkeypatch):
    """How many scores are looked at and bits are drawn for a stream of so many blocks whose maximum rises."""

    def of(blocks, size):
        bits, seen, scores_of = CountedBits(), [], part.gaps_of
        monkeypatch.setattr(
            part,
            "gaps_of",
            lambda scores, *rest, **options: seen.append(len(scores)) or scores_of(scores, *rest, **options),
        )
        monkeypatch.setattr(summary, "Draws", lambda: bits)
        watched = PermuteAndFlip("0.1").summary()
        watched.feed(np.arange(start * size, (start + 1) * size, dtype=float) for start in range(blocks))
        monkeypatch.undo()
        assert watched.candidates == blocks * size
        return sum(seen), bits.drawn

    return of


@pytest.mark.parametrize("size", [1, 1_000])
def test_sorted_scores_are_not_quadratic(size, work):
    """The maximum rises with every block. Four times as many blocks are four times the work; none is seen twice."""
    few, bits_of_few = work(200, size)
    many, bits_of_many = work(800, size)
    assert (few, many) == (200 * size, 800 * size)
    assert bits_of_many < 6 * bits_of_few  # and sixteen times, if it were quadratic


def test_a_number_is_not_a_block():
    with pytest.raises(InvalidValue, match="one-dimensional"):
        PermuteAndFlip(1).summary().update(np.array(1.0))
