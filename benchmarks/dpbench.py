"""The DPBench histograms (Hay et al. 2016) with all of their 4,096 bins, if DPSELECT_DPBENCH names their folder."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.contestant import NotAvailable
from benchmarks.scores import Data, Dtype, Scores
from benchmarks.units import power_of_ten
from dpselect.research.datasets import SUMS, VARIABLE, file_name

NAMES = tuple(SUMS)
_SEED = 1


def histogram(name: str) -> Scores:
    """The counts of a data set."""
    folder = os.environ.get(VARIABLE)
    path = Path(folder or "", file_name(name))
    if not folder or not path.is_file():
        raise NotAvailable(f"no data: name their folder by {VARIABLE}")
    return np.load(path, allow_pickle=False).astype(np.int64)


@dataclass(frozen=True)
class Shape(Data):
    """Scores with the shape of a data set, for any number of candidates: quantiles of its counts, in random order.

    Of the sorted counts, n are taken at equal steps, interpolated between neighbours and rounded. So the share of
    candidates above each count is that of the data set.
    """

    name: str = ""
    dtype: Dtype = "int64"

    @property
    def size(self) -> str:
        """The number of candidates."""
        return power_of_ten(self.n)

    def scores(self) -> Scores:
        """The scores themselves."""
        return _quantiles(self.name, self.n)


def shaped(name: str, n: int) -> Shape:
    """The scores of a data set's shape; the table shows its name."""
    return Shape(n, name.lower(), name=name)


@lru_cache(maxsize=2)
def _quantiles(name: str, n: int) -> Scores:
    levels = (np.arange(n) + 0.5) / n
    counts = np.rint(np.quantile(histogram(name), levels)).astype(np.int64)
    return np.random.default_rng(_SEED).permutation(counts)
