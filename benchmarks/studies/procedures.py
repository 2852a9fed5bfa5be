"""Larger mechanisms that consist of selections: peeling, stepwise selection and MWEM. For research only, in floats.

A `Chooser` makes one selection in each of many rows of scores, as the argmax of the scores with the mechanism's noise.
Like `simulate`, it is not private.

Peeling (Bhaskar et al. 2010): select the k largest bins of a histogram, one after the other.

Stepwise selection of features for a decision table (after Smith & Thakurta 2013). A table of k binary features
predicts, in each of its 2**k cells, the label that most rows of the cell have. The score of a feature is how many rows
the table with it predicts correctly: one row more or less changes it by at most one, in the same direction for all
features, so the scores are monotonic with sensitivity one.

MWEM (Hardt, Ligett & McSherry 2012). Each round selects the query that the synthetic histogram answers worst, measures
it with noise, and updates the histogram by multiplicative weights, several times for all measurements so far (as the
paper's Section 2.3 does). The queries are random intervals of bins; the number of people is assumed to be known.

How much each selection may cost when a whole procedure has a budget, in three units.

  pure             epsilon, which adds up;
  (epsilon, delta) by the accountant of the ledger, with delta = 10**-6;
  zCDP             the rho that implies the same (epsilon, delta), as in a ledger with that budget.

Measurements between the selections get half of the budget, and exactly the same noise for both mechanisms: they
are planned together with permute-and-flip, and the rest is spent on the selections of the exponential mechanism. They
have Laplace noise, which an accountant knows as report noisy max. Under zCDP they have Gaussian noise.

A `Case` is one of them on one data set, with a budget in one of the units.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect._numbers import float_below, last_true
from dpselect._types import Counts, Floats
from dpselect.accounting.budget import rho_within
from dpselect.accounting.totals import approximate
from dpselect.mechanisms import ExponentialMechanism, MechanismBase, PermuteAndFlip, ReportNoisyMax
from dpselect.mechanisms.privacy import epsilon_of_rho

DELTA = 1e-6
_PRECISION = 1e-3


class Currency(StrEnum):
    PURE = "pure epsilon"
    APPROXIMATE = "(epsilon, delta)"
    ZCDP = "zCDP"


@dataclass(frozen=True)
class Plan:
    """The epsilon of each selection, and the standard deviation of each measurement with its kind of noise."""

    epsilon: float
    deviation: float = 0.0
    gaussian: bool = False

    def noise(self, runs: int, generator: np.random.Generator) -> Floats:
        """The noise of a measurement in each run."""
        if self.gaussian:
            return generator.normal(scale=self.deviation, size=runs)
        return generator.laplace(scale=self.deviation / np.sqrt(2), size=runs)


@cache
def plan(currency: Currency, kind: type[MechanismBase], budget: float, selections: int, measured: bool) -> Plan:
    """What a budget buys: this many selections, each with or without a measurement of sensitivity one."""
    if currency == Currency.PURE:
        each = budget / selections / (2 if measured else 1)
        return Plan(each, math.sqrt(2) / each if measured else 0.0)
    if currency == Currency.ZCDP:
        rho = rho_within(Fraction(budget), Fraction(DELTA)) / selections / (2 if measured else 1)
        each = float_below(epsilon_of_rho(kind.loss, rho))
        return Plan(each, math.sqrt(1 / (2 * rho)) if measured else 0.0, gaussian=True)
    beside = _affordable(PermuteAndFlip, budget, selections, None) if measured else 0.0
    return Plan(_affordable(kind, budget, selections, beside), math.sqrt(2) / beside if measured else 0.0)


def _affordable(kind: type[MechanismBase], budget: float, selections: int, measurement: float | None) -> float:
    # The largest epsilon of each selection, with Laplace measurements of this epsilon; None means the same epsilon.
    def fits(epsilon: Fraction) -> bool:
        releases = Counter({(kind.name, epsilon): selections})
        beside = epsilon if measurement is None else Fraction(measurement)
        if beside:
            releases[ReportNoisyMax.name, beside] += selections  # its privacy loss is that of Laplace noise
        return approximate(releases, DELTA).epsilon <= budget

    return float_below(last_true(fits, Fraction(budget / selections), within=_PRECISION))


Choices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Chooser:
    # A mechanism with the rate c = epsilon / (2 sensitivity), or twice that for monotonic scores, and its plan.

    kind: type[MechanismBase]
    rate: float
    plan: Plan = Plan(1.0)

    def choose(self, scores: npt.NDArray[Any], generator: np.random.Generator) -> Choices:
        chosen: Choices = (self.rate * scores + self.kind.noise(generator, scores.shape)).argmax(axis=1)
        return chosen


def peeling_errors(counts: Counts, k: int, chooser: Chooser, runs: int, generator: np.random.Generator) -> Floats:
    # For each run, how many people fewer the k chosen bins have than the k largest, divided by k.
    best = np.sort(counts)[-k:].sum()
    scores = np.tile(counts.astype(np.float64), (runs, 1))
    everyone, found = np.arange(runs), np.zeros(runs)
    for _ in range(k):
        chosen = chooser.choose(scores, generator)
        found += counts[chosen]
        scores[everyone, chosen] = -np.inf
    errors: Floats = (best - found) / k
    return errors


Bits = npt.NDArray[np.int64]
CHOSEN = 5
_ROWS, _FEATURES, _ONES, _NOISE = 2_000, 40, 0.4, 0.1


@dataclass(frozen=True, eq=False, repr=False)
class FeatureRows:
    features: Bits
    labels: Bits


def synthetic_rows(generator: np.random.Generator) -> FeatureRows:
    # 2,000 rows of 40 features. The label is a decision list of five of them, and is wrong in one row of ten. The first
    # of the five that is one decides: the label is its number modulo two, and one if all are zero.
    features = (generator.random((_ROWS, _FEATURES)) < _ONES).astype(np.int64)
    deciding = np.concatenate([features[:, :CHOSEN], np.ones((_ROWS, 1), np.int64)], axis=1).argmax(axis=1)
    labels = deciding % 2
    return FeatureRows(features, np.where(generator.random(_ROWS) < _NOISE, 1 - labels, labels))


def stepwise_errors(rows: FeatureRows, chooser: Chooser | None, runs: int, generator: np.random.Generator) -> Floats:
    # For each run, how many fewer rows its table predicts correctly than the exact one; zero without a chooser.
    best = _right(rows, None, generator)
    return np.array([best - _right(rows, chooser, generator) for _ in range(runs)], np.float64)


def _right(rows: FeatureRows, chooser: Chooser | None, generator: np.random.Generator) -> float:
    cells = np.zeros(len(rows.labels), np.int64)
    free = np.ones(rows.features.shape[1], np.bool_)
    scores = np.zeros(free.size)
    chosen = 0
    for _ in range(CHOSEN):
        scores = np.where(free, right_predictions(rows, cells), -np.inf)
        chosen = int(scores.argmax() if chooser is None else chooser.choose(scores[np.newaxis], generator)[0])
        cells = 2 * cells + rows.features[:, chosen]
        free[chosen] = False
    return float(scores[chosen])


def right_predictions(rows: FeatureRows, cells: Bits) -> Floats:
    groups = 2 * cells + rows.labels
    members = (np.arange(groups.max() + 2)[:, np.newaxis] == groups).astype(np.float64)
    ones = members @ rows.features.astype(np.float64)  # per feature, cell and label
    zeros = members.sum(axis=1, keepdims=True) - ones
    even = len(ones) // 2 * 2
    pairs = [part[:even].reshape(-1, 2, part.shape[1]).max(axis=1).sum(axis=0) for part in (ones, zeros)]
    right: Floats = pairs[0] + pairs[1]
    return right


ROUNDS, QUERIES, _PASSES = 20, 1_000, 5


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    # Queries: the number of people in bins start, ..., stop - 1.

    start: Counts
    stop: Counts

    def answers(self, histograms: Floats) -> Floats:
        sums = np.concatenate([np.zeros((len(histograms), 1)), np.cumsum(histograms, axis=1)], axis=1)
        found: Floats = sums[:, self.stop] - sums[:, self.start]
        return found


def random_intervals(bins: int, count: int, generator: np.random.Generator) -> Intervals:
    ends = np.sort(generator.integers(0, bins, (count, 2)), axis=1)
    return Intervals(ends[:, 0], ends[:, 1] + 1)


def mwem_errors(  # noqa: PLR0913, PLR0917 - the parts of a run
    counts: Counts,
    queries: Intervals,
    chooser: Chooser,
    runs: int,
    generator: np.random.Generator,
    rounds: int = ROUNDS,
) -> Floats:
    # The mean absolute error of the queries on the last synthetic histogram of each run, in people.
    truth = queries.answers(counts[np.newaxis].astype(np.float64))
    people = counts.sum()
    synthetic = np.full((runs, counts.size), people / counts.size)
    bins, everyone = np.arange(counts.size), np.arange(runs)
    asked: list[npt.NDArray[np.bool_]] = []
    told: list[Floats] = []
    for _ in range(rounds):
        chosen = chooser.choose(np.abs(queries.answers(synthetic) - truth), generator)
        asked.append((bins >= queries.start[chosen, np.newaxis]) & (bins < queries.stop[chosen, np.newaxis]))
        told.append(truth[0, chosen] + chooser.plan.noise(runs, generator))
        for number in range(_PASSES * len(asked)):
            inside, answer = asked[number % len(asked)], told[number % len(asked)]
            gap = answer - np.where(inside, synthetic, 0.0).sum(axis=1)
            synthetic *= np.where(inside, np.exp(gap / (2 * people))[everyone, np.newaxis], 1.0)
            synthetic *= people / synthetic.sum(axis=1, keepdims=True)
    errors: Floats = np.abs(queries.answers(synthetic) - truth).mean(axis=1)
    return errors


# The two mechanisms that are compared.
COMPARED: tuple[type[MechanismBase], ...] = (PermuteAndFlip, ExponentialMechanism)

BUDGETS = (0.01, 0.03, 0.1, 0.3, 1.0)
TOPS = (10, 100)
SYNTHETIC = "synthetic"


@dataclass(frozen=True, eq=False)
class Task:
    """A larger mechanism on a data set: how it runs, how it selects, and the unit of its errors."""

    study: str
    data_set: str
    run: Callable[[Chooser, int, np.random.Generator], Floats]
    unit: str
    selections: int
    monotonic: bool = True
    measured: bool = False


@dataclass(frozen=True, eq=False)
class Case:
    """A task with a budget; both mechanisms run on it."""

    task: Task
    currency: Currency
    budget: float

    def errors(self, runs: int, generator: np.random.Generator) -> dict[str, Floats]:
        """The error of each run, by the name of the mechanism that selects."""
        found = {}
        for kind in COMPARED:
            bought = plan(self.currency, kind, self.budget, self.task.selections, self.task.measured)
            rate = bought.epsilon if self.task.monotonic else bought.epsilon / 2
            found[kind.name] = self.task.run(Chooser(kind, rate, bought), runs, generator)
        return found


def tasks(histograms: Mapping[str, Counts], generator: np.random.Generator) -> Iterator[Task]:
    """All tasks. Without histograms, only the one on synthetic data."""
    rows = synthetic_rows(generator)
    yield Task("stepwise features", SYNTHETIC, partial(stepwise_errors, rows), "rows", CHOSEN)
    for name, counts in histograms.items():
        for k in TOPS:
            yield Task(f"top {k}", name, partial(peeling_errors, counts, k), "people per bin", k)
    for name, counts in histograms.items():
        queries = random_intervals(counts.size, QUERIES, generator)
        run = partial(mwem_errors, counts, queries)
        yield Task("MWEM", name, run, "people per query", ROUNDS, monotonic=False, measured=True)


def cases(histograms: Mapping[str, Counts], generator: np.random.Generator) -> list[Case]:
    listed = list(tasks(histograms, generator))
    return [Case(task, currency, budget) for task in listed for currency in Currency for budget in BUDGETS]
