"""The levels of several quantiles, as users write them: numbers, or a name such as "deciles"."""

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect import _validate
from dpselect._numbers import exact_text
from dpselect.errors import InvalidType, InvalidValue

NAMED = {
    name: tuple(Fraction(i, parts) for i in range(1, parts))
    for name, parts in (("quartiles", 4), ("deciles", 10), ("percentiles", 100))
}
_MOST_LEVELS = 999
_FINEST = 10**6
_SHOWN_LEVELS = 9
_LEVEL = r"[0-9.]+ %|[0-9]+/[0-9]+"
_LISTED = re.compile(rf"((?:{_LEVEL})(?:, (?:{_LEVEL}))*) quantiles? over ")


def read_levels(levels: Any) -> tuple[Fraction, ...]:
    """The exact levels of several quantiles, in the order in which they were given.

    >>> read_levels("quartiles") == read_levels(["0.25", 0.5, "3/4"])
    True
    """
    if isinstance(levels, str) and levels in NAMED:
        return NAMED[levels]
    *others, last = (repr(name) for name in NAMED)
    forms = f"levels must be a list of numbers such as [0.1, 0.5, 0.9], or {', '.join(others)} or {last}, got"
    if isinstance(levels, str):
        raise InvalidValue(f"{forms} {levels[:40]!r}")
    listed = _elements(levels)
    if isinstance(listed, (bytes, bytearray)) or not isinstance(listed, Sequence):
        raise InvalidType(f"{forms} {type(levels).__name__}: for one level use quantile")
    return _checked(tuple(_validate.level(level) for level in listed[: _MOST_LEVELS + 1]))


def _elements(levels: Any) -> Any:
    # Elements keep their type: 0.9 of 32 bits is nine tenths.
    if not hasattr(levels, "__array__"):
        return levels
    array = np.asarray(levels)
    return list(array) if array.ndim == 1 else None


def _checked(levels: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    if not levels:
        raise InvalidValue("levels must have at least one level: give for example [0.1, 0.5, 0.9]")
    if len(levels) > _MOST_LEVELS:
        raise InvalidValue(f"levels must be at most {_MOST_LEVELS}: give fewer")
    if len(set(levels)) < len(levels):
        twice = next(level for i, level in enumerate(levels) if level in levels[:i])
        raise InvalidValue(f"levels must be different, but {exact_text(twice)} occurs twice: drop the duplicates")
    if math.lcm(*(level.denominator for level in levels)) > _FINEST:
        raise InvalidValue(
            f"levels must be multiples of 1/n for one n <= {_FINEST:,}: give fewer digits, or a smaller denominator"
        )
    return levels


def percent(level: Fraction) -> str:
    """The level in percent, or as a fraction if that has no short decimal.

    >>> percent(Fraction(1, 4)), percent(Fraction(1, 3))
    ('25 %', '1/3')
    """
    text = exact_text(100 * level)
    return f"{text} %" if "/" not in text else exact_text(level)


def levels_name(levels: tuple[Fraction, ...]) -> str | None:
    """The name of all levels together, if they have one."""
    return next((name for name, own in NAMED.items() if own == levels), None)


def levels_text(levels: tuple[Fraction, ...]) -> str:
    """Several levels in words: by their name, one by one if they are few, or their number and range.

    >>> levels_text(NAMED["deciles"]), levels_text((Fraction(1, 10), Fraction(9, 10)))
    ('deciles', '10 %, 90 % quantiles')
    """
    name = levels_name(levels)
    if name is not None:
        return name
    if len(levels) > _SHOWN_LEVELS:
        return f"{len(levels)} quantiles from {percent(min(levels))} to {percent(max(levels))}"
    noun = "quantile" if len(levels) == 1 else "quantiles"
    return f"{', '.join(map(percent, levels))} {noun}"


def stated_levels(estimate: str) -> list[str]:
    """The levels that an estimate names, as `levels_text` wrote them; none if it does not name each.

    >>> stated_levels("10 %, 90 % quantiles over rows"), stated_levels("median over rows")
    (['10 %', '90 %'], [])
    """
    first = estimate.partition(" over ")[0]
    if first in NAMED:
        return [percent(level) for level in NAMED[first]]
    listed = _LISTED.match(estimate)
    return listed[1].split(", ") if listed else []
