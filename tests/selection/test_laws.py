"""Draws of every sampler of runs, sets and orders have the law of the candidates written out, and of no other rate.

Followed to every outcome, where that is possible: `test_exact_distribution` and the tests of each sampler.
"""

import math
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from tests import reference
from tests.selection.samplers import assert_law, law_over_sets, margin, slow, total
from tests.statistical.goodness import assert_fits, assert_rejected

HUGE = 10**500
BY_LEVEL = {PermuteAndFlip: reference.flip_pmf_by_level, ExponentialMechanism: reference.softmax_by_level}
KINDS = pytest.mark.parametrize("kind", BY_LEVEL, ids=lambda kind: kind.name)

# Runs: scores, how many candidates have each, and epsilon, which is twice the rate.
RUNS = {
    "hot": ([0, 2, 1], [5, 1, 3], 1),
    "ties": ([4, 4, 4, 2], [1, 3, 2, 12], 1),
    "with empty runs": ([50, 0, 2, 60, 1], [0, 5, 1, 0, 3], 1),
    "cold but long": ([0, -40, -80], [1, 10**9, 10**17], 1),
    "cold and many": ([0] + [-14] * 300, [1] * 301, 1),
    "one in a crowd": ([12, 0], [1, 10**5], 2),
    "one in 10**12": ([28, 0], [1, 10**12], 2),
    "one in 2**59": ([40, 0], [1, 2**59], 2),
    "longest": ([0, -3, 0], [2**64 - 1, 2**64 - 1, 2**63], 1),
    "one against all": ([0, -88], [1, 2**64 - 1], 1),
    "fractions": ([Fraction(1, 3), Fraction(-2, 7), Fraction(10**20, 10**20 + 1)], [4, 9, 1], 1),
    "beyond int64": ([10**30, 10**30 - 1, 10**30 - 3], [1, 2, 3], 1),
    "floats": ([0.25, -0.5, 1e-300], [3, 9, 2], 1),
    "steep": ([0, Fraction(-2, 10**300)], [2, 10], "1e300"),
    "flat": ([0, -(10**300)], [1, 3], "1e-300"),
    "beyond 64 bits": ([0, -88, -90], [1, 2**65, 2**70], 1),
    "all beyond 64 bits": ([0, Fraction(-3, 2), -25], [2**64, 2**66, 10**30], 2),
    "huge": ([0, -2302, -2304], [1, HUGE, 2 * HUGE], 1),
    "an empty one and a long one": ([0, 9, -48], [1, 0, 2**70], 2),
    "all of them huge": ([0, 0, -1], [HUGE, 2 * HUGE, 3 * HUGE + 1], 2),
    "far apart": ([0, -1382, -46], [3, 10**600, 10**20], 2),
}
FAST = {
    "runs": ["hot", "with empty runs", "cold but long", "beyond 64 bits", "huge", "steep"],
    "steady": ["hot"],
    "bounded": ["ties", "beyond 64 bits"],
    "loosely bounded": ["beyond 64 bits"],
    "set": ["hot", "one in a crowd"],
    "order": ["one in a crowd"],
}
# Sets and orders of longer runs take too long, or, beyond a million candidates, longer.
LONGEST = {"set": 10**12 + 1, "order": 2**59 + 1}


