"""The error of a top-k answer: against sums over all sets, the samplers that answer, and formulas for few candidates.

The rates are derived here by hand, and the probabilities are those of `tests.reference`.
"""

import math
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats

from dpselect import ReportNoisyMax, analysis, errors, select_top_k
from dpselect.analysis import TopKError, top_k_error
from dpselect.mechanisms.privacy import BOUNDED_RANGE, LAPLACE, PERMUTE_AND_FLIP, epsilon_of_rho
from dpselect.questions.methods import METHODS
from tests import reference
from tests.statistical.goodness import THRESHOLD

PMF = {"permute-and-flip": reference.permute_and_flip_pmf, "exponential": reference.exponential_pmf}
COUNTS = [9, 7, 7, 4, 2, 0]


def short(counts, chosen):
    return (sum(sorted(counts, reverse=True)[: len(chosen)]) - sum(counts[i] for i in chosen)) / len(chosen)


def one_choice(counts, sizes, score, rate, name):
    """The expected shortfall of one choice among all sets of these sizes."""
    sets = [chosen for k in sizes for chosen in combinations(range(len(counts)), k)]
    pmf = PMF[name]([score(counts, chosen) for chosen in sets], rate)
    return sum(p * short(counts, chosen) for p, chosen in zip(pmf, sets, strict=True))


def total(counts, chosen):
    return sum(counts[i] for i in chosen)


def margin(counts, chosen):
    return min(counts[i] for i in chosen) - max(c for i, c in enumerate(counts) if i not in chosen)


def peeled(counts, k, rate, name):
    """The expected shortfall of one choice after another, over all sequences."""

    def probability(sequence):
        left, product = list(range(len(counts))), 1.0
        for chosen in sequence:
            product *= PMF[name]([counts[i] for i in left], rate)[left.index(chosen)]
            left.remove(chosen)
        return product

    return sum(probability(s) * short(counts, s) for s in permutations(range(len(counts)), k))


# Exact results.


@pytest.mark.parametrize("name", PMF)
@pytest.mark.parametrize(
    ("k", "max_values", "monotonic", "divisor"),
    [(2, 1, True, 1), (2, 1, False, 2), (3, 2, True, 2), (3, 9, True, 3), (4, 9, True, 2), (4, 9, False, 4)],
)
def test_sets_at_the_rate_that_is_charged(name, k, max_values, monotonic, divisor):
    """The sum of a set moves by at most m, k and d - k; twice that if a person is replaced."""
    found = top_k_error(
        COUNTS, k, epsilon="0.5", method="set", max_values=max_values, monotonic=monotonic, mechanism=name
    )
    truth = one_choice(COUNTS, [k], total, 0.5 / divisor, name)
    assert found.mean == pytest.approx(truth, rel=1e-9)
    assert (found.low, found.high, found.exact, found.runs) == (found.mean, found.mean, True, 0)
    assert (found.method, found.unit, float(found)) == ("set", "people", found.mean)


@pytest.mark.parametrize("name", PMF)
@pytest.mark.parametrize(("k", "monotonic", "divisor"), [(2, True, 2), (5, False, 4), ((1, 3), True, 2)], ids=str)
def test_margins_at_the_rate_that_is_charged(name, k, monotonic, divisor):
    found = top_k_error(COUNTS, k, epsilon="0.5", method="margin", monotonic=monotonic, mechanism=name)
    sizes = range(k[0], k[1] + 1) if isinstance(k, tuple) else [k]
    assert found.exact
    assert found.mean == pytest.approx(one_choice(COUNTS, sizes, margin, 0.5 / divisor, name), rel=1e-9)


@pytest.mark.parametrize("name", PMF)
@pytest.mark.parametrize(("k", "monotonic", "divisor"), [(1, True, 1), (2, True, 2), (3, False, 6)])
def test_peeling_at_the_rate_that_is_charged(name, k, monotonic, divisor):
    found = top_k_error(COUNTS, k, epsilon="0.5", method="peel", monotonic=monotonic, mechanism=name)
    assert found.exact
    assert found.mean == pytest.approx(peeled(COUNTS, k, 0.5 / divisor, name), rel=1e-9)


