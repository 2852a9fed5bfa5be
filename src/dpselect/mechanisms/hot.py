"""Which candidates are hot: their coin can be heads without eight zeros in front.

Hot candidates are listed one by one where they are few, and as whole runs of blocks ("crowds") where they are many,
so that the list stays small whatever the scores are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.mechanisms.gaps import BLOCK, Gaps
from dpselect.sampling.coin import Flags
from dpselect.sampling.geometric import Positions

# The longest run of blocks that is handled in one step, and how many scattered blocks are: it hides the interpreter
# and fits the cache.
_RUN = 8
_SCATTERED = 64
# A run is a crowd if more than one in _CROWDED is hot: then it is cheaper to flip all its coins than to list those.
_CROWDED = 32
# Hot is what can be heads without this many zeros in front.
ZEROS = 8


@dataclass(frozen=True, repr=False)
class Hot:
    """Hot candidates: `crowds` are half-open ranges that hold many, `positions` are those outside of the crowds."""

    crowds: list[tuple[int, int]]
    positions: Positions
    in_crowd: npt.NDArray[np.bool_]  # one flag a block
    floor: Any  # no score below it is hot

    def is_outsider(self, gaps: Gaps, positions: Positions) -> Flags:
        """Return which of the given candidates are neither hot nor in a crowd."""
        outsiders: Flags = (gaps.values[positions] < self.floor) & ~self.in_crowd[positions // BLOCK]
        return outsiders


def find_hot(gaps: Gaps) -> Hot:
    """Read the blocks whose maximum is hot once more: many together where they are scattered and hold few."""
    crowds: list[tuple[int, int]] = []
    singles = [np.empty(0, np.int64)]
    floor, in_crowd = gaps.floor(ZEROS), np.zeros(len(gaps.block_maxima), np.bool_)
    blocks = np.flatnonzero(gaps.block_maxima >= floor)
    for part in _parts(blocks, gaps.size // BLOCK):
        few = _few(gaps, part, floor)
        if few is not None:
            singles.append(few)
            continue
        for first, last in _runs(part.tolist()):
            start, stop = first * BLOCK, min(last * BLOCK, gaps.size)
            hot = gaps.values[start:stop] >= floor
            if np.count_nonzero(hot) * _CROWDED > stop - start:
                crowds.append((start, stop))
                in_crowd[first:last] = True
            else:
                singles.append(hot.nonzero()[0] + start)
    return Hot(crowds, np.concatenate(singles), in_crowd, floor)


def _parts(blocks: Positions, whole: int) -> Iterator[Positions]:
    """The blocks in parts of at most _SCATTERED; one that is not whole, the last, is a part of its own."""
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
    hot = gaps.values[: whole * BLOCK].reshape(whole, BLOCK)[blocks] >= floor
    if np.count_nonzero(hot) * _CROWDED > hot.size:
        return None
    found = hot.ravel().nonzero()[0]
    positions: Positions = blocks[found // BLOCK] * BLOCK + found % BLOCK
    return positions


def _runs(blocks: list[int]) -> list[tuple[int, int]]:
    """Neighbouring blocks as half-open ranges of at most _RUN blocks."""
    runs: list[tuple[int, int]] = []
    for block in blocks:
        if runs and runs[-1][1] == block and block - runs[-1][0] < _RUN:
            runs[-1] = (runs[-1][0], block + 1)
        else:
            runs.append((block, block + 1))
    return runs
