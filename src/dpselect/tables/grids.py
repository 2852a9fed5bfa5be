"""The grid of candidates of a quantile: whole numbers of units between two public ends.

A unit is 1 for whole numbers, 10**-digits for decimals and floats, a day for dates, and a microsecond for timestamps. A
float candidate is the float nearest to its decimal value, so 0.1 means one tenth here, and the candidate 0.3 is the
float that a user writes as 0.3.

A grid of all floats has no decimal unit. Its unit is the step from one float to the next, and the rank of a float is
its number of units, counted from zero: the bits of a positive float, read as a whole number, and the negated rank of -x
for a negative x (IEEE 754 orders floats of one sign like their bits). Both zeros have rank 0.

A grid with marks has only those units as candidates. Rows are counted on all units between its ends, and then every
value is rounded to the nearest mark. If it stayed between two candidates, and most values were between the same two,
then all candidates would be equally far from a quantile.
"""

import datetime
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from dpselect._types import Lengths
from dpselect.errors import InvalidValue
from dpselect.tables.schema import Kind

EPOCH_DAY = datetime.date(1970, 1, 1)
EPOCH = datetime.datetime(1970, 1, 1)  # for columns without a time zone
EPOCH_ZONED = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)

LARGEST_UNIT = 2**64 - 1
# Below this, the index of a float can be computed in floats, and candidates are distinct floats: see `duckdb.places`.
LARGEST_FLOAT_UNIT = 2**48
# The rank of the largest finite float of so many bits.
LARGEST_RANK = {32: 0x7F7FFFFF, 64: 0x7FEFFFFFFFFFFFFF}

_LARGEST_SIZE = 2**64
_MOST_DIGITS = {Kind.FLOAT: 15, Kind.DECIMAL: 18}
_CODES = {32: ("<i", "<f"), 64: ("<q", "<d")}


def rank_of_float(number: float, bits: int) -> int:
    """The place of a float in the order of all floats of so many bits; zero has rank 0.

    >>> rank_of_float(5e-324, 64), rank_of_float(-0.0, 64)
    (1, 0)
    """
    whole, real = _CODES[bits]
    [code] = struct.unpack(whole, struct.pack(real, number))
    return int(code) if code >= 0 else -int(code + 2 ** (bits - 1))


def float_of_rank(rank: int, bits: int) -> float:
    """The float at a place. One of 32 bits is the number that people write for it: 0.1, not 0.10000000149.

    >>> float_of_rank(-1, 64), float_of_rank(rank_of_float(0.1, 32), 32)
    (-5e-324, 0.1)
    """
    whole, real = _CODES[bits]
    [size] = struct.unpack(real, struct.pack(whole, abs(rank)))
    written = float(size) if bits == 64 else float(str(np.float32(size)))
    return -written if rank < 0 else written


@dataclass(frozen=True)
class Grid:
    """Candidate number i is first + i * step units, or mark number i. Values are clamped to [first, last] units.

    Attributes:
        kind: the kind of the candidates.
        first: the first candidate, in units.
        last: the end of the range, in units; it need not be a candidate.
        step: the number of units between two candidates.
        digits: the number of digits after the point of decimal units.
        bits: 32 or 64 if the units are all floats of so many bits; 0 otherwise.
        marks: the candidates in units, in ascending order from first to last, if they are not all steps.
    """

    kind: Kind
    first: int
    last: int
    step: int = 1
    digits: int = 0
    bits: int = 0
    marks: tuple[int, ...] = field(default=(), repr=False)

    @property
    def size(self) -> int:
        """Return the number of candidates."""
        return len(self.marks) or (self.last - self.first) // self.step + 1

    def value(self, index: int) -> Any:
        """Return a candidate in the type of the column."""
        return self._value(self.marks[index] if self.marks else self.first + index * self.step)

    @property
    def upper(self) -> Any:
        """Return the end of the range, which need not be a candidate."""
        return self._value(self.last)

    def _value(self, units: int) -> Any:
        return float_of_rank(units, self.bits) if self.bits else _VALUES[self.kind](units, self.digits)

    def located(self, places: Lengths) -> Lengths:
        """Return the candidate of each value, given where it is among all units from `first`."""
        if not self.marks:
            return places
        # The first unit of each candidate but the first one.
        firsts: Lengths = np.array([self._middle(*pair) - self.first for pair in pairwise(self.marks)], np.uint64)
        return np.searchsorted(firsts, places, side="right").astype(np.uint64)

    def _middle(self, below: int, above: int) -> int:
        """The unit half-way between two, or the next one."""
        if not self.bits:
            return (below + above + 1) // 2
        return rank_of_float((float_of_rank(below, self.bits) + float_of_rank(above, self.bits)) / 2, self.bits)

    def checked(self) -> "Grid":
        """Return the grid, if it has candidates, and not too many or too long ones."""
        if self.last < self.first:
            raise InvalidValue(
                f"lower must be <= upper, got {self.value(0)} and {self.upper}: give the public range of the column"
            )
        if self.size > _LARGEST_SIZE:
            raise InvalidValue("lower, upper and step make more than 2**64 candidates: give a larger step")
        most = LARGEST_FLOAT_UNIT if self.kind is Kind.FLOAT and not self.bits else LARGEST_UNIT
        if max(abs(self.first), abs(self.last), self.step) > most or self.digits > _MOST_DIGITS.get(self.kind, 0):
            raise InvalidValue("lower, upper and step have too many digits for this column: give rounder numbers")
        return self


_VALUES: dict[Kind, Callable[[int, int], Any]] = {
    Kind.INTEGER: lambda units, _: units,
    Kind.DECIMAL: lambda units, digits: Decimal(f"{units}e-{digits}"),  # from text, so no decimal context rounds it
    Kind.FLOAT: lambda units, digits: units / 10**digits,
    Kind.DATE: lambda units, _: EPOCH_DAY + datetime.timedelta(days=units),
    Kind.TIMESTAMP: lambda units, _: EPOCH + units * MICROSECOND,
    Kind.ZONED: lambda units, _: EPOCH_ZONED + units * MICROSECOND,
}