@pytest.mark.parametrize(
    ("method", "mechanism", "loss", "shares"),
    [
        ("set", "exponential", BOUNDED_RANGE, 1),
        ("set", "permute-and-flip", PERMUTE_AND_FLIP, 1),
        ("peel", "exponential", BOUNDED_RANGE, 2),
        ("noisy-counts", "auto", LAPLACE, 1),
    ],
)
def test_a_rho_pays_for_what_each_loss_allows(method, mechanism, loss, shares):
    """The answer at rho has the error of the answer at the epsilon that its shares of rho pay for."""
    epsilon = epsilon_of_rho(loss, Fraction(1, 20) / shares) * shares
    options = {"method": method, "mechanism": mechanism, "max_values": 1, "seed": 1, "runs": 50}
    assert top_k_error(COUNTS, 2, rho="0.05", **options) == top_k_error(COUNTS, 2, epsilon=epsilon, **options)


@pytest.mark.parametrize("method", ["set", "auto"])
def test_all_but_one_is_one_choice_of_the_one_that_is_left_out(method):
    """By permute-and-flip on negated counts, and per item of the answer."""
    found = top_k_error(COUNTS, 5, epsilon="0.5", method=method, max_values=9)
    lost = reference.permute_and_flip_pmf([-c for c in COUNTS], 0.5)
    left_out = sum(p * (c - min(COUNTS)) for p, c in zip(lost, COUNTS, strict=True)) / 5
    assert (found.exact, found.method) == (True, "set" if method == "set" else "peel")
    assert found.mean == pytest.approx(left_out, rel=1e-9)


def test_one_shot_may_choose_what_is_left_out():
    """Two of six are left out: those with the largest negated counts plus noise of rate 0.5 / 2, drawn here."""
    found = top_k_error(COUNTS, 4, epsilon="0.5")
    assert (found.exact, found.method) == (True, "one-shot")
    noise = np.random.default_rng(1).exponential(4.0, size=(100_000, 6))
    out = np.argsort(np.array(COUNTS) - noise, axis=1)[:, :2]
    drawn = (np.array(COUNTS)[out].sum(axis=1) - 2) / 4
    assert abs(drawn.mean() - found.mean) < 6.2 * drawn.std() / math.sqrt(drawn.size)


def test_one_shot_of_one_is_permute_and_flip():
    found = top_k_error(COUNTS, 1, epsilon="0.5", method="one-shot")
    assert found.exact
    assert found.mean == pytest.approx(peeled(COUNTS, 1, 0.5, "permute-and-flip"), rel=1e-9)


def test_a_choice_of_all_has_no_error():
    for options in ({}, {"ordered": True}, {"method": "noisy-counts", "max_values": 1}, {"method": "peel"}):
        found = top_k_error(COUNTS, 6, epsilon="0.5", **options)
        assert (found.mean, found.low, found.high, found.exact) == (0, 0, 0, True)
    assert top_k_error(COUNTS, 6, epsilon="0.5").method == "all"


def test_only_differences_of_scores_matter():
    far = [2**60 + c for c in COUNTS]
    assert top_k_error(far, 2, epsilon=1, method="peel").mean == top_k_error(COUNTS, 2, epsilon=1, method="peel").mean


# Simulations.


def simulated(monkeypatch, method):
    """Leave out the formula of a method."""
    monkeypatch.setattr(METHODS[method], "shortfall", lambda *_: None)


CASES = {
    "set": {"method": "set", "max_values": 1},
    "margin": {"method": "margin"},
    "several margins": {"method": "margin", "k": (1, 3)},
    "one-shot": {"method": "one-shot"},
    "peel": {"method": "peel"},
    "exponential peel": {"method": "peel", "mechanism": "exponential"},
    "left out": {"k": 4},
}


@pytest.mark.parametrize("case", CASES)
def test_simulations_have_the_exact_mean(monkeypatch, case):
    asked = {"k": 2, "epsilon": "0.3", **CASES[case]}
    exact = top_k_error(COUNTS, **asked)
    wrong = top_k_error(COUNTS, **{**asked, "epsilon": "0.36"})
    assert exact.exact
    assert wrong.exact
    simulated(monkeypatch, exact.method)
    runs = 4_000 if exact.method == "margin" else 20_000
    found = top_k_error(COUNTS, **asked, runs=runs, seed=5)
    assert (found.exact, found.runs) == (False, runs)
    width = (found.high - found.low) / 2
    assert abs(found.mean - exact.mean) < 3.2 * width, "more than six standard errors"
    assert abs(found.mean - wrong.mean) > width, "the width is small enough to see another epsilon"


def noisy_shortfall(counts, k, rate):
    """With two candidates, or for one chosen or left out, by the law of report noisy max."""
    if k == 1:
        lost = reference.noisy_max_pmf(counts, rate)
        return sum(p * (max(counts) - c) for p, c in zip(lost, counts, strict=True))
    lost = reference.noisy_max_pmf([-c for c in counts], rate)
    return sum(p * (c - min(counts)) for p, c in zip(lost, counts, strict=True)) / k


