"""SQLite connections with every setting confirmed, kept for the next transaction.

A connection is lent to one transaction at a time, so a ledger may be used from many threads. It is used again only in
the process that opened it, and only while the path still leads to the same file: a ledger that was deleted, moved or
replaced is opened anew, or found missing. After any error it is closed, which rolls back what was not committed.
"""

import os
import sqlite3
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from dpselect.errors import LedgerError

_PATIENCE = 60  # seconds to wait for other processes
# What is set on each connection, and what must be read back: busy_timeout first, so that the others can wait.
_SETTINGS = (
    ("busy_timeout", str(1000 * _PATIENCE), 1000 * _PATIENCE),
    ("journal_mode", "DELETE", "delete"),
    ("synchronous", "EXTRA", 3),
    *([("fullfsync", "ON", 1)] if sys.platform == "darwin" else []),  # there fsync alone does not reach the disk
)


class _Kept(NamedTuple):
    process: int
    file: tuple[int, int]
    connection: sqlite3.Connection


# SQLite forbids even to close a connection in a forked process: there it is kept for good, and never used.
_INHERITED: list[_Kept] = []


class Connections:
    """The connections to one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: list[_Kept] = []
        weakref.finalize(self, _close_all, self._kept)

    @contextmanager
    def lent(self, fresh: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction, which ends before the block does; a fresh one remembers no page."""
        if fresh:
            _close_all(self._kept)
        file = _identity(self._path)
        kept = self._taken(file)
        try:
            yield kept.connection
        except BaseException:
            kept.connection.close()
            raise
        self._kept.append(kept)

    def _taken(self, file: tuple[int, int]) -> _Kept:
        while self._kept:
            try:
                kept = self._kept.pop()
            except IndexError:  # another thread was faster
                break
            if (kept.process, kept.file) == (os.getpid(), file):
                return kept
            _discard(kept)
        return _Kept(os.getpid(), file, opened(self._path, "rw"))


def opened(path: Path, mode: str) -> sqlite3.Connection:
    """A new connection with all settings confirmed."""
    uri = f"{path.as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        # A damaged text must reach the hash chain, which finds it, instead of failing on its way.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        for name, value, confirmed in _SETTINGS:
            connection.execute(f"PRAGMA {name} = {value}")
            if pragma(connection, name) != confirmed:
                raise LedgerError(f"ledger {path}: SQLite refused {name} = {value}, without which nothing is durable")
    except BaseException:
        connection.close()
        raise
    return connection


def pragma(connection: sqlite3.Connection, name: str) -> object:
    """The value of a setting."""
    row = connection.execute(f"PRAGMA {name}").fetchone()
    return None if row is None else row[0]


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _discard(kept: _Kept) -> None:
    if kept.process == os.getpid():
        kept.connection.close()
    else:
        _INHERITED.append(kept)


def _close_all(kept: list[_Kept]) -> None:
    while kept:
        with suppress(IndexError):  # another thread was faster
            _discard(kept.pop())
