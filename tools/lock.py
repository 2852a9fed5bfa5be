"""Write constraints/lock.txt: one version and the hashes of every package that pyproject.toml asks for, in any extra.

`make lock` runs this with uv, which finds versions that fit all Pythons and systems at once. Versions of the present
lock are kept where they still fit; `make lock UPGRADE=yes` takes the newest. Only hashes of files that a covered
machine can install are written: wheels for it, or the source of a package that has no wheels. No address is written,
so pip takes the files from the index that it is configured for.
"""

import argparse
import itertools
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "constraints" / "lock.txt"
HEADER = """\
# What `make demo`, `make test` and others install: the newest tested versions, with the hashes of their files.
# `make lock` writes this file. Each package ends with the extras that need it, or with base: all need it.
"""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Extras that are left out, because no version of what they ask for has wheels for every Python.
NOT_LOCKED = {"fuzz"}
# What the newest common version must not be, because it has no wheels for a Python.
TOO_OLD = ["scikit-learn>=1.7.2; python_version >= '3.14'"]

# True wherever dpselect can be installed.
MARKER_OF_ALL = re.compile(rf"python_full_version >= '{PYTHONS[0]}'(?: and |$)")


class System(NamedTuple):
    """An operating system on a processor: its values in markers, and the platforms of wheels that it takes."""

    markers: dict[str, str]
    platforms: list[str]


def _linux(machine: str) -> System:
    # glibc 2.28 is that of Debian 10 and RHEL 8; older names are listed from new to old, as pip prefers them.
    names = [f"manylinux_2_{minor}" for minor in range(28, 4, -1)] + ["manylinux2014", "manylinux2010", "manylinux1"]
    platforms = [f"{name}_{machine}" for name in [*names, "linux"]]
    return System({"sys_platform": "linux", "os_name": "posix", "platform_machine": machine}, platforms)


def _mac(machine: str) -> System:
    platforms = list(mac_platforms((14, 0), machine))
    return System({"sys_platform": "darwin", "os_name": "posix", "platform_machine": machine}, platforms)


SYSTEMS = {
    "linux-x86_64": _linux("x86_64"),
    "linux-aarch64": _linux("aarch64"),
    "darwin-arm64": _mac("arm64"),
    "darwin-x86_64": _mac("x86_64"),
    "win32-amd64": System({"sys_platform": "win32", "os_name": "nt", "platform_machine": "AMD64"}, ["win_amd64"]),
}


def tags(python: str, system: System) -> frozenset[Tag]:
    """The tags of the wheels that a machine can install."""
    version = tuple(map(int, python.split(".")))
    interpreter = "cp" + python.replace(".", "")
    native = cpython_tags(version, [interpreter], system.platforms)
    return frozenset([*native, *compatible_tags(version, interpreter, system.platforms)])


def applies(package: dict[str, Any], python: str, system: System) -> bool:
    """Whether a package is installed on a machine."""
    names = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}
    [name] = [name for name, platform in names.items() if platform == system.markers["sys_platform"]]
    machine = system.markers | {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "platform_system": name,
    }
    return "marker" not in package or Marker(package["marker"]).evaluate(machine)


def hashes(package: dict[str, Any], wanted: frozenset[Tag]) -> set[str]:
    """The hashes of the files of a package that a machine can install."""
    wheels = package.get("wheels", [])
    files = [one for one in wheels if parse_wheel_filename(one["url"].rsplit("/", 1)[1])[3] & wanted]
    return {one["hashes"]["sha256"] for one in (files if wheels else [package["sdist"]])}


def compiled(uv: str, output: Path, *words: str) -> None:
    """Resolve what pyproject.toml asks for, for all Pythons and systems at once."""
    common = ["--universal", "--python-version", PYTHONS[0], "--fork-strategy", "fewest", "--quiet", "--no-header"]
    subprocess.run([uv, "pip", "compile", "pyproject.toml", *common, *words, "-o", str(output)], cwd=ROOT, check=True)


def names(requirements: Path) -> set[str]:
    """The packages of a file of requirements."""
    return set(re.findall(r"^([\w.-]+)==", requirements.read_text("utf-8"), re.MULTILINE))


def resolved(uv: str, upgrade: bool) -> tuple[list[dict[str, Any]], dict[str, set[str]]]:
    """The locked packages, and the extras that need each."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    locked = [extra for extra in extras if extra not in NOT_LOCKED]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        limits, versions, files = folder / "limits.txt", folder / "versions.txt", folder / "pylock.toml"
        limits.write_text("\n".join(TOO_OLD))
        if LOCK.exists() and not upgrade:
            versions.write_text(LOCK.read_text("utf-8"))  # uv prefers what the output holds already
        every = [word for extra in locked for word in ("--extra", extra)]
        compiled(uv, versions, *every, "-c", str(limits))
        compiled(uv, files, *every, "-c", str(versions))
        packages = tomllib.loads(files.read_text("utf-8"))["packages"]
        needed: dict[str, set[str]] = {package["name"]: set() for package in packages}
        for extra in ["base", *locked]:
            words = [] if extra == "base" else ["--extra", extra]
            part = folder / f"{extra}.txt"
            part.write_text(versions.read_text("utf-8"))
            compiled(uv, part, *words, "--no-annotate")
            if {Requirement(one).name for one in TOO_OLD} & names(part):
                compiled(uv, part, str(limits), *words, "--no-annotate")
            for name in names(part):
                needed[name].add(extra)
    return packages, needed


def coverage(packages: list[dict[str, Any]]) -> tuple[dict[str, list[str]], list[set[str]]]:
    """The Pythons of each system for which every package has a file, and the hashes of the files of each package."""
    kept: list[set[str]] = [set() for _ in packages]
    pythons: dict[str, list[str]] = {name: [] for name in SYSTEMS}
    for (name, system), python in itertools.product(SYSTEMS.items(), PYTHONS):
        wanted, missing = tags(python, system), []
        for number, package in enumerate(packages):
            if applies(package, python, system):
                found = hashes(package, wanted)
                kept[number] |= found
                missing += [] if found else [f"{package['name']} {package['version']}"]
        if missing:
            print(f"not covered: Python {python} on {name}, which lacks {', '.join(missing)}", file=sys.stderr)
        else:
            pythons[name].append(python)
    return pythons, kept


def lines(packages: list[dict[str, Any]], needed: dict[str, set[str]]) -> Iterator[str]:
    """The text of the lock."""
    covered, kept = coverage(packages)
    for name, pythons in covered.items():
        yield f"# covers {name}: {' '.join(pythons)}"
    for package, found in zip(packages, kept, strict=True):
        if found:
            marker = MARKER_OF_ALL.sub("", package.get("marker", ""))
            first = f"{package['name']}=={package['version']}" + (f" ; {marker}" if marker else "")
            yield " \\\n    ".join([first, *(f"--hash=sha256:{one}" for one in sorted(found))])
            extras = needed[package["name"]]
            yield f"    # {'base' if 'base' in extras else ' '.join(sorted(extras))}"


def main() -> None:
    """Write the lock."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uv", default="uv", help="the program uv")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    words = parser.parse_args()
    text = HEADER + "\n".join(lines(*resolved(words.uv, words.upgrade))) + "\n"
    LOCK.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
