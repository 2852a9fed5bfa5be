"""Sets by their margin: runs of sets are those of brute force, lengths are enclosed, members are uniform."""

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpz

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import Rate
from dpselect.selection.races import Arrival, Tick
from dpselect.selection.sets import LogFactorials, MarginRun, MarginRuns
from tests.reference import ball
from tests.seam import ScriptedBits, distribution
from tests.selection.samplers import FILL, Nobody, Surviving, first_of_cells, margin, sets_of, slow, time_in_cell
from tests.statistical.goodness import assert_fits, assert_rejected
from tests.watchdog import at_once


@pytest.fixture(autouse=True)
def _silent():
    """The kernels run where NumPy does not warn, as `select_margin` sees to it."""
    with np.errstate(all="ignore"):
        yield


def margin_runs(ranked, interval, rate=1):
    """The runs of counts in descending order."""
    counts, sizes = np.unique(np.array(ranked, np.int64), return_counts=True)
    return MarginRuns(counts[::-1], sizes[::-1], interval, Rate(Fraction(rate)))


def all_runs(runs):
    """The prefixes, and each h with each place that a last rank can have, if there are such sets."""
    found = [MarginRun(k, None) for k in range(runs._lo, runs._hi + 1)]
    places = itertools.product(range(runs._hi), range(runs._first, runs._counts.size))
    return [*found, *(run for run in itertools.starmap(MarginRun, places) if runs.exact(run)[1])]


def run_of(ranked, chosen):
    """The run of a set of ranks: how long its prefix is, and the place of its last count among the different ones."""
    prefix = next((i for i in range(len(chosen)) if chosen[i] != i), len(chosen))
    if prefix == len(chosen):
        return MarginRun(prefix, None)
    return MarginRun(prefix, sorted(set(ranked), reverse=True).index(ranked[chosen[-1]]))


def patterns(size):
    """Counts in descending order with every pattern of ties; the last are zeros, or not, and gaps differ."""
    for ties in itertools.product((False, True), repeat=size - 1):
        for last in (0, 3):
            ranked = [last]
            for step, tie in enumerate(ties):
                ranked.append(ranked[-1] + (0 if tie else 1 + step % 3))
            yield ranked[::-1]


def assert_runs_are_those_of_brute_force(ranked, interval):
    runs = margin_runs(ranked, interval, Fraction(2, 3))
    grouped = defaultdict(list)
    for chosen in sets_of(len(ranked), range(interval[0], interval[1] + 1)):
        grouped[run_of(ranked, chosen)].append(margin(ranked, chosen))
    best = max(itertools.chain.from_iterable(grouped.values()))
    expected = {run: (Fraction(2, 3) * (best - margins[0]), len(margins)) for run, margins in grouped.items()}
    assert all(len(set(margins)) == 1 for margins in grouped.values()), "equal margins"
    assert {run: runs.exact(run) for run in all_runs(runs)} == expected


@pytest.mark.parametrize("size", [2, 3, 4, 5, slow(6), slow(7)])
def test_runs_are_those_of_brute_force(size):
    """Every pattern of ties, every interval of sizes: which runs there are, their exact exponents and lengths."""
    for ranked in patterns(size):
        for interval in itertools.combinations_with_replacement(range(1, size), 2):
            assert_runs_are_those_of_brute_force(ranked, interval)


def test_some_larger_ones_are_those_of_brute_force():
    for ranked, interval in (
        ([9, 9, 7, 4, 4, 4, 1, 0, 0], (4, 4)),
        ([9, 9, 9, 9, 9, 9, 9, 9, 9], (2, 7)),
        ([8, 7, 6, 5, 4, 3, 2, 1, 0], (3, 5)),
        ([10**18, 10**18 - 1, 5, 5, 5, 0, 0, 0], (1, 7)),
    ):
        assert_runs_are_those_of_brute_force(ranked, interval)


