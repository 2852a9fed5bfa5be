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


EPSILONS = st.one_of(st.floats(1e-6, 1e4), st.fractions(Fraction(1, 1000), 100))


@given(EPSILONS, POSITIVE, st.sampled_from(["any", "monotonic", "range"]))
def test_all_are_neighbours(epsilon, number, claim):
    """With a score range, all scores may also move far and alike."""
    limit = Fraction(number)
    claimed = {"score_range": number} if claim == "range" else {"sensitivity": number, "monotonic": claim != "any"}
    pairs = hard_pairs(epsilon, **claimed, longest=10)
    assert len({pair.name for pair in pairs}) == len(pairs) >= 12 + (claim == "range")
    for pair in pairs:
        moves = [b - a for a, b in zip(exact(pair.scores), exact(pair.neighbour), strict=True)]
        assert moves == pair.moves()
        assert max(moves) - min(moves) <= limit if claim == "range" else max(map(abs, moves)) <= limit
        assert claim != "monotonic" or min(moves) >= 0 or max(moves) <= 0
    ties = exact(pairs[0].neighbour)
    assert abs(ties[0] - ties[1]) >= (2 if claim == "any" else 1) * limit * (1 - Fraction(1, 2**20)), "nearly all of it"
    far = [min(pair.moves()) for pair in pairs if pair.name == "all move far and alike"]
    assert [least > 1000 * limit for least in far] == [True] * (claim == "range")


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("epsilon", [0.01, 1, 20])
def test_exponentials_leave_the_floats_between_the_neighbours(epsilon, monotonic):
    rate = epsilon / (1 if monotonic else 2)
    pairs = {pair.name: pair for pair in hard_pairs(epsilon, 1, monotonic)}
    with np.errstate(over="ignore", under="ignore"):
        low = [np.exp(rate * part.max()) for part in pairs["exponentials that underflow"].both]
        high = [np.exp(rate * part.max()) for part in pairs["exponentials that overflow"].both]
    assert low[0] > 0 == low[1]
    assert high[0] < np.inf == high[1]


def test_integers_collide_in_floats():
    pairs = {pair.name: pair for pair in hard_pairs(1)}
    far = pairs["integers beyond 2**60"]
    assert abs(np.diff(far.scores.astype(float))[0]) == 256
    assert abs(np.diff(far.scores)[0]) == 1
    wraps = pairs["a difference of 2**63"]
    with np.errstate(over="ignore"):
        assert (wraps.scores.max() - wraps.scores).min() < 0
        assert (wraps.neighbour.max() - wraps.neighbour).min() == 0


REFUSED = [({"sensitivity": number}, "give pairs") for number in ("1e-400", "1e305", 10**400)]
REFUSED += [({"longest": number}, "longest must be") for number in (0, 1, -1, 2.5)]


@pytest.mark.parametrize(("given", "words"), REFUSED, ids=[str(given) for given, _ in REFUSED])
def test_the_ends_of_the_floats_and_short_vectors_are_refused(given, words):
    with pytest.raises(errors.DPSelectError, match=words):
        hard_pairs(1, **given)
