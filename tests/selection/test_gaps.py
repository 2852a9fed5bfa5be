"""Gaps from their definition: exact and rounded exponents, of every kind of scores, below every kind of maximum."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from dpselect._scores import as_vector
from dpselect.selection import gaps as module
from dpselect.selection.gaps import Rate, RationalGaps, RowGaps, gaps_of
from tests.reference import ball

RATES = [Fraction(1), Fraction(3, 7), Fraction(1e-9), Fraction(10**400), Fraction(1, 10**400)]
SCORES = {
    "integers": np.array([3, -5, 3, 0]),
    "both ends of int64": np.array([2**63 - 1, -(2**63), 0]),
    "end of uint64": np.array([2**64 - 1, 0, 5], np.uint64),
    "small": np.array([100, -128, 127], np.int8),
    "floats": np.array([0.1, -2.5, 1e-300, 7.0]),
    "both ends of the floats": np.array([1.7e308, -1.7e308, 0.0]),
    "half": np.array([1, -2, 0.5], np.float16),
    "fractions": [Fraction(1, 3), Fraction(-2, 7), Fraction(5, 21)],
    "no common denominator": [Fraction(1, 10**30), Fraction(-2, 7), Fraction(10**25)],
}


def exact(scores):
    values = scores.tolist() if isinstance(scores, np.ndarray) else scores
    return [Fraction(value) for value in values]


@pytest.mark.parametrize("above", [None, Fraction(0), Fraction(1), Fraction(10**6)], ids=str)
@pytest.mark.parametrize("rate", RATES, ids=lambda rate: f"{float(min(rate, 10**300)):.1g}")
@pytest.mark.parametrize("name", SCORES)
def test_exponents_are_those_of_the_definition(name, rate, above):
    """Below their maximum, or below a hint that is more, if arrays of the type hold it."""
    scores = SCORES[name]
    is_plain = isinstance(scores, np.ndarray) and Rate(rate).is_moderate
    best = max([*exact(scores), above] if above is not None and is_plain else exact(scores))
    gaps = gaps_of(as_vector(scores), Rate(rate), hint=above)
    assert gaps.best(rate) == best
    selected = gaps.exponents(np.arange(len(scores)))
    listed = gaps.exponents(np.arange(len(scores))[::-1])
    assert selected.approximate.tolist() == listed.approximate.tolist()[::-1]
    for position, score in enumerate(exact(scores)):
        wanted = rate * (best - score)
        assert gaps.exact(position) == selected.exact(position) == wanted
        assert listed.exact(len(scores) - 1 - position) == wanted
        rounded = float(selected.approximate[position])
        if math.isinf(rounded) or rounded < 2.0**-1000:
            assert wanted > 2**100 or wanted < Fraction(1, 2**990)
        else:
            assert abs(Fraction(rounded) - wanted) <= wanted / 2**50 or rounded > 1e300
        assert (rounded == 0) <= (wanted < Fraction(1, 2**990))


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.uint8])
def test_each_row_is_below_its_own_maximum(kind):
    matrix = np.array([[3, 5, 4], [9, 0, 2], [1, 1, 1], [0, 8, 1]], kind)
    gaps = RowGaps(matrix, Rate(Fraction(1, 2)))
    wanted = [[1, 0, 0.5], [0, 4.5, 3.5], [0, 0, 0], [4, 0, 3.5]]
    assert gaps.exponents(np.arange(12)).approximate.reshape(4, 3).tolist() == wanted
    assert [[float(gaps.exact(3 * i + j)) for j in range(3)] for i in range(4)] == wanted


@pytest.mark.parametrize("zeros", [1, 8, 12, 40, 72])
def test_the_logarithm_of_a_power_of_two_is_bounded_from_above(zeros):
    with ctx.workprec(200):
        truth = zeros * arb(2).log()
        assert truth < ball(module._log_of_power(zeros)) < truth * (1 + arb(10) ** -20)


def test_exponents_beyond_the_floats_are_finite_and_tiny_ones_are_not_zero():
    gaps = RationalGaps([Fraction(0), Fraction(-1, 10**400), Fraction(-(10**400))], Rate(Fraction(1)))
    assert gaps.values.tolist() == [0.0, -5e-324, -np.finfo(float).max]


def test_a_hint_that_the_type_cannot_hold_is_left_out():
    """Below 1/2 in integers, and below a third in floats: the gaps are below the maximum."""
    for scores, above in ((np.array([0, -3]), Fraction(1, 2)), (np.array([0.25, -3.0]), Fraction(1, 3))):
        gaps = gaps_of(scores, Rate(Fraction(1)), hint=above)
        assert [gaps.exact(0), gaps.exact(1)] == [0, Fraction(scores[0].item()) + 3]


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.uint64])
def test_integers_are_compared_with_any_integer_of_64_bits(dtype):
    limits = np.iinfo(np.uint64 if np.dtype(dtype).kind == "u" else np.int64)
    for number, fits in (
        *((Fraction(limits.min), True), (Fraction(limits.max), True), (Fraction(1, 2), False)),
        *((Fraction(limits.min - 1), False), (Fraction(limits.max + 1), False)),
    ):
        assert module._native(number, np.dtype(dtype)) == (int(number) if fits else None)
    gaps = gaps_of(np.array([1, 0], dtype), Rate(Fraction(1)), hint=Fraction(limits.max))
    assert gaps.best(Fraction(1)) == limits.max


@pytest.mark.parametrize(
    ("number", "fits"),
    [(Fraction(1, 2), True), (Fraction(1, 3), False), (Fraction(1, 10), False), (Fraction(10**400), False)],
)
def test_floats_are_compared_with_floats_only(number, fits):
    assert module._native(number, np.dtype(float)) == (float(number) if fits else None)


@pytest.mark.parametrize("rate", [Fraction(1, 8), Fraction(1), Fraction(8)], ids=str)
def test_an_exponent_that_overflows_is_known_from_below(rate):
    """Either the gap left the floats, and the exponent is beyond rate times the largest, or the product did."""
    largest = np.finfo(float).max
    gaps = gaps_of(np.array([largest, -largest]), Rate(rate))
    assert gaps.largest_exponent == min(1, rate) * Fraction(float(largest))
    assert math.isinf(gaps.exponents(np.arange(2)).approximate[1])
    assert gaps.largest_exponent <= gaps.exact(1)


@pytest.mark.parametrize("candidates", [np.arange(10), np.array([5, 0, 8])], ids=["all", "some"])
def test_exponents_belong_to_the_candidates_that_were_asked_for(candidates):
    scores = np.array([7, 1, 8, 2, 8, 1, 8, 2, 8, 4])
    found = gaps_of(scores, Rate(Fraction(1, 3))).exponents(candidates)
    exact = [Fraction(8 - int(score), 3) for score in scores[candidates]]
    assert [found.exact(index) for index in range(len(exact))] == exact
    assert found.approximate.tolist() == pytest.approx([float(exponent) for exponent in exact], rel=1e-15)


@pytest.mark.parametrize(
    "scores", [[Fraction(1, 3), Fraction(5, 3), 2], np.array([0.25, 1.75, 2.0])], ids=["thirds", "floats"]
)
def test_the_best_score_is_in_the_units_of_the_scores(scores):
    found = gaps_of(as_vector(scores), Rate(Fraction(10)))
    assert [found.exact(index) for index in range(3)] == [
        10 * (2 - Fraction(*score.as_integer_ratio())) for score in list(scores)
    ]
    assert found.best(Fraction(10)) == 2
