"""One goodness-of-fit test for all: fits what is right, and, as each test shows, rejects what is a little wrong."""

import numpy as np
import numpy.typing as npt
from scipy import stats

# A right mechanism fails one run in 10**9; with a few hundred such tests, false alarms stay below one in 10**6 runs.
THRESHOLD = 1e-9


def p_value(counts: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    """Pearson's chi-square, with cells merged (smallest first) until each expects at least 20 draws."""
    counts, probabilities = np.asarray(counts, dtype=float), np.asarray(probabilities, dtype=float)
    assert abs(probabilities.sum() - 1) < 1e-9
    expected = probabilities / probabilities.sum() * counts.sum()
    order = np.argsort(expected)
    small = np.searchsorted(np.cumsum(expected[order]), 20) + 1
    merged, rest = order[:small], order[small:]
    observed = np.concatenate([[counts[merged].sum()], counts[rest]])
    wanted = np.concatenate([[expected[merged].sum()], expected[rest]])
    if observed.size < 2:
        return 1.0
    return float(stats.chi2.sf(((observed - wanted) ** 2 / wanted).sum(), observed.size - 1))


def assert_fits(counts: npt.ArrayLike, probabilities: npt.ArrayLike) -> None:
    assert p_value(counts, probabilities) > THRESHOLD


def assert_rejected(counts: npt.ArrayLike, probabilities: npt.ArrayLike) -> None:
    assert p_value(counts, probabilities) < THRESHOLD
