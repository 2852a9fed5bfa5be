"""What to install: no hint names a package that is not ours."""

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from dpselect._messages import install_command

ROOT = Path(__file__).parents[1]
TEXTS = [
    path
    for folder in ("src", "docs", "examples", "benchmarks", "tools", "fuzz", "mutation")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".md", ".toml", ".js", ".html", ".ipynb"}
] + [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "constraints/lock.txt")]
# dpselect as something that pip takes from an index; a path such as . or '.[plot]' is a clone.
FROM_AN_INDEX = re.compile(r"pip install[^\n`;&]*?[ '\"]dpselect\b")


def project() -> dict[str, list[str]]:
    extras: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    return extras


@pytest.mark.parametrize("python", ["/a b/python", "/env/bin/python3.11", ""])
def test_the_command_names_the_interpreter_and_the_packages(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Python is embedded, its path may be empty."""
    monkeypatch.setattr(sys, "executable", python)
    command = install_command("starlette", "uvicorn")
    assert shlex.split(command) == [python or "python", "-m", "pip", "install", "starlette", "uvicorn"]


def test_nobody_is_told_to_install_dpselect_from_an_index() -> None:
    assert len(TEXTS) > 200
    found = [path.relative_to(ROOT).as_posix() for path in TEXTS if FROM_AN_INDEX.search(path.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    "hint", ["pip install 'dpselect[plot]'", "pip install dpselect", "pip install -U dpselect[spark]"]
)
def test_such_a_hint_would_be_found(hint: str) -> None:
    assert FROM_AN_INDEX.search(f"needs matplotlib: {hint}")
    assert not FROM_AN_INDEX.search("python -m pip install '.[plot]'; dpselect explore")


def hinted() -> set[str]:
    """The packages that messages name."""
    calls = [
        call
        for path in (ROOT / "src").rglob("*.py")
        for call in re.findall(r"install_command\(((?:['\"][\w-]+['\"](?:, )?)+)\)", path.read_text("utf-8"))
    ]
    return {name for call in calls for name in re.findall(r"[\w-]+", call)}


def test_packages_that_messages_name_belong_to_an_extra() -> None:
    known = {re.split(r"[<>=\[]", one)[0] for packages in project().values() for one in packages}
    assert {"matplotlib", "pooch", "dp-accounting", "starlette", "uvicorn"} <= hinted() <= known
