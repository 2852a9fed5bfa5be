"""Noisy maxima, histograms and sparse vectors, right and wrong, written anew from the papers that describe them.

Ding, Wang, Wang, Zhang & Kifer (2018), "Detecting Violations of Differential Privacy", and Lyu, Su & Li (2017),
"Understanding the Sparse Vector Technique for Differential Privacy", whose Algorithms 1 and 3 to 6 the sparse vectors
are. Each comes with a pair of neighbours and its true epsilon on that pair: by a sum over all outputs where they are
finitely many, by the ratio of densities else. `python -m tests.audit.literature` audits them all, and prints the table
of `docs/audit.md`.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from dpselect.audit import Audit, Pair, audit
from dpselect.audit.findings import rounded_down

Rows = npt.NDArray[np.float64]
GENERATOR = np.random.default_rng()
BELOW, ABOVE, STOPPED = 0, 1, 2  # what a sparse vector says of a query

# Gauss-Legendre points on unit intervals: all scores here are whole, and densities are smooth between whole numbers.
_points, _weights = np.polynomial.legendre.leggauss(16)
POINTS = (np.arange(-80, 80)[:, np.newaxis] + (_points + 1) / 2).ravel()
WEIGHTS = np.tile(_weights / 2, 160)


@dataclass(frozen=True)
class NoisyMax:
    """The argmax of scores with noise; privately scale = 2 / epsilon, for Laplace and exponential noise alike."""

    scale: float
    is_exponential: bool = False
    returns_value: bool = False  # the mistake: the noisy maximum itself

    def noise(self) -> Any:
        return (stats.expon if self.is_exponential else stats.laplace)(scale=self.scale)

    def select_rows(self, rows: Rows) -> npt.NDArray[Any]:
        draw = GENERATOR.exponential if self.is_exponential else GENERATOR.laplace
        noisy = rows + draw(scale=self.scale, size=rows.shape)
        return noisy.max(axis=1) if self.returns_value else noisy.argmax(axis=1)

    def probabilities(self, scores: Rows) -> dict[Any, float]:
        """Of each index."""
        below = [self.noise().cdf(POINTS - score) for score in scores]
        density = [self.noise().pdf(POINTS - score) for score in scores]
        return {
            i: float(WEIGHTS @ (density[i] * np.prod(below[:i] + below[i + 1 :], axis=0))) for i in range(len(scores))
        }

    def probability_up_to(self, value: float, scores: Rows) -> float:
        """Of a maximum that is not above the value."""
        return float(np.prod([self.noise().cdf(value - score) for score in scores]))


@dataclass(frozen=True)
class Histogram:
    """Counts with Laplace noise; privately scale = 1 / epsilon, where one person is in one bin."""

    scale: float

    def select_rows(self, rows: Rows) -> Rows:
        return rows + GENERATOR.laplace(scale=self.scale, size=rows.shape)


@dataclass(frozen=True)
class SparseVector:
    """Which queries are above a threshold of zero, up to so many that are."""

    threshold_scale: float
    query_scale: float  # zero for no noise
    cutoff: int | None = None
    returns_value: bool = False  # the noisy query instead of "above"

    def select_rows(self, rows: Rows) -> Any:
        noisy = rows + (GENERATOR.laplace(scale=self.query_scale, size=rows.shape) if self.query_scale else 0.0)
        above = noisy >= GENERATOR.laplace(scale=self.threshold_scale, size=(len(rows), 1))
        answers = above.astype(np.int8)
        if self.cutoff is not None:
            answers[np.cumsum(above, axis=1) - above >= self.cutoff] = STOPPED
        return list(self._with_values(noisy, answers)) if self.returns_value else answers

    def _with_values(self, noisy: Rows, answers: npt.NDArray[np.int8]) -> Iterator[tuple[float | None, ...]]:
        for values, row in zip(noisy.tolist(), answers.tolist(), strict=True):
            yield tuple(
                value if answer == ABOVE else None
                for value, answer in zip(values, row, strict=True)
                if answer != STOPPED
            )

    def probabilities(self, scores: Rows) -> dict[Any, float]:
        """Of each sequence of answers, by the threshold."""
        density = WEIGHTS * stats.laplace(scale=self.threshold_scale).pdf(POINTS)
        below = [self._below(score) for score in scores]
        found: dict[Any, float] = {}
        for answers in product((BELOW, ABOVE), repeat=len(scores)):
            told = self._until_stopped(answers)
            factors = [under if a == BELOW else 1 - under for a, under in zip(answers, below, strict=True)]
            found[told] = found.get(told, 0.0) + float(density @ np.prod(factors, axis=0))
        return found

    def _below(self, score: float) -> Rows:
        if not self.query_scale:
            return (score < POINTS).astype(float)
        return np.asarray(stats.laplace(scale=self.query_scale).cdf(POINTS - score))

    def _until_stopped(self, answers: tuple[int, ...]) -> tuple[int, ...]:
        told, stopped = [], False
        for answer in answers:
            told.append(STOPPED if stopped else answer)
            stopped = stopped or told.count(ABOVE) == self.cutoff
        return tuple(told)


def true_epsilon(mechanism: Any, pair: Pair) -> float:
    """The largest log-ratio of the probabilities of an output."""
    here, there = (mechanism.probabilities(scores) for scores in pair.both)
    return max(_log_ratio(here[output], there[output]) for output in here)


def _log_ratio(one: float, other: float) -> float:
    if max(one, other) < 1e-14:  # what the quadrature cannot tell from zero
        return 0.0
    return math.inf if min(one, other) < 1e-14 * max(one, other) else abs(math.log(one / other))


@dataclass(frozen=True)
class Case:
    """A mechanism, what it claims, and what is true on a pair of neighbours."""

    name: str
    mechanism: Any
    claimed: float
    pair: Pair
    true: float
    likely: float = 0.0  # the probability of an event that is too likely, on one side and on the other
    unlikely: float = 0.0
    runs: int = 100_000

    @property
    def is_wrong(self) -> bool:
        return self.true > self.claimed * (1 + 1e-9)

    def audit(self, runs: int, false_alarm: float) -> Audit:
        return audit(self.mechanism, self.claimed, pairs=[self.pair], runs=runs, false_alarm=false_alarm)


def pair(name: str, scores: list[float], neighbour: list[float]) -> Pair:
    return Pair(name, np.array(scores, float), np.array(neighbour, float))


APART = pair("one rises, four fall", [-1, 0, 0, 0, 0], [0, -1, -1, -1, -1])
ALL_RISE = pair("all rise", [0] * 5, [1] * 5)
CROSSING = pair("three rise, three fall", [0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
ONE_FALLS = pair("four rise, one falls", [0, 0, 0, 0, 1], [1, 1, 1, 1, 0])
ONE_MORE = pair("one more in one bin", [3, 5, 8], [4, 5, 8])


def case(name: str, mechanism: Any, pair: Pair, runs: int = 100_000) -> Case:
    """A claim of one, of a mechanism with finitely many outputs; its likeliest event is an output."""
    here, there = (mechanism.probabilities(scores) for scores in pair.both)
    output = max(here, key=lambda key: _log_ratio(here[key], there[key]))
    ends = sorted((here[output], there[output]))
    return Case(name, mechanism, 1, pair, _log_ratio(*ends), ends[1], ends[0], runs)


def noisy_value(name: str, mechanism: NoisyMax, value: float) -> Case:
    """The maximum of five, all of which rise: too small a value is too likely before that, and least likely after.

    With Laplace noise the ratio is largest, exp(5 / scale), wherever all scores are above the value.
    """
    likely, unlikely = (mechanism.probability_up_to(value, scores) for scores in ALL_RISE.both)
    true = math.inf if mechanism.is_exponential else 5 / mechanism.scale
    return Case(name, mechanism, 1, ALL_RISE, true, likely, unlikely)


def histogram(name: str, scale: float, claimed: float) -> Case:
    """A count that rises by one: values up to the lower count have the largest ratio, exp(1 / scale)."""
    return Case(name, Histogram(scale), claimed, ONE_MORE, 1 / scale, 0.5, 0.5 * math.exp(-1 / scale), 20_000)


def sparse_value(name: str, runs: int) -> Case:
    """Algorithm 3 for epsilon = 2: so many below, then a value, which the threshold is not above.

    The smaller that value, the smaller is the threshold, and the less likely are queries below it, all the less if they
    have risen.
    """
    mechanism = SparseVector(1, 1, cutoff=1, returns_value=True)
    densities = [[_density_after(count, scores) for scores in ONE_FALLS.both] for count in range(5)]
    likely, unlikely = (float(WEIGHTS @ np.where(POINTS <= 2, density, 0)) for density in densities[4])
    true = max(float(np.max(np.abs(np.log(here) - np.log(there)))) for here, there in densities)
    return Case(name, mechanism, 2, ONE_FALLS, true, likely, unlikely, runs)


def _density_after(count: int, scores: Rows) -> Rows:
    """Of the value of a query at the points, after so many that are below the threshold."""
    noise = stats.laplace()
    below = np.prod([noise.cdf(POINTS - score) for score in scores[:count]], axis=0)
    thresholds = np.cumsum(WEIGHTS * noise.pdf(POINTS) * below)
    return np.asarray(thresholds * noise.pdf(POINTS - scores[count]))


CASES = [
    case("noisy max, Laplace noise", NoisyMax(2), APART),
    case("noisy max, exponential noise", NoisyMax(2, is_exponential=True), APART),
    case("noisy max, half the Laplace noise", NoisyMax(1), APART),
    case("noisy max, half the exponential noise", NoisyMax(1, is_exponential=True), APART),
    noisy_value("noisy max that returns the value, Laplace noise", NoisyMax(2, returns_value=True), 0),
    noisy_value(
        "noisy max that returns the value, exponential noise", NoisyMax(2, is_exponential=True, returns_value=True), 1
    ),
    histogram("histogram, noise of scale 1 / epsilon", 2, 0.5),
    histogram("histogram, noise of scale epsilon", 0.5, 0.5),
    case("sparse vector (Algorithm 1), one above", SparseVector(2, 4, 1), CROSSING),
    case("sparse vector (Algorithm 1), three above", SparseVector(2, 12, 3), CROSSING),
    case("iSVT 1: no noise on queries (Algorithm 5)", SparseVector(2, 0), CROSSING),
    case("iSVT 2: no cutoff (Algorithm 6)", SparseVector(2, 2), CROSSING, 200_000),
    case("iSVT 3: noise without the cutoff's factor (Algorithm 4)", SparseVector(4, 4 / 3, 3), CROSSING, 200_000),
    sparse_value("iSVT 4: returns the noisy value (Algorithm 3)", 100_000),
]


def main() -> None:
    """Print the table of `docs/audit.md`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    runs = parser.parse_args().runs
    lines = ["| mechanism | claimed | true | found | verdict |", "|---|---|---|---|---|"]
    for each in CASES:
        found = each.audit(runs, 1e-6)
        true = "∞" if math.isinf(each.true) else f"{each.true:.3f}"
        verdict = "violates" if found.violates else "no violation found"
        lines.append(f"| {each.name} | {each.claimed:g} | {true} | {rounded_down(found.lower_bound)} | {verdict} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
