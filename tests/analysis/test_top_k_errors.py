"""Errors of a top-k answer: bounds that no counts exceed, and exact errors against sums over all sets and the samplers.

The rates are derived here by hand, and the probabilities are those of `tests.reference`.
"""

import itertools
import math
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product

import numpy as np
import pytest
from scipy import stats

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, analysis, select_top_k
from dpselect._scores import as_vector
from dpselect.accounting.budget import Price
from dpselect.analysis import top_k_error
from dpselect.analysis.measures import selection_errors
from dpselect.analysis.top_k import expected_shortfall_of_one_shot
from dpselect.mechanisms.privacy import BOUNDED_RANGE, LAPLACE, PERMUTE_AND_FLIP, epsilon_of_rho
from dpselect.questions import TopK
from dpselect.questions.methods import METHODS, All, Margin, NoisyCounts, OneShot, Peel, Set, log_sets, log_sets_between
from dpselect.top_k import seeded, simulated_answers
from tests import reference
from tests.simulated_top_k import noisy_counts, one_shot, peeling
from tests.statistical.goodness import THRESHOLD, assert_fits, assert_rejected
from tests.top_k.exact import margin, total

PMF = {PermuteAndFlip: reference.permute_and_flip_pmf, ExponentialMechanism: reference.exponential_pmf}
JUST = 1 + 1e-9
SIZES = [(2, 1), (4, 1), (4, 2), (5, 3), (5, 4), (6, 2)]
COUNTS = [9, 7, 7, 4, 2, 0]
GAPS = [0.4, 0.7, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.5]


def tables(d, k):
    """Counts in descending order: small ones, and some in which the top k or a part of it leads by any number."""
    yield from (tuple(reversed(c)) for c in combinations_with_replacement(range(4), d))
    for gap, top in product([*GAPS, 7.0, 12.0], range(1, d)):
        yield (gap,) * top + (0.0,) * (d - top)
        yield (50.0,) * (k - 1) + (gap,) + (0.0,) * (d - k)


def outcomes(kind, counts, sizes, score, rate=1.0):
    """For each set: its probability, its shortfall per item and its cut."""
    sets = [chosen for k in sizes for chosen in combinations(range(len(counts)), k)]
    pmf = PMF[kind]([score(counts, chosen) for chosen in sets], rate)
    return [(p, short(counts, chosen), -margin(counts, chosen)) for p, chosen in zip(pmf, sets, strict=True)]


def mean_short(*asked):
    return sum(p * own for p, own, _ in outcomes(*asked))


def short(counts, chosen):
    return (sum(sorted(counts, reverse=True)[: len(chosen)]) - sum(counts[i] for i in chosen)) / len(chosen)


def assert_tail(found, place, tail):
    """The probability of each error or a larger one."""
    for x in {one[place] for one in found if one[place] > 0}:
        assert sum(one[0] for one in found if one[place] >= x) <= tail(x) * JUST


# The method, its sizes, what it scores, the place of what its tail is about, and how much of the bound is attained.
ONE_CHOICE = [
    *((Set(k, d, 1), [k], total, 1, 0.98) for d, k in SIZES),
    *((Margin(k, d), [k], margin, 2, 0.9) for d, k in SIZES),
    *(
        (Margin(most, d, least=least), range(least, most + 1), margin, 2, 0.9)
        for d, least, most in [(4, 1, 3), (5, 2, 4)]
    ),
]


@pytest.mark.parametrize("kind", PMF)
@pytest.mark.parametrize(("method", "sizes", "score", "place", "share"), ONE_CHOICE)
def test_no_counts_exceed_the_bounds_of_one_choice(method, sizes, score, place, share, kind):
    bounds, largest = method.bounds(kind), 0.0
    for counts in tables(method.candidates, sizes[0]):
        found = outcomes(kind, counts, sizes, score)
        largest = max(largest, sum(p * own for p, own, _ in found))
        assert_tail(found, place, bounds.tail)
    assert share * bounds.attained <= largest <= bounds.average * JUST
    assert score is margin or largest > 0.4 * bounds.average, "the bound is not idle"


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


def test_all_candidates_have_a_bound_of_zero():
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
    for d, k in [(2**63, 1000), (2**64, 1000), (2**80, 400), (10**400, 1000)]:  # beyond all floats
        truth = sum(math.log(d - i) - math.log(k - i) for i in range(k))
        assert truth < log_sets(d, k) < truth + 1e-3 + 1e-12 * truth
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


def peeled(counts, k, rate, kind):
    """The expected shortfall of one choice after another, over all sequences."""

    def probability(sequence):
        left, product = list(range(len(counts))), 1.0
        for chosen in sequence:
            product *= PMF[kind]([counts[i] for i in left], rate)[left.index(chosen)]
            left.remove(chosen)
        return product

    return sum(probability(s) * short(counts, s) for s in permutations(range(len(counts)), k))


