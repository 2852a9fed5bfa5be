"""The file of a ledger: an SQLite database that is durable, whose entries are a hash chain (Haber & Stornetta 1991).

**Transactions.** Each has a connection of its own, with every setting confirmed. So a ledger may be used from many
threads and after a fork, and a file that was deleted, moved or replaced is noticed. After any error the connection is
closed, which rolls back what was not committed. Every error of SQLite and of the operating system becomes one of ours,
and means that nothing is answered.

journal_mode=DELETE: after a commit everything is in one file, so a copy of it is complete (a write-ahead log is a
second file). synchronous=EXTRA: the folder is synced after the journal is deleted; with FULL a power failure could
bring the journal back, and SQLite would then roll a charge back whose answer was given.

**The chain.** The header's hash is the first head; the head after an entry is the hash of the head before it and of
everything that the entry holds. Changing an entry changes all heads after it. Nothing in the file is trusted before the
chain confirms it. An answer is stored with a salted hash of its data, so that only a retry on the same data gets it,
and with a seal that ties it to its entry.

The first charge of an object reads the whole file, so reading is made fast. Entries of one ledger repeat each other:
what concerns only the cost of an entry, or only its question, is parsed and checked once for each different one. Costs
add up exactly as whole multiples of one unit.

What the format hashes, and what its fields mean, never changes. Every entry states its rho and its delta, so that no
later and better formula changes what was spent.
"""

import hashlib
import json
import math
import os
import secrets
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
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
from dpselect.accounting.charge import Charge, PrivacyUnit, What, canonical_text, compact_json, unit_of
from dpselect.errors import DPSelectError, InvalidValue, LedgerCorrupt, LedgerError

APPLICATION = 0x64705365  # "dpSe": distinguishes a ledger from other SQLite files
FORMAT = 1
SCHEMA = (
    "CREATE TABLE ledger (id INTEGER PRIMARY KEY CHECK (id = 1), identity TEXT NOT NULL, budget TEXT NOT NULL,"
    " created TEXT NOT NULL, unit TEXT, dataset TEXT, head TEXT NOT NULL)",
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, time TEXT NOT NULL, what TEXT NOT NULL, mechanism TEXT NOT NULL,"
    " each TEXT NOT NULL, count INTEGER NOT NULL, rho TEXT NOT NULL, delta TEXT NOT NULL, request_id TEXT,"
    " head TEXT NOT NULL)",
    "CREATE UNIQUE INDEX requests ON entries (request_id) WHERE request_id IS NOT NULL",
    "CREATE TABLE answers (id INTEGER PRIMARY KEY, answer TEXT NOT NULL, seal TEXT NOT NULL)",
)
_READ, _WRITE = "BEGIN", "BEGIN IMMEDIATE"
_OWNER_ONLY = 0o600
_NOTHING = "nothing is released without a working ledger"
_PRIMARY_CODE = 0xFF
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_LOCKED = "other processes kept it locked for too long: try again"
_PERMISSIONS = "it cannot be written: check the permissions of the file and its folder"
_REASONS = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_FULL: "the disk is full, or the file must not grow: free some space",
    sqlite3.SQLITE_READONLY: _PERMISSIONS,
    sqlite3.SQLITE_PERM: _PERMISSIONS,
    sqlite3.SQLITE_CANTOPEN: "it or its journal cannot be opened: check that file and folder exist, and their modes",
    sqlite3.SQLITE_IOERR: "reading or writing failed: check the disk",
}
_PATIENCE = 60  # seconds to wait for other processes
# What is set on each connection, and what must be read back. busy_timeout comes first, so that the others can wait.
_SETTINGS = (
    ("busy_timeout", str(1000 * _PATIENCE), 1000 * _PATIENCE),
    ("journal_mode", "DELETE", "delete"),
    ("synchronous", "EXTRA", 3),
    *([("fullfsync", "ON", 1)] if sys.platform == "darwin" else []),  # on macOS, fsync alone does not reach the disk
)
_COLUMNS = (
    "entries.id, time, what, mechanism, each, count, request_id, head, answer, seal, rho, delta"
    " FROM entries LEFT JOIN answers ON answers.id = entries.id"
)
_SMALLEST = -(2**63)  # an inserted entry may have any id
_MOST_KEPT = 10_000  # different costs or questions that are kept in memory


# Transactions.


