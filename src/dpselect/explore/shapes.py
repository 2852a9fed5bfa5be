"""Built-in shapes of scores, made up and public: what counts and distances often look like."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpselect._score_lines import Candidates
from dpselect.errors import InvalidValue
from dpselect.explore.score_set import ScoreSet

Integers = npt.NDArray[np.int64]

MOST = 1024


@dataclass(frozen=True)
class Shape:
    """A kind of scores: its name, what it looks like, and how n of them are made.

    Monotonic as counts are; not a median, where one person more brings some candidates nearer and others farther.
    """

    name: str
    title: str
    unit: str
    make: Callable[[int], Integers]
    monotonic: bool = True


def _close_race(n: int) -> Integers:
    """Counts of people, in any order: the leaders are some ten people apart, and each next one 7 % below."""
    return np.random.default_rng(5).permutation(np.round(150 * 0.93 ** np.arange(n))).astype(np.int64)


def _long_tail(n: int) -> Integers:
    """Zipf's law with an offset (Mandelbrot): the candidate of rank r has 300 / (r + 2) people."""
    return (300 / (np.arange(1, n + 1) + 2)).astype(np.int64)


def _clear_winner(n: int) -> Integers:
    return np.concatenate([[300], np.random.default_rng(8).poisson(120, n - 1)]).astype(np.int64)


def _median(n: int) -> Integers:
    """The median of 2,001 made-up ages: minus the number of people to add or remove, for each of n ages."""
    ages = np.sort(np.random.default_rng(9).normal(n / 2, n / 6, 2001))
    below = np.searchsorted(ages, np.arange(n) + 0.5)
    return -np.abs(below - 1000).astype(np.int64)


def _worst_case(n: int) -> Integers:
    """McKenna & Sheldon (2020), Proposition 4: one best candidate, all others equally far below it."""
    return np.concatenate([[0], np.full(n - 1, -20)]).astype(np.int64)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("close-race", "A close race", "people", _close_race),
        Shape("long-tail", "A long tail", "people", _long_tail),
        Shape("clear-winner", "A clear winner", "people", _clear_winner),
        Shape("median", "A median", "people", _median, monotonic=False),
        Shape("worst-case", "One best, all others tied", "people", _worst_case),
    )
}


def made(name: str, n: int) -> ScoreSet:
    """The shape of this name with n candidates.

    >>> made("worst-case", 3).exact
    [0, -20, -20]
    """
    if name not in SHAPES:
        raise InvalidValue(f"there is no such shape: give one of {', '.join(SHAPES)}")
    if not 2 <= n <= MOST:
        raise InvalidValue(f"candidates must be a whole number from 2 to {MOST:,}")
    shape = SHAPES[name]
    return ScoreSet(shape.title, Candidates(shape.make(n).tolist(), None), shape.unit, shape=name)
