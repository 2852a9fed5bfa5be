"""The five ways to choose the top k, on given public scores: simulated in float64, and by a formula where it is cheap.

No answer is ever drawn from them: their floats and their seeded generators have no privacy guarantee. Each method
chooses k of n candidates, at a rate c that is already divided by the range of its scores.

* Sets: one choice among all k-sets, scored by the sum of their scores.
* Margins: one choice among all k-sets, scored by the least score inside minus the largest outside.
* One shot: the k largest of score + exponential noise.
* Peeling: k choices, one after another. With the exponential mechanism, which is the largest of score + Gumbel noise,
  they have the law of the k largest of one draw of the noise.
* Noisy counts: the k largest of score + Laplace noise.

`waits` names the mechanism that chooses. Permute-and-flip is the exponential mechanism that waits: True is
permute-and-flip, False the exponential mechanism.

**Simulations.** What floats change is far below what simulations can see: coins have 53 bits, coins that are certain to
2**-53 are not flipped, runs with less than e**-60 of the best set's weight are left out, and score + noise has a
relative error of 2**-53. At 10**6 candidates this moves at most 1e-8 of the probability.

**Formulas.** The shortfall of a set is (sum of the k largest scores - sum of its scores) / k: people short of the true
top k, per candidate. With b the k-th largest score, it is

    k * shortfall = sum over the top k of (q_i - b) Pr[not i] + sum over the others of (b - q_i) Pr[i],

Pr[i] the probability that i is chosen. No term is negative, so small shortfalls have as many digits as large ones. Each
formula computes the probabilities as sums of positive terms too. The relative error is below 1e-9. A function returns
None where its formula would take too long; then simulate.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dpselect._types import Array, Floats, Integers, Positions
from dpselect.errors import InvalidValue
from dpselect.mechanisms.laws import permute_and_flip_by_level, softmax, unit_grid

_BLOCK = 1 << 20  # random numbers drawn at once
_LIVE = 37.0  # a coin with larger log odds is certain: the other side has a probability below 2**-53
_FARTHEST = 800.0  # e**-800 is zero in float64
_NEGLIGIBLE = 60.0  # sets whose weights together are below e**-60 of the best one's, or of the shortfall, are left out
_MOST_ENTRIES = 10**7  # of the table of the exponential mechanism over sets
_MOST_LEVELS = 30_000  # different sums of scores, for permute-and-flip over sets
_MOST_RUNS = 10**6
_MOST_STATES = 10**4  # of all rounds of peeling
_MOST_NOISES = 128  # for one shot: 64 nodes integrate polynomials of degree 127 exactly
_NODES = 64


def shortfalls(scores: Floats, chosen: Positions) -> Floats:
    """How many people each chosen set is short of the true top of its size, per candidate; shorter rows end in -1."""
    scores = np.asarray(scores, dtype=np.float64)
    best, sizes = np.cumsum(np.sort(scores)[::-1]), (chosen >= 0).sum(axis=1)
    sums = np.where(chosen >= 0, scores[chosen], 0.0).sum(axis=1)
    short: Floats = (best[sizes - 1] - sums) / sizes
    return short


def simulate_sets(  # noqa: PLR0913 - one parameter for each public choice
    scores: Floats, k: int, rate: float, runs: int, generator: np.random.Generator, *, waits: bool
) -> Positions:
    """One choice among all k-sets by their sums, for each run: rows of positions in ascending order."""
    # The exponential mechanism flips a coin for each candidate until exactly k show heads. Permute-and-flip draws such
    # sets at the times of a clock s, and accepts one with probability e**-s / (1 - p (1 - e**-s)), where p is the
    # probability of heads of the set's own coin. The clock runs on over sets that are not accepted.
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
    # Coins, one per candidate in descending order of scores, with odds exp(c (score - tau)). Given that exactly k show
    # heads, the set of heads has a probability proportional to exp(c * sum), for every tau. At this tau, k heads are
    # expected.

    k: int
    order: Positions  # the candidates in descending order of scores
    exponents: Floats  # c (score - score of rank k), within 800 of zero
    log_odds: Floats
    log_tries: float  # the logarithm of the rate at which the clock of permute-and-flip tries sets of any size


def set_coins(scores: Floats, k: int, rate: float) -> SetCoins:
    # The coins of the exponential mechanism over all k-sets. The rate of tries is prod (1 + odds) * exp(-c (u* - k
    # tau)), u* the best sum. Its logarithm is a sum of positive terms: log(1 + 1/odds) for the k best candidates,
    # log(1 + odds) for the others.
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
    # Sets of exactly k heads, as rows of ranks in ascending order, and the number of tries that each of them took.
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
    # The probability that permute-and-flip accepts each set at its time; 1 for a best set.
    losses = (coins.exponents[: coins.k] - coins.exponents[ranks]).sum(axis=1)  # both descend: no term is negative
    early = np.exp(-clock)
    accepted: Floats = early / (early - np.expm1(-losses) * (1 - early))
    return accepted


class MarginRuns(NamedTuple):
    """Sets that share a margin, because they share h and t. Ranks count from 1 in descending order of scores."""

    # The h best candidates are inside, the next one is outside, and the worst one inside has rank t. The margin is
    # score(t) - score(h + 1). A set that is the k best candidates is a run of its own, with h = t = k.

    margins: Floats
    log_lengths: Floats
    inside: Positions  # h
    last: Positions  # t


def margin_runs(ordered: Floats, low: int, high: int) -> MarginRuns:
    # The runs of all sets of `low` to `high` candidates, whose scores descend. The run (h, t) has N = t - h - 2
    # candidates between h + 1 and t, of which k - h - 1 are inside: G(h, N) = sum over k of binomial(N, k - h - 1)
    # sets. Pascal's rule G(h, N + 1) = G(h, N) + G(h + 1, N) makes each row of G a cumulative sum of the next. At most
    # high + d additions of positive terms, each with an error of 2**-53 times the logarithm, leave a relative error
    # below 1e-9 while high * d <= 10**6.
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
    """One choice among all sets of k, or of `low` to `high` candidates, by their margins, for each run."""
    # The choice falls on a run of sets with equal margins, by the largest of its exponential noises or by its weight,
    # and then on a uniformly random set of the run. Rows of positions ascend, and end in -1 if sizes differ.
    low, high = k if isinstance(k, tuple) else (k, k)
    order = descending(scores, high)
    found = margin_runs(np.asarray(scores, dtype=np.float64)[order], low, high)
    exponents = rate * (found.margins.max() - found.margins)
    kept = (found.log_lengths - exponents > -_NEGLIGIBLE).nonzero()[0]
    choose = _first_runs if waits else _heaviest_runs
    chosen = kept[choose(exponents[kept], found.log_lengths[kept], runs, generator)]
    sets = np.full((runs, high), order.size)
    for row, run in zip(sets, chosen, strict=True):
        ranks = _set_of_run(int(found.inside[run]), int(found.last[run]), (low, high), generator)
        row[: ranks.size] = order[ranks]
    sets.sort(axis=1)
    return np.where(sets < order.size, sets, -1)


def _first_runs(exponents: Floats, log_lengths: Floats, count: int, generator: np.random.Generator) -> Positions:
    # Permute-and-flip over runs: the largest score + noise, where the noise is the largest of N exponential ones. That
    # is -log(1 - e**-(E / N)) with E exponential, and log N - log E to 1e-13 where E / N < 1e-13.
    chosen = np.empty(count, dtype=np.int64)
    for block in _row_blocks(chosen, exponents.size):
        logs = np.log(generator.standard_exponential((block.size, exponents.size))) - log_lengths
        noise = np.where(logs < -30, -logs, -np.log(-np.expm1(-np.exp(np.maximum(logs, -30)))))
        block[:] = (noise - exponents).argmax(axis=1)
    return chosen


def _heaviest_runs(exponents: Floats, log_lengths: Floats, count: int, generator: np.random.Generator) -> Positions:
    # The exponential mechanism over runs: by their weights N e**-x.
    weights = log_lengths - exponents
    return generator.choice(weights.size, count, p=softmax(weights.max() - weights))


def _set_of_run(h: int, t: int, sizes: tuple[int, int], generator: np.random.Generator) -> Positions:
    if h == t:
        return np.arange(h)
    between = t - h - 2
    numbers = np.arange(max(sizes[0] - h - 1, 0), min(sizes[1] - h - 1, between) + 1)
    if numbers.size > 1:
        logs = np.cumsum(np.log((between - numbers + 1) / np.maximum(numbers, 1)))  # log binomials up to a constant
        numbers = generator.choice(numbers, 1, p=softmax(logs.max() - logs))
    inner = h + 1 + generator.choice(between, numbers[0], replace=False)
    return np.concatenate([np.arange(h), inner, [t - 1]])


def simulate_once(
    scores: Floats, k: int, rate: float, runs: int, noise: Callable[[tuple[int, int]], Floats]
) -> Positions:
    """The k largest of score + noise / rate for each run, in descending order. `noise` draws an array of a shape."""
    values = _scaled(scores, k, rate)
    chosen = np.empty((runs, k), dtype=np.int64)
    for block in _row_blocks(chosen, values.size):
        noisy = -(values + noise((len(block), values.size)))
        top = np.argpartition(noisy, k - 1, axis=1)[:, :k]
        ranked = np.take_along_axis(noisy, top, axis=1).argsort(axis=1)
        block[:] = np.take_along_axis(top, ranked, axis=1)
    return chosen


def simulate_rounds(
    scores: Floats, k: int, rate: float, runs: int, noise: Callable[[tuple[int, int]], Floats]
) -> Positions:
    """The largest of score + noise / rate for each run, k times, each time among the candidates that are left."""
    values = _scaled(scores, k, rate)
    chosen = np.empty((runs, k), dtype=np.int64)
    for block in _row_blocks(chosen, values.size):
        left = np.tile(values, (len(block), 1))
        for choice in range(k):
            block[:, choice] = (left + noise((len(block), values.size))).argmax(axis=1)
            left[np.arange(len(block)), block[:, choice]] = -np.inf
    return chosen


def _scaled(scores: Floats, k: int, rate: float) -> Floats:
    scores = np.asarray(scores, dtype=np.float64)
    if not 1 <= k <= scores.size:
        raise InvalidValue(f"k must be between 1 and {scores.size}, the number of candidates, got {k}")
    values: Floats = rate * (scores - scores.max())
    return values


def _row_blocks(rows: Positions, width: int) -> Iterator[Positions]:
    # Views of consecutive rows, such that as many rows of random numbers fit the memory.
    step = max(1, _BLOCK // width)
    return (rows[start : start + step] for start in range(0, len(rows), step))


def expected_shortfall_of_sets(scores: Floats, k: int, rate: float, *, waits: bool) -> float | None:
    """The expected shortfall of one choice among all k-sets by their sums."""
    ordered = _ordered(scores, k)
    if not waits:
        return _shortfall_by_coins(ordered, k, rate) if k * ordered.size <= _MOST_ENTRIES else None
    levels = _levels_of_sets(ordered, k, rate)
    if levels is None:
        return None
    losses, log_counts = levels
    return float(permute_and_flip_by_level(rate * losses, log_counts) @ losses) / k


def _ordered(scores: Floats, k: int) -> Floats:
    ordered: Floats = np.asarray(scores, dtype=np.float64)[descending(scores, k)]
    return ordered


def _shortfall(ordered: Floats, k: int, wrong: Floats) -> float:
    # The expected shortfall, from the probability that each candidate is on the wrong side of rank k.
    return float(np.abs(ordered - ordered[k - 1]) @ wrong) / k


def _shortfall_by_coins(ordered: Floats, k: int, rate: float) -> float:
    # The exponential mechanism over sets, by the number of heads of independent coins, given that it is k. A candidate
    # is chosen if its coin shows heads and k - 1 others do, and not chosen if it shows tails and k others do. The coins
    # are those of the simulation, at whose tau the probability of k heads is not small. Each addition of a coin has a
    # relative error of 3 * 2**-53, and each coin of 3e-13.
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
    # For each coin, the laws of the number of heads before it and after it, from the last coin to the first. Coins are
    # rows; columns are independent cases. Row j of a law is the probability of j heads, and the last row, j = most, of
    # that number or more.
    law = np.zeros((most + 1, heads.shape[1]))
    law[0] = 1.0
    before = list(itertools.accumulate(zip(heads[:-1], tails[:-1], strict=True), _with_coin, initial=law))
    after = law
    for i in range(len(heads) - 1, -1, -1):
        yield i, before[i], after
        after = _with_coin(after, (heads[i], tails[i]))


def _with_coin(law: Floats, coin: tuple[Floats, Floats]) -> Floats:
    head, tail = coin
    more = law * tail
    more[1:] += law[:-1] * head
    more[-1] += law[-1] * head
    return more


def _levels_of_sets(ordered: Floats, k: int, rate: float) -> tuple[Floats, Floats] | None:
    # The different sums of scores below the best sum, and the logarithms of the numbers of k-sets that have them. Built
    # up one distinct score at a time. Sets that lose so much that all of them together weigh less than e**-60 of the
    # least loss are left out.
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
    # The loss beyond which sets are negligible beside the least loss, or one that is nearly the least.
    below, above = (np.abs(part[part != ordered[k - 1]] - ordered[k - 1]) for part in (ordered[k:], ordered[:k]))
    if not below.size and not above.size:
        return 0.0
    small = below[0] if below.size else above[-1]
    log_sets = _log_binomials(ordered.size, k + 1)[-1]
    return float(small + (log_sets + _NEGLIGIBLE) / rate)


def _log_binomials(size: int, count: int) -> Floats:
    # The logarithms of the first binomial coefficients of this size: of `size` over 0, 1, 2 and so on.
    chosen = np.arange(1, count)
    return np.append(0.0, np.cumsum(np.log((size - chosen + 1) / chosen)))


def _merged(used: Integers, losses: Floats, log_counts: Floats) -> tuple[Integers, Floats, Floats]:
    order = np.lexsort((losses, used))
    used, losses, log_counts = used[order], losses[order], log_counts[order]
    first = np.append(True, (np.diff(used) > 0) | (np.diff(losses) > 0)).nonzero()[0]
    return used[first], losses[first], np.logaddexp.reduceat(log_counts, first)


def expected_shortfall_of_margins(
    scores: Floats, k: int | tuple[int, int], rate: float, *, waits: bool
) -> float | None:
    """The expected shortfall of one choice among sets of k, or of `low` to `high` candidates, by their margins."""
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
    # The mean shortfall of the k-sets of each run, which share h and t, as a sum of terms that are never negative. The
    # candidate of rank h + 1 is missing and that of rank t is chosen. Of the N = t - h - 2 candidates between, those
    # among the top k are missing with probability (t - 1 - k) / N, and the others are chosen with the rest of it.
    distances = np.abs(ordered - ordered[k - 1])
    missing = np.append(np.cumsum(distances[:k][::-1])[::-1], np.zeros(ordered.size + 1 - k))  # sums from a rank to k
    extra = np.append(np.zeros(k + 1), np.cumsum(distances[k:]))  # sums from k to a rank
    h, t = runs.inside, runs.last
    between = np.maximum(t - h - 2, 1)
    inner = ((t - 1 - k) * missing[h + 1] + (k - h - 1) * extra[t - 1]) / between
    return np.where(h < k, distances[h] + distances[t - 1] + inner, 0.0) / k


def _level_probabilities(exponents: Floats, log_counts: Floats, *, waits: bool) -> Floats:
    if waits:
        return permute_and_flip_by_level(exponents, log_counts)
    weights = log_counts - exponents
    return softmax(weights.max() - weights)


def expected_shortfall_of_peeling(scores: Floats, k: int, rate: float, *, waits: bool) -> float | None:
    """The expected shortfall of k choices, one after another, each among the candidates that are left."""
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
    # The number of multisets of 1 to `most` scores, of which each can be taken as often as it occurs. Those of each
    # size are the coefficients of a product of polynomials 1 + x + ... + x**size.
    found = np.eye(1, most + 1)[0]
    for size in np.minimum(sizes, most).tolist():
        found = np.convolve(found, np.ones(size + 1))[: most + 1]
        if found.sum() > _MOST_STATES + 1:
            break
    return float(found[1:].sum())


def expected_shortfall_of_one_shot(scores: Floats, k: int, rate: float) -> float | None:
    """The expected shortfall of the k largest of score + exponential noise."""
    # With p_i = exp(-c (q* - q_i)), candidate i has the noise -log(z p_i) / c for a z that is uniform on [0, 1 / p_i].
    # The k smallest z are chosen. Given z, another candidate s is before i with probability min(1, p_s z). Between two
    # of the points 1 / p_s the integrand is a polynomial of degree n - 1 at most, which Gauss-Legendre integrates
    # exactly.
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
    # The probability that z falls in a panel and the candidate is on the wrong side of rank k, for each candidate. The
    # panel is v = z p in [1 - width, 1], p of the first candidate. Those before it are certain; of the others, `wanted`
    # more are chosen.
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
