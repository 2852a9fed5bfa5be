"""Any output can be counted: two are one where an observer sees no difference, and only there."""

import collections
import dataclasses
import enum
import json
import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import errors
from dpselect.audit import audit
from dpselect.audit.outputs import Fields, feature, features, in_order, json_of, number_of, outcome_of, plain, text_of


@dataclasses.dataclass
class Point:
    x: object
    y: object
    label: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object


class Colour(enum.IntEnum):
    RED = 1


Named = collections.namedtuple("Named", "a b")

# No two of these look the same.
DIFFERENT = [
    *(0, 1, -1, 2**70, True, False, 1.0, 0.0, -0.0, math.inf, -math.inf, math.nan, 0.5),
    *(None, "", "1", "nan", b"", b"1", Fraction(1), Decimal(1), Decimal("nan"), 1 + 0j, Colour.RED, np.longdouble(1)),
    *((), (1,), (1.0,), (True,), ((1,),), (None,), (1, 2), (0.0,), (-0.0,), (math.nan,)),
    *(frozenset(), frozenset([1]), frozenset([True]), frozenset([(1,)])),
    *({}, {1: 2}, {1: 2.0}, {"1": 2}, {1: 2, 3: 4}, {3: 4, 1: 2}, collections.Counter()),
    *(Point(1, 2), Point(1, 2.0), Point(1, [2]), Frozen(1), Frozen((1,)), range(1), int, ValueError),
    *(pd.NA, pd.NaT, pd.Timestamp(0)),
]

# Each is one output in two forms.
SAME = [
    ([1, 2], (1, 2)),
    (np.array([1, 2]), [1, 2]),
    (np.array([[1.5, math.nan]]), ((1.5, float("nan")),)),
    (np.array(3), 3),
    (np.int8(3), np.uint64(3)),
    (np.float64(0.5), 0.5),
    (np.float32(0.5), np.float64(0.5)),
    (np.bool_(1), True),
    (np.str_("a"), "a"),
    (np.bytes_(b"a"), b"a"),
    (np.array(["a", None], object), ("a", None)),
    (float("nan"), -np.float32("nan")),
    (Decimal("nan"), Decimal("-nan")),
    ({1, 2}, frozenset([2, 1])),
    (Named(1, 2), (1, 2)),
    (collections.deque([1]), [1]),
    ({"a": [1]}, {"a": (1,)}),
    (Point(1, [2]), Point(1, (2,))),
    (Point(1, 2, "a"), Point(1, 2, "b")),  # its own comparison leaves the label out
    (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), [(1, 2.0)]),
    (np.ma.array([1, 2], mask=[False, True]), [1, None]),
]


def test_what_looks_different_is_different():
    outcomes = [outcome_of(output) for output in DIFFERENT]
    assert len(set(outcomes)) == len(DIFFERENT)
    assert outcomes == [outcome_of(output) for output in DIFFERENT], "and the same each time"
    for outcome in outcomes:
        assert text_of(outcome)
        json.dumps(json_of(plain(outcome)), allow_nan=False)
    assert len(in_order([*outcomes, 0])) == len(DIFFERENT) + 1


@pytest.mark.parametrize("pair", SAME, ids=repr)
def test_what_looks_the_same_is_the_same(pair):
    one, other = map(outcome_of, pair)
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    "output",
    [
        pd.Series([48151]),
        pd.DataFrame({"a": [48151]}),
        SimpleNamespace(a=48151),
        Decimal("sNaN48151"),
        [pd.Series([48151])],
    ],
    ids=["Series", "DataFrame", "namespace", "Decimal", "in a list"],
)
def test_what_has_no_hash_is_refused_by_its_type(output):
    inner = output[0] if isinstance(output, list) else output
    with pytest.raises(errors.InvalidType, match=f"got {type(inner).__name__}: return a number") as caught:
        outcome_of(output)
    assert "48151" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
)


@given(PLAIN)
def test_any_output_can_be_counted_shown_and_stored(output):
    outcome = outcome_of(output)
    assert outcome == outcome_of(output)
    assert hash(outcome) == hash(outcome_of(output))
    assert outcome_of(plain(outcome)) == outcome, "lists are tuples, and nothing else changes"
    assert len(text_of(outcome)) <= 80
    json.dumps(json_of(plain(outcome)), allow_nan=False)
    assert all(feature(outcome, path, "nothing") == leaf for path, leaf in features(outcome))


def test_a_record_among_keys_is_shown_as_pairs():
    outcome = outcome_of({Frozen(1): frozenset([Frozen(2)])})
    assert isinstance(outcome, Fields)
    assert plain(outcome) == (({"x": 1}, ({"x": 2},)),)


def test_a_repr_that_fails_does_not_stop_the_audit():
    class Shy:
        def __repr__(self):
            raise ValueError

    shy = Shy()
    found = audit(lambda data: shy if data else None, 1, inputs=[(0, 1)], runs=200)
    assert found.violates
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_integers_beyond_the_floats_are_numbers_and_text():
    assert number_of(10**400) == math.inf
    assert number_of(-(10**400)) == -math.inf
    assert json_of(10**5000) == "a int"


@pytest.mark.parametrize("pair", list(pairwise(DIFFERENT)), ids=repr)
def test_outputs_of_any_kind_are_audited(pair):
    """They are a violation if they differ for two inputs, and nothing if they do not."""
    found = audit(lambda data: pair[data], 1, inputs=[(0, 1)], runs=100, false_alarm=0.01)
    assert found.violates
    assert found.worst.hits == 50
    assert not audit(lambda data: pair[data], 1, inputs=[(0, 0), (1, 1)], runs=100).lower_bound
    json.dumps(found.to_dict(), allow_nan=False)


def test_every_nan_is_one_output():
    found = audit(lambda _: float("nan"), 1, inputs=[(0, 1)], runs=300)
    assert found.worst.hits == found.worst.neighbour_hits == 150
