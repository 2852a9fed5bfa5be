"""Candidates are public: required, different, of the column's kind; absent ones can win, and others never count."""

import datetime
import decimal
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpselect
from dpselect.errors import InvalidType, InvalidValue
from tests.tables.looking import counts, opened

DAY, NOON = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)
ZONED = NOON.replace(tzinfo=datetime.UTC)
ROWS = {
    "text": ["a", "b", None, "a"],
    "whole": [1, 2, None, 1],
    "flag": [True, False, None, True],
    "float": [0.5, 0.1, None, 0.5],
    "cents": [Decimal("1.50"), Decimal("2.00"), None, Decimal("1.50")],
    "day": [DAY, DAY + datetime.timedelta(1), None, DAY],
    "time": [NOON, NOON + datetime.timedelta(seconds=1), None, NOON],
    "zoned": [ZONED, ZONED + datetime.timedelta(seconds=1), None, ZONED],
    "other": [[1], [2], None, [1]],
    "decimals": [[Decimal("1.5")], [Decimal("2.5")], None, []],
}
TYPES = {"cents": pa.decimal128(10, 2), "time": pa.timestamp("us"), "zoned": pa.timestamp("us", "Europe/Berlin")}


@pytest.fixture(scope="module")
def table():
    return opened(ROWS, types=TYPES)


@pytest.mark.parametrize(
    "candidates",
    [
        ["b", "a"],
        ("b", "a"),
        np.array(["b", "a"]),
        np.array(["b", "a"], dtype=object),
        pd.Series(["b", "a"]),
        pd.Categorical(["b", "a"]),
        pd.Index(["b", "a"]),
        pl.Series(["b", "a"]),
        pa.array(["b", "a"]),
        pa.chunked_array([["b"], ["a"]]),
        {"b": 1, "a": 2}.keys(),
    ],
    ids=lambda values: type(values).__name__,
)
def test_lists_of_many_kinds(candidates, table):
    if isinstance(candidates, type({}.keys())):
        with pytest.raises(InvalidType, match="candidates must be a list of values, got dict_keys"):
            counts(table, "text", candidates)
    else:
        assert counts(table, "text", candidates) == [1, 2]


def test_sets_and_ranges_and_numbers(table):
    assert sorted(counts(table, "text", {"a", "b", "c"})) == [0, 1, 2]
    assert sorted(counts(table, "text", frozenset("ab"))) == [1, 2]
    assert counts(table, "whole", range(4)) == [0, 2, 1, 0]
    assert counts(table, "whole", np.arange(4, dtype=np.uint8)) == [0, 2, 1, 0]
    assert counts(table, "whole", [np.int16(1), 2]) == [2, 1]
    assert counts(table, "float", np.array([0.5, 1.0], np.float32)) == [2, 0]
    assert counts(table, "float", [1, 0.5]) == [0, 2]
    assert counts(table, "flag", np.array([False, True])) == [1, 2]
    assert counts(table, "cents", [1, 2]) == [0, 1]
    assert counts(table, "cents", [Decimal("1.5"), 2]) == [2, 1]
    assert counts(table, "time", pd.Series([NOON, NOON.replace(year=1999)])) == [2, 0]
    assert counts(table, "time", np.array([NOON], "M8[us]")) == [2]
    assert counts(table, "zoned", [ZONED.astimezone(datetime.timezone(datetime.timedelta(hours=5)))]) == [2]


def test_an_answer_is_an_item_of_the_list(table):
    answer = table.mode("whole", candidates=np.array([1, 2]), epsilon=100).value
    assert answer == 1
    assert type(answer) is int
    assert table.mode("cents", candidates=[Decimal("1.500")], epsilon=1).value == Decimal("1.5")


