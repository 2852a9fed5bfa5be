"""McKenna & Sheldon (2020), the probabilities of permute-and-flip, by an integral without cancellation.

Expanding the product gives the second lemma of the paper's Appendix A, so with p_s = exp(-x_s)

    Pr[r] = p_r g(p_r),    g(p) = integral over [0, 1] of F(t) / (1 - p t) dt,    F(t) = prod_s (1 - p_s t).

Every term is positive, g depends on p only, and F is an entire function of exponential type S = sum p_s.

* F(t) <= exp(-S t), so the integral is cut at T = min(1, REACH / (S - 1)): what is left out is below e**-44 of g.
* On [0, T] the integrand has exponential type at most REACH + 1 in t / T. Gauss-Legendre with 64 nodes integrates
  exp(a u), |a| <= 46, on the unit interval with an error below (a/4)**128 / 128! < 1e-75 relative to its largest value.
* Candidates with p T <= 1/16 are cold. Their part of log F is -sum_j P_j t**j / j with power sums P_j = sum p**j, and
  their g is the series sum_j p**j M_j with moments M_j = integral of F t**j. Cut where (1/16)**j (or T**j) times REACH
  falls below 1e-17.
* If S >= 16 REACH everybody is cold. Otherwise at most 16 S candidates are hot, and each distinct one is summed
  directly, with 1 - p t = (1 - p) + p (1 - t), whose two terms are positive and accurate.

Roundings: log F is a sum of terms of one sign with |log F| <= REACH + 1 where F matters, so F is within about 1e-14,
and so is g. With the exponents' own rounding, p is within 3e-13 for p >= 1e-300; together below 1e-12.
"""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpselect._types import Floats
from dpselect.probability.grid import unit_grid

REACH = 45.0
_COLD = 1 / 16
_NODES = 64
_BLOCK = 2048
# Fewer hot candidates than this are not worth sorting into distinct ones.
_FEW = 256


def permute_and_flip_probabilities(exponents: Floats) -> Floats:
    """Probabilities from exponents x_r = c (q* - q_r) >= 0, of which one is zero; linear time."""
    with np.errstate(under="ignore"):
        heads = np.exp(-exponents)
        hot, reach = _hot(heads)
        warm = exponents[hot]
        heads[hot] = 0.0  # what is left is cold
        integrals = _integrals(heads, warm, reach)
        for block in _blocks(heads):
            _apply_series(block, integrals.moments)
        heads[hot] = (np.exp(-integrals.levels) * integrals.hot)[integrals.inverse]
        return heads


def expected_visits(exponents: Floats) -> float:
    """The expected length of the walk: the sum of g(p_r), because r is visited if no head arrives before it.

    The exponents are c (b - q_r) >= 0; none need be zero, so that S may be below one and the integral is not cut. Cold
    candidates are summed by their power sums: sum_r sum_j p_r**j M_j = sum_j P_j M_j. All terms are positive, so the
    relative error is that of the single g, below 1e-12. Linear time.
    """
    with np.errstate(under="ignore"):
        heads = np.exp(-exponents)
        hot, reach = _hot(heads)
        warm = exponents[hot]
        heads[hot] = 0.0
        integrals = _integrals(heads, warm, reach)
        cold = heads.size - warm.size
        series = np.concatenate([[cold], integrals.power_sums[: integrals.moments.size - 1]]) @ integrals.moments
        return float(series + integrals.counts @ integrals.hot)


class _Integrals(NamedTuple):
    """What all candidates' integrals are made of."""

    moments: Floats  # of the integral of F t**j
    power_sums: Floats  # of the cold candidates' p**j, from j = 1
    levels: Floats  # distinct exponents of hot candidates
    inverse: npt.NDArray[np.intp] | slice  # which level each hot candidate has
    counts: Floats  # how many have each level
    hot: Floats  # g of each level


def _hot(heads: Floats) -> tuple[npt.NDArray[np.intp], float]:
    """The hot candidates, and where the integral is cut."""
    total = float(heads.sum())
    reach = min(1.0, REACH / (total - 1)) if total > 1 + REACH else 1.0
    return (heads > _COLD / reach).nonzero()[0], reach


def _integrals(heads: Floats, warm: Floats, reach: float) -> _Integrals:
    """The integrals, from the p of cold candidates (zero in place of hot ones) and the exponents of hot ones."""
    nodes, weights = unit_grid(_NODES)
    terms = math.ceil(math.log(1e-17 / REACH) / math.log(min(_COLD, reach))) + 1
    t_powers = _powers(reach * nodes, terms)
    levels, inverse, counts = _distinct(warm)
    tails = -np.expm1(-levels)[:, np.newaxis] + np.exp(-levels)[:, np.newaxis] * (1 - reach * nodes)
    # Stacked so that NumPy adds the blocks' sums pairwise.
    power_sums = np.stack([_powers(block, terms).sum(axis=1) for block in _blocks(heads)], axis=1).sum(axis=1)
    log_survival = counts @ np.log(tails) - power_sums / np.arange(1, terms + 1) @ t_powers
    weighted = np.exp(log_survival) * (reach * weights)
    moments = np.concatenate([[weighted.sum()], t_powers[:-1] @ weighted])
    return _Integrals(moments, power_sums, levels, inverse, counts, (weighted / tails).sum(axis=1))


def _apply_series(block: Floats, moments: Floats) -> None:
    """Replace each p by p * sum_j p**j M_j, in place; element by element, so that equal candidates stay equal."""
    total = np.full_like(block, moments[-1])
    for moment in moments[-2::-1]:
        total *= block
        total += moment
    block *= total


def _distinct(warm: Floats) -> tuple[Floats, npt.NDArray[np.intp] | slice, Floats]:
    """Distinct exponents, which of them each candidate has, and how many candidates each has."""
    if warm.size <= _FEW:
        return warm, slice(None), np.ones(warm.size)
    levels, inverse, counts = np.unique(warm, return_inverse=True, return_counts=True)
    return levels, inverse, counts.astype(np.float64)


def _powers(values: Floats, terms: int) -> Floats:
    """Rows of values**j for j = 1..terms."""
    rows = np.empty((terms, values.size))
    rows[0] = values
    for lower, higher in itertools.pairwise(rows):
        np.multiply(lower, values, out=higher)
    return rows


def _blocks(values: Floats) -> Iterator[Floats]:
    """Views of consecutive values that fit the cache together with their powers."""
    return (values[start : start + _BLOCK] for start in range(0, values.size, _BLOCK))
