"""McKenna & Sheldon (2020), Figure 1 (b): the ratio of expected errors on (c, ..., c, 0) against p, for several n."""

import math
from typing import Any

import numpy as np

from dpselect.analysis.worst_case import losing
from dpselect.mechanisms.exponential import ExponentialMechanism
from dpselect.mechanisms.permute_and_flip import PermuteAndFlip
from dpselect.paper.plot import Material, Plot
from dpselect.paper.style import of_number
from dpselect.paper.table import Table

CANDIDATES = (2, 3, 10, 100, 1000)
_POINTS = 300
_SMALLEST = 1e-5


def ratio(p: float, n: int) -> float:
    """The exponential mechanism's error relative to permute-and-flip's; both lose by the same gap.

    >>> round(ratio(0.5, 2), 6)
    1.333333
    """
    lose_exponential, lose_flip = losing(ExponentialMechanism(1)), losing(PermuteAndFlip(1))
    return lose_exponential(-math.log(p), n) / lose_flip(-math.log(p), n)


def table(_: Material) -> Table:
    """The ratios on a logarithmic grid of p."""
    grid = np.geomspace(_SMALLEST, 1, _POINTS).tolist()
    return Table(("n", "p", "ratio"), tuple((n, p, ratio(p, n)) for n in CANDIDATES for p in grid))


def draw(figure: Any, table: Table) -> None:
    """One line a number of candidates."""
    axes = figure.subplots()
    for number, (n, p, ratios) in enumerate(table.series("n", "p", "ratio")):
        axes.plot(p, ratios, label=f"$n$ = {n:,}", **of_number(number))
    axes.set(xlabel="$p = \\exp(\\epsilon c / 2\\Delta)$", ylabel="error ratio, exponential / permute-and-flip")
    axes.set(xscale="log", xlim=(_SMALLEST, 1), ylim=(0.98, 2.02))
    axes.legend()


PLOT = Plot(
    "figure-1b-ratio-by-p",
    "Figure 1 (b)",
    "Expected error of the exponential mechanism relative to that of permute-and-flip on the scores (c, …, c, 0).",
    table,
    draw,
)
