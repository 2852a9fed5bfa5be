"""Simulated top-k answers, set by set."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dpselect import PermuteAndFlip
from dpselect._scores import as_vector
from dpselect.accounting.budget import Price
from dpselect.questions import TopK
from dpselect.questions.methods import METHODS
from dpselect.top_k import seeded, simulated_answers
from tests.statistical.goodness import assert_fits, assert_rejected


def _simulated(k, method, runs):
    """How often each set of k of four candidates is a simulated answer, and the scores."""
    vector, price = as_vector([6, 5, 3, 1]), Price("0.4")
    how = METHODS[method](k, 4, 1)
    drawn = TopK(k=k, candidates=4, max_values=1, taken=how).draw(price)
    answers = np.sort(simulated_answers(vector, drawn, runs, seeded(None)), axis=1)
    sets = list(itertools.combinations(range(4), k))
    return [int((answers == chosen).all(axis=1).sum()) for chosen in sets], sets, drawn.mechanism


def test_simulated_sets_follow_their_distribution():
    counts, sets, mechanism = _simulated(2, "set", 40_000)
    sums = [sum((6, 5, 3, 1)[place] for place in chosen) for chosen in sets]
    truth = mechanism.pmf(sums)
    assert_fits(counts, truth)
    assert_rejected(counts, PermuteAndFlip(mechanism.rate * Fraction(9, 10), score_range=1).pmf(sums), truth=truth)


@pytest.mark.parametrize("method", ["peel", "one-shot"])
def test_simulated_answers_that_leave_one_out_follow_their_distribution(method):
    """Three of four: what is left out is one selection by permute-and-flip from the negated scores."""
    counts, sets, mechanism = _simulated(3, method, 40_000)
    assert mechanism.epsilon == Fraction(2, 5), "one selection instead of three"
    left_out = PermuteAndFlip(mechanism.rate, score_range=1).pmf([-6, -5, -3, -1])
    truth = [left_out[next(place for place in range(4) if place not in chosen)] for chosen in sets]
    assert_fits(counts, truth)
    assert_rejected(counts, [0.25] * 4, truth=truth)


def test_all_candidates_are_always_the_answer():
    vector, price = as_vector([3, 2]), Price(1)
    drawn = TopK(k=2, candidates=2, max_values=1).draw(price)
    assert simulated_answers(vector, drawn, 3, seeded(None)).tolist() == [[0, 1]] * 3
