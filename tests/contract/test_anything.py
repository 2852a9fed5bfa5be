"""Hypothesis throws everything at every public function: only our own errors come out, and indices are in range."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors, generalized_scores
from dpselect.analysis import expected_evaluations, unequal_errors
from tests.gumbel import GumbelNoisyMax

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax, GumbelNoisyMax]
NUMBERS = (
    st.integers()
    | st.floats(allow_nan=True)
    | st.fractions()
    | st.decimals(allow_nan=None)
    | st.booleans()
    | st.integers(-(2**70), 2**70)
)
JUNK = st.none() | st.text(max_size=5) | st.binary(max_size=5) | st.complex_numbers() | st.dates()
THINGS = st.recursive(
    NUMBERS | JUNK,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.integers(), inner, max_size=2) | st.tuples(inner),
    max_leaves=20,
)
ARRAYS = hnp.arrays(
    dtype=hnp.scalar_dtypes() | st.just(np.dtype(object)) | st.just(np.dtype(np.longdouble)),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6),
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
GOOD = (
    st.lists(FINITE, min_size=1, max_size=30)
    | st.lists(st.integers(-(2**64), 2**64), min_size=1, max_size=30)
    | st.lists(st.fractions() | FINITE | st.integers(), min_size=1, max_size=30)
    | hnp.arrays(hnp.integer_dtypes() | hnp.unsigned_integer_dtypes() | hnp.boolean_dtypes(), st.integers(1, 30))
)
POSITIVE = st.floats(min_value=5e-324, allow_infinity=False) | st.fractions(min_value="1/1000000") | st.integers(1)


@pytest.mark.parametrize("kind", KINDS)
@given(epsilon=THINGS, sensitivity=THINGS, monotonic=THINGS, score_range=THINGS)
def test_constructors(kind, epsilon, sensitivity, monotonic, score_range):
    with contextlib.suppress(errors.InvalidValue, errors.InvalidType):
        kind(epsilon, sensitivity, monotonic)
    with contextlib.suppress(errors.InvalidValue, errors.InvalidType):
        kind(epsilon, sensitivity, monotonic, score_range=score_range)
    with contextlib.suppress(errors.InvalidValue, errors.InvalidType):
        kind(1, score_range=score_range)


@pytest.mark.parametrize("method", ["select", "select_rows", "simulate"])
@pytest.mark.parametrize("kind", KINDS)
@given(scores=THINGS | ARRAYS)
@settings(max_examples=150, deadline=None)
def test_methods(kind, method, scores):
    call = getattr(kind(1), method)
    with contextlib.suppress(errors.InvalidValue, errors.InvalidType):
        call(scores, 3) if method == "simulate" else call(scores)


@pytest.mark.parametrize("kind", KINDS)
@given(scores=GOOD, epsilon=POSITIVE, sensitivity=POSITIVE, monotonic=st.booleans())
@settings(deadline=None)
def test_good_scores_select_an_index_in_range(kind, scores, epsilon, sensitivity, monotonic):
    mechanism = kind(epsilon, sensitivity, monotonic)
    assert 0 <= mechanism.select(scores) < len(scores)
    rows = mechanism.select_rows([scores, scores])
    assert rows.shape == (2,)
    assert np.all((rows >= 0) & (rows < len(scores)))
    drawn = mechanism.simulate(scores, 4, seed=1)
    assert np.all((drawn >= 0) & (drawn < len(scores)))
    if kind is PermuteAndFlip:
        assert 0 <= mechanism.select(scores, early_exit=True) < len(scores)
        assert 0 <= mechanism.select(scores, steady=True) < len(scores)
        assert 0 <= mechanism.select_rows([scores], steady=True)[0] < len(scores)
        assert 0 <= mechanism.select_runs(scores, [1] * len(scores), steady=True) < len(scores)


@given(scores=THINGS | ARRAYS, sensitivities=THINGS | ARRAYS, epsilon=THINGS, failure=THINGS)
@settings(max_examples=80)
def test_generalized_scores(scores, sensitivities, epsilon, failure):
    calls = [
        lambda: generalized_scores(scores, sensitivities, epsilon, failure),
        lambda: generalized_scores(scores, [1], 1),
        lambda: generalized_scores([1, 2], sensitivities, 1),
        lambda: generalized_scores([1, 2], [1, 1], epsilon),
        lambda: generalized_scores([1, 2], [1, 1], 1, failure),
        lambda: unequal_errors(scores, sensitivities, 1),
    ]
    for call in calls:
        with contextlib.suppress(errors.InvalidValue, errors.InvalidType):
            call()


@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism])
@given(score=THINGS, count=THINGS, bound=THINGS)
@settings(max_examples=150)
def test_lazy_selections(kind, score, count, bound):
    calls = [
        lambda: kind(1).select_lazily(lambda _: score, 3, best=1),
        lambda: kind(1).select_lazily(lambda _: 1, count, best=1),
        lambda: kind(1).select_lazily(lambda _: 1, 3, best=bound),
        lambda: kind(1).select_lazily(score, count, best=bound),
        lambda: expected_evaluations(kind(1), score, bound),
    ]
    for call in calls:
        with contextlib.suppress(errors.InvalidValue, errors.InvalidType):
            call()
