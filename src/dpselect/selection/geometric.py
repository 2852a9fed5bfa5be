"""Positions of the successes of a Bernoulli(2**-zeros) process, by geometric skips (inversion; Devroye 1986, X.2).

The skip G before a success satisfies Pr[G >= g] = a**g with a = 1 - 2**-zeros, so G = floor(ln V / ln a) for a
uniform V. A float64 filter on 32 bits of V nearly always finds the floor; `geometric` decides the rest exactly.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect._types import Positions
from dpselect.selection import kernel
from dpselect.selection.bits import BitSource
from dpselect.selection.enclosure import log_bracket

_WORD_BITS = 32
_BITS_PER_STEP = 32
_BATCH = 8192
# Up to this many trials, one octet each is faster than skips.
_DIRECT, _OCTET = 2048, 8
# Relative error of x = ln V / ln a: log within 256 units in the last place (2**-44, far above what any libm needs),
# ln a and the quotient rounded once each.
MARGIN = 2.0**-43


def geometric(zeros: int, source: BitSource, prefix: int = 0, depth: int = 0) -> int:
    """The number of failures before the first success, given that V starts with the `depth` bits of `prefix`."""
    while True:
        bracket = _quotient_bracket(zeros, prefix, depth) if prefix else None
        if bracket is not None and bracket[0] == bracket[1]:
            return bracket[0]
        prefix = prefix << _BITS_PER_STEP | source.bits(_BITS_PER_STEP)
        depth += _BITS_PER_STEP


def _quotient_bracket(zeros: int, prefix: int, depth: int) -> tuple[int, int]:
    """Integer parts of a lower and an upper bound of ln V / ln a over the cell of V."""
    digits = 20 + int(0.302 * (depth + zeros))
    rate_low, rate_high = log_bracket(Fraction(1 << zeros, (1 << zeros) - 1), digits)  # -ln a
    least, _ = log_bracket(Fraction(1 << depth, prefix + 1), digits)  # -ln V, from below
    _, most = log_bracket(Fraction(1 << depth, prefix), digits)
    return math.floor(least / rate_high), math.floor(most / rate_low)


def _skips(words: npt.NDArray[Any], zeros: int, source: BitSource, margin: float) -> Positions:
    """The skip of each word."""
    skips, doubtful = kernel.skips(words, zeros, margin) or _filtered(words, zeros, margin)
    for index in doubtful.tolist():
        skips[index] = geometric(zeros, source, int(words[index]), _WORD_BITS)
    return skips


def _filtered(words: npt.NDArray[Any], zeros: int, margin: float) -> tuple[Positions, Positions]:
    """The skips of these words, and the indices of those that are in doubt."""
    middles = words + 0.5  # as float64
    quotient = np.log(middles * 2.0**-_WORD_BITS) / math.log1p(-(2.0**-zeros))
    # V lies in [w, w + 1) / 2**32, so ln V is within 1/(w + 0.5) of the middle's for w >= 1; -1/ln a <= 2**zeros. The
    # word 0 has no lower end; its doubt is 2**(zeros + 1), so it is never decided here.
    doubt = 2.0**zeros / middles + quotient * margin
    low = np.floor(quotient - doubt)
    return low.astype(np.int64), (low != np.floor(quotient + doubt)).nonzero()[0]


def successes(trials: int, zeros: int, source: BitSource, margin: float = MARGIN) -> Positions:
    """Positions in range(trials), ascending, at which a Bernoulli(2**-zeros) process succeeds."""
    parts: list[Positions] = []
    last = -1
    if trials <= _DIRECT and zeros <= _OCTET:
        found: Positions = (source.words(trials, _OCTET) < 1 << (_OCTET - zeros)).nonzero()[0]
        return found
    while True:
        expected = (trials - last) / 2.0**zeros
        size = min(_BATCH, math.ceil(expected + 4 * math.sqrt(expected)) + 1)
        words = source.words(size, _WORD_BITS)
        positions = kernel.successes(words, zeros, margin, last, trials)
        if positions is None:
            positions = (_skips(words, zeros, source, margin) + 1).cumsum() + last
            positions = positions[: positions.searchsorted(trials)]
        if positions.size < size:
            return np.concatenate([*parts, positions]) if parts else positions
        parts.append(positions)
        last = int(positions[-1])
