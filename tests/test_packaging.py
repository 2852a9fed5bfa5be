"""What is written about the package in several files is the same in all: versions, dependencies, Pythons, commands."""

import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from dpselect import __version__

yaml = pytest.importorskip("yaml", reason="needs the extra docs")
ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
# What conda calls a package of PyPI by another name.
OF_CONDA = {"duckdb": "python-duckdb"}


def read(path):
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def targets():
    return set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))


def as_conda(requirement):
    one = Requirement(requirement)
    return f"{OF_CONDA.get(one.name, one.name)} {one.specifier}"


def test_one_version():
    assert read("CITATION.cff")["version"] == __version__
    assert read("conda/recipe.yaml")["context"]["version"] == __version__
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] in {__version__, "Unreleased"}


def test_one_author_and_licence():
    citation, recipe = read("CITATION.cff"), read("conda/recipe.yaml")
    assert citation["authors"] == PROJECT["authors"]
    assert citation["license"] == recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]


def test_pythons():
    lowest = PYTHONS[0]
    assert PROJECT["requires-python"] == f">={lowest}"
    assert SETTINGS["tool"]["ruff"]["target-version"] == "py" + lowest.replace(".", "")
    assert read("conda/recipe.yaml")["context"]["python_min"] == lowest
    assert read(".github/workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == PYTHONS


def test_the_recipe_asks_for_what_the_project_asks_for():
    recipe = read("conda/recipe.yaml")
    _, *wanted = recipe["requirements"]["run"]
    assert sorted(wanted) == sorted(map(as_conda, PROJECT["dependencies"]))
    assert recipe["requirements"]["host"][2:] == [as_conda(one) for one in SETTINGS["build-system"]["requires"]]
    [entry] = recipe["build"]["python"]["entry_points"]
    assert dict([entry.split(" = ")]) == PROJECT["scripts"]


def test_what_builds_the_package_is_locked():
    assert set(SETTINGS["build-system"]["requires"]) <= set(PROJECT["optional-dependencies"]["build"])


def test_the_workflow_runs_what_there_is():
    jobs = read(".github/workflows/test.yml")["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    words = " ".join(commands).replace(
        "${{ matrix.target }}", " ".join(jobs["complete"]["strategy"]["matrix"]["target"])
    )
    assert {"make", "test-slow", "test-oldest", "test-newest", "package"} <= set(words.split())
    assert set(jobs["complete"]["strategy"]["matrix"]["target"]) | {"test-newest"} <= targets()
    assert all((ROOT / word).exists() for word in words.split() if word.startswith("tools/"))
    [extras] = [command.split()[2:] for command in commands if "tools/install.py" in command]
    assert f"$(INSTALL) {' '.join(extras)}\n" in MAKEFILE
    [tests] = [command for command in commands if "pytest" in command]
    assert tests.replace("python", "$(BIN)/python", 1) in MAKEFILE


def test_hooks_before_a_commit_are_commands_of_make_test():
    [local] = read(".pre-commit-config.yaml")["repos"]
    entries = [hook["entry"].replace(".venv/bin", "$(BIN)") for hook in local["hooks"]]
    checks = re.search(r"^test: \S+\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)[1].split("\n\t")
    assert entries[:-1] == [check.strip() for check in checks][:-1]
    assert all((ROOT / word).exists() for word in entries[-1].split() if word.startswith("tests/"))


def test_every_target_is_explained():
    """`make help` has a line for each, and none of them is mistaken for a file."""
    [phony] = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert set(phony.split()) == targets()
    explained = set(re.findall(r'@echo "make ([\w-]+) ', MAKEFILE))
    assert targets() - explained == {"help", "clean", "listed-mutants"}


def readme_of_an_index(repository):
    pytest.importorskip("hatchling", reason="needs the extra build")
    spec = importlib.util.spec_from_file_location("index_readme", ROOT / "tools" / "index_readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.shown_on_an_index((ROOT / "README.md").read_text("utf-8"), repository, "9.9")


def relative_links(text):
    return re.findall(r"\]\((?!https?://)[^)]*\)", text)


def test_the_readme_of_an_index_has_no_relative_links():
    assert len(relative_links((ROOT / "README.md").read_text("utf-8"))) > 30
    plain = readme_of_an_index(None)
    assert relative_links(plain) == []
    assert "* Start: Ten minutes · Recipes · " in plain
    assert "](https://arxiv.org" in plain
    linked = readme_of_an_index("https://forge.example/dpselect/")
    assert relative_links(linked) == []
    assert "[Ten minutes](https://forge.example/dpselect/blob/v9.9/docs/tutorial.md)" in linked
    assert "](https://forge.example/dpselect/raw/v9.9/docs/pictures/choice.svg)" in linked


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_what_an_index_shows(tmp_path):
    """And it is the same, byte for byte, each time."""
    pytest.importorskip("hatchling", reason="needs the extra build")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    builds = []
    for _ in range(2):
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        [wheel] = tmp_path.glob("*.whl")
        builds.append(wheel.read_bytes())
    assert builds[0] == builds[1]
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [archive.read(name).decode() for name in names if name.endswith("/METADATA")]
    folders = {name.split("/")[0] for name in names}
    assert folders == {"dpselect", f"dpselect-{__version__}.dist-info"}
    sources = [path for path in (ROOT / "src" / "dpselect").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert {path.relative_to(ROOT / "src").as_posix() for path in sources} <= set(names)
    fields = HeaderParser().parsestr(metadata)
    assert (fields["Version"], fields["License-Expression"]) == (__version__, "Apache-2.0")
    assert fields["Description-Content-Type"] == "text/markdown"
    assert relative_links(fields.get_payload()) == []
