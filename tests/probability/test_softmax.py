"""The exponential mechanism's probabilities, against flint's balls."""

import math

import numpy as np
import pytest

from dpselect.mechanisms.laws import softmax
from tests import reference
from tests.probability.test_flip_integral import EPSILONS, LOSSES


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("case", LOSSES)
def test_every_candidate_is_accurate(case, epsilon):
    exponents = [epsilon / 2 * loss for loss in LOSSES[case]]
    ours = softmax(np.array(exponents))
    assert reference.relative_error(ours, reference.softmax_in_balls(exponents)) <= 1e-14
    assert abs(math.fsum(ours) - 1) <= 1e-14


def test_a_million_candidates_sum_to_one():
    exponents = np.random.default_rng(1).exponential(20, 10**6)
    exponents[5] = 0.0
    assert abs(math.fsum(softmax(exponents)) - 1) <= 1e-13
