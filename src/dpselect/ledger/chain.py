"""The hash chain of a ledger (as in Haber & Stornetta 1991): what the file holds, and how to read it safely.

The header's hash is the first head; the head after an entry is the hash of the head before it and of everything that
the entry holds. Changing an entry changes all heads after it. Nothing that is read is trusted before the chain confirms
it. An answer is stored with a salted hash of its data, so that only a retry on the same data gets it.

Compatibility: what a format hashes, and what its fields mean, never changes. Format 2 has a privacy unit and a name of
the data set in its header, each of which may be missing; entries, answers and receipts are those of format 1. Format 3
has a budget in any currency (`accounting.budget.stored_text`), and every entry states its rho and its delta, so that no
later and better formula changes what was spent. A ledger of pure epsilon without a cap is still written in format 2.
"""

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from dpselect._numbers import NotExact, NotFinite, exact_text, rational_from_text
from dpselect.accounting.budget import Amount, Budget, PureBudget, budget_from_stored
from dpselect.accounting.budget import stored_text as stored_budget
from dpselect.accounting.charge import Charge, PrivacyUnit, What, compact_json
from dpselect.errors import DPSelectError, InvalidValue, LedgerError, RequestConflict, RequestUnanswered
from dpselect.ledger.store import APPLICATION, SCHEMAS, corrupt, pragma

PURE_FORMAT = 2
FORMAT = 3


@dataclass(frozen=True)
class Header:
    """What is fixed when a ledger is created."""

    identity: str
    budget: Budget
    created: str
    unit: PrivacyUnit | None
    dataset: str | None
    format: int

    @classmethod
    def new(cls, budget: Budget, unit: PrivacyUnit | None, dataset: str | None) -> "Header":
        """Return the header of a new ledger, in the oldest format that can hold its budget."""
        format_ = FORMAT if budget.needs_rho else PURE_FORMAT
        return cls(secrets.token_hex(16), budget, now(), unit, dataset, format_)

    @property
    def budget_text(self) -> str:
        """Return the budget in the form that the file stores."""
        return stored_budget(self.budget) if self.format >= FORMAT else str(self.budget.limit.value)

    @property
    def unit_text(self) -> str | None:
        """Return the privacy unit in the form that the file stores."""
        return None if self.unit is None else compact_json(self.unit.to_dict())

    @property
    def row(self) -> tuple[str | None, ...]:
        """Return the fields that the file stores."""
        return self.identity, self.budget_text, self.created, self.unit_text, self.dataset, self.head

    @property
    def head(self) -> str:
        """Return the first head of the chain."""
        bound = [] if self.format == 1 else [self.unit_text, self.dataset]
        return hashed(["dpselect ledger", self.format, self.identity, self.budget_text, self.created, *bound])

    def next_head(self, previous: str, id: int, time: str, charge: Charge, request_id: str | None) -> str:
        """Return the head of the chain after an entry."""
        return hashed([previous, id, time, charge.text, charge.mechanism, *self._costs(charge), request_id])

    def insertion(self, entry: "Entry") -> tuple[str, tuple[Any, ...]]:
        """Return the statement that stores an entry, and its values."""
        charge = entry.charge
        values = (
            entry.id,
            entry.time,
            charge.text,
            charge.mechanism,
            *self._costs(charge),
            entry.request_id,
            entry.head,
        )
        marks = ", ".join("?" for _ in values)
        return f"INSERT INTO entries VALUES ({marks})", values  # noqa: S608 - question marks only

    def _costs(self, charge: Charge) -> list[Any]:
        recorded = [str(charge.rho), str(charge.delta)] if self.format >= FORMAT else []
        return [str(charge.each), charge.count, *recorded]


@dataclass(frozen=True)
class Entry:
    """One charge in a ledger. `Ledger.charge` and `Ledger.entries` return it.

    Args:
        id: the number of the entry. Entries are ordered by it, never by the clock.
        time: when it was charged, in UTC.
        charge: what was charged.
        request_id: the request that it answers, if it has one.
        head: the hash of this entry and all before it.
        answer: the stored answer of the request, if there is one. It is not part of the chain.

    >>> Entry(1, "2026-01-31T12:00:00Z", Charge("ages", "0.1"), None, "ab12").epsilon
    Fraction(1, 10)
    """

    COLUMNS: ClassVar = (
        *("id", "time", "what", "mechanism", "epsilon", "each", "count", "rho", "delta", "request_id", "head"),
    )

    id: int
    time: str
    charge: Charge
    request_id: str | None
    head: str
    answer: str | None = None

    @property
    def what(self) -> What:
        """Return the question and its public parameters."""
        return self.charge.what

    @property
    def mechanism(self) -> str:
        """Return the name of the mechanism whose distribution is drawn."""
        return self.charge.mechanism

    @property
    def epsilon(self) -> Fraction | None:
        """Return the exact epsilon of what was released; None if only its rho is known."""
        return self.charge.epsilon

    @property
    def rho(self) -> Fraction:
        """Return the rho of zCDP of what was released: as recorded, or rounded up."""
        return self.charge.rho

    @property
    def delta(self) -> Fraction:
        """Return the exact delta of what was released; 0 unless it has one of its own."""
        return self.charge.delta

    def to_dict(self) -> dict[str, Any]:
        """Return the entry in the types of JSON.

        Returns:
            The fields by name, with exact numbers as strings. The stored answer is left out.
        """
        charge, epsilon = self.charge, self.epsilon
        total = None if epsilon is None else exact_text(epsilon)
        each = None if epsilon is None else exact_text(charge.each)
        costs = (total, each, charge.count, exact_text(charge.rho), exact_text(charge.delta))
        values = (self.id, self.time, self.what, self.mechanism, *costs, self.request_id, self.head)
        return dict(zip(self.COLUMNS, values, strict=True))


