"""What the page is told is what the analysis says."""

import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect._numbers import exact_text
from dpselect.accounting.budget import approximate, pure
from dpselect.accounting.charge import Charge
from dpselect.analysis import epsilon_for, error_quantile, error_tail, expected_error
from dpselect.errors import BudgetExceeded, DPSelectError, InvalidType, InvalidValue
from dpselect.explore import results
from dpselect.explore.results import curve, look
from dpselect.explore.score_set import MOST_CANDIDATES, SHAPES, ScoreSet, made
from dpselect.explore.sentences import sentence
from dpselect.explore.settings import settings_of
from dpselect.ledger import Ledger
from dpselect.mechanisms import MECHANISMS
from dpselect.score_files import ScoreFile

SCORES = st.lists(
    st.one_of(st.integers(-1000, 1000), st.decimals(-1000, 1000, places=3), st.integers(2**70, 2**70 + 50)),
    min_size=1,
    max_size=12,
)


def score_set(scores, labels=None):
    return ScoreSet("test", ScoreFile(list(scores), labels))


@settings(max_examples=40)
@given(SCORES, st.decimals("0.001", 20, places=3), st.sampled_from(["1", "0.5", "7/3"]), st.booleans())
def test_the_figures_are_those_of_the_analysis(scores, epsilon, sensitivity, monotonic):
    """On the exact scores, whatever type they have."""
    asked = settings_of({"epsilon": str(epsilon), "sensitivity": sensitivity, "monotonic": monotonic})
    shown = score_set(scores)
    answer = look(shown, asked, "people")
    for name, kind in MECHANISMS.items():
        mechanism, found = kind(str(epsilon), sensitivity, monotonic), answer["mechanisms"][name]
        assert found["probabilities"] == pytest.approx(mechanism.pmf(scores).tolist(), rel=1e-11, abs=1e-300)
        assert found["expected_error"] == pytest.approx(expected_error(mechanism, scores), rel=1e-11, abs=1e-300)
        best = sum(p for p, score in zip(mechanism.pmf(scores), scores, strict=True) if score == max(scores))
        assert found["best"] == pytest.approx(best, rel=1e-11)
        tail = error_tail(mechanism, scores, np.array(answer["thresholds"]))
        assert found["tail"] == pytest.approx(tail.tolist(), rel=1e-11, abs=1e-300)
        # A quantile jumps: compare where no probability lies within rounding of the level.
        if all(abs(value - 0.05) > 1e-9 for value in found["tail"]):
            assert found["error_95"] == pytest.approx(error_quantile(mechanism, scores, 0.95), rel=1e-12)


@pytest.mark.parametrize(("shape", "epsilon"), list(itertools.product(SHAPES, ["0.01", "0.2", "1"])))
def test_the_factor_gives_the_exponential_mechanism_the_same_error(shape, epsilon):
    shown, asked = made(shape, 200), settings_of({"epsilon": epsilon})
    factor = look(shown, asked, "people")["factor"]
    assert factor is not None
    assert factor >= 1
    flip, exponential = MECHANISMS["permute-and-flip"](epsilon), MECHANISMS["exponential"](float(epsilon) * factor)
    assert expected_error(exponential, shown.exact) == pytest.approx(expected_error(flip, shown.exact), rel=1e-6)


@pytest.mark.parametrize("scores", [[3, 3, 3], [5]])
def test_equal_scores_have_no_factor(scores):
    answer = look(score_set(scores), settings_of({}), "people")
    assert answer["factor"] is None
    assert "same score" in answer["sentence"]


@pytest.mark.parametrize("epsilon", ["0.0001", "100"])
def test_the_ends_of_the_slider_answer(epsilon):
    for scores in ([0, 1], [0, 10**9], [0, Decimal("1e-9")]):
        assert look(score_set(scores), settings_of({"epsilon": epsilon}), "people")["sentence"]


