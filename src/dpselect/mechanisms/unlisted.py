"""Values that nobody listed: those that a threshold lets through, and one coin for each.

**With a threshold** (Durfee & Rogers 2019, for permute-and-flip and exactly).

The values are those that somebody has, so a new person can bring new ones. A further candidate, "nothing", stands T
above whatever a single person could bring. Its score is 1 + T, or 1 + T above the first count that is left out.

  limited    A person has at most m values. All values that occur compete, and "nothing" at 1 + T.
  unlimited  Only the `MOST` largest counts compete (of equal counts, the first values in order), filled up with
             anonymous candidates of count 0. "Nothing" stands at 1 + T plus the next count, or 0 if there is none.
             An anonymous winner is "nothing", too. m is `MOST`.

**Delta** is m F exp(-c T) with a rate c per individual. F depends on the mechanism and on who is a neighbour.

  permute-and-flip   1/2 for a person who is added or removed (theorem 18 of docs/theory.md).
                     Replaced, limited: (1 + exp(-c))/2; unlimited: (1 + exp(c))/2, by two steps.
  exponential        1. Replaced and unlimited: exp(c), because the counts of both data sets are further apart.

If there are groups, a replaced person may leave one and enter another, and what both cost adds up: F is at least 1 for
permute-and-flip and at least 2 for the exponential mechanism.

A candidate that is T below another one wins with probability at most exp(-c T)/2 with permute-and-flip, and at most
exp(-c T) with the exponential mechanism. So the noise of permute-and-flip needs ln 2 / c people less. Given that no
value of a single person wins, the exponential mechanism chooses among the other candidates like the exponential
mechanism among those alone. So it is rho-zCDP except for an event of probability delta, with its own rho. Of
permute-and-flip only (epsilon, delta) is known.

**Which values exist**, by Desfontaines, Voss & Gipson, "Differentially private partition selection", PoPETs 2022
(arXiv:2006.03684). A value that n people have is released with probability pi(n), by one exact coin for each value:

    pi(0) = 0,    pi(n + 1) = min(e^eps pi(n) + delta, 1 - e^-eps (1 - pi(n) - delta), 1).

No (eps, delta)-private way to release a value has a larger probability for any n (their Theorem 1). The guarantee is
that of one value. A person with several values costs the sum, so the caller divides epsilon and delta first.

**Closed form** (their Theorem 2, written with E = e^-eps, so that no number is large). The first term is the least
while pi(n) <= (1 - delta) / (e^eps + 1). Let n1 be the first n above that. Then

    pi(n) = delta (1 - E^n) / ((1 - E) E^(n - 1))                    for 1 <= n <= n1,
    1 - pi(n1 + m) = (1 - pi(n1)) E^m - c (1 - E^m),  c = delta E / (1 - E),    until this is <= 0.

n1 is one more than the whole part of ln(Y) / eps, with Y = 1 + (1 - delta) / delta * (1 - E) / (1 + E). The first n
with pi(n) = 1 is n1 + m for the least m >= 1 + ln(R) / eps, with R = (1 - E (1 - 2 delta)) / delta - E^-(n1 - 1).

Both are found by brackets that become finer until one whole number is left. That ends: a tie would make e^eps a root
of a polynomial with rational coefficients, and e^eps is transcendental (Lindemann) unless the polynomial is zero. It
is zero only in the second case for delta = 1/2, where pi(1) = 1/2 and pi(2) = 1. For the same reason pi(n) is
irrational between n = 1 and n = surely, so that a coin always ends, and so does a comparison with a rational number.

**Cost.** There is no table, whose length would be 1/eps: `found` computes pi for the counts that it gets, in float64
with an error bound. Random words of 32 bits decide all coins but one in 2**31 or so; brackets decide the rest.
"""

import math
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from dpselect import _validate
from dpselect._numbers import first_true
from dpselect._types import Counts, Flags, Floats, Number
from dpselect.errors import InvalidValue
from dpselect.mechanisms.base import MechanismBase
from dpselect.selection.draws import Draws
from dpselect.selection.enclosure import exp_bracket, log_bracket, refined, scaled_exp

MOST = 10_000
# Thresholds are multiples of this: a power of two, so that floats hold them, and far below a person.
_STEP = Fraction(1, 1024)
_DIGITS = 40
_BITS = 64


@dataclass(frozen=True)
class Threshold:
    """How far above a single person "nothing" stands, and how many candidates compete. Public.

    Attributes:
        distance: T, in people.
        most: how many of the largest counts compete; None if all of them do.
    """

    distance: Fraction
    most: int | None

    @property
    def people(self) -> Fraction:
        """The score of "nothing", if no count is left out."""
        return 1 + self.distance


