"""What is kept of a person who has too much: a uniform subset of their values, rows or groups, anew in each call."""

from itertools import combinations

import numpy as np
import pytest

from tests.statistical.goodness import assert_fits, assert_rejected
from tests.tables.looking import counts, opened, places, tallied

FOUR = range(4)


def values(engine, people, most):
    """All values of all people are different candidates."""
    rows = {"who": np.repeat(np.arange(people), 4), "x": np.arange(4 * people)}
    found = counts(opened(rows, engine, person="who"), "x", range(4 * people), most)
    return np.array(found).reshape(people, 4)


def values_in_groups(engine, people, most):
    """The same four candidates for all, and each person is a group."""
    rows = {"who": np.repeat(np.arange(people), 4), "x": [*FOUR] * people}
    groups = opened(rows, engine, person="who").group_by("who", groups=range(people))
    return np.array(counts(groups, "x", FOUR, most))


def found_values(engine, people, most):
    """All values of all people are different, and nobody has listed them. The tally is seen in DuckDB only."""
    if engine == "spark":
        pytest.skip("the tally stays in Spark")
    rows = {"who": np.repeat(np.arange(people), 4), "x": np.arange(4 * people)}
    found = tallied(opened(rows, engine, person="who"), "x", max_values=most)
    return np.array([value in found for value in range(4 * people)]).reshape(people, 4)


def rows_of_people(engine, people, most):
    """All rows of all people are at different places."""
    rows = {"who": np.repeat(np.arange(people), 4), "x": np.arange(4 * people)}
    found = places(opened(rows, engine, person="who"), "x", 0, 4 * people, max_rows=most)
    assert {number for *_, number in found} == {1}
    kept = np.zeros(4 * people, bool)
    kept[[place for place, *_ in found]] = True
    return kept.reshape(people, 4)


def groups(engine, people, most):
    """Everybody is in all four groups."""
    rows = {"who": np.repeat(np.arange(people), 4), "g": [*FOUR] * people}
    table = opened(rows | {"x": rows["who"]}, engine, person="who").group_by("g", groups=FOUR, max_groups=most)
    return np.array(counts(table, "x", range(people))).T


def combinations_of_columns(engine, people, most):
    """Everybody is in all four combinations."""
    rows = {"who": np.repeat(np.arange(people), 4), "g": list("aabb") * people, "h": [0, 1, 0, 1] * people}
    table = opened(rows | {"x": rows["who"]}, engine, person="who")
    grouped = table.group_by(["g", "h"], groups={"g": ["a", "b"], "h": [0, 1]}, max_groups=most)
    return np.array(counts(grouped, "x", range(people))).T


KINDS = [values, values_in_groups, found_values, rows_of_people, groups, combinations_of_columns]
named = pytest.mark.parametrize("kept", KINDS, ids=lambda kind: kind.__name__)


@named
@pytest.mark.parametrize("most", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_a_person_keeps_a_uniform_subset(engine, kept, most):
    every = list(combinations(FOUR, most))
    found = [tuple(np.flatnonzero(own).tolist()) for own in kept(engine, 4_000, most)]
    assert set(map(len, found)) == {most}
    numbers, uniform = [found.count(subset) for subset in every], np.full(len(every), 1 / len(every))
    assert_fits(numbers, uniform)
    bent = np.array([2.0 if 0 in subset else 1.0 for subset in every])
    assert_rejected(numbers, bent / bent.sum(), truth=uniform)


@named
def test_each_call_keeps_anew(engine, kept):
    """The same subset for 100 people twice has probability 2**-200."""
    assert (kept(engine, 100, 1) != kept(engine, 100, 1)).any()


@named
def test_a_limit_that_nobody_reaches_changes_nothing(engine, kept):
    assert kept(engine, 9, 4).all()
    assert kept(engine, 9, 10**9).all()
