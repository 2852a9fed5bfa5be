"""Uniform indices: every outcome has the same number of bit strings."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from dpselect.errors import BitsExhausted
from dpselect.sampling.bits import ScriptedBits, index, indices, indices_below


@pytest.mark.parametrize("bound", range(1, 18))
def test_index_is_uniform_over_all_scripts(bound):
    width = (bound - 1).bit_length()
    outcomes = Counter()
    for script in product("01", repeat=width):
        try:
            outcomes[index(bound, ScriptedBits(script))] += 1
        except BitsExhausted:
            outcomes["refused"] += 1
    assert all(outcomes[candidate] == 1 for candidate in range(bound))
    assert outcomes["refused"] == 2**width - bound


def test_index_draws_again_after_a_refusal():
    assert index(5, ScriptedBits("111" + "110" + "100")) == 4


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 200])
def test_indices_below_keep_the_leading_bits_that_fit(bound):
    width = (bound - 1).bit_length()
    for value in range(2**width):
        word = f"{value:0{width}b}" if width else ""
        drawn = indices_below(bound, 1, ScriptedBits(word + "1" * (32 - width)))
        assert drawn.tolist() == ([value] if value < bound else [])


def test_indices_below_uses_long_words_for_long_bounds():
    for width in (33, 40, 62):
        assert indices_below(2**width, 1, ScriptedBits("1" * width + "0" * (64 - width))).tolist() == [2**width - 1]
    assert indices_below(2**32, 1, ScriptedBits("1" * 32)).tolist() == [2**32 - 1]


@pytest.mark.parametrize("bounds", [[1], [2], [3, 1, 7], [2**32, 5], [65, 64, 63]])
def test_indices_refuse_and_repeat_one_by_one(bounds):
    """Each bound reads the leading bits of its own word; those refused read a further word."""
    values = [bound - 1 for bound in bounds]
    opened = [(bound, value) for bound, value in zip(bounds, values, strict=True) if bound > 1]
    refused = [bound for bound, _ in opened if bound & (bound - 1)]
    script = "1" * 32 * len(opened)
    for bound in refused:
        width = (bound - 1).bit_length()
        script += f"{bound - 1:0{width}b}".ljust(32, "0")
    assert indices(np.array(bounds), ScriptedBits(script)).tolist() == values
