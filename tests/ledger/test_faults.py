"""Any fault of the ledger means no answer: a typed error, nothing spent in silence, nothing refunded."""

import errno
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from dpselect import Ledger, LedgerCorrupt
from dpselect.errors import BudgetMismatch, LedgerError
from dpselect.ledger import file
from tests.ledger.currencies import AMPLE, cost, every_currency
from tests.ledger.test_processes import work
from tests.ledger.test_tampering import tamper

NOTHING = "nothing is released without a working ledger"


def fill(path: Path, spends: int = 40, budget: str = AMPLE["pure"]) -> Ledger:
    """A ledger of several pages."""
    ledger = Ledger(path, budget=budget)
    for i in range(spends):
        ledger.spend("0.1", f"{i}: " + "x" * 400)
    return ledger


def refuses(
    path: Path, error: type[LedgerError] = LedgerError, match: str = NOTHING, budget: str = AMPLE["pure"]
) -> None:
    """Neither a new object nor any of its uses answers; no raw error of SQLite passes through."""
    for given in (None, budget):
        with pytest.raises(error, match=match):
            Ledger(path, budget=given).spend("0.1", "question")


def test_a_directory_in_its_place(path: Path) -> None:
    path.mkdir()
    refuses(path)
    assert path.is_dir()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger(tmp_path / "no" / "ledger", budget=1)


