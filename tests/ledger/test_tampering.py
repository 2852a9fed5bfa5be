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
from dpselect.accounting.budget import as_budget, stored_text
from dpselect.errors import LedgerError
from dpselect.ledger import Charge, Receipt
from dpselect.ledger.file import FORMAT, append, hashed

ENTRIES = 6
BUDGETS = {"pure": "10", "cap": "10,cap:1", "zcdp": "zcdp:10,0.001", "approximate": "40,0.01"}
SLOW = ("cap", "approximate")


def fill(path: Path, budget: str) -> Path:
    ledger = Ledger(path, budget=budget, unit=PrivacyUnit("patient", "replace"), dataset="visits")
    delta = Fraction(1, 12345677) if ledger.budget.limit.delta else 0
    for i in range(ENTRIES):
        charge = Charge({"question": f"q{i}"}, "0.1", "exponential", count=i + 1, delta=delta)
        entry = ledger.charge(charge, request_id=f"r{i}")
        ledger.store_answer(entry.id, f"answer {i}", content=f"data {i}" if i % 2 else None)
    return path


@pytest.fixture(params=[pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in BUDGETS])
def filled(path: Path, request: pytest.FixtureRequest) -> Path:
    return fill(path, BUDGETS[request.param])


def tamper(path: Path, *statements: str, **parameters: Any) -> None:
    """What somebody does who has the file and a copy of SQLite."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            connection.execute(statement, parameters)
        connection.commit()


def copied(path: Path) -> str:
    """The third entry under another id."""
    with closing(sqlite3.connect(path)) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(entries)")]
    chosen = [{"id": ":id", "request_id": "NULL"}.get(name, name) for name in names]
    return f"SELECT {', '.join(chosen)} FROM entries WHERE id = 3"


def forge(path: Path, charge: Charge) -> int:
    """Add an entry with the right hash, without asking the ledger."""
    with closing(sqlite3.connect(path)) as connection:
        [(id, head)] = connection.execute("SELECT id, head FROM entries ORDER BY id DESC LIMIT 1").fetchall()
        entry = append(connection, id + 1, head, charge, None)
        connection.commit()
    return entry.id


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
    "entries": ("id", "time", "what", "mechanism", "each", "count", "rho", "delta", "request_id", "head"),
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


COSTS = ["'0'", "'1/2'", "'0.5'", "'-1/2'", "'2/4'", "'1/0'", "'nan'", "'1e-3'", "'+1/2'", "' 1/2'", "'1'", "0.5"]
# SQLite itself lets a key be an integer only.
OTHERS = {"id": [], "rho": VALUES + COSTS, "delta": VALUES + COSTS}
CASES = [
    pytest.param(table, column, value, marks=() if column in ("rho", "delta") else pytest.mark.slow)
    for table, columns in COLUMNS.items()
    for column in columns
    for value in NUMBERS + OTHERS.get(column, VALUES + HEADERS.get(column, []))
]


@pytest.mark.parametrize(("table", "column", "value"), CASES)
def test_an_edited_value_is_found(filled: Path, table: str, column: str, value: str) -> None:
    before = filled.read_bytes()
    tamper(filled, f"UPDATE {table} SET {column} = {value} WHERE id = {1 if table == 'ledger' else 3}")
    if filled.read_bytes() == before:
        pytest.skip("this is what the file holds")
    assert_found(filled)


def moved(table: str, *steps: tuple[int, int]) -> list[str]:
    return [f"UPDATE {table} SET id = {new} WHERE id = {old}" for old, new in steps]


SWAP = [(2, 99), (4, 2), (99, 4)]
NO_ANSWERS = "DELETE FROM answers"
REMOVED = "DELETE FROM entries WHERE id = :id"
INSERTED = "INSERT INTO entries {copied}"


@pytest.mark.parametrize(
    ("id", "statements"),
    [
        (2, ["UPDATE entries SET request_id = NULL WHERE id = :id"]),
        (3, ["UPDATE entries SET rho = delta, delta = rho WHERE id = :id"]),
        *((id, ["DELETE FROM answers WHERE id = :id", REMOVED]) for id in (1, 3, ENTRIES - 1)),
        *(
            (id, [NO_ANSWERS, REMOVED, *moved("entries", *((i, i - 1) for i in range(id + 1, ENTRIES + 1)))])
            for id in (1, 3, ENTRIES - 1)
        ),
        *((id, [INSERTED]) for id in (-1, 0, ENTRIES + 1, ENTRIES + 5)),
        (4, [NO_ANSWERS, *moved("entries", *((i, i + 1) for i in range(ENTRIES, 3, -1))), INSERTED]),
        (0, [NO_ANSWERS, *moved("entries", *SWAP)]),
        (0, moved("answers", *SWAP)),
    ],
)
def test_entries_that_are_removed_inserted_moved_or_lose_a_part_are_found(
    filled: Path, id: int, statements: list[str]
) -> None:
    """Also if the others close ranks, or make room."""
    tamper(filled, *(statement.format(copied=copied(filled)) for statement in statements), id=id)
    assert_found(filled)
    if statements[-1] == REMOVED:
        with pytest.raises(LedgerCorrupt, match=f"entry {id} is missing"):
            Ledger(filled).verify()


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


BEYOND, NEVER = "exceeds the budget", "has a cost that the budget does not allow"
SPENT = {
    "1": Charge("a", "0.9"),
    "1,cap:0.9": Charge("a", "0.9"),
    "zcdp:1,0.001": Charge("a", rho="0.9", delta="0.0005"),
    "1,0.000001": Charge("a", rho="0.01", delta="0.0000002"),
}
FORGED = {
    "1": {Charge("b", "0.2"): BEYOND, Charge("b", "0.1", count=2): BEYOND, Charge("b", rho="0.01"): NEVER},
    "1,cap:0.9": {
        Charge("b", "0.2"): BEYOND,
        Charge("b", "0.1", count=2): BEYOND,
        Charge("b", "0.91"): NEVER,
        Charge("b", rho="0.01"): NEVER,
        Charge("b", "0.01", delta="1e-9"): NEVER,
    },
    "zcdp:1,0.001": {
        Charge("b", rho="0.2"): BEYOND,
        Charge("b", "1"): BEYOND,
        Charge("b", "0.01", delta="0.0006"): BEYOND,
    },
    "1,0.000001": {
        Charge("b", rho="0.02"): BEYOND,
        Charge("b", "1"): BEYOND,
        Charge("b", "0.01", delta="0.0000004"): BEYOND,
    },
    "zcdp:1": {Charge("b", "0.01", delta="1e-9"): NEVER},
    "1,1e-6,0": {Charge("b", "0.01", delta="1e-9"): NEVER},
}


@pytest.mark.parametrize(
    ("budget", "forged", "finding"),
    [(budget, forged, finding) for budget, cases in FORGED.items() for forged, finding in cases.items()],
)
def test_an_entry_forged_with_a_right_hash_that_the_budget_does_not_pay_for_is_found(
    path: Path, budget: str, forged: Charge, finding: str
) -> None:
    """By the sum of epsilons or of rhos, by the sum of deltas, or by what no budget of this type allows."""
    ledger = Ledger(path, budget=budget)
    ledger.charge(SPENT.get(budget, Charge("a", "0.01")))
    forge(path, forged)
    for opened in (ledger, Ledger(path)):
        for use in (Ledger.verify, Ledger.entries, lambda ledger: ledger.spend("0.01", "c")):
            with pytest.raises(LedgerCorrupt, match=f"entry 2 {finding}"):
                use(opened)  # type: ignore[operator]


def test_an_entry_forged_with_a_right_hash_but_another_privacy_unit_is_found(filled: Path) -> None:
    forge(filled, Charge({"question": "mode", "person": None, "neighbours": "replace"}, "1/10"))
    with pytest.raises(LedgerCorrupt, match=f"entry {ENTRIES + 1} has a different privacy unit from the ledger"):
        Ledger(filled).verify()


@pytest.mark.parametrize("forged", ["wrong budget", "larger rho"])
def test_a_forged_budget_with_a_right_hash_is_refused_if_no_ledger_has_it(path: Path, forged: str) -> None:
    """The rho of an (epsilon, delta) budget must follow from it."""
    Ledger(path, budget="1,1e-6")
    with closing(sqlite3.connect(path)) as connection:
        [[*fields, _]] = connection.execute("SELECT identity, budget, created, unit, dataset, head FROM ledger")
    text = before = fields[1]
    fixed = json.loads(text)["fixed_rho"]
    text = text.replace(fixed, "1/2") if forged == "larger rho" else text.replace('"delta":"0.000001"', '"delta":"2"')
    assert text != before
    content = ["dpselect ledger", FORMAT, fields[0], text, *fields[2:]]
    tamper(path, "UPDATE ledger SET budget = :budget, head = :head", budget=text, head=hashed(content))
    with pytest.raises(LedgerCorrupt, match="its header is damaged or was changed"):
        Ledger(path)


@pytest.mark.parametrize(
    "stored",
    [
        *("", "yes", "null", "[]", "{", '"yes"', "[" * 10**5, '{"answer":"yes"}'),
        '{"answer":"yes","content":null,"more":1,"salt":""}',
        '{"answer": "yes", "content": null, "salt": ""}',
        '{"answer":5,"content":null,"salt":""}',
    ],
)
def test_a_forged_answer_with_a_right_seal_is_found_if_no_ledger_stores_it(filled: Path, stored: str) -> None:
    head = Ledger(filled).entries()[2].head
    statement = "UPDATE answers SET answer = :stored, seal = :seal WHERE id = 3"
    tamper(filled, statement, stored=stored, seal=hashed(["answer", head, stored]))
    assert_found(filled)
    with pytest.raises(LedgerCorrupt, match="entry 3 has a stored answer that is unreadable"):
        Ledger(filled).verify()


def test_a_lowered_or_raised_budget_in_the_file_is_found(filled: Path) -> None:
    open_before = Ledger(filled)
    open_before.verify()
    for budget in ("1", "1000", *(stored_text(as_budget(text)) for text in ("20,cap:1", "zcdp:20,0.001", "41,0.01"))):
        tamper(filled, "UPDATE ledger SET budget = :budget", budget=budget)
        for attempt in (lambda: Ledger(filled), lambda: Ledger(filled, budget=open_before.budget), open_before.verify):
            with pytest.raises(LedgerCorrupt, match="its header is damaged or was changed"):
                attempt()
        with pytest.raises(LedgerCorrupt):
            open_before.spend("0.1", "question")


def test_every_flipped_byte_is_found_or_harmless(filled: Path) -> None:
    """Whatever byte of the file is wrong, nothing that was charged is lost without notice."""
    content, truth, budget = filled.read_bytes(), Ledger(filled).entries(), Ledger(filled).budget
    found = 0
    for position in range(0, len(content), 37):
        filled.write_bytes(content[:position] + bytes([content[position] ^ 0xA5]) + content[position + 1 :])
        try:
            ledger = Ledger(filled)
            ledger.verify()
            assert (ledger.entries(), ledger.budget) == (truth, budget)
            assert [(entry.rho, entry.delta) for entry in ledger.entries()] == [(one.rho, one.delta) for one in truth]
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


@pytest.mark.parametrize("way", ["an old copy was put back", "its end was cut off in place"])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_an_open_ledger_notices(filled: Path, tmp_path: Path, use: Callable[[Ledger], object], way: str) -> None:
    """What it saw before is as good as a receipt. Of a file that was replaced, its connection leads to the old one."""
    old = tmp_path / "old.ledger"
    shutil.copy(filled, old)
    ledger = Ledger(filled)
    ledger.spend("0.5", "question")
    if way == "an old copy was put back":
        old.replace(filled)
    else:
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
    Ledger(filled, budget=ledger.budget)
    with pytest.raises(LedgerCorrupt, match="another ledger was put in its place"):
        ledger.spend("0.1", "question")
    assert Ledger(filled).spent.limit == (0, 0)
