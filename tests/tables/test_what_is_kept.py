"""What is kept of a person who has too much: a uniform subset of their values, rows or groups, anew in each call.

How much it is follows from the limit and from what they have, and it depends on nobody else.
"""

import random
from collections import Counter
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


# Any rows: missing values and people, values and groups that nobody listed, and rows that are equal.

TYPES = {"who": "int64", "g": "string", "h": "int64", "x": "int64"}
LISTED, REST, GROUPS, PAIRS = [3, 0, 1, 50], "not listed", ["p", "q"], {"g": ["p", "q", "z"], "h": [1, 2]}


def counted(groups):
    """A list of counts, or one for each group, as numbers of (group, candidate)."""
    lists = groups if groups and isinstance(groups[0], list) else [groups]
    return Counter({(g, i): n for g, own in enumerate(lists) for i, n in enumerate(own) if n})


def placed(groups):
    lists = groups if groups and isinstance(groups[0], list) else [groups]
    return Counter({(g, *own): n for g, found in enumerate(lists) for *own, n in found})


def in_groups(table, most=2):
    return table.group_by("g", groups=GROUPS, max_groups=most)


def known(rows):
    return [x for _, _, x in rows if x is not None]


def listed(rows):
    return {x for x in known(rows) if x in LISTED}


def each_group(rows):
    return [[row for row in rows if row[0] == group] for group in GROUPS]


# What a table with a limit counts, and how much of it one person is, from their rows (g, h, x).
VIEWS = {
    "values": (lambda t, m: counted(counts(t, "x", LISTED, m)), lambda rows, m: min(m, len(listed(rows)))),
    "values and others": (
        lambda t, m: counted(counts(t, "x", LISTED, m, other=REST)),
        lambda rows, m: min(m, len({x if x in LISTED else REST for x in known(rows)})),
    ),
    "values in groups": (
        lambda t, m: counted(counts(in_groups(t), "x", LISTED, m)),
        lambda rows, m: sum(min(m, len(listed(own))) for own in each_group(rows)),
    ),
    "found values": (
        lambda t, m: Counter(tallied(t, "x", max_values=m)),
        lambda rows, m: min(m, len(set(known(rows)))),
    ),
    "rows": (lambda t, m: placed(places(t, "x", 0, 9, max_rows=m)), lambda rows, m: min(m, len(known(rows)))),
    "rows in groups": (
        lambda t, m: placed(places(in_groups(t), "x", 0, 9, max_rows=m)),
        lambda rows, m: sum(min(m, len(known(own))) for own in each_group(rows)),
    ),
    "middles": (lambda t, _: placed(places(t, "x", 0, 9)), lambda rows, _: bool(known(rows))),
    "middles in groups": (
        lambda t, m: placed(places(in_groups(t, m), "x", 0, 9)),
        lambda rows, m: min(m, sum(bool(known(own)) for own in each_group(rows))),
    ),
    "groups": (
        lambda t, m: counted(counts(in_groups(t, m), "g", GROUPS)),
        lambda rows, m: min(m, len({g for g, *_ in rows if g in GROUPS})),
    ),
    "groups of columns": (
        lambda t, m: counted(counts(t.group_by(["g", "h"], groups=PAIRS, max_groups=m), "h", [1, 2])),
        lambda rows, m: min(m, len({(g, h) for g, h, _ in rows if g in PAIRS["g"] and h in PAIRS["h"]})),
    ),
}


@pytest.mark.parametrize("most", [1, 2, 10**9])
@pytest.mark.parametrize("name", VIEWS)
def test_what_is_kept_of_a_person_is_their_own_matter(engine, name, most, monkeypatch):
    """With one salt, and in any order of the rows, a table counts the sum of what it counts of each person alone."""
    if engine == "spark" and name == "found values":
        pytest.skip("the tally stays in Spark")
    view, size = VIEWS[name]
    monkeypatch.setattr("os.urandom", lambda count: b"\x05" * count)
    draw, people = random.Random(f"{name} {most}"), range(8 if engine == "duckdb" else 3)
    pools = [[*people, None], ["p", "q", "z", "y", None], [1, 2, 3, None], [0, 1, 2, 3, 9, None]]
    rows = [tuple(map(draw.choice, pools)) for _ in range(70)]

    def seen(who):
        own = [row for row in rows if who in (None, row[0])]
        draw.shuffle(own)
        columns = dict(zip(TYPES, zip(*own, strict=True), strict=True))
        return view(opened(columns, engine, person="who", types=TYPES), most)

    alone = [seen(who) for who in people]
    assert [own.total() for own in alone] == [size([row[1:] for row in rows if row[0] == who], most) for who in people]
    assert seen(None) == sum(alone, Counter())
