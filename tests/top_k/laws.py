"""The probability of every answer of a top-k, by brute force, from a method, the mechanism that draws, and counts.

Nothing here is shared with what draws, but the probabilities of single selections (`pmf`). A method states only public
numbers: k, whether the answer is ordered, and whether the candidates that are left out are chosen instead.

An order of noisy counts has a density at the noise of its last candidate: that of its own noise, times the probability
that those before have more and that all others have less. It is positive, so nothing cancels, and smooth between a few
edges. Only the first one or two candidates are needed here.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np

from dpselect import PermuteAndFlip
from dpselect.mechanisms.base import MechanismBase
from dpselect.top_k import Margin, Method, NoisyCounts, OneShot, Peel, Set
from tests.top_k.exact import margin, total

Law = dict[tuple[int, ...], float]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_FAR = 80.0  # beyond that, Laplace noise has no weight that matters


def law_of(method: Method, mechanism: MechanismBase, counts: Sequence[int]) -> Law:
    """The probability of every answer: positions in order, or ascending if the answer is not ordered."""
    if isinstance(method, (Set, Margin)):
        sizes = method.sizes if isinstance(method, Margin) else (method.k, method.k)
        score = margin if isinstance(method, Margin) else total
        answers = [own for k in range(sizes[0], sizes[1] + 1) for own in combinations(range(len(counts)), k)]
        found = mechanism.pmf([score(tuple(counts), own) for own in answers])
        return dict(zip(answers, found.tolist(), strict=True))
    if isinstance(method, NoisyCounts):
        return _as_answers(laplace_orders(counts, float(mechanism.rate), method.k), method)
    assert isinstance(method, (OneShot, Peel))
    leaves_out = not method.ordered and 2 * method.k > method.candidates
    scores = [-count for count in counts] if leaves_out else list(counts)
    size = len(counts) - method.k if leaves_out else method.k
    orders = peeled_orders(scores, mechanism, size) if isinstance(method, Peel) else _one_shot(scores, mechanism, size)
    if leaves_out:
        everyone = set(range(len(counts)))
        return _sums(orders, lambda out: tuple(sorted(everyone.difference(out))))
    return _as_answers(orders, method)


def _as_answers(orders: Law, method: Method) -> Law:
    return orders if method.ordered else _sums(orders, lambda order: tuple(sorted(order)))


def _sums(orders: Law, answer: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Law:
    found: Law = {}
    for order, probability in orders.items():
        found[answer(order)] = found.get(answer(order), 0.0) + probability
    return found


def peeled_orders(scores: Sequence[int], mechanism: MechanismBase, k: int) -> Law:
    """One selection after another, each among those that are left."""
    found: Law = {(): 1.0}
    for _ in range(k):
        longer: Law = {}
        for taken, probability in found.items():
            left = [place for place in range(len(scores)) if place not in taken]
            for place, own in zip(left, mechanism.pmf([scores[i] for i in left]).tolist(), strict=True):
                longer[*taken, place] = probability * own
        found = longer
    return found


def _one_shot(scores: Sequence[int], mechanism: MechanismBase, k: int) -> Law:
    assert isinstance(mechanism, PermuteAndFlip)
    return exponential_orders(scores, float(mechanism.rate), k)


def exponential_orders(scores: Sequence[int], rate: float, k: int) -> Law:
    """The order of the k largest of scores with exponential noise: the first arrivals, uniform on [0, 1/p] each."""
    coins = np.exp(-rate * (max(scores) - np.array(scores, float)))
    edges = [0.0, *sorted({1 / own for own in coins.tolist()})]

    def arrived(place: int, t: Any) -> Any:
        return np.minimum(coins[place] * t, 1.0)

    def density(place: int, t: Any) -> Any:
        return np.where(coins[place] * t <= 1.0, coins[place], 0.0)

    return _orders(len(scores), k, edges, density, arrived, lambda place, t: 1.0 - arrived(place, t))


def laplace_orders(scores: Sequence[int], rate: float, k: int) -> Law:
    """The order of the k largest of scores with Laplace noise. Time is the negated noisy score."""
    means = -rate * np.array(scores, float)
    edges = sorted({*means.tolist(), min(means) - _FAR, max(means) + _FAR})

    def below(place: int, t: Any) -> Any:
        """The probability that the noise is less than t: precise in both tails."""
        x = t - means[place]
        return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)

    def density(place: int, t: Any) -> Any:
        return np.exp(-np.abs(t - means[place])) / 2

    def above(place: int, t: Any) -> Any:
        x = t - means[place]
        return np.where(x > 0, np.exp(-np.maximum(x, 0)) / 2, 1 - np.exp(np.minimum(x, 0)) / 2)

    return _orders(len(scores), k, edges, density, below, above)


_Function = Callable[[int, Any], Any]


def _orders(size: int, k: int, edges: Sequence[float], density: _Function, before: _Function, after: _Function) -> Law:
    """The first k of independent times in order, k at most two: an integral over the time of the last of them."""
    assert 1 <= k <= 2
    panels = [_panels(*cell) for cell in pairwise(edges)]
    t, weights = (np.concatenate(part) for part in zip(*panels, strict=True))
    found = {}
    for order in permutations(range(size), k):
        value = density(order[-1], t)
        for place in order[:-1]:
            value = value * before(place, t)
        for place in set(range(size)) - set(order):
            value = value * after(place, t)
        found[order] = float((value * weights).sum())
    return found


def _panels(left: float, right: float) -> tuple[Any, Any]:
    """Nodes and weights of a quadrature that is exact for what is smooth over a few units."""
    steps = min(max(1, math.ceil((right - left) / 4)), 40)
    ends = np.linspace(left, right, steps + 1)
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + _NODES)).ravel(), (half * _WEIGHTS).ravel()
