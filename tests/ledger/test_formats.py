"""Ledgers of formats 1 and 2, which dpselect 0.1 and 0.2 to 0.3 wrote, go on as they were.

`format1.sqlite` was made by dpselect 0.1.0. It has odd fractions, two privacy units, stored answers, and a charge that
made 0.1.0 refuse nearly every later one. `format2.sqlite` was made by dpselect 0.3.0.
"""

import json
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from dpselect import Ledger, LedgerCorrupt, PermuteAndFlip, PrivacyUnit, open_table
from dpselect.accounting.run_counts import Repeated
from dpselect.accounting.totals import total
from dpselect.errors import BudgetMismatch, InvalidValue, RequestConflict, RequestUnanswered, UnitMismatch
from dpselect.ledger import Charge, Receipt
from dpselect.tuning import geometric

MADE = Path(__file__).with_name("format1.sqlite")
MADE_2 = Path(__file__).with_name("format2.sqlite")
# What 0.1.0 printed.
RECEIPTS = [
    Receipt("a83036e2d1158edf3ed2c2f793f6f0a8", 3, "a2b2fb881390f8bc539a526b02611bf499dd2c41fee621aa449f0f9854f9973b"),
    Receipt("a83036e2d1158edf3ed2c2f793f6f0a8", 7, "bcf47fdcd5b3f16640f59b25b30ae36f14c1682f1ce0eb9bc61b041470c03c03"),
]
EPSILONS = [
    Fraction(1, 3),
    Fraction(0.1),
    Fraction(1, 7),
    Fraction(1, 2),
    Fraction(3, 1009),
    Fraction(1, 2053),
    None,  # of about 4000 digits
    Fraction(9, 10),
]
ROWS = pa.table({"person": [1, 1, 2, 3], "code": ["a", "b", "a", "c"]})
ASK = {"column": "code", "candidates": ["a", "b", "c"]}


@pytest.fixture
def old(path: Path) -> Path:
    shutil.copy(MADE, path)
    path.chmod(0o644)
    return path


def test_it_is_read_and_verified(old: Path) -> None:
    before = old.read_bytes()
    ledger = Ledger(old, budget=3)
    entries = ledger.entries()
    assert [entry.epsilon for entry in entries if entry.id != 7] == [number for number in EPSILONS if number]
    assert 0 < entries[6].epsilon < Fraction(1, 10**3900)
    assert ledger.spent == sum(entry.epsilon for entry in entries)  # exactly, off any grid
    assert [entry.answer for entry in entries] == [None, '"a"', None, "the answer", None, None, None, None]
    assert [ledger.verify(receipt).id for receipt in RECEIPTS] == [8, 8]
    assert (ledger.dataset, ledger.unit) == (None, PrivacyUnit("person"))
    assert total(ledger).epsilon == ledger.spent
    assert old.read_bytes() == before
    with pytest.raises(BudgetMismatch):
        Ledger(old, budget=2)


def test_it_is_charged_again_though_0_1_refused(old: Path) -> None:
    """Sums that were too long for 0.1.0 grow by the digits of the grid, once."""
    ledger = Ledger(old)
    spent = ledger.spent
    odd = [Fraction(1, 11), Fraction(1, 13), Fraction(1, 1013), Fraction(1, 10**3000 - 7)]
    for number in odd:
        ledger.spend(number, "again")
    grown = ledger.spent
    assert sum(odd, spent) < grown < sum(odd, spent) + 2 * Fraction(1, 10**50)
    assert len(str(grown.denominator)) < 4300
    ledger.spend(Fraction(1, 17), "again")
    ledger.spend(0.1, "again")
    assert len(str(ledger.spent)) < 2 * 4300
    for receipt in RECEIPTS:
        ledger.verify(receipt)
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


