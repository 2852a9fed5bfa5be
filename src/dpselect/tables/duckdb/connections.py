"""Private connections to DuckDB, and the private folder for rows that do not fit into memory.

Each process has one such folder below the system's temporary folder, which only its user can enter and which is
removed when the process ends. A killed process does not remove its folder, but the next process does: a process holds
a lock on its folder while it runs, so a folder whose lock is free belongs to a dead one. `systemd-tmpfiles` also
spares locked folders.
"""

import glob
import importlib
import itertools
import os
import re
import shutil
import tempfile
import threading
from contextlib import AbstractContextManager, suppress
from multiprocessing.util import Finalize
from typing import Any

import duckdb

from dpselect._show import polled

# Windows has no such locks: the folder of a killed process stays.
_fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None
_PREFIX = "dpselect-spill-"
_MADE_BY_US = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
_MARK = ".dpselect"  # a file that marks our folders

# DuckDB calls its built-in cipher unsafe because of its weak key generator. The alternative is an extension that
# opens the network. The folder's permissions protect the rows; the cipher is for what a killed process leaves behind.
_ENCRYPTED = {"temp_file_encryption": True, "force_mbedtls_unsafe": True}
# Neither the network nor variables of the caller.
_OFFLINE: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
# DuckDB would move conditions on a column below the expressions of that column, and compute these once more for each
# condition: split every line twice, and read every number twice. Our conditions stand where they cost least.
_AS_WRITTEN = {"disabled_optimizers": "filter_pushdown"}


def connect(*, spills: bool = True) -> duckdb.DuckDBPyConnection:
    """Open a private in-memory connection that never accesses the network or variables of the caller."""
    # Rows that do not fit into memory go to a private folder. Without `spills`, the statement fails instead.
    config: dict[str, Any] = {
        **_OFFLINE,
        **_AS_WRITTEN,
        # A pandas column of Python objects is text, no matter what its first rows hold.
        "pandas_analyze_sample": 0,
        "temp_directory": spill_path() if spills else "",
    }
    with suppress(duckdb.Error):  # a version of DuckDB without one of these options
        return duckdb.connect(config={**config, **_ENCRYPTED})
    return duckdb.connect(config=config)


def connect_file(path: str) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file to read it. What its own queries spill goes to the private folder, too."""
    connection = duckdb.connect(path, read_only=True, config={**_OFFLINE, **_ENCRYPTED})
    # Not a part of the configuration: DuckDB refuses two connections to one file that differ in it.
    with suppress(duckdb.Error):
        connection.execute("SET temp_directory = $path", {"path": spill_path()})
    return connection


def progress_shown(connection: duckdb.DuckDBPyConnection, what: str) -> AbstractContextManager[None]:
    """Show a bar while the body runs a statement. DuckDB's progress is in percent, and below zero if it is unknown."""

    def done() -> float | None:
        percent = connection.query_progress()
        return None if percent < 0 else percent / 100

    return polled(done, what)


class _Own:
    """The folder of this process, once there is one."""

    def __init__(self) -> None:
        self.lock, self.numbers = threading.Lock(), itertools.count()
        self.folder, self.descriptor = "", -1

    def path(self) -> str:
        with self.lock, suppress(OSError):
            if not os.path.isdir(self.folder):
                self._close()
                _remove_orphans()
                self.folder, self.descriptor = _made()
                # Also runs at the end of a `multiprocessing` child, but never in a child on behalf of its parent.
                Finalize(None, _remove, (self.folder,), exitpriority=0)
            return os.path.join(self.folder, str(next(self.numbers)))
        return ""

    def forget(self) -> None:
        # A forked child creates its own folder; the lock stays with the parent.
        self._close()
        self.lock, self.folder = threading.Lock(), ""

    def _close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


_own = _Own()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_own.forget)


def spill_path() -> str:
    """A path for one connection in the folder of this process. DuckDB creates a folder there when memory is full."""
    # The path is empty if no folder can be created. Then DuckDB uses memory only.
    return _own.path()


def _made() -> tuple[str, int]:
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        if _fcntl is None:
            _mark(folder)
            return folder, -1
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            with suppress(OSError):  # a file system without locks: the folder is at least removed at the end
                _fcntl.flock(descriptor, _fcntl.LOCK_EX)
            # Before it was locked, another process may have considered it an orphan.
            if os.path.isdir(folder):
                _mark(folder)
                return folder, descriptor
            os.close(descriptor)


def _mark(folder: str) -> None:
    with open(os.path.join(folder, _MARK), "xb"):
        pass


def _remove_orphans() -> None:
    if _fcntl is None:
        return
    for folder in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), f"{_PREFIX}*")):
        with suppress(OSError):  # in use, or owned by somebody else
            _remove_orphan(folder)


def _remove_orphan(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        ours = _MADE_BY_US.fullmatch(os.path.basename(folder)) and os.path.lexists(os.path.join(folder, _MARK))
        if ours and os.fstat(descriptor).st_uid == os.geteuid():
            _fcntl.flock(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
            _remove(folder)
    finally:
        os.close(descriptor)


def _remove(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
