"""Compare generalized scores with one common sensitivity on six made-up tasks: where they win and where they lose.

    python examples/unequal_sensitivities.py

All numbers are computed, not measured: the expected errors of permute-and-flip with the largest sensitivity for all
scores, and with generalized scores, in units of the scores.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpselect.analysis import unequal_errors

Numbers = npt.NDArray[np.int64]
EPSILONS = (1, 5)


class Task(NamedTuple):
    """Scores, and the sensitivity of each."""

    name: str
    scores: Numbers
    sensitivities: Numbers


class Row(NamedTuple):
    """One row of the table."""

    name: str
    largest: int
    epsilon: int
    common: float
    generalized: float


def tasks() -> Iterator[Task]:
    """Fifty candidates each, with scores between 0 and 1000."""
    n = 50
    scores = np.random.default_rng(1).permutation(np.linspace(0, 1000, n).astype(int))
    best_first = np.argsort(-scores)
    equal = np.full(n, 10)
    yield Task("all sensitivities are equal", scores, equal)
    wild = np.ones(n, int)
    wild[best_first[n // 2]] = 1000
    yield Task("a mediocre candidate is very sensitive", scores, wild)
    spread = np.random.default_rng(2).permutation(np.geomspace(1, 1000, n).astype(int))
    yield Task("sensitivities spread from 1 to 1000", scores, spread)
    wild_winner = np.ones(n, int)
    wild_winner[best_first[0]] = 100
    yield Task("the best candidate is very sensitive, and barely ahead", scores, wild_winner)
    far_ahead = scores // 2
    far_ahead[best_first[0]] = 1000
    yield Task("the best candidate is very sensitive, and far ahead", far_ahead, wild_winner)
    slightly = np.where(np.arange(n) % 2, 10, 15)
    yield Task("sensitivities of 10 and 15", scores, slightly)


def rows() -> list[Row]:
    """The rows of the table."""
    found = []
    for epsilon in EPSILONS:
        for name, scores, sensitivities in tasks():
            unequal = unequal_errors(scores, sensitivities, epsilon)
            found.append(Row(name, int(sensitivities.max()), epsilon, unequal.common, unequal.generalized))
    return found


if __name__ == "__main__":
    print("| task | largest sensitivity | epsilon | error, common | error, generalized |")
    print("|---|---|---|---|---|")
    for row in rows():
        print(f"| {row.name} | {row.largest:,} | {row.epsilon} | {row.common:,.1f} | {row.generalized:,.1f} |")
