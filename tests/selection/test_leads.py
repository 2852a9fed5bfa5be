"""The winner with its gap: the exact joint law for every path, floors from bits, and what neighbours can tell."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy.integrate import quad

from dpselect import PermuteAndFlip
from dpselect.errors import InvalidValue, ScoresChanged
from dpselect.selection import leads
from dpselect.selection.gaps import BLOCK, MIDDLE, SHORT, Gaps, Rate
from dpselect.selection.races import DEPTH, Arrival
from tests.seam import ScriptedBits
from tests.selection.samplers import assert_drawn, assert_law, log_head, random_bits, slow

FEW = 8_000


def tail(scores, winner, rate, least):
    """The probability that this candidate wins with rate * gap >= least, by the definition with exponential noise.

    With u = exp(-E) of the winner, another one stays below it by that much with probability 1 - u exp(least + s), where
    s is the rate times how far its score is above the winner's.
    """
    others = Counter(float(rate * (Fraction(own) - Fraction(scores[winner]))) for own in scores)
    others[0.0] -= 1
    ahead = {lead: count for lead, count in others.items() if count}
    nearest = max(ahead)
    end = math.exp(min(0.0, -(least + nearest)))

    def below(u):
        return math.exp(sum(n * math.log1p(-min(u * math.exp(least + s), 1 - 1e-17)) for s, n in ahead.items()))

    crowd = end / max(1, others[nearest])  # where the integrand falls
    points = [point for point in (crowd, 10 * crowd) if point < end]
    return quad(below, 0, end, points=points, limit=200, epsabs=1e-12)[0]


def law(scores, rate, most, winners=None):
    """The joint law of the winner and floor(rate * gap), of which `most` stands for everything from there on."""
    found = {}
    for winner in range(len(scores)) if winners is None else winners:
        tails = [tail(scores, winner, rate, least) for least in range(most + 1)]
        found |= {(winner, k): tails[k] - tails[k + 1] for k in range(most)} | {(winner, most): tails[most]}
    return found


SMALL = {
    "a tie and one below": ([4, 4, 0], 5),
    "one ahead": ([0, 1, 6], 8),
    "one far ahead": ([0, 40], 26),
    "floats": ([0.0, 0.3, 2.25, 1.0], 5),
}


@pytest.mark.parametrize("name", SMALL)
def test_the_joint_law_of_short_vectors(name):
    """Not that of a rate that is off by as little as can be told, of two floors that are added, or of the scores."""
    scores, most = SMALL[name]
    mechanism = PermuteAndFlip(1)

    def draw():
        winner, steps = mechanism.select_with_gap(scores)
        return winner, min(steps, most)

    assert_law(draw, FEW, lambda factor: law(scores, factor * mechanism.rate, most))


def test_the_steps_of_equal_scores_are_coins():
    def draw():
        winner, steps = PermuteAndFlip(1).select_with_gap([7, 7, 7])
        return winner, min(steps, 4)

    assert_drawn(draw, FEW, law([7, 7, 7], Fraction(1, 2), 4), law([7, 7, 8], Fraction(1, 2), 4))


@pytest.mark.parametrize("lead", [400, 2000])
def test_a_rate_that_is_off_by_a_hundredth_is_seen(lead):
    scores, most = [0, lead], lead
    rate = PermuteAndFlip(1).rate
    lead = int(rate * scores[1])

    def law_at(factor):
        tails = [tail(scores, 1, factor * rate, least) for least in range(lead - 12, lead + 13)]
        return {k: tails[k] - tails[k + 1] for k in range(24)} | {24: tails[24], -1: 1 - tails[0]}

    def draw():
        winner, steps = PermuteAndFlip(1).select_with_gap(scores)
        assert winner == 1
        assert steps < most
        return -1 if steps < lead - 12 else min(steps - lead + 12, 24)

    assert_drawn(draw, 4000, law_at(1), law_at(Fraction(101, 100)), law_at(Fraction(99, 100)))


def test_two_floors_that_are_added_are_rejected():
    """Nor are the steps those between the scores, without noise."""
    scores, most, rate, many = [0, 1, 5], 7, PermuteAndFlip(1).rate, 10**6
    right = law(scores, rate, most)
    noisy = np.random.default_rng().standard_exponential((many, 3)) + [float(rate * score) for score in scores]
    winners, (second, first) = noisy.argmax(axis=1), np.sort(noisy, axis=1).T[1:]
    between = np.maximum(float(rate * max(scores)), second)
    added = np.minimum(np.floor(first - between) + np.floor(between - second), most)
    found = Counter(zip(winners.tolist(), added.astype(int).tolist(), strict=True))
    wrong = {outcome: (found[outcome] or 0.1) / many for outcome in right}
    of_scores = {outcome: 0.9 if outcome == (2, 2) else 0.1 / (len(right) - 1) for outcome in right}

    def draw():
        winner, steps = PermuteAndFlip(1).select_with_gap(scores)
        return winner, min(steps, most)

    assert_drawn(draw, FEW, right, wrong, of_scores)


def ahead(size, lead, place, dtype=np.int64, others=0):
    scores = np.full(size, others, dtype)
    scores[place] = others + lead
    return scores


# Each way through the passes: one listed, at once, in blocks, in crowds, exact rationals, with the winner at the ends
# of blocks and of the vector.
LONG = {
    "blocks, at the beginning": ahead(MIDDLE + 1, 24, 0),
    "blocks, at the end": ahead(2 * MIDDLE + 1, 24, 2 * MIDDLE),
    "blocks, at the end of a block": ahead(MIDDLE + BLOCK, 24, 3 * BLOCK - 1, np.float32),
    "at once": ahead(SHORT + 1, 20, 17, np.float64),
    "short": ahead(300, 14, 299, np.int16),
    "without a sign": ahead(300, 14, 5, np.uint64, 2**64 - 20),
    "near the ends of the type": ahead(2 * SHORT, 20, 7, np.int64, -(2**63)),
}


def outcome(found, place, most):
    # Whether the one ahead wins, and how many steps.
    winner, steps = found
    return winner == place, min(steps, most)


def law_of_one_ahead(scores, rate, most):
    place, values = int(np.argmax(scores)), scores.tolist()
    tails = [tail(values, place, rate, least) for least in range(most + 1)]
    wins = {(True, k): tails[k] - tails[k + 1] for k in range(most)} | {(True, most): tails[most]}
    # All others are alike. Given that one of them wins, the gap has no memory (theorem 21).
    lost = 1 - tails[0]
    return (
        wins
        | {(False, k): lost * math.exp(-k) * (1 - math.exp(-1)) for k in range(most)}
        | {(False, most): lost * math.exp(-most)}
    )


@pytest.mark.parametrize("name", [*LONG])
def test_the_joint_law_of_long_vectors(name, each_kernel):
    del each_kernel
    scores, most, mechanism = LONG[name], 8, PermuteAndFlip(1)
    place = int(np.argmax(scores))

    def draw():
        return outcome(mechanism.select_with_gap(scores), place, most)

    assert_law(draw, 1000, lambda factor: law_of_one_ahead(scores, factor * mechanism.rate, most))


@pytest.mark.parametrize(
    "scores",
    [
        [0, 3],
        [Fraction(1, 3), Fraction(10, 3)],
        np.array([0, 3], np.uint8),
        np.array([0.0, 3.0], np.float32),
        [0.0, 5e-324, 3.0],
        [-(10**400), 0, 3],
        [0.0, 3.0, -1.7e308],
    ],
    ids=repr,
)
def test_every_type_of_scores(scores):
    mechanism, most = PermuteAndFlip(2), 6
    pair = [
        Fraction(float(score)) if abs(float(score) if isinstance(score, np.floating) else score) < 2**1000 else None
        for score in scores
    ]
    top = pair.index(max(own for own in pair if own is not None))
    exact = [own if own is not None else Fraction(-(10**6)) for own in pair]
    right = law(exact, mechanism.rate, most, [top])
    right[None] = 1 - sum(right.values())

    def draw():
        winner, steps = mechanism.select_with_gap(scores)
        return (winner, min(steps, most)) if winner == top else None

    assert_drawn(draw, 6000, right)


def test_the_gap_of_a_huge_lead_is_whole_and_near_it():
    for lead in (10**6, 10**18, 10**40, 10**300):
        winner, steps = PermuteAndFlip(2).select_with_gap([0, lead])
        assert winner == 1
        assert abs(steps - lead) < 100
        assert isinstance(steps, int)


@pytest.mark.parametrize(
    ("size", "exponent"), [(1, 3), (1, Fraction(1, 7)), (5, 4), (1000, 12), (10**9, Fraction(45, 2))]
)
def test_the_floor_is_that_of_the_bits(size, exponent):
    """Against flint: the floor of the difference of both times at the bits that were revealed, and one bit further."""
    for _ in range(200):
        script = random_bits(4000)
        draws = ScriptedBits(script)
        first, second = Arrival(Fraction(0), 1, draws.bits(DEPTH)), Arrival(Fraction(exponent), size, draws.bits(DEPTH))
        steps = leads._whole_difference(first, second, draws)
        more = (draws.used - 2 * DEPTH) // 64
        assert more % 2 == 0, "both are revealed together"
        bits = [script[:DEPTH], script[DEPTH : 2 * DEPTH]]
        for number in range(more):
            start = 2 * DEPTH + 64 * number
            bits[number % 2] += script[start : start + 64]
        with ctx.workprec(400):
            values = []
            for own, count in zip(bits, (1, size), strict=True):
                depth, prefix = len(own), int(own, 2)
                values.append([log_head(count, prefix + end, depth) for end in (0, 1)])
            (start, end), (others_start, others_end) = values
            shift = arb(Fraction(exponent).numerator) / arb(Fraction(exponent).denominator)
            if start is not None and others_start is not None:
                assert (others_start + shift - end).floor() == steps
                assert (others_end + shift - start).floor() == steps


def test_steps_are_decided_beyond_the_first_word(monkeypatch):
    """A word on the boundary of exp(-1) is not decided by itself."""
    boundary = format(leads._BOUNDARY, "064b")
    low, high = "0" * 64, "1" * 64
    assert leads._heads_in_a_row(ScriptedBits(low + low + high)) == 2
    assert leads._heads_in_a_row(ScriptedBits(boundary + "0" * 32 + high)) == 1
    assert leads._heads_in_a_row(ScriptedBits(boundary + "1" * 32)) == 0
    monkeypatch.setattr(leads, "_BOUNDARY", leads._BOUNDARY + 1)
    assert leads._heads_in_a_row(ScriptedBits(boundary + high)) == 1


TABLES = [list(counts) for counts in itertools.product(range(4), repeat=3)]


def ratios(scores, neighbour, rate, most):
    mine, theirs = law(scores, rate, most), law(neighbour, rate, most)
    return [abs(math.log(mine[outcome] / theirs[outcome])) for outcome in mine]


@pytest.mark.parametrize("monotonic", [True, False])
def test_neighbours_cannot_be_told_apart_by_more_than_epsilon(monotonic):
    """All changes of three counts: by one person with any values, or with one value in place of another."""
    mechanism, most = PermuteAndFlip("1.5", monotonic=monotonic), 4
    changes = (
        [change for change in itertools.product((0, 1), repeat=3) if any(change)]
        if monotonic
        else [change for change in itertools.product((-1, 0, 1), repeat=3) if 1 in change and -1 in change]
    )
    largest = max(
        max(ratios(scores, [a + b for a, b in zip(scores, change, strict=True)], mechanism.rate, most))
        for scores in TABLES[::5]
        for change in changes
    )
    assert largest <= 1.5 * (1 + 1e-6)
    assert largest > 1.2, "the test can see it"


def test_the_p_value_is_exact():
    """If the winner is not the best, the steps are those of coins exp(-1), whatever the scores are."""
    for scores in ([0, 1, 2], [5, 5, 4, 1], [0, 0.5]):
        for winner in range(len(scores)):
            if scores[winner] == max(scores):
                continue
            wins = tail(scores, winner, Fraction(1, 2), 0)
            for least in (1, 2, 5):
                assert tail(scores, winner, Fraction(1, 2), least) / wins == pytest.approx(math.exp(-least), rel=1e-6)


def test_the_lead_is_at_least_what_is_said():
    """Pr[gap - t > max(0, lead of the winner)] <= alpha, exactly, for t = ln(1/alpha) / rate."""
    rate, alpha = Fraction(1, 2), 0.05
    for scores in [*TABLES, [0, 9, 12], [0, 20, 20]]:
        wrong = 0.0
        for winner, own in enumerate(scores):
            lead = max(0, own - max(other for place, other in enumerate(scores) if place != winner))
            wrong += tail(scores, winner, rate, float(rate * lead) + math.log(1 / alpha))
        assert wrong <= alpha * (1 + 1e-6)


def test_one_candidate_has_no_gap():
    with pytest.raises(InvalidValue, match="at least two candidates"):
        PermuteAndFlip(1).select_with_gap([3])


def test_scores_that_change_are_refused():
    values = np.array([0.0, 9.0] * BLOCK)
    gaps = Gaps(values, Rate(Fraction(1)))
    values[3] = 99
    with pytest.raises(ScoresChanged):
        gaps.without(1)


@pytest.mark.parametrize("size", [slow(10**6)])
def test_a_crowd_with_one_ahead(size):
    scores = np.random.default_rng().permutation(ahead(size, 28, 5).astype(np.float64))
    place, most, mechanism = int(np.argmax(scores)), 8, PermuteAndFlip(1)
    assert_law(
        lambda: outcome(mechanism.select_with_gap(scores), place, most),
        2000,
        lambda factor: law_of_one_ahead(scores, factor * mechanism.rate, most),
    )
