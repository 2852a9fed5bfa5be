"""The rows about starting: imports and commands in fresh interpreters, in seconds of the processor.

Modules are compiled once, by the reading that does not count, as an installation compiles them. That works even where
the environment says that Python must not write compiled modules.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bars import Figures, at_most_seconds, at_most_times
from benchmarks.case import Case
from benchmarks.stopwatch import Effort, Stopwatch, interleaved_medians

_IMPORT_TIMES = 1.3
_HELP_SECONDS = 0.35
_MODE_SECONDS = 1.0
_NUMPY = "import numpy"
_ROWS = 1000
_TABLE = "visits.csv"
_MODE = ("mode", _TABLE, "--column", "ward", "--candidates", "A,B,C", "--person", "patient", "--epsilon", "1")

# Without the start of the interpreter.
_TIMED = "import time; start = time.process_time(); {}; print(time.process_time() - start)"
# With it, up to the end.
_COMMAND = (
    "import atexit, sys, time; atexit.register(lambda: print(time.process_time(), file=sys.stderr));"
    "sys.argv = ['dpselect', *{!r}]; from dpselect.cli import main; main()"
)


def cases() -> Iterator[Case]:
    """Imports beside that of NumPy, and commands that do little."""
    for statement in ("import dpselect", "from dpselect import PermuteAndFlip"):
        yield Case(statement, _NUMPY, at_most_times(_IMPORT_TIMES), _importing(statement))
    yield Case("dpselect --help", "", at_most_seconds(_HELP_SECONDS), _running(("--help",)))
    yield Case("dpselect mode", "", at_most_seconds(_MODE_SECONDS), _running(_MODE), "1", f"{_ROWS:,} rows")


def _importing(statement: str) -> Callable[[Effort], Figures]:
    def figures(effort: Effort) -> Figures:
        with _fresh_interpreters() as seconds:
            codes = [_TIMED.format(each) for each in (statement, _NUMPY)]
            return Figures(*interleaved_medians([seconds(code) for code in codes], effort))

    return figures


def _running(arguments: Sequence[str]) -> Callable[[Effort], Figures]:
    def figures(effort: Effort) -> Figures:
        with _fresh_interpreters() as seconds:
            return Figures(*interleaved_medians([seconds(_COMMAND.format(arguments))], effort))

    return figures


@contextmanager
def _fresh_interpreters() -> Iterator[Callable[[str], Stopwatch]]:
    """What makes a stopwatch of a program that prints its seconds last; it runs in a folder with a small table."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, _TABLE).write_text("patient,ward\n" + "".join(f"{row},{'ABB'[row % 3]}\n" for row in range(_ROWS)))
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(folder, "compiled"))}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def stopwatch(code: str) -> Stopwatch:
            def seconds() -> float:
                command = [sys.executable, "-c", code]
                run = subprocess.run(command, capture_output=True, check=True, text=True, cwd=folder, env=environment)
                return float((run.stdout + run.stderr).split()[-1])

            return seconds

        yield stopwatch
