"""All randomness of a selection, as one argument.

A mechanism gets coins, survivors and indices from a `Draws` and knows no bit source. A test passes a `Draws` over
scripted bits, or one that enumerates every outcome with its exact probability.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect._types import Flags, Integers, Octets, Positions
from dpselect.selection import bits
from dpselect.selection.arrival import Arrival, draw_arrival, earlier
from dpselect.selection.bits import BitSource, SystemEntropy
from dpselect.selection.coin import Exponents, coin, coin_between, coins
from dpselect.selection.geometric import successes
from dpselect.selection.lines import Lines
from dpselect.selection.noise import FirstWords
from dpselect.selection.octets import OctetTable
from dpselect.selection.odds import WORD_BITS, Odds, Words, odds_coins


class Draws:
    """Exact draws from one source of bits, by default the operating system's."""

    def __init__(self, source: BitSource | None = None) -> None:
        self.source = SystemEntropy() if source is None else source

    def first_octets(self, gaps: npt.NDArray[Any], table: OctetTable) -> tuple[Flags, npt.NDArray[np.intp], Octets]:
        """Reveal one octet of every coin: which are heads, which are undecided, and the octets of the latter."""
        octets: Octets = self.source.words(gaps.size, 8)
        heads, undecided = table.decide(gaps, octets)
        return heads, undecided, octets[undecided]

    def octets_by_lines(self, levels: npt.NDArray[Any], lines: Lines) -> tuple[Flags, npt.NDArray[np.intp], Octets]:
        """Reveal one octet of every coin, like `first_octets`, but with work that does not depend on the scores."""
        octets: Octets = self.source.words(levels.size, 8)
        heads, is_open = lines.decide(levels, octets)
        undecided = np.flatnonzero(is_open)
        return heads, undecided, octets[undecided]

    def finish(self, exponents: Exponents, prefixes: Octets | int, depths: Octets | Integers | int) -> Flags:
        """Finish coins whose first `depths` bits are known to be `prefixes`."""
        return coins(exponents, prefixes, depths, self.source)

    def odds_words(self, count: int) -> Words:
        """Return the first sixteen bits of coins with odds."""
        words: Words = self.source.words(count, WORD_BITS)
        return words

    def finish_odds(self, odds: Odds, prefixes: Words | int, depth: int) -> Flags:
        """Finish coins with odds whose first `depth` bits are known to be `prefixes`."""
        return odds_coins(odds, prefixes, depth, self.source)

    def survivors(self, count: int, zeros: int) -> Positions:
        """Return which of `count` coins start with this many zeros."""
        return successes(count, zeros, self.source)

    def arrival(self, exponent: Fraction, size: int) -> Arrival:
        """Return the arrival of the first head of a run, with its first bits revealed."""
        return draw_arrival(exponent, size, self.source)

    def earlier(self, first: Arrival, second: Arrival) -> tuple[int, Arrival]:
        """Return which of two arrivals comes first, and that arrival with the bits revealed."""
        return earlier(first, second, self.source)

    def flip(self, exponent: Fraction, zeros: int = 0) -> bool:
        """Flip one coin U < exp(-exponent), given that U starts with so many zeros."""
        return coin(exponent, self.source, depth=zeros)

    def flip_between(self, near: Fraction, further: Fraction) -> bool:
        """Return whether U < exp(-near), for a U that is known to be at least exp(-near - further)."""
        return coin_between(near, further, self.source)

    def index(self, bound: int) -> int:
        """Return a uniform integer below the bound."""
        return bits.index(bound, self.source)

    def index_at_once(self, bound: int) -> int:
        """Return a uniform integer below the bound, by work that does not depend on the bound."""
        return bits.index_at_once(bound, self.source)

    def indices_at_once(self, bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return a uniform integer below each bound, by work that does not depend on the bounds."""
        return bits.indices_at_once(bounds, self.source)

    def indices(self, bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return a uniform integer below each bound."""
        return bits.indices(bounds, self.source)

    def indices_below(self, bound: int, tries: int) -> npt.NDArray[np.int64]:
        """Return up to `tries` uniform integers below one bound."""
        return bits.indices_below(bound, tries, self.source)

    def fair_heads(self, count: int) -> int:
        """Return how many of so many fair coins are heads."""
        words, rest = divmod(count, 64)
        whole = int(np.bitwise_count(self.source.words(words, 64)).sum())
        return whole + self.source.bits(rest).bit_count()

    def noise_words(self, count: int) -> FirstWords:
        """Return a sign bit (0 for plus) and the first 15 bits of V, for each candidate's noise."""
        words: FirstWords = self.source.words(count, 16)
        return words
