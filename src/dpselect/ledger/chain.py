"""The hash chain of a ledger (as in Haber & Stornetta 1991): what the file holds, and how it is read.

The header's hash is the first head; the head after an entry is the hash of the head before it and of everything that
the entry holds. Changing an entry changes all heads after it. Nothing in the file is trusted before the chain confirms
it.

The first charge of an object reads the whole file, so reading is made fast. Entries of one ledger repeat each other:
what concerns only the cost of an entry, or only its question, is parsed and checked once for each different one. Costs
add up exactly as whole multiples of one unit.

What the format hashes, and what its fields mean, never changes. Every entry states its rho and its delta, so that no
later and better formula changes what was spent.
"""

import hashlib
import json
import math
import secrets
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from dpselect._numbers import LARGEST_EXPONENT, NotExact, NotFinite, exact_text, rational_from_text
from dpselect.accounting.budget import Amount, Budget, budget_from_stored
from dpselect.accounting.budget import stored_text as stored_budget
from dpselect.accounting.charge import Charge, PrivacyUnit, What, canonical_text, compact_json, hashed, unit_of
from dpselect.errors import DPSelectError, InvalidValue, LedgerError
from dpselect.ledger.requests import UnreadableAnswer, seal, stored_answer
from dpselect.ledger.store import APPLICATION, FORMAT, SCHEMA, corrupt, pragma


@dataclass(frozen=True)
class Header:
    """What is fixed when a ledger is created."""

    identity: str
    budget: Budget
    created: str
    unit: PrivacyUnit | None
    dataset: str | None

    @classmethod
    def new(cls, budget: Budget, unit: PrivacyUnit | None, dataset: str | None) -> "Header":
        """Return the header of a new ledger."""
        return cls(secrets.token_hex(16), budget, now(), unit, dataset)

    @property
    def budget_text(self) -> str:
        """Return the budget in the form that the file stores."""
        return stored_budget(self.budget)

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
        fixed = [self.identity, self.budget_text, self.created, self.unit_text, self.dataset]
        return hashed(["dpselect ledger", FORMAT, *fixed])

    def next_head(self, previous: str, id: int, time: str, charge: Charge, request_id: str | None) -> str:
        """Return the head of the chain after an entry."""
        return hashed([previous, id, time, charge.text, charge.mechanism, *_costs(charge), request_id])

    def insertion(self, entry: "Entry") -> tuple[str, tuple[Any, ...]]:
        """Return the statement that stores an entry, and its values."""
        charge = entry.charge
        values = (
            entry.id,
            entry.time,
            charge.text,
            charge.mechanism,
            *_costs(charge),
            entry.request_id,
            entry.head,
        )
        marks = ", ".join("?" for _ in values)
        return f"INSERT INTO entries VALUES ({marks})", values  # noqa: S608 - question marks only


def _costs(charge: Charge) -> list[Any]:
    return [str(charge.each), charge.count, str(charge.rho), str(charge.delta)]


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


_COLUMNS = (
    "entries.id, time, what, mechanism, each, count, request_id, head, answer, seal, rho, delta"
    " FROM entries LEFT JOIN answers ON answers.id = entries.id"
)

_SMALLEST = -(2**63)  # an inserted entry may have any id
_MOST_KEPT = 10_000  # different costs or questions that are kept in memory

_Row = tuple[Any, ...]


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


def after(known: State, entry: Entry, budget: Budget) -> State:
    """What is known after one more entry."""
    spent = known.spent.plus(budget.amount(entry.charge))
    return State(entry.id, entry.head, spent, known.unit or entry.charge.unit)


def read_header(connection: sqlite3.Connection, path: Path) -> Header:
    """The header of a ledger. Anything else is refused."""
    tables = connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid").fetchall()
    if not tables and pragma(connection, "application_id") == 0:
        raise corrupt(path, "the file is empty: it is not a ledger, or it lost its content")
    if pragma(connection, "application_id") != APPLICATION:
        raise LedgerError(f"ledger {path}: this SQLite file belongs to another program and is not a ledger")
    version = pragma(connection, "user_version")
    if version != FORMAT:
        raise LedgerError(f"ledger {path}: it has format {version}, not {FORMAT}: use the dpselect that wrote it")
    if tuple(sql for (sql,) in tables) != SCHEMA:
        raise corrupt(path, "its tables were changed")
    rows = connection.execute("SELECT identity, budget, created, unit, dataset, head FROM ledger").fetchall()
    try:
        [row] = rows
        return _header(*row)
    except (ValueError, Unreadable):
        raise corrupt(path, "its header is damaged or was changed") from None


