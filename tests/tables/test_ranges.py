"""Ranges that are left out: the whole type of the column, all floats in the order of their bits, and magnitudes."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpselect
from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables.kinds import LARGEST_RANK, Column, Kind, float_of_rank, public_span, rank_of_float
from tests.tables.looking import opened, places

DAY, NOON = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)
ZONED = NOON.replace(tzinfo=datetime.UTC)
LARGEST = math.nextafter(math.inf, 0)
NARROW = float(np.finfo(np.float32).max)
FIRST, LAST = datetime.datetime.min, datetime.datetime.max
IN_TEXT = Column("x", "VARCHAR", Kind.TEXT, untyped=True)
WHOLE = Column("x", "BIGINT", Kind.INTEGER)
CENTS = Column("x", "DECIMAL(9,2)", Kind.DECIMAL, 2, precision=9)
FLOAT = Column("x", "DOUBLE", Kind.FLOAT)
DAYS = Column("x", "DATE", Kind.DATE)
TIMES = Column("x", "TIMESTAMP", Kind.TIMESTAMP)


# The whole type: each value stands at itself, at the place that counting from the first one gives.

WHOLE_TYPES = {
    **{
        f"int{bits}": (pa.type_for_alias(f"int{bits}"), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        for bits in (8, 16, 32, 64)
    },
    **{f"uint{bits}": (pa.type_for_alias(f"uint{bits}"), 0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}


@pytest.mark.parametrize("name", WHOLE_TYPES)
def test_all_whole_numbers_of_a_type(name):
    type_, least, most = WHOLE_TYPES[name]
    values = [least, least + 1, 7, most - 1, most, most, None]
    table = opened({"x": values}, types={"x": type_})
    grid = public_span(None, None, None, table.columns["x"])
    assert (grid.value(0), grid.value(grid.size - 1), grid.size) == (least, most, most - least + 1)
    numbers = [1, 1, 1, 1, 2]
    expected = [(value - least, False, n) for value, n in zip(sorted(set(values[:-1])), numbers, strict=True)]
    assert places(table, "x", None, None, None) == expected


def test_integers_of_128_bits_need_a_range():
    """They are read as decimals of 38 digits."""
    relation = duckdb.sql("SELECT CAST(x AS HUGEINT) AS x FROM (VALUES ('1e30'), ('-1e30'), ('5')) AS t(x)")
    table = dpselect.open_table(relation)
    with pytest.raises(InvalidValue, match="more than 2\\*\\*64 values: give lower and upper"):
        places(table, "x", None, None, None)
    assert places(table, "x", 0, 9, None) == [(0, False, 1), (5, False, 1), (9, False, 1)]


FLOATS = [5e-324, -5e-324, 0.0, -0.0, 0.1, 2.2250738585072014e-308, LARGEST, -LARGEST, math.inf, -math.inf, math.nan]


def test_all_floats_of_64_bits():
    """Both zeros are one place, infinities stand at the ends, and NaN counts nowhere."""
    table = opened({"x": [*FLOATS, None]})
    grid = public_span(None, None, None, table.columns["x"])
    assert grid.size == 2 * LARGEST_RANK[64] + 1
    assert (grid.value(0), grid.value(grid.size // 2), grid.value(grid.size - 1)) == (-LARGEST, 0.0, LARGEST)
    found = [(grid.value(place), behind, number) for place, behind, number in places(table, "x", None, None, None)]
    tiny, small = 5e-324, 2.2250738585072014e-308
    single = [(x, False, 1) for x in (tiny, small, 0.1)]
    assert found == [(-LARGEST, False, 2), (-tiny, False, 1), (0.0, False, 2), *single, (LARGEST, False, 2)]


def test_all_floats_of_32_bits():
    """An answer is the number that people write for the float."""
    most = NARROW
    table = opened({"x": [0.1, 0.0, -0.0, most, -most, math.inf, -math.inf, math.nan]}, types={"x": pa.float32()})
    grid = public_span(None, None, None, table.columns["x"])
    assert (grid.bits, grid.size) == (32, 2 * LARGEST_RANK[32] + 1)
    found = [(np.float32(grid.value(place)), number) for place, _, number in places(table, "x", None, None, None)]
    tenth = np.float32(0.1)
    assert found == [(-np.float32(NARROW), 2), (np.float32(0), 2), (tenth, 1), (np.float32(NARROW), 2)]
    assert grid.value(places(table, "x", None, None, None)[2][0]) == 0.1


@pytest.mark.parametrize(("precision", "digits"), [(5, 2), (9, 0), (18, 2), (18, 18), (4, 4)])
def test_all_decimals_of_a_type(precision, digits):
    most = Decimal(f"{'9' * precision}e-{digits}")
    table = opened({"x": [most, -most, Decimal(0)]}, types={"x": pa.decimal128(precision, digits)})
    grid = public_span(None, None, None, table.columns["x"])
    assert (grid.value(0), grid.value(grid.size - 1)) == (-most, most)
    whole = 10**precision - 1
    assert places(table, "x", None, None, None) == [(i, False, 1) for i in (0, whole, 2 * whole)]
    assert table.median("x", epsilon=10**4).value == 0


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
@example(0.0, -0.0)
@example(-5e-324, 5e-324)
def test_the_order_of_ranks_is_that_of_floats(x, y):
    ranks = [rank_of_float(number, 64) for number in (x, y)]
    assert (ranks[0] < ranks[1], ranks[0] == ranks[1]) == (x < y, x == y)
    assert [float_of_rank(rank, 64) for rank in ranks] == [x, y]
    following = math.nextafter(x, math.inf)
    assert x == LARGEST or rank_of_float(following, 64) == ranks[0] + 1


@pytest.mark.slow
@given(st.lists(st.floats(), min_size=1, max_size=20))
def test_the_engine_has_the_ranks_of_the_model(numbers):
    clamped = [min(max(x, -LARGEST), LARGEST) for x in numbers if x == x]  # noqa: PLR0124 - NaN
    table = opened({"x": numbers}, types={"x": pa.float64()})
    expected = sorted(rank_of_float(x, 64) + LARGEST_RANK[64] for x in clamped)
    found = [place for place, behind, number in places(table, "x", None, None, None) for _ in range(number)]
    assert found == expected


# Parts of a range.


@pytest.mark.parametrize(
    ("column", "given", "size", "ends"),
    [
        (WHOLE, (5, None, None), 2**63 - 5, (5, 2**63 - 1)),
        (WHOLE, (None, 5, None), 2**63 + 6, (-(2**63), 5)),
        (WHOLE, (None, None, 10), None, (-(2**63) + 8, 2**63 - 8)),
        (WHOLE, (3, None, 10), None, (3, 2**63 - 5)),
        (WHOLE, (None, 7, 2**62), 3, (-(2**63), 0)),
        (WHOLE, (0, 9, None), 10, (0, 9)),
        (CENTS, (None, None, None), 2 * 10**9 - 1, (Decimal("-9999999.99"), Decimal("9999999.99"))),
        (CENTS, (None, None, "0.25"), None, (Decimal("-9999999.75"), Decimal("9999999.75"))),
        (CENTS, (0, None, None), 10**9, (Decimal("0.00"), Decimal("9999999.99"))),
        (CENTS, (0, 2, None), 3, (Decimal("0.00"), Decimal("2.00"))),
        (FLOAT, (0, None, None), LARGEST_RANK[64] + 1, (0.0, LARGEST)),
        (FLOAT, (None, -1.5, None), None, (-LARGEST, -1.5)),
        (FLOAT, (None, None, "0.5"), None, (-(2**48 // 5 * 5) / 10, 2**48 // 5 * 5 / 10)),
        (FLOAT, (1, None, 1), 2**48, (1.0, float(2**48))),
        (DAYS, (DAY, None, None), None, (DAY, datetime.date.max)),
        (DAYS, (None, None, 7), None, (datetime.date(1, 1, 4), datetime.date(9999, 12, 30))),
        (TIMES, (None, NOON, None), None, (FIRST, NOON)),
        (TIMES, (None, None, 3600), None, (FIRST, LAST.replace(minute=0, second=0, microsecond=0))),
        (IN_TEXT, (None, None, 1), 2**64, (-(2**63), 2**63 - 1)),
        (
            IN_TEXT,
            (None, None, "0.01"),
            2 * 10**18 - 1,
            (Decimal("-9999999999999999.99"), Decimal("9999999999999999.99")),
        ),
        (IN_TEXT, (None, None, 0.5), None, (-(2**48 // 5 * 5) / 10, 2**48 // 5 * 5 / 10)),
        (IN_TEXT, (0, None, None), 2**63, (0, 2**63 - 1)),
        (IN_TEXT, (0.0, None, None), LARGEST_RANK[64] + 1, (0.0, LARGEST)),
        (IN_TEXT, ("2024-01-01", None, None), None, (DAY, datetime.date.max)),
        (IN_TEXT, (None, "2024-01-01T12:00", None), None, (FIRST, NOON)),
    ],
    ids=str,
)
def test_a_missing_part_follows_from_the_type(column, given, size, ends):
    grid = public_span(*given, column)
    assert (grid.value(0), grid.value(grid.size - 1)) == ends
    assert [type(grid.value(0)), type(grid.value(grid.size - 1))] == [type(end) for end in ends]
    assert size is None or grid.size == size


# Values at, between and beyond the candidates of a part of a range.


def test_values_outside_a_half_open_range_stand_at_its_end():
    table = opened({"f": [-1.0, 0.5, math.inf, math.nan], "n": [-3, 4, 9, None], "s": ["-1", "2.5", "x", "1e99"]})
    grid = public_span(0, None, None, table.columns["f"])
    assert [(grid.value(place), n) for place, _, n in places(table, "f", 0, None, None)] == [
        (0.0, 1),
        (0.5, 1),
        (LARGEST, 1),
    ]
    assert places(table, "n", None, 5, None) == [(2**63 - 3, False, 1), (2**63 + 4, False, 1), (2**63 + 5, False, 1)]
    found = places(table, "s", None, None, 1)
    assert found == [(2**63 - 1, False, 1), (2**63 + 2, True, 1), (2**64 - 1, False, 1)]
    cents = public_span(None, None, "0.01", table.columns["s"])
    values = [(cents.value(place), behind) for place, behind, _ in places(table, "s", None, None, "0.01")]
    assert values == [(Decimal("-1.00"), False), (Decimal("2.50"), False), (cents.value(cents.size - 1), False)]


# Magnitudes.

MAGNITUDES = {
    "int8": (Column("x", "TINYINT", Kind.INTEGER), -120, 120, 2 * (99 + 3) + 1),
    "uint8": (Column("x", "UTINYINT", Kind.INTEGER), 0, 250, 99 + 16 + 1),
    "int64": (WHOLE, -92 * 10**17, 92 * 10**17, 2 * (99 + 16 * 90 + 83) + 1),
    "uint64": (Column("x", "UBIGINT", Kind.INTEGER), 0, 18 * 10**18, 99 + 17 * 90 + 9 + 1),
    "hugeint": (Column("x", "HUGEINT", Kind.INTEGER), -92 * 10**17, 92 * 10**17, 2 * (99 + 16 * 90 + 83) + 1),
    "decimal": (CENTS, Decimal("-9900000.00"), Decimal("9900000.00"), 2 * (99 + 7 * 90) + 1),
    "float": (FLOAT, -1e18, 1e18, 2 * (27 * 90 + 1) + 1),
    "narrow": (Column("x", "FLOAT", Kind.FLOAT), -1e18, 1e18, 2 * (27 * 90 + 1) + 1),
    "text": (IN_TEXT, -1e18, 1e18, 2 * (27 * 90 + 1) + 1),
}


@pytest.mark.parametrize("name", MAGNITUDES)
def test_magnitudes_have_two_digits_and_increase(name):
    column, least, most, size = MAGNITUDES[name]
    grid = public_span(None, None, None, column, "log")
    values = [grid.value(index) for index in range(grid.size)]
    assert (values[0], values[-1], len(values)) == (least, most, size)
    assert all(a < b for a, b in pairwise(values))
    assert 0 in values
    for value in values:
        digits = Decimal(str(value)).normalize().as_tuple().digits
        assert len(digits) <= 2, value


def nearest(value, candidates):
    """The index of the nearest candidate; of two, the larger one."""
    return min(range(len(candidates)), key=lambda i: (abs(Fraction(candidates[i]) - Fraction(value)), -i))


@pytest.mark.slow
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-2000, 2000), max_size=8))
@example([105, 104, -105, 95, 9_150_000_000_000_000_000])
def test_whole_numbers_are_rounded_to_the_nearest_magnitude(numbers):
    table = opened({"x": numbers}, types={"x": pa.int64()})
    grid = public_span(None, None, None, table.columns["x"], "log")
    candidates = [grid.value(index) for index in range(grid.size)]
    found = places(table, "x", None, None, None, range="log")
    stood = [place for place, behind, number in found for _ in range(number)]
    assert not any(behind for _, behind, _ in found)
    assert len({place for place, *_ in found}) == len(found)
    assert stood == sorted(nearest(number, candidates) for number in numbers)


@pytest.mark.slow
@given(
    st.lists(st.floats(-1e19, 1e19) | st.sampled_from([0.0, -0.0, 0.105, 1e-10, 4.9e-10, 5.1e-10, 36.4]), max_size=5)
)
def test_floats_are_rounded_to_the_nearest_magnitude(numbers):
    """Up to a rounding of the middle between two magnitudes."""
    table = opened({"x": numbers}, types={"x": pa.float64()})
    grid = public_span(None, None, None, table.columns["x"], "log")
    candidates = [grid.value(index) for index in range(grid.size)]
    found = places(table, "x", None, None, None, range="log")
    stood = [place for place, _, number in found for _ in range(number)]
    for number, place in zip(sorted(numbers), stood, strict=True):
        best = abs(Fraction(candidates[nearest(number, candidates)]) - Fraction(number))
        assert abs(Fraction(candidates[place]) - Fraction(number)) <= best + Fraction(abs(number)) / 2**50


def test_people_between_two_magnitudes_stand_at_one():
    """Else all candidates would be equally far from a quantile, and the answer would be any of them."""
    table = opened({"x": [36.1, 36.2, 36.3, 36.4] * 100})
    assert table.median("x", range="log", epsilon=2).value == 36.0
    assert table.quantiles("x", "quartiles", range="log", epsilon=4).value == [36.0] * 3


# What is refused, before anything is charged.

BAD = {
    "log of days": ("d", {"range": "log"}, InvalidType, "holds dates, which have no magnitude"),
    "log of times": ("t", {"range": "log"}, InvalidType, "holds timestamps, which have no magnitude"),
    "log with an end": ("x", {"range": "log", "lower": 0}, InvalidValue, "leave out lower, upper and step"),
    "log with a step": ("x", {"range": "log", "step": 1}, InvalidValue, "leave out lower, upper and step"),
    "another range": ("x", {"range": "wide"}, InvalidValue, "range must be 'full' or 'log', got 'wide'"),
    "no range": ("x", {"range": None}, InvalidValue, "range must be 'full' or 'log', got 'None'"),
    "beyond the type": ("n", {"lower": 300}, InvalidValue, "lower must be <= upper, got 300 and 127"),
    "typed text": ("s", {}, InvalidType, "holds text, which has no quantiles"),
    "typed text with ends": ("s", {"lower": 0, "upper": 1}, InvalidType, "holds text, which has no quantiles"),
    "flags": ("b", {}, InvalidType, "holds true or false, which have no quantiles"),
    "wide decimals": ("w", {}, InvalidValue, "more than 2\\*\\*64 values: give lower and upper"),
    "wide decimals with a step": ("w", {"step": 1}, InvalidValue, "more than 2\\*\\*64 values: give lower and upper"),
    "too many digits": ("c", {"step": "0.001"}, InvalidValue, "at most 2 digits after the point, as the column 'c'"),
    "too large": ("g", {"lower": 1e39}, InvalidValue, "lower must be a finite number that floats of 32 bits can hold"),
}
IN_WRITING = {
    "nothing": ({}, InvalidValue, "give a step of 1 for whole numbers, a step of 0.01 for"),
    "a time as a step": ({"step": datetime.timedelta(1)}, InvalidValue, "the question must say what it stands for"),
    "one end of decimals": ({"lower": "0.5"}, InvalidValue, "step must be given with only one end"),
    "no value": ({"lower": "five"}, InvalidValue, "lower: 'five' is neither a number nor a date"),
    "a date as a step": ({"step": "2024-01-01"}, InvalidValue, "the question must say what it stands for"),
    "a zone": ({"lower": "2024-01-01T00:00+01:00"}, InvalidType, "timestamps without a time zone"),
    "two kinds": ({"lower": "2024-01-01", "upper": 5}, InvalidType, "holds text, lower and upper are"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_ranges_cost_nothing(kind, ledger):
    column, given, error, words = BAD[kind]
    rows = {"x": [1], "n": [1], "d": [DAY], "t": [NOON], "s": ["a"], "b": [True], "f": [1.0], "g": [1.0]}
    rows |= {"w": [Decimal(1)], "c": [Decimal(1)]}
    types = {"n": pa.int8(), "g": pa.float32(), "w": pa.decimal128(38, 2), "c": pa.decimal128(9, 2)}
    source = pa.table({name: pa.array(values, types.get(name)) for name, values in rows.items()})
    table = dpselect.open_table(source, ledger=ledger)
    for ask in (table.median, lambda *a, **k: table.quantiles(*a, "deciles", **k), table.maximum):
        with pytest.raises(error, match=words):
            ask(column, **given, epsilon=1)
    assert not list(ledger.entries())


@pytest.mark.parametrize("kind", IN_WRITING)
def test_text_must_be_said_to_be_something(kind, ledger):
    given, error, words = IN_WRITING[kind]
    table = opened({"x": ["1"]}, ledger=ledger)
    with pytest.raises(error, match=words):
        table.median("x", **given, epsilon=1)
    assert not list(ledger.entries())


# What a ledger records.


def test_the_range_is_recorded(ledger):
    table = dpselect.open_table(pa.table({"n": [1], "f": [1.0]}), ledger=ledger)
    table.median("n", epsilon=1)
    table.median("n", lower=-(2**63), upper=2**63 - 1, epsilon=1)
    table.median("n", range="log", epsilon=1)
    table.median("f", epsilon=1)
    first, second, third, fourth = (entry.what for entry in ledger.entries())
    assert first == second  # they are the same question
    assert (first["lower"], first["upper"], first["candidates"]) == (str(-(2**63)), str(2**63 - 1), 2**64)
    assert (third["range"], third["candidates"], third["lower"]) == ("log", 3245, str(-92 * 10**17))
    assert (fourth["lower"], fourth["candidates"]) == (str(-LARGEST), 2 * LARGEST_RANK[64] + 1)
    assert {what["estimate"] for what in (first, third, fourth)} == {"median over rows"}