@pytest.mark.parametrize(
    ("size", "interval"), [(12, (5, 5)), (40, (1, 39)), (200, (100, 100)), (300, (7, 11)), (64, (1, 1)), (64, (63, 63))]
)
@pytest.mark.parametrize("values", [1, 2, 10, 10**6])
def test_lengths_add_up_to_all_sets(size, interval, values):
    ranked = sorted((FILL.randrange(values) for _ in range(size)), reverse=True)
    runs = margin_runs(ranked, interval)
    total = sum(runs.exact(run)[1] for run in all_runs(runs))
    assert total == sum(math.comb(size, k) for k in range(interval[0], interval[1] + 1))


# Lengths in floats.


def log_ball(number: int) -> arb:
    return arb(fmpz(number)).log()


def test_log_factorials_are_far_inside_their_margin():
    """SciPy's gammaln is trusted to 256 units in the last place; this machine's is measured against flint."""
    numbers = [*range(200), *(FILL.randrange(200, 2**22) for _ in range(300)), 2**22]
    for logs in (LogFactorials(2**22), LogFactorials(2**22 + 1)):  # from a table, and without
        found = logs.of(np.array(numbers))
        with ctx.workprec(120):
            for number, near in zip(numbers, found.tolist(), strict=True):
                truth = arb(fmpz(number + 1)).lgamma()
                assert abs(ball(near) - truth) <= abs(truth) * arb(2) ** -49 + arb(2) ** -1000


