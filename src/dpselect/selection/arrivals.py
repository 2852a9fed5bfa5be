"""Every mechanism is the first arrival of a race: a run of equal candidates arrives at a time T, and the earliest wins.

Times are revealed bit by bit, as far as a comparison needs. Only the law of T depends on the mechanism.

**Permute-and-flip** (`Arrival`).

Give every candidate a time uniform on [0, 1] and a coin with probability p = exp(-g) of heads. The first head of a run
of m candidates arrives after t with probability (1 - p t)**m, so one uniform V gives its arrival:

    T = (1 - (1 - V)**(1/m)) / p,    ln T = g + ln(1 - exp(-x)),    x = -ln(1 - V) / m;

there is no head if T > 1. The run with the smallest T holds the first head of all.

**The exponential mechanism** (`Tick`). Each candidate has a clock that rings at rate p. The first ring of a run of m
comes after t with probability exp(-m p t), so ln T = g + ln x, and the first ring of all is a candidate with
probability proportional to p.

**Report noisy max** (`TwoSided`), for single candidates only. With Laplace noise of scale one on -g, -ln T is the noisy
score: ln T = g + ln(2 V) up to V = 1/2, and g - ln(2 (1 - V)) from there on.

In all of them, ln T grows with V, so after k bits of V, with value v, it lies between its values at v / 2**k and
(v + 1) / 2**k. Which of two runs comes first depends on the difference of their exponents only, so exponents may have
any common offset and may be negative. Sizes are integers of any length; floats know them by their logarithms.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpselect._numbers import float_near
from dpselect._types import Floats
from dpselect.selection.draws import Draws
from dpselect.selection.enclosure import log_bracket, scaled_exp

# A lower and an upper bound of ln T; None where there is none.
Bracket = tuple[Fraction | None, Fraction | None]

DEPTH = 53
_BITS_PER_STEP = 64
# log1p, expm1, exp and log are assumed accurate to 256 units in the last place (2**-44 relative). y = ln x is
# ln(-ln(1 - V)), at most 80 in size for V >= 2**-115, minus ln m: its error is below 2**-37.6 plus 2**-43 ln m.
# ln(1 - exp(-x)) moves no more than y, so the errors of exp(y), of 1 - exp(-x) and of its logarithm (at most 100 in
# size, where it is not y itself) add less than 2**-37. Below _SMALL, ln(1 - exp(-x)) is y within x = exp(y) < 2**-43.
MARGIN = 2.0**-36
_SMALL = -30.0
# Exponents of this size may represent larger ones that overflowed: they are only lower bounds.
HUGE = 2.0**100
_WIDEST = 2.0**101


def draw_prefixes(zeros: npt.NDArray[np.uint8], draws: Draws) -> Floats:
    """The first 53 bits of each V, given how many of them are leading zeros."""
    words = draws.words(zeros.size, 64) >> np.uint64(64 - DEPTH)
    prefixes: Floats = (words >> zeros.astype(np.uint64)).astype(np.float64)
    return prefixes


def log_sizes(sizes: Sequence[int]) -> Floats:
    """The logarithms of positive integers of any length."""
    return np.array([math.log(size) for size in sizes], dtype=np.float64)


def float_bounds(
    prefixes: Floats,
    exponents: Floats,
    logs: Floats | tuple[Floats, Floats],
    kind: "type[Arrival] | None" = None,
    steps: Floats | float = 1.0,
) -> tuple[Floats, Floats]:
    """Bounds of ln T in float64. Exponents are within a relative 2**-50; beyond 2**100 only lower bounds."""
    # `logs` has the logarithms of the sizes, or lower and upper bounds of them. V lies between the prefix and the
    # prefix plus the step, both in units of 2**-53, and both exact.
    head = (Arrival if kind is None else kind).log_time
    shortest, longest = logs if isinstance(logs, tuple) else (logs, logs)
    doubt = MARGIN * (1 + exponents + longest)
    earliest, latest = head(np.stack([prefixes, prefixes + steps]), np.stack([longest, shortest]))
    with np.errstate(over="ignore"):  # an exponent at the end of the floats: a warning would reveal it
        low, high = exponents + earliest - doubt, exponents + latest + doubt
    return low, np.where(exponents > HUGE, np.inf, high)


def _log_wait(ends: Floats, logs: Floats) -> Floats:
    # The logarithm y of x = -ln(1 - V) / m at V = ends / 2**53: from -inf at V = 0 to inf at V = 1.
    with np.errstate(divide="ignore"):
        return np.log(-np.log1p(ends * -(2.0**-DEPTH))) - logs


@dataclass(frozen=True, repr=False)
class Arrival:
    """What is known about the first head of a run: its exponent and size, and the bits of V so far."""

    comes_by_one: ClassVar[bool] = True  # the best candidate has a head, which arrives by then

    exponent: Fraction
    size: int
    prefix: int
    depth: int = DEPTH

    @staticmethod
    def log_time(ends: Floats, logs: Floats) -> Floats:
        # ln(1 - exp(-x)) at V = ends / 2**53 in floats: from -inf at V = 0 to 0 at V = 1.
        waits = _log_wait(ends, logs)
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(waits < _SMALL, waits, np.log(-np.expm1(-np.exp(np.maximum(waits, _SMALL)))))

    def bracket(self) -> Bracket:
        """Return bounds on ln T; None where there is none: while all bits of V are zeros, or all are ones."""
        digits = 20 + int(0.302 * (self.depth + self.size.bit_length()))
        low, high = self._log_bound(self.prefix, digits, False), self._log_bound(self.prefix + 1, digits, True)
        return None if low is None else self.exponent + low, None if high is None else self.exponent + high

    def _log_bound(self, end: int, digits: int, upper: bool) -> Fraction | None:
        # A bound on ln(1 - exp(-x)) at V = end / 2**depth; None for minus infinity.
        if end == 1 << self.depth:
            return Fraction(0)
        wait = self._wait(end, digits, upper)
        if wait is None:
            return None
        # 1 - exp(-x) is at least about x >= 2**-depth / m, of which 64 bits and more are kept.
        fine = self.depth + self.size.bit_length() + 80
        left = Fraction(scaled_exp(wait, fine) + (not upper), 1 << fine)
        return log_bracket(1 - left, digits)[upper] if left < 1 else None

    def _wait(self, end: int, digits: int, upper: bool) -> Fraction | None:
        # A bound on x = -ln(1 - V) / m at V = end / 2**depth < 1; None for zero.
        whole = 1 << self.depth
        bound = log_bracket(Fraction(whole, whole - end), digits)[upper] / self.size if end else Fraction(0)
        return bound if bound > 0 else None

    def refined(self, draws: Draws) -> Self:
        """Return the arrival with more bits of V revealed."""
        prefix = self.prefix << _BITS_PER_STEP | draws.bits(_BITS_PER_STEP)
        return type(self)(self.exponent, self.size, prefix, self.depth + _BITS_PER_STEP)


class Tick(Arrival):
    """What is known about the first ring of the clocks of a run."""

    comes_by_one: ClassVar[bool] = False

    @staticmethod
    def log_time(ends: Floats, logs: Floats) -> Floats:
        # ln x at V = ends / 2**53 in floats.
        return _log_wait(ends, logs)

    def _log_bound(self, end: int, digits: int, upper: bool) -> Fraction | None:
        # A bound on ln x at V = end / 2**depth; None where it is infinite.
        wait = None if end == 1 << self.depth else self._wait(end, digits, upper)
        return None if wait is None else log_bracket(wait, digits)[upper]


class TwoSided(Arrival):
    """What is known about the noisy score of a single candidate, with Laplace noise."""

    comes_by_one: ClassVar[bool] = False

    @staticmethod
    def log_time(ends: Floats, logs: Floats) -> Floats:  # noqa: ARG004 - the size is one
        # ln(2 V) or -ln(2 (1 - V)) at V = ends / 2**53 in floats. Both factors are exact.
        shares = ends * 2.0 ** (1 - DEPTH)
        with np.errstate(divide="ignore"):
            return np.where(shares <= 1, 1.0, -1.0) * np.log(np.minimum(shares, 2 - shares))

    def _log_bound(self, end: int, digits: int, upper: bool) -> Fraction | None:
        # A bound on the same at V = end / 2**depth; None where it is infinite.
        whole = 1 << self.depth
        if end in (0, whole):
            return None
        if 2 * end <= whole:
            return log_bracket(Fraction(2 * end, whole), digits)[upper]
        return -log_bracket(Fraction(2 * (whole - end), whole), digits)[not upper]


def draw_arrival(exponent: Fraction, size: int, draws: Draws) -> Arrival:
    """The arrival of a run with 53 bits revealed."""
    return Arrival(exponent, size, draws.bits(DEPTH))


def earlier(first: Arrival, second: Arrival, draws: Draws) -> tuple[int, Arrival]:
    """Which of two arrivals comes first (0 or 1), decided exactly, and that arrival with the bits revealed."""
    # Floats decide unless the bounds overlap. So the work depends on neither the exponents nor the sizes, except
    # in one comparison in about 2**30.
    gap = min(max(float_near(second.exponent - first.exponent), -_WIDEST), _WIDEST)
    (low, high), (others_low, others_high) = _bounds(first, max(-gap, 0.0)), _bounds(second, max(gap, 0.0))
    if high < others_low:
        return 0, first
    if others_high < low:
        return 1, second
    return next(in_order({0: first, 1: second}, draws))


def _bounds(arrival: Arrival, exponent: float) -> tuple[float, float]:
    # What `float_bounds` finds for one arrival, in less time.
    log_size, prefix = math.log(arrival.size), arrival.prefix >> (arrival.depth - DEPTH)
    doubt = MARGIN * (1 + exponent + log_size)
    low, high = (_log_time(end, log_size) for end in (prefix, prefix + 1))
    return exponent + low - doubt, math.inf if exponent > HUGE else exponent + high + doubt


def _log_time(end: int, log_size: float) -> float:
    # What `Arrival.log_time` finds for one end.
    if end in (0, 1 << DEPTH):
        return 0.0 if end else -math.inf
    wait = math.log(-math.log1p(end * -(2.0**-DEPTH))) - log_size
    return wait if wait < _SMALL else math.log(-math.expm1(-math.exp(wait)))


def earliest(arrivals: dict[int, Arrival], draws: Draws) -> int:
    """The key of the run that arrives first, decided exactly."""
    return next(in_order(arrivals, draws))[0]


def settled(low: Floats, high: Floats, exact: Callable[[int], Arrival], draws: Draws) -> int:
    """Which of several arrivals is the first: by these bounds of them if one is below all others, else exactly."""
    left = np.flatnonzero(low <= high.min()).tolist()
    return int(left[0]) if len(left) == 1 else earliest({i: exact(i) for i in left}, draws)


def in_order(arrivals: dict[int, Arrival], draws: Draws) -> Iterator[tuple[int, Arrival]]:
    """The runs in the order of their arrivals, decided exactly, each with the bits that were revealed to find it."""
    # Each bracket is found once. More bits are revealed where brackets overlap one another, directly or not.
    for cluster in _clusters({key: arrival.bracket() for key, arrival in arrivals.items()}):
        if len(cluster) == 1:
            yield cluster[0], arrivals[cluster[0]]
        else:
            yield from in_order({key: arrivals[key].refined(draws) for key in sorted(cluster)}, draws)


def _clusters(brackets: dict[int, Bracket]) -> list[list[int]]:
    # The keys of brackets that overlap one another, directly or not. None is infinite.
    clusters: list[list[int]] = []
    reached: Fraction | None = None
    unbounded = [key for key, (low, _) in brackets.items() if low is None]
    others = sorted((low, key) for key, (low, _) in brackets.items() if low is not None)
    for key in [*unbounded, *(key for _, key in others)]:
        low, high = brackets[key]
        if clusters and (low is None or reached is None or low <= reached):
            clusters[-1].append(key)
            reached = None if reached is None or high is None else max(reached, high)
        else:
            clusters.append([key])
            reached = high
    return clusters
