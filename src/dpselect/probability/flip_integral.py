"""McKenna & Sheldon (2020): the probabilities of permute-and-flip, by an integral without cancellation.

With p_s = exp(-x_s), the probability that the coin of candidate s shows heads,

    Pr[r] = p_r g(p_r),    g(p) = integral over [0, 1] of F(t) / (1 - p t) dt,    F(t) = prod_s (1 - p_s t).

Expanding the product gives the second lemma of the paper's Appendix A. Every term is positive, g depends on p only, and
F is an entire function of exponential type S = sum p_s.

* F(t) <= exp(-S t), so the integral is cut at T = min(1, REACH / (S - 1)). The rest is below e**-44 of g.
* On [0, T] the integrand has exponential type at most REACH + 1 in t / T. Gauss-Legendre with 64 nodes integrates
  exp(a u), |a| <= 46, on the unit interval with an error below (a/4)**128 / 128! < 1e-75 relative to its largest value.
* Candidates with p T <= 1/16 are far (from the best). Their part of log F is -sum_j P_j t**j / j with power sums
  P_j = sum p**j, and their g is the series sum_j p**j M_j with moments M_j = integral of F t**j. Both series are cut
  where (1/16)**j (or T**j) times REACH falls below 1e-17.
* If S >= 16 REACH, all candidates are far. Otherwise at most 16 S candidates are near, and each distinct one is summed
  directly, with 1 - p t = (1 - p) + p (1 - t), whose two terms are positive and accurate.

Roundings: log F is a sum of terms of one sign with |log F| <= REACH + 1 where F matters, so F and g have a relative
error of about 1e-14. The rounding of the exponents adds 3e-13 to p for p >= 1e-300. The total is below 1e-12.
"""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpselect._types import Floats
from dpselect.probability.quadrature import unit_grid

REACH = 45.0
_FAR = 1 / 16
_NODES = 64
_BLOCK = 2048
# Up to this many near candidates, finding the distinct ones costs more than it saves.
_FEW = 256


def permute_and_flip_probabilities(exponents: Floats) -> Floats:
    """Probabilities from exponents x_r = c (q* - q_r) >= 0, of which one is zero, in linear time."""
    with np.errstate(under="ignore"):
        coin_probabilities = np.exp(-exponents)
        near, reach = _near(coin_probabilities)
        near_exponents = exponents[near]
        coin_probabilities[near] = 0.0  # only far candidates are left
        integrals = _integrals(coin_probabilities, near_exponents, reach)
        for block in _blocks(coin_probabilities):
            _apply_series(block, integrals.moments)
        coin_probabilities[near] = (np.exp(-integrals.levels) * integrals.near)[integrals.inverse]
        return coin_probabilities


def expected_visits(exponents: Floats) -> float:
    """The expected number of coins flipped: the sum of g(p_r), because r is visited if no head comes before it.

    The exponents are c (b - q_r) >= 0. None need be zero, so S may be below one, and then the integral is not cut. Far
    candidates are summed by their power sums: sum_r sum_j p_r**j M_j = sum_j P_j M_j. All terms are positive, so the
    relative error is that of a single g, below 1e-12. Linear time.
    """
    with np.errstate(under="ignore"):
        coin_probabilities = np.exp(-exponents)
        near, reach = _near(coin_probabilities)
        near_exponents = exponents[near]
        coin_probabilities[near] = 0.0
        integrals = _integrals(coin_probabilities, near_exponents, reach)
        far = coin_probabilities.size - near_exponents.size
        series = np.concatenate([[far], integrals.power_sums[: integrals.moments.size - 1]]) @ integrals.moments
        return float(series + integrals.counts @ integrals.near)