def test_the_sentence_is_that_of_the_readme():
    figures = {"best": 0.8361, "expected_error": 2.0999, "error_95": 9.0}
    assert sentence(settings_of({"epsilon": "0.1"}), "people", figures, differ=True) == (
        "With ε = 0.1 you get the best candidate with probability 0.83 and lose 2.1 people on average; "
        "95 times in 100 at most 9."
    )


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6))
def test_numbers_of_sentences_read_back(number):
    assert Fraction(exact_text(number)) == number


def test_the_curve_is_the_expected_error():
    shown, asked = made("close-race", 40), settings_of({"sensitivity": "2.5"})
    found = curve(shown, asked, patience=60)
    assert found["complete"]
    assert found["epsilons"][0] == pytest.approx(1e-4, rel=0.25)
    assert found["epsilons"][-1] == pytest.approx(100, rel=0.25)
    for name, kind in MECHANISMS.items():
        for epsilon, error in list(zip(found["epsilons"], found["errors"][name], strict=True))[::9]:
            assert error == pytest.approx(expected_error(kind(epsilon, "2.5"), shown.exact), rel=1e-9, abs=1e-300)


def test_the_curve_comes_a_little_at_a_time_and_is_remembered():
    shown, asked = made("close-race", 40), settings_of({})
    first = curve(shown, asked, patience=0)
    assert not first["complete"]
    assert sum(error is not None for errors in first["errors"].values() for error in errors) == 1
    assert curve(shown, asked, patience=60)["complete"]
    assert curve(shown, settings_of({"epsilon": "3", "mechanism": "noisy-max"}), patience=0)["complete"]
    known = len(shown.curve_points)
    curve(shown, settings_of({"monotonic": True}), patience=60)  # the window moves by a factor of two
    assert 0 < len(shown.curve_points) - known <= 4 * len(MECHANISMS)


def test_the_epsilon_that_is_needed():
    shown = made("close-race", 30)
    public = {"sensitivity": "2", "monotonic": True}
    rows = results.epsilon_needed(shown, settings_of(public), {"error": "3"})["mechanisms"]
    for name, kind in MECHANISMS.items():
        exact = epsilon_for(kind, shown.exact, expected_error=3, sensitivity=2, monotonic=True)
        assert exact <= float(rows[name]["epsilon"]) <= exact * 1.001
        assert expected_error(kind(rows[name]["epsilon"], 2, True), shown.exact) <= 3
    tails = results.epsilon_needed(shown, settings_of(public), {"error": "3", "times": "5"})["mechanisms"]
    for name, kind in MECHANISMS.items():
        assert error_tail(kind(tails[name]["epsilon"], 2, True), shown.exact, 3.0) <= 0.05
    equal = results.epsilon_needed(score_set([4, 4]), settings_of({}), {"error": "1e-9"})["mechanisms"]
    assert {row["epsilon"] for row in equal.values()} == {None}
    any_is_enough = results.epsilon_needed(shown, settings_of({}), {"error": "1e6"})["mechanisms"]
    assert {row["epsilon"] for row in any_is_enough.values()} == {None}


@pytest.mark.parametrize("fields", [{"error": "0"}, {"error": "x"}, {}, {"error": "1", "times": "100"}])
def test_bad_targets_are_refused(fields):
    with pytest.raises(DPSelectError):
        results.epsilon_needed(made("median", 9), settings_of({}), fields)


def test_a_pure_budget_is_divided():
    shown = made("close-race", 30)
    answer = results.shares(shown, settings_of({}), {"budget": "1", "selections": "3"})
    assert {row["epsilon"] for row in answer["mechanisms"].values()} == {"0.3333"}
    assert answer["better"] == "permute-and-flip"
    error = answer["mechanisms"]["exponential"]["expected_error"]
    assert error == expected_error(MECHANISMS["exponential"]("0.3333"), shown.scores)


