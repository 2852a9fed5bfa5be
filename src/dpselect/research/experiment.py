"""What a reproduction of McKenna & Sheldon (2020) consists of: experiments on data, figures and claims.

`Experiment` is one task of Section 6 on one data set: the mode or the median of a histogram as a selection problem.
`Plot` is a figure of the paper, with its numbers and how they are drawn. `PaperClaim` is a claim of the paper, and what
we computed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._types import Counts
from dpselect.analysis import epsilon_for, expected_error
from dpselect.mechanisms.base import MechanismBase
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.research.plotting import EXPONENTIAL, FLIP, NumberTable

# The mechanisms of the paper's experiments, by their titles.
KINDS: dict[str, type[MechanismBase]] = {kind.title: kind for kind in (PermuteAndFlip, ExponentialMechanism)}
TASKS = ("mode", "median")


def mode_scores(counts: Counts) -> Counts:
    # Twice the number of people in each bin. The paper uses this because counts are monotonic: exp(-epsilon/2 * 2 gap)
    # is exp(-epsilon gap). An error in these scores is twice the number of people.
    return 2 * counts


def median_scores(counts: Counts) -> Counts:
    # Minus the number of people to add or remove until a bin contains the median: neither the people below nor
    # those above outnumber all others. Adding a person in or above the bin, or removing one below, lowers the excess of
    # those below by one.
    below = np.cumsum(counts) - counts
    above = counts.sum() - below - counts
    scores: Counts = -np.maximum(np.abs(below - above) - counts, 0)
    return scores


@dataclass(frozen=True, repr=False, eq=False)
class Experiment:
    """One task on one data set: errors in units of the paper's scores."""

    data_set: str
    task: str
    counts: Counts

    @cached_property
    def scores(self) -> Counts:
        return mode_scores(self.counts) if self.task == "mode" else median_scores(self.counts)

    @property
    def people(self) -> float:
        return 0.5 if self.task == "mode" else 1.0

    def error(self, name: str, epsilon: float) -> float:
        return expected_error(KINDS[name](epsilon), self.scores)

    def ratio(self, epsilon: float) -> float:
        """The exponential mechanism's expected error relative to permute-and-flip's."""
        return self.error(EXPONENTIAL, epsilon) / self.error(FLIP, epsilon)

    def epsilon(self, name: str, error: float) -> float:
        return epsilon_for(KINDS[name], self.scores, expected_error=error)

    def budget(self, epsilon: float) -> float:
        """The factor by which the exponential mechanism needs a larger epsilon to be as good as permute-and-flip."""
        return self.epsilon(EXPONENTIAL, self.error(FLIP, epsilon)) / epsilon


@dataclass(frozen=True, repr=False)
class Experiments:
    """All tasks on all data sets; none without data."""

    histograms: Mapping[str, Counts] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.histograms)

    def on(self, data_set: str, task: str) -> Experiment:
        return Experiment(data_set, task, self.histograms[data_set])

    def of(self, task: str) -> Iterator[Experiment]:
        return (self.on(data_set, task) for data_set in self.histograms)


@dataclass(frozen=True)
class Material:
    """The inputs of the figures: the epsilons of the linear programs, and the data if available."""

    points: int = 250
    experiments: Experiments = field(default_factory=Experiments)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The epsilons of the optimality ratios, from 0.01 to 10, evenly on a log axis."""
        return tuple(np.geomspace(0.01, 10, self.points).tolist())


@dataclass(frozen=True)
class Plot:
    """One figure: `table` computes its numbers, `draw` draws them on a matplotlib figure."""

    name: str  # the name of its files
    number: str  # its number in the paper
    caption: str
    table: Callable[[Material], NumberTable]
    draw: Callable[[Any, NumberTable], None]
    size: tuple[float, float] = (4.6, 3.3)  # inches
    needs_data: bool = False


@dataclass(frozen=True)
class PaperClaim:
    """What the paper claims and where, its number, ours, and whether they agree (None if not checked)."""

    where: str
    statement: str
    paper: str
    ours: str
    holds: bool | None
    remark: str = ""

    @property
    def verdict(self) -> str:
        return {True: "pass", False: "FAIL", None: "not checked"}[self.holds]


def rounds_to(number: float, printed: str) -> bool:
    """Whether the number is within half a unit of the last digit that is printed."""
    half = Decimal(1).scaleb(int(Decimal(printed).as_tuple().exponent)) / 2
    return abs(Decimal(number) - Decimal(printed)) <= half


def listed(numbers: dict[str, float], digits: int = 4) -> str:
    """Named numbers in one line."""
    return ", ".join(f"{name}: {number:.{digits}g}" for name, number in numbers.items())
