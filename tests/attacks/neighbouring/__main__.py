"""`python -m tests.attacks.neighbouring [SECONDS] [SEED]`: look for faults, and print each with a table of few rows.

Every fortieth case is asked on Spark, if it can start. The exit code is 1 if a fault was found.
"""

import re
import secrets
import sys
import time
from collections.abc import Iterator
from random import Random

from tests import spark
from tests.attacks.neighbouring.cases import Wanted
from tests.attacks.neighbouring.check import Fault, Tally, described, search, shrunk

_SPARK_EVERY = 40


def main() -> None:
    """Search until the time is over."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else secrets.randbits(32)
    end, tally, known = time.monotonic() + seconds, Tally(), set()
    print(f"seed {seed}, {seconds:g} s")
    for fault in _turns(seed, tally):
        if fault is not None and _kind(fault) not in known:
            known.add(_kind(fault))
            print(f"\n{described(shrunk(fault, Random(seed)))}\n", flush=True)
        if tally.cases % 10 == 0:
            print(f"\r{tally}; {len(known)} kinds of faults ", end="", file=sys.stderr, flush=True)
        if time.monotonic() > end:
            break
    print(f"\n{tally}; {len(known)} kinds of faults")
    sys.exit(1 if known else 0)


def _turns(seed: int, tally: Tally) -> Iterator[Fault | None]:
    """Cases of DuckDB, and now and then one of Spark."""
    local = search(seed, Wanted(), tally)
    distant = search(seed, Wanted(engine="spark"), tally, most=1)
    while True:
        on_spark = tally.cases % _SPARK_EVERY == _SPARK_EVERY - 1 and spark.started() is not None
        for fault in distant if on_spark else local:
            yield fault
            if fault is None:
                break


def _kind(fault: Fault) -> tuple[object, ...]:
    """Faults of one kind are shown once."""
    case = fault.case
    types = [
        column.type.name
        for column in case.columns
        if fault.question.groups and column.name == fault.question.groups.column
    ]
    return re.sub(r"[0-9.e+-]+", "", fault.why), case.source.name, case.layout.alias, case.person, *types


if __name__ == "__main__":
    main()