def test_the_rest_of_an_odd_sum_can_be_spent(path: Path) -> None:
    """As it could be with 0.1.0, whose entries are not on the grid."""
    shutil.copy(MADE, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM entries WHERE id > 6")
        connection.commit()
    ledger = Ledger(path)
    ledger.spend(ledger.remaining, "the rest")
    assert ledger.remaining == 0


def test_requests_of_0_1_by_hand_are_repeated(old: Path) -> None:
    charge = Charge({"question": "mode", "column": "code"}, "0.25", "exponential", count=2)
    assert Ledger(old).charge(charge, request_id="by hand").answer == "the answer"
    with pytest.raises(RequestUnanswered):
        Ledger(old).charge(Charge("unanswered", "1/2053"), request_id="lost")
    runs = Repeated(geometric(mean=10), "1/1009")  # it cost three epsilons then
    assert Ledger(old).entries()[4].charge == Charge("tuned", "3/1009", runs.name)
    assert Charge.of_best(runs, "tuned").epsilon < Fraction(3, 1009)
    assert len(Ledger(old).entries()) == 8


def test_an_answer_of_0_1_is_not_given_to_a_table(old: Path) -> None:
    """It may be another table's: nothing is known of its data."""
    table = open_table(ROWS, person="person", ledger=old)
    with pytest.raises(RequestConflict, match=r"stored without a digest of its data, by dpselect 0\.1 or by hand"):
        table.mode(**ASK, epsilon=0.1, request_id="monday")
    assert len(Ledger(old).entries()) == 8
    first = table.mode(**ASK, epsilon=0.1, request_id="tuesday")
    assert open_table(ROWS, person="person", ledger=old).mode(**ASK, epsilon=0.1, request_id="tuesday") == first
    assert len(Ledger(old).entries()) == 9


def test_its_first_question_binds_it(old: Path) -> None:
    """Its third entry has another unit, which 0.1.0 let pass."""
    assert Ledger(old).entries()[2].charge.unit == PrivacyUnit(None, "replace")
    for options in ({"neighbours": "replace"}, {}, {"person": "person", "neighbours": "replace"}):
        with pytest.raises(UnitMismatch):
            open_table(ROWS, ledger=old, **options)
    with pytest.raises(UnitMismatch):
        open_table(ROWS, person="person", ledger=old, dataset="rows")
    open_table(ROWS, person="person", ledger=old).mode(**ASK, epsilon="0.1")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger SET budget = '30'",
        "UPDATE entries SET each = '1/1000' WHERE id = 5",
        "DELETE FROM entries WHERE id = 7",
        "UPDATE answers SET answer = '\"b\"' WHERE id = 2",
        "PRAGMA user_version = 2",
        "ALTER TABLE ledger ADD COLUMN unit TEXT",
    ],
)
def test_tampering_is_found(old: Path, statement: str) -> None:
    with closing(sqlite3.connect(old)) as connection:
        connection.execute(statement)
        connection.commit()
    with pytest.raises(LedgerCorrupt):
        Ledger(old).verify()


# Format 2, which is still what a new ledger of pure epsilon has.

