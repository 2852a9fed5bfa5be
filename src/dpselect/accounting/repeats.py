"""Papernot & Steinke (2022): the random number of runs for which keeping the best result is private, too.

This is the accounting of `tune`: the distributions of the number of runs, and the names under which a ledger keeps the
best of them.

Run an epsilon-DP mechanism K times, K random and secret, and keep the best result. Let f be the probability generating
function of K. A result of probability p is kept, if worse results have probability s, with
probability f(s + p) - f(s), which is p times a mean of f' between s and s + p. Between neighbours p changes by a factor
of at most e^epsilon; what f' does depends on the distribution of K. Each t = s + u p, 0 <= u <= 1, is a mean of the
probabilities of two events ("worse" and "not better"), so t and t' on the neighbour are those of an epsilon-DP test:

  negative binomial   with shape h and stop g, f'(t) ~ (g + (1 - g) (1 - t))**-(1 + h). With E = e^epsilon and z = 1 - t
                      the largest z' is min(E z, 1 - (1 - z)/E). (g + (1 - g) z')/(g + (1 - g) z) rises in z as long as
                      z' = E z and falls after that, so it is largest at z = 1/(1 + E), where it is (E + g)/(1 + g E):
                      epsilon + (1 + h) ln((E + g)/(1 + g E)) in all, which is less than (2 + h) epsilon;
  Poisson             f'(t) ~ e^(mean t), and t changes by at most tanh(epsilon/2), the largest distance between the
                      distributions of an epsilon-DP mechanism: epsilon + mean tanh(epsilon/2) in all.

Both are attained in the limit of small p, so neither can be improved (docs/theory.md, theorem 9).

A fixed number of runs has no such bound: K runs cost K epsilon.

Runs that are (epsilon, delta)-DP: each is an epsilon-DP one except with probability delta. No run is such an exception
with probability f(1 - delta), and then the number of runs has probabilities that are proportional to
P(K = k) (1 - delta)**k: stop becomes stop + delta (1 - stop), or the mean becomes (1 - delta) mean, which costs less.
So keeping the best costs the same epsilon, and the delta 1 - f(1 - delta), which is at most delta times the mean number
of runs (docs/theory.md, theorem 20).

A name in a ledger holds what an accountant needs: the distribution of the number of runs and the epsilon of each
run. A name has one form, so equal releases have equal names, and it never changes its meaning.
"""

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from dpselect import _validate
from dpselect._numbers import NotExact, NotFinite, exact_text, float_near, rational_from_text, shortest_text
from dpselect._types import Number
from dpselect.errors import DPSelectError, InvalidType, InvalidValue
from dpselect.mechanisms.privacy import PURE_LOSS, Guarantee
from dpselect.selection.draws import Draws, poisson, truncated_negative_binomial
from dpselect.selection.enclosure import exp_bracket, log_bracket, scaled_exp

_DEPTH = 64
# The precision of exp(-epsilon) and of the logarithm, for the negative binomial.
_BITS, _DIGITS = 192, 60
# The pure epsilon of repeats is rounded up to a multiple of this, so that the sum of many charges has a
# denominator that does not grow.
_GRID = 10**20
# The same for delta, which is much smaller. Ledgers charge multiples of this exactly.
_DELTA_GRID = 10**50
_DELTA_DIGITS = 120
# A larger stop is taken as this one, for delta only: fewer runs have a smaller delta.
_LARGEST_STOP = 1 - Fraction(1, 10**20)
_LEAST_SHAPE, _LARGEST_SHAPE = Fraction(1, 10**6), 1000
# The largest mean number of runs; more would take too long.
_MOST_RUNS = 10**12
_MARGIN = 1 + 1e-12


