"""Scores that break implementations in floats. Ours withstands them, by exact arithmetic and by audit.

Each attack is a pair of neighbours. The naive mechanism is caught on it by the same audit that does not accuse ours.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect._scores import as_vector
from dpselect.audit import audit
from dpselect.selection.gaps import gaps_of
from tests import broken, reference
from tests.statistical.detection import least_bound
from tests.statistical.goodness import assert_fits

pytestmark = pytest.mark.slow

DOUBT = 1e-10  # of each audit here; there are some hundred
KINDS = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
IN_BALLS = {
    PermuteAndFlip: reference.flip_pmf_in_balls,
    ExponentialMechanism: reference.softmax_in_balls,
    ReportNoisyMax: reference.noisy_max_pmf_in_balls,
}


@dataclass(frozen=True)
class Attack:
    naive: Any
    scores: Any
    neighbour: Any
    sensitivity: Any = 1
    runs: int = 2_000
    # What the naive mechanism does: the probability of some outcome on one side, and at most what it is on the other.
    caught_by: tuple[float, float] = (0.25, 0.0)
    harmless: Any = field(default=([0.0, 3.0, 1.0], [1.0, 2.0, 0.0]))  # where the naive mechanism is right


FAR, MIDDLE, HALF, LARGEST = 2**60 + 128, 2**53, 2**62, 2**63 - 1
TINY = 5e-324
ATTACKS = {
    "scores near 2**60": Attack(broken.RoundedScores(1), np.array([FAR, FAR + 1]), np.array([FAR + 1, FAR])),
    "differences beyond int64": Attack(
        broken.WrappingWeights(1).select, np.array([HALF + 1, -HALF]), np.array([HALF, -HALF + 1])
    ),
    "differences below zero in uint64": Attack(
        broken.WrappingWeights(1).select, np.array([7, 7], np.uint64), np.array([8, 6], np.uint64)
    ),
    "the largest int64": Attack(broken.WrappingWeights(1).select, np.array([LARGEST, -2]), np.array([LARGEST - 1, -2])),
    "the largest uint64": Attack(
        broken.WrappingWeights(1).select,
        np.array([2**64 - 2, 2**64 - 2], np.uint64),
        np.array([2**64 - 1, 2**64 - 3], np.uint64),
    ),
    "noise that rounds away at 2**53": Attack(
        broken.FloatNoise(1),
        np.array([MIDDLE + 2, MIDDLE + 2]),
        np.array([MIDDLE + 3, MIDDLE + 1]),
        runs=80_000,
        caught_by=(0.38, 0.1),
    ),
    "noise that rounds away at 2**60": Attack(broken.FloatNoise(1), np.array([FAR, FAR + 1]), np.array([FAR + 1, FAR])),
    "sensitivity 1e-310": Attack(
        broken.FloatRate(1, 1e-310), np.zeros(2), np.array([1e-310, -1e-310]), sensitivity=1e-310, harmless=None
    ),
    "subnormal sensitivity": Attack(
        broken.FloatRate(1, TINY), np.array([0.0, 0.0]), np.array([TINY, -TINY]), sensitivity=TINY, harmless=None
    ),
    "exponentials that underflow": Attack(
        broken.UnderflowingExp(1), np.array([-1490.0, -4000.0]), np.array([-1491.0, -4001.0])
    ),
    "infinities of finite scores": Attack(
        broken.FloatRate(1, 1e308),
        np.array([0.75e308, -0.75e308]),
        np.array([1.7e308, -1.7e308]),
        sensitivity=1e308,
        caught_by=(0.2, 0.0),
        harmless=None,
    ),
    "ties": Attack(broken.TiesToTheFirst(1), np.zeros(2), np.array([-1.0, 1.0]), caught_by=(0.6, 0.0), harmless=None),
    "negative zero": Attack(
        broken.MaximumByBits(1), np.array([40.0, -0.0, 0.0]), np.array([40.0, 0.0, 0.0]), caught_by=(0.3, 1e-8)
    ),
    "subnormal scores": Attack(
        broken.Percentages(1).select, np.array([TINY, 0.0]), np.array([0.0, TINY]), caught_by=(0.9, 1e-8), harmless=None
    ),
}


def exact(vector):
    return [Fraction(*score.as_integer_ratio()) for score in vector.tolist()]


def exponents(mechanism, scores):
    """C (q* - q_r), from the definition."""
    values = exact(scores)
    step = mechanism.sensitivity if mechanism.monotonic else 2 * mechanism.sensitivity
    return [mechanism.epsilon / step * (max(values) - value) for value in values]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", ATTACKS)
def test_the_kernels_get_exact_exponents(name, kind):
    """What is drawn is decided by these exponents and by nothing else: the coins and the noise are exact."""
    attack = ATTACKS[name]
    mechanism = kind(1, attack.sensitivity)
    for scores in (attack.scores, attack.neighbour):
        gaps = gaps_of(as_vector(scores), mechanism._rate)
        assert [gaps.exact(i) for i in range(len(scores))] == exponents(mechanism, scores)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", ATTACKS)
def test_the_exact_log_ratio_stays_within_epsilon(name, kind):
    attack = ATTACKS[name]
    mechanism = kind(1, attack.sensitivity)
    here, there = (exponents(mechanism, scores) for scores in (attack.scores, attack.neighbour))
    if kind is ReportNoisyMax and max(*here, *there) > 10**4:
        pytest.skip("a gap of 2**63 needs 2**63 bits in the closed form of report noisy max")
    worst = worst_log_ratio(IN_BALLS[kind](here), IN_BALLS[kind](there))
    with ctx.workprec(300):
        assert worst < 1 + arb(2) ** -100


def worst_log_ratio(here, there):
    with ctx.workprec(300):
        ratios = [abs(p.log() - q.log()) for p, q in zip(here, there, strict=True)]
        return max(ratios, key=lambda ratio: float(ratio.mid()))


@pytest.mark.parametrize("name", ATTACKS)
def test_ours_is_not_accused_where_a_naive_one_is_caught(name):
    attack = ATTACKS[name]
    pairs = [(attack.scores, attack.neighbour)]
    claim = {"epsilon": 1, "sensitivity": attack.sensitivity, "false_alarm": DOUBT}
    flip = PermuteAndFlip(1, attack.sensitivity)
    ours = [
        *(kind(1, attack.sensitivity) for kind in KINDS),
        *(kind(1, attack.sensitivity).select for kind in KINDS),
        lambda scores: flip.select(scores, early_exit=True),
        lambda scores: flip.select(scores, steady=True),
        lambda scores: flip.select_runs(scores, [1] * len(scores)),
        lambda scores: flip.select_runs(scores, [1] * len(scores), steady=True),
        lambda scores: ExponentialMechanism(1, attack.sensitivity).select_runs(scores, [1] * len(scores)),
    ]
    for mechanism in ours:
        found = audit(mechanism, **claim, pairs=pairs, runs=1_000)
        assert not found.violates
        assert not found.worst.failures
    assert audit(attack.naive, **claim, pairs=pairs, runs=attack.runs).violates
    assert least_bound(*attack.caught_by, attack.runs // 2, DOUBT) > 1, "too few runs for a power check"


@pytest.mark.parametrize("name", [name for name in ATTACKS if ATTACKS[name].harmless is not None])
def test_the_naive_one_is_right_on_harmless_scores(name):
    """So it is the attack that it fails."""
    attack = ATTACKS[name]
    pairs = [tuple(map(np.array, attack.harmless))]
    assert not audit(attack.naive, 1, pairs=pairs, runs=attack.runs, false_alarm=DOUBT).violates


LOSERS = 2**22


@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism], ids=lambda kind: kind.__name__)
def test_four_million_losers_of_tiny_weight(kind):
    """Weights of exp(-17) each, a sixth together: float32 sums lose them all, and find them on the neighbour."""
    gaps, runs = (34, 32), 260
    naive, truth = [], []
    for gap in gaps:
        scores = np.zeros(LOSERS + 1, np.int16)
        scores[0] = gap
        naive.append(broken.SingleSums(1).pmf_of_first(scores))
        exponent = Fraction(gap, 2)
        if kind is PermuteAndFlip:
            winner, loser = reference.flip_pmf_by_level([1, LOSERS], [0, exponent])
        else:
            total = 1 + LOSERS * (-reference.ball(exponent)).exp()
            winner, loser = 1 / total, (-reference.ball(exponent)).exp() / total
        truth.append((winner, loser))
        won = sum(kind(1).select(scores) == 0 for _ in range(runs))
        odds = [float(winner), 1 - float(winner)]
        assert_fits([won, runs - won], odds)
        assert won < runs, "the naive one never draws a loser"
        assert odds[0] ** runs < 1e-9, "too few draws for a power check"
    with ctx.workprec(100):
        assert all(abs(p.log() - q.log()) < 1 + arb(2) ** -60 for p, q in zip(*truth, strict=True))
    assert naive[0] == 1
    assert naive[1] < 0.9, "an outcome that is impossible on one side only"
