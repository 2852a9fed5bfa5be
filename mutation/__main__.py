"""`python -m mutation [COUNT | places | all] [FILE...]`: try mutants of sampling/ and mechanisms/, or of some files.

COUNT is the size of a random sample. `places` is a sample with one mutant of every place and kind: cosmic-ray replaces
an operator by each of ten others, and what notices one of them will mostly notice the next. Samples are the same each
time.

cosmic-ray makes the mutants and keeps what is known of them in build/mutants.sqlite; `cr-report` reads that. A second
run goes on where the first one stopped.
"""

import math
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import cosmic_ray.plugins
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult

from mutation.equivalents import reason_of
from mutation.places import idle_places, is_inside_function, reason_at
from mutation.runner import Outcome, Run, Tests
from mutation.tests import ALL, LEFT_OUT, TESTS

SESSION = Path("build/mutants.sqlite")


def main() -> None:
    """Try COUNT mutants, or all, and print what survived and a table."""
    count, files = (sys.argv[1] if len(sys.argv) > 1 else "200"), sys.argv[2:]
    with use_db(str(SESSION), WorkDB.Mode.open) as database:
        chosen = _sample(
            [item for item in database.work_items if not files or _name(item.mutations[0]) in files], count
        )
        pending = {item.job_id for item in database.pending_work_items}
        left = [item for item in sorted(chosen, key=_place) if item.job_id in pending]
        for quick in (True, False):
            for name in sorted({_name(item.mutations[0]) for item in left}, key=_rank):
                _try([item for item in left if _name(item.mutations[0]) == name], name, database, quick)
        print(_table(database))


def _try(items: list[WorkItem], name: str, database: WorkDB, quick: bool) -> None:
    """Try mutants of one file: those inside of its functions, which are quick, or the others."""
    path = Path("src/dpselect") / name
    source, tests = path.read_text(), Tests(path, TESTS.get(name, ALL), LEFT_OUT)
    idle = list(idle_places(source))
    chosen = [item for item in items if is_inside_function(item.mutations[0].start_pos, source) is quick]

    def attempt(run: Run) -> None:
        limit = _limit(name, *run(source, 600))
        for item in chosen:
            why = reason_at(item.mutations[0].start_pos, idle)
            result = (
                _tried(item.mutations[0], source, lambda mutated: run(mutated, limit)) if why is None else _idle(why)
            )
            database.set_result(item.job_id, result)

    if chosen and quick:
        tests.swapped(attempt)
    elif chosen:
        attempt(tests.imported)


def _idle(why: str) -> WorkResult:
    return WorkResult(worker_outcome=WorkerOutcome.SKIPPED, output=why)


def _tried(mutation: MutationSpec, source: str, run: Callable[[str], Outcome]) -> WorkResult:
    """What became of a mutant; survivors are shown unless they are known to be equivalent."""
    operator = cosmic_ray.plugins.get_operator(mutation.operator_name)(**mutation.operator_args)
    mutated = mutate_code(source, operator, mutation.occurrence)
    failed, _ = run(mutated)
    number, old, new = _difference(source, mutated)
    if not failed and reason_of(_name(mutation), old, new) is None:
        print(f"survived in {_name(mutation)}, line {number}\n- {old}\n+ {new}", flush=True)
    return WorkResult(
        worker_outcome=WorkerOutcome.NORMAL,
        test_outcome=TestOutcome.KILLED if failed else TestOutcome.SURVIVED,
        output=failed,
        diff=f"{number}\n{old}\n{new}",
    )


def _limit(name: str, failure: str, seconds: float) -> int:
    """The CPU seconds that a mutant may take: some times what the tests take without one. They must pass."""
    if failure:
        sys.exit(f"{failure} fails without a mutant of {name}")
    print(f"{name}: the tests take {seconds:.1f} CPU seconds", flush=True)
    return math.ceil(1 + 2 * seconds)


def _sample(items: list[WorkItem], count: str) -> list[WorkItem]:
    """As many mutants as asked for; the same ones each time."""
    in_order = sorted(items, key=_at_random)
    if count == "all":
        return in_order
    if count != "places":
        return in_order[: int(count)]
    places: defaultdict[tuple[object, ...], list[WorkItem]] = defaultdict(list)
    for item in in_order:
        mutation = item.mutations[0]
        places[mutation.module_path, mutation.operator_name.split("_")[0], mutation.start_pos].append(item)
    return [item for group in places.values() for item in group[:1]]


def _at_random(item: WorkItem) -> float:
    mutation = item.mutations[0]
    return random.Random(f"{mutation.module_path} {mutation.operator_name} {mutation.occurrence}").random()


def _place(item: WorkItem) -> tuple[int, object, str, int]:
    mutation = item.mutations[0]
    return _rank(_name(mutation)), mutation.start_pos, mutation.operator_name, mutation.occurrence


def _rank(name: str) -> int:
    """Files are tried in the order of TESTS; others come last."""
    return list(TESTS).index(name) if name in TESTS else len(TESTS)


def _name(mutation: MutationSpec) -> str:
    return "/".join(mutation.module_path.parts[-2:])


def _difference(source: str, mutated: str) -> tuple[int, str, str]:
    """The number of the first line that differs, that line, and what it became."""
    old, new = source.splitlines(), mutated.splitlines()
    pairs = enumerate(zip(old, new, strict=False))
    first = next((number for number, (line, other) in pairs if line != other), len(new) - 1)
    return first + 1, old[first], new[first]


def _table(database: WorkDB) -> str:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for item, result in database.completed_work_items:
        name = _name(item.mutations[0])
        if result.test_outcome is None:
            kind = "idle"
        else:
            kind = result.test_outcome.value
            if kind == "survived" and reason_of(name, *result.diff.splitlines()[1:]):
                kind = "equivalent"
        counts[name][kind] += 1
    for item in database.pending_work_items:
        counts[_name(item.mutations[0])]["not tried"] += 1
    kinds = ("idle", "killed", "equivalent", "survived", "not tried")
    lines = [("file", *kinds), *((name, *(count[kind] for kind in kinds)) for name, count in sorted(counts.items()))]
    lines.append(("all", *(sum(count[kind] for count in counts.values()) for kind in kinds)))
    return "\n".join(f"| {row[0]:<30} | " + " | ".join(f"{cell:>10}" for cell in row[1:]) + " |" for row in lines)


if __name__ == "__main__":
    main()
