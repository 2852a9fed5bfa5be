"""Checks of public parameters, passed by the keyword that messages show, and of calls to foreign code.

Foreign code is that of a user or an engine. Its errors may quote the data and are replaced (`withheld`).
"""

import math
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from dpselect._numbers import (
    LARGEST_EXPONENT,
    NotExact,
    NotFinite,
    TooLong,
    float_near,
    rational,
    rational_from_text,
    shown,
)
from dpselect.errors import DoubtfulValue, DPSelectError, InvalidType, InvalidValue

_Result = TypeVar("_Result")

_LARGEST = 10**LARGEST_EXPONENT
_FINEST_LEVEL = 10**6
# Results are floats. This is far beyond any use, and far below numbers whose square overflows.
_FARTHEST = Fraction(10**50)
MANY = 10**9  # more questions, rows or groups than anybody has
EXACT_IN_FLOATS = 2**53  # up to here, floats count one by one
LARGE_DELTA = Fraction(0.001)  # the float, which is a little more than 1/1000


def exact_positive(**parameter: Any) -> Fraction:
    """The exact value of a positive finite number: an int, float, Fraction, Decimal or decimal string."""
    [(name, value)] = parameter.items()
    number = exact("a positive finite number", **parameter)
    if number <= 0:
        raise InvalidValue(f"{name} must be > 0, got {_short(value)}: give a positive finite number")
    return number


def exact(wanted: str = "a finite number", /, **parameter: Any) -> Fraction:
    """The exact value of a finite number of either sign: an int, float, Fraction, Decimal or decimal string."""
    [(name, value)] = parameter.items()
    accepted = f"give {name} as an int, float, Fraction, Decimal or decimal string such as '0.1'"
    if isinstance(value, (bool, np.bool_)):
        raise InvalidType(f"{name} must be a number, got {value!r}: {accepted}")
    try:
        number = rational_from_text(value) if isinstance(value, str) else rational(value)
    except NotExact:
        if isinstance(value, str):
            raise InvalidValue(f"{name} must be a number, got the text {_short(value)}: {_as_text(value)}") from None
        raise InvalidType(f"{name} must be a number, got {type(value).__name__}: {accepted}") from None
    except TooLong:
        raise _too_long(name) from None
    except NotFinite:
        raise InvalidValue(f"{name} must be finite, got {_short(value)}: give {wanted}") from None
    if max(abs(number.numerator), number.denominator) > _LARGEST:
        raise _too_long(name)
    return number


