"""What the ledger does on macOS and Windows, as far as Linux can show it.

The system calls are those of the machine that runs the tests. Windows is an `os` without what Windows lacks, whose
calls refuse what Windows refuses; SQLite is the real one.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpselect import Ledger
from dpselect.errors import BudgetExceeded
from dpselect.ledger import file

# The module reads the system's name once, so it is loaded again under another.
ELSEWHERE = """
import importlib, pathlib, sys
from dpselect.ledger import file

here, sys.platform = sys.platform, sys.argv[1]
file = importlib.reload(file)
sys.platform = here  # the standard library would look for parts of the other system
path = pathlib.Path(sys.argv[2])
file.create(path, ("identity", "1", "now", None, None, "head"))
with file.Writers(path).writing() as connection:
    print([file.pragma(connection, name) for name in ("fullfsync", "synchronous", "journal_mode")])
"""


@pytest.mark.parametrize(("system", "fullfsync"), [("darwin", 1), ("linux", 0), ("win32", 0)])
def test_on_macos_sqlite_empties_the_cache_of_the_disk(tmp_path: Path, system: str, fullfsync: int) -> None:
    command = [sys.executable, "-c", ELSEWHERE, system, str(tmp_path / "a.ledger")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"[{fullfsync}, 3, 'delete']\n"


# What a program on Windows does not find in `os`, of what a ledger could want.
ABSENT = {
    *("fchmod", "fchown", "chown", "fdatasync", "fork", "getuid", "geteuid", "getpgid", "lockf", "mkfifo", "openpty"),
    *("O_CLOEXEC", "O_DIRECTORY", "O_DSYNC", "O_NOFOLLOW", "O_SYNC", "register_at_fork", "sync", "uname"),
}


class Windows:
    """The `os` of Windows: folders cannot be opened, a rename replaces nothing, and an open file keeps its names."""

    name = "nt"

    def __init__(self) -> None:
        self.renamed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name in ABSENT:
            raise AttributeError(f"os has no {name} on Windows")
        return getattr(os, name)

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied")
        return os.open(path, flags, mode)

    def rename(self, source: Path, target: Path) -> None:
        if os.path.lexists(target):
            raise FileExistsError(17, "Cannot create a file when that file already exists")
        self.renamed.append(target.name)
        os.rename(source, target)

    def link(self, source: Path, target: Path) -> None:
        raise AssertionError("a second name cannot be removed from a file that another process has opened")

    def fsync(self, descriptor: int) -> None:
        raise AssertionError("there is no descriptor of a folder")


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Windows:
    system = Windows()
    monkeypatch.setattr(file, "os", system)
    return system


def test_a_ledger_works_with_what_windows_has(path: Path, windows: Windows) -> None:
    ledger = Ledger(path, budget=1)
    assert windows.renamed == [path.name]
    assert ledger.spend("0.4", "question") == 1
    again = Ledger(path, budget=1)
    again.spend("0.6", "question")
    with pytest.raises(BudgetExceeded):
        ledger.spend("0.1", "question")
    assert ledger.verify().id == again.verify().id
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_faster_process_wins_on_windows(path: Path, windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process makes the ledger while this one writes its own file."""
    publish, turns = file._publish, []

    def slowly(*arguments: Any) -> None:
        turns.append(arguments)
        if len(turns) == 1:
            Ledger(path, budget=2).spend("1.5", "question")
        publish(*arguments)

    monkeypatch.setattr(file, "_publish", slowly)
    file.create(path, ("identity", "1", "now", None, None, "head"))
    assert len(turns) == 2
    assert str(Ledger(path).spent) == str(Ledger(path, budget=2).spent)
    assert len(Ledger(path).entries()) == 1
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    with file.reading(path) as connection:
        assert connection.execute("SELECT identity FROM ledger").fetchone() != ("identity",)


def test_the_system_here_has_what_windows_lacks(windows: Windows) -> None:
    """The power check: a ledger that used one of these would have failed above."""
    with pytest.raises(AttributeError):
        _ = windows.O_NOFOLLOW
    with pytest.raises(PermissionError):
        windows.open(Path.cwd(), os.O_RDONLY)
