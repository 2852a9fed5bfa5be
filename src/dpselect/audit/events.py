"""Events: which outputs may be likelier on one of two inputs, and what their counts prove about epsilon.

A view gives each outcome a label, and an event is a set of labels. Views that are coarser than the outputs themselves
are needed where outputs never repeat. The label of a number is its bin, which includes its lower edge but not its upper
one.

Some of the runs show which views may differ between two inputs (`learned_views`). These runs are not used for the test,
so what is learned from them cannot bias the bound. The edges of bins are quantiles of the observed numbers. An edge
that occurred more than once gets a bin of its own.

**The bound** is that of Clopper & Pearson (1934). If f is epsilon-differentially private, Pr[f(q) in A] <= e**epsilon
Pr[f(q') in A] for every event A. A lower bound on the first probability and an upper bound on the second, each wrong
with probability at most doubt / 2, together bound epsilon from below; that bound is wrong with probability at most
doubt. The event must not depend on the samples that test it, so it is chosen on other samples.
"""

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from dpselect._numbers import first_true
from dpselect._types import Floats, Positions
from dpselect.audit.outputs import Path, Raised, changed, feature, features, in_order, number_of, parts, text_of

Label = Hashable
Counts = Counter[Hashable]  # how often each outcome, or each label of a view, occurred
Edges = tuple[float, ...]
Grid = Mapping[Path, Edges]  # the edges of the bins, for each path that leads to many different numbers

_SHOWN = 4
_MISSING = Raised("no such part")
_FEW = 64  # up to this many different values need no bins
_MOST_VIEWS = 16  # of each sort: parts (those that differ most), beginnings, items
_MOST_LEAVES = 10**6  # single values that are read to learn the views
_LEAST_COUNT = 10  # a rarer label gets no weight
_HALVES, _EIGHTHS = 1, 7  # edges per number where several numbers are combined
_LEVELS = np.unique([*(np.arange(33) / 32), *(2.0 ** -np.arange(6, 20)), *(1 - 2.0 ** -np.arange(6, 20))])


@dataclass(frozen=True)
class View:
    """A function that labels outcomes, the words for some labels, and the number of bins (labelled 0, 1 and so on)."""

    label: Callable[[Hashable], Label]
    words: Callable[[frozenset[Label]], str]
    bins: int = 0


def labelled(outcomes: Iterable[tuple[Hashable, int]], label: Callable[[Any], Any]) -> Counter[Any]:
    """How often each label occurs."""
    labels: Counter[Any] = Counter()
    for outcome, often in outcomes:
        labels[label(outcome)] += often
    return labels


def _any_of(texts: Iterable[str], total: int) -> str:
    shown = list(islice(texts, _SHOWN))
    return " or ".join(shown) + (f" or one of {total - len(shown):,} more" if total > len(shown) else "")


WHOLE = View(
    lambda outcome: outcome,
    lambda labels: f"the output is {_any_of(map(text_of, in_order(labels)), len(labels))}",
)


def part_view(path: Path, edges: Edges) -> View:
    # One part of an output, or the output itself if it is a number. Numbers are put into bins.
    place = "".join(f"[{text_of(step)}]" for step in path)
    return View(
        lambda outcome: _binned(feature(outcome, path, _MISSING), edges),
        lambda labels: f"output{place} is {_in_words(labels, edges)}",
        _bins(edges),
    )


def coarse_view(grid: Grid, length: int | None = None) -> View:
    # The output, or the beginning of a tuple, with each number that varies a lot in one of a few bins.
    verb = "is" if length is None else "begins with"

    def label(outcome: Hashable) -> Label:
        taken = outcome[:length] if type(outcome) is tuple else outcome
        return changed(taken, lambda path, leaf: _binned(leaf, grid.get(path, ())))

    def value(path: Path, leaf: Label) -> str:
        name = "".join(f"{text_of(step)}: " for step in path if not isinstance(step, int))
        edges = grid.get(path)
        return name + (_range(leaf, leaf, edges) if edges and isinstance(leaf, int) else text_of(leaf))

    def combination(label: Label) -> str:
        text = ", ".join(value(path, leaf) for path, leaf in features(label))
        return f"({text})" if parts(label) else text_of(label)

    return View(label, lambda labels: f"the output {verb} {_any_of(map(combination, in_order(labels)), len(labels))}")


