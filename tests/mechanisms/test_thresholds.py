"""Which candidates compete with "nothing", and where it stands: what the mechanism is given, exactly."""

from fractions import Fraction

import pytest

from dpselect.mechanisms.thresholds import Threshold, chosen_above

DISTANCE = Fraction(7, 2)


class Recorder:
    """Selects given positions, and keeps what it was given."""

    def __init__(self, *positions):
        self._positions, self.given = iter(positions), []

    def select_runs(self, scores, lengths):
        runs = [(score, length) for score, length in zip(scores, lengths, strict=True) if length]
        self.given.append(sorted(runs))
        return next(self._positions)


@pytest.mark.parametrize(
    ("most", "given"),
    [
        (None, [(1, 4), (2, 3), (DISTANCE + 1, 1), (9, 1)]),  # all compete
        (20, [(0, 12), (1, 4), (2, 3), (DISTANCE + 1, 1), (9, 1)]),  # and anonymous ones
        (8, [(1, 4), (2, 3), (DISTANCE + 1, 1), (9, 1)]),
        (6, [(1, 2), (2, 3), (DISTANCE + 2, 1), (9, 1)]),  # a count of 1 is left out
        (4, [(2, 3), (DISTANCE + 2, 1), (9, 1)]),
        (2, [(2, 1), (DISTANCE + 3, 1), (9, 1)]),
    ],
)
def test_who_competes_and_where_nothing_stands(most, given):
    recorder = Recorder(10**9)
    assert chosen_above([1, 2, 9], [4, 3, 1], 1, Threshold(DISTANCE, most), recorder) == []
    assert recorder.given == [given]


def test_values_are_chosen_once_each():
    """Positions among what is left become ranks among all values of the same count."""
    recorder = Recorder(1, 1, 0, 0)
    chosen = chosen_above([1, 2], [4, 1], 4, Threshold(DISTANCE, None), recorder)
    assert chosen == [(1, 1), (1, 2), (1, 0), (1, 3)]
    assert [dict(runs)[1] for runs in recorder.given] == [4, 3, 2, 1]


def test_an_anonymous_winner_is_nothing():
    assert chosen_above([5], [1], 3, Threshold(DISTANCE, 10), Recorder(0, 3)) == [(5, 0)]