@dataclass(frozen=True, init=False, repr=False)
class Repeats(ABC):
    """The distribution of a random number of runs, with exact public parameters.

    `NegativeBinomial` and `Poisson` implement it; `geometric` and `logarithmic` are special cases.

    Raises:
        InvalidType, InvalidValue: an argument is not a number, or is out of range; or the delta of all runs reaches 1.

    >>> isinstance(geometric(mean=10), Repeats)
    True
    """

    kind: ClassVar[str]  # in names

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Fraction]:
        """The public parameters, in the order of the constructor."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """The mean number of runs, rounded up."""

    @property
    @abstractmethod
    def event_shape(self) -> float:
        """The shape parameter for dp_accounting's RepeatAndSelectDpEvent."""

    def epsilon(self, each: Number) -> Fraction:
        """Return the exact pure epsilon of keeping the best result.

        Args:
            each: the epsilon of each run.
        """
        exact = _validate.exact_positive(epsilon=each)
        more, most = self._more(exact)
        return exact + min(Fraction(math.ceil(more * _GRID), _GRID), most)

    def delta(self, each: Number) -> Fraction:
        """Return the delta of keeping the best result, rounded up to 50 decimals.

        It is 1 - f(1 - delta), the probability that some run is one of the exceptions that delta allows.

        Args:
            each: the delta of each run.

        >>> float(geometric(mean=10).delta("1e-9")), float(Poisson(10).delta("1e-9"))
        (9.99999991e-09, 9.99999995e-09)
        """
        exact = _validate.below_one(delta=each)
        rounded = Fraction(math.ceil(self._failure(exact) * _DELTA_GRID), _DELTA_GRID) if exact else exact
        if rounded >= 1:
            raise InvalidValue(
                "delta is too large: nearly always, a run is one of the exceptions that it allows. Give runs with a"
                " smaller delta, or fewer runs"
            )
        return rounded

    @abstractmethod
    def draw(self, draws: Draws) -> int:
        """Draw a number of runs from exactly this distribution. It must stay secret.

        Args:
            draws: the source of randomness.
        """

    @abstractmethod
    def _more(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Upper bounds on what all runs cost beyond one: a good one that is rounded up next, and a simple one."""

    @abstractmethod
    def _failure(self, delta: Fraction) -> Fraction:
        """An upper bound on the delta of all runs, for a positive delta of each."""

    def __repr__(self) -> str:
        parameters = (f"{name}={shortest_text(number)}" for name, number in self.parameters.items())
        return f"{type(self).__name__}({', '.join(parameters)})"


@dataclass(frozen=True, init=False, repr=False)
class NegativeBinomial(Repeats):
    """At least one run; costs less than (2 + shape) epsilon. A smaller shape costs less, but the number varies more.

    `geometric` (shape 1) and `logarithmic` (shape 0) are special cases. The exact cost is
    epsilon + (1 + shape) ln((E + stop)/(1 + stop E)), E = e^epsilon, rounded up.

    Args:
        shape: zero or a positive number.
        stop: the probability of stopping, strictly between 0 and 1. A smaller one gives more runs.

    >>> round(float(NegativeBinomial(shape="1/2", stop="0.01").epsilon("0.1")), 4)
    0.247
    """

    kind: ClassVar[str] = "negative-binomial"
    shape: Fraction
    stop: Fraction

    def __init__(self, shape: Number, stop: Number) -> None:
        vars(self).update(shape=_validate.exact(shape=shape), stop=_validate.exact_positive(stop=stop))
        if self.shape < 0 or 0 < self.shape < _LEAST_SHAPE:
            raise InvalidValue("shape must be zero or at least 0.000001: zero is the logarithmic distribution")
        if self.shape > _LARGEST_SHAPE:
            raise InvalidValue(f"shape must be at most {_LARGEST_SHAPE:,}: use Poisson, which is cheaper then")
        if self.stop < Fraction(1, _MOST_RUNS):
            raise InvalidValue(f"stop must be at least 1/{_MOST_RUNS}: a smaller value takes too many runs")
        if self.stop >= 1:
            raise InvalidValue("stop must be below 1: with 1 there is always exactly one run")

    @property
    def parameters(self) -> dict[str, Fraction]:
        return {"shape": self.shape, "stop": self.stop}

    @property
    def mean(self) -> float:
        """Shape (1/stop - 1) / (1 - stop**shape), for shape zero its limit, rounded up."""
        # The computed numerator and denominator are within a few units of the last place: expm1 and log do not cancel.
        stop, shape = float_near(self.stop), float_near(self.shape)
        others = float_near(1 / self.stop - 1)
        rate = -math.log(stop) if stop < 0.5 else -math.log1p(-float_near(1 - self.stop))
        return others / (-math.expm1(-shape * rate) / shape if shape else rate) * _MARGIN

    @property
    def event_shape(self) -> float:
        return float_near(self.shape)

    def _more(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        # With a lower bound q of exp(-epsilon), (1 + stop q)/(stop + q) bounds the ratio in the logarithm.
        odds = Fraction(scaled_exp(epsilon, _BITS), 1 << _BITS)
        _, logarithm = log_bracket((1 + self.stop * odds) / (self.stop + odds), _DIGITS)
        return (1 + self.shape) * logarithm, (1 + self.shape) * epsilon

    def _failure(self, delta: Fraction) -> Fraction:
        # With shape h, stop g and g' = g + delta (1 - g) it is (1 - (g/g')**h) / (1 - g**h).
        #
        # For h = 1 that is delta/g', and for h = 0 ln(g'/g) / ln(1/g). The powers are exponentials of logarithms. The
        # numerator is bounded from above and the denominator from below, each with an error below 10**-110: logarithms
        # have an error below 10**-117, h is at most 1000, and exponentials have a relative error below 10**-118. The
        # denominator is at least 10**-27, because g is at most 1 - 10**-20 and h at least 10**-6. So the bound is
        # within 10**-55 before it is rounded up. A g beyond that is taken as 1 - 10**-20: P(K = k) has the factor
        # (1 - g)**k, so the runs become fewer as g grows.
        stop = min(self.stop, _LARGEST_STOP)
        after = stop + delta * (1 - stop)
        if self.shape == 1:
            return delta / after
        _, drop = log_bracket(after / stop, _DELTA_DIGITS)
        rate, _ = log_bracket(1 / stop, _DELTA_DIGITS)
        if not self.shape:
            return drop / rate
        numerator = 1 - exp_bracket(self.shape * drop, _DELTA_DIGITS)[0]
        return numerator / (1 - exp_bracket(self.shape * rate, _DELTA_DIGITS)[1])

    def draw(self, draws: Draws) -> int:
        """See `Repeats.draw`."""
        return truncated_negative_binomial(self.shape, self.stop, draws)


@dataclass(frozen=True, init=False, repr=False)
class Poisson(Repeats):
    """A number of runs near its mean, and possibly zero; costs epsilon + mean tanh(epsilon/2).

    For small epsilons that is about (1 + mean/2) epsilon. As (epsilon, delta) it is often much less.

    Args:
        mean: the mean number of runs, at least 1.

    >>> Poisson(4).epsilon("0.001") <= Fraction(3, 1000)
    True
    """

    kind: ClassVar[str] = "poisson"
    runs: Fraction

    def __init__(self, mean: Number) -> None:
        vars(self).update(runs=_validate.exact_positive(mean=mean))
        if self.runs < 1:
            raise InvalidValue("mean must be >= 1: with fewer runs there is often no result at all")
        if self.runs > _MOST_RUNS:
            raise InvalidValue(f"mean must be at most {_MOST_RUNS}: more runs take too long")

    @property
    def parameters(self) -> dict[str, Fraction]:
        return {"mean": self.runs}

    @property
    def mean(self) -> float:
        return float_near(self.runs) * _MARGIN

    @property
    def event_shape(self) -> float:
        """Infinity, which stands for Poisson."""
        return math.inf

    def _more(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        # With a lower bound e of exp(-epsilon), (1 - e)/(1 + e) bounds the tanh, and so does epsilon/2.
        odds = Fraction(scaled_exp(epsilon, _DEPTH), 1 << _DEPTH)
        return self.runs * (1 - odds) / (1 + odds), self.runs * epsilon / 2

    def _failure(self, delta: Fraction) -> Fraction:
        # 1 - e^(-mean delta). The exponential is rounded down to a multiple of 2**-192, finer than 10**-57.
        return 1 - Fraction(scaled_exp(self.runs * delta, _BITS), 1 << _BITS)

    def draw(self, draws: Draws) -> int:
        """See `Repeats.draw`."""
        return poisson(self.runs, draws)


def geometric(mean: Number) -> NegativeBinomial:
    """At least one run; stops after each run with probability 1/mean; costs less than three epsilon.

    Three epsilon is the bound of Liu & Talwar (2019) for every mean. The exact cost is
    epsilon + 2 ln((E + 1/mean)/(1 + E/mean)), E = e^epsilon, rounded up.

    Args:
        mean: the mean number of runs, above 1.

    Raises:
        InvalidType, InvalidValue: `mean` is not a number above 1.

    >>> round(float(geometric(mean=10).epsilon("0.1")), 4), round(float(geometric(mean=10).epsilon(5)), 4)
    (0.2636, 9.4761)
    """
    exact = _validate.exact_positive(mean=mean)
    if exact <= 1:
        raise InvalidValue("mean must be > 1: a single run leaves nothing to choose from")
    return NegativeBinomial(1, 1 / exact)


def logarithmic(stop: Number) -> NegativeBinomial:
    """At least one run; k runs with probability proportional to (1 - stop)**k / k; costs less than two epsilon.

    Args:
        stop: the parameter of the distribution, between 0 and 1. A smaller one gives more runs.

    >>> round(float(logarithmic("0.1").epsilon(1)), 4), round(logarithmic("0.01").mean)
    (1.7957, 21)
    """
    return NegativeBinomial(0, stop)


def checked_repeats(repeats: object) -> Repeats:
    """The distribution, checked to be one of ours. Subclasses are refused: they might state a different epsilon."""
    if isinstance(repeats, Repeats) and type(repeats) in _KINDS.values():
        return repeats
    kinds = "geometric(mean), logarithmic(stop), NegativeBinomial(shape, stop) or Poisson(mean)"
    got = type(repeats).__name__
    raise InvalidType(f"repeats must be {kinds}, got {got}: a fixed number of runs is not private")


PREFIX = "repeat-and-select"
_KINDS: dict[str, type[NegativeBinomial | Poisson]] = {kind.kind: kind for kind in (NegativeBinomial, Poisson)}
_FORM = re.compile(rf"{PREFIX} (\S+)((?: \S+=\S+)+)")


@dataclass(frozen=True, init=False)
class Repeated:
    """The best of a random number of private runs.

    Args:
        repeats: the distribution of the number of runs.
        each: the epsilon of each run.
        each_delta: the delta of each run; 0 for runs with a pure epsilon.

    Raises:
        InvalidType: an argument has the wrong type.
        InvalidValue: `each` is not positive, or the delta is too large.

    >>> round(float(Repeated(geometric(mean=10), "0.1").epsilon), 4)
    0.2636
    >>> print(Repeated(geometric(mean=10), "0.1", "1e-9").guarantee)
    (0.263592, 1e-8)-DP, 0.0345405-zCDP with the same delta
    """

    repeats: Repeats
    each: Fraction
    each_delta: Fraction

    def __init__(self, repeats: Repeats, each: Number, each_delta: Number = 0) -> None:
        runs, epsilon = checked_repeats(repeats), _validate.exact_positive(epsilon=each)
        vars(self).update(repeats=runs, each=epsilon, each_delta=_validate.below_one(delta=each_delta))
        self.repeats.delta(self.each_delta)  # refused if nothing is left to guarantee

    @property
    def epsilon(self) -> Fraction:
        """The total epsilon, which is pure if that of the runs is."""
        return self.repeats.epsilon(self.each)

    @property
    def delta(self) -> Fraction:
        """The total delta; 0 if the runs have a pure epsilon."""
        return self.repeats.delta(self.each_delta)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the whole procedure. Only the epsilon and the delta of the runs are used."""
        return Guarantee(self.epsilon, PURE_LOSS.zcdp(self.epsilon), self.delta)

    def terms(self) -> dict[str, Any]:
        """Return the public parameters that are not in the name: the delta of each run, if there is one.

        >>> Repeated(Poisson(10), "0.1", "1e-9").terms()
        {'delta_of_each_run': '1e-9'}
        """
        return {"delta_of_each_run": exact_text(self.each_delta)} if self.each_delta else {}

    @property
    def name(self) -> str:
        """The name in the ledger. It has no delta: an entry states that of all runs beside it."""
        numbers = {**self.repeats.parameters, "epsilon": self.each}
        return " ".join([PREFIX, self.repeats.kind, *(f"{name}={number}" for name, number in numbers.items())])


@lru_cache(maxsize=256)
def repeated(name: str) -> Repeated | None:
    """The release that a name stands for; None if it is not the name of such a release."""
    match = _FORM.fullmatch(name)
    if match is None or match[1] not in _KINDS:
        return None
    try:
        numbers = {key: rational_from_text(text) for key, text in (part.split("=", 1) for part in match[2].split())}
        each = numbers.pop("epsilon")
        found = Repeated(_KINDS[match[1]](**numbers), each)
    except (NotExact, NotFinite, DPSelectError, KeyError, TypeError):
        return None
    return found if found.name == name else None
