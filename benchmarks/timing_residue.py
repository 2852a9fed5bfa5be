"""What the run time of a selection reveals about the scores: `python -m benchmarks.timing_residue`.

Pairs of score vectors of one length and type, distinguished by a stopwatch. Both vectors are copied into one buffer in
random order, so that neither their place in memory nor the parity of a round says which it is. An onlooker of one run
knows both distributions of times, fits the best threshold on half of the rounds, and is scored on the other half: 0.5
is a blind guess. "the same" is the first vector against itself, which shows what chance and a busy machine make of it.
With --processor-time, the stopwatch stands still while other programs run, so it sees more on a busy machine.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain, product
from statistics import median

import numpy as np

from benchmarks.machine import machine
from benchmarks.units import seconds, times
from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, select_top_k

_WARM_UP = 5
_BEST = 10


@dataclass(frozen=True)
class Pair:
    """Two vectors that an onlooker wants to tell apart, and the epsilon of the selection; scores are monotonic."""

    name: str
    epsilon: str
    first: np.ndarray
    second: np.ndarray


def pairs(size: int) -> Iterator[Pair]:
    """Neighbours, the worst of them for the fast kernel, and vectors of different shape."""
    for epsilon, zeros in product(("0.01", "1"), (7, 8)):
        # All rivals stand where a coin is heads with probability 2**-zeros: with one person more for the best, none is
        # hot. The worst line is 7 for vectors of up to 2**15 candidates, and 8 for longer ones.
        line = PermuteAndFlip(epsilon, monotonic=True)._rate.cold_gap(zeros)[0]
        yield Pair(f"rivals at 2^-{zeros}", epsilon, *_neighbours(np.zeros(size, np.int64), size // 3, line))
    counts = np.random.default_rng(1).poisson(100, size)
    yield Pair("Poisson counts", "1", *_neighbours(counts, int(counts.argmax()), int(counts.max())))
    winner, ties = np.zeros(size, np.int64), np.full(size, 1000)
    winner[size // 2] = 1000
    yield Pair("one winner, all tied", "1", winner, ties)
    some = winner.copy()
    some[: size // 2] = 1000
    yield Pair("one winner, half tied", "1", winner, some)


def pairs_of_ten(size: int) -> Iterator[Pair]:
    """The same for the ten best: neighbours, the worst of them for one shot, and vectors of different shape."""
    # Nine are far ahead. If the tenth has one person more, no rival is hot.
    scores = np.zeros(size, np.int64)
    scores[:9] = 10**6
    line = PermuteAndFlip(Fraction(1, _BEST), monotonic=True)._rate.cold_gap(8)[0]
    yield Pair("rivals of the tenth at the line", "1", *_neighbours(scores, size // 3, line))
    counts = np.random.default_rng(1).poisson(100, size)
    yield Pair("Poisson counts", "1", *_neighbours(counts, int(counts.argmax()), int(counts.max())))
    ahead = scores.copy()
    ahead[9] = 10**6
    yield Pair("ten ahead, all tied", "1", ahead, np.full(size, 1000))


def _neighbours(scores: np.ndarray, best: int, score: int) -> tuple[np.ndarray, np.ndarray]:
    first, second = scores.copy(), scores.copy()
    first[best], second[best] = score, score + 1
    return first, second


def run_times(
    choose: Callable[[np.ndarray], object],
    vectors: tuple[np.ndarray, np.ndarray],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> np.ndarray:
    """Seconds of each run: a row for each vector."""
    taken, buffer = np.empty((2, rounds)), np.empty_like(vectors[0])
    coin = np.random.default_rng()
    for turn in range(-_WARM_UP, rounds):
        for number in (0, 1) if coin.random() < 0.5 else (1, 0):
            buffer[:] = vectors[number]
            start = clock()
            choose(buffer)
            taken[number, turn] = clock() - start
    return taken


def guessed_right(taken: np.ndarray) -> float:
    """How often a threshold that was fitted on half of the rounds is right on the other half."""
    order = np.random.default_rng().permutation(taken.shape[1])
    known, fresh = np.split(taken[:, order[: order.size // 2 * 2]], 2, axis=1)
    edges = np.quantile(known, np.linspace(0.01, 0.99, 99))
    rates = [_right(known, edge) for edge in edges]
    best = int(np.argmax(np.abs(np.array(rates) - 0.5)))
    rate = _right(fresh, edges[best])
    return rate if rates[best] >= 0.5 else 1 - rate


def _right(taken: np.ndarray, edge: float) -> float:
    """The share of runs that are right if a short one is called the first vector."""
    return float(((taken[0] <= edge).mean() + (taken[1] > edge).mean()) / 2)


def _summarized(mechanism: PermuteAndFlip, scores: np.ndarray) -> int:
    """A selection from four blocks, two of them in another summary."""
    summaries = [mechanism.summary(steady=True) for _ in range(2)]
    for number, block in enumerate(np.array_split(scores, 4)):
        summaries[number // 2].update(block)
    return int(summaries[0].merge(summaries[1]).result())


def choosers(epsilon: str) -> dict[str, Callable[[np.ndarray], object]]:
    """What is timed."""
    flip = PermuteAndFlip(epsilon, monotonic=True)
    return {
        "permute-and-flip": flip.select,
        "permute-and-flip, steady": lambda scores: flip.select(scores, steady=True),
        "permute-and-flip, steady summary": lambda scores: _summarized(flip, scores),
        "exponential": ExponentialMechanism(epsilon, monotonic=True).select,
        "noisy max": ReportNoisyMax(epsilon, monotonic=True).select,
    }


def choosers_of_ten(epsilon: str) -> dict[str, Callable[[np.ndarray], object]]:
    """The methods that choose the ten best, of people who count for one candidate."""
    options = {"epsilon": epsilon, "max_values": 1}
    return {
        f"top {_BEST}, {method}": partial(select_top_k, k=_BEST, method=method, **options)
        for method in ("set", "margin", "one-shot", "noisy-counts", "peel")
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.timing_residue", description=__doc__)
    parser.add_argument("--rounds", type=int, default=600)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--only", default="", help="only mechanisms whose name has this text")
    parser.add_argument("--processor-time", action="store_true", help="time of this process, not of the clock")
    options = parser.parse_args()
    clock = time.process_time if options.processor_time else time.perf_counter
    measured = partial(run_times, rounds=options.rounds, clock=clock)
    print(f"{machine()}\nint64 scores, monotonic, {options.rounds} rounds in random order, one buffer\n")
    print("| n | scores | epsilon | mechanism | median | x argmax | ratio | guessed right | the same |")
    print("| --: | :-- | --: | :-- | --: | --: | --: | --: | --: |", flush=True)
    for size in options.sizes:
        questions = chain(product(pairs(size), [choosers]), product(pairs_of_ten(size), [choosers_of_ten]))
        for pair, methods in questions:
            argmax = median(measured(np.argmax, (pair.first, pair.first))[0])
            for name, choose in methods(pair.epsilon).items():
                if options.only not in name:
                    continue
                taken = measured(choose, (pair.first, pair.second))
                same = measured(choose, (pair.first, pair.first))
                first, second = median(taken[0]), median(taken[1])
                figures = f"{seconds(first)} | {times(first / argmax)} | {first / second:.2f}"
                right = f"{guessed_right(taken):.2f} | {guessed_right(same):.2f}"
                print(f"| {size:,} | {pair.name} | {pair.epsilon} | {name} | {figures} | {right} |", flush=True)


if __name__ == "__main__":
    main()
