"""The tool that hides system packages: what it hides, what it leaves, and what makes a run without them fail."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "bare.py"
TOOL = runpy.run_path(str(SCRIPT))
PARTS = ["java", "chromium", "google-chrome", "chromedriver", "initdb", "pg_ctl", "gcc", "cc", "clang-19"]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs links and PATH")


@pytest.fixture
def machine(tmp_path):
    """A machine that has every part, and a program that is none of them."""
    folder = tmp_path / "machine"
    folder.mkdir()
    for name in [*PARTS, "x86_64-linux-gnu-gcc-12", "gccgo-like", "other"]:
        (folder / name).write_text(f"#!{shutil.which('bash')}\necho $JAVA_HOME $CC $POSTGRESQL_FOLDER; exit 7\n")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": str(folder), "JAVA_HOME": "/java", "CC": "gcc"}


def test_the_parts_are_hidden_and_nothing_else(machine, tmp_path):
    links = tmp_path / "links"
    links.mkdir()
    found = TOOL["bare"](links, machine)
    assert sorted(path.name for path in links.iterdir()) == ["gccgo-like", "other"]
    assert found["PATH"] == str(links)
    assert not {"JAVA_HOME", "CC"} & found.keys()
    assert not Path(found["POSTGRESQL_FOLDER"]).exists()


def test_the_command_runs_without_them_and_its_code_is_returned(machine, tmp_path):
    """All parts are looked for at once; afterwards no link is left."""
    looked = "; ".join(f"command -v {name} && exit 1" for name in PARTS)
    words = [sys.executable, str(SCRIPT), shutil.which("bash"), "-c", f"{looked}; other"]
    done = subprocess.run(words, env={**machine, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert done.stdout.split()[0].endswith("no-postgresql")
    assert [path.name for path in tmp_path.iterdir()] == ["machine"]


def test_the_tests_of_every_part_are_found():
    found = TOOL["users"]()
    for name in ("test_databases", "test_table_contract", "test_found"):
        assert f"tests/tables/{name}.py" in found
    assert {"tests/tools", "tests/explore", "tests/test_packaging.py", "tests/selection/test_kernel.py"} <= set(found)


REPORT = "<testsuites><testsuite>{}</testsuite></testsuites>"
SKIP = '<testcase><skipped message="{}: there is none"/></testcase>'


@pytest.mark.parametrize("found", [None, *TOOL["REASONS"]])
def test_a_part_that_no_test_missed_fails_the_run(tmp_path, monkeypatch, capsys, found):
    """And so does a test that fails, whatever was skipped."""
    reasons = [words for part, words in TOOL["REASONS"].items() if part != found]

    def pytest_run(command, **_):
        [report] = [word.partition("=")[2] for word in command if word.startswith("--junitxml")]
        Path(report).write_text(REPORT.format("".join(map(SKIP.format, reasons))))
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(subprocess, "run", pytest_run)
    code = 0
    assert TOOL["run_tests"]({}, tmp_path) == (0 if found is None else 1)
    assert (found is not None) == ("was not missed" in capsys.readouterr().err)
    code = 2
    assert TOOL["run_tests"]({}, tmp_path) == 2
