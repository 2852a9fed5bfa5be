"""Sources of bits."""

from functools import reduce
from operator import or_

import numpy as np
import pytest

from dpselect.errors import BitsExhausted
from dpselect.sampling.bits import ScriptedBits, SystemEntropy
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
    assert SystemEntropy().bits(0) == 0


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_words_have_their_width(width):
    for source in (SystemEntropy(), ScriptedBits("01" * width * 3)):
        words = source.words(3, width)
        assert words.dtype == np.dtype(f"u{width // 8}")
        assert words.size == 3


@pytest.mark.parametrize("count", [1, 7, 8, 9, 32, 64, 65])
def test_system_bits_are_as_many_as_asked_for(count):
    drawn = [SystemEntropy().bits(count) for _ in range(60)]
    assert max(drawn).bit_length() <= count
    assert reduce(or_, drawn) == 2**count - 1  # each bit is set in one of them


def test_system_bits_are_fair():
    counts = np.zeros(8)
    for _ in range(20_000):
        counts[SystemEntropy().bits(3)] += 1
    assert_fits(counts, np.full(8, 1 / 8))
