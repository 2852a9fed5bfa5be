"""The fields of a request from the page: exact numbers, and errors that name the field."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect import _validate
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms import MECHANISMS, MechanismBase, PermuteAndFlip
from dpselect.mechanisms.parameters import Claim, stated

SMALLEST, LARGEST = Fraction(1, 10_000), Fraction(100)  # the ends of the page's slider
_FARTHEST = Fraction(10**50)  # far below numbers whose square overflows


@dataclass(frozen=True)
class Settings:
    """The public parameters of a selection."""

    epsilon: Fraction
    claim: Claim
    mechanism: str  # its name

    @property
    def rate(self) -> Fraction:
        """Return the factor c of exp(-c (q* - q))."""
        return self.claim.rate(self.epsilon)

    def mechanism_for(self, name: str | None = None, epsilon: Fraction | None = None) -> MechanismBase:
        """Return the mechanism, or another one at these settings."""
        kind = MECHANISMS[self.mechanism if name is None else name]
        return kind(self.epsilon if epsilon is None else epsilon, **self.claim.arguments())


def settings_of(asked: Mapping[str, Any]) -> Settings:
    """The settings that a request states.

    >>> settings_of({"epsilon": "0.1", "mechanism": "exponential"}).rate
    Fraction(1, 20)
    """
    epsilon = positive(asked, "epsilon", "1")
    if not SMALLEST <= epsilon <= LARGEST:
        raise InvalidValue("epsilon must be between 0.0001 and 100 here")
    mechanism = text(asked, "mechanism", PermuteAndFlip.name)
    if mechanism not in MECHANISMS:
        raise InvalidValue(f"mechanism must be one of {', '.join(MECHANISMS)}")
    claim = stated(positive(asked, "sensitivity", "1"), asked.get("monotonic", False))
    return Settings(epsilon, claim, mechanism)


def positive(asked: Mapping[str, Any], name: str, default: str | None = None) -> Fraction:
    """A positive number of moderate size, written as text."""
    written = text(asked, name, default)
    try:
        number = _validate.exact_positive(**{name: written})
    except InvalidValue:
        raise InvalidValue(f"{name} must be a number above 0, written like 0.5 or 2") from None
    if not 1 / _FARTHEST <= number <= _FARTHEST:
        raise InvalidValue(f"{name} must be between 1e-50 and 1e50: give it in another unit")
    return number


def whole(asked: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """A whole number, written as text."""
    number = _validate.exact_positive(**{name: text(asked, name)})
    if number.denominator != 1 or not least <= number <= most:
        raise InvalidValue(f"{name} must be a whole number from {least:,} to {most:,}")
    return int(number)


def text(asked: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """A short string."""
    value = asked.get(name, default)
    if not isinstance(value, str):
        raise InvalidType(f"{name} must be a text")
    if len(value) > 1000:
        raise InvalidValue(f"{name} must be at most 1,000 characters")
    return value.strip()
