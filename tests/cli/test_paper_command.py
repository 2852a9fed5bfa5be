import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpselect._messages import install_command
from dpselect.research.datasets import VARIABLE, file_name
from dpselect.research.figures import FIGURES
from tests.cli.conftest import ALL_COMMANDS, Result, Run
from tests.cli.test_compare import read_terminal
from tests.dpbench import FOLDER, needs_data

POINTS = ("--points", "3")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for variable in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")


def is_refused(result: Result, message: str, code: int = 2) -> bool:
    one_line = len(result.err.splitlines()) == 1
    return result.code == code and result.out == "" and one_line and result.err.startswith(f"error: {message}")


@needs_data
def test_the_report_with_data(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two figures only: tests/research/test_reproduce.py makes all."""
    monkeypatch.setattr("dpselect.research.reproduce.FIGURES", FIGURES[6:8])
    result = run("paper", "--out", tmp_path / "report", "--data", FOLDER, *POINTS, "--json")
    assert (result.code, result.err) == (0, "")
    content = json.loads(result.out)
    assert Path(content["report"]).is_file()
    assert content["figures"] == ["figure-3a-hepth-mode", "figure-3b-hepth-median"]
    assert (content["missing"], content["why_missing"], content["not_checked"]) == ([], None, 0)
    assert content["passed"] + content["failed"] == len(content["claims"]) == 32
    first = content["claims"][0]
    assert set(first) == {"where", "statement", "paper", "ours", "holds", "remark", "verdict"}


BAD = {
    "no folder": (("--data", "/no/such/folder"), "data: '/no/such/folder' is not a folder"),
    "no points": (("--points", "1"), "points must be a whole number from 2 to 10,000"),
    "text as points": (("--points", "few"), "points must be a number"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_options_are_refused(run: Run, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    assert is_refused(run("paper", "--out", tmp_path / "report", *options), message)
    assert not (tmp_path / "report").exists()


def test_a_folder_without_the_files_is_refused(run: Run, tmp_path: Path) -> None:
    result = run("paper", "--out", tmp_path / "report", "--data", tmp_path)
    assert is_refused(result, "data: HEPTH.n4096.npy is not in")


def test_a_wrong_file_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / file_name("HEPTH")).write_bytes(b"wrong")
    result = run("paper", "--out", tmp_path / "report", "--data", tmp_path)
    assert is_refused(result, f"'{tmp_path / file_name('HEPTH')}' is not DPBench's HEPTH: its SHA-256 sum differs")


def test_the_environment_is_refused_by_its_name(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/no/such/folder")
    assert is_refused(run("paper", "--out", tmp_path / "report"), f"{VARIABLE}: '/no/such/folder' is not a folder")


@pytest.mark.usefixtures("offline")
def test_an_out_that_is_a_file_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("")
    assert is_refused(run("paper", "--out", tmp_path / "report", *POINTS), "out: the folder")


def test_without_matplotlib_the_error_says_what_to_install(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = f"the figures need matplotlib: {install_command('matplotlib')}"
    assert is_refused(run("paper", "--out", tmp_path / "report"), message, code=5)


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
def test_without_data_and_network_on_a_terminal(tmp_path: Path) -> None:
    """It says what is missing and exits with zero; the progress bar goes to standard error."""
    pty = pytest.importorskip("pty")
    reader, writer = pty.openpty()
    at_once = "from dpselect import _show; _show._SILENT_SECONDS = _show._STEP_SECONDS = 0"
    main = (sys.executable, "-c", f"{at_once}; from dpselect.cli import main; main()")
    command = [*main, "paper", "--out", str(tmp_path / "report"), *POINTS]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer, env=environment) as child:
        os.close(writer)
        seen = read_terminal(reader)
        shown, _ = child.communicate(timeout=120)
    os.close(reader)
    assert child.returncode == 0
    assert all(stage in seen for stage in (b"Linear programs", b"Figures", b"Claims", b"43%"))
    words = " ".join(shown.decode().split())
    assert "Linear programs" not in words
    assert words.startswith("7 figures, ")
    assert "10 not checked." in words
    assert "Missing: Figure 3 (a), Figure 3 (b), Figure 3 (c), Figure 5, Figure 6, Figure 7:" in words
    assert "Give --data DIR" in words
    assert (tmp_path / "report" / "report.html").is_file()


def test_the_command_line_starts_without_matplotlib_and_scipy() -> None:
    code = ALL_COMMANDS.format(prefixes=("matplotlib", "scipy", "pooch"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
