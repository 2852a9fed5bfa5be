"""A coin that is known not to be below a smaller threshold, and random orders: every outcome in exact rationals."""

import itertools
from collections import Counter
from fractions import Fraction

import pytest

from dpselect.sampling import coin as between
from dpselect.sampling.bits import ScriptedBits, random_order
from dpselect.sampling.coin import coin_between
from dpselect.sampling.draws import Draws
from tests.branching import BranchingDraws, Refused, distribution, heads_probability
from tests.statistical.goodness import assert_fits


@pytest.mark.parametrize(("near", "further"), list(itertools.product([0, 1, 2, 5], [1, 2, 6])))
def test_a_race_has_the_conditional_probability(near, further, monkeypatch):
    """A round that starts over is left out, as `Refused` does: what it then does is what it did before."""

    def one_round(draws):
        flips = iter([near, further])

        def coin(exponent, _):
            wanted = next(flips, None)
            if wanted is None:
                raise Refused
            assert exponent == wanted
            return draws.coin(heads_probability(exponent))

        monkeypatch.setattr(between, "coin", coin)
        return coin_between(Fraction(near), Fraction(further), draws.source)

    a, ab = heads_probability(near), heads_probability(near + further)
    found = distribution(one_round)
    assert found.get(True, 0) == (a - ab) / (1 - ab)
    assert (near == 0) == (found.get(True, 0) == 1), "the best is always a head"


def test_the_race_reads_bits():
    ones, zeros = "1" * 32, "0" * 32
    quarter = Fraction(14, 10)  # exp(-1.4) is about 0.2466: heads is a U below it
    assert coin_between(quarter, quarter, ScriptedBits(ones)) is False
    assert coin_between(quarter, quarter, ScriptedBits(zeros + ones)) is True
    assert coin_between(quarter, quarter, ScriptedBits(zeros + zeros + zeros + ones)) is True, "after a second round"
    assert coin_between(Fraction(0), quarter, ScriptedBits(zeros + zeros + ones)) is True


def test_the_race_of_the_operating_system():
    draws = Draws()
    near, further = Fraction(1, 2), Fraction(1, 3)
    heads = sum(draws.flip_between(near, further) for _ in range(4000))
    probability = (2.718281828459045**-0.5 - 2.718281828459045 ** -(5 / 6)) / (1 - 2.718281828459045 ** -(5 / 6))
    assert_fits([heads, 4000 - heads], [probability, 1 - probability])
    flips = sum(draws.flip(near) for _ in range(4000))
    assert_fits([flips, 4000 - flips], [2.718281828459045**-0.5, 1 - 2.718281828459045**-0.5])


@pytest.mark.parametrize("count", range(5))
def test_orders_are_uniform(count):
    found = distribution(lambda draws: tuple(random_order(count, draws.index)))
    orders = list(itertools.permutations(range(count)))
    assert found == dict.fromkeys(orders, Fraction(1, len(orders)))


def test_an_order_is_drawn_as_it_is_walked():
    """The first numbers of an order of 10**18 cost as many draws, and no memory."""
    asked = []
    order = random_order(10**18, lambda bound: asked.append(bound) or bound // 3)
    first = list(itertools.islice(order, 4))
    assert asked == [10**18, 10**18 - 1, 10**18 - 2, 10**18 - 3]
    assert Counter(first).most_common(1)[0][1] == 1


def test_branching_draws_have_all_draws():
    """The tests' draws stand in for each that the lazy mechanisms ask for."""
    for name in ("flip", "flip_between", "index"):
        assert getattr(BranchingDraws, name) is not getattr(Draws, name)
