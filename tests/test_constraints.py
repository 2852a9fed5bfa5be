"""The oldest versions that are tested are the floors of pyproject.toml, and the lock has all that it asks for."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Their versions fit no lock for every Python: tools/lock.py leaves them out.
NOT_LOCKED = {"fuzz"}
LOCK = (ROOT / "constraints" / "lock.txt").read_text("utf-8")


def pinned(name):
    lines = (ROOT / "constraints" / f"{name}.txt").read_text().splitlines()
    texts = [line.partition("#")[0].strip() for line in lines]
    return dict(re.fullmatch(r"(\S+)==(\S+)", text).groups() for text in texts if text)


def locked():
    """Each version of the lock: its requirement, and the extras that need it."""
    found = re.findall(r"^(\S+==[^\\\n]+) \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+    # (.+)\n", LOCK, re.M)
    return [(Requirement(text), set(extras.split())) for text, extras in found]


def missing(extra, wanted):
    """What an extra asks for and a lock does not have, in words."""
    texts = []
    for requirement in map(Requirement, wanted):
        if requirement.name == PROJECT["name"]:
            continue
        versions = [
            one
            for one, extras in locked()
            if one.name == canonicalize_name(requirement.name) and {extra, "base"} & extras
        ]
        # One of them is enough: Python 3.14 has a scikit-learn of its own, which is beyond the bound of the others.
        fits = [requirement.specifier.contains(str(one.specifier)[2:]) for one in versions]
        if not any(fits):
            texts.append(f"{extra}: {requirement}")
    return texts


def floors():
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    for requirement in map(Requirement, wanted):
        [specifier] = requirement.specifier
        assert specifier.operator == ">="
        yield requirement.name, Version(specifier.version)


# They read the code and do not run it: `make test-oldest` leaves them alone.
READERS = {"mypy", "ruff", "scipy-stubs"}


def test_every_floor_is_tested_and_the_lock_is_not_older():
    oldest = pinned("oldest")
    for name, floor in floors():
        if name not in READERS:
            tested = Version(oldest[name])
            assert tested.release[: len(floor.release)] == floor.release, name
    newest = {one.name: Version(str(one.specifier)[2:]) for one, _ in locked()}
    assert {name for name, _ in floors()} <= set(newest)
    assert all(newest[name] >= Version(oldest[name]) for name in newest if name in oldest)


def test_the_lock_has_what_the_extras_ask_for():
    """If this fails, run `make lock`."""
    asked = {"base": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    assert [gap for extra in asked.keys() - NOT_LOCKED for gap in missing(extra, asked[extra])] == []
    gaps = missing("base", ["numpy>=2.0", "numpy>=99", "no-such-package", "ruff"])
    assert gaps == ["base: numpy>=99", "base: no-such-package", "base: ruff"]


def test_the_lock_covers_the_pythons_that_the_project_names():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    covered = dict(re.findall(r"^# covers (\S+): (.*)$", LOCK, re.MULTILINE))
    assert len(named) > 3
    assert {"linux-x86_64", "darwin-arm64", "win32-amd64"} <= set(covered)
    assert all(pythons.split() == named for pythons in covered.values())


def test_every_line_of_the_lock_is_understood():
    """Each package has hashes and extras; no line names an index, an address or a path."""
    assert len(locked()) == LOCK.count("\n    # ") == len(re.findall(r"^[a-z0-9]", LOCK, re.MULTILINE)) > 100
    assert not re.search(r"://|--(?!hash=)|@|/(?!lock\.txt)", LOCK)
    names = [(one.name, str(one.marker)) for one, _ in locked()]
    assert len(names) == len(set(names))
