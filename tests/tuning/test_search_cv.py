"""`PrivateSearchCV`: scikit-learn's interface, what is charged, and what never shows."""

import contextlib
import pickle
import random
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from packaging.version import Version
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler
from sklearn.svm import LinearSVC
from sklearn.utils import estimator_checks

import dpselect
from dpselect import BudgetExceeded, Ledger, tuning
from dpselect.errors import InvalidType, InvalidValue, RunFailed
from dpselect.selection.draws import Draws
from dpselect.tuning import Poisson, PrivateSearchCV, geometric, trials
from dpselect.tuning.search_cv import Parts, _are_right, split
from dpselect.tuning.trials import FINE, WHOLE, checked_space, drawn_parameters, units

# scikit-learn before 1.7 calls SciPy in a way that newer SciPys deprecate.
pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")
SECRET = "patient 4711"  # noqa: S105 - of a person, not a password


class Constant(ClassifierMixin, BaseEstimator):
    """Predicts a parameter. It does not read the data, so it is private."""

    def __init__(self, label=0, fail=None, random_state=None):
        self.label = label
        self.fail = fail
        self.random_state = random_state

    def fit(self, features, y):
        if self.fail is not None:
            self.fail()
        self.classes_, self.n_features_in_ = np.array([0, 1]), np.shape(features)[1]
        return self

    def predict(self, features):
        return np.full(np.shape(features)[0], self.label)


def people(size=400):
    return np.zeros((size, 2)), np.ones(size, dtype=int)


def search(**changed):
    arguments = {"estimator": Constant(), "param_distributions": {"label": [0, 1]}, "epsilon": 1}
    return PrivateSearchCV(**(arguments | changed))


def test_the_best_parameters_are_found_and_all_runs_are_charged(tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=10)
    repeats = geometric(mean=40)
    found = search(repeats=repeats, ledger=ledger, what={"model": "constant"}, epsilon="0.5", score_epsilon="0.75")
    assert found.fit(*people()) is found
    [entry] = ledger.entries()
    assert entry.what == {"model": "constant"}
    assert entry.epsilon == found.guarantee_.epsilon == repeats.epsilon("0.75")  # the larger one of both
    assert (found.ledger_id_, found.guarantee_.delta) == (1, 0)
    ledger.verify(found.receipt_)
    assert found.best_params_ in ({"label": 0}, {"label": 1})
    assert found.best_estimator_.label == found.best_params_["label"]
    assert (found.predict(people(3)[0]) == found.best_params_["label"]).all()
    assert found.score(*people(3)) == found.best_params_["label"]
    assert isinstance(found.noisy_count_, int)
    assert found.n_features_in_ == 2
    assert found.classes_.tolist() == [0, 1]
    best = [search(repeats=Poisson(60)).fit(*people()) for _ in range(5)]
    assert all(one.best_params_ == {"label": 1} and one.noisy_count_ > 50 for one in best)  # 100 people on average


def test_a_delta_is_charged_for_all_runs(tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=dpselect.approximate(20, "1e-6"))
    found = search(delta="1e-9", ledger=ledger).fit(*people(20))
    assert found.guarantee_.delta == ledger.entries()[0].delta == geometric(mean=10).delta("1e-9")
    with pytest.raises(InvalidValue, match="whose budget has a delta"):
        search(delta="1e-9", ledger=Ledger(tmp_path / "pure", budget=9)).fit(*people(20))


def test_an_exhausted_budget_trains_nothing(tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=2)
    with pytest.raises(BudgetExceeded):
        search(estimator=Constant(fail=pytest.fail), ledger=ledger).fit(*people(20))
    assert ledger.spent == 0


class PrivacyLeakWarning(RuntimeWarning):
    """Named as diffprivlib's."""


def test_warnings_of_runs_are_not_shown_and_one_of_a_leak_is_a_failure():
    def warn():
        warnings.warn(SECRET, RuntimeWarning, stacklevel=1)

    def leak():
        warnings.warn("norm taken from the data", PrivacyLeakWarning, stacklevel=1)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        search(estimator=Constant(fail=warn)).fit(*people(20))
        with pytest.raises(RunFailed, match="PrivacyLeakWarning"):
            search(estimator=Constant(fail=leak)).fit(*people(20))
    assert seen == []


