"""Mutants that no test notices and that are right to survive, from survivors.toml, each with the reason.

An entry names a file, a line of it and what the line became. It is an error if the file does not have this mutant any
more, so an entry cannot excuse a line that has changed.
"""

import tomllib
from functools import cache
from pathlib import Path

from mutation.mutants import PACKAGE, Mutant, mutants

LIST = Path(__file__).with_name("survivors.toml")


@cache
def reasons() -> dict[tuple[str, str, str], str]:
    """The reason of each listed mutant."""
    entries = tomllib.loads(LIST.read_text("utf-8")).get("survivor", [])
    return {(entry["file"], entry["old"], new): entry["reason"] for entry in entries for new in entry["new"]}


def reason_of(mutant: Mutant) -> str | None:
    """Why a mutant that nothing noticed is right to survive; None if that is not known."""
    return reasons().get((mutant.file, mutant.old, mutant.new))


def stale() -> list[str]:
    """What is listed but is not a mutant of the code, in words."""
    files = {file for file, _, _ in reasons() if (PACKAGE / file).exists()}
    present = {(mutant.file, mutant.old, mutant.new) for file in files for mutant in mutants(file)}
    return [
        f"{LIST.name} lists a mutant that is not there any more. Remove it, or write its line as it is now:\n"
        f"  {file}\n- {old}\n+ {new}"
        for file, old, new in reasons()
        if (file, old, new) not in present
    ]
