"""The rows about the ledger: durable spends beside SQLite's own rate on the same disk, and how long reading takes."""

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks import units
from benchmarks.bars import Figures, at_most_seconds, at_most_times, no_bar
from benchmarks.case import Case
from benchmarks.stopwatch import Call, Effort, interleaved_medians, timed
from dpselect import Ledger
from dpselect.accounting import total
from dpselect.ledger import Charge
from dpselect.ledger.file import append

_WHAT = {"question": "mode", "column": "diagnosis", "candidates": "diagnoses.csv", "monotonic": True}
_ROW = "x" * 400  # about the bytes of an entry
_ENTRIES = 1_000
_MANY = 100_000
_QUESTIONS = 1_000  # different ones among many entries
_BUDGETS = {
    "pure": "1000000000",
    "capped": "1000000000,cap:1",
    "zCDP": "zcdp:1000000000",
    "(epsilon, delta)": "1000000000,1e-6",
}


def cases() -> Iterator[Case]:
    """All rows about the ledger."""
    for currency, budget in _BUDGETS.items():
        spends = partial(_spends, budget)
        what = f"Ledger, durable spends, {currency}"
        yield Case(what, "bare SQLite", at_most_times(1.5), spends, show=units.per_second)
    yield Case("Ledger, verify 10^3 entries", "", at_most_seconds(0.5), _verify)
    for currency in ("pure", "zCDP"):
        first, added = (partial(_many, _BUDGETS[currency], use, _QUESTIONS) for use in (_first_charge, _total))
        yield Case(f"Ledger, first charge after 10^5 entries, {currency}", "", at_most_seconds(1), first, rows=_MANY)
        yield Case(f"Ledger, total of 10^5 entries, {currency}", "", at_most_seconds(1), added, rows=_MANY)
    different = partial(_many, _BUDGETS["zCDP"], _first_charge, _MANY)
    what = "Ledger, first charge after 10^5 entries, all with different questions"
    yield Case(what, "", no_bar(), different, rows=_MANY)


def _spends(budget: str, effort: Effort) -> Figures:
    """Seconds a spend and a bare insert, on the disk of the current folder: a temporary folder may be in memory."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".benchmark-") as folder:
        ledger = Ledger(f"{folder}/a.ledger", budget=budget)
        with closing(_bare(f"{folder}/bare.sqlite")) as connection:
            calls: list[Call] = [lambda: ledger.spend("0.1", _WHAT), lambda: _insert(connection)]
            return Figures(*interleaved_medians([timed(call) for call in calls], effort))


def _bare(path: str) -> sqlite3.Connection:
    """SQLite as durable as the ledger's, and nothing else."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY, what TEXT)")
    return connection


def _insert(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO entries (what) VALUES (?)", (_ROW,))
    connection.execute("COMMIT")


def _verify(effort: Effort) -> Figures:
    """Seconds to verify a long ledger: what the first charge of a process waits for."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"{folder}/a.ledger", budget=10**9)
        for _ in range(_ENTRIES):
            ledger.spend("0.1", _WHAT)
        return Figures(*interleaved_medians([timed(ledger.verify)], effort))


def _many(budget: str, use: Callable[[str], object], questions: int, effort: Effort) -> Figures:
    """Seconds of a use of a file with many entries, by an object that has read none of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.ledger"
        _fill(path, budget, questions)
        return Figures(*interleaved_medians([timed(lambda: use(path))], effort))


def _first_charge(path: str) -> object:
    return Ledger(path).spend("0.1", _WHAT)


def _total(path: str) -> object:
    return total(Ledger(path))


def _fill(path: str, budget: str, questions: int) -> None:
    """Write entries in one transaction: as many durable spends would take minutes."""
    ledger = Ledger(path, budget=budget)
    head = ledger._header.head
    charge = ledger.budget.recorded(Charge(_WHAT, "0.1", "exponential"))
    charges = [charge.asking(Charge({**_WHAT, "page": page}, 1).text) for page in range(questions)]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for id in range(1, _MANY + 1):
            head = append(connection, id, head, charges[id % questions], None).head
        connection.execute("COMMIT")
