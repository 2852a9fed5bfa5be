"""Privacy profiles: the largest value of Pr[M(x) in S] - e^a Pr[M(x') in S] over neighbours x, x' and sets S.

Profiles bound how the mechanisms of a list compose, if the list was fixed beforehand; each may be asked a question that
depends on the answers before (Zhu, Dong & Wang 2022, Theorem 10). For a mechanism of this epsilon and |a| <= epsilon
the profile is, at most,

  permute-and-flip   1 - e^((a - epsilon)/2)                            Laplace noise (theorem 2 of docs/theory.md)
  exponential        (1 - e^((a - epsilon)/2))^2 / (1 - e^-epsilon)     bounded range
  any other          (e^epsilon - e^a) / (1 + e^epsilon)                randomized response

Bounded range (Durfee & Rogers 2019; Dong, Durfee & Rogers 2020): the privacy loss lies in [t - epsilon, t] for some t.
The worst distribution puts p on t and the rest on t - epsilon, where p = (1 - e^(t - epsilon)) / (1 - e^-epsilon), for
the other side's probabilities sum to one. Its profile at a is p (1 - e^(a - t)), largest at t = (a + epsilon)/2.
All three are their own mirror images under exchange of x and x', so one direction is enough.

(epsilon, delta) of many releases by Google's dp_accounting: Renyi orders, and privacy loss distributions.

Both give upper bounds, so the smaller one holds. Care where its floats could fall below the truth:
  * Renyi: LaplaceDpEvent loses digits for tiny epsilon, so there the zCDP bound is used, which is as good. `count` is
    given to `compose`, which multiplies by it for the three kinds of events that are used here.
  * Privacy loss distributions are convolved by FFT, whose error is about 0.6 u sqrt(log2 N) of the norm, u = 2^-53 and
    N <= 2^20 losses: 3e-16 for each of three transforms. A distribution of standard deviation s losses has norm
    (3.5 s)^-1/2, and N is about 32 s, so the errors of a convolution sum to at most sqrt(N) * 3 * 3e-16 * (3.5 s)^-1/2,
    below 3e-15. Each doubling of the number of releases doubles the sum: k * 1e-14 is taken off delta first.
Rounding within dp_accounting's scalar formulas is covered by a relative 1e-9.
"""

import contextlib
import importlib
import math
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from dpselect._numbers import float_above, float_below
from dpselect._types import Floats
from dpselect.accounting.charge import PURE
from dpselect.accounting.run_counts import Repeats, repeated
from dpselect.errors import MissingExtra
from dpselect.mechanisms.privacy import bounded_range_zcdp, laplace_zcdp, pure_zcdp

Profile = Callable[[float, Floats], Floats]


def laplace_profile(epsilon: float, losses: Floats) -> Floats:
    """That of Laplace noise of scale 1/epsilon on a query of sensitivity one."""
    values: Floats = -np.expm1((losses - epsilon) / 2)
    return values


def bounded_range_profile(epsilon: float, losses: Floats) -> Floats:
    """The largest among all mechanisms whose privacy loss spans a range of epsilon."""
    values: Floats = np.divide(np.expm1((losses - epsilon) / 2) ** 2, -math.expm1(-epsilon))
    return values


def pure_profile(epsilon: float, losses: Floats) -> Floats:
    """The largest among all epsilon-DP mechanisms; numerator and denominator are divided by e^epsilon."""
    values: Floats = np.divide(-np.expm1(losses - epsilon), 1 + math.exp(-epsilon))
    return values


PROFILES: dict[str, Profile] = {
    "permute-and-flip": laplace_profile,
    "exponential": bounded_range_profile,
    "noisy-max": pure_profile,
    PURE: pure_profile,
}


def profile(mechanism: str, epsilon: float, losses: Floats) -> Floats:
    """The profile of the named mechanism: zero from epsilon on, and 1 - e^a up to -epsilon."""
    inside = PROFILES[mechanism](epsilon, np.clip(losses, -epsilon, epsilon))
    return np.where(losses >= epsilon, 0.0, np.where(losses <= -epsilon, -np.expm1(losses), inside))


# How often each (mechanism, epsilon) was released.
Releases = Mapping[tuple[str, Fraction], int]

_ORDERS = 1 + np.geomspace(0.05, 1e7, 200)
_SMALL, _LARGE = Fraction(1, 100), Fraction(30)
_FINE = 16  # losses per smallest epsilon; connecting the dots makes the rest of the error quadratic
_FEWEST_LOSSES, _MOST_LOSSES = 2**12, 2**18
_WINDOW = 16  # standard deviations that hold all but 1e-15 of the losses on both sides
_ROUNDING = 1e-14
_LARGEST_LOSS = 600  # e^loss must stay within the floats
_MARGIN = 1 + 1e-9


