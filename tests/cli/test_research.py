"""`dpselect paper` and `dpselect study`: what they write and print. `test_app` runs the former without data."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dpselect._messages import install_command
from dpselect.research import datasets, procedures, studies
from dpselect.research.datasets import VARIABLE, file_name
from dpselect.research.figures import FIGURES
from dpselect.research.procedures import Currency
from dpselect.research.studies import winners
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
    """With two figures only: tests/research/paper/test_reproduce.py makes all."""
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
        message = "out: the folder"
    else:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        message, code = f"the figures need matplotlib: {install_command('matplotlib')}", 5
    result = run("paper", "--out", tmp_path / "report", *options)
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert result.err.startswith(f"error: {message}")


@pytest.mark.usefixtures("offline")
def test_without_data_what_needs_none_is_done(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procedures, "BUDGETS", (0.5, 1.0))
    monkeypatch.setattr(studies, "winners", lambda: winners([1.0], [1, 2], [Currency.PURE]))
    options = ("study", "--out", tmp_path / "out", "--runs", "3")
    result = run(*options)
    assert (result.code, result.err) == (0, "")
    assert "stepwise features" in result.out
    assert "Missing: the cases that need data" in result.out
    first = (tmp_path / "out" / "study.csv").read_text()
    assert (tmp_path / "out" / "stepwise-features.png").is_file()
    monkeypatch.setattr(studies, "write_figure", lambda *_: None)  # drawn once is enough
    content = json.loads(run(*options, "--json").out)
    assert [one["currency"] for one in content["summaries"]] == ["pure epsilon", "(epsilon, delta)", "zCDP"]
    assert content["why_missing"].startswith("downloading the data needs pooch")
    assert content["top_k"] == []
    assert not (tmp_path / "out" / "top_k.csv").exists()
    assert (tmp_path / "out" / "study.csv").read_text() == first  # by the seed


def test_the_methods_for_the_top_k_are_printed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = {"made up": np.random.default_rng(1).poisson(300, 64)}
    monkeypatch.setattr(datasets, "histograms", lambda _: made_up)
    monkeypatch.setattr(studies, "cases", lambda *_: [])
    monkeypatch.setattr(studies, "winners", lambda: winners([1.0], [1, 2], [Currency.PURE]))
    monkeypatch.setattr(studies, "KS", (2, 5))
    result = run("study", "--out", tmp_path / "out", "--runs", "5")
    assert (result.code, result.err) == (0, "")
    assert "one value a person" in result.out
    assert "peel, zCDP" in result.out
    assert f"All numbers: {tmp_path / 'out' / 'top_k.csv'}" in result.out
    monkeypatch.setattr(studies, "write_figure", lambda *_: None)
    content = json.loads(run("study", "--out", tmp_path / "out", "--runs", "5", "--json").out)
    assert len(content["top_k"]) == 2 * 2 * (5 + 3)
    assert {"people", "data_set", "epsilon", "k", "method", "error", "low", "high", "exact"} == set(content["top_k"][0])
