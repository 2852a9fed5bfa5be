"""The private folder in which DuckDB keeps the rows that do not fit into memory.

Each process has one folder below the system's temporary folder, which only its user can enter and which is removed when
the process ends. A process that is killed leaves its folder behind, and the next one removes it: a process holds a lock
on its folder as long as it lives, so a folder whose lock is free belongs to a dead one. `systemd-tmpfiles` also spares
folders that are locked.
"""

import glob
import importlib
import itertools
import os
import re
import shutil
import tempfile
import threading
from contextlib import suppress
from multiprocessing.util import Finalize
from typing import Any

# Windows has no such locks: there the folder of a killed process stays.
_fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None
_PREFIX = "dpselect-spill-"
_MADE_BY_US = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
_MARK = ".dpselect"  # a file in each folder of ours


class _Own:
    """The folder of this process, once there is one."""

    def __init__(self) -> None:
        self.lock, self.numbers = threading.Lock(), itertools.count()
        self.folder, self.descriptor = "", -1

    def path(self) -> str:
        """Return a new path in the folder, or nothing if there is none."""
        with self.lock, suppress(OSError):
            if not os.path.isdir(self.folder):
                self._close()
                _remove_orphans()
                self.folder, self.descriptor = _made()
                # Runs also at the end of a child of `multiprocessing`, and never in a child for its parent.
                Finalize(None, _remove, (self.folder,), exitpriority=0)
            return os.path.join(self.folder, str(next(self.numbers)))
        return ""

    def forget(self) -> None:
        """Start anew in a forked child, which makes its own folder; the lock stays with the parent."""
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
    """A path for one connection in the folder of this process, at which DuckDB makes a folder when memory ends.

    Where no folder can be made it is empty, and DuckDB then keeps to the memory.
    """
    return _own.path()


def _made() -> tuple[str, int]:
    """A new folder and the descriptor that holds its lock."""
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        if _fcntl is None:
            _mark(folder)
            return folder, -1
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            with suppress(OSError):  # a file system without locks: the folder is removed at the end at least
                _fcntl.flock(descriptor, _fcntl.LOCK_EX)
            # Before it was locked, another process may have taken it for an orphan.
            if os.path.isdir(folder):
                _mark(folder)
                return folder, descriptor
            os.close(descriptor)


def _mark(folder: str) -> None:
    with open(os.path.join(folder, _MARK), "xb"):
        pass


def _remove_orphans() -> None:
    """Remove the folders of this user whose processes are gone."""
    if _fcntl is None:
        return
    for folder in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), f"{_PREFIX}*")):
        with suppress(OSError):  # it is in use, or somebody else's
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
