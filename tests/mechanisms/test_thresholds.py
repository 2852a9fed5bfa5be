"""Thresholds: the smallest that keep delta, against balls of flint; and who competes with "nothing", exactly."""

from fractions import Fraction
from itertools import product

import pytest
from flint import arb, ctx

from dpselect.mechanisms.unlisted import MOST, Factor, Threshold, chosen_above, threshold
from tests.reference import ball

STEP = Fraction(1, 1024)
DISTANCE = Fraction(7, 2)
RATES = [Fraction(1, 10**6), Fraction(1, 10), Fraction(1), Fraction(7, 2), Fraction(10**6)]
DELTAS = [Fraction(1, 2), Fraction("1e-9"), Fraction("1e-300")]


@pytest.fixture(autouse=True)
def _precise():
    with ctx.workprec(300):
        yield


def factor_of(rate, permuted, replaced, grouped, limited):
    """F as docs/theory.md has it."""
    c = ball(rate)
    if not replaced:
        return arb(1) / 2 if permuted else arb(1)
    if permuted:
        alone = (1 + (-c).exp()) / 2 if limited else (1 + c.exp()) / 2
        return max(alone, arb(1)) if grouped else alone
    alone = arb(1) if limited else c.exp()
    return max(alone, arb(2)) if grouped else alone


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("permuted", [True, False])
def test_the_smallest_threshold_that_keeps_delta(permuted, replaced, grouped, limited):
    kind = Factor(Fraction(1, 2) if permuted else Fraction(1), replaced, grouped)
    for rate, delta, values in product(RATES, DELTAS, [1, 3, 10**5] if limited else [None]):
        found = threshold(rate, delta, values, kind)
        assert found.most == (None if limited else MOST)
        assert (found.distance / STEP).denominator == 1
        # ln(m F / delta) - c T, by logarithms: the numbers themselves are beyond all exponents of balls.
        log = (arb(values or MOST) / ball(delta)).log() + factor_of(rate, permuted, replaced, grouped, limited).log()
        assert log - ball(rate * found.distance) <= 0
        if found.distance:  # a logarithm of exactly zero cannot be told from a little more
            assert log - ball(rate * (found.distance - STEP)) > -1e-30


def test_nothing_stands_above_one_person():
    assert Threshold(Fraction(5, 2), None).people == Fraction(7, 2)
    assert threshold(Fraction(1), Fraction(1, 2), 1, Factor(Fraction(1, 2), False, False)).people <= 1 + STEP


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


def test_ranks_count_from_the_first_value_of_a_count():
    """The values of the first count are not in the way, in either order of the runs."""
    chosen = chosen_above([1, 2], [4, 3], 3, Threshold(DISTANCE, None), Recorder(5, 5, 4))
    assert chosen == [(2, 1), (2, 2), (2, 0)]
    chosen = chosen_above([1, 2], [4, 3], 3, Threshold(DISTANCE, 20), Recorder(4, 4, 3))
    assert chosen == [(1, 1), (1, 2), (1, 0)]


def test_an_anonymous_winner_is_nothing():
    assert chosen_above([5], [1], 3, Threshold(DISTANCE, 10), Recorder(0, 3)) == [(5, 0)]
