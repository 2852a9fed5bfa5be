"""Runs of equal scores: exactly the distribution of the plain mechanism on the expanded candidates."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.errors import InvalidType, InvalidValue
from dpselect.selection.gaps import Rate, gaps_of
from dpselect.selection.races import Arrival, _warm_runs, choose_in_runs, total_of, without_empty
from tests import reference
from tests.seam import ScriptedBits
from tests.selection.samplers import Nobody, Surviving, random_bits, time_in_cell

COLD = 8  # bits that are zero in V of a cold run


@pytest.fixture(autouse=True)
def skips(monkeypatch):
    """Which runs survive is drawn by skips, as the scripts have it, and not by octets, though runs are few."""
    monkeypatch.setattr("dpselect.selection.draws._DIRECT", 0)


# Exact probabilities: every cell of the first bits of all V, and who wins in it whatever the other bits are.


def winners(exponents, lengths, bits, zeros):
    """The winner of every cell, as an array with an axis for each run; -1 where these bits do not tell."""
    runs = [
        np.transpose([time_in_cell(Arrival, e, m, v, bits + z) for v in range(2**bits)])
        for e, m, z in zip(exponents, lengths, zeros, strict=True)
    ]
    grids = [np.meshgrid(*[run[side] for run in runs], indexing="ij") for side in (0, 1)]
    found = np.full((2**bits,) * len(runs), -1)
    for own in range(len(runs)):
        others = np.min([grids[0][s] for s in range(len(runs)) if s != own], axis=0)
        found[grids[1][own] < others] = own
    return found


def exact_shares(scores, lengths, rate):
    """The probability that each run wins."""
    by_level = reference.flip_pmf_by_level(lengths, [rate * (max(scores) - score) for score in scores])
    return [float(m * p) for m, p in zip(lengths, by_level, strict=True)]


CASES = {
    "hot": ([3, 1], [4, 7]),
    "tie": ([0, 0], [3, 9]),
    "single": ([0, -2], [1, 1]),
    "long and lower": ([0, -3], [1, 40]),
    "three": ([0, -1, -2], [2, 3, 11]),
    "three with ties": ([Fraction(1, 3), 0, Fraction(1, 3)], [1, 6, 2]),
}
RATE = Fraction(1, 2)


@pytest.mark.parametrize("case", CASES)
def test_the_cells_of_v_give_the_exact_probabilities(case):
    """The law of arrivals: decided cells bracket the probabilities of the expanded vector, within a few cells."""
    scores, lengths = CASES[case]
    exponents = [RATE * (max(scores) - Fraction(score)) for score in scores]
    bits = {2: 10, 3: 7}[len(scores)]
    decided = winners(exponents, lengths, bits, [0] * len(scores))
    undecided = (decided == -1).mean()
    assert undecided < {2: 0.003, 3: 0.03}[len(scores)]
    for run, share in enumerate(exact_shares(list(map(Fraction, scores)), lengths, RATE)):
        least = (decided == run).mean()
        assert least <= share <= least + undecided


# Words of a geometric draw: one after which no run of a short vector survives, and one that lets a run survive.
NOBODY = format(2**28, "032b")


def survivor(position):
    return format(int((1 - 2**-COLD) ** (position + 0.5) * 2**32), "032b")


def position_by_script(scores, lengths, words, survivors):
    gaps = gaps_of(
        np.array(scores) if all(isinstance(s, int) for s in scores) else list(map(Fraction, scores)), Rate(RATE)
    )
    source = ScriptedBits("".join(survivors) + "".join(words) + random_bits(2000))
    return choose_in_runs(gaps, np.array(lengths, np.uint64), source)


@pytest.mark.parametrize("member", range(4))
def test_the_member_is_counted_from_the_start_of_its_run(member):
    """The second run is ahead by far, and two more bits choose one of its four members."""
    gaps = gaps_of(np.array([0, 1000, 0]), Rate(RATE))
    source = ScriptedBits(NOBODY * 2 + "01" * 32 + format(member, "02b"))
    assert choose_in_runs(gaps, np.array([3, 4, 9], np.uint64), source) == 3 + member


@pytest.mark.parametrize("lengths", [[1, 2, 3], [0, 2, 3], [1, 0, 0], [0, 5, 0]], ids=str)
@pytest.mark.parametrize("kind", [np.array, list], ids=["array", "list"])
def test_runs_without_a_candidate_are_left_out(kind, lengths):
    scores, left = without_empty(kind([7, 8, 9]), np.array(lengths, np.uint64))
    kept = [i for i in range(3) if lengths[i]]
    assert list(scores) == [7 + i for i in kept]
    assert left.tolist() == [lengths[i] for i in kept]


@pytest.mark.parametrize("case", CASES)
def test_the_kernel_picks_the_winner_of_every_cell(case):
    scores, lengths = CASES[case]
    exponents = [RATE * (max(scores) - Fraction(score)) for score in scores]
    bits = {2: 5, 3: 3}[len(scores)]
    decided = winners(exponents, lengths, bits, [0] * len(scores))
    starts = np.cumsum(lengths) - lengths
    for cell in product(range(2**bits), repeat=len(scores)):
        words = [format(v, f"0{bits}b") + random_bits(64 - bits) for v in cell]
        position = position_by_script(scores, lengths, words, [NOBODY, NOBODY])
        assert 0 <= position < sum(lengths)
        if decided[cell] >= 0:
            assert np.searchsorted(starts, position, side="right") - 1 == decided[cell]


COLD_CASES = {"cold after hot": ([0, -16], [2, 3]), "cold before hot": ([-17, 0], [3, 2]), "colder": ([0, -60], [1, 5])}


@pytest.mark.parametrize("case", COLD_CASES)
def test_cold_runs_are_read_where_they_survive(case):
    """A cold run has V < 2**-8 or no head: its exact probability, and its winner in every decided cell of the rest."""
    scores, lengths = COLD_CASES[case]
    cold, hot = int(np.argmin(scores)), int(np.argmax(scores))
    exponents, zeros = [RATE * (max(scores) - score) for score in scores], [0, 0]
    zeros[cold] = COLD
    gaps = gaps_of(np.array(scores), Rate(RATE))
    warm, known = _warm_runs(gaps, np.array(lengths, np.uint64), ScriptedBits(survivor(cold) + NOBODY))
    assert (warm.tolist(), known.tolist()) == ([hot, cold], [0, COLD])
    decided = winners(exponents, lengths, 10, zeros)
    share = exact_shares(scores, lengths, RATE)[cold]
    least, undecided = (decided == cold).mean(), (decided == -1).mean()
    assert undecided < 0.005
    assert least * 2**-COLD <= share <= (least + undecided) * 2**-COLD
    starts = np.cumsum(lengths) - lengths
    decided = winners(exponents, lengths, 5, zeros)
    for cell in product(range(32), repeat=2):
        # The word of a cold run is shifted behind its zeros.
        words = [format(cell[run], "05b") + random_bits(59) for run in (hot, cold)]
        position = position_by_script(scores, lengths, words, [survivor(cold), NOBODY])
        if decided[cell] >= 0:
            assert np.searchsorted(starts, position, side="right") - 1 == decided[cell]
    position = position_by_script(scores, lengths, [random_bits(64)], [NOBODY, NOBODY])
    assert np.searchsorted(starts, position, side="right") - 1 == hot


@pytest.mark.parametrize("length", [1, 2, 3, 255, 2**32, 2**63, 2**64 - 1])
def test_runs_are_cold_only_if_they_rarely_have_a_head(length):
    """The rule of the file's first words, at the boundary: m p < 2**-8 for every run that is not read as hot."""
    scores = np.arange(0, -200, -1)
    lengths = np.full(200, length, np.uint64)
    script = NOBODY * 8
    warm, zeros = _warm_runs(gaps_of(scores, Rate(RATE)), lengths, ScriptedBits(script))
    assert not zeros.any()
    heads = [length * math.exp(RATE * score) for score in scores]
    assert all(heads[i] < 2.0**-COLD for i in set(range(200)) - set(warm.tolist()))
    assert all(heads[i] > 2.0**-COLD / 8 for i in warm.tolist())


