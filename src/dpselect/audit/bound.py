"""A lower confidence bound on epsilon from two samples, by Clopper & Pearson (1934).

If f is epsilon-differentially private, Pr[f(q) in A] <= e**epsilon Pr[f(q') in A] for every event A. A lower bound on
the first probability and an upper bound on the second, each wrong with probability at most doubt / 2, together bound
epsilon from below; that bound is wrong with probability at most doubt. The event must not depend on the samples that
test it, so it is chosen on other samples.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from dpselect._types import Floats
from dpselect.audit.views import WHOLE, View

Outcome = Hashable  # the output or the exception of a run: see `outputs`
Counts = Counter[Outcome]


@dataclass(frozen=True)
class Event:
    """A set of outcomes, and the input on which it seems too likely.

    The set consists of all outcomes that have one of the given labels in a view. The view `WHOLE` labels each outcome
    with itself.
    """

    outcomes: frozenset[Outcome]
    is_reversed: bool  # more likely on the neighbour
    view: View = WHOLE

    def __str__(self) -> str:
        return self.view.describe(self.outcomes)


@dataclass(frozen=True, repr=False)
class Samples:
    """How often each outcome occurred in the same number of trials on an input and on its neighbour."""

    here: Counts
    there: Counts
    trials: int

    def through(self, view: View) -> "Samples":
        """Return how often each label of a view occurred."""
        if view is WHOLE:
            return self
        return Samples(_labels(self.here, view), _labels(self.there, view), self.trials)

    def counts(self, outcomes: Sequence[Outcome]) -> tuple[Floats, Floats]:
        """Return how often each of these outcomes occurred on the input and on its neighbour."""
        here, there = (np.array([part[outcome] for outcome in outcomes], float) for part in (self.here, self.there))
        return here, there

    def hits(self, event: Event) -> tuple[int, int]:
        """Return how often the event occurred: first on the input where it seems too likely, then on the other."""
        seen = self.through(event.view).counts(list(event.outcomes))
        here, there = (int(counts.sum()) for counts in seen)
        return (there, here) if event.is_reversed else (here, there)

    def bound(self, event: Event, doubt: float) -> float:
        """Return the lower bound on epsilon that the event implies; -inf if it never occurred."""
        return float(epsilon_bound(*self.hits(event), self.trials, doubt))


def _labels(counts: Counts, view: View) -> Counts:
    labels: Counts = Counter()
    for outcome, often in counts.items():
        labels[view(outcome)] += often
    return labels


def epsilon_bound(hits: Any, neighbour_hits: Any, trials: int, doubt: float) -> Floats:
    """The log of a lower bound on one probability over an upper bound on the other; -inf without a hit.

    >>> float(epsilon_bound(900, 0, 1000, doubt=1e-6).round(2))
    4.07
    """
    hits, others = np.asarray(hits, np.float64), np.asarray(neighbour_hits, np.float64)
    low = np.where(hits > 0, stats.beta.ppf(doubt / 2, np.maximum(hits, 1), trials - hits + 1), 0.0)
    open_ends = np.maximum(trials - others, 1)
    high = np.where(others < trials, stats.beta.isf(doubt / 2, others + 1, open_ends), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(low) - np.log(high)


def noticeable_epsilon(epsilon: float, trials: int, doubt: float) -> float:
    """The true epsilon that would be flagged about half of the time; infinite if there are too few trials.

    Suppose that an event has probability one half and occurs exactly as often as expected on both inputs. The result is
    the smallest epsilon for which its bound then exceeds the promised one. The bound falls as `neighbour_hits` grows.

    >>> round(noticeable_epsilon(1.0, trials=5000, doubt=1e-6 / 22), 2)
    1.26
    >>> noticeable_epsilon(4.0, trials=50, doubt=1e-6 / 22)
    inf
    """
    hits = trials // 2

    def hides(neighbour_hits: int) -> bool:
        return bool(epsilon_bound(hits, neighbour_hits, trials, doubt) <= epsilon)

    showing = bisect_left(range(hits + 1), True, key=hides)
    return math.log(hits / (showing - 1)) if showing > 1 else math.inf


def chosen_event(
    ranking: Samples,
    choosing: Samples,
    doubt: float,
    suspects: Iterable[frozenset[Outcome]] = (),
    views: Iterable[View] = (WHOLE,),
) -> Event:
    """The event with the largest bound on `choosing`, among the suspects and the events that `ranking` suggests.

    Among events of a given size, the one that holds the labels with the largest ratios has the largest ratio. So
    `ranking` ranks the labels of each view. With many labels, the top of that ranking is partly luck, and `choosing`
    corrects for it. Suspects are events that were named without looking at any sample.
    """
    events: list[tuple[float, Event]] = []
    for view in views:
        seen = choosing.through(view)
        events += _best_half_lines(seen, doubt, view)
        events += _best_of_ranked(ranking.through(view), seen, doubt, view)
    events += [(choosing.bound(event, doubt), event) for event in _both_ways(suspects)]
    return max(events, key=lambda found: found[0])[1]


def _both_ways(suspects: Iterable[frozenset[Outcome]]) -> Iterator[Event]:
    return (Event(suspect, is_reversed) for suspect in suspects for is_reversed in (False, True))


def _best_of_ranked(ranking: Samples, choosing: Samples, doubt: float, view: View) -> Iterator[tuple[float, Event]]:
    """In each direction, the best event that consists of the labels with the largest ratios."""
    labels = list({*ranking.here, *ranking.there, *choosing.here, *choosing.there})
    ranked, chosen = ranking.counts(labels), choosing.counts(labels)
    for way in (1, -1):
        ratios = way * (np.log(ranked[0] + 0.5) - np.log(ranked[1] + 0.5))
        order = np.argsort(-ratios, kind="stable")
        ends = np.append(np.flatnonzero(np.diff(ratios[order])), len(labels) - 1)  # labels of equal ratio stay together
        more, less = (np.cumsum(counts[order])[ends] for counts in chosen[::way])
        bound, end = _best(more, less, choosing.trials, doubt)
        yield bound, Event(frozenset(labels[i] for i in order[: ends[end] + 1].tolist()), way < 0, view)


def _best_half_lines(choosing: Samples, doubt: float, view: View) -> Iterator[tuple[float, Event]]:
    """In each direction, the best event of the form "at most x" or "at least x"."""
    counts = choosing.counts(range(view.bins))
    for way in (1, -1) if view.bins else ():
        for step in (1, -1):
            more, less = (np.cumsum(side[::step]) for side in counts[::way])
            bound, end = _best(more, less, choosing.trials, doubt)
            yield bound, Event(frozenset(range(view.bins)[::step][: end + 1]), way < 0, view)


def _best(hits: Floats, neighbour_hits: Floats, trials: int, doubt: float) -> tuple[float, int]:
    bounds = epsilon_bound(hits, neighbour_hits, trials, doubt)
    best = int(np.argmax(bounds))
    return float(bounds[best]), best
