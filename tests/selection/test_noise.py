"""Lazy noise: the bounds enclose the truth (flint), and contests are decided by the bits that matter."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from dpselect.selection.bits import SystemEntropy
from dpselect.selection.noise import (
    MARGIN,
    WIDTH,
    Contender,
    float_bounds,
    is_unbounded,
    largest,
    upper_bounds,
)
from tests.seam import BitsExhausted, ScriptedBits


def size(numerator: int, depth: int) -> arb:
    """-ln(numerator / 2**depth)."""
    ctx.prec = 200
    return -(arb(numerator) / arb(2) ** depth).log()


def true_range(word: int, prefix: int, depth: int) -> tuple[arb, arb]:
    """The interval of the noise whose V starts with these bits (prefix >= 1)."""
    least, most = size(prefix + 1, depth), size(prefix, depth)
    return (least, most) if word < 2**15 else (-most, -least)


def test_upper_bounds_enclose_every_first_word():
    table = upper_bounds()
    assert table.size == 2**16
    for word in [*range(1, 2**15, 37), *range(2**15 + 1, 2**16, 41), 2**15 - 1, 2**16 - 1]:
        low, high = true_range(word, word % 2**15, 15)
        bound = float(table[word])
        assert bound >= high
        assert bound < high + 1e-5
        assert bound - WIDTH - 1e-5 < low


def test_words_without_a_one_are_unbounded():
    words = np.array([0, 1, 2, 2**14, 2**15, 2**15 + 1, 2**15 + 2, 2**16 - 1], np.uint16)
    assert is_unbounded(words).tolist() == [True, False, False, False, True, False, False, False]
    assert np.isneginf(upper_bounds()[[0, 2**15]]).all()


@pytest.mark.parametrize("exponent", [0.0, 0.3, 25.0, 1e6, 1e25])
def test_float_bounds_enclose_the_truth(exponent):
    words = np.concatenate([SystemEntropy().words(296, 16), np.array([1, 2**15 - 1, 2**15 + 1, 2**16 - 1], np.uint16)])
    low, high, prefixes = float_bounds(words, np.full(300, exponent), SystemEntropy())
    for word, least, most, prefix in zip(words.tolist(), low, high, prefixes, strict=True):
        true_low, true_high = true_range(word, int(prefix), 47)
        assert arb(float(least)) <= true_low - arb(exponent)
        assert arb(float(most)) >= true_high - arb(exponent)
        assert most - least < 1e-3 * (1 + exponent)


def test_fresh_bits_are_put_behind_the_first_ones():
    """Fifteen bits of the first word without its sign, then 32 more; with few bits the bounds are those of few bits."""
    words = np.array([5, 2**15 + 5, 0], np.uint16)
    low, high, prefixes = float_bounds(words, np.zeros(3), ScriptedBits(("0" * 31 + "1") * 3))
    assert prefixes.tolist() == [5 * 2**32 + 1, 5 * 2**32 + 1, 1]
    assert (low[2], high[2]) == (pytest.approx(46 * np.log(2)), pytest.approx(47 * np.log(2)))
    assert high[1] == pytest.approx(-low[0])


def test_more_bits_are_put_behind():
    finer = Contender(Fraction(1), False, 5).refined(ScriptedBits("0" * 63 + "1"))
    assert finer == Contender(Fraction(1), False, 5 * 2**64 + 1, 47 + 64)


@pytest.mark.parametrize("is_positive", [True, False])
@pytest.mark.parametrize("prefix", [1, 2, 12345, 2**47 - 2])
def test_brackets_enclose_the_truth(prefix, is_positive):
    exponent = Fraction(1, 3)
    low, high = Contender(exponent, is_positive, prefix).bracket()
    least, most = true_range(0 if is_positive else 2**15, prefix, 47)
    shift = arb(fmpq(1, 3))
    assert arb(fmpq(low.numerator, low.denominator)) <= least - shift
    assert arb(fmpq(high.numerator, high.denominator)) >= most - shift
    assert low < high


def test_unknown_noise_has_one_open_end():
    low, high = Contender(Fraction(0), True, 0).bracket()
    assert high is None
    assert low > 0
    low, high = Contender(Fraction(0), False, 0).bracket()
    assert low is None
    assert high < 0


@pytest.mark.parametrize("is_positive", [True, False])
@pytest.mark.parametrize("shared", [0, 64, 192])
def test_equal_beginnings_are_decided_by_the_first_bit_that_differs(is_positive, shared):
    """Noise falls with V: among positive noise the smaller V wins, among negative the larger."""
    contenders = {key: Contender(Fraction(2, 7), is_positive, 99) for key in (10, 20)}
    steps = ["01" * 32] * (2 * (shared // 64)) + ["0" * 64, "1" * 64] + ["01" * 32] * 2
    winner = largest(contenders, ScriptedBits("".join(steps)))
    assert winner == (10 if is_positive else 20)


def test_a_tie_that_lasts_asks_for_bits_forever():
    contenders = {key: Contender(Fraction(0), True, 99) for key in range(2)}
    with pytest.raises(BitsExhausted):
        largest(contenders, ScriptedBits("01" * 320))


def test_unbounded_noise_loses_no_contest_before_its_time():
    """V with only zeros so far may still be the largest of all; the next bits tell."""
    contenders = {0: Contender(Fraction(5), True, 0), 1: Contender(Fraction(0), True, 2**46)}
    assert largest(contenders, ScriptedBits("1" * 64 + "0" * 64)) == 0
    contenders = {0: Contender(Fraction(50), True, 0), 1: Contender(Fraction(0), True, 2**46)}
    assert largest(contenders, ScriptedBits("1" * 64 + "0" * 64)) == 1


def test_clear_contests_need_no_bits():
    contenders = {0: Contender(Fraction(3), True, 2**46), 1: Contender(Fraction(0), True, 2**46)}
    assert largest(contenders, ScriptedBits("")) == 1


def test_exponents_at_the_end_of_the_floats_raise_no_warning():
    """A warning is an outcome that the scores decide, and warnings are errors here."""
    largest = np.finfo(float).max
    for word in (0, 5, 2**15, 2**15 + 5):
        low, high, _ = float_bounds(np.array([word], np.uint16), np.array([largest]), ScriptedBits("01" * 16))
        assert np.isneginf(low[0])
        assert high[0] <= -largest * (1 - 1e-9) or word == 0


def test_overflowed_exponents_claim_no_lower_bound():
    """An exponent that left the floats is known from below only: it must never push another contender out."""
    low, high, _ = float_bounds(np.array([5, 5], np.uint16), np.array([1e308, 3.0]), ScriptedBits("01" * 32))
    assert np.isneginf(low[0])
    assert high[0] == pytest.approx(-1e308)
    assert np.isfinite(low[1])
    low, _, _ = float_bounds(np.array([5, 5], np.uint16), np.array([2.0**100, 2.0**101]), ScriptedBits("01" * 32))
    assert np.isfinite(low).tolist() == [True, False]


def test_the_margin_covers_the_errors_that_its_comment_adds_up():
    assert MARGIN >= 33 * 256 * 2.0**-52
