"""`python -m mutation [COUNT | all] [ROOM | FILE]...`: change the code in small ways, and see whether a test notices.

COUNT is the size of a sample, which is the same each time. A FILE is relative to src/dpselect, a ROOM is a folder
there. Without either, the files are those of the privacy arithmetic. The exit code is 1 if a mutant survives that
survivors.toml does not explain, or if it explains one that is noticed or gone.
"""

import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

os.environ["OPENBLAS_NUM_THREADS"] = "1"

from mutation.mutants import PACKAGE, Mutant, mutants
from mutation.runner import Outcome, Run, Tests
from mutation.survivors import reason_of, stale
from mutation.tests import ARITHMETIC, LEFT_OUT, listed_tests

_PROCESSES = 2
# What became of a mutant.
KILLED, EXPLAINED, SURVIVED, NEEDLESS = "killed", "explained", "survived", "needless"


def main() -> int:
    """Try mutants, and print what survived and how many were noticed."""
    count, places = (sys.argv[1] if len(sys.argv) > 1 else "all"), sys.argv[2:]
    gone = stale()
    if gone:
        print(*gone, sep="\n")
        return 1
    chosen = sample([mutant for file in files_of(places) for mutant in mutants(file)], count)
    by_file = {file: [mutant for mutant in chosen if mutant.file == file] for file in files_of(places)}
    with ProcessPoolExecutor(_PROCESSES, mp_context=get_context("fork"), max_tasks_per_child=None) as pool:
        found = sum(pool.map(tried, filter(None, by_file.values())), Counter[str]())
    print(", ".join(f"{found[kind]} {kind}" for kind in (KILLED, EXPLAINED, SURVIVED, NEEDLESS)))
    return 1 if found[SURVIVED] or found[NEEDLESS] else 0


def files_of(places: list[str]) -> list[str]:
    """The files that are named, or that are in the rooms that are named."""
    rooms = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    unknown = [place for place in places if place not in rooms and not (PACKAGE / place).is_file()]
    if unknown:
        sys.exit(f"there is no {unknown[0]} in {PACKAGE}: name a file of it, or one of {', '.join(rooms)}")
    found = [sorted((PACKAGE / place).glob("**/*.py")) or [PACKAGE / place] for place in places]
    return [path.relative_to(PACKAGE).as_posix() for own in found for path in own] or list(ARITHMETIC)


def sample(found: list[Mutant], count: str) -> list[Mutant]:
    """As many mutants as asked for, and the same ones each time. A sample has changes inside of functions only."""
    if count == "all":
        return found
    return sorted((mutant for mutant in found if mutant.is_inside), key=lambda mutant: mutant.order)[: int(count)]


def tried(found: list[Mutant]) -> Counter[str]:
    """Try the mutants of one file."""
    file, source = found[0].file, (PACKAGE / found[0].file).read_text("utf-8")
    tests = Tests(PACKAGE / file, listed_tests(file), LEFT_OUT)
    inside = [mutant for mutant in found if mutant.is_inside]
    outside = [mutant for mutant in found if not mutant.is_inside]

    def attempt(run: Run, own: list[Mutant]) -> str:
        limit = _limit(file, *run(source, 600))
        return json.dumps(Counter(_became(mutant, lambda text: run(text, limit)) for mutant in own))

    results = [tests.swapped(lambda run: attempt(run, inside))] if inside else []
    results += [attempt(tests.imported, outside)] if outside else []
    return sum((Counter(json.loads(result)) for result in results), Counter[str]())


def _limit(file: str, failure: str, seconds: float) -> int:
    """The CPU seconds that a mutant may take: some times what the tests take without one. They must pass."""
    if failure:
        sys.exit(f"{failure} fails without a mutant of {file}")
    print(f"{file}: the tests take {seconds:.1f} CPU seconds", flush=True)
    return math.ceil(1 + 2 * seconds)


def _became(mutant: Mutant, run: Callable[[str], Outcome]) -> str:
    """What became of a mutant; what must not be is shown."""
    failed, _ = run(mutant.source)
    reason = reason_of(mutant)
    kind = (KILLED if reason is None else NEEDLESS) if failed else (SURVIVED if reason is None else EXPLAINED)
    if kind in (SURVIVED, NEEDLESS):
        advice = "add a test, or list it in survivors.toml with a reason"
        if kind == NEEDLESS:
            advice = f"{failed} notices it: remove it from survivors.toml"
        print(f"{kind} in {mutant.file}, line {mutant.number}: {advice}\n- {mutant.old}\n+ {mutant.new}", flush=True)
    return kind


if __name__ == "__main__":
    sys.exit(main())
