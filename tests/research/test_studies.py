"""Comparisons, summaries, and the whole study with few runs."""

import csv
import math
import sys
from fractions import Fraction

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, approximate
from dpselect.analysis.measures import promise
from dpselect.errors import InvalidValue
from dpselect.research import plotting, procedures, studies
from dpselect.research.datasets import VARIABLE, histograms
from dpselect.research.procedures import Currency, cases
from dpselect.research.studies import (
    CANDIDATES,
    NO_DIFFERENCE,
    Mean,
    StudyComparison,
    better,
    draw_winners,
    mean_of,
    study,
    summaries,
    winners,
)
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


def test_the_study(tmp_path, monkeypatch):
    """On a made-up histogram."""
    made_up = {"made up": np.random.default_rng(1).poisson(300, 64)}
    monkeypatch.setattr(studies, "histograms", lambda _: made_up)
    monkeypatch.setattr(procedures, "BUDGETS", (0.1, 1.0))
    monkeypatch.setattr(procedures, "TOPS", (3,))
    monkeypatch.setattr(studies, "KS", (2, 5, 64))
    monkeypatch.setattr(studies, "winners", lambda: winners([1.0], [1, 2], [Currency.PURE]))
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


def test_bad_input(tmp_path, monkeypatch):
    with pytest.raises(InvalidValue, match="runs must be >= 2"):
        study(tmp_path, runs=1)
    with pytest.raises(InvalidValue, match="is not a folder"):
        study(tmp_path, tmp_path / "nowhere", runs=2)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidValue, match=r"out: the folder .* cannot be created"):
        study(tmp_path / "file" / "below", runs=2)


def test_at_equal_pure_epsilon_permute_and_flip_wins_by_the_same_factor():
    ratios = [row[-1] for row in winners([0.1, 1.0], [1, 10, 100], [Currency.PURE]).rows]
    assert min(ratios) > 1
    assert max(ratios) == pytest.approx(min(ratios))


def test_under_zcdp_the_exponential_mechanism_wins_for_any_number():
    table = winners([0.1, 1.0], [1, 10, 100], [Currency.ZCDP])
    assert all(row[-1] < 0.7 for row in table.rows)


def test_the_errors_are_those_of_the_budget_of_a_ledger():
    [(_, _, count, *errors, ratio)] = winners([1.0], [10], [Currency.ZCDP]).rows
    rho = approximate("1", Fraction(1e-6), share=0).rho / count
    for kind, error in zip((PermuteAndFlip, ExponentialMechanism), errors, strict=True):
        assert promise(kind(_largest(kind, rho), monotonic=True), CANDIDATES).average == pytest.approx(error, rel=1e-6)
    assert ratio == pytest.approx(errors[1] / errors[0])


def _largest(kind, rho):
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if kind(middle or 1e-9).guarantee.zcdp <= rho else (low, middle)
    return low


def test_the_figure_has_a_panel_for_each_currency():
    table = winners([1.0], [1, 5], [Currency.PURE, Currency.ZCDP])
    with plotting.settings():
        assert len(draw_winners(table).axes) == 2
