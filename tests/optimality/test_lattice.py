import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect.errors import InvalidType, InvalidValue, ProgramTooLarge
from dpselect.optimality import solve, variable_count
from dpselect.optimality.lattice import bounded_lattice

SIZES = [(2, 1), (2, 5), (3, 2), (4, 3), (5, 2)]


def vectors(n: int, k: int) -> list[tuple[int, ...]]:
    """All vectors of steps, symmetric ones too."""
    return [steps for steps in itertools.product(range(k + 1), repeat=n) if min(steps) == 0]


@pytest.mark.parametrize(("n", "k", "variables"), [(4, 8, 525), (8, 8, 30_459), (3, 4, 35), (6, 4, 406)])
def test_the_number_of_variables(n: int, k: int, variables: int) -> None:
    assert variable_count(n, k) == variables
    assert bounded_lattice(n, k).variables == variables


@pytest.mark.parametrize(("n", "k"), SIZES)
def test_classes_stand_for_all_vectors(n: int, k: int) -> None:
    lattice = bounded_lattice(n, k)
    expected = Counter(tuple(sorted(steps)) for steps in vectors(n, k))
    assert dict(zip(lattice.classes, lattice.orderings.tolist(), strict=True)) == expected
    assert lattice.vectors == len(vectors(n, k))
    assert lattice.variables == len({(tuple(sorted(steps)), step) for steps in vectors(n, k) for step in steps})


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


def test_levels_cover_all_variables_in_order() -> None:
    lattice = bounded_lattice(5, 3)
    covered = [np.arange(lattice.variables)[level] for _, level in lattice.levels]
    assert np.concatenate(covered).tolist() == list(range(lattice.variables))
    for zeros, level in lattice.levels:
        assert set(lattice.zeros[lattice.class_of[level]]) == {zeros}


@given(st.integers(2, 6), st.integers(1, 5))
def test_the_count_needs_no_list(n: int, k: int) -> None:
    assert variable_count(n, k) == bounded_lattice(n, k).variables


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


def test_more_vectors_than_floats_can_sum_are_refused() -> None:
    assert solve(900, 1, 1).variables == 1799
    with pytest.raises(ProgramTooLarge, match=r"more than 10\^300 score vectors"):
        solve(1000, 1, 1)


def test_the_limit_is_an_argument() -> None:
    with pytest.raises(ProgramTooLarge, match="gives 525 variables, more than the limit of 524"):
        solve(4, 8, 1, most_variables=524)
    assert solve(4, 8, 1, most_variables=525).variables == 525


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1, 4, 1), InvalidValue, "n must be >= 2"),
        ((0, 4, 1), InvalidValue, "n must be >= 2"),
        ((-3, 4, 1), InvalidValue, "n must be >= 0"),
        ((3, 0, 1), InvalidValue, "k must be >= 1"),
        ((3.0, 4, 1), InvalidType, "n must be an integer"),
        ((3, "4", 1), InvalidType, "k must be an integer"),
        ((3, True, 1), InvalidType, "k must be an integer"),
        ((3, 4, 0), InvalidValue, "epsilon must be > 0"),
        ((3, 4, math.nan), InvalidValue, "epsilon must be finite"),
        ((3, 4, math.inf), InvalidValue, "epsilon must be finite"),
        ((3, 4, None), InvalidType, "epsilon must be a number"),
    ],
)
def test_bad_input(arguments: tuple[object, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        solve(*arguments)  # type: ignore[arg-type]
