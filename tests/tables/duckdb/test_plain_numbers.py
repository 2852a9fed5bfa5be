"""Numbers in writing: the short way by floats puts every text where the exact way by decimals puts it."""

from decimal import Decimal
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.tables.duckdb.source import connect
from dpselect.tables.duckdb.values import OnGrid
from dpselect.tables.kinds import Column, Kind, public_span

WRITTEN = Column("x", "VARCHAR", Kind.TEXT, untyped=True)
RANGES = [
    (0, 100, None),
    (-3, 50, "0.01"),
    (-7, 100, 3),
    ("-0.5", "2", "0.1"),
    (0, 10**15, None),
    (-(10**12), 10**15, 7),
    (0, 10, "0.0000001"),
    (0, "0.000000995", "0.000000005"),
    (0, "0.0000000998", "0.0000000002"),
]
NEAR = [
    f"{sign}{number}{ending}"
    for sign in ("", "-")
    for number in ("0.1", "0.30000000000000004", "1.005", "2.675", "49.99", "50", "100.0000000004", "999999999999999")
    for ending in ("", "0", "5", "e1", "e-1", "e-300", "e300", "0000000001", " ", "e-999999999", "0" * 40)
]
# Around candidates and ends, by less and by more than the ninth decimal place.
AROUND = [
    str(Decimal(number) + sign * Decimal(digit).scaleb(-power))
    for number in ("0", "0.1", "1.25", "-3", "-2.99", "50", "49.995", "100", "2097151.5", "2097152.25", "4194304")
    for sign in (-1, 1)
    for digit in ("1", "3.7", "3.8", "4", "4.9", "5", "5.1", "9")
    for power in range(1, 20)
]


def placed(texts, ends):
    """Texts that both ways put in different places, and for how many the short way is enough."""
    grid = public_span(*ends, WRITTEN)
    on_grid = OnGrid(WRITTEN, grid)
    ways = on_grid.plain_ways()
    assert ways
    assert not on_grid.has_no_gaps
    with patch.object(OnGrid, "plain_ways", return_value=[]):
        exact = on_grid.item
    connection = connect()
    connection.register("texts", {"x": np.array(list(texts), dtype=object)})
    numbers = ", ".join(f"count(*) FILTER ({condition})" for condition, _ in ways)
    [number] = connection.sql(f"SELECT {numbers} FROM texts").fetchall()
    items = f"SELECT x, {on_grid.item} AS short, {exact} AS exact FROM texts"
    return connection.sql(f"SELECT * FROM ({items}) WHERE short IS DISTINCT FROM exact").fetchall(), number


@pytest.mark.parametrize("ends", RANGES)
def test_short_texts_of_all_kinds_are_where_they_were(ends):
    """All texts of up to four of these marks, and numbers near the candidates and the ends."""
    short = {"".join(text) for text in product(["", *"0159.e+-_ xn"], repeat=4)}
    words = ["inf", "-inf", "nan", "-nan", "infinity", "1e400", "-1e400", "1e15", "1e-5", "+-1", "0x10", "1_000"]
    words += ["1e308", "-1e308", "1.8e308", "4.9e-324", "-4.9e-324", "-0"]
    different, numbers = placed([*short, *NEAR, *AROUND, *words], ends)
    assert different == []
    assert min(numbers) > 100  # or nothing was compared


@settings(max_examples=30)
@given(
    numbers=st.lists(st.decimals(-(10**6), 10**6, places=12) | st.floats(allow_nan=True) | st.integers(), max_size=30),
    cut=st.integers(1, 45),
    ends=st.sampled_from(RANGES),
)
def test_numbers_of_any_length_are_where_they_were(numbers, cut, ends):
    texts = [str(number)[:cut] for number in numbers]
    assert placed(["0", *texts], ends)[0] == []


def test_short_ways_that_take_too_much_would_be_noticed():
    plain_ways = OnGrid.plain_ways
    for which, text, items in ((0, "12.4", (24, 25)), (1, "12.0000000000001", (25, 24))):

        def too_many(*arguments, which=which):
            ways = plain_ways(*arguments)
            ways[which] = "TRY_CAST(x AS DOUBLE) IS NOT NULL", ways[which][1]
            return ways

        with patch.object(OnGrid, "plain_ways", too_many):
            assert placed([text], RANGES[0])[0] == [(text, *items)]
