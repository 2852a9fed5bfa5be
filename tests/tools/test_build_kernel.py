"""The hook that compiles the kernel: what it does in a small project, with a compiler and without."""

import os
import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.compiler import needs_compiler

pytest.importorskip("hatchling", reason="needs the extra build")
ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "build_kernel.py"
PROJECT = f"""\
[build-system]
requires = ["hatchling", "setuptools"]
build-backend = "hatchling.build"
[project]
name = "dpselect"
version = "1"
requires-python = ">=3.11"
[tool.hatch.build]
exclude = ["*.so", "*.pyd"]
[tool.hatch.build.targets.wheel]
packages = ["src/dpselect"]
[tool.hatch.build.targets.wheel.hooks.custom]
path = {str(SCRIPT)!r}
"""
SOURCE = """\
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernel", "ANSWER", 0, NULL, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&module); }
"""
EDITABLE = "import sys; from hatchling.build import build_editable; build_editable(sys.argv[1])"
LOST = "Only speed is lost."


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose kernel tells an answer in its docstring; no setting of the tests' own environment counts."""
    folder = tmp_path / "src" / "dpselect" / "selection"
    folder.mkdir(parents=True)
    for package in (folder.parent, folder):
        (package / "__init__.py").touch()
    (folder / "_kernel.c").write_text(SOURCE)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    monkeypatch.delenv("DPSELECT_KERNEL", raising=False)
    return tmp_path


def build(project, folder, *words):
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *(words or ("-t", "wheel"))]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def edit(project):
    """Install as an editable project, as far as this concerns its folder."""
    (project / "out").mkdir(exist_ok=True)
    command = [sys.executable, "-c", EDITABLE, str(project / "out")]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    with zipfile.ZipFile(*(project / "out").glob("*.whl")) as archive:
        assert not any("_kernel" in name for name in archive.namelist())
    return done


def modules(project):
    """What is compiled beside the source."""
    return [path for path in (project / "src" / "dpselect" / "selection").iterdir() if path.suffix in {".so", ".pyd"}]


def told(folder):
    """What the compiled kernel of a folder tells, in a process of its own."""
    command = [sys.executable, "-c", "from dpselect.selection import _kernel; print(_kernel.__doc__)"]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def is_pure(wheel):
    """Whether a wheel works everywhere; one that does not has one fresh module, and says so."""
    with zipfile.ZipFile(wheel) as archive:
        compiled = [name for name in archive.namelist() if name.endswith((".so", ".pyd"))]
        [notes] = [archive.read(name).decode() for name in archive.namelist() if name.endswith("/WHEEL")]
    is_python = wheel.name == "dpselect-1-py3-none-any.whl"
    assert is_python or wheel.name.startswith("dpselect-1-cp311-abi3-")
    assert f"Root-Is-Purelib: {str(is_python).lower()}\nTag: {wheel.name[11:-4]}\n" in notes
    assert len(compiled) == (0 if is_python else 1)
    return is_python


@needs_compiler
def test_a_compiler_makes_a_wheel_for_every_python_of_this_system(project, tmp_path):
    assert LOST not in build(project, project / "dist").stderr
    [wheel] = (project / "dist").glob("*.whl")
    assert not is_pure(wheel)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")  # noqa: S202 -- we made it
    assert told(tmp_path / "installed") == "ANSWER"
    assert modules(project) == []


@needs_compiler
def test_an_editable_install_compiles_beside_the_source_each_time(project):
    for answer in ("first", "second"):
        (project / "src/dpselect/selection/_kernel.c").write_text(SOURCE.replace("ANSWER", answer))
        assert LOST not in edit(project).stderr
        assert told(project / "src") == answer
    assert len(modules(project)) == 1


@needs_compiler
def test_an_older_module_is_never_taken(project, monkeypatch):
    """Neither into a distribution, nor by Python after an editable install without a compiler."""
    edit(project)
    [older] = modules(project)
    older.write_bytes(b"stale")
    done = build(project, project / "both", "-t", "sdist", "-t", "wheel")
    assert done.returncode == 0
    [wheel], [source] = (project / "both").glob("*.whl"), (project / "both").glob("*.tar.gz")
    assert not is_pure(wheel)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(f"dpselect/selection/{older.name}") != b"stale"
    with tarfile.open(source) as archive:
        assert {Path(name).name for name in archive.getnames() if "_kernel" in name} == {"_kernel.c"}
    monkeypatch.setenv("DPSELECT_KERNEL", "no")
    build(project, project / "pure")
    assert is_pure(*(project / "pure").glob("*.whl"))
    edit(project)
    assert modules(project) == []


@pytest.mark.parametrize(
    ("variable", "value"), [("CC", "/no/such/compiler"), ("CC", sys.executable + " -c 1/0"), ("DPSELECT_KERNEL", "no")]
)
def test_without_a_compiler_only_speed_is_lost(project, monkeypatch, variable, value):
    if os.name == "nt" and variable == "CC":
        pytest.skip("CC does not name the compiler of Windows")
    monkeypatch.setenv(variable, value)
    done = build(project, project / "dist")
    assert done.returncode == 0
    [line] = [line for line in done.stderr.splitlines() if line.startswith("dpselect: the kernel was not compiled: ")]
    assert line.endswith(LOST)
    assert len(line) < 200
    assert is_pure(*(project / "dist").glob("*.whl"))


@pytest.mark.parametrize(
    ("word", "message"),
    [("yes", "DPSELECT_KERNEL=yes makes this an error"), ("maybe", "DPSELECT_KERNEL is 'maybe'; use yes or no")],
)
def test_the_kernel_can_be_demanded(project, monkeypatch, word, message):
    monkeypatch.setenv("DPSELECT_KERNEL", word)
    (project / "src/dpselect/selection/_kernel.c").unlink()
    done = build(project, project / "dist")
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((project / "dist").glob("*.whl"))


def test_other_pythons_do_without(monkeypatch):
    """PyPy, and CPython without its lock, have another ABI."""
    obstacle = runpy.run_path(str(SCRIPT))["obstacle"]
    monkeypatch.setattr("sysconfig.get_config_var", {"Py_GIL_DISABLED": 1}.get)
    assert "free-threaded" in obstacle()
    monkeypatch.setattr("sysconfig.get_config_var", {"Py_GIL_DISABLED": 0}.get)
    monkeypatch.setattr(sys.implementation, "name", "pypy")
    assert obstacle().startswith("pypy ")
    monkeypatch.setattr(sys.implementation, "name", "cpython")
    assert obstacle() == ""
