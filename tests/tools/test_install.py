"""The script that installs the clone: by the lock, or with a line that says why not."""

import re
import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "install.py"
LOCK = """\
# covers linux-x86_64: 3.11 3.12
one==1.0 \\
    --hash=sha256:11
    # base plot
two==2.0 ; sys_platform == 'win32' \\
    --hash=sha256:22 \\
    --hash=sha256:23
    # plot
three==3.0 \\
    --hash=sha256:33
    # build
four==4.0 \\
    --hash=sha256:44
    # dev
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """The script with a small lock, on a covered machine; what it would have pip do is noted in place of pip."""
    names = runpy.run_path(str(SCRIPT))
    shared = names["main"].__globals__
    calls, missing = [], []

    def note(*words):
        texts = [Path(word).read_text() for word in words if word.endswith("requirements.txt")]
        calls.append([word for word in words if not word.endswith("requirements.txt")] + texts)
        return not (missing and "--require-hashes" in words)

    (tmp_path / "lock.txt").write_text(LOCK)
    monkeypatch.setitem(shared, "LOCK", tmp_path / "lock.txt")
    monkeypatch.setitem(shared, "pip", note)
    monkeypatch.setitem(shared, "machine", lambda: ("linux-x86_64", "3.12"))
    monkeypatch.delenv("LOCK", raising=False)
    shared["calls"], shared["missing"] = calls, missing
    return shared


def test_dependencies_come_with_hashes_and_the_clone_alone(install):
    install["main"](["plot"])
    dependencies, clone = install["calls"]
    assert dependencies[:-1] == ["--require-hashes", "--no-deps", "-r"]
    assert re.findall(r"^\w+", dependencies[-1], re.MULTILINE) == ["one", "two", "three"]
    assert dependencies[-1].count("--hash") == 4
    assert clone == ["--no-deps", "--no-build-isolation", "-e", "."]


@pytest.mark.parametrize("is_built_here", [True, False])
def test_the_clone_alone(install, monkeypatch, is_built_here):
    """Without the lock, what builds the package is not in the environment."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: is_built_here or name != "hatchling")
    install["main"](["--clone"])
    assert install["calls"] == [["--no-deps", *(["--no-build-isolation"] if is_built_here else []), "-e", "."]]


@pytest.mark.parametrize(
    ("file", "word", "is_told"), [(None, "", True), ("_kernel.abi3.so", "", False), (None, "no", False)]
)
def test_a_kernel_that_was_not_compiled_is_told(install, tmp_path, monkeypatch, capsys, file, word, is_told):
    """Only then, because pip shows what a build says only if it fails."""
    (tmp_path / "_kernel.c").touch()
    if file:
        (tmp_path / file).touch()
    monkeypatch.setitem(install, "SELECTION", tmp_path)
    monkeypatch.setenv("DPSELECT_KERNEL", word)
    install["main"](["plot"])
    assert ("the kernel was not compiled. Only speed is lost." in capsys.readouterr().err) == is_told


MACHINE = ("linux-x86_64", "3.12")
UNCOVERED = "does not cover Python {1} on {0}"


@pytest.mark.parametrize(
    ("lock", "machine", "missing", "told"),
    [
        ("no", MACHINE, False, "LOCK=no was given: installing the newest"),
        *[("", one, False, UNCOVERED.format(*one)) for one in (("linux-x86_64", "3.19"), ("linux-riscv64", "3.12"))],
        ("", ("linux-x86_64", "pypy 3.12"), False, "does not cover Python pypy 3.12"),
        ("", MACHINE, True, "the index does not have all versions of constraints/lock.txt"),
    ],
)
def test_without_the_lock_pip_takes_the_newest_and_it_is_told(
    install, monkeypatch, capsys, lock, machine, missing, told
):
    if lock:
        monkeypatch.setenv("LOCK", lock)
    monkeypatch.setitem(install, "machine", lambda: machine)
    install["missing"].extend(["one"] * missing)
    install["main"](["plot", "dev"])
    assert install["calls"][missing:] == [["-e", ".[plot,dev]"]]
    assert told in capsys.readouterr().err


def test_an_extra_that_is_not_locked_is_refused(install):
    with pytest.raises(SystemExit, match=r"^flot: not in constraints/lock\.txt; use one of base, build, dev, plot$"):
        install["main"](["flot"])
    assert install["calls"] == []


def test_the_machine_that_runs_this_is_named_as_in_the_lock():
    system, python = runpy.run_path(str(SCRIPT))["machine"]()
    assert system.startswith(f"{sys.platform}-")
    assert python.endswith(f"{sys.version_info[0]}.{sys.version_info[1]}")


def test_a_wrong_hash_stops_everything(tmp_path):
    """There is no second try without the lock."""
    wheel = tmp_path / "small-1-py3-none-any.whl"
    wheel.write_bytes(b"not what was locked")
    (tmp_path / "requirements.txt").write_text(f"small @ {wheel.as_uri()} --hash=sha256:{'0' * 64}\n")
    pip = runpy.run_path(str(SCRIPT))["pip"]
    with pytest.raises(SystemExit) as error:
        pip("--no-index", "--no-deps", "--require-hashes", "-r", str(tmp_path / "requirements.txt"))
    assert error.value.code not in {0, None}
    assert not pip("--no-index", "no-such-package==1")
