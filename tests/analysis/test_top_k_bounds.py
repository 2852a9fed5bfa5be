"""The bounds of the methods for the top k: no counts exceed them, by sums over all sets or by simulation."""

import math
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect.analysis.promises import selection_errors
from dpselect.analysis.top_k import expected_shortfall_of_one_shot
from dpselect.questions.methods import All, Margin, NoisyCounts, OneShot, Peel, Set, log_sets, log_sets_between
from tests import reference
from tests.simulated_top_k import noisy_counts, one_shot, peeling

PMF = {PermuteAndFlip: reference.permute_and_flip_pmf, ExponentialMechanism: reference.exponential_pmf}
JUST = 1 + 1e-9
SIZES = [(2, 1), (4, 1), (4, 2), (5, 3), (5, 4), (6, 2)]
GAPS = [0.4, 0.7, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.5]


def tables(d, k):
    """Counts in descending order: small ones, and some in which the top k or a part of it leads by any number."""
    yield from (tuple(reversed(c)) for c in combinations_with_replacement(range(4), d))
    for gap, top in product([*GAPS, 7.0, 12.0], range(1, d)):
        yield (gap,) * top + (0.0,) * (d - top)
        yield (50.0,) * (k - 1) + (gap,) + (0.0,) * (d - k)


def outcomes(kind, counts, sizes, score):
    """For each set: its probability, its shortfall per item and its cut."""
    sets = [chosen for k in sizes for chosen in combinations(range(len(counts)), k)]
    pmf = PMF[kind]([score(counts, chosen) for chosen in sets], 1.0)
    return [(p, short(counts, chosen), -margin(counts, chosen)) for p, chosen in zip(pmf, sets, strict=True)]


def short(counts, chosen):
    return (sum(counts[: len(chosen)]) - sum(counts[i] for i in chosen)) / len(chosen)


def total(counts, chosen):
    return sum(counts[i] for i in chosen)


def margin(counts, chosen):
    return min(counts[i] for i in chosen) - max(c for i, c in enumerate(counts) if i not in chosen)


def assert_tail(found, place, tail):
    """The probability of each error or a larger one."""
    for x in {one[place] for one in found if one[place] > 0}:
        assert sum(one[0] for one in found if one[place] >= x) <= tail(x) * JUST


@pytest.mark.parametrize("kind", PMF)
@pytest.mark.parametrize(("d", "k"), SIZES)
def test_no_counts_exceed_the_bounds_of_sets(d, k, kind):
    bounds, largest = Set(k, d, 1).bounds(kind), 0.0
    for counts in tables(d, k):
        found = outcomes(kind, counts, [k], total)
        largest = max(largest, sum(p * own for p, own, _ in found))
        assert_tail(found, 1, bounds.tail)
    assert 0.98 * bounds.attained <= largest <= bounds.average * JUST
    assert largest > 0.4 * bounds.average, "the bound is not idle"


@pytest.mark.parametrize("kind", PMF)
@pytest.mark.parametrize(("d", "least", "most"), [(d, k, k) for d, k in SIZES] + [(4, 1, 3), (5, 2, 4)])
def test_no_counts_exceed_the_bounds_of_margins(d, least, most, kind):
    method = Margin(most, d, least=None if least == most else least)
    bounds, largest = method.bounds(kind), 0.0
    for counts in tables(d, least):
        found = outcomes(kind, counts, range(least, most + 1), margin)
        largest = max(largest, sum(p * own for p, own, _ in found))
        assert_tail(found, 2, bounds.tail)
    assert 0.9 * bounds.attained <= largest <= bounds.average * JUST


@pytest.mark.parametrize("kind", PMF)
@pytest.mark.parametrize(("d", "k"), [(4, 2), (6, 2), (7, 5)])
def test_a_gap_makes_the_margin_sure(d, k, kind):
    """Half of the bound of the cut is a gap at which the top k is chosen in 95 of 100 cases; a quarter is not."""
    bound = Margin(k, d).bounds(kind).rarely_exceeded(0.05)
    for share, is_sure in ((1 / 2, True), (1 / 4, False)):
        counts = (share * bound,) * k + (0.0,) * (d - k)
        probability, shortfall, _ = outcomes(kind, counts, [k], margin)[0]
        assert shortfall == 0
        assert (probability >= 0.95) == is_sure


@pytest.mark.parametrize(("d", "k"), [*SIZES, (30, 3), (100, 20), (100, 99)])
def test_no_counts_exceed_the_average_of_one_shot(d, k):
    """By the formula, which is tested against integrals of its own."""
    bounds, largest = OneShot(k, d, ordered=True).bounds(PermuteAndFlip), 0.0
    for counts in tables(d, k) if d < 10 else [(gap,) * k + (0.0,) * (d - k) for gap in np.linspace(0.2, 9, 40)]:
        largest = max(largest, expected_shortfall_of_one_shot(np.array(counts), k, 1.0))
    assert 0.98 * bounds.attained <= largest <= bounds.average * JUST
    assert largest > 0.25 * bounds.average
    peel = Peel(k, d, ordered=True).bounds(PermuteAndFlip)
    assert bounds.average <= peel.average * JUST, "no larger than that of one selection after another"


RUNS = 20_000


def surely_below(hits, runs, bound):
    """Whether the frequency is compatible with a probability of at most the bound, to six standard errors."""
    return hits / runs <= bound + 6 * math.sqrt(max(bound * (1 - bound), 1 / runs) / runs)


