"""The set of candidates whose coin came up heads, and a uniform choice from it.

A candidate is hot if its coin can be heads without eight leading zeros.

Hot candidates are listed one by one if they are few, and as whole runs of blocks ("crowds") if they are many,
so that the list stays small for any scores.

All coins exp(-c (q* - q_r)) are flipped, but only the scores that matter are read.

A cold candidate (heads with probability below 2**-8) needs a U that starts with eight zeros. Which candidates have
one is a Bernoulli(1/256) process, so `flip_long` draws the gaps between those and reads the scores there only; and with
twelve zeros in the same way in blocks whose best candidate is colder still. In the same way, a run of warm candidates
(heads with probability 15/16 or more) is heads but for those whose U starts with four ones, and only these are read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect._types import Flags, Octets, Positions
from dpselect.mechanisms.gaps import BLOCK, ONES, Gaps
from dpselect.sampling.draws import Draws


class Heads:
    """Heads as positions where they are few, and as one flag per candidate in runs that may hold many."""

    def __init__(self) -> None:
        self._singles = [np.empty(0, np.int64)]
        self._runs: list[tuple[int, Octets]] = []
        self._counts: list[int] = []

    def add(self, positions: Positions) -> None:
        """Add single candidates, none of them twice."""
        self._singles.append(positions)

    def add_run(self, start: int, flags: Flags) -> None:
        """Add those of a run of candidates that are flagged."""
        self._runs.append((start, np.packbits(flags)))
        self._counts.append(int(np.count_nonzero(flags)))

    def discard(self, positions: Positions) -> None:
        """Remove single candidates."""
        self._singles = [single[~np.isin(single, positions)] for single in self._singles]
        for number, (start, packed) in enumerate(self._runs):
            flags = np.unpackbits(packed)
            inside = positions[(positions >= start) & (positions < start + flags.size)]
            flags[inside - start] = 0
            self._runs[number] = start, np.packbits(flags)
            self._counts[number] = int(np.count_nonzero(flags))

    @property
    def size(self) -> int:
        """Return the number of heads."""
        return sum(single.size for single in self._singles) + sum(self._counts)

    def choose(self, draws: Draws) -> int:
        """Return a uniform member; there must be one. The coin of the maximum is always heads."""
        singles = np.concatenate(self._singles)
        ranks = np.cumsum([singles.size, *self._counts])
        rank = draws.index(int(ranks[-1]))
        if rank < singles.size:
            return int(singles[rank])
        number = int(np.searchsorted(ranks, rank, side="right"))
        start, packed = self._runs[number - 1]
        return start + int(np.flatnonzero(np.unpackbits(packed))[rank - ranks[number - 1]])


# The largest number of blocks that one step handles, adjacent or scattered: large enough to hide the interpreter's
# overhead, small enough for the cache.
_RUN = 128
_SCATTERED = 512
# A run is a crowd if more than one in _CROWDED is hot. Then flipping all its coins is cheaper than listing hot ones.
_CROWDED = 32
# A hot candidate can be heads without this many leading zeros.
ZEROS = 8


@dataclass(frozen=True, repr=False)
class Hot:
    """Hot candidates: `crowds` are half-open ranges that hold many, `positions` are those outside the crowds."""

    crowds: list[tuple[int, int]]
    positions: Positions
    in_crowd: npt.NDArray[np.bool_]  # one flag per block
    floor: Any  # no score below it is hot

    def is_outsider(self, gaps: Gaps, positions: Positions) -> Flags:
        """Return which of the given candidates are neither hot nor in a crowd."""
        outsiders: Flags = (gaps.values[positions] < self.floor) & ~self.in_crowd[positions // BLOCK]
        return outsiders


def find_hot(gaps: Gaps) -> Hot:
    """Read the blocks whose maximum is hot a second time, many at once if they are scattered and hold few."""
    crowds: list[tuple[int, int]] = []
    singles = [np.empty(0, np.int64)]
    floor, in_crowd = gaps.floor(ZEROS), np.zeros(len(gaps.block_maxima), np.bool_)
    blocks = np.flatnonzero(gaps.block_maxima >= floor)
    for part in _parts(blocks, gaps.size // BLOCK):
        few = _few(gaps, part, floor)
        if few is not None:
            singles.append(few)
            continue
        for first, last in _runs(part):
            start, stop = first * BLOCK, min(last * BLOCK, gaps.size)
            hot = gaps.values[start:stop] >= floor
            if np.count_nonzero(hot) * _CROWDED > stop - start:
                crowds.append((start, stop))
                in_crowd[first:last] = True
            else:
                singles.append(hot.nonzero()[0] + start)
    return Hot(crowds, np.concatenate(singles), in_crowd, floor)


def _parts(blocks: Positions, whole: int) -> Iterator[Positions]:
    """The blocks in parts of at most _SCATTERED. An incomplete last block is a separate part."""
    end = int(np.searchsorted(blocks, whole))
    for start in range(0, end, _SCATTERED):
        yield blocks[start : min(start + _SCATTERED, end)]
    if end < blocks.size:
        yield blocks[end:]


def _few(gaps: Gaps, blocks: Positions, floor: Any) -> Positions | None:
    """The hot candidates of whole blocks that are scattered; None if they are neighbours, or if too many are hot."""
    if blocks[-1] - blocks[0] < blocks.size:
        return None
    whole = gaps.size // BLOCK
    hot = gaps.values[: whole * BLOCK].reshape(whole, BLOCK).take(blocks, axis=0) >= floor
    if np.count_nonzero(hot) * _CROWDED > hot.size:
        return None
    found = hot.ravel().nonzero()[0]
    positions: Positions = blocks[found // BLOCK] * BLOCK + found % BLOCK
    return positions


def _runs(blocks: Positions) -> list[tuple[int, int]]:
    """Neighbouring blocks as half-open ranges of at most _RUN blocks."""
    firsts, lasts = blocks[np.diff(blocks, prepend=-2) != 1], blocks[np.diff(blocks, append=-1) != 1]
    return [
        (start, min(start + _RUN, last + 1))
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
        for start in range(first, last + 1, _RUN)
    ]


ALL = slice(None)
# In a vector up to this length, reading all candidates again is cheaper than finding the blocks that matter.
MIDDLE = 2**15
_OCTET = 8
_FROZEN = 12
# Where all candidates are read again, listing fewer hot ones and more survivors is faster.
_FEW_ZEROS = 7
# Up to this many coins, one comparison with more bits is faster than one with an octet first.
_FEW = 512
# If more than one in _MANY is hot, an octet for each candidate is cheaper than listing the hot ones.
_MANY = 5


def flip(gaps: Gaps, draws: Draws, candidates: Positions | None = None) -> Flags:
    """Flip the coins of all candidates, or of those given."""
    heads, undecided, octets = draws.first_octets(gaps.at(ALL if candidates is None else candidates), gaps.octets)
    if undecided.size:
        positions = undecided if candidates is None else candidates[undecided]
        heads[undecided] = draws.finish(gaps.exponents(positions), octets, _OCTET)
    return heads


class OpenCoins:
    """Coins with some known bits, which are finished together."""

    def __init__(self) -> None:
        self._positions: list[Positions] = []
        self._prefixes: list[Octets] = []
        self._depths: list[int] = []

    def add(self, positions: Positions, depth: int, prefixes: Octets | None = None) -> None:
        """Add coins whose first `depth` bits are `prefixes`, or zeros."""
        self._positions.append(positions)
        self._prefixes.append(np.zeros(positions.size, np.uint8) if prefixes is None else prefixes)
        self._depths.append(depth)

    def heads(self, gaps: Gaps, draws: Draws) -> Positions:
        """Flip them to the end."""
        positions = np.concatenate(self._positions)
        depths = np.array(self._depths, np.uint8).repeat([part.size for part in self._positions])
        return positions[draws.finish(gaps.exponents(positions), np.concatenate(self._prefixes), depths)]


def _flip_hot(gaps: Gaps, positions: Positions, open_coins: OpenCoins, draws: Draws) -> Positions:
    """The hot candidates whose first octet is heads; those that it leaves open are added. Few are added at once."""
    if positions.size <= _FEW:
        open_coins.add(positions, 0)
        return positions[:0]
    flags, undecided, octets = draws.first_octets(gaps.at(positions), gaps.octets)
    open_coins.add(positions[undecided], _OCTET, octets)
    return positions[flags]


def flip_at_once(gaps: Gaps, draws: Draws) -> Positions:
    """The heads, in any order, of a vector (or of rows) that fits the cache, so that all of it is read again."""
    is_hot = gaps.is_hot(_FEW_ZEROS)
    hot = is_hot.nonzero()[0]
    if hot.size * _MANY > gaps.size:
        return flip(gaps, draws).nonzero()[0]
    cold = draws.survivors(gaps.size, _FEW_ZEROS)
    cold = cold[~is_hot[cold]]
    if hot.size > _FEW:
        heads = hot.compress(flip(gaps, draws, hot))
        return np.concatenate([heads, cold[draws.finish(gaps.exponents(cold), 0, _FEW_ZEROS)]])
    positions, zeros = np.concatenate([hot, cold]), np.zeros(hot.size + cold.size, np.int64)
    zeros[hot.size :] = _FEW_ZEROS
    return positions[draws.finish(gaps.exponents(positions), 0, zeros)]


def flip_long(gaps: Gaps, draws: Draws) -> Heads:
    """Flip the coins of a long vector, and read a second time only the candidates that may be heads."""
    heads, hot, open_coins = Heads(), find_hot(gaps), OpenCoins()
    heads.add(_flip_hot(gaps, hot.positions, open_coins, draws))
    for start, stop in hot.crowds:
        if gaps.is_warm(slice(start, stop)):
            heads.add_run(start, _flip_warm(gaps, start, stop, draws))
            continue
        flags, undecided, octets = draws.first_octets(gaps.at(slice(start, stop)), gaps.octets)
        heads.add_run(start, flags)
        open_coins.add(start + undecided, _OCTET, octets)
    _add_cold(gaps, hot, open_coins, draws)
    heads.add(open_coins.heads(gaps, draws))
    return heads


def _flip_warm(gaps: Gaps, start: int, stop: int, draws: Draws) -> Flags:
    """Flip the coins of a warm run: the others than those that start with ones are heads and are not read."""
    flags = np.ones(stop - start, np.bool_)
    doubtful = draws.survivors(stop - start, ONES)  # ones are as likely as zeros
    flags[doubtful] = draws.finish(gaps.exponents(start + doubtful), (1 << ONES) - 1, ONES)
    return flags


def _add_cold(gaps: Gaps, hot: Hot, open_coins: OpenCoins, draws: Draws) -> None:
    """Add the coins of cold candidates that start with enough zeros. The others are tails and are not read."""
    frozen = gaps.block_maxima < gaps.floor(_FROZEN)
    for zeros, chosen in ((ZEROS, ~(frozen | hot.in_crowd)), (_FROZEN, frozen)):
        blocks = chosen.nonzero()[0]
        if not blocks.size:
            continue
        survivors = draws.survivors(blocks.size * BLOCK, zeros)
        ranks = survivors // BLOCK
        positions = survivors + (blocks[ranks] - ranks) * BLOCK
        positions = positions[: positions.searchsorted(gaps.size)]  # the last block may be shorter
        open_coins.add(positions[gaps.values[positions] < hot.floor], zeros)
