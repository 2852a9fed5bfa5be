"""The probability of each candidate, for each mechanism, in float64 with an error bound; and the largest errors.

The exponents are x_r = c (q* - q_r) >= 0. One of them is zero.

**The exponential mechanism** (McSherry & Talwar 2007) selects r with probability exp(-x_r) / sum_s exp(-x_s). All terms
are positive and NumPy adds pairwise, so the relative error comes from exp and from the exponents. For x <= 700, each
exponent is within 3 roundings, and the error is below 3e-13.

**Permute-and-flip** (McKenna & Sheldon 2020), by an integral without cancellation.

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

**Report noisy max** (McKenna & Sheldon 2020, appendix), in linear time for any scores.

In units of the noise, candidate r has the value v_r = -x_r. With the Laplace density f and distribution function F,

    Pr[r] = integral of f(y - v_r) / F(y - v_r) G(y) dy,    G(y) = prod_s F(y - v_s),

so that all candidates share one grid of y:

* below v_r the ratio f / F is 1, so that part of Pr[r] is the integral of G up to v_r, a cumulative sum;
* above v_r it is sum_{j >= 1} (e**-(y - v_r) / 2)**j, so that part is a sum over j of integrals of e**(-j y) G from
  v_r on, which are cumulative sums from the other end;
* log G needs the count and the sum of the values above y, and power sums of e**(-j (y - v_s)) over those below, which
  are carried from panel to panel.

All terms are positive. Panels are split at the values, where G has kinks, and are at most 1/2 wide. G is analytic
between kinks, so 12 Gauss-Legendre points leave an error far below 1e-15. The series have ratio at most 1/2 and are cut
after 60 terms. The grid ends where G is within e**-45 of 1, and starts where f G has fallen by the same factor. |log G|
is below 100 where G matters, so its roundings leave a relative error near 1e-14; the exponents themselves add 3e-13.

**The largest errors** over all scores of n candidates (McKenna & Sheldon 2020, Section 4) are stated for the rate
c = 1; at another rate, errors are divided by c. The number of candidates is given by its logarithm, because it may be
beyond all floats: all sets of k out of d are candidates, too. The worst scores of permute-and-flip and of the
exponential mechanism are (-x, ..., -x, 0) for some x (Proposition 4): one best candidate, and n - 1 rivals that are all
equally far below it. For other mechanisms, such scores give a lower bound on the worst case.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from dpselect._types import Floats, Positions

_REACH = 45.0


@cache
def unit_grid(count: int) -> tuple[Floats, Floats]:
    """The nodes and weights of Gauss-Legendre quadrature with `count` points on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / weights.sum()


def softmax(exponents: Floats) -> Floats:
    """The probabilities of the exponential mechanism."""
    with np.errstate(under="ignore"):
        probabilities = np.exp(-exponents)
        probabilities /= probabilities.sum()
    return probabilities


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
    # Probabilities from exponents x_r = c (q* - q_r) >= 0, of which one is zero, in linear time.
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
    """The expected number of coins flipped: the sum of g(p_r), because r is visited if no head comes before it."""
    # The exponents are c (b - q_r) >= 0. None need be zero, so S may be below one, and then the integral is not cut.
    # Far candidates are summed by their power sums: sum_r sum_j p_r**j M_j = sum_j P_j M_j. All terms are positive, so
    # the relative error is that of a single g, below 1e-12. Linear time.
    with np.errstate(under="ignore"):
        split = _split(exponents)
        integrals = _integrals(split)
        far = exponents.size - split.near.size
        series = np.append(far, integrals.power_sums[:-1]) @ integrals.moments
        return float(split.reach * (series + np.add.reduce(integrals.near)))


def permute_and_flip_by_level(exponents: Floats, log_counts: Floats) -> Floats:
    """The probability of each level, from its exponent and the logarithm of the number of candidates that share it."""
    # Exponents are x = c (q* - q) >= 0, of which one is zero. There may be far more candidates than floats can count.
    # The integral is cut at T = min(1, REACH / S), which leaves out less than e**-44 of it. With q = p T and u = t / T,
    # a level of N candidates has the probability N q * integral over [0, 1] of F(u) / (1 - q u) du, where N q <= REACH.
    # Levels with q <= 1/16 are far, as above. The others have N <= 16 REACH and are summed directly. The relative error
    # is below 1e-12 plus that of the counts.
    with np.errstate(under="ignore"):
        log_reach = min(0.0, math.log(_REACH) - float(np.logaddexp.reduce(log_counts - exponents)))
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
    # Candidates by how far they are from the best, and the point T where the integral is cut.

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
    if total > 1 + _REACH:
        reach = _REACH / (total - 1)
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
    # The number of terms of the series of candidates whose q is at most this.
    return math.ceil(math.log(1e-16 / _REACH) / math.log(largest))


