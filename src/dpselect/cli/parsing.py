"""Numbers of the command line, each at its exact value, with one-line errors that name the option."""

from fractions import Fraction

import numpy as np

from dpselect import _validate
from dpselect.errors import InvalidValue
from dpselect.mechanisms.claim import Claim, stated

# What is computed is computed in floats: far beyond every use, and far from where a square of a float overflows.
_LARGEST = Fraction(10**50)


def positive(**option: str) -> Fraction:
    """A positive number that floats can be computed with."""
    [(name, text)] = option.items()
    number = _validate.exact_positive(**option)
    if not 1 / _LARGEST <= number <= _LARGEST:
        raise InvalidValue(f"{name} must be between 1e-50 and 1e50, got {text[:40]!r}: give it in another unit")
    return number


def claimed(sensitivity: str | None, monotonic: bool, score_range: str | None) -> Claim:
    """How far neighbours are apart, in numbers that floats can be computed with."""
    claim = stated(sensitivity, monotonic, score_range)
    for name, text in (("sensitivity", sensitivity), ("score_range", score_range)):
        if text is not None:
            positive(**{name: text})
    return claim


def whole(*, least: int, most: int, **option: str) -> int:
    """A whole number from least to most; 1e6 is one too."""
    [(name, text)] = option.items()
    number = _validate.exact_positive(**option)
    if number.denominator != 1 or not least <= number <= most:
        raise InvalidValue(f"{name} must be a whole number from {least:,} to {most:,}, got {text[:40]!r}")
    return int(number)


def epsilons(text: str, points: str | None) -> list[Fraction]:
    """The epsilons of a range A:B, of a list A,B,C or of a single number.

    >>> [float(epsilon) for epsilon in epsilons("0.01:1", "3")]
    [0.01, 0.1, 1.0]
    """
    if ":" in text:
        return _range(text, whole(least=2, most=10_000, points="25" if points is None else points))
    if points is not None:
        raise InvalidValue("--points belongs to a range of epsilons: give --epsilon as A:B, for instance 0.01:1")
    return [positive(epsilon=part.strip()) for part in text.split(",")]


def _range(text: str, points: int) -> list[Fraction]:
    ends = [positive(epsilon=part.strip()) for part in text.split(":")]
    if len(ends) != 2 or ends[0] >= ends[1]:
        raise InvalidValue("epsilon must be a range A:B from a smaller to a larger number: give for instance 0.01:1")
    between = np.geomspace(float(ends[0]), float(ends[1]), points)[1:-1]
    return [ends[0], *map(Fraction, between.tolist()), ends[1]]
