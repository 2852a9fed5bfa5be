"""A new ledger is on the disk under its name before it is used: its folder is synced after the file is named."""

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpselect import Ledger
from dpselect.errors import LedgerError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows cannot sync a folder")

# A new ledger, and its first charge.
PROGRAM = """
import os, sys
from dpselect import Ledger
ledger = Ledger(sys.argv[1], budget=1)
os.write(1, b"OPEN")
ledger.spend("0.1", "question")
os.write(1, b"ANSWER")
"""


def test_a_folder_that_cannot_be_synced_gives_no_ledger(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(LedgerError, match="Input/output error; nothing is released"):
        Ledger(path, budget=1)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_system_is_asked_to_sync_the_folder_before_the_first_charge(tmp_path: Path) -> None:
    """The order of system calls: file synced, file named, folder synced; then the ledger is open and charged."""
    path, log = tmp_path / "a.ledger", tmp_path / "calls"
    calls = "trace=write,fsync,fdatasync,link,linkat"
    command = ["strace", "-f", "-y", "-o", str(log), "-e", calls, sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode and "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines()
    steps = [
        rf"(?:fsync|fdatasync)\(\d+<{re.escape(str(tmp_path))}/\.dpselect-\w+\.new>\) = 0",
        rf'link(?:at)?\(.*"{re.escape(str(path))}"',
        rf"(?:fsync|fdatasync)\(\d+<{re.escape(str(tmp_path))}>\) = 0",
        r"write\(1\b.*OPEN",
        r"write\(1\b.*ANSWER",
    ]
    place = 0
    for step in steps:  # each comes after the one before; OPEN is written once, so the folder is synced before it
        place = next((i for i, line in enumerate(lines) if i >= place and re.search(step, line)), len(lines))
        assert place < len(lines), step
