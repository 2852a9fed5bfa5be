"""Comparisons, summaries, and the whole study with few runs."""

import csv
import math
import sys
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.studies import procedures
from benchmarks.studies import study as studies
from benchmarks.studies.__main__ import main, print_study
from benchmarks.studies.procedures import Currency, cases
from benchmarks.studies.study import (
    CANDIDATES,
    MANY,
    NO_DIFFERENCE,
    ONE,
    ZCDP_PEEL,
    Mean,
    StudyComparison,
    TopKCase,
    better,
    draw_top_k,
    mean_of,
    study,
    summaries,
    top_k_cases,
    top_k_summaries,
    top_k_table,
    winners,
)
from dpselect import ExponentialMechanism, PermuteAndFlip, approximate
from dpselect.accounting.budget import rho_within
from dpselect.analysis import top_k_error
from dpselect.analysis.measures import promise
from dpselect.errors import InvalidValue
from dpselect.research import datasets, plotting
from dpselect.research.datasets import VARIABLE, histograms
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
    zeros, ones = np.zeros(5), np.ones(5)  # samples without spread
    assert [better(zeros, zeros), better(zeros, ones), better(ones, zeros)] == [NO_DIFFERENCE, FLIP, EXPONENTIAL]
    spread = np.arange(-2.0, 3.0)  # Welch's test has 4 degrees of freedom here, a pooled one 8
    assert [better(zeros, spread + mean) for mean in (1.76, 2.0)] == [NO_DIFFERENCE, FLIP]


def comparison(flip, soft, verdict):
    return StudyComparison("top", "data", "zCDP", 1.0, "people", Mean(flip, 0.1), Mean(soft, 0.1), verdict)


def test_summaries():
    listed = [comparison(1, 2, FLIP), comparison(4, 2, EXPONENTIAL), comparison(0, 0, NO_DIFFERENCE)]
    listed.append(comparison(0, 1, FLIP))
    assert listed[3].ratio == math.inf
    [found] = summaries(listed)
    assert (found.cases, found.permute_and_flip, found.exponential, found.ratio) == (4, 2, 1, 1.0)


