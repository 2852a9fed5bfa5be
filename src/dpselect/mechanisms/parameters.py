"""The public parameters of a mechanism: epsilon, and how far the scores of neighbours are apart.

The score range (Dong, Durfee & Rogers 2019) is the largest change of any difference of two scores between neighbours.
A selection depends on differences only, so the range is all that its privacy needs, and the rate c = epsilon / range is
made here and nowhere else:

* no score moves by more than the sensitivity: differences move by at most twice the sensitivity;
* and all scores move in one direction (monotonic): differences move by at most the sensitivity.

In the other direction, scores of a range can be shifted alike so that none moves by more than half of it. So the three
ways to state how far neighbours are apart name the same neighbours, up to a shift of all scores that no selection sees.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from dpselect import _validate
from dpselect._numbers import exact_text, shortest_text
from dpselect._types import Number
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.gaps import Rate
from dpselect.mechanisms.privacy import Guarantee


@dataclass(frozen=True)
class Claim:
    """By how much one person can change the scores, as it was stated: by a sensitivity or by a score range. Public.

    >>> print(stated("1/3", monotonic=True)), print(stated(score_range=3))
    sensitivity 1/3, monotonic
    score range 3
    (None, None)
    """

    sensitivity: Fraction  # half of a score range: what scores of that range move by, up to a shift
    monotonic: bool
    by_range: bool

    @property
    def score_range(self) -> Fraction:
        """Return the largest change of any difference of two scores."""
        return self.sensitivity if self.monotonic else 2 * self.sensitivity

    def rate(self, epsilon: Fraction) -> Fraction:
        """Return the factor c of exp(-c (q* - q)) that spends epsilon."""
        return epsilon / self.score_range

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments that state it."""
        if self.by_range:
            return {"score_range": self.score_range}
        return {"sensitivity": self.sensitivity, "monotonic": self.monotonic}

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold: exact numbers as texts."""
        return {name: value if isinstance(value, bool) else str(value) for name, value in self.arguments().items()}

    def code(self) -> str:
        """Return the arguments as Python reads them."""
        shown = {name: v if isinstance(v, bool) else shortest_text(v) for name, v in self.arguments().items()}
        return ", ".join(f"{name}={value}" for name, value in shown.items())

    def __str__(self) -> str:
        if self.by_range:
            return f"score range {exact_text(self.score_range)}"
        return f"sensitivity {exact_text(self.sensitivity)}{', monotonic' if self.monotonic else ''}"


def stated(sensitivity: Any = None, monotonic: Any = False, score_range: Any = None) -> Claim:
    """The claim that these arguments state; a sensitivity of one if they state nothing."""
    one_way = _validate.boolean(monotonic=monotonic)
    if score_range is None:
        unit = Fraction(1) if sensitivity is None else _validate.exact_positive(sensitivity=sensitivity)
        return Claim(unit, one_way, by_range=False)
    if sensitivity is not None or one_way:
        raise InvalidValue(
            "give either score_range, or sensitivity and monotonic: a range of 2 sensitivity, or of one sensitivity for"
            " monotonic scores, says the same"
        )
    return Claim(_validate.exact_positive(score_range=score_range) / 2, monotonic=False, by_range=True)


def claim_of(mechanism: Any) -> Claim:
    """The claim of a mechanism, ours or any other with a `sensitivity` and `monotonic`, or with a `score_range`."""
    claim = getattr(mechanism, "claim", None)
    if isinstance(claim, Claim):
        return claim
    if getattr(mechanism, "sensitivity", None) is None and hasattr(mechanism, "score_range"):
        return stated(score_range=mechanism.score_range)
    return stated(mechanism.sensitivity, mechanism.monotonic)


# The mechanisms by their names, in the order in which they are shown.
MECHANISMS: dict[str, type["Parameters"]] = {}


@dataclass(frozen=True, init=False, repr=False)
class Parameters(ABC):
    """Public parameters, kept exactly. All of its fields may be shown to anybody.

    Two records are equal if they state the same. A score range of two draws as a sensitivity of one does, and is
    another statement about the data.

    A mechanism has a `name`, by which ledgers know it for years: it never changes its meaning.
    """

    name: ClassVar[str]

    epsilon: Fraction
    claim: Claim

    def __init_subclass__(cls) -> None:
        """Know the mechanism by its name."""
        super().__init_subclass__()
        if "name" in vars(cls):
            MECHANISMS[cls.name] = cls

    def __init__(
        self,
        epsilon: Number,
        sensitivity: Number | None = None,
        monotonic: bool = False,
        *,
        score_range: Number | None = None,
    ) -> None:
        """State epsilon, and how far neighbours are apart.

        Give either `score_range`, or `sensitivity` (1 if not given) and `monotonic`.
        """
        object.__setattr__(self, "epsilon", _validate.exact_positive(epsilon=epsilon))
        object.__setattr__(self, "claim", stated(sensitivity, monotonic, score_range))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={shortest_text(self.epsilon)}, {self.claim.code()})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the public parameters only, not the tables that follow from them."""
        return _made, (type(self), self.epsilon, self.claim.arguments())

    @property
    def sensitivity(self) -> Fraction:
        """Return how much one person can change any single score; half of the score range if that was stated."""
        return self.claim.sensitivity

    @property
    def monotonic(self) -> bool:
        """Return whether one person moves all scores in the same direction."""
        return self.claim.monotonic

    @property
    def score_range(self) -> Fraction:
        """Return how much one person can change any difference of two scores."""
        return self.claim.score_range

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Return what one selection guarantees."""

    def terms(self) -> dict[str, Any]:
        """Return what an entry of a ledger states beside name and epsilon: how far neighbours are apart."""
        name_of(self)  # no subclass, which may draw otherwise
        return self.claim.to_dict()

    @cached_property
    def _rate(self) -> Rate:
        return Rate(self.claim.rate(self.epsilon))

    @property
    def rate(self) -> Fraction:
        """Return the factor c of exp(-c (q* - q)): epsilon / score_range."""
        return self._rate.exact


def name_of(mechanism: Parameters) -> str:
    """The name of the mechanism that this very record draws from; a subclass may draw otherwise."""
    name = getattr(mechanism, "name", "")
    if MECHANISMS.get(name) is not type(mechanism):
        raise InvalidType("mechanism must be a PermuteAndFlip, ExponentialMechanism or ReportNoisyMax")
    return name


def _made(kind: type[Parameters], epsilon: Fraction, arguments: dict[str, Any]) -> Parameters:
    return kind(epsilon, **arguments)
