"""SQLite's and the operating system's errors as ours: every one of them means that nothing is answered."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpselect.errors import LedgerCorrupt, LedgerError

_NOTHING = "nothing is released without a working ledger"
_PRIMARY_CODE = 0xFF
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_REASONS = {
    sqlite3.SQLITE_BUSY: "other processes kept it locked for too long: try again",
    sqlite3.SQLITE_LOCKED: "other processes kept it locked for too long: try again",
    sqlite3.SQLITE_FULL: "the disk is full, or the file may not grow: make room",
    sqlite3.SQLITE_READONLY: "it cannot be written: check the permissions of the file and its folder",
    sqlite3.SQLITE_PERM: "it cannot be written: check the permissions of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it or its journal cannot be opened: check that file and folder are there, and their mode",
    sqlite3.SQLITE_IOERR: "reading or writing failed: check the disk",
}


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise LedgerError or LedgerCorrupt in place of errors of SQLite and of the operating system."""
    try:
        yield
    except sqlite3.Error as error:
        raise _fault(path, error) from error
    except UnicodeError as error:  # Python's sqlite3 on its way to report that a damaged schema is malformed
        raise corrupt(path, "the file is damaged") from error
    except OSError as error:
        reason = error.strerror or "the operating system refused it"
        if isinstance(error, FileNotFoundError):
            reason = _REASONS[sqlite3.SQLITE_CANTOPEN]
        raise LedgerError(f"ledger {path}: {reason}; {_NOTHING}") from error


def _fault(path: Path, error: sqlite3.Error) -> LedgerError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
    if code in _DAMAGED:
        return corrupt(path, "the file is damaged, or is no ledger")
    return LedgerError(f"ledger {path}: {_REASONS.get(code, f'SQLite says {error}')}; {_NOTHING}")


def corrupt(path: Path, finding: str) -> LedgerCorrupt:
    """What a damaged ledger raises."""
    return LedgerCorrupt(f"ledger {path}: {finding}; {_NOTHING}")
