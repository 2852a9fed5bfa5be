"""A ledger has one privacy unit, and belongs to one data set if it has a name."""

import os
import sqlite3
import stat
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dpselect import Ledger, PrivacyUnit
from dpselect.errors import BudgetMismatch, InvalidType, InvalidValue, LedgerError, UnitMismatch
from dpselect.ledger import Charge
from tests.ledger.currencies import at_once

UNITS = [
    PrivacyUnit(person, neighbours) for person in (None, "patient", "visit") for neighbours in ("add-remove", "replace")
]
PATIENT = PrivacyUnit("patient")


def charge_of(unit: PrivacyUnit, epsilon: str = "0.1") -> Charge:
    return Charge({"question": "mode", **unit.to_dict()}, epsilon)


@pytest.mark.parametrize("ours", UNITS)
@pytest.mark.parametrize("theirs", UNITS)
@pytest.mark.parametrize("bound", ["at creation", "by the first question"])
def test_only_charges_of_the_same_unit_add_up(path: Path, ours: PrivacyUnit, theirs: PrivacyUnit, bound: str) -> None:
    if bound == "at creation":
        ledger = Ledger(path, budget=1, unit=ours)
    else:
        ledger = Ledger(path, budget=1)
        ledger.spend("0.1", "by hand, before")
        assert ledger.unit is None
        Ledger(path).charge(charge_of(ours))
    assert ledger.unit == Ledger(path).unit == ours
    before = ledger.spent
    if ours == theirs:
        ledger.charge(charge_of(theirs))
        Ledger(path, unit=theirs).check_table(theirs, None)
    else:
        for use in (
            lambda: ledger.charge(charge_of(theirs)),
            lambda: Ledger(path).charge(charge_of(theirs), request_id="r"),
            lambda: Ledger(path, unit=theirs),
            lambda: Ledger(path, budget=1, unit=theirs),
            lambda: ledger.check_table(theirs, None),
        ):
            with pytest.raises(UnitMismatch) as raised:
                use()
            assert all(words in str(raised.value) for words in (str(ours), str(theirs), "nothing was spent"))
        assert ledger.spent == before
    ledger.spend("0.1", "by hand, after")  # says nothing of whom it protects
    ledger.verify()


def test_only_whole_statements_of_a_unit_count(path: Path) -> None:
    """Words of somebody's own are no unit."""
    ledger = Ledger(path, budget=1)
    for what in (
        {"person": "a"},
        {"neighbours": "replace"},
        {"person": "a", "neighbours": "others"},
        {"person": [1], "neighbours": "replace"},
    ):
        ledger.spend("0.1", what)
    assert ledger.unit is None


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ("visits 2024", "visits 2025", "belongs to the data set 'visits 2024', but the name given is 'visits 2025'"),
        ("visits 2024", None, "belongs to the data set 'visits 2024', but no name was given"),
        (None, "visits 2024", "was created without the name of a data set, but the name given is 'visits 2024'"),
    ],
)
def test_a_name_is_fixed_at_creation(path: Path, ours: str | None, theirs: str | None, words: str) -> None:
    ledger = Ledger(path, budget=1, dataset=ours)
    assert Ledger(path, dataset=ours).dataset == ledger.dataset == Ledger(path).dataset == ours
    ledger.check_table(PATIENT, ours)
    with pytest.raises(UnitMismatch, match=words):
        ledger.check_table(PATIENT, theirs)
    if theirs is not None:
        with pytest.raises(UnitMismatch, match=words):
            Ledger(path, dataset=theirs)


def test_a_mismatch_is_an_error_of_the_ledger_and_a_bad_value() -> None:
    assert issubclass(UnitMismatch, LedgerError)
    assert issubclass(UnitMismatch, ValueError)


@pytest.mark.parametrize("bad", ["", "x" * 201, "a\nb", 3, "\ud800"])
def test_bad_names_are_refused(path: Path, bad: Any) -> None:
    with pytest.raises((InvalidValue, InvalidType), match="dataset must be"):
        Ledger(path, budget=1, dataset=bad)
    assert not path.exists()


def test_bad_units_are_refused(path: Path) -> None:
    with pytest.raises(InvalidType, match="unit must be a PrivacyUnit, got str"):
        Ledger(path, budget=1, unit="patient")  # type: ignore[arg-type]
    with pytest.raises(InvalidType, match="person must be the name of a column or None, got int"):
        PrivacyUnit(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="neighbours must be 'add-remove' or 'replace', got 'both'"):
        PrivacyUnit("patient", "both")
    assert not path.exists()


@pytest.mark.parametrize("person", ["", "größe", "a\0b", "\ud800", 'a"b', "x" * 10_000])
def test_any_name_of_a_column_is_kept(path: Path, person: str) -> None:
    unit = PrivacyUnit(person)
    Ledger(path, budget=1, unit=unit)
    assert Ledger(path, unit=unit).unit == unit
    assert eval(repr(unit)) == unit  # noqa: S307 - our own


def test_a_budget_is_compared_before_the_unit(path: Path) -> None:
    Ledger(path, budget=1, unit=PATIENT)
    with pytest.raises(BudgetMismatch):
        Ledger(path, budget=2, unit=PrivacyUnit())


def test_of_two_first_questions_one_binds(path: Path) -> None:
    """The check is a part of the charge, so that two threads cannot both be the first."""
    for number in range(10):
        ledger = Ledger(path.with_name(f"{number}.ledger"), budget=1)
        outcomes: list[str] = []

        def ask(unit: PrivacyUnit, ledger: Ledger = ledger, outcomes: list[str] = outcomes) -> None:
            try:
                ledger.charge(charge_of(unit))
                outcomes.append("charged")
            except UnitMismatch:
                outcomes.append("refused")

        at_once(*(partial(ask, unit) for unit in (PATIENT, PrivacyUnit())))
        assert sorted(outcomes) == ["charged", "refused"]
        assert ledger.spent == Fraction(1, 10)


# The file is for its owner only.


@pytest.mark.skipif(os.name == "nt", reason="needs modes of POSIX")
@pytest.mark.parametrize("umask", [0, 0o022, 0o077, 0o277, 0o777])
def test_only_the_owner_may_read_a_new_ledger(tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor what it is made under, nor a journal: looked at before each statement, COMMIT among them."""
    seen: set[tuple[str, int]] = set()

    def look(statement: str) -> None:
        for file in tmp_path.iterdir():
            seen.add((file.name.rsplit(".", 1)[-1], stat.S_IMODE(file.stat().st_mode)))

    connect = sqlite3.connect

    def watched(*arguments: Any, **others: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **others)
        connection.set_trace_callback(look)
        return connection

    monkeypatch.setattr(sqlite3, "connect", watched)
    before = os.umask(umask)
    try:
        ledger = Ledger(tmp_path / "a.ledger", budget=1)
        ledger.store_answer(ledger.spend("0.1", "question"), "answer")
        look("at the end")
    finally:
        os.umask(before)
    assert seen == {(name, 0o600) for name in ("ledger", "ledger-journal", "new", "new-journal")}


@pytest.mark.skipif(os.name == "nt", reason="needs modes of POSIX")
def test_the_mode_of_an_older_file_stays(path: Path) -> None:
    Ledger(path, budget=1)
    path.chmod(0o660)
    Ledger(path, budget=1).spend("0.1", "question")
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