def warn(message: str) -> None:
    """Warn of a doubtful parameter, at the line of the caller that is not in this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "dpselect":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, DoubtfulValue, stacklevel=level)


def warn_of_large_delta(delta: Fraction | float) -> None:
    """Warn of a delta that hardly protects anybody."""
    # Every function that takes a delta from a user calls this once, with the delta of all that it promises.
    if delta > LARGE_DELTA:
        stated = shown(float_near(Fraction(delta)))
        warn(
            f"delta {stated} hardly protects anybody: it allows publishing each row with this probability. Use much"
            " less than one over the number of people, such as 1e-9"
        )


def _as_text(wrong: str) -> str:
    # We do not guess whether '1,000' means 1 or 1000.
    with_comma = "write 0.1 with a decimal point, and no thousands separators"
    return with_comma if "," in wrong else "write it as 10, 0.1, 1e-3 or 1/3"


def _too_long(name: str) -> InvalidValue:
    return InvalidValue(f"{name} must have at most {LARGEST_EXPONENT} digits: give a shorter number")


def finite(**parameter: Any) -> Fraction:
    """The exact value of a finite number of either sign with a limited number of digits."""
    [(name, value)] = parameter.items()
    try:
        number = rational(value)
        is_short = max(abs(number.numerator), number.denominator) <= _LARGEST
    except TooLong:
        is_short = False
    except (NotExact, NotFinite):
        raise InvalidValue(f"{name} must hold finite numbers") from None
    if not is_short:
        raise InvalidValue(f"{name} must hold numbers of at most {LARGEST_EXPONENT} digits")
    return number


def _short(value: Any) -> str:
    try:
        return repr(value)[:40]
    except ValueError:  # an int with more digits than Python prints
        return type(value).__name__


def boolean(**parameter: Any) -> bool:
    """True or False, and nothing that merely behaves like one of them."""
    [(name, value)] = parameter.items()
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidType(f"{name} must be True or False, got {type(value).__name__}")
    return bool(value)


def fraction_of_one(**parameter: Any) -> float:
    """A number strictly between zero and one."""
    [(name, value)] = parameter.items()
    number = exact_positive(**parameter)
    if number >= 1:
        raise InvalidValue(f"{name} must be between 0 and 1, got {_short(value)}")
    return float(number)


def below_one(**parameter: Any) -> Fraction:
    """The exact value of a number from zero to below one, such as a delta."""
    [(name, value)] = parameter.items()
    number = exact(**parameter)
    if not 0 <= number < 1:
        raise InvalidValue(f"{name} must be from 0 to below 1, got {str(value)[:40]}")
    return number


def count(least: int = 0, most: float = math.inf, **parameter: Any) -> int:
    """A non-negative integer, from least to most."""
    [(name, value)] = parameter.items()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise InvalidType(f"{name} must be an integer, got {type(value).__name__}")
    number = int(value)
    if abs(number) > _LARGEST:  # checked first, so that no message prints the digits
        raise _too_long(name)
    if number < 0:
        raise InvalidValue(f"{name} must be >= 0, got {_short(value)}")
    if not least <= number <= most:
        raise _not_within(least, most, name, value)
    return number


def count_in_text(least: int, most: int, **parameter: str) -> int:
    """An integer from least to most, written as text: 1e6 is one."""
    [(name, text)] = parameter.items()
    is_zero = least == 0 and text.strip() == "0"
    number = Fraction(0) if is_zero else exact_positive(**parameter)
    if number.denominator != 1 or not least <= number <= most:
        raise _not_within(least, most, name, text)
    return int(number)


def _not_within(least: int, most: float, name: str, value: Any) -> InvalidValue:
    return InvalidValue(f"{name} must be a whole number from {least:,} to {most:,}, got {_short(value)}")


def moderate(**parameter: Any) -> Fraction:
    """The exact value of a positive number that floats can be computed with."""
    [(name, value)] = parameter.items()
    number = exact_positive(**parameter)
    if not 1 / _FARTHEST <= number <= _FARTHEST:
        raise InvalidValue(f"{name} must be between 1e-50 and 1e50, got {_short(value)}: give it in another unit")
    return number


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can write a text: it has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# The user or the interpreter stops the work. All others are failures: some libraries raise panics that are not errors.
_STOPS = (KeyboardInterrupt, GeneratorExit)


def withheld(
    call: Callable[[], _Result],
    error: DPSelectError,
    foreign: type[BaseException] | tuple[type[BaseException], ...] = BaseException,
) -> _Result:
    """What a call returns, or this error where it raises a foreign one, which may quote the data."""
    # An error that is raised while another is handled keeps it as its context, also with `from None`. So this one is
    # raised after the handler. Errors of this package pass through, and the user's interrupt without what it carries.
    raised: BaseException = error
    try:
        return call()
    except DPSelectError:
        raise
    except _STOPS as stop:
        raised = type(stop)()
    except foreign:
        pass
    raise raised


def attempted(call: Callable[[], _Result]) -> _Result | None:
    """What a call returns, or None where it raises anything, also an error of this package."""
    failed = InvalidValue("the call failed")
    try:
        return withheld(call, failed)
    except DPSelectError:
        return None


def level(level: Any) -> Fraction:
    """The exact level of a quantile that was written: 0.9 is nine tenths, not the nearest float.

    >>> level(0.9), level("1/3")
    (Fraction(9, 10), Fraction(1, 3))
    """
    is_written = isinstance(level, (str, float, np.floating))
    try:
        number = rational_from_text(str(level)) if is_written else rational(level)
    except NotExact:
        got = repr(level)[:40] if isinstance(level, str) else type(level).__name__
        give = "give for example 0.9, or use quantiles for several levels"
        raise InvalidType(f"level must be a number between 0 and 1, got {got}: {give}") from None
    except NotFinite:
        raise InvalidValue("level must be between 0 and 1: give for example 0.9") from None
    if not 0 < number < 1:
        raise InvalidValue("level must be between 0 and 1: for the 90 % quantile, give 0.9")
    if number.denominator > _FINEST_LEVEL:
        raise InvalidValue(f"level must be a multiple of 1/n for some n <= {_FINEST_LEVEL:,}: give fewer digits")
    return number
