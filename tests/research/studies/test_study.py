"""Comparisons, summaries, and the whole study with few runs."""

import csv
import math
import sys

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.errors import InvalidValue
from dpselect.research.datasets import VARIABLE, histograms
from dpselect.research.studies import procedures
from dpselect.research.studies import top_k as top_k_room
from dpselect.research.studies.procedures import Currency, cases
from dpselect.research.studies.study import NO_DIFFERENCE, Mean, StudyComparison, better, mean_of, study, summaries
from dpselect.research.studies.winners import winners
from tests.dpbench import FOLDER, needs_data

FLIP, EXPONENTIAL = PermuteAndFlip.name, ExponentialMechanism.name


def test_intervals_cover_and_verdicts_are_mostly_right():
    """Of 2,000 pairs without a difference about 5 % look like one; with one nearly all do."""
    generator = np.random.default_rng(1)
    same, other, covered = 0, 0, 0
    for _ in range(2_000):
        first, second = generator.exponential(size=(2, 100))
        same += better(first, second) != NO_DIFFERENCE
        other += better(first, second + 1) == FLIP
        mean = mean_of(first)
        covered += abs(mean.value - 1) <= mean.half_width
    assert 60 < same < 150
    assert other > 1990
    assert 1830 < covered < 1960


def test_samples_without_spread():
    zeros, ones = np.zeros(5), np.ones(5)
    assert better(zeros, zeros) == NO_DIFFERENCE
    assert better(zeros, ones) == FLIP
    assert better(ones, zeros) == EXPONENTIAL


def comparison(flip, soft, verdict):
    return StudyComparison("top", "data", "zCDP", 1.0, "people", Mean(flip, 0.1), Mean(soft, 0.1), verdict)


def test_summaries():
    listed = [comparison(1, 2, FLIP), comparison(4, 2, EXPONENTIAL), comparison(0, 0, NO_DIFFERENCE)]
    listed.append(comparison(0, 1, FLIP))
    assert listed[3].ratio == math.inf
    [found] = summaries(listed)
    assert (found.cases, found.permute_and_flip, found.exponential, found.ratio) == (4, 2, 1, 1.0)


def test_without_data_there_is_one_task():
    listed = cases({}, np.random.default_rng(1))
    assert {case.task.study for case in listed} == {"stepwise features"}
    assert len(listed) == 15


def test_the_study(tmp_path, monkeypatch):
    """On a made-up histogram."""
    made_up = {"made up": np.random.default_rng(1).poisson(300, 64)}
    monkeypatch.setattr("dpselect.research.studies.study.histograms", lambda _: made_up)
    monkeypatch.setattr(procedures, "BUDGETS", (0.1, 1.0))
    monkeypatch.setattr(procedures, "TOPS", (3,))
    monkeypatch.setattr(top_k_room, "KS", (2, 5, 64))
    monkeypatch.setattr("dpselect.research.studies.study.winners", lambda: winners([1.0], [1, 2], [Currency.PURE]))
    seen = []

    def watch(items, what):
        seen.append((what, len(items)))
        return items

    made = study(tmp_path / "out", runs=3, watch=watch)
    assert seen == [("Cases", 2 * 3 * 3), ("Top k", 2 * 2)]
    with (tmp_path / "out" / "study.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(made.comparisons) == 18
    assert {row["study"] for row in rows} == {"stepwise features", "top 3", "MWEM"}
    assert {row["data_set"] for row in rows} == {"synthetic", "made up"}
    names = {path.name for path in (tmp_path / "out").iterdir()}
    figures = ("stepwise-features", "top-3", "mwem", "winners", "top_k")
    assert names == {
        "study.csv",
        "winners.csv",
        "top_k.csv",
        *(f"{name}.{end}" for name in figures for end in ("png", "pdf")),
    }
    assert len(made.top_k) == 4 * (5 + 3)


@needs_data
def test_the_tasks_on_the_real_data():
    listed = cases(histograms(FOLDER), np.random.default_rng(1))
    assert len(listed) == 16 * 3 * 5
    flip, soft = (errors.mean() for errors in listed[-1].errors(2, np.random.default_rng(1)).values())
    people = int(histograms(FOLDER)["PATENT"].sum())
    assert 0 < flip < 0.05 * people
    assert 0 < soft < 0.05 * people


def test_bad_input(tmp_path):
    with pytest.raises(InvalidValue, match="runs must be >= 2"):
        study(tmp_path, runs=1)
    with pytest.raises(InvalidValue, match="is not a folder"):
        study(tmp_path, tmp_path / "nowhere", runs=2)


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidValue, match=r"out: the folder .* cannot be created"):
        study(tmp_path / "file" / "below", runs=2)
