"""A delta above 1/1000 warns wherever a user states one: once, at the user's line, and before anything is charged."""

import re
import warnings

import numpy as np
import pyarrow as pa
import pytest

import dpselect
from dpselect import Ledger, accounting
from dpselect.accounting import largest_belief, total
from dpselect.accounting.charge import Charge
from dpselect.analysis import plan, plan_found
from dpselect.errors import DoubtfulValue, InvalidValue
from dpselect.tuning import Poisson, geometric, tune

ROWS = pa.table({"dest": ["ulm"] * 300 + ["bonn"] * 200, "day": [1, 2] * 250})
LARGE = ["0.0011", 0.0011, "1/999", 0.3]
USUAL = ["0.001", 0.001, "1e-6", 1e-9]
WORDS = r"^delta 0\.[0-9]+ hardly protects anybody: .* such as 1e-9$"


def asked(**options):
    return dpselect.open_table(ROWS, **options)


def searched(delta):
    model_selection = pytest.importorskip("dpselect.tuning.search_cv", reason="needs scikit-learn")
    dummy = pytest.importorskip("sklearn.dummy")
    estimator = dummy.DummyClassifier(strategy="constant", constant=0)
    space = {"constant": [0, 1]}
    search = model_selection.PrivateSearchCV(estimator, space, epsilon=1, delta=delta, repeats=Poisson(1))
    search.fit(np.zeros((9, 1)), np.arange(9) % 2)


def tuned(delta, repeats=None, ledger=None):
    # With a mean of one run, the delta of all of them is about that of one.
    repeats = Poisson(1) if repeats is None else repeats
    return tune(lambda _: 0, ["a"], epsilon="0.1", delta=delta, repeats=repeats, score=float, ledger=ledger)


QUESTIONS = {
    "values": lambda delta, **options: asked(**options).values("dest", epsilon=1, delta=delta),
    "mode": lambda delta, **options: asked(**options).mode("dest", epsilon=1, delta=delta),
    "top_k": lambda delta, **options: asked(**options).top_k("dest", 2, epsilon=1, delta=delta),
    "group_by": lambda delta, **options: asked(**options).group_by("dest", epsilon=1, delta=delta),
    "a question about groups": lambda delta, **options: (
        asked(**options).group_by("day", groups=[1, 2]).mode("dest", epsilon=1, delta=delta)
    ),
    "spend": lambda delta, ledger: ledger.spend("0.1", "by other software", delta=delta),
}
STATED = {
    "plan": lambda delta: plan(100, epsilon="0.1", questions=3, delta=delta),
    "plan_found": lambda delta: plan_found("mode", epsilon=1, delta=delta),
    "zcdp": lambda delta: dpselect.zcdp("0.5", delta=delta),
    "approximate": lambda delta: dpselect.approximate(1, delta),
    "total": lambda delta: total([Charge("mode", "0.1")], delta=delta),
    "largest_belief": lambda delta: largest_belief("0.01", "zcdp:0.1", delta=delta),
}


@pytest.fixture
def ledger(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulValue)
        return Ledger(tmp_path / "l.ledger", budget=dpselect.zcdp(100, delta="0.9"))


def warned(call):
    """The warnings of a call."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", DoubtfulValue)
        call()
    return [one for one in seen if one.category is DoubtfulValue]


@pytest.mark.parametrize("delta", LARGE + USUAL)
@pytest.mark.parametrize("name", [*QUESTIONS, *STATED])
def test_a_large_delta_warns_once_at_the_line_of_the_user_and_a_usual_one_does_not(name, delta, ledger):
    seen = warned(lambda: STATED[name](delta) if name in STATED else QUESTIONS[name](delta, ledger=ledger))
    assert [one.filename for one in seen] == [__file__] * (delta in LARGE)
    assert all(re.search(WORDS, str(one.message)) for one in seen)


@pytest.mark.parametrize("name", QUESTIONS)
def test_if_the_warning_is_an_error_nothing_is_charged(name, ledger):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulValue)
        with pytest.raises(DoubtfulValue, match=WORDS):
            QUESTIONS[name]("0.002", ledger=ledger)
    assert ledger.entries() == []


@pytest.mark.parametrize("run", [tuned, searched])
def test_the_best_of_many_runs(run):
    [one] = warned(lambda: run("0.0015"))
    assert str(one.message).startswith("delta 0.001499 ")
    assert warned(lambda: run("0.001")) == []


def test_the_delta_of_all_runs_counts(ledger):
    [one] = warned(lambda: tuned("0.0002", geometric(mean=10)))
    assert str(one.message).startswith("delta 0.001997 ")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulValue)
        with pytest.raises(DoubtfulValue):
            tuned("0.0002", geometric(mean=10), ledger)
    assert ledger.entries() == []


def test_who_opens_a_ledger_did_not_choose_its_budget(tmp_path):
    path = tmp_path / "l.ledger"
    for text in ("1,0.005", "zcdp:1,0.005"):
        assert len(warned(lambda text=text: Ledger(path, budget=text))) == 1
        assert warned(lambda: Ledger(path).spend("0.01", "x")) == []
        assert warned(lambda: Ledger(path).remaining) == []
        path.unlink()


def test_what_is_refused_does_not_warn():
    for refused in (lambda: asked().mode("dest", epsilon=1, delta="0.6"), lambda: dpselect.approximate(1, 2)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", DoubtfulValue)
            with pytest.raises(InvalidValue):
                refused()
    assert accounting.largest_belief("0.5", 1) < 0.74
