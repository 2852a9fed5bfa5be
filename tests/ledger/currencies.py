"""Budgets in every currency, so that what a ledger promises is tested in all of them."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from dpselect.accounting.budget import Amount, Budget, as_budget
from dpselect.ledger import Charge

# Large enough for every test that fills a ledger with charges of 0.1.
AMPLE = {"pure": "1000000", "cap": "1000000,cap:1", "zcdp": "zcdp:1000000,0.001", "approximate": "1000000,1e-6"}
# A whole that is divided up.
WHOLE = {"pure": "1", "cap": "1,cap:1", "zcdp": "zcdp:1,1e-9", "approximate": "1,1e-6"}
TENTH = Charge("question", "0.1")


def every_currency(budgets: dict[str, str] = AMPLE, slow: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Run a test with each of these budgets; some of them only among the slow tests."""
    cases = [
        pytest.param(budget, id=name, marks=pytest.mark.slow if name in slow else ())
        for name, budget in budgets.items()
    ]
    return pytest.mark.parametrize("budget", cases)


def cost(budget: str | Budget, times: int, charge: Charge = TENTH) -> Budget:
    """What so many equal charges cost together, added up one by one."""
    known, spent = as_budget(budget), Amount(*(0 * part for part in as_budget(budget).limit))
    for _ in range(times):
        spent = spent.plus(known.amount(known.recorded(charge)))
    return known.of(spent)


def at_once(*works: Callable[[], None]) -> None:
    """Do all of these works, each in a thread of its own, which starts when all are there."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        start.wait()
        work()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
