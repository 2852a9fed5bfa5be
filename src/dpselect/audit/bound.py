"""A lower confidence bound on epsilon from two samples, by Clopper & Pearson (1934).

If f is epsilon-differentially private, Pr[f(q) in A] <= e**epsilon Pr[f(q') in A] for every event A. A lower bound on
the first probability and an upper bound on the second, each wrong with probability at most doubt / 2, together bound
epsilon from below; that bound is wrong with probability at most doubt. The event must not depend on the samples that
test it, so it is chosen on other samples.
"""

import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from dpselect._types import Floats, Positions
from dpselect.audit.views import WHOLE, Counts, View, labelled


@dataclass(frozen=True)
class Event:
    """The outcomes that have one of these labels in a view, and whether they seem too likely on the neighbour."""

    labels: frozenset[Hashable]
    is_reversed: bool
    view: View = WHOLE

    def __str__(self) -> str:
        return self.view.words(self.labels)


@dataclass(frozen=True, repr=False)
class Samples:
    """How often each outcome occurred in the same number of trials on an input and on its neighbour."""

    here: Counts
    there: Counts
    trials: int

    def through(self, view: View) -> "Samples":
        if view is WHOLE:
            return self
        here, there = (labelled(side.items(), view.label) for side in (self.here, self.there))
        return Samples(here, there, self.trials)

    def counts(self, outcomes: Sequence[Hashable]) -> tuple[Floats, Floats]:
        here, there = (np.array([part[outcome] for outcome in outcomes], float) for part in (self.here, self.there))
        return here, there

    def hits(self, event: Event) -> tuple[int, int]:
        """How often the event occurred: first on the input where it seems too likely, then on the other."""
        seen = self.through(event.view).counts(list(event.labels))
        here, there = (int(counts.sum()) for counts in seen)
        return (there, here) if event.is_reversed else (here, there)

    def bound(self, event: Event, doubt: float) -> float:
        """The lower bound on epsilon that the event implies; -inf if it never occurred."""
        return float(epsilon_bound(*self.hits(event), self.trials, doubt))


def epsilon_bound(hits: Any, neighbour_hits: Any, trials: int, doubt: float) -> Floats:
    # The log of a lower bound on one probability over an upper bound on the other; -inf without a hit.
    hits, others = np.asarray(hits, np.float64), np.asarray(neighbour_hits, np.float64)
    low = np.where(hits > 0, stats.beta.ppf(doubt / 2, np.maximum(hits, 1), trials - hits + 1), 0.0)
    open_ends = np.maximum(trials - others, 1)
    high = np.where(others < trials, stats.beta.isf(doubt / 2, others + 1, open_ends), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(low) - np.log(high)


def noticeable_epsilon(epsilon: float, trials: int, doubt: float) -> float:
    """The true epsilon that would be flagged about half of the time; infinite if there are too few trials."""
    # Suppose that an event has probability one half and occurs exactly as often as expected on both inputs. The result
    # is the smallest epsilon for which its bound then exceeds the promised one. The bound falls as `neighbour_hits`
    # grows.
    hits = trials // 2
    counts = range(hits + 1)
    showing = bisect_left(counts, True, key=lambda others: bool(epsilon_bound(hits, others, trials, doubt) <= epsilon))
    return math.log(hits / (showing - 1)) if showing > 1 else math.inf


def chosen_event(
    ranking: Samples,
    choosing: Samples,
    doubt: float,
    suspects: Iterable[frozenset[Hashable]] = (),
    views: Iterable[View] = (WHOLE,),
) -> Event:
    """The event with the largest bound on `choosing`, among the suspects and the events that `ranking` suggests."""
    # Among events of a given size, the one that holds the labels with the largest ratios has the largest ratio. So
    # `ranking` ranks the labels of each view. With many labels, the top of that ranking is partly luck, and `choosing`
    # corrects for it. Suspects are events that were named without looking at any sample.
    events: list[tuple[float, Event]] = []
    for view in views:
        ranked, seen = ranking.through(view), choosing.through(view)
        for is_reversed in (False, True):
            for labels, ends in _orders(ranked, seen, view, is_reversed):
                likely, unlikely = map(np.cumsum, seen.counts(labels)[:: -1 if is_reversed else 1])
                bounds = epsilon_bound(likely[ends], unlikely[ends], seen.trials, doubt)
                best = int(np.argmax(bounds))
                events.append((float(bounds[best]), Event(frozenset(labels[: ends[best] + 1]), is_reversed, view)))
    named = [Event(suspect, is_reversed) for suspect in suspects for is_reversed in (False, True)]
    events += [(choosing.bound(event, doubt), event) for event in named]
    return max(events, key=lambda found: found[0])[1]


def _orders(
    ranking: Samples, choosing: Samples, view: View, is_reversed: bool
) -> Iterator[tuple[list[Hashable], Positions]]:
    # Orders of the labels of a view, and the ends of the beginnings that may be events. Bins from below and from above
    # make half-lines. The other order is that of the ratios, where labels of equal ratio stay together.
    bins: list[Hashable] = list(range(view.bins))
    if bins:
        yield from ((order, np.arange(view.bins)) for order in (bins, bins[::-1]))
    labels = list({*ranking.here, *ranking.there, *choosing.here, *choosing.there})
    here, there = (np.log(counts + 0.5) for counts in ranking.counts(labels))
    ratios = there - here if is_reversed else here - there
    order = np.argsort(-ratios, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(ratios[order])), len(labels) - 1)
    yield [labels[i] for i in order.tolist()], ends
