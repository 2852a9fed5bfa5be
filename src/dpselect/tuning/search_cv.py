"""`PrivateSearchCV`: the hyperparameters of a private estimator of scikit-learn, chosen by the best of many runs.

**A run is private.** Every person has one row. Rows are split in two parts by coins that do not depend on the data. A
run trains on one part and returns the model and a noisy sum of scores of the other part. Fix the coins. The row in
which two neighbouring data sets differ has one coin: a replaced row keeps its place, and an added row has a coin of its
own.

  * If it is trained on, the model is that of an (epsilon, delta)-DP training, and the scored part is the same, so the
    sum is computed from the model and from nothing that changed: both together are (epsilon, delta)-DP.
  * If it is scored, the model has the same distribution, and given the model the sum is score_epsilon-DP.

So a run is (max(epsilon, score_epsilon), delta)-DP for every outcome of the coins, and `tune` accounts for all runs
given the coins (theorems 9 and 20 of docs/theory.md). A mixture over coins that do not depend on the data keeps that.
"""

import copy
import threading
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._messages import install_command
from dpselect._types import Number, Positions
from dpselect._validate import exact_positive
from dpselect.accounting.charge import What
from dpselect.accounting.repeats import Repeats, geometric
from dpselect.errors import InvalidType, InvalidValue, MissingExtra, RunFailed
from dpselect.ledger import Ledger
from dpselect.selection.draws import Draws
from dpselect.tuning.best import Tuned, tune
from dpselect.tuning.trials import (
    FINE,
    WHOLE,
    Space,
    check_parameters,
    checked_space,
    drawn_parameters,
    held_out,
    noisy_sum,
)

try:
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import _safe_indexing, indexable
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import _num_samples, check_is_fitted
except ImportError:
    raise MissingExtra(f"PrivateSearchCV needs scikit-learn: {install_command('scikit-learn')}") from None

_TYPE = "a list has no type, and one that is found in the rows would depend on each of them"
# What diffprivlib warns of if it takes a bound from the data.
_LEAK = "PrivacyLeakWarning"
_DEFAULT_REPEATS = geometric(mean=10)
# Filters of warnings belong to the whole process: a second search in another thread would show warnings of the first.
_ONE_AT_A_TIME = threading.RLock()


@dataclass(frozen=True)
class Trained:
    # The result of one run, all of which is private: parameters, model, and noisy sum in units of 1/grid.

    parameters: dict[str, Any]
    model: Any = field(repr=False)
    noisy_units: int = field(repr=False)


@dataclass(frozen=True, repr=False)
class Parts:
    features: Any
    labels: Any
    training: Positions
    testing: Positions

    def rows(self, positions: Positions) -> tuple[Any, Any]:
        return _safe_indexing(self.features, positions), _safe_indexing(self.labels, positions)


@dataclass(frozen=True)
class Run:
    """One run: train a clone with random parameters on one part, and score it on the other part with noise."""

    estimator: Any
    space: Space
    score_epsilon: Fraction
    scoring: Callable[[Any, Any, Any], Any] | None

    @property
    def grid(self) -> int:
        return WHOLE if self.scoring is None else FINE

    def __call__(self, parts: Parts, draws: Draws) -> Trained:
        parameters = drawn_parameters(self.space, draws)
        model = clone(self.estimator).set_params(**clone(parameters, safe=False))
        check_parameters(model.get_params(deep=True))  # a distribution may draw anything
        model.fit(*parts.rows(parts.training))
        score = self.scoring or _are_right

        def scores(positions: Positions) -> Any:
            return score(model, *parts.rows(positions))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whether there is one, of these rows, must not show
            noisy = noisy_sum(scores, parts.testing, self.grid, self.score_epsilon, draws)
        return Trained(parameters, model, noisy)


def _are_right(model: Any, features: Any, labels: Any) -> Any:
    # Which predictions are right; of several outputs, all must be. Each row is compared with itself alone: labels in
    # one column count as a vector, and other shapes that differ are a failure, because NumPy would compare every row
    # with every other one.
    predicted, true = (_flat(_by_row(values)) for values in (model.predict(features), labels))
    if predicted.shape != true.shape:
        raise InvalidValue("predictions and labels must have the same shape")
    right = np.asarray(predicted == true)
    return right.all(axis=tuple(range(1, right.ndim)))


