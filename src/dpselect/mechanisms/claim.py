"""Dong, Durfee & Rogers (2019), "Optimal Differential Privacy Composition for Exponential Mechanisms": the score range.

The range is the largest change of any difference of two scores between neighbours. A selection depends on differences
only, so the range is all that its privacy needs, and the rate c = epsilon / range is made here and nowhere else:

* no score moves by more than the sensitivity: differences move by at most twice the sensitivity;
* and all scores move in one direction (monotonic): differences move by at most the sensitivity.

In the other direction, scores of a range can be shifted alike so that none moves by more than half of it. So the three
ways to state how far neighbours are apart name the same neighbours, up to a shift of all scores that no selection sees.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect import _validate
from dpselect._exact import shortest_text
from dpselect.errors import InvalidValue


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
            return f"score range {self.score_range}"
        return f"sensitivity {self.sensitivity}{', monotonic' if self.monotonic else ''}"


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
