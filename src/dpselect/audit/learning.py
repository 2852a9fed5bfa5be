"""Learn from some of the runs which views of an output may differ between two inputs.

These runs are not used for the test, so what is learned from them cannot bias the bound. The edges of bins are
quantiles of the observed numbers. An edge that occurred more than once gets a bin of its own.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np
import numpy.typing as npt

from dpselect.audit.outputs import Path, leaves, number_of, parts
from dpselect.audit.views import WHOLE, Coarse, Contains, Edges, Grid, Label, Likelihood, Part, View, binned

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
