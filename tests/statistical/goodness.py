"""One goodness-of-fit test for all: fits what is right, and, as each test shows, rejects what is a little wrong.

The number of draws decides both kinds of mistake. A right mechanism is called wrong once in 10**9 tests, and
`assert_rejected` refuses a power check that a wrong mechanism could pass more often than that.
"""

import numpy as np
import numpy.typing as npt
from scipy import stats

# With a few hundred such tests, false alarms stay below one in 10**6 runs.
THRESHOLD = 1e-9


def merged(counts: npt.ArrayLike, probabilities: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Counts and expected counts, with cells merged (smallest first) until each expects at least 20 draws."""
    counts, probabilities = np.asarray(counts, dtype=float), np.asarray(probabilities, dtype=float)
    assert abs(probabilities.sum() - 1) < 1e-9
    expected = probabilities / probabilities.sum() * counts.sum()
    order = np.argsort(expected)
    small = np.searchsorted(np.cumsum(expected[order]), 20) + 1
    first, rest = order[:small], order[small:]
    return (
        np.concatenate([[counts[first].sum()], counts[rest]]),
        np.concatenate([[expected[first].sum()], expected[rest]]),
    )


def distance(observed: np.ndarray, expected: np.ndarray) -> float:
    """Pearson's chi-square."""
    return float(((observed - expected) ** 2 / expected).sum())


def p_value(counts: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    observed, expected = merged(counts, probabilities)
    return float(stats.chi2.sf(distance(observed, expected), observed.size - 1)) if observed.size > 1 else 1.0


def power(draws: int, truth: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    """How often draws from the truth are told from these probabilities (chi-square's noncentral approximation)."""
    observed, expected = merged(np.asarray(truth) * draws, probabilities)
    freedom = observed.size - 1
    return float(stats.ncx2.sf(stats.chi2.isf(THRESHOLD, freedom), freedom, distance(observed, expected)))


def assert_fits(counts: npt.ArrayLike, probabilities: npt.ArrayLike) -> None:
    assert p_value(counts, probabilities) > THRESHOLD


def assert_rejected(counts: npt.ArrayLike, probabilities: npt.ArrayLike, *, truth: npt.ArrayLike) -> None:
    """Draws from the truth do not pass for draws with these probabilities, and never could by luck."""
    assert power(int(np.sum(counts)), truth, probabilities) > 1 - THRESHOLD, "too few draws for a power check"
    assert p_value(counts, probabilities) < THRESHOLD
