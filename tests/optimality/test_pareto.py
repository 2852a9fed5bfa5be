"""Proposition 6: whoever is nowhere worse than permute-and-flip is nowhere better, whatever epsilon."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.errors import InvalidValue, ProgramTooLarge
from dpselect.optimality import pareto_ratios, solve
from dpselect.optimality.lattice import bounded_lattice, exponential, permute_and_flip
from dpselect.optimality.program import least_error, paper_program


@settings(max_examples=30)
@given(st.integers(2, 4), st.integers(1, 4), st.floats(0.05, 4), st.randoms(use_true_random=False))
def test_permute_and_flip_is_pareto_optimal(n: int, k: int, epsilon: float, random) -> None:
    """However the score vectors are weighted, errors below permute-and-flip's everywhere sum to no less."""
    lattice, odds = bounded_lattice(n, k), math.exp(-epsilon)
    program = paper_program(lattice)
    weights = np.array([random.uniform(0.1, 1) for _ in lattice.classes])
    caps = program.class_errors(odds) @ permute_and_flip(lattice, odds)
    assert least_error(program, odds, caps, weights) == pytest.approx(weights @ caps, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_exponential_mechanism_is_not(epsilon: float) -> None:
    """Power of the test above: it tells a mechanism that can be improved."""
    lattice, odds = bounded_lattice(3, 3), math.exp(-epsilon)
    program = paper_program(lattice)
    weights = np.ones(len(lattice.classes))
    caps = program.class_errors(odds) @ exponential(lattice, odds)
    assert least_error(program, odds, caps, weights) < 0.97 * weights @ caps


def test_a_small_worsening_of_permute_and_flip_is_seen() -> None:
    """Power: one tenth of a percent of the exponential mechanism mixed in can be taken out again."""
    lattice, odds = bounded_lattice(3, 3), math.exp(-0.5)
    program = paper_program(lattice)
    mixed = 0.999 * permute_and_flip(lattice, odds) + 0.001 * exponential(lattice, odds)
    weights, caps = np.ones(len(lattice.classes)), program.class_errors(odds) @ mixed
    assert least_error(program, odds, caps, weights) < (1 - 1e-5) * weights @ caps


@pytest.mark.parametrize("epsilon", ["0.1", 0.5, 2])
def test_ratios(epsilon: float) -> None:
    found, best = pareto_ratios(3, 4, epsilon), solve(3, 4, epsilon)
    assert found.permute_and_flip == pytest.approx(1, abs=1e-7)
    assert 1.01 < found.exponential <= best.ratios.exponential + 1e-9


def test_bad_input() -> None:
    with pytest.raises(InvalidValue, match="epsilon must be > 0"):
        pareto_ratios(3, 3, -1)
    with pytest.raises(ProgramTooLarge):
        pareto_ratios(30, 30, 1)
