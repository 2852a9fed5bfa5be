"""Where random bits come from: the operating system for every release, a script in the tests."""

import os
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpselect.errors import BitsExhausted

Octets = npt.NDArray[np.uint8]


class BitSource(Protocol):
    """Fair independent bits, each handed out once."""

    def bits(self, count: int) -> int:
        """Return a uniform integer of `count` bits."""
        ...

    def words(self, count: int, width: int) -> npt.NDArray[Any]:
        """Return `count` uniform integers of 8, 16, 32 or 64 bits, as unsigned integers of that width."""
        ...


class SystemEntropy:
    """The operating system's generator.

    It has no state, no seed and no buffer: a forked or pickled copy has nothing that it could repeat.
    """

    def bits(self, count: int) -> int:
        octets = (count + 7) // 8
        return int.from_bytes(os.urandom(octets), "big") >> (8 * octets - count)

    def words(self, count: int, width: int) -> npt.NDArray[Any]:
        return np.frombuffer(os.urandom(count * width // 8), dtype=f"u{width // 8}")


class ScriptedBits:
    """A finite sequence of bits written down by a test; it raises when it runs dry.

    >>> ScriptedBits("0110").bits(3)
    3
    """

    def __init__(self, script: str | Iterable[int]) -> None:
        self._script = "".join(map(str, script))
        self.used = 0

    def bits(self, count: int) -> int:
        taken = self._script[self.used : self.used + count]
        if len(taken) < count:
            raise BitsExhausted("the script of bits is used up: give it more bits")
        self.used += count
        return int(taken or "0", 2)

    def words(self, count: int, width: int) -> npt.NDArray[Any]:
        return np.array([self.bits(width) for _ in range(count)], dtype=f"u{width // 8}")
