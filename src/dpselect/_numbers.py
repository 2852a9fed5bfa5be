"""Numbers as exact rationals and as text: the precise value of a float, a Decimal or a decimal string.

Text is parsed as a number here and nowhere else. After stripping white space, a number is

  * an optional sign, ASCII digits with an optional point, and an optional exponent: 12, -0.5, .5, 1e-3; or
  * a quotient of two whole numbers: 1/3.

Python's own parsers accept more: they skip underscores and accept the digits of every script, so 0_1 would be 1.

The length is limited, and checked before any work that is quadratic in it: a number of a million digits would take
minutes to convert.

A number is written exactly (`exact_text`, or `shortest_text` for Python code), or with a few digits rounded to
the safe side (`rounded_up_text`, `rounded_down_text`, `shown`).
"""

import math
import re
from collections.abc import Callable
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    InvalidOperation,
    Rounded,
)
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any, TypeVar

import numpy as np

# A Decimal has at most one digit more than this, and is zero or between 10**-4000 and 10**4000: 10**exponent is built
# digit by digit, so a short text such as "1e999999999" must not be able to fill the memory.
LARGEST_EXPONENT = 4_000
# The most bits of a numerator or denominator: 19,728 digits. A float of any size has fewer, also one of 128 bits.
LONGEST = 2**16
_DECIMAL_DIGITS = 30
_LARGEST_PLAIN = 10**15  # a whole number below this is written without an exponent
_FEW_DIGITS = Context(prec=LARGEST_EXPONENT + 1, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Rounded])

_WHOLE = r"[+-]?[0-9]+"
_IS_WHOLE = re.compile(_WHOLE)
_IS_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_IS_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_QUOTIENT = re.compile(rf"({_WHOLE})\s*/\s*({_WHOLE})")


class NotExact(TypeError):
    """The object is not a number that has an exact rational value."""


class NotFinite(ValueError):
    """The number is NaN, infinite, or a decimal beyond 10**(+-LARGEST_EXPONENT)."""


class TooLong(NotFinite):
    """The number has more digits than are supported."""


def rational(number: Any) -> Fraction:
    """The exact value of an int, bool, float, Fraction, Decimal or NumPy scalar."""
    if isinstance(number, Fraction):
        # A subclass may compute in its own way, as a pure budget does.
        plain = number if type(number) is Fraction else None
        return _quotient(int(number.numerator), int(number.denominator), plain)
    if isinstance(number, (Integral, np.bool_)):
        return _quotient(int(number), 1)
    if isinstance(number, Decimal):
        _check_length(number)
        return _of_decimal(number)
    if isinstance(number, (float, np.floating)):
        if not np.isfinite(number):
            raise NotFinite
        numerator, denominator = number.as_integer_ratio()
        return Fraction(int(numerator), int(denominator))
    if isinstance(number, Rational):
        return _quotient(int(number.numerator), int(number.denominator))
    raise NotExact


def _quotient(numerator: int, denominator: int, known: Fraction | None = None) -> Fraction:
    if max(numerator.bit_length(), denominator.bit_length()) > LONGEST:
        raise TooLong
    return Fraction(numerator, denominator) if known is None else known


def rational_from_text(text: str) -> Fraction:
    """The exact value of a decimal string such as "0.1", "1e-3" or of a quotient such as "1/3"."""
    quotient = _QUOTIENT.fullmatch(text.strip())
    if quotient is None:
        return _of_decimal(decimal_from_text(text))
    numerator, denominator = (int(decimal_from_text(part)) for part in quotient.groups())
    if not denominator:
        raise NotExact
    return Fraction(numerator, denominator)


def is_number(text: str) -> bool:
    """Whether a text is written like a number, which may be out of range.

    >>> is_number("1/3"), is_number("1e999999"), is_number("0,5")
    (True, True, False)
    """
    try:
        rational_from_text(text)
    except NotExact:
        return False
    except (NotFinite, TooLong):
        pass
    return True


def decimal_from_text(text: str) -> Decimal:
    """The number that a text represents; quotients are not accepted."""
    written = text.strip()
    if not _IS_DECIMAL.fullmatch(written):
        raise NotFinite if _IS_NOT_FINITE.fullmatch(written) else NotExact
    try:
        number = Decimal(written)
    except InvalidOperation:  # an exponent beyond those of Decimal
        raise NotFinite from None
    _check_length(number)
    return number


def number_from_text(text: str) -> int | Decimal:
    """An int for plain digits, otherwise a Decimal; never a float, which would round."""
    number = decimal_from_text(text)
    return int(number) if _IS_WHOLE.fullmatch(text.strip()) else number


