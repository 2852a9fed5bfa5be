"""The digest of a request's data is equal exactly for equal rows, whatever their values are."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect._scores import as_vector
from dpselect.release import scores_digest
from dpselect.tables.duckdb.engine import DuckDBEngine
from dpselect.tables.duckdb.files import source_of
from dpselect.tables.duckdb.source import connect, of_source, schema

TEXTS = st.text(st.sampled_from("a1:-'\",\0\u00e9\U0001f600"), max_size=4)
MOMENTS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 1, 1))
VALUES = {
    pa.string(): TEXTS,
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 12),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.decimal128(20, 3): st.decimals(-(10**12), 10**12, places=3),
    pa.date32(): st.dates(),
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("us", "Europe/Berlin"): MOMENTS.map(lambda moment: moment.replace(tzinfo=datetime.UTC)),
}


CONNECTION = connect()


def written(value):
    """Equal for equal values and nothing else: NaN is one value, and zeros have signs."""
    return "nan" if value != value else repr(value)  # noqa: PLR0124


@st.composite
def two_tables(draw):
    types = [draw(st.sampled_from(list(VALUES))) for _ in range(draw(st.integers(1, 3)))]
    row = st.tuples(*(st.none() | VALUES[type_] for type_ in types))
    first = draw(st.lists(row, max_size=4))
    second = draw(st.permutations(first) | st.lists(row | st.sampled_from(first or [(None,) * len(types)]), max_size=4))
    return types, first, second


@settings(max_examples=150, deadline=None)
@given(two_tables())
def test_digests_are_equal_exactly_for_equal_rows(tables):
    types, *contents = tables
    digests = []
    for rows in contents:
        values = list(zip(*rows, strict=True)) or [()] * len(types)
        frame = pa.table({f"c{i}": pa.array(values[i], type_) for i, type_ in enumerate(types)})
        source = source_of(frame)
        digests.append(of_source(source, CONNECTION, list(schema(source, CONNECTION).values())))
    bags = [sorted(tuple(map(written, row)) for row in rows) for rows in contents]
    assert (digests[0] == digests[1]) == (bags[0] == bags[1])


def test_fields_do_not_run_into_each_other():
    pairs = [
        ("a", "bc"),
        ("ab", "c"),
        ("abc", ""),
        ("", "abc"),
        (None, "abc"),
        ("abc", None),
        ("-", "abc"),
        ("1:a", ""),
    ]
    digests = set()
    for first, second in pairs:
        engine = DuckDBEngine(pa.table({"x": pa.array([first], pa.string()), "y": pa.array([second], pa.string())}))
        digests.add(engine.content(list(engine.columns.values())))
    assert len(digests) == len(pairs)


ENDS = {
    "seconds": pa.array([-(2**63) + 1, 2**63 - 1, 0, None], pa.int64()).cast(pa.timestamp("s")),
    "microseconds": pa.array([-(2**63) + 1, 2**63 - 1, 0, None], pa.int64()).cast(pa.timestamp("us")),
    "nanoseconds": pa.array([-(2**63) + 1, 2**63 - 1, 0, None], pa.int64()).cast(pa.timestamp("ns")),
    "zoned": pa.array([-(2**63) + 1, 2**63 - 1, 0, None], pa.int64()).cast(pa.timestamp("us", "UTC")),
    "days": pa.array([-(2**31), 2**31 - 1, 0, None], pa.int32()).cast(pa.date32()),
    "floats": pa.array([float("inf"), float("-inf"), float("nan"), 5e-324]),
    "integers": pa.array([2**64 - 1, 0, 1, None], pa.uint64()),
    "decimals": pa.array([Decimal(10**37), Decimal(-(10**37)), Decimal(0), None], pa.decimal128(38, 0)),
    "text": pa.array(["", "\0", "x" * 100_000, None]),
    "large text": pa.array(["", "a", "\x1f", None], pa.large_string()),
    "dictionary": pa.array(["a", "b", "a", None]).dictionary_encode(),
    "flags": pa.array([True, False, None, True]),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_no_value_makes_the_digest_fail(name):
    """Nor two of them equal, unless the engine itself reads them as equal."""
    array = ENDS[name]
    digests = set()
    for place in range(len(array)):
        engine = DuckDBEngine(pa.table({"x": array.take(pa.array([place, place]))}))
        digests.add(engine.content(list(engine.columns.values())))
    assert len(digests) >= 3


def test_scores_that_differ_a_little_have_different_digests():
    third, large = Fraction(1, 3), 2**53
    scores = [
        [0.5, float(third)],
        [0.5, third],  # some are floats, and others are not
        [1e-20, 2e-20],
        [2e-20, 1e-20],
        np.array([-large - 1, 0]),  # an integer that floats cannot hold, below zero
        np.array([-large, 0]),
        np.array([0, large + 1]),
        np.array([0, large]),
    ]
    assert len({scores_digest(as_vector(own)) for own in scores}) == len(scores)
