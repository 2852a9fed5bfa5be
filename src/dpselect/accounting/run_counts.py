"""Papernot & Steinke (2022): how often a private mechanism is run when the best of its results is to be private too.

Run an epsilon-DP mechanism K times, K random and secret, and keep the best result. Let f be the probability generating
function of K. A result of probability p, below which the results have probability s, is the one that is kept with
probability f(s + p) - f(s), which is p times a mean of f' between s and s + p. Between neighbours p changes by a factor
of at most e^epsilon; what f' does depends on the distribution of K:

  negative binomial   f'(t) ~ (1 - (1 - g) t)**-(1 + h) changes by at most e^((1 + h) epsilon): (2 + h) epsilon in all;
  Poisson             f'(t) ~ e^(mean t), and t changes by at most tanh(epsilon/2), the largest distance between the
                      distributions of an epsilon-DP mechanism: epsilon + mean tanh(epsilon/2) in all.

A fixed number of runs has no such bound: K runs cost K epsilon.

The name that a ledger gives to the best of a random number of private runs.

It holds all that an accountant asks for: the distribution of the number of runs and the epsilon of each. A name has one
form, so equal releases have equal names, and it never changes its meaning.
"""

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpselect import _validate
from dpselect._numbers import NotExact, NotFinite, float_near, rational_from_text, shortest_text
from dpselect._types import Number
from dpselect.errors import DPSelectError, InvalidType, InvalidValue
from dpselect.mechanisms.privacy import Guarantee, pure_zcdp
from dpselect.sampling.draws import Draws
from dpselect.sampling.enclosure import scaled_exp
from dpselect.sampling.run_counts import poisson, truncated_negative_binomial

_DEPTH = 64
# The pure epsilon of Poisson repeats is rounded up to this, so that the sum of many such charges has a denominator
# that does not grow.
_GRID = 10**20
_LEAST_SHAPE, _LARGEST_SHAPE = Fraction(1, 10**6), 1000
# On average: nobody waits for the end of more runs.
_MOST_RUNS = 10**12
_MARGIN = 1 + 1e-12


class Repeats(ABC):
    """The distribution of a random number of runs: public parameters, kept exactly."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """Return the mean number of runs, rounded up."""

    @property
    @abstractmethod
    def event_shape(self) -> float:
        """Return the shape that dp_accounting's RepeatAndSelectDpEvent is given."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Fraction]:
        """Return the public parameters, in the order of the constructor."""

    @abstractmethod
    def epsilon(self, each: Number) -> Fraction:
        """Return the pure epsilon of keeping the best result, when each run has epsilon `each`."""

    @abstractmethod
    def draw(self, draws: Draws) -> int:
        """Draw a number of runs, exactly."""


@dataclass(frozen=True, init=False)
class NegativeBinomial(Repeats):
    """At least one run; (2 + shape) epsilon. A smaller shape costs less, and has more often very few or very many runs.

    `stop` is the probability of stopping, strictly between 0 and 1. `geometric` and `logarithmic` are special cases.

    >>> NegativeBinomial(shape="1/2", stop="0.01").epsilon("0.1")
    Fraction(1, 4)
    """

    shape: Fraction
    stop: Fraction

    def __init__(self, shape: Number, stop: Number) -> None:
        object.__setattr__(self, "shape", _validate.exact(shape=shape))
        object.__setattr__(self, "stop", _validate.exact_positive(stop=stop))
        if self.shape < 0 or 0 < self.shape < _LEAST_SHAPE:
            raise InvalidValue("shape must be zero or at least 0.000001: zero is the logarithmic distribution")
        if self.shape > _LARGEST_SHAPE:
            raise InvalidValue(f"shape must be at most {_LARGEST_SHAPE:,}: use Poisson, which is cheaper by then")
        if self.stop < Fraction(1, _MOST_RUNS):
            raise InvalidValue(f"stop must be at least 1/{_MOST_RUNS}: with less the runs never end")
        if self.stop >= 1:
            raise InvalidValue("stop must be below 1: with 1 there is always one run, and nothing to choose from")

    @property
    def mean(self) -> float:
        """Return shape (1/stop - 1) / (1 - stop**shape), for shape zero its limit, rounded up.

        The computed numerator and denominator are within a few units of the last place: expm1 and log do not cancel.
        """
        stop, shape = float_near(self.stop), float_near(self.shape)
        others = float_near(1 / self.stop - 1)
        rate = -math.log(stop) if stop < 0.5 else -math.log1p(-float_near(1 - self.stop))
        return others / (-math.expm1(-shape * rate) / shape if shape else rate) * _MARGIN

    @property
    def event_shape(self) -> float:
        """Return the shape as a float."""
        return float_near(self.shape)

    @property
    def parameters(self) -> dict[str, Fraction]:
        """Return shape and stop."""
        return {"shape": self.shape, "stop": self.stop}

    def epsilon(self, each: Number) -> Fraction:
        """Return (2 + shape) times the epsilon of each run."""
        return (2 + self.shape) * _validate.exact_positive(epsilon=each)

    def draw(self, draws: Draws) -> int:
        """Draw a number of runs, at least one."""
        return truncated_negative_binomial(self.shape, self.stop, draws)

    def __repr__(self) -> str:
        return f"NegativeBinomial(shape={shortest_text(self.shape)}, stop={shortest_text(self.stop)})"


