"""With `steady`, the distribution is the paper's, and what is read and drawn does not depend on the scores."""

from fractions import Fraction

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect.errors import InvalidType, InvalidValue
from dpselect.selection import flips
from dpselect.selection.draws import Draws
from dpselect.selection.flips import choose_in_rows_steadily, flip_steadily
from dpselect.selection.gaps import BLOCK, Gaps, Rate, RowGaps, gaps_of
from tests import reference
from tests.seam import distribution
from tests.selection.test_exact_distribution import CASES, TYPES, assert_exact, brute_force
from tests.statistical.goodness import assert_fits, assert_rejected

UNIT = Rate(Fraction(1))
MECHANISM = PermuteAndFlip(1)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("losses", CASES)
def test_vectors_are_exact(losses, kind):
    assert_exact(losses, kind, lambda contest, draws: flip_steadily(contest, draws).choose(draws), steady=True)


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.uint8])
def test_rows_are_exact(kind):
    first, second = [0, 1, 7], [2, 0, 0]
    matrix = np.array([[40 - loss for loss in losses] for losses in (first, second)], kind)
    outcomes = distribution(
        lambda draws: tuple(choose_in_rows_steadily(RowGaps(matrix, UNIT, steady=True), draws).tolist())
    )
    one, two = brute_force(first), brute_force(second)
    assert outcomes == {(i, j): one[i] * two[j] for i in range(3) for j in range(3)}


@pytest.mark.slow
def test_rows_fit():
    scores = np.array([0, 3, 1, 3, 2, 0, 1])
    pmf, wrong = (reference.permute_and_flip_pmf(scores, rate) for rate in (0.5, 0.4))
    rows = MECHANISM.select_rows(np.broadcast_to(scores, (50_000, 7)), steady=True)
    assert_fits(np.bincount(rows, minlength=7), pmf)
    assert_rejected(np.bincount(rows, minlength=7), wrong, truth=pmf)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_the_ends_of_the_types(dtype):
    info = np.finfo(dtype) if dtype is np.float64 else np.iinfo(dtype)
    ends = np.array([info.min, info.max, info.min, info.max], dtype)
    found = {PermuteAndFlip(1).select(ends, steady=True) for _ in range(60)}
    assert found == {1, 3}
    alike = np.full(5000, info.max, dtype)
    assert PermuteAndFlip(1).select(alike, steady=True) < 5000


class Requests(Draws):
    """The operating system's bits, and a note of how many were asked for."""

    def __init__(self):
        self.asked = []

    def bits(self, count):
        self.asked.append(count)
        return super().bits(count)

    def words(self, count, width):
        self.asked.append((count, width))
        return super().words(count, width)


def schedule(scores, mechanism, monkeypatch):
    """What one selection reads, and which bits it asks for; of coins to finish only that there are some."""
    read, source = [], Requests()
    levels = Gaps.levels
    with monkeypatch.context() as patch:
        patch.setattr(Gaps, "levels", lambda self, run, room: read.append(run) or levels(self, run, room))
        flip_steadily(gaps_of(scores, mechanism._rate, steady=True), source).choose(source)
    return read, [
        ("finish" if request[1] == 32 else request) if isinstance(request, tuple) else request
        for request in source.asked
    ]


@pytest.mark.parametrize("size", [1000, 5000, 300_000])
def test_the_schedule_does_not_depend_on_the_scores(size, monkeypatch):
    """Neighbours at the line of the fast kernel, one winner, all tied, negative ones: the same reads and requests."""
    mechanism = PermuteAndFlip("0.01", monotonic=True)
    worst = np.zeros(size, np.int64)
    worst[size // 3] = mechanism._rate.cold_gap(8)[0]
    neighbour, tied, spread = worst.copy(), np.full(size, 7), np.arange(size) * 100
    neighbour[size // 3] += 1
    vectors = [worst, neighbour, tied, spread, -spread]
    for kind in (np.int64, np.float64):
        found = [schedule(vector.astype(kind), mechanism, monkeypatch) for vector in vectors]
        assert all(one == found[0] for one in found)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_open_coins_are_one_in_256_whatever_the_scores(dtype):
    """Each octet once for each candidate: exactly one of 256 leaves it open, so their number is binomial."""

    class EveryOctet(Draws):
        def first_octets(self, levels, lines):
            counts = np.zeros(levels.size, np.int64)
            for octet in range(256):
                counts[lines.decide(levels.copy(), np.full(levels.size, octet, np.uint8))[1]] += 1
            assert (counts == 1).all()
            return super().first_octets(levels, lines)

    random = np.random.default_rng(5)
    for scores in (random.poisson(100, 3000), np.zeros(3000), np.arange(3000) * 17, -(np.arange(3000) ** 5)):
        flip_steadily(gaps_of(scores.astype(dtype), Rate(Fraction(1, 7)), steady=True), EveryOctet())


def test_what_is_not_finite_is_refused():
    for bad in (np.nan, np.inf, -np.inf):
        for scores in ([1.0, bad], np.array([bad, -1.0], np.float32)):
            with pytest.raises(InvalidValue, match="must be finite"):
                MECHANISM.select(scores, steady=True)
            with pytest.raises(InvalidValue, match="must be finite"):
                MECHANISM.select_rows([scores], steady=True)


@pytest.mark.parametrize("kind", [ExponentialMechanism, ReportNoisyMax])
def test_the_others_are_not_steady(kind):
    with pytest.raises(InvalidValue, match=f"{kind.__name__} has no steady schedule: use PermuteAndFlip"):
        kind(1).select([1, 2], steady=True)


def test_options_are_checked():
    with pytest.raises(InvalidValue, match="exclude each other"):
        MECHANISM.select([1, 2], early_exit=True, steady=True)
    for call in (
        lambda: MECHANISM.select([1], steady=1),
        lambda: MECHANISM.select_rows([[1]], steady="yes"),
        lambda: MECHANISM.select_runs([1], [1], steady=None),
        lambda: MECHANISM.summary(steady=1),
    ):
        with pytest.raises(InvalidType, match="steady must be True or False"):
            call()


def test_exact_scores_of_any_kind_are_taken():
    third = Fraction(1, 3)
    assert PermuteAndFlip(1000).select([0, third, 10**30], steady=True) == 2
    assert PermuteAndFlip(10**6).select([Fraction(0), third], steady=True) == 1
    assert PermuteAndFlip(1000).select_runs([0, third], [10**9, 1], steady=True) == 10**9
    assert flips._STEP % BLOCK == 0
