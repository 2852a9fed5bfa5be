"""Reproduce Figure 1 (b) of McKenna & Sheldon (2020): how much worse the exponential mechanism is.

    python examples/one_figure.py [FIGURE.png]

For the scores (c, ..., c, 0) with c <= 0, it plots the ratio of the expected errors against p = exp(epsilon c / 2), for
several numbers n of candidates. The ratio approaches two as p falls and never exceeds it. `dpselect paper` reproduces
all figures.
"""

import sys

import numpy as np

from dpselect import ExponentialMechanism, PermuteAndFlip
from dpselect.analysis import expected_error

CANDIDATES = (2, 3, 10, 100, 1000)
PROBABILITIES = np.geomspace(1e-5, 0.999, 60)
EPSILON = 1  # any other value gives the same figure: only p matters


def error_ratio(p: float, n: int) -> float:
    """The expected error of the exponential mechanism divided by that of permute-and-flip.

    >>> round(error_ratio(0.5, 2), 6)
    1.333333
    """
    scores = np.append(np.full(n - 1, 2 * np.log(p) / EPSILON), 0.0)
    return expected_error(ExponentialMechanism(EPSILON), scores) / expected_error(PermuteAndFlip(EPSILON), scores)


def curves() -> dict[int, list[float]]:
    """The ratios on each line of the figure."""
    return {n: [error_ratio(float(p), n) for p in PROBABILITIES] for n in CANDIDATES}


def main() -> None:
    """Print the ratios, and plot them if a file name is given."""
    ratios = curves()
    shown = range(0, PROBABILITIES.size, 12)
    print("ratio of expected errors, exponential mechanism / permute-and-flip")
    print("       p " + "".join(f"{f'n = {n:,}':>12}" for n in CANDIDATES))
    for place in shown:
        print(f"{PROBABILITIES[place]:8.2g} " + "".join(f"{ratios[n][place]:12.3f}" for n in CANDIDATES))
    if len(sys.argv) > 1:
        from matplotlib.figure import Figure  # noqa: PLC0415 - `pip install '.[plot]'`

        figure = Figure(figsize=(4.6, 3.3), layout="constrained")
        axes = figure.subplots()
        for n in CANDIDATES:
            axes.semilogx(PROBABILITIES, ratios[n], label=f"n = {n:,}")
        axes.set_xlabel("p = exp(εc/2Δ)")
        axes.set_ylabel("ratio of expected errors")
        axes.legend()
        figure.savefig(sys.argv[1], dpi=200)


if __name__ == "__main__":
    main()