class _Integrals(NamedTuple):
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
    # Rows of u**j for j < terms, and of -u**j / j for 1 <= j <= terms, at the nodes of the unit interval.
    powers = _powers(unit_grid(nodes)[0], terms)
    return np.vstack([np.ones(nodes), powers[:-1]]), powers / -np.arange(1.0, terms + 1)[:, np.newaxis]


def _power_sums(values: Floats, terms: int) -> Floats:
    # The sums of values**j for j = 1..terms, block by block. The sums of the blocks are added without an error.
    of_blocks = [_block_sums(block, terms) for block in _blocks(values)]
    return np.array([math.fsum(sums) for sums in zip(*of_blocks, strict=True)])


def _block_sums(values: Floats, terms: int) -> list[float]:
    # The sums of a block: of the lower half of the powers, and of their products with the highest of these.
    powers = [values]
    while 2 * len(powers) < terms:
        powers.append(powers[-1] * values)
    products = (np.dot(powers[-1], power) for power in powers[: terms - len(powers)])
    return [*map(np.add.reduce, powers), *products]


def _series(values: Floats, moments: list[float]) -> Floats:
    total = values * moments[-1]
    total += moments[-2]
    for moment in moments[-3::-1]:
        total *= values
        total += moment
    return total


def _powers(values: Floats, terms: int) -> Floats:
    rows = np.empty((terms, values.size))
    rows[0] = values
    for lower, higher in itertools.pairwise(rows):
        np.multiply(lower, values, out=higher)
    return rows


def _blocks(values: Floats) -> Iterator[Floats]:
    # Views of consecutive values, small enough that they fit the cache together with a power or a sum.
    return (values[start : start + _BLOCK] for start in range(0, values.size, _BLOCK))


_LOWEST = -745.0
# Candidates this far below the best have probability zero in float64. Capping their distance keeps all sums finite.
_VANISHED = 1e5
_TERMS = 60
_PANEL_NODES = 12
_WIDTH = 0.5
_POWERS = np.arange(1, _TERMS + 1)


def noisy_max_probabilities(exponents: Floats) -> Floats:
    """Probabilities from exponents x_r = c (q* - q_r) >= 0, of which one is zero."""
    values, inverse, counts = np.unique(-np.minimum(exponents, _VANISHED), return_inverse=True, return_counts=True)
    return noisy_max_by_level(values, counts.astype(np.float64))[inverse]


class _Panels(NamedTuple):
    # The grid of y: panel i runs from edges[i] to edges[i + 1], and its nodes are in row i.

    edges: Floats
    offsets: Floats  # y minus the panel's left edge
    weights: Floats
    halved: Floats  # e**-offset / 2
    decays: Floats  # e**(-j width), j along the columns


def noisy_max_by_level(values: Floats, counts: Floats) -> Floats:
    """The probability of one candidate at each level. `counts` says how many candidates have each ascending value."""
    with np.errstate(under="ignore"):
        panels = _panels(values, float(counts.sum()))
        survival = np.exp(_log_survival(values, counts, panels)) * panels.weights
        upto = np.concatenate([[0.0], np.cumsum(survival.sum(axis=1))])
        beyond = _moments_beyond(survival, panels)
        places = np.searchsorted(panels.edges, values)
        probabilities: Floats = upto[places] + beyond[places].sum(axis=1)
        far = values < panels.edges[0]
        probabilities[far] = np.exp(np.outer(values[far] - panels.edges[0], _POWERS)) @ beyond[0]
    return probabilities


def _panels(values: Floats, size: float) -> _Panels:
    lowest = max(float(values[0]), _LOWEST) - _REACH
    steps = np.arange(lowest, float(values[-1]) + _REACH + np.log(size) + _WIDTH, _WIDTH)
    edges = np.unique(np.concatenate([values[values > lowest], steps]))
    nodes, weights = unit_grid(_PANEL_NODES)
    widths = np.diff(edges)[:, np.newaxis]
    offsets = widths * nodes
    return _Panels(edges, offsets, widths * weights, np.exp(-offsets) / 2, np.exp(-widths * _POWERS))


