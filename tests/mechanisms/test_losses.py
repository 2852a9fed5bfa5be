"""The rho of every privacy loss: never below the exact value in ball arithmetic, and hardly above."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect.accounting.charge import PURE, ZCDP
from dpselect.accounting.totals import loss_of
from dpselect.errors import InvalidValue
from dpselect.mechanisms import MechanismBase
from dpselect.mechanisms.base import is_mechanism_name
from dpselect.mechanisms.privacy import (
    BOUNDED_RANGE,
    CONCENTRATED,
    LAPLACE,
    PERMUTE_AND_FLIP,
    PURE_LOSS,
    PrivacyLoss,
    epsilon_of_rho,
)
from tests.gumbel import GumbelNoisyMax
from tests.reference import ball

Floats = npt.NDArray[np.float64]
BITS = 1200  # epsilon = 10**-60 has a rho near 10**-120, from terms near one


def divergence(a: arb, b: arb) -> arb:
    """The Kullback-Leibler divergence of two coins, by its definition."""
    return a * (a / b).log() + (1 - a) * ((1 - a) / (1 - b)).log()


def flip_rho(epsilon: arb) -> arb:
    """The largest divergence of the coins 1 - w/2 and 1/(2 E w), by bisection of its slope in balls."""
    grown = epsilon.exp()
    low, high = 1 / grown, arb(1)
    for _ in range(600):
        w = ((low + high) / 2).mid()
        a, b = 1 - w / 2, 1 / (2 * grown * w)
        slope = -((a / b) * (1 - b) / (1 - a)).log() / 2 + b / w * (a / b - (1 - a) / (1 - b))
        if slope > 0:
            low = w
        elif slope < 0:
            high = w
        else:
            break
    return divergence(1 - w / 2, 1 / (2 * grown * w))


def range_rho(epsilon: arb) -> arb:
    a = epsilon / epsilon.expm1()
    return a - 1 - a.log()


EXACT: list[tuple[PrivacyLoss, Callable[[arb], arb]]] = [
    (LAPLACE, lambda x: x + (-x).exp() - 1),
    (PERMUTE_AND_FLIP, flip_rho),
    (BOUNDED_RANGE, range_rho),
    (PURE_LOSS, lambda x: x * (x / 2).tanh()),
    (CONCENTRATED, lambda x: x),
]
IDS = ["laplace", "permute-and-flip", "bounded range", "pure", "concentrated"]
# Both sides of each change of formula, too.
EPSILONS = [Fraction(10) ** k for k in (-60, -30, -17, -9, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6)]
EPSILONS += [Fraction(k, 997) for k in (1, 3, 9, 10, 50, 249, 250, 500, 2000, 3989, 7990, 30_000)]
EPSILONS += [Fraction(math.nextafter(x, way)) for x in (1e-6, 0.01, 0.25, 1, 1e6) for way in (0, math.inf)]
EPSILONS += [Fraction(str(round(x, 6))) for x in np.geomspace(0.001, 300, 80)]
EPSILONS += [Fraction(2_000_003), Fraction(1, 3), Fraction(1, 3 * 10**6)]


@pytest.mark.parametrize(("loss", "exact"), EXACT, ids=IDS)
def test_rho_is_never_below_the_exact_value_and_hardly_above(loss: PrivacyLoss, exact: Callable[[arb], arb]) -> None:
    with ctx.workprec(BITS):
        for epsilon in EPSILONS:
            truth = exact(ball(epsilon))
            above = 1e-4 if loss is PERMUTE_AND_FLIP and epsilon > 10**6 else 3e-12  # beyond, it is Laplace's rho
            claimed = loss.zcdp(epsilon)
            # No rho exceeds epsilon, which decides where the ball is too wide to.
            assert claimed >= epsilon or truth <= arb(claimed), epsilon
            assert arb(claimed) <= truth * (1 + above), epsilon


@pytest.mark.parametrize(
    ("epsilon", "flip", "soft", "pure"),
    [
        (0.1, 0.004761, 0.0012499, 0.0049959),
        (1, 0.32966, 0.12331, 0.46212),
        (2, 0.97443, 0.47448, 1.52319),
        (4, 2.55012, 1.66985, 3.85612),
        (8, 6.05074, 4.92291, 7.99464),
    ],
)
def test_known_values(epsilon: float, flip: float, soft: float, pure: float) -> None:
    found = [loss.zcdp(Fraction(epsilon)) for loss in (PERMUTE_AND_FLIP, BOUNDED_RANGE, PURE_LOSS)]
    assert found == pytest.approx([flip, soft, pure], rel=1e-4)
    assert all(here <= there for here, there in zip(found, (flip, soft, pure), strict=True))


def test_each_mechanism_has_its_loss() -> None:
    kinds = (PermuteAndFlip, ExponentialMechanism, ReportNoisyMax, GumbelNoisyMax)
    assert [kind.loss for kind in kinds] == [PERMUTE_AND_FLIP, BOUNDED_RANGE, LAPLACE, BOUNDED_RANGE]
    assert [loss_of(name) for name in (PURE, ZCDP, "unknown")] == [PURE_LOSS, CONCENTRATED, PURE_LOSS]
    assert not is_mechanism_name(ZCDP)
    assert not is_mechanism_name(PURE)
    assert is_mechanism_name("zcdp-like")


@pytest.mark.parametrize(("loss", "exact"), EXACT, ids=IDS)
def test_rho_per_epsilon_never_falls(loss: PrivacyLoss, exact: Callable[[arb], arb]) -> None:
    """In balls, hence for exact values; and of the computed ones, up to their rounding."""
    with ctx.workprec(BITS):
        places = sorted({*EPSILONS, *(epsilon / 2 for epsilon in EPSILONS)})
        places = [place for place in places if place <= 10**6]  # beyond, nearly constant
        ratios = [exact(ball(epsilon)) / ball(epsilon) for epsilon in places]
        assert all(not (before > after) for before, after in itertools.pairwise(ratios))
    for epsilon in EPSILONS:
        assert 2 * loss.zcdp(epsilon / 2) <= loss.zcdp(epsilon) * (1 + 3e-12)


# No Renyi order gives more than rho: of pairs of coins, and of the mechanisms themselves.


def renyi(p: Floats, q: Floats, order: float) -> float:
    """The divergence of this order, from logarithms, for probabilities that are not zero."""
    return float(np.logaddexp.reduce(order * np.log(p) - (order - 1) * np.log(q)) / (order - 1))


ORDERS = [*(1 + np.geomspace(0.01, 1e4, 60))]


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 3.0, 8.0, 16.0])
@pytest.mark.parametrize("loss", [PERMUTE_AND_FLIP, BOUNDED_RANGE, PURE_LOSS], ids=["flip", "range", "pure"])
def test_no_order_exceeds_rho_on_the_worst_pairs(loss: PrivacyLoss, epsilon: float) -> None:
    """And the lowest orders come near to it, so rho could not be smaller."""
    rho = loss.zcdp(Fraction(epsilon))
    if loss is PERMUTE_AND_FLIP:
        w = np.exp(-np.linspace(0, epsilon, 301))
        a, b = 1 - w / 2, np.exp(-epsilon) / (2 * w)
    elif loss is BOUNDED_RANGE:
        t = np.linspace(0, epsilon, 302)[1:-1]
        a = np.expm1(t - epsilon) / math.expm1(-epsilon)
        b = a * np.exp(-t)
    else:
        a, b = np.array([1 / (1 + math.exp(-epsilon))]), np.array([1 / (1 + math.exp(epsilon))])
    found = [[renyi(np.array([x, 1 - x]), np.array([y, 1 - y]), order) / order for order in ORDERS]
             for x, y in zip(a, b, strict=True)]  # fmt: skip
    assert np.max(found) <= rho * (1 + 1e-9)
    assert np.max(found, axis=0)[0] >= rho * 0.98


@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax])
@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.floats(0.05, 10),
    rows=st.lists(st.tuples(st.floats(-2, 2), st.floats(0, 2)), min_size=2, max_size=6),
)
def test_no_order_exceeds_rho_on_neighbours(
    kind: type[MechanismBase], epsilon: float, rows: list[tuple[float, float]]
) -> None:
    mechanism = kind(epsilon)
    scores, moves = np.array(rows).T
    scores = scores * 3 / epsilon
    here, there = mechanism.pmf(scores), mechanism.pmf(scores + moves)
    rho = mechanism.guarantee.zcdp
    for order in (1.01, 1.5, 2.0, 8.0, 100.0):
        assert renyi(here, there, order) <= order * rho + 1e-9
        assert renyi(there, here, order) <= order * rho + 1e-9


def test_two_candidates_reach_the_rho_of_permute_and_flip() -> None:
    for epsilon in (0.1, 1.0, 4.0):
        mechanism = PermuteAndFlip(epsilon)
        starts = np.linspace(0, 2, 401)
        pairs = [(mechanism.pmf([x, 0]), mechanism.pmf([x - 2, 0])) for x in starts]
        reached = max(float(p @ np.log(p / q)) for p, q in pairs)
        assert mechanism.guarantee.zcdp * (1 - 1e-4) <= reached <= mechanism.guarantee.zcdp
        assert reached < 0.99 * LAPLACE.zcdp(Fraction(epsilon))


# The way back.

RHOS = [Fraction(10) ** k for k in (-60, -20, -12, -6, -3, -1, 0, 1, 3, 6)] + [Fraction(1, 3), Fraction(1, 8)]


@pytest.mark.parametrize(("loss", "exact"), EXACT, ids=IDS)
def test_the_largest_epsilon_of_a_rho(loss: PrivacyLoss, exact: Callable[[arb], arb]) -> None:
    for rho in RHOS:
        epsilon = epsilon_of_rho(loss, rho)
        assert Fraction(loss.zcdp(epsilon)) <= rho
        assert Fraction(loss.zcdp(epsilon * (1 + Fraction(1, 10**11)))) > rho
        with ctx.workprec(BITS):
            assert epsilon <= rho or exact(ball(epsilon)) <= ball(rho)


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(-1), Fraction(1, 10**700)])
def test_a_rho_without_an_epsilon_is_refused(rho: Fraction) -> None:
    with pytest.raises(InvalidValue, match="rho"):
        epsilon_of_rho(PURE_LOSS, rho)


def test_a_huge_rho_has_a_finite_epsilon() -> None:
    for loss, _ in EXACT:
        assert 1e307 < epsilon_of_rho(loss, Fraction(10) ** 400) < Fraction(2) ** 1024


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 4.0, 20.0])
def test_two_halves_of_bounded_range_cost_no_more_than_the_whole(epsilon: float) -> None:
    """For the rho that is charged, and for the exact one: a - 1 - ln a with a = e / (exp(e) - 1)."""

    def exact(e: float) -> float:
        ratio = e / math.expm1(e)
        return ratio - 1 - math.log(ratio)

    charged = [ExponentialMechanism(e).guarantee.zcdp for e in (epsilon / 2, epsilon)]
    assert 2 * charged[0] <= charged[1]
    assert 2 * exact(epsilon / 2) <= exact(epsilon)