def test_models_of_diffprivlib():
    """Also its budget accountant counts one training, not the number of runs. The default is that of the process."""
    models = pytest.importorskip("diffprivlib.models", reason="diffprivlib is not installed: pip install '.[peers]'")
    accountant = pytest.importorskip("diffprivlib").BudgetAccountant()
    features, labels = np.eye(2)[np.arange(400) % 2], np.arange(400) % 2
    model = models.LogisticRegression(epsilon=1, data_norm=1, accountant=accountant)
    found = search(estimator=model, param_distributions={"C": [0.1, 1]}).fit(features, labels)
    assert len(found.best_estimator_.accountant) == 1
    assert len(model.accountant) == 0
    with pytest.raises(RunFailed, match="took a bound from the data"):
        search(estimator=models.LogisticRegression(), param_distributions={"C": [0.1]}).fit(features, labels)


def test_no_secret_number_is_kept():
    """Parameters, the released values, and nothing else: no rows, no number of runs, no size of a part."""
    found = search().fit(*people())
    released = {"best_params_", "best_estimator_", "noisy_count_", "guarantee_", "ledger_id_", "receipt_"}
    assert vars(found).keys() == found.get_params(deep=False).keys() | released
    assert repr(found) == repr(search())  # the parameters alone: a count might be one of their digits


def test_without_a_run_there_is_no_model():
    while (found := search(repeats=Poisson(1)).fit(*people(20))).best_estimator_ is not None:  # a third has no run
        pass
    assert (found.best_params_, found.noisy_count_) == (None, None)
    assert found.guarantee_.epsilon == Poisson(1).epsilon(1)
    with pytest.raises(NotFittedError, match="there was no run"):
        found.predict(people(2)[0])
    with pytest.raises(NotFittedError):
        search().predict(people(2)[0])
    assert not hasattr(search(), "classes_")


def of(model, **parameters):
    """A search over other models, by default of no parameters."""
    return {"estimator": model, "param_distributions": parameters}


def over(*labels):
    return {"param_distributions": {"label": list(labels)}}


SEED = "must have no seed"
WRONG = {
    InvalidValue: [
        ({"estimator": Constant(random_state=3)}, f"random_state {SEED}"),
        (of(make_pipeline(Constant(random_state=3))), f"constant__random_state {SEED}"),
        (of(Constant(), random_state=[1, 2]), f"random_state {SEED}"),
        (over(Constant(random_state=1)), f"label__random_state {SEED}"),
        ({"estimator": Constant(label=np.random.default_rng())}, f"label {SEED}"),
        ({"estimator": Constant(label=[random.Random()])}, f"label {SEED}"),
        (over(np.random.RandomState()), f"label {SEED}"),
        (over([("last", Constant(random_state=1))]), f"label__random_state {SEED}"),
        (of(Pipeline([("last", Constant())], memory="cache")), "memory must be None"),
        (of(LogisticRegression(n_jobs=2)), "n_jobs must be None or 1"),
        (of(search(ledger=Ledger(Path(tempfile.mkdtemp()) / "own", budget=1))), "ledger must not be a ledger"),
        (of(Constant(), labels=[1]), "must have parameters of the estimator, got labels"),
        (over(), "label must have at least one value"),
        ({"epsilon": 0}, "epsilon must be > 0"),
        ({"score_epsilon": -1}, "score_epsilon must be > 0"),
        ({"delta": 1}, "delta must be from 0 to below 1"),
        ({"test_size": 1}, "test_size must be between 0 and 1"),
    ],
    InvalidType: [
        ({"estimator": Constant}, "estimator must be an estimator"),
        ({"estimator": 3}, "estimator must be an estimator"),
        (of(Constant(), label="ab"), "label must have a list"),
        (of(Constant(), label=3), "label must have a list"),
        ({"param_distributions": []}, "param_distributions must be a dict"),
        ({"param_distributions": ["label"]}, "param_distributions must be a dict"),
        ({"scoring": "roc_auc"}, "scoring must be None or a function"),
        ({"repeats": 10}, "a fixed number of runs is not private"),
    ],
}


@pytest.mark.parametrize("error", WRONG)
def test_wrong_parameters_are_refused_and_not_charged(error, tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=10)
    for changed, words in WRONG[error]:
        with pytest.raises(error, match=words):
            search(ledger=ledger, **changed).fit(*people(20))
    features, y = people(20)
    for given in ((features.tolist(), y), (features, y.tolist()), (features, tuple(y))):  # lists have no type
        with pytest.raises(InvalidType, match="must be an array, data frame or sparse matrix, got"):
            search(ledger=ledger).fit(*given)
    assert ledger.spent == 0