def test_every_run_is_in_the_contest_once():
    """(1 + 8) ln 2 = 6.2 for runs of one: gaps up to 6 are hot, also one just at the floor, and those from 7 cold."""
    gaps = gaps_of(np.array([0, -6, -7, -5, -100, -6]), Rate(Fraction(1)))
    assert gaps.floor(9) == -6
    runs, zeros = _warm_runs(gaps, np.ones(6, np.uint64), Surviving())
    assert dict(zip(runs.tolist(), zeros.tolist(), strict=True)) == {0: 0, 1: 0, 2: 8, 3: 0, 4: 8, 5: 0}
    assert runs.size == 6


def test_equal_words_are_settled_by_more_bits():
    """Two equal runs with the same 53 bits: the next word decides, and the first run's members follow it."""
    same = "01" * 32
    early, late = "0" * 64, "1" * 64
    for first, second, winner in ((early, late, 0), (late, early, 1)):
        script = [same, same, first, second]
        position = position_by_script([7, 7], [1, 1], script, [NOBODY, NOBODY])
        assert position == winner


def test_sums_of_lengths_are_exact():
    for lengths in ([2**64 - 1] * 5 + [1, 0, 2**63], [2**32 - 1] * 3 + [2**33 + 1], [2**64 - 1] * 8, []):
        assert total_of(np.array(lengths, np.uint64)) == sum(lengths)


BOTH = pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism])


