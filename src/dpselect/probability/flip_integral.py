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
  where (1/16)**j (or T**j) times REACH falls below 1e-17. Most candidates are much farther: those with p T <= 2**-16
  need five terms instead of seventeen. So if few are closer, those few are summed separately, or are near as well.
* If S >= 16 REACH, all candidates are far. Otherwise at most 16 S candidates are near, and each distinct one is summed
  directly, with 1 - p t = (1 - p) + p (1 - t), whose two terms are positive and accurate.

Roundings: log F is a sum of terms of one sign with |log F| <= REACH + 1 where F matters, so F and g have a relative
error of about 1e-14. The rounding of the exponents adds 3e-13 to p for p >= 1e-300. The total is below 1e-12.
"""

import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpselect._types import Floats, Positions
from dpselect.probability.quadrature import unit_grid

REACH = 45.0
_FAR = 1 / 16
_NODES = 64
_BLOCK = 8192
# Up to this many near candidates, finding the distinct ones costs more than it saves.
_FEW = 128
# If only so few candidates have p T > 2**-16 or 2**-10, all of these are near, and the others need fewer terms.
_FARTHEST, _FARTHER = 2.0**-16, 2.0**-10
# Where near candidates are those with p T > 1/16, and at most one in _CLOSER has p T > 2**-16, the far ones among those
# are summed separately, so that all others need fewer terms.
_CLOSER = 8


def permute_and_flip_probabilities(exponents: Floats) -> Floats:
    """Probabilities from exponents x_r = c (q* - q_r) >= 0, of which one is zero, in linear time."""
    with np.errstate(under="ignore"):
        split = _split(exponents)
        integrals = _integrals(split)
        probabilities = split.far
        for block in _blocks(probabilities):
            np.multiply(block, _series(block, integrals.moments[: split.far_terms]), out=block)
        if split.middle.size:
            probabilities[split.middle] = split.middle_values * _series(split.middle_values, integrals.moments)
        probabilities[split.near] = (np.exp(-integrals.levels) * integrals.near)[integrals.inverse]
        return probabilities


def expected_visits(exponents: Floats) -> float:
    """The expected number of coins flipped: the sum of g(p_r), because r is visited if no head comes before it.

    The exponents are c (b - q_r) >= 0. None need be zero, so S may be below one, and then the integral is not cut. Far
    candidates are summed by their power sums: sum_r sum_j p_r**j M_j = sum_j P_j M_j. All terms are positive, so the
    relative error is that of a single g, below 1e-12. Linear time.
    """
    with np.errstate(under="ignore"):
        split = _split(exponents)
        integrals = _integrals(split)
        far = exponents.size - split.near.size
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


class _Split(NamedTuple):
    """Candidates by how far they are from the best, and the point T where the integral is cut."""

    reach: float
    near: Positions
    near_exponents: Floats
    middle: Positions  # far candidates that need more terms than most, if they are few
    middle_values: Floats  # their p
    far: Floats  # the p of the other far candidates, with zeros in place of near and middle ones
    terms: int  # of the series for all far candidates
    far_terms: int  # of the series without those in the middle


def _split(exponents: Floats) -> _Split:
    far = np.negative(exponents)
    np.exp(far, out=far)
    total = float(far.sum())
    reach = min(1.0, REACH / (total - 1)) if total > 1 + REACH else 1.0
    closer = (far > _FARTHEST / reach).nonzero()[0]
    values = far[closer]
    limits = (limit for limit in (_FARTHEST, _FARTHER) if np.count_nonzero(values > limit / reach) <= _FEW)
    near_limit = next(limits, _FAR)
    is_near = values > near_limit / reach
    near, middle, middle_values, far_limit = closer[is_near], closer[:0], values[:0], near_limit
    if near.size < closer.size <= far.size // _CLOSER:
        middle, middle_values, far_limit = closer[~is_near], values[~is_near], _FARTHEST
    far[near] = far[middle] = 0.0
    terms, far_terms = _terms(near_limit, reach), _terms(far_limit, reach)
    return _Split(reach, near, exponents[near], middle, middle_values, far, terms, far_terms)


def _terms(largest: float, reach: float) -> int:
    """The number of terms of the series of candidates whose p T is at most min(largest, T)."""
    return math.ceil(math.log(1e-17 / REACH) / math.log(min(largest, reach))) + 1


class _Integrals(NamedTuple):
    """The parts of which the integrals of all candidates are composed."""

    moments: Floats  # M_j, from j = 0
    power_sums: Floats  # P_j of the far candidates, from j = 1
    levels: Floats  # distinct exponents of near candidates
    inverse: npt.NDArray[np.intp] | slice  # the level of each near candidate
    counts: Floats  # the number of near candidates at each level
    near: Floats  # g of each level


def _integrals(split: _Split) -> _Integrals:
    """The integrals; t**j = T**j u**j with u in the unit interval."""
    nodes, weights = unit_grid(_NODES)
    terms, reach = split.terms, split.reach
    u_powers, t_factors = _unit_powers(_NODES, terms), reach ** np.arange(1, terms + 1)
    levels, inverse, counts = _distinct(split.near_exponents)
    tails = -np.expm1(-levels)[:, np.newaxis] + np.exp(-levels)[:, np.newaxis] * (1 - reach * nodes)
    power_sums = _power_sums(split.middle_values, terms) if split.middle.size else np.zeros(terms)
    power_sums[: split.far_terms] += _power_sums(split.far, split.far_terms)
    log_survival = counts @ np.log(tails) - (power_sums * t_factors / np.arange(1, terms + 1)) @ u_powers
    weighted = np.exp(log_survival) * (reach * weights)
    moments = np.concatenate([[weighted.sum()], (u_powers[:-1] @ weighted) * t_factors[:-1]])
    return _Integrals(moments, power_sums, levels, inverse, counts, (weighted / tails).sum(axis=1))


@cache
def _unit_powers(count: int, terms: int) -> Floats:
    """Rows of u**j for j = 1..terms at the nodes of the unit interval."""
    return _powers(unit_grid(count)[0], terms)


def _power_sums(values: Floats, terms: int) -> Floats:
    """The sums of values**j for j = 1..terms, added pairwise in each block and over the blocks."""
    sums, room = np.empty((terms, -(-values.size // _BLOCK))), np.empty(min(values.size, _BLOCK))
    for number, block in enumerate(_blocks(values)):
        power = room[: block.size]
        power[:] = block
        sums[0, number] = np.add.reduce(power)
        for j in range(1, terms):
            power *= block
            sums[j, number] = np.add.reduce(power)
    totals: Floats = sums.sum(axis=1)
    return totals


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
    """Views of consecutive values, small enough that they fit the cache together with a power or a sum."""
    return (values[start : start + _BLOCK] for start in range(0, values.size, _BLOCK))
