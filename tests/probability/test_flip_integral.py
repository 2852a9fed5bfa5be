"""The probabilities of permute-and-flip, against exact arithmetic and every formula of the paper; and the softmax."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from dpselect import PermuteAndFlip
from dpselect.mechanisms.laws import permute_and_flip_by_level, permute_and_flip_probabilities, softmax
from tests import reference

TOLERANCE = 1e-12
LARGEST = 690.0  # exp(-690) is 2e-300
DATA = Path(__file__).resolve().parents[2] / "../shared/data/dpbench"


def assert_accurate(exponents, truth):
    """Every candidate of probability 1e-300 or more within 1e-12, and the sum."""
    ours = permute_and_flip_probabilities(np.array(exponents, dtype=np.float64))
    assert reference.relative_error(ours, truth) <= TOLERANCE
    assert abs(math.fsum(ours) - 1) <= TOLERANCE


def gaps(seed, size):
    return np.random.default_rng(seed).random(size)


# How far each candidate is below the best; at a rate of epsilon / 2 a candidate at 1000 is at exponents 5e-4 to 5e5.
LOSSES = {
    "one": [0.0],
    "two that tie": [0.0, 0.0],
    "two": [1.0, 0.0],
    "two, tiny gap": [0.0, 1e-12],
    "all equal": [0.0] * 300,
    "one winner, many losers": [0.0, *[5.0] * 299],
    "one loser, many winners": [5.0, *[0.0] * 299],
    "tiny gaps": (1e-12 * np.arange(200)).tolist(),
    "tiny gaps far away": [0.0, *(9.0 + 1e-12 * np.arange(100))],
    "huge gaps": [0.0, 1e3, 2e3, 1e6, 1e12, 1e300],
    "steps": np.arange(250.0).tolist(),
    "uniform": [0.0, *gaps(1, 299)],
    "normal": [0.0, *np.abs(np.random.default_rng(2).normal(scale=10, size=200))],
    "powers": [0.0, *(2.0 ** np.arange(-60, 12))],
    "ties on many levels": np.repeat(np.arange(0.0, 30, 3), 25).tolist(),
    "mixture": [0.0] * 40 + [1e-12] * 40 + (gaps(3, 80) * 1e-3).tolist() + [4.0] * 60 + (gaps(4, 70) * 1e3).tolist(),
}
EPSILONS = [1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("case", LOSSES)
def test_every_candidate_is_accurate(case, epsilon):
    exponents = [epsilon / 2 * loss for loss in LOSSES[case]]
    assert_accurate(exponents, reference.flip_pmf_in_balls(exponents))
    ours = softmax(np.array(exponents))
    assert reference.relative_error(ours, reference.softmax_in_balls(exponents)) <= 1e-14
    assert abs(math.fsum(ours) - 1) <= 1e-14


@pytest.mark.parametrize("ulps", [-8, -1, 0, 1, 8])
@pytest.mark.parametrize("company", [0, 30, 45, 46, 250])
def test_both_sides_of_hot_and_cold_agree(company, ulps):
    """Candidates go by the direct sum or by the series at p T = 1/16, with T = 45 / (S - 1) once the heads sum to 46.

    Beside company + 1 winners, 20 candidates with that p and three a little above it make S - 1 = company + 23 p.
    """
    edge = math.log(16) if company <= 45 else math.log(697 / company)
    edge += ulps * math.ulp(edge)
    exponents = [0.0] * (company + 1) + [edge] * 20 + [math.nextafter(edge, 0)] * 3
    assert_accurate(exponents, reference.flip_pmf_in_balls(exponents))


@pytest.mark.parametrize("size", [2, 11, 12, 13, 44, 45, 46, 47, 48, 100, 719, 720, 721, 722, 1500])
@pytest.mark.parametrize("rest", [[0.0], [1e-9, 3.0], [1e-3, math.log(16), 30.0, LARGEST]], ids=["ties", "near", "far"])
def test_crowds_on_both_sides_of_every_cut(size, rest):
    """A sum of heads above 12 needs more nodes, one above 46 shortens the integral, one near 45 * 16 makes all cold."""
    levels = [0.0, *rest]
    counts = [size, *[5] * len(rest)]
    truth = reference.flip_pmf_by_level(counts, levels)
    repeated = [ball for count, ball in zip(counts, truth, strict=True) for _ in range(count)]
    assert_accurate(np.repeat(levels, counts), repeated)


@pytest.mark.parametrize("ulps", [-8, 0, 8])
@pytest.mark.parametrize("company", [1, 77, 78, 200])
@pytest.mark.parametrize("far", [300, 5_000])
@pytest.mark.parametrize("limit", [10, 16])
def test_however_many_terms_a_candidate_needs(limit, far, company, ulps):
    """Candidates at p T = 2**-10 or 2**-16, up to 128 and more that are closer, and few or most that are farther."""
    edge = limit * math.log(2)
    edge += ulps * math.ulp(edge)
    levels, counts = [0.0, 2.0, 3.0, 5.0, edge, 9.0, 12.0, 40.0], [1, 3, 20, company, 26, 30, far, far]
    assert_accurate_by_level(counts, levels)


CROWDS = {
    "a million ties": ([10**6], [0.0]),
    "one among a million": ([1, 10**6 - 1], [0.0, 12.0]),
    "a million near": ([10**3, 10**6 - 10**3], [0.0, 1e-6]),
    "three layers": ([7, 10**4, 10**6], [0.0, 2.0, 9.5]),
    "cold million": ([3, 10**6], [0.0, 600.0]),
    "ten million": ([5, 10**4, 10**7 - 10**4 - 5], [0.0, 1.5, 11.0]),
    "four magnitudes": ([1, 10**3, 10**5, 9 * 10**5], [0.0, 1.0, 30.0, LARGEST]),
}


@pytest.mark.parametrize("case", CROWDS)
def test_millions_of_candidates_are_accurate(case):
    assert_accurate_by_level(*CROWDS[case])


def assert_accurate_by_level(counts, levels):
    """So many candidates of each level, in a scattered order."""
    exponents = np.random.default_rng(5).permutation(np.repeat(levels, counts))
    ours = permute_and_flip_probabilities(exponents)
    assert abs(math.fsum(ours) - 1) <= TOLERANCE
    truth = reference.flip_pmf_by_level(counts, levels)
    for extreme in (np.min, np.max):
        found = [extreme(ours[exponents == level]) for level in levels]
        assert reference.relative_error(found, truth) <= TOLERANCE


LEVELS = CROWDS | {
    "one": ([1], [0.0]),
    "two": ([1, 1], [0.0, 1.0]),
    "nearly a tie": ([1, 1, 3], [0.0, 1e-12, 1e-9]),
    "both sides of the cut": ([45, 1, 1], [0.0, 1.0, 30.0]),
    "many far away": ([1, 10**14], [0.0, 32.0]),
    "more far away": ([1, 10**14, 3], [0.0, 30.0, 1.0]),
    "a repeated level": ([2, 5, 5], [0.0, 1.0, 1.0]),
}


@pytest.mark.parametrize("case", LEVELS)
def test_levels_with_counts_are_accurate(case):
    counts, levels = LEVELS[case]
    ours = permute_and_flip_by_level(np.array(levels), np.log(counts)) / counts
    assert reference.relative_error(ours, reference.flip_pmf_by_level(counts, levels)) <= TOLERANCE


@pytest.mark.parametrize("case", ["uniform", "powers", "steps", "ties on many levels", "mixture"])
@pytest.mark.parametrize("rate", [1e-3, 0.5, 100.0])
def test_levels_of_one_candidate_are_candidates(case, rate):
    exponents = rate * np.array(LOSSES[case])
    ours = permute_and_flip_by_level(exponents, np.zeros(exponents.size))
    assert ours == pytest.approx(permute_and_flip_probabilities(exponents), rel=1e-13, abs=1e-300)


def test_levels_may_have_more_candidates_than_floats_can_count():
    """With e**2000 candidates, no coin is flipped twice: permute-and-flip is the exponential mechanism."""
    exponents, logs = np.array([0.0, 2000.0, 2001.0, 5.0]), np.array([3.0, 4000.0, 4001.5, 1990.0])
    weights = np.exp(logs - exponents - 2000.5)
    assert permute_and_flip_by_level(exponents, logs) == pytest.approx(weights / weights.sum(), rel=1e-12)
    assert permute_and_flip_by_level(np.array([0.0, 3000.0]), np.array([0.0, 2000.0])).tolist() == [1.0, 0.0]


def test_a_million_distinct_candidates_sum_to_one():
    exponents = np.random.default_rng(6).exponential(20, 10**6)
    exponents[123] = 0.0
    ours = permute_and_flip_probabilities(exponents)
    assert abs(math.fsum(ours) - 1) <= TOLERANCE
    assert abs(math.fsum(softmax(exponents)) - 1) <= 1e-13
    assert (np.diff(ours[np.argsort(exponents)]) <= 0).all(), "a worse candidate is not more likely"


def test_identical_candidates_have_identical_probabilities():
    levels = [0.0, 1e-12, 0.3, math.log(16), 5.0, 80.0, 700.0]
    for size in (20, 300, 9_000, 20_000):
        exponents = np.random.default_rng(size).choice(levels, size)
        exponents[0] = 0.0
        ours = permute_and_flip_probabilities(exponents)
        for level in set(exponents.tolist()):
            assert np.unique(ours[exponents == level]).size == 1


def test_one_candidate_is_certain():
    assert permute_and_flip_probabilities(np.zeros(1)) == pytest.approx([1.0], rel=1e-15)


# Probabilities of heads that are rational, so that the paper's formulas are too.
COINS = {
    "one": "1",
    "fair": "1 1/2",
    "ties": "1 1 1 1",
    "thirds": "1 1/3 1/3 2/3 1/9",
    "nearly certain": "1 999999999999/1000000000000 1/2",
    "nearly impossible": "1 1/100000000000000000000 1/3 1",
    "boundary": "1 1/16 1/16 1/15 1/17",
    "seven": "1 1/2 1/3 1/4 1/5 1/6 1/7",
    "seven with ties": "1 1 1/1000 1/1000 4/5 4/5 4/5",
    "nine": "1 1 1/2 3/4 7/8 1/64 1/64 1/4096 1",
    "twelve": "1 1/2 1/2 1/4 1/4 1/4 1/8 1/16 1/32 1/32 1/1024 1",
}


def rational_coins(case):
    heads = [Fraction(text) for text in COINS[case].split()]
    with ctx.workprec(100):
        return heads, [max(0.0, float(-arb(fmpq(p.numerator, p.denominator)).log())) for p in heads]


def as_balls(pmf):
    with ctx.workprec(300):
        return [reference.ball(probability) for probability in pmf]


@pytest.mark.parametrize("case", [case for case, coins in COINS.items() if len(coins.split()) <= 7])
def test_the_sum_over_permutations_agrees(case):
    """The first lemma of the paper's Appendix A, in exact rationals."""
    heads, exponents = rational_coins(case)
    assert_accurate(exponents, as_balls(reference.pmf_by_permutations(heads)))


