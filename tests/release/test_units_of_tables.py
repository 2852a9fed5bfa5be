"""A ledger of one privacy unit, or of one named data set, refuses tables of another."""

from fractions import Fraction

import pytest

from dpselect import Ledger, open_table
from dpselect.errors import UnitMismatch
from tests.release.test_requests import CODES, QUESTIONS, SAME

UNITS = [{"person": person, "neighbours": kind} for person in (None, "who") for kind in ("add-remove", "replace")]


@pytest.mark.parametrize("ours", UNITS)
@pytest.mark.parametrize("theirs", UNITS)
@pytest.mark.parametrize("given", ["path", "ledger", "made by hand"])
def test_a_table_of_another_unit_is_refused(ours, theirs, given, path):
    if given == "made by hand":
        Ledger(path, budget="1")
    first = open_table(SAME, ledger=path, budget="1", **ours)
    waiting = open_table(SAME, ledger=path, **theirs) if given == "made by hand" else None  # before the first question
    first.mode("code", candidates=CODES, epsilon="0.1")
    ledger = Ledger(path) if given == "ledger" else path
    if ours == theirs:
        open_table(SAME, ledger=ledger, **theirs).mode("code", candidates=CODES, epsilon="0.1")
        assert Ledger(path).spent == Fraction(1, 5)
        return
    for budget in (None, "1"):
        with pytest.raises(UnitMismatch, match="costs of different units do not add up; nothing was spent"):
            open_table(SAME, ledger=ledger, budget=budget, **theirs)
    if waiting is not None:
        with pytest.raises(UnitMismatch):
            waiting.mode("code", candidates=CODES, epsilon="0.1", request_id="r")
    assert Ledger(path).spent == Fraction(1, 10)


def test_groups_have_the_unit_of_their_table(path):
    table = open_table(SAME, person="who", ledger=path, budget="1")
    QUESTIONS["groups"](table, epsilon="0.1")
    QUESTIONS["median"](table, epsilon="0.1")
    assert [entry.charge.unit for entry in Ledger(path).entries()] == [Ledger(path).unit] * 2


def test_a_named_ledger_takes_tables_of_its_name_only(path):
    table = open_table(SAME, ledger=path, budget="1", dataset="visits 2024")
    table.mode("code", candidates=CODES, epsilon="0.1")
    assert Ledger(path).dataset == "visits 2024"
    for ledger in (path, Ledger(path)):
        open_table(SAME, ledger=ledger, dataset="visits 2024")
        for other in (None, "visits 2025"):
            with pytest.raises(UnitMismatch, match="belongs to the data set 'visits 2024'"):
                open_table(SAME, ledger=ledger, dataset=other)
    assert Ledger(path).spent == Fraction(1, 10)
