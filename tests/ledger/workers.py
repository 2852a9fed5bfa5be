"""Real processes that use a ledger, to be run as `python -m tests.ledger.workers TASK ...`; results are JSON lines.

They are forked from one process that has imported everything, so that hundreds of them are affordable.
"""

import json
import os
import random
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

from dpselect.errors import BudgetExceeded, LedgerError
from dpselect.ledger import Ledger


def say(report: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(report) + "\n")


def forked(work: Callable[[], None]) -> int:
    """A child that does the work and exits, with code 1 after an error that it did not expect."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(code)


def exit_codes(children: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


# Eight at once.


def race(folder: str, rounds: str, part: str, budget: str, processes: str = "8") -> None:
    """Processes that open a new ledger at the same moment and spend parts of it until nothing is left."""
    for number in range(int(rounds)):
        path = f"{folder}/{number}.ledger"
        start, go = os.pipe()
        results, report = os.pipe()

        def spend_all(path: str = path, start: int = start, go: int = go, report: int = report) -> None:
            os.close(go)
            os.read(start, 1)  # returns in all of them when the parent closes the other end
            ledger, ids = Ledger(path, budget=budget), []
            currency = "epsilon" if ledger.budget.rho is None else "rho"
            each = {currency: ledger.budget.limit.value * Fraction(part)}
            try:
                while True:
                    ids.append(ledger.spend(what=f"process {os.getpid()}", **each))
            except BudgetExceeded:
                os.write(report, (json.dumps(ids) + "\n").encode())

        children = [forked(spend_all) for _ in range(int(processes))]
        os.close(report)
        os.close(go)
        codes = exit_codes(children)
        with os.fdopen(results) as lines:
            say({"path": path, "codes": codes, "ids": [json.loads(line) for line in lines]})
        os.close(start)


# kill -9.


def kill(folder: str, kills: str, order: str, budget: str) -> None:
    """Children that are killed at random moments while they charge and answer, or, as a control, answer first."""
    answer_first = {"charge-first": False, "answer-first": True}[order]
    moments, spend = random.SystemRandom(), seconds_of_a_spend(f"{folder}/stopwatch")
    for number in range(int(kills)):
        path = f"{folder}/{number // 10}.ledger"  # several lives for each ledger, the first from its creation on
        answers, said = os.pipe()
        child = forked(
            lambda path=path, said=said, number=number: answer_forever(path, budget, said, number, answer_first)
        )
        os.close(said)
        told = read_answers(answers, wanted=moments.randrange(3))
        time.sleep(moments.random() * 3 * spend)
        os.kill(child, signal.SIGKILL)
        [code] = exit_codes([child])
        told += read_to_end(answers)
        say({"path": path, "code": code, "answers": told.decode().split()})


def seconds_of_a_spend(path: str) -> float:
    """How long the window is that the kills must hit, on this disk."""
    ledger, start = Ledger(path, budget=10**9), time.perf_counter()
    for _ in range(20):
        ledger.spend("0.1", "question")
    return (time.perf_counter() - start) / 20


def answer_forever(path: str, budget: str, said: int, number: int, answer_first: bool) -> NoReturn:
    ledger = Ledger(path, budget=budget)
    for turn in range(10**9):
        token = f"{number}-{turn}"
        if answer_first:
            os.write(said, f"{token}\n".encode())
        ledger.spend("0.1", token)
        if not answer_first:
            os.write(said, f"{token}\n".encode())
    raise AssertionError


def read_answers(pipe: int, wanted: int) -> bytes:
    """Wait for so many answers, so that the kill comes at every stage of a ledger's life on machines of any speed."""
    told = b""
    while told.count(b"\n") < wanted:
        assert select.select([pipe], [], [], 60)[0], "the child says nothing"
        told += os.read(pipe, 4096)
    return told


def read_to_end(pipe: int) -> bytes:
    with os.fdopen(pipe, "rb") as stream:
        return stream.read()


# Disks that are full.


def full(path: str, smallest: str, largest: str, step: str, budget: str) -> None:
    """Children that may not write files longer than a limit; each limit stops them at another write."""
    for limit in range(int(smallest), int(largest), int(step)):
        answers, said = os.pipe()
        child = forked(lambda said=said, limit=limit: spend_within(path, limit, said, budget))
        os.close(said)
        [code] = exit_codes([child])
        ids = [json.loads(line) for line in read_to_end(answers).splitlines()]
        say({"limit": limit, "code": code, "ids": ids})


def spend_within(path: str, limit: int, said: int, budget: str) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit then fails with an error
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    spend_until_fault(path, said, budget)


def spend_until_fault(path: str, said: int, budget: str, most: int = 200) -> None:
    """Answer as long as the ledger works; its fault must be ours, never SQLite's own."""
    try:
        ledger = Ledger(path, budget=budget)
        for _ in range(most):
            os.write(said, f"{ledger.spend('0.1', 'x' * 500)}\n".encode())
    except LedgerError:
        return
    raise AssertionError("no fault in so many spends")


# Files that cannot be written.


def become_nobody() -> None:
    """Give up the rights of root, if this is root."""
    if os.getuid() == 0:
        # Newer Pythons import urllib only here, and nobody may be unable to read the folder of an interpreter of root.
        Path.cwd().as_uri()
        os.setgid(65534)
        os.setuid(65534)


def read_only(path: str) -> None:
    """Use a ledger as a user who may read it and not write it."""
    become_nobody()
    ledger = Ledger(path)
    found = {"spent": str(ledger.spent), "entries": len(ledger.entries()), "verified": ledger.verify().id}
    try:
        ledger.spend("0.1", "question")
    except LedgerError as error:
        found["fault"] = str(error)
    say(found)


def new_in(folder: str) -> None:
    """Create a ledger as a user who may not."""
    become_nobody()
    try:
        Ledger(Path(folder) / "new.ledger", budget=1)
    except LedgerError as error:
        say({"fault": str(error)})


if __name__ == "__main__":
    tasks = {"race": race, "kill": kill, "full": full, "read-only": read_only, "new-in": new_in}
    tasks[sys.argv[1]](*sys.argv[2:])
