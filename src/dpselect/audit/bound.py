"""A lower confidence bound on epsilon from two samples, by Clopper & Pearson (1934).

If f is epsilon-differentially private, Pr[f(q) in A] <= e**epsilon Pr[f(q') in A] for every event A. A lower bound of
the first probability and an upper bound of the second, each wrong with probability at most half of `doubt`, bound
epsilon from below, and that bound is wrong with probability at most `doubt`. The event must be chosen before
the samples are seen: it is chosen on other samples.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]
Counts = Counter[Hashable]


@dataclass(frozen=True)
class Event:
    """A set of outcomes, and on which of the two vectors it seems to be too likely."""

    outcomes: frozenset[Hashable]
    is_reversed: bool  # more likely on the neighbour

    def hits(self, here: Counts, there: Counts) -> tuple[int, int]:
        """Return how often it happened where it seems too likely, and where it does not."""
        counts = tuple(sum(part[outcome] for outcome in self.outcomes) for part in (here, there))
        return (counts[1], counts[0]) if self.is_reversed else (counts[0], counts[1])


def epsilon_bound(hits: Any, neighbour_hits: Any, trials: int, doubt: float) -> Floats:
    """The log of a lower bound of one probability over an upper bound of the other; -inf without a hit.

    >>> float(epsilon_bound(900, 0, 1000, doubt=1e-6).round(2))
    4.07
    """
    hits, others = np.asarray(hits, np.float64), np.asarray(neighbour_hits, np.float64)
    low = np.where(hits > 0, stats.beta.ppf(doubt / 2, np.maximum(hits, 1), trials - hits + 1), 0.0)
    open_ends = np.maximum(trials - others, 1)
    high = np.where(others < trials, stats.beta.isf(doubt / 2, others + 1, open_ends), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(low) - np.log(high)


def chosen_event(here: Counts, there: Counts, trials: int, doubt: float) -> Event:
    """The event with the largest bound on these samples, among those that hold the outcomes of the largest ratios.

    For a given size of an event those make its ratio largest, so no other event needs a look.
    """
    outcomes = list({*here, *there})
    counts = [np.array([part[outcome] for outcome in outcomes], np.float64) for part in (here, there)]
    best, value = Event(frozenset(outcomes[:1]), False), -np.inf
    for is_reversed, (more, less) in ((False, counts), (True, counts[::-1])):
        order = np.argsort(-(more + 0.5) / (less + 0.5), kind="stable")
        bounds = epsilon_bound(np.cumsum(more[order]), np.cumsum(less[order]), trials, doubt)
        top = int(np.argmax(bounds))
        if bounds[top] > value:
            value = float(bounds[top])
            best = Event(frozenset(outcomes[i] for i in order[: top + 1].tolist()), is_reversed)
    return best