def now() -> str:
    """The time of an entry, in UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def seal(entry_head: str, answer: str) -> str:
    """The hash that ties a stored answer to its entry."""
    return hashed(["answer", entry_head, answer])


def hashed(content: list[Any]) -> str:
    """The hash of all items of the list."""
    return hashlib.sha256(compact_json(content).encode("ascii")).hexdigest()


# The beginning of the text of an answer that is stored with a hash of its data.
_WITH_CONTENT = "dpselect-answer:"


def stored_text(answer: str, content: str | None) -> str:
    """The text in which an answer is stored, with a salted hash of the digest of its data, if one is given.

    The digest is a function of private data, so it is not stored itself, and no entry holds its hash.
    """
    if content is None and not answer.startswith(_WITH_CONTENT):
        return answer
    salt = secrets.token_hex(16)
    known = None if content is None else _content_hash(salt, content)
    return _WITH_CONTENT + compact_json({"answer": answer, "salt": salt, "content": known})


def stored_answer(text: str) -> str:
    """The answer in a stored text."""
    return str(_stored(text)["answer"])


def check_repeated(earlier: Entry, charges: Collection[Charge]) -> None:
    """Refuse a retry that differs from the earlier request, or that has no stored answer."""
    if earlier.charge not in charges:
        raise RequestConflict("request_id was used before with a different question or parameters: give a new one")
    if earlier.answer is None:
        raise RequestUnanswered(
            f"request_id was charged before, as entry {earlier.id}, but its answer was not stored. Nothing is refunded:"
            " to ask again, and pay again, give a new one"
        )


def check_content(id: int, text: str, content: str) -> None:
    """Refuse a retry on data other than those of the stored answer."""
    stored = _stored(text)
    if stored["content"] is None:
        raise RequestConflict(
            f"request_id was used before, and the answer of entry {id} was stored without a digest of its data, by"
            " dpselect 0.1 or by hand: it may not be this table's answer. Its text is in Ledger.entries(); to ask"
            " again, and pay again, give a new request_id"
        )
    if stored["content"] != _content_hash(stored["salt"], content):
        raise RequestConflict(f"request_id was used before on other data, as entry {id}: give a new one")


def _stored(text: str) -> dict[str, Any]:
    plain = {"answer": text, "salt": None, "content": None}
    if not text.startswith(_WITH_CONTENT):
        return plain
    try:
        stored = json.loads(text.removeprefix(_WITH_CONTENT))
    except (ValueError, RecursionError):  # a text that a user of dpselect 0.1 stored
        return plain
    return stored if isinstance(stored, dict) and stored.keys() == plain.keys() else plain


def _content_hash(salt: str, content: str) -> str:
    return hashed(["content", salt, content])


_COLUMNS = (
    "entries.id, time, what, mechanism, each, count, request_id, head, answer, seal, {}"
    " FROM entries LEFT JOIN answers ON answers.id = entries.id"
)
_COSTS = {1: "NULL, '0'", 2: "NULL, '0'", 3: "rho, delta"}

_HEADERS = {
    1: "identity, budget, created, NULL, NULL, head FROM ledger",
    2: "identity, budget, created, unit, dataset, head FROM ledger",
    3: "identity, budget, created, unit, dataset, head FROM ledger",
}

_SMALLEST = -(2**63)  # an inserted entry may have any id


class Unreadable(Exception):
    """A row is not a valid entry. The message says what is wrong."""


@dataclass(frozen=True)
class State:
    """What has been confirmed of a ledger: the last entry, the head after it, the sum of all costs, and the unit.

    The privacy unit is that of the header, or otherwise of the first entry that states one.
    """

    id: int
    head: str
    spent: Amount
    unit: PrivacyUnit | None


def read_header(connection: sqlite3.Connection, path: Path) -> Header:
    """The header of a ledger in a known format. Anything else is refused."""
    tables = connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid").fetchall()
    if not tables and pragma(connection, "application_id") == 0:
        raise corrupt(path, "the file is empty: it is not a ledger, or it lost its content")
    if pragma(connection, "application_id") != APPLICATION:
        raise LedgerError(f"ledger {path}: this SQLite file belongs to another program and is not a ledger")
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
    header = Header(_text(identity), _budget(version, budget), _text(created), _unit(unit), name, version)
    if header.head != head:
        raise Unreadable
    return header


def _budget(version: int, text: Any) -> Budget:
    """The budget of a text in canonical form."""
    if version < FORMAT:
        return PureBudget(_rational(text))
    try:
        return budget_from_stored(_text(text))
    except (DPSelectError, ValueError, TypeError, KeyError, RecursionError):
        raise Unreadable("is unreadable") from None


def _unit(text: Any) -> PrivacyUnit | None:
    """The privacy unit of a text in canonical form."""
    if text is None:
        return None
    try:
        unit = PrivacyUnit(**json.loads(_text(text)))
    except (DPSelectError, ValueError, TypeError, RecursionError):
        raise Unreadable("is unreadable") from None
    if compact_json(unit.to_dict()) != text:
        raise Unreadable("is not in canonical form")
    return unit


def check_file(connection: sqlite3.Connection, path: Path) -> None:
    """Run SQLite's own check of every page and index."""
    if pragma(connection, "integrity_check") != "ok":
        raise corrupt(path, "SQLite's integrity check fails")


