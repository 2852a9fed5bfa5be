"""Reading fast finds what reading slowly finds: the hashes and sums that these tests compute from the file itself."""

import hashlib
import json
import sqlite3
import tempfile
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import Ledger, LedgerCorrupt
from dpselect.accounting.budget import as_budget
from dpselect.ledger import Charge, file
from dpselect.ledger.file import reading
from tests.ledger.currencies import every_currency
from tests.ledger.test_ledger import JSON

QUESTIONS = st.text(max_size=9) | st.dictionaries(st.text(max_size=5), JSON, max_size=3)
EPSILONS = st.sampled_from(["0.1", "1/3", "1/7", 0.1, Fraction(1, 1009), Fraction(1, 10**60), "1/400", "2"])
MECHANISMS = st.sampled_from(["pure", "permute-and-flip", "exponential", "noisy-max"])
CHARGES = st.builds(Charge, QUESTIONS, EPSILONS, MECHANISMS, st.integers(1, 3))
NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=5)


def confirmed_by_hand(path: Path) -> tuple[int, str, Fraction, Fraction]:
    """The last entry, its head, and the sums, from the definition of the chain and nothing of the library."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        [header] = connection.execute("SELECT * FROM ledger").fetchall()
        [version] = connection.execute("PRAGMA user_version").fetchone()
        rows = connection.execute("SELECT * FROM entries ORDER BY id").fetchall()
    pure = '"currency":"pure"' in header["budget"]
    start = [
        "dpselect ledger",
        version,
        *(header[name] for name in ("identity", "budget", "created", "unit", "dataset")),
    ]
    head, value, delta = digest(start), Fraction(0), Fraction(0)
    assert head == header["head"]
    for number, row in enumerate(rows, start=1):
        assert row["id"] == number
        names = ["id", "time", "what", "mechanism", "each", "count", "rho", "delta"]
        head = digest([head, *(row[name] for name in names), row["request_id"]])
        assert head == row["head"]
        value += Fraction(row["each"]) * row["count"] if pure else Fraction(row["rho"])
        delta += Fraction(row["delta"])
    return len(rows), head, value, delta


def digest(content: list[Any]) -> str:
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@pytest.mark.parametrize("kept", [1, 10_000])
@every_currency()
@settings(max_examples=12, deadline=None)
@given(charges=st.lists(st.tuples(CHARGES, NAMES, st.none() | NAMES), max_size=6, unique_by=lambda one: one[1]))
def test_what_is_read_is_what_the_file_says(
    budget: str, kept: int, charges: list[tuple[Charge, str, str | None]]
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "_MOST_KEPT", kept)
        ledger = Ledger(Path(folder) / "a.ledger", budget=budget, dataset="größe")
        for charge, request, answer in charges:
            if as_budget(budget).to_dict().get("cap") and charge.each > 1:
                continue
            entry = ledger.charge(charge, request_id=request)
            if answer is not None:
                ledger.store_answer(entry.id, answer)
        again = Ledger(ledger.path)
        found = again.receipt()
        assert (found.id, found.head, *again.spent.limit) == confirmed_by_hand(ledger.path)
        assert again.verify() == found == ledger.verify()
        entries = again.entries()
        charges = again.charges()
        assert charges == [entry.charge for entry in entries]
        with reading(again.path) as connection:
            for entry in entries:  # one by one, which parses everything anew
                assert file.entry_of(connection, "id", entry.id, again.path)[0] == entry


WRONG = [
    "", "x", "3", "null", "true", "[1]", "NaN", '{"a":NaN}', '{"a":1e999}', '{"a":Infinity}',
    '{"b":1,"a":2}', '{"a":1,"a":1}', '{"a": 1}', ' "a"', '"a" ', '"a","b"', '"ä"', '{"a":1.0e0}', '{"a":"\\u0041"}',
    f'{{"a":{"7" * 4001}}}', f'{{"a":{"7" * 5000}}}', '{"a":' * 30_000, '"' + "x" * 2**20 + '"',
]  # fmt: skip


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:20])
def test_a_question_in_another_form_is_refused_even_with_right_hashes(path: Path, text: str) -> None:
    """Its meaning could depend on who reads it."""
    ledger = Ledger(path, budget="zcdp:1")
    first = ledger.charge(Charge("a", "0.1"))
    row = [2, first.time, text, "pure", "1/10", 1, str(first.rho), "0", None]
    row.append(file.hashed([first.head, *row]))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"INSERT INTO entries VALUES ({', '.join('?' * len(row))})", row)
        connection.commit()
    assert confirmed_by_hand(path)[0] == 2
    for use in (Ledger.verify, Ledger.entries, lambda opened: opened.spend("0.1", "c")):
        for opened in (ledger, Ledger(path)):
            with pytest.raises(LedgerCorrupt, match=r"entry 2 is (unreadable|not in canonical form)"):
                use(opened)  # type: ignore[operator]


def test_a_whole_number_of_4000_digits_is_read(path: Path) -> None:
    ledger = Ledger(path, budget="1")
    ledger.spend("0.1", {"a": 10**4000 - 1})
    assert Ledger(path).entries()[0].what == {"a": 10**4000 - 1}


def test_equal_questions_do_not_share_what_a_caller_may_change(path: Path) -> None:
    ledger = Ledger(path, budget="1")
    for _ in range(2):
        ledger.spend("0.1", {"columns": ["a"]})
    first, second = ledger.entries()
    first.what["columns"].append("b")  # type: ignore[index]
    assert second.what == {"columns": ["a"]}
    assert ledger.entries()[0].what == {"columns": ["a"]}


@every_currency()
def test_a_cost_that_comes_again_after_one_of_another_unit(path: Path, budget: str) -> None:
    """Sums are kept in multiples of one unit, which becomes finer while the file is read."""
    ledger = Ledger(path, budget=budget)
    for epsilon in ("0.1", "1/3", "0.1", "1/7", "0.1", "1/3"):
        ledger.spend(epsilon, "question")
    assert Ledger(path).spent == ledger.spent
    costs = (entry.epsilon if ledger.budget.rho is None else entry.rho for entry in ledger.entries())
    assert Ledger(path).spent.limit.value == sum(costs)
