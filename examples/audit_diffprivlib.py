"""Audit diffprivlib's permute-and-flip and exponential mechanism as black boxes.

It needs diffprivlib and a scikit-learn that it can import: `python -m pip install diffprivlib 'scikit-learn<1.7'`.

Run it with `python examples/audit_diffprivlib.py`, or, in this folder,
`dpselect audit --callable audit_diffprivlib:permute_and_flip --epsilon 1`.
"""

import argparse
from importlib import metadata

import numpy as np
from diffprivlib.mechanisms import Exponential, PermuteAndFlip

from dpselect.audit import audit

EPSILON = 1.0


def permute_and_flip(scores: np.ndarray) -> int:
    """Permute-and-flip of diffprivlib at epsilon = 1 for scores of sensitivity one."""
    return int(PermuteAndFlip(epsilon=EPSILON, sensitivity=1.0, utility=scores.tolist()).randomise())


def exponential(scores: np.ndarray) -> int:
    """The exponential mechanism of diffprivlib at epsilon = 1 for scores of sensitivity one."""
    return int(Exponential(epsilon=EPSILON, sensitivity=1.0, utility=scores.tolist()).randomise())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    runs = parser.parse_args().runs
    for choose in (permute_and_flip, exponential):
        found = audit(choose, EPSILON, runs=runs)
        print(f"diffprivlib {metadata.version('diffprivlib')}, {choose.__name__}: {found.verdict}")
        for finding in found.findings:
            print(f"  {finding.pair}: epsilon >= {finding.lower_bound:.3f}, {finding.failures:,} failures")
