"""(epsilon, delta) of many releases by Google's dp_accounting: Renyi orders, and privacy loss distributions.

Each mechanism's `loss` (see `mechanisms.privacy`) supplies the event that the Renyi accountant composes, and the
privacy profile from which a privacy loss distribution is made. They compose if the list of mechanisms and epsilons was
fixed in advance; each question may depend on earlier answers (Zhu, Dong & Wang 2022, Theorem 10).

Both ways give upper bounds, so the smaller one holds. Care is taken where floats could fall below the truth:
  * Renyi: LaplaceDpEvent loses digits for tiny epsilon, so the zCDP bound is used there, which is as good. `count` is
    passed to `compose`, which multiplies by it for the three kinds of events used here.
  * Privacy loss distributions are convolved by FFT, whose error is about 0.6 u sqrt(log2 N) of the norm, u = 2^-53 and
    N <= 2^20 losses: 3e-16 for each of three transforms. A distribution of standard deviation s losses has norm
    (3.5 s)^-1/2, and N is about 32 s, so the errors of a convolution sum to at most sqrt(N) * 3 * 3e-16 * (3.5 s)^-1/2,
    below 3e-15. Each doubling of the number of releases doubles the sum, so k * 1e-14 is subtracted from delta first.
Rounding within dp_accounting's scalar formulas is covered by a relative 1e-9.
"""

import contextlib
import importlib
import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from dpselect._messages import install_command
from dpselect._numbers import float_above
from dpselect.accounting.charge import PURE, loss_of
from dpselect.accounting.run_counts import Repeats, repeated
from dpselect.errors import MissingExtra
from dpselect.mechanisms.privacy import PURE_LOSS

# The number of releases of each (mechanism, epsilon).
Releases = Mapping[tuple[str, Fraction], int]

_ORDERS = 1 + np.geomspace(0.05, 1e7, 200)
_FINE = 16  # losses per smallest epsilon; connecting the dots makes the rest of the error quadratic
_FEWEST_LOSSES, _MOST_LOSSES = 2**12, 2**18
_WINDOW = 16  # standard deviations that hold all but 1e-15 of the losses on both sides
_ROUNDING = 1e-14
_LARGEST_LOSS = 600  # e^loss must not overflow
_MARGIN = 1 + 1e-9


def renyi_epsilon(releases: Releases, delta: float) -> float:
    """An epsilon by Renyi differential privacy (Mironov 2017).

    The best of many runs is accounted for in two ways: as such, and as any release with its pure epsilon.
    """
    if not any(repeated(mechanism) for mechanism, _ in releases):
        return _renyi_epsilon(releases, delta)
    found = [_renyi_epsilon(without_repeats(releases), delta)]
    with contextlib.suppress(ValueError, ArithmeticError):  # dp_accounting's formula may overflow
        found.append(_renyi_epsilon(releases, delta))
    return min(found)


def without_repeats(releases: Releases) -> Releases:
    """The same releases, but of the best of many runs only the pure epsilon is used."""
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
    """The event of one release. It leaks at least as much as the release."""
    runs = repeated(mechanism)
    if runs is not None:
        return best_event(runs.repeats, PURE_LOSS.renyi_event(accountancy, runs.each))
    return loss_of(mechanism).renyi_event(accountancy, epsilon)


def best_event(repeats: Repeats, event: Any) -> Any:
    """The event of keeping the best result of many runs of an event. Only the Renyi accountant accepts it.

    The accountant derives the stopping probability from the mean, which is rounded up, and rounds it down itself.

    Args:
        repeats: the distribution of the number of runs.
        event: the event of one run, from dp_accounting.

    Returns:
        An event of dp_accounting.

    Raises:
        MissingExtra: dp-accounting is not installed.

    >>> import dp_accounting
    >>> from dpselect.tuning import geometric
    >>> type(best_event(geometric(mean=10), dp_accounting.GaussianDpEvent(1.0))).__name__
    'RepeatAndSelectDpEvent'
    """
    return _module("dp_accounting").dp_event.RepeatAndSelectDpEvent(event, repeats.mean, repeats.event_shape)


def loss_epsilon(given: Releases, delta: float) -> float:
    """An epsilon by privacy loss distributions (Koskela et al. 2020, Doroshenko et al. 2022); infinite if unknown."""
    releases = without_repeats(given)
    if not all(loss_of(mechanism).is_pure for mechanism, _ in releases):
        return math.inf
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
    deltas = loss_of(mechanism).profile(value, interval * np.arange(-top, top + 1, dtype=np.float64))
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
    """The range of losses: a window around their mean, which is at most half the variance, or the largest ones."""
    variance = math.fsum(count * float(epsilon) ** 2 for (_, epsilon), count in releases.items())
    return variance + _WINDOW * math.sqrt(variance) + 2 * max(float(epsilon) for _, epsilon in releases)


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(f"(epsilon, delta) needs dp-accounting: {install_command('dp-accounting')}") from None