# Exact results.


# The method, what is asked, and by what the epsilon is divided for the rate. The sum of a set moves by at most m, k and
# d - k; twice that if a person is replaced.
AT_RATES = [
    ("set", 2, {"max_values": 1}, 1),
    ("set", 2, {"max_values": 1, "monotonic": False}, 2),
    ("set", 3, {"max_values": 2}, 2),
    ("set", 3, {"max_values": 9}, 3),
    ("set", 4, {"max_values": 9}, 2),
    ("set", 4, {"max_values": 9, "monotonic": False}, 4),
    ("margin", 2, {}, 2),
    ("margin", 5, {"monotonic": False}, 4),
    ("margin", (1, 3), {}, 2),
    ("peel", 1, {}, 1),
    ("peel", 2, {}, 2),
    ("peel", 3, {"monotonic": False}, 6),
]


@pytest.mark.parametrize("kind", PMF)
@pytest.mark.parametrize(("method", "k", "options", "divisor"), AT_RATES, ids=str)
def test_exact_errors_at_the_rate_that_is_charged(kind, method, k, options, divisor):
    found = top_k_error(COUNTS, k, epsilon="0.5", method=method, mechanism=kind.name, **options)
    if method == "peel":
        truth = peeled(COUNTS, k, 0.5 / divisor, kind)
    else:
        sizes = range(k[0], k[1] + 1) if isinstance(k, tuple) else [k]
        truth = mean_short(kind, COUNTS, sizes, total if method == "set" else margin, 0.5 / divisor)
    assert found.mean == pytest.approx(truth, rel=1e-9)
    assert (found.low, found.high, found.exact, found.runs) == (found.mean, found.mean, True, 0)
    assert (found.method, found.unit, float(found)) == (method, "people", found.mean)


@pytest.mark.parametrize(
    ("method", "mechanism", "loss", "shares"),
    [
        ("set", "exponential", BOUNDED_RANGE, 1),
        ("set", "permute-and-flip", PERMUTE_AND_FLIP, 1),
        ("peel", "exponential", BOUNDED_RANGE, 2),
        ("noisy-counts", "auto", LAPLACE, 1),
    ],
)
def test_a_rho_pays_for_what_each_loss_allows(method, mechanism, loss, shares):
    """The answer at rho has the error of the answer at the epsilon that its shares of rho pay for."""
    epsilon = epsilon_of_rho(loss, Fraction(1, 20) / shares) * shares
    options = {"method": method, "mechanism": mechanism, "max_values": 1, "seed": 1, "runs": 50}
    assert top_k_error(COUNTS, 2, rho="0.05", **options) == top_k_error(COUNTS, 2, epsilon=epsilon, **options)


@pytest.mark.parametrize("method", ["set", "auto"])
def test_all_but_one_is_one_choice_of_the_one_that_is_left_out(method):
    """By permute-and-flip on negated counts, and per item of the answer."""
    found = top_k_error(COUNTS, 5, epsilon="0.5", method=method, max_values=9)
    lost = reference.permute_and_flip_pmf([-c for c in COUNTS], 0.5)
    left_out = sum(p * (c - min(COUNTS)) for p, c in zip(lost, COUNTS, strict=True)) / 5
    assert (found.exact, found.method) == (True, "set" if method == "set" else "peel")
    assert found.mean == pytest.approx(left_out, rel=1e-9)


def test_one_shot_may_choose_what_is_left_out():
    """Two of six are left out: those with the largest negated counts plus noise of rate 0.5 / 2, drawn here."""
    found = top_k_error(COUNTS, 4, epsilon="0.5")
    assert (found.exact, found.method) == (True, "one-shot")
    noise = np.random.default_rng(1).exponential(4.0, size=(100_000, 6))
    out = np.argsort(np.array(COUNTS) - noise, axis=1)[:, :2]
    drawn = (np.array(COUNTS)[out].sum(axis=1) - 2) / 4
    assert abs(drawn.mean() - found.mean) < 6.2 * drawn.std() / math.sqrt(drawn.size)


def test_one_shot_of_one_is_permute_and_flip():
    found = top_k_error(COUNTS, 1, epsilon="0.5", method="one-shot")
    assert found.exact
    assert found.mean == pytest.approx(peeled(COUNTS, 1, 0.5, PermuteAndFlip), rel=1e-9)


def test_a_choice_of_all_has_no_error():
    for options in ({}, {"ordered": True}, {"method": "noisy-counts", "max_values": 1}, {"method": "peel"}):
        found = top_k_error(COUNTS, 6, epsilon="0.5", **options)
        assert (found.mean, found.low, found.high, found.exact) == (0, 0, 0, True)
    assert top_k_error(COUNTS, 6, epsilon="0.5").method == "all"


