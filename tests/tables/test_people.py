"""With what a person counts in a quantile: at a middle one of their values, or with some of their rows, at random."""

import numpy as np
import pytest

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