@lru_cache(maxsize=64)
def _header(identity: Any, budget: Any, created: Any, unit: Any, dataset: Any, head: Any) -> Header:  # noqa: PLR0913, PLR0917 - the columns
    name = None if dataset is None else _text(dataset)
    header = Header(_text(identity), _budget(budget), _text(created), _unit(unit), name)
    if header.head != head:
        raise Unreadable
    return header


def _budget(text: Any) -> Budget:
    """The budget of a text in canonical form."""
    try:
        return budget_from_stored(_text(text))
    except (DPSelectError, ValueError):
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


def check_answers(connection: sqlite3.Connection, path: Path) -> None:
    """Check that every stored answer belongs to an entry. That it matches the entry is checked with the entry."""
    [(strays,)] = connection.execute("SELECT count(*) FROM answers WHERE id NOT IN (SELECT id FROM entries)")
    if strays:
        raise corrupt(path, "there are stored answers without an entry")


class _Sum:
    """An exact sum and its limit, both as whole multiples of 1/unit."""

    def __init__(self, start: Fraction, limit: Fraction) -> None:
        self._limit = limit
        self.unit = math.lcm(start.denominator, limit.denominator)
        self.total, self.most = int(start * self.unit), int(limit * self.unit)

    @property
    def value(self) -> Fraction:
        """The sum."""
        return Fraction(self.total, self.unit)

    def refine(self, number: Fraction) -> None:
        """Choose the unit such that the number is a whole multiple of it too."""
        finer = math.lcm(self.unit, number.denominator) // self.unit
        self.unit, self.total, self.most = self.unit * finer, self.total * finer, self.most * finer


class _Question(NamedTuple):
    unit: PrivacyUnit | None
    quoted: str  # its text as the chain hashes it


class _Cost(NamedTuple):
    charge: Charge  # of any question
    quoted: str  # mechanism, each, count, rho and delta, as the chain hashes them
    value: int  # in units of the sum
    delta: int


class Reader:
    """Reads the entries after what is known, and confirms each of them.

    Args:
        connection: an open transaction.
        known: what has been confirmed before. Its last entry must still be there.
        header: the header of the ledger.
        path: the file, for messages.
    """

    def __init__(self, connection: sqlite3.Connection, known: State, header: Header, path: Path) -> None:
        self._connection, self._known, self._header, self._path = connection, known, header, path
        self._id, self._head, self._unit = known.id, known.head, known.unit
        limit = header.budget.limit
        self._value, self._delta = _Sum(known.spent.value, limit.value), _Sum(known.spent.delta, limit.delta)
        self._costs: dict[_Row, _Cost] = {}
        self._questions: dict[Any, _Question] = {}

    @property
    def state(self) -> State:
        """What is known after everything that was read."""
        return State(self._id, self._head, Amount(self._value.value, self._delta.value), self._unit)

    def heads(self) -> list[str]:
        """Read all entries, and return the head after each of them."""
        return [head for _, _, _, _, head, _ in self._rows()]

    def charges(self) -> list[Charge]:
        """Read all entries, and return what was charged. Equal charges are one object."""
        known: dict[tuple[str, str], Charge] = {}
        found = []
        for _, _, (what, cost), _, _, _ in self._rows():
            charge = known.get((what, cost.quoted))
            if charge is None:
                charge = known[what, cost.quoted] = cost.charge.asking(what)
            found.append(charge)
        return found

    def entries(self) -> list[Entry]:
        """Read and return all entries."""
        return [
            Entry(id, time, cost.charge.asking(what), request_id, head, answer)
            for id, time, (what, cost), request_id, head, answer in self._rows()
        ]

    def _rows(self) -> Iterator[tuple[int, str, tuple[str, _Cost], str | None, str, str | None]]:
        query = f"SELECT {_COLUMNS} WHERE entries.id >= ? ORDER BY entries.id"
        rows = self._connection.execute(query, (self._id or _SMALLEST,))
        if self._id:
            last = rows.fetchone()
            if last is None or (last[0], last[7]) != (self._id, self._head):
                finding = f"entry {self._id} is missing or was changed: this may be an old copy of the ledger"
                raise corrupt(self._path, finding)
        costs, questions = self._costs, self._questions
        for id, time, what, mechanism, each, count, request_id, head, answer, answer_seal, rho, delta in rows:
            number = self._id + 1
            try:
                key = mechanism, each, count, rho, delta
                cost = costs.get(key) or self._cost(*key)
                question = questions.get(what) or self._question(what)
                known_answer = None if answer is None else _answer(answer, head, answer_seal)
                request = "null" if request_id is None else quoted(_text(request_id))
                if id != number:
                    raise Unreadable("is missing")
                # The text whose hash is `Header.next_head`.
                hashed = f'["{self._head}",{id},{quoted(_text(time))},{question.quoted},{cost.quoted},{request}]'
                if hashlib.sha256(hashed.encode("ascii")).hexdigest() != head:
                    raise Unreadable("was changed, inserted or moved")
                self._value.total += cost.value
                self._delta.total += cost.delta
                if self._value.total > self._value.most or self._delta.total > self._delta.most:
                    raise Unreadable("exceeds the budget")
                unit = question.unit
                if unit is not None and unit != self._unit:
                    self._bind(unit)
            except Unreadable as finding:
                raise corrupt(self._path, f"entry {number} {finding}") from None
            self._id, self._head = id, head
            yield id, time, (what, cost), request_id, head, known_answer

    def _bind(self, unit: PrivacyUnit) -> None:
        """The first entry that states a unit fixes it."""
        if self._unit is not None:
            raise Unreadable("has a different privacy unit from the ledger")
        self._unit = unit

    def _cost(self, *key: Any) -> _Cost:
        charge = _cost_of(*key)
        try:
            self._header.budget.check(charge)
        except InvalidValue:
            raise Unreadable("has a cost that the budget does not allow") from None
        amount = self._header.budget.amount(charge)
        if self._value.unit % amount.value.denominator or self._delta.unit % amount.delta.denominator:
            self._value.refine(amount.value)
            self._delta.refine(amount.delta)
            self._costs.clear()
        if len(self._costs) >= _MOST_KEPT:
            self._costs.clear()
        units = int(amount.value * self._value.unit), int(amount.delta * self._delta.unit)
        self._costs[key] = _Cost(charge, compact_json(list(key))[1:-1], *units)
        return self._costs[key]

    def _question(self, text: Any) -> _Question:
        try:
            what = json.loads(_text(text))
            # Our writer refuses whole numbers of more than 4000 digits. A shorter text has none.
            is_short = len(text) <= LARGEST_EXPONENT and isinstance(what, (str, dict))
            canonical = compact_json(what) if is_short else canonical_text(what)
        except (DPSelectError, ValueError, RecursionError):
            raise Unreadable("is unreadable") from None
        if canonical != text:
            raise Unreadable("is not in canonical form")
        if len(self._questions) >= _MOST_KEPT:
            self._questions.clear()
        self._questions[text] = _Question(unit_of(what), quoted(text))
        return self._questions[text]