@pytest.mark.parametrize("case", COINS)
def test_inclusion_and_exclusion_agree(case):
    """The second lemma of the paper's Appendix A, in exact rationals."""
    heads, exponents = rational_coins(case)
    assert_accurate(exponents, as_balls(reference.pmf_by_inclusion_exclusion(heads)))


@pytest.mark.parametrize("odds", ["1/2", "1/3", "9/10", "1/1000"])
@pytest.mark.parametrize(
    "steps", [(0,), (0, 1), (3, 0), (0, 0, 2), (1, 2, 0, 4), (0, 3, 3, 1, 0), (2, 0, 1, 1, 5, 0)], ids=str
)
def test_the_recurrence_of_section_3_agrees(steps, odds):
    """On the lattice of twice the sensitivity, with exp(-epsilon) rational."""
    odds = Fraction(odds)
    epsilon = math.log(odds.denominator / odds.numerator)
    truth = reference.flip_pmf_by_recurrence(steps, odds)
    assert sum(truth) == 1
    assert_accurate([epsilon * step for step in steps], as_balls(truth))


@pytest.mark.parametrize("case", ["one", "two", "steps", "normal", "ties on many levels", "mixture"])
def test_the_dynamic_program_agrees_in_high_precision(case):
    """The Appendix's O(n**2) program is right in exact arithmetic."""
    exponents = [0.05 * loss for loss in LOSSES[case]]
    with ctx.workprec(2 * len(exponents) + 400):
        heads = np.array([(-reference.ball(exponent)).exp() for exponent in exponents])
        truth = reference.flip_pmf_by_dynamic_program(heads).tolist()
    assert_accurate(exponents, truth)


