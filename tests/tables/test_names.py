"""Columns may have any name: one that is SQL, one that we use ourselves, or one in another script."""

import csv

import pytest

import dpselect
from tests.tables.looking import counts, opened, places

NAMES = [
    '"; DROP TABLE x; --',
    "'; DROP TABLE x; --",
    'a"b',
    '""',
    "a'b",
    "$salt",
    "$paths",
    "{line}",
    "%s",
    "a b",
    "a.b",
    "select",
    "größe",
    "診断",
    "🩺",
    *["item", "person", "place", "value", "grp", "facts", "line", "fields", "source_rows", "member", "kept", "chosen"],
    *["candidate", "public_group", "individuals", "behind", "dpselect_rows", "dpselect_candidates", "dpselect_groups"],
]


def check(table, name):
    """The column as one of text, of numbers, and of groups."""
    assert counts(table, name, ["1", "2", "7"]) == [2, 1, 0]
    assert places(table, name, 0, 9) == [(1, False, 2), (2, False, 1), (5, False, 1)]
    groups = table.group_by(name, groups=["1", "2"])
    assert counts(groups, name, ["1", "2"]) == [[2, 0], [0, 1]]
    assert counts(groups, "other", ["a", "b"]) == [[1, 1], [1, 0]]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_works(name, tmp_path):
    rows = {name: ["1", "2", "1", "5"], "other": ["a", "a", "b", "b"]}
    check(opened(rows), name)
    table = opened(rows, person=name)
    assert counts(table, "other", ["a", "b"]) == [2, 2]
    grouped = table.group_by("other", groups=["a", "b"], max_groups=2)
    assert counts(grouped, name, ["1", "2", "5"]) == [[1, 1, 0], [1, 0, 1]]
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([rows, *zip(*rows.values(), strict=True)])
    check(dpselect.open_table(tmp_path / "t.csv"), name)
