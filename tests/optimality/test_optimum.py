import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import PermuteAndFlip
from dpselect.analysis import expected_error
from dpselect.errors import InvalidValue, ProgramTooLarge
from dpselect.optimality import THRESHOLD, Ratios, pareto_ratios, solve
from dpselect.optimality.lattice import bounded_lattice, exponential, permute_and_flip
from dpselect.optimality.program import least_error, paper_program


@settings(max_examples=25)
@given(st.integers(2, 4), st.integers(1, 5), st.floats(0.005, 15))
def test_ratios(n: int, k: int, epsilon: float) -> None:
    found = solve(n, k, epsilon, always_solve=True)
    assert 1 - 1e-9 <= found.ratios.permute_and_flip < 1.02
    assert found.ratios.permute_and_flip - 1e-9 <= found.ratios.exponential < 2
    assert found.ratios == Ratios(
        pytest.approx(found.permute_and_flip / found.value), pytest.approx(found.exponential / found.value)
    )
    if epsilon >= THRESHOLD:
        assert found.ratios.permute_and_flip == pytest.approx(1, abs=1e-9)
        assert found.certificate is not None


def test_the_largest_ratio_of_the_paper() -> None:
    """About 1.01, and below the threshold."""
    found = {epsilon: solve(4, 8, epsilon) for epsilon in np.geomspace(0.1, 2, 30).tolist()}
    worst = max(found, key=lambda epsilon: found[epsilon].ratios.permute_and_flip)
    assert 1.005 < found[worst].ratios.permute_and_flip < 1.015
    assert worst < THRESHOLD
    assert found[worst].certificate is None
    assert found[worst].duality_gap < 1e-9


def test_where_it_is_proven_the_mechanism_is_permute_and_flip() -> None:
    found = solve(3, 4, 2)
    for steps, pmf in found.probabilities.items():
        assert PermuteAndFlip(2).pmf([-2 * step for step in steps]) == pytest.approx(pmf, rel=1e-12)
    assert found.duality_gap < 1e-12


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 50, 700, 2000, 1e6])
def test_extreme_epsilons(epsilon: float) -> None:
    for always_solve in (False, True):
        found = solve(4, 4, epsilon, always_solve=always_solve)
        assert found.ratios.permute_and_flip == pytest.approx(1, abs=1e-6)
        assert 1 - 1e-9 <= found.ratios.exponential < 2


@pytest.mark.parametrize(("n", "k"), [(70, 1), (40, 2)])
def test_more_vectors_than_64_bits_count(n: int, k: int) -> None:
    lattice = bounded_lattice(n, k)
    assert lattice.vectors > 2**62
    assert sum(lattice.orderings.tolist()) == lattice.vectors
    for always_solve in (False, True):
        found = solve(n, k, 2, always_solve=always_solve)
        pairs = zip(lattice.orderings.tolist(), lattice.classes, strict=True)
        total = sum(count * expected_error(PermuteAndFlip(2), [-2 * s for s in steps]) for count, steps in pairs)
        assert found.permute_and_flip == pytest.approx(total, rel=1e-11)
        assert found.value == pytest.approx(total, rel=1e-8)
        assert found.certificate is not None
    assert pareto_ratios(n, k, 2).permute_and_flip == pytest.approx(1, abs=1e-6)


def test_the_record_is_frozen_and_short() -> None:
    found = solve(4, 8, 0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.value = 0.0  # type: ignore[misc]
    assert "variables=525" in repr(found)
    assert len(repr(found)) < 400


def test_larger_than_the_paper() -> None:
    found = solve(8, 8, 1)
    assert (found.variables, found.ratios.permute_and_flip) == (30_459, 1)
    assert found.certificate is not None


# Proposition 6: whoever is nowhere worse than permute-and-flip is nowhere better, whatever epsilon.


@settings(max_examples=30)
@given(st.integers(2, 4), st.integers(1, 4), st.floats(0.05, 4), st.randoms(use_true_random=False))
def test_permute_and_flip_is_pareto_optimal(n: int, k: int, epsilon: float, random) -> None:
    """However the score vectors are weighted, errors below permute-and-flip's everywhere sum to no less."""
    lattice, odds = bounded_lattice(n, k), math.exp(-epsilon)
    program = paper_program(lattice)
    weights = np.array([random.uniform(0.1, 1) for _ in lattice.classes])
    caps = program.class_errors(odds) @ permute_and_flip(lattice, odds)
    assert least_error(program, odds, caps, weights) == pytest.approx(weights @ caps, rel=1e-6)


def test_a_small_worsening_of_permute_and_flip_is_seen() -> None:
    """Power: one tenth of a percent of the exponential mechanism mixed in can be taken out again."""
    lattice, odds = bounded_lattice(3, 3), math.exp(-0.5)
    program = paper_program(lattice)
    mixed = 0.999 * permute_and_flip(lattice, odds) + 0.001 * exponential(lattice, odds)
    weights, caps = np.ones(len(lattice.classes)), program.class_errors(odds) @ mixed
    assert least_error(program, odds, caps, weights) < (1 - 1e-5) * weights @ caps


@pytest.mark.parametrize("epsilon", ["0.1", 0.5, 2])
def test_pareto_ratios(epsilon: float) -> None:
    found, best = pareto_ratios(3, 4, epsilon), solve(3, 4, epsilon)
    assert found.permute_and_flip == pytest.approx(1, abs=1e-7)
    assert 1.01 < found.exponential <= best.ratios.exponential + 1e-9


def test_pareto_ratios_check_their_input() -> None:
    with pytest.raises(InvalidValue, match="epsilon must be > 0"):
        pareto_ratios(3, 3, -1)
    with pytest.raises(ProgramTooLarge):
        pareto_ratios(30, 30, 1)