def item_view(item: Hashable) -> View:
    # Whether a tuple contains an item, at any position.
    return View(
        lambda outcome: type(outcome) is tuple and item in outcome,
        lambda labels: f"the output {'contains' if True in labels else 'does not contain'} {text_of(item)}",
    )


def _binned(leaf: Hashable, edges: Edges) -> Label:
    number = number_of(leaf) if edges else None
    return leaf if number is None else bisect_right(edges, number)


def _bins(edges: Edges) -> int:
    return len(edges) + 1 if edges else 0


def _in_words(labels: frozenset[Label], edges: Edges) -> str:
    bins = sorted(label for label in labels if edges and type(label) is int)
    others = in_order(label for label in labels if not edges or type(label) is not int)
    breaks = [i for i in range(len(bins) + 1) if i in (0, len(bins)) or bins[i] != bins[i - 1] + 1]
    ranges = [_range(bins[start], bins[end - 1], edges) for start, end in pairwise(breaks)]
    texts = [*ranges, *("missing" if leaf == _MISSING else text_of(leaf) for leaf in others)]
    return _any_of(texts, len(texts))


def _range(first: int, last: int, edges: Edges) -> str:
    """A text for the numbers in the bins from the first to the last.

    >>> [_range(*ends, (0.0, 1.0, math.nextafter(1.0, 2))) for ends in [(0, 0), (1, 1), (2, 2), (1, 2), (3, 3), (0, 3)]]
    ['< 0.0', '>= 0.0 and < 1.0', '= 1.0', '>= 0.0 and <= 1.0', '> 1.0', 'a number']
    """
    if 0 < first == last < len(edges) and edges[last] == math.nextafter(edges[first - 1], math.inf):
        return f"= {edges[first - 1]!r}"
    ends = [_end(edges, first - 1, ">=", ">")] if first else []
    ends += [_end(edges, last, "<", "<=")] if last < len(edges) else []
    return " and ".join(ends) or "a number"


def _end(edges: Edges, place: int, alone: str, after: str) -> str:
    # A text for an edge. An edge that is the next float after another one is written as the other one.
    if place and edges[place] == math.nextafter(edges[place - 1], math.inf):
        return f"{after} {edges[place - 1]!r}"
    return f"{alone} {edges[place]!r}"


class Seen:
    # The single values that some runs had on an input and on its neighbour, by the path that leads to them.

    def __init__(self, here: Counts, there: Counts) -> None:
        self.outcomes = here, there
        leaves: dict[Path, tuple[Counts, Counts]] = defaultdict(lambda: (Counter(), Counter()))
        for side, outcomes in enumerate(self.outcomes):
            for outcome, often in _sparse(outcomes):
                for path, leaf in features(outcome):
                    leaves[path][side][leaf] += often
        self.leaves = dict(leaves)
        self.numbers = {path: (_numbers(one), _numbers(other)) for path, (one, other) in leaves.items()}
        self.many = {path for path, (one, other) in self.numbers.items() if len({*one, *other}) > _FEW}

    def fine_edges(self, path: Path) -> Edges:
        # All numbers if they are few, otherwise quantiles of both sides, spaced more closely in the tails.
        sides = self.numbers[path]
        if path not in self.many:
            return tuple(sorted({number for side in sides for number in side}))
        return _edges((number for side in sides for number in _quantiles(side, _LEVELS)), sides)

    def coarse_grid(self, edges: int) -> Grid:
        # This number of quantiles of both sides together, for each path that leads to many numbers.
        pooled = {path: self.numbers[path][0] + self.numbers[path][1] for path in self.many}
        levels = np.arange(1, edges + 1) / (edges + 1)
        return {path: _edges(_quantiles(numbers, levels), [numbers]) for path, numbers in pooled.items()}

    @cached_property
    def compared(self) -> Mapping[Path, tuple[Counts, Counts]]:
        """How often each label of each path occurred, with the numbers of paths that have many in eighths."""
        grid = self.coarse_grid(_EIGHTHS)
        labels = {path: partial(_binned, edges=grid.get(path, ())) for path in self.leaves}
        return {
            path: (labelled(one.items(), labels[path]), labelled(other.items(), labels[path]))
            for path, (one, other) in self.leaves.items()
        }


