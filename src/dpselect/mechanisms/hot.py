"""Which candidates are hot: their coin can be heads without eight zeros in front.

Hot candidates are listed one by one where they are few, and as whole runs of blocks ("crowds") where they are many,
so that the list stays small whatever the scores are.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.mechanisms.gaps import BLOCK, Gaps
from dpselect.sampling.coin import Flags
from dpselect.sampling.geometric import Positions

# The longest run of blocks that is handled in one step: it hides the interpreter and fits the cache.
_RUN = 4
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
    """Read the blocks whose maximum is hot once more."""
    crowds: list[tuple[int, int]] = []
    singles = [np.empty(0, np.int64)]
    floor, in_crowd = gaps.floor(ZEROS), np.zeros(len(gaps.block_maxima), np.bool_)
    for first, last in _runs(np.flatnonzero(gaps.block_maxima >= floor).tolist()):
        start, stop = first * BLOCK, min(last * BLOCK, gaps.size)
        hot = gaps.values[start:stop] >= floor
        if np.count_nonzero(hot) * _CROWDED > stop - start:
            crowds.append((start, stop))
            in_crowd[first:last] = True
        else:
            singles.append(hot.nonzero()[0] + start)
    return Hot(crowds, np.concatenate(singles), in_crowd, floor)


def _runs(blocks: list[int]) -> list[tuple[int, int]]:
    """Neighbouring blocks as half-open ranges of at most _RUN blocks."""
    runs: list[tuple[int, int]] = []
    for block in blocks:
        if runs and runs[-1][1] == block and block - runs[-1][0] < _RUN:
            runs[-1] = (runs[-1][0], block + 1)
        else:
            runs.append((block, block + 1))
    return runs
