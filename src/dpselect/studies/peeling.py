"""The k largest bins of a histogram, one selection after the other without those before (Bhaskar et al. 2010)."""

import numpy as np
import numpy.typing as npt

from dpselect.studies.chooser import Chooser

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def peeling_errors(counts: Counts, k: int, chooser: Chooser, runs: int, generator: np.random.Generator) -> Floats:
    """How many people fewer the k chosen bins have than the k largest, over k, for each run."""
    best = np.sort(counts)[-k:].sum()
    scores = np.tile(counts.astype(np.float64), (runs, 1))
    everyone, found = np.arange(runs), np.zeros(runs)
    for _ in range(k):
        chosen = chooser.choose(scores, generator)
        found += counts[chosen]
        scores[everyone, chosen] = -np.inf
    errors: Floats = (best - found) / k
    return errors