@pytest.mark.parametrize(("count", "better"), [(200, "exponential"), (2, "permute-and-flip")])
def test_a_budget_with_delta_is_that_of_a_ledger(tmp_path, count, better):
    """A ledger pays for every share, and not for shares that are larger by more than their rounding.

    Over many selections the exponential mechanism wins; for two, a pure ledger leaves more for each.
    """
    shown = made("close-race", 30)
    asked = {"budget": "1", "selections": str(count), "delta": "1e-6"}
    answer = results.shares(shown, settings_of({}), asked)
    budgets = {"pure": pure(1), "approximate": approximate(1, "1e-6", share=0)}
    for name, row in answer["mechanisms"].items():
        affordable = {"pure": [], "approximate": []}
        for currency, budget in budgets.items():
            for factor in (1, Fraction(1003, 1000)):
                ledger = Ledger(tmp_path / f"{name}-{currency}-{factor.denominator}.ledger", budget=budget)
                charge = Charge("all", Fraction(row["epsilon"]) * factor, name, count)
                try:
                    ledger.charge(charge)
                except BudgetExceeded:
                    continue
                affordable[currency].append(factor)
        assert affordable[row["budget"]] == [1], "the share, and no more"
        assert max(map(len, affordable.values())) == 1, "nor with the other ledger"
    assert answer["better"] == better
    assert answer["accounting"] == answer["mechanisms"][better]["budget"]


def test_one_candidate_shares_a_budget_too():
    answer = results.shares(score_set([5]), settings_of({}), {"budget": "1", "selections": "4"})
    assert answer["mechanisms"]["exponential"]["epsilon"] == "0.25"


@pytest.mark.parametrize(
    "fields",
    [
        {"budget": "101", "selections": "2"},
        {"budget": "1", "selections": "0"},
        {"budget": "1", "selections": "1.5"},
        {"budget": "1", "selections": "20000"},
        {"budget": "1", "selections": "2", "delta": "1"},
        {"budget": 1, "selections": "2"},
    ],
)
def test_bad_budgets_are_refused(fields):
    with pytest.raises(DPSelectError):
        results.shares(made("median", 9), settings_of({}), fields)


@pytest.mark.parametrize(
    ("fields", "kind", "message"),
    [
        ({"epsilon": "0"}, InvalidValue, "epsilon"),
        ({"epsilon": "1e-5"}, InvalidValue, "epsilon must be between"),
        ({"epsilon": "101"}, InvalidValue, "epsilon must be between"),
        ({"epsilon": "abc"}, DPSelectError, "epsilon"),
        ({"epsilon": 1}, InvalidType, "epsilon must be a text"),
        ({"epsilon": "1" * 1001}, InvalidValue, "1,000 characters"),
        ({"sensitivity": "-1"}, InvalidValue, "sensitivity"),
        ({"sensitivity": "1e60"}, InvalidValue, "sensitivity must be between"),
        ({"monotonic": "yes"}, InvalidType, "monotonic"),
        ({"mechanism": "magic"}, InvalidValue, "mechanism must be one of"),
    ],
)
def test_bad_settings_are_refused(fields, kind, message):
    with pytest.raises(kind, match=message):
        settings_of(fields)


def test_a_score_set_keeps_its_scores_to_itself():
    assert "12345" not in repr(score_set([12345, 1]))


def test_too_many_candidates_and_too_far_apart():
    with pytest.raises(InvalidValue, match="at most 10,000 candidates"):
        score_set(range(MOST_CANDIDATES + 1))
    with pytest.raises(InvalidValue, match="differ by more than a float"):
        score_set([0, 10**400])


@pytest.mark.parametrize("n", [2, 3, 1024])
def test_every_shape_can_be_made(n):
    for name in SHAPES:
        shown = made(name, n)
        assert len(shown.exact) == n
        assert shown.losses.any()


@pytest.mark.parametrize(("name", "n"), [("none", 5), ("median", 1), ("median", 1025)])
def test_other_shapes_are_refused(name, n):
    with pytest.raises(InvalidValue):
        made(name, n)
