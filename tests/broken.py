"""Mechanisms that are wrong on purpose. Each is a mistake that a real implementation has made; the suite must catch it.

They work in floats on rows of scores, so that a statistical test can afford many draws. For a handful of candidates
`pmf` follows every order that `order` may draw, so that a check of probabilities can judge them too.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
GENERATOR = np.random.default_rng()


@dataclass(frozen=True)
class PlainPermuteAndFlip:
    """Permute-and-flip in floats, without a mistake on harmless scores: the control of the broken ones."""

    epsilon: float

    def rate(self) -> float:
        return self.epsilon / 2

    def heads(self, scores: Matrix) -> npt.NDArray[np.bool_]:
        gaps = scores.max(axis=1, keepdims=True) - scores
        return GENERATOR.random(scores.shape) < np.exp(-self.rate() * gaps)

    def order(self, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        return GENERATOR.permuted(np.broadcast_to(np.arange(shape[1]), shape), axis=1)

    def select_rows(self, scores: npt.ArrayLike) -> npt.NDArray[np.int64]:
        scores = np.asarray(scores, dtype=np.float64)
        order, rows = self.order(scores.shape), np.arange(len(scores))
        first = np.take_along_axis(self.heads(scores), order, axis=1).argmax(axis=1)
        return order[rows, first]

    sensitivity, monotonic = 1, False  # what it claims

    def coins(self, scores: Matrix) -> Matrix:
        """The probability of heads of each candidate, as `heads` flips them."""
        return np.exp(-self.rate() * (scores.max() - scores))

    def orders(self, size: int) -> Counter[tuple[int, ...]]:
        """How often each order is drawn."""
        return Counter(permutations(range(size)))

    def pmf(self, scores: Sequence[float | Fraction]) -> Matrix:
        """The probability of selecting each candidate, as `select_rows` does: without any head the order's first."""
        coins = self.coins(np.array([float(score) for score in scores]))
        orders = self.orders(coins.size)
        pmf = np.zeros(coins.size)
        for order, often in orders.items():
            all_tails = often / orders.total()
            for candidate in order:
                pmf[candidate] += all_tails * coins[candidate]
                all_tails *= 1 - coins[candidate]
            pmf[order[0]] += all_tails
        return pmf


class BiasedShuffle(PlainPermuteAndFlip):
    """Swaps every position with any position, not with the rest: the classical wrong shuffle."""

    def order(self, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        order, rows = np.tile(np.arange(shape[1]), (shape[0], 1)), np.arange(shape[0])
        for i in range(shape[1]):
            j = GENERATOR.integers(shape[1], size=shape[0])
            order[rows, j], order[rows, i] = order[rows, i], order[rows, j]
        return order

    def orders(self, size: int) -> Counter[tuple[int, ...]]:
        drawn: Counter[tuple[int, ...]] = Counter()
        for swaps in product(range(size), repeat=size):
            order = list(range(size))
            for i, j in enumerate(swaps):
                order[j], order[i] = order[i], order[j]
            drawn[tuple(order)] += 1
        return drawn


class RateOffByOnePercent(PlainPermuteAndFlip):
    """The constant c of exp(-c gap) is one percent too large."""

    def rate(self) -> float:
        return 1.01 * super().rate()


class HalfTheSensitivity(PlainPermuteAndFlip):
    """Forgets the factor two of scores that may move in both directions."""

    def rate(self) -> float:
        return 2 * super().rate()


class TiesToTheFirst(PlainPermuteAndFlip):
    """Returns the first head by position instead of a random one."""

    def order(self, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        return np.broadcast_to(np.arange(shape[1]), shape)

    def orders(self, size: int) -> Counter[tuple[int, ...]]:
        return Counter([tuple(range(size))])


class UnderflowingExp(PlainPermuteAndFlip):
    """Computes exp(c q) without subtracting the maximum first, so that low scores have weight zero."""

    def heads(self, scores: Matrix) -> npt.NDArray[np.bool_]:
        weights = np.exp(self.rate() * np.minimum(scores, 700))
        return GENERATOR.random(scores.shape) * weights.max(axis=1, keepdims=True) < weights

    def coins(self, scores: Matrix) -> Matrix:
        with np.errstate(under="ignore"):
            weights = np.exp(self.rate() * np.minimum(scores, 700))
        return weights / weights.max() if weights.max() else weights


class RoundedScores(PlainPermuteAndFlip):
    """Takes integers beyond 2**53 through float64."""


BROKEN = [BiasedShuffle, RateOffByOnePercent, HalfTheSensitivity, TiesToTheFirst, UnderflowingExp, RoundedScores]
