"""Two-sided geometric noise: every proposal with its exact probability, and draws by their distribution."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpselect.selection.draws import Draws, proposed_two_sided, two_sided_geometric
from tests.seam import BranchingDraws
from tests.statistical.goodness import assert_fits, assert_rejected

STEPS = 4


class FewBlocks(BranchingDraws):
    """Coins with the rational probability 2**-(exponent/rate), of which at most so many in a row end in the test."""

    def __init__(self, path, rate):
        super().__init__(path)
        self.rate = rate
        self.blocks = 0

    def flip(self, exponent, zeros=0):
        size = exponent / self.rate
        assert size.denominator == 1
        heads = self.coin(Fraction(1, 2 ** int(size)))
        self.blocks += heads
        if self.blocks > STEPS:
            raise OverflowError
        return heads


@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(1, 8)])
def test_proposals_are_exactly_two_sided_geometric(rate):
    """A coin e^-rate is replaced by one half, so that z is kept with probability proportional to 2**-|z|."""
    totals, paths = Counter(), [[]]
    while paths:
        draws = FewBlocks(paths.pop(), rate)
        try:
            outcome = proposed_two_sided(rate, draws)
        except OverflowError:
            outcome = "large"
        totals[outcome] += draws.probability
        paths.extend(draws.open)
    assert sum(totals.values()) == 1
    refused, large = totals.pop(None, Fraction(0)), totals.pop("large")
    assert refused <= Fraction(3, 4)
    small = [z for z in totals if abs(z) < 3]
    assert sorted(small) == [-2, -1, 0, 1, 2]
    for z, probability in totals.items():
        if abs(z) < 3:
            assert probability == totals[0] / 2 ** abs(z)
    assert large < Fraction(1, 4)


def law(rate, most=400):
    sizes = np.abs(np.arange(-most, most + 1))
    weights = np.exp(-float(rate) * sizes)
    weights[0] = weights[-1] = weights[0] / -math.expm1(-float(rate))
    return weights / weights.sum()


@pytest.mark.parametrize(("rate", "wrong"), [(Fraction(1), Fraction(6, 5)), (Fraction(1, 11), Fraction(1, 9))])
def test_draws_have_their_distribution(rate, wrong):
    draws = Draws()
    found = np.clip([two_sided_geometric(rate, draws) for _ in range(8_000)], -400, 400)
    counts = np.bincount(found + 400, minlength=801)
    assert_fits(counts, law(rate))
    assert_rejected(counts, law(wrong), truth=law(rate))


def test_a_tiny_rate_takes_few_coins():
    assert abs(two_sided_geometric(Fraction(1, 10**12), Draws())) > 0
