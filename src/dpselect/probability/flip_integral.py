"""McKenna & Sheldon (2020): the probabilities of permute-and-flip, by an integral without cancellation.

With p_s = exp(-x_s), the probability that the coin of candidate s shows heads,

    Pr[r] = p_r g(p_r),    g(p) = integral over [0, 1] of F(t) / (1 - p t) dt,    F(t) = prod_s (1 - p_s t).

Expanding the product gives the second lemma of the paper's Appendix A. Every term is positive, g depends on p only, and
F is an entire function of exponential type S = sum p_s.

* F(t) <= exp(-S t), so the integral is cut at T = min(1, REACH / (S - 1)). The rest is below e**-44 of g. In units of
  T, with u = t / T and q = p T, Pr[r] is q_r times the integral over [0, 1] of F / (1 - q_r u), F = prod_s (1 - q_s u).
* The k-th derivative of the integrand is at most (S T)**k <= (REACH + 1)**k, because all factors are in [0, 1].
  Gauss-Legendre with 32 nodes is off by less than 1e-21, and with 16 nodes by less than 1e-19 where S <= 12. Both are
  below 1e-17 of the integral.
* Candidates with q <= 1/16 are far (from the best). Their part of log F is -sum_j P_j u**j / j with power sums
  P_j = sum q**j, and their integral is the series sum_j q**j M_j with moments M_j = integral of F u**j. Both series are
  cut where (1/16)**j (or T**j) times REACH falls below 1e-16. Most candidates are much farther: those with
  q <= 2**-16 need four terms instead of fifteen. So if few are closer, these are summed separately, or are near too.
* If S >= 16 REACH, all candidates are far. Otherwise at most 16 S T <= 736 candidates are near. F has a factor
  1 - q u for each of them, and their integrals are summed directly.

Roundings, with e = 2**-53. As computed, 1 - q u is off by at most 4 e q u, from q and the product, and by e relative to
itself. Let F_r be F without the factor of r.

* The errors 4 e q_s u of all s but r change the integral by at most 4 e relative to it: they add up to 4 e times
  sum_s q_s u F_r / (1 - q_s u) = -u F_r'(u), whose integral is at most that of F_r (by parts).
* The error of the factor of r changes it by at most 4 e times the average of u / (1 - u) over the nodes, which is 7.2:
  F_r decreases and u / (1 - u) increases, so weights F_r make no larger average (Chebyshev's sum inequality).
* The product of at most 736 factors adds at most 2 * 736 e < 1.7e-13. What underflows in it is far below 1e-300.
* The far part of log F is a sum of terms of one sign, at most REACH + 1. P_1 and P_2 are added pairwise. The terms of
  the other P_j are at most 0.07 in total, so dot products of 2**13 numbers are accurate enough: together below 3e-13.

The rounding of the exponents adds 3e-13 to p for p >= 1e-300. The total is below 1e-12.
"""

import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from dpselect._types import Floats, Positions
from dpselect.probability.quadrature import unit_grid

REACH = 45.0
_NODES = 32
# Up to this sum S, half of the nodes are enough.
_SMALL = 12.0
_BLOCK = 8192
_FAR, _FARTHER, _FARTHEST = 2.0**-4, 2.0**-10, 2.0**-16
# If only so few candidates have q > _FARTHEST or _FARTHER, all of these are near, and the others need fewer terms.
_FEW = 128
# Where near candidates are those with q > _FAR, and at most one in _CLOSER has q > _FARTHEST, the far ones among those
# are summed separately, so that all others need fewer terms.
_CLOSER = 8


def permute_and_flip_probabilities(exponents: Floats) -> Floats:
    """Probabilities from exponents x_r = c (q* - q_r) >= 0, of which one is zero, in linear time."""
    with np.errstate(under="ignore"):
        split = _split(exponents)
        integrals = _integrals(split)
        probabilities, moments = split.far, integrals.moments.tolist()
        for block in _blocks(probabilities):
            np.multiply(block, _series(block, moments[: split.far_terms]), out=block)
        if split.middle.size:
            probabilities[split.middle] = split.middle_values * _series(split.middle_values, moments)
        probabilities[split.near] = split.near_values * integrals.near
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
        series = np.append(far, integrals.power_sums[:-1]) @ integrals.moments
        return float(split.reach * (series + np.add.reduce(integrals.near)))


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
        powers = _powers(nodes, _terms(_FAR))
        # 1 - q u = (1 - q) + q (1 - u)
        tails = -np.expm1(log_reach - exponents[near])[:, np.newaxis] + np.outer(scaled[near], 1 - nodes)
        log_survival = np.exp(log_counts[near]) @ np.log(tails)
        term = expected * far
        for j, power in enumerate(powers, start=1):
            log_survival -= term.sum() / j * power
            term *= scaled
        weighted = np.exp(log_survival) * weights
        probabilities = _series(scaled * far, [weighted.sum(), *(powers[:-1] @ weighted)])
        probabilities[near] = (weighted / tails).sum(axis=1)
        return expected * probabilities