SIMULATED = {
    "one-shot": (OneShot, PermuteAndFlip, one_shot),
    "noisy-counts": (NoisyCounts, ReportNoisyMax, noisy_counts),
}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(("d", "k"), [(2, 1), (5, 2), (6, 5), (30, 3)])
@pytest.mark.parametrize("name", SIMULATED)
def test_no_counts_exceed_the_bounds_of_noise(name, d, k, ordered):
    method, kind, simulate = SIMULATED[name]
    if name == "one-shot" and not ordered and 2 * k > d:
        k = d // 2  # otherwise what is left out is chosen, which the next test covers
    bounds = method(k, d, 1, ordered=ordered).bounds(kind)
    generator, means, fills = np.random.default_rng(d + k), [], []
    for gap in (0.5, 1.0, 2.0, 3.0, 5.0, 8.0):
        counts = np.array((gap,) * k + (0.0,) * (d - k))
        counts += 0.01 * np.arange(d)[::-1]
        chosen = counts[simulate(counts, k, 1.0, RUNS, generator)]
        means.append((counts[:k].sum() - chosen.sum(axis=1)).mean() / k)
        if ordered:
            worst = (counts[:k] - chosen).max(axis=1)
        else:
            is_wrong = chosen.min(axis=1) < counts[k - 1] - 1e-6
            worst = np.where(is_wrong, gap, 0.0)  # the cut is about the gap if anything is wrong
        for x in (0.4, 0.9, 1.9, 2.9, 4.9, 7.9):
            assert surely_below((worst >= x).sum(), RUNS, bounds.tail(x))
            fills.append((worst >= x).mean() / bounds.tail(x))
    assert max(means) <= bounds.average
    assert max(means) > 0.9 * bounds.attained
    assert max(fills) > 0.25, "the tail is not idle"


@pytest.mark.parametrize("name", ["one-shot", "peel"])
@pytest.mark.parametrize(("d", "k"), [(3, 2), (6, 5), (10, 7)])
def test_no_counts_exceed_the_bounds_of_what_is_left_out(name, d, k):
    method = {"one-shot": OneShot, "peel": Peel}[name](k, d)
    assert method.leaves_out
    bounds, generator, means = method.bounds(PermuteAndFlip), np.random.default_rng(4), []
    for gap in (0.5, 1.0, 2.0, 3.0, 5.0, 8.0):
        counts = np.array((gap,) * k + (0.0,) * (d - k))
        simulate = one_shot if name == "one-shot" else peeling
        out = simulate(-counts, d - k, 1.0, RUNS, generator, waits=True)
        lost = counts[out].sum(axis=1) / k
        means.append(lost.mean())
        wrong = lost if name == "peel" else np.where(lost > 0, gap, 0.0)  # for one shot the tail is about the cut
        for x in (0.1, 0.4, 0.9, 1.9, 4.9):
            assert surely_below((wrong >= x).sum(), RUNS, bounds.tail(x))
    assert 0.9 * bounds.attained < max(means) <= bounds.average


def test_peeling_has_the_bounds_of_one_selection():
    method = Peel(3, 30)
    assert method.bounds(ExponentialMechanism) == selection_errors(ExponentialMechanism, math.log(30))


def test_all_candidates_have_no_error():
    bounds = All(5, 5).bounds(PermuteAndFlip)
    assert (bounds.average, bounds.attained, bounds.tail(1e-9), bounds.rarely_exceeded(0.05)) == (0, 0, 0, 0)


@pytest.mark.parametrize("method", [OneShot, NoisyCounts])
def test_all_candidates_in_order_have_no_shortfall_but_an_order(method):
    bounds = method(5, 5, 1, ordered=True).bounds(PermuteAndFlip if method is OneShot else ReportNoisyMax)
    assert bounds.average == bounds.attained == 0
    assert 3 < bounds.rarely_exceeded(0.05) < 8


# The number of sets.


def test_sets_are_counted_exactly_or_from_above():
    for d, k in [(2, 1), (5, 2), (5, 5), (1000, 10), (1000, 990), (600, 300), (2**53, 3)]:
        assert log_sets(d, k) == pytest.approx(math.log(math.comb(d, k)), rel=1e-14)
    for d, k in [(602, 301), (5_000, 301), (5_000, 4_699), (20_000, 7_000), (3_000, 1_500)]:
        truth = math.log(math.comb(d, k))
        assert truth < log_sets(d, k) < truth + 1 / 1800
    assert log_sets(2**53, 2**52) == pytest.approx(2**53 * math.log(2), rel=1e-12)


def test_sets_of_several_sizes_are_counted_exactly_or_from_above():
    for d, least, most in [(10, 1, 9), (30, 3, 8), (400, 100, 300)]:
        truth = math.log(sum(math.comb(d, k) for k in range(least, most + 1)))
        assert log_sets_between(d, least, most) == pytest.approx(truth, rel=1e-13)
    for d, least, most in [(1000, 400, 500), (1000, 1, 999), (2000, 1500, 1999)]:
        truth = math.log(sum(math.comb(d, k) for k in range(least, most + 1)))
        assert truth * (1 - 1e-13) <= log_sets_between(d, least, most) < truth + math.log(most - least + 2)


def test_bounds_of_sets_grow_with_the_number_of_candidates():
    """Through the change to Stirling's formula, and to numbers of sets far beyond floats."""
    for kind in PMF:
        for k in (300, 301, 400):
            grown = [Set(k, d, 1).bounds(kind).average for d in (800, 801, 10**4, 10**6, 10**9, 2**53)]
            assert grown == sorted(grown)
            assert grown[0] < grown[-1]
        near = [k * Set(k, 2_000, 1).bounds(kind).average for k in range(295, 306)]
        assert near == sorted(near)
        steps = np.diff(near)
        assert steps.max() < 1.03 * steps.min()
