"""Groups: every public group is answered; people in many groups are kept in some of them, at random."""

import pytest

from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables import GroupedTable, Table
from tests.tables.looking import counts, opened, places

GROUPS = ["north", "east", "south", "west"]


def test_only_public_groups_and_candidates_use_up_the_limit():
    """Rows outside of the groups, without a candidate or missing do not push out those that count."""
    rows = {"who": [1] * 6, "g": ["a", "z", None, "b", "b", "c"], "x": [5, 5, 5, 9, None, None]}
    for _ in range(8):
        table = opened(rows, person="who").group_by("g", groups=["a", "b", "c"])
        assert counts(table, "x", [5]) == [[1], [0], [0]]
    table = opened(rows, person="who").group_by("g", groups=["b", "c", "z"], max_groups=2)
    assert places(table, "x", 0, 10) == [[(9, False, 1)], [], [(5, False, 1)]]


def test_a_person_counts_once_in_a_group_and_candidate():
    rows = {"who": [1, 1, 1, 2, None], "g": ["a"] * 5, "x": [5, 5, 6, 5, 5]}
    table = opened(rows, person="who").group_by("g", groups=["a", "b"])
    assert counts(table, "x", [5, 6]) == [[2, 1], [0, 0]]
    assert places(table, "x", 0, 9) == [[(5, False, 2)], []]
    alone = opened(rows).group_by("g", groups=["a", "b"])
    assert counts(alone, "x", [5, 6]) == [[4, 1], [0, 0]]


def test_every_public_group_gets_an_answer():
    table = opened({"g": ["a", "a"], "x": [5, 5]}).group_by("g", groups=["c", "a", "b"])
    for answer in (
        table.mode("x", candidates=[5, 6], epsilon=100),
        table.top_k("x", 2, candidates=[5, 6], epsilon=100),
        table.median("x", lower=0, upper=9, epsilon=100),
        table.quantile("x", 0.9, lower=0, upper=9, epsilon=100),
    ):
        assert list(answer.value) == ["c", "a", "b"]
    assert table.mode("x", candidates=[5, 6], epsilon=100).value["a"] == 5
    assert table.median("x", lower=0, upper=9, epsilon=100).value["a"] == 5


@pytest.mark.parametrize("person", [None, "who"])
def test_groups_of_every_kind(person):
    """A column may be the group, the question and the person at once."""
    values = {"flag": [True, False], "number": [1.5, 2.0], "text": ["a", "b"], "whole": [2**40, 2**41]}
    table = opened({"who": [1, 2], **values}, person=person)
    for name, groups in values.items():
        grouped = table.group_by(name, groups=groups)
        assert counts(grouped, name, groups) == [[1, 0], [0, 1]]
        assert counts(grouped, "who", [1, 2]) == [[1, 0], [0, 1]]


def test_people_of_every_kind_are_told_apart():
    """Also where their text would be the same."""
    rows = {"g": ["a", "b"] * 2, "x": [1] * 4}
    for people in ([1.0, 1.0, -0.0, 0.0], ["1", "1", "01", "01"], [True, True, False, False]):
        table = opened({"who": people, **rows}, person="who")
        assert counts(table, "x", [1]) == [2]
        assert sum(map(sum, counts(table.group_by("g", groups=["a", "b"]), "x", [1]))) == 2


def test_a_grouped_table_is_not_grouped_again():
    table = opened({"g": ["a"], "x": [1]}).group_by("g", groups=["a"])
    with pytest.raises(InvalidValue, match="already grouped"):
        table.group_by("x", groups=[1])


def test_tables_are_opened_not_constructed():
    for kind in (Table, GroupedTable):
        with pytest.raises(InvalidType, match="open_table"):
            kind()
    with pytest.raises(TypeError, match=r"median has no keyword 'ledger': .*give it to open_table"):
        opened({"x": [1]}).median("x", lower=0, upper=1, epsilon=1, ledger="x")
