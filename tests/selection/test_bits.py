"""Sources of bits, and the uniform indices and orders that are made of them."""

import itertools
from collections import Counter
from fractions import Fraction
from functools import reduce
from operator import or_

import numpy as np
import pytest

from dpselect.selection.draws import Draws
from tests.seam import BitsExhausted, ScriptedBits, distribution
from tests.statistical.goodness import assert_fits


def test_scripts_are_read_in_order_and_run_dry():
    source = ScriptedBits("1" * 8 + "0" * 8 + "101")
    assert source.words(2, 8).tolist() == [255, 0]
    assert source.bits(3) == 5
    assert source.used == 19
    with pytest.raises(BitsExhausted, match="used up"):
        source.bits(1)


def test_no_bits_are_always_there():
    assert ScriptedBits("").bits(0) == 0
    assert Draws().bits(0) == 0


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_words_have_their_width(width):
    for source in (Draws(), ScriptedBits("01" * width * 3)):
        words = source.words(3, width)
        assert words.dtype == np.dtype(f"u{width // 8}")
        assert words.size == 3


@pytest.mark.parametrize("count", [1, 7, 8, 9, 32, 64, 65])
def test_system_bits_are_as_many_as_asked_for(count):
    drawn = [Draws().bits(count) for _ in range(60)]
    assert max(drawn).bit_length() <= count
    assert reduce(or_, drawn) == 2**count - 1  # each bit is set in one of them


def test_system_bits_are_fair():
    counts = np.zeros(8)
    for _ in range(20_000):
        counts[Draws().bits(3)] += 1
    assert_fits(counts, np.full(8, 1 / 8))


@pytest.mark.parametrize("bound", range(1, 18))
def test_index_is_uniform_over_all_scripts(bound):
    width = (bound - 1).bit_length()
    outcomes = Counter()
    for script in itertools.product("01", repeat=width):
        try:
            outcomes[ScriptedBits(script).index(bound)] += 1
        except BitsExhausted:
            outcomes["refused"] += 1
    assert all(outcomes[candidate] == 1 for candidate in range(bound))
    assert outcomes["refused"] == 2**width - bound


def test_index_draws_again_after_a_refusal():
    assert ScriptedBits("111" + "110" + "100").index(5) == 4


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 200])
def test_indices_below_keep_the_leading_bits_that_fit(bound):
    width = (bound - 1).bit_length()
    for value in range(2**width):
        word = f"{value:0{width}b}" if width else ""
        drawn = ScriptedBits(word + "1" * (32 - width)).indices_below(bound, 1)
        assert drawn.tolist() == ([value] if value < bound else [])


def test_indices_below_uses_long_words_for_long_bounds():
    for width in (33, 40, 62):
        assert ScriptedBits("1" * width + "0" * (64 - width)).indices_below(2**width, 1).tolist() == [2**width - 1]
    assert ScriptedBits("1" * 32).indices_below(2**32, 1).tolist() == [2**32 - 1]


@pytest.mark.parametrize("bounds", [[1], [2], [3, 1, 7], [2**32, 5], [65, 64, 63]])
def test_indices_refuse_and_repeat_one_by_one(bounds):
    """A word of zeros is refused unless the bound is a power of two; those refused read a further word, of ones."""
    opened = [bound for bound in bounds if bound > 1]
    refused = [bound for bound in opened if bound & (bound - 1)]
    source = ScriptedBits("0" * 32 * len(opened) + "1" * 32 * len(refused))
    assert source.indices(np.array(bounds)).tolist() == [bound - 1 if bound in refused else 0 for bound in bounds]
    assert source.used == 32 * (len(opened) + len(refused))


@pytest.mark.parametrize("bound", [2, 3, 7, 64, 1000, 2**31 + 1, 2**32 - 1, 2**32])
def test_as_many_words_give_each_index(bound):
    """The words that give an index are neighbours; the first and the last of them, and those next to them."""
    for number in {0, 1, bound // 2, bound - 1}:
        first, end = -(-(number * 2**32 + 2**32 % bound) // bound), -(-(number + 1) * 2**32 // bound)
        assert end - first == 2**32 // bound
        for word in {first, end - 1}:
            assert ScriptedBits(f"{word:032b}").indices(np.array([bound])).tolist() == [number]
        if first:  # refused, or the last word of the index before
            before = ScriptedBits(f"{first - 1:032b}" + "1" * 32).indices(np.array([bound])).tolist()
            assert before == [number - 1 if (first - 1) * bound < number * 2**32 else bound - 1]


def indexed(index):
    draws = Draws()
    draws.index = index
    return draws


@pytest.mark.parametrize("count", range(5))
def test_orders_are_uniform(count):
    found = distribution(lambda draws: tuple(draws.order(count)))
    orders = list(itertools.permutations(range(count)))
    assert found == dict.fromkeys(orders, Fraction(1, len(orders)))


def test_an_order_is_drawn_as_it_is_walked():
    """The first numbers of an order of 10**18 cost as many draws, and no memory."""
    asked = []
    first = list(itertools.islice(indexed(lambda bound: asked.append(bound) or bound // 3).order(10**18), 4))
    assert asked == [10**18, 10**18 - 1, 10**18 - 2, 10**18 - 3]
    assert Counter(first).most_common(1)[0][1] == 1
