"""The total of a ledger or a plan: pure epsilon, zCDP, and (epsilon, delta) by Google's dp_accounting.

The pure sum is always a guarantee: questions, their epsilons and their number may all depend on
earlier answers. The loss of a transcript is at most the sum of its epsilons, so a budget of pure epsilon is a filter
(Rogers, Roth, Ullman & Vadhan 2016).

zCDP and (epsilon, delta) are guarantees if the list of mechanisms and epsilons, and with it their number, was fixed
before the first answer. Then each question, and the order of the list, may depend on earlier answers. If the list
was not fixed, they guarantee nothing: `tests/accounting/test_odometer.py` has a counterexample.

**The recursion.** The (epsilon, delta) of equal releases is that of the recursion for adaptive composition, which is
exact up to its grid. Let delta_k(x) be the largest Pr[S] - e^x Pr'[S] over k adaptively chosen releases of one
family, neighbours and sets S. If every pair of distributions of one release is a post-processing of a pair of coins
with heads a and b from some set (`Pairs`), then delta_0(x) = max(0, 1 - e^x) and

  delta_k(x) = sup of  a delta_(k-1)(x - ln(a/b)) + (1 - a) delta_(k-1)(x - ln((1 - a)/(1 - b)))  over the pairs

(theorem 8 of docs/theory.md; for bounded range: Dong, Durfee & Rogers 2020). Here upper bounds of delta_k are
computed on a grid x = 0, g, 2 g, ... Every step is rounded to the safe side:

  * The pairs on a curve are replaced by the corners of a polygon around it, which dominate it (theorem 8).
  * delta is convex in e^x, so between two points of the grid it is at most their chord.
  * delta never rises, so beyond the last point it is at most the last value.
  * For x < 0, delta(x) = 1 - e^x + e^x delta(-x): the neighbours are exchanged.
  * Losses are rounded up by `Pairs`, by more than the rounding of their places on the grid. All other terms are sums of
    products of numbers that are not negative, each with a relative error of a few units of 2**-53; 10**-14 is added.

The first two errors are of the second order in g: with g = epsilon/48 they are about one part in a thousand of
epsilon.

**dp_accounting.** Each mechanism's `loss` (see `mechanisms.privacy`) supplies the event that Google's Renyi accountant
composes, and the privacy profile from which a privacy loss distribution is made. They compose if the list of mechanisms
and epsilons was fixed in advance; each question may depend on earlier answers (Zhu, Dong & Wang 2022, Theorem 10).

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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
from types import ModuleType
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dpselect import _validate
from dpselect._messages import install_command
from dpselect._numbers import float_above, rounded_up_text
from dpselect._types import Floats
from dpselect.accounting.charge import PURE, QUANTILES, Charge, loss_of, rho_of
from dpselect.accounting.repeats import Repeats, repeated
from dpselect.errors import InvalidType, InvalidValue, MissingExtra
from dpselect.mechanisms.parameters import Neighbours
from dpselect.mechanisms.privacy import PURE_LOSS, PrivacyLoss

# The number of releases of each (mechanism, epsilon).
Releases = Mapping[tuple[str, Fraction], int]

_MARGIN = 1 + 1e-9
_ROUNDING = 1e-14
# Of the recursion.
_MOST_RELEASES = 1000
_SMALLEST, _LARGEST = 1e-6, 30.0  # beyond, the pure sum is as good, or the losses have too few digits
_MOST_PRODUCTS = 1e8  # of all steps, about half a second
_CELLS, _FEWEST_CELLS = 48, 4  # per epsilon, or per unit of loss if epsilon is larger than one
_ROOM = 1.25  # the grid ends at this multiple of the known epsilon, where deltas are small
# Of dp_accounting.
_ORDERS = 1 + np.geomspace(0.05, 1e7, 200)
_FINE = 16  # losses per smallest epsilon; connecting the dots makes the rest of the error quadratic
_FEWEST_LOSSES, _MOST_LOSSES = 2**12, 2**18
_WINDOW = 16  # standard deviations that hold all but 1e-15 of the losses on both sides
_LARGEST_LOSS = 600  # e^loss must not overflow

Method = Literal["pure", "renyi", "loss distribution", "recursion"]


@runtime_checkable
class HasCharges(Protocol):
    def charges(self) -> Iterable[Charge]: ...


Spent = HasCharges | Iterable[Any]  # charges, or entries that have one


@dataclass(frozen=True)
class Approximate:
    """An (epsilon, delta) guarantee, and the method that found its epsilon.

    Attributes:
        epsilon: an upper bound on epsilon, for this delta.
        delta: the failure probability.
        method: how epsilon was found.

    >>> total([Charge("mode", "0.1")], delta=1e-6).approximate.delta
    1e-06
    """

    epsilon: float
    delta: float
    method: Method


@dataclass(frozen=True)
class Total:
    """A total cost: exact pure epsilon, zCDP rounded up, and (epsilon, delta) on request.

    Pure epsilon is always a guarantee. The others are guarantees if the mechanisms, their epsilons and their
    number were fixed before the first answer.

    Attributes:
        epsilon: the exact sum of pure epsilons; None if a release has none.
        zcdp: the sum of rho, rounded up.
        delta: the exact sum of the deltas of releases that have one. The zCDP then holds except with this probability.
        approximate: an (epsilon, delta) guarantee, if a delta was given.

    >>> print(Total(Fraction(1, 3), zcdp=0.125))
    0.333334-DP (pure); if fixed beforehand: 0.125-zCDP
    """

    epsilon: Fraction | None
    zcdp: float
    approximate: Approximate | None = None
    delta: Fraction = Fraction(0)

    def __str__(self) -> str:
        return f"{self.always}; if fixed beforehand: {self.if_fixed}"

    @property
    def always(self) -> str:
        """What always holds, in words."""
        return "no pure epsilon" if self.epsilon is None else f"{rounded_up_text(self.epsilon)}-DP (pure)"

    @property
    def if_fixed(self) -> str:
        """What holds if mechanisms, epsilons and their number were fixed in advance, in words."""
        failure = f" except with probability {rounded_up_text(self.delta)}" if self.delta else ""
        rho = f"{'inf' if math.isinf(self.zcdp) else rounded_up_text(Fraction(self.zcdp))}-zCDP{failure}"
        if self.approximate is None:
            return rho
        return f"{rho}, ({rounded_up_text(Fraction(self.approximate.epsilon))}, {self.approximate.delta:g})-DP"


def total(spent: Spent, delta: float | str | None = None) -> Total:
    """Add up a ledger or planned charges; with `delta`, also compute the smallest known (epsilon, delta).

    Only the pure sum is a guarantee for a ledger whose questions, epsilons or number were chosen after seeing
    earlier answers. zCDP and (epsilon, delta) are guarantees for a list that was fixed in advance, such as a plan.

    Args:
        spent: a ledger, or charges or entries.
        delta: the failure probability of (epsilon, delta); without it, only pure epsilon and zCDP are computed.

    Raises:
        InvalidType, InvalidValue: `spent` holds something else, or `delta` is not between 0 and 1.
        MissingExtra: `delta` is given, but dp-accounting is not installed.

    >>> charges = [Charge("mode", "0.1", "exponential")] * 100
    >>> print(total(charges))
    10-DP (pure); if fixed beforehand: 0.124983-zCDP
    >>> round(total(charges, delta=1e-6).approximate.epsilon, 2)
    2.25
    """
    charges = [_charge_of(one) for one in (spent.charges() if isinstance(spent, HasCharges) else spent)]
    releases = releases_of(charges)
    failure = sum((charge.delta for charge in charges if charge.delta), Fraction(0))
    epsilon = None if failure else _pure_sum(releases)
    rhos = (rho_of(name, each) * count for (name, each), count in releases.items())
    zcdp = float_above(sum(rhos, Fraction(0)))
    if delta is None:
        return Total(epsilon, zcdp, delta=failure)
    doubt = _validate.fraction_of_one(delta=delta)
    rest = doubt - float_above(failure)
    if rest <= 0:
        raise InvalidValue(f"delta must be larger than that of the releases, {rounded_up_text(failure)}")
    _validate.warn_of_large_delta(doubt)
    found = approximate(releases, rest, joined=all(_is_joined(charge) for charge in charges))
    return Total(epsilon, zcdp, replace(found, delta=rest + float_above(failure)), failure)


def _charge_of(one: Any) -> Charge:
    charge = getattr(one, "charge", one)
    if not isinstance(charge, Charge):
        raise InvalidType(f"spent must be a Ledger or hold charges or entries, got {type(charge).__name__}")
    return charge


def releases_of(charges: Iterable[Charge]) -> Releases:
    releases: Counter[tuple[str, Fraction]] = Counter()
    for charge in charges:
        releases[charge.composes_as, charge.each] += charge.count
    return releases


def _is_joined(charge: Charge) -> bool:
    # Whether each release is a post-processing of a pair of its family. It may stand for several of smaller epsilons,
    # which add up to its own. A person who is replaced may leave one group, or one share of several quantiles, and
    # enter another, at half a share each. A person who counts with several rows may have them in several shares of
    # several quantiles.
    question = charge.what if isinstance(charge.what, Mapping) else {}
    is_split = question.get("question") == QUANTILES
    is_halved = question.get("neighbours") == Neighbours.REPLACE and ("group_by" in question or is_split)
    stands_for_several = is_halved or (is_split and question.get("max_rows", 1) != 1)
    return not stands_for_several or loss_of(charge.composes_as).joins_halves


def _pure_sum(releases: Releases) -> Fraction | None:
    # The sum of epsilons; None if only the rho of a release is known.
    if not all(loss_of(name).is_pure for name, _ in releases):
        return None
    return sum((each * count for (_, each), count in releases.items()), Fraction(0))


def approximate(releases: Releases, delta: float, *, joined: bool = True) -> Approximate:
    """The smallest epsilon that is known for this delta: by any `Method`."""
    # The recursion needs releases that are `joined`: none stands for several of smaller epsilons that do not join.
    exact = _pure_sum(releases)
    pure = math.inf if exact is None else float_above(exact)
    found: list[tuple[float, Method]] = [(pure, "pure")]
    if releases:
        found += [(renyi_epsilon(releases, delta), "renyi"), (loss_epsilon(releases, delta), "loss distribution")]
        if joined:
            found.append((_equal_epsilon(releases, delta, min(found)[0]), "recursion"))
    epsilon, method = min(found)
    return Approximate(epsilon, delta, method)


def _equal_epsilon(releases: Releases, delta: float, most: float) -> float:
    # The recursion's epsilon, if all releases are of one mechanism with one epsilon; otherwise infinity.
    if len(releases) > 1:
        return math.inf
    [((name, each), count)] = without_repeats(releases).items()
    return recursion_epsilon(loss_of(name), each, count, delta, most)


@lru_cache(maxsize=256)
def recursion_epsilon(loss: PrivacyLoss, epsilon: Fraction, count: int, delta: float, most: float) -> float:
    # An upper bound on the epsilon of `count` releases of one family, all with this epsilon; or infinity. It is
    # infinite if the family has no pairs, if there are too many releases, or if `most`, an epsilon that is already
    # known to hold, is as good.
    each = float_above(epsilon)
    if count > _MOST_RELEASES or not _SMALLEST <= each <= _LARGEST or not 0 < most < math.inf:
        return math.inf
    affordable = math.isqrt(int(_MOST_PRODUCTS * each / (count * most)))
    cells = min(affordable, math.ceil(_CELLS * max(each, 1.0)))
    if cells < _FEWEST_CELLS:
        return math.inf
    deltas = _deltas(loss, each, count, most, cells)
    return math.inf if deltas is None else _first_place(deltas, each / cells, delta) * _MARGIN


def _deltas(loss: PrivacyLoss, epsilon: float, count: int, most: float, cells: int) -> Floats | None:
    # Upper bounds of delta_count on the grid of multiples of epsilon/cells, from zero to more than `most`.
    pairs = loss.pairs(epsilon, cells)
    if pairs is None:
        return None
    gap = epsilon / cells
    places, weights = zip(*(_dots(part, gap) for part in (pairs.high, pairs.low)), strict=True)
    masses = zip((pairs.heads, pairs.tails), weights, strict=True)
    factors = [(mass * weight)[:, None] for mass, near in masses for weight in (near, 1 - near)]
    reach = int(max(abs(place).max() for place in places)) + 1
    last = math.ceil(_ROOM * most / gap) + reach
    rows = [reach - place - later for place in places for later in (0, 1)]
    under = -gap * np.arange(reach, 0, -1)
    deltas = np.zeros(last + 1)
    for _ in range(count):
        below = -np.expm1(under) + np.exp(under) * deltas[reach:0:-1]
        windows = sliding_window_view(np.concatenate([below, deltas, np.full(reach, deltas[-1])]), last + 1)
        sums = factors[0] * windows[rows[0]]
        for factor, row in zip(factors[1:], rows[1:], strict=True):
            sums += factor * windows[row]
        deltas = sums.max(axis=0) * (1 + _ROUNDING)
    return deltas


def _dots(losses: Floats, gap: float) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Floats]:
    # The chord on which a function of x - loss is bounded, for a function that is convex in e^x. Returns the number of
    # cells j below each loss, and the weight of the value at x - j gap; that at x - (j + 1) gap has the rest.
    cells = np.floor(losses / gap)
    weights = np.expm1((cells + 1) * gap - losses) / math.expm1(gap)
    return cells.astype(np.int64), np.clip(weights, 0.0, 1.0)


def _first_place(deltas: Floats, gap: float, delta: float) -> float:
    # The smallest x at which the chords of these values are at most delta; infinite if there is none.
    found = np.flatnonzero(deltas <= delta)
    if not found.size:
        return math.inf
    after = int(found[0])
    if not after:
        return 0.0
    share = (deltas[after - 1] - delta) / (deltas[after - 1] - deltas[after])
    return (after - 1) * gap + math.log1p(math.expm1(gap) * float(share))


def renyi_epsilon(releases: Releases, delta: float) -> float:
    # An epsilon by Renyi differential privacy (Mironov 2017). The best of many runs is accounted for in two ways: as
    # such, and as any release with its pure epsilon.
    if not any(repeated(mechanism) for mechanism, _ in releases):
        return _renyi_epsilon(releases, delta)
    found = [_renyi_epsilon(without_repeats(releases), delta)]
    with contextlib.suppress(ValueError, ArithmeticError):  # dp_accounting's formula may overflow
        found.append(_renyi_epsilon(releases, delta))
    return min(found)


def without_repeats(releases: Releases) -> Releases:
    # The same releases, but of the best of many runs only the pure epsilon is used.
    counts: Counter[tuple[str, Fraction]] = Counter()
    for (mechanism, epsilon), count in releases.items():
        counts[PURE if repeated(mechanism) else mechanism, epsilon] += count
    return counts


def _renyi_epsilon(releases: Releases, delta: float) -> float:
    accountancy = _module("dp_accounting")
    accountant = accountancy.rdp.RdpAccountant(_ORDERS, accountancy.NeighboringRelation.REPLACE_ONE)
    for (mechanism, epsilon), count in releases.items():
        runs = repeated(mechanism)
        if runs is None:
            event = loss_of(mechanism).renyi_event(accountancy, epsilon)
        else:
            event = best_event(runs.repeats, PURE_LOSS.renyi_event(accountancy, runs.each))
        accountant.compose(event, count)  # it leaks at least as much as the release
    return float(accountant.get_epsilon(delta)) * _MARGIN


def best_event(repeats: Repeats, event: Any) -> Any:
    """Return dp_accounting's event of keeping the best result of many runs, for its Renyi accountant.

    The accountant derives the stopping probability from the mean, which is rounded up, and rounds it down itself.

    Args:
        repeats: the distribution of the number of runs.
        event: the event of one run, from dp_accounting.

    Raises:
        MissingExtra: dp-accounting is not installed.

    >>> import dp_accounting
    >>> from dpselect.tuning import geometric
    >>> type(best_event(geometric(mean=10), dp_accounting.GaussianDpEvent(1.0))).__name__
    'RepeatAndSelectDpEvent'
    """
    return _module("dp_accounting").dp_event.RepeatAndSelectDpEvent(event, repeats.mean, repeats.event_shape)


def loss_epsilon(given: Releases, delta: float) -> float:
    # An epsilon by privacy loss distributions (Koskela et al. 2020, Doroshenko et al. 2022); infinite if unknown.
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
    losses = (_repeated(_loss(*release, interval), count) for release, count in releases.items())
    whole = reduce(lambda one, other: one.compose(other), losses)
    return float(whole.get_epsilon_for_delta(left)) * _MARGIN


def _loss(mechanism: str, epsilon: Fraction, interval: float) -> Any:
    # The privacy loss distribution of one release, from its profile by connecting the dots.
    value = float_above(epsilon)
    top = math.ceil(value / interval) + 1
    deltas = loss_of(mechanism).profile(value, interval * np.arange(-top, top + 1, dtype=np.float64))
    masses = _module("dp_accounting.pld.pld_pmf")
    distribution = _module("dp_accounting.pld.privacy_loss_distribution").PrivacyLossDistribution
    return distribution(masses.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -top, top, deltas))


def _repeated(loss: Any, count: int) -> Any:
    # The loss of `count` releases, by squaring: each step cuts the tails, so the arrays stay short.
    power, result = loss, None
    while count:
        if count & 1:
            result = power if result is None else result.compose(power)
        count >>= 1
        if count:
            power = power.compose(power)
    return result


def _reach(releases: Releases) -> float:
    # The range of losses: a window around their mean, which is at most half the variance, or the largest ones.
    variance = math.fsum(count * float(epsilon) ** 2 for (_, epsilon), count in releases.items())
    return variance + _WINDOW * math.sqrt(variance) + 2 * max(float(epsilon) for _, epsilon in releases)


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(f"(epsilon, delta) needs dp-accounting: {install_command('dp-accounting')}") from None
