"""Uniform integers below a bound, by rejection of whole random integers (Lumbroso 2013 surveys the alternatives).

No float takes part, so there is nothing to filter.
"""

import numpy as np
import numpy.typing as npt

from dpselect.errors import ScoresChanged
from dpselect.sampling.bits import BitSource

Integers = npt.NDArray[np.int64]


def index(bound: int, source: BitSource) -> int:
    """A uniform integer in range(bound). There is always something to choose from, unless scores changed meanwhile."""
    if bound < 1:
        raise ScoresChanged
    width = (bound - 1).bit_length()
    while True:
        candidate = source.bits(width)
        if candidate < bound:
            return candidate


def indices_below(bound: int, tries: int, source: BitSource) -> Integers:
    """Independent uniform integers in range(bound): at most `tries` of them, at least half as many on average."""
    if bound < 1:
        raise ScoresChanged
    width = (bound - 1).bit_length()
    word = 32 if width <= 32 else 64
    drawn = source.words(tries, word) >> np.uint8(word - width) if width else np.zeros(tries, np.uint64)
    return drawn[drawn < bound].astype(np.int64)


def indices(bounds: Integers, source: BitSource) -> Integers:
    """One uniform integer below each bound (1 <= bound <= 2**32)."""
    if len(bounds) and bounds.min() < 1:
        raise ScoresChanged
    drawn = np.zeros(len(bounds), np.int64)
    # frexp writes b - 1 = f * 2**e with 0.5 <= f < 1, so e is the bit length; exact below 2**53.
    widths = np.frexp((bounds - 1).astype(np.float64))[1].astype(np.uint64)
    open_ = np.flatnonzero(bounds > 1)
    while open_.size:
        words = source.words(open_.size, 32).astype(np.uint64)
        tried = (words >> (np.uint64(32) - widths[open_])).astype(np.int64)
        accepted = tried < bounds[open_]
        drawn[open_[accepted]] = tried[accepted]
        open_ = open_[~accepted]
    return drawn
