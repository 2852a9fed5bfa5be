"""Whole numbers from coins: every proposal with its exact probability, and the draws by their distribution."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpselect.selection import draws as numbers
from dpselect.selection.draws import Draws, rational_coin
from tests.seam import BranchingDraws, ScriptedBits
from tests.selection.samplers import slow
from tests.statistical.goodness import assert_fits, assert_rejected

THIRD, HALF = Fraction(1, 3), Fraction(1, 2)


class TooLong(Exception):
    """More coins than a small number needs."""


class ShortDraws(BranchingDraws):
    """Ends a run with too many coins: what it then proposes is larger than what the test looks at.

    A coin that is heads with e^-rate is heads with probability one half.
    """

    def __init__(self, path, limit, rate):
        super().__init__(path)
        self.limit, self.rate = limit, rate

    def choose(self, probabilities):
        if len(self.taken) >= self.limit:
            raise TooLong
        return super().choose(probabilities)

    def index(self, bound):
        return 0 if bound == 1 else super().index(bound)

    def flip(self, exponent, zeros=0):
        size = exponent / self.rate
        assert size.denominator == 1
        return self.coin(Fraction(1, 2 ** int(size)))


def proposals(propose, limit, rate=Fraction(1)):
    """The exact probability of each outcome that takes at most so many choices."""
    totals, paths = Counter(), [[]]
    while paths:
        draws = ShortDraws(paths.pop(), limit, rate)
        try:
            outcome = propose(draws)
        except TooLong:
            outcome = TooLong
        totals[outcome] += draws.probability
        paths.extend(draws.open)
    assert sum(totals.values()) == 1
    return totals


def test_a_rational_coin_is_exact():
    for bits, heads in (("00", True), ("01", True), ("10", False)):
        assert rational_coin(Fraction(2, 3), ScriptedBits(bits)) is heads
    assert rational_coin(Fraction(2, 3), ScriptedBits("1101"))  # 3 is refused
    assert not rational_coin(Fraction(0), ScriptedBits(""))
    assert rational_coin(Fraction(1), ScriptedBits(""))


@pytest.mark.parametrize("shape", [Fraction(0), HALF, Fraction(1), Fraction(3, 2), Fraction(2)])
@pytest.mark.parametrize("stop", [HALF, Fraction(2, 3)])
def test_proposals_have_the_ratios_of_the_definition(shape, stop):
    """A proposal of k takes at most 2k + 2 coins of few outcomes, so those up to 3 are complete."""
    largest = 3
    found = proposals(lambda draws: numbers.proposed_negative_binomial(shape, stop, draws), 2 * largest + 2)
    wanted = [
        (1 - stop) ** k * math.prod(((j + shape) / (j + 1) for j in range(1, k)), start=Fraction(1))
        for k in range(1, largest + 1)
    ]
    assert all(found[k] * wanted[0] == found[1] * wanted[k - 1] > 0 for k in range(1, largest + 1))
    successes = max(1, math.ceil(shape))
    assert found[1] == successes * stop**successes * (1 - stop)


@pytest.mark.parametrize("mean", [HALF, THIRD])
def test_proposals_have_the_ratios_of_poisson(mean):
    found = proposals(lambda draws: numbers.proposed_poisson(mean, draws), 2 * 4 + 1)
    assert all(found[k] == (1 - mean) * mean**k / math.factorial(k) for k in range(5))


@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1), HALF, THIRD, Fraction(1, 8)])
def test_proposals_are_two_sided_geometric(rate):
    """With one half for e^-rate, z is kept with probability proportional to 2**-|z|; more than one of four is kept."""
    found = proposals(lambda draws: numbers.proposed_two_sided(rate, draws), 7, rate)
    assert found[None] <= Fraction(3, 4)
    assert all(found[z] == found[0] / 2 ** abs(z) > 0 for z in range(-2, 3))


# Draws, with all beyond 400 in one cell.


def with_rest(head):
    return np.append(head, max(0.0, 1 - head.sum()))


def truncated(shape, stop):
    """The probabilities of 0..399 and of all beyond, by SciPy's own distributions."""
    if shape == 0:
        return with_rest(stats.logser.pmf(np.arange(400), float(1 - stop)))
    law = stats.nbinom.pmf(np.arange(400), float(shape), float(stop)) / (1 - float(stop) ** float(shape))
    law[0] = 0
    return with_rest(law)


def poisson(mean):
    return with_rest(stats.poisson.pmf(np.arange(400), float(mean)))


def two_sided(rate, most=400):
    return stats.dlaplace.pmf(np.arange(-most, most + 1), float(rate))


TENTH = Fraction(1, 10)
# A draw, its law, and laws that it does not have.
DRAWN = {
    **{
        f"negative binomial {shape}": (
            lambda draws, shape=shape: numbers.truncated_negative_binomial(shape, TENTH, draws),
            truncated(shape, TENTH),
            [truncated(shape, Fraction(1, 7)), truncated(shape + HALF, TENTH)],
        )
        for shape in (Fraction(0), HALF, Fraction(1), Fraction(5, 2), Fraction(3))
    },
    **{
        f"Poisson {mean}": (
            lambda draws, mean=mean: numbers.poisson(mean, draws),
            poisson(mean),
            [poisson(mean * Fraction(5, 4))],
        )
        for mean in (Fraction(1), Fraction(10), Fraction(7, 3))
    },
    **{
        f"two-sided {rate}": (
            lambda draws, rate=rate: 400 + numbers.two_sided_geometric(rate, draws),
            two_sided(rate),
            [two_sided(rate * Fraction(6, 5))],
        )
        for rate in (Fraction(1), Fraction(1, 11))
    },
}


@pytest.mark.parametrize("name", [slow(name) if name == "negative binomial 3" else name for name in DRAWN])
def test_draws_fit_and_those_of_other_numbers_do_not(name):
    draw, truth, wrong = DRAWN[name]
    draws = Draws()
    counts = np.bincount([min(draw(draws), truth.size - 1) for _ in range(8_000)], minlength=truth.size)
    assert_fits(counts, truth)
    for other in wrong:
        assert_rejected(counts, other, truth=truth)


def test_many_successes_are_waited_for():
    """More than Python keeps one object of each number for."""
    assert numbers.proposed_negative_binomial(Fraction(300), Fraction(99, 100), Draws()) < 100


def test_a_tiny_rate_takes_few_coins():
    assert abs(numbers.two_sided_geometric(Fraction(1, 10**12), Draws())) > 0
