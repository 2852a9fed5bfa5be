"""The dual solution of the paper's Appendix: exact checks with rational odds, and what the floats promise."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.errors import InvalidType, InvalidValue, ProgramTooLarge
from dpselect.optimality import THRESHOLD, certify, solve
from dpselect.optimality.lattice import bounded_lattice, certificate, dual_solution, permute_and_flip, powers

SIZES = [(2, 6), (3, 4), (4, 4), (5, 4), (6, 4), (4, 8)]


@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("odds", [Fraction(1, 3), Fraction(38, 100), Fraction(1, 1000)])
def test_above_the_threshold_the_certificate_is_exact(n: int, k: int, odds: Fraction) -> None:
    assert -math.log(odds) > THRESHOLD
    proof = certify(n, k, odds)
    assert proof.is_exact
    assert proof.proves_optimality
    assert proof.value == proof.permute_and_flip
    assert isinstance(proof.value, Fraction)
    assert proof.finer_bounds


@pytest.mark.parametrize(("n", "k"), [(2, 4), (3, 3), (4, 4), (5, 3)])
@pytest.mark.parametrize("odds", [Fraction(1, 3), Fraction(4, 5)])
def test_every_constraint_of_the_relaxed_dual_is_tight(n: int, k: int, odds: Fraction) -> None:
    """The recurrence of the paper, which has one solution. So the two values are equal for every epsilon."""
    lattice = bounded_lattice(n, k)
    dual, error = dual_solution(lattice, odds)
    assert not error.any()
    heads, zeros = powers(lattice, odds), lattice.zeros[lattice.class_of]
    best, below = np.flatnonzero(lattice.step == 0), np.flatnonzero(lattice.step > 0)
    lowered = np.full(lattice.variables, Fraction(0))
    np.add.at(lowered, lattice.raised[below], (dual * heads)[below])
    assert (zeros[best] * dual[best] + lowered[best] == 0).all()
    class_dual = dual[lattice.first][lattice.class_of]
    assert (-dual[below] + zeros[below] * class_dual[below] == -2 * lattice.step[below]).all()
    proof = certify(n, k, odds)
    assert proof.value == proof.permute_and_flip


@given(st.integers(2, 5), st.integers(1, 5), st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100))
@settings(max_examples=40)
def test_floats_are_within_their_bound_of_the_exact_solution(n: int, k: int, odds: Fraction) -> None:
    lattice = bounded_lattice(n, k)
    exact, _ = dual_solution(lattice, odds)
    dual, error = dual_solution(lattice, float(odds))
    for ours, bound, truth in zip(dual.tolist(), error.tolist(), exact.tolist(), strict=True):
        assert abs(Fraction(ours) - truth) <= Fraction(bound)
    assert error.max() < 1e-11


def test_the_bound_of_the_floats_is_needed() -> None:
    lattice, odds = bounded_lattice(5, 5), Fraction(2, 3)
    exact, _ = dual_solution(lattice, odds)
    dual, _ = dual_solution(lattice, float(odds))
    assert any(Fraction(ours) != truth for ours, truth in zip(dual.tolist(), exact.tolist(), strict=True))


@given(st.integers(2, 5), st.integers(1, 6), st.floats(THRESHOLD, 50))
@settings(max_examples=30)
def test_above_the_threshold_floats_prove_it_too(n: int, k: int, epsilon: float) -> None:
    proof = certificate(bounded_lattice(n, k), math.exp(-epsilon))
    assert proof.proves_optimality
    assert proof.finer_bounds
    assert not proof.is_exact
    assert proof.value == pytest.approx(proof.permute_and_flip, rel=1e-12)


@pytest.mark.parametrize(("n", "k"), [(3, 4), (4, 4), (4, 8)])
def test_below_the_threshold_there_is_no_proof(n: int, k: int) -> None:
    """There permute-and-flip is not optimal, so no certificate may say so."""
    proof = certify(n, k, "9/10")
    assert not proof.proves_optimality
    assert not proof.finer_bounds
    assert proof.smallest < 0


@pytest.mark.parametrize(("n", "k"), [(2, 9), (5, 1)])
def test_two_candidates_or_one_step_are_always_proven(n: int, k: int) -> None:
    assert certify(n, k, "99/100").proves_optimality
    assert solve(n, k, 0.01, always_solve=True).ratios.permute_and_flip == pytest.approx(1, abs=1e-9)


def test_a_wrong_dual_value_would_be_seen() -> None:
    """Power: the value is not the same for the exponential mechanism, nor for other odds."""
    lattice, odds = bounded_lattice(3, 3), Fraction(1, 3)
    proof = certify(3, 3, odds)
    shares = permute_and_flip(lattice, Fraction(1, 4))
    cost = lattice.orderings[lattice.class_of] * lattice.multiplicity * 2 * lattice.step
    assert (cost * shares * powers(lattice, Fraction(1, 4))).sum() != proof.value


def test_the_threshold_is_where_the_sum_is_one() -> None:
    """The paper's last lemma."""
    assert pytest.approx(0.9624, abs=5e-5) == THRESHOLD
    odds = math.exp(-THRESHOLD)
    assert sum(t * odds**t for t in range(1, 200)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("odds", "error", "message"),
    [
        (0.5, InvalidType, "odds must be a Fraction"),
        (1, InvalidType, "odds must be a Fraction"),
        (Fraction(1), InvalidValue, "odds must be between 0 and 1"),
        ("0", InvalidValue, "odds must be between 0 and 1"),
        ("third", InvalidValue, "odds must be a number"),
    ],
)
def test_bad_odds(odds: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        certify(3, 3, odds)


def test_a_large_certificate_is_refused() -> None:
    with pytest.raises(ProgramTooLarge, match="127,270"):
        certify(9, 9, "1/3")
