"""How much the run time of a selection tells about the scores: `python -m benchmarks.timing_residue`.

Score vectors of one length and type, told apart by a stopwatch. For each, the median time of `select`, its ratio to
that of the first vector, and how often an onlooker of one run guesses right which of the two vectors it was (0.5 is a
blind guess). The onlooker knows both distributions of times and takes the best threshold.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.machine import machine
from benchmarks.units import seconds
from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax

_EPSILON = 1


@dataclass(frozen=True)
class Question:
    """Vectors that an onlooker wants to tell apart; the first is what the others are compared with."""

    name: str
    vectors: dict[str, np.ndarray]


def questions(size: int) -> Iterator[Question]:
    """One person's data (neighbours), and whole shapes."""
    counts = np.random.default_rng(1).poisson(100, size)
    best = int(counts.argmax())
    neighbour = counts.copy()
    neighbour[best] += 1
    yield Question("neighbours", {"counts": counts, "one person more": neighbour, "the same again": counts.copy()})
    winner = np.zeros(size, np.int64)
    winner[size // 2] = 1000
    yield Question(
        "shapes",
        {"one winner": winner, "a hundred ties": _tied(size, 100), "half are ties": _tied(size, size // 2)},
    )


def _tied(size: int, ties: int) -> np.ndarray:
    scores = np.zeros(size, np.int64)
    scores[:ties] = 1000
    return scores


def times(choose: Callable[[np.ndarray], object], vectors: list[np.ndarray], rounds: int) -> np.ndarray:
    """Seconds of each run: a row for each vector. Vectors take turns, so that all see the same machine."""
    taken = np.empty((len(vectors), rounds))
    for vector in vectors:
        choose(vector)
    for turn in range(rounds):
        for number, vector in enumerate(vectors):
            start = time.perf_counter()
            choose(vector)
            taken[number, turn] = time.perf_counter() - start
    return taken


def guessed_right(first: np.ndarray, second: np.ndarray) -> float:
    """How often the best threshold between two samples of times is right."""
    edges = np.sort(np.concatenate([first, second]))
    below = [np.searchsorted(np.sort(part), edges, side="right") / part.size for part in (first, second)]
    return float(0.5 + np.abs(below[0] - below[1]).max() / 2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.timing_residue", description=__doc__)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 1_000_000])
    options = parser.parse_args()
    flip = PermuteAndFlip(_EPSILON)
    choosers: dict[str, Callable[[np.ndarray], object]] = {
        "PermuteAndFlip": flip.select,
        "PermuteAndFlip, early_exit": lambda scores: flip.select(scores, early_exit=True),
        "ExponentialMechanism": ExponentialMechanism(_EPSILON).select,
        "ReportNoisyMax": ReportNoisyMax(_EPSILON).select,
    }
    print(f"{machine()}\nepsilon {_EPSILON}, int64 scores, {options.rounds} rounds, vectors take turns\n")
    print("| n | mechanism | scores | median | ratio | guessed right |\n| --: | :-- | :-- | --: | --: | --: |")
    for size in options.sizes:
        for question in questions(size):
            for name, choose in choosers.items():
                taken = times(choose, list(question.vectors.values()), options.rounds)
                for row, shape in zip(taken, question.vectors, strict=True):
                    ratio, right = median(row) / median(taken[0]), guessed_right(taken[0], row)
                    print(f"| {size:,} | {name} | {shape} | {seconds(median(row))} | {ratio:.2f} | {right:.2f} |")


if __name__ == "__main__":
    main()