def _log_survival(values: Floats, counts: Floats, panels: _Panels) -> Floats:
    left = panels.edges[:-1]
    below = np.searchsorted(values, left, side="right")
    # Summed from the top, so that the sums that matter, near the largest value, are small and accurate.
    above, sums = (np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (counts, counts * values))
    y = left[:, np.newaxis] + panels.offsets
    log_above = above[below, np.newaxis] * (y - np.log(2)) - sums[below, np.newaxis]
    powers = _powers_below(values, counts, panels)
    log_below = np.zeros_like(y)
    for j in range(_TERMS, 0, -1):
        log_below = (log_below + powers[:, j - 1, np.newaxis] / j) * panels.halved
    difference: Floats = log_above - log_below
    return difference


def _powers_below(values: Floats, counts: Floats, panels: _Panels) -> Floats:
    # Sums of e**(-j (edge - value)) over the candidates at or below each panel's left edge.
    edges = panels.edges
    inside = values >= edges[0]
    joining = np.zeros(edges.size)
    joining[np.searchsorted(edges, values[inside])] = counts[inside]
    powers = np.empty((edges.size - 1, _TERMS))
    carried = np.exp(np.outer(_POWERS, values[~inside] - edges[0])) @ counts[~inside]
    for panel in range(edges.size - 1):
        carried = carried + joining[panel]
        powers[panel] = carried
        carried = carried * panels.decays[panel]
    return powers


def _moments_beyond(survival: Floats, panels: _Panels) -> Floats:
    # Integrals of (e**-(y - edge) / 2)**j G from each edge on, for each j.
    moments = np.empty((len(survival), _TERMS))
    power = survival
    for j in range(_TERMS):
        power = power * panels.halved
        moments[:, j] = power.sum(axis=1)
    beyond = np.zeros((len(survival) + 1, _TERMS))
    for panel in range(len(survival) - 1, -1, -1):
        beyond[panel] = moments[panel] + panels.decays[panel] * beyond[panel + 1]
    return beyond


# The largest errors.

LARGEST_EXPONENT = 700.0  # exp of it is a float


def logarithmic_averages(log_n: float) -> tuple[float, float]:
    """The largest expected error is between log(n) / 4 and log(n) (Propositions 1 and 5)."""
    return log_n / 4, log_n


def logarithmic_tail(x: float, log_n: float) -> float:
    """Pr[error >= x] <= n exp(-x), the paper's Corollary 1 with x = log n + s."""
    return math.exp(min(log_n - x, 0.0)) if log_n else 0.0


@dataclass(frozen=True, repr=False)
class WorstErrors:
    """What is known about the errors of one mechanism at rate one, before any scores are seen.

    Args:
        loss_probability: a function of x and log n > 0: the probability that the best one loses to n - 1 rivals, all x
            below.
        averages: a function of log n: a lower and an upper bound on the largest expected error over all scores.
        tail: a function of x and log n: an upper bound on Pr[error >= x] over all scores.
        is_exact: whether scores (-x, ..., -x, 0) are the worst ones, so that the largest x * loss_probability is the
            largest expected error over all scores.
    """

    loss_probability: Callable[[float, float], float]
    averages: Callable[[float], tuple[float, float]] = logarithmic_averages
    tail: Callable[[float, float], float] = logarithmic_tail
    is_exact: bool = True


def log_rivals(log_n: float) -> float:
    """The logarithm of n - 1, for n of at least two.

    >>> log_rivals(math.log(2)), log_rivals(1000.0)
    (0.0, 1000.0)
    """
    return log_n + math.log1p(-math.exp(-log_n))


def harmonic(log_n: float) -> float:
    """An upper bound of 1 + 1/2 + ... + 1/n: the sum itself for small n, log n + gamma + 1/(2n) beyond.

    >>> harmonic(math.log(3))
    1.8333333333333333
    """
    if log_n <= math.log(1000):
        return math.fsum(1 / k for k in range(1, round(math.exp(log_n)) + 1))
    return log_n + 0.5772156649015329 + math.exp(-log_n) / 2
