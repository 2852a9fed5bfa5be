"""The linear program, against the paper's program written out over all vectors."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

from dpselect._types import Floats
from dpselect.errors import NotConverged
from dpselect.optimality import THRESHOLD, certify, solve
from dpselect.optimality.lattice import Lattice, bounded_lattice, exponential, permute_and_flip
from dpselect.optimality.program import Program, lower_bound, paper_program, regular_program, solution

Rows = list[dict[int, float]]


def written_out(n: int, k: int, epsilon: float, *, relaxed: bool = False) -> float:
    """The paper's program with a variable for each vector and candidate, and explicit symmetry constraints."""
    odds = math.exp(-epsilon)
    vectors = [q for q in itertools.product(range(k + 1), repeat=n) if min(q) == 0]
    index = {(q, r): i for i, (q, r) in enumerate(itertools.product(vectors, range(n)))}
    privacy: Rows = []
    symmetry: Rows = []
    for (q, r), own in index.items():
        if relaxed:
            other, factor = (*q[:r], 0, *q[r + 1 :]), odds ** q[r]
        elif q[r]:
            other, factor = (*q[:r], q[r] - 1, *q[r + 1 :]), odds
        else:
            other, factor = tuple(0 if s == r else step + 1 for s, step in enumerate(q)), odds
        if (other, r) in index and (q[r] or not relaxed):
            privacy.append({own: -1.0, index[other, r]: factor})
        for order in itertools.permutations(range(n)):
            image = index[tuple(q[s] for s in order), order.index(r)]
            if image > own:
                symmetry.append({own: 1.0, image: -1.0})
    sums = [{index[q, r]: 1.0 for r in range(n)} for q in vectors]
    found = linprog(
        [2.0 * q[r] for q, r in index],
        A_ub=matrix(privacy, len(index)),
        b_ub=np.zeros(len(privacy)),
        A_eq=matrix(symmetry + sums, len(index)),
        b_eq=[0.0] * len(symmetry) + [1.0] * len(sums),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    return float(found.fun)


def matrix(rows: Rows, width: int) -> csr_array:
    entries = [(value, i, j) for i, row in enumerate(rows) for j, value in row.items()]
    values, i, j = zip(*entries, strict=True)
    return csr_array((values, (i, j)), shape=(len(rows), width))


def averaging(lattice: Lattice) -> Floats:
    """The weights of the average over all vectors."""
    return np.asarray(lattice.orderings / lattice.vectors, np.float64)


def in_shares(program: Program, odds: float, weights: Floats) -> Any:
    """The program solved in its shares, with a row for each constraint: no increments, no bound repaired."""
    rows, sums = program.rows(odds), program.sums(odds)
    found = linprog(
        program.class_errors(odds).T @ weights,
        A_ub=rows,
        b_ub=np.zeros(rows.shape[0]),
        A_eq=sums,
        b_eq=np.ones(sums.shape[0]),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    return found


programs = st.one_of(
    st.builds(lambda n, k: paper_program(bounded_lattice(n, k)), st.integers(2, 5), st.integers(1, 5)),
    st.builds(lambda n, k: paper_program(bounded_lattice(n, k), relaxed=True), st.integers(2, 5), st.integers(1, 5)),
    st.builds(regular_program, st.integers(2, 4), st.integers(1, 2), st.integers(1, 3)),
)


@settings(max_examples=40)
@given(programs, st.floats(0.05, 4), st.randoms(use_true_random=False), st.booleans())
def test_the_program_in_increments_has_the_same_optimum(program, epsilon, random, by_simplex) -> None:  # type: ignore[no-untyped-def]
    odds, weights = math.exp(-epsilon), np.array([random.uniform(0.1, 1) for _ in program.lattice.classes])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpselect.optimality.program._SMALL", 10**9 if by_simplex else 0)
        found = solution(program, odds, weights)
    plain = in_shares(program, odds, weights).fun
    assert found.objective == pytest.approx(plain, rel=1e-7)
    assert found.bound == pytest.approx(plain, rel=1e-7)


@given(programs, st.floats(0.05, 4), st.randoms(use_true_random=False))
def test_privacy_below_the_best_says_that_increments_are_not_negative(program, epsilon, random) -> None:  # type: ignore[no-untyped-def]
    """Exactly: whole numbers in, whole numbers out. Each of the other shares is its own increment."""
    lattice = program.lattice
    increments = np.array([float(random.randrange(-9, 10)) for _ in range(lattice.variables)])
    shares = program.paths @ increments
    slack = -(program.rows(math.exp(-epsilon)) @ shares)[: program.constrained.size]
    below = program.constrained[program.is_bound]
    assert below.tolist() == np.flatnonzero(lattice.step > 0).tolist()
    assert slack[program.is_bound].tolist() == increments[below].tolist()
    assert shares[lattice.first].tolist() == increments[lattice.first].tolist()


@pytest.mark.parametrize(("n", "k"), [(2, 6), (3, 4), (4, 4), (5, 4), (4, 8)])
@pytest.mark.parametrize("odds", ["1/3", "1/1000"])
def test_the_solver_finds_the_value_of_the_exact_certificate(n: int, k: int, odds: str) -> None:
    proof = certify(n, k, odds)
    found = solve(n, k, -math.log(proof.odds), always_solve=True)
    assert proof.proves_optimality
    assert found.value == pytest.approx(float(proof.value), rel=1e-9)


@pytest.mark.slow
def test_a_hundred_thousand_variables() -> None:
    found = solve(8, 10, 1, always_solve=True, most_variables=10**5)
    assert found.variables == 99_528
    assert found.ratios.permute_and_flip == pytest.approx(1, abs=1e-9)
    assert found.duality_gap < 1e-9


@pytest.mark.parametrize(("n", "k"), [(2, 3), (3, 2), (3, 4), (4, 2)])
@pytest.mark.parametrize("epsilon", [0.05, 0.4, 1.5])
@pytest.mark.parametrize("relaxed", [False, True])
def test_merging_symmetric_variables_changes_nothing(n: int, k: int, epsilon: float, relaxed: bool) -> None:
    found = solve(n, k, epsilon, relaxed=relaxed, always_solve=True)
    assert found.value == pytest.approx(written_out(n, k, epsilon, relaxed=relaxed), rel=1e-8)


@settings(max_examples=25)
@given(st.integers(2, 4), st.integers(1, 5), st.floats(0.01, 12))
def test_the_optimum_is_feasible_and_no_mechanism_of_ours_beats_it(n: int, k: int, epsilon: float) -> None:
    lattice, odds = bounded_lattice(n, k), math.exp(-epsilon)
    program, weights = paper_program(lattice), averaging(lattice)
    found = solution(program, odds, weights)
    cost = program.class_errors(odds).T @ weights
    for shares in (permute_and_flip(lattice, odds), exponential(lattice, odds), found.shares):
        assert (program.rows(odds) @ shares).max(initial=0) <= 1e-8
        assert program.sums(odds) @ shares == pytest.approx(np.ones(len(lattice.classes)), abs=1e-12)
        assert cost @ shares >= found.bound - (1e-8 if shares is found.shares else 1e-12)
    assert found.gap <= 1e-8


@settings(max_examples=50)
@given(programs, st.floats(0.01, 5), st.randoms(use_true_random=False))
def test_the_lower_bound_holds_whatever_the_prices(program, epsilon, random) -> None:  # type: ignore[no-untyped-def]
    lattice, odds = program.lattice, math.exp(-epsilon)
    weights = np.array([random.uniform(0.1, 1) for _ in lattice.classes])
    sums = np.array([random.uniform(-1, 1) for _ in lattice.classes])
    prices = np.array([random.uniform(-0.1, 1) for _ in range(program.constrained.size + program.lower.size)])
    assert lower_bound(program, odds, weights, sums, prices) <= solution(program, odds, weights).objective + 1e-9


def test_the_relaxed_program_is_a_lower_bound_and_above_the_threshold_all_three_agree() -> None:
    assert solve(4, 4, 0.3, relaxed=True).value < 0.9 * solve(4, 4, 0.3).value
    for epsilon in (THRESHOLD, 1.5, 4):
        proven = solve(4, 4, epsilon).value
        for relaxed in (False, True):
            assert solve(4, 4, epsilon, relaxed=relaxed, always_solve=True).value == pytest.approx(proven, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_gap_that_is_too_large_is_an_error(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpselect.optimality.program.LARGEST_GAP", -1.0)
    with pytest.raises(NotConverged, match="HiGHS left a duality gap of"):
        solve(2, 2, 0.5, steps=steps, regular=True)
