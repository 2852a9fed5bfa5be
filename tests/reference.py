"""Independent truth: the paper's formulas and algorithms, written plainly. Slow, and shares no code with dpselect."""

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import acb, arb, arb_poly, ctx, fmpq

SYSTEM = random.SystemRandom()


# Exact probabilities, from the probabilities of heads of the coins.


def pmf_by_permutations(heads: Sequence[Fraction]) -> list[Fraction]:
    """The first lemma of the paper's Appendix A: average over all orders of the candidates."""
    pmf = [Fraction(0)] * len(heads)
    for order in permutations(range(len(heads))):
        all_tails = Fraction(1)
        for candidate in order:
            pmf[candidate] += all_tails * heads[candidate]
            all_tails *= 1 - heads[candidate]
    return [probability / math.factorial(len(heads)) for probability in pmf]


def pmf_by_inclusion_exclusion(heads: Sequence[Fraction]) -> list[Fraction]:
    """The second lemma of the paper's Appendix A: an alternating sum over sets of other candidates."""
    pmf = []
    for candidate, own in enumerate(heads):
        others = [p for s, p in enumerate(heads) if s != candidate]
        total = sum(
            Fraction((-1) ** size, size + 1) * math.prod(chosen, start=Fraction(1))
            for size in range(len(heads))
            for chosen in combinations(others, size)
        )
        pmf.append(own * total)
    return pmf


def softmax_pmf(heads: Sequence[Fraction]) -> list[Fraction]:
    """The exponential mechanism's probabilities: proportional to those of heads."""
    return [own / sum(heads) for own in heads]


# Probabilities in floats, for statistical tests.


def permute_and_flip_pmf(scores: npt.ArrayLike, rate: float) -> npt.NDArray[np.float64]:
    """p_r times the integral of prod (1 - p_s t) over [0, 1], by Gauss-Legendre on panels; about 1e-10 accurate."""
    scores = np.asarray(scores, dtype=np.float64)
    levels, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    heads = np.exp(rate * (levels - levels[-1]))
    nodes, weights = np.polynomial.legendre.leggauss(40)
    edges = np.concatenate([[0.0], np.geomspace(1e-8, 1, 60)])
    t = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    w = (np.diff(edges)[:, None] * weights / 2).ravel()
    log_tails = np.log1p(-np.outer(heads, t))
    everyone = counts @ log_tails
    per_level = heads * (np.exp(everyone - log_tails) @ w)
    return per_level[inverse]


def exponential_pmf(scores: npt.ArrayLike, rate: float) -> npt.NDArray[np.float64]:
    """Softmax in floats."""
    scores = np.asarray(scores, dtype=np.float64)
    weights = np.exp(rate * (scores - scores.max()))
    return weights / weights.sum()


def noisy_max_pmf(scores: npt.ArrayLike, rate: float) -> npt.NDArray[np.float64]:
    """The integral of f(y - q_r) prod F(y - q_s) over y, for Laplace noise of scale 1/rate, split at the scores."""
    levels, inverse, counts = np.unique(np.asarray(scores, dtype=np.float64), return_inverse=True, return_counts=True)
    values = rate * levels
    top = values[-1]
    edges = np.unique(np.concatenate([values, np.linspace(top - 45, top + 45, 800)]))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    y = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    w = (np.diff(edges)[:, None] * weights / 2).ravel()
    x = y - values[:, None]
    density = np.exp(-np.abs(x)) / 2
    below = np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)
    everyone = counts @ np.log(below)
    return ((density * np.exp(everyone - np.log(below))) @ w)[inverse]


# Exact samplers.


def bernoulli_exp(exponent: Fraction) -> bool:
    """Bernoulli(exp(-exponent)) by Canonne, Kamath & Steinke (2020), Algorithm 1, over Fractions."""
    while exponent > 1:
        if not bernoulli_exp(Fraction(1)):
            return False
        exponent -= 1
    k = 1
    while SYSTEM.randrange(exponent.denominator * k) < exponent.numerator:
        k += 1
    return k % 2 == 1


def algorithm_1(scores: Sequence[Fraction], rate: Fraction) -> int:
    """Permute-and-flip as the paper states it."""
    order = list(range(len(scores)))
    SYSTEM.shuffle(order)
    for candidate in order:
        if bernoulli_exp(rate * (max(scores) - scores[candidate])):
            return candidate
    raise AssertionError("the best candidate's coin is always heads")


def algorithm_2(scores: Sequence[Fraction], rate: Fraction) -> int:
    """The exponential mechanism by sampling with replacement."""
    while True:
        candidate = SYSTEM.randrange(len(scores))
        if bernoulli_exp(rate * (max(scores) - scores[candidate])):
            return candidate


def algorithm_3(scores: Sequence[Fraction], rate: Fraction) -> int:
    """Permute-and-flip by sampling without replacement."""
    left = list(range(len(scores)))
    while True:
        candidate = left.pop(SYSTEM.randrange(len(left)))
        if bernoulli_exp(rate * (max(scores) - scores[candidate])):
            return candidate


