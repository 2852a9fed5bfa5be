"""The expected shortfalls of the ways to choose the top k, against sums over all sets in high precision."""

import math
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from flint import arb, arb_poly, ctx

from dpselect.analysis.top_k import (
    _multisets,
    expected_shortfall_of_margins,
    expected_shortfall_of_one_shot,
    expected_shortfall_of_peeling,
    expected_shortfall_of_sets,
)
from dpselect.errors import InvalidValue
from dpselect.mechanisms.laws import permute_and_flip_by_level
from tests import reference

TOLERANCE = 1e-11
PMF = {True: reference.flip_pmf_in_balls, False: reference.softmax_in_balls}

CASES = {
    "spread": ([10, 8, 5, 4, 1, 0], 3),
    "two": ([3, 1], 1),
    "mode": ([7, 5, 5, 2, 0], 1),
    "all but one": ([7, 5, 5, 2, 0], 4),
    "tie at the cut": ([9, 6, 6, 6, 3, 1], 2),
    "ties below": ([9, 7, 0, 0, 0, 0, 0], 2),
    "ties above": ([5, 5, 5, 5, 4, 0], 2),
    "all equal": ([4, 4, 4, 4], 2),
    "unsorted floats": ([0.5, 2.75, -3.125, 1.0, 2.5, 0.0], 3),
    "far above": ([10**9, 3, 2, 1, 0], 2),
    "far below": ([2, 1, 0, -(10**9)], 2),
    "clear": ([400, 380, 0, -5], 2),
    "more than half": ([6, 5, 3, 3, 2, 1, 0], 5),
}
RATES = [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(4)]


def exact(scores):
    return [Fraction(score) for score in scores]


def short(scores, chosen):
    """The shortfall of a set, exactly."""
    best = sum(sorted(scores, reverse=True)[: len(chosen)])
    return Fraction(best - sum(scores[i] for i in chosen)) / len(chosen)


def expectation(sets, pmf, scores):
    with ctx.workprec(400):
        return sum((own * reference.ball(short(scores, chosen)) for chosen, own in zip(sets, pmf, strict=True)), arb(0))


def one_choice(scores, sets, utilities, rate, waits):
    """The expected shortfall of one choice among sets with these utilities."""
    best = max(utilities)
    return expectation(sets, PMF[waits]([rate * (best - utility) for utility in utilities]), scores)


def sum_truth(scores, k, rate, waits):
    scores = exact(scores)
    sets = list(combinations(range(len(scores)), k))
    return one_choice(scores, sets, [sum(scores[i] for i in chosen) for chosen in sets], rate, waits)


def margin(scores, chosen):
    return min(scores[i] for i in chosen) - max(score for i, score in enumerate(scores) if i not in chosen)


def margin_truth(scores, sizes, rate, waits):
    scores = exact(scores)
    sets = [chosen for k in sizes for chosen in combinations(range(len(scores)), k)]
    return one_choice(scores, sets, [margin(scores, chosen) for chosen in sets], rate, waits)


def peeling_truth(scores, k, rate, waits):
    scores = exact(scores)

    @cache
    def pmf(left):
        best = max(scores[i] for i in left)
        return PMF[waits]([rate * (best - scores[i]) for i in left])

    sets = {tuple(range(len(scores))): arb(1)}
    with ctx.workprec(400):
        for _ in range(k):
            following = {}
            for left, probability in sets.items():
                for i, own in zip(left, pmf(left), strict=True):
                    rest = tuple(j for j in left if j != i)
                    following[rest] = following.get(rest, arb(0)) + probability * own
            sets = following
        chosen = [tuple(set(range(len(scores))) - set(left)) for left in sets]
    return expectation(chosen, sets.values(), scores)


