"""The gate of a redesign: plant one fault at a time in a copy of the sources, and see if `tests/behaviour` notices.

`python -m mutation.faults [NUMBER...]` (or `make faults`) runs the fast tests of tests/behaviour on each, stops at the
first that fails, and prints which one that was. The exit code is 1 if a fault is not noticed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = "tests/behaviour"
LONGEST = 900  # seconds for one fault
_COPIED = ("src", "tests", "tools", "pyproject.toml", "README.md", "LICENSE")
_COMPILE = """
import pathlib, shutil, sys
sys.path.insert(0, "tools")
from build_kernel import compiled
source = pathlib.Path(sys.argv[1])
shutil.copy(compiled(source, pathlib.Path("built")), source.parent)
"""
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """A fault: in `file`, every `old` becomes `new`."""

    number: str
    what: str
    file: str
    old: str
    new: str
    first: str  # the file of tests that runs before the others


def read_faults() -> list[Fault]:
    """All faults."""
    return [Fault(**entry) for entry in tomllib.loads((ROOT / "mutation/faults.toml").read_text())["fault"]]


def planted(fault: Fault) -> str:
    """The source with the fault in it."""
    source = (ROOT / fault.file).read_text()
    if fault.old not in source:
        raise ValueError(f"fault {fault.number}: its old text is not in {fault.file}. Bring the fault along")
    return source.replace(fault.old, fault.new)


def plant(fault: Fault, folder: Path) -> None:
    """Copy the tree, and plant the fault there; a fault of the kernel is compiled."""
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / name)
    path = folder / fault.file
    path.write_text(planted(fault))
    if path.suffix == ".c":
        command = [sys.executable, "-c", _COMPILE, fault.file]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603 - the command is fixed


def caught_by(folder: Path, first: str) -> str | None:
    """The first test that fails on the copy; None if all pass."""
    own = f"{TESTS}/{first}"
    return _failed(folder, [own]) or _failed(folder, [TESTS, f"--ignore={own}"])


def _failed(folder: Path, tests: list[str]) -> str | None:
    environment = {**os.environ, "PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    try:
        done = subprocess.run(  # noqa: S603 - the command is fixed
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return "the time ran out"
    if done.returncode == 0:
        return None
    found = _FAILED.search(done.stdout)
    return found[1].removeprefix(f"{TESTS}/") if found else f"pytest ended with code {done.returncode}"


def main() -> int:
    """Plant the faults that are named, or all, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", metavar="NUMBER", help="faults to plant; all if omitted")
    wanted = parser.parse_args().numbers
    faults = read_faults()
    unknown = set(wanted) - {fault.number for fault in faults}
    if unknown:
        parser.error(f"there is no fault {', '.join(sorted(unknown))}")
    missed = 0
    print(f"| {'#':3} | {'fault':66} | {'caught by':80} | {'s':>4} |\n|-----|{'-' * 68}|{'-' * 82}|-----:|")
    for fault in faults:
        if wanted and fault.number not in wanted:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as name:
            plant(fault, Path(name))
            found = caught_by(Path(name), fault.first)
        missed += found is None
        print(f"| {fault.number:3} | {fault.what:66} | {found or 'NOT CAUGHT':80} | {time.monotonic() - start:4.0f} |")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