def test_wrong_shapes_are_refused_without_their_sizes():
    for labels in (np.ones(19), None):
        with pytest.raises(InvalidValue) as caught:
            search().fit(people(20)[0], labels)
        assert not any(size in str(caught.value) for size in ("19", "20"))


def test_clones_share_the_ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger", budget=20)
    one = search(ledger=ledger, repeats=Poisson(3))
    for other in (clone(one), clone(Pipeline([("search", one)]))["search"]):
        assert other is not one
        assert other.ledger is ledger
        assert other.estimator is not one.estimator
        assert other.get_params()["repeats"] == Poisson(3)
    one.set_params(epsilon="1/2", estimator__label=1)
    assert (one.epsilon, one.estimator.label) == ("1/2", 1)
    assert pickle.loads(pickle.dumps(search().fit(*people(20)))).guarantee_.epsilon > 2  # noqa: S301 - our own


def test_pipelines_inside_and_outside():
    features, y = people(200)
    inner = search(
        estimator=make_pipeline(FunctionTransformer(), Constant()), param_distributions={"constant__label": [1]}
    )
    assert inner.fit(features, y).predict(features[:2]).tolist() == [1, 1]
    outer = make_pipeline(FunctionTransformer(), search(param_distributions={"label": [1]})).fit(features, y)
    assert outer.score(features, y) == 1
    assert is_classifier(search())
    assert is_regressor(search(estimator=Ridge(), param_distributions={"alpha": [1]}))
    assert not hasattr(search(), "predict_proba")
    assert not hasattr(search(), "transform")
    scaled = search(estimator=MaxAbsScaler(), param_distributions={"copy": [True]}, scoring=lambda *_: 1).fit(
        features + 1, y
    )
    assert scaled.transform(features[:1] + 1).tolist() == [[1, 1]]
    model = search(estimator=LogisticRegression(), param_distributions={"C": [1]}, test_size=0.01)
    model.fit(np.arange(40)[:, None] % 2, np.arange(40) % 2)
    assert model.predict_proba([[0]]).shape == model.predict_log_proba([[0]]).shape == (1, 2)
    assert model.decision_function([[0]]).shape == (1,)


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, sparse.coo_matrix])
def test_tables_of_many_kinds(kind):
    features, y = people(60)
    for labels in (y, y[:, None], pd.DataFrame({"y": y}), pd.Series(y, index=range(100, 160)), y.astype(str)):
        found = search(
            repeats=Poisson(8),
            param_distributions={"label": [np.asarray(labels).reshape(-1)[0]]},
        )
        assert found.fit(kind(features), labels).guarantee_.epsilon > 1


class Seeded:
    """A distribution of estimators with a seed, which shows only when one is drawn."""

    def rvs(self, random_state):
        return Constant(random_state=1)


def test_a_seed_that_is_drawn_is_a_failure():
    with pytest.raises(RunFailed):
        search(param_distributions={"label": Seeded()}, repeats=geometric(mean=2)).fit(*people(20))


class Echo(Constant):
    """Predicts the first feature of each row, in the form that a parameter names."""

    def predict(self, features):
        predicted = np.asarray(features)[:, 0]
        forms = {
            0: predicted,
            1: predicted[:, None],
            2: predicted.tolist(),
            3: np.stack([predicted, predicted], axis=1),
        }
        return forms[self.label]


@pytest.mark.parametrize("form", [0, 1, 2, 3])
@pytest.mark.parametrize("labels_are", ["a vector", "a column", "two columns", "text", "objects"])
def test_a_row_changes_only_its_own_score(form, labels_are):
    """Whatever the shapes and types of labels and predictions are: NumPy likes to compare every row with all."""
    features, y = np.arange(6.0)[:, None] % 2, np.arange(6) % 2
    kinds = {
        "a vector": y,
        "a column": y[:, None],
        "two columns": np.stack([y, y], axis=1),
        "text": y.astype(str),
        "objects": y.astype(object),
    }
    labels = kinds[labels_are]
    model = Echo(label=form).fit(features, y)

    def scores(features, labels):
        parts = Parts(features, labels, np.arange(0), np.arange(6))
        return units(lambda rows: _are_right(model, *parts.rows(rows)), np.arange(6), WHOLE)

    before = scores(features, labels)
    for row in range(6):
        for value in (0, 1, 7, "x") if labels.dtype == object else ("0", "x") if labels_are == "text" else (0, 1, 7):
            replaced = labels.copy()
            replaced[row] = value
            assert np.flatnonzero(scores(features, replaced) != before).tolist() in ([], [row])
        moved = features.copy()
        moved[row] = 5
        assert np.flatnonzero(scores(moved, labels) != before).tolist() in ([], [row])
    if labels_are in ("a vector", "a column", "objects") and form != 3:
        assert before.tolist() == [1] * 6


