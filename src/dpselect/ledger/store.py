"""The SQLite file of a ledger: how it is created, how a transaction is opened, and what its faults mean.

A connection has every setting confirmed and serves one transaction at a time, so a ledger may be used from many
threads. It is reused only in the process that opened it, and only while the path still leads to the same file: a
ledger that was deleted, moved or replaced is opened again, or found missing. After any error it is closed, which rolls
back what was not committed. Every error of SQLite and of the operating system becomes one of ours, and means that
nothing is answered.

journal_mode=DELETE: after a commit everything is in one file, so a copy of it is complete (a write-ahead log is a
second file). synchronous=EXTRA: the folder is synced after the journal is deleted; with FULL a power failure could
bring the journal back, and SQLite would then roll a charge back whose answer was given.
"""

import os
import secrets
import sqlite3
import sys
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from dpselect.errors import LedgerCorrupt, LedgerError

_NOTHING = "nothing is released without a working ledger"
_PRIMARY_CODE = 0xFF
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_REASONS = {
    sqlite3.SQLITE_BUSY: "other processes kept it locked for too long: try again",
    sqlite3.SQLITE_LOCKED: "other processes kept it locked for too long: try again",
    sqlite3.SQLITE_FULL: "the disk is full, or the file must not grow: free some space",
    sqlite3.SQLITE_READONLY: "it cannot be written: check the permissions of the file and its folder",
    sqlite3.SQLITE_PERM: "it cannot be written: check the permissions of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it or its journal cannot be opened: check that file and folder exist, and their modes",
    sqlite3.SQLITE_IOERR: "reading or writing failed: check the disk",
}


@contextmanager
def ledger_errors(path: Path) -> Iterator[None]:
    """Raise LedgerError or LedgerCorrupt in place of errors of SQLite and of the operating system."""
    try:
        yield
    except sqlite3.Error as error:
        raise _fault(path, error) from error
    except UnicodeError as error:  # raised by Python's sqlite3 when it reports a malformed schema
        raise corrupt(path, "the file is damaged") from error
    except OSError as error:
        reason = error.strerror or "the operating system refused it"
        if isinstance(error, FileNotFoundError):
            reason = _REASONS[sqlite3.SQLITE_CANTOPEN]
        raise LedgerError(f"ledger {path}: {reason}; {_NOTHING}") from error


def _fault(path: Path, error: sqlite3.Error) -> LedgerError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
    if code in _DAMAGED:
        return corrupt(path, "the file is damaged, or is not a ledger")
    return LedgerError(f"ledger {path}: {_REASONS.get(code, f'SQLite says {error}')}; {_NOTHING}")


def corrupt(path: Path, finding: str) -> LedgerCorrupt:
    """The error for a damaged ledger."""
    return LedgerCorrupt(f"ledger {path}: {finding}; {_NOTHING}")


_PATIENCE = 60  # seconds to wait for other processes
# What is set on each connection, and what must be read back. busy_timeout comes first, so that the others can wait.
_SETTINGS = (
    ("busy_timeout", str(1000 * _PATIENCE), 1000 * _PATIENCE),
    ("journal_mode", "DELETE", "delete"),
    ("synchronous", "EXTRA", 3),
    *([("fullfsync", "ON", 1)] if sys.platform == "darwin" else []),  # on macOS, fsync alone does not reach the disk
)


class _PooledConnection(NamedTuple):
    process: int
    file: tuple[int, int]
    connection: sqlite3.Connection


# A forked process must not even close a connection. It keeps inherited ones and never uses them.
_INHERITED: list[_PooledConnection] = []


class Connections:
    """The connections to one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: list[_PooledConnection] = []
        weakref.finalize(self, _close_all, self._kept)

    @contextmanager
    def borrow(self, fresh: bool = False) -> Iterator[sqlite3.Connection]:
        """Yield a connection for one transaction, which ends within the block. A fresh one has no cached pages."""
        if fresh:
            _close_all(self._kept)
        file = _identity(self._path)
        kept = self._reuse_or_open(file)
        try:
            yield kept.connection
        except BaseException:
            kept.connection.close()
            raise
        self._kept.append(kept)

    def _reuse_or_open(self, file: tuple[int, int]) -> _PooledConnection:
        while self._kept:
            try:
                kept = self._kept.pop()
            except IndexError:  # another thread was faster
                break
            if (kept.process, kept.file) == (os.getpid(), file):
                return kept
            _discard(kept)
        return _PooledConnection(os.getpid(), file, open_connection(self._path, "rw"))


def open_connection(path: Path, mode: str) -> sqlite3.Connection:
    """Open a connection, and confirm all settings."""
    uri = f"{path.as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        # A damaged text must reach the hash chain, which detects it, and not fail on the way.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        for name, value, confirmed in _SETTINGS:
            connection.execute(f"PRAGMA {name} = {value}")
            if pragma(connection, name) != confirmed:
                raise LedgerError(f"ledger {path}: SQLite refused {name} = {value}, which a durable ledger needs")
    except BaseException:
        connection.close()
        raise
    return connection


def pragma(connection: sqlite3.Connection, name: str) -> object:
    """Read the value of a setting."""
    row = connection.execute(f"PRAGMA {name}").fetchone()
    return None if row is None else row[0]


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _discard(kept: _PooledConnection) -> None:
    if kept.process == os.getpid():
        kept.connection.close()
    else:
        _INHERITED.append(kept)


def _close_all(kept: list[_PooledConnection]) -> None:
    while kept:
        with suppress(IndexError):  # another thread was faster
            _discard(kept.pop())


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
_OWNER_ONLY = 0o600


class Database:
    """The file of a ledger."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connections = Connections(path)

    def create(self, row: tuple[str | None, ...]) -> None:
        """Create the file unless it exists.

        It is written under another name and gets its own when it is complete. So everybody who opens it finds a
        whole ledger, never an empty file, so an empty file is always a damaged one. That fails if another process
        was faster; then that ledger is used. Only the owner may read it, because stored answers come with a hash of the
        data. SQLite gives a journal the mode of its file.
        """
        temporary = self.path.with_name(f".dpselect-{secrets.token_hex(8)}.new")
        with ledger_errors(self.path):
            try:
                _write_new(temporary, row)
                _publish(temporary, self.path)
            except FileExistsError:
                pass
            finally:
                temporary.unlink(missing_ok=True)
            _sync_folder(self.path.parent)

    @contextmanager
    def reading(self, fresh: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a transaction that sees one state of the file. A fresh one reads every page again."""
        with ledger_errors(self.path), self._connections.borrow(fresh) as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that excludes other writers. Its writes are on the disk when the block has ended."""
        with ledger_errors(self.path), self._connections.borrow() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")


def _write_new(path: Path, row: tuple[str | None, ...]) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _OWNER_ONLY))
    os.chmod(path, _OWNER_ONLY)  # independent of the umask
    with closing(open_connection(path, "rw")) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO ledger VALUES (1, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("COMMIT")


def _publish(temporary: Path, path: Path) -> None:
    """Give a complete file its name, unless the name is taken.

    A rename would replace a file of that name, so the file is linked. On Windows a rename replaces nothing. There, the
    second name of a link could not be removed once another process has opened the file.
    """
    if os.name == "nt":
        os.rename(temporary, path)
    else:
        os.link(temporary, path)


def _sync_folder(folder: Path) -> None:
    """Make the name of the file durable. Windows cannot sync a folder and does not need to.

    On macOS this only hands the name to the disk. Every charge then has SQLite empty the cache of the disk (fullfsync),
    with what was handed over before: a ledger whose charge is durable has a durable name.
    """
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