def corrupt(path: Path, finding: str) -> LedgerCorrupt:
    """The error for a damaged ledger."""
    return LedgerCorrupt(f"ledger {path}: {finding}; {_NOTHING}")


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    # Raise LedgerError or LedgerCorrupt in place of errors of SQLite and of the operating system.
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
        if code in _DAMAGED:
            raise corrupt(path, "the file is damaged, or is not a ledger") from error
        raise LedgerError(f"ledger {path}: {_REASONS.get(code, f'SQLite says {error}')}; {_NOTHING}") from error
    except UnicodeError as error:  # raised by Python's sqlite3 when it reports a malformed schema
        raise corrupt(path, "the file is damaged") from error
    except OSError as error:
        reason = error.strerror or "the operating system refused it"
        if isinstance(error, FileNotFoundError):
            reason = _REASONS[sqlite3.SQLITE_CANTOPEN]
        raise LedgerError(f"ledger {path}: {reason}; {_NOTHING}") from error


def pragma(connection: sqlite3.Connection, name: str) -> object:
    """The value of a setting."""
    row = connection.execute(f"PRAGMA {name}").fetchone()
    return None if row is None else row[0]


def _opened(path: Path) -> sqlite3.Connection:
    # A connection with all settings confirmed.
    uri = f"{path.as_uri()}?mode=rw"
    opened = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        # A damaged text must reach the hash chain, which detects it, and not fail on the way.
        opened.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        for name, value, confirmed in _SETTINGS:
            opened.execute(f"PRAGMA {name} = {value}")
            if pragma(opened, name) != confirmed:
                raise LedgerError(f"ledger {path}: SQLite refused {name} = {value}, which a durable ledger needs")
    except BaseException:
        opened.close()
        raise
    return opened


# Of a parent process: a fork must neither use nor close them.
_inherited: list[sqlite3.Connection] = []


