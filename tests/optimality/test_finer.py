"""Finer lattices and other averages, against the program written out with every pair of neighbours."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.analysis import expected_error
from dpselect.optimality import solve
from dpselect.optimality.program import lower_bound, regular_program, solution
from tests.optimality.test_lattice import vectors
from tests.optimality.test_program import in_shares


def key(q, r):
    """A candidate of a vector, the same for all orderings."""
    return q[r], tuple(sorted(q[:r] + q[r + 1 :]))


def comparisons(n, k, m):
    """All pairs (a, b): x_a >= odds x_b by privacy, x_a >= x_b by monotonicity. Nothing is left out as redundant."""
    listed = list(vectors(n, k * m))
    private, monotone = set(), set()
    for q, p in itertools.product(listed, repeat=2):
        change = [b - a for a, b in zip(q, p, strict=True)]
        for r in range(n):
            if max(change) - min(change) <= m:  # a shift, and at most the sensitivity up or down for each
                private.add((key(q, r), key(p, r)))
            if all(p[s] - p[r] >= q[s] - q[r] for s in range(n)):
                monotone.add((key(p, r), key(q, r)))
    return private, monotone


def written_out(n, k, m, epsilon, weights=None, worst_case=False):
    """The smallest sum of expected errors, or the smallest largest one."""
    listed = [tuple(q) for q in vectors(n, k * m)]
    index = {name: i for i, name in enumerate(sorted({key(q, r) for q in listed for r in range(n)}))}
    size = len(index) + 1  # and the largest error
    private, monotone = comparisons(n, k, m)
    rows = []
    for pairs, factor in ((private, math.exp(-epsilon)), (monotone, 1.0)):
        for a, b in pairs:
            row = np.zeros(size)
            row[index[b]] += factor
            row[index[a]] -= 1
            rows.append(row)
    sums, cost = np.zeros((len(listed), size)), np.zeros(size)
    for number, q in enumerate(listed):
        errors = np.zeros(size)
        for r in range(n):
            sums[number, index[key(q, r)]] += 1
            errors[index[key(q, r)]] += 2 * q[r] / m
        if worst_case:
            errors[-1] = -1
            rows.append(errors)
        else:
            cost += errors * (1 if weights is None else weights(tuple(sorted(q))))
    if worst_case:
        cost[-1] = 1
    found = linprog(cost, np.array(rows), np.zeros(len(rows)), sums, np.ones(len(listed)), method="highs-ds")
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize(("n", "k", "m"), [(2, 2, 3), (3, 1, 3), (3, 2, 1), (3, 2, 2), (4, 1, 2)])
@pytest.mark.parametrize("epsilon", [0.2, 1.5])
def test_all_neighbours_say_no_more_than_the_worst_one(n, k, m, epsilon):
    def weights(steps):
        return 2.0 ** -sum(steps)

    found = solve(n, k, epsilon, steps=m, regular=True)
    assert found.value == pytest.approx(written_out(n, k, m, epsilon), rel=1e-7)
    weighted = solve(n, k, epsilon, steps=m, weights=weights)
    assert weighted.value == pytest.approx(written_out(n, k, m, epsilon, weights), rel=1e-7)
    worst = solve(n, k, epsilon, steps=m, worst_case=True)
    assert worst.value == pytest.approx(written_out(n, k, m, epsilon, worst_case=True), rel=1e-7)
    assert max(found.duality_gap, weighted.duality_gap, worst.duality_gap) < 1e-9


@pytest.mark.parametrize(("n", "k", "m", "epsilon"), [(3, 2, 2, 0.7), (2, 3, 3, 2.0), (4, 2, 1, "1/4")])
def test_the_others_are_those_of_the_analysis(n, k, m, epsilon):
    scores = [[-2 * step / m for step in steps] for steps in vectors(n, k * m)]
    found, worst = solve(n, k, epsilon, steps=m, regular=True), solve(n, k, epsilon, steps=m, worst_case=True)
    paper = solve(n, k, epsilon) if m == 1 else found
    for kind, name in [(PermuteAndFlip, "permute_and_flip"), (ExponentialMechanism, "exponential")]:
        errors = [expected_error(kind(epsilon), q) for q in scores]
        assert getattr(found, name) == getattr(paper, name) == pytest.approx(sum(errors), rel=1e-12)
        assert getattr(worst, name) == pytest.approx(max(errors), rel=1e-12)
        assert getattr(found.ratios, name) == pytest.approx(sum(errors) / found.value)
        assert getattr(worst.ratios, name) == pytest.approx(max(errors) / worst.value)


@pytest.mark.parametrize(("m", "epsilon"), [(1, 0.1), (1, 4.0), (2, 0.1), (2, 1.0), (2, 4.0), (3, 0.7), (3, 4.0)])
def test_two_candidates_have_a_staircase(m, epsilon):
    """In closed form: odds**j / 2 at whole steps of 2 sensitivity, odds**(j + 1) / (1 + odds) between them.

    With three steps another mechanism is better for small epsilons: see the next tests.
    """
    odds = math.exp(-epsilon)
    found = solve(2, 3, epsilon, steps=m, regular=True)
    for (_, step), (_, probability) in found.probabilities.items():
        whole, rest = divmod(step, m)
        expected = odds ** (whole + 1) / (1 + odds) if rest else odds**whole / 2
        assert probability == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("k", "threshold"), [(1, math.log(2)), (2, 0.3712), (4, 0.1893)])
def test_where_the_staircase_begins_depends_on_where_the_lattice_ends(k, threshold):
    """The inequality of docs/lattices.md for m = 3, g = 1, and what the solver finds on both sides of it."""
    for epsilon, is_staircase in ((threshold * 0.95, False), (threshold * 1.05, True)):
        odds = math.exp(-epsilon)
        here, there = (sum((share + j) * odds**j for j in range(k)) for share in (1 / 3, 2 / 3))
        assert (here >= odds * there) is is_staircase
        probability = solve(2, k, epsilon, steps=3, regular=True).probabilities[0, 1][1]
        assert (probability == pytest.approx(odds / (1 + odds), rel=1e-8)) is is_staircase


def test_three_steps_and_a_small_epsilon():
    """One step below the best is as likely as the best, and so two steps below need not be more likely than odds/2."""
    odds = math.exp(-0.6)
    found = solve(2, 1, 0.6, steps=3).probabilities
    assert found[0, 1] == pytest.approx((0.5, 0.5), rel=1e-8)
    assert found[0, 2] == pytest.approx((1 - odds / 2, odds / 2), rel=1e-8)


def test_one_step_without_more_is_the_program_of_the_paper():
    for epsilon in (0.3, 0.5, 2):
        paper, same = solve(3, 3, epsilon), solve(3, 3, epsilon, steps=1)
        assert (same.value, same.ratios, same.certificate) == (paper.value, paper.ratios, paper.certificate)
        assert solve(3, 3, epsilon, regular=True).value >= paper.value * (1 - 1e-9)
    assert solve(3, 3, 2, regular=True).ratios.permute_and_flip == pytest.approx(1, abs=1e-9)


def test_the_optimum_of_the_paper_is_not_always_monotonic():
    paper, regular = solve(3, 3, 0.5), solve(3, 3, 0.5, regular=True)
    assert paper.ratios.permute_and_flip == pytest.approx(1.006164, abs=1e-6)
    assert regular.ratios.permute_and_flip == pytest.approx(1.003399, abs=1e-6)


def test_on_the_coarse_lattice_the_fine_optimum_is_permute_and_flip():
    found = solve(3, 2, 1, steps=3)
    for steps, probabilities in found.probabilities.items():
        flip = PermuteAndFlip(1).pmf([-2 * step / 3 for step in steps])
        coarse = all(step % 3 == 0 for step in steps)
        assert bool(np.abs(flip / probabilities - 1).max() < 1e-6) == coarse


def mixed(program, odds, shares, weight):
    """An exactly feasible point near the shares: mixed with an exponential mechanism of a smaller epsilon."""
    lattice = program.lattice
    heads = program.head_probabilities(odds)
    soft = np.array([Fraction(9, 10) ** int(step) for step in lattice.step])  # 0.9**m > odds
    points = []
    for values in (np.array([Fraction(share) for share in shares]) * heads, soft):
        sums = np.add.reduceat(lattice.multiplicity * values, lattice.first)
        points.append(values / sums[lattice.class_of])
    return (1 - weight) * points[0] + weight * points[1]


@pytest.mark.parametrize(("n", "k", "m"), [(2, 2, 2), (3, 1, 3), (3, 2, 2)])
def test_the_optimum_is_proven_in_rational_arithmetic(n, k, m):
    """At exp(-epsilon) = 1/3: a private and regular mechanism, all pairs checked, and a lower bound, 1e-6 apart."""
    odds = Fraction(1, 3)
    program = regular_program(n, k, m)
    lattice = program.lattice
    weights = np.array([Fraction(int(count), lattice.vectors) for count in lattice.orderings])
    floats = weights.astype(np.float64)
    plain = in_shares(program, float(odds), floats)
    sums, rows = (np.array([Fraction(x) for x in part.marginals]) for part in (plain.eqlin, plain.ineqlin))
    bound = odds * lower_bound(program, odds, weights, sums, -rows)
    assert isinstance(bound, Fraction)

    solved = solution(program, float(odds), floats)
    point = mixed(program, odds, solved.shares, Fraction(1, 10**7))
    value = (weights[lattice.class_of] * lattice.multiplicity * (2 * lattice.step) * point).sum() / m
    by_name = {}
    for number, x in enumerate(point):
        others = list(lattice.classes[lattice.class_of[number]])
        others.remove(lattice.step[number])
        by_name[int(lattice.step[number]), tuple(others)] = x
    private, monotone = comparisons(n, k, m)
    assert all(by_name[a] >= odds * by_name[b] for a, b in private)
    assert all(by_name[a] >= by_name[b] for a, b in monotone)
    assert 0 <= value / bound - 1 < Fraction(1, 10**6)
    flip = solve(n, k, -math.log(odds), steps=m).ratios.permute_and_flip
    assert flip > 1.02  # so permute-and-flip is not optimal here, and that is proven


@settings(max_examples=25)
@given(st.integers(2, 4), st.integers(1, 2), st.integers(1, 3), st.floats(0.05, 5), st.booleans())
def test_ratios(n, k, m, epsilon, worst_case):
    found = solve(n, k, epsilon, steps=m, worst_case=worst_case, regular=True)
    assert 1 - 1e-8 <= found.ratios.permute_and_flip <= found.ratios.exponential * (1 + 1e-12)
    assert found.steps == m
    assert all(sum(each) == pytest.approx(1, abs=1e-12) for each in found.probabilities.values())
