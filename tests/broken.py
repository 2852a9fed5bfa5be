"""Mechanisms that are wrong on purpose. Each is a mistake that a real implementation has made; the suite must catch it.

They work in floats on rows of scores, so that a statistical test can afford many draws. For a handful of candidates
`pmf` follows every order that `order` may draw, so that a check of probabilities can judge them too. Those at the end
are right on harmless scores, and fail on the scores of `tests/attacks`.
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
        with np.errstate(over="ignore"):
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
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            weights = np.exp(self.rate() * np.minimum(scores, 700))
            return GENERATOR.random(scores.shape) < weights / weights.max(axis=1, keepdims=True)

    def coins(self, scores: Matrix) -> Matrix:
        with np.errstate(over="ignore", under="ignore"):
            weights = np.exp(self.rate() * np.minimum(scores, 700))
        return weights / weights.max() if weights.max() else weights


class RoundedScores(PlainPermuteAndFlip):
    """Takes integers beyond 2**53 through float64."""


BROKEN = [BiasedShuffle, RateOffByOnePercent, HalfTheSensitivity, TiesToTheFirst, UnderflowingExp, RoundedScores]


# Right on harmless scores. The attacks are made for them.


@dataclass(frozen=True)
class FloatRate(PlainPermuteAndFlip):
    """Computes c = epsilon / (2 sensitivity) and the gaps in floats: either may be infinite, or zero times infinite."""

    sensitivity: float = 1.0

    def rate(self) -> float:
        with np.errstate(over="ignore"):
            return float(np.float64(self.epsilon) / (2 * np.float64(self.sensitivity)))

    def heads(self, scores: Matrix) -> npt.NDArray[np.bool_]:
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = scores.max(axis=1, keepdims=True) - scores
            return (gaps == 0) | (GENERATOR.random(scores.shape) < np.exp(-self.rate() * gaps))


@dataclass(frozen=True)
class FloatNoise:
    """Report noisy max as it is often written: the argmax of floats with floating-point noise."""

    epsilon: float

    def select_rows(self, scores: npt.NDArray) -> npt.NDArray[np.int64]:
        return (scores + GENERATOR.laplace(scale=2 / self.epsilon, size=scores.shape)).argmax(axis=1)


@dataclass(frozen=True)
class WrappingWeights:
    """The exponential mechanism by `choice`, with differences in the type of the scores, which wrap around."""

    epsilon: float

    def select(self, scores: npt.NDArray) -> int:
        with np.errstate(over="ignore", invalid="ignore"):
            weights = np.exp(self.epsilon / 2 * (scores - scores.max()))
            return int(GENERATOR.choice(len(scores), p=weights / weights.sum()))


@dataclass(frozen=True)
class SingleSums:
    """The exponential mechanism by a cumulative sum in float32, in which a tiny weight after a large one is lost."""

    epsilon: float

    def sums(self, scores: npt.NDArray) -> npt.NDArray[np.float32]:
        weights = np.exp(self.epsilon / 2 * (scores - scores.max())).astype(np.float32)
        return np.cumsum(weights, dtype=np.float32)

    def select(self, scores: npt.NDArray) -> int:
        sums = self.sums(scores)
        return int(np.searchsorted(sums, GENERATOR.random() * sums[-1], side="right"))

    def pmf_of_first(self, scores: npt.NDArray) -> float:
        sums = self.sums(scores)
        return float(sums[0]) / float(sums[-1])


@dataclass(frozen=True)
class Percentages:
    """Rescales the scores to 0..100 of their own range first: that range is private, and may be zero."""

    epsilon: float

    def select(self, scores: npt.NDArray) -> int:
        with np.errstate(invalid="ignore"):
            percent = 100 * (scores - scores.min()) / (scores.max() - scores.min())
        return WrappingWeights(self.epsilon).select(percent)


class MaximumByBits(PlainPermuteAndFlip):
    """Finds the maximum by the bits of the floats, which are in order only where no sign bit is set."""

    def heads(self, scores: Matrix) -> npt.NDArray[np.bool_]:
        best = np.ascontiguousarray(scores).view(np.uint64).max(axis=1, keepdims=True).view(np.float64)
        with np.errstate(over="ignore"):
            return GENERATOR.random(scores.shape) < np.exp(-self.rate() * (best - scores))
