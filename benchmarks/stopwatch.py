"""Medians of competitors that take turns, so that a noisy moment of the machine hits all of them alike.

A turn is one call. What ran just before a call matters, though: it leaves its own data in the caches and the memory
bus at its own pace. Longer turns show each competitor at the pace that it reaches when it runs on its own.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median

Call = Callable[[], object]
Stopwatch = Callable[[], float]


@dataclass(frozen=True)
class Effort:
    """How long to measure one row: rounds until `seconds` have passed, and at least `rounds` of them.

    Where so many rounds take more than `longest` seconds, they end then, after at least `fewest`. A turn within a round
    is repeated until `turn` seconds have passed.
    """

    seconds: float
    rounds: int
    longest: float
    fewest: int
    turn: float = 0.0

    def suffices(self, rounds: int, seconds: float) -> bool:
        """Whether a row is measured after so many rounds in so many seconds."""
        return (rounds >= self.rounds and seconds >= self.seconds) or (
            rounds >= self.fewest and seconds >= self.longest
        )

    @property
    def half(self) -> "Effort":
        """Half as long: enough for what nothing depends on."""
        return replace(self, seconds=self.seconds / 2)


FULL = Effort(seconds=2.0, rounds=15, longest=6.0, fewest=5)
QUICK = Effort(seconds=0.1, rounds=1, longest=6.0, fewest=1)


def timed(call: Call) -> Stopwatch:
    """A stopwatch that runs `call` once and returns its seconds."""

    def seconds() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return seconds


def timed_on_the_processor(call: Call) -> Stopwatch:
    """A stopwatch of the processor's seconds in this process, which other programs do not lengthen by much."""

    def seconds() -> float:
        start = time.process_time()
        call()
        return time.process_time() - start

    return seconds


def interleaved_medians(stopwatches: list[Stopwatch], effort: Effort) -> list[float]:
    """The median seconds of each stopwatch, read in turns (A B A B ...) after one reading that does not count."""
    readings: list[list[float]] = [[] for _ in stopwatches]
    with _garbage_collection_paused():
        for stopwatch in stopwatches:
            stopwatch()
        start, rounds = time.perf_counter(), 0
        while not effort.suffices(rounds, time.perf_counter() - start):
            rounds += 1
            for reading, stopwatch in zip(readings, stopwatches, strict=True):
                reading.extend(_turn(stopwatch, effort.turn))
    return [median(reading) for reading in readings]


def _turn(stopwatch: Stopwatch, seconds: float) -> list[float]:
    start, readings = time.perf_counter(), [stopwatch()]
    while time.perf_counter() - start < seconds:
        readings.append(stopwatch())
    return readings


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