def test_a_link_that_leads_nowhere(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")
    refuses(path)
    assert not (path.parent / "nowhere").exists()


def test_a_link_to_a_ledger_is_that_ledger(path: Path) -> None:
    fill(path, 1)
    link = path.parent / "link"
    link.symlink_to(path)
    Ledger(link).spend("0.1", "question")
    assert Ledger(path).spent == Fraction(1, 5)


@every_currency()
def test_a_deleted_file_stays_deleted(path: Path, budget: str) -> None:
    ledger = fill(path, 2, budget)
    path.unlink()
    uses: list[Callable[[], object]] = [
        lambda: ledger.spend("0.1", "question"), lambda: ledger.spent, ledger.entries, ledger.verify,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(LedgerError, match=NOTHING):
            use()
    assert not path.exists()


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"\0" * 4096, b"SQLite format 3\0", b"x"])
def test_a_file_of_something_else(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refuses(path, LedgerCorrupt)
    assert path.read_bytes() == content


def test_an_empty_file_is_a_ledger_that_lost_its_content(path: Path) -> None:
    """To SQLite it is a new database: a truncated ledger would come back with its whole budget."""
    path.touch()
    refuses(path, LedgerCorrupt, "the file is empty: it is not a ledger, or it lost its content")
    assert path.stat().st_size == 0


def test_the_database_of_another_program(path: Path) -> None:
    tamper(path, "CREATE TABLE entries (id INTEGER PRIMARY KEY)")
    refuses(path, LedgerError, "belongs to another program")


@pytest.mark.parametrize("version", [0, 2, 99, -1])
@every_currency()
def test_another_format(path: Path, version: int, budget: str) -> None:
    fill(path, 2, budget)
    tamper(path, f"PRAGMA user_version = {version}")
    refuses(path, LedgerError, f"it has format {version}, not 1: use the dpselect that wrote it")


@every_currency()
def test_a_format_that_changed_under_an_open_ledger(path: Path, budget: str) -> None:
    ledger = fill(path, 2, budget)
    tamper(path, "PRAGMA user_version = 2")
    with pytest.raises(LedgerError, match="it has format 2"):
        ledger.spend("0.1", "question")


@pytest.mark.parametrize(
    "other", [*AMPLE.values(), "1000000,cap:0.5", "zcdp:1000000", "1000000,1e-6,0", "1000000,1e-7"]
)
@every_currency()
def test_a_budget_that_changes_after_creation(path: Path, other: str, budget: str) -> None:
    fill(path, 2, budget)
    before = path.read_bytes()
    if other == budget:
        assert Ledger(path, budget=other).spent == cost(budget, 2)
    else:
        with pytest.raises(BudgetMismatch, match="which was fixed when it was created: give that budget, or none"):
            Ledger(path, budget=other)
    assert path.read_bytes() == before


@every_currency(slow=("cap", "approximate"))
def test_every_truncation(path: Path, budget: str) -> None:
    """Cut at any length the file is refused, by the constructor or by the first charge."""
    fill(path, budget=budget)
    content = path.read_bytes()
    assert len(content) > 5 * 4096
    lengths = [0, 1, 15, 16, 99, 100, 101, *range(512, len(content), 512), len(content) - 1]
    for length in lengths:
        path.write_bytes(content[:length])
        with pytest.raises(LedgerError, match=NOTHING):
            Ledger(path).spend("0.1", "question")
        assert path.read_bytes() == content[:length]


@pytest.mark.parametrize("page", range(1, 6))
@every_currency(slow=("cap", "approximate"))
def test_a_page_of_garbage(path: Path, page: int, budget: str) -> None:
    fill(path, budget=budget)
    content = bytearray(path.read_bytes())
    content[page * 4096 : (page + 1) * 4096] = os.urandom(4096)
    path.write_bytes(content)
    refuses(path, LedgerCorrupt, budget=budget)


@every_currency(slow=("cap", "approximate"))
def test_a_truncation_under_an_open_ledger(path: Path, budget: str) -> None:
    ledger = fill(path, budget=budget)
    with open(path, "r+b") as file:
        file.truncate(4096)
    with pytest.raises(LedgerError, match=NOTHING):
        ledger.spend("0.1", "question")


# Journals.


def interrupted(path: Path) -> None:
    """A writer that dies in the middle of its transaction, after a part of it has reached the file."""
    program = (
        "import os, signal, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('PRAGMA cache_size = 1')\n"
        "connection.execute('BEGIN IMMEDIATE')\n"
        "connection.execute(\"UPDATE entries SET each = '1/1000', what = '\\\"y\\\"'\")\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False, timeout=60)
    assert done.returncode == -9
    assert path.read_bytes() != before
    assert journal(path).stat().st_size > 0


def journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs kill -9")
@every_currency(slow=("cap", "approximate"))
def test_the_journal_of_a_dead_writer_is_rolled_back(path: Path, budget: str) -> None:
    fill(path, budget=budget)
    interrupted(path)
    ledger = Ledger(path)
    assert ledger.verify().id == 40
    assert ledger.spent == cost(budget, 40)
    ledger.spend("0.1", "question")
    assert not journal(path).exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs kill -9")
@every_currency(slow=("cap", "approximate"))
def test_the_deleted_journal_of_a_dead_writer_is_found(path: Path, budget: str) -> None:
    fill(path, budget=budget)
    interrupted(path)
    journal(path).unlink()
    refuses(path, LedgerCorrupt, budget=budget)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs kill -9")
@every_currency(slow=("cap", "approximate"))
def test_the_deleted_journal_of_a_dead_writer_is_found_by_an_open_ledger(path: Path, budget: str) -> None:
    """It has confirmed the old entries and remembers their sum; when it reads them again it finds the damage."""
    ledger = fill(path, budget=budget)
    interrupted(path)
    journal(path).unlink()
    assert ledger.spent == cost(budget, 40)
    with pytest.raises(LedgerCorrupt):
        ledger.verify()


@every_currency()
def test_a_journal_that_cannot_be_written(path: Path, budget: str) -> None:
    """A directory in the journal's place: an error in the middle of the transaction."""
    ledger = fill(path, 3, budget)
    journal(path).mkdir()
    with pytest.raises(LedgerError, match=NOTHING):
        ledger.spend("0.1", "question")
    journal(path).rmdir()
    assert ledger.spend("0.1", "question") == 4
    ledger.verify()


@every_currency()
def test_a_ledger_that_stays_locked(path: Path, monkeypatch: pytest.MonkeyPatch, budget: str) -> None:
    fill(path, 2, budget)
    monkeypatch.setattr(file, "_SETTINGS", (("busy_timeout", "50", 50), *file._SETTINGS[1:]))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        ledger = Ledger(path)
        other.execute("BEGIN IMMEDIATE")
        assert ledger.spent == cost(budget, 2)  # reading goes on
        with pytest.raises(LedgerError, match="other processes kept it locked for too long"):
            ledger.spend("0.1", "question")
        other.execute("ROLLBACK")
        assert ledger.spend("0.1", "question") == 3


# Full disks. A limit on the size of files makes the kernel refuse writes at any place of a transaction.


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs limits on the size of files")
@every_currency(slow=("cap", "approximate"))
def test_a_full_disk_at_every_write(path: Path, budget: str) -> None:
    start = fill(path, 3, budget).verify().id
    size = path.stat().st_size
    answered = 0
    for report in work("full", path, 0, size + 30_000, 1_000, budget):
        assert report["code"] == 0  # only errors of ours
        answered += len(report["ids"])
    ledger = Ledger(path)
    ids = [entry.id for entry in ledger.entries()]
    assert ledger.verify().id == len(ids) >= start + answered
    assert answered > 10
    ledger.spend("0.1", "question")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs limits on the size of files")
@every_currency(slow=("cap", "approximate"))
def test_a_disk_too_full_to_create_a_ledger(path: Path, budget: str) -> None:
    for report in work("full", path, 0, 12_000, 500, budget):
        assert report["code"] == 0
        if not report["ids"]:
            continue
        assert Ledger(path).verify().id >= report["ids"][-1]


# Files and folders that cannot be written. Permissions do not bind root, so there the user is another one.


@pytest.fixture
def public(path: Path) -> Iterator[Path]:
    """A folder that everybody may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: S103
        yield Path(folder)
        os.chmod(folder, 0o700)


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs permissions of POSIX")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_ledger_that_may_only_be_read(public: Path, what: str) -> None:
    path = public / "a.ledger"
    fill(path, 3)
    path.chmod(0o444 if what == "file" else 0o666)
    public.chmod(0o555 if what == "folder" else 0o777)
    [found] = work("read-only", path)
    assert (found["spent"], found["entries"], found["verified"]) == ("3/10", 3, 3)
    assert NOTHING in found["fault"]
    public.chmod(0o755)
    assert stat.S_IMODE(path.stat().st_mode) in (0o444, 0o666)
    assert Ledger(path).verify().id == 3


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs permissions of POSIX")
def test_a_folder_in_which_no_ledger_may_be_made(public: Path) -> None:
    public.chmod(0o555)
    [found] = work("new-in", public)
    assert NOTHING in found["fault"]
    assert list(public.iterdir()) == []


# A new ledger is on the disk under its name before it is used: its folder is synced after the file is named.

PROGRAM = """
import os, sys
from dpselect import Ledger
ledger = Ledger(sys.argv[1], budget=1)
os.write(1, b"OPEN")
ledger.spend("0.1", "question")
os.write(1, b"ANSWER")
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot sync a folder")
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
