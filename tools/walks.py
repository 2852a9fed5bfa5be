"""Write the walks of CONTRIBUTING.md: the files that a call reaches, in the order of the first visit, from a trace.

    python tools/walks.py          write them
    python tools/walks.py --check  fail if the page has others

Each walk is traced in a process of its own, for the second of two calls, so that what is imported once does not count.
The random bits come from a fixed seed there: rare branches would change the list from run to run.
"""

import argparse
import ast
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

import dpselect
from dpselect.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
PAGE, PACKAGE = ROOT / "CONTRIBUTING.md", ROOT / "src" / "dpselect"


def _select(folder: str) -> Callable[[], object]:
    scores = [index % 50 for index in range(10_000)]
    del folder
    return lambda: dpselect.PermuteAndFlip(1).select(scores)


def _median(folder: str) -> Callable[[], object]:
    table, calls = Path(folder, "visits.csv"), iter(range(2))
    table.write_text("patient,cost\n" + "".join(f"{row},{row % 90}\n" for row in range(500)))

    def ask() -> object:
        ledger = Path(folder, f"{next(calls)}.ledger")
        visits = dpselect.open_table(table, person="patient", ledger=ledger, budget=1)
        return visits.median("cost", lower=0, upper=100, epsilon="0.1")

    return ask


def _plan(folder: str) -> Callable[[], object]:
    del folder
    return lambda: CliRunner().invoke(app, ["plan", "mode", "--candidates", "6", "--epsilon", "0.1"])


# What the page names, and what makes the call.
WALKS = {"select": _select, "median": _median, "plan": _plan}


def traced(name: str) -> list[Path]:
    """The files of the package that the call reaches, in the order of the first visit."""
    seen: dict[str, None] = {}

    def visit(frame: object, event: str, _: object) -> None:
        if event == "call":
            seen.setdefault(frame.f_code.co_filename)  # type: ignore[attr-defined] # a frame, which typeshed hides

    generator = random.Random(0)
    os.urandom = generator.randbytes
    with tempfile.TemporaryDirectory() as folder:
        call = WALKS[name](folder)
        call()
        sys.setprofile(visit)
        try:
            call()
        finally:
            sys.setprofile(None)
    return [Path(file) for file in seen if PACKAGE in Path(file).parents]


def listed(files: list[Path]) -> str:
    """The files as a numbered list, each with the first sentence of its docstring."""
    return "\n".join(
        f"{number}. `{file.relative_to(PACKAGE).as_posix()}`: {_summary(file)}" for number, file in enumerate(files, 1)
    )


def _summary(file: Path) -> str:
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.split("\n\n", maxsplit=1)[0].split())


def rewritten(page: str, walks: dict[str, str]) -> str:
    """The page with these walks between their comments."""
    for name, text in walks.items():
        page, found = re.subn(
            rf"(<!-- walk {name} -->\n).*?(<!-- end -->)",
            lambda match, text=text: f"{match[1]}{text}\n{match[2]}",
            page,
            flags=re.DOTALL,
        )
        if found != 1:
            raise LookupError(f"{PAGE.name} has {found} places for the walk {name!r}")
    return page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if the page has other walks")
    parser.add_argument("--trace", choices=WALKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trace:
        print(listed(traced(options.trace)))
        return 0
    walks = {
        name: subprocess.run(
            [sys.executable, __file__, "--trace", name], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in WALKS
    }
    before = PAGE.read_text(encoding="utf-8")
    after = rewritten(before, walks)
    if options.check:
        return int(before != after)
    PAGE.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
