"""The recursion for equal releases: never below what a known adversary reaches, and close to it."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from dpselect.accounting.charge import PURE, ZCDP, Charge
from dpselect.accounting.totals import approximate, loss_epsilon, recursion_epsilon, renyi_epsilon, total
from dpselect.mechanisms.privacy import BOUNDED_RANGE, CONCENTRATED, LAPLACE, PERMUTE_AND_FLIP, PURE_LOSS, PrivacyLoss

Floats = npt.NDArray[np.float64]
Curve = Callable[[float, Floats], tuple[Floats, Floats]]


def flip_curve(epsilon: float, shares: Floats) -> tuple[Floats, Floats]:
    """Two candidates of permute-and-flip: the coins 1 - w/2 and 1/(2 E w), with w = E**-share."""
    w = np.exp(-epsilon * shares)
    return 1 - w / 2, np.exp(-epsilon) / (2 * w)


def range_curve(epsilon: float, shares: Floats) -> tuple[Floats, Floats]:
    """Two outcomes with the losses t and t - epsilon, where t = share epsilon."""
    t = epsilon * shares
    a = np.expm1(t - epsilon) / math.expm1(-epsilon)
    return a, a * np.exp(-t)


CURVES: list[tuple[PrivacyLoss, Curve]] = [(PERMUTE_AND_FLIP, flip_curve), (BOUNDED_RANGE, range_curve)]
IDS = ["permute-and-flip", "bounded range"]
INSIDE = np.linspace(0, 1, 202)[1:-1]


def binomial_delta(a: float, b: float, count: int, loss: float) -> float:
    """The delta of `count` releases that all use this pair of coins."""
    heads = np.arange(count + 1)
    chances = np.exp(gammaln(count + 1) - gammaln(heads + 1) - gammaln(count - heads + 1)
                     + heads * math.log(a) + (count - heads) * math.log1p(-a))  # fmt: skip
    losses = heads * math.log(a / b) + (count - heads) * math.log((1 - a) / (1 - b))
    return float((chances * -np.expm1(np.minimum(0, loss - losses))).sum())


def best_binomial(curve: Curve, epsilon: float, count: int, loss: float) -> float:
    return max(binomial_delta(a, b, count, loss) for a, b in zip(*curve(epsilon, INSIDE), strict=True))


@pytest.mark.parametrize(("loss", "curve"), CURVES, ids=IDS)
@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 30), (0.1, 1), (0.1, 100), (0.5, 20), (1.0, 50), (3.0, 4)])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_no_epsilon_is_below_that_of_a_fixed_pair(
    loss: PrivacyLoss, curve: Curve, epsilon: float, count: int, delta: float
) -> None:
    """The same pair every time, the worst one for this delta: a lower bound, and nearly the truth."""
    pure = epsilon * count
    claimed = recursion_epsilon(loss, Fraction(epsilon), count, delta, pure)
    assert claimed <= pure * (1 + 1e-6)
    assert best_binomial(curve, epsilon, count, claimed) <= delta * (1 + 1e-9)
    assert best_binomial(curve, epsilon, count, claimed * 0.98) > delta


@pytest.mark.parametrize(("loss", "curve"), CURVES, ids=IDS)
def test_the_check_would_notice_too_little(loss: PrivacyLoss, curve: Curve) -> None:
    claimed = recursion_epsilon(loss, Fraction("0.098"), 100, 1e-6, 10.0)
    assert best_binomial(curve, 0.1, 100, claimed) > 1e-6 * 1.05


@pytest.mark.parametrize(("loss", "curve"), CURVES, ids=IDS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("count", [2, 3])
def test_adaptive_choices_are_covered(loss: PrivacyLoss, curve: Curve, epsilon: float, count: int) -> None:
    """The recursion itself, from the closed form of one release, without a grid of losses: pairs from a fine grid."""
    a, b = curve(epsilon, np.linspace(0, 1, 62)[1:-1])
    high, low = np.log(a / b), np.log((1 - a) / (1 - b))

    def reached(losses: Floats, left: int) -> Floats:
        if left == 1:
            return loss.profile(epsilon, losses)
        after = [reached((losses[..., None] - part).ravel(), left - 1) for part in (high, low)]
        both = [found.reshape(*losses.shape, a.size) for found in after]
        return np.asarray((a * both[0] + (1 - a) * both[1]).max(axis=-1))

    for delta in (1e-2, 1e-4):
        claimed = recursion_epsilon(loss, Fraction(epsilon), count, delta, count * epsilon)
        at, below = reached(np.array([claimed, claimed * 0.99]), count)
        assert at <= delta * (1 + 1e-9)
        assert below > delta


@pytest.mark.parametrize(("epsilon", "count", "delta"), [(0.1, 30, 1e-6), (0.5, 20, 1e-9), (0.3, 200, 1e-20)])
def test_randomized_response_is_exact(epsilon: float, count: int, delta: float) -> None:
    """Its losses lie on the grid, so nothing is lost but the chord to the next point."""
    claimed = recursion_epsilon(PURE_LOSS, Fraction(epsilon), count, delta, epsilon * count)
    heads = 1 / (1 + math.exp(-epsilon))
    assert binomial_delta(heads, 1 - heads, count, claimed) <= delta * (1 + 1e-9)
    assert binomial_delta(heads, 1 - heads, count, claimed * 0.9999) > delta


@pytest.mark.parametrize(("loss", "curve"), CURVES, ids=IDS)
@settings(max_examples=60)
@given(
    epsilon=st.floats(1e-3, 10),
    share=st.floats(1e-3, 0.999),
    place=st.floats(-1, 1),
    corners=st.integers(1, 20),
)
def test_the_corners_dominate_the_curve(
    loss: PrivacyLoss, curve: Curve, epsilon: float, share: float, place: float, corners: int
) -> None:
    """Every pair between touching points is dominated by a corner; twice as many corners are no worse."""
    [a], [b] = curve(epsilon, np.array([share]))
    x = place * epsilon

    def largest(count: int) -> float:
        pairs = loss.pairs(epsilon, count)
        assert pairs is not None
        assert pairs.heads + pairs.tails == pytest.approx(np.ones(len(pairs.heads)))
        there = pairs.heads * np.exp(-pairs.high), pairs.tails * np.exp(-pairs.low)
        assert there[0] + there[1] == pytest.approx(np.ones(len(pairs.heads)), abs=1e-12)
        parts = [np.maximum(0, p - math.exp(x) * q) for p, q in zip((pairs.heads, pairs.tails), there, strict=True)]
        return float((parts[0] + parts[1]).max())

    reached = max(0.0, a - math.exp(x) * b) + max(0.0, 1 - a - math.exp(x) * (1 - b))
    assert reached <= largest(corners) + 1e-12 * math.exp(max(x, 0))
    assert largest(2 * corners) <= largest(corners) + 1e-12 * math.exp(max(x, 0))


@pytest.mark.parametrize(
    ("name", "each", "count", "most", "renyi"),
    [
        ("exponential", "0.1", 100, 2.26, 2.41),
        ("exponential", "0.1", 50, 1.545, 1.65),
        ("exponential", "0.5", 20, 5.44, 5.9),
        ("permute-and-flip", "0.1", 50, 3.109, 3.12),
        ("permute-and-flip", "1", 50, 39.76, 41.6),
    ],
)
def test_totals_use_it(name: str, each: str, count: int, most: float, renyi: float) -> None:
    releases = {(name, Fraction(each)): count}
    found = approximate(releases, 1e-6)
    assert (found.method, found.epsilon) == ("recursion", pytest.approx(most, rel=0.005))
    assert found.epsilon < most < renyi < min(renyi_epsilon(releases, 1e-6), loss_epsilon(releases, 1e-6))


def test_different_epsilons_and_mechanisms_have_other_bounds() -> None:
    mixed = {("exponential", Fraction(1, 10)): 50, ("exponential", Fraction(1, 5)): 1}
    assert approximate(mixed, 1e-6).method == "renyi"
    assert approximate({("noisy-max", Fraction(1, 10)): 50}, 1e-6).method == "loss distribution"
    assert recursion_epsilon(LAPLACE, Fraction(1), 3, 1e-6, 3.0) == math.inf
    assert recursion_epsilon(CONCENTRATED, Fraction(1), 3, 1e-6, 3.0) == math.inf


@pytest.mark.parametrize(
    ("each", "count", "most"),
    [
        ("0.1", 1001, 9.0),
        ("1e-7", 10, 1e-6),
        ("31", 2, 62.0),
        ("0.1", 5, math.inf),
        ("0.1", 5, 0.0),
        ("1e-5", 900, 1e5),
    ],
)
def test_it_is_left_out_where_it_is_slow_or_has_few_digits(each: str, count: int, most: float) -> None:
    assert recursion_epsilon(PERMUTE_AND_FLIP, Fraction(each), count, 1e-6, most) == math.inf


def test_a_large_delta_needs_no_epsilon() -> None:
    assert recursion_epsilon(BOUNDED_RANGE, Fraction(1, 100), 3, 0.1, 0.03) == 0
    assert total([Charge("a", "0.01", "exponential", 3)], 0.1).approximate.epsilon == 0  # type: ignore[union-attr]


def test_releases_of_known_rho_only_compose_by_it() -> None:
    """100 releases of rho 0.00125 are as 100 exponential mechanisms of 0.1 without their other bounds."""
    found = approximate({(ZCDP, Fraction(1, 800)): 100}, 1e-6)
    assert (found.method, found.epsilon) == ("renyi", pytest.approx(2.42, abs=0.01))
    beside = approximate({(ZCDP, Fraction(1, 800)): 100, (PURE, Fraction(1, 10**6)): 1}, 1e-6)
    assert found.epsilon <= beside.epsilon < found.epsilon * 1.001
    assert loss_epsilon({(ZCDP, Fraction(1)): 1}, 1e-6) == math.inf
    assert approximate({(ZCDP, Fraction(1, 10**6)): 1}, 1e-9).epsilon > 1e-4  # rho is no pure epsilon
