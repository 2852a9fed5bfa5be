"""The SQLite file of a ledger: how it is created, how a transaction is opened, and what its faults mean.

Each transaction has a connection of its own, with every setting confirmed. So a ledger may be used from many threads
and after a fork, and a file that was deleted, moved or replaced is noticed. After any error the connection is closed,
which rolls back what was not committed. Every error of SQLite and of the operating system becomes one of ours, and
means that nothing is answered.

journal_mode=DELETE: after a commit everything is in one file, so a copy of it is complete (a write-ahead log is a
second file). synchronous=EXTRA: the folder is synced after the journal is deleted; with FULL a power failure could
bring the journal back, and SQLite would then roll a charge back whose answer was given.
"""

import os
import secrets
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from dpselect.errors import LedgerCorrupt, LedgerError

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
READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"
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


@contextmanager
def _connection(path: Path) -> Iterator[sqlite3.Connection]:
    # A connection with all settings confirmed, for one transaction.
    with closing(
        sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_PATIENCE, isolation_level=None)
    ) as opened:
        # A damaged text must reach the hash chain, which detects it, and not fail on the way.
        opened.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        for name, value, confirmed in _SETTINGS:
            opened.execute(f"PRAGMA {name} = {value}")
            if pragma(opened, name) != confirmed:
                raise LedgerError(f"ledger {path}: SQLite refused {name} = {value}, which a durable ledger needs")
        yield opened


@contextmanager
def transaction(path: Path, begin: str = READ) -> Iterator[sqlite3.Connection]:
    """Open a transaction that sees one state of the file, or one to `WRITE`, which excludes other writers."""
    # What was written is on the disk when the block has ended. If the block fails, nothing is written.
    with _errors(path), _connection(path) as connection:
        connection.execute(begin)
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
            with _connection(temporary) as connection:
                connection.execute(WRITE)
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