def _sparse(outcomes: Counts) -> Iterable[tuple[Hashable, int]]:
    # Outcomes with their counts: all of them, or every k-th one if they have very many parts.
    size = sum(1 for outcome in islice(outcomes, 1) for _ in features(outcome))
    return islice(outcomes.items(), 0, None, 1 + len(outcomes) * size // _MOST_LEAVES)


def _numbers(leaves: Counts) -> Counter[float]:
    numbers = labelled(leaves.items(), number_of)
    del numbers[None]
    return numbers


def _quantiles(values: Mapping[float, int], levels: npt.ArrayLike) -> list[float]:
    # The quantiles of the numbers at these levels; the smallest number at level 0 and the largest at level 1.
    if not values:
        return []
    numbers = np.array(sorted(values))
    reached = np.cumsum([values[number] for number in numbers.tolist()])
    ends = np.searchsorted(reached, np.asarray(levels) * reached[-1])
    found: list[float] = numbers[np.minimum(ends, numbers.size - 1)].tolist()
    return found


def _edges(numbers: Iterable[float], sides: Iterable[Mapping[float, int]]) -> Edges:
    # The numbers as edges. After a number that occurred more than once, the next float is an edge and ends its bin.
    kept = set(numbers)
    kept |= {math.nextafter(number, math.inf) for side in sides for number in kept if side.get(number, 0) > 1}
    return tuple(sorted(kept))


def differing_parts(seen: Seen) -> Iterable[View]:
    def distance(path: Path) -> int:
        here, there = seen.compared[path]
        return sum(abs(here[label] - there[label]) for label in {*here, *there})

    differing = sorted(seen.leaves, key=distance, reverse=True)[:_MOST_VIEWS]
    return [part_view(path, seen.fine_edges(path)) for path in differing if path or path in seen.many]


def combinations(seen: Seen) -> Iterable[View]:
    """Whole outputs, and the beginnings of tuples, with coarse bins."""
    halves, eighths = seen.coarse_grid(_HALVES), seen.coarse_grid(_EIGHTHS)
    lengths = (len(outcome) for side in seen.outcomes for outcome in side if type(outcome) is tuple)
    beginnings = range(1, min(max(lengths, default=0), _MOST_VIEWS + 1))
    return [coarse_view(grid) for grid in (halves, eighths) if grid] + [coarse_view(halves, n) for n in beginnings]


def frequent_items(seen: Seen) -> Iterable[View]:
    found: Counts = Counter()
    for path, sides in seen.leaves.items():
        if len(path) == 1 and isinstance(path[0], int) and path not in seen.many:
            for side in sides:
                found.update(side)
    return [item_view(item) for item, _ in found.most_common(_MOST_VIEWS)]


def likelihood(seen: Seen) -> Iterable[View]:
    # A naive Bayes score in bins: the sum over all parts of the log of how much likelier each is on the neighbour.
    grid = seen.coarse_grid(_EIGHTHS)
    weights = {
        (path, label): float(np.log((there[label] + 0.5) / (here[label] + 0.5)))
        for path, (here, there) in seen.compared.items()
        for label in {*here, *there}
        if here[label] + there[label] >= _LEAST_COUNT
    }

    def score(outcome: Hashable) -> float:
        return sum(weights.get((path, _binned(leaf, grid.get(path, ()))), 0.0) for path, leaf in features(outcome))

    scores = (labelled(_sparse(side), score) for side in seen.outcomes)
    edges = tuple(sorted({edge for side in scores for edge in _quantiles(side, _LEVELS)}))
    words = "the sum of the learned log-ratios of the output's parts is"
    return [
        View(
            lambda outcome: bisect_right(edges, score(outcome)),
            lambda labels: f"{words} {_in_words(labels, edges)}",
            _bins(edges),
        )
    ]


# The sorts of views of outputs that have parts. A single value has only one part.
SORTS: tuple[Callable[[Seen], Iterable[View]], ...] = (differing_parts, combinations, frequent_items, likelihood)


def learned_views(here: Counts, there: Counts, sorts: Iterable[Callable[[Seen], Iterable[View]]] = SORTS) -> list[View]:
    """The views that may distinguish two inputs, judging by these outcomes; only `WHOLE` for a few single values."""
    if len({*here, *there}) <= _FEW and not any(parts(outcome) for outcome in (*here, *there)):
        return [WHOLE]
    seen = Seen(here, there)
    useful = sorts if len(seen.leaves) > 1 else [sort for sort in sorts if sort is differing_parts]
    return [WHOLE, *(view for sort in useful for view in sort(seen))]


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
    showing = first_true(lambda others: bool(epsilon_bound(hits, others, trials, doubt) <= epsilon), -1, hits + 1)
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
