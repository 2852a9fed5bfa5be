"""The oldest versions that are tested are the floors of pyproject.toml."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def pinned(name):
    lines = (ROOT / "constraints" / f"{name}.txt").read_text().splitlines()
    texts = [line.partition("#")[0].strip() for line in lines]
    return dict(re.fullmatch(r"(\S+)==(\S+)", text).groups() for text in texts if text)


def floors():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    for requirement in map(Requirement, wanted):
        [specifier] = requirement.specifier
        assert specifier.operator == ">="
        yield requirement.name, Version(specifier.version)


# They read the code and do not run it: `make test-oldest` leaves them alone.
READERS = {"mypy", "ruff", "scipy-stubs"}


def test_every_floor_is_tested():
    oldest = pinned("oldest")
    for name, floor in floors():
        if name not in READERS:
            tested = Version(oldest[name])
            assert tested.release[: len(floor.release)] == floor.release, name


def test_the_newest_are_not_older():
    oldest, newest = pinned("oldest"), pinned("newest")
    assert {name for name, _ in floors()} - READERS <= set(newest)
    assert all(Version(newest[name]) >= Version(oldest[name]) for name in newest if name in oldest)
