"""Simulations of the five ways to choose the top k, in float64, for analysis on public scores.

No answer is ever drawn from them: their floats and their seeded generators have no privacy guarantee. Each method
chooses k of n candidates, at a rate c that is already divided by the range of its scores.

* Sets: one choice among all k-sets, scored by the sum of their scores (`simulate_sets`).
* Margins: one choice among all k-sets, scored by the least score inside minus the largest outside
  (`simulate_margins`).
* One shot: the k largest of score + exponential noise (`simulate_one_shot`).
* Peeling: k choices, one after another (`simulate_peeling`; `simulate_rounds` for any noise).
* Noisy counts: the k largest of score + Laplace noise (`simulate_noisy_counts`).

`waits` names the mechanism that chooses. Permute-and-flip is the exponential mechanism that waits: True is
permute-and-flip, False the exponential mechanism.

What floats change is far below what simulations can see: coins have 53 bits, coins that are certain to 2**-53 are not
flipped, runs with less than e**-60 of the best set's weight are left out, and score + noise has a relative error of
2**-53. At 10**6 candidates this moves at most 1e-8 of the probability.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dpselect._types import Floats, Positions
from dpselect.errors import InvalidValue
from dpselect.probability.softmax import softmax

_BLOCK = 1 << 20  # random numbers drawn at once
_LIVE = 37.0  # a coin with larger log odds is certain: the other side has a probability below 2**-53
_FARTHEST = 800.0  # e**-800 is zero in float64
_LEAST = 60.0  # runs with less than e**-60 of the best set's weight are left out


def shortfalls(scores: Floats, chosen: Positions) -> Floats:
    """Return how many people each chosen set is short of the true top k, per candidate.

    Args:
        scores: one score per candidate.
        chosen: positions of chosen candidates, one row per run. A row with fewer candidates ends in -1.

    Returns:
        For each row, (sum of the k largest scores - sum of the chosen scores) / k, where k candidates are in the row.

    >>> shortfalls(np.array([5.0, 9.0, 7.0]), np.array([[1, 2], [0, 1], [0, -1]]))
    array([0., 1., 4.])
    """
    scores = np.asarray(scores, dtype=np.float64)
    best, sizes = np.cumsum(np.sort(scores)[::-1]), (chosen >= 0).sum(axis=1)
    sums = np.where(chosen >= 0, scores[chosen], 0.0).sum(axis=1)
    short: Floats = (best[sizes - 1] - sums) / sizes
    return short


def simulate_sets(  # noqa: PLR0913 - one parameter for each public choice
    scores: Floats, k: int, rate: float, runs: int, generator: np.random.Generator, *, waits: bool
) -> Positions:
    """Simulate one choice among all k-sets, scored by the sum of their scores.

    The exponential mechanism flips a coin for each candidate until exactly k show heads. Permute-and-flip draws such
    sets at the times of a clock s, and accepts one with probability e**-s / (1 - p (1 - e**-s)), where p is the
    probability of heads of the set's own coin. The clock runs on over sets that are not accepted.

    Args:
        scores: one score per candidate.
        k: the size of the sets, from 1 to the number of candidates minus one.
        rate: the rate c, epsilon / range.
        runs: the number of simulated choices.
        generator: the source of randomness.
        waits: True for permute-and-flip, False for the exponential mechanism.

    Returns:
        The positions of the chosen candidates in ascending order, one row per run.

    Raises:
        InvalidValue: `k` is out of range.

    >>> simulate_sets(np.array([0.0, 99.0, 98.0]), 2, 1.0, 3, np.random.default_rng(1), waits=True).tolist()
    [[1, 2], [1, 2], [1, 2]]
    """
    coins = set_coins(scores, k, rate)
    chosen, tries = _heads(coins, runs, generator)
    clock = np.zeros(runs)
    waiting = np.arange(runs) if waits else np.arange(0)
    while waiting.size:
        clock[waiting] += generator.gamma(tries) * np.exp(-coins.log_tries)
        accepted = generator.random(waiting.size) < _acceptance(coins, chosen[waiting], clock[waiting])
        waiting = waiting[~accepted]
        chosen[waiting], tries = _heads(coins, waiting.size, generator)
    return np.sort(coins.order[chosen], axis=1)


class SetCoins(NamedTuple):
    """Coins, one per candidate in descending order of scores, with odds exp(c (score - tau)).

    Given that exactly k show heads, the set of heads has a probability proportional to exp(c * sum), for every tau.
    At this tau, k heads are expected.
    """

    k: int
    order: Positions  # the candidates in descending order of scores
    exponents: Floats  # c (score - score of rank k), within 800 of zero
    log_odds: Floats
    log_tries: float  # the logarithm of the rate at which the clock of permute-and-flip tries sets of any size


def set_coins(scores: Floats, k: int, rate: float) -> SetCoins:
    """The coins of the exponential mechanism over all k-sets.

    The rate of tries is prod (1 + odds) * exp(-c (u* - k tau)), u* the best sum. Its logarithm is a sum of positive
    terms: log(1 + 1/odds) for the k best candidates, log(1 + odds) for the others.
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - SciPy is slow to import
    from scipy.special import expit  # noqa: PLC0415 - as above

    order = descending(scores, k)
    ordered = np.asarray(scores, dtype=np.float64)[order]
    exponents = np.clip(rate * (ordered - ordered[k - 1]), -_FARTHEST, _FARTHEST)
    reach = np.log(order.size) + 1
    tau = brentq(lambda t: expit(exponents - t).sum() - k, exponents[-1] - reach, exponents[0] + reach)
    log_odds = exponents - tau
    log_tries = np.logaddexp(0, -log_odds[:k]).sum() + np.logaddexp(0, log_odds[k:]).sum()
    return SetCoins(k, order, exponents, log_odds, float(log_tries))


