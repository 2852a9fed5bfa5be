"""Real processes on real files: they spend at once, are killed at any moment, and never overspend."""

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from dpselect import Ledger
from dpselect.accounting.budget import as_budget
from tests.ledger.currencies import WHOLE, cost, every_currency

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are forked")

KILLS = 200


def work(*arguments: object, prefix: tuple[str, ...] = ()) -> list[Any]:
    """The JSON lines that the workers print."""
    command = [*prefix, sys.executable, "-m", "tests.ledger.workers", *map(str, arguments)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("rounds", "each", "spends"), [(1, "1/150", 150), (12, "1/9", 9)])
@every_currency(WHOLE, slow=("cap", "approximate"))
def test_eight_processes_that_open_a_new_ledger_at_once_reach_the_budget(
    tmp_path: Path, rounds: int, each: str, spends: int, budget: str
) -> None:
    reports, limit = work("race", tmp_path, rounds, each, budget), as_budget(budget).limit
    assert len(reports) == rounds
    for report in reports:
        assert report["codes"] == [0] * 8
        assert sorted(id for ids in report["ids"] for id in ids) == list(range(1, spends + 1))
        ledger = Ledger(report["path"])
        assert ledger.verify().id == spends
        assert (ledger.spent.limit.value, ledger.remaining.limit.value) == (limit.value, 0)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(f"{number}.ledger" for number in range(rounds))  # no temporary file and no journal is left


def audit(reports: list[dict[str, Any]], budget: str) -> Counter[str]:
    """What became of the answers that were given and of the charges that were recorded."""
    answers, lives = defaultdict(list), Counter[str]()
    for report in reports:
        answers[report["path"]] += report["answers"]
        lives[report["path"]] += 1
    found = Counter(answers=0, records=0, unrecorded=0, unanswered=0)
    for path, given in answers.items():
        recorded = []
        if Path(path).exists():  # else its first life ended before its creation
            ledger = Ledger(path)
            recorded = [str(entry.what) for entry in ledger.entries()]
            assert ledger.verify().id == len(recorded)
            assert ledger.spent == cost(budget, len(recorded))
        assert len(set(recorded)) == len(recorded)
        unanswered = set(recorded) - set(given)
        assert len(unanswered) <= lives[path]  # each life ends with at most one record without an answer
        found += Counter(answers=len(given), records=len(recorded), unanswered=len(unanswered))
        found["unrecorded"] += len(set(given) - set(recorded))
    return found


@every_currency(slow=("cap", "zcdp", "approximate"))
def test_a_kill_at_any_moment_leaves_no_answer_without_a_record(tmp_path: Path, budget: str) -> None:
    reports = work("kill", tmp_path, KILLS, "charge-first", budget)
    assert [report["code"] for report in reports] == [-9] * KILLS
    found = audit(reports, budget)
    assert found["unrecorded"] == 0
    # The kills came everywhere: between the charge and the answer too.
    assert found["answers"] > KILLS // 2
    assert found["unanswered"] > 0


@every_currency(slow=("cap", "pure", "approximate"))
def test_the_same_audit_catches_those_who_answer_first(tmp_path: Path, budget: str) -> None:
    found = audit(work("kill", tmp_path, 60, "answer-first", budget), budget)
    assert found["unrecorded"] > 0


def test_a_forked_process_goes_on_with_the_ledger_of_its_parent(tmp_path: Path) -> None:
    """SQLite forbids connections across a fork: the child must open its own."""
    path = tmp_path / "a.ledger"
    program = (
        "import os, sys\nfrom dpselect import Ledger\n"
        f"ledger = Ledger({str(path)!r}, budget=1)\nledger.spend('0.1', 'parent')\n"
        "children = []\n"
        "for number in range(4):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        ledger.spend('0.1', 'child'); ledger.verify(); os._exit(0)\n"
        "    children.append(child)\n"
        "codes = [os.waitpid(child, 0)[1] for child in children]\n"
        "ledger.spend('0.1', 'parent'); print(codes, ledger.verify().id)\n"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, env=environment
    )
    assert done.stdout.strip() == "[0, 0, 0, 0] 6"