def threshold(rate: Fraction, delta: Fraction, max_values: int | None, factor: "Factor") -> Threshold:
    """The smallest multiple of 1/1024 for T that keeps delta, with c = `rate` and F = `factor`."""
    # One person counts for at most `max_values` values; None stands for any number.
    values = MOST if max_values is None else max_values
    # m F exp(-c T) <= delta if T >= (ln(m / delta) + ln F) / c. With F = f exp(j c), that is ln(m f / delta) / c + j.
    bounds = factor.bounds(rate, limited=max_values is not None)
    needed = [log_bracket(values / delta * scale, _DIGITS)[1] / rate + shift for scale, shift in bounds]
    rounded = math.ceil(max(Fraction(0), *needed) / _STEP) * _STEP
    return Threshold(rounded, None if max_values is not None else MOST)


@dataclass(frozen=True)
class Factor:
    """F of the module's docstring: by how much delta exceeds m exp(-c T).

    Attributes:
        far_below: the mechanism's own: 1/2 for permute-and-flip, and 1 for the exponential mechanism.
        replaced: whether a person may be replaced.
        grouped: whether there are groups.
    """

    far_below: Fraction
    replaced: bool
    grouped: bool

    def bounds(self, rate: Fraction, *, limited: bool) -> list[tuple[Fraction, int]]:
        """Return f and j for each of some numbers f exp(j c), of which the largest is at least F."""
        if not self.replaced:
            return [(self.far_below, 0)]
        half = (1 + Fraction(scaled_exp(rate, _BITS) + 1, 2**_BITS)) / 2  # at least (1 + exp(-c))/2
        alone = (half if self.far_below < 1 else Fraction(1), 0 if limited else 1)  # (1 + exp(c))/2 is exp(c) times it
        return [alone, (2 * self.far_below, 0)] if self.grouped else [alone]


def chosen_above(
    individuals: Sequence[int], values: Sequence[int], k: int, threshold: Threshold, mechanism: MechanismBase
) -> list[tuple[int, int]]:
    """Select up to k values until "nothing" is: of each its count, and its rank from zero among those that share it."""
    # The secret `individuals` are the different counts, ascending and positive; `values` is how many values have each.
    left, taken = list(values), [list[int]() for _ in values]
    chosen: list[tuple[int, int]] = []
    while len(chosen) < k:
        runs, nothing = _competing(individuals, left, threshold)
        scores: list[Any] = [*(individuals[level] for level, _ in runs), 0, nothing]
        anonymous = 0 if threshold.most is None else threshold.most - sum(size for _, size in runs)
        lengths = [*(size for _, size in runs), anonymous, 1]
        position = mechanism.select_runs(scores, lengths)
        ends = list(accumulate(lengths))
        run = bisect_right(ends, position)
        if run >= len(runs):
            break
        level, size = runs[run]
        rank = position - (ends[run] - size)
        for earlier in taken[level]:  # in ascending order
            rank += earlier <= rank
        insort(taken[level], rank)
        left[level] -= 1
        chosen.append((individuals[level], rank))
    return chosen


def _competing(
    individuals: Sequence[int], left: Sequence[int], threshold: Threshold
) -> tuple[list[tuple[int, int]], Fraction]:
    if threshold.most is None:
        return [(level, size) for level, size in enumerate(left) if size], threshold.people
    room, runs = threshold.most, list[tuple[int, int]]()
    for level in reversed(range(len(left))):
        size = min(left[level], room)
        if size:
            runs.append((level, size))
            room -= size
        if size < left[level]:
            return runs, individuals[level] + threshold.people
    return runs, threshold.people


# One coin for each value.


Bracket = tuple[Fraction, Fraction]
Bounds = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]

_WORD_BITS = 32
_WORDS = 2.0**_WORD_BITS
_LARGEST_COUNT = 2**63 - 1
# So floats of epsilon and of its products with counts are normal numbers (see `_bounds`), and brackets have few digits.
_LEAST = Fraction(1, 10**300)
_LARGEST_FLOAT = Fraction(10**200)
_ZERO, _ONE = Fraction(0), Fraction(1)


class _Constants(NamedTuple):
    # Numbers of `_bounds` in float64, and a bound of its error.

    epsilon: float
    start: float  # ln(delta / (1 - E))
    rest: float  # 1 - pi(n1)
    pull: float  # delta E / (1 - E)
    error: float


