"""Random bits from the operating system, and uniform integers and random orders drawn from them.

Integers below a bound are drawn by rejection of random integers (Lumbroso 2013 surveys the alternatives). A random
order is that of Fisher & Yates (1938), drawn step by step: it stores only the positions touched so far. No float is
involved, so there is nothing to filter.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpselect._types import Integers
from dpselect.errors import ScoresChanged


class BitSource(Protocol):
    """Fair independent bits, each handed out once."""

    def bits(self, count: int) -> int:
        """Return a uniform integer of `count` bits."""
        ...

    def words(self, count: int, width: int) -> npt.NDArray[Any]:
        """Return `count` uniform integers of 8, 16, 32 or 64 bits, as unsigned integers of that width."""
        ...


_WORDS = {width: np.dtype(f"u{width // 8}") for width in (8, 16, 32, 64)}


class SystemEntropy:
    """The operating system's generator.

    It has no state, no seed and no buffer, so a forked or pickled copy cannot repeat anything.
    """

    def bits(self, count: int) -> int:
        octets = (count + 7) // 8
        return int.from_bytes(os.urandom(octets), "big") >> (8 * octets - count)

    def words(self, count: int, width: int) -> npt.NDArray[Any]:
        return np.frombuffer(os.urandom(count * width // 8), dtype=_WORDS[width])


_WORD = 128
_HALF, _BEYOND_HALF, _SHIFT = np.uint64(2**32 - 1), np.uint64(2**32), np.uint64(32)


def index(bound: int, source: BitSource) -> int:
    """A uniform integer in range(bound). The bound is zero only if scores changed in the meantime."""
    if bound < 1:
        raise ScoresChanged
    width = (bound - 1).bit_length()
    while True:
        candidate = source.bits(width)
        if candidate < bound:
            return candidate


def index_at_once(bound: int, source: BitSource) -> int:
    """A uniform integer in range(bound) from one random word of 128 bits, for any bound (Lemire 2019).

    The high half of bound * word is uniform if words whose low half is below 2**128 mod bound are refused. That happens
    with probability below bound / 2**128, so the number of words does not depend on the bound.
    """
    if bound < 1:
        raise ScoresChanged
    while True:
        high, low = divmod(bound * source.bits(_WORD), 1 << _WORD)
        if low >= (1 << _WORD) % bound:
            return high


def indices_at_once(bounds: Integers, source: BitSource) -> Integers:
    """One uniform integer below each bound (1 <= bound <= 2**32), from one random word of 64 bits each (Lemire 2019).

    A word is refused with probability below bound / 2**64. The product is taken in two parts of 32 bits: neither
    bound * part nor its sum with a carry below 2**32 reaches 2**64.
    """
    if (bounds < 1).any():
        raise ScoresChanged
    factors, drawn = bounds.astype(np.uint64), np.empty(len(bounds), np.int64)
    left = np.arange(len(bounds))
    while left.size:
        words, factor = source.words(left.size, 64), factors[left]
        low = factor * (words & _HALF)
        high = factor * (words >> _SHIFT) + (low >> _SHIFT)
        rest = (high << _SHIFT) | (low & _HALF)
        accepted = rest >= (np.uint64(2**64 - 1) % factor + np.uint64(1)) % factor
        drawn[left[accepted]] = (high >> _SHIFT)[accepted].astype(np.int64)
        left = left[~accepted]
    return drawn


def indices_below(bound: int, tries: int, source: BitSource) -> Integers:
    """Independent uniform integers in range(bound): at most `tries` of them, at least half as many on average."""
    if bound < 1:
        raise ScoresChanged
    width = (bound - 1).bit_length()
    word = 32 if width <= 32 else 64
    drawn = source.words(tries, word) >> np.uint8(word - width) if width else np.zeros(tries, np.uint64)
    return drawn[drawn < bound].astype(np.int64)


def indices(bounds: Integers, source: BitSource) -> Integers:
    """One uniform integer below each bound (1 <= bound <= 2**32), from one word of 32 bits for most (Lemire 2019).

    The high half of bound * word is uniform if words whose low half is below 2**32 mod bound are refused.
    """
    if len(bounds) and bounds.min() < 1:
        raise ScoresChanged
    factors, drawn = bounds.astype(np.uint64), np.zeros(len(bounds), np.int64)
    left = (bounds > 1).nonzero()[0]
    while left.size:
        factor = factors[left]
        products = source.words(left.size, 32) * factor
        drawn[left] = products >> _SHIFT
        left = left[(products & _HALF) < _BEYOND_HALF % factor]
    return drawn


def random_order(count: int, index: Callable[[int], int]) -> Iterator[int]:
    """The numbers in range(count) in random order. `index` draws a uniform integer below a bound."""
    moved: dict[int, int] = {}
    for left in range(count, 0, -1):
        slot = index(left)
        yield moved.get(slot, slot)
        moved[slot] = moved.get(left - 1, left - 1)