@pytest.mark.parametrize("largest", [1, 5, 100, 10**4, 2**22, 2**22 + 5, 2**40, 2**60])
def test_binomial_coefficients_are_within_their_error(largest):
    logs = LogFactorials(largest)
    for r in (r for r in (0, 1, 2, 50, 1_000) if r <= largest):
        above = [n for n in {r, r + 1, r + 7, largest // 2, largest - 1, largest} if r <= n <= largest]
        found = logs.choose(np.array([*above, r - 1]), r)
        assert found[-1] == -np.inf
        with ctx.workprec(200):
            for n, near in zip(above, found.tolist(), strict=False):
                assert abs(ball(near) - log_ball(math.comb(n, r))) <= ball(logs.error)


def assert_lengths_are_enclosed(runs, chosen, width=None):
    """Bounds of the logarithms of the lengths of these runs enclose them, and are so narrow."""
    by_h = defaultdict(list)
    for run in chosen:
        by_h[run.h].append(run.place)
    for h, places in by_h.items():
        low, high = (runs._log_lengths(h, np.array(places), upper) for upper in (False, True))
        with ctx.workprec(200):
            for place, least, most in zip(places, low.tolist(), high.tolist(), strict=True):
                length = runs.exact(MarginRun(h, place))[1]
                if not length:
                    assert (least, most) == (-math.inf, -math.inf)
                    continue
                truth = log_ball(length)
                assert least == -math.inf or not ball(least) > truth
                assert not ball(most) < truth
                if width is not None:
                    assert most - least <= width


@pytest.mark.parametrize(
    ("size", "interval", "values"),
    [
        (5, (2, 2), 3),
        (12, (5, 5), 20),
        (12, (1, 11), 4),
        (60, (30, 30), 10),
        (60, (10, 50), 60),
        (300, (20, 25), 300),
        (300, (299, 299), 5),
        (300, (1, 1), 5),
        (1_000, (100, 100), 3),
        (1_000, (2, 4), 1),
    ],
    ids=str,
)
def test_lengths_are_enclosed(size, interval, values):
    ranked = sorted((FILL.randrange(values) for _ in range(size)), reverse=True)
    runs = margin_runs(ranked, interval)
    every = [MarginRun(h, p) for h in range(interval[1]) for p in range(runs._first, runs._counts.size)]
    assert_lengths_are_enclosed(runs, FILL.sample(every, min(len(every), 60)), width=1e-6)


@pytest.mark.parametrize("values", [3, 1_000, 10**9], ids=["wide", "tied", "different"])
def test_lengths_of_a_million_candidates_are_enclosed(values):
    ranked = np.sort(np.random.default_rng().integers(values, size=10**6))[::-1]
    runs = margin_runs(ranked, (100, 100))
    places = [runs._first, runs._counts.size - 1, *(FILL.randrange(runs._first, runs._counts.size) for _ in range(8))]
    assert_lengths_are_enclosed(runs, [MarginRun(h, p) for h in (0, 1, 50, 98, 99) for p in places], width=1e-2)


def test_lengths_of_astronomical_classes_are_enclosed():
    """Floats know next to nothing about the factorials of such numbers, but what they claim holds."""
    runs = MarginRuns(np.array([9, 5, 0]), np.array([3, 2**40, 2**59]), (2, 5), Rate(Fraction(1)))
    assert_lengths_are_enclosed(runs, [MarginRun(h, p) for h in range(5) for p in range(runs._first, 3)])


def test_classes_that_hardly_matter_are_enclosed():
    """A class of two behind a million: the number of sets is a small difference of two large ones."""
    runs = MarginRuns(np.array([9, 5, 2, 0]), np.array([1, 10**6, 2, 2]), (3, 3), Rate(Fraction(1)))
    assert_lengths_are_enclosed(runs, [MarginRun(h, p) for h in range(3) for p in range(4)], width=1e-4)


# Which runs are read.


@pytest.mark.parametrize("kind", [Arrival, Tick])
@pytest.mark.parametrize("rate", ["1/100", 1, 7, Fraction("1e-400"), Fraction("1e400")], ids=str)
@pytest.mark.parametrize("interval", [(1, 1), (3, 3), (7, 7), (2, 6)], ids=str)
def test_every_run_is_read_once_and_cold_ones_rarely_have_a_head(interval, rate, kind):
    ranked = [40, 31, 30, 30, 12, 9, 9, 0]
    runs = margin_runs(ranked, interval, rate)
    seen: dict[MarginRun, int] = {}
    for own, exponents, (least, most), zeros in runs._warm(kind, Surviving()):
        for place in range(len(zeros)):
            run = own[place]
            assert run not in seen
            seen[run] = int(zeros[place])
            exact, length = runs.exact(run)
            with ctx.workprec(300):
                assert not ball(float(least[place])) > log_ball(length)
                assert not ball(float(most[place])) < log_ball(length)
                near = Fraction(float(exponents[place]))
                is_near = abs(near - exact) <= exact * Fraction(1, 2**50) + Fraction(1, 2**800)
                assert is_near or (near > 2**100 and near <= exact)
                if seen[run]:
                    assert log_ball(length) - ball(min(exact, Fraction(10**6))) < -8 * arb(2).log()
    assert set(seen) == set(all_runs(runs))
    hot = {own[i] for own, _, _, zeros in runs._warm(kind, Nobody("")) for i in range(len(zeros))}
    assert hot == {run for run, zeros in seen.items() if not zeros}
    if kind is Tick:
        assert hot == set(seen), "the first ring may come late"


@pytest.mark.parametrize("kind", [Arrival, Tick])
@pytest.mark.parametrize(("ranked", "interval"), [([5, 4, 2, 2], (2, 2)), ([3, 2, 0], (1, 2)), ([2, 2, 1], (2, 2))])
def test_the_earliest_run_of_every_cell_wins(ranked, interval, kind):
    """All runs are hot here. Their words are drawn for the prefixes first, and then for each h."""
    bits = 2
    runs = margin_runs(ranked, interval, Fraction(1, 3))
    order = [own[i] for own, _, _, zeros in runs._warm(kind, Nobody("")) for i in range(len(zeros))]
    assert set(order) == set(all_runs(runs))
    ends = [[time_in_cell(kind, *runs.exact(run), v, bits) for v in range(2**bits)] for run in order]
    decided = 0
    for cell in itertools.product(range(2**bits), repeat=len(order)):
        first = first_of_cells([ends[i][v] for i, v in enumerate(cell)])
        if first:
            decided += 1
            words = [format(v, f"0{bits}b") + format(FILL.getrandbits(64 - bits), f"0{64 - bits}b") for v in cell]
            assert runs.earliest(kind, Nobody("".join(words))) == order[first[0]]
    assert decided > 0.1 * 4 ** len(order)


def test_equal_words_of_equal_runs_are_settled_by_more_bits():
    """Two prefixes with the same margin."""
    runs = margin_runs([9, 6, 3, 3], (1, 2))
    assert [runs.exact(MarginRun(k, None)) for k in (1, 2)] == [(0, 1), (0, 1)]
    others = sum(len(zeros) for _, _, _, zeros in runs._warm(Tick, Draws())) - 2
    for more, winner in (("0" * 64 + "1" * 64, 1), ("1" * 64 + "0" * 64, 2)):
        script = "0" * 40 + "1" * 24
        assert runs.earliest(Tick, ScriptedBits(script * 2 + "1" * 64 * others + more)) == (winner, None)


# Members.


@pytest.mark.parametrize(
    ("ranked", "interval"), [([5, 4, 4, 2, 2], (2, 3)), ([1, 1, 1, 1, 1], (2, 2)), ([4, 3, 2, 1, 0], (1, 4))]
)
def test_members_are_uniform_exactly(ranked, interval):
    grouped = defaultdict(set)
    for chosen in sets_of(len(ranked), range(interval[0], interval[1] + 1)):
        grouped[run_of(ranked, chosen)].add(chosen)
    runs = margin_runs(ranked, interval)
    for run, members in grouped.items():
        found = distribution(lambda draws, run=run: tuple(runs.member(run, draws)))
        assert found == dict.fromkeys(members, Fraction(1, len(members)))


@pytest.mark.parametrize(("size", "interval"), [(200, (20, 20)), (200, (150, 180)), (10**5, (30, 30))], ids=str)
def test_members_of_a_run_have_its_margin(size, interval):
    ranked = np.sort(np.random.default_rng().integers(size // 3, size=size))[::-1].tolist()
    runs = margin_runs(ranked, interval)
    best = max(runs._margins.values())
    for _ in range(20):
        run = MarginRun(FILL.randrange(interval[1]), FILL.randrange(runs._first, runs._counts.size))
        exponent, length = runs.exact(run)
        if length:
            chosen = runs.member(run, Draws())
            assert interval[0] <= len(set(chosen)) <= interval[1]
            assert chosen == sorted(chosen)
            inside = set(chosen)
            outside = next(i for i in range(size) if i not in inside)
            assert run_of(ranked, tuple(chosen)) == run
            assert exponent == best - (ranked[chosen[-1]] - ranked[outside])


# Statistics.


LAWS = [PermuteAndFlip, ExponentialMechanism]


@pytest.mark.parametrize("kind", LAWS)
def test_extreme_rates(kind):
    """A rate near zero makes all sets alike; a huge one leaves the best, of which two may be alike."""
    counts, draws = [7, 5, 5, 0], 800
    sets = list(itertools.combinations(range(4), 2))
    found = Counter(tuple(kind("1e-400", score_range=1).select_margin(counts, 2)) for _ in range(draws))
    assert_fits([found[chosen] for chosen in sets], [1 / 6] * 6)
    found = Counter(tuple(kind("1e400", score_range=1).select_margin(counts, 2)) for _ in range(draws))
    assert set(found) == {(0, 1), (0, 2)}
    assert_fits(list(found.values()), [1 / 2] * 2)
    for wrong in ([0.3, 0.7], [0.7, 0.3]):
        assert_rejected(list(found.values()), wrong, truth=[1 / 2] * 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAWS)
def test_large_questions_end(kind):
    """20,000 candidates, a clear cut at 50: floats exclude nearly all of a million runs."""
    counts = np.random.default_rng(3).integers(0, 200, 20_000)
    counts[::400] = 5_000
    with at_once(60):
        assert kind(1, score_range=2).select_margin(counts, 50) == list(range(0, 20_000, 400))
        assert len(kind(1, score_range=2).select_margin(counts, (10, 12))) in (10, 11, 12)
        assert kind(1, score_range=2).select_margin([900, 0], 1, lengths=[1, 2**59]) == [0]
