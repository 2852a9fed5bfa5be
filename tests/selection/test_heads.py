"""The set of heads: a uniform choice from single positions and runs of flags, before and after some are removed."""

from fractions import Fraction

import numpy as np
import pytest

from dpselect.selection.flips import Heads
from tests.seam import distribution

SINGLES = [[5, 900], [], [7]]
RUNS = [(10, [True, False, True] + [False] * 6), (40, [False] * 3), (60, [True] * 16), (80, [False, True])]
ALL = {5, 900, 7, 10, 12, *range(60, 76), 81}


def filled(singles=SINGLES, runs=RUNS):
    heads = Heads()
    for positions in singles:
        heads.add(np.array(positions, np.int64))
    for start, flags in runs:
        heads.add_run(start, np.array(flags))
    return heads


def uniform(members):
    return {member: Fraction(1, len(members)) for member in members}


@pytest.mark.parametrize(
    ("heads", "members"),
    [
        (filled(), ALL),
        (filled(runs=[]), {5, 900, 7}),
        (filled(singles=[]), ALL - {5, 900, 7}),
        (filled([[3]], [(0, [False])]), {3}),
        (filled([], [(0, [True])]), {0}),
    ],
    ids=["both", "singles", "runs", "one single", "one in a run"],
)
def test_each_member_is_as_likely_as_any_other(heads, members):
    assert heads.size == len(members)
    assert distribution(heads.choose) == uniform(members)


@pytest.mark.parametrize(
    "gone",
    [[], [5], [900, 7], [10], [12, 81], [60, 75], list(range(60, 76)), [11, 9, 13, 19, 39, 43, 76, 82, 0]],
    ids=str,
)
def test_removed_members_are_never_chosen(gone):
    """Also at the ends of runs; what is no member may be removed too, next to a run or between flags."""
    heads = filled()
    heads.discard(np.array(gone, np.int64))
    assert heads.size == len(ALL - set(gone))
    assert distribution(heads.choose) == uniform(ALL - set(gone))


def test_members_far_behind_the_start_of_a_run_can_be_removed():
    heads = filled([], [(3, [True] * 16)])
    heads.discard(np.array([3, 9, 17]))
    assert distribution(heads.choose) == uniform({*range(3, 19)} - {3, 9, 17})


def test_an_empty_set_has_no_members():
    assert Heads().size == 0
