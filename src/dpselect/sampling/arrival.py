"""The arrival time of the first head in a run of equal candidates, revealed bit by bit.

Give every candidate an arrival time uniform on [0, 1] and a coin with probability p = exp(-g) of heads. The first head
of a run of m candidates arrives after t with probability (1 - p t)**m, so one uniform V gives its arrival:

    T = (1 - (1 - V)**(1/m)) / p,    ln T = g + ln(1 - exp(-x)),    x = -ln(1 - V) / m;

there is no head if T > 1. The run with the smallest T holds the first head of all. ln T grows with V, so after k bits
of V, with value v, it lies between its values at v / 2**k and (v + 1) / 2**k. Which of two runs comes first depends on
the difference of their exponents only, so exponents may have any common offset and may be negative.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpselect._types import Floats
from dpselect.sampling.bits import BitSource
from dpselect.sampling.enclosure import log_bracket, scaled_exp

DEPTH = 53
_BITS_PER_STEP = 64
# log1p, expm1 and log are assumed accurate to 256 units in the last place (2**-44 relative). ln(1 - exp(-x)) moves
# no more than ln x, so the errors of x, of 1 - exp(-x) and of its logarithm (at most 100 in size) add up to less
# than 2**-37.
MARGIN = 2.0**-36
# Exponents of this size may represent larger ones that overflowed: they are only lower bounds.
_HUGE = 2.0**100


def draw_prefixes(zeros: npt.NDArray[np.uint8], source: BitSource) -> Floats:
    """The first 53 bits of each V, given how many of them are leading zeros."""
    words = source.words(zeros.size, 64) >> np.uint64(64 - DEPTH)
    prefixes: Floats = (words >> zeros.astype(np.uint64)).astype(np.float64)
    return prefixes


def float_bounds(prefixes: Floats, exponents: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Bounds of ln T in float64. Exponents are within a relative 2**-50; beyond 2**100 only lower bounds."""
    doubt = MARGIN * (1 + exponents)
    with np.errstate(over="ignore"):  # an exponent at the end of the floats: a warning would reveal it
        low = exponents + _log_head(prefixes, sizes) - doubt
        high = exponents + _log_head(prefixes + 1, sizes) + doubt
    return low, np.where(exponents > _HUGE, np.inf, high)


def _log_head(ends: Floats, sizes: Floats) -> Floats:
    """ln(1 - exp(-x)) at V = ends / 2**53: from -inf at V = 0 to 0 at V = 1."""
    with np.errstate(divide="ignore"):
        return np.log(-np.expm1(np.log1p(ends * -(2.0**-DEPTH)) / sizes))


@dataclass(frozen=True, repr=False)
class Arrival:
    """What is known about the arrival of a run: its exponent and size, and the bits of V so far."""

    exponent: Fraction
    size: int
    prefix: int
    depth: int = DEPTH

    def bracket(self) -> tuple[Fraction | None, Fraction]:
        """Return bounds on ln T; None while all bits of V are zero, so that ln T has no lower bound."""
        digits = 20 + int(0.302 * (self.depth + self.size.bit_length()))
        least = self._remaining(self.prefix, digits, upper=True)
        most = self._remaining(self.prefix + 1, digits, upper=False)
        low = None if least is None or least >= 1 else self.exponent + log_bracket(1 - least, digits)[0]
        high = self.exponent + (0 if most is None else log_bracket(1 - most, digits)[1])
        return low, high

    def _remaining(self, end: int, digits: int, upper: bool) -> Fraction | None:
        """A bound on (1 - V)**(1/m) = exp(-x) at V = end / 2**depth; None at the ends of [0, 1], where it is exact."""
        whole = 1 << self.depth
        if end in (0, whole):
            return None
        low, high = log_bracket(Fraction(whole, whole - end), digits)
        exponent = max((low if upper else high) / self.size, Fraction(0))
        # 1 - exp(-x) is at least about x >= 2**-depth / m, of which 64 bits and more are kept.
        fine = self.depth + self.size.bit_length() + 80
        return Fraction(scaled_exp(exponent, fine) + upper, 1 << fine)

    def refined(self, source: BitSource) -> "Arrival":
        """Return the arrival with more bits of V revealed."""
        prefix = self.prefix << _BITS_PER_STEP | source.bits(_BITS_PER_STEP)
        return Arrival(self.exponent, self.size, prefix, self.depth + _BITS_PER_STEP)


def draw_arrival(exponent: Fraction, size: int, source: BitSource) -> Arrival:
    """The arrival of a run with 53 bits revealed."""
    return Arrival(exponent, size, source.bits(DEPTH))


def earlier(first: Arrival, second: Arrival, source: BitSource) -> tuple[int, Arrival]:
    """Which of two arrivals comes first (0 or 1), decided exactly, and that arrival with the bits revealed.

    Floats decide unless the bounds overlap. So the work depends on neither the exponents nor the sizes, except
    in one comparison in about 2**30.
    """
    arrivals = {0: first, 1: second}
    gap = float(min(max(second.exponent - first.exponent, Fraction(-2 * _HUGE)), Fraction(2 * _HUGE)))
    prefixes = np.array([arrival.prefix >> (arrival.depth - DEPTH) for arrival in (first, second)], np.float64)
    sizes = np.array([first.size, second.size], np.float64)
    low, high = float_bounds(prefixes, np.array([max(-gap, 0.0), max(gap, 0.0)]), sizes)
    for winner in (0, 1):
        if high[winner] < low[1 - winner]:
            return winner, arrivals[winner]
    return _first(arrivals, source)


def earliest(arrivals: dict[int, Arrival], source: BitSource) -> int:
    """The key of the run whose first head arrives first, decided exactly."""
    return _first(arrivals, source)[0]


def _first(arrivals: dict[int, Arrival], source: BitSource) -> tuple[int, Arrival]:
    """The key of the earliest arrival, and the arrival with the bits that were revealed to find it."""
    while True:
        brackets = {key: arrival.bracket() for key, arrival in arrivals.items()}
        best = min(high for _, high in brackets.values())
        left = [key for key, (low, _) in brackets.items() if low is None or low <= best]
        if len(left) == 1:
            return left[0], arrivals[left[0]]
        arrivals = {key: arrivals[key].refined(source) for key in left}
