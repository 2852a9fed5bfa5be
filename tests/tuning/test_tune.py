"""The best of many private runs: what is kept, what is charged, and what a failure tells."""

import math
import sys
import traceback
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import dpselect
from dpselect import BudgetExceeded, Ledger
from dpselect.accounting.totals import total
from dpselect.errors import InvalidType, InvalidValue, RunFailed
from dpselect.selection.draws import Draws
from dpselect.tuning import Poisson, geometric, logarithmic, tune
from dpselect.tuning.best import best_run
from tests.statistical.goodness import assert_fits, assert_rejected

SECRET = "patient 4711"  # noqa: S105 - of a person, not a password


class ThreeRuns:
    """A stand-in for the number of runs."""

    def draw(self, draws):
        return 3


def test_the_best_is_kept_and_of_equal_ones_the_first():
    order = iter([2, 0, 1])

    class Order(Draws):
        def index(self, bound):
            assert bound == 3
            return next(order)

    seen = []
    scores = {"a": 5, "b": 5, "c": 1}
    found = best_run(lambda one: seen.append(one) or one, ["a", "b", "c"], scores.get, ThreeRuns(), Order())
    assert seen == ["c", "a", "b"]
    assert found == (0, "a")


def test_scores_are_compared_exactly():
    values = [10**17, 10**17 + 1]  # equal as floats
    for _ in range(20):
        tuned = tune(lambda value: value, values, epsilon=1, repeats=logarithmic("0.01"), score=lambda value: value)
        assert tuned.result == tuned.candidate == values[tuned.position]
    tuned = tune(lambda value: value, values, epsilon=1, repeats=Poisson(200), score=lambda value: value)
    assert tuned.position == 1


@pytest.mark.slow
def test_the_distribution_of_the_best():
    """Candidates 0 to 3 are their own scores: the best of geometrically many uniform ones."""
    draws, mean = 5_000, 3
    counts = Counter(
        tune(lambda one: one, range(4), epsilon=1, repeats=geometric(mean), score=lambda one: one).position
        for _ in range(draws)
    )

    def kept(mean):
        sums = np.arange(5) / 4
        generating = sums / mean / (1 - (1 - 1 / mean) * sums)
        return np.diff(generating)

    found = [counts[position] for position in range(4)]
    assert_fits(found, kept(mean))
    assert_rejected(found, kept(5), truth=kept(mean))


def test_without_a_run_there_is_no_result():
    found = [tune(lambda one: one, [7], epsilon=1, repeats=Poisson(1), score=lambda one: one) for _ in range(200)]
    empty = [tuned for tuned in found if tuned.position is None]
    assert 20 < len(empty) < 140  # a share of 1/e, eight standard deviations wide
    assert all((tuned.candidate, tuned.result) == (None, None) for tuned in empty)
    assert all((tuned.candidate, tuned.result) == (7, 7) for tuned in found if tuned.position is not None)


def test_the_charge_is_there_before_the_first_run(tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=1)

    def run(candidate):
        assert ledger.spent == geometric(4).epsilon("0.1")
        return candidate

    tuned = tune(run, [1, 2], epsilon="0.1", repeats=geometric(4), score=float, ledger=ledger, what={"model": "ridge"})
    [entry] = ledger.entries()
    assert (tuned.ledger_id, entry.what, entry.epsilon) == (1, {"model": "ridge"}, geometric(4).epsilon("0.1"))
    assert entry.mechanism == "repeat-and-select negative-binomial shape=1 stop=1/4 epsilon=1/10"
    ledger.verify(tuned.receipt)
    assert Ledger(tmp_path / "ledger").entries() == [entry]
    assert total(ledger, delta=1e-6).epsilon == tuned.guarantee.epsilon


def test_an_exhausted_budget_runs_nothing(tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget="0.2")
    with pytest.raises(BudgetExceeded):
        tune(pytest.fail, [1], epsilon="0.1", repeats=geometric(4), score=float, ledger=ledger)
    assert ledger.spent == 0


def raising(candidate):
    raise KeyError(SECRET)


@pytest.mark.parametrize(
    ("run", "score"),
    [
        (raising, float),
        (sys.exit, float),
        (str, raising),
        (str, lambda _: SECRET),
        (str, lambda _: math.nan),
        (str, lambda _: None),
        (str, lambda _: -math.inf),
    ],
)
def test_a_failure_names_the_candidate_and_nothing_else(run, score, tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=1)
    with pytest.raises(RunFailed, match=r"candidate 0 \(counted from 0, of 1\)") as caught:
        tune(run, [SECRET], epsilon="0.1", repeats=geometric(4), score=score, ledger=ledger)
    assert ledger.spent == geometric(4).epsilon("0.1")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_the_first_failure_ends_it():
    calls = []

    def run(candidate):
        calls.append(candidate)
        raise ValueError

    with pytest.raises(RunFailed):
        best_run(run, ["a"], float, ThreeRuns(), Draws())
    assert calls == ["a"]


