"""What is written about the package in several files is the same in all: versions, dependencies, Pythons, commands."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from dpselect import __version__
from tests.compiler import needs_compiler

yaml = pytest.importorskip("yaml", reason="needs the extra docs")
ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
# What conda calls a package of PyPI by another name.
OF_CONDA = {"duckdb": "python-duckdb"}


def read(path):
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def as_conda(requirement):
    one = Requirement(requirement)
    return f"{OF_CONDA.get(one.name, one.name)} {one.specifier}"


def test_one_version_author_and_licence_and_the_same_pythons():
    citation, recipe = read("CITATION.cff"), read("conda/recipe.yaml")
    assert citation["version"] == recipe["context"]["version"] == __version__
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] in {__version__, "Unreleased"}
    assert citation["authors"] == PROJECT["authors"]
    assert citation["license"] == recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    lowest = PYTHONS[0]
    assert PROJECT["requires-python"] == f">={lowest}"
    assert SETTINGS["tool"]["ruff"]["target-version"] == "py" + lowest.replace(".", "")
    assert recipe["context"]["python_min"] == lowest
    assert read(".github/workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == PYTHONS


def test_the_recipe_asks_for_what_the_project_asks_for():
    recipe = read("conda/recipe.yaml")
    _, *wanted = recipe["requirements"]["run"]
    assert sorted(wanted) == sorted(map(as_conda, PROJECT["dependencies"]))
    assert recipe["requirements"]["host"][2:] == [as_conda(one) for one in SETTINGS["build-system"]["requires"]]
    assert (recipe["build"]["noarch"], recipe["build"]["script"]["env"]) == ("python", {"DPSELECT_KERNEL": "no"})
    [entry] = recipe["build"]["python"]["entry_points"]
    assert dict([entry.split(" = ")]) == PROJECT["scripts"]
    assert set(SETTINGS["build-system"]["requires"]) <= set(PROJECT["optional-dependencies"]["build"])


def test_the_workflow_compiles_for_the_oldest_python():
    """The wheels of the others are the same: they use its stable ABI."""
    pytest.importorskip("hatchling", reason="needs the extra build")
    oldest = "cp" + PYTHONS[0].replace(".", "")
    names = runpy.run_path(str(ROOT / "tools" / "build_kernel.py"))
    version = int(names["LIMITED_API"], 16)
    assert (names["PYTHON"], f"{version >> 24}.{version >> 16 & 255}") == (oldest, PYTHONS[0])
    settings = SETTINGS["tool"]["cibuildwheel"]
    assert (settings["build"], settings["environment"]) == (f"{oldest}-*", {"DPSELECT_KERNEL": "yes"})
    steps = read(".github/workflows/wheels.yml")["jobs"]["wheels"]["steps"]
    assert any("-m cibuildwheel " in step.get("run", "") for step in steps)


def readme_of_an_index(repository):
    pytest.importorskip("hatchling", reason="needs the extra build")
    tool = runpy.run_path(str(ROOT / "tools" / "index_readme.py"))
    return tool["shown_on_an_index"]((ROOT / "README.md").read_text("utf-8"), repository, "9.9")


def relative_links(text):
    return re.findall(r"\]\((?!https?://)[^)]*\)", text)


def test_the_readme_of_an_index_has_no_relative_links():
    assert relative_links((ROOT / "README.md").read_text("utf-8"))
    plain = readme_of_an_index(None)
    assert relative_links(plain) == []
    assert "* Start: Ten minutes · Recipes · " in plain
    assert "](https://arxiv.org" in plain
    linked = readme_of_an_index("https://forge.example/dpselect/")
    assert relative_links(linked) == []
    assert "[Ten minutes](https://forge.example/dpselect/blob/v9.9/docs/tutorial.md)" in linked
    assert "](https://forge.example/dpselect/raw/v9.9/docs/pictures/choice.svg)" in linked


def built(folder, kernel, *targets):
    """Distributions of this clone, as DPSELECT_KERNEL says; what an editable install has compiled may lie around."""
    pytest.importorskip("hatchling", reason="needs the extra build")
    words = [word for target in targets for word in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", *words, "-d", str(folder)]
    environment = os.environ | {"DPSELECT_KERNEL": kernel}
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=environment)
    return folder


def compiled(names):
    return [name for name in names if name.endswith((".so", ".pyd"))]


def sources():
    """The files of the package that are not made from others."""
    files = [path for path in (ROOT / "src" / "dpselect").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    names = {path.relative_to(ROOT / "src").as_posix() for path in files}
    return names - set(compiled(names))


def wheel_of(folder, kernel):
    """A wheel and the names in it; it is the same, byte for byte, each time."""
    builds = []
    for _ in range(2):
        [wheel] = built(folder, kernel, "wheel").glob("*.whl")
        builds.append(wheel.read_bytes())
    assert builds[0] == builds[1]
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [archive.read(name).decode() for name in names if name.endswith("/METADATA")]
    assert sources() <= set(names)
    return wheel.name, names, metadata


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_what_an_index_shows(tmp_path):
    """Without the kernel it is for every system."""
    wheel, names, metadata = wheel_of(tmp_path, "no")
    assert wheel == f"dpselect-{__version__}-py3-none-any.whl"
    assert {name.split("/")[0] for name in names} == {"dpselect", f"dpselect-{__version__}.dist-info"}
    assert compiled(names) == []
    fields = HeaderParser().parsestr(metadata)
    assert (fields["Version"], fields["License-Expression"]) == (__version__, "Apache-2.0")
    assert fields["Description-Content-Type"] == "text/markdown"
    assert relative_links(fields.get_payload()) == []


@pytest.mark.slow
@needs_compiler
def test_a_wheel_with_the_kernel_holds_one_module_more(tmp_path):
    """It fits every CPython that the project names."""
    wheel, names, _ = wheel_of(tmp_path, "yes")
    assert wheel.startswith(f"dpselect-{__version__}-cp{PYTHONS[0].replace('.', '')}-abi3-")
    [module] = compiled(names)
    assert module.startswith("dpselect/selection/_kernel.")


@pytest.mark.slow
def test_the_source_distribution_holds_what_compiles_the_kernel(tmp_path):
    [source] = built(tmp_path, "", "sdist").glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in sources()} | {"tools/build_kernel.py", "tools/index_readme.py"} <= names
    assert "src/dpselect/selection/_kernel.c" in names
    assert compiled(names) == []


@pytest.mark.slow
@pytest.mark.parametrize("editable", [True, False])
@pytest.mark.parametrize("compiler", [pytest.param("", marks=needs_compiler), "/no/such/compiler"])
def test_pip_installs_with_and_without_a_compiler(tmp_path, editable, compiler):
    """From a copy of the clone, with pip's defaults but for the index: what builds the package is already here."""
    pytest.importorskip("hatchling", reason="needs the extra build")
    clone = tmp_path / "clone"
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    shutil.copytree(ROOT / "src", clone / "src", ignore=ignored)
    shutil.copytree(ROOT / "tools", clone / "tools", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index"]
    place = ["--target", str(tmp_path / "installed"), *(["--editable"] if editable else []), str(clone)]
    environment = {name: value for name, value in os.environ.items() if name not in {"CC", "DPSELECT_KERNEL"}}
    environment |= {"CC": compiler} if compiler else {}
    subprocess.run([*command, *place], check=True, capture_output=True, env=environment)
    package = (clone / "src" if editable else tmp_path / "installed") / "dpselect"
    assert len(compiled(path.name for path in package.rglob("*"))) == (0 if compiler else 1)
    environment["PYTHONPATH"] = str(package.parent)
    asked = "import dpselect; print(dpselect.PermuteAndFlip(1).select([0, 10**6]), dpselect.__file__)"
    said = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True, env=environment)
    assert said.stdout.split() == ["1", str(package / "__init__.py")]