# Probabilities in flint's balls: a number and a proven bound of its error, from exact exponents c (q* - q_r).


def ball(exact: float | Fraction) -> arb:
    """A float or a Fraction, exactly or within the working precision."""
    numerator, denominator = exact.as_integer_ratio()
    return arb(fmpq(int(numerator), int(denominator)))


def relative_error(ours: Sequence[float], truth: Sequence[arb], least: float = 1e-300) -> float:
    """The largest relative error among the probabilities that are at least `least`; truth has far more digits."""
    with ctx.workprec(200):
        worst = 0.0
        for mine, true in zip(ours, truth, strict=True):
            if not true < arb(least):
                assert true.rel_accuracy_bits() > 80
                worst = max(worst, abs(float(ball(float(mine)) / true - 1)))
        return worst


def flip_pmf_in_balls(exponents: Sequence[float | Fraction]) -> list[arb]:
    """Expand prod (1 - p_s t), divide by (1 - p_r t), integrate term by term: alternating sums, so many bits."""
    size = len(exponents)
    with ctx.workprec(2 * size + 400):
        levels = {exponent: (-ball(exponent)).exp() for exponent in set(exponents)}
        product = [arb_poly([1, -levels[exponent]]) for exponent in exponents]
        while len(product) > 1:
            product = [*map(arb_poly.__mul__, product[::2], product[1::2]), *product[len(product) & ~1 :]]
        coefficients = [product[0][k] for k in range(size)]
        pmf = {}
        for exponent, own in levels.items():
            quotient = integral = arb(0)
            for k, coefficient in enumerate(coefficients):
                quotient = coefficient + own * quotient
                integral += quotient / (k + 1)
            pmf[exponent] = own * integral
        return [pmf[exponent] for exponent in exponents]


def flip_pmf_by_level(counts: Sequence[int], exponents: Sequence[float | Fraction]) -> list[arb]:
    """The probability of one candidate of each level, where so many share it: flint integrates rigorously."""
    with ctx.workprec(160 + 2 * max(counts).bit_length()):
        heads = [(-ball(exponent)).exp() for exponent in exponents]
        # Nobody is the first to arrive after the cut, up to e**-200.
        cut = min(arb(1), 200 / sum((n * p for n, p in zip(counts, heads, strict=True)), arb(0)), key=float)

        def pmf(own: int) -> arb:
            def others(t: acb, _: bool) -> acb:
                return math.prod(
                    (1 - p * t) ** (n - (s == own)) for s, (n, p) in enumerate(zip(counts, heads, strict=True))
                )

            return heads[own] * acb.integral(others, 0, cut, rel_tol=arb(2) ** -120).real

        return [pmf(own) for own in range(len(counts))]


def softmax_by_level(counts: Sequence[int], exponents: Sequence[float | Fraction]) -> list[arb]:
    """The same for the exponential mechanism."""
    with ctx.workprec(160 + 2 * max(counts).bit_length()):
        heads = [(-ball(exponent)).exp() for exponent in exponents]
        total = sum((n * p for n, p in zip(counts, heads, strict=True)), arb(0))
        return [own / total for own in heads]


def softmax_in_balls(exponents: Sequence[float | Fraction]) -> list[arb]:
    """The exponential mechanism's probabilities."""
    with ctx.workprec(200):
        heads = [(-ball(exponent)).exp() for exponent in exponents]
        return [own / sum(heads) for own in heads]


def noisy_max_pmf_in_balls(exponents: Sequence[float | Fraction]) -> list[arb]:
    """The paper's integral for report noisy max: between two scores it has a closed form in z = e**-y."""
    ranked = sorted(exponents, reverse=True)  # the values v = -x ascend
    size = len(ranked)
    with ctx.workprec(40 * size + 2500):
        lifts = [(-ball(exponent)).exp() for exponent in ranked]  # e**v
        pmf = [arb(0)] * size
        for below in range(size + 1):
            # y lies between the values number below - 1 and below; z = e**-y falls from `top` to `bottom`.
            top = 1 / lifts[below - 1] if below else None
            bottom = 1 / lifts[below] if below < size else arb(0)
            above = math.prod((1 / (2 * lift) for lift in lifts[below:]), start=arb(1))
            product = math.prod((arb_poly([1, -lift / 2]) for lift in lifts[:below]), start=arb_poly([1]))
            coefficients = [product[k] for k in range(below + 1)]
            everywhere = above * _integral(coefficients, below - size, bottom, top) if below < size else arb(0)
            for r in range(size):
                if r >= below:
                    pmf[r] += everywhere
                    continue
                quotient, divided = arb(0), []
                for coefficient in coefficients[:-1]:
                    quotient = coefficient + lifts[r] / 2 * quotient
                    divided.append(quotient)
                pmf[r] += above * lifts[r] / 2 * _integral(divided, 1 + below - size, bottom, top)
        by_exponent = dict(zip(ranked, pmf, strict=True))
        return [by_exponent[exponent] for exponent in exponents]