def _by_row(values: Any) -> Any:
    # An array. A list gets no common type, which one odd value would change for all rows.
    if not isinstance(values, (list, tuple)):
        return np.asarray(values)
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def _flat(values: Any) -> Any:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def split(features: Any, labels: Any, share: Fraction, draws: Draws) -> Parts:
    """The data in two parts. Nothing but the number of rows is looked at."""
    if labels is None:
        raise InvalidValue("requires y to be passed, but the target y is None: give a label for each row")
    for name, given in {"X": features, "y": labels}.items():
        if isinstance(given, (list, tuple)):
            raise InvalidType(
                f"{name} must be an array, data frame or sparse matrix, got {type(given).__name__}: {_TYPE}"
            )
    [features], [labels] = indexable(features), indexable(labels)  # each alone: its error would state both sizes
    size = _num_samples(features)
    if _num_samples(labels) != size:
        raise InvalidValue("X and y must have the same number of rows")
    flags = held_out(size, share, draws)
    return Parts(features, labels, np.flatnonzero(~flags), np.flatnonzero(flags))


def _has(name: str) -> Callable[[Any], bool]:
    def is_there(search: Any) -> bool:
        model = vars(search).get("best_estimator_")
        getattr(search.estimator if model is None else model, name)  # its error says what is missing
        return True

    return is_there


def _of_model(name: str, words: str) -> Any:
    # A method that the best model answers. Before fitting, there is one where the estimator has one.
    def method(self: Any, X: Any) -> Any:  # noqa: N803 - scikit-learn's name
        return getattr(self._model, name)(X)

    method.__name__, method.__qualname__, method.__doc__ = name, f"PrivateSearchCV.{name}", words
    return available_if(_has(name))(method)


def _attribute(name: str, words: str) -> property:
    def found(self: Any) -> Any:
        model = vars(self).get("best_estimator_")
        if model is None:
            raise AttributeError(f"{type(self).__name__} has no {name} before it has a model: call fit")
        return getattr(model, name)

    return property(found, doc=words)


