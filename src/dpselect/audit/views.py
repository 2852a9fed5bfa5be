"""Coarser views of an output, so that outputs that never repeat can be counted, and how they are learned.

A view gives each outcome a label, and an event is a set of labels. The label of a number is its bin, which includes its
lower edge but not its upper one.

Some of the runs show which views may differ between two inputs (`learned_views`). These runs are not used for the test,
so what is learned from them cannot bias the bound. The edges of bins are quantiles of the observed numbers. An edge
that occurred more than once gets a bin of its own.
"""

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dpselect.audit.outputs import Path, Raised, in_order, leaves, number_of, part_of, parts, rebuilt, text_of

Label = Hashable
Edges = tuple[float, ...]
Grid = Mapping[Path, Edges]  # the edges of the bins, for each place where an output has many different numbers

_SHOWN = 4
_MISSING = Raised("no such part")


class View(Protocol):
    """A function that labels outcomes."""

    @property
    def bins(self) -> int:
        """Return how many labels are bins, numbered from 0 in the order of their numbers."""

    def __call__(self, outcome: Hashable) -> Label:
        """Return the label of an outcome."""

    def describe(self, labels: frozenset[Label]) -> str:
        """Return a text that says which outcomes have these labels."""


@dataclass(frozen=True)
class Whole:
    """The outcome itself."""

    @property
    def bins(self) -> int:
        """Return zero: outcomes have no order."""
        return 0

    def __call__(self, outcome: Hashable) -> Label:
        """Return the outcome."""
        return outcome

    def describe(self, labels: frozenset[Label]) -> str:
        """Return a text that lists the first few outcomes."""
        return f"the output is {_any_of(map(text_of, in_order(labels)), len(labels))}"


WHOLE = Whole()


@dataclass(frozen=True)
class Part:
    """One part of an output, or the output itself if it is a number. Numbers are put into bins."""

    path: Path
    edges: Edges

    @property
    def bins(self) -> int:
        """Return the number of bins; zero if no number was observed."""
        return len(self.edges) + 1 if self.edges else 0

    def __call__(self, outcome: Hashable) -> Label:
        """Return the part, or its bin."""
        for step in self.path:
            outcome = part_of(outcome, step, _MISSING)
        return binned(outcome, self.edges)

    def describe(self, labels: frozenset[Label]) -> str:
        """Return a text with the path, and the values or the bounds of the bins."""
        place = "".join(f"[{text_of(step)}]" for step in self.path)
        return f"output{place} is {_in_words(labels, self.edges)}"


@dataclass(frozen=True)
class Coarse:
    """The output, or the beginning of a tuple, with each number that varies a lot put into a few bins."""

    grid: Grid = field(repr=False)
    length: int | None = None  # of the beginning

    @property
    def bins(self) -> int:
        """Return zero: combinations have no order."""
        return 0

    def __call__(self, outcome: Hashable) -> Label:
        """Return the outcome with bins in place of numbers."""
        taken = outcome[: self.length] if isinstance(outcome, tuple) else outcome
        return rebuilt(taken, lambda path, leaf: binned(leaf, self.grid.get(path, ())))

    def describe(self, labels: frozenset[Label]) -> str:
        """Return a text that lists the first few combinations, with the bounds of their bins."""
        texts = (self._combination(label) for label in in_order(labels))
        return f"the output {'is' if self.length is None else 'begins with'} {_any_of(texts, len(labels))}"

    def _combination(self, label: Label) -> str:
        found = [self._value(path, leaf) for path, leaf in leaves(label)] if parts(label) else [text_of(label)]
        return f"({', '.join(found)})" if parts(label) else found[0]

    def _value(self, path: Path, leaf: Label) -> str:
        name = "".join(f"{text_of(step)}: " for step in path if not isinstance(step, int))
        edges = self.grid.get(path)
        return name + (_range(leaf, leaf, edges) if edges and isinstance(leaf, int) else text_of(leaf))


@dataclass(frozen=True)
class Contains:
    """Whether a tuple contains an item, at any position."""

    item: Hashable

    @property
    def bins(self) -> int:
        """Return zero: yes and no have no order."""
        return 0

    def __call__(self, outcome: Hashable) -> Label:
        """Return whether the outcome contains the item."""
        return isinstance(outcome, tuple) and self.item in outcome

    def describe(self, labels: frozenset[Label]) -> str:
        """Return a text that names the item and says whether it is contained."""
        return f"the output {'contains' if True in labels else 'does not contain'} {text_of(self.item)}"