@pytest.mark.parametrize(
    ("k", "max_values", "monotonic", "rate"), [(1, 1, True, 0.6), (1, 3, True, 0.2), (3, 2, False, 0.15)]
)
def test_noisy_counts_have_the_law_of_report_noisy_max(k, max_values, monotonic, rate):
    counts = [9, 7, 4, 0]
    found = top_k_error(
        counts, k, epsilon="0.6", method="noisy-counts", max_values=max_values, monotonic=monotonic, runs=40_000, seed=1
    )
    width, truth = (found.high - found.low) / 2, noisy_shortfall(counts, k, rate)
    assert abs(found.mean - truth) < 3.2 * width
    assert abs(found.mean - noisy_shortfall(counts, k, 1.2 * rate)) > 3.2 * width


def test_peeling_by_another_mechanism_is_simulated_from_its_noise():
    found = top_k_error([9, 7, 4, 0], 1, epsilon="0.6", method="peel", mechanism="noisy-max", runs=40_000, seed=1)
    assert not found.exact
    truth = analysis.expected_error(ReportNoisyMax("0.6", monotonic=True), [9, 7, 4, 0])
    assert abs(found.mean - truth) < 1.6 * (found.high - found.low)


def test_intervals_cover_the_mean(monkeypatch):
    """Of 2,000 intervals about 95 % have the exact mean inside: fewer than 91 % happen once in 10**12 times."""
    asked = {"epsilon": "0.1", "method": "one-shot"}
    truth = top_k_error(COUNTS, 2, **asked).mean
    simulated(monkeypatch, "one-shot")
    inside = 0
    for seed in range(2_000):
        found = top_k_error(COUNTS, 2, **asked, runs=40, seed=seed)
        inside += found.low <= truth <= found.high
    assert stats.binom.cdf(1_820, 2_000, 0.95) < 1e-12
    assert 1_820 < inside < 1_970


def test_a_seed_repeats_a_simulation():
    asked = {"epsilon": "0.1", "method": "noisy-counts", "max_values": 1, "runs": 50}
    first, again, other = (top_k_error(COUNTS, 2, **asked, seed=seed) for seed in (3, 3, 4))
    assert first == again != other
    assert top_k_error(COUNTS, 2, **asked) != top_k_error(COUNTS, 2, **asked)


# Simulations without an error.


@pytest.mark.parametrize("method", ["set", "one-shot", "peel", "noisy-counts"])
def test_where_no_run_is_short_the_interval_has_a_proven_end(monkeypatch, method):
    counts, rate = [100, 80, 40, 3], {"set": 0.5, "one-shot": 0.25, "peel": 0.25, "noisy-counts": 0.5}[method]
    asked = {"epsilon": "0.5", "method": method, "max_values": 1}
    truth = noisy_shortfall([80, 40], 1, 0.5) / 2 if method == "noisy-counts" else top_k_error(counts, 2, **asked).mean
    simulated(monkeypatch, method)
    found = top_k_error(counts, 2, **asked, runs=20, seed=1)
    assert (found.mean, found.low, found.exact) == (0, 0, False)
    chance = {"one-shot": lambda x: math.exp(-x) / 2, "noisy-counts": lambda x: (0.5 + x / 4) * math.exp(-x)}
    inverted = chance.get(method, lambda x: math.exp(-x))
    pairs = sum((u - w) * inverted(rate * (u - w)) for u in counts[:2] for w in counts[2:]) / 2
    assert found.high == pytest.approx(pairs, rel=1e-12)
    assert truth * (1 - 1e-6) <= found.high < 3 * truth


def test_two_candidates_reach_that_end():
    """With two candidates, the sum over pairs is the mean itself."""
    found = top_k_error([60, 0], 1, epsilon="0.5", method="noisy-counts", max_values=1, runs=10, seed=1)
    assert found.mean == 0
    assert found.high == pytest.approx(noisy_shortfall([60, 0], 1, 0.5), rel=1e-6)


@pytest.mark.parametrize("runs", [20, 1000])
def test_without_such_a_proof_the_runs_bound_how_likely_an_error_is(monkeypatch, runs):
    counts = [1000, 900, 5, 0]
    simulated(monkeypatch, "margin")
    found = top_k_error(counts, 2, epsilon=1, method="margin", runs=runs, seed=1)
    assert found.mean == 0
    assert found.high == pytest.approx((1900 - 5) / 2 * (1 - 0.025 ** (1 / runs)), rel=1e-12)
    with_others = top_k_error(counts, 2, epsilon=1, method="peel", mechanism="noisy-max", runs=runs, seed=1)
    assert with_others.high == found.high


