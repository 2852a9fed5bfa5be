"""The pairs that come with the audit are neighbours, exactly, for every sensitivity, and reach what they aim at."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import errors
from dpselect.audit import hard_pairs

POSITIVE = st.one_of(
    st.floats(1e-280, 1e280), st.integers(1, 10**30), st.fractions(Fraction(1, 10**9), 10**9, max_denominator=10**9)
)


def exact(vector):
    return [Fraction(*score.as_integer_ratio()) for score in vector.tolist()]


@given(st.one_of(st.floats(1e-6, 1e4), st.fractions(Fraction(1, 1000), 100)), POSITIVE, st.booleans())
def test_all_are_neighbours(epsilon, sensitivity, monotonic):
    limit = Fraction(sensitivity)
    pairs = hard_pairs(epsilon, sensitivity, monotonic, longest=10)
    assert len({pair.name for pair in pairs}) == len(pairs) >= 12
    for pair in pairs:
        moves = [b - a for a, b in zip(exact(pair.scores), exact(pair.neighbour), strict=True)]
        assert max(map(abs, moves)) <= limit
        assert not monotonic or min(moves) >= 0 or max(moves) <= 0
    ties = exact(pairs[0].neighbour)
    assert abs(ties[0] - ties[1]) >= (1 if monotonic else 2) * limit * (1 - Fraction(1, 2**20)), "nearly all of it"


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("epsilon", [0.01, 1, 20])
def test_exponentials_leave_the_floats_between_the_neighbours(epsilon, monotonic):
    rate = epsilon / (1 if monotonic else 2)
    pairs = {pair.name: pair for pair in hard_pairs(epsilon, 1, monotonic)}
    with np.errstate(over="ignore", under="ignore"):
        low = [np.exp(rate * part.max()) for part in vars_of(pairs["exponentials that underflow"])]
        high = [np.exp(rate * part.max()) for part in vars_of(pairs["exponentials that overflow"])]
    assert low[0] > 0 == low[1]
    assert high[0] < np.inf == high[1]


def vars_of(pair):
    return pair.scores, pair.neighbour


def test_integers_collide_in_floats():
    pairs = {pair.name: pair for pair in hard_pairs(1)}
    far = pairs["integers beyond 2**60"]
    assert abs(np.diff(far.scores.astype(float))[0]) == 256
    assert abs(np.diff(far.scores)[0]) == 1
    wraps = pairs["a difference of 2**63"]
    with np.errstate(over="ignore"):
        assert (wraps.scores.max() - wraps.scores).min() < 0
        assert (wraps.neighbour.max() - wraps.neighbour).min() == 0


@pytest.mark.parametrize("sensitivity", ["1e-400", "1e305", 10**400])
def test_sensitivities_at_the_ends_of_the_floats_are_refused(sensitivity):
    with pytest.raises(errors.InvalidValue, match="give pairs"):
        hard_pairs(1, sensitivity)


@pytest.mark.parametrize("longest", [0, 1, -1, 2.5])
def test_longest_must_hold_a_winner_and_a_loser(longest):
    with pytest.raises(errors.DPSelectError, match="longest must be"):
        hard_pairs(1, longest=longest)


def test_no_score_in_the_repr():
    assert repr(hard_pairs(1)[0]) == "Pair('ties', 2 candidates)"