@dataclass(frozen=True, init=False)
class Poisson(Repeats):
    """A number of runs near its mean, which may be zero; epsilon + mean tanh(epsilon/2).

    For small epsilons that is (1 + mean/2) epsilon. Over (epsilon, delta) it is often much less.

    >>> Poisson(4).epsilon("0.001") <= Fraction(3, 1000)
    True
    """

    runs: Fraction

    def __init__(self, mean: Number) -> None:
        object.__setattr__(self, "runs", _validate.exact_positive(mean=mean))
        if self.runs < 1:
            raise InvalidValue("mean must be >= 1: with fewer runs there is mostly no result at all")
        if self.runs > _MOST_RUNS:
            raise InvalidValue(f"mean must be at most {_MOST_RUNS}: with more the runs never end")

    @property
    def mean(self) -> float:
        """Return the mean number of runs, rounded up."""
        return float_near(self.runs) * _MARGIN

    @property
    def event_shape(self) -> float:
        """Return infinity, which stands for Poisson."""
        return math.inf

    @property
    def parameters(self) -> dict[str, Fraction]:
        """Return the mean."""
        return {"mean": self.runs}

    def epsilon(self, each: Number) -> Fraction:
        """Return epsilon + mean tanh(epsilon/2), with a rational upper bound of the tanh.

        With a lower bound e of exp(-epsilon) of 64 bits, (1 - e)/(1 + e) is one, and epsilon/2 is another. The first
        product is rounded up to 20 decimals.
        """
        exact = _validate.exact_positive(epsilon=each)
        odds = Fraction(scaled_exp(exact, _DEPTH), 1 << _DEPTH)
        product = self.runs * (1 - odds) / (1 + odds)
        return exact + min(Fraction(math.ceil(product * _GRID), _GRID), self.runs * exact / 2)

    def draw(self, draws: Draws) -> int:
        """Draw a number of runs."""
        return poisson(self.runs, draws)

    def __repr__(self) -> str:
        return f"Poisson(mean={shortest_text(self.runs)})"


def geometric(mean: Number) -> NegativeBinomial:
    """At least one run, and after each one stop with probability 1/mean: three epsilon (Liu & Talwar 2019).

    >>> geometric(mean=10).epsilon("0.1")
    Fraction(3, 10)
    """
    exact = _validate.exact_positive(mean=mean)
    if exact <= 1:
        raise InvalidValue("mean must be > 1: with one run there is nothing to choose from")
    return NegativeBinomial(1, 1 / exact)


def logarithmic(stop: Number) -> NegativeBinomial:
    """At least one run, k runs with probability proportional to (1 - stop)**k / k: two epsilon.

    >>> logarithmic("0.01").epsilon("0.1"), round(logarithmic("0.01").mean)
    (Fraction(1, 5), 21)
    """
    return NegativeBinomial(0, stop)


def checked_repeats(repeats: object) -> Repeats:
    """The distribution, if it is one of ours."""
    # No subclass, which might state another epsilon.
    if isinstance(repeats, (NegativeBinomial, Poisson)) and type(repeats) in (NegativeBinomial, Poisson):
        return repeats
    kinds = "geometric(mean), logarithmic(stop), NegativeBinomial(shape, stop) or Poisson(mean)"
    got = type(repeats).__name__
    raise InvalidType(f"repeats must be {kinds}, got {got}: a fixed number of runs is not private")


PREFIX = "repeat-and-select"
_KINDS: dict[str, type[NegativeBinomial | Poisson]] = {"negative-binomial": NegativeBinomial, "poisson": Poisson}
_FORM = re.compile(rf"{PREFIX} (\S+)((?: \S+=\S+)+)")


@dataclass(frozen=True, init=False)
class Repeated:
    """Runs of epsilon `each`, as many as `repeats` says, of which the best is kept."""

    repeats: Repeats
    each: Fraction

    def __init__(self, repeats: Repeats, each: Number) -> None:
        object.__setattr__(self, "repeats", checked_repeats(repeats))
        object.__setattr__(self, "each", _validate.exact_positive(epsilon=each))

    @property
    def epsilon(self) -> Fraction:
        """Return the pure epsilon of all of it."""
        return self.repeats.epsilon(self.each)

    @property
    def guarantee(self) -> Guarantee:
        """Return what all of it guarantees: of the runs only their pure epsilon is known."""
        return Guarantee(self.epsilon, pure_zcdp(self.epsilon))

    def terms(self) -> dict[str, Any]:
        """Return nothing: the name says it all."""
        return {}

    @property
    def name(self) -> str:
        """Return the name in the ledger.

        >>> Repeated(Poisson(10), "0.1").name
        'repeat-and-select poisson mean=10 epsilon=1/10'
        """
        [kind] = (name for name, kind in _KINDS.items() if type(self.repeats) is kind)
        numbers = {**self.repeats.parameters, "epsilon": self.each}
        return " ".join([PREFIX, kind, *(f"{name}={number}" for name, number in numbers.items())])


@lru_cache(maxsize=256)
def repeated(name: str) -> Repeated | None:
    """What a name stands for; None if it is not the name of such a release.

    >>> repeated("repeat-and-select poisson mean=10 epsilon=1/10")
    Repeated(repeats=Poisson(mean=10), each=Fraction(1, 10))
    """
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
