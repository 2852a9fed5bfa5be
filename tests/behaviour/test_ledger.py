"""A ledger by its promises: exact, durable before an answer, shared by processes, sealed, and private to its owner."""

import json
import os
import random
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from fractions import Fraction

import pyarrow as pa
import pytest

import dpselect
from dpselect import BudgetExceeded, Ledger, LedgerCorrupt, PermuteAndFlip, approximate, errors, zcdp
from dpselect.ledger import Charge
from tests import seam
from tests.behaviour.transcripts import run

POSIX = pytest.mark.skipif(os.name == "nt", reason="modes and folders of POSIX")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.ledger"


# The budget is exact.


@pytest.mark.parametrize("budget", ["0.3", zcdp("0.3"), approximate("3", "1e-6")], ids=["pure", "zcdp", "approximate"])
def test_a_budget_is_used_up_exactly(path, budget):
    ledger = Ledger(path, budget=budget)
    currency = "epsilon" if ledger.budget.rho is None else "rho"
    whole = Fraction(getattr(ledger.budget, currency))
    for _ in range(3):
        ledger.spend(what="a third", **{currency: whole / 3})
    assert getattr(ledger.spent, currency) == whole
    for more in (Fraction(1, 10**12), Fraction(1, 10**30)):
        with pytest.raises(BudgetExceeded):
            ledger.spend(what="more", **{currency: more})
    assert len(Ledger(path).entries()) == 3


def test_no_digit_of_a_budget_is_lost(path):
    """A sum of floats would round 10**17 + 1 to 10**17, and 0.1 + 0.2 to more than 0.3."""
    ledger = Ledger(path, budget=10**17)
    ledger.spend(10**17 - 1, "nearly all")
    with pytest.raises(BudgetExceeded):
        ledger.spend("1.001", "a little too much")
    ledger.spend(1, "the rest")
    assert (ledger.spent, ledger.remaining) == (10**17, 0)


def test_a_delta_has_a_budget_of_its_own(path):
    ledger = Ledger(path, budget=zcdp(1, delta="1e-6"))
    ledger.spend("0.1", "found", delta="1e-6")
    with pytest.raises(BudgetExceeded):
        ledger.spend("0.1", "found", delta="1e-9")
    assert (ledger.spent.delta, ledger.remaining.delta) == (Fraction(1, 10**6), 0)


# Nothing is drawn before the charge.