@BOTH
@settings(max_examples=200, deadline=None)
@given(
    runs=st.lists(
        st.tuples(
            st.integers(-(2**70), 2**70) | st.fractions() | st.floats(allow_nan=False, allow_infinity=False),
            st.integers(0, 10**500) | st.integers(0, 2**64) | st.integers(0, 3),
        ),
        min_size=1,
        max_size=20,
    ).filter(lambda runs: any(m for _, m in runs)),
    epsilon=st.floats(min_value=5e-324, allow_infinity=False) | st.fractions(min_value="1/1000000"),
    monotonic=st.booleans(),
)
def test_positions_are_in_range(kind, runs, epsilon, monotonic):
    scores, lengths = zip(*runs, strict=True)
    position = kind(epsilon, monotonic=monotonic).select_runs(scores, lengths)
    assert 0 <= position < sum(lengths)


COUNTS = InvalidValue, "lengths must have one length for each score"
NEGATIVE = InvalidValue, "lengths must be >= 0"
WHOLE = InvalidType, "lengths must be whole numbers: give"
FINITE = InvalidValue, "scores must be finite"


@BOTH
@pytest.mark.parametrize(
    ("scores", "lengths", "error"),
    [
        ([], [], (InvalidValue, "scores must have at least one candidate")),
        *(([1] * n, lengths, COUNTS) for n, lengths in ((1, []), (2, [1]), (2, [2**70]))),
        ([1], [0], (InvalidValue, "lengths must be >= 0 and not all zero")),
        *(([1, 2], lengths, NEGATIVE) for lengths in ([1, -1], [2**70, -1], [10**500, -1])),
        *(([1], lengths, WHOLE) for lengths in ([1.0], [1e300], [Fraction(1, 2)], [math.nan], [None], None, 1, "1")),
        *(([1], lengths, WHOLE) for lengths in ([[1]], np.array([[10**500]], object))),
        *(([1, 2], [2**70, odd], WHOLE) for odd in (1.0, Fraction(1, 2), None, "1")),
        *(([1, 2], lengths, WHOLE) for lengths in ([-(10**500), 1], np.array([2**70, 1.5], object))),
        *((scores, [1] * len(scores), FINITE) for scores in ([math.nan], [1.0, math.inf], [None])),
        ("1", [1], (InvalidType, "scores must be one-dimensional")),
        ([[1]], [1], (InvalidValue, "scores must be one-dimensional")),
    ],
)
def test_bad_input_is_refused(kind, scores, lengths, error):
    for options in ({}, {"steady": True}) if kind.has_steady else ({},):
        with pytest.raises(error[0], match=error[1]):
            kind(1).select_runs(scores, lengths, **options)


@BOTH
def test_lengths_are_read_in_every_form(kind):
    for dtype in (np.int8, np.uint8, np.int64, np.uint64, bool, object):
        assert kind(1).select_runs(np.array([0, 10**6]), np.array([1, 1], dtype)) == 1
    assert kind(1).select_runs([0.0, 1e6], range(1, 3)) in (1, 2)
    assert kind(1).select_runs([10**6, 0, -(10**6)], range(3)) == 0
    assert 0 <= kind(1).select_runs([0, 1, 0], [10**5000, 1, 2]) < 10**5000 + 3, "more digits than Python prints"
    for made in (list, tuple, lambda lengths: np.array(lengths, object)):
        assert kind(1).select_runs([10**6, 0, -(10**6)], made([0, 10**500, 0])) < 10**500
        for one in (True, np.int8(1)):
            assert kind(1).select_runs([0, 10**6], made([2**70, one])) == 2**70


@pytest.mark.parametrize("steady", [False, True], ids=["", "steady"])
@pytest.mark.parametrize(
    ("scores", "lengths"),
    [([0, -2302], [1, 10**500]), ([0, -3], [2**64, 2**66]), ([0, 0], [10**30, 10**30 + 1])],
    ids=str,
)
def test_the_kernel_picks_the_winner_of_every_cell_of_long_runs(scores, lengths, steady):
    exponents, bits = [RATE * (max(scores) - score) for score in scores], 4
    decided = winners(exponents, lengths, bits, [0, 0])
    assert (decided >= 0).mean() > 0.7
    gaps = gaps_of(np.array(scores), Rate(RATE))
    for cell in product(range(2**bits), repeat=2):
        words = "".join(format(v, f"0{bits}b") + random_bits(64 - bits) for v in cell)
        source = ScriptedBits(("" if steady else NOBODY * 2) + words + random_bits(20_000))
        position = choose_in_runs(gaps, np.array(lengths, object), source, steady=steady)
        if decided[cell] >= 0:
            assert int(position >= lengths[0]) == decided[cell]


@pytest.mark.parametrize("length", [2**64, 2**70, 10**500], ids=int.bit_length)
def test_long_runs_are_cold_only_if_they_rarely_have_a_head(length):
    scores = np.arange(0, -4000, -1)
    warm, zeros = _warm_runs(gaps_of(scores, Rate(RATE)), np.full(4000, length, object), Nobody(""))
    assert not zeros.any()
    logs = [math.log(length) + float(RATE) * score + COLD * math.log(2) for score in scores.tolist()]
    assert all(logs[i] < 0 for i in set(range(4000)) - set(warm.tolist()))
    assert all(logs[i] > -math.log(8) for i in warm.tolist())
