"""Made-up scores to measure with: three shapes, always the same numbers."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from benchmarks.units import power_of_ten

Scores = npt.NDArray[Any]
Shape = Literal["poisson", "winner", "zipf"]
Dtype = Literal["float64", "int64"]

SHAPES: tuple[Shape, ...] = get_args(Shape)
DTYPES: tuple[Dtype, ...] = get_args(Dtype)

_SEED = 20_201_024
_MEAN = 100
_WINNER = 2_000
_ZIPF_EXPONENT = 1.5


@dataclass(frozen=True)
class Data:
    """Which scores a row is measured on: a vector of `n`, or a matrix of `n` rows of `width`."""

    n: int
    shape: Shape = "poisson"
    dtype: Dtype = "float64"
    width: int | None = None

    @property
    def size(self) -> str:
        """The number of candidates, as the table shows it."""
        return power_of_ten(self.n) if self.width is None else f"{power_of_ten(self.n)} x {self.width}"

    def scores(self) -> Scores:
        """The scores themselves."""
        flat = _scores(self.shape, self.n * (self.width or 1), self.dtype)
        return flat if self.width is None else flat.reshape(self.n, self.width)


@lru_cache(maxsize=len(SHAPES))
def _scores(shape: Shape, n: int, dtype: Dtype) -> Scores:
    return _counts(shape, n).astype(dtype)


def _counts(shape: Shape, n: int) -> npt.NDArray[np.int64]:
    generator = np.random.default_rng(_SEED)
    if shape == "zipf":
        return generator.zipf(_ZIPF_EXPONENT, n)
    counts = generator.poisson(_MEAN, n)
    if shape == "winner":
        counts[generator.integers(n)] = _WINNER
    return counts
