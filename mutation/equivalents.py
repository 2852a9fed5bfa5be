"""Survivors that are right: mutants that do what the code does, each with the reason, from equivalents.toml.

`python -m mutation.equivalents` fails if the list has lines that are not in the code. `make mutants` runs it first.
"""

import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_LIST = Path(__file__).with_name("equivalents.toml")


def reason_of(file: str, old: str, new: str) -> str | None:
    """Why a mutant that nothing killed is equivalent; None if that is not known.

    An entry names the line, and the mutants of it, or none if its reason holds for all that survive.
    """
    for entry in _entries():
        is_here = entry["file"] == file and old.strip() in entry["lines"]
        if is_here and ("mutants" not in entry or new.strip() in entry["mutants"]):
            return str(entry["reason"])
    return None


def stale() -> list[str]:
    """Lines that are listed but no longer in the code."""
    found = []
    for entry in _entries():
        path = Path("src/dpselect") / entry["file"]
        code = {line.strip() for line in path.read_text().splitlines()} if path.exists() else set()
        found += [f"{entry['file']}: {line}" for line in entry["lines"] if line not in code]
    return found


@cache
def _entries() -> list[dict[str, Any]]:
    return list(tomllib.loads(_LIST.read_text())["equivalent"])


def main() -> None:
    """Print the lines that are gone, and fail if there are any."""
    gone = stale()
    for line in gone:
        print(f"not in the code: {line}")
    if gone:
        sys.exit(f"{_LIST.name} lists {len(gone)} lines that changed: update or remove them, and run this again")


if __name__ == "__main__":
    main()
