"""Two samples of errors side by side: means with confidence intervals, and which mechanism is better, if that shows.

Intervals are Welch's (1947), at 95 percent, each for itself: of twenty comparisons without any difference one will look
like one.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from dpselect.mechanisms.names import MechanismName
from dpselect.studies.cases import Case

Floats = npt.NDArray[np.float64]
FLIP, EXPONENTIAL = MechanismName.PERMUTE_AND_FLIP, MechanismName.EXPONENTIAL
NO_DIFFERENCE = "no difference seen"
LEVEL = 0.95


@dataclass(frozen=True)
class Mean:
    """A mean error, and the half width of its confidence interval."""

    value: float
    half_width: float


@dataclass(frozen=True)
class Comparison:
    """Both mechanisms on one case."""

    study: str
    data_set: str
    currency: str
    budget: float
    unit: str
    permute_and_flip: Mean
    exponential: Mean
    better: str

    @property
    def ratio(self) -> float:
        """The exponential mechanism's error over permute-and-flip's; one if both are zero."""
        theirs, ours = self.exponential.value, self.permute_and_flip.value
        return theirs / ours if ours else (math.inf if theirs else 1.0)


def compared(case: Case, errors: dict[MechanismName, Floats]) -> Comparison:
    """The comparison of two samples of errors."""
    flip, soft = errors[FLIP], errors[EXPONENTIAL]
    task = case.task
    return Comparison(
        task.study,
        task.data_set,
        case.currency.value,
        case.budget,
        task.unit,
        mean_of(flip),
        mean_of(soft),
        better(flip, soft),
    )


def mean_of(errors: Floats) -> Mean:
    """The mean of a sample, with Student's interval."""
    spread = float(errors.std(ddof=1)) / math.sqrt(errors.size)
    return Mean(float(errors.mean()), float(stats.t.ppf((1 + LEVEL) / 2, errors.size - 1)) * spread)


def better(flip: Floats, soft: Floats) -> str:
    """The mechanism with the smaller mean, if the interval of the difference leaves out zero."""
    parts = [float(errors.var(ddof=1)) / errors.size for errors in (flip, soft)]
    difference, variance = float(soft.mean() - flip.mean()), sum(parts)
    if not variance:
        return NO_DIFFERENCE if not difference else (FLIP if difference > 0 else EXPONENTIAL).value
    freedom = variance**2 / sum(part**2 / (errors.size - 1) for part, errors in zip(parts, (flip, soft), strict=True))
    if abs(difference) <= stats.t.ppf((1 + LEVEL) / 2, freedom) * math.sqrt(variance):
        return NO_DIFFERENCE
    return (FLIP if difference > 0 else EXPONENTIAL).value
