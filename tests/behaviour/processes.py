"""Processes that share a ledger: `python -m tests.behaviour.processes TASK PATH ...` prints JSON lines."""

import json
import sys

from dpselect import BudgetExceeded, Ledger


def spend_all(path: str, each: str) -> None:
    """Wait for a line, then spend parts of the budget until it is exhausted, and print the ids of the entries."""
    ledger, ids = Ledger(path, budget=1), []
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    try:
        while True:
            ids.append(ledger.spend(each, "a part"))
    except BudgetExceeded:
        sys.stdout.write(json.dumps(ids) + "\n")


def answer_forever(path: str, life: str) -> None:
    """Charge and then answer, again and again, until somebody kills the process."""
    ledger = Ledger(path, budget=10**6)
    for turn in range(10**9):
        ledger.spend("0.1", f"{life}-{turn}")
        sys.stdout.write(f"{life}-{turn}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    {"spend": spend_all, "answer": answer_forever}[sys.argv[1]](*sys.argv[2:])