def test_only_differences_of_scores_matter():
    far = [2**60 + c for c in COUNTS]
    assert top_k_error(far, 2, epsilon=1, method="peel").mean == top_k_error(COUNTS, 2, epsilon=1, method="peel").mean


# Simulations.


def simulated(monkeypatch, method):
    """Leave out the formula of a method."""
    monkeypatch.setattr(METHODS[method], "shortfall", lambda *_: None)


CASES = {
    "set": {"method": "set", "max_values": 1},
    "margin": {"method": "margin"},
    "several margins": {"method": "margin", "k": (1, 3)},
    "one-shot": {"method": "one-shot"},
    "peel": {"method": "peel"},
    "exponential peel": {"method": "peel", "mechanism": "exponential"},
    "left out": {"k": 4},
}


@pytest.mark.parametrize("case", CASES)
def test_simulations_have_the_exact_mean(monkeypatch, case):
    asked = {"k": 2, "epsilon": "0.3", **CASES[case]}
    exact = top_k_error(COUNTS, **asked)
    wrong = top_k_error(COUNTS, **{**asked, "epsilon": "0.36"})
    assert exact.exact
    assert wrong.exact
    simulated(monkeypatch, exact.method)
    runs = 4_000 if exact.method == "margin" else 20_000
    found = top_k_error(COUNTS, **asked, runs=runs, seed=5)
    assert (found.exact, found.runs) == (False, runs)
    width = (found.high - found.low) / 2
    assert abs(found.mean - exact.mean) < 3.2 * width, "more than six standard errors"
    assert abs(found.mean - wrong.mean) > width, "the width is small enough to see another epsilon"


def noisy_shortfall(counts, k, rate):
    """With two candidates, or for one chosen or left out, by the law of report noisy max."""
    if k == 1:
        lost = reference.noisy_max_pmf(counts, rate)
        return sum(p * (max(counts) - c) for p, c in zip(lost, counts, strict=True))
    lost = reference.noisy_max_pmf([-c for c in counts], rate)
    return sum(p * (c - min(counts)) for p, c in zip(lost, counts, strict=True)) / k


@pytest.mark.parametrize(
    ("k", "max_values", "monotonic", "rate"), [(1, 1, True, 0.6), (1, 3, True, 0.2), (3, 2, False, 0.15)]
)
def test_noisy_counts_have_the_law_of_report_noisy_max(k, max_values, monotonic, rate):
    counts = [9, 7, 4, 0]
    found = top_k_error(
        counts, k, epsilon="0.6", method="noisy-counts", max_values=max_values, monotonic=monotonic, runs=40_000, seed=1
    )
    width, truth = (found.high - found.low) / 2, noisy_shortfall(counts, k, rate)
    assert abs(found.mean - truth) < 3.2 * width
    assert abs(found.mean - noisy_shortfall(counts, k, 1.2 * rate)) > 3.2 * width


def test_peeling_by_another_mechanism_is_simulated_from_its_noise():
    found = top_k_error([9, 7, 4, 0], 1, epsilon="0.6", method="peel", mechanism="noisy-max", runs=40_000, seed=1)
    assert not found.exact
    truth = analysis.expected_error(ReportNoisyMax("0.6", monotonic=True), [9, 7, 4, 0])
    assert abs(found.mean - truth) < 1.6 * (found.high - found.low)


def test_intervals_cover_the_mean(monkeypatch):
    """Of 2,000 intervals about 95 % have the exact mean inside: fewer than 91 % happen once in 10**12 times."""
    asked = {"epsilon": "0.1", "method": "one-shot"}
    truth = top_k_error(COUNTS, 2, **asked).mean
    simulated(monkeypatch, "one-shot")
    inside = 0
    for seed in range(2_000):
        found = top_k_error(COUNTS, 2, **asked, runs=40, seed=seed)
        inside += found.low <= truth <= found.high
    assert stats.binom.cdf(1_820, 2_000, 0.95) < 1e-12
    assert 1_820 < inside < 1_970


# Simulations without an error.


