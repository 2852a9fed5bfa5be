"""Audit OpenDP's noisy max as a black box. It needs OpenDP: `python -m pip install opendp`.

Run it with `python examples/audit_opendp.py`, or, in this folder,
`dpselect audit --callable audit_opendp:choose --epsilon 1`.
"""

import argparse
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
import opendp.prelude as dp

from dpselect.audit import audit

EPSILON = 1.0
_TYPES = {"f": "f64", "i": "i64", "u": "u64"}

dp.enable_features("contrib")


@cache
def measurement(number: str) -> Any:
    """Permute-and-flip at epsilon = 1 for scores of sensitivity one: noisy max with exponential noise of scale 2."""
    atoms = dp.atom_domain(T=number, nan=False) if number == "f64" else dp.atom_domain(T=number)
    made = dp.m.make_noisy_max(
        input_domain=dp.vector_domain(atoms),
        input_metric=dp.linf_distance(T=number),
        output_measure=dp.max_divergence(),
        scale=2.0,
        negate=False,
    )
    promised = made.map(1 if number != "f64" else 1.0)
    if not abs(promised - EPSILON) < 1e-9:
        raise ValueError(f"OpenDP promises epsilon = {promised}, not {EPSILON}")
    return made


def choose(scores: np.ndarray) -> int:
    """The index that OpenDP chooses, computed in the type of the scores."""
    return int(measurement(_TYPES[scores.dtype.kind])(scores))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    found = audit(choose, EPSILON, runs=parser.parse_args().runs)
    print(f"opendp {metadata.version('opendp')}, make_noisy_max: {found.verdict}")
    for finding in found.findings:
        print(f"  {finding.pair}: epsilon >= {finding.lower_bound:.3f}, {finding.failures:,} failures")