def descending(scores: Floats, k: int) -> Positions:
    """The positions of the candidates in descending order of scores, once k is found to leave a choice."""
    scores = np.asarray(scores, dtype=np.float64)
    if not 1 <= k < scores.size:
        raise InvalidValue(f"k must be between 1 and {scores.size - 1}, the number of candidates minus one, got {k}")
    return np.argsort(-scores, kind="stable")


def _heads(coins: SetCoins, count: int, generator: np.random.Generator) -> tuple[Positions, Positions]:
    """Sets of exactly k heads, as rows of ranks in ascending order, and the number of tries that each of them took."""
    from scipy.special import expit  # noqa: PLC0415 - SciPy is slow to import

    first, last = np.searchsorted(-coins.log_odds, [-_LIVE, _LIVE])
    live = expit(coins.log_odds[first:last])  # coins before these are heads, coins after them tails
    wanted = coins.k - first
    expected_tries = 1 + np.sqrt(2 * np.pi * (live @ (1 - live)))
    rows = min(int(1.2 * count * expected_tries) + 8, _BLOCK // max(live.size, 1) + 1)
    hits, sets, tried, found = [np.array([-1])], [np.empty((0, wanted), dtype=np.int64)], 0, 0
    while found < count:
        heads = generator.random((rows, live.size)) < live
        exact = (heads.sum(axis=1) == wanted).nonzero()[0]
        hits.append(tried + exact)
        sets.append(heads[exact].nonzero()[1].reshape(exact.size, wanted))
        tried, found = tried + rows, found + exact.size
    certain = np.broadcast_to(np.arange(first), (count, first))
    ranks = np.concatenate([certain, first + np.concatenate(sets)[:count]], axis=1)
    return ranks, np.diff(np.concatenate(hits))[:count]


def _acceptance(coins: SetCoins, ranks: Positions, clock: Floats) -> Floats:
    """The probability that permute-and-flip accepts each set at its time; 1 for a best set."""
    losses = (coins.exponents[: coins.k] - coins.exponents[ranks]).sum(axis=1)  # both descend: no term is negative
    early = np.exp(-clock)
    accepted: Floats = early / (early - np.expm1(-losses) * (1 - early))
    return accepted


class MarginRuns(NamedTuple):
    """Sets that share a margin, because they share h and t. Ranks count from 1 in descending order of scores.

    The h best candidates are inside, the next one is outside, and the worst one inside has rank t. The margin is
    score(t) - score(h + 1). A set that is the k best candidates is a run of its own, with h = t = k.
    """

    margins: Floats
    log_lengths: Floats
    inside: Positions  # h
    last: Positions  # t


def margin_runs(ordered: Floats, low: int, high: int) -> MarginRuns:
    """The runs of all sets of `low` to `high` candidates, whose scores descend.

    The run (h, t) has N = t - h - 2 candidates between h + 1 and t, of which k - h - 1 are inside: G(h, N) = sum over k
    of binomial(N, k - h - 1) sets. Pascal's rule G(h, N + 1) = G(h, N) + G(h + 1, N) makes each row of G a cumulative
    sum of the next. At most high + d additions of positive terms, each with an error of 2**-53 times the logarithm,
    leave a relative error below 1e-9 while high * d <= 10**6.
    """
    count = ordered.size
    if not 1 <= low <= high < count:
        raise InvalidValue(f"sizes must be between 1 and {count - 1}, the number of candidates minus one")
    row = np.full(count - 1, -np.inf)
    sizes = np.arange(low, high + 1)
    logs, inside, last = [np.zeros(sizes.size)], [sizes], [sizes]
    for h in range(high - 1, -1, -1):
        row = np.logaddexp.accumulate(np.append(0.0 if low <= h + 1 else -np.inf, row[:-1]))
        between = np.arange(max(0, low - h - 1), count - h - 1)
        logs.append(row[between])
        inside.append(np.full(between.size, h))
        last.append(h + 2 + between)
    h_all, t_all = np.concatenate(inside), np.concatenate(last)
    return MarginRuns(ordered[t_all - 1] - ordered[h_all], np.concatenate(logs), h_all, t_all)


def simulate_margins(  # noqa: PLR0913 - one parameter for each public choice
    scores: Floats, k: int | tuple[int, int], rate: float, runs: int, generator: np.random.Generator, *, waits: bool
) -> Positions:
    """Simulate one choice among all k-sets, scored by the least score inside minus the largest outside.

    The choice falls on a run of sets with equal margins, by the largest of its exponential noises or by its weight, and
    then on a uniformly random set of the run.

    Args:
        scores: one score per candidate.
        k: the size of the sets, or the smallest and the largest size; from 1 to the number of candidates minus one.
        rate: the rate c, epsilon / range.
        runs: the number of simulated choices.
        generator: the source of randomness.
        waits: True for permute-and-flip, False for the exponential mechanism.

    Returns:
        The positions of the chosen candidates in ascending order, one row per run, filled up with -1 if sizes differ.

    Raises:
        InvalidValue: `k` is out of range.

    >>> simulate_margins(np.array([0.0, 99.0, 98.0]), (1, 2), 1.0, 2, np.random.default_rng(1), waits=True).tolist()
    [[1, 2], [1, 2]]
    """
    low, high = k if isinstance(k, tuple) else (k, k)
    order = descending(scores, high)
    found = margin_runs(np.asarray(scores, dtype=np.float64)[order], low, high)
    exponents = rate * (found.margins.max() - found.margins)
    kept = (found.log_lengths - exponents > -_LEAST).nonzero()[0]
    choose = _first_runs if waits else _heaviest_runs
    chosen = kept[choose(exponents[kept], found.log_lengths[kept], runs, generator)]
    sets = np.full((runs, high), order.size)
    for row, run in zip(sets, chosen, strict=True):
        ranks = _set_of_run(int(found.inside[run]), int(found.last[run]), (low, high), generator)
        row[: ranks.size] = order[ranks]
    sets.sort(axis=1)
    return np.where(sets < order.size, sets, -1)


def _first_runs(exponents: Floats, log_lengths: Floats, count: int, generator: np.random.Generator) -> Positions:
    """Permute-and-flip over runs: the largest score + noise, where the noise is the largest of N exponential ones.

    That is -log(1 - e**-(E / N)) with E exponential, and log N - log E to 1e-13 where E / N < 1e-13.
    """
    chosen = np.empty(count, dtype=np.int64)
    for block in _row_blocks(chosen, exponents.size):
        logs = np.log(generator.standard_exponential((block.size, exponents.size))) - log_lengths
        noise = np.where(logs < -30, -logs, -np.log(-np.expm1(-np.exp(np.maximum(logs, -30)))))
        block[:] = (noise - exponents).argmax(axis=1)
    return chosen


def _heaviest_runs(exponents: Floats, log_lengths: Floats, count: int, generator: np.random.Generator) -> Positions:
    """The exponential mechanism over runs: by their weights N e**-x."""
    weights = log_lengths - exponents
    return generator.choice(weights.size, count, p=softmax(weights.max() - weights))


def _set_of_run(h: int, t: int, sizes: tuple[int, int], generator: np.random.Generator) -> Positions:
    """A uniformly random set of a run, as ranks from 0."""
    if h == t:
        return np.arange(h)
    between = t - h - 2
    numbers = np.arange(max(sizes[0] - h - 1, 0), min(sizes[1] - h - 1, between) + 1)
    if numbers.size > 1:
        logs = np.cumsum(np.log((between - numbers + 1) / np.maximum(numbers, 1)))  # log binomials up to a constant
        numbers = generator.choice(numbers, 1, p=softmax(logs.max() - logs))
    inner = h + 1 + generator.choice(between, numbers[0], replace=False)
    return np.concatenate([np.arange(h), inner, [t - 1]])


def simulate_one_shot(scores: Floats, k: int, rate: float, runs: int, generator: np.random.Generator) -> Positions:
    """Simulate the k largest of score + exponential noise.

    Args:
        scores: one score per candidate.
        k: the number of chosen candidates, from 1 to the number of candidates.
        rate: the rate of the noise.
        runs: the number of simulated choices.
        generator: the source of randomness.

    Returns:
        The positions of the chosen candidates in the order of selection, one row per run.

    Raises:
        InvalidValue: `k` is out of range.

    >>> simulate_one_shot(np.array([0.0, 98.0, 199.0]), 2, 1.0, 2, np.random.default_rng(1)).tolist()
    [[2, 1], [2, 1]]
    """
    return _largest(scores, k, rate, runs, generator.standard_exponential)


def simulate_noisy_counts(scores: Floats, k: int, rate: float, runs: int, generator: np.random.Generator) -> Positions:
    """Simulate the k largest of score + Laplace noise.

    Args:
        scores: one score per candidate.
        k: the number of chosen candidates, from 1 to the number of candidates.
        rate: the rate of the noise, one over its scale.
        runs: the number of simulated choices.
        generator: the source of randomness.

    Returns:
        The positions of the chosen candidates in the order of their noisy scores, one row per run.

    Raises:
        InvalidValue: `k` is out of range.

    >>> simulate_noisy_counts(np.array([0.0, 98.0, 199.0]), 2, 1.0, 2, np.random.default_rng(1)).tolist()
    [[2, 1], [2, 1]]
    """
    return _largest(scores, k, rate, runs, lambda shape: generator.laplace(size=shape))


def simulate_peeling(  # noqa: PLR0913 - one parameter for each public choice
    scores: Floats, k: int, rate: float, runs: int, generator: np.random.Generator, *, waits: bool
) -> Positions:
    """Simulate k choices, one after another, each among the candidates that are left.

    The exponential mechanism is the largest of score + Gumbel noise, and k choices have the law of the k largest of one
    draw of the noise. Permute-and-flip is the largest of score + exponential noise, drawn anew for each choice.

    Args:
        scores: one score per candidate.
        k: the number of choices, from 1 to the number of candidates.
        rate: the rate c of each choice, its epsilon / range.
        runs: the number of simulations.
        generator: the source of randomness.
        waits: True for permute-and-flip, False for the exponential mechanism.

    Returns:
        The positions of the chosen candidates in the order of selection, one row per run.

    Raises:
        InvalidValue: `k` is out of range.

    >>> simulate_peeling(np.array([0.0, 98.0, 199.0]), 2, 1.0, 2, np.random.default_rng(1), waits=True).tolist()
    [[2, 1], [2, 1]]
    """
    if not waits:
        return _largest(scores, k, rate, runs, lambda shape: generator.gumbel(size=shape))
    return simulate_rounds(scores, k, rate, runs, generator.standard_exponential)


def simulate_rounds(
    scores: Floats, k: int, rate: float, runs: int, noise: Callable[[tuple[int, int]], Floats]
) -> Positions:
    """Simulate k choices, one after another, each of the largest score + noise among the candidates that are left.

    Args:
        scores: one score per candidate.
        k: the number of choices, from 1 to the number of candidates.
        rate: the rate c of each choice: scores are multiplied by it.
        runs: the number of simulations.
        noise: a function that draws an array of noise of a given shape, at rate one.

    Returns:
        The positions of the chosen candidates in the order of selection, one row per run.

    Raises:
        InvalidValue: `k` is out of range.
    """
    values = _scaled(scores, k, rate)
    chosen = np.empty((runs, k), dtype=np.int64)
    for block in _row_blocks(chosen, values.size):
        left = np.tile(values, (len(block), 1))
        for choice in range(k):
            block[:, choice] = (left + noise((len(block), values.size))).argmax(axis=1)
            left[np.arange(len(block)), block[:, choice]] = -np.inf
    return chosen


def _largest(scores: Floats, k: int, rate: float, runs: int, noise: Callable[[tuple[int, int]], Floats]) -> Positions:
    """The k largest of score + noise / rate, in descending order."""
    values = _scaled(scores, k, rate)
    chosen = np.empty((runs, k), dtype=np.int64)
    for block in _row_blocks(chosen, values.size):
        noisy = -(values + noise((len(block), values.size)))
        top = np.argpartition(noisy, k - 1, axis=1)[:, :k]
        ranked = np.take_along_axis(noisy, top, axis=1).argsort(axis=1)
        block[:] = np.take_along_axis(top, ranked, axis=1)
    return chosen


def _scaled(scores: Floats, k: int, rate: float) -> Floats:
    """The scores in units of the noise, from the best one down."""
    scores = np.asarray(scores, dtype=np.float64)
    if not 1 <= k <= scores.size:
        raise InvalidValue(f"k must be between 1 and {scores.size}, the number of candidates, got {k}")
    values: Floats = rate * (scores - scores.max())
    return values


def _row_blocks(rows: Positions, width: int) -> Iterator[Positions]:
    """Views of consecutive rows, such that as many rows of random numbers fit the memory."""
    step = max(1, _BLOCK // width)
    return (rows[start : start + step] for start in range(0, len(rows), step))