def test_the_dynamic_program_is_right_in_floats_for_few_candidates():
    """The control of the next test: what fails there is the arithmetic, not our copy of the program."""
    exponents = np.array([0.0, 0.3, 1.0, 1.0, 4.0])
    ours = permute_and_flip_probabilities(exponents)
    assert reference.flip_pmf_by_dynamic_program(np.exp(-exponents)) == pytest.approx(ours, rel=1e-13)


@pytest.mark.skipif(not DATA.is_dir(), reason="the DPBench histograms are not beside the repository")
def test_the_dynamic_program_loses_everything_in_floats_where_we_do_not():
    """The paper's mode problem on HEPTH at epsilon 0.001, as the authors compute it and with 2,448 bits."""
    counts = np.load(DATA / "HEPTH.n4096.npy").reshape(1024, 4).sum(axis=1)
    ours = PermuteAndFlip(epsilon=0.001).pmf(counts)
    assert abs(math.fsum(ours) - 1) <= TOLERANCE
    with np.errstate(all="ignore"):
        theirs = reference.flip_pmf_by_dynamic_program(np.exp(-0.0005 * (counts.max() - counts)))
    assert abs(theirs.sum()) > 1e10
    with ctx.workprec(2 * counts.size + 400):
        rate = reference.ball(Fraction(0.001) / 2)
        heads = np.array([(-rate * int(loss)).exp() for loss in counts.max() - counts])
        truth = reference.flip_pmf_by_dynamic_program(heads)
    assert reference.relative_error(ours, truth.tolist()) <= TOLERANCE
