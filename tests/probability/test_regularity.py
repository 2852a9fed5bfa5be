"""McKenna & Sheldon (2020), Definition 3: every mechanism is symmetric, shift-invariant and monotonic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax

KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
# Both sides of an equation are within 1e-12 of the truth.
TOLERANCE = 3e-12
SCORES = st.lists(st.integers(-50, 50) | st.fractions(-50, 50, max_denominator=1000), min_size=1, max_size=12)
EPSILON = st.sampled_from([Fraction(1, 1000), Fraction(1, 10), Fraction(1), Fraction(10)])
NOT_NEGATIVE = st.fractions(0, 30, max_denominator=100)


@pytest.mark.parametrize("kind", KINDS)
@given(scores=SCORES, epsilon=EPSILON, data=st.data())
@settings(max_examples=60, deadline=None)
def test_symmetry(kind, scores, epsilon, data):
    """Candidates that change places take their probabilities with them."""
    order = data.draw(st.permutations(range(len(scores))))
    moved = kind(epsilon).pmf([scores[r] for r in order])
    assert moved == pytest.approx(kind(epsilon).pmf(scores)[order], rel=TOLERANCE, abs=1e-300)


@pytest.mark.parametrize("kind", KINDS)
@given(scores=SCORES, epsilon=EPSILON, shift=st.integers(-(2**70), 2**70) | st.fractions())
@settings(max_examples=60, deadline=None)
def test_shift_invariance(kind, scores, epsilon, shift):
    """Only differences of scores matter, and they are taken exactly: shifts beyond 2**53 change nothing."""
    shifted = kind(epsilon).pmf([score + shift for score in scores])
    assert shifted == pytest.approx(kind(epsilon).pmf(scores), rel=TOLERANCE, abs=1e-300)


@pytest.mark.parametrize("kind", KINDS)
@given(scores=SCORES, epsilon=EPSILON, data=st.data())
@settings(max_examples=60, deadline=None)
def test_monotonicity(kind, scores, epsilon, data):
    """A candidate that rises while others fall becomes no less likely."""
    r = data.draw(st.integers(0, len(scores) - 1))
    changes = data.draw(st.lists(NOT_NEGATIVE, min_size=len(scores), max_size=len(scores)))
    better = [score - change for score, change in zip(scores, changes, strict=True)]
    better[r] = scores[r] + changes[r]
    before, after = kind(epsilon).pmf(scores)[r], kind(epsilon).pmf(better)[r]
    assert before <= after * (1 + TOLERANCE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_candidate_that_rises_alone_becomes_strictly_more_likely(kind):
    """The tests above would pass for a mechanism that ignores its scores; this one would not."""
    scores = np.array([3.0, 0.0, -4.0, 1.0])
    for r in range(scores.size):
        rise = scores + 0.01 * (np.arange(scores.size) == r)
        assert kind(1).pmf(rise)[r] > kind(1).pmf(scores)[r] * 1.0005
