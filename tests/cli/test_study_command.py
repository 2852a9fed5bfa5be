import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dpselect.research import datasets, procedures, studies
from dpselect.research.datasets import VARIABLE
from dpselect.research.procedures import Currency
from dpselect.research.studies import winners
from tests.cli.conftest import Run


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder of data, and nothing that could fetch them."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--runs", "1"), "runs must be a whole number from 2"),
        (("--seed", "x"), "seed must be a number"),
        (("--data", "/no/such/folder"), "data: '/no/such/folder' is not a folder"),
    ],
)
def test_bad_options_are_refused(run: Run, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    result = run("study", "--out", tmp_path / "out", *options)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith(f"error: {message}")
    assert not (tmp_path / "out").exists()


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