# The samplers that answer.


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"method": "set", "max_values": 2},
        {"method": "margin"},
        {"method": "margin", "k": (1, 3)},
        {"method": "one-shot", "monotonic": False},
        {"method": "peel", "mechanism": "exponential"},
        {"method": "noisy-counts", "max_values": 2},
        {"k": 4},
        {"method": "noisy-counts", "max_values": 1, "rho": "0.02"},
    ],
    ids=str,
)
def test_answers_have_the_error_that_was_stated(options):
    """3,000 answers of `select_top_k`, which draws in another way. Twice the epsilon is told from this one."""
    asked = {"k": 2, **({} if "rho" in options else {"epsilon": "0.4"}), **options}
    found = top_k_error(COUNTS, **asked, runs=100_000, seed=2)
    k = asked.pop("k")
    drawn = np.array([short(COUNTS, select_top_k(COUNTS, k, **asked)) for _ in range(3_000)])
    error = math.hypot(drawn.std(ddof=1) / math.sqrt(drawn.size), (found.high - found.low) / 3.9)
    reach = float(stats.norm.isf(THRESHOLD / 2)) * error
    assert abs(drawn.mean() - found.mean) < reach
    twice = {name: 2 * Fraction(asked[name]) for name in ("epsilon", "rho") if name in asked}
    assert abs(drawn.mean() - top_k_error(COUNTS, k, **{**asked, **twice}, seed=2).mean) > reach


# Records and refusals.


def test_records_are_frozen_numbers():
    found = top_k_error(COUNTS, 2, epsilon=1)
    assert isinstance(found, TopKError)
    assert float(replace(found, mean=3.5)) == 3.5
    with pytest.raises(FrozenInstanceError):
        found.mean = 2.0


BAD = [
    ({"epsilon": None}, errors.InvalidValue, "give exactly one of epsilon and rho"),
    ({"rho": 1}, errors.InvalidValue, "give exactly one of epsilon and rho"),
    ({"epsilon": 0}, errors.InvalidValue, "epsilon must be > 0"),
    ({"k": 0}, errors.InvalidValue, "k must be from 1"),
    ({"k": 7}, errors.InvalidValue, "k must be from 1 to the number of candidates, 6, got 7"),
    ({"k": 2.0}, errors.InvalidType, "k must be an integer"),
    ({"k": (1, 3), "method": "set", "max_values": 1}, errors.InvalidValue, "k may be a pair only with method margin"),
    ({"k": (3, 1)}, errors.InvalidValue, "k must be a pair"),
    ({"method": "best"}, errors.InvalidValue, "method must be one of auto, set"),
    ({"method": 3}, errors.InvalidType, "method must be a name"),
    ({"method": "set"}, errors.InvalidValue, "method set needs max_values"),
    ({"method": "margin", "ordered": True}, errors.InvalidValue, "method margin has no order"),
    ({"max_values": 0}, errors.InvalidValue, "max_values must be >= 1"),
    ({"ordered": 1}, errors.InvalidType, "ordered must be True or False"),
    ({"monotonic": "yes"}, errors.InvalidType, "monotonic must be True or False"),
    ({"mechanism": "best"}, errors.InvalidValue, "mechanism must be one of auto"),
    ({"mechanism": "noisy-max", "method": "margin"}, errors.InvalidType, "noisy-max cannot draw with method margin"),
    ({"runs": 1}, errors.InvalidValue, "runs must be from 2 to 10,000,000, got 1"),
    ({"runs": 10**8}, errors.InvalidValue, "runs must be from 2"),
    ({"runs": 9.5}, errors.InvalidType, "runs must be an integer"),
    ({"seed": -1}, errors.InvalidValue, "seed must be >= 0"),
    ({"scores": []}, errors.InvalidValue, "scores must have at least one"),
    ({"scores": [1.0, math.nan]}, errors.InvalidValue, "scores must be finite"),
    ({"scores": [0.5, 2.0, 1.0], "method": "margin"}, errors.InvalidValue, "scores must be counts for the margin"),
    ({"scores": [-1e308, 1e308, 0.0], "method": "peel"}, errors.InvalidValue, "scores must differ by less than 1e308"),
    ({"scores": "abc"}, errors.InvalidType, "scores"),
]


@pytest.mark.parametrize(("asked", "error", "words"), BAD, ids=lambda value: str(value)[:50])
def test_bad_arguments_are_refused(asked, error, words):
    given = {"scores": COUNTS, "k": 2, "epsilon": "0.5", **asked}
    with pytest.raises(error, match=words):
        top_k_error(**given)
