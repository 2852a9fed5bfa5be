"""All randomness of a selection, as one argument: random bits, and what is drawn from them exactly.

A kernel gets all of it from a `Draws` and knows nothing else that is random. A test passes one whose bits are scripted,
or one that enumerates every outcome with its exact probability. No float decides an output: each float filter has an
error bound, and what it leaves in doubt is decided by more bits and integers (`Draws.decided`).

**Integers** below a bound are drawn by rejection of random integers (Lumbroso 2013 surveys the alternatives), or from
the high half of a product (Lemire 2019). A random order is that of Fisher & Yates (1938), drawn step by step.

**The coin** of McKenna & Sheldon (2020), Algorithm 1: heads is U < exp(-exponent), with bits of U revealed on demand. A
float64 filter on the first 40 bits or so decides almost always.

**A coin given another one**, U < exp(-near) given that U < exp(-near - further) does not hold, is a Bernoulli race
(Dughmi et al. 2017). With a = exp(-near) and b = exp(-further) its probability is a (1 - b) / (1 - a b). Flip a: tails
is tails. Otherwise flip b: tails is heads. Otherwise start over. A round ends with heads with probability a (1 - b) and
with tails with probability 1 - a, so the quotient of the two is right, and so is everything. A round starts over with
probability a b, the probability of the event that is known not to have occurred.

**Survivors** are the successes of a Bernoulli(2**-zeros) process, found by geometric skips (inversion; Devroye 1986,
X.2). The skip G before a success satisfies Pr[G >= g] = a**g with a = 1 - 2**-zeros, so G = floor(ln V / ln a) for a
uniform V. A float64 filter on 32 bits of V nearly always finds the floor.

**Whole numbers from coins.** A coin with a rational probability compares a uniform integer below the denominator with
the numerator. No float is involved. They give how often private tuning runs, and two-sided geometric noise.

**The number of runs** of private tuning (Papernot & Steinke 2022, Definition 1). The negative binomial distribution
without its zero: with shape h >= 0 and probability of stopping g the number K >= 1 has probabilities proportional to

    (1 - g)**k * product over l = 1..k-1 of (l + h) / (l + 1);

h = 1 is the geometric distribution, h = 0 the logarithmic one. Their sum is irrational but their ratios are not, so
rejection needs rational coins only. With m the smallest integer that is not below h, and at least one, the failures
before the m-th success have probabilities proportional to the same with m in place of h: they are proposed, and kept
with probability product (l + h) / (l + m), coin by coin, so that a rejected proposal costs little: about 1/g coins
for the logarithmic distribution, a few for each success and failure of the others.

The Poisson distribution with a rational mean, by rejection (Devroye 1986, II.3). With a mean a <= 1/2 the probabilities
are proportional to a**k / k!: a geometric number, which has them proportional to a**k, is kept with probability 1/k!,
and four of five are. A larger mean is a sum of independent numbers with means of at most one half. No exponential takes
part: the normalising exp(-a) is never needed.

**Two-sided geometric noise** (Ghosh, Roughgarden & Sundararajan 2009): an integer z has a probability proportional to
e^(-rate |z|). The size is drawn as Canonne, Kamath & Steinke (2020) do, in two parts, so that a small rate takes few
coins. With a power of two B for which rate B is at least one half, size = B high + low, and e^(-rate size) is a
product: `high` is the number of heads, before the first tails, of coins with probability e^(-rate B), and `low` is
uniform below B and kept with probability e^(-rate low). Then a fair sign is drawn. "Minus zero" is refused, as zero
would have two chances.
"""

import math
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dpselect._types import Flags, Floats, Integers, Octets, Positions
from dpselect.errors import ScoresChanged
from dpselect.selection import kernel
from dpselect.selection.enclosure import log_bracket, scaled_exp
from dpselect.selection.lines import Lines

_Decision = TypeVar("_Decision")

_TYPES = {width: np.dtype(f"u{width // 8}") for width in (8, 16, 32, 64)}
_WORD = 128
_HALF, _BEYOND_HALF, _SHIFT = np.uint64(2**32 - 1), np.uint64(2**32), np.uint64(32)

# The filter's error bound, relative to the boundary exp(-x), x the computed exponent: x carries at most four
# roundings (gap, rate, product, and one for scores that are not floats), so its error is below x * 2**-50.9, which is
# 2**-44.9 for x <= 64 and moves the boundary by the same relative amount. exp itself is within a few units in the last
# place in every library that NumPy uses (glibc documents 1, NumPy's own vector code less than 4); we allow 256 of
# them, 2**-44. Together below 2**-43. For x > 64 boundary and true value are both below 2**-92, far inside SLACK.
MARGIN = 2.0**-42
# The known bits leave a cell of width 2**-k for U. Four cells cover it and every rounding of numbers of its size.
SLACK = 4.0
# Larger exponents are reduced to this: their boundary is inside SLACK anyway, and floats near 2**-1074 are slow.
VANISHED = 100.0
FRESH_BITS = 32
_BITS_PER_STEP = 32
_DEEPEST = 20
_CELLS = 2.0 ** -np.arange(FRESH_BITS, FRESH_BITS + _DEEPEST + 1)  # the width of a cell, by the known depth
_SLACKS = SLACK * _CELLS