@dataclass(frozen=True)
class Finding:
    """One exact coin for each value: heads, and the value is released, with the largest probability that is private."""

    # Epsilon and delta are those of one value: both at least 1e-300, and delta at most 1/2.

    epsilon: Fraction
    delta: Fraction

    name: ClassVar[str] = "partition-selection"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _validate.exact_positive(epsilon=self.epsilon))
        object.__setattr__(self, "delta", _validate.exact_positive(delta=self.delta))
        if min(self.epsilon, self.delta) < _LEAST:
            raise InvalidValue("epsilon and delta of each value must be at least 1e-300: give larger ones")
        if self.delta > Fraction(1, 2):
            raise InvalidValue(f"delta must be at most 1/2, got {float(self.delta):.3g}: give for example 1e-6")

    def found(self, individuals: Counts, draws: Draws) -> Flags:
        """Return the coins: True where a value that so many people have is released. The input is secret."""
        # Every value takes 32 bits, whatever its count is, and one in 2**31 or so takes more.
        words = draws.words(len(individuals), _WORD_BITS)
        levels = np.clip(individuals, 0, min(self.surely, _LARGEST_COUNT))
        low, high = self._bounds_of(levels)
        heads: Flags = words < low
        for index in np.flatnonzero(~heads & (words < high)).tolist():
            heads[index] = self._coin(int(levels[index]), draws, int(words[index]))
        return heads

    def probability(self, individuals: int) -> float:
        """Return pi(n), the probability that a value is released that so many people have, within a few ulps."""

        def narrow(bits: int) -> float | None:
            low, high = self.bracket(individuals, bits)
            return float(low) if high - low <= low / 2**60 or high < Fraction(1, 2**1080) else None

        return refined(narrow, 80)

    def bracket(self, individuals: int, bits: int) -> Bracket:
        """Return bounds of pi(n) that are at most 2**-bits apart."""
        if individuals <= 0:
            return _ZERO, _ZERO
        if individuals == 1:
            return self.delta, self.delta
        if individuals >= self.surely:
            return _ONE, _ONE
        between = self._rising if individuals <= self._turn else self._falling

        def narrow(digits: int) -> Bracket | None:
            low, high = between(individuals, digits)
            return (max(low, _ZERO), min(high, _ONE)) if (high - low) * 2**bits <= 1 else None

        return refined(narrow, self._digits + bits * 302 // 1000)

    @cached_property
    def surely(self) -> int:
        """The smallest number of people whose value is released with probability one."""
        if self.delta == Fraction(1, 2):
            return 2

        def ceiling(digits: int) -> int | None:
            power, turned = self._power(1, digits), self._power(self._turn - 1, digits)
            ratio = [(1 - power[1 - i] * (1 - 2 * self.delta)) / self.delta - 1 / turned[i] for i in (0, 1)]
            if ratio[0] <= 0:
                return None
            low, high = (math.ceil(1 + log / self.epsilon) for log in _log((ratio[0], ratio[1]), digits))
            return self._turn + low if low == high else None

        return refined(ceiling, self._digits)

    def people_for(self, probability: Number) -> int:
        """Return the smallest number of people whose value is released at least with this probability."""
        wanted = _validate.exact_positive(probability=probability)
        if wanted > 1:
            raise InvalidValue("probability must be at most 1: give for example 0.95")
        return first_true(lambda people: self._reaches(people, wanted), 0, self.surely)

    def _reaches(self, individuals: int, wanted: Fraction) -> bool:
        if wanted == 1:
            return individuals >= self.surely

        def compared(bits: int) -> bool | None:
            low, high = self.bracket(individuals, bits)
            return low >= wanted if low >= wanted or high < wanted else None

        return refined(compared, 64)

    def _coin(self, individuals: int, draws: Draws, prefix: int) -> bool:
        def is_head(prefix: int, depth: int) -> bool | None:
            low, high = self.bracket(individuals, depth + _WORD_BITS)
            surely, possibly = prefix + 1 <= low * 2**depth, prefix < high * 2**depth
            return surely if surely or not possibly else None

        return draws.decided(is_head, prefix, _WORD_BITS)

    # Brackets.

    @cached_property
    def _digits(self) -> int:
        # Decimal digits with which 1 - E, which is near epsilon, has 20 digits left.
        return 20 + _digits_before(1 / min(self.epsilon, _ONE))

    def _power(self, exponent: int, digits: int) -> Bracket:
        # Bounds of E^exponent: relative ones, or absolute ones for numbers below 10**-digits and below delta. The
        # closed form divides by E^(n - 1) for n <= n1 only, which is at least 1/Y and so more than delta.
        if not exponent:
            return _ONE, _ONE
        if exponent * self.epsilon > 3 * max(digits, _digits_before(1 / self.delta)):  # e^-3 < 1/10
            return _ZERO, Fraction(1, 10**digits)
        return exp_bracket(exponent * self.epsilon, digits)

    @cached_property
    def _turn(self) -> int:
        # n1 of the closed form.
        def floor(digits: int) -> int | None:
            low, high = (math.floor(log / self.epsilon) for log in _log(self._ratio(digits), digits))
            return low + 1 if low == high else None

        return refined(floor, self._digits)

    def _ratio(self, digits: int) -> Bracket:
        # Y of the closed form.
        least, most = ((1 - power) / (1 + power) for power in reversed(self._power(1, digits)))
        odds = (1 - self.delta) / self.delta
        return 1 + odds * least, 1 + odds * most

    def _rising(self, individuals: int, digits: int) -> Bracket:
        # Bounds of pi(n) for 1 <= n <= n1.
        start, scale = self._start(digits), self._power(individuals - 1, digits)
        least, most = self._power(individuals, digits)
        return start[0] * (1 - most) / scale[1], start[1] * (1 - least) / scale[0]

    def _falling(self, individuals: int, digits: int) -> Bracket:
        # Bounds of pi(n) for n1 <= n < surely.
        turned, start = self._rising(self._turn, digits), self._start(digits)
        power, one = self._power(individuals - self._turn, digits), self._power(1, digits)
        rests = [(1 - turned[1 - i]) * power[i] - start[1 - i] * one[1 - i] * (1 - power[i]) for i in (0, 1)]
        return 1 - rests[1], 1 - rests[0]

    def _start(self, digits: int) -> Bracket:
        # Bounds of delta / (1 - E).
        least, most = self._power(1, digits)
        return self.delta / (1 - least), self.delta / (1 - most)

    # The filter in float64.

    def _bounds_of(self, levels: Counts) -> Bounds:
        # The bounds of `_bounds` for each level. Few levels are computed once each.
        if self.surely >= len(levels):
            return self._bounds(levels)
        low, high = self._bounds(np.arange(self.surely + 1))
        return low[levels], high[levels]

    def _bounds(self, levels: Counts) -> Bounds:
        # Words below the first bound are heads, those from the second on are tails, and those between are undecided.
        #
        # A word w leaves U between w / 2**32 and (w + 1) / 2**32. With u = 2**-53, the float of n eps has a relative
        # error of 3u (n, eps, product), and exp and expm1 are within 256 units in the last place, 2**-44, in
        # `Draws.finish`. For n <= n1 the exponent (n - 1) eps + ln(delta / (1 - E)) has an error below 4u times the sum
        # of its parts' sizes, and (n1 - 1) eps <= ln Y. The factor 1 - E^n has the relative error of n eps at most. For
        # n > n1 neither term exceeds one, and x e^-x < 1. So pi(n) is within 2**-42.5 and 2**-51 (ln Y + |start|).
        epsilon, start, rest, pull, error = self._constants
        turn = min(self._turn, _LARGEST_COUNT)
        rising, falling = np.minimum(levels, turn), np.maximum(levels - turn, 0)
        early = np.exp((rising - 1) * epsilon + start) * -np.expm1(-rising * epsilon)
        late = 1 - (rest * np.exp(-falling * epsilon) + pull * np.expm1(-falling * epsilon))
        boundary: Floats = np.where(falling > 0, late, early)
        low = np.clip(np.floor((boundary - error) * _WORDS), 0, _WORDS).astype(np.uint64)
        high = np.clip(np.ceil((boundary + error) * _WORDS), 0, _WORDS).astype(np.uint64)
        for certain, word in ((levels <= 0, 0), (levels >= self.surely, 2**_WORD_BITS)):
            low[certain] = high[certain] = word
        return low, high

    @cached_property
    def _constants(self) -> _Constants:
        digits = self._digits + 20
        start, ratio, power = self._start(digits), self._ratio(digits), self._power(1, digits)
        logarithm = float(_log(start, digits)[0])
        scale = float(_log(ratio, digits)[1]) + abs(logarithm)
        return _Constants(
            epsilon=float(min(self.epsilon, _LARGEST_FLOAT)),  # E is zero in floats long before
            start=logarithm,
            rest=float(1 - self.bracket(self._turn, 80)[0]),
            pull=float(start[0] * power[0]),
            error=2.0**-42 + 2.0**-50 * scale,
        )


def _digits_before(number: Fraction) -> int:
    # At least as many digits as a number >= 1 has before the point.
    return 1 + (number.numerator.bit_length() - number.denominator.bit_length() + 1) * 302 // 1000


def _log(bracket: Bracket, digits: int) -> Bracket:
    return log_bracket(bracket[0], digits)[0], log_bracket(bracket[1], digits)[1]