class Writers:
    """Connections to a file that wait to write again: to open one takes a fifth of the time of a charge."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[tuple[tuple[int, int, int], sqlite3.Connection]] = []

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that excludes other writers."""
        # What was written is on the disk when the block has ended. If the block fails, nothing is written.
        with _errors(self._path), self._borrowed() as connection:
            connection.execute(_WRITE)
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        # One of this process to the file that has the name now.
        status = os.stat(self._path)
        own = os.getpid(), status.st_dev, status.st_ino
        connection = self._taken(own) or _opened(self._path)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.append((own, connection))

    def _taken(self, own: tuple[int, int, int]) -> sqlite3.Connection | None:
        while self._idle:
            with suppress(IndexError):  # another thread was faster
                key, connection = self._idle.pop()
                if key == own:
                    return connection
                if key[0] == own[0]:
                    connection.close()
                else:
                    _inherited.append(connection)
        return None


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a transaction that sees one state of the file, and reads every page of it again."""
    with _errors(path), closing(_opened(path)) as connection:
        connection.execute(_READ)
        yield connection
        connection.execute("COMMIT")


def create(path: Path, row: tuple[str | None, ...]) -> None:
    """Create the file unless it exists."""
    # It is written under another name and gets its own when it is complete. So everybody who opens it finds a
    # whole ledger, never an empty file, so an empty file is always a damaged one. That fails if another process
    # was faster; then that ledger is used. Only the owner may read it, because stored answers come with a hash of the
    # data. SQLite gives a journal the mode of its file.
    temporary = path.with_name(f".dpselect-{secrets.token_hex(8)}.new")
    with _errors(path):
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, _OWNER_ONLY))
            os.chmod(temporary, _OWNER_ONLY)  # independent of the umask
            with closing(_opened(temporary)) as connection:
                connection.execute(_WRITE)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                for statement in SCHEMA:
                    connection.execute(statement)
                connection.execute("INSERT INTO ledger VALUES (1, ?, ?, ?, ?, ?, ?)", row)
                connection.execute("COMMIT")
            with suppress(FileExistsError):
                _publish(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync(path.parent)


def _publish(temporary: Path, path: Path) -> None:
    # Give a complete file its name, unless the name is taken. A rename would replace a file of that name, so the file
    # is linked. On Windows a rename replaces nothing. There, the second name of a link could not be removed once
    # another process has opened the file.
    if os.name == "nt":
        os.rename(temporary, path)
    else:
        os.link(temporary, path)


def _sync(folder: Path) -> None:
    # Make the name of the file durable. Windows cannot sync a folder and does not need to. On macOS this only hands the
    # name to the disk. Every charge then has SQLite empty the cache of the disk (fullfsync), with what was handed over
    # before: a ledger whose charge is durable has a durable name.
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# The chain.


class Unreadable(Exception):
    """A row is not a valid entry. The message says what is wrong."""


def hashed(content: list[Any]) -> str:
    """The hash of all items of the list."""
    return hashlib.sha256(compact_json(content).encode("ascii")).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True)
class Header:
    # What is fixed when a ledger is created.

    identity: str
    budget: Budget
    created: str
    unit: PrivacyUnit | None
    dataset: str | None
    head: str  # the first one of the chain


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
        """The question and its public parameters."""
        return self.charge.what

    @property
    def mechanism(self) -> str:
        """The name of the mechanism whose distribution is drawn."""
        return self.charge.mechanism

    @property
    def epsilon(self) -> Fraction | None:
        """The exact epsilon of what was released; None if only its rho is known."""
        return self.charge.epsilon

    @property
    def rho(self) -> Fraction:
        """The rho of zCDP of what was released: as recorded, or rounded up."""
        return self.charge.rho

    @property
    def delta(self) -> Fraction:
        """The exact delta of what was released; 0 unless it has one of its own."""
        return self.charge.delta

    def to_dict(self) -> dict[str, Any]:
        """Return the entry in the types of JSON, with exact numbers as strings and without the stored answer."""
        charge, epsilon = self.charge, self.epsilon
        total = None if epsilon is None else exact_text(epsilon)
        each = None if epsilon is None else exact_text(charge.each)
        costs = (total, each, charge.count, exact_text(charge.rho), exact_text(charge.delta))
        values = (self.id, self.time, self.what, self.mechanism, *costs, self.request_id, self.head)
        return dict(zip(self.COLUMNS, values, strict=True))


@dataclass(frozen=True)
class State:
    """What has been confirmed of a ledger: the last entry, the head after it, the sum of all costs, and the unit."""

    # The privacy unit is that of the header, or otherwise of the first entry that states one.

    id: int
    head: str
    spent: Amount
    unit: PrivacyUnit | None


def append(connection: sqlite3.Connection, id: int, previous: str, charge: Charge, request_id: str | None) -> Entry:
    """Store a charge as the entry with this id, after the entry with this head."""
    costs = [str(charge.each), charge.count, str(charge.rho), str(charge.delta)]
    time = _now()
    row = [id, time, charge.text, charge.mechanism, *costs, request_id]
    head = hashed([previous, *row])
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [*row, head])
    return Entry(id, time, charge, request_id, head)


# The header.


def header_row(
    identity: str, budget: Budget, created: str, unit: PrivacyUnit | None, dataset: str | None
) -> tuple[str | None, ...]:
    # The header as the file stores it; the last column is the first head of the chain.
    fixed = identity, stored_budget(budget), created, None if unit is None else compact_json(unit.to_dict()), dataset
    return *fixed, hashed(["dpselect ledger", FORMAT, *fixed])


def new_header(budget: Budget, unit: PrivacyUnit | None, dataset: str | None) -> tuple[str | None, ...]:
    """The header of a new ledger."""
    return header_row(secrets.token_hex(16), budget, _now(), unit, dataset)


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
        return _header(row)
    except (DPSelectError, ValueError, TypeError, RecursionError, Unreadable):
        raise corrupt(path, "its header is damaged or was changed") from None


@lru_cache(maxsize=64)
def _header(row: tuple[Any, ...]) -> Header:
    identity, budget, created, unit, dataset, head = row
    fixed = (
        _text(identity),
        budget_from_stored(_text(budget)),
        _text(created),
        None if unit is None else PrivacyUnit(**json.loads(_text(unit))),
        None if dataset is None else _text(dataset),
    )
    if header_row(*fixed) != row:
        raise Unreadable
    return Header(*fixed, head)


# Answers.


class Stored(NamedTuple):
    """An answer, and the salted hash of the digest of its data, if one was given."""

    # The digest is a function of private data, so it is not stored itself, and no entry holds its hash.

    answer: str
    salt: str
    content: str | None

    @classmethod
    def of(cls, answer: str, content: str | None) -> "Stored":
        """The answer with a new salt."""
        salt = secrets.token_hex(16)
        return cls(answer, salt, None if content is None else hashed(["content", salt, content]))

    def matches(self, content: str) -> bool:
        """Whether the answer comes from data with this digest."""
        return self.content == hashed(["content", self.salt, content])


def store_answer(connection: sqlite3.Connection, entry: Entry, stored: Stored) -> None:
    """Store the answer of an entry."""
    text = compact_json(stored._asdict())
    connection.execute("INSERT INTO answers VALUES (?, ?, ?)", (entry.id, text, _seal(entry.head, text)))


def _seal(entry_head: str, answer: str) -> str:
    return hashed(["answer", entry_head, answer])


def _stored(text: Any, head: Any, seal: Any) -> Stored:
    # The answer in a stored text that belongs to the entry with this head.
    if seal != _seal(_text(head), _text(text)):
        raise Unreadable("has a stored answer that was changed")
    with suppress(ValueError, TypeError, RecursionError):
        stored = Stored(**json.loads(text))
        if compact_json(stored._asdict()) == text and isinstance(stored.answer, str):
            return stored
    raise Unreadable("has a stored answer that is unreadable")


# Entries.


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Run SQLite's own check of every page and index, and find stored answers without an entry."""
    # That an answer matches its entry is checked with the entry.
    if pragma(connection, "integrity_check") != "ok":
        raise corrupt(path, "SQLite's integrity check fails")
    [(strays,)] = connection.execute("SELECT count(*) FROM answers WHERE id NOT IN (SELECT id FROM entries)")
    if strays:
        raise corrupt(path, "there are stored answers without an entry")


