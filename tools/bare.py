"""Run a command as if Java, Chromium, PostgreSQL and C compilers were not installed: `python tools/bare.py COMMAND`.

Without a command, the tests that use these parts run, and the run fails if a test fails or if a part was found after
all: each must be the reason of a skipped test. `make test-bare` does this.

The parts are hidden by the environment: PATH leads to a folder of links to everything else, and the variables that
name them are changed. This needs no rights and works wherever programs are found by PATH. The links are removed at the
end: if the command makes a virtual environment, name its Python by a path, as in `make demo PYTHON=/usr/bin/python3`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMPILER = r"([\w.-]+-)?(gcc|g\+\+|cc|c\+\+|c89|c99|clang|clang\+\+|tcc|icx)(-\w+)*"
HIDDEN = re.compile(rf"java\w*|chrom\S*|google-chrome\S*|initdb|postgres|psql|pg_\S+|{COMPILER}")
# What the tests look for, which must not be found.
SOUGHT = (
    "java",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chromedriver",
    "initdb",
    "pg_ctl",
    "cc",
    "gcc",
    "clang",
)
# What is set to hide the rest, or removed.
REMOVED = ("JAVA_HOME", "SPARK_HOME", "CC", "DPSELECT_KERNEL")

# Which tests use a hidden part: those in a file that imports what finds it. The exact tests run without the kernel in
# `make test-slow`. Of the slow tests, some that need nothing but a hidden part.
USES = re.compile(
    r"tests\.(spark|postgresql|compiler|kernels|explore\.browsing)\b|from tests import .*\b(spark|postgresql)\b"
    r"|def test_\w+\(engine\b"  # a fixture of tests/tables
)
ALWAYS, SLOW = ("tests/tools", "tests/explore"), ("tests/explore", "tests/tables/spark")
# How a skipped test names each part.
REASONS = {
    "Java": "Spark needs Java",
    "Chromium": "no Chromium and chromedriver",
    "PostgreSQL": "PostgreSQL is not installed",
    "a C compiler": "needs a C compiler",
    "the compiled kernel": "needs the compiled kernel",
}


def bare(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the hidden parts; an empty folder is filled with links to the other programs."""
    for place in environment.get("PATH", os.defpath).split(os.pathsep):
        for program in sorted(Path(place).glob("*")) if place else []:
            if not HIDDEN.fullmatch(program.name) and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    found = [name for name in SOUGHT if shutil.which(name, path=str(folder))]
    if found:
        sys.exit(f"bare: {', '.join(found)} cannot be hidden")
    kept = {name: value for name, value in environment.items() if name not in REMOVED}
    return {**kept, "PATH": str(folder), "POSTGRESQL_FOLDER": str(folder / "no-postgresql")}


def users() -> list[str]:
    """The files of tests that use a hidden part, and the tests of this machine's tools."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    using = [path.relative_to(ROOT).as_posix() for path in files if USES.search(path.read_text("utf-8"))]
    return [*ALWAYS, *(file for file in using if not file.startswith(tuple(f"{place}/" for place in ALWAYS)))]


def skipped(report: Path) -> Counter[str]:
    """How many tests were skipped for want of each part."""
    reasons = [skip.get("message", "") for skip in ET.parse(report).iter("skipped")]  # noqa: S314 - written by pytest
    return Counter(part for reason in reasons for part, words in REASONS.items() if words in reason)


def run_tests(environment: Mapping[str, str], folder: Path) -> int:
    """Run the tests, and check that every part was missed. Returns the exit code."""
    found = Counter[str]()
    # The slow ones are all skipped, so they come first: a run should end with the tests that passed.
    for name, tests in (("slow", SLOW), ("not slow", users())):
        report = folder / f"{name}.xml"
        options = ["-q", "-n", "2", "--dist", "loadgroup", "-m", name, f"--junitxml={report}", "-o", "addopts="]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        done = subprocess.run(command, cwd=ROOT, env={**environment, "DPSELECT_KERNEL": "no"}, check=False)
        if done.returncode:
            return done.returncode
        found += skipped(report)
    for part in REASONS:
        print(f"bare: without {part}, {found[part]} tests were skipped")
    missing = [part for part in REASONS if not found[part]]
    if missing:
        print(f"bare: {', '.join(missing)} was not missed by any test. Hide it in tools/bare.py", file=sys.stderr)
    return 1 if missing else 0


def main() -> int:
    """Run the command, or the tests."""
    with tempfile.TemporaryDirectory(prefix="dpselect-bare-") as name:
        links = Path(name, "bin")
        links.mkdir()
        environment = bare(links, os.environ)
        if sys.argv[1:]:
            return subprocess.run(sys.argv[1:], env=environment, check=False).returncode
        return run_tests(environment, Path(name))


if __name__ == "__main__":
    sys.exit(main())
