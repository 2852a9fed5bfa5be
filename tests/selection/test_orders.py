"""Orders from one draw of noise: the first k arrivals of every cell of bits, and their law."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect._scores import as_vector
from dpselect.selection import races as orders
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import Rate, gaps_of
from dpselect.selection.races import DEPTH, Arrival, Tick, TwoSided, choose_in_order
from tests.seam import ScriptedBits, distribution
from tests.selection.samplers import assert_drawn, random_bits, slow
from tests.selection.test_runs import COLD, NOBODY, shares_by_integral, survivor
from tests.statistical.goodness import assert_fits, assert_rejected
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


def log_time(kind, v):
    """The definition of ln T without its exponent, at a rational V; None where it is infinite."""
    if v in (0, 1) and not (kind is Arrival and v == 1):
        return None
    v = arb(fmpq(v.numerator, v.denominator))
    if kind is Arrival:
        return v.log()
    if kind is Tick:
        return (-(1 - v).log()).log()
    return (2 * v).log() if 2 * v <= 1 else -(2 * (1 - v)).log()


def bounds(kind, exponent, prefix, depth):
    """Floats below and above ln T in a cell of V."""
    low, high = (log_time(kind, Fraction(prefix + end, 2**depth)) for end in (0, 1))
    return (
        -math.inf if low is None else float(low) + float(exponent) - 1e-9,
        math.inf if high is None else float(high) + float(exponent) + 1e-9,
    )


def first_of_cells(intervals, k):
    """The first k of these intervals in order, if they are certain; else None."""
    order = sorted(range(len(intervals)), key=intervals.__getitem__)[: k + 1]
    for place, following in itertools.pairwise(order):
        if intervals[place][1] >= intervals[following][0]:
            return None
    rest = [intervals[i][0] for i in range(len(intervals)) if i not in order[:k]]
    return order[:k] if all(intervals[order[k - 1]][1] < low for low in rest) else None


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
    ends = [[bounds(kind, best - Fraction(s), v, bits) for v in range(2**bits)] for s in scores]
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
        cold = bounds(Arrival, 9, v, 4 + COLD)
        intervals = [cold, bounds(Arrival, 0, 8, 4), bounds(Arrival, 0, 9, 4)]
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


# Laws.


def one_shot_law(exponents, k):
    """The probability of each order of k, where T is uniform up to exp(e): integrals of polynomials in pieces."""
    ends = np.exp(np.array(exponents, float))
    edges = np.concatenate([[0.0], np.unique(ends)])
    pieces = list(itertools.pairwise(edges.tolist()))

    def density(i):
        return [Polynomial([1 / ends[i] if high <= ends[i] else 0.0]) for _, high in pieces]

    def later(i):
        return [Polynomial([1.0, -1 / ends[i]] if high <= ends[i] else [0.0]) for _, high in pieces]

    def integrated(parts):
        total, found = 0.0, []
        for part, (low, high) in zip(parts, pieces, strict=True):
            primitive = part.integ()
            found.append(primitive - primitive(low) + total)
            total = found[-1](high)
        return found, total

    def law(order):
        before = [Polynomial([1.0])] * len(pieces)
        for i in order[:-1]:
            before, _ = integrated([a * b for a, b in zip(before, density(i), strict=True)])
        parts = [a * b for a, b in zip(before, density(order[-1]), strict=True)]
        for other in set(range(len(exponents))) - set(order):
            parts = [a * b for a, b in zip(parts, later(other), strict=True)]
        return integrated(parts)[1]

    return {order: law(order) for order in itertools.permutations(range(len(exponents)), k)}


def plackett_law(exponents, k):
    """One exponential mechanism after another."""
    weights = np.exp(-np.array(exponents, float))

    def law(order):
        left, total = weights.sum(), 1.0
        for i in order:
            total *= weights[i] / left
            left -= weights[i]
        return total

    return {order: law(order) for order in itertools.permutations(range(len(exponents)), k)}


def laplace_law(exponents, k):
    """Integrals over a grid that has the kinks of all densities among its points."""
    grid = np.linspace(-60, 40, 100 * 256 + 1)  # exponents are multiples of 1/256 in these tests
    shifted = grid + np.array(exponents, float)[:, None]
    density = np.exp(-np.abs(shifted)) / 2
    below = np.where(shifted < 0, np.exp(np.minimum(shifted, 0)) / 2, 1 - np.exp(-np.maximum(shifted, 0)) / 2)
    step = grid[1] - grid[0]

    def above(values):
        """The integral from each point to the right end."""
        cells = (values[1:] + values[:-1]) * step / 2
        return np.concatenate([np.cumsum(cells[::-1])[::-1], [0.0]])

    def law(order):
        before = np.ones(grid.size)
        for i in order[:-1]:
            before = above(before * density[i])
        others = np.prod([below[j] for j in set(range(len(exponents))) - set(order)], axis=0)
        return above(before * density[order[-1]] * others)[0]

    found = {order: law(order) for order in itertools.permutations(range(len(exponents)), k)}
    total = sum(found.values())
    assert abs(total - 1) < 1e-4
    return {order: p / total for order, p in found.items()}


LAWS = {Arrival: one_shot_law, Tick: plackett_law, TwoSided: laplace_law}


@pytest.mark.parametrize("kind", KINDS)
def test_the_laws_sum_to_one(kind):
    for exponents, k in (([0, 1, 2], 2), ([0, 0, 0.5, 3], 3)):
        law = LAWS[kind](exponents, k)
        assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    assert LAWS[kind]([0, 0, 0], 3) == pytest.approx(dict.fromkeys(law_keys(3), 1 / 6), abs=1e-6)


def law_keys(count):
    return list(itertools.permutations(range(count)))


STATISTICS = {
    "near": ([3, 2, 0, 1], 2, 1),
    "ties": ([1, 1, 0], 3, 2),
    "one": ([0, 1, 3], 1, 1),
    "cold": ([0, 9, 10, 1], 2, 1),
    "floats": ([0.25, -0.5, 1.75], 2, 1),
    "fractions": ([Fraction(1, 4), Fraction(-5, 8), Fraction(10**20 + 1, 10**20)], 2, 2),
}
DRAWS = 1_500


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["near", slow("ties"), slow("one"), "cold", slow("floats"), "fractions"])
def test_draws_fit_and_those_of_another_rate_do_not(case, kind):
    scores, k, epsilon = STATISTICS[case]
    mechanism = MECHANISMS[kind](epsilon, score_range=1)

    def law(rate):
        return LAWS[kind]([float(round(rate * 256 * (max(scores) - Fraction(s)))) / 256 for s in scores], k)

    laws = law(mechanism.rate), law(mechanism.rate / 4)
    assert_drawn(lambda: tuple(mechanism.select_order(scores, k)), DRAWS, *laws)


@pytest.mark.parametrize("kind", [Arrival, slow(Tick), slow(TwoSided)])
def test_each_law_is_told_from_the_others(kind):
    scores, k, draws = [2, 0, 0, 0], 2, 5_000 if kind is Arrival else 12_000
    mechanism = MECHANISMS[kind](1, score_range=1)
    found = Counter(tuple(mechanism.select_order(scores, k)) for _ in range(draws))
    laws = {own: LAWS[own]([0, 2, 2, 2], k) for own in KINDS}
    # Where the best one is: first, second or not chosen.
    counts, cells = np.zeros(3), {own: np.zeros(3) for own in KINDS}
    for order in laws[kind]:
        place = order.index(0) if 0 in order else 2
        counts[place] += found[order]
        for own in KINDS:
            cells[own][place] += laws[own][order]
    assert_fits(counts, cells[kind])
    for own in set(KINDS) - {kind}:
        assert_rejected(counts, cells[own], truth=cells[kind])


def law_of_one_among_many(kind, length, gap):
    """A single candidate and a longer run that is lower: its place among the first two, or none."""
    p = math.exp(-gap)
    if kind is Tick:
        first = 1 / (1 + length * p)
        second = (1 - first) / (1 + (length - 1) * p)
    else:  # T of the single one is t: none of the others is before it, or one is
        first = shares_by_integral([1, length], [0, gap])[0]
        nodes, weights = np.polynomial.legendre.leggauss(30)
        edges = np.concatenate([[0.0], np.geomspace(1e-12, 1, 300)])
        t = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
        w = (np.diff(edges)[:, None] * weights / 2).ravel()
        second = float((length * p * t * np.exp((length - 1) * np.log1p(-p * t))) @ w)
    return [first, second, 1 - first - second]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Arrival, Tick])
@pytest.mark.parametrize(
    ("length", "gap"),
    [(40, 3), (10**6, 13), slow(10**12, 27), slow(2**59, 40)],
)
def test_a_long_run_has_the_law_of_its_candidates(kind, length, gap):
    """Also a run so long that its first arrivals start with more than fifty zeros; eight times as many are told."""
    draws, counts = 400, [0, 0, 0]
    mechanism = MECHANISMS[kind](1, score_range=1)
    for _ in range(draws):
        chosen = mechanism.select_order([gap, 0], 2, lengths=[1, length])
        counts[chosen.index(0) if 0 in chosen else 2] += 1
        assert len(set(chosen)) == 2
        assert max(chosen) <= length
    right, wrong = (law_of_one_among_many(kind, size, gap) for size in (length, length / 8))
    assert_fits(counts, right)
    assert_rejected(counts, wrong, truth=right)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_runs_have_the_law_of_the_candidates_they_stand_for(kind):
    scores, lengths, k = [2, 0, 1], [1, 2, 2], 2
    mechanism = MECHANISMS[kind](1, score_range=1)
    laws = (LAWS[kind]([rate * e for e in (0, 2, 2, 1, 1)], k) for rate in (1, 0))
    assert_drawn(lambda: tuple(mechanism.select_order(scores, k, lengths=lengths)), DRAWS, *laws)


def test_draws_stay_right_where_floats_doubt(monkeypatch):
    """With a margin of a fifth the exact order decides often."""
    monkeypatch.setattr("dpselect.selection.races.MARGIN", 0.2)
    for kind in KINDS:
        mechanism = MECHANISMS[kind](1, score_range=1)
        laws = (LAWS[kind](exponents, 2) for exponents in ([0, 2, 1], [0, 0, 0]))
        assert_drawn(lambda own=mechanism: tuple(own.select_order([2, 0, 1], 2)), 600, *laws)


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