def renyi_epsilon(releases: Releases, delta: float) -> float:
    """An epsilon by Renyi differential privacy (Mironov 2017).

    The best of many runs is accounted for in two ways, as what it is and as any release of its pure epsilon.
    """
    if not any(repeated(mechanism) for mechanism, _ in releases):
        return _renyi_epsilon(releases, delta)
    found = [_renyi_epsilon(without_repeats(releases), delta)]
    with contextlib.suppress(ValueError, ArithmeticError):  # where dp_accounting's formula leaves the floats
        found.append(_renyi_epsilon(releases, delta))
    return min(found)


def without_repeats(releases: Releases) -> Releases:
    """The same releases, with only its pure epsilon known of the best of many runs."""
    counts: Counter[tuple[str, Fraction]] = Counter()
    for (mechanism, epsilon), count in releases.items():
        counts[PURE if repeated(mechanism) else mechanism, epsilon] += count
    return counts


def _renyi_epsilon(releases: Releases, delta: float) -> float:
    accountancy = _module("dp_accounting")
    accountant = accountancy.rdp.RdpAccountant(_ORDERS, accountancy.NeighboringRelation.REPLACE_ONE)
    for (mechanism, epsilon), count in releases.items():
        accountant.compose(_event(accountancy, mechanism, epsilon), count)
    return float(accountant.get_epsilon(delta)) * _MARGIN


def _event(accountancy: ModuleType, mechanism: str, epsilon: Fraction) -> Any:
    """The event of one release, never milder than the mechanism."""
    runs = repeated(mechanism)
    if runs is not None:
        return best_event(runs.repeats, _event(accountancy, PURE, runs.each))
    if epsilon > _LARGE:  # whose Renyi divergence is nearly epsilon at all orders
        return accountancy.ZCDpEvent(rho=0.0, xi=float_above(epsilon))
    if mechanism == "exponential":
        return accountancy.ZCDpEvent(bounded_range_zcdp(epsilon))
    if mechanism == "permute-and-flip":
        small = epsilon < _SMALL
        return accountancy.ZCDpEvent(laplace_zcdp(epsilon)) if small else accountancy.LaplaceDpEvent(_scale(epsilon))
    assert mechanism in ("noisy-max", PURE)
    return accountancy.ZCDpEvent(pure_zcdp(epsilon)) if epsilon < _SMALL else _response(accountancy, epsilon)


def best_event(repeats: Repeats, event: Any) -> Any:
    """The event of keeping the best result of runs of an event; only the Renyi accountant takes it.

    The accountant finds the probability of stopping from the mean, which is rounded up, and rounds it down itself.
    """
    return _module("dp_accounting").dp_event.RepeatAndSelectDpEvent(event, repeats.mean, repeats.event_shape)


def _scale(epsilon: Fraction) -> float:
    return float_below(1 / epsilon)


def _response(accountancy: ModuleType, epsilon: Fraction) -> Any:
    """Randomized response between two values, of which no epsilon-DP mechanism leaks more."""
    noise = 2 / (1 + math.exp(float_above(epsilon)))
    return accountancy.RandomizedResponseDpEvent(math.nextafter(noise * (1 - 1e-15), 0), 2)


def loss_epsilon(given: Releases, delta: float) -> float:
    """An epsilon by privacy loss distributions (Koskela et al. 2020, Doroshenko et al. 2022); infinite if unknown."""
    releases = without_repeats(given)
    left = delta - _ROUNDING * sum(releases.values())
    if left <= delta / 2 or max(epsilon for _, epsilon in releases) > _LARGEST_LOSS:
        return math.inf
    reach, smallest = _reach(releases), min(float(epsilon) for _, epsilon in releases)
    if reach > _LARGEST_LOSS:
        return math.inf
    interval = max(min(smallest / _FINE, reach / _FEWEST_LOSSES), reach / _MOST_LOSSES)
    parts = [_repeated(_loss(*release, interval), count) for release, count in releases.items()]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return float(whole.get_epsilon_for_delta(left)) * _MARGIN


def _loss(mechanism: str, epsilon: Fraction, interval: float) -> Any:
    """The privacy loss distribution of one release, from its profile by connecting the dots."""
    value = float_above(epsilon)
    top = math.ceil(value / interval) + 1
    deltas = profile(mechanism, value, interval * np.arange(-top, top + 1, dtype=np.float64))
    masses = _module("dp_accounting.pld.pld_pmf")
    distribution = _module("dp_accounting.pld.privacy_loss_distribution").PrivacyLossDistribution
    return distribution(masses.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -top, top, deltas))


def _repeated(loss: Any, count: int) -> Any:
    """The loss of `count` releases, by squaring: each step cuts the tails, so the arrays stay short."""
    power, result = loss, None
    while count:
        if count & 1:
            result = power if result is None else result.compose(power)
        count >>= 1
        if count:
            power = power.compose(power)
    return result


def _reach(releases: Releases) -> float:
    """How far the losses reach: a window around their mean, which is at most half the variance, or the largest ones."""
    variance = math.fsum(count * float(epsilon) ** 2 for (_, epsilon), count in releases.items())
    return variance + _WINDOW * math.sqrt(variance) + 2 * max(float(epsilon) for _, epsilon in releases)


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra("(epsilon, delta) needs dp-accounting: pip install 'dpselect[accounting]'") from None
