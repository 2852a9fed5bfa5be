"""The rows about the ledger: durable spends beside SQLite's own rate on the same disk, with the same settings."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks import units
from benchmarks.bars import Figures, at_most_seconds, at_most_times
from benchmarks.case import Case
from benchmarks.stopwatch import Call, Effort, interleaved_medians, timed
from dpselect import Ledger

_WHAT = {"question": "mode", "column": "diagnosis", "candidates": "diagnoses.csv", "monotonic": True}
_ROW = "x" * 400  # about the bytes of an entry
_ENTRIES = 1_000


def cases() -> Iterator[Case]:
    """All rows about the ledger."""
    yield Case("Ledger, durable spends", "bare SQLite", at_most_times(1.5), _spends, show=units.per_second)
    yield Case("Ledger, verify 10^3 entries", "", at_most_seconds(0.5), _verify)


def _spends(effort: Effort) -> Figures:
    """Seconds a spend and a bare insert, on the disk of the current folder: a temporary folder may be in memory."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".benchmark-") as folder:
        ledger = Ledger(f"{folder}/a.ledger", budget=10**9)
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
