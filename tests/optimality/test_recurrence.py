"""Permute-and-flip and the exponential mechanism on the lattice, against the paper's lemmas and the library's pmf."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.optimality.lattice import Numbers, bounded_lattice, exponential, permute_and_flip, powers
from tests.reference import pmf_by_permutations, softmax_pmf


def by_class(n: int, k: int, shares: Numbers, odds: Any) -> list[list[Any]]:
    lattice = bounded_lattice(n, k)
    numbers = dict(zip(zip(lattice.class_of, lattice.step, strict=True), shares * powers(lattice, odds), strict=True))
    return [[numbers[number, step] for step in steps] for number, steps in enumerate(lattice.classes)]


@pytest.mark.parametrize(("n", "k"), [(2, 4), (3, 3), (4, 3), (5, 2)])
@pytest.mark.parametrize("odds", [Fraction(1, 3), Fraction(9, 10)])
def test_with_rational_odds_the_probabilities_are_exact(n: int, k: int, odds: Fraction) -> None:
    lattice = bounded_lattice(n, k)
    flip = by_class(n, k, permute_and_flip(lattice, odds), odds)
    softmax = by_class(n, k, exponential(lattice, odds), odds)
    for steps, flip_pmf, softmax_pmf_here in zip(lattice.classes, flip, softmax, strict=True):
        heads = [odds**step for step in steps]
        assert flip_pmf == pmf_by_permutations(heads)
        assert softmax_pmf_here == softmax_pmf(heads)
        assert all(isinstance(number, Fraction) for number in flip_pmf + softmax_pmf_here)


@settings(max_examples=20)
@given(st.integers(2, 5), st.integers(1, 4), st.floats(1e-3, 20))
def test_in_floats_they_are_those_of_the_mechanisms(n: int, k: int, epsilon: float) -> None:
    lattice, odds = bounded_lattice(n, k), float(np.exp(-epsilon))
    for kind, shares in [(PermuteAndFlip, permute_and_flip), (ExponentialMechanism, exponential)]:
        found = by_class(n, k, shares(lattice, odds), odds)
        for steps, pmf in zip(lattice.classes, found, strict=True):
            assert kind(epsilon).pmf([-2 * step for step in steps]) == pytest.approx(pmf, rel=1e-12)
