"""Rigorous enclosures of exp and log of rationals, by Python's `decimal`, whose exp and ln are correctly rounded.

They are the slow, exact fallbacks of every float filter. Each takes a precision and returns a bracket of
Fractions that shrinks to the true value as the precision grows.
"""

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TypeVar

from dpselect.errors import InvalidValue

_Found = TypeVar("_Found")


def refined(find: Callable[[int], _Found | None], digits: int) -> _Found:
    """What `find` finds with enough digits: with twice as many as before while it is None."""
    while (found := find(digits)) is None:
        digits *= 2
    return found


def _context(digits: int, rounding: str) -> Context:
    return Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def _decimal(number: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def scaled_exp(exponent: Fraction, depth: int) -> int:
    """The integer floor(2**depth * exp(-exponent)), for a rational exponent >= 0.

    exp of a non-zero rational is irrational (Lambert), so the product is never an integer and the loop ends.
    """
    if exponent < 0:  # otherwise the loop would not end
        raise InvalidValue("exponent must be >= 0")
    if exponent == 0:
        return 1 << depth
    if exponent >= depth:  # then exp(-exponent) <= e**-depth < 2**-depth
        return 0

    def floor(digits: int) -> int | None:
        low, high = (int(bound * (1 << depth)) for bound in exp_bracket(exponent, digits))
        return low if low == high else None

    # The product has about depth - exponent / ln 2 bits. Too few digits are found out.
    return refined(floor, 20 + int(max(depth - int(exponent * 13 / 9), 0) * 0.302) + len(str(depth)))


def exp_bracket(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Bounds of exp(-exponent) with a relative width near 10**-digits."""
    down, up = _context(digits, ROUND_FLOOR), _context(digits, ROUND_CEILING)
    # `exp` rounds to nearest in every context, so one step outward encloses the value. The sign is changed by
    # copy_negate because a unary minus would round to the precision of the thread's own context.
    low = down.next_minus(down.exp(_decimal(exponent, up).copy_negate()))
    high = up.next_plus(up.exp(_decimal(exponent, down).copy_negate()))
    return max(Fraction(0), Fraction(low)), min(Fraction(1), Fraction(high))


def log_bracket(number: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Bounds of ln(number) for a positive rational number, 10**(1 - digits) or a few units of the last digit wide."""
    down, up = _context(digits, ROUND_FLOOR), _context(digits, ROUND_CEILING)
    low, high = down.ln(_decimal(number, down)), up.ln(_decimal(number, up))
    # A step of one unit in the last digit, taken as if the logarithm were at least one: a logarithm near zero has
    # units so small that they would be a number of 10**18 digits.
    largest = max(low.adjusted() if low else 0, high.adjusted() if high else 0, 0)
    step = Fraction(1, 10 ** (digits - 1 - largest))
    return Fraction(low) - step, Fraction(high) + step