class _Split(NamedTuple):
    """Candidates by how far they are from the best, and the point T where the integral is cut."""

    reach: float
    nodes: int
    near: Positions
    near_values: Floats  # their q
    middle: Positions  # far candidates that need more terms than most, if they are few
    middle_values: Floats  # their q
    far: Floats  # the q of the other far candidates, with zeros in place of near and middle ones
    terms: int  # of the series for all far candidates
    far_terms: int  # of the series without those in the middle


def _split(exponents: Floats) -> _Split:
    far = np.negative(exponents)
    np.exp(far, out=far)
    total, reach = float(np.add.reduce(far)), 1.0
    if total > 1 + REACH:
        reach = REACH / (total - 1)
        far *= reach
    near = (far > _FARTHEST).nonzero()[0]
    near_values = far[near]
    middle, middle_values, limit, far_limit = near[:0], near_values[:0], _FARTHEST, _FARTHEST
    if near.size > _FEW:
        closer, values = near, near_values
        limit = far_limit = _FARTHER if np.count_nonzero(values > _FARTHER) <= _FEW else _FAR
        is_near = values > limit
        near, near_values = closer[is_near], values[is_near]
        if near.size < closer.size <= far.size // _CLOSER:
            middle, middle_values, far_limit = closer[~is_near], values[~is_near], _FARTHEST
            far[middle] = 0.0
    far[near] = 0.0
    nodes, terms = _NODES // 2 if total <= _SMALL else _NODES, _terms(min(limit, reach))
    return _Split(reach, nodes, near, near_values, middle, middle_values, far, terms, _terms(min(far_limit, reach)))


def _terms(largest: float) -> int:
    """The number of terms of the series of candidates whose q is at most this."""
    return math.ceil(math.log(1e-16 / REACH) / math.log(largest))


class _Integrals(NamedTuple):
    """The parts of which the integrals of all candidates are composed."""

    moments: Floats  # M_j, from j = 0
    power_sums: Floats  # P_j of the far candidates, from j = 1
    near: Floats  # the integral of each near candidate


def _integrals(split: _Split) -> _Integrals:
    nodes, weights = unit_grid(split.nodes)
    powers, logarithms = _tables(split.nodes, split.terms)
    power_sums = _power_sums(split.far, split.far_terms)
    if split.middle.size:
        of_far, power_sums = power_sums, _power_sums(split.middle_values, split.terms)
        power_sums[: of_far.size] += of_far
    tails = split.near_values[:, np.newaxis] * nodes
    np.subtract(1.0, tails, out=tails)
    weighted = np.exp(power_sums @ logarithms)
    weighted *= weights
    weighted *= np.multiply.reduce(tails, axis=0)
    np.divide(weighted, tails, out=tails)
    return _Integrals(powers @ weighted, power_sums, np.add.reduce(tails, axis=1))


@cache
def _tables(nodes: int, terms: int) -> tuple[Floats, Floats]:
    """Rows of u**j for j < terms, and of -u**j / j for 1 <= j <= terms, at the nodes of the unit interval."""
    powers = _powers(unit_grid(nodes)[0], terms)
    return np.vstack([np.ones(nodes), powers[:-1]]), powers / -np.arange(1.0, terms + 1)[:, np.newaxis]


def _power_sums(values: Floats, terms: int) -> Floats:
    """The sums of values**j for j = 1..terms, block by block. The sums of the blocks are added without an error."""
    of_blocks = [_block_sums(block, terms) for block in _blocks(values)]
    return np.array([math.fsum(sums) for sums in zip(*of_blocks, strict=True)])


def _block_sums(values: Floats, terms: int) -> list[float]:
    """The sums of a block: of the lower half of the powers, and of their products with the highest of these."""
    powers = [values]
    while 2 * len(powers) < terms:
        powers.append(powers[-1] * values)
    products = (np.dot(powers[-1], power) for power in powers[: terms - len(powers)])
    return [*map(np.add.reduce, powers), *products]


def _series(values: Floats, moments: list[float]) -> Floats:
    """The sum over j of p**j M_j, for each p."""
    total = values * moments[-1]
    total += moments[-2]
    for moment in moments[-3::-1]:
        total *= values
        total += moment
    return total


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