def raising():
    raise KeyError(SECRET)


class Panic(BaseException):
    """Like the panics of libraries that are not written in Python: not an Exception."""


def panicking():
    raise Panic(SECRET)


def interrupting():
    try:
        raise ValueError(SECRET)
    except ValueError:
        raise KeyboardInterrupt(SECRET)  # noqa: B904 - the context is what is tested


FAILURES = {raising: RunFailed, panicking: RunFailed, interrupting: KeyboardInterrupt}


@pytest.mark.parametrize("fail", FAILURES)
def test_a_failure_tells_nothing_and_stays_charged(fail, tmp_path, capsys):
    ledger = Ledger(tmp_path / "ledger", budget=3)
    with pytest.raises(FAILURES[fail]) as caught:
        search(estimator=Constant(fail=fail), ledger=ledger).fit(*people(20))
    assert ledger.spent > 0
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert fail is interrupting or "made-up data" in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert capsys.readouterr() == ("", "")


def test_searches_in_threads_do_not_show_warnings_of_each_other():
    started, seen = threading.Event(), []

    def slow():
        started.set()
        time.sleep(0.05)
        warnings.warn(SECRET, RuntimeWarning, stacklevel=1)

    def fit(fail):
        seen.append(search(estimator=Constant(fail=fail), repeats=geometric(mean=2)).fit(*people(20)))

    threads = [threading.Thread(target=fit, args=[slow]) for _ in range(3)]
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert list(warnings.filters) == before
    assert (len(seen), shown) == (3, [])


class Sometimes:
    """Scores rows by their own value, fails on some, and counts its calls."""

    def __init__(self, values):
        self.values, self.calls = np.asarray(values, dtype=object), 0

    def __call__(self, positions):
        self.calls += 1
        return [float(value) for value in self.values[positions]]


