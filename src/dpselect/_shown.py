"""Numbers as reports show them: a few digits, rounded to the safe side."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

UP, DOWN, NEAREST = ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
NONE = "-"


def shown(number: float | None, rounding: str = UP, digits: int = 4) -> str:
    """The number with so many digits; rounded up unless told otherwise. What is no finite number is a dash.

    >>> shown(27.6310211), shown(27.6310211, DOWN), shown(0.1), shown(123456.7), shown(None)
    ('27.64', '27.63', '0.1', '123,500', '-')
    """
    if number is None or not math.isfinite(number):
        return NONE
    # Eleven digits first: what is above 0.1 by roundings alone is meant to be 0.1, not 0.1001.
    context = Context(prec=digits, rounding=rounding)
    rounded = context.plus(Decimal(f"{number:.11g}")).normalize()
    return f"{rounded:,f}" if not rounded or -3 <= rounded.adjusted() < 12 else f"{rounded:e}"


def finite(number: float) -> float | None:
    """The number as JSON has it: null for NaN and infinities."""
    return number if math.isfinite(number) else None