@pytest.mark.parametrize("precision", [28, 3])
def test_decimals_finer_than_the_column_are_what_nobody_has(precision):
    """They do not count the rows of the decimal near to them, whatever the precision of the thread."""
    table = opened({"x": [Decimal("1.00"), Decimal("1234.50")]}, types={"x": pa.decimal128(10, 2)})
    tail = Decimal("1." + "0" * 30 + "1")
    with decimal.localcontext() as context:
        context.prec = precision
        candidates = [
            tail,
            Decimal("1.001"),
            Decimal("1.000"),
            Decimal("1234.5"),
            Decimal("1.2345E+3"),
            Decimal("1E+9"),
        ]
        assert counts(table, "x", candidates[:4]) == [0, 0, 1, 1]
        assert counts(table, "x", candidates[4:]) == [1, 0]
        assert counts(table, "x", [Decimal("1E+400"), Decimal("1E-400"), Decimal(1)]) == [0, 0, 1]


def test_text_is_read_as_what_is_asked():
    rows = ["1", "1.0", " 1 ", "+1", "1e0", "true", "2024-01-01", "2024-01-01 00:00:00", "x", "", "1,0", "0x1"]
    table = opened({"x": rows})
    assert counts(table, "x", [1, 2]) == [5, 0]
    assert counts(table, "x", [Decimal(1)]) == [5]
    assert counts(table, "x", [1.0, 2.5]) == [5, 0]
    assert counts(table, "x", [DAY]) == [2]
    assert counts(table, "x", [NOON.replace(hour=0)]) == [2]
    assert counts(table, "x", ["1", "1.0"]) == [1, 1]
    with pytest.raises(InvalidType, match="time zone"):
        counts(table, "x", [ZONED])


