"""A whole set of candidates as one choice, scored by its sum or by its margin.

**By its sum** (theorem 12 of docs/theory.md), with k candidates and coins with odds.

The exponential mechanism over all k-sets takes S with probability proportional to the product of exp(c q_i) over S: the
law of independent coins with odds exp(c (q_i - t)), given that exactly k of them are heads (conditional Poisson
sampling; Hajek 1964, Chen, Dempster & Liu 1994). It does not depend on t, so t is chosen such that about k heads are
expected, and all coins are flipped again until exactly k are heads: about sqrt(2 pi v) tries, v the variance of their
number. Permute-and-flip over all k-sets waits (`selection.proposals`), with tries as raw events.

With e_i = c (q* - q_i) and theta = c (q* - t), a coin has the log-odds theta - e_i. Those with positive log-odds are
the favourites. A coin is *upset* if it shows its less likely side, with probability 1 / (1 + exp(|theta - e_i|)). So
the set of a try is the favourites, exchanged at the upsets, and only upsets are drawn: for candidates far from theta,
by geometric skips.

**Coins with odds** exp(-gap) are heads with probability 1 / (1 + exp(gap)), as in logistic regression (Berkson 1944):
heads is U < 1 / (1 + exp(gap)) for a uniform U whose bits are revealed on demand, so a coin is exact for every rational
gap >= 0. Sixteen bits decide nearly every one; 32 bits more, in float64 with an error bound, decide nearly all others;
exact integers decide the rest.

The rate of raw events is C = prod (1 + exp(theta - e_i)) exp(-(k theta - sum of the k smallest e)), because then C
times the probability of a set in one try is exp(-c (u* - u(S))). All terms of its logarithm are positive:

    ln C = sum over all of ln(1 + exp(-|theta - e_i|))
         + sum of |theta - e_i| over those that are favourites or among the k best, but not both.

**By its margin**: its smallest count minus the largest outside (theorem 13).

The best set of k scores its gap at rank k. That makes it better, at the same rate, than the canonical mechanism of
Shekelyan & Loukides (2022), in which the best set scores zero. Sizes may be one number, or all in a public interval.

Sort the candidates by their counts x_1 >= x_2 >= ... >= x_d, in any order among equals. A set that is not a prefix has
a first missing rank h + 1 and a last rank t > h + 1, and scores x_t - x_(h+1). There are C(t - h - 2, k - h - 1) of
them of size k: ranks 1 to h and t are in, h + 1 is out, and the others lie between. For all t <= b together these are
C(b - h - 1, k - h), so the sets of one h and of one count x_t are a run, whose length is a difference of two such
numbers. Together with one prefix for each size that makes few runs of astronomical lengths, and the earliest run wins
(`selection.races`). Floats know only bounds of the logarithms of lengths. Integers decide among contenders.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, count, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpselect._types import Array, Flags, Floats, Positions
from dpselect.selection.draws import FRESH_BITS, SLACK, VANISHED, Draws
from dpselect.selection.enclosure import log_bracket, refined, scaled_exp
from dpselect.selection.gaps import Gaps, Rate
from dpselect.selection.proposals import LogRate, wait_for
from dpselect.selection.races import Arrival, Members, Tier, best_members, draw_prefixes, first_of, float_bounds

# Sixteen bits decide nearly every coin with odds, by whole-number bounds that are computed once for many tries.
WORD_BITS = 16
_HALF = 2.0 ** (WORD_BITS - 1)
# exp, the sum and the quotient are accurate to 256 units in the last place together (2**-44 relative), with much room.
_MARGIN = 2.0**-42

Words = npt.NDArray[np.uint16]


class Odds(NamedTuple):
    """Gaps of a batch of coins: floats, the largest error of each, and the exact rationals. None is negative."""

    approximate: Floats
    doubt: Floats
    exact: Callable[[int], Fraction]  # by the index of a coin


def odds_coin(gap: Fraction, draws: Draws, prefix: int = 0, depth: int = 0) -> bool:
    # Whether U < 1 / (1 + exp(gap)), given that the first `depth` bits of U are `prefix`. At depth k the only undecided
    # prefix is the whole part of 2**k / (1 + exp(gap)), which is irrational unless the gap is zero. Then the boundary
    # is one half, and the first bit decides.
    def is_heads(prefix: int, depth: int) -> bool | None:
        boundary = _scaled_probability(gap, depth)
        return prefix < boundary if prefix != boundary or (not gap and depth) else None

    return draws.decided(is_heads, prefix, depth)


def _scaled_probability(gap: Fraction, depth: int) -> int:
    # floor(2**depth / (1 + exp(gap))), from bounds of e = exp(-gap), because this is 2**depth e / (1 + e).
    if not gap:
        return 1 << depth >> 1

    def floor(finer: int) -> int | None:
        least, whole = scaled_exp(gap, finer), 1 << finer
        low, high = ((e << depth) // (whole + e) for e in (least, least + 1))
        return low if low == high else None

    return refined(floor, depth + 64)


def word_bounds(gaps: Floats, doubts: Floats) -> tuple[Words, Words]:
    # Words below the first bound are heads, those from the second on are tails, and those between are undecided. A word
    # w leaves U between w / 2**16 and (w + 1) / 2**16. The boundary is at most one half.
    boundary, error = _boundary(gaps, doubts)
    with np.errstate(over="ignore"):
        low = np.floor(np.maximum(boundary - error, 0.0) * 2 * _HALF)
        high = np.minimum(np.ceil((boundary + error) * 2 * _HALF), _HALF)
    return low.astype(np.uint16), high.astype(np.uint16)


def odds_coins(odds: Odds, prefixes: npt.NDArray[Any] | int, depth: int, draws: Draws) -> Flags:
    # Whether U < 1 / (1 + exp(gap)) for each coin, given the first `depth` bits of each U: at most 20, or zeros.
    fresh = draws.words(odds.approximate.size, FRESH_BITS)
    cell = 2.0 ** -(FRESH_BITS + depth)
    lowest = (fresh + np.asarray(prefixes, np.float64) * 2.0**FRESH_BITS) * cell  # below 2**53 cells, so exact
    boundary, error = _boundary(odds.approximate, odds.doubt)
    distance, doubt = boundary - lowest, error + SLACK * cell
    heads: Flags = distance > doubt
    for index in (np.abs(distance) <= doubt).nonzero()[0].tolist():
        known = int(lowest[index] / cell)
        heads[index] = odds_coin(odds.exact(index), draws, known, FRESH_BITS + depth)
    return heads


def _boundary(gaps: Floats, doubts: Floats) -> tuple[Floats, Floats]:
    # 1 / (1 + exp(gap)) and a bound of its error. The logarithm of the boundary moves no more than the gap, so an error
    # d of the gap moves the boundary by a factor between exp(-d) and exp(d).
    boundary: Floats = 1 / (1 + np.exp(np.minimum(gaps, VANISHED)))
    with np.errstate(over="ignore"):
        return boundary, boundary * (_MARGIN + 2 * np.expm1(doubts))


# Upsets of candidates beyond so many times ln 2 start with so many zeros, and are skipped otherwise. More than sixteen
# are of use if there are as many candidates: long skips take longer to draw.
_TIERS, _LONG_TIERS = (8, 16), range(24, 53, 4)
# Coins and survivors of one batch of tries: as many as there are runs, so that they take less memory than the scores,
# within these bounds; and the most members in all tries of a batch, whose number 64 bits hold.
_FEWEST_COINS, _MOST_COINS, _MOST_TRIALS = 1 << 15, 1 << 20, 1 << 61
_ZOOM = 60.0  # farther from theta a coin is decided, as far as the choice of theta is concerned
_STEPS = 60
_PATIENCE = 4  # batches before they grow
_TINY = 2.0**-1000


def choose_set(gaps: Gaps, lengths: Positions, k: int, draws: Draws) -> Members:
    """A k-set with probability proportional to exp(c u(S)): the exponential mechanism. Not all candidates, not none."""
    tried = Tries(gaps, lengths, k)
    _, upsets = next(tried.draw(draws))
    return tried.members(upsets)


def choose_set_by_waiting(gaps: Gaps, lengths: Positions, k: int, draws: Draws) -> Members:
    """A k-set by permute-and-flip over all k-sets. Not all candidates, not none."""
    tried = Tries(gaps, lengths, k)
    events = ((passed, tried.exponent(upsets), upsets) for passed, upsets in tried.draw(draws))
    return tried.members(wait_for(events, tried.rate, draws))


class Tries:
    # Independent coins for all candidates, flipped again and again. Secret: the scores must be our own copy. Runs have
    # lengths, all positive, of at most 2**60 members together. Theta is the exact exponent of the k-th best candidate
    # plus a float. Floats know the distances from it by differences of scores, not of exponents: these may be so large
    # that their floats are far apart.

    def __init__(self, gaps: Gaps, lengths: Positions, k: int) -> None:
        self._gaps, self._lengths, self._k = gaps, lengths, k
        self._best, self._last = best_members(gaps, self._lengths, k)
        beyond = gaps.beyond(self._last)
        self._shift = _threshold(beyond, self._lengths, self._best, k)
        # The differences are within a relative 2**-50.9, or below 2**-1000, and their own difference is rounded once.
        # Those that overflowed are beyond 2**100. They are far from theta, which is within 60 of the middle between the
        # last of the k best candidates and the first of the others.
        self._distance: Floats = np.abs(beyond - self._shift)
        self._doubt: Floats = np.abs(beyond) * 2.0**-50 + (abs(self._shift) * 2.0**-50 + _TINY)
        self._favourite: Flags = beyond < self._shift
        for run in np.flatnonzero(self._distance <= self._doubt).tolist():  # the sign is not certain
            self._favourite[run] = gaps.exact(run) < self._theta
        sizes = self._lengths[self._favourite]
        self._favourites = int(sizes.sum())
        self._tiers = self._tiers_of(self._distance - self._doubt)
        hot, self._skipped = self._tiers[0], self._tiers[1:]
        self._hot_runs, self._hot_ranks = hot.members()
        self._hot_favourites = int(np.count_nonzero(self._favourite[self._hot_runs]))
        self._low, self._high = word_bounds(self._distance[self._hot_runs], self._doubt[self._hot_runs])

    def _tiers_of(self, certain: Floats) -> list[Tier]:
        # The runs by the number of leading zeros of their upsets: an upset of gap g has probability below exp(-g).
        bits = int(self._lengths.sum()).bit_length()
        tiers = [*_TIERS, *(zeros for zeros in _LONG_TIERS if zeros <= bits)]
        level = np.zeros(certain.size, np.int8)
        for zeros in tiers:
            level += certain > zeros * (math.log(2) * (1 + 2.0**-50))
        hot = level == 0  # those with favourites come first
        runs = [np.concatenate([np.flatnonzero(hot & self._favourite), np.flatnonzero(hot & ~self._favourite)])]
        runs += [np.flatnonzero(level == each) for each in range(1, len(tiers) + 1)]
        return [Tier.of(zeros, own, self._lengths) for zeros, own in zip((0, *tiers), runs, strict=True)]

    @cached_property
    def _theta(self) -> Fraction:
        return self._gaps.exact(self._last) + Fraction(self._shift)

    def exact(self, run: int) -> Fraction:
        """Return the exact distance |theta - e| of the members of a run."""
        return abs(self._gaps.exact(run) - self._theta)

    def _odds(self, runs: Positions) -> Odds:
        return Odds(self._distance[runs], self._doubt[runs], lambda index: self.exact(int(runs[index])))

    def draw(self, draws: Draws) -> Iterator[tuple[int, Members]]:
        """Flip all coins again and again: the number of tries since the last one with k heads, and its upsets."""
        batch, passed = self._first_batch(), 0
        for turn in count(1):
            heads, balance = self._hot_upsets(batch, draws)
            tries, runs, ranks = self._skipped_upsets(batch, draws)
            np.add.at(balance, tries, np.where(self._favourite[runs], -1, 1))
            last = -1
            for hit in np.flatnonzero(balance + self._favourites == self._k).tolist():
                found, own = np.flatnonzero(heads[hit]), tries == hit
                hot = zip(self._hot_runs[found].tolist(), self._hot_ranks[found].tolist(), strict=True)
                skipped = zip(runs[own].tolist(), ranks[own].tolist(), strict=True)
                yield passed + hit - last, [*hot, *skipped]
                passed, last = 0, hit
            passed += batch - 1 - last
            if turn % _PATIENCE == 0:
                batch = min(2 * batch, self._largest_batch)

    @property
    def _largest_batch(self) -> int:
        read = sum(tier.size >> tier.zeros for tier in self._tiers)
        coins = min(max(self._distance.size, _FEWEST_COINS), _MOST_COINS)
        return max(1, min(coins // max(read, 1), _MOST_TRIALS // sum(tier.size for tier in self._tiers)))

    def _first_batch(self) -> int:
        # Half as many tries as one set needs: the number of heads is k with probability near 1/sqrt(2 pi v).
        spread = np.exp(-self._distance)
        variance = float((self._lengths * spread / (1 + spread) ** 2).sum())
        return min(math.ceil(math.sqrt(2 * math.pi * variance + 1) / 2), self._largest_batch)

    def _hot_upsets(self, batch: int, draws: Draws) -> tuple[Flags, Positions]:
        # Which hot coins are upset in each try, and how many heads that gives more than the favourites.
        size, split = self._hot_runs.size, self._hot_favourites
        words = draws.words(batch * size, WORD_BITS).reshape(batch, size)
        upset: Flags = words < self._low
        tries, coins = np.nonzero((words < self._high) & ~upset)
        if tries.size:
            upset[tries, coins] = odds_coins(self._odds(self._hot_runs[coins]), words[tries, coins], WORD_BITS, draws)
        lost = np.count_nonzero(upset[:, :split], axis=1)
        return upset, np.count_nonzero(upset[:, split:], axis=1) - lost

    def _skipped_upsets(self, batch: int, draws: Draws) -> tuple[Positions, Positions, Positions]:
        # The try, the run and the rank of each upset of candidates far from theta.
        parts = [np.empty((3, 0), np.int64)]
        for tier in self._skipped:
            if not tier.size:
                continue
            survivors = draws.survivors(batch * tier.size, tier.zeros)
            runs, ranks = tier.located(survivors % tier.size)
            upset = odds_coins(self._odds(runs), 0, tier.zeros, draws)
            parts.append(np.stack([survivors // tier.size, runs, ranks])[:, upset])
        tries, runs, ranks = np.concatenate(parts, axis=1)
        return tries, runs, ranks

    def members(self, upsets: Members) -> Members:
        """Return the set of a try: the favourites, exchanged at the upsets, in order."""
        favourites = {(run, rank) for run in np.flatnonzero(self._favourite).tolist() for rank in self._ranks(run)}
        return sorted(favourites.symmetric_difference(upsets))

    def _ranks(self, run: int) -> range:
        return range(int(self._lengths[run]))

    def exponent(self, upsets: Members) -> Fraction:
        """Return the exact c (u* - u(S)) of the set of a try: what S has in exponents more than the best set."""
        taken: Counter[int] = Counter()
        for run, _ in upsets:
            taken[run] += -1 if self._favourite[run] else 1
        for run, more in self._more_than_best:
            taken[run] += more
        return self._gaps.total({run: count for run, count in taken.items() if count})

    @cached_property
    def _more_than_best(self) -> list[tuple[int, int]]:
        # How many members of each run are favourites, minus how many are among the k best, where these differ.
        difference = np.where(self._favourite, self._lengths, 0) - self._best
        runs = np.flatnonzero(difference)
        return list(zip(runs.tolist(), difference[runs].tolist(), strict=True))

    @cached_property
    def rate(self) -> LogRate:
        """The logarithm of C."""
        # An error d of a distance x moves ln(1 + exp(-x)) by at most d, and by at most d exp(d - x). It moves a term of
        # the second sum by d. exp and log1p are within a relative 2**-44, and the sums of positive terms within 2**-45
        # (pairwise, up to 2**200 terms): 2**-42 in all, with room.
        spread, sizes = np.exp(-self._distance), self._lengths
        runs = [run for run, _ in self._more_than_best]
        counts = np.array([abs(more) for _, more in self._more_than_best], np.float64)
        value = float((sizes * np.log1p(spread)).sum()) + float((counts * self._distance[runs]).sum())
        moved = self._doubt * np.exp(np.minimum(self._doubt - self._distance, 0.0))
        error = float((sizes * moved).sum()) + float((counts * self._doubt[runs]).sum())
        return LogRate(value, 2 * error + 2.0**-42 * value + _TINY, self._rate_bracket)

    def _rate_bracket(self, digits: int) -> tuple[Fraction, Fraction]:
        # Bounds of ln C from exact distances, each different one once.
        sizes: Counter[Fraction] = Counter()
        for run, length in enumerate(self._lengths.tolist()):
            sizes[self.exact(run)] += length
        shift = sum((abs(more) * self.exact(run) for run, more in self._more_than_best), Fraction(0))
        # A term is needed to about 10**-digits divided by the number of members.
        finer = digits + len(str(sum(sizes.values())))
        depth = math.ceil(finer * 3.33)
        low = high = shift
        for distance, length in sizes.items():
            least = scaled_exp(distance, depth)
            low += length * max(log_bracket(1 + Fraction(least, 1 << depth), finer)[0], Fraction(0))
            high += length * log_bracket(1 + Fraction(least + 1, 1 << depth), finer)[1]
        return low, high


def _threshold(beyond: Floats, lengths: Positions, best: Positions, k: int) -> float:
    # How far theta is above the exponent of the k-th best candidate, so that about k heads are expected. Any is right;
    # this one needs few tries. `beyond` is how far each exponent is above that one.
    middle = float(beyond[best < lengths].min()) / 2  # between the last of the best and the first of the others
    near = np.abs(beyond - middle) < _ZOOM
    zoomed, sizes = beyond[near] - middle, lengths[near]
    wanted = k - int(lengths[(beyond < middle) & ~near].sum())
    low, high = -_ZOOM, _ZOOM
    shift = 0.0
    for _ in range(_STEPS):
        heads = 1 / (1 + np.exp(zoomed - shift))
        missing = wanted - float((sizes * heads).sum())
        low, high = (shift, high) if missing > 0 else (low, shift)
        slope = float((sizes * heads * (1 - heads)).sum())
        if abs(missing) < 0.05 * math.sqrt(slope) + 1e-9:
            break
        step = shift + missing / slope if slope > 0 else math.nan
        shift = step if low < step < high else (low + high) / 2
    return middle + shift


# By the margin.


_ZEROS = 8
_COLD = -_ZEROS * 0.6931471805599453 * (1 + 2.0**-40)
# A rate beyond these is replaced by the nearer one: exponents stay far inside the slack of a comparison, or beyond all.
_LEAST_RATE, _LARGEST_RATE = 2.0**-900, 2.0**900
# SciPy's gammaln is assumed accurate to 256 units in the last place (2**-44 relative). The logarithm of a binomial
# coefficient has three such terms, none larger than that of the largest factorial, and two sums.
_LOG_MARGIN = 2.0**-42
_LARGEST_TABLE = 1 << 22


def choose_margin(  # noqa: PLR0913, PLR0917 - the data, the question, the mechanism and the randomness
    counts: Positions, sizes: Positions, interval: tuple[int, int], rate: Rate, kind: type[Arrival], draws: Draws
) -> list[int]:
    """The ranks, from zero, of a set whose size is in the interval, in ascending order."""
    # `counts` are different, descending and from zero to 2**61; `sizes` is how many candidates have each. The interval
    # is within 1 and the number of candidates less one.
    runs = MarginRuns(counts, sizes, interval, rate)
    return runs.member(runs.earliest(kind, draws), draws)


class LogFactorials:
    # Logarithms of the factorials of whole numbers up to a largest one, and of binomial coefficients.

    def __init__(self, largest: int) -> None:
        self._table = None if largest > _LARGEST_TABLE else _log_factorials(np.arange(largest + 1))
        self.error = _LOG_MARGIN * float(_log_factorials(np.array([largest]))[0])  # of a binomial coefficient

    def of(self, numbers: Positions) -> Floats:
        """Return the logarithms; numbers below zero count as zero."""
        known = np.maximum(numbers, 0)
        return _log_factorials(known) if self._table is None else self._table[known]

    def choose(self, n: Positions, r: int) -> Floats:
        """Return ln C(n, r); minus infinity where n < r."""
        return np.where(n < r, -np.inf, self.of(n) - float(self.of(np.array([r]))[0]) - self.of(n - r))


def _log_factorials(numbers: Positions) -> Floats:
    from scipy.special import gammaln  # noqa: PLC0415 - slow to import, and only margins need it

    found: Floats = gammaln(numbers + 1.0)
    return found


class MarginRun(NamedTuple):
    # A run of sets: the first missing rank less one, and the place of the smallest count inside. For the prefix of size
    # k these are k and None.

    h: int
    place: int | None


class MarginRuns:
    """The runs of sets with equal margins, of sizes from `lo` to `hi`. Secret."""

    def __init__(self, counts: Positions, sizes: Positions, interval: tuple[int, int], rate: Rate) -> None:
        self._counts, self._rate, (self._lo, self._hi) = counts, rate, interval
        self._ends: Positions = np.cumsum(sizes)  # the last rank of each count, from one
        self._starts: Positions = self._ends - sizes
        self._logs = LogFactorials(int(self._ends[-1]))
        self._margins = {k: self._at(k) - self._at(k + 1) for k in range(self._lo, self._hi + 1)}  # of prefixes
        self._best = max(self._margins.values())
        self._approximate = min(max(rate.approximate, _LEAST_RATE), _LARGEST_RATE)
        self._first = int(np.searchsorted(self._ends, self._lo + 1))  # the first place that a last rank can have

    def _at(self, rank: int) -> int:
        # The count at a rank, from one.
        return int(self._counts[np.searchsorted(self._ends, rank)])

    def earliest(self, kind: type[Arrival], draws: Draws) -> MarginRun:
        """Return the run that comes first. Of all others, only those are kept that floats do not exclude."""
        runs: list[MarginRun] = []
        kept = [np.empty((3, 0))]
        reached = math.inf
        for own, exponents, lengths, zeros in self._warm(kind, draws):
            prefixes = draw_prefixes(zeros, draws)
            low, high = float_bounds(prefixes, exponents, lengths, kind)
            reached = min(reached, float(high.min()))
            left = np.flatnonzero(low <= reached)
            runs += [own[place] for place in left.tolist()]
            kept.append(np.stack([low, high, prefixes])[:, left])
        low, high, prefixes = np.concatenate(kept, axis=1)
        [first] = first_of(low, high, lambda i: kind(*self.exact(runs[i]), int(prefixes[i])), draws)
        return runs[first]

    def _warm(self, kind: type[Arrival], draws: Draws) -> Iterator[tuple["_Own", Floats, tuple[Floats, Floats], Array]]:
        # Runs in parts: their exponents, bounds of the logarithms of their lengths, and zeros that V starts with. If
        # the first arrival comes by time one, a run of length m can be it only if V <= m p. Where that is below 2**-8,
        # V starts with eight zeros.
        sizes = list(self._margins)
        exponents = self._exponents(np.array([self._best - margin for margin in self._margins.values()]))
        nothing = np.zeros(len(sizes))
        yield _Own(None, np.array(sizes)), exponents, (nothing, nothing), np.zeros(len(sizes), np.uint8)
        places = np.arange(self._first, self._counts.size)
        for h in range(self._hi):
            exponents = self._exponents(self._best + self._at(h + 1) - self._counts[places])
            longest = self._log_lengths(h, places, upper=True)
            left, zeros = np.arange(places.size), np.zeros(places.size, np.uint8)
            if kind.comes_by_one:
                left, zeros = draws.contenders(longest - exponents > _COLD, _ZEROS)
            is_there = longest[left] > -np.inf
            left, zeros = left[is_there], zeros[is_there]
            if left.size:
                shortest = self._log_lengths(h, places[left], upper=False)
                yield _Own(h, places[left]), exponents[left], (shortest, longest[left]), zeros

    def _exponents(self, differences: Positions) -> Floats:
        # The exponents of margins so far below the best one, with three roundings, each of a relative 2**-53.
        floats: Floats = differences.astype(np.float64) * self._approximate
        return floats

    def _log_lengths(self, h: int, places: Positions, upper: bool) -> Floats:
        # A bound on the logarithm of the length of each run: the sum over all sizes.
        total = np.full(places.size, -np.inf)
        for k in range(max(self._lo, h + 1), self._hi + 1):
            total = np.logaddexp(total, self._log_length(h, places, k, upper))
        # Each sum adds a relative error of 2**-43 to the larger term, which is below its logarithm's own error.
        return total + (self._logs.error if upper else -self._logs.error) * 2

    def _log_length(self, h: int, places: Positions, k: int, upper: bool) -> Floats:
        # A bound on the logarithm of the number of sets of size k, up to the error of the factorials. The last rank t
        # is from a + 1 to b, so the number is between b - a times its smallest and its largest term; and it is the
        # difference C(b - h - 1, r) (1 - exp(-drop)), where the drop of the logarithm has an error, too.
        r, b = k - h, self._ends[places]
        a = np.maximum(self._starts[places], k)
        with np.errstate(divide="ignore", invalid="ignore"):
            many = np.log(np.maximum(b - a, 0).astype(np.float64))
            bound: Floats = many + self._logs.choose(b - h - 2 if upper else a - h - 1, r - 1)
            wide = np.flatnonzero(b > a + 1)
            if wide.size:
                total = self._logs.choose(b[wide] - h - 1, r)
                drop = total - self._logs.choose(a[wide] - h - 1, r)
                error = 2 * self._logs.error
                share = -np.expm1(-(drop + error)) if upper else -np.expm1(-np.maximum(drop - error, 0.0))
                narrower = np.minimum if upper else np.maximum
                bound[wide] = narrower(bound[wide], total + np.log(share))
        return np.where(b > a, bound, -np.inf)

    def exact(self, run: MarginRun) -> tuple[Fraction, int]:
        """Return the exact exponent of a run, and its length."""
        if run.place is None:
            return self._rate.exact * (self._best - self._margins[run.h]), 1
        difference = self._best + self._at(run.h + 1) - int(self._counts[run.place])
        return self._rate.exact * difference, sum(self._lengths(run.h, run.place))

    def _lengths(self, h: int, place: int) -> list[int]:
        return [self._number(h, k, self._last_rank_before(k, place), int(self._ends[place])) for k in self._sizes(h)]

    def _sizes(self, h: int) -> range:
        return range(max(self._lo, h + 1), self._hi + 1)

    def _last_rank_before(self, k: int, place: int) -> int:
        return max(int(self._starts[place]), k)

    @staticmethod
    def _number(h: int, k: int, a: int, b: int) -> int:
        # How many sets of size k have their last rank from a + 1 to b.
        return math.comb(b - h - 1, k - h) - math.comb(a - h - 1, k - h) if b > a else 0

    def member(self, run: MarginRun, draws: Draws) -> list[int]:
        """Return a uniform set of a run: its ranks from zero, in ascending order."""
        h = run.h
        if run.place is None:
            return list(range(h))
        ends = list(accumulate(self._lengths(h, run.place)))
        index = draws.index(ends[-1])
        which = bisect_right(ends, index)
        k = self._sizes(h)[which]
        index -= ends[which - 1] if which else 0
        a = self._last_rank_before(k, run.place)
        last = (
            a
            + 1
            + bisect_right(range(a + 1, int(self._ends[run.place]) + 1), index, key=lambda t: self._number(h, k, a, t))
        )
        between = islice(draws.order(last - h - 2), k - h - 1)
        return sorted([*range(h), *(h + 1 + rank for rank in between), last - 1])


class _Own:
    # The runs of one h, or the prefixes, by their place in a part.

    def __init__(self, h: int | None, places: Positions) -> None:
        self._h, self._places = h, places

    def __getitem__(self, index: int) -> MarginRun:
        place = int(self._places[index])
        return MarginRun(place, None) if self._h is None else MarginRun(self._h, place)
