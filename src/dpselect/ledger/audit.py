"""Reading a ledger without trusting it: nothing that is read is believed before the hash chain confirms it."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from dpselect._exact import NotExact, NotFinite, rational_from_text
from dpselect._unit import PrivacyUnit
from dpselect.errors import DPSelectError, LedgerError
from dpselect.ledger.charge import Charge, compact_json
from dpselect.ledger.connections import pragma
from dpselect.ledger.database import APPLICATION, SCHEMAS
from dpselect.ledger.entry import Entry, Header, next_head, seal
from dpselect.ledger.faults import corrupt
from dpselect.ledger.requests import stored_answer

_COLUMNS = (
    "entries.id, time, what, mechanism, each, count, request_id, head, answer, seal"
    " FROM entries LEFT JOIN answers ON answers.id = entries.id"
)

_HEADERS = {
    1: "identity, budget, created, NULL, NULL, head FROM ledger",
    2: "identity, budget, created, unit, dataset, head FROM ledger",
}

_SMALLEST = -(2**63)  # an inserted entry may have any number


class Unreadable(Exception):
    """A row does not say what an entry says; the message says what is wrong with it."""


@dataclass(frozen=True)
class State:
    """How far a ledger is known: the last entry, the head after it, the sum of all charges, and what they protect.

    The privacy unit is that of the header, or else of the first entry that states one.
    """

    id: int
    head: str
    spent: Fraction
    unit: PrivacyUnit | None


def read_header(connection: sqlite3.Connection, path: Path) -> Header:
    """The header of a ledger of a format that is known; anything else is refused."""
    tables = connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid").fetchall()
    if not tables and pragma(connection, "application_id") == 0:
        raise corrupt(path, "the file is empty: it is no ledger, or it lost its content")
    if pragma(connection, "application_id") != APPLICATION:
        raise LedgerError(f"ledger {path}: this is another program's SQLite file, not a ledger")
    version = pragma(connection, "user_version")
    if not isinstance(version, int) or version not in SCHEMAS:
        known = " or ".join(map(str, SCHEMAS))
        raise LedgerError(f"ledger {path}: it has format {version}, not {known}: use the dpselect that wrote it")
    if tuple(sql for (sql,) in tables) != SCHEMAS[version]:
        raise corrupt(path, "its tables were changed")
    rows = connection.execute(f"SELECT {_HEADERS[version]}").fetchall()
    try:
        [row] = rows
        return _header(version, *row)
    except (ValueError, Unreadable):
        raise corrupt(path, "its header is damaged or was changed") from None


@lru_cache(maxsize=64)
def _header(version: int, identity: Any, budget: Any, created: Any, unit: Any, dataset: Any, head: Any) -> Header:  # noqa: PLR0913, PLR0917 - the columns
    name = None if dataset is None else _text(dataset)
    header = Header(_text(identity), _rational(budget), _text(created), _unit(unit), name, version)
    if header.head != head:
        raise Unreadable
    return header


def _unit(text: Any) -> PrivacyUnit | None:
    """The privacy unit of a text that is in its own form."""
    if text is None:
        return None
    try:
        unit = PrivacyUnit(**json.loads(_text(text)))
    except (DPSelectError, ValueError, TypeError, RecursionError):
        raise Unreadable("is unreadable") from None
    if compact_json(unit.to_dict()) != text:
        raise Unreadable("is not in its own form")
    return unit


def check_file(connection: sqlite3.Connection, path: Path) -> None:
    """SQLite's own check of every page and index."""
    if pragma(connection, "integrity_check") != "ok":
        raise corrupt(path, "SQLite's integrity check fails")


def entries_after(connection: sqlite3.Connection, known: State, header: Header, path: Path) -> Iterator[Entry]:
    """The entries after what is known, each confirmed by the chain; the last known one must still be there."""
    query = f"SELECT {_COLUMNS} WHERE entries.id >= ? ORDER BY entries.id"
    rows = connection.execute(query, (known.id or _SMALLEST,))
    if known.id:
        last = rows.fetchone()
        if last is None or _head_of(last) != (known.id, known.head):
            raise corrupt(path, f"entry {known.id} is gone or was changed: it may be an old copy of the ledger")
    for row in rows:
        try:
            entry = _entry(row)
        except Unreadable as finding:
            raise corrupt(path, f"entry {known.id + 1} {finding}") from None
        if entry.id != known.id + 1:
            raise corrupt(path, f"entry {known.id + 1} is missing")
        if entry.head != next_head(known.head, entry.id, entry.time, entry.charge, entry.request_id):
            raise corrupt(path, f"entry {entry.id} was changed, inserted or moved")
        known = after(known, entry)
        if known.spent > header.budget:
            raise corrupt(path, f"entry {entry.id} exceeds the budget")
        if header.format > 1 and entry.charge.unit not in (None, known.unit):
            raise corrupt(path, f"entry {entry.id} has another privacy unit than the ledger")
        yield entry


def after(known: State, entry: Entry) -> State:
    """What is known when one more entry is."""
    return State(entry.id, entry.head, known.spent + entry.epsilon, known.unit or entry.charge.unit)


def check_answers(connection: sqlite3.Connection, path: Path) -> None:
    """Every stored answer belongs to an entry; that it is the entry's own is checked with the entry."""
    [(strays,)] = connection.execute("SELECT count(*) FROM answers WHERE id NOT IN (SELECT id FROM entries)")
    if strays:
        raise corrupt(path, "there are stored answers without an entry")


def entry_of(connection: sqlite3.Connection, column: str, value: int | str, path: Path) -> Entry | None:
    """The entry with this `id` or `request_id`."""
    query = f"SELECT {_COLUMNS} WHERE entries.{column} = ?"
    row = connection.execute(query, (value,)).fetchone()
    try:
        return None if row is None else _entry(row)
    except Unreadable as finding:
        raise corrupt(path, f"an entry {finding}") from None


def stored_text_of(connection: sqlite3.Connection, entry: Entry) -> str:
    """The text as which the answer of an entry is stored, which was confirmed when the entry was read."""
    [(text,)] = connection.execute("SELECT answer FROM answers WHERE id = ?", (entry.id,)).fetchall()
    return str(text)


def _head_of(row: tuple[Any, ...]) -> tuple[Any, Any]:
    return row[0], row[7]


def _entry(row: tuple[Any, ...]) -> Entry:
    id, time, what, mechanism, each, count, request_id, head, answer, answer_seal = row
    try:
        charge = Charge(json.loads(_text(what)), _rational(each), mechanism, count)
    except (DPSelectError, ValueError, RecursionError):
        raise Unreadable("is unreadable") from None
    if charge.text != what:
        raise Unreadable("is not in its own form")
    if answer is not None and answer_seal != seal(_text(head), _text(answer)):
        raise Unreadable("has a stored answer that was changed")
    request = None if request_id is None else _text(request_id)
    return Entry(id, _text(time), charge, request, _text(head), None if answer is None else stored_answer(answer))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unreadable("is unreadable")
    return value


def _rational(value: Any) -> Fraction:
    """The number of a text that is in its own form: 1/10 in lowest terms, not 0.1, 2/20 or +1/10."""
    try:
        number = rational_from_text(_text(value))
    except (NotExact, NotFinite):
        raise Unreadable("is unreadable") from None
    if str(number) != value or number <= 0:
        raise Unreadable("is not in its own form")
    return number