class _Question(NamedTuple):
    unit: PrivacyUnit | None
    quoted: str  # its text as the chain hashes it


class _Cost(NamedTuple):
    charge: Charge  # of any question
    quoted: str  # mechanism, each, count, rho and delta, as the chain hashes them
    value: int  # in units of the sum
    delta: int


class Reader:
    """Reads the entries after what is known, and confirms each of them, in an open transaction."""

    # The last entry of `known`, which has been confirmed before, must still be there. The path is for messages.

    def __init__(self, connection: sqlite3.Connection, known: State, budget: Budget, path: Path) -> None:
        self._connection, self._budget, self._path = connection, budget, path
        self._id, self._head, self._protected = known.id, known.head, known.unit
        self._costs: dict[tuple[Any, ...], _Cost] = {}
        self._questions: dict[Any, _Question] = {}
        # What was spent of epsilon or rho and of delta, and their limits, as multiples of 1/unit.
        numbers = *known.spent, *budget.limit
        self._unit = math.lcm(*(number.denominator for number in numbers))
        self._sums = [int(number * self._unit) for number in numbers]

    @property
    def state(self) -> State:
        """What is known after everything that was read."""
        value, delta, *_ = self._sums
        spent = Amount(Fraction(value, self._unit), Fraction(delta, self._unit))
        return State(self._id, self._head, spent, self._protected)

    def heads(self) -> list[str]:
        """Read all entries, and return the head after each of them."""
        return [head for _, _, _, _, _, head, _ in self._rows()]

    def charges(self) -> list[Charge]:
        """Read all entries, and return what was charged. Equal charges are one object."""
        known: dict[tuple[str, str], Charge] = {}
        found = []
        for _, _, what, cost, _, _, _ in self._rows():
            charge = known.get((what, cost.quoted))
            if charge is None:
                charge = known[what, cost.quoted] = cost.charge.asking(what)
            found.append(charge)
        return found

    def entries(self) -> list[Entry]:
        """Read and return all entries."""
        return [
            Entry(id, time, cost.charge.asking(what), request_id, head, answer)
            for id, time, what, cost, request_id, head, answer in self._rows()
        ]

    def _rows(self) -> Iterator[tuple[int, str, str, _Cost, str | None, str, str | None]]:
        query = f"SELECT {_COLUMNS} WHERE entries.id >= ? ORDER BY entries.id"
        rows = self._connection.execute(query, (self._id or _SMALLEST,))
        if self._id:
            last = rows.fetchone()
            if last is None or (last[0], last[7]) != (self._id, self._head):
                finding = f"entry {self._id} is missing or was changed: this may be an old copy of the ledger"
                raise corrupt(self._path, finding)
        costs, questions = self._costs, self._questions
        for id, time, what, mechanism, each, count, request_id, head, answer, seal, rho, delta in rows:
            number = self._id + 1
            try:
                key = mechanism, each, count, rho, delta
                cost = costs.get(key) or self._cost(key)
                question = questions.get(what) or self._question(what)
                known_answer = None if answer is None else _stored(answer, head, seal).answer
                request = "null" if request_id is None else quoted(_text(request_id))
                if id != number:
                    raise Unreadable("is missing")
                # The text whose hash is that of `next_entry`.
                content = f'["{self._head}",{id},{quoted(_text(time))},{question.quoted},{cost.quoted},{request}]'
                if hashlib.sha256(content.encode("ascii")).hexdigest() != head:
                    raise Unreadable("was changed, inserted or moved")
                sums = self._sums
                sums[0] += cost.value
                sums[1] += cost.delta
                if sums[0] > sums[2] or sums[1] > sums[3]:
                    raise Unreadable("exceeds the budget")
                if question.unit is not None and question.unit != self._protected:
                    if self._protected is not None:
                        raise Unreadable("has a different privacy unit from the ledger")
                    self._protected = question.unit  # the first entry that states a unit fixes it
            except Unreadable as finding:
                raise corrupt(self._path, f"entry {number} {finding}") from None
            self._id, self._head = id, head
            yield id, time, what, cost, request_id, head, known_answer

    def _cost(self, key: tuple[Any, ...]) -> _Cost:
        charge = _charge(*key)
        try:
            amount = self._budget.check(charge)
        except InvalidValue:
            raise Unreadable("has a cost that the budget does not allow") from None
        finer = math.lcm(self._unit, *(part.denominator for part in amount)) // self._unit
        if finer > 1 or len(self._costs) >= _MOST_KEPT:
            self._unit, self._sums = self._unit * finer, [total * finer for total in self._sums]
            self._costs.clear()
        units = (int(part * self._unit) for part in amount)
        self._costs[key] = _Cost(charge, compact_json(list(key))[1:-1], *units)
        return self._costs[key]

    def _question(self, text: Any) -> _Question:
        if len(self._questions) >= _MOST_KEPT:
            self._questions.clear()
        self._questions[text] = _Question(unit_of(_what(text)), quoted(text))
        return self._questions[text]


