"""The proposals of the exponential mechanism: how many are drawn, from how many tickets, and whose ticket is whose."""

from fractions import Fraction

import numpy as np
import pytest

from dpselect.mechanisms.exponential import _hot_candidates, choose_by_envelope, choose_by_rejection, choose_in_rows
from dpselect.selection.draws import Draws
from dpselect.selection.flips import Hot, find_hot
from dpselect.selection.gaps import BLOCK, Rate, RowGaps, gaps_of

UNIT = Rate(Fraction(1))


class Proposing(Draws):
    """Proposes a loser for some rounds, then the winner; notes how many were asked for."""

    def __init__(self, loser, winner, refusals):
        super().__init__()
        self.loser, self.winner, self.refusals = loser, winner, refusals
        self.bounds, self.tries = [], []

    def indices_below(self, bound, tries):
        self.bounds.append(bound)
        self.tries.append(tries)
        return np.full(tries, self.loser if len(self.tries) <= self.refusals else self.winner)


@pytest.mark.parametrize(("first", "then"), [(1, [2, 4, 8]), (3, [6, 12, 24]), (40_000, [65_536, 65_536, 65_536])])
def test_batches_double_up_to_a_bound(first, then):
    scores = np.zeros(5_000)
    scores[9] = 10_000
    contest = gaps_of(scores, UNIT)
    rejection = Proposing(3, 9, refusals=3)
    assert choose_by_rejection(contest, rejection, first) == 9
    assert rejection.tries == [first, *then]
    assert set(rejection.bounds) == {5_000}
    envelope = Proposing(256 + 3, 77, refusals=3)
    assert choose_by_envelope(contest, envelope, first) == 9
    assert envelope.tries == [first, *then]
    assert set(envelope.bounds) == {256 + 5_000}


@pytest.mark.parametrize("crowded", [False, True], ids=["singles", "a crowd"])
def test_each_hot_candidate_holds_256_tickets(crowded):
    """Three single ones; or a block of a crowd besides, whose members hold their tickets behind those of the others."""
    scores = np.zeros(3 * BLOCK)
    hot = [7, 8, 2 * BLOCK + 5]
    scores[hot] = 10_000
    if crowded:
        scores[BLOCK + 10 : 2 * BLOCK - 10] = 10_000
    contest = gaps_of(scores, UNIT)
    found = find_hot(contest)
    members = [*found.positions.tolist(), *(i for start, stop in found.crowds for i in range(start, stop))]
    assert set(hot) < set(members) if crowded else hot == members
    for rank in (0, 1, 2, len(members) // 2, len(members) - 1):
        if scores[members[rank]] == 0:
            continue  # of a crowd, and refused
        for ticket in (256 * rank, 256 * rank + 255):
            draws = Proposing(None, ticket, refusals=0)
            assert choose_by_envelope(contest, draws) == members[rank]
            assert draws.bounds == [256 * len(members) + scores.size]


@pytest.mark.parametrize("position", [0, 255, 256, 700, 4_999])
def test_each_cold_candidate_holds_one_ticket_behind_those(position):
    """All coins are heads, so that whoever is proposed is chosen."""

    class Accepting(Proposing):
        def finish(self, exponents, prefixes, depths):
            return np.ones(exponents.approximate.size, np.bool_)

    scores = np.zeros(5_000)
    scores[9] = 10_000
    assert choose_by_envelope(gaps_of(scores, UNIT), Accepting(None, 256 + position, refusals=0)) == position


def test_a_short_crowd_behind_single_ones():
    """Of 105 hot candidates, 100 are the last block: sizes that are no multiples of a block add up."""
    scores = np.zeros(4 * BLOCK + 100)
    singles = [3, 40, 41, 500, 1000]
    scores[singles] = scores[4 * BLOCK :] = 10_000
    contest = gaps_of(scores, UNIT)
    members = [*singles, *range(4 * BLOCK, 4 * BLOCK + 100)]
    for rank in (0, 4, 5, 104):
        draws = Proposing(None, 256 * rank, refusals=0)
        assert choose_by_envelope(contest, draws) == members[rank]
        assert draws.bounds == [256 * 105 + scores.size]


def test_members_of_several_crowds_have_ranks_in_order():
    crowds = [(3 * BLOCK, 4 * BLOCK), (7 * BLOCK, 9 * BLOCK)]
    hot = Hot(crowds, np.array([5, 6]), np.zeros(0, np.bool_), 0)
    members = [5, 6, *range(*crowds[0]), *range(*crowds[1])]
    assert _hot_candidates(hot, np.arange(len(members))).tolist() == members


def test_rows_without_a_winner_propose_again():
    """Two candidates a row at first, then four, up to sixty-four: only for rows that have none yet."""
    asked = []

    class Refusing(Draws):
        def indices(self, bounds):
            asked.append(bounds.size)
            return np.full(bounds.size, 0 if len(asked) > 7 else 1)

    matrix = np.array([[10_000, 0, 0], [0, 10_000, 0], [10_000, 0, 0]])
    assert choose_in_rows(RowGaps(matrix, UNIT), Refusing()).tolist() == [0, 1, 0]
    assert asked == [6, 8, 16, 32, 64, 128, 128, 128]
