"""The expected shortfalls of the ways to choose the top k, where a formula is cheap. The simulations are in `top_k`.

The shortfall of a set is (sum of the k largest scores - sum of its scores) / k: people short of the true top k, per
candidate. With b the k-th largest score, it is

    k * shortfall = sum over the top k of (q_i - b) Pr[not i] + sum over the others of (b - q_i) Pr[i],

Pr[i] the probability that i is chosen. No term is negative, so small shortfalls have as many digits as large ones. Each
formula computes the probabilities as sums of positive terms too. The relative error is below 1e-9. A function returns
None where its formula would take too long; then simulate.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from dpselect._types import Array, Floats, Integers
from dpselect.probability.flip_integral import permute_and_flip_by_level
from dpselect.probability.quadrature import unit_grid
from dpselect.probability.softmax import softmax
from dpselect.probability.top_k import MarginRuns, descending, margin_runs, set_coins

_MOST_ENTRIES = 10**7  # of the table of the exponential mechanism over sets
_MOST_LEVELS = 30_000  # different sums of scores, for permute-and-flip over sets
_MOST_RUNS = 10**6
_MOST_STATES = 10**4  # of all rounds of peeling
_MOST_NOISES = 128  # for one shot: 64 nodes integrate polynomials of degree 127 exactly
_NODES = 64
_NEGLIGIBLE = 60.0  # sets whose weights together are below e**-60 of the shortfall are left out


def expected_shortfall_of_sets(scores: Floats, k: int, rate: float, *, waits: bool) -> float | None:
    """Return the expected shortfall of one choice among all k-sets, scored by the sum of their scores.

    Args:
        scores: one score per candidate.
        k: the size of the sets, from 1 to the number of candidates minus one.
        rate: the rate c, epsilon / range.
        waits: True for permute-and-flip, False for the exponential mechanism.

    Returns:
        The expected shortfall per candidate; None if the sets have more than 30,000 different sums that matter
        (permute-and-flip), or if k times the number of candidates exceeds 10**7 (the exponential mechanism).

    Raises:
        InvalidValue: `k` is out of range.

    >>> scores = np.array([10.0, 8.0, 5.0])
    >>> [round(expected_shortfall_of_sets(scores, 2, 1.0, waits=waits), 4) for waits in (True, False)]
    [0.0455, 0.0866]
    """
    ordered = _ordered(scores, k)
    if not waits:
        return _shortfall_by_coins(ordered, k, rate) if k * ordered.size <= _MOST_ENTRIES else None
    levels = _levels_of_sets(ordered, k, rate)
    if levels is None:
        return None
    losses, log_counts = levels
    return float(permute_and_flip_by_level(rate * losses, log_counts) @ losses) / k


def _ordered(scores: Floats, k: int) -> Floats:
    """The scores in descending order."""
    ordered: Floats = np.asarray(scores, dtype=np.float64)[descending(scores, k)]
    return ordered


def _shortfall(ordered: Floats, k: int, wrong: Floats) -> float:
    """The expected shortfall, from the probability that each candidate is on the wrong side of rank k."""
    return float(np.abs(ordered - ordered[k - 1]) @ wrong) / k


def _shortfall_by_coins(ordered: Floats, k: int, rate: float) -> float:
    """The exponential mechanism over sets, by the number of heads of independent coins, given that it is k.

    A candidate is chosen if its coin shows heads and k - 1 others do, and not chosen if it shows tails and k others do.
    The coins are those of the simulation, at whose tau the probability of k heads is not small. Each addition of a coin
    has a relative error of 3 * 2**-53, and each coin of 3e-13.
    """
    from scipy.special import expit  # noqa: PLC0415 - SciPy is slow to import

    log_odds = set_coins(ordered, k, rate).log_odds
    heads, tails = expit(log_odds), expit(-log_odds)
    wrong = np.empty(ordered.size)
    for i, before, after in _others(heads[:, np.newaxis], tails[:, np.newaxis], k + 1):
        needed, own = (k, tails[i]) if i < k else (k - 1, heads[i])
        wrong[i] = own * (before[: needed + 1] * after[needed::-1]).sum()
        if i == 0:
            exactly_k = wrong[0] + heads[0] * (before[:k] * after[k - 1 :: -1]).sum()
    return _shortfall(ordered, k, wrong / exactly_k)


def _others(heads: Floats, tails: Floats, most: int) -> Iterator[tuple[int, Floats, Floats]]:
    """For each coin, the laws of the number of heads before it and after it, from the last coin to the first.

    Coins are rows; columns are independent cases. Row j of a law is the probability of j heads, and the last row, j =
    most, of that number or more.
    """
    law = np.zeros((most + 1, heads.shape[1]))
    law[0] = 1.0
    before = list(itertools.accumulate(zip(heads[:-1], tails[:-1], strict=True), _with_coin, initial=law))
    after = law
    for i in range(len(heads) - 1, -1, -1):
        yield i, before[i], after
        after = _with_coin(after, (heads[i], tails[i]))


def _with_coin(law: Floats, coin: tuple[Floats, Floats]) -> Floats:
    """The law of the number of heads with one more coin."""
    head, tail = coin
    more = law * tail
    more[1:] += law[:-1] * head
    more[-1] += law[-1] * head
    return more


def _levels_of_sets(ordered: Floats, k: int, rate: float) -> tuple[Floats, Floats] | None:
    """The different sums of scores below the best sum, and the logarithms of the numbers of k-sets that have them.

    Built up one distinct score at a time. Sets that lose so much that all of them together weigh less than e**-60 of
    the least loss are left out.
    """
    pivot = ordered[k - 1]
    values, sizes = (found[::-1] for found in np.unique(ordered, return_counts=True))
    worst = _largest_loss(ordered, k, rate)
    used, losses, log_counts = np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros(1)
    remaining = ordered.size
    for value, size in zip(values.tolist(), sizes.tolist(), strict=True):
        remaining -= size
        number = np.arange(min(size, k) + 1)
        loss = (size - number) * (value - pivot) if value > pivot else number * (pivot - value)
        small = loss <= worst
        if used.size * np.count_nonzero(small) > 50 * _MOST_LEVELS:
            return None
        totals, sums = np.add.outer(used, number[small]), np.add.outer(losses, loss[small])
        kept = (totals <= k) & (totals + remaining >= k) & (sums <= worst)
        counts = np.add.outer(log_counts, _log_binomials(size, number.size)[small])
        used, losses, log_counts = _merged(totals[kept], sums[kept], counts[kept])
        if used.size > _MOST_LEVELS:
            return None
    return losses, log_counts


def _largest_loss(ordered: Floats, k: int, rate: float) -> float:
    """The loss beyond which sets are negligible beside the least loss, or one that is nearly the least."""
    below, above = (np.abs(part[part != ordered[k - 1]] - ordered[k - 1]) for part in (ordered[k:], ordered[:k]))
    if not below.size and not above.size:
        return 0.0
    small = below[0] if below.size else above[-1]
    log_sets = _log_binomials(ordered.size, k + 1)[-1]
    return float(small + (log_sets + _NEGLIGIBLE) / rate)


def _log_binomials(size: int, count: int) -> Floats:
    """The logarithms of the first binomial coefficients of this size: of `size` over 0, 1, 2 and so on."""
    chosen = np.arange(1, count)
    return np.append(0.0, np.cumsum(np.log((size - chosen + 1) / chosen)))


def _merged(used: Integers, losses: Floats, log_counts: Floats) -> tuple[Integers, Floats, Floats]:
    """The same sets, with those merged that have equal sizes and equal losses."""
    order = np.lexsort((losses, used))
    used, losses, log_counts = used[order], losses[order], log_counts[order]
    first = np.append(True, (np.diff(used) > 0) | (np.diff(losses) > 0)).nonzero()[0]
    return used[first], losses[first], np.logaddexp.reduceat(log_counts, first)


def expected_shortfall_of_margins(
    scores: Floats, k: int | tuple[int, int], rate: float, *, waits: bool
) -> float | None:
    """Return the expected shortfall of one choice among k-sets, scored by the least score inside - the largest outside.

    Args:
        scores: one score per candidate.
        k: the size of the sets, or the smallest and the largest size; from 1 to the number of candidates minus one.
        rate: the rate c, epsilon / range.
        waits: True for permute-and-flip, False for the exponential mechanism.

    Returns:
        The expected shortfall per candidate; None if k (n - k), summed over the sizes, exceeds 10**6.

    Raises:
        InvalidValue: `k` is out of range.

    >>> scores = np.array([10.0, 8.0, 5.0])
    >>> [round(expected_shortfall_of_margins(scores, 2, 0.5, waits=waits), 4) for waits in (True, False)]
    [0.0596, 0.1128]
    """
    low, high = k if isinstance(k, tuple) else (k, k)
    ordered = _ordered(scores, high)
    sizes = range(low, high + 1)
    if sum(size * (ordered.size - size) for size in sizes) > _MOST_RUNS:
        return None
    found = [margin_runs(ordered, size, size) for size in sizes]
    margins, log_lengths = (np.concatenate(parts) for parts in list(zip(*found, strict=True))[:2])
    short = np.concatenate([_mean_shortfalls(ordered, size, runs) for size, runs in zip(sizes, found, strict=True)])
    return float(_level_probabilities(rate * (margins.max() - margins), log_lengths, waits=waits) @ short)


def _mean_shortfalls(ordered: Floats, k: int, runs: MarginRuns) -> Floats:
    """The mean shortfall of the k-sets of each run, which share h and t, as a sum of terms that are never negative.

    The candidate of rank h + 1 is missing and that of rank t is chosen. Of the N = t - h - 2 candidates between, those
    among the top k are missing with probability (t - 1 - k) / N, and the others are chosen with the rest of it.
    """
    distances = np.abs(ordered - ordered[k - 1])
    missing = np.append(np.cumsum(distances[:k][::-1])[::-1], np.zeros(ordered.size + 1 - k))  # sums from a rank to k
    extra = np.append(np.zeros(k + 1), np.cumsum(distances[k:]))  # sums from k to a rank
    h, t = runs.inside, runs.last
    between = np.maximum(t - h - 2, 1)
    inner = ((t - 1 - k) * missing[h + 1] + (k - h - 1) * extra[t - 1]) / between
    return np.where(h < k, distances[h] + distances[t - 1] + inner, 0.0) / k


def _level_probabilities(exponents: Floats, log_counts: Floats, *, waits: bool) -> Floats:
    """The probability of each level of candidates."""
    if waits:
        return permute_and_flip_by_level(exponents, log_counts)
    weights = log_counts - exponents
    return softmax(weights.max() - weights)


def expected_shortfall_of_peeling(scores: Floats, k: int, rate: float, *, waits: bool) -> float | None:
    """Return the expected shortfall of k choices, one after another, each among the candidates that are left.

    Args:
        scores: one score per candidate.
        k: the number of choices, from 1 to the number of candidates minus one.
        rate: the rate c of each choice, its epsilon / range.
        waits: True for permute-and-flip, False for the exponential mechanism.

    Returns:
        The expected shortfall per candidate; None if all rounds together have more than 10**4 different multisets of
        chosen scores.

    Raises:
        InvalidValue: `k` is out of range.

    >>> scores = np.array([10.0, 8.0, 5.0])
    >>> [round(expected_shortfall_of_peeling(scores, 2, 0.5, waits=waits), 4) for waits in (True, False)]
    [0.2104, 0.337]
    """
    ordered = _ordered(scores, k)
    values, sizes = (found[::-1] for found in np.unique(ordered, return_counts=True))
    if _multisets(sizes, k) > _MOST_STATES:
        return None
    states = {(0,) * values.size: 1.0}  # how many candidates of each score are chosen
    for _ in range(k):
        following: dict[tuple[int, ...], float] = defaultdict(float)
        for taken, probability in states.items():
            left = (sizes > taken).nonzero()[0]
            exponents = rate * (values[left[0]] - values[left])
            log_counts = np.log((sizes - taken)[left])
            for level, own in zip(left, _level_probabilities(exponents, log_counts, waits=waits), strict=True):
                following[*taken[:level], taken[level] + 1, *taken[level + 1 :]] += probability * float(own)
        states = following
    wrong = np.where(values > ordered[k - 1], sizes - np.array(list(states)), np.array(list(states)))
    return float(np.array(list(states.values())) @ wrong @ np.abs(values - ordered[k - 1])) / k


def _multisets(sizes: Array, most: int) -> float:
    """The number of multisets of 1 to `most` scores, of which each can be taken as often as it occurs.

    Those of each size are the coefficients of a product of polynomials 1 + x + ... + x**size.
    """
    found = np.eye(1, most + 1)[0]
    for size in np.minimum(sizes, most).tolist():
        found = np.convolve(found, np.ones(size + 1))[: most + 1]
        if found.sum() > _MOST_STATES + 1:
            break
    return float(found[1:].sum())


def expected_shortfall_of_one_shot(scores: Floats, k: int, rate: float) -> float | None:
    """Return the expected shortfall of the k largest of score + exponential noise.

    With p_i = exp(-c (q* - q_i)), candidate i has the noise -log(z p_i) / c for a z that is uniform on [0, 1 / p_i].
    The k smallest z are chosen. Given z, another candidate s is before i with probability min(1, p_s z). Between two of
    the points 1 / p_s the integrand is a polynomial of degree n - 1 at most, which Gauss-Legendre integrates exactly.

    Args:
        scores: one score per candidate.
        k: the number of chosen candidates, from 1 to the number of candidates minus one.
        rate: the rate of the noise.

    Returns:
        The expected shortfall per candidate; None if there are more than 128 candidates.

    Raises:
        InvalidValue: `k` is out of range.

    >>> round(expected_shortfall_of_one_shot(np.array([10.0, 8.0, 5.0]), 2, 0.5), 4)
    0.185
    """
    ordered = _ordered(scores, k)
    if ordered.size > _MOST_NOISES:
        return None
    exponents = rate * (ordered[0] - ordered)
    wrong = np.zeros(ordered.size)
    for certain in range(k):
        width = -math.expm1(exponents[certain - 1] - exponents[certain]) if certain else 1.0
        if width:
            wrong[certain:] += _wrong_in_panel(exponents[certain:] - exponents[certain], k - certain, width)
    return _shortfall(ordered, k, wrong)


def _wrong_in_panel(exponents: Floats, wanted: int, width: float) -> Floats:
    """The probability that z falls in a panel and the candidate is on the wrong side of rank k, for each candidate.

    The panel is v = z p in [1 - width, 1], p of the first candidate. Those before it are certain; of the others,
    `wanted` more are chosen.
    """
    nodes, weights = unit_grid(_NODES)
    own = np.exp(-exponents)
    from_one = width * (1 - nodes)  # 1 - v
    heads = np.outer(own, 1 - from_one)
    tails = -np.expm1(-exponents)[:, np.newaxis] + np.outer(own, from_one)
    wrong = np.empty(own.size)
    for i, before, after in _others(heads, tails, wanted):
        if i < wanted:  # it is wrong to leave it out: `wanted` or more others are before it
            others = before[wanted] + (before[:wanted] * after[::-1].cumsum(axis=0)[:wanted]).sum(axis=0)
        else:
            others = (before[:wanted] * after.cumsum(axis=0)[wanted - 1 :: -1]).sum(axis=0)
        wrong[i] = own[i] * width * (others @ weights)
    return wrong
