"""With what a person counts in a quantile: at a middle one of their values, or with some of their rows, at random."""

import random
from collections import Counter

import numpy as np
import pytest

from tests import spark
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.tables.looking import middles, opened, places, standings

NAN = float("nan")
TYPES = {"who": "int64", "g": "string", "x": "int64"}
PEOPLE = 12_000
FAIR, BENT = [0.5, 0.5], [0.56, 0.44]


def numbers(table, *ends, **options):
    """How many individuals stand at each place that somebody stands at."""
    return {place: number for place, _, number in places(table, "x", *ends, **options)}


def people_with(own, people=PEOPLE):
    """So many people, each with these values."""
    return {"who": np.repeat(np.arange(people), len(own)), "x": list(own) * people}


# At the median of their values.

PAIRS = {
    "two values": ([0, 9], (0, 9), None, (0, 9)),
    "four values": ([3, 0, 7, 9], (0, 9), None, (3, 7)),
    "between candidates": ([3, 7], (0, 9), 2, (1, 3)),
    "negative values": ([-7, -3], (-9, 9), None, (2, 6)),
    "beyond the range": ([-100, 100], (0, 9), None, (0, 9)),
    "the whole type": ([-(2**63), 2**63 - 1], (None, None), None, (0, 2**64 - 1)),
    "items of 65 bits": ([-(2**63), 2**63 - 1], (-(2**63), 2**63 - 1), 3, (0, (2**64 - 1) // 3)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_which_of_two_middle_values_it_is_is_a_fair_coin(engine, name):
    own, ends, step, expected = PAIRS[name]
    found = numbers(opened(people_with(own), engine, person="who"), *ends, step)
    assert set(found) <= set(expected)
    heads = [found[place] for place in expected]
    assert sum(heads) == PEOPLE
    assert_fits(heads, FAIR)
    assert_rejected(heads, BENT, truth=FAIR)


def test_people_flip_coins_of_their_own(engine):
    """What two of them have is a uniform pair: each person's two values are different from all others."""
    rows = {"who": np.repeat(np.arange(PEOPLE), 2), "x": np.arange(2 * PEOPLE)}
    found = numbers(opened(rows, engine, person="who"), 0, 2 * PEOPLE)
    bits = np.array([person * 2 + 1 in found for person in range(PEOPLE)]).reshape(-1, 2)
    assert len(found) == PEOPLE
    pairs, uniform = np.bincount(bits @ [2, 1], minlength=4), np.full(4, 0.25)
    assert_fits(pairs, uniform)
    assert_rejected(pairs, [0.35, 0.15, 0.15, 0.35], truth=uniform)


def test_each_question_flips_anew(engine):
    """The same bits for 200 people twice have probability 2**-200."""
    table = opened({"who": np.repeat(np.arange(200), 2), "x": np.arange(400)}, engine, person="who")
    assert numbers(table, 0, 400) != numbers(table, 0, 400)


def test_people_stand_at_their_middle_values(engine):
    """Any number of values, missing ones among them: the places are one way in which people can stand."""
    generator = random.Random(3)
    values = [[generator.choice([*range(6), None]) for _ in range(generator.randrange(6))] for _ in range(14)]
    rows = [(who, x) for who, own in enumerate(values) for x in own]
    generator.shuffle(rows)
    table = opened({"who": [w for w, _ in rows], "x": [x for _, x in rows]}, engine, person="who", types=TYPES)
    ways = [Counter(way) for way in standings(values)]
    assert len(ways) > 4
    assert Counter(numbers(table, 0, 9)) in ways
    alone = places(table.group_by("who", groups=range(14)), "x", 0, 9)
    for own, found in zip(values, alone, strict=True):
        assert found in ([[(x, False, 1)] for x in middles(own)] or [[]])


# With some of their rows.

ROWS = {
    "one of three": ([0, 4, 9], 1, {0: 1 / 3, 4: 1 / 3, 9: 1 / 3}),
    "one of equal rows": ([0, 0, 0, 9], 1, {0: 3 / 4, 9: 1 / 4}),
    "one of many rows": ([0] * 9 + [9], 1, {0: 9 / 10, 9: 1 / 10}),
}


@pytest.mark.parametrize("name", ROWS)
def test_each_row_of_a_person_is_as_likely_as_the_others(engine, name):
    own, most, law = ROWS[name]
    found = numbers(opened(people_with(own), engine, person="who"), 0, 9, max_rows=most)
    assert sum(found.values()) == PEOPLE
    kept, right = [found[place] for place in law], list(law.values())
    assert_fits(kept, right)
    wrong = [0.4, 0.3, 0.3] if len(law) == 3 else FAIR  # as if equal rows were one
    assert_rejected(kept, wrong, truth=right)


@pytest.mark.parametrize("most", [1, 2, 10**9])
def test_nobody_counts_with_more_rows_than_the_limit(engine, most):
    """Missing values and people do not count, and do not push out rows that do."""
    rows = random_rows(most, 80)
    table = opened(columns_of(rows), engine, person="who", types=TYPES)
    known = [(who, g, x) for who, g, x in rows if None not in (who, x)]
    had = Counter(who for who, _, _ in known)
    together = numbers(table, 0, 9, max_rows=most)
    assert sum(together.values()) == sum(min(most, number) for number in had.values())
    every = Counter(x for _, _, x in known)
    assert all(number <= every[x] for x, number in together.items())
    assert most < 10 or together == every
    alone = places(table.group_by("who", groups=[1, 2, 3, 4]), "x", 0, 9, max_rows=most)
    assert [sum(number for *_, number in own) for own in alone] == [min(most, had[who]) for who in (1, 2, 3, 4)]
    for who, own in zip((1, 2, 3, 4), alone, strict=True):
        values = Counter(x for other, _, x in known if other == who)
        assert all(number <= values[x] for x, _, number in own)
    grouped = places(table.group_by("g", groups=["p", "q"], max_groups=2), "x", 0, 9, max_rows=most)
    in_groups = Counter((who, g) for who, g, _ in known)
    for g, own in zip("pq", grouped, strict=True):
        expected = sum(min(most, number) for (_, group), number in in_groups.items() if group == g)
        assert sum(number for *_, number in own) == expected


# A person's own matter.


def random_rows(seed, size):
    generator = random.Random(seed)
    return [
        (generator.choice([1, 2, 3, 4, None]), generator.choice(["p", "q", None]), generator.choice([0, 1, 2, 9, None]))
        for _ in range(size)
    ]


def columns_of(rows):
    return {"who": [who for who, _, _ in rows], "g": [g for _, g, _ in rows], "x": [x for _, _, x in rows]}


@pytest.mark.parametrize("most", [None, 1, 2])
def test_what_a_person_counts_with_depends_on_nobody_else(engine, most, monkeypatch):
    """With one salt, the places are those of each person alone, in any order of the rows, together and in groups."""
    monkeypatch.setattr("os.urandom", lambda count: b"\x05" * count)
    rows, order = [row for row in random_rows(8, 50) if row[0] is not None], random.Random(1)

    def standing(who):
        own = [row for row in rows if who in (None, row[0])]
        order.shuffle(own)
        table = opened(columns_of(own), engine, person="who", types=TYPES)
        lists = [places(table, "x", 0, 9, max_rows=most)]
        lists += places(table.group_by("g", groups=["p", "q"], max_groups=2), "x", 0, 9, max_rows=most)
        lists += places(table.group_by("g", groups=["p", "q"]), "x", 0, 9, max_rows=most)
        return Counter((i, place) for i, found in enumerate(lists) for place, _, n in found for _ in range(n))

    alone = [standing(who) for who in (1, 2, 3, 4)]
    assert standing(None) == standing(None) == sum(alone, Counter())
    assert sum(map(len, alone)) > 8


@pytest.mark.parametrize("people", [[0.0, -0.0, 0.0, -0.0], [NAN, NAN, NAN, NAN], ["é"] * 4], ids=str)
def test_people_who_are_written_in_two_ways_are_one(engine, people):
    table = opened({"who": people, "x": [1, 2, 3, 4]}, engine, person="who")
    for _ in range(3):
        [middle] = numbers(table, 0, 9).items()
        assert middle in ((2, 1), (3, 1))
        assert list(numbers(table, 0, 9, max_rows=2).values()) == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["int64", "string"])
@pytest.mark.xdist_group("spark")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_both_engines_have_the_same_places_and_answers(type_):
    """Where chance has no say: people with an odd number of rows, and limits that nobody reaches."""
    spark.session()
    generator = random.Random(2)
    # Three tenths of the people are at 10, one at 90, the others at 40; and some of their rows are elsewhere.
    middle = [10 if who % 10 < 3 else 40 if who % 10 < 9 else 90 for who in range(60)]
    values = [[own] * (1 + who % 2) + [generator.randrange(-5, 120)] * (who % 2) for who, own in enumerate(middle)]
    rows = {
        "who": [who for who, own in enumerate(values) for _ in own],
        "g": ["pqr"[who % 3] for who, own in enumerate(values) for _ in own],
        "x": [x for own in values for x in own],
    }
    rows["x"] = list(map(str, rows["x"])) if type_ == "string" else rows["x"]
    asked = {"lower": 0, "upper": 100, "step": 1, "epsilon": 10**6}
    seen = []
    for engine in ("duckdb", "spark"):
        table = opened(rows, engine, person="who")
        grouped = table.group_by("g", groups=["p", "q", "z"])  # nobody is in z, where any answer is right
        looked = [places(one, "x", 0, 100, max_rows=most) for one in (table, grouped) for most in (None, 5)]
        counted = [{"per_person": "median"}, {"per_person": "rows", "max_rows": 5}]
        all_of = [table.quantiles("x", ["0.5", "0.15"], **asked, **what).value for what in counted]
        of_groups = [grouped.quantiles("x", ["0.5", "0.15"], **asked, **what).value for what in counted]
        assert all_of == [[40, 10], [40, 10]]
        seen.append((looked, all_of, [(own["p"], own["q"]) for own in of_groups]))
    assert seen[0] == seen[1]
