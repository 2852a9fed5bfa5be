"""Several quantiles are private: every outcome of all depths, for all neighbours of small tables, in exact arithmetic.

The law of `split_quantiles` is followed through the code, for people at known places, and equals the recursion written
plainly (`small_splits`). The rates are those of `of_quantile(..., in_groups=True)` at epsilon / L for each of L depths.
An outcome is more than what is shown: it has the sub-places of the cuts, too. Mistakes in the price are found.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.mechanisms.parameters import Neighbours, of_quantile
from tests import reference
from tests.tables.small_splits import (
    HALVES,
    Splits,
    depths,
    inner_levels,
    joined,
    law_of_the_code,
    price,
    split_at,
    tables,
)
from tests.top_k.exact import flip_pmf, softmax

pytestmark = pytest.mark.slow

ADD_REMOVE, REPLACE = Neighbours
LAWS = pytest.mark.parametrize("law", [flip_pmf, softmax], ids=["permute-and-flip", "exponential"])
EPSILONS = [Fraction(1, 9), Fraction(99, 100)]  # a large one, and a small one, as the odds of a step
UNEVEN = [Fraction(1, 10), Fraction(1, 4), Fraction(9, 10)]


def world(levels, neighbours, law=flip_pmf, *, values=3, subs=2, rows=1, odds=None, mistake=None):
    """A grid of a few values, at about epsilon 1, and at the right price unless a mistake is made."""
    paid = price(levels, neighbours, rows)
    paid = paid if mistake is None else mistake(paid)
    return Splits(levels, values, subs, paid, paid.odds() if odds is None else odds, law)


def everybody(splits, people):
    """All tables of at most so many people."""
    return (table for count in range(people + 1) for table in tables(splits.places, count))


def pairs(splits, people, neighbours, rows=1):
    """All neighbours, in both directions: so many people, and one with at most so many rows, or one for another."""
    persons = [person for count in range(rows + 1) for person in tables(splits.places, count)]
    for table in everybody(splits, people):
        for one, other in itertools.permutations(persons, 2):
            if neighbours is REPLACE or not (one and other):
                yield joined(table, *one), joined(table, *other)


def worst(splits, neighbouring):
    return max(splits.largest_ratio(one, other) for one, other in neighbouring)


# The code and the recursion written plainly.

CHECKED = {  # the levels, sub-places of a value, people, and whether only one rank is looked at
    "one": (HALVES[1], 2, 4),
    "two": (HALVES[2], 2, 3),
    "three": (HALVES[3], 2, 3),
    "uneven": (UNEVEN, 2, 2),
    "seven": (HALVES[7], 2, 1),
    "two, finer": (HALVES[2], 4, 3),
    "three, finer": (HALVES[3], 4, 3),
    "uneven, more people": (UNEVEN, 2, 4),
    "seven, more people": (HALVES[7], 2, 3),
}


@LAWS
@pytest.mark.parametrize("case", CHECKED)
def test_the_code_has_the_law_of_the_recursion(case, law):
    """Also where only a few ranks are looked at, so that the runs of most cuts are only bounded."""
    levels, subs, people = CHECKED[case]
    splits = world(levels, ADD_REMOVE, law, subs=subs)
    for table in everybody(splits, people):
        reaches = [None, 1] if len(table) == 2 else [1 if len(table) > 2 else None]
        assert all(law_of_the_code(splits, table, reach=reach) == splits.outcomes(table) for reach in reaches)


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("levels", [HALVES[2], UNEVEN, HALVES[7]], ids=str)
def test_the_price_is_that_of_mechanisms(levels, neighbours, rows):
    """The steps of a score are the rate of a mechanism at epsilon / L, if epsilon is the number of all steps."""
    paid = price(levels, neighbours, rows)
    for level in inner_levels(levels):
        sensitivity = rows * of_quantile(level, neighbours, in_groups=True).largest_change
        mechanism = PermuteAndFlip(Fraction(paid.steps, depths(len(levels))), sensitivity=sensitivity)
        assert mechanism.rate == paid.of_level[level]


# All neighbours of small tables: how many other people there are, the largest loss as a share of epsilon, rounded down,
# and what else the world has.

SMALL = [
    *((ADD_REMOVE, HALVES[count], 4, reached, {}) for count, reached in ((1, 0.67), (2, 0.72), (3, 0.82), (7, 0.82))),
    *((REPLACE, HALVES[count], 3, reached, {}) for count, reached in ((1, 0.67), (2, 0.51), (3, 0.65), (7, 0.73))),
    *((relation, own, 3, 0.37, {"law": softmax}) for relation in Neighbours for own in (HALVES[3], UNEVEN)),
    (ADD_REMOVE, HALVES[3], 4, 0.82, {"subs": 4}),
    (ADD_REMOVE, HALVES[3], 6, 0.83, {}),
    (ADD_REMOVE, HALVES[3], 4, 0.90, {"values": 5}),
    (ADD_REMOVE, HALVES[3], 4, 0.93, {"values": 8, "subs": 1}),
    (ADD_REMOVE, HALVES[7], 3, 0.82, {"subs": 4}),
    (ADD_REMOVE, HALVES[2], 4, 0.7, {"values": 8, "subs": 1}),
    *((relation, HALVES[3], 3, 0, {"odds": odds}) for relation in Neighbours for odds in EPSILONS),
    # A person with two rows.
    (ADD_REMOVE, HALVES[2], 3, 0.66, {"rows": 2}),
    (ADD_REMOVE, HALVES[3], 3, 0.73, {"rows": 2}),
    (REPLACE, HALVES[2], 1, 0.42, {"rows": 2}),
    (REPLACE, HALVES[3], 2, 0.63, {"rows": 2}),
]


@pytest.mark.parametrize(
    ("neighbours", "levels", "people", "reached", "own"), SMALL, ids=lambda one: str(one).partition(" object at ")[0]
)
def test_no_neighbours_lose_more_than_epsilon(neighbours, levels, people, reached, own):
    splits = world(levels, neighbours, **own)
    ratio = worst(splits, pairs(splits, people, neighbours, own.get("rows", 1)))
    assert splits.is_within(ratio)
    assert splits.loss(ratio) > reached


@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_laws_of_the_code_are_private(neighbours):
    """Outcome by outcome, without the shortcut that the parts of a cut are independent."""
    splits = world(HALVES[3], neighbours)
    laws = {table: law_of_the_code(splits, table) for table in everybody(splits, 3)}
    ratio = max(
        laws[one][outcome] / laws[other][outcome]
        for one, other in pairs(splits, 2, neighbours)
        for outcome in laws[one]
    )
    assert ratio == worst(splits, pairs(splits, 2, neighbours))
    assert splits.is_within(ratio)


# Sub-places are drawn at random: the law of what is shown is a mixture.


# Mistakes in the price, and the loss that is found.


def paid_like_additions(count, right):
    return right.drawn_at(price(HALVES[count], ADD_REMOVE))


def paid_at_each_depth(count, right):
    return right.times(depths(count))


def paid_for_one_row(count, right):
    return right.times(2)


MISTAKES = [
    *((paid_like_additions, REPLACE, count, 3, 1, lost) for count, lost in ((2, 1.02), (3, 1.30), (7, 1.41))),
    *((paid_at_each_depth, ADD_REMOVE, count, 3, 1, lost) for count, lost in ((2, 1.26), (3, 1.58), (7, 2.53))),
    *((paid_for_one_row, ADD_REMOVE, count, 2, 2, lost) for count, lost in ((2, 1.16), (3, 1.43))),
    (paid_for_one_row, REPLACE, 3, 2, 2, 1.2),
]


@pytest.mark.parametrize(("mistake", "neighbours", "count", "people", "rows", "lost"), MISTAKES)
def test_a_mistake_in_the_price_is_found(mistake, neighbours, count, people, rows, lost):
    splits = world(HALVES[count], neighbours, rows=rows, mistake=lambda right: mistake(count, right))
    ratio = worst(splits, pairs(splits, people, neighbours, rows))
    assert not splits.is_within(ratio)
    assert splits.loss(ratio) > lost


def test_sub_places_of_row_numbers_are_not_private():
    """A removed row moves all rows after it. With sub-places that stay with their rows, the same tables are safe."""
    splits = world(HALVES[3], ADD_REMOVE)
    by_number, by_row = [], []
    numbered = (0, 1, 0, 1, 0)

    def table(values, subs):
        return joined((), *(splits.subs * value + sub for value, sub in zip(values, subs, strict=True)))

    for rows in itertools.product(range(splits.values), repeat=5):
        for gone in range(5):
            left = [*rows[:gone], *rows[gone + 1 :]]
            kept = [*numbered[:gone], *numbered[gone + 1 :]]
            by_number.append((table(rows, numbered), table(left, numbered[:4])))
            by_row.append((table(rows, numbered), table(left, kept)))
    both = [[*found, *((b, a) for a, b in found)] for found in (by_number, by_row)]
    assert splits.loss(worst(splits, both[0])) > 1.76
    assert splits.is_within(worst(splits, both[1]))


# In zCDP, a ledger counts L draws at epsilon / L. The laws are exact, and only the divergences are floats.

ORDERS = np.array([1.01, 1.5, 2.0, 5.0, 30.0])
KINDS = {"permute-and-flip": (PermuteAndFlip, flip_pmf), "exponential": (ExponentialMechanism, softmax)}


def largest_share(splits, kind, neighbouring):
    """The largest divergence of an order alpha, as a share of alpha rho."""
    laws = {}

    def law(table):
        if table not in laws:
            outcomes = splits.outcomes(table)
            laws[table] = np.log([float(outcomes[outcome]) for outcome in sorted(outcomes)])
        return laws[table]

    epsilon = -splits.price.steps * math.log(splits.odds)
    parts = depths(len(splits.levels))
    rho = parts * kind(epsilon / parts).guarantee.zcdp
    shares = []
    for one, other in neighbouring:
        p, q = law(one), law(other)
        powers = np.exp(np.outer(ORDERS, p) - np.outer(ORDERS - 1, q)).sum(axis=1)
        shares.append(np.log(powers) / (ORDERS - 1) / (ORDERS * rho))
    return np.max(shares)


# How many other people there are, and the largest share of rho that is lost with either mechanism, rounded down.
CASES = {
    (ADD_REMOVE, 2, 1): (3, 0.26, 0.49),
    (ADD_REMOVE, 3, 1): (3, 0.39, 0.75),
    (ADD_REMOVE, 3, 2): (2, 0.37, 0.73),
    (REPLACE, 2, 1): (3, 0.14, 0.29),
    (REPLACE, 3, 1): (2, 0.26, 0.53),
    (REPLACE, 2, 2): (1, 0.09, 0.17),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("neighbours", "count", "rows"), CASES)
def test_no_order_exceeds_rho(neighbours, count, rows, name):
    """Two or three levels, and a person with one row or with at most two."""
    people, *reached = CASES[neighbours, count, rows]
    kind, law = KINDS[name]
    splits = world(HALVES[count], neighbours, law, rows=rows)
    share = largest_share(splits, kind, pairs(splits, people, neighbours, rows))
    assert reached[list(KINDS).index(name)] < share <= 1


@pytest.mark.parametrize("name", KINDS)
def test_a_rate_that_is_too_large_exceeds_rho(name):
    """The price of an added person, paid for one who is replaced."""
    kind, law = KINDS[name]
    cheap = price(HALVES[3], ADD_REMOVE)
    splits = world(HALVES[3], REPLACE, law, mistake=lambda right: right.drawn_at(cheap))
    assert largest_share(splits, kind, pairs(splits, 2, REPLACE)) > 1.01


# Wide grids, through the code: nearly all of epsilon is lost, so no smaller price would do.

VALUES = 10**8 + 10**4 + 10**2
FIRST, SECOND, THIRD = 10**8, 10**8 + 10**4 - 5, VALUES - 5
BITS = 32


def crowd(value, people):
    return [(value << BITS) + 2**31 + i for i in range(people)]


class Followed:
    """Chooses a given position, and writes down its exact probability."""

    def __init__(self, kind, rate, position, found):
        self.kind, self.rate, self.position, self.found = kind, rate, position, found

    def select_runs(self, scores, lengths):
        runs = [(int(score), int(length)) for score, length in zip(scores, lengths, strict=True) if length]
        best = max(score for score, _ in runs)
        counts = Counter()
        for score, length in runs:
            counts[best - score] += length
        ends = itertools.accumulate(length for _, length in runs)
        own = next(best - score for (score, _), end in zip(runs, ends, strict=True) if self.position < end)
        losses = sorted(counts)
        exponents = [self.rate * loss for loss in losses]
        if self.kind is PermuteAndFlip:
            pmf = reference.flip_pmf_by_level([counts[loss] for loss in losses], exponents)
            self.found.append(pmf[losses.index(own)])
        else:
            weights = sum(counts[loss] * (-reference.ball(self.rate * loss)).exp() for loss in losses)
            self.found.append((-reference.ball(self.rate * own)).exp() / weights)
        return self.position


def log_probability(kind, neighbours, levels, table, positions):
    """The logarithm of the probability of these choices, from the middle outward and lower parts first."""
    found, left = [], iter(positions)

    def mechanism(level):
        sensitivity = of_quantile(level, neighbours, in_groups=True).largest_change
        real = kind(Fraction(1, depths(len(levels))), sensitivity=sensitivity)
        return Followed(kind, real.rate, next(left), found)

    split_at(sorted(table), VALUES, levels, mechanism)
    assert len(found) == len(levels)
    return sum((p.log() for p in found), arb(0))


CUT, NEXT = (FIRST + 5) << BITS, (SECOND + 5) << BITS
TOP = (VALUES - 1) << BITS
WIDE = {
    "three levels, one added": (
        ADD_REMOVE,
        HALVES[3],
        crowd(FIRST, 2) + crowd(SECOND, 1),
        ([], [TOP]),
        [CUT, 0, SECOND + 1 - (CUT >> BITS)],
        0.99,
    ),
    "seven levels, one added": (
        ADD_REMOVE,
        HALVES[7],
        crowd(FIRST, 4) + crowd(SECOND, 2) + crowd(THIRD, 1),
        ([], [TOP]),
        [CUT, 0, 0, 0, NEXT - CUT, 0, THIRD + 1 - (NEXT >> BITS)],
        0.97,
    ),
    "three levels, one replaced": (
        REPLACE,
        HALVES[3],
        crowd(FIRST, 2) + crowd(SECOND, 1),
        ([0], [TOP]),
        [CUT, FIRST + 1, SECOND + 1 - (CUT >> BITS)],
        0.99,
    ),
}


@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism], ids=lambda kind: kind.name)
@pytest.mark.parametrize("case", WIDE)
def test_on_a_wide_grid_nearly_all_of_epsilon_is_lost(case, kind):
    """Most cuts are below a crowd, and become worse, while the chosen ones become better: at each depth."""
    neighbours, levels, table, persons, positions, reached = WIDE[case]
    before, after = (log_probability(kind, neighbours, levels, table + own, positions) for own in persons)
    assert reached < after - before < 1
