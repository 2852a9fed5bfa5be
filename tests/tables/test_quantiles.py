"""`quantiles`, `minimum` and `maximum`, and what is new for one quantile: answers, charges, requests, estimates."""

import random
from fractions import Fraction
from unittest.mock import Mock

import pytest

from dpselect.tables.duckdb import engine as duckdb_engine
from tests.tables.looking import opened

RANGE = {"lower": 0, "upper": 100}
CERTAIN = 10**5  # an epsilon at which the best candidate is chosen, but with a probability below 1e-1000
PERCENTILES = [Fraction(i, 100) for i in range(1, 100)]


def rows_of_people():
    """Everybody at one of the values 0 to 99: the q-quantile is 100 q - 1 or, for whole percents, up to 100 q."""
    return {"who": range(400), "g": ["p", "q"] * 200, "x": [i // 4 for i in range(400)]}


@pytest.fixture(params=[None, "who"], ids=["rows", "people"])
def person(request):
    return request.param


@pytest.fixture(params=["add-remove", "replace"])
def neighbours(request):
    return request.param


# Answers.


def test_answers_are_in_the_order_of_the_levels(person, neighbours):
    table = opened(rows_of_people(), person=person, neighbours=neighbours)
    levels = ["0.905", "0.105", "0.505", "0.995", "0.005"]
    assert table.quantiles("x", levels, **RANGE, epsilon=CERTAIN).value == [90, 10, 50, 99, 0]
    assert table.quantiles("x", ["0.505"], **RANGE, epsilon=CERTAIN).value == [50]
    assert table.quantiles("x", ["0.505", "0.105"], **RANGE, epsilon=CERTAIN).value == [50, 10]


@pytest.mark.parametrize("epsilon", ["0.001", "1"])
def test_answers_never_cross(person, neighbours, epsilon):
    """However noisy they are, and in whatever order the levels are given."""
    table = opened(rows_of_people(), person=person, neighbours=neighbours)
    levels = random.Random(7).sample(PERCENTILES, 99)
    found = table.quantiles("x", levels, **RANGE, epsilon=epsilon).value
    ascending = [value for _, value in sorted(zip(levels, found, strict=True))]
    assert ascending == sorted(found)
    percentiles = table.quantiles("x", "percentiles", **RANGE, epsilon=epsilon).value
    assert percentiles == sorted(percentiles)
    assert len(percentiles) == 99
    assert set(percentiles) <= set(range(101))


def test_minimum_and_maximum_are_outer_quantiles(person):
    table = opened(rows_of_people(), person=person)
    asked = RANGE | {"epsilon": CERTAIN}
    assert table.minimum("x", **asked).value in (0, 1)
    assert table.maximum("x", **asked).value in (98, 99)
    assert table.minimum("x", level="0.105", **asked).value == 10
    assert table.maximum("x", level=0.905, **asked).value == 90


def test_a_value_that_most_people_share_is_the_median(person):
    """Sixty people at 0 and forty at 1: 0 is right for all levels up to 0.6, alone and together."""
    rows = {"who": range(100), "x": [0] * 60 + [1] * 40}
    table = opened(rows, person=person)
    asked = {"lower": 0, "upper": 1, "epsilon": CERTAIN}
    assert table.median("x", **asked).value == 0
    assert table.quantile("x", "0.59", **asked).value == 0
    assert table.quantile("x", "0.61", **asked).value == 1
    assert table.quantiles("x", "deciles", **asked).value in ([0] * 5 + [x] + [1] * 3 for x in (0, 1))
    halves = opened({"who": rows["who"], "x": [float(x) for x in rows["x"]]}, person=person)
    assert halves.median("x", lower=0, upper=1, step="0.5", epsilon=CERTAIN).value == 0


def test_people_and_rows_have_different_quantiles():
    """Most rows are from few people: the median of people is 1, and that of rows is 50, or 1 with one row of each."""
    rows = {"who": [*range(60), *[100] * 100, *[101] * 100], "x": [1] * 60 + [50] * 200}
    table = opened(rows, person="who")
    asked = RANGE | {"epsilon": CERTAIN * 1000}
    assert table.median("x", **asked).value == 1
    assert table.median("x", **asked, per_person="rows", max_rows=100).value == 50
    assert table.median("x", **asked, per_person="rows", max_rows=1).value == 1
    assert table.quantiles("x", ["0.5", "0.1"], **asked, per_person="rows", max_rows=100).value == [50, 1]
    assert table.minimum("x", **asked, per_person="rows", max_rows=100, level="0.3").value == 50
    assert opened(rows).median("x", **asked).value == 50


# The source is read once, and a ledger is charged once.


def test_the_source_is_read_once(person, ledger, monkeypatch):
    read = Mock(wraps=duckdb_engine.read)
    monkeypatch.setattr(duckdb_engine, "read", read)
    table = opened(rows_of_people(), person=person)
    table.quantiles("x", "percentiles", **RANGE, epsilon=1)
    assert read.call_count == 1
    table.group_by("g", groups=["p", "q"]).quantiles("x", "deciles", **RANGE, epsilon=1)
    assert read.call_count == 2
    for level in PERCENTILES[::50]:
        table.quantile("x", level, **RANGE, epsilon=1)
    assert read.call_count == 4


def test_999_levels_are_a_request_like_any_other(tmp_path):
    levels = [f"{i}/1000" for i in range(1, 1000)]
    table = opened(rows_of_people(), ledger=tmp_path / "ledger", budget=1)
    first, again = (table.quantiles("x", levels, **RANGE, epsilon=1, request_id="r") for _ in range(2))
    assert (again.value, again.repeated) == (first.value, True)
    assert first.value == sorted(first.value)
    [entry] = table._ledger.entries()
    assert entry.charge.count == 10
