"""With what a person counts in a quantile: at a middle one of their values, or with some of their rows, at random."""

import random

import numpy as np
import pytest

from tests import spark
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.tables.looking import opened, places

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


# A person's own matter.


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