def one_shot_truth(scores, k, rate):
    """Each set's probability: the last of its k noises is at z, the others of the set are below it, the rest above.

    Between the points 1 / p_s the integrand is a polynomial, expanded and integrated with many bits.
    """
    scores = exact(scores)
    exponents = [rate * (max(scores) - score) for score in scores]
    sets = list(combinations(range(len(scores)), k))
    edges = [None, *sorted(set(exponents))]
    with ctx.workprec(20_000 if max(exponents) > 1000 else 2000):
        heads = [(-reference.ball(exponent)).exp() for exponent in exponents]
        total = [arb(0)] * len(sets)
        for low, high in pairwise(edges):
            ends = (arb(0) if low is None else reference.ball(low).exp(), reference.ball(high).exp())
            passed = [low is not None and exponent <= low for exponent in exponents]
            for place, chosen in enumerate(sets):
                if any(passed[s] for s in range(len(scores)) if s not in chosen):
                    continue
                rest = math.prod(
                    (arb_poly([1, -heads[s]]) for s in range(len(scores)) if s not in chosen), start=arb_poly([1])
                )
                for last in chosen:
                    if not passed[last]:
                        before = (arb_poly([1]) if passed[s] else arb_poly([0, heads[s]]) for s in chosen if s != last)
                        primitive = (heads[last] * math.prod(before, start=rest)).integral()
                        total[place] += primitive(ends[1]) - primitive(ends[0])
        return expectation(sets, total, scores)


def assert_close(ours, truth):
    with ctx.workprec(400):
        if truth < arb("1e-300"):
            assert ours < 1e-290
        else:
            assert truth.rel_accuracy_bits() > 60
            assert abs(float(reference.ball(ours) / truth - 1)) < TOLERANCE


WAYS = {
    "sets": (expected_shortfall_of_sets, sum_truth),
    "margins": (
        expected_shortfall_of_margins,
        lambda scores, k, rate, waits: margin_truth(scores, [k], rate, waits),
    ),
    "peeling": (expected_shortfall_of_peeling, peeling_truth),
}


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_shortfalls(way, case, rate, waits):
    (scores, k), (shortfall, truth) = CASES[case], WAYS[way]
    ours = shortfall(np.array(scores, dtype=float), k, float(rate), waits=waits)
    assert_close(ours, truth(scores, k, rate, waits))


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("sizes", [(1, 5), (2, 4), (3, 3), (1, 2), (4, 5)], ids=str)
@pytest.mark.parametrize("case", ["spread", "tie at the cut", "unsorted floats"])
def test_margins_of_several_sizes(case, sizes, waits):
    scores, _ = CASES[case]
    ours = expected_shortfall_of_margins(np.array(scores, dtype=float), sizes, 0.5, waits=waits)
    assert_close(ours, margin_truth(scores, range(sizes[0], sizes[1] + 1), Fraction(1, 2), waits))


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("case", [case for case in CASES if "far" not in case])
def test_one_shot(case, rate):
    scores, k = CASES[case]
    ours = expected_shortfall_of_one_shot(np.array(scores, dtype=float), k, float(rate))
    assert_close(ours, one_shot_truth(scores, k, rate))


# Many candidates: the sets are counted with Python's integers, and `permute_and_flip_by_level` has tests of its own.


def expected(counts, rate, waits):
    """The expected loss of levels, from the number of sets with each loss."""
    losses = np.array(sorted(counts), dtype=float)
    logs = np.array([math.log(counts[loss]) for loss in sorted(counts)])
    weights = np.exp(logs - rate * losses - (logs - rate * losses).max())
    pmf = permute_and_flip_by_level(rate * losses, logs) if waits else weights / weights.sum()
    return float(pmf @ losses)


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("rate", [0.001, 0.05, 0.3, 2.0])
def test_sets_of_many_candidates(rate, waits):
    """All sums of 30 of 200 scores, and how many sets have each, by a table of sizes and sums."""
    scores, k = [int(score) for score in np.random.default_rng(3).poisson(12, 200)], 30
    table = [{0: 1}] + [{} for _ in range(k)]
    for score in scores:
        for size in range(k, 0, -1):
            for total, number in table[size - 1].items():
                table[size][total + score] = table[size].get(total + score, 0) + number
    assert sum(table[k].values()) == math.comb(200, k)
    best = max(table[k])
    truth = expected({best - total: number for total, number in table[k].items()}, rate, waits) / k
    ours = expected_shortfall_of_sets(np.array(scores, dtype=float), k, rate, waits=waits)
    assert ours == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("rate", [0.01, 0.2, 1.0])
