"""Groups of several columns: every combination is answered, and a person is kept in some of theirs, at random."""

import datetime
from itertools import product

import numpy as np
import pytest

from dpselect.errors import InvalidValue, RequestConflict
from dpselect.release import decode_answer, encode_answer
from tests.tables.looking import counts, opened

BOTH = {"g": ["a", "b"], "h": [1, 2, 3]}
EVERY = list(product(*BOTH.values()))
TYPES = {"who": "int64", "g": "string", "h": "int64", "x": "int64"}
DAY = datetime.date(2024, 1, 1)


def table_of(rows, engine="duckdb", person="who", **options):
    columns = dict(zip(("who", "g", "h", "x"), zip(*rows, strict=True), strict=True)) if rows else {}
    return opened({name: columns.get(name, []) for name in TYPES}, engine, person=person, types=TYPES, **options)


def test_the_order_of_columns_is_that_of_the_tuples(engine):
    rows = [(1, "a", 2, 0), (2, "b", 3, 1)]
    turned = table_of(rows, engine).group_by(["h", "g"], groups=[(2, "a"), (3, "b"), (3, "a")])
    assert counts(turned, "x", [0, 1]) == [[1, 0], [0, 1], [0, 0]]


def test_every_question_is_answered_by_tuples(engine):
    rows = [(i, g, h, h) for i in range(40) for g, h in EVERY]
    table = table_of(rows, engine, person=None).group_by(["g", "h"], groups=BOTH)
    ends = {"lower": 0, "upper": 9, "epsilon": 100}
    assert table.mode("x", candidates=[3, 2, 1], epsilon=100).value == {(g, h): h for g, h in EVERY}
    assert table.top_k("x", 1, candidates=[3, 2, 1], epsilon=100).value == {(g, h): [h] for g, h in EVERY}
    assert table.median("x", **ends).value == {(g, h): h for g, h in EVERY}
    assert table.quantiles("x", [0.3, 0.6], **ends).value == {(g, h): [h, h] for g, h in EVERY}
    free = table.top_k("x", 3, candidates=[3, 2, 1], epsilon=1)
    assert free.value == {name: [3, 2, 1] for name in EVERY}
    assert free.estimate == "the 3 values that most rows have, in each group of 'g' and 'h'"
    three = table_of(rows, engine, person=None).group_by(["who", "g", "h"], groups=[(0, "a", 2), (1, "b", 1)])
    assert three.median("x", **ends).value == {(0, "a", 2): 2, (1, "b", 1): 1}
    assert three.median("x", **ends).estimate == "median over rows, in each group of 'who', 'g' and 'h'"


def test_one_column_in_a_list_gives_tuples_of_length_one():
    table = table_of([(1, "a", 1, 5)])
    for groups in ({"g": ["b", "a"]}, [("b",), ("a",)]):
        assert counts(table.group_by(["g"], groups=groups), "x", [5]) == [[0], [1]]
        assert list(table.group_by(["g"], groups=groups).mode("x", candidates=[5], epsilon=1).value) == [("b",), ("a",)]


def test_columns_of_every_kind_are_combined(engine):
    """A column may also be the question and the person."""
    rows = {"flag": [True, False], "real": [1.5, 2.0], "text": ["p", "q"], "day": [DAY, DAY.replace(day=2)]}
    table = opened({"who": [1, 2], **rows}, engine, person="who")
    names = [*rows, "who"]
    tuples = list(zip(*rows.values(), [1, 2], strict=True))
    for column in names:
        values = (rows | {"who": [1, 2]})[column]
        assert counts(table.group_by(names, groups=tuples), column, values) == [[1, 0], [0, 1]]
        if engine == "spark":
            break
    product_of = table.group_by(["day", "flag"], groups={"flag": {True}, "day": np.array([DAY])})
    assert counts(product_of, "who", [1, 2]) == [[1, 0]]


# Ledgers.


def test_the_order_of_groups_is_part_of_a_request(tmp_path):
    table, tuples = table_of([(1, "a", 1, 5)] * 3, ledger=tmp_path / "l", budget=9), [("a", 1), ("b", 2)]

    def ask(columns, groups):
        return table.group_by(columns, groups=groups).mode("x", candidates=[5, 6], epsilon=1, request_id="r")

    first = ask(["g", "h"], tuples)
    assert list(first.value) == tuples
    for other in ((["g", "h"], tuples[::-1]), (["h", "g"], [(1, "a"), (2, "b")]), ("g", ["a", "b"])):
        with pytest.raises(RequestConflict):
            ask(*other)
    assert first.to_dict()["value"][0]["group"] == ["a", 1]


def test_values_that_are_equal_in_the_column_are_refused_in_tuples_too():
    table = opened({"g": np.array([0.1], np.float32), "h": [1]})
    near = float(np.float32(0.1))
    with pytest.raises(InvalidValue, match=r"groups of 'g' must be different values: .* are equal when compared"):
        table.group_by(["g", "h"], groups=[(near, 1), (np.nextafter(near, 1), 2)])
    assert len(table.group_by(["g", "h"], groups=[(near, 1), (np.float64(near), 2)])._individuals.groups) == 2


def test_answers_by_tuples_are_written_and_read():
    value = {("a", DAY, True): [1, "b"], ("c", DAY.replace(day=2), False): [2]}
    assert decode_answer(encode_answer(value)) == value