def _integral(coefficients: Sequence[arb], shift: int, bottom: arb, top: arb | None) -> arb:
    """The integral of sum c_k z**(k + shift - 1) from bottom to top; top None is infinity, of negative powers only."""
    total = arb(0)
    for power, coefficient in enumerate(coefficients, start=shift):
        if power == 0:
            total += coefficient * (top / bottom).log()
        else:
            total += coefficient * ((arb(0) if top is None else top**power) - bottom**power) / power
    return total


# The paper's own ways to the probabilities of permute-and-flip.


def flip_pmf_by_recurrence(steps: tuple[int, ...], odds: Fraction) -> list[Fraction]:
    """Section 3.1 on the lattice: candidate r is steps[r] times 2 sensitivity below the best, exp(-epsilon) is odds."""

    @cache
    def probability(steps: tuple[int, ...], r: int) -> Fraction:
        if steps[r]:
            return odds * probability((*steps[:r], steps[r] - 1, *steps[r + 1 :]), r)
        losers = sum(probability(steps, s) for s, step in enumerate(steps) if step)
        return Fraction(1 - losers) / steps.count(0)

    return [probability(steps, r) for r in range(len(steps))]


def flip_pmf_by_dynamic_program(heads: npt.NDArray) -> npt.NDArray:
    """The Appendix's O(n**2) program, on floats as the authors run it or on an array of balls."""
    zero, one = heads[0] * 0, heads[0] * 0 + 1
    subsets = np.array([one] + [zero] * heads.size)
    for own in heads:
        subsets[1:] = subsets[1:] + own * subsets[:-1]
    without = np.array([one] * heads.size)
    total = without.copy()
    for k in range(1, heads.size + 1):
        without = subsets[k] - heads * without
        total = total + (-1) ** k * without / (k + 1)
    return heads * total


# Several candidates in order.
#
# An order of noisy scores has a density at the noise of its last candidate: that of its own noise, times the
# probability that those before have more and that all others have less. It is positive, so nothing cancels, and smooth
# between a few edges. Only the first one or two candidates are needed.

Law = dict[tuple[int, ...], float]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_FAR = 80.0  # beyond that, Laplace noise has no weight that matters


def peeled_orders(scores: Sequence[int], mechanism: Any, k: int) -> Law:
    """One selection after another, each among those that are left."""
    found: Law = {(): 1.0}
    for _ in range(k):
        longer: Law = {}
        for taken, probability in found.items():
            left = [place for place in range(len(scores)) if place not in taken]
            for place, own in zip(left, mechanism.pmf([scores[i] for i in left]).tolist(), strict=True):
                longer[*taken, place] = probability * own
        found = longer
    return found


def exponential_orders(scores: Sequence[int], rate: float, k: int) -> Law:
    """The order of the k largest of scores with exponential noise: the first arrivals, uniform on [0, 1/p] each."""
    coins = np.exp(-rate * (max(scores) - np.array(scores, float)))
    edges = [0.0, *sorted({1 / own for own in coins.tolist()})]

    def arrived(place: int, t: Any) -> Any:
        return np.minimum(coins[place] * t, 1.0)

    def density(place: int, t: Any) -> Any:
        return np.where(coins[place] * t <= 1.0, coins[place], 0.0)

    return _orders(len(scores), k, edges, density, arrived, lambda place, t: 1.0 - arrived(place, t))


def laplace_orders(scores: Sequence[int], rate: float, k: int) -> Law:
    """The order of the k largest of scores with Laplace noise. Time is the negated noisy score."""
    means = -rate * np.array(scores, float)
    edges = sorted({*means.tolist(), min(means) - _FAR, max(means) + _FAR})

    def below(place: int, t: Any) -> Any:
        """The probability that the noise is less than t: precise in both tails."""
        x = t - means[place]
        return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)

    def density(place: int, t: Any) -> Any:
        return np.exp(-np.abs(t - means[place])) / 2

    def above(place: int, t: Any) -> Any:
        x = t - means[place]
        return np.where(x > 0, np.exp(-np.maximum(x, 0)) / 2, 1 - np.exp(np.minimum(x, 0)) / 2)

    return _orders(len(scores), k, edges, density, below, above)


_Function = Callable[[int, Any], Any]


def _orders(size: int, k: int, edges: Sequence[float], density: _Function, before: _Function, after: _Function) -> Law:
    """The first k of independent times in order, k at most two: an integral over the time of the last of them."""
    assert 1 <= k <= 2
    panels = [_panels(*cell) for cell in pairwise(edges)]
    t, weights = (np.concatenate(part) for part in zip(*panels, strict=True))
    found = {}
    for order in permutations(range(size), k):
        value = density(order[-1], t)
        for place in order[:-1]:
            value = value * before(place, t)
        for place in set(range(size)) - set(order):
            value = value * after(place, t)
        found[order] = float((value * weights).sum())
    return found


def _panels(left: float, right: float) -> tuple[Any, Any]:
    """Nodes and weights of a quadrature that is exact for what is smooth over a few units."""
    steps = min(max(1, math.ceil((right - left) / 4)), 40)
    ends = np.linspace(left, right, steps + 1)
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + _NODES)).ravel(), (half * _WEIGHTS).ravel()
