"""Coarser looks at an output, learned from some runs, so that outputs which never come up twice can be counted.

A view gives each outcome a label, and an event is a set of labels. Views are learned from runs that test nothing: what
they learned cannot bend the bound. A number is labelled by the bin that it falls into, which holds its lower edge and
not its upper one. A value that came up more than once has a bin to itself where it is an edge.
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
Grid = Mapping[Path, Edges]  # where an output has numbers of many values, and the edges of their bins

_FEW = 64  # as many values need no bins
_MOST_VIEWS = 16  # of a sort: parts (those that differ most), beginnings, items
_MOST_LEAVES = 10**6  # single values that are looked at to learn the views
_LEAST_COUNT = 10  # of a label that is weighed
_COARSE = (1, 7)  # edges where several numbers are looked at together: halves and eighths
_SHOWN = 4
_MISSING = Raised("no such part")
_LEVELS = np.unique([*(np.arange(33) / 32), *(2.0 ** -np.arange(6, 20)), *(1 - 2.0 ** -np.arange(6, 20))])


class View(Protocol):
    """What gives outcomes their labels."""

    @property
    def bins(self) -> int:
        """Return how many labels are bins, 0 to bins - 1, whose order means something."""

    def __call__(self, outcome: Hashable) -> Label:
        """Return the label of an outcome."""

    def describe(self, labels: frozenset[Label]) -> str:
        """Return in words which outcomes have these labels."""


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
        """Return the first few outcomes in words."""
        return f"the output is {_any_of(map(text_of, in_order(labels)), len(labels))}"


WHOLE = Whole()


@dataclass(frozen=True)
class Part:
    """One part of an output, or a number that is all of it: in bins if it is a number."""

    path: Path
    edges: Edges

    @property
    def bins(self) -> int:
        """Return the number of bins; none where no number was seen."""
        return len(self.edges) + 1 if self.edges else 0

    def __call__(self, outcome: Hashable) -> Label:
        """Return the part, or its bin."""
        for step in self.path:
            outcome = part_of(outcome, step, _MISSING)
        return _binned(outcome, self.edges)

    def describe(self, labels: frozenset[Label]) -> str:
        """Return the place, and the values or the bounds of the bins."""
        place = "".join(f"[{text_of(step)}]" for step in self.path)
        return f"output{place} is {_in_words(labels, self.edges)}"


@dataclass(frozen=True)
class Coarse:
    """The output, or the beginning of a tuple, with numbers of many values in a few bins."""

    grid: Grid = field(repr=False)
    length: int | None = None  # of the beginning

    @property
    def bins(self) -> int:
        """Return zero: combinations have no order."""
        return 0

    def __call__(self, outcome: Hashable) -> Label:
        """Return the outcome with bins for numbers."""
        taken = outcome[: self.length] if isinstance(outcome, tuple) else outcome
        return rebuilt(taken, lambda path, leaf: _binned(leaf, self.grid.get(path, ())))

    def describe(self, labels: frozenset[Label]) -> str:
        """Return what is looked at, and the first few values where no number is in bins."""
        if not self.grid:
            return f"the output begins with {_any_of(map(text_of, in_order(labels)), len(labels))}"
        what = "the output" if self.length is None else f"the beginning of length {self.length} of the output"
        return f"{what}, with numbers in bins, is one of {len(labels)} combinations of values"


@dataclass(frozen=True)
class Contains:
    """Whether a tuple has an item, wherever it is."""

    item: Hashable

    @property
    def bins(self) -> int:
        """Return zero: yes and no have no order."""
        return 0

    def __call__(self, outcome: Hashable) -> Label:
        """Return whether the item is there."""
        return isinstance(outcome, tuple) and self.item in outcome

    def describe(self, labels: frozenset[Label]) -> str:
        """Return the item, and whether it is there."""
        return f"the output {'contains' if True in labels else 'does not contain'} {text_of(self.item)}"


@dataclass(frozen=True)
class Likelihood:
    """The sum over all parts of how much likelier each is on the neighbour (naive Bayes), in bins."""

    grid: Grid = field(repr=False)
    weights: Mapping[tuple[Path, Label], float] = field(repr=False)
    edges: Edges = ()

    @property
    def bins(self) -> int:
        """Return the number of bins."""
        return len(self.edges) + 1 if self.edges else 0

    def score(self, outcome: Hashable) -> float:
        """Return the sum."""
        return sum(self.weights.get((path, label), 0.0) for path, label in _labelled(outcome, self.grid))

    def __call__(self, outcome: Hashable) -> Label:
        """Return the bin of the sum."""
        return bisect_right(self.edges, self.score(outcome))

    def describe(self, labels: frozenset[Label]) -> str:
        """Return the bounds of the bins."""
        return f"the sum of the learned log-ratios of the output's parts is {_in_words(labels, self.edges)}"


def learned_views(here: Counter[Hashable], there: Counter[Hashable]) -> list[View]:
    """The views that may tell two inputs apart, as these outcomes suggest; of a few single values, only the whole."""
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


def _binned(leaf: Hashable, edges: Edges) -> Label:
    number = number_of(leaf) if edges else None
    return leaf if number is None else bisect_right(edges, number)


def _labelled(outcome: Hashable, grid: Grid) -> Iterator[tuple[Path, Label]]:
    return ((path, _binned(leaf, grid.get(path, ()))) for path, leaf in leaves(outcome))


# What some runs had at each place of an output, on the one input and on its neighbour.


@dataclass(frozen=True, repr=False)
class _Values:
    counts: Counter[Hashable] = field(default_factory=Counter)

    @cached_property
    def values(self) -> dict[float, int]:
        """How often each number came up."""
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
    """Outcomes with their counts: all of them, or evenly fewer where they have very many parts."""
    size = sum(1 for outcome in islice(outcomes, 1) for _ in leaves(outcome))
    return islice(outcomes.items(), 0, None, 1 + len(outcomes) * size // _MOST_LEAVES)


def _compared(found: _Found, edges: Edges) -> tuple[Counter[Label], Counter[Label]]:
    """How often each label of a place came up."""
    labels: tuple[Counter[Label], Counter[Label]] = (Counter(), Counter())
    for side, seen in zip(labels, found, strict=True):
        for leaf, often in seen.counts.items():
            side[_binned(leaf, edges)] += often
    return labels


def _distance(here: Counter[Label], there: Counter[Label]) -> int:
    return sum(abs(here[label] - there[label]) for label in {*here, *there})


def _quantiles(values: Mapping[float, int], levels: npt.ArrayLike) -> list[float]:
    """The smallest numbers that are not below so much of all; the smallest and the largest for zero and one."""
    if not values:
        return []
    numbers = np.array(sorted(values))
    reached = np.cumsum([values[number] for number in numbers.tolist()])
    ends = np.searchsorted(reached, np.asarray(levels) * reached[-1])
    found: list[float] = numbers[np.minimum(ends, numbers.size - 1)].tolist()
    return found


def _edges(numbers: Iterable[float], sides: Iterable[Mapping[float, int]]) -> Edges:
    """The numbers, and after those that came up more than once on a side the next float, which ends their own bin."""
    kept = set(numbers)
    kept |= {math.nextafter(number, math.inf) for side in sides for number in kept if side.get(number, 0) > 1}
    return tuple(sorted(kept))


def _fine_edges(found: _Found) -> Edges:
    """All values if they are few, else quantiles of both sides, closer to each other in the tails."""
    sides = [seen.values for seen in found]
    numbers = {number for side in sides for number in side}
    if len(numbers) <= _FEW:
        return tuple(sorted(numbers))
    return _edges((number for side in sides for number in _quantiles(side, _LEVELS)), sides)


def _coarse_edges(found: _Found, edges: int) -> Edges:
    """So many quantiles of both sides together."""
    pooled = Counter(found[0].values)
    pooled.update(found[1].values)
    return _edges(_quantiles(pooled, np.arange(1, edges + 1) / (edges + 1)), [pooled])


def _lengths(here: Counter[Hashable], there: Counter[Hashable]) -> range:
    """The lengths of beginnings of tuples."""
    longest = max((len(outcome) for outcome in (*here, *there) if isinstance(outcome, tuple)), default=0)
    return range(1, min(longest, _MOST_VIEWS + 1))


def _items(places: Mapping[Path, _Found], many: Mapping[Path, _Found]) -> list[Hashable]:
    """What comes up most in tuples of values that come up more than once."""
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


# Words


def _any_of(texts: Iterable[str], total: int) -> str:
    shown = list(islice(texts, _SHOWN))
    return " or ".join(shown) + (f" or one of {total - len(shown):,} more" if total > len(shown) else "")


def _in_words(labels: frozenset[Label], edges: Edges) -> str:
    """Bins as ranges of numbers, and other labels as they are."""
    bins = sorted(label for label in labels if edges and type(label) is int)
    others = in_order(label for label in labels if not edges or type(label) is not int)
    breaks = [i for i in range(len(bins) + 1) if i in (0, len(bins)) or bins[i] != bins[i - 1] + 1]
    ranges = [_range(bins[start], bins[end - 1], edges) for start, end in pairwise(breaks)]
    texts = [*ranges, *map(_part_text, others)]
    return _any_of(texts, len(texts))


def _part_text(leaf: Hashable) -> str:
    return "missing" if leaf == _MISSING else text_of(leaf)


def _range(first: int, last: int, edges: Edges) -> str:
    """The numbers of the bins from the first to the last.

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
    """An edge in words: the successor of the edge before it is that edge, from the other side."""
    if place and edges[place] == math.nextafter(edges[place - 1], math.inf):
        return f"{after} {edges[place - 1]!r}"
    return f"{alone} {edges[place]!r}"
