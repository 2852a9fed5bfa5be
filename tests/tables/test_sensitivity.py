"""The derived sensitivities, by brute force: one individual is changed in every way, and every score is looked at.

The scores are those of a plain model, which is itself compared with the engine on random tables. A row is a pair of a
group and a value; an individual is a tuple of rows.
"""

import random
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import pytest

from dpselect.mechanisms.parameters import Neighbours, change_by_addition, of_counts, of_cuts, of_quantile
from dpselect.questions.methods import Margin, NoisyCounts, OneShot, Peel, Set
from tests.tables.looking import counts, middles, opened, quantile_scores, standings

CANDIDATES = (0, 1, 2)
VALUES = (0, 1, 2, None, -4, 7)  # missing, and what is no candidate: outside of the range of a quantile
LEVELS = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(1, 3), Fraction(3, 5)]
BOTH = list(Neighbours)
ABSENT = ()


# The model.


def count_scores(individuals):
    return tuple(sum(any(value == c for value in rows) for rows in individuals) for c in CANDIDATES)


def clamped(rows):
    return [min(max(value, CANDIDATES[0]), CANDIDATES[-1]) for value in rows if value is not None]


def standing(rows):
    """Where an individual stands: at a median of the clamped values, of two middle ones at the lower one."""
    return middles(clamped(rows))[:1]


def level_scores(individuals, level, standing=standing):
    return scores_of_places([place for rows in individuals for place in standing(rows)], level)


def scores_of_places(places, level):
    a, b = level.numerator, level.denominator
    scores = []
    for candidate in CANDIDATES:
        below, at = sum(p < candidate for p in places), sum(p == candidate for p in places)
        above = len(places) - below - at
        scores.append(-max(0, (b - a) * below - a * (at + above), a * above - (b - a) * (below + at)))
    return tuple(scores)


def individuals_of(kinds, most):
    """Every individual with at most so many rows of these kinds."""
    return [rows for size in range(most + 1) for rows in combinations_with_replacement(kinds, size)]


@pytest.mark.parametrize("person", ["who", None])
def test_the_model_has_the_scores_of_the_engine(person):
    generator = random.Random(person)
    for _ in range(12):
        most = 3 if person else 1
        table = [
            tuple(generator.choices(VALUES, k=generator.randrange(1, most + 1))) for _ in range(generator.randrange(7))
        ]
        rows = [(who, value) for who, own in enumerate(table) for value in own] + [(None, 1)] * (person is not None)
        generator.shuffle(rows)
        columns = {"who": [who for who, _ in rows], "x": [value for _, value in rows]}
        found = opened(columns, person=person, types={"x": "int64", "who": "int64"})
        assert tuple(counts(found, "x", CANDIDATES)) == count_scores(table)
        for level in LEVELS:
            possible = [scores_of_places(places, level) for places in standings(map(clamped, table))]
            assert tuple(quantile_scores(found, "x", level, lower=0, upper=2)) in possible


# One individual is changed in every way.


def changes(neighbours, most_rows):
    """What one individual was and becomes."""
    every = individuals_of(VALUES, most_rows)
    if neighbours is Neighbours.ADD_REMOVE:
        return [pair for rows in every for pair in ((ABSENT, rows), (rows, ABSENT))]
    return list(product(every[1:], repeat=2))  # also those without any known value


def other_people(most_rows):
    """Random small tables, and large one-sided ones, in which scores have room to move."""
    generator = random.Random(most_rows)
    every = individuals_of(VALUES, most_rows)
    small = [tuple(generator.choices(every, k=size)) for size in (0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7)]
    return [*small, *(((place,),) * size for place in CANDIDATES for size in (12, 25))]


def differences(score, neighbours, most_rows):
    """All changes of the scores, as vectors."""
    for others in other_people(most_rows):
        known = cache(lambda rows, others=others: score((*others, rows)))
        for before, after in changes(neighbours, most_rows):
            yield [new - old for old, new in zip(known(before), known(after), strict=True)]


@pytest.mark.parametrize("most_rows", [1, 2], ids=["rows", "people"])
@pytest.mark.parametrize("neighbours", BOTH)
def test_counts_move_as_derived(neighbours, most_rows):
    bound = of_counts(neighbours)
    moved = list(differences(count_scores, neighbours, most_rows))
    assert max(abs(d) for vector in moved for d in vector) == bound.largest_change
    one_direction = all(min(vector) >= 0 or max(vector) <= 0 for vector in moved)
    assert one_direction == bound.monotonic


# What a top-k scores. `tests/top_k/test_theorems.py` enumerates all people for these ranges of sums and margins.


@pytest.mark.parametrize("most_values", [1, 2, 3, None])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("neighbours", BOTH)
def test_a_top_k_of_four_claims_what_the_theorems_state(neighbours, k, most_values):
    added, most = neighbours is Neighbours.ADD_REMOVE, most_values or 4
    factor = 1 if added else 2
    assert Set(k, 4, most_values).claim(added).score_range == factor * min(most, k, 4 - k)
    assert Margin(k, 4, least=1).claim(added).score_range == factor * 2
    assert NoisyCounts(k, 4, most_values).claim(added).score_range == factor * most
    for kind in (OneShot, Peel):
        claim = kind(k, 4, most_values).claim(added)
        assert (claim.sensitivity, claim.monotonic, claim.score_range) == (1, added, factor)


@pytest.mark.parametrize("most_rows", [1, 2], ids=["rows", "people"])
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_quantiles_move_as_derived(level, neighbours, most_rows):
    bound = of_quantile(level, neighbours, in_groups=False)
    moved = list(differences(lambda table: level_scores(table, level), neighbours, most_rows))
    assert max(abs(d) for vector in moved for d in vector) == bound.largest_change
    one_direction = all(min(vector) >= 0 or max(vector) <= 0 for vector in moved)
    assert not one_direction
    assert not bound.monotonic


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_quantiles_of_rows_move_as_derived(level, neighbours):
    """People who count with two rows each."""
    bound = of_quantile(level, neighbours, in_groups=False, rows=2)
    moved = list(differences(lambda table: level_scores(table, level, clamped), neighbours, 2))
    assert max(abs(d) for vector in moved for d in vector) == bound.largest_change
    assert not bound.monotonic


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_the_unit_of_cuts_makes_them_as_sensitive_as_quantiles_in_groups(level, neighbours, rows):
    together = of_cuts(neighbours, rows=rows)
    single = of_quantile(level, neighbours, in_groups=True, rows=rows)
    assert together.largest_change * change_by_addition(level) == single.largest_change
    assert together.monotonic == single.monotonic
