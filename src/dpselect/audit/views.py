"""Coarser looks at an output, so that outputs which never come up twice can be counted.

A view gives each outcome a label, and an event is a set of labels. A number is labelled by the bin that it falls into,
which holds its lower edge and not its upper one.
"""

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Protocol

from dpselect.audit.outputs import Path, Raised, in_order, leaves, number_of, part_of, parts, rebuilt, text_of

Label = Hashable
Edges = tuple[float, ...]
Grid = Mapping[Path, Edges]  # where an output has numbers of many values, and the edges of their bins

_SHOWN = 4
_MISSING = Raised("no such part")


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
        return binned(outcome, self.edges)

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
        return rebuilt(taken, lambda path, leaf: binned(leaf, self.grid.get(path, ())))

    def describe(self, labels: frozenset[Label]) -> str:
        """Return the first few combinations, with the bounds of bins."""
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


def binned(leaf: Hashable, edges: Edges) -> Label:
    """The bin of a number, or the value itself if it is not a number or there are no bins."""
    number = number_of(leaf) if edges else None
    return leaf if number is None else bisect_right(edges, number)


def _labelled(outcome: Hashable, grid: Grid) -> Iterator[tuple[Path, Label]]:
    return ((path, binned(leaf, grid.get(path, ()))) for path, leaf in leaves(outcome))


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
