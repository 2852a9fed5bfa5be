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
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import cosmic_ray.plugins
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

from mutation.equivalents import reason_of
from mutation.places import idle_places, is_inside_function, reason_at
from mutation.runner import Outcome, Run, Tests
from mutation.session import SESSION, Mutant, mutants, table
from mutation.tests import ALL, LEFT_OUT, TESTS


def main() -> None:
    """Try COUNT mutants, or all, and print what survived and a table."""
    count, files = (sys.argv[1] if len(sys.argv) > 1 else "200"), sys.argv[2:]
    chosen = _sample([mutant for mutant in mutants() if not files or mutant.file in files], count)
    left = sorted((mutant for mutant in chosen if mutant.outcome is None), key=lambda mutant: mutant.place)
    with use_db(str(SESSION), WorkDB.Mode.open) as database:
        for quick in (True, False):
            for file in sorted({mutant.file for mutant in left}, key=_rank):
                _try([mutant for mutant in left if mutant.file == file], file, database, quick)
    print(table())


def _sample(found: list[Mutant], count: str) -> list[Mutant]:
    """As many mutants as asked for; the same ones each time."""
    in_order = sorted(found, key=lambda mutant: random.Random(str(mutant.place)).random())
    if count == "all":
        return in_order
    if count != "places":
        return in_order[: int(count)]
    places: defaultdict[tuple[object, ...], list[Mutant]] = defaultdict(list)
    for mutant in in_order:
        places[mutant.file, mutant.operator.split("_")[0], mutant.start].append(mutant)
    return [group[0] for group in places.values()]


def _rank(file: str) -> int:
    """Files are tried in the order of TESTS; others come last."""
    return list(TESTS).index(file) if file in TESTS else len(TESTS)


def _try(found: list[Mutant], file: str, database: WorkDB, quick: bool) -> None:
    """Try mutants of one file: those inside its functions, which are quick, or the others."""
    path = Path("src/dpselect") / file
    source, tests = path.read_text(), Tests(path, TESTS.get(file, ALL), LEFT_OUT)
    idle = list(idle_places(source))
    chosen = [mutant for mutant in found if is_inside_function(mutant.start, source) is quick]

    def attempt(run: Run) -> None:
        limit = _limit(file, *run(source, 600))
        for mutant in chosen:
            why = reason_at(mutant.start, idle)
            result = _idle(why) if why else _tried(mutant, source, lambda mutated: run(mutated, limit))
            database.set_result(mutant.job, result)

    if chosen and quick:
        tests.swapped(attempt)
    elif chosen:
        attempt(tests.imported)


def _limit(file: str, failure: str, seconds: float) -> int:
    """The CPU seconds that a mutant may take: some times what the tests take without one. They must pass."""
    if failure:
        sys.exit(f"{failure} fails without a mutant of {file}")
    print(f"{file}: the tests take {seconds:.1f} CPU seconds", flush=True)
    return math.ceil(1 + 2 * seconds)


def _idle(why: str) -> WorkResult:
    return WorkResult(worker_outcome=WorkerOutcome.SKIPPED, output=why)


def _tried(mutant: Mutant, source: str, run: Callable[[str], Outcome]) -> WorkResult:
    """What became of a mutant; survivors are shown unless they are known to be equivalent."""
    mutated = mutate_code(source, cosmic_ray.plugins.get_operator(mutant.operator)(), mutant.occurrence)
    failed, _ = run(mutated)
    number, old, new = _difference(source, mutated)
    if not failed and reason_of(mutant.file, old, new) is None:
        print(f"survived in {mutant.file}, line {number}\n- {old}\n+ {new}", flush=True)
    return WorkResult(
        worker_outcome=WorkerOutcome.NORMAL,
        test_outcome=TestOutcome.KILLED if failed else TestOutcome.SURVIVED,
        output=failed,
        diff=f"{number}\n{old}\n{new}",
    )


def _difference(source: str, mutated: str) -> tuple[int, str, str]:
    """The number of the first line that differs, that line, and what it became."""
    old, new = source.splitlines(), mutated.splitlines()
    pairs = enumerate(zip(old, new, strict=False))
    first = next((number for number, (line, other) in pairs if line != other), len(new) - 1)
    return first + 1, old[first], new[first]


if __name__ == "__main__":
    main()
