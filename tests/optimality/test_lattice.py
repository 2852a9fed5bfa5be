"""The lattice: its classes and variables, what is refused, and both mechanisms on it."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.errors import InvalidType, InvalidValue, ProgramTooLarge
from dpselect.optimality import solve, variable_count
from dpselect.optimality.lattice import Numbers, bounded_lattice, exponential, permute_and_flip, powers
from tests.reference import pmf_by_permutations, softmax_pmf

SIZES = [(2, 1), (2, 5), (3, 2), (4, 3), (5, 2)]


def vectors(n: int, k: int) -> list[tuple[int, ...]]:
    """All vectors of steps, symmetric ones too."""
    return [steps for steps in itertools.product(range(k + 1), repeat=n) if min(steps) == 0]


@pytest.mark.parametrize(("n", "k", "variables"), [(4, 8, 525), (8, 8, 30_459), (3, 4, 35), (6, 4, 406)])
def test_the_number_of_variables(n: int, k: int, variables: int) -> None:
    assert variable_count(n, k) == bounded_lattice(n, k).variables == variables


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_classes_stand_for_all_vectors_and_levels_for_all_variables(n: int, k: int) -> None:
    lattice = bounded_lattice(n, k)
    expected = Counter(tuple(sorted(steps)) for steps in vectors(n, k))
    assert dict(zip(lattice.classes, lattice.orderings.tolist(), strict=True)) == expected
    assert lattice.vectors == len(vectors(n, k))
    names = {(tuple(sorted(steps)), step) for steps in vectors(n, k) for step in steps}
    assert lattice.variables == variable_count(n, k) == len(names)
    covered = [np.arange(lattice.variables)[level] for _, level in lattice.levels]
    assert np.concatenate(covered).tolist() == list(range(lattice.variables))
    for zeros, level in lattice.levels:
        assert set(lattice.zeros[lattice.class_of[level]]) <= {zeros}


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_variables_know_their_class_and_their_relatives(n: int, k: int) -> None:
    lattice = bounded_lattice(n, k)
    names = [(lattice.classes[number], step) for number, step in zip(lattice.class_of, lattice.step, strict=True)]
    for variable, (steps, step) in enumerate(names):
        others = list(steps)
        others.remove(step)
        assert lattice.multiplicity[variable] == steps.count(step)
        assert names[lattice.raised[variable]] == (tuple(sorted([0, *others])), 0)
        if step:
            neighbour: tuple[tuple[int, ...], int] = (tuple(sorted([step - 1, *others])), step - 1)
        else:
            neighbour = (0, *(other + 1 for other in others)), 0
        found = lattice.neighbour[variable]
        assert names[found] == neighbour if max(neighbour[0]) <= k else found == -1


@pytest.mark.parametrize(
    ("n", "k", "size"),
    [
        (9, 9, "127,270 variables"),
        (20, 20, "variables"),
        (10**9, 2, "more than 50,000 variables"),
        (2, 10**9, "more than 50,000 variables"),
        (10**4, 10**4, "about 10^60"),
    ],
)
def test_a_large_program_is_refused_with_its_size(n: int, k: int, size: str) -> None:
    with pytest.raises(ProgramTooLarge, match="more than the limit of 50,000") as refused:
        solve(n, k, 1)
    assert size in str(refused.value)
    assert isinstance(refused.value, InvalidValue)


def test_limits_are_where_they_are_stated() -> None:
    assert solve(900, 1, 1).variables == 1799
    with pytest.raises(ProgramTooLarge, match=r"more than 10\^300 score vectors"):
        solve(1000, 1, 1)
    with pytest.raises(ProgramTooLarge, match="gives 525 variables, more than the limit of 524"):
        solve(4, 8, 1, most_variables=524)
    assert solve(4, 8, 1, most_variables=525).variables == 525


REFUSED = [
    ({"n": 1}, InvalidValue, "n must be >= 2"),
    ({"n": 0}, InvalidValue, "n must be >= 2"),
    ({"n": -3}, InvalidValue, "n must be >= 0"),
    ({"k": 0}, InvalidValue, "k must be >= 1"),
    ({"n": 3.0}, InvalidType, "n must be an integer"),
    ({"k": "4"}, InvalidType, "k must be an integer"),
    ({"k": True}, InvalidType, "k must be an integer"),
    ({"epsilon": 0}, InvalidValue, "epsilon must be > 0"),
    ({"epsilon": math.nan}, InvalidValue, "epsilon must be finite"),
    ({"epsilon": math.inf}, InvalidValue, "epsilon must be finite"),
    ({"epsilon": None}, InvalidType, "epsilon must be a number"),
    ({"steps": 0}, InvalidValue, "steps must be >= 1"),
    ({"steps": 1.5}, InvalidType, "steps must be an integer"),
    ({"steps": 10**6}, ProgramTooLarge, "more than the limit"),
    ({"steps": 2, "relaxed": True}, InvalidValue, "relaxed needs the paper's program"),
    ({"weights": [1, 2]}, InvalidType, "weights must be a function"),
    ({"weights": lambda _: -1}, InvalidValue, "weights must not be negative"),
    ({"weights": lambda _: 0}, InvalidValue, "and not zero on all vectors that have an error"),
    ({"weights": lambda steps: not any(steps)}, InvalidValue, "and not zero on all vectors that have an error"),
    ({"weights": lambda _: math.nan}, InvalidValue, "weights must hold finite numbers"),
    ({"worst_case": 1}, InvalidType, "worst_case must be True or False"),
    ({"epsilon": 1000, "steps": 2}, InvalidValue, "epsilon must be at most"),
    ({"steps": 2, "worst_case": True, "weights": sum}, InvalidValue, "either weights or worst_case"),
]


@pytest.mark.parametrize(("options", "error", "words"), REFUSED)
def test_bad_input(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        solve(**({"n": 3, "k": 2, "epsilon": 1} | options))


# Both mechanisms on the lattice, against the lemmas of the paper and the probabilities of the library.


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