_BATCH = 8192
# Up to this many trials, one octet each is faster than skips.
_DIRECT, _OCTET = 2048, 8
# Relative error of x = ln V / ln a: log within 256 units in the last place (2**-44, far above what any libm needs),
# ln a and the quotient rounded once each.
SKIP_MARGIN = 2.0**-43


class Exponents(NamedTuple):
    """Exponents of a batch of coins: floats with a relative error of at most 2**-50.9, and the exact rationals."""

    approximate: Floats
    exact: Callable[[int], Fraction]  # by the index of a coin


class Draws:
    """Exact draws from the operating system's random bits.

    It has no state, no seed and no buffer, so a forked or pickled copy cannot repeat anything.
    """

    def bits(self, count: int) -> int:
        """Return a uniform integer of `count` bits."""
        octets = (count + 7) // 8
        return int.from_bytes(os.urandom(octets), "big") >> (8 * octets - count)

    def words(self, count: int, width: int) -> npt.NDArray[Any]:
        """Return `count` uniform integers of 8, 16, 32 or 64 bits, as unsigned integers of that width."""
        return np.frombuffer(os.urandom(count * width // 8), dtype=_TYPES[width])

    def decided(self, decide: Callable[[int, int], _Decision | None], prefix: int, depth: int) -> _Decision:
        """Return what `decide` finds from the first bits of a uniform number, and how many: more while that is None."""
        while (found := decide(prefix, depth)) is None:
            prefix = prefix << _BITS_PER_STEP | self.bits(_BITS_PER_STEP)
            depth += _BITS_PER_STEP
        return found

    # Integers.

    def index(self, bound: int) -> int:
        """Return a uniform integer below the bound, which is zero only if scores changed in the meantime."""
        if bound < 1:
            raise ScoresChanged
        width = (bound - 1).bit_length()
        while True:
            candidate = self.bits(width)
            if candidate < bound:
                return candidate

    def index_at_once(self, bound: int) -> int:
        """Return a uniform integer below the bound, from one random word of 128 bits for any bound (Lemire 2019)."""
        # The high half of bound * word is uniform if words whose low half is below 2**128 mod bound are refused. That
        # happens with probability below bound / 2**128, so the number of words does not depend on the bound.
        if bound < 1:
            raise ScoresChanged
        while True:
            high, low = divmod(bound * self.bits(_WORD), 1 << _WORD)
            if low >= (1 << _WORD) % bound:
                return high

    def indices_at_once(self, bounds: Integers) -> Integers:
        """Return a uniform integer below each bound (at most 2**32), from one random word of 64 bits each."""
        # A word is refused with probability below bound / 2**64. The product is taken in two parts of 32 bits: neither
        # bound * part nor its sum with a carry below 2**32 reaches 2**64.
        if (bounds < 1).any():
            raise ScoresChanged
        factors, drawn = bounds.astype(np.uint64), np.empty(len(bounds), np.int64)
        left = np.arange(len(bounds))
        while left.size:
            words, factor = self.words(left.size, 64), factors[left]
            low = factor * (words & _HALF)
            high = factor * (words >> _SHIFT) + (low >> _SHIFT)
            rest = (high << _SHIFT) | (low & _HALF)
            accepted = rest >= (np.uint64(2**64 - 1) % factor + np.uint64(1)) % factor
            drawn[left[accepted]] = (high >> _SHIFT)[accepted].astype(np.int64)
            left = left[~accepted]
        return drawn

    def indices(self, bounds: Integers) -> Integers:
        """Return a uniform integer below each bound (at most 2**32), from one word of 32 bits for most."""
        if len(bounds) and bounds.min() < 1:
            raise ScoresChanged
        factors, drawn = bounds.astype(np.uint64), np.zeros(len(bounds), np.int64)
        left = (bounds > 1).nonzero()[0]
        while left.size:
            factor = factors[left]
            products = self.words(left.size, 32) * factor
            drawn[left] = products >> _SHIFT
            left = left[(products & _HALF) < _BEYOND_HALF % factor]
        return drawn

    def indices_below(self, bound: int, tries: int) -> Integers:
        """Return up to `tries` uniform integers below one bound, at least half as many on average."""
        if bound < 1:
            raise ScoresChanged
        width = (bound - 1).bit_length()
        word = 32 if width <= 32 else 64
        drawn = self.words(tries, word) >> np.uint8(word - width) if width else np.zeros(tries, np.uint64)
        return drawn[drawn < bound].astype(np.int64)

    def order(self, count: int) -> Iterator[int]:
        """Return the numbers below `count` in random order. Only the positions touched so far are stored."""
        moved: dict[int, int] = {}
        for left in range(count, 0, -1):
            slot = self.index(left)
            yield moved.get(slot, slot)
            moved[slot] = moved.get(left - 1, left - 1)

    def fair_heads(self, count: int) -> int:
        """Return how many of `count` fair coins are heads."""
        words, rest = divmod(count, 64)
        return int(np.bitwise_count(self.words(words, 64)).sum()) + self.bits(rest).bit_count()

    # Coins.

    def flip(self, exponent: Fraction, zeros: int = 0, prefix: int = 0) -> bool:
        """Flip one coin U < exp(-exponent), given that the first bits of U are zeros, or those of `prefix`."""
        # At depth k the only undecided prefix is floor(2**k exp(-exponent)): one below it is heads, one above it is
        # tails. For exponent zero that is 2**k, which every prefix is below.

        def is_heads(prefix: int, depth: int) -> bool | None:
            boundary = scaled_exp(exponent, depth)
            return None if prefix == boundary else prefix < boundary

        return self.decided(is_heads, prefix, zeros)

    def flip_between(self, near: Fraction, further: Fraction) -> bool:
        """Return whether U < exp(-near), for a U that is known to be at least exp(-near - further); further > 0."""
        while self.flip(near):
            if not self.flip(further):
                return True
        return False

    def first_octets(self, levels: npt.NDArray[Any], lines: Lines) -> tuple[Flags, Positions, Octets]:
        """Reveal one octet of every coin: which are heads, which are undecided, and the octets of the latter."""
        octets: Octets = self.words(levels.size, _OCTET)
        heads, undecided = lines.decide(levels, octets)
        return heads, undecided, octets[undecided]

    def finish(
        self,
        exponents: Exponents,
        prefixes: Octets | int,
        depths: Octets | Integers | int,
        margin: float = MARGIN,
    ) -> Flags:
        """Finish coins whose first `depths` bits, at most 20, are known to be `prefixes`."""
        # All words stay below 2**53, so floats hold them exactly.
        fresh = self.words(exponents.approximate.size, FRESH_BITS)
        filtered = kernel.coins(exponents.approximate, fresh, prefixes, depths, margin, SLACK, VANISHED)
        heads, doubtful = filtered or _filtered_coins(exponents.approximate, fresh, prefixes, depths, margin)
        for index in doubtful.tolist():
            prefix, depth = (int(np.broadcast_to(known, heads.shape)[index]) for known in (prefixes, depths))
            word = prefix << FRESH_BITS | int(fresh[index])
            heads[index] = self.flip(exponents.exact(index), depth + FRESH_BITS, word)
        return heads

    # Successes.

    def survivors(self, count: int, zeros: int, margin: float = SKIP_MARGIN) -> Positions:
        """Return which of `count` coins start with this many zeros, in ascending order."""
        if count <= _DIRECT and zeros <= _OCTET:
            found: Positions = (self.words(count, _OCTET) < 1 << (_OCTET - zeros)).nonzero()[0]
            return found
        parts: list[Positions] = []
        last = -1
        while True:
            expected = (count - last) / 2.0**zeros
            size = min(_BATCH, math.ceil(expected + 4 * math.sqrt(expected)) + 1)
            words = self.words(size, FRESH_BITS)
            positions = kernel.successes(words, zeros, margin, last, count)
            if positions is None:
                positions = (self.skips(words, zeros, margin) + 1).cumsum() + last
                positions = positions[: positions.searchsorted(count)]
            if positions.size < size:
                return np.concatenate([*parts, positions]) if parts else positions
            parts.append(positions)
            last = int(positions[-1])

    def contenders(self, is_hot: Flags, zeros: int) -> tuple[Positions, Octets]:
        """Return those that may win: first the hot ones, then the cold ones whose coins start with enough zeros."""
        # Also return how many zeros are known of each. A cold one can win only if its coin starts with that many.
        survivors = self.survivors(is_hot.size, zeros)
        hot, cold = is_hot.nonzero()[0], survivors[~is_hot[survivors]]
        return np.concatenate([hot, cold]), np.array([0, zeros], np.uint8).repeat([hot.size, cold.size])

    def skips(self, words: npt.NDArray[Any], zeros: int, margin: float = SKIP_MARGIN) -> Positions:
        """Return the numbers of failures before a success, from words of 32 bits that V starts with."""
        found, doubtful = kernel.skips(words, zeros, margin) or _filtered_skips(words, zeros, margin)
        for index in doubtful.tolist():
            found[index] = self.skip(zeros, int(words[index]), FRESH_BITS)
        return found

    def skip(self, zeros: int, prefix: int = 0, depth: int = 0) -> int:
        """Return one such number, given that V starts with the `depth` bits of `prefix`."""

        def whole(prefix: int, depth: int) -> int | None:
            # The integer part of ln V / ln a, if it is the same over the cell of V.
            if not prefix:
                return None
            digits = 20 + int(0.302 * (depth + zeros))
            rate_low, rate_high = log_bracket(Fraction(1 << zeros, (1 << zeros) - 1), digits)  # -ln a
            least, _ = log_bracket(Fraction(1 << depth, prefix + 1), digits)  # -ln V, from below
            _, most = log_bracket(Fraction(1 << depth, prefix), digits)
            low, high = math.floor(least / rate_high), math.floor(most / rate_low)
            return low if low == high else None

        return self.decided(whole, prefix, depth)


def _filtered_coins(
    exponents: Floats,
    fresh: npt.NDArray[Any],
    prefixes: Octets | int,
    depths: Octets | Integers | int,
    margin: float,
) -> tuple[Flags, Positions]:
    # The coins that are heads beyond doubt, and the indices of those that are in doubt.
    cell = _CELLS.take(depths)
    lowest: Floats = fresh * cell
    if not isinstance(prefixes, int) or prefixes:
        lowest += prefixes * (cell * 2.0**FRESH_BITS)
    boundary = np.exp(np.maximum(-exponents, -VANISHED))
    distance = boundary - lowest
    doubt = boundary * margin + _SLACKS.take(depths)
    return distance > doubt, (np.abs(distance) <= doubt).nonzero()[0]


def _filtered_skips(words: npt.NDArray[Any], zeros: int, margin: float) -> tuple[Positions, Positions]:
    # The skips of these words, and the indices of those that are in doubt.
    middles = words + 0.5  # as float64
    quotient = np.log(middles * 2.0**-FRESH_BITS) / math.log1p(-(2.0**-zeros))
    # V lies in [w, w + 1) / 2**32, so ln V is within 1/(w + 0.5) of the middle's for w >= 1; -1/ln a <= 2**zeros. The
    # word 0 has no lower end; its doubt is 2**(zeros + 1), so it is never decided here.
    doubt = 2.0**zeros / middles + quotient * margin
    low = np.floor(quotient - doubt)
    return low.astype(np.int64), (low != np.floor(quotient + doubt)).nonzero()[0]


# Whole numbers from coins.


def rational_coin(probability: Fraction, draws: Draws) -> bool:
    return draws.index(probability.denominator) < probability.numerator


def _kept(propose: Callable[[], int | None]) -> int:
    # The first proposed number that is kept.
    while (proposed := propose()) is None:
        pass
    return proposed


def truncated_negative_binomial(shape: Fraction, stop: Fraction, draws: Draws) -> int:
    """Draw a number of at least one."""
    return _kept(lambda: proposed_negative_binomial(shape, stop, draws) or None)


def proposed_negative_binomial(shape: Fraction, stop: Fraction, draws: Draws) -> int:
    # A proposed number if it was kept, otherwise zero.
    successes, wanted = 0, max(1, math.ceil(shape))
    failures = 0
    while successes < wanted:
        if rational_coin(stop, draws):
            successes += 1
        elif failures and not rational_coin((failures + shape) / (failures + wanted), draws):
            return 0
        else:
            failures += 1
    return failures


def poisson(mean: Fraction, draws: Draws) -> int:
    """Draw a number of at least zero."""
    parts = math.ceil(2 * mean)
    return sum(_kept(lambda: proposed_poisson(mean / parts, draws)) for _ in range(parts))


def proposed_poisson(mean: Fraction, draws: Draws) -> int | None:
    # A geometric number that is kept with probability one over its factorial; None if it is not.
    number = 0
    while rational_coin(mean, draws):
        number += 1
        if not rational_coin(Fraction(1, number), draws):
            return None
    return number


def two_sided_geometric(rate: Fraction, draws: Draws) -> int:
    """Draw an integer z with probability proportional to e^(-rate |z|). The rate is positive."""
    return _kept(lambda: proposed_two_sided(rate, draws))


def proposed_two_sided(rate: Fraction, draws: Draws) -> int | None:
    # A proposed integer if it was kept, otherwise None. More than one of four is kept.
    block = 1
    while 2 * rate * block < 1:
        block *= 2
    low = draws.index(block)
    if low and not draws.flip(rate * low):
        return None
    high = 0
    while draws.flip(rate * block):
        high += 1
    size, is_negative = block * high + low, draws.index(2) == 1
    if is_negative and not size:
        return None
    return -size if is_negative else size
