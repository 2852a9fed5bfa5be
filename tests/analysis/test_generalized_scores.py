"""Generalized scores: the definition in n**2 steps, sensitivity one by brute force, and the bound on what is chosen."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, generalized_scores
from dpselect.analysis import unequal as generalizing
from dpselect.analysis import unequal_errors
from dpselect.analysis.unequal import margin

EXACT = st.integers(-50, 50) | st.fractions(-50, 50, max_denominator=9) | st.floats(-1e3, 1e3)
POSITIVE = st.integers(1, 5) | st.fractions(Fraction(1, 9), 5, max_denominator=9) | st.sampled_from([0.1, 1e-3, 40.0])
CANDIDATES = st.lists(st.tuples(EXACT, POSITIVE), min_size=1, max_size=12)
KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]


def defined(scores, sensitivities, t, together=lambda a, b: a + b):
    """The definition, by trying all pairs; `together` joins two sensitivities."""
    q, s = [Fraction(score) for score in scores], [Fraction(unit) for unit in sensitivities]
    r = [score - t * unit for score, unit in zip(q, s, strict=True)]
    return [min((a - b) / together(u, v) for b, v in zip(r, s, strict=True)) for a, u in zip(r, s, strict=True)]


@given(CANDIDATES, st.sampled_from(["0.01", 1, 1e6, "1/3"]), st.sampled_from([0.05, "1e-9", 0.999]))
def test_it_is_the_definition(candidates, epsilon, failure):
    scores, sensitivities = zip(*candidates, strict=True)
    t = margin(len(scores), epsilon, failure)
    found = generalized_scores(scores, sensitivities, epsilon, failure)
    assert found == defined(scores, sensitivities, t)
    assert all(type(score) is Fraction for score in found)
    assert max(found) == 0


@given(st.integers(0, 2**32), st.sampled_from([20.0, 33.0, 40.0]))
@settings(max_examples=10)
def test_it_is_the_definition_on_a_curved_hull(seed, slope):
    """Scores so that nearly all, or none, of a few hundred candidates are on the hull, with many near ties."""
    n = 120
    s = np.arange(1, n + 1) + np.random.default_rng(seed).integers(0, 2, n) * 2.0**-40
    q = 30 * np.sqrt(s) + slope * s
    assert generalized_scores(q, s, 1) == defined(q.tolist(), s.tolist(), margin(n, 1, 0.05))


@given(CANDIDATES)
def test_a_wrong_guess_is_corrected(candidates):
    """Floats only guess where a tangent touches: from every guess the same place is found."""
    scores, sensitivities = zip(*candidates, strict=True)
    exact = [Fraction(score) for score in scores], [Fraction(unit) for unit in sensitivities]
    points = generalizing._points(*exact, Fraction(1, 3))
    hull = generalizing._upper_hull(points)
    for s, r in zip(points.s, points.r, strict=True):
        slopes = [Fraction(b - r, a + s) for a, b in zip(hull.s, hull.r, strict=True)]
        found = {generalizing._tangent(hull, s, r, guess) for guess in range(len(slopes))}
        assert found == {slopes.index(max(slopes))}


def test_a_wrong_guess_is_corrected_on_a_long_hull():
    s = list(range(1, 300))  # more than Python keeps one object of each number for
    hull = generalizing._Points(s, [s_j * (1000 - s_j) for s_j in s], 1)
    assert generalizing._upper_hull(hull) == hull
    touched = set()
    for r in range(-60_000, 200_000, 5_000):
        slopes = [Fraction(r_j - r, s_j + 2) for s_j, r_j in zip(s, hull.r, strict=True)]
        best = slopes.index(max(slopes))
        assert {generalizing._tangent(hull, 2, r, guess) for guess in range(len(s))} == {best}
        touched.add(best)
    assert len(touched) > 10


def test_many_candidates_of_one_sensitivity():
    found = generalized_scores(range(300), [2] * 300, 1)
    assert found == [Fraction(score - 299, 4) for score in range(300)]


TERMINAL = [2.0**-1074, 1.0, 1.7e308]


def test_numbers_of_every_size():
    for q in itertools.product([-1.7e308, 0.0, 5e-324, 1.0], repeat=3):
        assert generalized_scores(list(q), TERMINAL, "1e-3") == defined(q, TERMINAL, margin(3, "1e-3", 0.05))
    primes = [2**61 - 1, 2**89 - 1, 2**107 - 1, 2**127 - 1, 2**521 - 1, 2**4423 - 1]
    q, s = [Fraction(k, p) for k, p in enumerate(primes)], [Fraction(p, 3**k) for k, p in enumerate(primes)]
    for scores, units in ((q, s), (range(6), [1 / unit for unit in s]), (q, range(1, 7))):
        wanted = defined(scores, units, margin(6, 1, 0.05))
        assert generalized_scores(scores, units, 1) == wanted, "without a common denominator of all or of one of them"


def test_every_container_is_read():
    wanted = generalized_scores([3, 1, 2], [1, 2, 3], 1)
    for scores in (np.array([3, 1, 2]), pd.Series([3.0, 1.0, 2.0]), (Decimal(3), 1, Fraction(2))):
        for sensitivities in (np.array([1, 2, 3], np.uint8), [1.0, 2.0, 3.0], pd.Series([1, 2, 3])):
            assert generalized_scores(scores, sensitivities, 1) == wanted


def largest_move(transform, units):
    """How far a score can move between neighbours: all small vectors, and every corner of what one person can do."""
    worst = Fraction(0)
    for q in itertools.product(range(4), repeat=len(units)):
        here = transform(q)
        for signs in itertools.product([-1, 0, 1], repeat=len(units)):
            there = transform([a + sign * unit for a, sign, unit in zip(q, signs, units, strict=True)])
            worst = max(worst, *(abs(a - b) for a, b in zip(here, there, strict=True)))
    return worst


@pytest.mark.parametrize("units", [[1, 1], [1, 3], [1, 1, 2], [1, 2, 5], [Fraction(1, 2), 1, 7]], ids=str)
def test_the_sensitivity_is_one(units):
    assert largest_move(lambda q: generalized_scores(q, units, 8), units) == 1
    t = margin(len(units), 8, 0.05)
    assert largest_move(lambda q: defined(q, units, t, max), units) > 1, "the power check: a wrong denominator shows"


@pytest.mark.parametrize("kind", KINDS)
def test_a_selection_among_them_is_private(kind):
    units, q, epsilon = [1, 3, Fraction(1, 2)], [4, 6, 3], 1.5
    mechanism = kind(epsilon)
    here = np.log(mechanism.pmf(generalized_scores(q, units, epsilon)))
    for signs in itertools.product([-1, 0, 1], repeat=3):
        neighbour = [a + sign * unit for a, sign, unit in zip(q, signs, units, strict=True)]
        there = np.log(mechanism.pmf(generalized_scores(neighbour, units, epsilon)))
        assert np.abs(here - there).max() <= epsilon + 1e-9


@given(CANDIDATES, st.sampled_from([0.3, 3, 50]), st.sampled_from([0.5, 0.05, 0.001]))
@settings(max_examples=60)
def test_the_choice_is_as_good_as_promised(candidates, epsilon, failure):
    scores, sensitivities = zip(*candidates, strict=True)
    t = margin(len(scores), epsilon, failure)
    pairs = [(Fraction(q), Fraction(s)) for q, s in candidates]
    floor = max(q - 2 * t * s for q, s in pairs)
    worse = np.array([q < floor for q, _ in pairs])
    for kind in (PermuteAndFlip, ExponentialMechanism):
        pmf = kind(epsilon).pmf(generalized_scores(scores, sensitivities, epsilon, failure))
        assert pmf[worse].sum() <= failure + 1e-9


def test_the_margin_is_rounded_up_to_six_digits():
    for n, epsilon, failure in itertools.product([1, 2, 10**5], ["1e-3", 1, "7/3", 10**6], [0.05, 0.999]):
        exact = 2 * math.log(n / failure) / float(Fraction(epsilon))
        assert exact * (1 - 1e-12) <= float(margin(n, epsilon, failure)) <= exact * (1 + 1e-5)


def test_equal_sensitivities_lose_a_factor_of_two():
    """Then the generalized scores are (q - q*) / (2 s), and their range is stated as two, not one."""
    scores = [9, 7, 7, 3, 0]
    assert generalized_scores(scores, [4] * 5, 1) == [Fraction(score - 9, 8) for score in scores]
    unequal = unequal_errors(scores, [4] * 5, 2)
    half = unequal_errors(scores, [4] * 5, 4)
    assert unequal.common == pytest.approx(half.generalized, rel=1e-12)
    assert unequal.gain < 1


@pytest.mark.parametrize("kind", KINDS)
def test_one_wild_candidate_is_no_burden_to_the_others(kind):
    scores, sensitivities = [1000, 900, 500, 0], [1, 1, 1, 1000]
    unequal = unequal_errors(scores, sensitivities, 1, kind=kind)
    assert unequal.gain > 20
    common = kind(1, 1000).pmf(scores)
    assert unequal.common == pytest.approx(float(common @ [0, 100, 500, 1000]), rel=1e-12)


def test_gains_of_nothing():
    assert unequal_errors([1], [1], 1).gain == 1
    assert unequal_errors([10**6, 0], [1, 10**7], 1, failure="1e-900").gain == math.inf