def test_a_keyboard_interrupt_is_not_a_failure():
    def run(candidate):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(run, [1], epsilon=1, repeats=geometric(4), score=float)


class Cheap(Poisson):
    """Only claims to be one of ours."""

    def epsilon(self, each):
        return Fraction(1, 10**9)


BAD = {
    InvalidType: [
        ({"candidates": "abc"}, "candidates must be a list"),
        ({"candidates": {1, 2}}, "candidates must be a list"),
        ({"candidates": 5}, "candidates must be a list"),
        ({"run": 5}, "run must be callable"),
        ({"score": None}, "score must be callable"),
        ({"repeats": 10}, "a fixed number of runs is not private"),
        ({"repeats": Cheap(3)}, "repeats must be"),
        ({"ledger": "path"}, "ledger must be a Ledger"),
    ],
    InvalidValue: [
        ({"candidates": []}, "candidates must not be empty"),
        ({"epsilon": 0}, "epsilon must be > 0"),
        ({"delta": 1}, "delta must be from 0 to below 1"),
        ({"epsilon": None, "delta": "1e-9"}, "epsilon must be given with a delta"),
    ],
}


@pytest.mark.parametrize(("error", "changed", "words"), [(error, *case) for error in BAD for case in BAD[error]])
def test_bad_input(error, changed, words):
    arguments = {"run": pytest.fail, "candidates": [1], "epsilon": 1, "repeats": geometric(4), "score": float}
    with pytest.raises(error, match=words):
        tune(**(arguments | changed))


def test_the_record_shows_no_result():
    tuned = tune(lambda _: SECRET, [1], epsilon=1, repeats=geometric(2), score=len)
    assert tuned.result == SECRET
    assert SECRET not in repr(tuned)
    assert dpselect.tune is tune


def test_without_an_epsilon_there_is_a_result_and_no_guarantee(tmp_path):
    tuned = tune(lambda one: one, [7], repeats=geometric(2), score=lambda one: one)
    assert (tuned.result, tuned.guarantee, tuned.ledger_id) == (7, None, None)
    ledger = Ledger(tmp_path / "ledger", budget=1)
    with pytest.raises(InvalidValue, match="epsilon must be given with a ledger"):
        tune(lambda one: one, [7], repeats=geometric(2), score=lambda one: one, ledger=ledger)
    assert ledger.spent == 0


def test_runs_with_a_delta_charge_it(tmp_path):
    """Approximate zCDP and (epsilon, delta) have a delta for releases, pure epsilon has none."""
    repeats = geometric(mean=4)
    costs = repeats.delta("1e-9"), repeats.epsilon("0.1")

    def tuned(ledger):
        return tune(
            lambda one: one, [7], epsilon="0.1", delta="1e-9", repeats=repeats, score=float, ledger=ledger, what="model"
        )

    for name, budget in {"zcdp": dpselect.zcdp("0.5", delta="1e-6"), "both": dpselect.approximate(2, "1e-6")}.items():
        ledger = Ledger(tmp_path / name, budget=budget)
        best = tuned(ledger)
        [entry] = Ledger(tmp_path / name).entries()
        assert (entry.delta, entry.epsilon) == (best.guarantee.delta, best.guarantee.epsilon) == costs
        assert Fraction(3, 10**9) < entry.delta < Fraction(4, 10**9)
        assert entry.what == {"question": "model", "delta_of_each_run": "1e-9"}
        assert ledger.spent.delta == entry.delta
        ledger.verify(best.receipt)
        found = total(ledger, delta=1e-6)
        assert found.delta == entry.delta
        assert 0 < found.approximate.epsilon <= float(entry.epsilon) * (1 + 1e-9)
    for name, budget in {"pure": "1", "none": dpselect.zcdp("0.5")}.items():
        ledger = Ledger(tmp_path / name, budget=budget)
        with pytest.raises(InvalidValue, match=r"whose budget has (a delta|one), such as"):
            tune(pytest.fail, [7], epsilon="0.1", delta="1e-9", repeats=repeats, score=float, ledger=ledger)
        assert ledger.entries() == []
    assert (tuned(None).guarantee.delta, tuned(None).guarantee.epsilon) == costs
    small = Ledger(tmp_path / "small", budget=dpselect.zcdp("0.5", delta="3e-9"))
    with pytest.raises(BudgetExceeded):
        tuned(small)
