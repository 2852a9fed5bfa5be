"""Who wins for how many selections, against the epsilons that a ledger would allow."""

from fractions import Fraction

import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, approximate
from dpselect.analysis.promises import promise
from dpselect.research import plotting
from dpselect.research.studies.procedures import Currency
from dpselect.research.studies.winners import CANDIDATES, draw_winners, winners


def test_at_equal_pure_epsilon_permute_and_flip_wins_by_the_same_factor():
    ratios = [row[-1] for row in winners([0.1, 1.0], [1, 10, 100], [Currency.PURE]).rows]
    assert min(ratios) > 1
    assert max(ratios) == pytest.approx(min(ratios))


def test_under_zcdp_the_exponential_mechanism_wins_for_any_number():
    table = winners([0.1, 1.0], [1, 10, 100], [Currency.ZCDP])
    assert all(row[-1] < 0.7 for row in table.rows)


def test_the_errors_are_those_of_the_budget_of_a_ledger():
    [(_, _, count, *errors, ratio)] = winners([1.0], [10], [Currency.ZCDP]).rows
    rho = approximate("1", Fraction(1e-6), share=0).rho / count
    for kind, error in zip((PermuteAndFlip, ExponentialMechanism), errors, strict=True):
        assert promise(kind(_largest(kind, rho), monotonic=True), CANDIDATES).average == pytest.approx(error, rel=1e-6)
    assert ratio == pytest.approx(errors[1] / errors[0])


def _largest(kind, rho):
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if kind(middle or 1e-9).guarantee.zcdp <= rho else (low, middle)
    return low


def test_the_figure_has_a_panel_for_each_currency():
    table = winners([1.0], [1, 5], [Currency.PURE, Currency.ZCDP])
    with plotting.settings():
        assert len(draw_winners(table).axes) == 2
