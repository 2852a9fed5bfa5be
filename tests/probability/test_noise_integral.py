"""The probabilities of report noisy max, against closed forms, flint's balls and general-purpose quadrature."""

import itertools
import math

import numpy as np
import pytest
from flint import acb, ctx
from scipy import integrate

from dpselect.mechanisms.laws import noisy_max_by_level, noisy_max_probabilities
from tests import reference

TOLERANCE = 1e-13

GENERATOR = np.random.default_rng(11)
EXPONENTS = {
    "one": [0.0],
    "two that tie": [0.0, 0.0],
    "two": [0.0, 1.0],
    "two, tiny gap": [1e-12, 0.0],
    "two, huge gap": [0.0, 680.0],
    "all equal": [0.0] * 40,
    "one winner, many losers": [0.0, *[4.0] * 39],
    "one loser, many winners": [4.0, *[0.0] * 39],
    "tiny gaps": (1e-12 * np.arange(30)).tolist(),
    "steps of a panel": np.arange(0, 10, 0.5).tolist(),
    "steps": np.arange(0.0, 30).tolist(),
    "uniform": [0.0, *GENERATOR.random(30)],
    "spread": [0.0, *(20 * GENERATOR.random(25))],
    "far apart": [0.0, 30.0, 44.9, 45.1, 200.0, 600.0, 680.0],
    "ties on many levels": np.repeat([0.0, 1e-9, 2.0, 50.0, 680.0], 7).tolist(),
    "beyond floats": [0.0, 3.0, 800.0, 1e6, 1e300],
}


@pytest.mark.parametrize("case", EXPONENTS)
def test_every_candidate_is_accurate(case):
    exponents = EXPONENTS[case]
    ours = noisy_max_probabilities(np.array(exponents))
    kept = [exponent for exponent in exponents if exponent < 1e3]  # the others never win, and do not change the rest
    truth = dict(zip(kept, reference.noisy_max_pmf_in_balls(kept), strict=True))
    assert reference.relative_error(ours[: len(kept)], [truth[exponent] for exponent in kept]) <= TOLERANCE
    assert (ours[len(kept) :] == 0).all()
    assert abs(math.fsum(ours) - 1) <= TOLERANCE


@pytest.mark.parametrize("x", [0.0, 1e-12, 1e-3, 0.5, 1.0, 3.0, 10.0, 50.0, 300.0, 680.0])
def test_two_candidates_have_a_closed_form(x):
    """Pr[the loser wins] = (1/2 + x/4) exp(-x), because the difference of two Laplace noises has a known tail."""
    loser = noisy_max_probabilities(np.array([0.0, x]))[1]
    assert loser == pytest.approx((0.5 + x / 4) * math.exp(-x), rel=TOLERANCE)


def laplace(x):
    return math.exp(-abs(x)) / 2


def below(x):
    return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2


@pytest.mark.parametrize(
    "exponents",
    [
        [0.0, 0.0, 0.0],
        [0.0, 1.0, 2.0],
        [0.3, 0.0, 5.0, 0.31],
        [0.0, 7.0, 7.0, 7.0, 1e-3],
        [2.5, 0.0, 0.1, 11.0, 4.0, 4.0],
        [0.0, 25.0, 26.0],
    ],
    ids=str,
)
def test_quadrature_of_the_papers_integral_agrees(exponents):
    """Adaptive quadrature of f(x) prod F(q_r - q_s + x), split where the integrand has kinks."""
    ours = noisy_max_probabilities(np.array(exponents))
    for r, own in enumerate(exponents):
        others = [x - own for s, x in enumerate(exponents) if s != r]
        kinks = sorted({0.0, *(-gap for gap in others)})
        edges = [kinks[0] - 60, *kinks, kinks[-1] + 60]

        def integrand(x, others=others):
            return laplace(x) * math.prod(below(x + gap) for gap in others)

        total = sum(
            integrate.quad(integrand, low, high, epsabs=0, epsrel=1e-12, limit=200)[0]
            for low, high in itertools.pairwise(edges)
        )
        assert ours[r] == pytest.approx(total, rel=1e-11)


@pytest.mark.parametrize("n", [2, 3, 10, 1_000, 10**6, 10**9])
@pytest.mark.parametrize("exponent", [1e-6, 0.1, 3.0, 20.0])
def test_the_papers_integral_for_one_winner_agrees(n, exponent):
    """Pr[the winner wins] on (c, ..., c, 0) is the integral of f(x) F(x - c)**(n - 1), by flint."""
    with ctx.workprec(120):
        gap = reference.ball(exponent)

        def low(x, _):
            return x.exp() / 2 * ((x + gap).exp() / 2) ** (n - 1)

        def middle(x, _):
            return x.exp() / 2 * (1 - (-x - gap).exp() / 2) ** (n - 1)

        def high(x, _):
            return (-x).exp() / 2 * (1 - (-x - gap).exp() / 2) ** (n - 1)

        edges = [(low, -200, -gap), (middle, -gap, 0), (high, 0, 300)]
        wins = sum(acb.integral(*piece) for piece in edges).real
    ours = noisy_max_by_level(np.array([-exponent, 0.0]), np.array([n - 1.0, 1.0]))[1]
    assert reference.relative_error([ours], [wins]) <= TOLERANCE


@pytest.mark.parametrize("size", [300, 5_000])
def test_many_distinct_candidates_sum_to_one(size):
    exponents = np.random.default_rng(size).exponential(10, size)
    exponents[7] = 0.0
    ours = noisy_max_probabilities(exponents)
    assert abs(math.fsum(ours) - 1) <= TOLERANCE
    assert (np.diff(ours[np.argsort(exponents)]) <= 0).all()


def test_a_million_candidates_on_few_levels_sum_to_one():
    exponents = np.random.default_rng(3).choice([0.0, 1.0, 5.0, 13.0, 14.0, 300.0], 10**6)
    ours = noisy_max_probabilities(exponents)
    assert abs(math.fsum(ours) - 1) <= TOLERANCE
    assert np.unique(ours).size == 6


def test_exponents_beyond_the_floats_are_harmless():
    """Several candidates whose exponents nearly overflow, or did."""
    ours = noisy_max_probabilities(np.array([0.0, 1.7e308, 1.6e308, 1e307, math.inf, 0.0]))
    assert ours == pytest.approx([0.5, 0, 0, 0, 0, 0.5], abs=1e-15)
