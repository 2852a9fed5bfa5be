"""The coin by its bits: what is decided when, against flint's balls, and with a filter that is made to doubt."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.selection.draws import MARGIN, Draws
from tests.seam import Refused, ScriptedBits, distribution, heads_probability
from tests.selection.test_enclosure import true_floor
from tests.statistical.goodness import assert_fits

pytestmark = pytest.mark.usefixtures("each_kernel")

EXPONENTS = [
    Fraction(1, 2**1074),
    Fraction(1, 2**70),
    Fraction(1e-9),
    Fraction(1, 3),
    Fraction(1),
    Fraction(11, 2),
    Fraction(30),
    Fraction(800),
    Fraction(10**6),
]


class Batch:
    """Exponents of a batch of coins."""

    def __init__(self, exact):
        self._exact = exact
        self.approximate = np.array([float(exponent) for exponent in exact])

    def exact(self, index):
        return self._exact[index]


def binary(number, width):
    return f"{number:0{width}b}" if width else ""


def test_zero_is_always_heads_even_for_the_largest_uniform():
    assert ScriptedBits("1" * 64).flip(Fraction(0), 40, 2**40 - 1) is True
    assert ScriptedBits("1" * 32).finish(Batch([Fraction(0)]), 0, 0)[0]


@pytest.mark.parametrize("margin", [MARGIN, 2.0**-20, 2.0**-6, 1.0])
@pytest.mark.parametrize("depth", [0, 8, 12, 20])
@settings(max_examples=40)
@given(data=st.data())
def test_the_filter_agrees_with_the_exact_coin(margin, depth, data):
    """What the filter decides, and what it leaves to the fallback, is what the true boundary says of the same bits."""
    exponents = data.draw(
        st.lists(st.fractions(0, 40, max_denominator=10**6) | st.sampled_from(EXPONENTS), min_size=1, max_size=6)
    )
    prefixes, words = [], []
    for exponent in exponents:
        boundary = true_floor(exponent, depth + 32)
        near = data.draw(st.integers(-20, 20) | st.integers(-(2**60), 2**60))
        word = min(max(boundary + near, 0), 2 ** (depth + 32) - 1)
        prefixes.append(word >> 32)
        words.append(word & 0xFFFFFFFF)
    prefix = np.array(prefixes) if depth else 0
    more = "0110" * 60
    script = "".join(binary(word, 32) for word in words) + more * len(exponents)
    flags = ScriptedBits(script).finish(Batch(exponents), prefix, np.full(len(exponents), depth), margin)
    for exponent, high, low, flag in zip(exponents, prefixes, words, flags, strict=True):
        word, boundary = high << 32 | low, true_floor(exponent, depth + 32)
        if word != boundary:  # then no further bit matters
            assert flag == (word < boundary)


@pytest.mark.parametrize("cells", [-1, 0, 1])
def test_no_word_is_between_the_filter_and_the_fallback(cells):
    """The largest U are at 1 - U = doubt, one cell nearer and one farther: the coin of exponent zero is heads."""
    word = 2**32 - 2**12 - 4 + cells  # four cells of slack, and a margin of 2**12 cells
    assert ScriptedBits(binary(word, 32)).finish(Batch([Fraction(0)]), 0, 0, margin=2.0**-20)[0]


def test_a_doubting_filter_uses_the_fallback():
    """With a margin of one every coin goes to the fallback, which needs the exact exponents."""
    asked = []

    class Watched(Batch):
        def exact(self, index):
            asked.append(index)
            return super().exact(index)

    ScriptedBits("0" * 64).finish(Watched([Fraction(1), Fraction(2)]), 0, 0, margin=1.0)
    assert asked == [0, 1]
    asked.clear()
    ScriptedBits("0" * 64).finish(Watched([Fraction(1), Fraction(2)]), 0, 0)
    assert asked == []


@pytest.mark.parametrize(("distance", "is_doubted"), [(0.08, False), (0.05, True), (-0.05, True), (-0.08, False)])
def test_doubt_is_relative_to_the_boundary(distance, is_doubted):
    """A margin of a tenth of exp(-1/3) = 0.717, on both sides."""
    asked = []

    class Watched(Batch):
        def exact(self, index):
            asked.append(index)
            return super().exact(index)

    word = int((np.exp(-1 / 3) - distance) * 2**32)
    flag = ScriptedBits(binary(word, 32)).finish(Watched([Fraction(1, 3)]), 0, 0, margin=0.1)[0]
    assert flag == (distance > 0)
    assert bool(asked) is is_doubted


def test_numpys_exp_is_far_inside_the_margin():
    """The filter trusts exp to 256 units in the last place; this machine's is measured against flint."""
    ctx.prec = 120
    points = np.concatenate([np.linspace(0, 100, 4001), np.geomspace(1e-300, 1, 500)])
    ours = np.exp(-points)
    truth = [(-arb(float(point))).exp() for point in points]
    worst = max(abs(float(1 - arb(float(value)) / exact)) for value, exact in zip(ours, truth, strict=True))
    assert worst < 2.0**-50


def test_the_margin_covers_the_errors_that_its_comment_adds_up():
    assert MARGIN >= 64 * 2.0**-50.9 + 256 * 2.0**-52


@pytest.mark.parametrize(("near", "further"), list(itertools.product([0, 1, 2, 5], [1, 2, 6])))
def test_a_race_has_the_conditional_probability(near, further, monkeypatch):
    """A round that starts over is left out, as `Refused` does: what it then does is what it did before."""

    def one_round(draws):
        flips = iter([near, further])

        def flip(exponent):
            wanted = next(flips, None)
            if wanted is None:
                raise Refused
            assert exponent == wanted
            return draws.coin(heads_probability(exponent))

        monkeypatch.setattr(draws, "flip", flip)
        return Draws.flip_between(draws, Fraction(near), Fraction(further))

    a, ab = heads_probability(near), heads_probability(near + further)
    found = distribution(one_round)
    assert found.get(True, 0) == (a - ab) / (1 - ab)
    assert (near == 0) == (found.get(True, 0) == 1), "the best is always a head"


def test_the_race_reads_bits():
    ones, zeros = "1" * 32, "0" * 32
    quarter = Fraction(14, 10)  # exp(-1.4) is about 0.2466: heads is a U below it
    assert ScriptedBits(ones).flip_between(quarter, quarter) is False
    assert ScriptedBits(zeros + ones).flip_between(quarter, quarter) is True
    assert ScriptedBits(zeros + zeros + zeros + ones).flip_between(quarter, quarter) is True, "after a second round"
    assert ScriptedBits(zeros + zeros + ones).flip_between(Fraction(0), quarter) is True


def test_the_race_of_the_operating_system():
    draws = Draws()
    near, further = Fraction(1, 2), Fraction(1, 3)
    heads = sum(draws.flip_between(near, further) for _ in range(4000))
    probability = (2.718281828459045**-0.5 - 2.718281828459045 ** -(5 / 6)) / (1 - 2.718281828459045 ** -(5 / 6))
    assert_fits([heads, 4000 - heads], [probability, 1 - probability])
    flips = sum(draws.flip(near) for _ in range(4000))
    assert_fits([flips, 4000 - flips], [2.718281828459045**-0.5, 1 - 2.718281828459045**-0.5])
