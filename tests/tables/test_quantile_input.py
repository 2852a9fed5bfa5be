"""What questions about quantiles take, as people write it, and what they refuse before anything is charged."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpselect.errors import InvalidType, InvalidValue
from tests.tables.looking import opened

CERTAIN = 10**5
DAY, NOON = datetime.date(2024, 3, 5), datetime.datetime(2024, 3, 5, 12, 0, 30)
ZONED = NOON.replace(tzinfo=datetime.UTC)


def rows():
    """A hundred people, all at the same values."""
    values = {"n": 7, "f": 0.3, "c": Decimal("1.25"), "d": DAY, "t": NOON, "z": ZONED, "s": "word", "b": True}
    return {"who": range(100), "g": ["p", "q"] * 50, **{name: [value] * 100 for name, value in values.items()}}


TYPES = {"c": pa.decimal128(9, 2), "z": pa.timestamp("us", "UTC")}


@pytest.fixture(scope="module")
def table():
    return opened(rows(), types=TYPES, person="who")


# Levels.

WRITTEN = {
    "text": ["0.1", "1/2", " 0.9 "],
    "floats": [0.1, 0.5, 0.9],
    "exact": (Fraction(1, 10), Decimal("0.50"), "9e-1"),
    "NumPy": np.array([0.1, 0.5, 0.9]),
    "NumPy with 32 bits": np.array([0.1, 0.5, 0.9], np.float32),
    "NumPy with text": np.array(["0.1", "0.5", "0.9"]),
    "pandas": pd.Series([0.1, 0.5, 0.9], index=[7, 8, 9]),
    "pandas with 32 bits": pd.Series([0.1, 0.5, 0.9], dtype="float32"),
    "polars": pl.Series([0.1, 0.5, 0.9], dtype=pl.Float32),
    "Arrow": pa.array([0.1, 0.5, 0.9], pa.float32()),
    "Arrow in pieces": pa.chunked_array([[0.1], [0.5, 0.9]]),
    "Arrow decimals": pa.array([Decimal("0.1"), Decimal("0.5"), Decimal("0.9")]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_levels_are_what_is_written(name, ledger):
    opened(rows(), types=TYPES, ledger=ledger).quantiles("n", WRITTEN[name], lower=0, upper=9, epsilon=1)
    assert ledger.entries()[0].what["levels"] == ["1/10", "1/2", "9/10"]


LISTED = "levels must be a list of numbers such as"
ONE = "level must be .*between 0 and 1"
BAD_LEVELS = {
    "zero": ([0, 0.5], InvalidValue, ONE),
    "one": ([0.5, 1], InvalidValue, ONE),
    "below": ([-0.1], InvalidValue, ONE),
    "percents": ([10, 50, 90], InvalidValue, ONE),
    "NaN": ([0.5, math.nan], InvalidValue, ONE),
    "infinity": ([math.inf], InvalidValue, ONE),
    "huge": (["1e99999"], InvalidValue, ONE),
    "truth": ([True], InvalidValue, ONE),
    "twice": ([0.5, 0.1, "1/2"], InvalidValue, "levels must be different, but 0.5 occurs twice"),
    "none": ([], InvalidValue, "levels must have at least one level"),
    "an empty array": (np.array([]), InvalidValue, "levels must have at least one level"),
    "too many": ([Fraction(i, 1001) for i in range(1, 1001)], InvalidValue, "levels must be at most 999: give fewer"),
    "very many": (["0.5"] * 10**6, InvalidValue, "levels must be at most 999"),
    "too fine": (["0.1234567"], InvalidValue, "level must be a multiple of 1/n .* give fewer digits"),
    "too fine together": (["1/1009", "1/1013"], InvalidValue, "levels must be multiples of 1/n for one n <= 1,000,000"),
    "words": (["half"], InvalidType, "level must be a number between 0 and 1, got 'half'"),
    "nothing in a list": ([0.5, None], InvalidType, ONE),
    "nothing in an array": (pa.array([0.5, None]), InvalidValue, ONE),
    "lists": ([[0.5]], InvalidType, ONE),
    "bytes": (b"\x01", InvalidType, LISTED),
    "a name": ("thirds", InvalidValue, f"{LISTED}.* got 'thirds'"),
    "a number": (0.5, InvalidType, f"{LISTED}.* got float: for one level use quantile"),
    "a number as text": ("0.5", InvalidValue, LISTED),
    "a number of NumPy": (np.float64(0.5), InvalidType, LISTED),
    "a set": ({0.1, 0.5}, InvalidType, LISTED),
    "a dict": ({0.1: 1}, InvalidType, LISTED),
    "a generator": (iter([0.1]), InvalidType, LISTED),
    "a matrix": (np.array([[0.1], [0.5]]), InvalidType, LISTED),
    "a frame": (pd.DataFrame({"level": [0.1]}), InvalidType, LISTED),
    "a missing list": (None, InvalidType, LISTED),
}


@pytest.mark.parametrize("kind", BAD_LEVELS)
def test_bad_levels_are_refused_before_a_charge(kind, ledger):
    levels, error, words = BAD_LEVELS[kind]
    table = opened(rows(), types=TYPES, person="who", ledger=ledger)
    for one in (table, table.group_by("g", groups=["p", "q"])):
        with pytest.raises(error, match=words):
            one.quantiles("n", levels, lower=0, upper=9, epsilon=1)
    assert ledger.entries() == []


# People and rows.

BAD_ROWS = {
    "another word": ({"per_person": "mean"}, InvalidValue, "per_person must be 'median' or 'rows', got 'mean'"),
    "no word": ({"per_person": None}, InvalidValue, "per_person must be 'median' or 'rows', got 'None'"),
    "a list of words": ({"per_person": ["rows"]}, InvalidValue, "per_person must be 'median' or 'rows'"),
    "no number": ({"per_person": "rows"}, InvalidValue, "per_person='rows' needs max_rows"),
    "a number alone": ({"max_rows": 2}, InvalidValue, "max_rows needs per_person='rows'"),
    "no rows": ({"per_person": "rows", "max_rows": 0}, InvalidValue, "max_rows must be from 1 to 1,000,000,000"),
    "too many rows": ({"per_person": "rows", "max_rows": 10**9 + 1}, InvalidValue, "max_rows must be from 1 to"),
    "fewer than none": ({"per_person": "rows", "max_rows": -1}, InvalidValue, "max_rows must be >= 0"),
    "half a row": ({"per_person": "rows", "max_rows": 1.5}, InvalidType, "max_rows must be an integer"),
    "rows as text": ({"per_person": "rows", "max_rows": "2"}, InvalidType, "max_rows must be an integer"),
    "truth": ({"per_person": "rows", "max_rows": True}, InvalidType, "max_rows must be an integer"),
}


@pytest.mark.parametrize("kind", [*BAD_ROWS, "nobody"])
def test_bad_rows_are_refused_before_a_charge(kind, ledger):
    good = {"per_person": "rows", "max_rows": 2}
    given, error, words = BAD_ROWS.get(kind, (good, InvalidValue, "need a person column.* Open the table with person="))
    table = opened(rows(), types=TYPES, person=None if kind == "nobody" else "who", ledger=ledger)
    for one in (table, table.group_by("g", groups=["p", "q"])):
        asked = {"lower": 0, "upper": 9, "epsilon": 1, **given}
        for ask in (
            lambda: one.median("n", **asked),  # noqa: B023 - called at once
            lambda: one.quantile("n", 0.9, **asked),  # noqa: B023
            lambda: one.quantiles("n", "deciles", **asked),  # noqa: B023
            lambda: one.minimum("n", **asked),  # noqa: B023
            lambda: one.maximum("n", **asked),  # noqa: B023
        ):
            with pytest.raises(error, match=words):
                ask()
    assert ledger.entries() == []


# Ends and steps. What else is refused of them is in `test_ranges`.

ENDS = {
    "whole numbers": ("n", {"lower": "-10", "upper": "1e2", "step": "1"}, 7),
    "whole numbers as decimals": ("n", {"lower": Decimal(0), "upper": "9.0"}, 7),
    "whole numbers of NumPy": ("n", {"lower": np.int8(0), "upper": np.uint64(9), "step": np.int64(7)}, 7),
    "floats": ("f", {"lower": "0", "upper": "1", "step": "0.1"}, 0.3),
    "floats as decimals": ("f", {"lower": Decimal(0), "upper": Decimal("0.5"), "step": Decimal("0.05")}, 0.3),
    "floats of 32 bits": ("f", {"lower": np.float32(0.1), "upper": 1, "step": np.float32(0.1)}, 0.3),
    "one end of floats": ("f", {"upper": "0.3"}, 0.3),
    "cents": ("c", {"lower": "0.25", "upper": "9.25", "step": "0.50"}, Decimal("1.25")),
    "cents as floats": ("c", {"lower": 0.25, "upper": 9.25, "step": 0.25}, Decimal("1.25")),
    "days": ("d", {"lower": "2024-01-01", "upper": "2024-12-31"}, DAY),
    "a day and text": ("d", {"lower": datetime.date(2024, 3, 4), "upper": "2025-01-01", "step": "1"}, DAY),
    "weeks": ("d", {"lower": "2024-02-27", "upper": "2024-12-31", "step": datetime.timedelta(weeks=1)}, DAY),
    "moments": ("t", {"lower": "2024-03-05T00:00", "upper": "2024-03-06 00:00:00"}, NOON),
    "half minutes": ("t", {"lower": "2024-03-05", "upper": "2024-03-06", "step": "30"}, NOON),
    "parts of seconds": ("t", {"lower": "2024-03-05", "upper": "2024-03-06", "step": "0.5"}, NOON),
    "moments of a zone": ("z", {"lower": "2024-03-05T01:00+01:00", "upper": "2024-03-05T23:00Z", "step": "30"}, ZONED),
}


@pytest.mark.parametrize("name", ENDS)
def test_ends_and_steps_as_people_write_them(name, table):
    """Everybody has one value, and so it is every quantile."""
    column, given, value = ENDS[name]
    found = table.quantiles(column, ["0.9", "0.1"], **given, epsilon=CERTAIN).value
    assert (found, type(found[0])) == ([value, value], type(value))
    assert table.median(column, **given, epsilon=CERTAIN).value == value
    assert table.minimum(column, **given, epsilon=CERTAIN).value == value
