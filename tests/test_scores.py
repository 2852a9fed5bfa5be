"""Scores are taken at their exact value, in the fastest form that holds them."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect._scores import as_vector, over_common_denominator
from dpselect.errors import InvalidType

EXACT = st.integers() | st.fractions() | st.floats(allow_nan=False, allow_infinity=False) | st.decimals(-(10**9), 10**9)


@given(st.lists(EXACT, min_size=1))
def test_vectors_hold_every_score_exactly(scores):
    vector = as_vector(scores)
    held = vector.tolist() if isinstance(vector, np.ndarray) else vector
    assert [Fraction(score) for score in held] == [Fraction(score) for score in scores]


@pytest.mark.parametrize(
    ("scores", "dtype"),
    [
        ([1, 2], np.int64),
        ([2**63, 1], np.uint64),
        ([1.5, 2.5], np.float64),
        ([1, 2.5], np.float64),
        ([Decimal("0.5"), 3], np.float64),
        ([True, False], np.int64),
    ],
)
def test_common_lists_become_arrays(scores, dtype):
    assert as_vector(scores).dtype == dtype


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="this NumPy has no type of text of any length")
def test_a_type_that_has_no_hash_is_refused_like_others():
    """The shortcut for plain arrays runs no code of the type: that could raise an error of its own."""
    with pytest.raises(InvalidType, match="scores must be numbers"):
        as_vector(np.zeros(3, np.dtypes.StringDType(na_object=[])))


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<i8", ">i8", "f4", "u8", "i2"])
def test_arrays_are_read_in_place_where_that_is_exact(dtype):
    scores = np.arange(5).astype(dtype)
    vector = as_vector(scores)
    assert (vector is scores) == scores.dtype.isnative
    assert vector.tolist() == [0, 1, 2, 3, 4]
    for view in (scores[::-1], scores[::2]):
        assert as_vector(view).tolist() == view.tolist()


@pytest.mark.parametrize("scores", [[2**63, -1], [2**53 + 1, 0.5], [Decimal("0.1"), 1], [10**30, 0]])
def test_lists_that_no_array_holds_stay_exact(scores):
    assert isinstance(as_vector(scores), list)


@given(st.lists(st.fractions(max_denominator=1000), min_size=1))
def test_common_denominators_are_exact(scores):
    scaled = over_common_denominator(scores)
    if scaled is not None:
        values, denominator = scaled
        assert [Fraction(int(value), denominator) for value in values] == scores


def test_denominators_that_do_not_fit_are_left_alone():
    assert over_common_denominator([Fraction(1, 3**50), Fraction(1)]) is None
    assert over_common_denominator([Fraction(2**70), Fraction(1, 3)]) is None
    values, denominator = over_common_denominator([Fraction(1, 100), Fraction(5, 4)])
    assert (values.tolist(), denominator) == ([1, 125], 100)