def halves(lengths):
    """Every run in two halves, one of which may be empty."""
    return [half for m in lengths for half in (m // 2, m - m // 2)]


def law_of_runs(kind, scores, lengths, rate):
    """The probability of each half of each run."""
    best = max(score for score, length in zip(scores, lengths, strict=True) if length)
    exponents = [rate * (Fraction(best) - Fraction(score)) for score in scores]
    counts: dict[Fraction, int] = {}
    for exponent, length in zip(exponents, lengths, strict=True):
        if length:
            counts[exponent] = counts.get(exponent, 0) + length
    pmf = dict(zip(counts, BY_LEVEL[kind](list(counts.values()), list(counts)), strict=True))
    return {half: float(size * pmf[exponents[half // 2]]) for half, size in enumerate(halves(lengths)) if size}


def bounded(slack):
    """All runs but the first are one, which holds candidates of different scores."""

    def draw(mechanism, scores, lengths):
        distances, starts = [max(scores) - score for score in scores], [0, *accumulate(lengths[1:])]

        def distance(run, rank):
            return distances[1 + bisect_right(starts, rank) - 1] if run else distances[0]

        bounds = [distances[0] - slack, min(distances[1:]) - slack]
        run, rank = mechanism.select_bounded(bounds, [lengths[0], starts[-1]], distance)
        return run * lengths[0] + rank

    return draw


SAMPLERS = {
    "runs": lambda mechanism, *runs: mechanism.select_runs(*runs),
    "steady": lambda mechanism, *runs: mechanism.select_runs(*runs, steady=True),
    "bounded": bounded(slack=0),
    "loosely bounded": bounded(slack=1),
    "set": lambda mechanism, scores, lengths: mechanism.select_set(scores, 1, lengths=lengths)[0],
    "order": lambda mechanism, scores, lengths: mechanism.select_order(scores, 1, lengths=lengths)[0],
}


def can_draw(name, kind, scores, lengths):
    if "bounded" in name:  # bounds that are far from the distances would need too many proposals
        return (
            all(isinstance(score, int) for score in scores) and all(lengths) and max(scores[1:]) - min(scores[1:]) < 5
        )
    if name == "steady":
        return kind.has_steady
    return sum(lengths) <= LONGEST.get(name, math.inf)


def assert_drawn_from_runs(name, case, kind):
    scores, lengths, epsilon = RUNS[case]
    mechanism, ends = kind(epsilon), list(accumulate(halves(lengths)))
    assert_law(
        lambda: bisect_right(ends, SAMPLERS[name](mechanism, scores, lengths)),
        300 if name in LONGEST and sum(lengths) > 10**6 else 2_000,
        lambda factor: law_of_runs(kind, scores, lengths, factor * mechanism.rate),
    )


@pytest.mark.parametrize(
    ("name", "case", "kind"),
    [
        (name, case, kind) if case in FAST[name] else slow(name, case, kind)
        for name in SAMPLERS
        for case, (scores, lengths, _) in RUNS.items()
        for kind in BY_LEVEL
        if can_draw(name, kind, scores, lengths)
    ],
    ids=lambda own: getattr(own, "name", own),
)
def test_one_candidate_of_runs(name, case, kind):
    assert_drawn_from_runs(name, case, kind)


@pytest.mark.parametrize("name", ["runs", "order"])
def test_runs_where_floats_doubt(name, monkeypatch):
    """With a margin of a fifth the exact contest decides often."""
    monkeypatch.setattr("dpselect.selection.races.MARGIN", 0.2)
    assert_drawn_from_runs(name, "hot", PermuteAndFlip)


@KINDS
@pytest.mark.parametrize("draw", ["select_runs", "select_bounded"])
def test_the_laws_of_one_candidate_are_told_apart(draw, kind):
    """One that is best and a crowd that is lower."""
    [other] = set(BY_LEVEL) - {kind}
    mechanism, lengths, draws = kind(1), [1, 20], 6_000
    runs = {
        "select_runs": lambda: mechanism.select_runs([0, -6], lengths),
        "select_bounded": lambda: mechanism.select_bounded([0, 6], lengths, lambda run, _: 6 * run)[0],
    }
    best = sum(runs[draw]() == 0 for _ in range(draws))
    right, wrong = (float(BY_LEVEL[own](lengths, [0, Fraction(3)])[0]) for own in (kind, other))
    assert_fits([best, draws - best], [right, 1 - right])
    assert_rejected([best, draws - best], [wrong, 1 - wrong], truth=[right, 1 - right])


# Whole sets: a score of sets, the scores of candidates and how often each is repeated, k and epsilon.

SETS = {
    "plain": (total, [5, 3, 2, 0, 1], None, 2, 1),
    "ties": (total, [1, 1, 1, 0, 0], None, 3, "3/2"),
    "most": (total, [3, 1, 2, 0, 0], None, 4, 1),
    "one": (total, [0, 2, 1, 2], None, 1, 2),
    "fractions": (total, [Fraction(1, 3), Fraction(-2, 7), Fraction(10**20, 10**20 + 1), 0], None, 2, 2),
    "floats": (total, [0.25, -0.5, 1e-300, 3.5, 3.25], None, 3, 1),
    "far from the best": (total, [2**62, 2, 1, 0, 0], None, 3, 1),
    "runs": (total, [3, 0, 2], [2, 3, 1], 3, 1),
    "margin": (margin, [1, 6, 3, 0], None, 2, 1),
    "margin, ties": (margin, [4, 4, 4, 1, 1], None, 2, 1),
    "margin, an interval": (margin, [9, 1, 7, 2], None, (1, 3), "1/2"),
    "margin, zeros": (margin, [0, 0, 4, 0], None, 1, 1),
    "margin, all zeros but one left out": (margin, [3, 0, 3, 3], None, 3, 1),
    "margin, large counts": (margin, [2**61, 2**61 - 2, 2**61 - 5, 2**61 - 5], None, 2, 1),
    "margin, runs": (margin, [0, 5, 3], [2, 1, 2], (2, 3), 1),
}
FAST_SETS = ["ties", "one", "floats", "far from the best", "margin, ties", "margin, large counts"]
OF_SETS = {PermuteAndFlip: reference.flip_pmf_in_balls, ExponentialMechanism: reference.softmax_in_balls}


@KINDS
@pytest.mark.parametrize("case", [case if case in FAST_SETS else slow(case) for case in SETS])
def test_sets(case, kind):
    score, scores, lengths, k, epsilon = SETS[case]
    mechanism = kind(epsilon, score_range=1)
    draw = mechanism.select_set if score is total else mechanism.select_margin
    expanded = scores if lengths is None else np.repeat(scores, lengths).tolist()
    sizes = range(k[0], k[1] + 1) if isinstance(k, tuple) else [k]

    assert_law(
        lambda: tuple(draw(scores, k, lengths=lengths)),
        1_000,
        lambda factor: law_over_sets(expanded, score, sizes, factor * mechanism.rate, OF_SETS[kind]),
    )


@KINDS
@pytest.mark.parametrize(
    ("score", "scores", "score_range"), [(total, [5, 5, 0, 0, 0, 0, 0], 2), (margin, [9, 9, 5, 4, 4, 4], 3)]
)
def test_the_laws_of_sets_are_told_apart(score, scores, score_range, kind):
    """One good set and many that are a little worse, by the number of the two best that are chosen."""
    [other] = set(OF_SETS) - {kind}
    mechanism = kind(1, score_range=score_range)
    draw = mechanism.select_set if score is total else mechanism.select_margin
    laws = [law_over_sets(scores, score, [2], mechanism.rate, OF_SETS[own]) for own in (kind, other)]
    right, wrong = (
        np.bincount([sum(i < 2 for i in own) for own in law], weights=list(law.values()), minlength=3) for law in laws
    )
    counts = np.bincount([sum(i < 2 for i in draw(scores, 2)) for _ in range(3_000)], minlength=3)
    assert_fits(counts, right)
    assert_rejected(counts, wrong, truth=right)


# Sets of many candidates, half of them good, by how many of these are chosen: what such a set loses.
HALVES = {
    "select_set": (1, 120, 30, lambda good: 30 - good),
    # Sets of the upper level only lose six against nothing, all others twelve.
    "select_margin": (6, 30, 5, lambda good: 0 if good == 5 else 6),
}


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("name", HALVES)
def test_sets_of_many(name, kind):
    lead, size, k, loss = HALVES[name]
    scores, mechanism = [lead] * size + [0] * size, kind(1, score_range=1)
    sets = [math.comb(size, good) * math.comb(size, k - good) for good in range(k + 1)]

    def law(factor):
        each = BY_LEVEL[kind](sets, [factor * loss(good) for good in range(k + 1)])
        return {good: float(number * p) for good, (number, p) in enumerate(zip(sets, each, strict=True))}

    assert_law(lambda: sum(i < size for i in getattr(mechanism, name)(scores, k)), 4_000, law)


# Orders.

ORDERS = {
    PermuteAndFlip: reference.exponential_orders,
    ExponentialMechanism: lambda scores, rate, k: reference.peeled_orders(
        scores, ExponentialMechanism(rate, score_range=1), k
    ),
    ReportNoisyMax: reference.laplace_orders,
}
OF_ORDERS = pytest.mark.parametrize("kind", ORDERS, ids=lambda kind: kind.name)
# Scores, how often each is repeated, k, which is all but one at most, and epsilon.
IN_ORDER = {
    "near": ([3, 2, 0, 1], None, 2, 1),
    "ties": ([1, 1, 0], None, 2, 2),
    "one": ([0, 1, 3], None, 1, 1),
    "cold": ([0, 9, 10, 1], None, 2, 1),
    "floats": ([0.25, -0.5, 1.75], None, 2, 1),
    "fractions": ([Fraction(1, 4), Fraction(-5, 8), Fraction(10**20 + 1, 10**20)], None, 2, 2),
    "runs": ([2, 0, 1], [1, 2, 2], 2, 1),
}


def assert_in_order(case, kind):
    scores, lengths, k, epsilon = IN_ORDER[case]
    mechanism = kind(epsilon, score_range=1)
    expanded = [float(score) for score in np.repeat(np.array(scores, object), 1 if lengths is None else lengths)]
    assert_law(
        lambda: tuple(mechanism.select_order(scores, k, lengths=lengths)),
        1_500,
        lambda factor: ORDERS[kind](expanded, float(factor * mechanism.rate) or 1e-9, k),
    )


@OF_ORDERS
@pytest.mark.parametrize("case", [case if case in ("near", "cold", "fractions") else slow(case) for case in IN_ORDER])
def test_orders(case, kind):
    assert_in_order(case, kind)


@OF_ORDERS
def test_orders_where_floats_doubt(kind, monkeypatch):
    monkeypatch.setattr("dpselect.selection.races.MARGIN", 0.2)
    assert_in_order("near", kind)


@pytest.mark.parametrize("kind", [PermuteAndFlip, slow(ExponentialMechanism), slow(ReportNoisyMax)])
def test_the_laws_of_orders_are_told_apart(kind):
    """By the place of the best one: first, second or not chosen."""
    scores, draws = [2, 0, 0, 0], 5_000 if kind is PermuteAndFlip else 12_000
    mechanism = kind(1, score_range=1)

    def places(law):
        found = Counter()
        for order, weight in law.items():
            found[order.index(0) if 0 in order else 2] += weight
        return [found[place] for place in range(3)]

    counts = places(Counter(tuple(mechanism.select_order(scores, 2)) for _ in range(draws)))
    cells = {own: places(law(scores, 1.0, 2)) for own, law in ORDERS.items()}
    assert_fits(counts, cells[kind])
    for own in set(ORDERS) - {kind}:
        assert_rejected(counts, cells[own], truth=cells[kind])
