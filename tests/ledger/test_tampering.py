"""An edited, removed, inserted or reordered entry is found, wherever and however it was done."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpselect import Ledger, LedgerCorrupt, PrivacyUnit
from dpselect.errors import LedgerError
from dpselect.ledger import Charge, Receipt
from dpselect.ledger.store import SCHEMAS

ENTRIES = 6


@pytest.fixture
def filled(path: Path) -> Path:
    ledger = Ledger(path, budget=10, unit=PrivacyUnit("patient", "replace"), dataset="visits")
    for i in range(ENTRIES):
        entry = ledger.charge(Charge({"question": f"q{i}"}, "0.1", "exponential", count=i + 1), request_id=f"r{i}")
        ledger.store_answer(entry.id, f"answer {i}", content=f"data {i}" if i % 2 else None)
    return path


def tamper(path: Path, *statements: str, **parameters: Any) -> None:
    """What somebody does who has the file and a copy of SQLite."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            connection.execute(statement, parameters)
        connection.commit()


def assert_found(path: Path) -> None:
    """By verify, before a charge, before anything is said about what was spent; and by a ledger that was open."""
    before = path.read_bytes()
    uses: list[Callable[[Ledger], object]] = [
        Ledger.verify,
        Ledger.entries,
        Ledger.receipt,
        lambda ledger: ledger.spent,
        lambda ledger: ledger.remaining,
        lambda ledger: ledger.spend("0.1", "question"),
    ]
    for use in uses:
        with pytest.raises(LedgerCorrupt, match="nothing is released without a working ledger"):
            use(Ledger(path))
    assert path.read_bytes() == before


COLUMNS = {
    "ledger": ("id", "identity", "budget", "created", "unit", "dataset", "head"),
    "entries": ("id", "time", "what", "mechanism", "each", "count", "request_id", "head"),
    "answers": ("id", "answer", "seal"),
}
NUMBERS = ["7", "77", "-3"]
VALUES = ["'1/100'", "'noisy-max'", "x'00ff'", '\'{"question":"other"}\'', "'x'", "''"]
# What the file would hold if it belonged to another privacy unit or to none.
HEADERS = {
    "unit": ["NULL", *(f"'{json.dumps(unit)}'" for unit in (None, [], {"neighbours": "replace"})),
             '\'{"neighbours":"add-remove","person":"patient"}\'', '\'{"neighbours":"replace","person":null}\'',
             '\'{"person":"patient","neighbours":"replace"}\''],
    "dataset": ["NULL", "'Visits'"],
}  # fmt: skip


def test_the_tampering_below_covers_every_column(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {table: tuple(row[1] for row in connection.execute(f"PRAGMA table_info({table})")) for table in tables}
    assert found == COLUMNS


CASES = [
    (table, column, value)
    for table, columns in COLUMNS.items()
    for column in columns
    # SQLite itself lets a key be an integer only.
    for value in (NUMBERS if column == "id" else NUMBERS + VALUES + HEADERS.get(column, []))
]


@pytest.mark.parametrize(("table", "column", "value"), CASES)
def test_an_edited_value_is_found(filled: Path, table: str, column: str, value: str) -> None:
    row = 1 if table == "ledger" else 3
    tamper(filled, f"UPDATE {table} SET {column} = {value} WHERE id = {row}")
    assert_found(filled)


def test_an_edited_request_is_found_when_it_is_made_to_disappear(filled: Path) -> None:
    tamper(filled, "UPDATE entries SET request_id = NULL WHERE id = 2")
    assert_found(filled)


@pytest.mark.parametrize("id", [1, 3, ENTRIES - 1])
def test_a_removed_entry_is_found(filled: Path, id: int) -> None:
    tamper(filled, "DELETE FROM answers WHERE id = :id", "DELETE FROM entries WHERE id = :id", id=id)
    assert_found(filled)


@pytest.mark.parametrize("id", [1, 3, ENTRIES - 1])
def test_a_removed_entry_is_found_when_the_others_close_ranks(filled: Path, id: int) -> None:
    steps = [f"UPDATE entries SET id = {i - 1} WHERE id = {i}" for i in range(id + 1, ENTRIES + 1)]
    tamper(filled, "DELETE FROM answers", "DELETE FROM entries WHERE id = :id", id=id)
    tamper(filled, *steps)
    assert_found(filled)


@pytest.mark.parametrize("id", [-1, 0, ENTRIES + 1, ENTRIES + 5])
def test_an_inserted_entry_is_found(filled: Path, id: int) -> None:
    copied = "SELECT :id, time, what, mechanism, each, count, NULL, head FROM entries WHERE id = 3"
    tamper(filled, f"INSERT INTO entries {copied}", id=id)
    assert_found(filled)


def test_an_entry_inserted_between_two_others_is_found(filled: Path) -> None:
    steps = [f"UPDATE entries SET id = {i + 1} WHERE id = {i}" for i in range(ENTRIES, 3, -1)]
    copied = "SELECT 4, time, what, mechanism, each, count, NULL, head FROM entries WHERE id = 3"
    tamper(filled, "DELETE FROM answers", *steps, f"INSERT INTO entries {copied}")
    assert_found(filled)


def test_reordered_entries_are_found(filled: Path) -> None:
    swap = [f"UPDATE entries SET id = {new} WHERE id = {old}" for old, new in ((2, 99), (4, 2), (99, 4))]
    tamper(filled, "DELETE FROM answers", *swap)
    assert_found(filled)


def test_swapped_answers_are_found(filled: Path) -> None:
    swap = [f"UPDATE answers SET id = {new} WHERE id = {old}" for old, new in ((2, 99), (4, 2), (99, 4))]
    tamper(filled, *swap)
    assert_found(filled)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries WHERE id = new.id; END",
        "CREATE TABLE extra (a)",
        "DROP INDEX requests",
        "DROP TABLE answers",
        "ALTER TABLE entries ADD COLUMN score",
        "DELETE FROM ledger",
        "INSERT INTO ledger SELECT 2, identity, budget, created, unit, dataset, head FROM ledger",
    ],
)
def test_a_changed_structure_is_found(filled: Path, statement: str) -> None:
    known = Ledger(filled)
    known.verify()
    tamper(filled, statement)
    with pytest.raises(LedgerCorrupt):
        Ledger(filled)
    with pytest.raises(LedgerCorrupt):
        known.spend("0.1", "question")