@pytest.mark.parametrize("method", ["set", "one-shot", "peel", "noisy-counts"])
def test_where_no_run_is_short_the_interval_has_a_proven_end(monkeypatch, method):
    counts, rate = [100, 80, 40, 3], {"set": 0.5, "one-shot": 0.25, "peel": 0.25, "noisy-counts": 0.5}[method]
    asked = {"epsilon": "0.5", "method": method, "max_values": 1}
    truth = noisy_shortfall([80, 40], 1, 0.5) / 2 if method == "noisy-counts" else top_k_error(counts, 2, **asked).mean
    simulated(monkeypatch, method)
    found = top_k_error(counts, 2, **asked, runs=20, seed=1)
    assert (found.mean, found.low, found.exact) == (0, 0, False)
    chance = {"one-shot": lambda x: math.exp(-x) / 2, "noisy-counts": lambda x: (0.5 + x / 4) * math.exp(-x)}
    inverted = chance.get(method, lambda x: math.exp(-x))
    pairs = sum((u - w) * inverted(rate * (u - w)) for u in counts[:2] for w in counts[2:]) / 2
    assert found.high == pytest.approx(pairs, rel=1e-12)
    assert truth * (1 - 1e-6) <= found.high < 3 * truth


def test_two_candidates_reach_that_end():
    """With two candidates, the sum over pairs is the mean itself."""
    found = top_k_error([60, 0], 1, epsilon="0.5", method="noisy-counts", max_values=1, runs=10, seed=1)
    assert found.mean == 0
    assert found.high == pytest.approx(noisy_shortfall([60, 0], 1, 0.5), rel=1e-6)


@pytest.mark.parametrize("runs", [20, 1000])
def test_without_such_a_proof_the_runs_bound_how_likely_an_error_is(monkeypatch, runs):
    counts = [1000, 900, 5, 0]
    simulated(monkeypatch, "margin")
    found = top_k_error(counts, 2, epsilon=1, method="margin", runs=runs, seed=1)
    assert found.mean == 0
    assert found.high == pytest.approx((1900 - 5) / 2 * (1 - 0.025 ** (1 / runs)), rel=1e-12)
    with_others = top_k_error(counts, 2, epsilon=1, method="peel", mechanism="noisy-max", runs=runs, seed=1)
    assert with_others.high == found.high


# The samplers that answer.


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"method": "set", "max_values": 2},
        {"method": "margin"},
        {"method": "margin", "k": (1, 3)},
        {"method": "one-shot", "monotonic": False},
        {"method": "peel", "mechanism": "exponential"},
        {"method": "noisy-counts", "max_values": 2},
        {"k": 4},
        {"method": "noisy-counts", "max_values": 1, "rho": "0.02"},
    ],
    ids=str,
)
def test_answers_have_the_error_that_was_stated(options):
    """3,000 answers of `select_top_k`, which draws in another way. Twice the epsilon is told from this one."""
    asked = {"k": 2, **({} if "rho" in options else {"epsilon": "0.4"}), **options}
    found = top_k_error(COUNTS, **asked, runs=100_000, seed=2)
    k = asked.pop("k")
    drawn = np.array([short(COUNTS, select_top_k(COUNTS, k, **asked)) for _ in range(3_000)])
    error = math.hypot(drawn.std(ddof=1) / math.sqrt(drawn.size), (found.high - found.low) / 3.9)
    reach = float(stats.norm.isf(THRESHOLD / 2)) * error
    assert abs(drawn.mean() - found.mean) < reach
    twice = {name: 2 * Fraction(asked[name]) for name in ("epsilon", "rho") if name in asked}
    assert abs(drawn.mean() - top_k_error(COUNTS, k, **{**asked, **twice}, seed=2).mean) > reach


# Records and refusals.


def _simulated(k, method, runs):
    """How often each set of k of four candidates is a simulated answer, and the scores."""
    vector, price = as_vector([6, 5, 3, 1]), Price("0.4")
    how = METHODS[method](k, 4, 1)
    drawn = TopK(k=k, candidates=4, max_values=1, taken=how).draw(price)
    answers = np.sort(simulated_answers(vector, drawn, runs, seeded(None)), axis=1)
    sets = list(itertools.combinations(range(4), k))
    return [int((answers == chosen).all(axis=1).sum()) for chosen in sets], sets, drawn.mechanism


@pytest.mark.parametrize("method", ["peel", "one-shot"])
def test_simulated_answers_that_leave_one_out_follow_their_distribution(method):
    """Three of four: what is left out is one selection by permute-and-flip from the negated scores."""
    counts, sets, mechanism = _simulated(3, method, 40_000)
    assert mechanism.epsilon == Fraction(2, 5), "one selection instead of three"
    left_out = PermuteAndFlip(mechanism.rate, score_range=1).pmf([-6, -5, -3, -1])
    truth = [left_out[next(place for place in range(4) if place not in chosen)] for chosen in sets]
    assert_fits(counts, truth)
    assert_rejected(counts, [0.25] * 4, truth=truth)


def test_all_candidates_are_always_the_answer():
    vector, price = as_vector([3, 2]), Price(1)
    drawn = TopK(k=2, candidates=2, max_values=1).draw(price)
    assert simulated_answers(vector, drawn, 3, seeded(None)).tolist() == [[0, 1]] * 3
