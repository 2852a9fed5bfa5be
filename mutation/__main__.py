"""`python -m mutation [COUNT | places | all] [FILE...]`: try mutants of sampling/ and mechanisms/, or of some files there.

COUNT is the size of a random sample. `places` is a sample with two mutants of every place and kind: cosmic-ray replaces
an operator by each of ten others, and what notices one of them will mostly notice the next. Samples are the same each
time.

cosmic-ray makes the mutants and keeps what is known of them in build/mutants.sqlite; `cr-report` reads that. A second
run goes on where the first one stopped.
"""

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import cosmic_ray.plugins
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult

from mutation.equivalents import reason_of
from mutation.places import is_inside_function
from mutation.runner import Outcome, Tests
from mutation.tests import LEFT_OUT, TESTS

SESSION = Path("build/mutants.sqlite")
_CONFIGURATION = "mutation/cosmic-ray.toml"


def main() -> None:
    """Try COUNT mutants, or all, and print what survived and a table."""
    count, files = (sys.argv[1] if len(sys.argv) > 1 else "200"), sys.argv[2:]
    if not SESSION.exists():
        SESSION.parent.mkdir(exist_ok=True)
        command = [Path(sys.executable).with_name("cosmic-ray"), "init", _CONFIGURATION, SESSION]
        subprocess.run(command, check=True)
    with use_db(str(SESSION), WorkDB.Mode.open) as database:
        pending = [item for item in sorted(database.pending_work_items, key=_place) if _chosen(item, files)]
        if count == "places":
            pending = _two_of_each_place(pending)
        elif count != "all":
            pending = sorted(random.Random(1).sample(pending, min(int(count), len(pending))), key=_place)
        for name in TESTS:
            _try([item for item in pending if _name(item.mutations[0]) == name], name, database)
        print(_table(database))


def _try(items: list[WorkItem], name: str, database: WorkDB) -> None:
    """Try mutants of one file."""
    if not items:
        return
    path = Path("src/dpselect") / name
    source, tests = path.read_text(), Tests(path, TESTS[name], LEFT_OUT)
    mutants = {item.job_id: _mutated(item.mutations[0], source) for item in items}
    inside = [item for item in items if is_inside_function(item.mutations[0].start_pos, source)]

    def attempt(chosen: list[WorkItem], run: Callable[[str, int], Outcome]) -> None:
        limit = _limit(name, *run(source, 600))
        for item in chosen:
            mutated = mutants[item.job_id]
            difference = f"{path}{_difference(source, mutated)}"
            why = reason_of(name, source, mutated, item.mutations[0])
            if why is not None:
                result = WorkResult(worker_outcome=WorkerOutcome.SKIPPED, output=why, diff=difference)
            else:
                failed, _ = run(mutated, limit)
                outcome = TestOutcome.KILLED if failed else TestOutcome.SURVIVED
                result = WorkResult(worker_outcome=WorkerOutcome.NORMAL, test_outcome=outcome, output=failed, diff=difference)
                if not failed:
                    print(f"survived: {difference}", flush=True)
            database.set_result(item.job_id, result)

    tests.swapped(lambda run: attempt(inside, run))
    attempt([item for item in items if item not in inside], tests.imported)


def _limit(name: str, failure: str, seconds: float) -> int:
    """The CPU seconds that a mutant may take: some times what the tests take without one. They must pass."""
    if failure:
        sys.exit(f"{failure} fails without a mutant of {name}")
    print(f"{name}: the tests take {seconds:.1f} CPU seconds", flush=True)
    return int(3 + 3 * seconds)


def _chosen(item: WorkItem, files: list[str]) -> bool:
    return not files or _name(item.mutations[0]) in files


def _two_of_each_place(items: list[WorkItem]) -> list[WorkItem]:
    kept: Counter[tuple[object, ...]] = Counter()
    chosen = []
    for item in sorted(items, key=_at_random):
        mutation = item.mutations[0]
        place = (mutation.module_path, mutation.operator_name.split("_")[0], mutation.start_pos)
        kept[place] += 1
        if kept[place] <= 2:
            chosen.append(item)
    return sorted(chosen, key=_place)


def _at_random(item: WorkItem) -> float:
    mutation = item.mutations[0]
    return random.Random(f"{mutation.module_path} {mutation.operator_name} {mutation.occurrence}").random()


def _place(item: WorkItem) -> tuple[int, object, str, int]:
    mutation = item.mutations[0]
    return list(TESTS).index(_name(mutation)), mutation.start_pos, mutation.operator_name, mutation.occurrence


def _name(mutation: MutationSpec) -> str:
    return "/".join(mutation.module_path.parts[-2:])


def _mutated(mutation: MutationSpec, source: str) -> str:
    operator = cosmic_ray.plugins.get_operator(mutation.operator_name)(**mutation.operator_args)
    mutated = mutate_code(source, operator, mutation.occurrence)
    assert mutated is not None
    return str(mutated)


def _difference(source: str, mutated: str) -> str:
    old, new = source.splitlines(), mutated.splitlines()
    changed = [number for number, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]] or [len(new) - 1]
    first = changed[0]
    last = first if len(old) == len(new) else first + 1
    return "\n".join([f":{first + 1}", *(f"- {line}" for line in old[first : last + 1]), f"+ {new[first]}"])


def _table(database: WorkDB) -> str:
    counts: dict[str, Counter[str]] = {name: Counter() for name in TESTS}
    for item, result in database.completed_work_items:
        kind = "equivalent" if result.worker_outcome is WorkerOutcome.SKIPPED else result.test_outcome.value
        counts[_name(item.mutations[0])][kind] += 1
    for item in database.pending_work_items:
        counts[_name(item.mutations[0])]["not tried"] += 1
    kinds = ("killed", "equivalent", "survived", "not tried")
    lines = [("file", *kinds), *((name, *(count[kind] for kind in kinds)) for name, count in counts.items())]
    lines.append(("all", *(sum(count[kind] for count in counts.values()) for kind in kinds)))
    return "\n".join(f"| {row[0]:<30} | " + " | ".join(f"{cell:>10}" for cell in row[1:]) + " |" for row in lines)


if __name__ == "__main__":
    main()
