"""Small worlds in exact arithmetic: people, histograms, sets and their scores, and the laws over them, in Fractions.

A mechanism at rate c is given by `base`, the rational that takes the place of exp(-c). So a score that is g below the
best has heads with probability base ** g, a loss of epsilon = range * c is a ratio of base ** -range, and nothing is
rounded. Nothing here is shared with dpselect.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, pairwise, permutations, product

Counts = tuple[int, ...]
Items = tuple[int, ...]
Score = Callable[[Counts, Items], int]
Law = Callable[[tuple[Fraction, ...]], tuple[Fraction, ...]]


# People and tables.


def people(items: int, most: int) -> list[Counts]:
    """What a person may have: one or none of each item, and at most `most` items."""
    return [person for person in product((0, 1), repeat=items) if sum(person) <= most]


def pairs_of_people(items: int, most: int, *, replace: bool) -> list[tuple[Counts, Counts]]:
    """What differs between neighbours: a person and nobody, or a person and another."""
    persons = people(items, most)
    return list(product(persons, persons)) if replace else [(person, (0,) * items) for person in persons]


def histograms(items: int, highest: int) -> Iterator[Counts]:
    """All counts up to a highest one, in falling order: the names of the items do not matter."""
    return combinations_with_replacement(range(highest, -1, -1), items)


def joined(counts: Counts, person: Counts) -> Counts:
    return tuple(count + own for count, own in zip(counts, person, strict=True))


# Sets and their scores.


def sets(items: int, smallest: int, largest: int | None = None) -> list[Items]:
    """All sets of these sizes."""
    sizes = range(smallest, (largest or smallest) + 1)
    return [chosen for size in sizes for chosen in combinations(range(items), size)]


def total(counts: Counts, chosen: Items) -> int:
    return sum(counts[item] for item in chosen)


def margin(counts: Counts, chosen: Items) -> int:
    """The smallest count inside minus the largest one outside."""
    outside = max(count for item, count in enumerate(counts) if item not in chosen)
    return min(counts[item] for item in chosen) - outside


def truncated(counts: Counts, chosen: Items) -> int:
    """The score of the canonical mechanism: the margin, but zero for a best set."""
    return min(0, margin(counts, chosen))


def score_range(
    score: Score, candidates: Sequence[Items], tables: Iterable[Counts], pairs: Sequence[tuple[Counts, Counts]]
) -> tuple[int, int]:
    """The largest change of a score, and the largest change of a difference of two, between neighbours."""
    change = spread = 0
    scores = cache(lambda counts: tuple(score(counts, chosen) for chosen in candidates))
    for table in tables:
        for one, other in pairs:
            moves = [a - b for a, b in zip(scores(joined(table, one)), scores(joined(table, other)), strict=True)]
            change = max(change, *map(abs, moves))
            spread = max(spread, max(moves) - min(moves))
    return change, spread


# Laws: from probabilities of heads to probabilities of being chosen.


def heads(scores: Sequence[int], base: Fraction) -> tuple[Fraction, ...]:
    best = max(scores)
    return tuple(base ** (best - score) for score in scores)


def times_tail(polynomial: list[Fraction], own: Fraction) -> list[Fraction]:
    """The polynomial times 1 - own t; coefficients from the constant on."""
    shifted = [Fraction(0), *polynomial]
    return [a - own * b for a, b in zip([*polynomial, Fraction(0)], shifted, strict=True)]


def all_tails(coins: Iterable[Fraction]) -> list[Fraction]:
    """The product of the 1 - p t."""
    polynomial = [Fraction(1)]
    for own in coins:
        polynomial = times_tail(polynomial, own)
    return polynomial


def without(polynomial: list[Fraction], own: Fraction) -> list[Fraction]:
    """The polynomial divided by 1 - own t, which is one of its factors."""
    quotient, divided = Fraction(0), []
    for coefficient in polynomial[:-1]:
        quotient = coefficient + own * quotient
        divided.append(quotient)
    return divided


def moment(polynomial: Sequence[Fraction], power: int = 0) -> Fraction:
    """The integral of the polynomial times t ** power over [0, 1]."""
    return sum((c / (k + power + 1) for k, c in enumerate(polynomial)), Fraction(0))


@cache
def flip_pmf(coins: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Permute-and-flip, by the integral of Lemma 2."""
    everyone = all_tails(coins)
    by_coin = {own: own * moment(without(everyone, own)) for own in set(coins)}
    return tuple(by_coin[own] for own in coins)


