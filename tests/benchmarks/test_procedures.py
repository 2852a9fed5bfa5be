"""The larger mechanisms, each against a plain run of it, and what a budget buys: nearly all of it, and never more."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.studies.procedures import (
    CHOSEN,
    COMPARED,
    DELTA,
    Chooser,
    Currency,
    FeatureRows,
    Intervals,
    Plan,
    mwem_errors,
    peeling_errors,
    plan,
    random_intervals,
    right_predictions,
    stepwise_errors,
    synthetic_rows,
)
from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect.accounting.budget import rho_within
from dpselect.accounting.totals import approximate
from dpselect.mechanisms import MECHANISMS
from tests.statistical.goodness import assert_fits, assert_rejected

NEARLY_EXACT = Chooser(PermuteAndFlip, 1e9)
UNIFORM = Chooser(ExponentialMechanism, 1e-12)
COUNTS = np.array([5, 100, 0, 70, 3, 90, 8, 8])


def test_intervals():
    queries = random_intervals(8, 500, np.random.default_rng(1))
    assert (queries.start < queries.stop).all()
    assert (queries.start.min(), queries.stop.max()) == (0, 8)
    found = queries.answers(np.array([COUNTS, COUNTS[::-1]], float))
    for number, (start, stop) in enumerate(zip(queries.start, queries.stop, strict=True)):
        assert found[0, number] == COUNTS[start:stop].sum()
        assert found[1, number] == COUNTS[::-1][start:stop].sum()


def plain_mwem(counts, queries, rounds, passes):
    """MWEM without noise: the worst query, measured exactly."""
    people = counts.sum()
    synthetic = np.full(counts.size, people / counts.size)
    asked = []
    for _ in range(rounds):
        gaps = [abs(synthetic[a:b].sum() - counts[a:b].sum()) for a, b in queries]
        asked.append(queries[int(np.argmax(gaps))])
        for _ in range(passes):
            for a, b in asked:
                gap = counts[a:b].sum() - synthetic[a:b].sum()
                synthetic[a:b] *= np.exp(gap / (2 * people))
                synthetic *= people / synthetic.sum()
    return np.mean([abs(synthetic[a:b].sum() - counts[a:b].sum()) for a, b in queries])


def test_mwem_without_noise_is_the_plain_one():
    generator = np.random.default_rng(2)
    queries = random_intervals(8, 20, generator)
    errors = mwem_errors(COUNTS, queries, NEARLY_EXACT, 3, generator, rounds=6)
    plain = plain_mwem(COUNTS, list(zip(queries.start, queries.stop, strict=True)), 6, 5)
    assert errors == pytest.approx(np.full(3, plain), rel=1e-9)


@pytest.mark.parametrize("gaussian", [False, True])
def test_the_noise_of_measurements_has_the_planned_deviation(gaussian):
    """One query of all bins: its measurement cannot change anything; one of a bin moves that bin by the noise."""
    counts = np.array([1000, 1000])
    everything = Intervals(np.array([0]), np.array([2]))
    chooser = Chooser(ExponentialMechanism, 1e-12, Plan(1.0, deviation=20.0, gaussian=gaussian))
    assert mwem_errors(counts, everything, chooser, 50, np.random.default_rng(3)).max() < 1e-9
    half = Intervals(np.array([0]), np.array([1]))
    errors = mwem_errors(counts, half, chooser, 20_000, np.random.default_rng(3), rounds=1)
    # Five multiplicative steps of gap/(2 people) on a half close 1 - (1 - 1/8)**5 of the gap, for small gaps.
    closed = 1 - (7 / 8) ** 5
    mean = 20 * closed * (np.sqrt(2 / np.pi) if gaussian else np.sqrt(1 / 2))
    assert errors.mean() == pytest.approx(mean, rel=0.05)


def test_peeling():
    generator = np.random.default_rng(4)
    assert (peeling_errors(COUNTS, 3, NEARLY_EXACT, 20, generator) == 0).all()
    errors = peeling_errors(COUNTS, 8, UNIFORM, 20, generator)
    assert (errors == 0).all()  # all bins, each once
    chance = peeling_errors(COUNTS, 2, UNIFORM, 4_000, generator).mean()
    assert chance == pytest.approx((100 + 90) / 2 - COUNTS.mean(), rel=0.03)


def test_right_predictions_are_those_of_a_table():
    generator = np.random.default_rng(6)
    rows = FeatureRows(generator.integers(0, 2, (60, 4)), generator.integers(0, 2, 60))
    cells = generator.integers(0, 5, 60)
    for feature, found in enumerate(right_predictions(rows, cells)):
        split = 2 * cells + rows.features[:, feature]
        right = sum(
            max((rows.labels[split == cell] == label).sum() for label in (0, 1)) for cell in set(split.tolist())
        )
        assert found == right


def test_a_row_changes_all_scores_by_at_most_one_and_in_one_direction():
    """Sensitivity one and monotonic, as the study assumes."""
    generator = np.random.default_rng(7)
    rows = FeatureRows(generator.integers(0, 2, (40, 6)), generator.integers(0, 2, 40))
    cells = generator.integers(0, 4, 40)
    whole = right_predictions(rows, cells)
    for left_out in range(40):
        keep = np.arange(40) != left_out
        change = whole - right_predictions(FeatureRows(rows.features[keep], rows.labels[keep]), cells[keep])
        assert set(change.tolist()) <= {0, 1}


def test_stepwise():
    rows = synthetic_rows(np.random.default_rng(8))
    assert (stepwise_errors(rows, NEARLY_EXACT, 2, np.random.default_rng(9)) == 0).all()
    bad = stepwise_errors(rows, UNIFORM, 10, np.random.default_rng(9))
    assert bad.mean() > 200
    cells, chosen = np.zeros(len(rows.labels), np.int64), set()
    for _ in range(CHOSEN):
        feature = int(right_predictions(rows, cells).argmax())
        cells = 2 * cells + rows.features[:, feature]
        chosen.add(feature)
    assert chosen == set(range(CHOSEN))  # the label is made of the first features


SCORES = np.array([0.0, 1.0, 1.5, -2.0, 1.5])
DRAWS = 500_000


@pytest.mark.parametrize("kind", MECHANISMS.values())
def test_rows_have_the_distribution_of_the_mechanism(kind):
    rate = 0.7
    chosen = Chooser(kind, rate).choose(np.tile(SCORES, (DRAWS, 1)), np.random.default_rng(5))
    counts = np.bincount(chosen, minlength=SCORES.size)
    truth = kind(2 * rate).pmf(SCORES)
    assert_fits(counts, truth)
    for other in set(MECHANISMS.values()) - {kind}:
        assert_rejected(counts, other(2 * rate).pmf(SCORES), truth=truth)


@pytest.mark.parametrize("kind", MECHANISMS.values())
def test_what_is_masked_is_never_chosen(kind):
    scores = np.array([[-np.inf, 0.0, -np.inf, 1.0]] * 200)
    assert set(Chooser(kind, 1.0).choose(scores, np.random.default_rng(1)).tolist()) == {1, 3}


@pytest.mark.parametrize("budget", [0.1, 1.0])
def test_pure_budgets_add_up(budget):
    for kind in COMPARED:
        assert plan(Currency.PURE, kind, budget, 10, measured=False).epsilon == pytest.approx(budget / 10)
        bought = plan(Currency.PURE, kind, budget, 10, measured=True)
        laplace = math.sqrt(2) / bought.deviation
        assert 10 * (bought.epsilon + laplace) == pytest.approx(budget)


@pytest.mark.parametrize("budget", [0.1, 1.0])
@pytest.mark.parametrize("measured", [False, True])
def test_approximate_budgets_are_spent_and_not_exceeded(budget, measured):
    deviations = set()
    for kind in COMPARED:
        bought = plan(Currency.APPROXIMATE, kind, budget, 20, measured)
        deviations.add(bought.deviation)

        def total(epsilon, bought=bought, kind=kind):
            releases = Counter({(kind.name, Fraction(epsilon)): 20})
            if measured:
                releases[ReportNoisyMax.name, Fraction(math.sqrt(2) / bought.deviation)] += 20
            return approximate(releases, DELTA).epsilon

        assert total(bought.epsilon) <= budget * (1 + 1e-9)
        assert total(bought.epsilon * 1.01) > budget or measured
        assert total(bought.epsilon * 1.05) > budget
    assert len(deviations) == 1  # only the selections differ


@pytest.mark.parametrize("budget", [0.1, 1.0])
def test_rho_is_spent_and_implies_the_budget(budget):
    rho = float(rho_within(Fraction(budget), Fraction(DELTA)))
    orders = 1 + np.geomspace(0.01, 10**4, 20_000)
    exponents = (orders - 1) * (orders * rho - budget) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    assert math.exp(exponents.min()) == pytest.approx(DELTA, rel=1e-4)  # Canonne, Kamath & Steinke 2020
    for kind in COMPARED:
        each = kind(plan(Currency.ZCDP, kind, budget, 10, measured=False).epsilon).guarantee.zcdp
        assert 0.99 * rho < 10 * each <= rho * (1 + 1e-9)
        bought = plan(Currency.ZCDP, kind, budget, 10, measured=True)
        assert bought.gaussian
        assert 10 / (2 * bought.deviation**2) == pytest.approx(rho / 2)


def test_under_zcdp_the_exponential_mechanism_gets_twice_the_epsilon():
    flip, soft = (plan(Currency.ZCDP, kind, 0.1, 10, measured=False).epsilon for kind in COMPARED)
    assert soft / flip == pytest.approx(2, rel=0.02)
    assert (PermuteAndFlip, ExponentialMechanism) == COMPARED