def test_an_entry_forged_with_a_right_hash_but_beyond_the_budget_is_found(path: Path) -> None:
    ledger = Ledger(path, budget=1)
    last = ledger.charge(Charge("a", "0.9"))
    forged = Charge("b", "0.2")
    head = ledger._header.next_head(last.head, 2, last.time, forged, None)
    row = (2, last.time, forged.text, "pure", "1/5", 1, None, head)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        connection.commit()
    with pytest.raises(LedgerCorrupt, match="entry 2 exceeds the budget"):
        ledger.verify()
    with pytest.raises(LedgerCorrupt, match="entry 2 exceeds the budget"):
        ledger.spend("0.01", "c")


def test_an_entry_forged_with_a_right_hash_but_another_privacy_unit_is_found(filled: Path) -> None:
    ledger = Ledger(filled)
    [*_, last] = ledger.entries()
    forged = Charge({"question": "mode", "person": None, "neighbours": "replace"}, "1/10")
    head = ledger._header.next_head(last.head, ENTRIES + 1, last.time, forged, None)
    row = (ENTRIES + 1, last.time, forged.text, "pure", "1/10", 1, None, head)
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        connection.commit()
    with pytest.raises(LedgerCorrupt, match=f"entry {ENTRIES + 1} has a different privacy unit from the ledger"):
        Ledger(filled).verify()


def test_a_ledger_made_to_look_like_the_older_format_is_found(filled: Path) -> None:
    """Which has no privacy unit: the first hash has the format and the unit in it."""
    columns = ("id", "identity", "budget", "created", "head")
    with closing(sqlite3.connect(filled)) as connection:
        [row] = connection.execute(f"SELECT {', '.join(columns)} FROM ledger").fetchall()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'ledger'", (SCHEMAS[1][0],))
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    tamper(filled, "DELETE FROM ledger")
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", row)
        connection.commit()
    with pytest.raises(LedgerCorrupt, match="its header is damaged or was changed"):
        Ledger(filled)


def test_a_lowered_or_raised_budget_in_the_file_is_found(filled: Path) -> None:
    open_before = Ledger(filled)
    open_before.verify()
    for budget in ("1", "1000"):
        tamper(filled, "UPDATE ledger SET budget = :budget", budget=budget)
        for attempt in (lambda: Ledger(filled), lambda: Ledger(filled, budget=10), open_before.verify):
            with pytest.raises(LedgerCorrupt, match="its header is damaged or was changed"):
                attempt()
        with pytest.raises(LedgerCorrupt):
            open_before.spend("0.1", "question")


