"""Orders from one draw of noise: the first k arrivals of every cell of bits, and their law."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect._scores import as_vector
from dpselect.selection import races as orders
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import Rate, gaps_of
from dpselect.selection.races import DEPTH, Arrival, Tick, TwoSided, choose_in_order
from tests.seam import ScriptedBits, distribution
from tests.selection.samplers import first_of_cells, random_bits, slow, time_in_cell
from tests.selection.test_runs import COLD, NOBODY, survivor
from tests.watchdog import at_once

KINDS = [Arrival, Tick, TwoSided]
MECHANISMS = {Arrival: PermuteAndFlip, Tick: ExponentialMechanism, TwoSided: ReportNoisyMax}
UNIT = Rate(Fraction(1))


@pytest.fixture(autouse=True)
def _silent():
    """The kernels run where NumPy does not warn, as `select_order` sees to it."""
    with np.errstate(all="ignore"):
        yield


def order_of(scores, k, kind, source, lengths=None):
    gaps = gaps_of(as_vector(list(scores)), UNIT)
    return choose_in_order(gaps, np.array([1] * len(scores) if lengths is None else lengths), k, kind, source)


# Every cell of the first bits of all V.


CELLS = {
    "near": [0, -1, -2],
    "ties": [3, 3, 1],
    "fractions": [Fraction(1, 3), 0, Fraction(-5, 7)],
    "beyond int64": [10**30, 10**30 - 1, 10**30 - 2],
}


@pytest.mark.parametrize("k", [slow(1), 2, slow(3)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CELLS)
def test_the_kernel_picks_the_first_of_every_cell(case, kind, k):
    scores, bits = CELLS[case], 3
    best = max(scores)
    ends = [[time_in_cell(kind, best - Fraction(s), 1, v, bits) for v in range(2**bits)] for s in scores]
    decided = 0
    for cell in itertools.product(range(2**bits), repeat=3):
        expected = first_of_cells([ends[i][v] for i, v in enumerate(cell)], k)
        if expected is not None:
            decided += 1
            words = "".join(format(v, f"0{bits}b") + random_bits(64 - bits) for v in cell)
            assert order_of(scores, k, kind, ScriptedBits(words)) == [(i, 0) for i in expected]
    assert decided > 100


@pytest.mark.parametrize("kind", KINDS)
def test_equal_bits_are_settled_by_more_of_them(kind):
    """Three equals share 53 bits: the next 64 of each decide, and those that are clear ask for none."""
    same = "0110" * 16
    rest = ["01" * 32, "11" * 32, "00" * 32]
    for turn in itertools.permutations(range(3)):
        source = ScriptedBits(same * 3 + "1" * 64 + "".join(rest[i] for i in turn))
        found = [run for run, _ in order_of([5, 5, 5, 0], 3, kind, source)]
        assert [turn[i] for i in found] == [2, 0, 1]
        assert source.used == 7 * 64


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_is_asked_for_is_settled(kind):
    """The second and the third have the same bits, but only the first is wanted."""
    source = ScriptedBits(("0" * 20 + "1" * 44) + ("0110" * 16) * 2)
    assert order_of([5, 5, 5], 1, kind, source) == [(0, 0)]
    assert source.used == 3 * 64


# Cold candidates.


def test_cold_candidates_are_read_where_they_survive():
    """The first of two is far below the second best, but not below the best: eight zeros, and then its own bits."""
    scores, k = [-9, 0, 0], 2
    for v in range(16):
        words = [
            format(8, "04b") + random_bits(60),
            format(9, "04b") + random_bits(60),
            format(v, "04b") + random_bits(60),
        ]
        found = order_of(scores, k, Arrival, ScriptedBits(survivor(0) + NOBODY + "".join(words)))
        cold = time_in_cell(Arrival, 9, 1, v, 4 + COLD)
        intervals = [cold, time_in_cell(Arrival, 0, 1, 8, 4), time_in_cell(Arrival, 0, 1, 9, 4)]
        expected = first_of_cells(intervals, k)
        assert expected is None or found == [(i, 0) for i in expected]
    assert order_of(scores, k, Arrival, ScriptedBits(NOBODY * 2 + random_bits(128)))[0][0] in (1, 2)


@settings(max_examples=100, deadline=None)
@given(
    runs=st.lists(
        st.tuples(st.integers(-30, 30) | st.fractions(-9, 9) | st.floats(-1e300, 1e300), st.integers(1, 5)),
        min_size=1,
        max_size=8,
    ),
    rate=st.fractions("1/10", 10) | st.sampled_from([Fraction("1e-300"), Fraction("1e300")]),
    where=st.floats(0, 1),
)
def test_nobody_who_may_be_among_the_first_is_cold(runs, rate, where):
    """U exp(e) is at most exp(e_k) for k candidates. A cold one has exp(e_k - e) < 2**-8, and all others are hot."""
    scores, lengths = zip(*runs, strict=True)
    k = min(1 + int(where * sum(lengths)), sum(lengths))
    with np.errstate(all="ignore"):
        excess = orders._excess(gaps_of(as_vector(list(scores)), Rate(rate)), np.array(lengths), k)
    exponents = [rate * (max(map(Fraction, scores)) - Fraction(score)) for score in scores]
    kth = sorted(e for e, m in zip(exponents, lengths, strict=True) for _ in range(m))[k - 1]
    for found, exponent in zip((excess <= orders._LOG_256).tolist(), exponents, strict=True):
        above = exponent - kth
        assert found if above < Fraction("5.5451774444") else not found or above < Fraction("5.5451774445")


# Long runs.


@pytest.mark.parametrize(
    ("size", "k", "room"), [(2, 1, 0), (4, 1, 0), (4, 1, -1), (5, 1, -1), (5, 2, -3), (6, 2, -2), (3, 5, 0)], ids=str
)
def test_thinning_keeps_the_law(size, k, room, monkeypatch):
    """Without room for more, short runs are thinned: the numbers in each part of [0, 1] are multinomial."""
    monkeypatch.setattr(orders, "_ROOM", room)
    found = distribution(lambda draws: tuple(orders._thinned(size, k, draws)))
    zeros = max((size // (2 * k + room)).bit_length() - 1, 0)
    # Parts of [0, 1]: U that starts with so many zeros; with one zero less, and then a one; and so on.
    parts = [(0, zeros), *((1, depth) for depth in range(zeros, 0, -1))]
    expected: Counter[tuple[tuple[int, int, int], ...]] = Counter()
    for counts in itertools.product(range(size + 1), repeat=len(parts)):
        if sum(counts) == size:
            chance = Fraction(math.factorial(size))
            for count, (_, depth) in zip(counts, parts, strict=True):
                chance *= Fraction(1, 2**depth) ** count / math.factorial(count)
            needed = next(i for i in range(len(parts)) if sum(counts[: i + 1]) >= min(k, size))
            expected[tuple((c, *part) for c, part in zip(counts[: needed + 1], parts, strict=False))] += chance
    assert found == dict(expected)
    assert sum(found.values()) == 1
    assert zeros == 0 or len({len(groups) for groups in found}) > 1, "also where the first part is not enough"


def test_known_bits_come_first():
    """Bits of U: what is known, then the words; together as many as a float holds, and exactly those."""
    groups = [(1, 0, 0), (2, 0, 5), (2, 1, 3), (1, 1, 1)]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(orders, "_thinned", lambda *_: iter(groups))
        words = [3 << 61, 2**63, 2**64 - 1, 0, 2**64 - 1, 5 << 60]
        source = ScriptedBits("".join(format(word, "064b") for word in words))
        runs, prefixes, depths = orders._members_in_play(np.zeros(1), np.array([7]), 3, source)
    assert runs.tolist() == [0] * 6
    known = [(0, 0), (0, 5), (0, 5), (1, 3), (1, 3), (1, 1)]
    for word, (value, depth), prefix, deep in zip(words, known, prefixes.tolist(), depths.tolist(), strict=True):
        more = deep - depth
        assert prefix.is_integer()
        assert int(prefix) == value << more | word >> (64 - more)
        assert more + value == DEPTH


@pytest.mark.parametrize("length", [10, 200, 10**6, 2**40, 2**59])
@pytest.mark.parametrize("kind", KINDS)
def test_few_of_a_long_run_are_read(kind, length):
    runs, prefixes, depths = orders._members_in_play(np.zeros(1), np.array([length]), 3, Draws())
    assert min(length, 3) <= runs.size <= 1_000
    assert (prefixes < 2.0**53).all()
    assert depths.max() <= 53 + 53
    found = order_of([0], 3, kind, Draws(), [length])
    assert len({rank for _, rank in found}) == 3
    assert all(0 <= rank < length for _, rank in found)


def test_ranks_are_uniform_in_their_runs():
    """Of one run all orders of two members are equally likely, exactly."""
    gaps = gaps_of(np.array([0]), UNIT)
    for kind in KINDS:
        found = distribution(lambda draws, kind=kind: tuple(choose_in_order(gaps, np.array([4]), 2, kind, draws)))
        pairs = {((0, a), (0, b)) for a, b in itertools.permutations(range(4), 2)}
        assert found == dict.fromkeys(pairs, Fraction(1, 12))


# Everything ends.


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_scores_are_put_in_order(kind):
    """All of them are beyond what floats tell apart: each is bracketed once."""
    mechanism = MECHANISMS[kind](1, score_range=1)
    scores = np.resize(np.array([1.7e308, -1.7e308, 1e300, -1e300, 0.0]), 600)
    with at_once(30):
        found = mechanism.select_order(scores, 300)
    assert len(set(found)) == 300
    ranked = [scores[i] for i in found]
    assert ranked == sorted(ranked, reverse=True)


@pytest.mark.parametrize("kind", KINDS)
def test_all_candidates_can_be_put_in_order(kind):
    mechanism = MECHANISMS[kind](1, score_range=1)
    assert sorted(mechanism.select_order([3, 1, 2], 3)) == [0, 1, 2]
    assert sorted(mechanism.select_order([3, 1], 5, lengths=[2, 3])) == list(range(5))
    assert mechanism.select_order([7], 1) == [0]


def test_clusters_are_what_overlaps():
    brackets = dict(enumerate([(-math.inf, 0.5), (0.0, 0.2), (1.0, 2.5), (2.0, 3.0), (5.0, math.inf)]))
    assert list(orders._clusters(brackets)) == [[0, 1], [2, 3], [4]]
    assert list(orders._clusters({3: brackets[0]})) == [[3]]
