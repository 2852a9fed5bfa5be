"""Permute-and-flip over all spanning trees of a graph: 47 million candidates, and no list of them.

    python examples/spanning_tree.py

A county can repair just enough roads to connect all its towns: a spanning tree. It wants the tree whose roads have the
most users. The exponential mechanism can be drawn from all trees by random walks. The waiting sampler (theorem 11
of docs/theory.md) turns these draws into permute-and-flip, which is never worse.

*Privacy.* The score u(T) of a tree is the number of users, summed over its roads. A person uses at most m roads. Adding
a person changes u(S) - u(T) by the number of their roads in S but not in T, minus the number in T but not in S. Neither
is more than m. With n towns and r roads, a tree has n - 1 roads, and r - n + 1 roads lie outside it, so S and T differ
in at most min(n - 1, r - n + 1) roads. So the score range is at most min(m, n - 1, r - n + 1), and twice that if a
person may be replaced. Towns and roads are public. The users of a road are not.

*Exactness.* With c = epsilon / range, the exponential mechanism takes a tree with probability proportional to the
product of exp(c x_e) over its roads e, which have x_e users. Wilson's algorithm (1996) returns trees with this
probability, if each step of its walks takes a road of the town with probability proportional to exp(c x_e). That is an
exponential mechanism with a few candidates. The waiting sampler also needs the best score, which Kruskal's algorithm
finds, and bounds of Z, the sum of exp(-c (u* - u(T))) over all trees. By the matrix-tree theorem (Kirchhoff 1847), a
determinant is the sum over all trees of the product of their weights. All products are positive, so rational bounds of
the weights give bounds of Z.

*Time.* It depends on the data. Between two towns whose common road has far more users than their other roads, a walk
goes back and forth about exp(c gap) times. So the counts must not differ by more than a few times 1/c.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from dpselect import ExponentialMechanism
from dpselect.selection.draws import Draws
from dpselect.selection.enclosure import log_bracket, scaled_exp
from dpselect.selection.proposals import LogRate, wait_for

TOWNS = ["Ash", "Brook", "Calder", "Dunmore", "Elland", "Fenwick", "Garth", "Holme", "Ilkley", "Jarrow", "Keld", "Leek"]
PEOPLE, MOST_ROADS, EPSILON = 1_000, 3, "0.5"

Road = tuple[int, int]
Tree = frozenset[Road]


@dataclass(frozen=True)
class Graph:
    """Roads between towns, and how many people use each of them. The roads connect all towns."""

    towns: int
    users: dict[Road, int]

    def score_range(self, most_roads: int) -> int:
        """How far an added person can change the difference of two trees, if nobody uses more roads than that."""
        return min(most_roads, self.towns - 1, len(self.users) - self.towns + 1)

    def score(self, tree: Tree) -> int:
        """The number of users, summed over the roads of a tree."""
        return sum(self.users[road] for road in tree)

    def best_tree(self) -> Tree:
        """A tree with the largest score (Kruskal 1956)."""
        part, best = list(range(self.towns)), set()
        for a, b in sorted(self.users, key=self.users.__getitem__, reverse=True):
            if part[a] != part[b]:
                best.add((a, b))
                part = [part[a] if own == part[b] else own for own in part]
        return frozenset(best)


def mechanism_for(graph: Graph, epsilon: str, most_roads: int) -> ExponentialMechanism:
    """The exponential mechanism at the rate that epsilon pays for."""
    return ExponentialMechanism(epsilon, score_range=graph.score_range(most_roads))


def choose_tree(graph: Graph, mechanism: ExponentialMechanism) -> Tree:
    """A tree by permute-and-flip over all spanning trees, at the epsilon of the mechanism."""
    best = graph.score(graph.best_tree())

    def events() -> Iterator[tuple[int, Fraction, Tree]]:
        while True:
            tree = walked_tree(graph, mechanism)
            yield 1, mechanism.rate * (best - graph.score(tree)), tree

    return wait_for(events(), log_rate(graph, mechanism.rate), Draws())


def walked_tree(graph: Graph, mechanism: ExponentialMechanism) -> Tree:
    """A tree by the exponential mechanism (Wilson 1996): from each town, a walk to the tree so far, without loops."""
    roads = [[road for road in graph.users if town in road] for town in range(graph.towns)]
    exits: dict[int, Road] = {}  # the road by which the walk last left each town, so loops are forgotten
    inside = {0}
    for start in range(1, graph.towns):
        town = start
        while town not in inside:
            exits[town] = roads[town][mechanism.select([graph.users[road] for road in roads[town]])]
            town = sum(exits[town]) - town  # the other end of the road
        town = start
        while town not in inside:
            inside.add(town)
            town = sum(exits[town]) - town
    return frozenset(exits.values())


def log_rate(graph: Graph, rate: Fraction) -> LogRate:
    """The logarithm of Z. Weights are at most one here, and the shift makes up for that."""
    most = max(graph.users.values())
    exponents = {road: rate * (most - users) for road, users in graph.users.items()}
    shift = rate * ((graph.towns - 1) * most - graph.score(graph.best_tree()))

    def bracket(digits: int) -> tuple[Fraction, Fraction]:
        depth = 4 * digits + math.ceil(2 * max(exponents.values()))  # so that each weight has more digits than that
        floors = {road: scaled_exp(exponent, depth) for road, exponent in exponents.items()}
        scale = 1 << depth * (graph.towns - 1)
        low = Fraction(sum_over_trees(graph.towns, floors), scale)
        high = Fraction(sum_over_trees(graph.towns, {road: floor + 1 for road, floor in floors.items()}), scale)
        return shift + log_bracket(low, digits)[0], shift + log_bracket(high, digits)[1]

    low, high = bracket(30)
    return LogRate(float(low), 2 * float(high - low) + 2.0**-50 * abs(float(low)), bracket)


def sum_over_trees(towns: int, weights: dict[Road, int]) -> int:
    """The sum over all trees of the product of their weights: the determinant of a reduced Laplacian (Bareiss 1968)."""
    matrix = [[0] * towns for _ in range(towns)]
    for (a, b), weight in weights.items():
        for i, j, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
            matrix[i][j] += sign * weight
    last = 1  # town 0 is left out; every pivot is positive, and every division is exact
    for pivot in range(1, towns - 1):
        for i, j in ((i, j) for i in range(pivot + 1, towns) for j in range(pivot + 1, towns)):
            matrix[i][j] = (matrix[i][j] * matrix[pivot][pivot] - matrix[i][pivot] * matrix[pivot][j]) // last
        last = matrix[pivot][pivot]
    return matrix[-1][-1]


def make_graph(seed: int = 3) -> Graph:
    """Towns on a circle with roads to the next three, and made-up people who use three roads each."""
    generator = np.random.default_rng(seed)
    roads = [(a, b) for a, b in combinations(range(len(TOWNS)), 2) if min(b - a, a + len(TOWNS) - b) <= 3]
    liked = generator.dirichlet(np.full(len(roads), 20.0))
    users = Counter(road for _ in range(PEOPLE) for road in generator.choice(len(roads), MOST_ROADS, False, liked))
    return Graph(len(TOWNS), {road: users[number] for number, road in enumerate(roads)})


def main() -> None:
    """Choose a tree, and compare it with the best one, which a real release would not print."""
    graph = make_graph()
    best, tree = graph.best_tree(), choose_tree(graph, mechanism_for(graph, EPSILON, MOST_ROADS))
    trees = sum_over_trees(graph.towns, dict.fromkeys(graph.users, 1))
    print(f"{graph.towns} towns, {len(graph.users)} roads, {trees:,} trees, {PEOPLE:,} people, epsilon {EPSILON}")
    print("\n".join(f"  {TOWNS[a]} - {TOWNS[b]}" for a, b in sorted(tree)))
    print(f"{len(tree & best)} of these {len(tree)} roads are in the best tree.")
    print(f"They have {graph.score(tree):,} users. The roads of the best tree have {graph.score(best):,}.")


if __name__ == "__main__":
    main()
