"""Permute-and-flip (McKenna & Sheldon 2020, Algorithm 1): the candidates whose coins are heads, and one of them.

All coins exp(-c (q* - q_r)) count, but only the scores that matter are read.

A cold candidate (heads with probability below 2**-8) needs a U that starts with eight zeros. Which candidates have
one is a Bernoulli(1/256) process, so the gaps between those are drawn and the scores there are read only; and with
more zeros in the same way in blocks whose best candidate is colder still. The others are hot. They are listed one by
one if they are few, and as whole runs of blocks ("crowds") if they are many, so that the list stays small for any
scores.

In a crowd that is warm (all heads with probability 2**-4 or more), `choose_long` does not flip the coins in advance.
A uniform head is the first head in a random order of the known heads and the candidates whose coins are not yet
flipped. A fixed number of them is visited at once, so the time does not depend on the coins. All of these are tails
with a probability below 2**-90; then the other coins are flipped too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpselect._types import Array, Flags, Octets, Positions
from dpselect.errors import ScoresChanged
from dpselect.selection import kernel
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import ALL, ALL_COLD, BLOCK, MANY, MIDDLE, ZEROS, Gaps, Listed, RowGaps
from dpselect.selection.kernel import Left


class Heads:
    """Heads as positions where they are few, and as one flag per candidate in runs that may hold many."""

    def __init__(self, *singles: Positions) -> None:
        self._singles = list(singles)
        self._runs: list[tuple[int, Octets]] = []
        self._counts: list[int] = []

    def add(self, positions: Positions) -> None:
        """Add single candidates, none of them twice."""
        self._singles.append(positions)

    def add_run(self, start: int, flags: Flags) -> None:
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
        """The number of heads."""
        return sum(single.size for single in self._singles) + sum(self._counts)

    def choose(self, draws: Draws) -> int:
        """Return a uniform member; there must be one. The coin of the maximum is always heads."""
        return self.at(draws.index(self.size))

    def at(self, rank: int) -> int:
        """Return the member with this rank, below the size."""
        for single in self._singles:
            if rank < single.size:
                return int(single[rank])
            rank -= single.size
        for (start, packed), count in zip(self._runs, self._counts, strict=True):
            if rank < count:
                return start + int(np.flatnonzero(np.unpackbits(packed))[rank])
            rank -= count
        raise ScoresChanged


# The largest number of blocks that one step handles, adjacent or scattered: large enough to hide the interpreter's
# overhead, small enough for the cache.
_RUN = 128
_SCATTERED = 512
# A run is a crowd if more than one in CROWDED is hot. Then flipping all its coins is cheaper than listing hot ones.
CROWDED = 32
# If fewer candidates than this are in warm crowds, flipping their coins takes less time than visits.
_LARGE = 2**14


@dataclass(frozen=True, repr=False)
class Hot:
    """Hot candidates: crowds are half-open ranges that hold many, `positions` are those outside the crowds."""

    # In the crowds of `warm`, every candidate is warm, and together they are large. The other crowds are `mixed`.

    mixed: list[tuple[int, int]]
    positions: Positions
    in_crowd: npt.NDArray[np.bool_]  # one flag per block
    floor: Any  # no score below it is hot
    warm: list[tuple[int, int]] = field(default_factory=list)

    @property
    def crowds(self) -> list[tuple[int, int]]:
        """All crowds."""
        return self.mixed + self.warm

    def is_outsider(self, gaps: Gaps, positions: Positions) -> Flags:
        """Return which of the given candidates are neither hot nor in a crowd."""
        outsiders: Flags = (gaps.values[positions] < self.floor) & ~self.in_crowd[positions // BLOCK]
        return outsiders


def find_hot(gaps: Gaps) -> Hot:
    """Read the blocks whose maximum is hot a second time, many at once if they are scattered and hold few."""
    warm: list[tuple[int, int]] = []
    mixed: list[tuple[int, int]] = []
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
            if gaps.is_warm(slice(start, stop)):
                warm.append((start, stop))
                in_crowd[first:last] = True
                continue
            hot = gaps.values[start:stop] >= floor
            if np.count_nonzero(hot) * CROWDED > stop - start:
                mixed.append((start, stop))
                in_crowd[first:last] = True
            else:
                singles.append(hot.nonzero()[0] + start)
    if sum(stop - start for start, stop in warm) < _LARGE:
        mixed, warm = mixed + warm, []
    return Hot(mixed, np.concatenate(singles), in_crowd, floor, warm)


def _parts(blocks: Positions, whole: int) -> Iterator[Positions]:
    # The blocks in parts of at most _SCATTERED. An incomplete last block is a separate part.
    end = int(np.searchsorted(blocks, whole))
    for start in range(0, end, _SCATTERED):
        yield blocks[start : min(start + _SCATTERED, end)]
    if end < blocks.size:
        yield blocks[end:]


def _few(gaps: Gaps, blocks: Positions, floor: Any) -> Positions | None:
    # The hot candidates of whole blocks that are scattered; None if they are neighbours, or if too many are hot.
    if blocks[-1] - blocks[0] < blocks.size:
        return None
    whole = gaps.size // BLOCK
    hot = gaps.values[: whole * BLOCK].reshape(whole, BLOCK).take(blocks, axis=0) >= floor
    if np.count_nonzero(hot) * CROWDED > hot.size:
        return None
    found = hot.ravel().nonzero()[0]
    positions: Positions = blocks[found // BLOCK] * BLOCK + found % BLOCK
    return positions


def _runs(blocks: Positions) -> list[tuple[int, int]]:
    firsts, lasts = blocks[np.diff(blocks, prepend=-2) != 1], blocks[np.diff(blocks, append=-1) != 1]
    return [
        (start, min(start + _RUN, last + 1))
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
        for start in range(first, last + 1, _RUN)
    ]


_OCTET = 8
_FROZEN = 12
# In a vector of this length or more, blocks whose best candidate is far below are frozen: their coins need _DEEPER more
# zeros, so that fewer scores at scattered positions are read.
VERY_LONG = 2**22
_DEEPER = 5
# Where all candidates are read again, listing fewer hot ones and more survivors is faster.
_FEW_ZEROS = 7
# Up to this many coins, one comparison with more bits is faster than one with an octet first.
FEW = 512
# So many candidates are visited in a random order where some are warm: all are tails with probability (15/16)**1024 or
# less. Some of the draws are refused, fewer than half on average.
_VISITS = 2048


def flip(gaps: Gaps, draws: Draws, candidates: Positions | None = None, known: Array | None = None) -> Flags:
    """Flip the coins of all candidates, or of those given, whose gaps may be known."""
    levels = gaps.at(ALL if candidates is None else candidates) if known is None else known
    heads, undecided, octets = draws.first_octets(levels, gaps.octets)
    if undecided.size:
        positions = undecided if candidates is None else candidates[undecided]
        heads[undecided] = draws.finish(gaps.exponents(positions), octets, _OCTET)
    return heads


class OpenCoins:
    def __init__(self) -> None:
        self._positions: list[Positions] = []
        self._prefixes: list[Octets] = []
        self._depths: list[int] = []

    def add(self, positions: Positions, depth: int, prefixes: Octets | None = None) -> None:
        # Add coins whose first `depth` bits are `prefixes`, or zeros.
        self._positions.append(positions)
        self._prefixes.append(np.zeros(positions.size, np.uint8) if prefixes is None else prefixes)
        self._depths.append(depth)

    def heads(self, gaps: Gaps, draws: Draws) -> Positions:
        """Flip them to the end."""
        positions = np.concatenate(self._positions)
        depths = np.array(self._depths, np.uint8).repeat([part.size for part in self._positions])
        return positions[draws.finish(gaps.exponents(positions), np.concatenate(self._prefixes), depths)]


def _flip_hot(gaps: Gaps, positions: Positions, open_coins: OpenCoins, draws: Draws) -> Positions:
    # The hot candidates whose first octet is heads; those that it leaves open are added. Few are added at once.
    if positions.size <= FEW:
        open_coins.add(positions, 0)
        return positions[:0]
    flags, undecided, octets = draws.first_octets(gaps.at(positions), gaps.octets)
    open_coins.add(positions[undecided], _OCTET, octets)
    return positions[flags]


def flip_at_once(gaps: Gaps, draws: Draws) -> Positions:
    """The heads, in any order, of a vector (or of rows) that fits the cache, so that all of it is read again."""
    is_hot = gaps.is_hot(_FEW_ZEROS)
    hot = int(np.count_nonzero(is_hot))
    if hot * MANY > gaps.size:
        return flip(gaps, draws).nonzero()[0]
    positions, depths = draws.contenders(is_hot, _FEW_ZEROS)
    return _heads_among(gaps, positions, depths, hot, draws)


def flip_listed(gaps: Gaps, draws: Draws) -> Positions | None:
    """The heads, in any order, if the compiled kernel lists the hot candidates. None if it does not: they are many."""
    listed = gaps.listed()
    if listed is None:
        return None
    positions, _, depths = left_to_flip(gaps, listed, draws)
    return _heads_among(gaps, positions, depths, listed.hot.positions.size, draws, listed.hot)


def _heads_among(  # noqa: PLR0913, PLR0917 - candidates, what is known about them, and the randomness
    gaps: Gaps, positions: Positions, depths: Octets, hot: int, draws: Draws, known: kernel.Hot | None = None
) -> Positions:
    # The heads among hot candidates, which come first, and others, whose coins start with so many zeros.
    if hot <= FEW:
        return positions[draws.finish(gaps.exponents(positions), 0, depths)]
    flags = flip(gaps, draws, positions[:hot], None if known is None else gaps.of_hot(known))
    cold = positions[hot:]
    return np.concatenate([positions[:hot].compress(flags), cold[draws.finish(gaps.exponents(cold), 0, depths[hot:])]])


def left_to_flip(gaps: Gaps, listed: Listed, draws: Draws) -> Left:
    """The listed candidates, and those others whose coins start with enough zeros."""
    zeros = listed.zeros
    if gaps.size < VERY_LONG or zeros == ALL_COLD:
        return gaps.joined(listed, draws.survivors(gaps.size, zeros), zeros)
    # Survivors of the deeper zeros are drawn among all candidates. Those that are not in a frozen block are not used.
    frozen_below = gaps.floor(zeros + _DEEPER)
    warmer = _survivors_in((gaps.block_maxima >= frozen_below).nonzero()[0], zeros, gaps.size, draws)
    deeper = draws.survivors(gaps.size, zeros + _DEEPER)
    frozen = deeper[gaps.block_maxima[deeper // BLOCK] < frozen_below]
    depths = np.array([zeros, zeros + _DEEPER], np.uint8).repeat([warmer.size, frozen.size])
    return gaps.joined(listed, np.concatenate([warmer, frozen]), depths)


def _survivors_in(blocks: Positions, zeros: int, size: int, draws: Draws) -> Positions:
    survivors = draws.survivors(blocks.size * BLOCK, zeros)
    ranks = survivors // BLOCK
    positions = survivors + (blocks[ranks] - ranks) * BLOCK
    return positions[: positions.searchsorted(size)]  # the last block may be shorter


def flip_long(gaps: Gaps, draws: Draws) -> Heads:
    """Flip the coins of a long vector, and read a second time only the candidates that may be heads."""
    hot = find_hot(gaps)
    return _flipped(gaps, hot, hot.crowds, draws)


def choose_long(gaps: Gaps, draws: Draws) -> int:
    """A uniform head of a long vector. The coins of warm crowds are flipped only if they are visited."""
    hot = find_hot(gaps)
    heads = _flipped(gaps, hot, hot.mixed, draws)
    if not hot.warm:
        return heads.choose(draws)
    visit = _visit(gaps, hot.warm, heads, draws)
    if visit.flags.any():
        return visit.first(heads)
    # Given these tails, the first head in the rest of the order is a uniform head among the others.
    _flip_unvisited(gaps, hot.warm, visit, heads, draws)
    return heads.choose(draws)


def choose_long_with_rivals(gaps: Gaps, draws: Draws) -> tuple[int, bool]:
    """A uniform head of a long vector, and whether it is the only one."""
    hot = find_hot(gaps)
    heads = _flipped(gaps, hot, hot.mixed, draws)
    if not hot.warm:
        return heads.choose(draws), heads.size == 1
    visit = _visit(gaps, hot.warm, heads, draws)
    found = visit.visited[visit.flags[visit.is_warm]]
    first = visit.first(heads) if visit.flags.any() else None
    if first is not None and heads.size + found.size > 1:
        return first, False
    _flip_unvisited(gaps, hot.warm, visit, heads, draws)
    heads.add(found)
    return heads.choose(draws) if first is None else first, heads.size == 1


class _Visit(NamedTuple):
    """The first candidates in a random order of the heads and of the warm candidates, each of which has a slot."""

    slots: Positions
    known: int  # the slots of heads begin here
    visited: Positions  # the warm candidates
    flags: Flags  # which of the slots are heads

    @property
    def is_warm(self) -> Flags:
        """Return which of the slots are those of warm candidates."""
        flags: Flags = self.slots < self.known
        return flags

    def first(self, heads: Heads) -> int:
        """Return the first head in the order; there must be one."""
        place = int(self.flags.argmax())
        slot = int(self.slots[place])
        return (
            int(self.visited[np.count_nonzero(self.is_warm[:place])])
            if slot < self.known
            else heads.at(slot - self.known)
        )


def _visit(gaps: Gaps, warm: list[tuple[int, int]], heads: Heads, draws: Draws) -> _Visit:
    # Slots are drawn with replacement. One that comes again has been visited before, and is dropped.
    starts, stops = np.array(warm).T
    ends = np.cumsum(stops - starts)
    drawn = draws.indices_below(int(ends[-1]) + heads.size, _VISITS)
    slots = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    visited = slots[slots < ends[-1]]
    visited += (stops - ends)[ends.searchsorted(visited, side="right")]
    flags = np.ones(slots.size, np.bool_)
    flags[slots < ends[-1]] = draws.finish(gaps.exponents(visited), 0, 0)
    return _Visit(slots, int(ends[-1]), visited, flags)


def _flip_unvisited(gaps: Gaps, warm: list[tuple[int, int]], visit: _Visit, heads: Heads, draws: Draws) -> None:
    for start, stop in warm:
        heads.add_run(start, flip(gaps, draws, np.arange(start, stop)))
    heads.discard(visit.visited)


def count_heads(gaps: Gaps, draws: Draws) -> int:
    """The number of heads of a vector whose best candidate may be elsewhere."""
    members = flip_listed(gaps, draws)
    if members is None and gaps.size <= MIDDLE:
        members = flip_at_once(gaps, draws)
    if members is not None:
        return members.size
    if np.minimum.reduce(gaps.block_maxima) == gaps.maximum and np.minimum.reduce(gaps.values) == gaps.maximum:
        return gaps.size  # all are best
    return flip_long(gaps, draws).size


def _flipped(gaps: Gaps, hot: Hot, crowds: list[tuple[int, int]], draws: Draws) -> Heads:
    heads, open_coins = Heads(), OpenCoins()
    heads.add(_flip_hot(gaps, hot.positions, open_coins, draws))
    for start, stop in crowds:
        flags, undecided, octets = draws.first_octets(gaps.at(slice(start, stop)), gaps.octets)
        heads.add_run(start, flags)
        open_coins.add(start + undecided, _OCTET, octets)
    _add_cold(gaps, hot, open_coins, draws)
    heads.add(open_coins.heads(gaps, draws))
    return heads


def _add_cold(gaps: Gaps, hot: Hot, open_coins: OpenCoins, draws: Draws) -> None:
    # Add the coins of cold candidates that start with enough zeros. The others are tails and are not read.
    frozen = gaps.block_maxima < gaps.floor(_FROZEN)
    for zeros, chosen in ((ZEROS, ~(frozen | hot.in_crowd)), (_FROZEN, frozen)):
        blocks = chosen.nonzero()[0]
        if blocks.size:
            positions = _survivors_in(blocks, zeros, gaps.size, draws)
            open_coins.add(positions[gaps.values[positions] < hot.floor], zeros)


# A schedule that does not depend on the scores.

# The number of candidates per step: large enough to hide the interpreter, small enough for the cache.
_STEP = 256 * BLOCK
_WORD = 64


@dataclass(frozen=True, repr=False)
class SteadyHeads:
    """The heads of a vector as flags, padded to whole blocks, and their number in each block. Secret."""

    flags: Flags
    counts: npt.NDArray[np.int64]

    @property
    def size(self) -> int:
        """The number of heads."""
        return int(self.counts.sum())

    def choose(self, draws: Draws) -> int:
        """Return a uniform head. There is always one: the coin of the maximum."""
        ends = np.cumsum(self.counts)
        rank = draws.index_at_once(int(ends[-1]))
        block = int(np.searchsorted(ends, rank, side="right"))
        before = int(ends[block] - self.counts[block])
        within = np.cumsum(self.flags[block * BLOCK : (block + 1) * BLOCK])
        return block * BLOCK + int(np.searchsorted(within, rank - before, side="right"))


def flip_steadily(gaps: Gaps, draws: Draws) -> SteadyHeads:
    """Flip the coins of all candidates of a vector."""
    flags = _flipped_steadily(gaps, draws)
    words = np.bitwise_count(np.packbits(flags).view(np.uint64))
    return SteadyHeads(flags, np.add.reduce(words.reshape(-1, BLOCK // _WORD), axis=1, dtype=np.int64))


def choose_in_rows_steadily(gaps: RowGaps, draws: Draws) -> Positions:
    """A uniform head in each row."""
    rows, width = gaps.shape
    within = np.cumsum(_flipped_steadily(gaps, draws)[: gaps.size].reshape(rows, width), axis=1, dtype=np.int64)
    ranks = draws.indices_at_once(within[:, -1])
    chosen: Positions = np.add.reduce(within <= ranks[:, np.newaxis], axis=1, dtype=np.int64)
    return chosen


def _flipped_steadily(gaps: Gaps, draws: Draws) -> Flags:
    # A flag for each candidate that is heads, padded to whole blocks.
    flags = np.zeros(-(-gaps.size // BLOCK) * BLOCK, np.bool_)
    lines, room = gaps.lines, np.empty(min(gaps.size, _STEP), np.uint64)
    positions, prefixes = [], []
    for start in range(0, gaps.size, _STEP):
        heads, undecided, octets = draws.first_octets(gaps.levels(slice(start, start + _STEP), room), lines)
        flags[start : start + heads.size] = heads
        positions.append(undecided + start)
        prefixes.append(octets)
    left = np.concatenate(positions)
    flags[left] = draws.finish(gaps.exponents(left), np.concatenate(prefixes), _OCTET)
    return flags
