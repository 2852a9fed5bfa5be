"""Independent truth: the paper's formulas and algorithms, written plainly. Slow, and shares no code with dpselect."""

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt

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
    values = rate * np.asarray(scores, dtype=np.float64)
    top = values.max()
    edges = np.unique(np.concatenate([values, np.linspace(top - 45, top + 45, 400)]))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    y = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    w = (np.diff(edges)[:, None] * weights / 2).ravel()
    x = y - values[:, None]
    density = np.exp(-np.abs(x)) / 2
    below = np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)
    everyone = np.log(below).sum(axis=0)
    return (density * np.exp(everyone - np.log(below))) @ w


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