@dataclass(frozen=True)
class Likelihood:
    """A naive Bayes score in bins: the sum over all parts of the log of how much likelier each is on the neighbour."""

    grid: Grid = field(repr=False)
    weights: Mapping[tuple[Path, Label], float] = field(repr=False)
    edges: Edges = ()

    @property
    def bins(self) -> int:
        """Return the number of bins."""
        return len(self.edges) + 1 if self.edges else 0

    def score(self, outcome: Hashable) -> float:
        """Return the sum of the log-ratios of the parts."""
        return sum(self.weights.get((path, label), 0.0) for path, label in _labelled(outcome, self.grid))

    def __call__(self, outcome: Hashable) -> Label:
        """Return the bin of the sum."""
        return bisect_right(self.edges, self.score(outcome))

    def describe(self, labels: frozenset[Label]) -> str:
        """Return a text with the bounds of the bins."""
        return f"the sum of the learned log-ratios of the output's parts is {_in_words(labels, self.edges)}"


def binned(leaf: Hashable, edges: Edges) -> Label:
    """The bin of a number; the value itself if it is not a number or there are no bins."""
    number = number_of(leaf) if edges else None
    return leaf if number is None else bisect_right(edges, number)


def _labelled(outcome: Hashable, grid: Grid) -> Iterator[tuple[Path, Label]]:
    return ((path, binned(leaf, grid.get(path, ()))) for path, leaf in leaves(outcome))


def _any_of(texts: Iterable[str], total: int) -> str:
    shown = list(islice(texts, _SHOWN))
    return " or ".join(shown) + (f" or one of {total - len(shown):,} more" if total > len(shown) else "")


def _in_words(labels: frozenset[Label], edges: Edges) -> str:
    """A text for labels: ranges of numbers for bins, and other labels as they are."""
    bins = sorted(label for label in labels if edges and type(label) is int)
    others = in_order(label for label in labels if not edges or type(label) is not int)
    breaks = [i for i in range(len(bins) + 1) if i in (0, len(bins)) or bins[i] != bins[i - 1] + 1]
    ranges = [_range(bins[start], bins[end - 1], edges) for start, end in pairwise(breaks)]
    texts = [*ranges, *map(_part_text, others)]
    return _any_of(texts, len(texts))


def _part_text(leaf: Hashable) -> str:
    return "missing" if leaf == _MISSING else text_of(leaf)


def _range(first: int, last: int, edges: Edges) -> str:
    """A text for the numbers in the bins from the first to the last.

    >>> [_range(*ends, (0.0, 1.0, math.nextafter(1.0, 2))) for ends in [(0, 0), (1, 1), (2, 2), (1, 2), (3, 3), (0, 3)]]
    ['< 0.0', '>= 0.0 and < 1.0', '= 1.0', '>= 0.0 and <= 1.0', '> 1.0', 'a number']
    """
    low = None if first == 0 else edges[first - 1]
    high = None if last == len(edges) else edges[last]
    if low is not None and high == math.nextafter(low, math.inf):
        return f"= {low!r}"
    ends = [low is not None and _end(edges, first - 1, ">=", ">"), high is not None and _end(edges, last, "<", "<=")]
    return " and ".join(end for end in ends if end) or "a number"


def _end(edges: Edges, place: int, alone: str, after: str) -> str:
    """A text for an edge. An edge that is the next float after another one is written as the other one."""
    if place and edges[place] == math.nextafter(edges[place - 1], math.inf):
        return f"{after} {edges[place - 1]!r}"
    return f"{alone} {edges[place]!r}"


_FEW = 64  # up to this many different values need no bins
_MOST_VIEWS = 16  # of each sort: parts (those that differ most), beginnings, items
_MOST_LEAVES = 10**6  # single values that are read to learn the views
_LEAST_COUNT = 10  # a rarer label gets no weight
_COARSE = (1, 7)  # edges per number where several numbers are combined: halves and eighths
_LEVELS = np.unique([*(np.arange(33) / 32), *(2.0 ** -np.arange(6, 20)), *(1 - 2.0 ** -np.arange(6, 20))])


def learned_views(here: Counter[Hashable], there: Counter[Hashable]) -> list[View]:
    """The views that may distinguish two inputs, judging by these outcomes; only `WHOLE` for a few single values."""
    if len({*here, *there}) <= _FEW and not any(parts(outcome) for outcome in (*here, *there)):
        return [WHOLE]
    places = _places(here, there)
    many = {path: found for path, found in places.items() if len({*found[0].values, *found[1].values}) > _FEW}
    grids = [{path: _coarse_edges(found, edges) for path, found in many.items()} for edges in _COARSE]
    compared = {path: _compared(found, grids[-1].get(path, ())) for path, found in places.items()}
    differing = sorted(places, key=lambda path: _distance(*compared[path]), reverse=True)[:_MOST_VIEWS]
    views: list[View] = [WHOLE, *(Part(path, _fine_edges(places[path])) for path in differing if path or path in many)]
    if len(places) > 1:
        views += [Coarse(grid) for grid in grids if grid]
        views += [Coarse(grids[0], length) for length in _lengths(here, there)]
        views += [Contains(item) for item in _items(places, many)]
        views.append(_likelihood(grids[-1], compared, here, there))
    return views


# The values that were observed at each place of an output, on the input and on its neighbour.