def test_every_flipped_byte_is_found_or_harmless(filled: Path) -> None:
    """Whatever byte of the file is wrong, nothing that was charged is lost without notice."""
    content, truth = filled.read_bytes(), Ledger(filled).entries()
    found = 0
    for position in range(0, len(content), 37):
        filled.write_bytes(content[:position] + bytes([content[position] ^ 0xA5]) + content[position + 1 :])
        try:
            ledger = Ledger(filled)
            ledger.verify()
            assert (ledger.entries(), ledger.budget) == (truth, 10)
        except LedgerError:
            found += 1
    assert found > 20  # most of a small file is unused space


# Receipts.


def test_a_receipt_finds_a_cut_tail_and_an_old_copy(filled: Path, tmp_path: Path) -> None:
    """Within the file nothing is wrong with them: without a receipt they are not found, and the docs say so."""
    old = tmp_path / "old.ledger"
    shutil.copy(filled, old)
    Ledger(filled).spend("0.5", "the last question")
    receipt = Ledger(filled).receipt()
    Ledger(filled).verify(receipt)
    tamper(filled, f"DELETE FROM entries WHERE id = {ENTRIES + 1}")
    for suspect in (filled, old):
        Ledger(suspect).verify()
        with pytest.raises(LedgerCorrupt, match=r"its end was cut off, or it is an old copy"):
            Ledger(suspect).verify(receipt)


def test_a_receipt_finds_an_old_copy_that_went_another_way(filled: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.ledger"
    shutil.copy(filled, old)
    receipt = Ledger(filled).receipt(Ledger(filled).charge(Charge("asked", "0.5")))
    for i in range(3):
        Ledger(old).spend("0.1", f"asked elsewhere {i}")
    with pytest.raises(LedgerCorrupt, match=f"its entries up to {ENTRIES + 1} are not those of the receipt"):
        Ledger(old).verify(receipt)


def test_an_old_receipt_stays_valid(filled: Path) -> None:
    receipts = [Ledger(filled).receipt(entry) for entry in Ledger(filled).entries()]
    Ledger(filled).spend("0.1", "more")
    for receipt in receipts:
        assert Ledger(filled).verify(receipt).id == ENTRIES + 1


def test_the_receipt_of_another_ledger_is_refused(filled: Path, tmp_path: Path) -> None:
    """Such as of the ledger that was deleted and made anew."""
    other = Ledger(tmp_path / "other.ledger", budget=10)
    with pytest.raises(LedgerCorrupt, match="the receipt belongs to another ledger"):
        other.verify(Ledger(filled).receipt())


@pytest.mark.parametrize("id", [-1, ENTRIES + 1, 10**9])
def test_a_receipt_with_an_impossible_number_is_refused(filled: Path, id: int) -> None:
    receipt = Ledger(filled).receipt()
    with pytest.raises(LedgerCorrupt):
        Ledger(filled).verify(Receipt(receipt.ledger, id, receipt.head))


USES: dict[str, Callable[[Ledger], object]] = {
    "verify": Ledger.verify,
    "spend": lambda ledger: ledger.spend("0.1", "question"),
    "spent": lambda ledger: ledger.spent,
    "entries and verify": lambda ledger: (ledger.entries(), ledger.verify()),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_an_open_ledger_notices_that_an_old_copy_was_put_back(
    filled: Path, tmp_path: Path, use: Callable[[Ledger], object]
) -> None:
    """What it saw before is as good as a receipt. Its connection leads to the old file, which is gone."""
    old = tmp_path / "old.ledger"
    shutil.copy(filled, old)
    ledger = Ledger(filled)
    ledger.spend("0.5", "question")
    old.replace(filled)
    with pytest.raises(LedgerCorrupt):
        use(ledger)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_an_open_ledger_notices_that_the_end_was_cut_off_in_place(
    filled: Path, use: Callable[[Ledger], object]
) -> None:
    ledger = Ledger(filled)
    ledger.spend("0.5", "question")
    tamper(filled, f"DELETE FROM entries WHERE id > {ENTRIES}")
    with pytest.raises(LedgerCorrupt):
        use(ledger)


def test_a_ledger_that_was_replaced_by_a_new_one_is_noticed(filled: Path) -> None:
    ledger = Ledger(filled)
    ledger.verify()
    filled.unlink()
    with pytest.raises(LedgerError):
        ledger.spend("0.1", "question")
    assert not filled.exists()
    Ledger(filled, budget=10)
    with pytest.raises(LedgerCorrupt, match="another ledger was put in its place"):
        ledger.spend("0.1", "question")
    assert Ledger(filled).spent == Fraction(0)
