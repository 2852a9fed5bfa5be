"""`dpselect paper`: what it writes and prints. `test_app` runs it without data."""

import json
import sys
from pathlib import Path

import pytest

from dpselect._messages import install_command
from dpselect.research.datasets import VARIABLE, file_name
from dpselect.research.figures import FIGURES
from tests.cli.conftest import Run
from tests.dpbench import FOLDER, needs_data

POINTS = ("--points", "3")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder of data, and nothing that could fetch them."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)


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


@pytest.mark.parametrize("case", ["wrong file", "environment", "out", "matplotlib"])
@pytest.mark.usefixtures("offline")
def test_what_is_missing_or_wrong_is_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    (tmp_path / file_name("HEPTH")).write_bytes(b"wrong")
    options, code = POINTS, 2
    if case == "wrong file":
        options = ("--data", str(tmp_path))
        message = f"'{tmp_path / file_name('HEPTH')}' is not DPBench's HEPTH: its SHA-256 sum differs"
    elif case == "environment":
        monkeypatch.setenv(VARIABLE, "/no/such/folder")
        message = f"{VARIABLE}: '/no/such/folder' is not a folder"
    elif case == "out":
        (tmp_path / "report").write_text("")
        message = "--out: the folder"
    else:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        message, code = f"the figures need matplotlib: {install_command('matplotlib')}", 5
    result = run("paper", "--out", tmp_path / "report", *options)
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert result.err.startswith(f"error: {message}")
    assert not (tmp_path / "report").is_dir(), "before anything is made"
