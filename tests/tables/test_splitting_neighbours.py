"""Several quantiles are private: every outcome of all depths, for all neighbours of small tables, in exact arithmetic.

The law of `split_quantiles` is followed through the code, for people at known places, and equals the recursion written
plainly (`small_splits`). The rates are those of `of_quantile(..., in_groups=True)` at epsilon / L for each of L depths.
An outcome is more than what is shown: it has the sub-places of the cuts, too. Mistakes in the price are found.
"""

import itertools
from collections import Counter, defaultdict
from fractions import Fraction

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
UNEVEN = [Fraction(1, 10), Fraction(1, 4), Fraction(9, 10)]


def world(levels, neighbours, law=flip_pmf, *, values=3, subs=2, rows=1, mistake=None):
    """A grid of a few values, at about epsilon 1, and at the right price unless a mistake is made."""
    paid = price(levels, neighbours, rows)
    paid = paid if mistake is None else mistake(paid)
    return Splits(levels, values, subs, paid, paid.odds(), law)


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

CHECKED = {
    "one": (HALVES[1], 4),
    "two": (HALVES[2], 3),
    "three": (HALVES[3], 3),
    "uneven": (UNEVEN, 2),
    "seven": (HALVES[7], 1),
}


@LAWS
@pytest.mark.parametrize("case", CHECKED)
def test_the_code_has_the_law_of_the_recursion(case, law):
    """Also where only a few ranks are looked at, so that the runs of most cuts are only bounded."""
    levels, people = CHECKED[case]
    splits = world(levels, ADD_REMOVE, law)
    for table in everybody(splits, people):
        assert law_of_the_code(splits, table) == splits.outcomes(table)
        if len(table) > 1:
            assert law_of_the_code(splits, table, reach=1) == splits.outcomes(table)


MORE = [(HALVES[2], 4, 3), (HALVES[3], 4, 3), (UNEVEN, 2, 4), (HALVES[7], 2, 3)]


@pytest.mark.slow
@LAWS
@pytest.mark.parametrize(("levels", "subs", "people"), MORE, ids=str)
def test_the_code_has_the_law_of_the_recursion_for_more_people(levels, subs, people, law):
    splits = world(levels, ADD_REMOVE, law, subs=subs)
    for table in everybody(splits, people):
        assert law_of_the_code(splits, table, reach=1 if len(table) > 2 else None) == splits.outcomes(table)


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


# All neighbours of small tables. The second number is the largest loss, as a share of epsilon, rounded down.

SMALL = {
    (ADD_REMOVE, 1): (4, 0.67),
    (ADD_REMOVE, 2): (4, 0.72),
    (ADD_REMOVE, 3): (4, 0.82),
    (ADD_REMOVE, 7): (4, 0.82),
    (REPLACE, 1): (3, 0.67),
    (REPLACE, 2): (3, 0.51),
    (REPLACE, 3): (3, 0.65),
    (REPLACE, 7): (3, 0.73),
}


@pytest.mark.parametrize(("neighbours", "count"), SMALL)
def test_no_neighbours_lose_more_than_epsilon(neighbours, count):
    people, reached = SMALL[neighbours, count]
    splits = world(HALVES[count], neighbours)
    ratio = worst(splits, pairs(splits, people, neighbours))
    assert splits.is_within(ratio)
    assert splits.loss(ratio) > reached


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("levels", [HALVES[3], UNEVEN], ids=str)
def test_the_exponential_mechanism_loses_less(levels, neighbours):
    splits = world(levels, neighbours, softmax)
    ratio = worst(splits, pairs(splits, 3, neighbours))
    assert splits.is_within(ratio)
    assert splits.loss(ratio) > 0.37


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "values", "subs", "people", "reached"),
    [
        (3, 3, 4, 4, 0.82),
        (3, 3, 2, 6, 0.83),
        (3, 5, 2, 4, 0.90),
        (3, 8, 1, 4, 0.93),
        (7, 3, 4, 3, 0.82),
        (2, 8, 1, 4, 0.7),
    ],
)
def test_no_neighbours_of_larger_tables_lose_more_than_epsilon(count, values, subs, people, reached):
    splits = world(HALVES[count], ADD_REMOVE, values=values, subs=subs)
    ratio = worst(splits, pairs(splits, people, ADD_REMOVE))
    assert splits.is_within(ratio)
    assert splits.loss(ratio) > reached


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("odds", [Fraction(1, 9), Fraction(99, 100)], ids=str)
def test_large_and_small_epsilons(odds, neighbours):
    paid = price(HALVES[3], neighbours)
    splits = Splits(HALVES[3], 3, 2, paid, odds, flip_pmf)
    assert splits.is_within(worst(splits, pairs(splits, 3, neighbours)))


