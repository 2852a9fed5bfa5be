"""Groups: every public group is answered; people in many groups are kept in some of them, at random."""

import pytest

from dpselect.errors import InvalidType, InvalidValue
from dpselect.tables import GroupedTable, Table
from tests.tables.looking import counts, opened

GROUPS = ["north", "east", "south", "west"]


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
