"""Values that nobody listed, on every engine: what is counted, answered, charged and refused."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dpselect
from dpselect.mechanisms.unlisted import Finding
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.tables.looking import opened, repeated

DAY, NOON = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12, 0, 0, 7)
ZONED = NOON.replace(tzinfo=datetime.UTC)
# Two values of each kind, each of two people, and one that only one person has.
KINDS = {
    "text": ["a", "b\u00e9", "\u732b"],
    "whole": [-1, 3, 2**62],
    "float": [-0.5, 0.1, 1e300],
    "decimal": [Decimal("0.10"), Decimal("0.25"), Decimal("9.99")],
    "flag": [False, True, None],
    "day": [datetime.date(1, 1, 1), DAY, datetime.date(9999, 12, 31)],
    "time": [datetime.datetime(1, 1, 1), NOON, datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "zoned": [ZONED.replace(hour=1), ZONED, ZONED.replace(hour=13)],
}
SURE = {"epsilon": 50, "delta": "1/2"}  # a value of two people is found, and one of one person every other time
CLEAR = {"epsilon": 50, "delta": "1e-9"}


def tally_of(table, column, max_values=None, domain=None):
    """The different counts of each group, and the values that have each."""
    who = table._individuals
    with table._engine.tally(table.columns[column], domain, who, max_values) as tally:
        levels = tally.levels()
        wanted = [
            (group, count, rank)
            for group, own in enumerate(levels)
            for count, number in zip(own.individuals, own.values, strict=True)
            for rank in range(number)
        ]
        values = tally.values(wanted)
    found = [{} for _ in levels]
    for (group, count, _), value in zip(wanted, values, strict=True):
        assert value not in found[group]
        found[group][value] = count
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_every_kind_are_found(engine, kind):
    rows = {"who": [1, 2, 3, 4, 5, 6], "x": [value for value in KINDS[kind] for _ in range(2)]}
    found = [value for value in KINDS[kind] if value is not None]
    table = opened(rows, engine, person="who")
    assert table.values("x", **SURE).value == found
    assert tally_of(table, "x") == [dict.fromkeys(found, 2)]


def test_what_no_answer_can_hold_is_not_counted(engine):
    rows = {"x": [math.nan, math.inf, -math.inf, 1.0, 1.0, None, -0.0, 0.0]}
    assert tally_of(opened(rows, engine), "x") == [{1.0: 2, 0.0: 2}]


def test_dates_beyond_python_are_not_counted():
    import duckdb  # noqa: PLC0415 - only here

    moments = "VALUES (DATE '99999-01-01'), (DATE '0044-03-15 (BC)'), (DATE 'infinity'), (DATE '2024-01-01')"
    relation = duckdb.connect().sql(f"SELECT d, CAST(d AS TIMESTAMP) AS t, d::TIMESTAMPTZ AS z FROM ({moments}) v(d)")
    table = dpselect.open_table(relation)
    assert tally_of(table, "d") == [{DAY: 1}]
    assert [len(tally_of(table, column)[0]) for column in "tz"] == [1, 1]


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()])
def test_powers_of_two_are_read_back(type_):
    """DuckDB writes some of them as other numbers, or as no numbers."""
    exponents = range(-149, 128) if type_ == pa.float32() else range(-1074, 1024)
    powers = sorted(sign * 2.0**exponent for sign in (-1, 1) for exponent in exponents)
    table = opened({"x": powers}, types={"x": type_})
    for rule in (None, dpselect.every("float64")):
        with table._engine.tally(table.columns["x"], rule, table._individuals) as tally:
            found = tally.values([(0, 1, rank) for rank in range(len(powers))])
        assert np.array_equal(np.array(found, type_.to_pandas_dtype()), powers)
        assert rule is None or found == powers


def test_an_empty_table_is_a_table(engine):
    table = opened({"x": [None], "g": [None]}, engine, types={"x": "string", "g": "int64"})
    assert table.mode("x", **CLEAR).value is None
    assert table.values("x", **SURE).value == []
    assert table.group_by("g", **SURE).mode("x", **CLEAR).value == {}


def test_groups_are_found(engine):
    rows = {"who": range(200), "g": ["n"] * 120 + ["s"] * 79 + ["o"], "x": [1] * 120 + [2] * 80}
    table = opened(rows, engine, person="who")
    groups = table.group_by("g", epsilon=50, delta="1e-9")
    assert groups.groups == ["n", "s"]
    assert (groups.found.epsilon, groups.found.guarantee.delta) == (50, Fraction("1e-9"))
    assert groups.mode("x", candidates=[1, 2], epsilon=50).value == {"n": 1, "s": 2}
    assert table.group_by("g", groups=["n"]).found is None


@pytest.mark.slow
def test_coins_are_those_of_the_counts(engine):
    """A value of three people is found as often as partition selection allows, in each of many equal groups."""
    times = 3_000
    table = repeated({"x": ["a", "a", "a", "b"]}, times, engine=engine)
    answers = list(table.values("x", epsilon=1, delta="1/20").value.values())
    finding = Finding(Fraction(1), Fraction(1, 20))
    for value, people in (("a", 3), ("b", 1)):
        chance = finding.probability(people)
        found = sum(value in own for own in answers)
        assert_fits([found, times - found], [chance, 1 - chance])
    chance, wrong = finding.probability(3), finding.probability(2)
    found = sum("a" in own for own in answers)
    assert_rejected([found, times - found], [wrong, 1 - wrong], truth=[chance, 1 - chance])