BAD = {
    "none": (None, "text", InvalidValue, "give (candidates|groups), the public list"),
    "empty": ([], "text", InvalidValue, "candidates must have at least one value: .* must be public"),
    "empty array": (np.array([]), "text", InvalidValue, "at least one value"),
    "a text": ("abc", "text", InvalidType, "candidates must be a list of values, got str"),
    "bytes": (b"abc", "text", InvalidType, "candidates must be a list of values, got bytes"),
    "a number": (3, "whole", InvalidType, "candidates must be a list of values, got int"),
    "a generator": ((x for x in "ab"), "text", InvalidType, "candidates must be a list of values, got generator"),
    "a frame": (pd.DataFrame({"a": ["x"]}), "text", InvalidType, "candidates must be a list of values, got DataFrame"),
    "duplicates": (
        ["a", "b", "a"],
        "text",
        InvalidValue,
        "different values, but a occurs twice: drop",
    ),
    "equal numbers": ([1, 1.0], "float", InvalidValue, "must be different values"),
    "equal decimals": ([Decimal("1.0"), Decimal("1.00")], "cents", InvalidValue, "must be different values"),
    "equal zeros": ([0.0, -0.0], "float", InvalidValue, "must be different values"),
    "equal moments": (
        [ZONED, ZONED.astimezone(datetime.timezone(datetime.timedelta(hours=5)))],
        "zoned",
        InvalidValue,
        "must be different values",
    ),
    "mixed": (["a", 1], "text", InvalidType, "candidates must be values of one type: text, whole numbers mixed"),
    "flags and numbers": ([True, 2], "whole", InvalidType, "values of one type"),
    "zones mixed": ([NOON, ZONED], "time", InvalidType, "values of one type"),
    "missing": (["a", None], "text", InvalidType, "candidates must be numbers, text, dates.*, got NoneType"),
    "NaT": ([NOON, pd.NaT], "time", InvalidType, "candidates must be numbers, text, dates.*, got NaTType"),
    "nested": ([["a"]], "text", InvalidType, "got list"),
    "fractions": ([Fraction(1, 2)], "float", InvalidType, "got Fraction"),
    "NaN": ([0.5, math.nan], "float", InvalidValue, "candidates must be finite numbers"),
    "infinity": ([math.inf, 1], "float", InvalidValue, "candidates must be finite numbers"),
    "decimal NaN": ([Decimal("NaN"), Decimal(1)], "cents", InvalidValue, "candidates must be finite numbers"),
    "signalling NaN": ([Decimal("sNaN"), Decimal(1)], "cents", InvalidValue, "candidates must be finite numbers"),
    "text for numbers": (
        ["1"],
        "whole",
        InvalidType,
        "candidates are text, but the column 'whole' holds whole numbers",
    ),
    "numbers for days": ([1], "day", InvalidType, "holds dates: give values of the column's type"),
    "times for days": ([NOON], "day", InvalidType, "candidates are timestamps"),
    "days for times": ([DAY], "time", InvalidType, "candidates are dates"),
    "floats for whole": ([1.5], "whole", InvalidType, "candidates are floating-point numbers"),
    "floats for decimals": ([1.5], "cents", InvalidType, "candidates are floating-point numbers"),
    "no float": ([2**53 + 1], "float", InvalidValue, "9007199254740993 is not one, so no row can match it"),
    "too long": ([10**5000], "whole", InvalidValue, "at most 4000 digits"),
    "too long for floats": ([10**5000, 1.5], "float", InvalidValue, "at most 4000 digits"),
    "long for floats": ([10**400, 1.5], "float", InvalidValue, "no row can match it"),
    "too long decimal": ([Decimal("1E+999999999")], "cents", InvalidValue, "at most 4000 digits"),
    "surrogate": (["a", "\ud800"], "text", InvalidValue, "candidates must be text that can be encoded as UTF-8"),
    "no question": ([1], "other", InvalidType, r"column 'other' has the type BIGINT\[\], about which no question"),
    "no question of decimals": ([1], "decimals", InvalidType, r"column 'decimals' has the type DECIMAL\(2,1\)\[\]"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_candidates_are_refused(kind, table):
    candidates, column, error, words = BAD[kind]
    ask = [
        lambda: table.mode(column, candidates=candidates, epsilon=1),
        lambda: table.group_by(column, groups=candidates),
        lambda: table.top_k(column, 1, candidates=candidates, epsilon=1),
    ]
    for question in ask[:1] if kind == "a generator" else ask:
        named = words.replace("candidates ", "groups ") if question is ask[1] else words
        with pytest.raises(error, match=named):
            question()


def test_names_that_look_like_data_are_not_shown(tmp_path):
    """The first line of a CSV file without a header is somebody's row."""
    path = tmp_path / "rows.csv"
    path.write_text("alice,$7310\nbob,$41\n")
    found = dpselect.open_table(path)
    with pytest.raises(InvalidValue, match="not in the table, which has 2 others, which look like data") as caught:
        found.mode("name", candidates=["a"], epsilon=1)
    assert "7310" not in str(caught.value) + repr(found)
    assert repr(found) == "Table(columns=2, person=None)"


def test_bad_options_are_refused():
    with pytest.raises(InvalidValue, match="neighbours must be 'add-remove' or 'replace', got 'both'"):
        opened({"x": [1]}, neighbours="both")
    with pytest.raises(InvalidValue, match="engine must be one of duckdb, spark, got 'sqlite'"):
        opened({"x": [1]}, engine="sqlite")


def test_text_of_a_typed_source_is_text(tmp_path):
    """Numbers in writing are read where the source has no types: a question of the wrong type is an error elsewhere."""
    rows = pa.table({"code": ["1", "2"]})
    (tmp_path / "codes.csv").write_text("code\n1\n2\n", encoding="utf-8")
    pq.write_table(rows, tmp_path / "codes.parquet")
    objects = pd.DataFrame({"code": pd.Series(["1", 2], dtype=object)})
    for untyped in (tmp_path / "codes.csv", objects):
        table = dpselect.open_table(untyped)
        assert table.mode("code", candidates=[1, 2, 3], epsilon=1).value in (1, 2, 3)
        assert table.median("code", lower=0, upper=3, epsilon=1).value in range(4)
    for typed in (tmp_path / "codes.parquet", rows, rows.to_pandas().astype("string")):
        table = dpselect.open_table(typed)
        with pytest.raises(InvalidType, match="candidates are whole numbers, but the column 'code' holds text"):
            table.mode("code", candidates=[1, 2, 3], epsilon=1)
        with pytest.raises(InvalidType, match="column 'code' holds text, which has no quantiles"):
            table.median("code", lower=0, upper=3, epsilon=1)


def test_floats_of_32_bits_are_candidates_as_they_are_written():
    table = opened({"x": [0.1, 0.1, 2.5]}, types={"x": pa.float32()})
    assert counts(table, "x", [0.1, 2.5, 0.2]) == [2, 1, 0]
