"""Numbers as exact rationals: what a float, a Decimal or a decimal string says, to the last bit."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any

import numpy as np

# 10**exponent is built digit by digit, so a short text such as "1e999999999" must not be able to fill the memory.
LARGEST_EXPONENT = 4_000


class NotExact(TypeError):
    """The object is not a number that has an exact rational value."""


class NotFinite(ValueError):
    """The number is NaN, infinite, or a decimal beyond 10**(+-LARGEST_EXPONENT)."""


def rational(number: Any) -> Fraction:
    """The exact value of an int, bool, float, Fraction, Decimal or NumPy scalar.

    >>> rational(0.1)
    Fraction(3602879701896397, 36028797018963968)
    """
    if isinstance(number, Fraction):
        return number
    if isinstance(number, (Integral, np.bool_)):
        return Fraction(int(number))
    if isinstance(number, Decimal):
        return _rational_from_decimal(number)
    if isinstance(number, (float, np.floating)):
        if not np.isfinite(number):
            raise NotFinite
        numerator, denominator = number.as_integer_ratio()
        return Fraction(int(numerator), int(denominator))
    if isinstance(number, Rational):
        return Fraction(int(number.numerator), int(number.denominator))
    raise NotExact


def rational_from_text(text: str) -> Fraction:
    """The exact value of a decimal string such as "0.1", "1e-3" or of a quotient such as "1/3".

    >>> rational_from_text("0.1"), rational_from_text("1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    numerator, slash, denominator = text.partition("/")
    try:
        if slash:
            return Fraction(int(numerator), int(denominator))
        return _rational_from_decimal(Decimal(text.strip()))
    except (InvalidOperation, ZeroDivisionError, ValueError) as error:
        raise error if isinstance(error, NotFinite) else NotExact from None


def _rational_from_decimal(number: Decimal) -> Fraction:
    if not number.is_finite() or (number and abs(number.adjusted()) > LARGEST_EXPONENT):
        raise NotFinite
    return Fraction(number)


def shortest_text(number: Fraction) -> str:
    """The shortest text that our own parameters read back as exactly this number.

    >>> shortest_text(Fraction(1)), shortest_text(Fraction(0.1)), shortest_text(Fraction(1, 10))
    ('1', '0.1', "'1/10'")
    """
    if number.denominator == 1 and abs(number) < 10**15:
        return str(number.numerator)
    nearest = float_near(number)
    if math.isfinite(nearest) and Fraction(nearest) == number:
        return repr(nearest)
    return f"'{number}'"


def rounded_up_text(number: Fraction, digits: int = 6) -> str:
    """A decimal text of so many digits that is not below the number.

    >>> rounded_up_text(Fraction(1, 3)), rounded_up_text(Fraction(1, 8))
    ('0.333334', '0.125')
    """
    return _decimal_text(number, Context(prec=digits, rounding=ROUND_CEILING))


def rounded_down_text(number: Fraction, digits: int = 6) -> str:
    """A decimal text of so many digits that is not above the number.

    >>> rounded_down_text(Fraction(1, 3)), rounded_down_text(Fraction(1, 8))
    ('0.333333', '0.125')
    """
    return _decimal_text(number, Context(prec=digits, rounding=ROUND_FLOOR))


def _decimal_text(number: Fraction, context: Context) -> str:
    rounded = context.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize(context)
    return f"{rounded:f}" if 0 <= rounded.adjusted() < 12 else f"{rounded:g}"


def float_near(number: Fraction) -> float:
    """The nearest float; infinite beyond the largest float instead of an error."""
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