def test_the_study(tmp_path, monkeypatch, capsys):
    """On a made-up histogram, and what is printed of it."""
    made_up = {"made up": np.random.default_rng(1).poisson(300, 64)}
    monkeypatch.setattr(datasets, "histograms", lambda _: made_up)
    monkeypatch.setattr(procedures, "BUDGETS", (1.0,))
    monkeypatch.setattr(procedures, "TOPS", (3,))
    monkeypatch.setattr(studies, "KS", (2, 5, 64))
    monkeypatch.setattr(studies, "winners", lambda: winners([1.0], [1, 2], [Currency.PURE]))
    made = study(tmp_path / "out", runs=3)
    with (tmp_path / "out" / "study.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(made.comparisons) == 9
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
    print_study(made)
    shown = capsys.readouterr().out
    assert all(words in shown for words in ("top 3", "one value a person", "peel, zCDP", str(tmp_path / "out")))


@needs_data
def test_the_tasks_on_the_real_data():
    listed = cases(histograms(FOLDER), np.random.default_rng(1))
    assert len(listed) == 16 * 3 * 5
    flip, soft = (errors.mean() for errors in listed[-1].errors(2, np.random.default_rng(1)).values())
    people = int(histograms(FOLDER)["PATENT"].sum())
    assert 0 < flip < 0.05 * people
    assert 0 < soft < 0.05 * people


@pytest.fixture
def offline(monkeypatch):
    """No folder of data, and nothing that could fetch them."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)


@pytest.mark.usefixtures("offline")
def test_without_data_what_needs_none_is_done(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(procedures, "BUDGETS", (0.5, 1.0))
    monkeypatch.setattr(studies, "winners", lambda: winners([1.0], [1, 2], [Currency.PURE]))
    printed = []
    for folder in ("one", "two"):
        monkeypatch.setattr(sys, "argv", ["studies", "--out", str(tmp_path / folder), "--runs", "3"])
        main()
        printed.append(capsys.readouterr().out)
        monkeypatch.setattr(studies, "write_figure", lambda *_: None)  # drawn once is enough
    assert "stepwise features" in printed[0]
    assert "Missing: the cases that need data: downloading the data needs pooch" in " ".join(printed[0].split())
    assert (tmp_path / "one" / "stepwise-features.png").is_file()
    assert not (tmp_path / "one" / "top_k.csv").exists()
    first, second = ((tmp_path / folder / "study.csv").read_text() for folder in ("one", "two"))
    assert first == second, "the seed decides"


def test_bad_input(tmp_path, monkeypatch):
    with pytest.raises(InvalidValue, match="runs must be >= 2"):
        study(tmp_path, runs=1)
    monkeypatch.setattr(sys, "argv", ["studies", "--out", str(tmp_path), "--runs", "1"])
    with pytest.raises(SystemExit, match="error: runs must be >= 2"):
        main()


def test_who_wins_depends_on_the_currency_and_not_on_the_number_of_selections():
    """At equal pure epsilon permute-and-flip wins by the same factor; under zCDP the exponential mechanism wins."""
    pure, zcdp = (
        [row[-1] for row in winners([0.1, 1.0], [1, 10, 100], [currency]).rows]
        for currency in (Currency.PURE, Currency.ZCDP)
    )
    assert min(pure) > 1
    assert max(pure) == pytest.approx(min(pure))
    assert max(zcdp) < 0.7


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


# The methods for the top k.

COUNTS = {name: np.random.default_rng(seed).poisson(30, 40) for seed, name in enumerate(("one", "two"))}
FEW = {"small": np.array([90, 70, 70, 40, 20, 5])}  # so few that most errors are exact


@pytest.fixture(scope="module")
def few():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(studies, "KS", (2, 5, 40))
        yield


@pytest.fixture(scope="module")
def top_k(few):
    return top_k_cases(COUNTS, 20, np.random.default_rng(1))


def test_every_method_has_every_case_that_leaves_a_choice(top_k):
    """A method that does not depend on people has the same error for both kinds; a seed gives the same numbers."""
    assert len(top_k) == len(top_k_table(top_k).rows) == 2 * 2 * 2 * (5 + 3), "data sets, epsilons, ks, methods"
    assert {case.method for case in top_k if case.people == ONE} == set(studies.METHODS[:5])
    assert {case.method for case in top_k if case.people == MANY} == {"margin", "one-shot", "peel"}
    assert all(0 <= case.low <= case.error <= case.high for case in top_k)
    errors = {people: {} for people in (ONE, MANY)}
    for case in top_k:
        errors[case.people][case.data_set, case.epsilon, case.k, case.method] = case.error
    shared = errors[ONE].keys() & errors[MANY].keys()
    assert len(shared) == 2 * 2 * 2 * 2
    assert all(errors[ONE][place] == errors[MANY][place] for place in shared)
    assert top_k_cases(COUNTS, 20, np.random.default_rng(1)) == top_k
    assert top_k_cases(COUNTS, 20, np.random.default_rng(2)) != top_k


@pytest.mark.usefixtures("few")
def test_errors_are_those_of_the_analysis():
    found = top_k_cases(FEW, 20, np.random.default_rng(1))
    exact = [case for case in found if case.exact]
    assert {case.method for case in exact} == {"set", "one-shot", "peel", ZCDP_PEEL, "margin"}
    for case in exact:
        options = {"method": case.method, "epsilon": case.epsilon}
        if case.method == ZCDP_PEEL:
            rho = rho_within(Fraction(case.epsilon), Fraction(1, 10**6))
            options = {"method": "peel", "mechanism": "exponential", "rho": float(rho)}
        truth = top_k_error(FEW["small"], case.k, max_values=1, **options)
        assert case.error == case.low == case.high == pytest.approx(truth.mean, rel=1e-6)


def made_up(method, error, k=2):
    return TopKCase(ONE, "data", 1.0, k, method, error, error, error, True)


def test_summaries_of_methods_count_negligible_errors_as_equal():
    listed = [made_up("set", 1e-9), made_up("peel", 5e-4), made_up("set", 2.0, 5), made_up("peel", 1.0, 5)]
    by_set, by_peel = top_k_summaries(listed)
    assert (by_set.method, by_set.cases, by_set.best) == ("set", 2, 1)
    assert (by_peel.method, by_peel.cases, by_peel.best) == ("peel", 2, 2)
    assert by_set.median_error == pytest.approx(1.0)
    assert by_peel.median_error == pytest.approx(0.50025)
    assert top_k_summaries([]) == ()


def test_the_figure_of_the_methods(top_k):
    with plotting.settings():
        figure = draw_top_k(top_k)
        content = plotting.image(figure, "png")
    assert content.startswith(b"\x89PNG")
    assert len(figure.axes) == 4 * 2, "kinds of people and epsilons, data sets"
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(studies.METHODS)
    first = figure.axes[0]
    assert (first.get_title(), first.get_ylim()[0]) == ("one", 1e-3)
    assert "one value a person" in first.get_ylabel()
    drawn = {bars.get_label(): bars[0].get_xydata().tolist() for bars in first.containers}
    for method in studies.METHODS[:5]:
        own = [case for case in top_k if case.place[:3] == (ONE, "one", 0.1) and case.method == method]
        assert drawn[method] == [[case.k, max(case.error, 1e-9)] for case in own]
    with plotting.settings():
        figure = draw_top_k([made_up("set", 0.0), made_up("peel", 0.0)])  # all errors are zero
    assert math.isfinite(figure.axes[0].get_ylim()[1])


@needs_data
def test_the_real_data(monkeypatch):
    """One value a person, k = 20, epsilon 0.1: peeling is hundreds of people short, and the set is less than two."""
    monkeypatch.setattr(studies, "KS", (20,))
    counts = {"HEPTH": histograms(FOLDER)["HEPTH"]}
    found = {
        case.method: case.error
        for case in top_k_cases(counts, 20, np.random.default_rng(1))
        if (case.people, case.epsilon, case.k) == (ONE, 0.1, 20)
    }
    assert found["set"] < 2
    assert found["noisy-counts"] < 2
    assert found[ZCDP_PEEL] < found["one-shot"]
    assert 100 < found["one-shot"] < found["peel"] * 1.2
