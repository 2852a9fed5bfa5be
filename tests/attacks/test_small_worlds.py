"""Every pair of neighbours of a small world, in exact arithmetic: the inequality of privacy has no exception.

On the lattice of multiples of 2 sensitivity a neighbour moves each score by -1, 0 or 1 sensitivity, so that all coins
are powers of exp(-epsilon / 2). That is chosen rational; then every probability is rational, every comparison exact.
"""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb, ctx

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from tests import reference

SIZES, STEPS = range(1, 5), 4
Scores = tuple[int, ...]
Pmf = Callable[[Scores, Fraction], tuple[Fraction, ...]]
World = Callable[[int], Iterator[tuple[Scores, Scores]]]


def two_sided(size: int) -> Iterator[tuple[Scores, Scores]]:
    """All scores on the lattice, in units of the sensitivity, with all neighbours."""
    for scores in itertools.product(range(0, 2 * STEPS + 1, 2), repeat=size):
        for moves in itertools.product((-1, 0, 1), repeat=size):
            yield scores, tuple(map(sum, zip(scores, moves, strict=True)))


def one_sided(size: int) -> Iterator[tuple[Scores, Scores]]:
    """Monotonic scores: all move up or stay; the inequality is checked in both directions."""
    for scores in itertools.product(range(STEPS + 1), repeat=size):
        for moves in itertools.product((0, 1), repeat=size):
            yield scores, tuple(map(sum, zip(scores, moves, strict=True)))


def by_gaps(pmf: Callable[[list[Fraction]], list[Fraction]]) -> Pmf:
    """A pmf of scores from one of the coins' probabilities; computed once for all orders of the same gaps."""

    @cache
    def of_sorted(gaps: Scores, odds: Fraction) -> dict[int, Fraction]:
        return dict(zip(gaps, pmf([odds**gap for gap in gaps]), strict=True))

    def of_scores(scores: Scores, odds: Fraction) -> tuple[Fraction, ...]:
        gaps = [max(scores) - score for score in scores]
        table = of_sorted(tuple(sorted(gaps)), odds)
        return tuple(table[gap] for gap in gaps)

    return of_scores


PMFS = {
    "permute-and-flip": by_gaps(reference.pmf_by_inclusion_exclusion),
    "exponential": by_gaps(reference.softmax_pmf),
}
# exp(-epsilon / 2) for a step of one sensitivity, or exp(-epsilon) for monotonic scores.
ODDS = [Fraction(1, 3), Fraction(9, 10), Fraction(1, 100)]
WORLDS = {"any scores": (two_sided, 2), "monotonic": (one_sided, 1)}


def worst_ratio(pmf: Pmf, world: World, size: int, odds: Fraction) -> Fraction:
    """The largest ratio of probabilities of an outcome, in both directions, over all pairs of neighbours."""
    worst = Fraction(1)
    for scores, neighbour in world(size):
        for p, q in zip(pmf(scores, odds), pmf(neighbour, odds), strict=True):
            if p > worst * q:
                worst = p / q
            if q > worst * p:
                worst = q / p
    return worst


@pytest.mark.parametrize("odds", ODDS, ids=str)
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("size", SIZES)
def test_permute_and_flip_spends_exactly_epsilon(size, name, odds):
    world, steps = WORLDS[name]
    worst = worst_ratio(PMFS["permute-and-flip"], world, size, odds)
    assert worst == (1 if size == 1 else odds**-steps)


@pytest.mark.parametrize("odds", ODDS, ids=str)
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("size", SIZES)
def test_the_exponential_mechanism_spends_less_than_epsilon(size, name, odds):
    world, steps = WORLDS[name]
    worst = worst_ratio(PMFS["exponential"], world, size, odds)
    assert worst < odds**-steps
    assert size == 1 or worst**2 > odds**-steps, "the check sees a difference"


def test_the_check_is_not_idle():
    """Without the factor two of scores that move both ways, epsilon is exceeded: the rate of monotonic scores."""
    odds = Fraction(1, 3)
    for pmf in PMFS.values():
        assert worst_ratio(pmf, two_sided, 2, odds**2) > odds**-2


IN_BALLS = {
    PermuteAndFlip: reference.flip_pmf_in_balls,
    ExponentialMechanism: reference.softmax_in_balls,
    ReportNoisyMax: reference.noisy_max_pmf_in_balls,
}


@pytest.mark.parametrize("monotonic", [False, True], ids=["any scores", "monotonic"])
@pytest.mark.parametrize("kind", IN_BALLS, ids=lambda kind: kind.__name__)
def test_off_the_lattice_in_balls(kind, monotonic):
    """Random rationals with random moves, corners among them: proven bounds of the log-ratio."""
    rng = np.random.default_rng(8)
    epsilon, worst = Fraction(7, 5), 0.0
    for _ in range(150 if kind is not ReportNoisyMax else 25):
        size = int(rng.integers(2, 7))
        scores = [Fraction(int(score), 997) for score in rng.integers(0, 6_000, size)]
        moves = [Fraction(int(move), 1000) for move in rng.choice([-1000, 1000, *rng.integers(-1000, 1000, 3)], size)]
        if monotonic:
            moves = [(1 + move) / 2 for move in moves]
        neighbour = [score + move for score, move in zip(scores, moves, strict=True)]
        rate = epsilon / (1 if monotonic else 2)
        here, there = (IN_BALLS[kind]([rate * (max(v) - score) for score in v]) for v in (scores, neighbour))
        with ctx.workprec(150):
            for p, q in zip(here, there, strict=True):
                ratio = abs(p.log() - q.log())
                assert ratio < reference.ball(epsilon) + arb(2) ** -100
                worst = max(worst, float(ratio))
    assert worst > 1, "the check sees a difference"