@dataclass(eq=False, repr=False)  # scikit-learn compares by identity, and prints what is not the default
class PrivateSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Choose the hyperparameters of a private estimator, at less than three times the epsilon of one training.

    It works like `RandomizedSearchCV`, with two differences: the number of trainings is random and secret, and the
    model is the one that was scored. It is not trained again on all rows, which would cost once more.

    **Your promise**: each row of X is a different person, and `estimator.fit` is (epsilon, delta)-DP for the rows it is
    given, for all parameters, any number of rows, and with everything that the fitted estimator keeps, or that it
    fails. An ordinary estimator of scikit-learn is not private, whatever epsilon is stated. `predict` is called for one
    held-out row at a time, and must not keep anything of a row.

    Args:
        estimator: The private estimator. It must not have a seed or a generator, a `memory`, more than one job
            (`n_jobs`), or a ledger of its own.
        param_distributions: The public candidates: a dict from parameter names to lists of values, or to distributions
            with a method `rvs`, or a list of such dicts. Each run takes one at random.
        epsilon: The epsilon of one `fit` of the estimator, with any parameters.
        delta: The delta of one `fit`; 0 if its epsilon is pure.
        score_epsilon: The epsilon of the noisy score of one run. A run costs the larger one of both epsilons, because
            nobody is both trained on and scored. By default it is `epsilon`.
        repeats: The distribution of the number of runs; None is `geometric(mean=10)`.
        test_size: The probability with which a person is scored and not trained on.
        scoring: None counts right predictions. A callable `scoring(model, X, y)` returns a score from 0 to 1 for each
            row. It is called for one row at a time. Scores outside are clipped, and a row that fails has score 0.
        ledger: The ledger, charged before the first run. Clones share it.
        what: The question for the ledger, a string or a mapping of public parameters.

    Attributes:
        best_params_: the parameters of the best run; None if there was no run, as Poisson repeats allow.
        best_estimator_: its model, trained on the people who were not held out.
        noisy_count_: its noisy number of right predictions among held-out people, or their noisy sum of scores. There
            is no accuracy: the number of held-out people is secret, too.
        guarantee_: what all of the above guarantee together.
        ledger_id_: the entry of the ledger; None without one.
        receipt_: proof of that entry; None without a ledger.

    Formal guarantees:
      * all attributes together are (`repeats.epsilon(e)`, `repeats.delta(delta)`)-DP with
        e = max(epsilon, score_epsilon), if the number of runs, and the time they take, stay secret. Neighbours are
        those of your promise: a row is added or removed, or replaced;
      * noise of the score, coins and the number of runs are exact, with randomness from the operating system;
      * a run that fails raises RunFailed without the cause, and warnings of runs are not shown: both may quote the
        data. The charge stays.

    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator, ClassifierMixin
    >>> from dpselect import PermuteAndFlip
    >>> class PrivateThreshold(ClassifierMixin, BaseEstimator):
    ...     '''Says 1 above a threshold. A row more raises each score by 0 or 1, so `fit` is 1-DP.'''
    ...     def __init__(self, steps=2):
    ...         self.steps = steps
    ...     def fit(self, X, y):
    ...         self.classes_, places = np.array([0, 1]), np.arange(1, self.steps) / self.steps
    ...         right = [int(((X[:, 0] > place) == y).sum()) for place in places]
    ...         self.threshold_ = places[PermuteAndFlip(1, monotonic=True).select(right)]
    ...         return self
    ...     def predict(self, X):
    ...         return (X[:, 0] > self.threshold_).astype(int)
    >>> X = np.random.default_rng(1).random((2_000, 1))
    >>> y = (X[:, 0] > 0.7).astype(int)
    >>> search = PrivateSearchCV(PrivateThreshold(), {"steps": [2, 10]}, epsilon=1).fit(X, y)
    >>> print(search.guarantee_)
    2.59135-DP (pure), 2.23013-zCDP
    """

    estimator: Any
    param_distributions: Any
    _: KW_ONLY
    epsilon: Number
    delta: Number = 0
    score_epsilon: Number | None = None
    repeats: Repeats | None = None
    test_size: Number = 0.25
    scoring: Callable[[Any, Any, Any], Any] | None = None
    ledger: Ledger | None = None
    what: What = "PrivateSearchCV"

    def fit(self, X: Any, y: Any = None) -> "PrivateSearchCV":  # noqa: N803 - scikit-learn's name
        """Charge the ledger, run, and keep the best model.

        Args:
            X: The features, one row for each person: an array, a data frame or a sparse matrix. Its types are public.
            y: The label of each row: an array, a Series or a data frame. Its type is public.

        Raises:
            InvalidValue, InvalidType: an argument is invalid; nothing was charged.
            BudgetExceeded: the ledger's budget is too small; nothing was run.
            LedgerError: the ledger cannot be used; nothing was run.
            RunFailed: a run failed; the charge stays.
        """
        run, draws = self._checked_run(), Draws()
        parts = split(X, y, self._share(), draws)
        best = self._best(run, parts, draws)
        trained = best.result
        self.best_params_ = None if trained is None else trained.parameters
        self.best_estimator_ = None if trained is None else trained.model
        units = None if trained is None else trained.noisy_units
        self.noisy_count_ = units if units is None or run.grid == WHOLE else units / run.grid
        self.guarantee_, self.ledger_id_, self.receipt_ = best.guarantee, best.ledger_id, best.receipt
        return self

    def _best(self, run: Run, parts: Parts, draws: Draws) -> Tuned[str, Trained]:
        leaks = []

        def quiet_run(_: str) -> Trained:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                trained = run(parts, draws)
            if any(one.category.__name__ == _LEAK for one in warned):
                leaks.append(_LEAK)
                raise RunFailed
            return trained

        try:
            with _ONE_AT_A_TIME:
                return tune(
                    quiet_run,
                    ["random parameters"],  # one candidate: a run draws its parameters itself
                    epsilon=max(self._epsilon(), run.score_epsilon),
                    delta=self.delta,
                    repeats=_DEFAULT_REPEATS if self.repeats is None else self.repeats,
                    score=lambda trained: trained.noisy_units,
                    ledger=self.ledger,
                    what=self.what,
                )
        except RunFailed:
            pass  # what is raised here has no context, and the frames of the run are gone
        if leaks:
            raise RunFailed(
                f"the estimator warns of a privacy leak ({_LEAK}): it took a bound from the data, so it is not private."
                " Give it public bounds. The charge stays"
            )
        raise RunFailed(
            "a run failed: the cause is withheld because it may quote the data. Fit the estimator yourself on made-up"
            " data to find it. The charge stays"
        )

    def _checked_run(self) -> Run:
        for name in ("fit", "get_params", "set_params"):
            if isinstance(self.estimator, type) or not callable(getattr(self.estimator, name, None)):
                raise InvalidType("estimator must be an estimator of scikit-learn, with fit, get_params and set_params")
        if self.scoring is not None and not callable(self.scoring):
            raise InvalidType("scoring must be None or a function that scores each row: scoring(model, X, y)")
        space, known = checked_space(self.param_distributions), self.estimator.get_params(deep=True)
        unknown = sorted({name for part in space for name in part} - known.keys())
        if unknown:
            raise InvalidValue(f"param_distributions must have parameters of the estimator, got {', '.join(unknown)}")
        check_parameters(known)
        for name, values in (pair for part in space for pair in part.items()):
            for value in values if isinstance(values, list) else [values]:
                check_parameters({name: value})
        each = self._epsilon() if self.score_epsilon is None else exact_positive(score_epsilon=self.score_epsilon)
        return Run(self.estimator, space, each, self.scoring)

    def _epsilon(self) -> Fraction:
        return exact_positive(epsilon=self.epsilon)

    def _share(self) -> Fraction:
        share = exact_positive(test_size=self.test_size)
        if share >= 1:
            raise InvalidValue("test_size must be between 0 and 1: it is the probability of being held out")
        return share

    @property
    def _model(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        if self.best_estimator_ is None:
            raise NotFittedError("there was no run, as Poisson repeats allow: fit again, which is charged again")
        return self.best_estimator_

    predict = _of_model("predict", "Return the predictions of the best model.")
    predict_proba = _of_model("predict_proba", "Return the probabilities of classes by the best model.")
    predict_log_proba = _of_model("predict_log_proba", "Return their logarithms.")
    decision_function = _of_model("decision_function", "Return the decision function of the best model.")
    transform = _of_model("transform", "Return what the best model makes of the features.")

    @available_if(_has("score"))  # type: ignore[untyped-decorator] # scikit-learn has no types
    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803 - scikit-learn's name
        """Return the score of the best model on other rows, by the model's own method.

        It is exact: on private rows it is a release of its own, and no ledger sees it.

        Args:
            X: The features of some rows.
            y: Their labels.
        """
        return float(self._model.score(X, y))

    classes_ = _attribute("classes_", "The classes of the best model.")
    n_features_in_ = _attribute("n_features_in_", "The number of columns that the best model was trained on.")
    feature_names_in_ = _attribute("feature_names_in_", "The names of the columns that the best model was trained on.")

    @property
    def _estimator_type(self) -> Any:  # scikit-learn before 1.7 asks for it
        return getattr(self.estimator, "_estimator_type", None)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags  # noqa: PLC0415 - from 1.6 on, where this method is called

        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = copy.deepcopy((own.classifier_tags, own.regressor_tags))
        tags.input_tags = copy.deepcopy(own.input_tags)
        tags.target_tags.required = True
        return tags

    def __sklearn_clone__(self) -> "PrivateSearchCV":
        # It charges the same ledger.
        own = self.get_params(deep=False)
        ledger = own.pop("ledger")
        return type(self)(**{name: clone(value, safe=False) for name, value in own.items()}, ledger=ledger)
