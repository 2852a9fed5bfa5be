"""How private a mechanism is: what one selection guarantees, and how many of them compose.

A `PrivacyLoss` bounds the privacy loss of every mechanism of one family, in the forms that accountants use. The proofs
are in docs/theory.md.

  PERMUTE_AND_FLIP   permute-and-flip: its exact zCDP and its exact worst pairs (theorem 6); else as Laplace noise
  LAPLACE            Laplace noise, and report noisy max with any noise of bounded hazard rate (theorem 2)
  BOUNDED_RANGE      mechanisms whose log-ratios span a short range, such as the exponential mechanism
  PURE_LOSS          any mechanism of which only the epsilon is known
  CONCENTRATED       any mechanism of which only the rho of zCDP is known

**zCDP.** All values of rho are exact before they are rounded up. Each is the largest Kullback-Leibler divergence
between neighbours, the limit of Renyi divergences as their order falls to one; no order gives more (theorem 7). As a
function of epsilon each rho is convex and zero at zero, so rho(epsilon)/epsilon never falls, and rho(e) >= 2 rho(e/2).

**Profiles.** The privacy profile is the largest value of Pr[M(x) in S] - e^a Pr[M(x') in S] over neighbours x, x' and
sets S. It is 1 - e^a for a <= -epsilon, zero for a >= epsilon, and in between at most

  Laplace, permute-and-flip   1 - e^((a - epsilon)/2)
  bounded range               (1 - e^((a - epsilon)/2))^2 / (1 - e^-epsilon)
  pure                        (e^epsilon - e^a) / (1 + e^epsilon)

All are their own mirror images under exchange of x and x', so one direction is enough.

**Pairs.** A family may have worst pairs of distributions on two outcomes: every pair of output distributions on
neighbours is a post-processing of one of them. They compose exactly (`accounting.totals`), while a profile, the
largest over all pairs at each a separately, composes to an upper bound.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from dpselect import _validate
from dpselect._numbers import float_above, float_below, float_near, last_true, rounded_up_text, shortest_text
from dpselect._types import Floats
from dpselect.errors import InvalidValue


@dataclass(frozen=True)
class Guarantee:
    """Pure epsilon-differential privacy, and the zero-concentrated rho that it implies for this mechanism.

    With a delta, it is (epsilon, delta)-differential privacy, and rho-zCDP except for an event of probability delta
    (approximate zCDP, Bun & Steinke 2016).

    Attributes:
        epsilon: the epsilon, exactly.
        zcdp: the rho of zero-concentrated differential privacy, rounded up.
        delta: the delta, exactly; 0 for pure epsilon.

    >>> print(Guarantee(Fraction(1), zcdp=0.125))
    1-DP (pure), 0.125-zCDP
    >>> print(Guarantee(Fraction(1), 0.125, Fraction("1e-9")))
    (1, 1e-9)-DP, 0.125-zCDP with the same delta
    """

    epsilon: Fraction
    zcdp: float
    delta: Fraction = Fraction(0)

    def times(self, count: int) -> "Guarantee":
        """Return what `count` selections guarantee together: both parts add up, rho rounded up.

        Args:
            count: the number of selections that one person can influence. Public.

        Raises:
            InvalidType: `count` is not an integer.
            InvalidValue: `count` is negative.

        >>> print(Guarantee(Fraction(1), zcdp=0.125).times(2))
        2-DP (pure), 0.25-zCDP
        """
        _validate.count(count=count)
        rho = float_above(count * Fraction(self.zcdp)) if math.isfinite(self.zcdp) else math.inf
        return Guarantee(count * self.epsilon, rho, count * self.delta)

    def __str__(self) -> str:
        return self.of_whom("")

    def of_whom(self, protects: str) -> str:
        """Return the guarantee in words, with whom it protects.

        Args:
            protects: whom, such as "one row"; nothing if empty.

        >>> Guarantee(Fraction(1), 0.25).of_whom("one row")
        '1-DP (pure) for one row, 0.25-zCDP'
        """
        epsilon, whom = _short(self.epsilon), f" for {protects}" if protects else ""
        rho = rounded_up_text(Fraction(self.zcdp)) if math.isfinite(self.zcdp) else "inf"
        if self.delta:
            return f"({epsilon}, {_short(self.delta)})-DP{whom}, {rho}-zCDP with the same delta"
        return f"{epsilon}-DP (pure){whom}, {rho}-zCDP"


def _short(number: Fraction) -> str:
    # The number as people write it, or rounded up.
    shortest = shortest_text(number).strip("'")
    return shortest if len(shortest) <= 12 else rounded_up_text(number)


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """Pairs of distributions on two outcomes, one pair for each position.

    Attributes:
        heads: the probability of the first outcome under the first distribution.
        tails: that of the second outcome, so that no digits are lost where it is small.
        high: the privacy loss of the first outcome: the logarithm of the ratio of its two probabilities.
        low: that of the second outcome.
    """

    heads: Floats
    tails: Floats
    high: Floats
    low: Floats


# Below _SMALL, events of dp_accounting lose digits, and zCDP is as good; beyond _LARGE, the Renyi divergence is nearly
# epsilon at all orders.
_SMALL, _LARGE = Fraction(1, 100), Fraction(30)


class PrivacyLoss(ABC):
    """Upper bounds on the privacy loss of one selection."""

    # `is_pure` says whether the parameter is a pure epsilon. If not, there is no pure epsilon at all. `joins_halves`
    # says whether selections with parts of the parameter, such as two halves, are a post-processing of pairs of the
    # family with all of it. It is needed for people who move from one group to another, and for those with rows in
    # several parts of several quantiles.

    is_pure = True
    joins_halves = True

    @abstractmethod
    def zcdp(self, epsilon: Fraction) -> float:
        """Return the rho of zero-concentrated differential privacy, rounded up."""

    @abstractmethod
    def profile(self, epsilon: float, losses: Floats) -> Floats:
        """Return the privacy profile at these losses."""

    def renyi_event(self, accounting: ModuleType, epsilon: Fraction) -> Any:
        """Return the event of the given dp_accounting module that its Renyi accountant composes."""
        # That of zCDP; for a large epsilon, the divergence epsilon at all orders.
        if epsilon > _LARGE:
            return accounting.ZCDpEvent(rho=0.0, xi=float_above(epsilon))
        return accounting.ZCDpEvent(self.zcdp(epsilon))

    def pairs(self, epsilon: float, corners: int) -> Pairs | None:  # noqa: ARG002 - for families that have some
        """Return pairs on two outcomes that dominate each pair of the family, in `corners` steps; None if unknown."""
        # More corners are closer to the truth; the distance falls with the square of their number.
        return None


class _Laplace(PrivacyLoss):
    # Laplace noise of scale 1/epsilon on a query of sensitivity one. It dominates permute-and-flip, and report noisy
    # max with Laplace noise (theorem 2 of docs/theory.md). Its outcomes have infinitely many losses, and so no pairs.

    def zcdp(self, epsilon: Fraction) -> float:
        # The rho epsilon + exp(-epsilon) - 1, which is tight for Laplace noise (Harrison & Manurangsi 2026). The sum
        # cancels for small epsilon. For epsilon >= 0.01 its rounding error, below epsilon * 2**-51, is less than
        # 10**-13 of the sum, which is about epsilon**2/2. Below, five terms of the alternating series
        # epsilon**2/2 - epsilon**3/6 + epsilon**4/24 - ... are an upper bound; the sixth is less than 10**-13 of it.
        value = float_above(epsilon)
        if value < 0.01:
            series = 1 / 2 - value * (1 / 6 - value * (1 / 24 - value * (1 / 120 - value / 720)))
            return _rounded_up(value * value * series)
        return min(_rounded_up(value + math.expm1(-value)), value)

    def profile(self, epsilon: float, losses: Floats) -> Floats:
        return _with_ends(epsilon, losses, -np.expm1((_clipped(epsilon, losses) - epsilon) / 2))

    def renyi_event(self, accounting: ModuleType, epsilon: Fraction) -> Any:
        # Laplace noise, with the scale rounded down.
        if _SMALL <= epsilon <= _LARGE:
            return accounting.LaplaceDpEvent(float_below(1 / epsilon))
        return super().renyi_event(accounting, epsilon)


class _PermuteAndFlip(_Laplace):
    # Permute-and-flip, whose worst case has two candidates (theorem 6 of docs/theory.md).
    #
    # With E = e^epsilon, each pair of output distributions is a post-processing of a pair of coins with the
    # probabilities of heads a = 1 - w/2 and b = 1/(2 E w), for a w between 1/E and one. For each loss x the largest
    # a - e^x b is that of w = e^((x - epsilon)/2), and is Laplace's profile. The divergences of all orders are smaller
    # than Laplace's.
    #
    # Two selections at epsilon/2 can have ratios of probabilities that no single pair at epsilon has. Write v = 1 - w
    # and s = 1 - 1/(E w) for a pair; its ratios lie between 1/(E (1 - v^2)) and E (1 - s^2), and (1 - v)(1 - s) = 1/E.
    # For two of them these are products, so that v^2 <= v1^2 + v2^2 - v1^2 v2^2 is needed, and s alike; then
    # (1 - v)(1 - s) is too large unless v1 v2 = s1 s2 = 0.

    joins_halves = False

    def zcdp(self, epsilon: Fraction) -> float:
        # The largest divergence K(w) of the pairs of coins. It has no closed form.
        return _largest_divergence(float_above(epsilon))

    def pairs(self, epsilon: float, corners: int) -> Pairs | None:
        # The curve b = 1/(2 E w), a = 1 - w/2, with w = e^-r, is inside the polygon of `_polygon`.
        middles, shrunk = _polygon(epsilon, corners)
        middles, shrunk = np.r_[0.0, middles, epsilon], np.r_[1.0, shrunk, 1.0]  # both ends are pairs, too
        tails = np.exp(-middles) / shrunk / 2
        there = np.exp(middles - epsilon) / shrunk / 2
        return _pairs(1 - tails, tails, there, 1 - there)


class _BoundedRange(PrivacyLoss):
    # Mechanisms whose log-ratios span a range of epsilon (Durfee & Rogers 2019; Dong, Durfee & Rogers 2020). The
    # privacy loss lies in [t - epsilon, t] for some t. The worst distribution puts p on t and the rest on t - epsilon,
    # where p = (1 - e^(t - epsilon)) / (1 - e^-epsilon), as the other side's probabilities sum to one. Its profile at a
    # is p (1 - e^(a - t)), largest at t = (a + epsilon)/2.

    def zcdp(self, epsilon: Fraction) -> float:
        # The rho a - 1 - ln(a), a = epsilon/(e^epsilon - 1), which is tight (Harrison & Manurangsi 2026).
        #
        # With x = epsilon/2 this is x coth(x) - 1 + ln(sinh(x)/x), the sum over n >= 1 of 2 y/(1 + y) + ln(1 + y) with
        # y = (x/(n pi))**2. For small x each term is an alternating series with falling terms (2 + 1/k) y**k, so the
        # sum of the first five is an upper bound. Their sums over n are x**2/2, x**4/36, x**6/405, x**8/4200,
        # x**10/42525. For x < 1/8 the sixth is less than 10**-14 of the whole. For larger x all parts of the formula
        # are at most 2 x + 1, so its rounding error is below 10**-15 (2 x + 1), while rho > 0.006 (2 x + 1).
        value = float_above(epsilon)
        half, square = value / 2, value * value / 4
        if value < 0.25:
            series = 1 / 2 - square * (1 / 36 - square * (1 / 405 - square * (1 / 4200 - square / 42525)))
            return _rounded_up(square * series)
        if math.isinf(value):
            return value
        rho = half / math.tanh(half) - 1 + half + math.log(-math.expm1(-value) / value)
        return min(_rounded_up(rho), value)

    def profile(self, epsilon: float, losses: Floats) -> Floats:
        inside = np.expm1((_clipped(epsilon, losses) - epsilon) / 2) ** 2 / -math.expm1(-epsilon)
        return _with_ends(epsilon, losses, inside)

    def pairs(self, epsilon: float, corners: int) -> Pairs | None:
        # The curve of t, inside the polygon of `_polygon`. Its ends, t = 0 and t = epsilon, have equal distributions.
        # With z = e^t and q = e^-epsilon it is p = (1 - q z)/(1 - q), and the other side's p is (1/z - q)/(1 - q). A
        # corner has z = e^m/C and e^-m/C in place of 1/z. All differences are of numbers that differ by a factor.
        middles, shrunk = _polygon(epsilon, corners)
        more = 2 * math.sinh(epsilon / corners / 4) ** 2  # shrunk - 1
        scale = shrunk * -math.expm1(-epsilon)
        heads = (more - np.expm1(middles - epsilon)) / scale
        tails = (np.expm1(middles) - more) * math.exp(-epsilon) / scale
        there = (np.expm1(epsilon - middles) - more) * math.exp(-epsilon) / scale
        return _pairs(heads, tails, there, (more - np.expm1(-middles)) / scale)


class _Pure(PrivacyLoss):
    # Any epsilon-DP mechanism. None leaks more than randomized response between two values (Kairouz et al. 2015).

    def zcdp(self, epsilon: Fraction) -> float:
        # The rho epsilon tanh(epsilon/2), the divergence of randomized response (theorem 7 of docs/theory.md).
        value = float_above(epsilon)
        return min(_rounded_up(value * math.tanh(value / 2)), value)

    def profile(self, epsilon: float, losses: Floats) -> Floats:
        # (e^epsilon - e^a) / (1 + e^epsilon), with numerator and denominator divided by e^epsilon.
        inside = -np.expm1(_clipped(epsilon, losses) - epsilon) / (1 + math.exp(-epsilon))
        return _with_ends(epsilon, losses, inside)

    def renyi_event(self, accounting: ModuleType, epsilon: Fraction) -> Any:
        # Randomized response with slightly more leakage than epsilon allows.
        if _SMALL <= epsilon <= _LARGE:
            noise = 2 / (1 + math.exp(float_above(epsilon)))
            return accounting.RandomizedResponseDpEvent(math.nextafter(noise * (1 - 1e-15), 0), 2)
        return super().renyi_event(accounting, epsilon)

    def pairs(self, epsilon: float, corners: int) -> Pairs | None:  # noqa: ARG002 - that of all families
        heads, tails = 1 / (1 + np.exp([-epsilon])), 1 / (1 + np.exp([epsilon]))
        return _pairs(heads, tails, tails, heads)


class _Concentrated(PrivacyLoss):
    # Any mechanism of which only the rho of zCDP is known. The parameter is rho, not epsilon.

    is_pure = False

    def zcdp(self, epsilon: Fraction) -> float:
        return float_above(epsilon)

    def profile(self, epsilon: float, losses: Floats) -> Floats:  # noqa: ARG002 - that of all families
        # One, which bounds every profile.
        return np.ones_like(losses)

    def renyi_event(self, accounting: ModuleType, epsilon: Fraction) -> Any:
        return accounting.ZCDpEvent(self.zcdp(epsilon))


LAPLACE, PERMUTE_AND_FLIP, BOUNDED_RANGE = _Laplace(), _PermuteAndFlip(), _BoundedRange()
PURE_LOSS, CONCENTRATED = _Pure(), _Concentrated()


@lru_cache(maxsize=4096)
def epsilon_of_rho(loss: PrivacyLoss, rho: Fraction) -> Fraction:
    """The largest epsilon, as a float, whose rho is at most the given one."""
    # `loss.zcdp(epsilon) <= rho` holds exactly, and the epsilon is the largest one up to a few parts in 10**12.

    def fits(epsilon: float) -> bool:
        if not epsilon:  # nothing smaller is left to try
            return True
        found = loss.zcdp(Fraction(epsilon)) if math.isfinite(epsilon) else math.inf
        return math.isfinite(found) and Fraction(found) <= rho

    if rho <= 0:
        raise InvalidValue("rho must be positive")
    # Where epsilon is small, rho is about its square.
    found = last_true(fits, max(min(math.sqrt(float_near(rho)), 1e300), math.ulp(0)))
    if not found:
        raise InvalidValue("rho is too small: no float is such an epsilon")
    return Fraction(found)


# Below the first and above the last, K(w) is replaced by a bound that is nearly equal or always holds; below the
# second, floats cancel too much.
_LEAST_DIVERGENCE, _LEAST_IN_FLOATS, _MOST_DIVERGENCE = 1e-6, 0.01, 1e6
_DIGITS = Context(prec=40)
_Real = TypeVar("_Real", float, Decimal)


@lru_cache(maxsize=4096)
def _largest_divergence(epsilon: float) -> float:
    # The largest Kullback-Leibler divergence between coins with heads a = 1 - w/2 and b = 1/(2 E w), rounded up.
    #
    # With q = e^-epsilon it is
    #
    #   K(w)  = epsilon + ln w + (1 - w/2) ln(2 - w) + (w/2) (ln w - epsilon - ln(2 w - q)),
    #   K'(w) = 1/w - (epsilon + ln((2 - w) (2 w - q)/w))/2 - w/(2 w - q),
    #
    # and K is concave for q <= w <= 1 (theorem 7 of docs/theory.md). So no K exceeds K(w) + |K'(w)| (1 - q), whichever
    # w is taken. A w near 1/(1 + epsilon/2) is the best, and Newton's method finds it in a few steps.
    #
    # For small epsilon, K <= D**2/8 with D the logarithm of the odds ratio of the two coins, which is largest at
    # w = e^(-epsilon/2): 2 ln(2 e^(epsilon/2) - 1). It exceeds K by less than a part epsilon**2/10. For large epsilon,
    # Laplace's rho is a bound, and so is epsilon.
    if epsilon < _LEAST_DIVERGENCE:
        odds = math.log1p(2 * math.expm1(epsilon / 2))
        return _rounded_up(odds * odds / 2)
    if epsilon > _MOST_DIVERGENCE:
        return LAPLACE.zcdp(Fraction(epsilon)) if math.isfinite(epsilon) else math.inf
    bound = _divergence_in_floats(epsilon) if epsilon >= _LEAST_IN_FLOATS else _divergence_in_decimals(epsilon)
    return min(_rounded_up(bound), epsilon)


def _divergence_in_floats(epsilon: float) -> float:
    # K(w) + |K'(w)| (1 - q), with a relative error below 10**-12.
    #
    # From one on, all terms of K are at most epsilon + 1, and their few roundings are below 10**-15 (epsilon + 1),
    # while K > epsilon/4. Below, K = a ln(1 + d/b) + (1 - a) ln(1 - d/(1 - b)), d = a - b, has terms near epsilon/2,
    # each with an error of a few units of 2**-53, and d has one of such a unit, while K > epsilon**2/4: together less
    # than 10**-14/epsilon. The error of the slope is a few units of 2**-53 of its largest term, which is at most
    # epsilon + 2, and its factor 1 - q is at most epsilon and at most one.
    q, w = math.exp(-epsilon), 1 / (1 + epsilon / 2)
    for _ in range(4):
        slope, curvature = _derivatives(epsilon, q, w, math.log((2 - w) * (2 * w - q) / w))
        w = min(max(w - slope / curvature, q, math.ulp(0.0)), 1.0)
    slope, _ = _derivatives(epsilon, q, w, math.log((2 - w) * (2 * w - q) / w))
    if epsilon < 1:
        there, apart = q / w / 2, ((1 - w) + (1 - q / w)) / 2
        divergence = (1 - w / 2) * math.log1p(apart / there) + w / 2 * math.log1p(-apart / (1 - there))
    else:
        rest = math.log(w) - epsilon - math.log(2 * w - q)
        divergence = epsilon + math.log(w) + (1 - w / 2) * math.log(2 - w) + w / 2 * rest
    return divergence + abs(slope) * (1 - q)


def _divergence_in_decimals(epsilon: float) -> float:
    # The same with 40 digits: the error is below 10**-35, while K > 10**-13.
    with localcontext(_DIGITS):
        exact = Decimal(epsilon)
        q, w = (-exact).exp(), 1 / (1 + exact / 2)
        for _ in range(2):
            slope, curvature = _derivatives(exact, q, w, ((2 - w) * (2 * w - q) / w).ln())
            w = min(max(w - slope / curvature, q), Decimal(1))
        slope, _ = _derivatives(exact, q, w, ((2 - w) * (2 * w - q) / w).ln())
        divergence = exact + w.ln() + (1 - w / 2) * (2 - w).ln() + w / 2 * (w.ln() - exact - (2 * w - q).ln())
        return float(divergence + abs(slope) * (1 - q))


def _derivatives(epsilon: _Real, q: _Real, w: _Real, logarithm: _Real) -> tuple[_Real, _Real]:
    # The first and second derivative of K, given ln((2 - w) (2 w - q)/w). The second is negative.
    rest = 2 * w - q
    slope = 1 / w - (epsilon + logarithm) / 2 - w / rest
    return slope, -1 / (w * w) + (1 / (2 - w) + 1 / w) / 2 - 2 * (w - q) / (rest * rest)


def _polygon(epsilon: float, corners: int) -> tuple[Floats, Floats]:
    # The corners of a polygon around the hyperbola y = 1/z, z = e^t with t from 0 to epsilon: see theorem 8. Its sides
    # touch the curve at `corners` + 1 equally spaced t. The tangents at t and t + s meet at z = e^m/C and y = e^-m/C,
    # where m = t + s/2 and C = cosh(s/2). Returns all m and all C.
    step = epsilon / corners
    middles = step * (np.arange(corners, dtype=np.float64) + 0.5)
    return middles, np.full(corners, math.cosh(step / 2), dtype=np.float64)


def _pairs(heads: Floats, tails: Floats, heads_there: Floats, tails_there: Floats) -> Pairs:
    # Pairs with these probabilities. The losses are rounded up, which only enlarges what is composed from them. The
    # probabilities have relative errors of at most 8 units of 2**-53, and so have their ratios twice that; the
    # logarithm adds a unit of its own size.
    high, low = np.log(heads / heads_there), np.log(tails / tails_there)
    return Pairs(heads, tails, high + 1e-14 * (1 + abs(high)), low + 1e-14 * (1 + abs(low)))


def _clipped(epsilon: float, losses: Floats) -> Floats:
    return np.clip(losses, -epsilon, epsilon)


def _with_ends(epsilon: float, losses: Floats, inside: Floats) -> Floats:
    return np.where(losses >= epsilon, 0.0, np.where(losses <= -epsilon, -np.expm1(losses), inside))


def _rounded_up(rho: float) -> float:
    # The computed value plus one part in 10**12, which covers its few roundings; never zero.
    return math.nextafter(rho * (1 + 1e-12), math.inf)