def entry_of(connection: sqlite3.Connection, column: str, value: int | str, path: Path) -> Entry | None:
    """The entry with this `id` or `request_id`."""
    query = f"SELECT {_COLUMNS} WHERE entries.{column} = ?"
    row = connection.execute(query, (value,)).fetchone()
    try:
        return None if row is None else _entry(row)
    except Unreadable as finding:
        raise corrupt(path, f"an entry {finding}") from None


def stored_text_of(connection: sqlite3.Connection, entry: Entry) -> str:
    """The stored text of an entry's answer, which was confirmed when the entry was read."""
    [(text,)] = connection.execute("SELECT answer FROM answers WHERE id = ?", (entry.id,)).fetchall()
    return str(text)


def _entry(row: _Row) -> Entry:
    id, time, what, mechanism, each, count, request_id, head, answer, answer_seal, rho, delta = row
    try:
        question = json.loads(_text(what))
        canonical = canonical_text(question)
    except (DPSelectError, ValueError, RecursionError):
        raise Unreadable("is unreadable") from None
    if canonical != what:
        raise Unreadable("is not in canonical form")
    known_answer = None if answer is None else _answer(answer, head, answer_seal)
    request = None if request_id is None else _text(request_id)
    charge = _cost_of(mechanism, each, count, rho, delta).asking(what)
    return Entry(id, _text(time), charge, request, _text(head), known_answer)


def _answer(stored: Any, head: Any, answer_seal: Any) -> str:
    """The answer in a stored text that belongs to the entry with this head."""
    if answer_seal != seal(_text(head), _text(stored)):
        raise Unreadable("has a stored answer that was changed")
    try:
        return stored_answer(stored)
    except UnreadableAnswer:
        raise Unreadable("has a stored answer that is unreadable") from None


def _cost_of(mechanism: Any, each: Any, count: Any, rho: Any, delta: Any) -> Charge:
    """The charge of these columns, without its question."""
    try:
        return Charge.recorded("", _rational(each), mechanism, count, _rational(rho), _rational(delta, least=0))
    except DPSelectError:
        raise Unreadable("is unreadable") from None


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
