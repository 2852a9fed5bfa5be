"""Small worlds of several quantiles: people at known places, the recursion written plainly, and laws in Fractions.

A place is a value times the number of sub-places plus a sub-place. Epsilon is a number of steps, and a step is a
rational `odds`, which takes the place of exp(-epsilon / steps). So every probability is rational, and a loss of
epsilon is a ratio of odds ** -steps. The recursion here shares no code with dpselect.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product
from unittest.mock import patch

import numpy as np

from dpselect.mechanisms.parameters import Neighbours, of_quantile
from dpselect.questions import splitting
from dpselect.questions.rows import Places
from tests.seam import BranchingDraws, distribution

Table = tuple[int, ...]  # the places of the people, in order
Law = Callable[[tuple[Fraction, ...]], tuple[Fraction, ...]]
HALVES = {m: [Fraction(i, m + 1) for i in range(1, m + 1)] for m in (1, 2, 3, 7)}


def tables(places: int, people: int) -> Iterator[Table]:
    """All tables of so many people."""
    return combinations_with_replacement(range(places), people)


def joined(table: Table, *others: int) -> Table:
    return tuple(sorted((*table, *others)))


# What the levels within parts are, and how many steps a score is worth.


def depths(count: int) -> int:
    return math.ceil(math.log2(count + 1))


def inner_levels(levels: Sequence[Fraction], below: Fraction = Fraction(0), above: Fraction = Fraction(1)) -> set:
    """The levels within parts that the recursion asks for."""
    if not levels:
        return set()
    middle = len(levels) // 2
    own = {(levels[middle] - below) / (above - below)}
    lower = inner_levels(levels[:middle], below, levels[middle])
    return own | lower | inner_levels(levels[middle + 1 :], levels[middle], above)


@dataclass(frozen=True)
class Price:
    """Epsilon in steps, and the steps of a score of one, for each level within a part."""

    steps: int
    of_level: dict[Fraction, int]

    def odds(self, epsilon: float = 1.0) -> Fraction:
        """A rational step, for about this epsilon."""
        return Fraction(math.exp(-epsilon / self.steps)).limit_denominator(60 + self.steps)

    def times(self, factor: int) -> "Price":
        """A mistake: the same epsilon is stated, but each score counts more."""
        return Price(self.steps, {level: factor * steps for level, steps in self.of_level.items()})

    def drawn_at(self, other: "Price") -> "Price":
        """A mistake: this epsilon is stated, but the rates are those that another price allows for the same epsilon."""
        common = math.lcm(self.steps, other.steps)
        factor = common // other.steps
        return Price(common, {level: factor * steps for level, steps in other.of_level.items()})


def price(levels: Sequence[Fraction], neighbours: Neighbours, rows: int = 1) -> Price:
    """An equal share for each depth, and the rate that the sensitivity in groups allows, divided by the rows."""
    ranges = {
        level: 2 * rows * of_quantile(level, neighbours, in_groups=True).largest_change
        for level in inner_levels(levels)
    }
    common = math.lcm(*ranges.values())
    return Price(depths(len(levels)) * common, {level: common // own for level, own in ranges.items()})


# The recursion, written plainly.


@dataclass(frozen=True, eq=False)
class Splits:
    """The law of the recursion for given places."""

    levels: Sequence[Fraction]
    values: int
    subs: int
    price: Price
    odds: Fraction
    law: Law

    @property
    def places(self) -> int:
        return self.values * self.subs

    @cached_property
    def _known(self) -> dict:
        return {}

    def choices(self, table: Table, low: int, high: int, level: Fraction, *, last: bool) -> dict[int, Fraction]:
        """The probability of each cut from `low` to `high`, or of each value if this is the last level of a part."""
        key = table, low, high, level, last
        if key not in self._known:
            a, b, n = level.numerator, level.denominator, len(table)
            if last:
                stand = [place // self.subs for place in table]
                options = range(low // self.subs, high // self.subs + 1)
                below = [sum(own < option for own in stand) for option in options]
                upto = [sum(own <= option for own in stand) for option in options]
                losses = [max(0, b * j - a * n, a * n - b * k) for j, k in zip(below, upto, strict=True)]
            else:
                options = range(low, high + 1)
                losses = [abs(b * sum(place < option for place in table) - a * n) for option in options]
            base = self.odds ** self.price.of_level[level]
            coins = [base ** (loss - min(losses)) for loss in losses]
            ranked = tuple(sorted(coins))
            shares = dict(zip(ranked, self.law(ranked), strict=True))
            self._known[key] = {option: shares[coin] for option, coin in zip(options, coins, strict=True)}
        return self._known[key]

    def outcomes(self, table: Table) -> dict[tuple[int, ...], Fraction]:
        """All cuts and values in the order of the levels, with their probabilities."""
        return dict(self._outcomes(table, 0, self.places - 1, self.levels, Fraction(0), Fraction(1)))

    def _outcomes(self, table, low, high, levels, below, above):
        if not levels:
            yield (), Fraction(1)
            return
        middle, cut_at, rest = _middle(levels, below, above)
        for own, share in self.choices(table, low, high, cut_at, last=len(levels) == 1).items():
            if len(levels) == 1:
                yield (own,), share
                continue
            lower, upper = _parts(table, own)
            for first, p in self._outcomes(lower, low, own, levels[:middle], below, levels[middle]):
                for second, q in self._outcomes(upper, own, high, rest, levels[middle], above):
                    yield (*first, own, *second), share * p * q

    def answers(self, outcome: tuple[int, ...]) -> tuple[int, ...]:
        """The values of cuts and values."""
        return tuple(
            own // self.subs if is_cut else own for own, is_cut in zip(outcome, cuts(len(outcome)), strict=True)
        )

    def largest_ratio(self, one: Table, other: Table) -> Fraction:
        """The largest quotient of the probabilities of an outcome. Given a cut, its two parts are independent."""
        return self._ratio(one, other, 0, self.places - 1, tuple(self.levels), Fraction(0), Fraction(1))

    def _ratio(self, one, other, low, high, levels, below, above):
        if not levels or one == other:
            return Fraction(1)
        key = one, other, low, high, levels
        if key not in self._known:
            middle, level, rest = _middle(levels, below, above)
            last = len(levels) == 1
            here, there = (self.choices(table, low, high, level, last=last) for table in (one, other))
            found = []
            for own, share in here.items():
                ratio = share / there[own]
                if not last:
                    (lower, upper), (under, over) = _parts(one, own), _parts(other, own)
                    ratio *= self._ratio(lower, under, low, own, levels[:middle], below, levels[middle])
                    ratio *= self._ratio(upper, over, own, high, rest, levels[middle], above)
                found.append(ratio)
            self._known[key] = max(found)
        return self._known[key]

    def loss(self, ratio: Fraction) -> float:
        """The privacy loss of a ratio, as a share of epsilon."""
        return math.log(ratio) / (-self.price.steps * math.log(self.odds))

    def is_within(self, ratio: Fraction) -> bool:
        """Whether the loss is at most epsilon, exactly."""
        return ratio <= self.odds**-self.price.steps


def _middle(levels, below, above):
    middle = len(levels) // 2
    return middle, (levels[middle] - below) / (above - below), levels[middle + 1 :]


def _parts(table: Table, cut: int) -> tuple[Table, Table]:
    return tuple(place for place in table if place < cut), tuple(place for place in table if place >= cut)


def cuts(count: int) -> list[bool]:
    """Which of the answers are cuts: all but the last level of each part."""
    if count <= 1:
        return [False] * count
    middle = count // 2
    return [*cuts(middle), True, *cuts(count - middle - 1)]


def mixture(splits: Splits, values: Sequence[int], *, shown: bool) -> dict[tuple[int, ...], Fraction]:
    """The law for people with these values, over all sub-places: of the outcomes, or of what is shown of them."""
    law: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    share = Fraction(1, splits.subs ** len(values))
    for subs in product(range(splits.subs), repeat=len(values)):
        places = (value * splits.subs + sub for value, sub in zip(values, subs, strict=True))
        for outcome, probability in splits.outcomes(joined((), *places)).items():
            law[splits.answers(outcome) if shown else outcome] += share * probability
    assert sum(law.values()) == 1
    return law


# The code of dpselect, with people at known places and few sub-places.


class Standing(splitting.People):
    """People whose sub-places are already drawn."""

    def __init__(self, table: Sequence[int]) -> None:
        values = np.array([place >> splitting._BITS for place in table], np.uint64)
        super().__init__(Places(values, np.zeros(len(table), np.bool_), np.ones(len(table), np.int64)), None)
        self._subs = np.array([place & (splitting.SUB_PLACES - 1) for place in table], np.uint32)
        self._drawn[:] = True


@contextmanager
def few_sub_places(bits: int, reach: int | None = None):
    """The grid has 2**bits sub-places for each value, and cuts look so many ranks far."""
    changes = {"_BITS": bits, "SUB_PLACES": 1 << bits}
    if reach is not None:
        changes["_reach"] = lambda *_: reach
    with patch.multiple(splitting, **changes):
        yield


def split_at(table: Sequence[int], size: int, levels, mechanism) -> tuple[list[int], list[int]]:
    """The answers for people at these places, and the cuts that were made, in order."""
    made: list[int] = []
    cut = splitting._cut

    def noted(*arguments):
        place, rank = cut(*arguments)
        made.append(place)
        return place, rank

    with patch.multiple(splitting, People=lambda *_: Standing(table), _cut=noted):
        return splitting.split_quantiles(None, size, levels, mechanism, None), made


class Exactly:
    """Stands for a mechanism: follows every candidate, with its exact probability."""

    def __init__(self, draws: BranchingDraws, law: Law, base: Fraction) -> None:
        self.draws, self.law, self.base = draws, law, base
        self.rate = Fraction(1)

    def select_runs(self, scores, lengths):
        expanded = [int(score) for score, m in zip(scores, lengths, strict=True) for _ in range(int(m))]
        return self._choose([max(expanded) - score for score in expanded])

    def select_bounded(self, bounds, lengths, distance):
        members = [(run, rank) for run, length in enumerate(lengths) for rank in range(length)]
        distances = [distance(*member) for member in members]
        assert all(own >= bounds[run] for own, (run, _) in zip(distances, members, strict=True))
        assert min(distances) == 0
        return members[self._choose(distances)]

    def _choose(self, distances):
        return self.draws.choose(self.law(tuple(self.base**own for own in distances)))


def law_of_the_code(splits: Splits, table: Table, reach: int | None = None) -> dict[tuple[int, ...], Fraction]:
    """What `split_quantiles` does with people at these places: all cuts and values, in the order of the levels."""

    def run(draws):
        answers, made = split_at(
            table,
            splits.values,
            splits.levels,
            lambda level: Exactly(draws, splits.law, splits.odds ** splits.price.of_level[level]),
        )
        places = iter(_in_order(made, len(answers)))
        return tuple(next(places) if is_cut else own for own, is_cut in zip(answers, cuts(len(answers)), strict=True))

    with few_sub_places((splits.subs - 1).bit_length(), reach):
        return distribution(run)


def _in_order(made: Sequence[int], count: int) -> list[int]:
    """The cuts in the order of the levels. They were made from the middle outward, lower parts first."""
    numbers = [0] * count
    left = iter(made)

    def visit(first: int, last: int) -> None:
        if last - first > 1:
            middle = (first + last) // 2
            numbers[middle] = next(left)
            visit(first, middle)
            visit(middle + 1, last)

    visit(0, count)
    return [number for number, is_cut in zip(numbers, cuts(count), strict=True) if is_cut]
