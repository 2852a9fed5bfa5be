"""The first eight bits of many coins at once: two table look-ups and two comparisons per candidate.

A coin with exponent rate * gap whose U starts with the octet b is heads if even the largest such U is below
exp(-rate * gap), and tails if even the smallest is not. In terms of the gap: heads if gap <= near[b], tails if
gap > far[b], where, with w = 1/rate,

    near[b] <= -ln((b + 1) / 256) w        far[b] >= -ln(b / 256) w,   far[0] = infinity.

All but about one coin in 256 are decided. The tables are rounded outward, so a decision is never wrong.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect._numbers import float_above, float_below
from dpselect._types import Flags, Floats
from dpselect.selection import kernel
from dpselect.selection.enclosure import log_bracket

_LARGEST_UINT64 = 2.0**64


@dataclass(frozen=True)
class OctetTable:
    """The gaps that each octet decides, in the type of the gaps: float64 or uint64."""

    near: npt.NDArray[Any]
    far: npt.NDArray[Any]

    def decide(self, gaps: npt.NDArray[Any], octets: npt.NDArray[np.uint8]) -> tuple[Flags, npt.NDArray[np.intp]]:
        """Return which coins are surely heads, and the positions of those that are not decided."""
        found = kernel.octets(gaps, self.near, self.far, octets)
        if found is not None:
            return found[0], found[1].nonzero()[0]
        indices = octets.astype(np.intp)  # as `take` would, twice
        heads: Flags = gaps <= self.near.take(indices, mode="clip")
        return heads, ((gaps <= self.far.take(indices, mode="clip")) ^ heads).nonzero()[0]


@cache
def _negated_logs() -> tuple[Floats, Floats]:
    """Lower bounds of -ln((b + 1) / 256) and upper bounds of -ln(b / 256)."""
    brackets = [log_bracket(Fraction(256, b), 25) for b in range(1, 256)]
    lower = [*(float_below(low) for low, _ in brackets), 0.0]
    upper = [np.inf, *(float_above(high) for _, high in brackets)]
    return np.array(lower), np.array(upper)


def octet_tables(rate: Fraction) -> tuple[OctetTable, OctetTable]:
    """The table for float64 gaps and the one for uint64 gaps.

    Every float operation below is rounded to nearest, so one step to the neighbouring float encloses the exact
    result. A float gap is itself rounded: `gap <= near` must imply that the *exact* gap is within the bound. Rounding
    is monotone, so a rounded gap strictly below a float bound comes from an exact gap strictly below it; hence a
    second step. A gap is zero exactly when its rounding is, so near = 0 needs no step.
    """
    lower, upper = _negated_logs()
    with np.errstate(over="ignore", under="ignore"):
        near = np.nextafter(lower * float_below(1 / rate), 0.0)
        far = np.nextafter(upper * float_above(1 / rate), np.inf)
    floats = OctetTable(np.nextafter(near, 0.0), np.nextafter(far, np.inf))
    integers = OctetTable(_floor_to_uint64(near), _floor_to_uint64(far))
    return floats, integers


def _floor_to_uint64(bounds: Floats) -> npt.NDArray[np.uint64]:
    """floor, capped at the largest uint64: no gap exceeds that, so the cap says "heads" in near, "not tails" in far."""
    capped = bounds >= _LARGEST_UINT64
    whole = np.floor(np.where(capped, 0.0, bounds)).astype(np.uint64)
    return np.where(capped, np.iinfo(np.uint64).max, whole).astype(np.uint64)
