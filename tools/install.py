"""Install dpselect from this clone, with what constraints/lock.txt holds for the given extras.

`python tools/install.py plot paper` installs into the Python that runs it; the Makefile does this in .venv. Every file
is compared with its hash in the lock. pip cannot do that for a clone and its dependencies in one call, so there are
two: the dependencies first, then the clone alone. Where the lock does not apply, or the index does not have one of its
versions, pip chooses the newest versions that pyproject.toml allows, and a line says so. A file with another hash stops
everything. `LOCK=no` in the environment asks for the newest versions.

`python tools/install.py --clone` installs the clone alone again: it compiles a changed kernel, and leaves the
dependencies as they are. Where the kernel cannot be compiled, a line says so, because pip is silent about it.
"""

import importlib.util
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "constraints" / "lock.txt"
SELECTION = ROOT / "src" / "dpselect" / "selection"
# The clone is built with these, in the same environment: a build of its own would fetch what no hash protects.
ALWAYS = frozenset({"base", "build"})
PACKAGE = re.compile(r"^(?P<lines>[a-z0-9][^\n]*\n(?:    --hash=\S+(?: \\)?\n)+)    # (?P<extras>.*)\n", re.MULTILINE)


def machine() -> tuple[str, str]:
    """The system and the Python that run this, as the lock names them."""
    system = f"{sys.platform}-{platform.machine().lower()}"
    if sys.platform == "linux" and platform.libc_ver()[0] != "glibc":
        system += "-without-glibc"
    name = "" if sys.implementation.name == "cpython" else sys.implementation.name + " "
    return system, f"{name}{sys.version_info[0]}.{sys.version_info[1]}"


def is_covered(lock: str, system: str, python: str) -> bool:
    """Whether the lock has a file of every package for a machine."""
    lines = re.findall(r"^# covers (\S+): (.*)$", lock, re.MULTILINE)
    return any(name == system and python in pythons.split() for name, pythons in lines)


def chosen(lock: str, extras: set[str], always: frozenset[str] = ALWAYS) -> str:
    """The lines of the lock that some extras need.

    Raises:
        SystemExit: An extra is not locked.
    """
    packages = [(found["lines"], set(found["extras"].split())) for found in PACKAGE.finditer(lock)]
    known = {extra for _, needed in packages for extra in needed}
    if not extras <= known:
        sys.exit(
            f"{', '.join(sorted(extras - known))}: not in constraints/lock.txt; use one of {', '.join(sorted(known))}"
        )
    return "".join(lines for lines, needed in packages if needed & (extras | always))


def pip(*words: str) -> bool:
    """Run pip. Return False if the index does not have a version, and end with pip's code if anything else fails."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
    done = subprocess.run(command, cwd=ROOT, check=False, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(done.stderr)
    if done.returncode and "No matching distribution found" not in done.stderr:
        sys.exit(done.returncode)
    return not done.returncode


def main(words: list[str]) -> None:
    """Install the given extras, or the clone alone."""
    if words == ["--clone"]:
        install_clone()
    else:
        install_extras(words)
    if os.environ.get("DPSELECT_KERNEL") != "no" and not is_compiled():
        advice = "It needs a C compiler and Python's headers; `python -m pip install -v -e .` shows what is missing."
        print(f"dpselect: the kernel was not compiled. Only speed is lost. {advice}", file=sys.stderr)


def is_compiled() -> bool:
    """Whether the compiled kernel is beside its source, where tools/build_kernel.py puts it."""
    return any(path.suffix in {".so", ".pyd"} for path in SELECTION.glob("_kernel*"))


def install_clone() -> None:
    """Install the clone without its dependencies, which are there; what builds it may not be, without the lock."""
    is_built_here = all(importlib.util.find_spec(name) for name in ("editables", "hatchling", "setuptools"))
    if not pip("--no-deps", *(["--no-build-isolation"] if is_built_here else []), "-e", "."):
        sys.exit(1)


def install_extras(extras: list[str]) -> None:
    """Install the clone, and what it and some extras need."""
    lock, (system, python) = LOCK.read_text("utf-8"), machine()
    asked = os.environ.get("LOCK") == "no"
    if asked or not is_covered(lock, system, python):
        why = "LOCK=no was given" if asked else f"constraints/lock.txt does not cover Python {python} on {system}"
        install_newest(why, extras)
        return
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(chosen(lock, set(extras)), "utf-8")
        is_complete = pip("--require-hashes", "--no-deps", "-r", str(requirements))
    if not is_complete:
        install_newest("the index does not have all versions of constraints/lock.txt", extras)
        return
    pip("--no-deps", "--no-build-isolation", "-e", ".")


def install_newest(why: str, extras: list[str]) -> None:
    """Install without the lock, and say why."""
    print(f"{why}: installing the newest versions that pyproject.toml allows", file=sys.stderr)
    if not pip("-e", f".[{','.join(extras)}]" if extras else "."):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
