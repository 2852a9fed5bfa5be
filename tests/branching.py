"""Every outcome of a selection with its exact probability: draws that branch instead of being random.

A coin with exponent g is replaced by one with the rational probability (1/3)**g. Since 1/3 < 1/e, whatever is cold for
exp(-g) is cold for (1/3)**g as well, so the kernels' shortcuts stay valid and every probability is rational.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect.sampling.arrival import Arrival
from dpselect.sampling.draws import Draws
from dpselect.sampling.lines import LeastScores


class Refused(Exception):
    """A rejection sampler starts over; what it then does is what it did before."""


def heads_probability(exponent: Any) -> Fraction:
    exponent = Fraction(exponent)
    assert exponent.denominator == 1
    return Fraction(1, 3) ** int(exponent)


class BranchingDraws(Draws):
    """Replays a list of choices, then takes the first option of every further choice and notes the others."""

    def __init__(self, path: Sequence[int]) -> None:
        super().__init__()
        self.path = list(path)
        self.taken: list[int] = []
        self.open: list[list[int]] = []
        self.probability = Fraction(1)

    def choose(self, probabilities: Sequence[Fraction]) -> int:
        assert sum(probabilities) == 1
        assert all(p >= 0 for p in probabilities)
        depth = len(self.taken)
        possible = [option for option, p in enumerate(probabilities) if p > 0]
        if depth < len(self.path):
            option = self.path[depth]
        else:
            option = possible[0]
            self.open.extend([*self.taken, other] for other in possible[1:])
        self.taken.append(option)
        self.probability *= probabilities[option]
        return option

    def coin(self, probability: Fraction) -> bool:
        return self.choose([1 - probability, probability]) == 1

    def first_octets(self, gaps, table):
        heads = np.array([self.coin(heads_probability(gap.item())) for gap in gaps], dtype=bool)
        return heads, np.empty(0, np.intp), np.empty(0, np.uint8)

    def octets_by_lines(self, levels, lines):
        """Whole gaps and rounded ones are levels; floats are scores, and the first line is 8 ln 2 below the best one.

        The best is a whole number and the rate one in the tests.
        """
        if isinstance(lines, LeastScores):
            levels = round(lines._heads[0] + 8 * math.log(2)) - levels
        return self.first_octets(levels, None)

    def finish(self, exponents, prefixes, depths):
        """The known bits are zeros, or ones: then U is in the last cell, whose start is below the probability."""
        size = exponents.approximate.size
        known, first = np.broadcast_to(depths, size).tolist(), np.broadcast_to(prefixes, size).tolist()
        assert all(prefix in (0, 2**depth - 1) for prefix, depth in zip(first, known, strict=True))
        return np.array(
            [self.coin(heads_probability(exponents.exact(i)) * 2 ** known[i] - first[i]) for i in range(size)],
            dtype=bool,
        )

    def survivors(self, count, zeros):
        return np.array([i for i in range(count) if self.coin(Fraction(1, 2**zeros))], dtype=np.int64)

    def arrival(self, exponent, size):
        return Arrival(exponent, size, 0, 0)

    def earlier(self, first, second):
        """Thin the heads of the lower run against the higher one; the first of those that stay is in either run."""
        exponent, heads = min(first.exponent, second.exponent), []
        for run in (first, second):
            p = heads_probability(run.exponent - exponent)
            heads.append(
                self.choose([math.comb(run.size, k) * p**k * (1 - p) ** (run.size - k) for k in range(run.size + 1)])
            )
        stay = Arrival(exponent, sum(heads), 0, 0)
        return (0 if self.index(stay.size) < heads[0] else 1), stay

    def flip(self, exponent, zeros=0):
        return self.coin(heads_probability(exponent) * 2**zeros)

    def flip_between(self, near, further):
        assert further > 0
        near, far = heads_probability(near), heads_probability(near + further)
        return self.coin((near - far) / (1 - far))

    def index(self, bound):
        return self.choose([Fraction(1, bound)] * bound)

    def index_at_once(self, bound):
        return self.index(bound)

    def indices_at_once(self, bounds):
        return self.indices(bounds)

    def indices(self, bounds):
        return np.array([self.index(int(bound)) for bound in bounds], dtype=np.int64)

    def indices_below(self, bound, tries):
        return np.array([self.index(bound) for _ in range(tries)], dtype=np.int64)


def distribution(run: Callable[[Draws], Any]) -> dict[Any, Fraction]:
    """The exact distribution of what `run` returns; refused runs are left out and the rest is scaled to one."""
    totals: dict[Any, Fraction] = defaultdict(Fraction)
    paths: list[list[int]] = [[]]
    while paths:
        draws = BranchingDraws(paths.pop())
        try:
            outcome = run(draws)
        except Refused:
            outcome = Refused
        totals[outcome] += draws.probability
        paths.extend(draws.open)
    assert sum(totals.values()) == 1
    refused = totals.pop(Refused, Fraction(0))
    return {outcome: probability / (1 - refused) for outcome, probability in totals.items()}
