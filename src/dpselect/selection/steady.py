"""Permute-and-flip (McKenna & Sheldon 2020, Algorithm 1) on a schedule that does not depend on the scores.

The fast kernel skips blocks without a likely winner, so its run time reveals something about the scores. Here every
block is read twice, once for the maximum and once for the coins. Every candidate draws one octet, and one coin in 256
is left open and flipped to the end, for any scores (`selection.lines`). The heads are flags, which are counted
block by block; one random number picks the winner among them. Leaks of the hardware itself are not covered: caches,
branch prediction, subnormal floats, and the rare coin that needs more than forty bits.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpselect._types import Flags, Positions
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import BLOCK, Gaps, RowGaps

_OCTET, _WORD = 8, 64
# The number of candidates per step: large enough to hide the interpreter, small enough for the cache.
_RUN = 256 * BLOCK


@dataclass(frozen=True, repr=False)
class SteadyHeads:
    """The heads of a vector as flags, padded to whole blocks, and their number in each block. Secret."""

    flags: Flags
    counts: npt.NDArray[np.int64]

    @property
    def size(self) -> int:
        """Return the number of heads."""
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
    flags = _flipped(gaps, draws)
    words = np.bitwise_count(np.packbits(flags).view(np.uint64))
    return SteadyHeads(flags, np.add.reduce(words.reshape(-1, BLOCK // _WORD), axis=1, dtype=np.int64))


def choose_steadily(gaps: Gaps, draws: Draws) -> int:
    """A uniform head among the coins of all candidates."""
    return flip_steadily(gaps, draws).choose(draws)


def choose_in_rows_steadily(gaps: RowGaps, draws: Draws) -> Positions:
    """A uniform head in each row."""
    rows, width = gaps.shape
    within = np.cumsum(_flipped(gaps, draws)[: gaps.size].reshape(rows, width), axis=1, dtype=np.int64)
    ranks = draws.indices_at_once(within[:, -1])
    chosen: Positions = np.add.reduce(within <= ranks[:, np.newaxis], axis=1, dtype=np.int64)
    return chosen


def _flipped(gaps: Gaps, draws: Draws) -> Flags:
    """A flag for each candidate that is heads, padded to whole blocks."""
    flags = np.zeros(-(-gaps.size // BLOCK) * BLOCK, np.bool_)
    lines, room = gaps.lines, np.empty(min(gaps.size, _RUN), np.uint64)
    positions, prefixes = [], []
    for start in range(0, gaps.size, _RUN):
        heads, undecided, octets = draws.octets_by_lines(gaps.levels(slice(start, start + _RUN), room), lines)
        flags[start : start + heads.size] = heads
        positions.append(undecided + start)
        prefixes.append(octets)
    left = np.concatenate(positions)
    flags[left] = draws.finish(gaps.exponents(left), np.concatenate(prefixes), _OCTET)
    return flags