ROWS = pa.table({"x": ["a"] * 3 + ["b"], "n": [1, 2, 3, 4]})
ASKED = {
    "mode": lambda table: table.mode("x", candidates=["a", "b"], epsilon="0.5"),
    "top_k": lambda table: table.top_k("x", 1, candidates=["a", "b", "c"], epsilon="0.5"),
    "median": lambda table: table.median("n", lower=0, upper=5, epsilon="0.5"),
    "values": lambda table: table.values("x", epsilon="0.5", delta="1e-6"),
    "found": lambda table: table.mode("x", epsilon="0.5", delta="1e-6", max_values=1),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_question_is_charged_before_it_is_drawn(path, name):
    """Whenever something is drawn, the entry is on the disk: seen by another ledger object of the same file."""
    ledger = Ledger(path, budget=approximate(10**6, "0.1"))
    table, asked, seen = dpselect.open_table(ROWS, ledger=ledger), [], []

    def ask_again():
        asked.append(name)
        return ASKED[name](table)

    seam.answers(ask_again, watch=lambda: seen.append((len(Ledger(path).entries()), len(asked))))
    assert seen
    assert all(entries == turn for entries, turn in seen)


@pytest.mark.parametrize("name", ASKED)
def test_an_exhausted_budget_draws_nothing(path, name):
    ledger = Ledger(path, budget=approximate("0.1", "1e-7"))
    table, drawn = dpselect.open_table(ROWS, ledger=ledger), []
    with pytest.raises(BudgetExceeded):
        seam.answers(lambda: ASKED[name](table), watch=lambda: drawn.append(1))
    assert not drawn
    assert ledger.entries() == []


def test_a_mechanism_is_charged_before_it_is_drawn(path):
    ledger, seen = Ledger(path, budget=1), []
    answer = seam.answers(
        lambda: PermuteAndFlip("0.01").release([1, 2], ledger=ledger), watch=lambda: seen.append(ledger.entries()[-1])
    )
    assert [entry.epsilon for entry in seen] == [Fraction(1, 100)] * len(answer.law)


# Requests.


def written(path, values):
    path.write_text("x\n" + "\n".join(values) + "\n")
    return path


def ask(table, request_id="r"):
    return table.mode("x", candidates=["a", "b"], epsilon="0.5", request_id=request_id)


def test_a_retry_returns_the_stored_answer_and_costs_nothing(path, tmp_path):
    file = written(tmp_path / "rows.csv", ["a"] * 50)
    ledger = Ledger(path, budget=1)
    first = ask(dpselect.open_table(file, ledger=ledger))
    again = ask(dpselect.open_table(file, ledger=Ledger(path)))
    assert (again.value, again.ledger_id, again.repeated) == (first.value, first.ledger_id, True)
    assert ledger.spent == Fraction(1, 2)


def test_a_retry_on_other_data_is_refused(path, tmp_path):
    ledger = Ledger(path, budget=1)
    ask(dpselect.open_table(written(tmp_path / "rows.csv", ["a"] * 50), ledger=ledger))
    for values in (["a"] * 51, ["a"] * 49 + ["b"]):
        with pytest.raises(errors.RequestConflict):
            ask(dpselect.open_table(written(tmp_path / "rows.csv", values), ledger=ledger))
    with pytest.raises(errors.RequestConflict):
        PermuteAndFlip("0.1").release([1, 2], ledger=ledger, request_id="r")
    assert len(ledger.entries()) == 1


def test_an_answer_is_not_stored_if_the_data_changed_meanwhile(path, tmp_path):
    """Between the charge and the draw: a retry finds the charge without an answer, on either data."""
    file = written(tmp_path / "rows.csv", ["a"] * 50)
    ledger = Ledger(path, budget=1)
    table = dpselect.open_table(file, ledger=ledger, keep=False)
    changes = iter([["a"] * 49])

    def change():
        for values in changes:
            written(file, values)

    first = seam.Recorder(random.Random(1))
    with seam.recording(first, 7, "duckdb", watch=change):
        ask(table)
    for values in (["a"] * 49, ["a"] * 50):
        with pytest.raises((errors.RequestUnanswered, errors.RequestConflict)):
            ask(dpselect.open_table(written(file, values), ledger=ledger))
    assert [entry.answer for entry in ledger.entries()] == [None]


# Processes.


def process(*arguments):
    command = [sys.executable, "-m", "tests.behaviour.processes", *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_two_processes_share_one_budget(path):
    workers = [process("spend", path, "1/150") for _ in range(2)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("\n")
        worker.stdin.flush()
    found = [json.loads(worker.communicate(timeout=120)[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert sorted(found[0] + found[1]) == list(range(1, 151))
    ledger = Ledger(path)
    assert (ledger.verify().id, ledger.spent, ledger.remaining) == (150, 1, 0)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_killed_process_leaves_no_answer_without_a_charge(path):
    given = []
    for life in range(4):
        worker = process("answer", path, life)
        given.append(worker.stdout.readline().strip())
        time.sleep(random.random() / 50)
        worker.kill()
        given += worker.stdout.read().split()  # communicate would lose what was read ahead
        worker.communicate(timeout=60)
    recorded = [entry.what for entry in Ledger(path).entries()]
    assert Ledger(path).verify().id == len(recorded) >= len(given) > 0
    assert set(given) <= set(recorded)
    assert len(recorded) - len(given) <= 4  # each life ends with at most one charge without an answer


# Durability.


def test_every_charge_is_synced(path):
    Ledger(path, budget=1)
    assert seam.ledger_settings(path) == {"synchronous": 3, "journal_mode": "delete"}


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_charge_is_on_the_disk_before_the_answer_is_written(path, tmp_path):
    """The order of system calls: journal synced, file synced, journal removed, folder synced, answer."""
    log = tmp_path / "calls"
    program = (
        f"import os, dpselect; ledger = dpselect.Ledger({str(path)!r}, budget=1); ledger.spent;"
        "os.write(1, b'BEGIN'); ledger.spend('0.1', 'question'); os.write(1, b'ANSWER')"
    )
    calls = ["strace", "-f", "-y", "-o", str(log), "-e", "trace=write,fsync,fdatasync,unlink,unlinkat"]
    done = subprocess.run([*calls, sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.returncode and "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    between = re.search(r"BEGIN(.*)ANSWER", log.read_text(), re.DOTALL)[1]
    name, synced = re.escape(str(path)), r"(?:fsync|fdatasync)\(\d+<"
    steps = [rf"{synced}{name}-journal>", rf"{synced}{name}>", rf'unlink.*"{name}-journal"', rf"{synced}{re.escape(str(tmp_path))}>"]  # fmt: skip # noqa: E501
    order = [max((found.start() for found in re.finditer(step, between)), default=-1) for step in steps]
    assert -1 not in order
    assert order == sorted(order)


@POSIX
def test_the_folder_is_synced_when_a_ledger_has_its_name(path, monkeypatch):
    """After a power failure, the new file must still have its name."""
    synced, fsync = [], os.fsync

    def watched(descriptor):
        fsync(descriptor)
        synced.append((os.fstat(descriptor).st_ino, path.exists()))

    monkeypatch.setattr(os, "fsync", watched)
    Ledger(path, budget=1)
    assert (path.parent.stat().st_ino, True) in synced


@POSIX
def test_only_the_owner_may_read_a_ledger(path):
    old = os.umask(0)
    try:
        Ledger(path, budget=1).spend("0.1", "question")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# Tampering.


def filled(path):
    ledger = Ledger(path, budget=zcdp(10, delta="0.001"))
    for i in range(4):
        charge = Charge({"question": f"q{i}"}, "0.1", "exponential", count=i + 1, delta="1e-6")
        entry = ledger.charge(charge, request_id=f"r{i}")
        ledger.store_answer(entry.id, f"answer {i}", content=f"data {i}")
    return ledger


def columns_of(path, table):
    with closing(sqlite3.connect(path)) as connection:
        return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def tamper(path, *statements):
    """What somebody does who has the file and a copy of SQLite."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_every_column_of_every_table_is_sealed(path):
    filled(path).verify()
    fields = [(table, column) for table in ("ledger", "entries", "answers") for column in columns_of(path, table)]
    assert len(fields) > 15
    for table, column in fields:
        copy = path.with_name(f"{table}-{column}")
        shutil.copy(path, copy)
        one = f"WHERE id = (SELECT max(id) FROM {table})"
        value = f"{column} + 7" if column in ("id", "count") else f"'x' || coalesce({column}, '')"
        tamper(copy, "PRAGMA ignore_check_constraints = ON", f"UPDATE {table} SET {column} = {value} {one}")
        with pytest.raises(errors.LedgerError):
            Ledger(copy).verify()


@pytest.mark.parametrize(
    "statements",
    [
        ("DELETE FROM entries WHERE id = 2",),
        (
            "UPDATE entries SET id = 9 WHERE id = 2",
            "UPDATE entries SET id = 2 WHERE id = 3",
            "UPDATE entries SET id = 3 WHERE id = 9",
        ),
        ("DELETE FROM answers", "UPDATE entries SET request_id = NULL"),
        ("UPDATE entries SET request_id = 'other' WHERE id = 1",),
        ("PRAGMA user_version = 99",),
        ("DROP TABLE answers",),
    ],
    ids=["removed", "reordered", "without requests", "another request", "version", "without answers"],
)
def test_a_changed_ledger_is_refused(path, statements):
    filled(path)
    tamper(path, *statements)
    with pytest.raises(errors.LedgerError):
        Ledger(path).verify()
    with pytest.raises(errors.LedgerError):
        Ledger(path).spend("0.1", "one more")


def test_a_receipt_shows_what_was_cut_off(path):
    receipt = filled(path).receipt()
    tamper(path, "DELETE FROM answers WHERE id = 4", "DELETE FROM entries WHERE id = 4")
    Ledger(path).verify()  # a shorter chain is a chain
    with pytest.raises(LedgerCorrupt):
        Ledger(path).verify(receipt)


def test_a_ledger_reads_back_what_was_charged(path):
    entries = filled(path).entries()
    again = Ledger(path)
    assert again.entries() == entries
    assert [(entry.id, entry.charge.count, entry.request_id, entry.answer) for entry in entries] == [
        (i + 1, i + 1, f"r{i}", f"answer {i}") for i in range(4)
    ]
    assert again.spent.delta == Fraction(4, 10**6)
    assert again.spent.rho == sum(entry.rho for entry in entries)


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_no_exported_text_is_a_formula_in_a_spreadsheet(path, sign):
    Ledger(path, budget=1).charge(Charge("question", "0.1"), request_id=f"{sign}1+1|cmd")
    assert f",'{sign}1+1|cmd," in run(f"ledger export {path} --format csv")