def entries_after(connection: sqlite3.Connection, known: State, header: Header, path: Path) -> Iterator[Entry]:
    """The entries after the last known one, each confirmed by the chain. The last known one must still be there."""
    query = f"SELECT {_COLUMNS.format(_COSTS[header.format])} WHERE entries.id >= ? ORDER BY entries.id"
    rows = connection.execute(query, (known.id or _SMALLEST,))
    if known.id:
        last = rows.fetchone()
        if last is None or _head_of(last) != (known.id, known.head):
            raise corrupt(path, f"entry {known.id} is missing or was changed: this may be an old copy of the ledger")
    for row in rows:
        try:
            entry = _entry(row)
        except Unreadable as finding:
            raise corrupt(path, f"entry {known.id + 1} {finding}") from None
        if entry.id != known.id + 1:
            raise corrupt(path, f"entry {known.id + 1} is missing")
        if entry.head != header.next_head(known.head, entry.id, entry.time, entry.charge, entry.request_id):
            raise corrupt(path, f"entry {entry.id} was changed, inserted or moved")
        try:
            known = after(known, entry, header.budget)
        except InvalidValue:
            raise corrupt(path, f"entry {entry.id} has no cost in the currency of the budget") from None
        if not header.budget.admits(known.spent):
            raise corrupt(path, f"entry {entry.id} exceeds the budget")
        if header.format > 1 and entry.charge.unit not in (None, known.unit):
            raise corrupt(path, f"entry {entry.id} has a different privacy unit from the ledger")
        yield entry


def after(known: State, entry: Entry, budget: Budget) -> State:
    """What is known after one more entry."""
    spent = known.spent.plus(budget.amount(entry.charge))
    return State(entry.id, entry.head, spent, known.unit or entry.charge.unit)


def check_answers(connection: sqlite3.Connection, path: Path) -> None:
    """Check that every stored answer belongs to an entry. That it matches the entry is checked with the entry."""
    [(strays,)] = connection.execute("SELECT count(*) FROM answers WHERE id NOT IN (SELECT id FROM entries)")
    if strays:
        raise corrupt(path, "there are stored answers without an entry")


def entry_of(connection: sqlite3.Connection, column: str, value: int | str, header: Header, path: Path) -> Entry | None:
    """The entry with this `id` or `request_id`."""
    query = f"SELECT {_COLUMNS.format(_COSTS[header.format])} WHERE entries.{column} = ?"
    row = connection.execute(query, (value,)).fetchone()
    try:
        return None if row is None else _entry(row)
    except Unreadable as finding:
        raise corrupt(path, f"an entry {finding}") from None


def stored_text_of(connection: sqlite3.Connection, entry: Entry) -> str:
    """The stored text of an entry's answer, which was confirmed when the entry was read."""
    [(text,)] = connection.execute("SELECT answer FROM answers WHERE id = ?", (entry.id,)).fetchall()
    return str(text)


def _head_of(row: tuple[Any, ...]) -> tuple[Any, Any]:
    return row[0], row[7]


def _entry(row: tuple[Any, ...]) -> Entry:
    id, time, what, mechanism, each, count, request_id, head, answer, answer_seal, rho, delta = row
    try:
        costs = None if rho is None else _rational(rho), _rational(delta, least=0)
        charge = Charge.recorded(json.loads(_text(what)), _rational(each), mechanism, count, *costs)
    except (DPSelectError, ValueError, RecursionError):
        raise Unreadable("is unreadable") from None
    if charge.text != what:
        raise Unreadable("is not in canonical form")
    if answer is not None and answer_seal != seal(_text(head), _text(answer)):
        raise Unreadable("has a stored answer that was changed")
    request = None if request_id is None else _text(request_id)
    return Entry(id, _text(time), charge, request, _text(head), None if answer is None else stored_answer(answer))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unreadable("is unreadable")
    return value


def _rational(value: Any, least: int | None = None) -> Fraction:
    """The number in a text in canonical form: 1/10 in lowest terms, not 0.1, 2/20 or +1/10."""
    try:
        number = rational_from_text(_text(value))
    except (NotExact, NotFinite):
        raise Unreadable("is unreadable") from None
    if str(number) != value or number < 0 or (number == 0 and least is None):
        raise Unreadable("is not in canonical form")
    return number
