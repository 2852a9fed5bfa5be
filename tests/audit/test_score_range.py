"""Audits with a score range: its neighbours move alike by any amount, and apart by no more than the range."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, errors
from dpselect.audit import audit, audit_pmf, hard_pairs

DOUBT = 1e-7
SMALL = {"ties": [0, 0], "behind": [0, -30, 0], "four": [1, 0, 0, 9]}
KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]


def exact(vector):
    return [Fraction(*score.as_integer_ratio()) for score in vector.tolist()]


@given(st.floats(1e-6, 1e4), st.floats(1e-280, 1e280) | st.integers(1, 10**30))
@settings(max_examples=50)
def test_all_are_neighbours(epsilon, wide):
    pairs = hard_pairs(epsilon, score_range=wide, longest=10)
    assert len({pair.name for pair in pairs}) == len(pairs) >= 13
    for pair in pairs:
        moves = [b - a for a, b in zip(exact(pair.scores), exact(pair.neighbour), strict=True)]
        assert max(moves) - min(moves) <= Fraction(wide)
    ties = exact(pairs[0].neighbour)
    assert abs(ties[0] - ties[1]) >= Fraction(wide) * (1 - Fraction(1, 2**20)), "nearly all of it"
    far = next(pair for pair in pairs if pair.name == "all move far and alike")
    assert min(far.moves()) > 1000 * Fraction(wide)


@pytest.mark.parametrize("kind", KINDS)
def test_ours_are_not_accused(kind):
    found = audit(kind(2, score_range=3), 2, score_range=3, runs=4_000, false_alarm=DOUBT)
    assert not found.violates
    assert found.to_dict()["score_range"] == "3"
    assert "sensitivity" not in found.to_dict()
    assert not audit_pmf(kind("0.7", score_range=3), scores=SMALL).violates


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_that_was_halved_is_found(kind):
    """Who takes the range for the sensitivity of monotonic scores of half of it spends twice epsilon."""
    assert audit(kind(6, score_range=3), 3, score_range=3, runs=6_000, false_alarm=DOUBT).violates
    assert audit_pmf(kind("0.7", score_range=3), "0.6", scores=SMALL).violates


def leans_on_size(scores):
    """Chooses by the size of the largest score: no sensitivity could see it, and a range allows any shift."""
    return int(np.max(scores) > 1000)


def test_what_depends_on_the_shift_is_found():
    assert audit(leans_on_size, 1, score_range=1, runs=1000).worst.pair == "all move far and alike"
    assert audit(leans_on_size, 1, score_range=1, runs=1000).violates


def test_pairs_of_a_range_are_checked():
    shifted = [([0, 0], [1000, 1001])]
    assert not audit(PermuteAndFlip(1), 1, score_range=1, pairs=shifted, runs=100).violates
    with pytest.raises(errors.InvalidValue, match="changes by more than the score range"):
        audit(PermuteAndFlip(1), 1, score_range="0.9", pairs=shifted, runs=100)
    with pytest.raises(errors.InvalidValue, match="give either score_range"):
        audit(PermuteAndFlip(1), 1, sensitivity=1, score_range=1, runs=100)
