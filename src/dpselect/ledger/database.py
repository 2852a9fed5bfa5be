"""The SQLite file under a ledger: how it is created, and how a transaction is opened.

journal_mode=DELETE: after a commit all is in the one file, so a copy of it is a whole copy (a write-ahead log is a
second file). synchronous=EXTRA: the folder is synced after the journal is deleted; with FULL a power failure could
bring the journal back, and SQLite would then roll a charge back whose answer was given.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dpselect.ledger.connections import Connections, opened
from dpselect.ledger.entry import Header
from dpselect.ledger.faults import translated

APPLICATION = 0x64705365  # "dpSe": tells a ledger from other SQLite files
_HEADER = (
    "CREATE TABLE ledger (id INTEGER PRIMARY KEY CHECK (id = 1), identity TEXT NOT NULL, budget TEXT NOT NULL,"
    " created TEXT NOT NULL"
)
_ENTRIES = (
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, time TEXT NOT NULL, what TEXT NOT NULL, mechanism TEXT NOT NULL,"
    " each TEXT NOT NULL, count INTEGER NOT NULL, request_id TEXT, head TEXT NOT NULL)",
    "CREATE UNIQUE INDEX requests ON entries (request_id) WHERE request_id IS NOT NULL",
    "CREATE TABLE answers (id INTEGER PRIMARY KEY, answer TEXT NOT NULL, seal TEXT NOT NULL)",
)
# The tables of each format.
SCHEMAS = {
    1: (f"{_HEADER}, head TEXT NOT NULL)", *_ENTRIES),
    2: (f"{_HEADER}, unit TEXT, dataset TEXT, head TEXT NOT NULL)", *_ENTRIES),
}
_OWNER_ONLY = 0o600


class Database:
    """The file of a ledger."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connections = Connections(path)

    def create(self, header: Header) -> None:
        """Make the file unless there is one.

        It is written under another name and linked to its own when it is complete: everybody who opens it finds a
        whole ledger, never an empty file, so an empty file is always a damaged one. The link fails if another process
        was faster, and then its ledger is the one. Only the owner may read it: stored answers come with a hash of the
        data. SQLite gives a journal the mode of its file.
        """
        temporary = self.path.with_name(f".dpselect-{secrets.token_hex(8)}.new")
        with translated(self.path):
            try:
                _write_new(temporary, header)
                os.link(temporary, self.path)
            except FileExistsError:
                pass
            finally:
                temporary.unlink(missing_ok=True)
            _sync_folder(self.path.parent)

    @contextmanager
    def reading(self, fresh: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the file; a fresh one reads every page anew."""
        with translated(self.path), self._connections.lent(fresh) as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that excludes other writers; what was written is on the disk when the block has ended."""
        with translated(self.path), self._connections.lent() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")


def _write_new(path: Path, header: Header) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _OWNER_ONLY))
    os.chmod(path, _OWNER_ONLY)  # whatever the umask takes away
    with closing(opened(path, "rw")) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {header.format}")
        for statement in SCHEMAS[header.format]:
            connection.execute(statement)
        fixed = (header.identity, str(header.budget), header.created, header.unit_text, header.dataset, header.head)
        connection.execute("INSERT INTO ledger VALUES (1, ?, ?, ?, ?, ?, ?)", fixed)
        connection.execute("COMMIT")


def _sync_folder(folder: Path) -> None:
    """Make the file's name durable. Windows has no way to sync a folder, and needs none."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
