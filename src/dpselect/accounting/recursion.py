"""(epsilon, delta) of equal releases by the recursion for adaptive composition, which is exact up to its grid.

Let delta_k(x) be the largest Pr[S] - e^x Pr'[S] over k adaptively chosen releases of one family, neighbours and sets S.
If every pair of distributions of one release is a post-processing of a pair of coins with heads a and b from some
set (`Pairs`), then delta_0(x) = max(0, 1 - e^x) and

  delta_k(x) = sup of  a delta_(k-1)(x - ln(a/b)) + (1 - a) delta_(k-1)(x - ln((1 - a)/(1 - b)))  over the pairs

(theorem 8 of docs/theory.md; for bounded range: Dong, Durfee & Rogers 2020). Here upper bounds of delta_k are computed
on a grid x = 0, g, 2 g, ... Every step is rounded to the safe side:

  * The pairs on a curve are replaced by the corners of a polygon around it, which dominate it (theorem 8).
  * delta is convex in e^x, so between two points of the grid it is at most their chord.
  * delta never rises, so beyond the last point it is at most the last value.
  * For x < 0, delta(x) = 1 - e^x + e^x delta(-x): the neighbours are exchanged.
  * Losses are rounded up by `Pairs`, by more than the rounding of their places on the grid. All other terms are sums of
    products of numbers that are not negative, each with a relative error of a few units of 2**-53; 10**-14 is added.

The first two errors are of the second order in g: with g = epsilon/48 they are about one part in a thousand of epsilon.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dpselect._numbers import float_above
from dpselect._types import Floats
from dpselect.mechanisms.privacy import PrivacyLoss

_MOST_RELEASES = 1000
_SMALLEST, _LARGEST = 1e-6, 30.0  # beyond, the pure sum is as good, or the losses have too few digits
_MOST_PRODUCTS = 1e8  # of all steps, about half a second
_CELLS, _FEWEST_CELLS = 48, 4  # per epsilon, or per unit of loss if epsilon is larger than one
_ROOM = 1.25  # the grid ends at this multiple of the known epsilon, where deltas are small
_ROUNDING = 1 + 1e-14
_MARGIN = 1 + 1e-9


@lru_cache(maxsize=256)
def recursion_epsilon(loss: PrivacyLoss, epsilon: Fraction, count: int, delta: float, most: float) -> float:
    """An epsilon for `count` releases of one family, all with the same epsilon; infinite if it is not computed.

    Args:
        loss: the privacy loss of the family.
        epsilon: the epsilon of each release.
        count: the number of releases.
        delta: the failure probability.
        most: an epsilon that is already known to hold. Only smaller ones are looked for.

    Returns:
        An upper bound, or infinity: if the family has no pairs, or there are too many releases, or `most` is as good.

    >>> from dpselect.mechanisms.privacy import BOUNDED_RANGE
    >>> round(recursion_epsilon(BOUNDED_RANGE, Fraction(1, 10), 100, 1e-6, 2.42), 2)
    2.25
    """
    each = float_above(epsilon)
    if count > _MOST_RELEASES or not _SMALLEST <= each <= _LARGEST or not 0 < most < math.inf:
        return math.inf
    affordable = math.isqrt(int(_MOST_PRODUCTS * each / (count * most)))
    cells = min(affordable, math.ceil(_CELLS * max(each, 1.0)))
    if cells < _FEWEST_CELLS:
        return math.inf
    deltas = _deltas(loss, each, count, most, cells)
    return math.inf if deltas is None else _first_place(deltas, each / cells, delta) * _MARGIN


def _deltas(loss: PrivacyLoss, epsilon: float, count: int, most: float, cells: int) -> Floats | None:
    """Upper bounds of delta_count on the grid of multiples of epsilon/cells, from zero to more than `most`."""
    pairs = loss.pairs(epsilon, cells)
    if pairs is None:
        return None
    gap = epsilon / cells
    places, weights = zip(*(_dots(part, gap) for part in (pairs.high, pairs.low)), strict=True)
    masses = zip((pairs.heads, pairs.tails), weights, strict=True)
    factors = [(mass * weight)[:, None] for mass, near in masses for weight in (near, 1 - near)]
    reach = int(max(abs(place).max() for place in places)) + 1
    last = math.ceil(_ROOM * most / gap) + reach
    rows = [reach - place - later for place in places for later in (0, 1)]
    under = -gap * np.arange(reach, 0, -1)
    deltas = np.zeros(last + 1)
    for _ in range(count):
        below = -np.expm1(under) + np.exp(under) * deltas[reach:0:-1]
        windows = sliding_window_view(np.concatenate([below, deltas, np.full(reach, deltas[-1])]), last + 1)
        sums = factors[0] * windows[rows[0]]
        for factor, row in zip(factors[1:], rows[1:], strict=True):
            sums += factor * windows[row]
        deltas = sums.max(axis=0) * _ROUNDING
    return deltas


def _dots(losses: Floats, gap: float) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Floats]:
    """The chord on which a function of x - loss is bounded, for a function that is convex in e^x.

    Returns the number of cells j below each loss, and the weight of the value at x - j gap; that at x - (j + 1) gap has
    the rest.
    """
    cells = np.floor(losses / gap)
    weights = np.expm1((cells + 1) * gap - losses) / math.expm1(gap)
    return cells.astype(np.int64), np.clip(weights, 0.0, 1.0)


def _first_place(deltas: Floats, gap: float, delta: float) -> float:
    """The smallest x at which the chords of these values are at most delta; infinite if there is none."""
    found = np.flatnonzero(deltas <= delta)
    if not found.size:
        return math.inf
    after = int(found[0])
    if not after:
        return 0.0
    share = (deltas[after - 1] - delta) / (deltas[after - 1] - deltas[after])
    return (after - 1) * gap + math.log1p(math.expm1(gap) * float(share))