@cache
def softmax(coins: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """The exponential mechanism."""
    everyone = sum(coins)
    return tuple(own / everyone for own in coins)


LAWS = [flip_pmf, softmax]


def largest_ratio(
    law: Law,
    score: Score,
    candidates: Sequence[Items],
    tables: Iterable[Counts],
    pairs: Sequence[tuple[Counts, Counts]],
    base: Fraction,
) -> Fraction:
    """The largest ratio of the probabilities of one set between neighbours, in either direction."""

    @cache
    def probabilities(counts: Counts) -> tuple[Fraction, ...]:
        return law(heads([score(counts, chosen) for chosen in candidates], base))

    worst = Fraction(1)
    for table in tables:
        for one, other in pairs:
            here, there = probabilities(joined(table, one)), probabilities(joined(table, other))
            worst = max(worst, *(max(a / b, b / a) for a, b in zip(here, there, strict=True)))
    return worst


# The order of the sets of one size: item by item, in the order of falling counts.


def up_sets(candidates: Sequence[Items]) -> list[list[int]]:
    """All sets of candidates that hold, with a candidate, each one whose items come no earlier, one by one."""
    above = [
        frozenset(i for i, other in enumerate(candidates) if all(a <= b for a, b in zip(own, other, strict=True)))
        for own in candidates
    ]
    found = fresh = {frozenset()}
    while fresh:
        fresh = {old | more for old in fresh for more in above} - found
        found = found | fresh
    return [sorted(members) for members in found]


# One shot.


def one_shot_pmf(coins: Sequence[Fraction], size: int) -> dict[Items, Fraction]:
    """The order of the first arrivals, each uniform on [0, 1/p]: integrals of polynomials from cell to cell."""
    edges = [Fraction(0), *sorted({1 / own for own in coins})]
    cells = list(pairwise(edges))

    def probability(order: Items) -> Fraction:
        density = [[Fraction(1)] for _ in cells]  # that those before have arrived, in their order
        for place, item in enumerate(order, start=1):
            density = [
                [coins[item] * c for c in polynomial] if right <= 1 / coins[item] else [Fraction(0)]
                for polynomial, (_, right) in zip(density, cells, strict=True)
            ]
            if place < size:
                density = running_integral(density, cells)
        for item in set(range(len(coins))) - set(order):
            density = [
                times_tail(polynomial, coins[item]) if right <= 1 / coins[item] else [Fraction(0)]
                for polynomial, (_, right) in zip(density, cells, strict=True)
            ]
        return value_at(running_integral(density, cells)[-1], edges[-1])

    return {order: probability(order) for order in permutations(range(len(coins)), size)}


def running_integral(
    density: Sequence[Sequence[Fraction]], cells: Sequence[tuple[Fraction, Fraction]]
) -> list[list[Fraction]]:
    """The integral from zero on, as a polynomial in each cell."""
    result, before = [], Fraction(0)
    for polynomial, (left, right) in zip(density, cells, strict=True):
        raised = [Fraction(0), *(c / (k + 1) for k, c in enumerate(polynomial))]
        raised[0] = before - value_at(raised, left)
        result.append(raised)
        before = value_at(raised, right)
    return result


def value_at(polynomial: Sequence[Fraction], place: Fraction) -> Fraction:
    return sum((c * place**k for k, c in enumerate(polynomial)), Fraction(0))


def peeling_pmf(coins: Sequence[Fraction], size: int, law: Law) -> dict[Items, Fraction]:
    """One selection after the other, each among those that are left."""

    def probability(order: Items) -> Fraction:
        left, result = list(range(len(coins))), Fraction(1)
        for item in order:
            best = max(coins[s] for s in left)
            result *= law(tuple(coins[s] / best for s in left))[left.index(item)]
            left.remove(item)
        return result

    return {order: probability(order) for order in permutations(range(len(coins)), size)}


# Coins for the sets.


def coin_sets(odds: Sequence[Fraction]) -> dict[Items, Fraction]:
    """The probability of each set of heads, for independent coins with these odds."""
    law = {}
    for flags in product((False, True), repeat=len(odds)):
        chosen = tuple(item for item, flag in enumerate(flags) if flag)
        law[chosen] = math.prod((w if flag else Fraction(1)) / (1 + w) for w, flag in zip(odds, flags, strict=True))
    return law