def _of_decimal(number: Decimal) -> Fraction:
    return Fraction(number) if number else Fraction(0)  # a zero may be written as 0e999999999


def _check_length(number: Decimal) -> None:
    if not number.is_finite() or (number and abs(number.adjusted()) > LARGEST_EXPONENT):
        raise NotFinite
    if not has_few_digits(number):
        raise TooLong


def has_few_digits(number: Decimal) -> bool:
    """Whether a finite Decimal has at most the supported number of digits, found without reading them all.

    >>> has_few_digits(Decimal("0.1")), has_few_digits(Decimal("0." + "1" * 10**6))
    (True, False)
    """
    try:
        _FEW_DIGITS.plus(number)
    except Rounded:
        return False
    return True


def exact_text(number: Fraction) -> str:
    """The exact number as text: a decimal of at most 30 digits if there is one, otherwise a quotient."""
    if number.denominator == 1 and abs(number) < _LARGEST_PLAIN:
        return str(number)
    decimal = rounded_up_text(number, digits=_DECIMAL_DIGITS)
    return decimal if Fraction(decimal) == number else str(number)


def shortest_text(number: Fraction) -> str:
    """The shortest Python expression that our own parameters read back as exactly this number."""
    # A float stands for its binary value. Any other number is a quoted decimal or quotient.
    if number.denominator == 1 and abs(number) < _LARGEST_PLAIN:
        return str(number.numerator)
    nearest = float_near(number)
    if math.isfinite(nearest) and Fraction(nearest) == number:
        return repr(nearest)
    return f"'{exact_text(number)}'"


def rounded_up_text(number: Fraction, digits: int = 6) -> str:
    """The number as decimal text with at most `digits` digits, rounded up."""
    return _decimal_text(number, Context(prec=digits, rounding=ROUND_CEILING))


def rounded_down_text(number: Fraction, digits: int = 6) -> str:
    """The number as decimal text with at most `digits` digits, rounded down."""
    return _decimal_text(number, Context(prec=digits, rounding=ROUND_FLOOR))


def _decimal_text(number: Fraction, context: Context) -> str:
    rounded = context.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize(context)
    return f"{rounded:f}" if 0 <= rounded.adjusted() < 12 else f"{rounded:g}"


def float_near(number: Fraction) -> float:
    """The nearest float. It is infinite, not an error, beyond the largest float."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def float_above(number: Fraction) -> float:
    """The smallest float that is not below the number."""
    nearest = float_near(number)
    if math.isinf(nearest):
        return nearest if nearest > 0 else -math.nextafter(math.inf, 0)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def float_below(number: Fraction) -> float:
    """The largest float that is not above the number."""
    return -float_above(-number)


UP, DOWN, NEAREST = ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
NONE = "-"


def shown(number: float | None, rounding: str = UP, digits: int = 4) -> str:
    """The number with at most `digits` digits, rounded up by default; a dash for NaN and infinities."""
    if number is None or not math.isfinite(number):
        return NONE
    # Eleven digits first: a value that exceeds 0.1 only by rounding errors is shown as 0.1, not as 0.1001.
    context = Context(prec=digits, rounding=rounding)
    rounded = context.plus(Decimal(f"{number:.11g}")).normalize()
    return f"{rounded:,f}" if not rounded or -3 <= rounded.adjusted() < 12 else f"{rounded:e}"


def finite(number: float) -> float | None:
    """The number for JSON: None for NaN and infinities."""
    return number if math.isfinite(number) else None


_Real = TypeVar("_Real", int, float, Fraction)


def first_true(holds: Callable[[_Real], bool], low: _Real, high: _Real | None = None, *, within: float = 0) -> _Real:
    """The smallest number with a property that all larger ones have: exact for whole numbers, else on the safe side."""
    # `low` lacks the property; without `high`, it is a positive number to start from, by doubling and halving. `within`
    # is the relative error for fractions; floats are searched until none is left between.
    found: _Real = _turn(holds, low, high, within)[1]
    return found


def last_true(holds: Callable[[_Real], bool], low: _Real, high: _Real | None = None, *, within: float = 0) -> _Real:
    """The largest number with a property that all smaller ones have. See `first_true`."""
    found: _Real = _turn(lambda number: not holds(number), low, high, within)[0]
    return found


def _turn(holds: Callable[[Any], bool], low: Any, high: Any, within: float) -> tuple[Any, Any]:
    if high is None:
        high = low
        if holds(high):
            while holds(low := high / 2):
                high = low
        else:
            while not holds(high := 2 * low):
                low = high
    factor = 1 + Fraction(within) if within else 1  # floats times a Fraction are slow
    while high > low * factor:
        middle = (low + high) // 2 if isinstance(low, int) else low + (high - low) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
