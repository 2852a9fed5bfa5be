"""Selections of rows in floats, against the probabilities of the mechanisms."""

import numpy as np
import pytest

from dpselect.mechanisms import MECHANISMS
from dpselect.research.studies.procedures import Chooser
from tests.statistical.goodness import assert_fits, assert_rejected

SCORES = np.array([0.0, 1.0, 1.5, -2.0, 1.5])
DRAWS = 500_000


@pytest.mark.parametrize("kind", MECHANISMS.values())
def test_rows_have_the_distribution_of_the_mechanism(kind):
    rate = 0.7
    chosen = Chooser(kind, rate).choose(np.tile(SCORES, (DRAWS, 1)), np.random.default_rng(5))
    counts = np.bincount(chosen, minlength=SCORES.size)
    truth = kind(2 * rate).pmf(SCORES)
    assert_fits(counts, truth)
    for other in set(MECHANISMS.values()) - {kind}:
        assert_rejected(counts, other(2 * rate).pmf(SCORES), truth=truth)


@pytest.mark.parametrize("kind", MECHANISMS.values())
def test_what_is_masked_is_never_chosen(kind):
    scores = np.array([[-np.inf, 0.0, -np.inf, 1.0]] * 200)
    assert set(Chooser(kind, 1.0).choose(scores, np.random.default_rng(1)).tolist()) == {1, 3}
