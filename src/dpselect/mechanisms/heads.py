"""The set of candidates whose coin came up heads, and a uniform choice from it."""

import numpy as np

from dpselect.sampling.bits import Octets
from dpselect.sampling.coin import Flags
from dpselect.sampling.draws import Draws
from dpselect.sampling.geometric import Positions


class Heads:
    """Heads as positions where they are few, and as one bit a candidate for runs that may hold many."""

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