def entry_of(
    connection: sqlite3.Connection, column: str, value: int | str, path: Path
) -> tuple[Entry, Stored | None] | None:
    """The entry with this `id` or `request_id`, and its stored answer."""
    row = connection.execute(f"SELECT {_COLUMNS} WHERE entries.{column} = ?", (value,)).fetchone()
    if row is None:
        return None
    id, time, what, mechanism, each, count, request_id, head, answer, seal, rho, delta = row
    try:
        _what(what)
        stored = None if answer is None else _stored(answer, head, seal)
        request = None if request_id is None else _text(request_id)
        charge = _charge(mechanism, each, count, rho, delta).asking(what)
        entry = Entry(id, _text(time), charge, request, _text(head), None if stored is None else stored.answer)
    except Unreadable as finding:
        raise corrupt(path, f"an entry {finding}") from None
    return entry, stored


def _what(text: Any) -> What:
    try:
        what: What = json.loads(_text(text))
        # Our writer refuses whole numbers of more than 4000 digits. A shorter text has none.
        is_short = len(text) <= LARGEST_EXPONENT and isinstance(what, (str, dict))
        canonical = compact_json(what) if is_short else canonical_text(what)
    except (DPSelectError, ValueError, RecursionError):
        raise Unreadable("is unreadable") from None
    if canonical != text:
        raise Unreadable("is not in canonical form")
    return what


def _charge(mechanism: Any, each: Any, count: Any, rho: Any, delta: Any) -> Charge:
    try:
        return Charge.recorded("", _rational(each), mechanism, count, _rational(rho), _rational(delta, least=0))
    except DPSelectError:
        raise Unreadable("is unreadable") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unreadable("is unreadable")
    return value


def _rational(value: Any, least: int | None = None) -> Fraction:
    # The number in a text in canonical form: 1/10 in lowest terms, not 0.1, 2/20 or +1/10.
    try:
        number = rational_from_text(_text(value))
    except (NotExact, NotFinite):
        raise Unreadable("is unreadable") from None
    if str(number) != value or number < 0 or (number == 0 and least is None):
        raise Unreadable("is not in canonical form")
    return number
