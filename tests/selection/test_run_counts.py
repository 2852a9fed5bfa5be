"""Numbers of runs: every proposal with its exact probability, and the draws by their distribution."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpselect.selection import draws as run_counts
from dpselect.selection.draws import Draws, rational_coin, truncated_negative_binomial
from tests.seam import BranchingDraws, ScriptedBits
from tests.statistical.goodness import assert_fits, assert_rejected

LARGEST = 5
DRAWS = 4_000


class TooLong(Exception):
    """More coins than a small number needs."""


class ShortDraws(BranchingDraws):
    """Ends a run with too many coins: what it then proposes is larger than what the test looks at."""

    def __init__(self, path, limit):
        super().__init__(path)
        self.limit = limit

    def index(self, bound):
        if len(self.taken) >= self.limit:
            raise TooLong
        return 0 if bound == 1 else super().index(bound)


def proposals(propose, limit):
    """The exact probability of each outcome that takes at most so many coins."""
    totals, paths = Counter(), [[]]
    while paths:
        draws = ShortDraws(paths.pop(), limit)
        try:
            outcome = propose(draws)
        except TooLong:
            outcome = TooLong
        totals[outcome] += draws.probability
        paths.extend(draws.open)
    return totals


def test_a_rational_coin_is_exact():
    for bits, heads in (("00", True), ("01", True), ("10", False)):
        assert rational_coin(Fraction(2, 3), ScriptedBits(bits)) is heads
    assert rational_coin(Fraction(2, 3), ScriptedBits("1101"))  # 3 is refused
    assert not rational_coin(Fraction(0), ScriptedBits(""))
    assert rational_coin(Fraction(1), ScriptedBits(""))


def weights(shape, stop, largest):
    """Of each number from one on, up to a factor."""
    return [
        (1 - stop) ** k * math.prod(((j + shape) / (j + 1) for j in range(1, k)), start=Fraction(1))
        for k in range(1, largest + 1)
    ]


@pytest.mark.parametrize("shape", [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2)])
@pytest.mark.parametrize("stop", [Fraction(1, 2), Fraction(2, 3)])
def test_proposals_have_the_ratios_of_the_definition(shape, stop):
    """A proposal of k takes at most 2k + 2 coins of few outcomes, so those up to 3 are complete."""
    largest = 3
    found = proposals(lambda draws: run_counts.proposed_negative_binomial(shape, stop, draws), 2 * largest + 2)
    wanted = weights(shape, stop, largest)
    assert all(found[k] * wanted[0] == found[1] * wanted[k - 1] > 0 for k in range(1, largest + 1))
    wanted_successes = max(1, math.ceil(shape))
    assert found[1] == wanted_successes * stop**wanted_successes * (1 - stop)


@pytest.mark.parametrize("mean", [Fraction(1, 2), Fraction(1, 3)])
def test_proposals_have_the_ratios_of_poisson(mean):
    found = proposals(lambda draws: run_counts.proposed_poisson(mean, draws), 2 * 4 + 1)
    assert all(found[k] == (1 - mean) * mean**k / math.factorial(k) for k in range(5))


def counted(draw):
    draws = Draws()
    counts = np.bincount([min(draw(draws), 400) for _ in range(DRAWS)], minlength=401)
    return counts


def truncated(shape, stop):
    """The probabilities of 0..399 and of all beyond, by SciPy's own distributions."""
    numbers = np.arange(400)
    if shape == 0:
        head = stats.logser.pmf(numbers[1:], float(1 - stop))
    else:
        head = stats.nbinom.pmf(numbers[1:], float(shape), float(stop)) / (1 - float(stop) ** float(shape))
    return np.concatenate([[0.0], head, [1 - head.sum()]])


@pytest.mark.parametrize(
    "shape",
    [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(5, 2), pytest.param(Fraction(3), marks=pytest.mark.slow)],
)
def test_negative_binomials_fit_and_wrong_ones_do_not(shape):
    stop = Fraction(1, 10)
    counts = counted(lambda draws: truncated_negative_binomial(shape, stop, draws))
    truth = truncated(shape, stop)
    assert_fits(counts, truth)
    assert_rejected(counts, truncated(shape, Fraction(1, 7)), truth=truth)
    assert_rejected(counts, truncated(shape + Fraction(1, 2), stop), truth=truth)


@pytest.mark.parametrize("mean", [Fraction(1), Fraction(10), Fraction(7, 3)])
def test_poisson_fits_and_a_wrong_mean_does_not(mean):
    counts = counted(lambda draws: run_counts.poisson(mean, draws))

    def probabilities(mean):
        head = stats.poisson.pmf(np.arange(400), float(mean))
        return np.append(head, max(0.0, 1 - head.sum()))

    assert_fits(counts, probabilities(mean))
    assert_rejected(counts, probabilities(mean * Fraction(5, 4)), truth=probabilities(mean))


def test_many_successes_are_waited_for():
    """More than Python keeps one object of each number for."""
    assert run_counts.proposed_negative_binomial(Fraction(300), Fraction(99, 100), Draws()) < 100
