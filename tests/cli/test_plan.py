"""`dpselect plan select`: what one selection promises, from public numbers."""

import pytest

from dpselect import PermuteAndFlip
from dpselect._numbers import shown
from dpselect.analysis import error_bounds, worst_case_error
from tests.cli.conftest import Run
from tests.cli.plans import MECHANISMS, by_name, guaranteed, is_rounded_up, number, plan, tables, words


@pytest.mark.parametrize(
    ("n", "epsilon", "sensitivity", "monotonic"),
    [(1000, "0.5", "1", False), (2, "3", "7.5", True), ("1e6", "1/300", "1/3", False)],
)
def test_an_epsilon_gives_the_guaranteed_errors(
    run: Run, n: int | str, epsilon: str, sensitivity: str, monotonic: bool
) -> None:
    options = ("--candidates", n, "--epsilon", epsilon, "--sensitivity", sensitivity, *["--monotonic"] * monotonic)
    result = run("plan", "select", *options)
    assert (result.code, result.err) == (0, "")
    [table] = tables(result.out)
    assert list(table) == list(MECHANISMS)
    size = int(float(n))
    for name, (shown_epsilon, average, within_95, within_99, *_) in table.items():
        mechanism = MECHANISMS[name](epsilon, sensitivity, monotonic)
        assert number(shown_epsilon) == pytest.approx(float(mechanism.epsilon), rel=1e-5)
        assert is_rounded_up(average, guaranteed(mechanism, size))
        tail = error_bounds(mechanism, size).tail
        assert tail(number(within_95)) <= 0.05 < tail(number(within_95) * 0.9985)
        assert tail(number(within_99)) <= 0.01 < tail(number(within_99) * 0.9985)


def test_the_plan_says_what_its_numbers_mean(run: Run) -> None:
    text = words(run("plan", "select", "--candidates", "1000", "--epsilon", "0.5").out)
    average = shown(worst_case_error(PermuteAndFlip("0.5"), 1000).error)
    assert average == "17.07"
    assert "Choosing one of 1,000 candidates, sensitivity 1: how far the answer can be off, for any data" in text
    assert f"On average, the chosen candidate scores at most {average} below the best one." in text
    assert "In 95 of 100 cases the difference is less than 39.62, in 99 of 100 less than 46.06." in text
    assert "Take permute-and-flip: at the same cost, epsilon 0.5 for a question" in text
    assert "a plan uses public numbers only" in text
    assert "zCDP" not in text


def test_sensitivity_and_monotonicity_are_named(run: Run) -> None:
    options = ("--candidates", "10", "--epsilon", "1", "--sensitivity", "1/3")
    assert "sensitivity 1/3:" in words(run("plan", "select", *options).out)
    assert "sensitivity 1/3, monotonic:" in words(run("plan", "select", *options, "--monotonic").out)


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize(("n", "error", "sensitivity"), [(1000, "20", "1"), (3, "0.01", "5")])
def test_an_error_gives_the_epsilon_that_guarantees_it(
    run: Run, n: int, error: str, sensitivity: str, monotonic: bool
) -> None:
    options = ("--candidates", n, "--error", error, "--sensitivity", sensitivity, *["--monotonic"] * monotonic)
    result = run("plan", "select", *options)
    [table] = tables(result.out)
    for name, (epsilon, average, within_95, *_) in table.items():
        mechanism = MECHANISMS[name](epsilon.replace(",", ""), sensitivity, monotonic)
        assert guaranteed(mechanism, n) <= float(error) < guaranteed(mechanism, n) * 1.0011
        assert is_rounded_up(average, guaranteed(mechanism, n))
        assert error_bounds(mechanism, n).tail(number(within_95)) <= 0.05
    best = table["permute-and-flip"][0]
    assert f"One question costs epsilon {best}." in words(result.out)


def test_json_has_the_figures_unrounded(run: Run) -> None:
    options = ("--candidates", "1000", "--epsilon", "1/3", "--sensitivity", "0.5", "--questions", "4")
    content = plan(run, "select", *options)
    assert (content["candidates"], content["questions"]) == (1000, 4)
    assert (content["epsilon"], content["error"], content["sensitivity"]) == ("1/3", None, "0.5")
    assert (content["monotonic"], content["better"]) == (False, "permute-and-flip")
    assert content["proxy"] is None
    for name, row in by_name(content["mechanisms"]).items():
        mechanism = MECHANISMS[name]("1/3", "0.5")
        assert row["epsilon"] == pytest.approx(1 / 3, rel=1e-15)
        assert row["expected_error_at_most"] == pytest.approx(guaranteed(mechanism, 1000), rel=1e-9)
        assert row["expected_error_attained"] == pytest.approx(worst_case_error(mechanism, 1000).error, rel=1e-9)
        tail = error_bounds(mechanism, 1000).tail
        assert [tail(row["error_95"]), tail(row["error_99"])] == pytest.approx([0.05, 0.01], rel=1e-9)
        assert row["total_epsilon"] == pytest.approx(4 / 3, rel=1e-15)
        assert row["total_zcdp"] == pytest.approx(4 * mechanism.guarantee.zcdp, rel=1e-15)


def test_json_of_an_error(run: Run) -> None:
    content = plan(run, "select", "--candidates", "30", "--error", "2.5", "--monotonic")
    assert (content["epsilon"], content["error"], content["monotonic"]) == (None, "2.5", True)
    assert content["better_for_many"] is None
    for name, row in by_name(content["mechanisms"]).items():
        average = guaranteed(MECHANISMS[name](row["epsilon"], monotonic=True), 30)
        assert 2.5 / 1.0011 < average <= 2.5


def test_text_and_json_tell_the_same(run: Run) -> None:
    options = ("--candidates", "200", "--error", "3", "--questions", "20")
    [table] = tables(run("plan", "select", *options).out)
    for name, row in by_name(plan(run, "select", *options)["mechanisms"]).items():
        keys = ("epsilon", "expected_error_at_most", "error_95", "error_99", "epsilon", "total_epsilon")
        cells = [cell for cell in table[name] if cell != "epsilon"]
        for cell, key in zip(cells, keys, strict=True):
            assert is_rounded_up(cell, row[key])