@dataclass(frozen=True, repr=False)
class _Values:
    counts: Counter[Hashable] = field(default_factory=Counter)

    @cached_property
    def values(self) -> dict[float, int]:
        """How often each number occurred."""
        numbers: dict[float, int] = defaultdict(int)
        for leaf, often in self.counts.items():
            number = number_of(leaf)
            if number is not None:
                numbers[number] += often
        return numbers


_Found = tuple[_Values, _Values]


def _places(here: Counter[Hashable], there: Counter[Hashable]) -> dict[Path, _Found]:
    places: dict[Path, _Found] = defaultdict(lambda: (_Values(), _Values()))
    for side, outcomes in enumerate((here, there)):
        for outcome, often in _sparse(outcomes):
            for path, leaf in leaves(outcome):
                places[path][side].counts[leaf] += often
    return dict(places)


def _sparse(outcomes: Counter[Hashable]) -> Iterator[tuple[Hashable, int]]:
    """Outcomes with their counts: all of them, or every k-th one if they have very many parts."""
    size = sum(1 for outcome in islice(outcomes, 1) for _ in leaves(outcome))
    return islice(outcomes.items(), 0, None, 1 + len(outcomes) * size // _MOST_LEAVES)


def _compared(found: _Found, edges: Edges) -> tuple[Counter[Label], Counter[Label]]:
    """How often each label of a place occurred."""
    labels: tuple[Counter[Label], Counter[Label]] = (Counter(), Counter())
    for side, seen in zip(labels, found, strict=True):
        for leaf, often in seen.counts.items():
            side[binned(leaf, edges)] += often
    return labels


def _distance(here: Counter[Label], there: Counter[Label]) -> int:
    return sum(abs(here[label] - there[label]) for label in {*here, *there})


def _quantiles(values: Mapping[float, int], levels: npt.ArrayLike) -> list[float]:
    """The quantiles of the numbers at these levels; the smallest number at level 0 and the largest at level 1."""
    if not values:
        return []
    numbers = np.array(sorted(values))
    reached = np.cumsum([values[number] for number in numbers.tolist()])
    ends = np.searchsorted(reached, np.asarray(levels) * reached[-1])
    found: list[float] = numbers[np.minimum(ends, numbers.size - 1)].tolist()
    return found


def _edges(numbers: Iterable[float], sides: Iterable[Mapping[float, int]]) -> Edges:
    """The numbers as edges. After a number that occurred more than once, the next float is an edge and ends its bin."""
    kept = set(numbers)
    kept |= {math.nextafter(number, math.inf) for side in sides for number in kept if side.get(number, 0) > 1}
    return tuple(sorted(kept))


def _fine_edges(found: _Found) -> Edges:
    """All values if they are few, otherwise quantiles of both sides, spaced more closely in the tails."""
    sides = [seen.values for seen in found]
    numbers = {number for side in sides for number in side}
    if len(numbers) <= _FEW:
        return tuple(sorted(numbers))
    return _edges((number for side in sides for number in _quantiles(side, _LEVELS)), sides)


def _coarse_edges(found: _Found, edges: int) -> Edges:
    """This number of quantiles of both sides together."""
    pooled = Counter(found[0].values)
    pooled.update(found[1].values)
    return _edges(_quantiles(pooled, np.arange(1, edges + 1) / (edges + 1)), [pooled])


def _lengths(here: Counter[Hashable], there: Counter[Hashable]) -> range:
    """The lengths of the beginnings of tuples that become views."""
    longest = max((len(outcome) for outcome in (*here, *there) if isinstance(outcome, tuple)), default=0)
    return range(1, min(longest, _MOST_VIEWS + 1))


def _items(places: Mapping[Path, _Found], many: Mapping[Path, _Found]) -> list[Hashable]:
    """The most frequent items of tuples whose values repeat."""
    seen: Counter[Hashable] = Counter()
    for path, found in places.items():
        if len(path) == 1 and isinstance(path[0], int) and path not in many:
            seen.update(found[0].counts)
            seen.update(found[1].counts)
    return [item for item, _ in seen.most_common(_MOST_VIEWS)]


def _likelihood(
    grid: Grid,
    compared: Mapping[Path, tuple[Counter[Label], Counter[Label]]],
    here: Counter[Hashable],
    there: Counter[Hashable],
) -> Likelihood:
    weights = {
        (path, label): float(np.log((there_seen[label] + 0.5) / (here_seen[label] + 0.5)))
        for path, (here_seen, there_seen) in compared.items()
        for label in {*here_seen, *there_seen}
        if here_seen[label] + there_seen[label] >= _LEAST_COUNT
    }
    rough = Likelihood(grid, weights)
    edges: set[float] = set()
    for side in (here, there):
        scores: dict[float, int] = defaultdict(int)
        for outcome, often in _sparse(side):
            scores[rough.score(outcome)] += often
        edges |= {*_quantiles(scores, _LEVELS)}
    return Likelihood(grid, weights, tuple(sorted(edges)))