def test_a_row_that_fails_counts_as_zero_and_changes_no_other():
    rows = np.arange(5)
    good, bad = Sometimes([0, 1, 0.5, 1, 7]), Sometimes([0, 1, 0.5, SECRET, -7])
    panics = type("Odd", (), {"__float__": lambda self: panicking()})()
    assert units(Sometimes([1, 1, 1, panics, 1]), rows, WHOLE).tolist() == [1, 1, 1, 0, 1]
    assert units(good, rows, FINE).tolist() == [0, FINE, FINE // 2, FINE, FINE]
    assert units(bad, rows, FINE).tolist() == [0, FINE, FINE // 2, 0, 0]
    assert (good.calls, bad.calls) == (5, 5)
    odd = Sometimes([np.inf, -np.inf, np.nan, 1e-6, 0.999999])
    assert units(odd, rows, FINE).tolist() == [FINE, 0, 0, 0, FINE]
    for several in ([], [1, 1], [[1, 1]]):
        assert units(lambda rows, several=several: several, rows, WHOLE).tolist() == [0] * 5
    assert units(lambda rows: pytest.fail("no rows"), rows[:0], WHOLE).tolist() == []


def test_a_score_does_not_see_how_many_rows_there_are():
    def share(rows):
        return np.full(rows.size, 1 / rows.size)

    def share_or_failure(rows):
        assert 3 not in rows
        return share(rows)

    for size in (1, 2, 5, 300):
        assert units(share, np.arange(size), FINE).tolist() == [FINE] * size
    assert units(share_or_failure, np.arange(5), FINE).tolist() == [FINE, FINE, FINE, 0, FINE]


class BySize(Constant):
    """Adds up features in an order that depends on the number of rows, as linear algebra may. NaN is an error."""

    def predict(self, features):
        if np.isnan(features).any():
            raise ValueError(SECRET)
        order = features if len(features) == 1 else features[:, ::-1]
        return (np.cumsum(order, axis=1)[:, -1] > 0.5).astype(int)


def linear(model, outputs=1):
    """A fitted linear model that adds up the features."""
    model.coef_, model.intercept_ = np.ones((outputs, 4)), np.full(outputs, -0.5)
    model.classes_, model.n_features_in_ = np.arange(max(outputs, 2)), 4
    return model


def network():
    """A network whose units add up the features."""
    model = MLPClassifier(hidden_layer_sizes=[3], max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.eye(4), [0, 1, 0, 1])
    model.coefs_ = [np.ones((4, 3)), np.ones((3, 1))]
    model.intercepts_ = [np.full(3, -0.5), np.full(1, -0.5)]
    return model


# For these, 1e16 - 1e16 + 1 + 1 is 0, 1 or 2: that depends on the order of additions.
ROUNDING = {
    "by size": lambda: BySize().fit(np.zeros((1, 4)), [0]),
    "logistic": lambda: linear(LogisticRegression()),
    "of many classes": lambda: linear(LogisticRegression(), outputs=5),
    "gradient descent": lambda: linear(SGDClassifier()),
    "support vectors": lambda: linear(LinearSVC()),
    "network": network,
    "pipeline": lambda: Pipeline([("sums", FunctionTransformer(_sums)), ("model", linear(LogisticRegression()))]),
}


def _sums(features):
    return features @ np.ones((4, 4))


@pytest.mark.parametrize("name", ROUNDING)
@pytest.mark.parametrize("order", ["C", "F"])
def test_other_rows_change_no_score_even_by_rounding(name, order):
    """Rows that fail, that are added, and that are elsewhere. Of a batch, most of these scores would change."""
    model, size, generator = ROUNDING[name](), 300, np.random.default_rng(0)
    features = generator.permuted(np.tile([1e16, -1e16, 1.0, 1.0], (size, 1)), axis=1)
    labels = np.arange(size) % 2

    def scores(chosen, failing=()):
        given = np.asarray(features[chosen], order=order)
        given[np.isin(chosen, failing)] = np.nan
        parts = Parts(given, labels[chosen], np.arange(0), np.arange(len(chosen)))
        found = units(lambda rows: _are_right(model, *parts.rows(rows)), parts.testing, WHOLE)
        return dict(zip(chosen.tolist(), found.tolist(), strict=True))

    everybody = np.arange(size)
    before = scores(everybody)
    assert {0, 1} == set(before.values())
    for failing in ([0], [size - 1], [7, 8, 100]):
        assert scores(everybody, failing) == before | dict.fromkeys(failing, 0)
    assert scores(generator.permutation(size)) == before
    for part in (everybody[1:], everybody[:-1], everybody[:1], everybody[100:117], everybody[::3]):
        assert scores(part).items() <= before.items()
    if name == "by size":  # the power of this test: the same model gives other scores to a batch
        assert (_are_right(model, features, labels) != list(before.values())).sum() > size / 4


def test_a_warning_about_a_held_out_row_does_not_show():
    """A failure is a release of `fit`, which such a row is not in."""

    class WarnsOfRows(Constant):
        def predict(self, features):
            warnings.warn(SECRET, PrivacyLeakWarning, stacklevel=1)
            return super().predict(features)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        search(estimator=WarnsOfRows()).fit(*people(50))
    assert seen == []


def test_scores_of_ones_own():
    features, y = people(2_000)
    found = search(
        repeats=geometric(mean=2),
        scoring=lambda model, features, y: np.full(len(y), 1 / 3),
        score_epsilon=20,
        test_size="1/2",
    ).fit(features, y)
    assert isinstance(found.noisy_count_, float)
    assert 250 < found.noisy_count_ < 420  # a third of 1,000 people; ten standard deviations wide
    assert found.noisy_count_ * FINE % 1 == 0


def test_noise_is_that_of_the_grid(monkeypatch):
    """A person changes the sum by up to `grid` units, so its rate is that many times smaller."""
    rates = []
    monkeypatch.setattr(trials, "two_sided_geometric", lambda rate, draws: rates.append(rate) or 5)
    for grid in (WHOLE, FINE):
        found = trials.noisy_sum(lambda rows: np.ones(rows.size), np.arange(3), grid, Fraction(1, 2), Draws())
        assert found == 3 * grid + 5
    assert rates == [Fraction(1, 2), Fraction(1, 2 * FINE)]


def test_everybody_is_in_one_part():
    parts = split(*people(2_000), Fraction(1, 10), Draws())
    assert sorted([*parts.training, *parts.testing]) == list(range(2_000))
    assert 100 < parts.testing.size < 300  # 200 people; seven standard deviations
    assert "training" not in repr(parts)


def test_the_share_of_held_out_people():
    flags = trials.held_out(40_000, Fraction(1, 4), Draws())
    assert abs(flags.mean() - 0.25) < 6.5 * (0.1875 / 40_000) ** 0.5
    assert (trials.held_out(40_000, Fraction(1, 4), Draws()) != flags).any()


def test_parameters_are_drawn_from_lists_and_distributions():
    space = checked_space([{"a": (1, 2), "b": stats.uniform(5, 1)}, {"a": np.array([3])}])
    drawn = [drawn_parameters(space, Draws()) for _ in range(200)]
    assert {one["a"] for one in drawn} == {1, 2, 3}
    numbers = [one["b"] for one in drawn if "b" in one]
    assert len(set(numbers)) == len(numbers)
    assert all(5 <= number <= 6 for number in numbers)
    assert {frozenset(one) for one in drawn} == {frozenset("ab"), frozenset("a")}


LATE = """
import sys
import dpselect.tuning
from dpselect.tuning import *
assert "sklearn" not in sys.modules
assert "PrivateSearchCV" in dir(dpselect.tuning)
sys.modules["sklearn"] = None
try:
    dpselect.tuning.PrivateSearchCV
except ImportError as error:
    print(error)
"""


def test_scikit_learn_is_imported_when_it_is_needed():
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True)
    needed, _, command = done.stdout.strip().partition(": ")
    assert needed == "PrivateSearchCV needs scikit-learn"
    assert shlex.split(command) == [sys.executable, "-m", "pip", "install", "scikit-learn"]
    with pytest.raises(AttributeError, match="no attribute 'Search'"):
        _ = tuning.Search


# What scikit-learn wants and a private search must not, or cannot, do.
LISTS = "it fits lists, whose type would depend on the rows"
WITHHELD = "what a run raises is withheld, because it may quote the data, and no value is looked at before the charge"
RANDOM = "two fits differ: each has its own secret runs and held-out people"
NOT_DONE = {
    "check_complex_data": WITHHELD,
    "check_dtype_object": WITHHELD,
    "check_estimators_empty_data_messages": WITHHELD,
    "check_estimators_nan_inf": WITHHELD,
    "check_estimator_sparse_array": WITHHELD,
    "check_estimator_sparse_matrix": WITHHELD,
    "check_estimator_sparse_data": WITHHELD,
    "check_estimator_sparse_tag": WITHHELD,
    "check_classifiers_one_label": WITHHELD,
    "check_classifiers_regression_target": WITHHELD,
    "check_supervised_y_no_nan": WITHHELD,
    "check_supervised_y_2d": "warnings of runs are not shown",
    "check_fit1d": WITHHELD,
    "check_fit2d_1sample": WITHHELD,
    "check_classifiers_train": LISTS,
    "check_regressors_train": LISTS,
    "check_fit_idempotent": RANDOM,
    "check_regressors_int": RANDOM,
}
if Version(sklearn.__version__) < Version("1.6"):
    NOT_DONE["check_parameters_default_constructible"] = "scikit-learn 1.5 makes a search without parameters"
# Hardly anybody is held out, so that small tables have people of all classes to train on.
OF_MODELS = [
    PrivateSearchCV(model, {name: [1.0]}, epsilon=10, repeats=geometric(mean=2), test_size=1e-9)
    for model, name in ((LogisticRegression(), "C"), (Ridge(), "alpha"))
]


def checks_of(estimator):
    """From 1.6 on there is a function for this."""
    generator = getattr(estimator_checks, "estimator_checks_generator", None)
    return list(generator(estimator) if generator else estimator_checks.check_estimator(estimator, generate_only=True))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*lbfgs failed to converge")
@pytest.mark.parametrize("estimator", OF_MODELS, ids=["LogisticRegression", "Ridge"])
def test_scikit_learns_own_checks(estimator):
    """The models inside are not private; here only the interface is looked at."""
    done = 0
    for fresh, check in checks_of(estimator):
        if check.func.__name__ not in NOT_DONE:
            with contextlib.suppress(unittest.SkipTest):
                check(fresh)
                done += 1
    assert done >= 25  # older versions have fewer
