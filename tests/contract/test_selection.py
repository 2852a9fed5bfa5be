"""The contract of every mechanism: what goes in, what comes out, and what is refused with which words."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.mechanisms import base
from tests.gumbel import GumbelNoisyMax

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax, GumbelNoisyMax]
# A winner so far ahead that losing to it has probability below 1e-200, in every container that users have.
WINNER = {
    "list of ints": [0, 0, 10**4],
    "tuple": (0, 0, 10**4),
    "range": range(0, 30_000, 10_000),
    "list of floats": [0.0, -1e308, 1e308],
    "mixed": [0, Fraction(1, 3), Decimal("1e4")],
    "Decimals": [Decimal("0.1"), Decimal("0.2"), Decimal("1e4")],
    "Fractions": [Fraction(1, 3), Fraction(2, 3), Fraction(10**5, 3)],
    "huge ints": [0, -(10**400), 10**400],
    "bools": [False, False, True],
    "int8": np.array([-128, -128, 127], np.int8),
    "uint8": np.array([0, 0, 255], np.uint8),
    "int64": np.array([-(2**63), 0, 2**63 - 1]),
    "uint64": np.array([0, 1, 2**64 - 1], np.uint64),
    "float16": np.array([0, 0, 6e4], np.float16),
    "float32": np.array([0, 0, 1e30], np.float32),
    "longdouble": np.array([0, 0, 1e4], np.longdouble),
    "big-endian": np.array([0, 0, 10**4], ">i8"),
    "strided": np.arange(30_000)[::10_000],
    "reversed": np.array([10**4, 0, 0])[::-1],
    "numpy bools": np.array([False, False, True]),
    "object array": np.array([0, Fraction(1, 3), 10**4], dtype=object),
    "pandas": pd.Series([0, 0, 10**4], index=[7, 8, 9]),
    "pandas nullable": pd.Series([0, 0, 10**4], dtype="Int64"),
    "pandas Arrow": pd.Series([0, 0, 10**4], dtype="int64[pyarrow]"),
    "polars": pl.Series([0.0, 0.0, 1e4]),
    "polars Decimal": pl.Series([Decimal("0.1"), Decimal("0.2"), Decimal("10000.0")]),
    "Arrow": pa.array([0, 0, 10**4]),
    "Arrow chunks": pa.chunked_array([[0, 0], [10**4]]),
    "Arrow decimals": pa.array([Decimal("0.10"), Decimal("0.20"), Decimal("9000.00")]),
    "scalars": [np.float32(0), np.int8(1), np.float64(1e4)],
    "unmasked": np.ma.array([0, 0, 10**4]),
}
EPSILON = {"bools": 10**4, "numpy bools": 10**4, "int8": 100, "uint8": 100}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("container", WINNER)
def test_every_container_is_read(kind, container):
    mechanism = kind(EPSILON.get(container, 1))
    selected = mechanism.select(WINNER[container])
    assert type(selected) is int
    assert selected == 2


BAD = {
    "empty": ([], errors.InvalidValue, "at least one"),
    "empty array": (np.empty(0), errors.InvalidValue, "at least one"),
    "nan": ([1.0, math.nan], errors.InvalidValue, "finite"),
    "negative nan": (-np.array([1.0, math.nan]), errors.InvalidValue, "finite"),
    "inf": ([1.0, math.inf], errors.InvalidValue, "finite"),
    "-inf": ([1.0, -math.inf], errors.InvalidValue, "finite"),
    "-inf below zero": ([-1.0, -math.inf], errors.InvalidValue, "finite"),
    "float32 inf": (np.array([1, -np.inf], np.float32), errors.InvalidValue, "finite"),
    "Decimal nan": ([Decimal("nan"), 1], errors.InvalidValue, "finite"),
    "huge Decimal": ([Decimal("1e999999"), 1], errors.InvalidValue, "finite"),
    "mixed nan": ([Fraction(1, 3), math.nan], errors.InvalidValue, "finite"),
    "longdouble nan": (np.array([np.nan], np.longdouble), errors.InvalidValue, "finite"),
    "None inside": ([1, None], errors.InvalidValue, "finite"),
    "pandas NA": (pd.Series([1, None], dtype="Int64"), errors.InvalidValue, "finite"),
    "Arrow null": (pa.array([1, None]), errors.InvalidValue, "finite"),
    "polars null": (pl.Series([1, None]), errors.InvalidValue, "finite"),
    "masked": (np.ma.array([1, 2], mask=[0, 1]), errors.InvalidValue, "finite"),
    "0-d": (np.array(1.0), errors.InvalidValue, "one-dimensional"),
    "2-d": (np.ones((2, 2)), errors.InvalidValue, "select_rows"),
    "nested list": ([[1, 2], [3, 4]], errors.InvalidValue, "select_rows"),
    "frame": (pd.DataFrame({"a": [1]}), errors.InvalidType, "one-dimensional"),
    "text": ("abc", errors.InvalidType, "one-dimensional"),
    "texts": (["a", "b"], errors.InvalidType, "numbers"),
    "array of texts": (np.array(["a"]), errors.InvalidType, "numbers"),
    "complex": (np.array([1j]), errors.InvalidType, "numbers"),
    "complex inside": ([1, 1j], errors.InvalidType, "numbers"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), errors.InvalidType, "numbers"),
    "None": (None, errors.InvalidType, "one-dimensional"),
    "number": (3, errors.InvalidType, "one-dimensional"),
    "dict": ({1: 2}, errors.InvalidType, "one-dimensional"),
    "set": ({1, 2}, errors.InvalidType, "one-dimensional"),
    "generator": ((x for x in [1]), errors.InvalidType, "one-dimensional"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", BAD)
def test_bad_scores_are_refused(kind, case):
    scores, error, words = BAD[case]
    with pytest.raises(error, match=words) as caught:
        kind(1).select(scores)
    assert isinstance(caught.value, (ValueError, TypeError))
    assert "scores" in str(caught.value)


@pytest.mark.parametrize("where", [0, 5_000, 70_000, 99_999])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("offset", [0.0, -50.0])
def test_one_bad_score_among_many_is_found(where, bad, offset):
    scores = np.arange(100_000) % 97 + offset
    scores[where] = bad
    for kind in KINDS:
        with pytest.raises(errors.InvalidValue, match="finite"):
            kind(1).select(scores)


BAD_ROWS = {
    "1-d": (np.ones(3), errors.InvalidValue, "two-dimensional"),
    "ragged": ([[1, 2], [3]], errors.InvalidValue, "one length"),
    "no columns": (np.ones((2, 0)), errors.InvalidValue, "at least one"),
    "nan": (np.array([[1.0, math.nan]]), errors.InvalidValue, "finite"),
    "numbers": ([1, 2], errors.InvalidType, "one-dimensional"),
    "text": ("ab", errors.InvalidType, "two-dimensional"),
    "texts": (np.array([["a"]]), errors.InvalidType, "numbers"),
    "None": (None, errors.InvalidType, "two-dimensional"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_are_refused(kind, case):
    scores, error, words = BAD_ROWS[case]
    with pytest.raises(error, match=words):
        kind(1).select_rows(scores)


ROWS = {
    "array": np.array([[0, 10**4], [10**4, 0]]),
    "lists": [[0, 10**4], [10**4, 0]],
    "mixed lists": [[0, 10**4], [Fraction(10**5, 3), 0]],
    "huge ints": [[0, 10**30], [10**30, 0]],
    "pandas": pd.DataFrame({"a": [0, 10**4], "b": [10**4, 0]}),
    "pandas mixed": pd.DataFrame({"a": [2**60, 2**60 + 10**4], "b": [2.0**60 + 2**13, 2.0**60]}),
    "polars": pl.DataFrame({"a": [0, 10**4], "b": [10**4, 0]}),
    "Arrow": pa.table({"a": [0, 10**4], "b": [10**4, 0]}),
    "objects": np.array([[0, Fraction(10**4)], [Fraction(10**4), 0]], dtype=object),
    "wide": np.concatenate([np.zeros((2, 9000)), [[0, 0], [0, 0]], [[0, 10**4], [10**4, 0]]], axis=1),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ROWS)
def test_rows_of_every_container_are_read(kind, case):
    selected = kind(1).select_rows(ROWS[case])
    width = len(ROWS[case][0]) if isinstance(ROWS[case], (list, np.ndarray)) else 2
    assert selected.dtype == np.int64
    assert selected.tolist() == [width - 1, width - 2]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_taken_in_chunks_of_any_size(kind, monkeypatch):
    """Three rows at a time, of which the last chunk has one."""
    monkeypatch.setattr(base, "_CHUNK", 9)
    best = np.array([0, 2, 1, 1, 0, 2, 2, 0, 1, 2])
    scores = np.zeros((10, 3), np.int64)
    scores[np.arange(10), best] = 10**4
    assert kind(1).select_rows(scores).tolist() == best.tolist()


@pytest.mark.parametrize("total", [0.9, 1.1, math.nan])
def test_probabilities_that_do_not_sum_to_one_are_not_handed_out(total, monkeypatch):
    monkeypatch.setattr(PermuteAndFlip, "_probabilities", lambda *_: np.array([total / 2, total / 2]))
    with pytest.raises(errors.NotConverged, match="do not sum to one"):
        PermuteAndFlip(1).pmf([0, 0])


def test_one_candidate_is_selected_and_no_rows_select_nothing():
    for kind in KINDS:
        assert kind(1).select([3]) == 0
        assert kind(1).select_rows([[3], [4]]).tolist() == [0, 0]
        for rows in (np.empty((0, 3)), [], pd.DataFrame({"a": []})):
            assert kind(1).select_rows(rows).tolist() == []