RECEIPTS_2 = [
    Receipt("a33077c8cca6dc5f22a8208c6dc45aa1", 3, "0f5c90a1c452d41a5d16af9a6fa5d7e43f88f489329c86c3a9ea67306acafa87"),
    Receipt("a33077c8cca6dc5f22a8208c6dc45aa1", 6, "d28a8fb39b841fe2663bac978ebc9d2f6929a95d3c2033d5f516751be9465b23"),
]
STEP = Fraction(1, 10**50)
TUNED = -(-Fraction(3, 1009) // STEP) * STEP
EPSILONS_2 = [Fraction(1, 3), Fraction(1, 10), Fraction(0.1), TUNED, STEP, Fraction(3, 7)]


@pytest.fixture
def second(path: Path) -> Path:
    shutil.copy(MADE_2, path)
    path.chmod(0o600)
    return path


def content(path: Path) -> tuple[list[str], list[object]]:
    """Everything that the file holds, and the settings that stay in it."""
    with closing(sqlite3.connect(path)) as connection:
        names = ("application_id", "user_version", "encoding", "page_size", "auto_vacuum", "schema_version")
        return list(connection.iterdump()), [connection.execute(f"PRAGMA {name}").fetchone() for name in names]


def test_format_2_is_read_verified_and_charged(second: Path) -> None:
    before = second.read_bytes()
    ledger = Ledger(second, budget=3, unit=PrivacyUnit("person"), dataset="rows")
    assert [entry.epsilon for entry in ledger.entries()] == EPSILONS_2
    assert ledger.spent == sum(EPSILONS_2)
    assert [ledger.verify(receipt).id for receipt in RECEIPTS_2] == [6, 6]
    assert [entry.answer for entry in ledger.entries()] == [None, '"a"', None, None, None, "the answer"]
    assert ledger.charge(Charge("top", "1/7", "exponential", count=3), request_id="tuesday").answer == "the answer"
    assert second.read_bytes() == before
    for other in ("2", "3,cap:1", "zcdp:3", "3,1e-6"):
        with pytest.raises(BudgetMismatch):
            Ledger(second, budget=other)
    with pytest.raises(InvalidValue, match="no pure epsilon"):
        ledger.spend(rho="0.1", what="in another currency")
    assert second.read_bytes() == before
    ledger.spend("0.1", "again")
    assert Ledger(second).verify(RECEIPTS_2[1]).id == 7
    assert content(second)[1] == content(MADE_2)[1]
    assert content(second)[0][: len(content(MADE_2)[0]) // 2] == content(MADE_2)[0][: len(content(MADE_2)[0]) // 2]


def test_a_new_ledger_of_pure_epsilon_is_what_0_3_wrote(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same uses, with the identity, salt and times of the old file, give the same content."""
    with closing(sqlite3.connect(MADE_2)) as connection:
        [(identity, created)] = connection.execute("SELECT identity, created FROM ledger").fetchall()
        times = [time for (time,) in connection.execute("SELECT time FROM entries ORDER BY id")]
        [(stored,)] = connection.execute("SELECT answer FROM answers WHERE id = 2").fetchall()
    salt = json.loads(stored.removeprefix("dpselect-answer:"))["salt"]
    tokens, clock = iter([identity, "0" * 16, salt]), iter([created, *times])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(tokens))
    for module in ("chain", "ledger"):
        monkeypatch.setattr(f"dpselect.ledger.{module}.now", lambda: next(clock))
    ledger = Ledger(path, budget="3", unit=PrivacyUnit("person"), dataset="rows")
    ledger.spend("1/3", "by hand")
    mode = {"question": "mode", "person": "person", "neighbours": "add-remove"}
    ledger.charge(Charge.of(PermuteAndFlip("0.1", monotonic=True), mode), request_id="monday")
    ledger.store_answer(2, '"a"', content="data")
    ledger.spend(0.1, {"größe": [1, 2.5, None, True, "\ud800"]})
    ledger.charge(Charge("tuned", "3/1009", Repeated(geometric(mean=3), "1/1009").name))
    ledger.spend(Fraction(1, 10**3990 - 1), "tiny")
    ledger.charge(Charge("top", "1/7", "exponential", count=3), request_id="tuesday")
    ledger.store_answer(6, "the answer")
    assert content(path) == content(MADE_2)


@pytest.mark.parametrize(("budget", "version"), [("1", 2), ("1,cap:0.1", 3), ("zcdp:1", 3), ("1,1e-6", 3)])
def test_a_new_ledger_has_the_oldest_format_that_can_hold_its_budget(path: Path, budget: str, version: int) -> None:
    Ledger(path, budget=budget).spend("0.01", "question")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
        names = [row[1] for row in connection.execute("PRAGMA table_info(entries)")]
    assert ("rho" in names, "delta" in names) == (version == 3, version == 3)
