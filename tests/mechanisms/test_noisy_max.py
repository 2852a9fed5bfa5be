"""Report noisy max keeps few contenders, wherever the winner is."""

from fractions import Fraction

import numpy as np
import pytest

from dpselect.mechanisms import noisy_max
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import Rate, gaps_of


@pytest.mark.parametrize("winner", [0, 50_000, 199_999])
@pytest.mark.parametrize("lead", [10.0, 1e14])
def test_few_contenders_are_left_for_the_exact_road(winner, lead, monkeypatch):
    """Even where the best candidate is read last: the run time and the memory of the rest stay small."""
    scores = np.random.default_rng(3).poisson(100, 200_000).astype(float)
    scores[winner] += lead
    seen = []
    settle = noisy_max._settle

    def watched(gaps, positions, *rest):
        seen.append(positions.size)
        return settle(gaps, positions, *rest)

    monkeypatch.setattr(noisy_max, "_settle", watched)
    kept = []
    unbounded = noisy_max._is_unbounded
    monkeypatch.setattr(noisy_max, "_is_unbounded", lambda words: kept.append(words.size) or unbounded(words))
    noisy_max.choose_noisy_max(gaps_of(scores, Rate(Fraction(1, 2))), Draws())
    assert seen[0] < 200
    assert kept[-1] < 2_000  # what all runs together kept before the last sieve


def test_no_warning_at_the_end_of_the_floats():
    """The best candidate's first word may say nothing, so that the largest upper bound is that of a distant loser."""
    largest = np.finfo(np.float64).max
    with np.errstate(all="raise"):
        assert noisy_max._least(np.array([-largest, -np.inf])).tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("upper", [-1e12, -1e6, -100.0, -1.0, 0.0, 1.0, 11.0])
def test_the_least_value_allows_for_every_rounding(upper):
    """As its docstring derives: the width, the float32 table and the exponent, which is at most |upper| + 11."""
    [least] = noisy_max._least(np.array([upper]))
    error = Fraction(1, 2**18) + Fraction(1, 2**48) * (abs(Fraction(upper)) + 11)
    assert Fraction(float(least)) <= Fraction(upper) - Fraction(noisy_max.WIDTH) - error
    assert least > upper - noisy_max.WIDTH - 1e-3 - 1e-12 * abs(upper), "or too many are left for the exact road"


def test_an_exponent_is_bounded_from_below():
    """The computed exponent is within a relative 2**-51, and its product with the factor is rounded."""
    assert Fraction(noisy_max._BELOW) * (1 + Fraction(1, 2**51)) * (1 + Fraction(1, 2**53)) <= 1
