"""One field of a CSV file as a score, at its exact decimal value. No message contains the field: scores are secret."""

import re
from decimal import Decimal, InvalidOperation

from dpselect._exact import LARGEST_EXPONENT
from dpselect._header import NO_NUMBER
from dpselect.errors import InvalidValue

Score = int | Decimal

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def parse_score(field: str, line: int) -> Score:
    """An int for digits alone, else a Decimal; never a float, which would round.

    >>> parse_score("9007199254740993", line=1), parse_score("0.1", line=2)
    (9007199254740993, Decimal('0.1'))
    """
    if NO_NUMBER.fullmatch(field):
        rule = f"the score on line {line} is missing, NaN or infinite"
        raise InvalidValue(f"{rule}: drop or replace such scores by a public rule first")
    if not _NUMBER.fullmatch(field):
        rule = f"the score on line {line} is not a number"
        raise InvalidValue(f"{rule}: write numbers like 12, -0.5 or 1e-3, with commas between fields only")
    try:
        number = Decimal(field)
    except InvalidOperation:  # an exponent beyond those of Decimal
        number = Decimal("inf")
    if not number.is_finite() or (number and abs(number.adjusted()) > LARGEST_EXPONENT):
        rule = f"the score on line {line} is beyond 1e{LARGEST_EXPONENT} or nearer to zero than 1e-{LARGEST_EXPONENT}"
        raise InvalidValue(f"{rule}: give the scores and the sensitivity in another unit")
    return int(number) if _INTEGER.fullmatch(field) else number
