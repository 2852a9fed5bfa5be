"""Flip the coins exp(-c (q* - q_r)) of all candidates and read only the scores that matter.

A cold candidate (heads with probability below 2**-8) needs a U that starts with eight zeros. Which candidates have
one is a Bernoulli(1/256) process, so `flip_long` draws the gaps between those and reads the scores there only; and with
twelve zeros in the same way in blocks whose best candidate is colder still.
"""

import numpy as np

from dpselect.mechanisms.gaps import BLOCK, Gaps
from dpselect.mechanisms.heads import Heads
from dpselect.mechanisms.hot import ZEROS, Hot, find_hot
from dpselect.sampling.bits import Octets
from dpselect.sampling.coin import Flags
from dpselect.sampling.draws import Draws
from dpselect.sampling.geometric import Positions

ALL = slice(None)
_OCTET = 8
_FROZEN = 12


def flip(gaps: Gaps, draws: Draws, candidates: Positions | None = None) -> Flags:
    """Flip the coins of all candidates, or of those given."""
    heads, undecided, octets = draws.first_octets(gaps.at(ALL if candidates is None else candidates), gaps.octets)
    if undecided.size:
        positions = undecided if candidates is None else candidates[undecided]
        heads[undecided] = draws.finish(gaps.exponents(positions), octets, _OCTET)
    return heads


class OpenCoins:
    """Coins of which some bits are known, to be finished together."""

    def __init__(self) -> None:
        self._positions: list[Positions] = []
        self._prefixes: list[Octets] = []
        self._depths: list[int] = []

    def add(self, positions: Positions, prefixes: Octets, depth: int) -> None:
        """Add coins whose first `depth` bits are `prefixes`."""
        self._positions.append(positions)
        self._prefixes.append(prefixes)
        self._depths.append(depth)

    def heads(self, gaps: Gaps, draws: Draws) -> Positions:
        """Flip them to the end."""
        positions = np.concatenate(self._positions)
        depths = np.repeat(np.array(self._depths, np.uint8), [part.size for part in self._positions])
        return positions[draws.finish(gaps.exponents(positions), np.concatenate(self._prefixes), depths)]


def flip_long(gaps: Gaps, draws: Draws) -> Heads:
    """Flip the coins of a vector of many blocks, and read again only the candidates that may be heads."""
    heads, hot, open_coins = Heads(), find_hot(gaps), OpenCoins()
    flags, undecided, octets = draws.first_octets(gaps.at(hot.positions), gaps.octets)
    heads.add(hot.positions[flags])
    open_coins.add(hot.positions[undecided], octets, _OCTET)
    for start, stop in hot.crowds:
        flags, undecided, octets = draws.first_octets(gaps.at(slice(start, stop)), gaps.octets)
        heads.add_run(start, flags)
        open_coins.add(start + undecided, octets, _OCTET)
    _add_cold(gaps, hot, open_coins, draws)
    heads.add(open_coins.heads(gaps, draws))
    return heads


def _add_cold(gaps: Gaps, hot: Hot, open_coins: OpenCoins, draws: Draws) -> None:
    """Add the coins of cold candidates that start with enough zeros; the other cold candidates are tails unseen."""
    frozen = gaps.block_maxima < gaps.floor(_FROZEN)
    for zeros, chosen in ((ZEROS, ~frozen & ~hot.in_crowd), (_FROZEN, frozen)):
        blocks = chosen.nonzero()[0]
        if not blocks.size:
            continue
        survivors = draws.survivors(blocks.size * BLOCK, zeros)
        positions = blocks[survivors // BLOCK] * BLOCK + survivors % BLOCK
        positions = positions[positions < gaps.size]
        cold = positions[hot.is_outsider(gaps, positions)]
        open_coins.add(cold, np.zeros(cold.size, np.uint8), zeros)
