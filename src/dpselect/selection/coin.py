"""The coin of McKenna & Sheldon (2020), Algorithm 1: heads is U < exp(-exponent), with bits of U revealed on demand.

U is uniform on [0, 1), and the coin is exact. A float64 filter on the first 40 bits or so decides almost always; an
integer comparison at any depth decides the rest. No float decides an output: the filter answers only where its error
bound leaves no doubt.

`coin_between` is a coin U < exp(-near), given that U < exp(-near - further) does not hold, by a Bernoulli race (Dughmi
et al. 2017). With a = exp(-near) and b = exp(-further) its probability is a (1 - b) / (1 - a b). Flip a: tails is
tails. Otherwise flip b: tails is heads. Otherwise start over. A round ends with heads with probability a (1 - b) and
with tails with probability 1 - a, so the quotient of the two is right, and so is everything. A round starts over with
probability a b, the probability of the event that is known not to have occurred.
"""

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpselect._types import Flags, Floats, Integers, Octets, Positions
from dpselect.selection import kernel
from dpselect.selection.bits import BitSource
from dpselect.selection.enclosure import scaled_exp

# The filter's error bound, relative to the boundary exp(-x), x the computed exponent: x carries at most four
# roundings (gap, rate, product, and one for scores that are not floats), so its error is below x * 2**-50.9, which is
# 2**-44.9 for x <= 64 and moves the boundary by the same relative amount. exp itself is within a few units in the last
# place in every library that NumPy uses (glibc documents 1, NumPy's own vector code less than 4); we allow 256 of
# them, 2**-44. Together below 2**-43. For x > 64 boundary and true value are both below 2**-92, far inside SLACK.
MARGIN = 2.0**-42
# The known bits leave a cell of width 2**-k for U. Four cells cover it and every rounding of numbers of its size.
SLACK = 4.0
# Larger exponents are reduced to this: their boundary is inside SLACK anyway, and floats near 2**-1074 are slow.
_VANISHED = 100.0
_FRESH_BITS = 32
_BITS_PER_STEP = 32
_DEEPEST = 20
_CELLS = 2.0 ** -np.arange(_FRESH_BITS, _FRESH_BITS + _DEEPEST + 1)  # the width of a cell, by the known depth
_SLACKS = SLACK * _CELLS

Words = npt.NDArray[Any]


class Exponents(Protocol):
    """Exponents of a batch of coins: floats with a relative error of at most 2**-50.9, and the exact rationals."""

    approximate: Floats

    def exact(self, index: int) -> Fraction:
        """Return the exact exponent of one coin."""
        ...


def coin(exponent: Fraction, source: BitSource, prefix: int = 0, depth: int = 0) -> bool:
    """Whether U < exp(-exponent), given that the first `depth` bits of U are `prefix`.

    At depth k the only undecided prefix is floor(2**k exp(-exponent)): one below it is heads, one above it is tails.
    For exponent zero that is 2**k, which every prefix is below.
    """
    while True:
        boundary = scaled_exp(exponent, depth)
        if prefix != boundary:
            return prefix < boundary
        prefix = prefix << _BITS_PER_STEP | source.bits(_BITS_PER_STEP)
        depth += _BITS_PER_STEP


def coins(
    exponents: Exponents,
    prefixes: Octets | int,
    depths: Octets | Integers | int,
    source: BitSource,
    margin: float = MARGIN,
) -> Flags:
    """Whether U < exp(-exponent) for each coin, given the first bits of each U: `depths` of them, at most 20.

    All words stay below 2**53, so floats hold them exactly.
    """
    approximate = exponents.approximate
    fresh = source.words(approximate.size, _FRESH_BITS)
    filtered = kernel.coins(approximate, fresh, prefixes, depths, margin, SLACK, _VANISHED)
    heads, doubtful = _filtered(approximate, fresh, prefixes, depths, margin) if filtered is None else filtered
    for index in doubtful.tolist():
        prefix, depth = (int(np.broadcast_to(known, heads.shape)[index]) for known in (prefixes, depths))
        word = prefix << _FRESH_BITS | int(fresh[index])
        heads[index] = coin(exponents.exact(index), source, word, depth + _FRESH_BITS)
    return heads


def _filtered(
    exponents: Floats, fresh: Words, prefixes: Octets | int, depths: Octets | Integers | int, margin: float
) -> tuple[Flags, Positions]:
    """The coins that are heads beyond doubt, and the indices of those that are in doubt."""
    cell = _CELLS.take(depths)
    lowest: Floats = fresh * cell
    if not isinstance(prefixes, int) or prefixes:
        lowest += prefixes * (cell * 2.0**_FRESH_BITS)
    boundary = np.exp(np.maximum(-exponents, -_VANISHED))
    distance = boundary - lowest
    doubt = boundary * margin + _SLACKS.take(depths)
    return distance > doubt, (np.abs(distance) <= doubt).nonzero()[0]


def coin_between(near: Fraction, further: Fraction, source: BitSource) -> bool:
    """Whether U < exp(-near), given U >= exp(-near - further); further > 0."""
    while coin(near, source):
        if not coin(further, source):
            return True
    return False