# Sub-places are drawn at random: the law of what is shown is a mixture.


def mixture(splits, values, *, shown):
    """The law for people with these values, over all sub-places: of the outcomes, or of what is shown of them."""
    law, share = defaultdict(Fraction), Fraction(1, splits.subs ** len(values))
    for subs in itertools.product(range(splits.subs), repeat=len(values)):
        places = (value * splits.subs + sub for value, sub in zip(values, subs, strict=True))
        for outcome, probability in splits.outcomes(joined((), *places)).items():
            law[splits.answers(outcome) if shown else outcome] += share * probability
    assert sum(law.values()) == 1
    return law


@pytest.mark.parametrize("subs", [2, 4])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_with_random_sub_places_less_is_lost(neighbours, subs):
    splits, people = world(HALVES[3], neighbours, subs=subs), {2: 4, 4: 2}[subs]
    everyone = [table for count in range(people + 1) for table in tables(splits.values, count)]
    losses = []
    for shown in (False, True):
        laws = {table: mixture(splits, table, shown=shown) for table in everyone}
        nearby = [
            (joined(table, one), table if other is None else joined(table, other))
            for table in everyone
            if len(table) < people
            for one in range(splits.values)
            for other in (range(splits.values) if neighbours is REPLACE else [None])
        ]
        ratio = max(
            max(p / laws[other][outcome], laws[other][outcome] / p)
            for one, other in nearby
            for outcome, p in laws[one].items()
        )
        assert splits.is_within(ratio)
        losses.append(splits.loss(ratio))
    assert 0.4 < losses[1] < losses[0] < 0.71


# A person with several rows.


@pytest.mark.parametrize(
    ("neighbours", "count", "people", "reached"),
    [
        (ADD_REMOVE, 2, 3, 0.66),
        (ADD_REMOVE, 3, 3, 0.73),
        (REPLACE, 2, 1, 0.42),
        pytest.param(REPLACE, 3, 2, 0.63, marks=pytest.mark.slow),
    ],
)
def test_a_person_with_two_rows_loses_at_most_epsilon(neighbours, count, people, reached):
    splits = world(HALVES[count], neighbours, rows=2)
    ratio = worst(splits, pairs(splits, people, neighbours, rows=2))
    assert splits.is_within(ratio)
    assert splits.loss(ratio) > reached


# Mistakes.


@pytest.mark.parametrize(("count", "lost"), [(2, 1.02), (3, 1.30), (7, 1.41)])
def test_the_rate_of_additions_is_too_large_for_replacements(count, lost):
    cheap = price(HALVES[count], ADD_REMOVE)
    splits = world(HALVES[count], REPLACE, mistake=lambda right: right.drawn_at(cheap))
    ratio = worst(splits, pairs(splits, 3, REPLACE))
    assert not splits.is_within(ratio)
    assert splits.loss(ratio) > lost


@pytest.mark.parametrize(("count", "lost"), [(2, 1.26), (3, 1.58), (7, 2.53)])
def test_all_depths_together_cost_epsilon(count, lost):
    splits = world(HALVES[count], ADD_REMOVE, mistake=lambda right: right.times(depths(count)))
    ratio = worst(splits, pairs(splits, 3, ADD_REMOVE))
    assert not splits.is_within(ratio)
    assert splits.loss(ratio) > lost


@pytest.mark.parametrize(
    ("neighbours", "count", "lost"),
    [(ADD_REMOVE, 2, 1.16), (ADD_REMOVE, 3, 1.43), pytest.param(REPLACE, 3, 1.2, marks=pytest.mark.slow)],
)
def test_each_row_of_a_person_counts(neighbours, count, lost):
    splits = world(HALVES[count], neighbours, rows=2, mistake=lambda right: right.times(2))
    ratio = worst(splits, pairs(splits, 2, neighbours, rows=2))
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
