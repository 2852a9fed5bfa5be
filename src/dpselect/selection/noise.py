"""Laplace noise, revealed bit by bit, only as far as a comparison needs.

The size of the noise is E = -ln V for a uniform V, so that after k bits of V, with value v,

    -ln((v + 1) / 2**k) < E <= -ln(v / 2**k).

Laplace noise is E with a fair sign. A first word of 16 bits (the sign, and 15 bits of V)
bounds the noise from above for every candidate at once; 32 bits more, in float64 with an error bound, and then exact
arithmetic decide among the few contenders that are left.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from dpselect._types import Flags, Floats
from dpselect.selection.bits import BitSource
from dpselect.selection.enclosure import log_bracket

FirstWords = npt.NDArray[np.uint16]

_FIRST_BITS = 15
_SIZE_MASK = np.uint16(2**_FIRST_BITS - 1)
_FRESH_BITS = 32
_BITS_PER_STEP = 64
# For v >= 1, the two bounds on E differ by ln((v + 1) / v) <= ln 2.
WIDTH = 0.6931471805599454
# Bounds on E from NumPy's log, assumed accurate to 256 units in the last place (2**-44 relative; libraries need a few):
# E <= 33, so the absolute error is below 2**-38.
MARGIN = 2.0**-36
# Exponents of this size may represent larger ones that overflowed: they are only lower bounds.
HUGE = 2.0**100


@cache
def upper_bounds() -> npt.NDArray[np.float32]:
    """Upper bounds of Laplace noise for each first word; -inf for the two words with v = 0, which give none."""
    cells = np.arange(1, 2**_FIRST_BITS, dtype=np.float64)
    positive = -np.log(cells / 2**_FIRST_BITS)
    negative = np.log((cells + 1) / 2**_FIRST_BITS)
    positive, negative = (np.nextafter(np.float32(part + MARGIN), np.float32(np.inf)) for part in (positive, negative))
    nothing = np.array([-np.inf], np.float32)
    return np.concatenate([nothing, positive, nothing, negative])


def is_unbounded(words: FirstWords) -> Flags:
    """Which words give no bound: all bits of V are zero so far."""
    unbounded: Flags = (words & _SIZE_MASK) == 0
    return unbounded


def float_bounds(words: FirstWords, exponents: Floats, source: BitSource) -> tuple[Floats, Floats, Floats]:
    """Bounds of noise - exponent from 32 more bits of each V, and the 47 bits of V themselves (exact as floats).

    The exponents are within a relative 2**-51, and the difference is rounded once; MARGIN covers both where the
    exponent is below 2**14, and grows with it beyond. Exponents beyond HUGE need only be lower bounds.
    """
    prefixes = (words & _SIZE_MASK) * 2.0**_FRESH_BITS + source.words(words.size, _FRESH_BITS)
    with np.errstate(divide="ignore"):
        least, most = (-np.log((prefixes + end) * 2.0 ** -(_FIRST_BITS + _FRESH_BITS)) for end in (1, 0))
    plus = words <= _SIZE_MASK
    doubt = MARGIN * (1 + exponents)
    with np.errstate(over="ignore"):  # an exponent at the end of the floats: a warning would reveal it
        low = np.where(exponents > HUGE, -np.inf, np.where(plus, least, -most) - exponents - doubt)
        return low, np.where(plus, most, -least) - exponents + doubt, prefixes


@dataclass(frozen=True, repr=False)
class Contender:
    """A candidate that can still win: its exponent, and what is known about its noise."""

    exponent: Fraction
    is_positive: bool
    prefix: int
    depth: int = _FIRST_BITS + _FRESH_BITS

    def bracket(self) -> tuple[Fraction | None, Fraction | None]:
        """Return bounds on noise - exponent; None while all bits of V are zero, so that E has no upper bound."""
        digits = 20 + int(0.302 * self.depth)
        least = log_bracket(Fraction(1 << self.depth, self.prefix + 1), digits)[0]
        most = log_bracket(Fraction(1 << self.depth, self.prefix), digits)[1] if self.prefix else None
        if self.is_positive:
            return least - self.exponent, None if most is None else most - self.exponent
        return None if most is None else -most - self.exponent, -least - self.exponent

    def refined(self, source: BitSource) -> "Contender":
        """Return the contender with more bits of V revealed."""
        prefix = self.prefix << _BITS_PER_STEP | source.bits(_BITS_PER_STEP)
        return Contender(self.exponent, self.is_positive, prefix, self.depth + _BITS_PER_STEP)


def largest(contenders: dict[int, Contender], source: BitSource) -> int:
    """The key of the contender whose noise - exponent is largest, decided exactly."""
    while True:
        brackets = {key: contender.bracket() for key, contender in contenders.items()}
        best = max((low for low, _ in brackets.values() if low is not None), default=None)
        left = [key for key, (_, high) in brackets.items() if best is None or high is None or high >= best]
        if len(left) == 1:
            return left[0]
        contenders = {key: contenders[key].refined(source) for key in left}