def test_the_exponential_mechanism_over_sets_of_different_scores(rate):
    """With different scores, by elementary symmetric polynomials with 12,000 bits."""
    scores, k = np.random.default_rng(4).exponential(20, 150), 40
    ordered = sorted(scores.tolist(), reverse=True)
    with ctx.workprec(12_000):
        weights = [(reference.ball(rate) * (reference.ball(score) - int(ordered[k]))).exp() for score in ordered]
        everyone = math.prod((arb_poly([1, weight]) for weight in weights), start=arb_poly([1]))
        total = arb(0)
        for score, weight in zip(ordered, weights, strict=True):
            without = arb(0)
            for size in range(k):
                without = everyone[size] - weight * without
            total += weight * without / everyone[k] * reference.ball(score)
        truth = (sum(map(reference.ball, ordered[:k]), arb(0)) - total) / k
        ours = expected_shortfall_of_sets(scores, k, rate, waits=False)
        assert abs(float(reference.ball(ours) / truth - 1)) < TOLERANCE


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("rate", [0.01, 0.1, 1.0, 10.0])
def test_margins_of_many_candidates(rate, waits):
    """The number of sets of each margin with math.comb, and the mean of their shortfalls in rationals."""
    scores, k = np.random.default_rng(5).poisson(100, 60), 20
    ordered = sorted(map(int, scores), reverse=True)
    best = sum(ordered[:k])
    runs = [(ordered[k - 1] - ordered[k], 1, Fraction(0))]
    for h in range(k):
        for t in range(k + 1, len(ordered) + 1):
            middle = ordered[h + 1 : t - 1]
            inner = Fraction(sum(middle) * (k - h - 1), max(len(middle), 1))
            number = math.comb(len(middle), k - h - 1)
            runs.append((ordered[t - 1] - ordered[h], number, best - sum(ordered[:h]) - ordered[t - 1] - inner))
    assert sum(number for _, number, _ in runs) == math.comb(60, 20)
    exponents = np.array([rate * (runs[0][0] - margin) for margin, _, _ in runs])
    logs = np.array([math.log(number) for _, number, _ in runs])
    softmax = np.exp(logs - exponents - (logs - exponents).max())
    pmf = permute_and_flip_by_level(exponents, logs) if waits else softmax / softmax.sum()
    truth = float(pmf @ [float(shortfall / k) for _, _, shortfall in runs])
    assert expected_shortfall_of_margins(scores, k, rate, waits=waits) == pytest.approx(truth, rel=1e-10)


def test_what_takes_too_long_is_none():
    different = np.random.default_rng(7).random(200)
    assert expected_shortfall_of_sets(different, 20, 0.01, waits=True) is None
    assert expected_shortfall_of_sets(np.arange(10_010.0), 1_000, 1.0, waits=False) is None
    assert expected_shortfall_of_margins(np.arange(2_100.0), 1_000, 1.0, waits=True) is None
    assert expected_shortfall_of_margins(different, (1, 199), 1.0, waits=True) is None
    assert expected_shortfall_of_peeling(different, 3, 1.0, waits=True) is None
    assert expected_shortfall_of_one_shot(np.arange(129.0), 3, 1.0) is None


def test_few_sums_that_matter_are_enough():
    """At a high rate, most sums of 200 different scores weigh nothing."""
    different = np.random.default_rng(7).random(200)
    flip, exponential = (expected_shortfall_of_sets(different, 2, 1e5, waits=waits) for waits in (True, False))
    assert flip == pytest.approx(exponential / 2, rel=1e-3)


@pytest.mark.parametrize("k", [0, 3, -1])
def test_k_must_leave_a_choice(k):
    scores = np.array([3.0, 2.0, 1.0])
    for formula in (expected_shortfall_of_sets, expected_shortfall_of_margins, expected_shortfall_of_peeling):
        with pytest.raises(InvalidValue, match="between 1 and 2"):
            formula(scores, k, 1.0, waits=True)
    with pytest.raises(InvalidValue, match="between 1 and 2"):
        expected_shortfall_of_one_shot(scores, k, 1.0)


@pytest.mark.parametrize(("sizes", "k"), [([1, 1, 1], 2), ([5, 1, 2], 3), ([3], 3), ([2, 2, 2, 2], 8)])
def test_multisets_are_counted(sizes, k):
    chosen = [taken for taken in product(*(range(size + 1) for size in sizes)) if 1 <= sum(taken) <= k]
    assert _multisets(np.array(sizes), k) == len(chosen)
