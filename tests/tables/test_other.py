"""The candidate for values that are not listed: counts, answers, refusals, and what it tells about one person."""

import datetime
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from dpselect.errors import InvalidType, InvalidValue, RequestConflict
from tests import spark
from tests.tables.looking import counts, opened

REST = "not listed"
TYPES = {"who": "int64", "g": "string", "x": "int64"}


def table_of(rows, engine="duckdb", **options):
    columns = dict(zip(TYPES, zip(*rows, strict=True), strict=True)) if rows else {}
    return opened({name: columns.get(name, []) for name in TYPES}, engine, types=TYPES, **options)


NOON = datetime.datetime(2024, 1, 1, 12)


@pytest.mark.parametrize(
    ("type_", "values", "listed", "found"),
    [
        (pa.float64(), [0.5, math.nan, math.inf, -math.inf, 2.0, None], [0.5, 1.5], [1, 0, 3]),
        (pa.float32(), [0.5, math.nan, math.inf, 0.0, None], [-0.0], [1, 2]),
        (pa.decimal128(10, 2), [Decimal("0.50"), Decimal("0.51"), None], [Decimal("0.5")], [1, 1]),
        (pa.bool_(), [True, False, None], [True], [1, 1]),
        (pa.date32(), [NOON.date(), NOON.date().replace(day=2), None], [NOON.date()], [1, 1]),
        (pa.timestamp("us"), [NOON, NOON.replace(hour=1), None], [NOON], [1, 1]),
        (pa.uint64(), [2**64 - 1, 5, None], [2**64 - 1, 2**70], [1, 0, 1]),
        (pa.string(), ["a", "", "A", "nan", None], ["a"], [1, 3]),
        # In writing: what cannot be read as a number is a value, and not on the list.
        (pa.string(), ["5", " 5", "05", "five", "nan", "5.0", "5.5", "", None], [5, 6], [4, 0, 4]),
        (pa.string(), ["0.5", "5e-1", "nan", "half", None], [0.5], [2, 2]),
        (pa.string(), ["2024-01-01", "01.01.2024", None], [NOON.date()], [1, 1]),
    ],
)
def test_values_of_every_kind(type_, values, listed, found, engine):
    """NaN is missing and infinities are not, in a column of floats."""
    for person in (None, "who"):
        table = opened({"who": range(len(values)), "x": values}, engine, types={"x": type_}, person=person)
        assert counts(table, "x", listed, other=REST) == found


def test_answers_name_it_as_it_was_given(engine):
    table = table_of([(i, "p", i) for i in range(40)], engine, person="who")
    for other in (REST, -1, 99):
        assert table.mode("x", candidates=[1, 2], other=other, epsilon=50).value == other
        assert table.top_k("x", 1, candidates=[1, 2], other=other, epsilon=50, method="peel").value == [other]
    free = table.top_k("x", 3, candidates=[1, 2], other=REST, epsilon=1)
    assert free.value == [1, 2, REST]
    assert free.epsilon == 0
    for choices in ({"method": "set", "max_values": 1}, {"method": "margin"}, {}):
        assert table.top_k("x", 2, candidates=[1, 70], other=REST, epsilon=200, **choices).value == [1, REST]
    groups = table.group_by("g", groups=["p"])
    assert groups.mode("x", candidates=[1, 2], other=REST, epsilon=50).value == {"p": REST}
    assert table.mode("x", candidates=[1], other=NOON.date().isoformat(), epsilon=50).value == "2024-01-01"


def test_the_same_words_of_another_type_are_another_request(tmp_path):
    table = table_of([(1, "p", 1)], ledger=tmp_path / "l", budget=9)
    table.mode("x", candidates=[1, 2], other=7, epsilon=1, request_id="7")
    with pytest.raises(RequestConflict):
        table.mode("x", candidates=[1, 2], other="7", epsilon=1, request_id="7")


@pytest.mark.parametrize("engine", [pytest.param("spark", marks=[*spark.MARKS, pytest.mark.slow])])
def test_candidates_of_a_frame_have_an_other_too(engine):
    """It is checked in Spark, and comes last."""
    session = spark.session()
    table = opened({"x": [1, 5, 5, 6, 6], "t": ["a", "b", "b", "c", "c"]}, engine)
    whole = session.createDataFrame([(1,), (2,)], "x long")
    text = session.createDataFrame([("a",), ("other",)], "t string")
    for column, frame, other in (("x", whole, REST), ("x", whole, 9), ("t", text, REST), ("t", text, "z")):
        assert table.mode(column, candidates=frame, other=other, epsilon=100).value == other
        first = 1 if column == "x" else "a"
        assert table.top_k(column, 2, candidates=frame, other=other, epsilon=100).value == [first, other]
        assert len(table.top_k(column, 3, candidates=frame, other=other, epsilon=100).value) == 3
    for column, frame, other in (("x", whole, 2), ("x", whole, "2"), ("t", text, "other")):
        with pytest.raises(InvalidValue, match="other must not be one of the candidates"):
            table.mode(column, candidates=frame, other=other, epsilon=1)
    with pytest.raises(InvalidType, match="other are floating-point numbers, but the column 'x'"):
        table.mode("x", candidates=whole, other=0.5, epsilon=1)