def permute_and_flip_by_level(exponents: Floats, log_counts: Floats) -> Floats:
    """The probability of each level, from its exponent and the logarithm of the number of candidates that share it.

    Exponents are x = c (q* - q) >= 0, of which one is zero. There may be far more candidates than floats can count.
    The integral is cut at T = min(1, REACH / S), which leaves out less than e**-44 of it. With q = p T and u = t / T, a
    level of N candidates has the probability N q * integral over [0, 1] of F(u) / (1 - q u) du, where N q <= REACH.
    Levels with q <= 1/16 are far, as above. The others have N <= 16 REACH and are summed directly. The relative error
    is below 1e-12 plus that of the counts.
    """
    with np.errstate(under="ignore"):
        log_reach = min(0.0, math.log(REACH) - float(np.logaddexp.reduce(log_counts - exponents)))
        scaled = np.exp(log_reach - exponents)  # q
        expected = np.exp(log_counts + (log_reach - exponents))  # N q
        far, near = scaled <= _FAR, (scaled > _FAR).nonzero()[0]
        nodes, weights = unit_grid(_NODES)
        powers = _powers(nodes, math.ceil(math.log(1e-17 / REACH) / math.log(_FAR)) + 1)
        # 1 - q u = (1 - q) + q (1 - u)
        tails = -np.expm1(log_reach - exponents[near])[:, np.newaxis] + np.outer(scaled[near], 1 - nodes)
        log_survival = np.exp(log_counts[near]) @ np.log(tails)
        term = expected * far
        for j, power in enumerate(powers, start=1):
            log_survival -= term.sum() / j * power
            term *= scaled
        weighted = np.exp(log_survival) * weights
        probabilities = _series(scaled * far, np.append(weighted.sum(), powers[:-1] @ weighted))
        probabilities[near] = (weighted / tails).sum(axis=1)
        return expected * probabilities


class _Integrals(NamedTuple):
    """The parts of which the integrals of all candidates are composed."""

    moments: Floats  # M_j, from j = 0
    power_sums: Floats  # P_j of the far candidates, from j = 1
    levels: Floats  # distinct exponents of near candidates
    inverse: npt.NDArray[np.intp] | slice  # the level of each near candidate
    counts: Floats  # the number of near candidates at each level
    near: Floats  # g of each level


def _near(coin_probabilities: Floats) -> tuple[npt.NDArray[np.intp], float]:
    """The positions of near candidates, and the point T where the integral is cut."""
    total = float(coin_probabilities.sum())
    reach = min(1.0, REACH / (total - 1)) if total > 1 + REACH else 1.0
    return (coin_probabilities > _FAR / reach).nonzero()[0], reach


def _integrals(far: Floats, near_exponents: Floats, reach: float) -> _Integrals:
    """The integrals, from the p of far candidates (with zeros in place of near ones) and the exponents of near ones."""
    nodes, weights = unit_grid(_NODES)
    terms = math.ceil(math.log(1e-17 / REACH) / math.log(min(_FAR, reach))) + 1
    t_powers = _powers(reach * nodes, terms)
    levels, inverse, counts = _distinct(near_exponents)
    tails = -np.expm1(-levels)[:, np.newaxis] + np.exp(-levels)[:, np.newaxis] * (1 - reach * nodes)
    # Stacked so that NumPy adds the blocks' sums pairwise.
    power_sums = np.stack([_powers(block, terms).sum(axis=1) for block in _blocks(far)], axis=1).sum(axis=1)
    log_survival = counts @ np.log(tails) - power_sums / np.arange(1, terms + 1) @ t_powers
    weighted = np.exp(log_survival) * (reach * weights)
    moments = np.concatenate([[weighted.sum()], t_powers[:-1] @ weighted])
    return _Integrals(moments, power_sums, levels, inverse, counts, (weighted / tails).sum(axis=1))


def _apply_series(block: Floats, moments: Floats) -> None:
    """Replace each p by p * sum_j p**j M_j in place, element by element, so that equal candidates stay equal."""
    block *= _series(block, moments)


def _series(values: Floats, moments: Floats) -> Floats:
    """The sum over j of p**j M_j, for each p."""
    total = np.full_like(values, moments[-1])
    for moment in moments[-2::-1]:
        total *= values
        total += moment
    return total


def _distinct(near_exponents: Floats) -> tuple[Floats, npt.NDArray[np.intp] | slice, Floats]:
    """The distinct exponents, the index of the one that each candidate has, and the number of candidates with each."""
    if near_exponents.size <= _FEW:
        return near_exponents, slice(None), np.ones(near_exponents.size)
    levels, inverse, counts = np.unique(near_exponents, return_inverse=True, return_counts=True)
    return levels, inverse, counts.astype(np.float64)


def _powers(values: Floats, terms: int) -> Floats:
    """Rows of values**j for j = 1..terms."""
    rows = np.empty((terms, values.size))
    rows[0] = values
    for lower, higher in itertools.pairwise(rows):
        np.multiply(lower, values, out=higher)
    return rows


def _blocks(values: Floats) -> Iterator[Floats]:
    """Views of consecutive values, small enough that they fit the cache together with their powers."""
    return (values[start : start + _BLOCK] for start in range(0, values.size, _BLOCK))
