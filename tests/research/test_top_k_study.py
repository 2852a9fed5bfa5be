"""The study of the methods for the top k: its numbers, its summary and its figure."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect._show import tracked
from dpselect.accounting.budget import rho_within
from dpselect.analysis import top_k_error
from dpselect.research import plotting, studies
from dpselect.research.datasets import histograms
from dpselect.research.studies import (
    MANY,
    ONE,
    ZCDP_PEEL,
    TopKCase,
    draw_top_k,
    top_k_cases,
    top_k_summaries,
    top_k_table,
)
from tests.dpbench import FOLDER, needs_data

COUNTS = {name: np.random.default_rng(seed).poisson(30, 40) for seed, name in enumerate(("one", "two"))}
FEW = {"small": np.array([90, 70, 70, 40, 20, 5])}  # so few that most errors are exact


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(studies, "KS", (2, 5, 40))


@pytest.fixture
def cases():
    return top_k_cases(COUNTS, 20, np.random.default_rng(1), tracked)


def test_every_method_has_every_case_that_leaves_a_choice(cases):
    assert len(cases) == 2 * 2 * 2 * (5 + 3), "data sets, epsilons, k = 2 and 5, and methods"
    assert {case.method for case in cases if case.people == ONE} == {
        "set",
        "noisy-counts",
        "one-shot",
        "peel",
        ZCDP_PEEL,
    }
    assert {case.method for case in cases if case.people == MANY} == {"margin", "one-shot", "peel"}


def test_a_method_that_does_not_depend_on_people_has_the_same_error_for_both(cases):
    errors = {people: {} for people in (ONE, MANY)}
    for case in cases:
        errors[case.people][case.data_set, case.epsilon, case.k, case.method] = case.error
    shared = errors[ONE].keys() & errors[MANY].keys()
    assert len(shared) == 2 * 2 * 2 * 2
    assert all(errors[ONE][place] == errors[MANY][place] for place in shared)


def test_errors_are_those_of_the_analysis():
    found = top_k_cases(FEW, 20, np.random.default_rng(1), tracked)
    exact = [case for case in found if case.exact]
    assert {case.method for case in exact} == {"set", "one-shot", "peel", ZCDP_PEEL, "margin"}
    for case in exact:
        options = {"method": case.method, "epsilon": case.epsilon}
        if case.method == ZCDP_PEEL:
            rho = rho_within(Fraction(case.epsilon), Fraction(1, 10**6))
            options = {"method": "peel", "mechanism": "exponential", "rho": float(rho)}
        truth = top_k_error(FEW["small"], case.k, max_values=1, **options)
        assert case.error == case.low == case.high == pytest.approx(truth.mean, rel=1e-6)


def test_the_same_seed_gives_the_same_numbers(cases):
    assert top_k_cases(COUNTS, 20, np.random.default_rng(1), tracked) == cases
    assert top_k_cases(COUNTS, 20, np.random.default_rng(2), tracked) != cases


def test_the_table_has_all_numbers(cases):
    table = top_k_table(cases)
    assert table.columns == ("people", "data_set", "epsilon", "k", "method", "error", "low", "high", "exact")
    assert len(table.rows) == len(cases)
    assert table.to_csv().splitlines()[0] == ",".join(table.columns)
    for case in cases:
        assert 0 <= case.low <= case.error <= case.high


def made_up(method, error, k=2):
    return TopKCase(ONE, "data", 1.0, k, method, error, error, error, True)


def test_summaries_count_negligible_errors_as_equal():
    listed = [made_up("set", 1e-9), made_up("peel", 5e-4), made_up("set", 2.0, 5), made_up("peel", 1.0, 5)]
    by_set, by_peel = top_k_summaries(listed)
    assert (by_set.method, by_set.cases, by_set.best) == ("set", 2, 1)
    assert (by_peel.method, by_peel.cases, by_peel.best) == ("peel", 2, 2)
    assert by_set.median_error == pytest.approx(1.0)
    assert by_peel.median_error == pytest.approx(0.50025)
    assert top_k_summaries([]) == ()


def test_the_figure(cases, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    with plotting.settings():
        figure = draw_top_k(cases)
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
        own = [case for case in cases if case.place[:3] == (ONE, "one", 0.1) and case.method == method]
        assert drawn[method] == [[case.k, max(case.error, 1e-9)] for case in own]
    assert plotting.image(draw_top_k(cases), "png")[:100] == content[:100]


def test_a_figure_of_errors_that_are_all_zero():
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    with plotting.settings():
        figure = draw_top_k([made_up("set", 0.0), made_up("peel", 0.0)])
    assert math.isfinite(figure.axes[0].get_ylim()[1])


@needs_data
def test_the_real_data(monkeypatch):
    """One value a person, k = 20, epsilon 0.1: peeling is hundreds of people short, and the set is less than two."""
    monkeypatch.setattr(studies, "KS", (20,))
    counts = {"HEPTH": histograms(FOLDER)["HEPTH"]}
    found = {
        case.method: case.error
        for case in top_k_cases(counts, 20, np.random.default_rng(1), tracked)
        if (case.people, case.epsilon, case.k) == (ONE, 0.1, 20)
    }
    assert found["set"] < 2
    assert found["noisy-counts"] < 2
    assert found[ZCDP_PEEL] < found["one-shot"]
    assert 100 < found["one-shot"] < found["peel"] * 1.2
