"""Binomial thinning: its distribution by enumeration, and its cost where almost nothing changes."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import BitsExhausted
from dpselect.sampling import binomial as module
from dpselect.sampling import geometric
from dpselect.sampling.binomial import binomial, fair_binomial
from dpselect.sampling.bits import ScriptedBits, SystemEntropy
from tests.branching import Refused, distribution
from tests.sampling.test_enclosure import true_floor


@pytest.fixture
def enumerated(monkeypatch):
    """Fair splits and sparse processes that branch, cut off where a path is less likely than 2**-34."""

    def fair(count, draws):
        if draws.probability < Fraction(1, 2**34):
            raise Refused
        return draws.choose([Fraction(math.comb(count, k), 2**count) for k in range(count + 1)])

    def sparse(count, zeros, draws):
        hit = Fraction(1, 2**zeros)
        return np.zeros(
            draws.choose([math.comb(count, k) * hit**k * (1 - hit) ** (count - k) for k in range(count + 1)])
        )

    monkeypatch.setattr(module, "fair_binomial", fair)
    monkeypatch.setattr(module, "successes", sparse)


@pytest.mark.parametrize("exponent", [Fraction(1, 3), Fraction(1), Fraction(3), Fraction(1, 1000), Fraction(7)])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_the_distribution_is_binomial(count, exponent, enumerated):
    outcomes = distribution(lambda draws: binomial(count, exponent, draws))
    heads = math.exp(-exponent)
    for k in range(count + 1):
        wanted = math.comb(count, k) * heads**k * (1 - heads) ** (count - k)
        assert float(outcomes.get(k, 0)) == pytest.approx(wanted, rel=1e-6, abs=1e-7)


def test_fair_binomial_counts_the_ones():
    assert fair_binomial(7, ScriptedBits("0110101")) == 4


class SomeOnes:
    """Any number of bits, five of which are ones."""

    def bits(self, count):
        return 0b101011001 if count > 9 else 0b10


@pytest.mark.parametrize(("count", "ones"), [(2**23 - 1, 5), (2**23, 5), (2**23 + 9, 6), (3 * 2**23 + 10, 20)])
def test_many_coins_are_counted_in_parts(count, ones):
    ones += count == 2**23  # no bits at all are asked for too, and are answered with a one here
    assert fair_binomial(count, SomeOnes()) == ones


def test_one_coin_follows_the_bits_of_p():
    """exp(-1) = 0.01011110...: the first bit that differs decides."""
    # A one of the script is a coin whose U has a zero there, so U = 0.00... is heads and U = 0.1... is tails.
    assert binomial(1, Fraction(1), ScriptedBits("11")) == 1
    assert binomial(1, Fraction(1), ScriptedBits("0")) == 0
    with pytest.raises(BitsExhausted):
        binomial(1, Fraction(1), ScriptedBits(""))


def test_zero_exponent_keeps_all_without_a_bit():
    assert binomial(10**9, Fraction(0), ScriptedBits("")) == 10**9


class Counting(SystemEntropy):
    def __init__(self):
        self.used = 0

    def bits(self, count):
        self.used += count
        return super().bits(count)

    def words(self, count, width):
        self.used += count * width
        return super().words(count, width)


NEAR_ONE, NEAR_ZERO = [Fraction(3, 2**k) for k in range(50)], [Fraction(k, 3) for k in range(1, 100)]


@pytest.mark.parametrize(("count", "depth"), [(10, 10), (127, 13), (128, 14), (10**12, 40)])
def test_equal_bits_are_skipped(count, depth, monkeypatch):
    """As many as p = exp(-g) starts with, if they are six or more and up to a bound; three coins share them here."""
    asked = []
    monkeypatch.setattr(module, "successes", lambda *arguments: asked.append(arguments) or range(3))
    for exponent in (*NEAR_ONE, *NEAR_ZERO):
        asked.clear()
        expansion = f"{true_floor(exponent, depth):0{depth}b}"
        equal = depth - len(expansion.lstrip(expansion[0]))
        skipped = module._skip_equal_bits(count, exponent, None)
        if equal < 6:
            assert (skipped, asked) == ((0, count, 0), [])
        else:
            assert (skipped, asked) == ((count - 3 if expansion[0] == "1" else 0, 3, equal), [(count, equal, None)])


def test_no_coins_skip_nothing():
    assert module._skip_equal_bits(0, Fraction(50), None) == (0, 0, 0)


@pytest.mark.parametrize("exponent", [Fraction(1, 10**9), Fraction(22)])
def test_thinning_costs_the_few_that_change(exponent):
    """Of 10**10 heads about ten fall, or about three stay: a few thousand bits, not 10**10."""
    source = Counting()
    left = binomial(10**10, exponent, source)
    assert source.used < 20_000
    assert left <= 100 or left >= 10**10 - 100


@pytest.mark.parametrize("exponent", [Fraction(10**6), Fraction(1, 10**15)])
def test_a_few_heads_against_a_far_maximum_are_decided_by_two_words(exponent, monkeypatch):
    """A stream whose maximum rises with every block thins so at every block: no logarithm at high precision."""
    monkeypatch.setattr(geometric, "log_bracket", None)
    expected = 100 if exponent < 1 else 0
    assert binomial(100, exponent, ScriptedBits("01" * 32)) == expected


def test_large_counts_have_the_right_mean_and_spread():
    count, exponent = 10**6, Fraction(1, 2)
    heads = math.exp(-0.5)
    spread = math.sqrt(count * heads * (1 - heads))
    draws = np.array([binomial(count, exponent, SystemEntropy()) for _ in range(400)])
    assert abs(draws.mean() - count * heads) < 7 * spread / 20
    assert 0.7 < draws.std() / spread < 1.4


@pytest.mark.parametrize("exponent", [Fraction(50_000), Fraction(41), Fraction(1, 2**70), Fraction(1, 2**45)])
def test_probabilities_next_to_zero_and_one_do_not_overflow(exponent):
    """Small words make long gaps: of a process with a success in 2**60 they would be beyond 64 bits."""
    expected = 3 if exponent < 1 else 0
    for words in ("0" * 31 + "1", "0" * 28 + "1111"):
        assert binomial(3, exponent, ScriptedBits(words * 20)) == expected
    assert {binomial(3, exponent, SystemEntropy()) for _ in range(2_000)} == {expected}
