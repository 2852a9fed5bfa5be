"""Runs of equal candidates: the choice has the distribution of the vector written out, and costs only what matters."""

from fractions import Fraction

import numpy as np
import pytest

from dpselect import PermuteAndFlip
from dpselect.selection import races as runs
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import Rate, gaps_of
from dpselect.selection.races import choose_in_runs, without_empty
from tests import reference
from tests.seam import ScriptedBits
from tests.statistical.goodness import assert_fits, assert_rejected

DRAWS = 6_000
CASES = {
    "two": ([0, 1], [1, 1]),
    "lengths": ([3, 0, 2, 3], [2, 40, 5, 1]),
    "a crowd of cold ones": ([20, 0], [1, 30_000]),  # together as likely as the best
    "cold runs": ([17, *[0] * 300], [1, *[10] * 300]),
    "no run of length zero wins": ([9, 1, 0], [0, 1, 2]),
}


@pytest.fixture(autouse=True)
def skips(monkeypatch):
    """Which runs survive is drawn by skips, as the scripts have it, and not by octets, though runs are few."""
    monkeypatch.setattr("dpselect.selection.draws._DIRECT", 0)


def by_run(scores, lengths, rate):
    """The probability of each run, from the vector written out."""
    pmf = reference.permute_and_flip_pmf(np.repeat(scores, lengths).astype(float), rate)
    return np.bincount(np.repeat(np.arange(len(scores)), lengths), weights=pmf, minlength=len(scores))


def pooled(values):
    """The first run, the second, and all others together."""
    return np.array([values[0], values[1], np.sum(values[2:])])


FRACTIONS = pytest.param(list, marks=pytest.mark.slow)


def test_runs_of_fractions_fit():
    check_fit("two", list)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.int64, np.float64, FRACTIONS], ids=["int64", "float64", "Fractions"])
@pytest.mark.parametrize("case", CASES)
def test_runs_fit(case, kind):
    check_fit(case, kind)


def check_fit(case, kind):
    scores, lengths = CASES[case]
    draws = DRAWS // 20 if kind is list and len(scores) > 10 else DRAWS
    given = [Fraction(score) + Fraction(1, 3**50) for score in scores] if kind is list else np.array(scores, kind)
    mechanism = PermuteAndFlip(1)
    chosen = np.array([mechanism.select_runs(given, lengths) for _ in range(draws)])
    counts = np.bincount(np.searchsorted(np.cumsum(lengths), chosen, side="right"), minlength=len(scores))
    truth = by_run(scores, lengths, 0.5)
    used = pooled(truth) > 0
    assert_fits(pooled(counts)[used], pooled(truth)[used])


@pytest.mark.slow
@pytest.mark.parametrize("case", ["lengths", "a crowd of cold ones", "cold runs"])
def test_a_wrong_rate_is_rejected(case):
    """The power check: a third more epsilon is told from the right one."""
    scores, lengths = CASES[case]
    chosen = [PermuteAndFlip("4/3").select_runs(scores, lengths) for _ in range(DRAWS)]
    counts = np.bincount(np.searchsorted(np.cumsum(lengths), chosen, side="right"), minlength=len(scores))
    wrong, truth = (pooled(by_run(scores, lengths, rate)) for rate in (0.5, 2 / 3))
    used = truth > 0
    assert_rejected(pooled(counts)[used], wrong[used], truth=truth[used])


def test_members_of_a_run_are_alike():
    chosen = [PermuteAndFlip(1).select_runs([0, 100, 0], [7, 20, 9]) for _ in range(4_000)]
    assert_fits(np.bincount(np.array(chosen) - 7, minlength=20), np.full(20, 1 / 20))


def test_positions_count_all_candidates_before():
    """Lengths that add up beyond 2**64 are added exactly."""
    lengths = [2**63 - 1, 2**63 - 1, 2**63 - 5, 1]
    assert PermuteAndFlip(1).select_runs([0, 0, 0, 1000], lengths) == sum(lengths[:3])
    for count in range(1, 9):
        assert runs._total(np.array([2**64 - 1] * count, np.uint64)) == count * (2**64 - 1)
    assert runs._total(np.array([], np.uint64)) == 0


def test_empty_runs_are_left_out():
    values, lengths = without_empty(np.array([5, 6, 7]), np.array([0, 2, 1], np.uint64))
    assert (values.tolist(), lengths.tolist()) == ([6, 7], [2, 1])
    values, lengths = without_empty([Fraction(1), Fraction(2)], np.array([3, 0], np.uint64))
    assert (values, lengths.tolist()) == ([Fraction(1)], [3])
    full = np.array([3, 1], np.uint64)
    assert without_empty(np.array([5, 6]), full)[1] is full


def test_cold_runs_are_read_only_where_eight_zeros_survive(monkeypatch):
    """Hot is what can have a head without eight zeros, whatever the longest run."""
    lengths = np.array([1, 4, 4, 4], np.uint64)
    # The longest run has 2**2 members, bit length 3: cold is a gap beyond 11 ln 2 = 7.62.
    gaps = gaps_of(np.array([0.0, -7.6, -7.7, -50.0]), Rate(Fraction(1)))
    draws = Draws()
    monkeypatch.setattr(draws, "survivors", lambda count, zeros: np.array([0, 2]))
    positions, zeros = runs._warm_runs(gaps, lengths, draws)
    assert positions.tolist() == [0, 1, 2]
    assert zeros.tolist() == [0, 0, 8]


def test_a_run_at_the_border_is_listed_once(monkeypatch):
    """The floor of whole scores is a score: it is hot, and no survivor beside."""
    gaps = gaps_of(np.array([0, -7, -8]), Rate(Fraction(1)))
    lengths = np.array([4, 4, 4], np.uint64)
    assert gaps.floor(3 + 8) == -7
    draws = Draws()
    monkeypatch.setattr(draws, "survivors", lambda count, zeros: np.array([1, 2]))
    positions, _ = runs._warm_runs(gaps, lengths, draws)
    assert positions.tolist() == [0, 1, 2]


@pytest.mark.parametrize("member", [0, 1])
@pytest.mark.parametrize("winner", [0, 1])
def test_a_near_tie_goes_to_the_exact_road(winner, member):
    """Two equal runs whose V agree in 53 bits: the next 64 bits decide, and then one bit chooses the member."""
    gaps = gaps_of(np.array([3, 3]), Rate(Fraction(1)))
    no_survivor = ("1" + "0" * 31) * 2  # gaps of 177 failures
    first, second = ("0", "1") if winner == 0 else ("1", "0")
    source = ScriptedBits(no_survivor + "0101" * 32 + first * 64 + second * 64 + str(member))
    assert choose_in_runs(gaps, np.array([2, 2], np.uint64), source) == 2 * winner + member
    assert source.used == 64 + 128 + 128 + 1
