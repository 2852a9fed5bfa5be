"""A source of bits that a test writes down."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt


class BitsExhausted(Exception):
    """A test has written too few bits."""


class ScriptedBits:
    """A finite sequence of bits that raises an error when it runs dry.

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
