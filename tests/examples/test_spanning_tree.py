"""Permute-and-flip over spanning trees: its law, its rate and its score range, against a list of all trees."""

from collections import Counter
from fractions import Fraction
from itertools import combinations

import pytest
from flint import arb, ctx, fmpq

from dpselect import ExponentialMechanism, PermuteAndFlip
from tests.examples.test_audits import example
from tests.statistical.goodness import assert_fits, assert_rejected

DRAWS = 3_500


@pytest.fixture(scope="module")
def script():
    return example("spanning_tree")


def all_trees(towns, roads):
    """Every set of roads that connects all towns and has one road fewer than there are towns."""
    return [frozenset(chosen) for chosen in combinations(roads, towns - 1) if connects(towns, chosen)]


def connects(towns, roads):
    reached = {0}
    for _ in range(towns):
        reached |= {end for road in roads if reached & set(road) for end in road}
    return len(reached) == towns


# Five towns and seven roads: 24 trees. One is ahead, so permute-and-flip differs much from the exponential mechanism.
USERS = {(0, 1): 9, (1, 2): 8, (2, 3): 9, (3, 4): 8, (0, 4): 5, (1, 3): 4, (0, 2): 5}
TOWNS = 5


@pytest.mark.slow
def test_trees_have_the_law_of_permute_and_flip(script):
    """Of permute-and-flip over the list of all trees. The power check: not of the exponential mechanism."""
    graph = script.Graph(TOWNS, USERS)
    mechanism = script.mechanism_for(graph, "1.5", 2)
    assert mechanism.score_range == 2
    trees = all_trees(TOWNS, USERS)
    assert len(trees) == script.sum_over_trees(TOWNS, dict.fromkeys(USERS, 1)) == 24
    scores = [graph.score(tree) for tree in trees]
    flipped = PermuteAndFlip("1.5", score_range=2).pmf(scores)
    exponential = ExponentialMechanism("1.5", score_range=2).pmf(scores)
    drawn = Counter(script.choose_tree(graph, mechanism) for _ in range(DRAWS))
    counts = [drawn[tree] for tree in trees]
    assert sum(counts) == DRAWS
    assert_fits(counts, flipped)
    assert_rejected(counts, exponential, truth=flipped)
    walked = Counter(script.walked_tree(graph, mechanism) for _ in range(DRAWS))
    assert_fits([walked[tree] for tree in trees], exponential)


def test_the_rate_is_enclosed(script):
    """The bounds enclose the logarithm of the sum over all trees, by an independent arithmetic, and become narrow."""
    graph, rate = script.Graph(TOWNS, USERS), Fraction(7, 3)
    ctx.prec = 400
    best = graph.score(graph.best_tree())
    exponents = [rate * (best - graph.score(tree)) for tree in all_trees(TOWNS, USERS)]
    true = sum(((-arb(fmpq(e.numerator, e.denominator))).exp() for e in exponents), arb(0)).log()
    found = script.log_rate(graph, rate)
    for digits in (10, 30, 50, 100):
        low, high = found.bracket(digits)
        assert arb(fmpq(low.numerator, low.denominator)) < true < arb(fmpq(high.numerator, high.denominator))
        assert high - low < Fraction(1, 10 ** (digits - 4))
    assert abs(arb(found.approximate) - true) < arb(found.doubt)
    assert found.doubt < 1e-12


def test_the_best_tree_and_the_score_range(script):
    """Over all trees: no tree is better, and the people who can do most change a difference by exactly the range."""
    graph = script.Graph(TOWNS, USERS)
    trees = all_trees(TOWNS, USERS)
    assert graph.best_tree() in trees
    assert graph.score(graph.best_tree()) == max(map(graph.score, trees))
    for most_roads in range(1, 8):
        people = [set(used) for size in range(most_roads + 1) for used in combinations(USERS, size)]
        largest = max(len(used & tree) - len(used & other) for used in people for tree in trees for other in trees)
        assert largest == graph.score_range(most_roads)


def test_the_script_runs(script, capsys):
    script.main()
    lines = capsys.readouterr().out.splitlines()
    assert "47,579,136 trees" in lines[0]
    assert len(lines) == 1 + len(script.TOWNS) - 1 + 2
